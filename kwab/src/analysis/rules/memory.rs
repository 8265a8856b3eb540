//! Memory that is not what it should be: pages, page tables, frame counts, translations, and none left.

use kwab_format::record::{CauseKind, Counter, FlightEvent, FlightKind};

use crate::analysis::audit::{Finding, Severity};
use crate::analysis::context::Context;
use crate::analysis::finding::{Claim, Evidence};
use crate::analysis::keepers::{self, Promise};
use crate::analysis::quote::text;
use crate::model::{Located, RecordRef};
use crate::units;

/// Findings of the audit below this weight are remarks, not causes.
const CAUSE_WEIGHT: f64 = 0.5;

/// Pages that are not what their files say.
pub(super) fn wrong_pages(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let Some(first) = ctx.pages.first() else { return Vec::new() };
    let more = if ctx.pages.len() > 1 {
        format!(" (and {})", units::count(ctx.pages.len() as u64 - 1, "more page", "more pages"))
    } else {
        String::new()
    };
    let path = if first.path.is_empty() { "its file" } else { &first.path };
    let mut claim = Claim::new(format!(
        "the page {:#x} of {path} holds {}{more} [{}]",
        first.vaddr,
        first.content.describe(),
        first.rule
    ));
    for (number, page) in ctx.pages.iter().take(4).enumerate() {
        let place = page.first_diff.map(|at| format!(" at +{at:#x}")).unwrap_or_default();
        let row = format!("page {:#x}{place}: expected {}, found {}", page.vaddr, page.expected, page.actual);
        let at = Some(page.at);
        claim = if number == 0 { claim.proven(0.88, row, at) } else { claim.because(0.1, row, at) };
    }
    let used = [ctx.death.ip, ctx.death.fault_addr].into_iter().flatten();
    if let Some(addr) = used.into_iter().find(|addr| ctx.pages.iter().any(|page| page.vaddr == addr & !0xfff)) {
        claim = claim.because(0.5, format!("the faulting address {addr:#x} lies in such a page"), ctx.death.at);
    }
    vec![claim]
}

/// What the audit of mappings and page tables found.
pub(super) fn audit(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let causes: Vec<&Finding> = ctx.audit.iter().filter(|finding| finding.weight >= CAUSE_WEIGHT).collect();
    let first_of_its_places = |at: usize| !causes[..at].iter().any(|earlier| covers(earlier, causes[at]));
    let claims = (0..causes.len()).filter(|at| first_of_its_places(*at)).map(|at| {
        let finding = causes[at];
        let times = if finding.count > 1 { format!(", {} times", finding.count) } else { String::new() };
        let place = finding.addr.map(|addr| format!(" at {addr:#x}")).unwrap_or_default();
        let ended = if finding.rule == "VM-COUNT-LOW" { how_counts_fell(ctx) } else { None };
        let mut claim =
            Claim::new(format!("{}{place}{times} [{}]", finding.title, finding.rule)).because_if(0.0, ended);
        for (number, witness) in finding.witnesses.iter().take(4).enumerate() {
            let (text, at) = (witness.text.clone(), witness.at);
            claim = match number {
                0 if finding.severity == Severity::Error => claim.proven(finding.weight, text, at),
                0 => claim.because(finding.weight, text, at),
                _ => claim.because(0.0, text, at),
            };
        }
        for other in causes[at + 1..].iter().filter(|other| covers(finding, other)) {
            claim = claim.because(0.0, format!("so {} there [{}]", other.title, other.rule), None);
        }
        let used = [ctx.death.ip, ctx.death.fault_addr].into_iter().flatten();
        let same_page = |addr: &u64| finding.addr.is_some_and(|wrong| wrong & !0xfff == addr & !0xfff);
        if let Some(addr) = used.into_iter().find(same_page) {
            claim = claim.because(0.4, format!("the faulting address {addr:#x} lies in the same page"), ctx.death.at);
        }
        claim.about(finding.rule)
    });
    claims.collect()
}

/// How references came to be too few: an address space that ended gave back too many, or they were never taken.
fn how_counts_fell(ctx: &Context<'_, '_>) -> Option<(String, Option<RecordRef>)> {
    if ctx.case.flight.is_empty() {
        return None;
    }
    Some(match ctx.case.flight.iter().rev().find(|event| event.kind == Some(FlightKind::EXIT)) {
        Some(event) => {
            let who = event.pid.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
            let row = format!("{who} exited before: its address space may have dropped references that it did not own");
            (row, Some(event.at))
        }
        None => (
            "the flight recorder holds no exit of a process: more likely the references were never taken".to_owned(),
            None,
        ),
    })
}

/// Whether another finding is about the same records and no more: what it says follows from the first.
fn covers(first: &Finding, other: &Finding) -> bool {
    let known = |row: &Evidence| row.at.is_some() && first.witnesses.iter().any(|witness| witness.at == row.at);
    other.count <= first.count && !other.witnesses.is_empty() && other.witnesses.iter().all(known)
}

/// Memory was unmapped or protected while another processor ran the same process, and that processor was not told.
pub(super) fn tlb(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let mut events: Vec<&Located<FlightEvent<'_>>> = ctx.case.flight.iter().collect();
    events.sort_by_key(|event| (event.stamp.tsc.or(event.stamp.ns).or(event.delta_ticks), event.at));
    let changes = [FlightKind::MUNMAP, FlightKind::MPROTECT];
    for (index, event) in events.iter().enumerate() {
        let (Some(kind), Some(pid), Some(cpu)) = (event.kind, event.pid, event.stamp.cpu) else { continue };
        if !changes.contains(&kind) {
            continue;
        }
        let before = &events[index.saturating_sub(LOOKED_BACK)..index];
        let Some(other) = running_elsewhere(before, pid, cpu).filter(|_| !only_gives(before, event)) else { continue };
        // The shootdown belongs to the change: it comes before the processor does anything else for the process.
        let later = &events[index + 1..events.len().min(index + 1 + LOOKED_BACK)];
        let next = later.iter().filter(|later| later.stamp.cpu == Some(cpu));
        let told = next.take(4).any(|later| later.kind == Some(FlightKind::TLB_SEND));
        if told || events[index + 1..].is_empty() {
            continue;
        }
        let what = kind.name().unwrap_or("change");
        let addr = event.a.map(|addr| format!(" of {addr:#x}")).unwrap_or_default();
        let mut claim = Claim::new(format!("CPU {other} got no TLB shootdown after {what}{addr} on CPU {cpu}"))
            .proven(0.7, format!("{what}{addr} by pid {pid} on CPU {cpu}, and no shootdown after it"), Some(event.at))
            .because(0.4, format!("CPU {other} was running pid {pid} at that time"), None);
        let anywhere = ctx.case.flight.iter().filter(|event| event.kind == Some(FlightKind::TLB_SEND)).count();
        if anywhere == 0 && ctx.case.flight.len() < 8 {
            claim = claim.but(
                0.5,
                "the flight recorder holds so few events that the shootdown may have been overwritten",
                None,
            );
        }
        return vec![claim];
    }
    Vec::new()
}

/// Whether a change only gives rights to what was mapped with fewer, as the guard of a new stack: no processor has kept
/// what it takes away.
fn only_gives(before: &[&Located<FlightEvent<'_>>], change: &FlightEvent<'_>) -> bool {
    let (Some(addr), Some(rights)) = (change.a, change.c.filter(|_| change.kind == Some(FlightKind::MPROTECT))) else {
        return false;
    };
    let sets = [FlightKind::MMAP, FlightKind::MPROTECT];
    let covers = |event: &&&Located<FlightEvent<'_>>| {
        let range = event.a.zip(event.b);
        event.pid == change.pid
            && event.kind.is_some_and(|kind| sets.contains(&kind))
            && range.is_some_and(|(start, len)| start <= addr && addr - start < len)
    };
    let last = before.iter().rev().find(covers).and_then(|event| event.c);
    last.is_some_and(|had| had & !rights == 0)
}

/// Events before and behind a change that are looked at: more than a processor's ring holds.
const LOOKED_BACK: usize = 4096;

/// A processor other than `cpu` whose last switch was to a task of `pid` that has not begun to end since.
fn running_elsewhere(before: &[&Located<FlightEvent<'_>>], pid: u32, cpu: u32) -> Option<u32> {
    let mut seen = vec![cpu];
    let telling = [FlightKind::CONTEXT_SWITCH, FlightKind::EXIT];
    for event in before.iter().rev().filter(|event| event.kind.is_some_and(|kind| telling.contains(&kind))) {
        let Some(other) = event.stamp.cpu.filter(|other| !seen.contains(other)) else { continue };
        if event.pid == Some(pid) && event.kind == Some(FlightKind::CONTEXT_SWITCH) {
            return Some(other);
        }
        seen.push(other);
    }
    None
}

/// No memory was left.
pub(super) fn out_of_memory(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    if !says_none_left(ctx) {
        return Vec::new();
    }
    // A limit of a control group is reached while the machine has memory left.
    let limited =
        ctx.trace.iter().any(|frame| frame.name.as_deref().is_some_and(|name| name.starts_with("mem_cgroup_")))
            || death.message.to_lowercase().contains("memory cgroup");
    let what = match limited {
        true => "a memory control group reached its limit".to_owned(),
        false => format!("the machine ran out of memory{}", most_went_to(ctx)),
    };
    let mut claim = Claim::new(what).proven(0.8, first_line(&death.message, "the kernel reported it"), death.at);
    let mut counters: Vec<_> =
        ctx.case.counters.iter().filter(|c| text(c.group).contains("mem") && c.value.is_some()).collect();
    counters.sort_by_key(|counter| std::cmp::Reverse(counter.value));
    for counter in counters.iter().take(5) {
        let (name, value, unit) = (text(counter.name), counter.value.unwrap_or(0), text(counter.unit));
        claim = claim.because(0.1, format!("{name} = {value} {unit}").trim_end().to_owned(), Some(counter.at));
    }
    vec![claim]
}

/// Whether the kernel said that no memory was left.
pub(super) fn says_none_left(ctx: &Context<'_, '_>) -> bool {
    let message = ctx.death.message.to_lowercase();
    ctx.death.kind == Some(CauseKind::OUT_OF_MEMORY)
        || (ctx.kernel_died() && OUT_OF_MEMORY.iter().any(|words| message.contains(words)))
}

/// Whether the kernel killed a program because no memory was left, and went on: whichever function asked for a page
/// last is to blame for nothing.
pub(in crate::analysis) fn killed_and_went_on(ctx: &Context<'_, '_>) -> bool {
    ctx.death.kind == Some(CauseKind::BUG) && says_none_left(ctx)
}

/// Whose memory more than half of the machine's is, in words; nothing when no owner has that much or the dump does not
/// count it.
fn most_went_to(ctx: &Context<'_, '_>) -> String {
    let counters = || ctx.case.counters.iter().filter(|counter| counter.group == Some(b"memory"));
    let total = counters().find(|counter| counter.name == Some(b"total")).and_then(|counter| counter.value);
    let owned = counters().filter_map(|counter| Some((counter.value?, counter.name?.strip_prefix(b"of ")?)));
    match (total, owned.max_by_key(|(pages, _)| *pages)) {
        (Some(total @ 1..), Some((pages, owner))) if pages.saturating_mul(2) > total => {
            let percent = pages.saturating_mul(100) / total;
            format!(": {percent} % of it went to {}", String::from_utf8_lossy(owner))
        }
        _ => String::new(),
    }
}

/// Of the memory in use, the share that may have no owner: caches and rounding.
const UNACCOUNTED: i64 = 10;

/// Pages are in use that no owner accounts for: the kernel leaked them.
pub(super) fn lost_pages(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let memory = |name: &str| {
        let wanted = |counter: &&Located<Counter<'_>>| {
            counter.group == Some(b"memory") && counter.name == Some(name.as_bytes()) && counter.value.is_some()
        };
        ctx.case.counters.iter().find(wanted)
    };
    let (Some(in_use), Some(total)) = (memory("in use"), memory("total")) else { return Vec::new() };
    let owned: Vec<_> = ctx
        .case
        .counters
        .iter()
        .filter(|counter| counter.group == Some(b"memory") && counter.name.is_some_and(|name| name.starts_with(b"of ")))
        .collect();
    let known: i64 = owned.iter().filter_map(|counter| counter.value).fold(0, i64::saturating_add);
    let (used, all) = (in_use.value.unwrap_or(0), total.value.unwrap_or(0));
    let lost = used.saturating_sub(known);
    // Which owners there are is the writer's knowledge; with some of them missing, nothing can be said.
    if memory("of the kernel heap").is_none() || all <= 0 || lost.saturating_mul(100) / all < UNACCOUNTED {
        return Vec::new();
    }
    let percent = lost.saturating_mul(100) / all;
    if let Some(free) = memory("free").filter(|free| free.value.is_some_and(|pages| pages >= ENOUGH))
        && asked_for_memory(ctx)
    {
        return vec![refused_with_free(ctx, (free, all), (lost, used, known), in_use.at)];
    }
    let mut claim = Claim::new(format!(
        "{lost} pages ({percent} % of memory) are in use without an owner: they leaked"
    ))
    .proven(0.8, format!("{used} pages are in use, and their owners hold {known}"), Some(in_use.at));
    for counter in owned {
        claim = claim.because(
            0.02,
            format!("{} pages {}", counter.value.unwrap_or(0), text(counter.name)),
            Some(counter.at),
        );
    }
    vec![claim]
}

/// Free blocks lie beside their free buddies, which a buddy allocator joins whenever it frees one: it does not, and
/// large requests fail with memory free.
pub(super) fn not_joined(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let counters = || ctx.case.counters.iter().filter(|counter| counter.group == Some(b"memory"));
    let apart = counters().find(|counter| counter.name == Some(b"free blocks apart from their free buddies"));
    let Some((apart, pairs @ 1..)) = apart.and_then(|counter| Some((counter, counter.value?))) else {
        return Vec::new();
    };
    let mut claim =
        Claim::new("the allocator of frames does not join blocks that are given back: free memory is in pieces")
            .proven(0.85, format!("{pairs} pairs of free blocks are each other's buddies"), Some(apart.at));
    let orders =
        counters().filter(|counter| counter.name.is_some_and(|name| name.starts_with(b"free blocks of order")));
    for counter in orders {
        let row = format!("{} = {}", text(counter.name), counter.value.unwrap_or(0));
        claim = claim.because(0.01, row, Some(counter.at));
    }
    vec![claim]
}

/// Free pages with which a request for memory must not fail: no request of the kernel's own is larger.
const ENOUGH: i64 = 1024;

/// Whether the kernel stopped because it got no memory.
pub(super) fn asked_for_memory(ctx: &Context<'_, '_>) -> bool {
    let message = ctx.death.message.to_lowercase();
    ctx.kernel_died() && ctx.death.vector.is_none() && (message.contains("memory") || message.contains("frame"))
}

/// Memory was refused although there is some: pages that no owner has are then as likely to be counted wrong as leaked.
fn refused_with_free(
    ctx: &Context<'_, '_>,
    (free, all): (&Located<Counter<'_>>, i64),
    (lost, used, known): (i64, i64, i64),
    at: RecordRef,
) -> Claim {
    let pages = free.value.unwrap_or(0);
    let percent = pages.saturating_mul(100) / all;
    Claim::new(format!(
        "an allocation failed although {pages} pages ({percent} %) are free: the allocator or its counts are wrong"
    ))
    .because(0.6, first_line(&ctx.death.message, "the kernel reported it"), ctx.death.at)
    .because(0.2, format!("{pages} of {all} pages are free"), Some(free.at))
    .because(0.1, format!("{used} pages are in use, their owners hold {known}: {lost} have no owner"), Some(at))
    .because_if(0.05, keepers::in_words(ctx, Promise::Frames).map(|row| (row, None)))
}

/// Words of a kernel that has no memory left.
const OUT_OF_MEMORY: &[&str] =
    &["out of memory", "invoked oom-killer", "memory allocation of", "allocation failed", "no free frames"];

fn first_line(message: &str, otherwise: &str) -> String {
    message.lines().find(|line| !line.trim().is_empty()).unwrap_or(otherwise).to_owned()
}
