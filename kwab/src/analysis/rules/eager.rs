//! Memory that exec makes in advance for programs that never use it: nothing crashes, and everything is slow.
//!
//! The proof is the processor's: pages that were made and whose accessed bit was never set ([`prefault`]). Times of
//! spans, where the kernel measured them, say what it costs; without the pages they prove nothing, since a program that
//! uses what it was given makes exec slow and itself fast.

use kwab_format::record::{Counter, SpanProfileEntry};

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::model::{Located, RecordRef};
use crate::units;

/// Samples from which on a mean says something.
const SAMPLES: u64 = 2;
/// Pages per execution that may be made for nothing: with fewer, clearing them costs less than the faults of programs
/// that differ from one run to the next.
const WASTED: u64 = 32;
/// Of the pages made, the share in percent that goes unused where the kernel does not learn from what programs use.
const UNUSED: u64 = 75;

/// Most of the pages that exec makes in advance are never accessed.
pub(super) fn prefault(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let (Some((samples, _)), Some((made, at)), Some((unused, unused_at))) = (
        counter(ctx, b"samples"),
        counter(ctx, b"made in advance for the samples"),
        counter(ctx, b"made in advance and never accessed"),
    ) else {
        return Vec::new();
    };
    let many = samples >= SAMPLES && unused / samples.max(1) >= WASTED;
    if !many || unused > made || unused.saturating_mul(100) / made.max(1) < UNUSED {
        return Vec::new();
    }
    let each = made / samples;
    let percent = unused.saturating_mul(100) / made;
    let claim = Claim::new(format!(
        "over-eager prefault: exec makes {each} pages in advance for each program, and {percent} % are never used"
    ));
    let fact = format!("{unused} of the pages that {} got in advance were never accessed", sampled(samples));
    let claim = claim.proven(0.82, fact, Some(unused_at)).because(0.0, format!("{made} pages were made"), Some(at));
    vec![with_times(ctx, claim)]
}

fn sampled(samples: u64) -> String {
    units::count(samples, "sampled execution", "sampled executions")
}

/// A counter of executions.
fn counter(ctx: &Context<'_, '_>, name: &[u8]) -> Option<(u64, RecordRef)> {
    let wanted = |counter: &&Located<Counter<'_>>| counter.group == Some(b"exec") && counter.name == Some(name);
    let found = ctx.case.counters.iter().find(wanted)?;
    Some((u64::try_from(found.value?).ok()?, found.at))
}

/// Of the time of executions, the share in percent from which on prefault is what they take longest for.
const MOST: u64 = 50;

/// The claim with what the spans say of the time, and what page faults cost meanwhile.
fn with_times(ctx: &Context<'_, '_>, claim: Claim) -> Claim {
    let Some(profile) = ctx.case.spans.last() else { return claim };
    let span = |name: &[u8]| -> Option<SpanProfileEntry<'_>> {
        profile.entries?.iter().find(|entry| entry.name == Some(name) && entry.total_ns.is_some())
    };
    let (Some(ahead), Some(all)) = (span(b"exec.prefault"), span(b"exec")) else { return claim };
    let (ahead_ns, all_ns) = (ahead.total_ns.unwrap_or(0), all.total_ns.unwrap_or(0));
    let percent = ahead_ns.saturating_mul(100) / all_ns.max(1);
    let calls = all.calls.unwrap_or(0);
    let fact = format!("exec.prefault took {percent} % of the time of {calls} executions ({ahead_ns} of {all_ns} ns)");
    let at = Some(profile.at);
    let claim = if percent >= MOST { claim.because(0.4, fact, at) } else { claim.because(0.0, fact, at) };
    claim.because_if(
        0.0,
        ctx.case.fault_times.last().and_then(|faults| {
            let fact = format!("page faults took {} ns, {} times", faults.total_ns?, faults.count?);
            Some((fact, Some(faults.at)))
        }),
    )
}
