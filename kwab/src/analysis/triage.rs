//! Ranks what may have happened: every rule judges the case, and the best supported claims come first.

use kwab_format::SectionKind;
use kwab_format::record::{CauseKind, CheckResult, RegId, RegisterRole};
use schemars::JsonSchema;
use serde::Serialize;

use super::answers;
use super::context::Context;
use super::finding::{Evidence, Hypothesis, Statement};
use super::images::nameless;
use super::invariants::{self, Checked};
use super::next;
use super::quote::text;
use super::rules::memory::killed_and_went_on;
use super::rules::{RULES, Rule};
use super::since::{self, Since};
use super::trail::{self, Decider, Trail};
use super::undecided::{Undecided, undecided};
use super::verify::{Backing, Foreign};
use crate::builds::BuildChanges;
use crate::model::Case;
use crate::symbols::Symbols;
use crate::units;

/// What the triage of a dump says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Triage {
    /// What died, in one line.
    pub headline: String,
    /// The kernel: name, version, architecture, processors.
    pub kernel: String,
    /// Whether the evidence is the text of a log, not a dump that the kernel wrote.
    pub from_log: bool,
    /// What may have happened, best supported first.
    pub hypotheses: Vec<Hypothesis>,
    /// Where the bad value came from, followed backwards through the code of the frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trail: Option<Trail>,
    /// The functions that decided that the one that died panicked or faulted, nearest first, but those on its stack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<Decider>,
    /// What was changed since a build that worked, when one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
    /// What to do when no hypothesis is likelier than not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<Undecided>,
    /// Whether the kernel or a program died.
    pub died: bool,
    /// Whether a user requested the crash or the dump, so that there is no bug to find.
    pub deliberate: bool,
    /// What the dump excludes.
    pub ruled_out: Vec<String>,
    /// What the dump lacks that would say more.
    pub lacking: Vec<String>,
    /// What is damaged or lost.
    pub losses: Vec<String>,
    /// What of that any rule rests on, so that a bug may hide behind it.
    pub weakened: Vec<String>,
}

/// Claims below this score are noise.
pub const LEAST: f64 = 0.15;
/// Claims from this score on are likelier than not.
pub const LIKELY: f64 = 0.5;
/// Rules about a bad value, whose trail is part of their evidence.
const FOLLOWED: &[&str] =
    &["NULL", "WILD", "POISON", "USER-PTR", "JUMP-ZERO", "JUMP-DATA", "PANIC", "DIVIDE", "READ-ONLY", "PROGRAM"];
/// Rules about a bug that lies elsewhere than where the dump was taken: its location tells nothing of them.
const ELSEWHERE: &[&str] = &[
    "PAGE",
    "AUDIT",
    "INVARIANT",
    "ANSWER",
    "TLB",
    "OOM",
    "LEAK",
    "PIECES",
    "EAGER",
    "DEADLOCK",
    "LOCK-SLEEP",
    "LOST-WAKE",
    "HANG",
    "OOM-KILL",
    "THREADS",
    "LOOP",
    "DELIBERATE",
];
/// Rules whose symptom may come from an answer that the kernel gave the program.
const ANSWERED: &[&str] = &[
    "NULL",
    "WILD",
    "POISON",
    "JUMP-ZERO",
    "JUMP-DATA",
    "READ-ONLY",
    "PROGRAM",
    "ABORT",
    "HANG",
    "LOST-WAKE",
    "AUDIT",
    "INIT",
];
/// Claims that are kept.
const MOST: usize = 8;

impl Triage {
    /// Whether the dump tells of a bug, or of a death that no rule explains.
    #[must_use]
    pub fn has_findings(&self) -> bool {
        self.hypotheses.iter().any(|found| found.is_bug) || (self.died && !self.deliberate)
    }

    /// What was changed since a build that worked, where no hypothesis has it among its evidence.
    #[must_use]
    pub fn untold_changes(&self) -> Option<&Since> {
        let is_evidence = self.hypotheses.iter().any(|found| found.is_bug);
        self.since.as_ref().filter(|since| since.functions.is_empty() || !is_evidence)
    }
}

/// Whether a rule is about what happened where the dump was taken, so that the location is a part of its finding.
#[must_use]
pub fn is_at_the_death(rule: &str) -> bool {
    !ELSEWHERE.contains(&rule)
}

/// Judges a case. `file` is how the user names the dump, for the commands to run next.
#[must_use]
pub fn triage(case: &Case<'_>, symbols: &Symbols, backing: &Backing, file: &str) -> Triage {
    triage_since(case, symbols, backing, None, file)
}

/// As [`triage`], with what differs from a build that worked.
#[must_use]
pub fn triage_since(
    case: &Case<'_>,
    symbols: &Symbols,
    backing: &Backing,
    changes: Option<&BuildChanges>,
    file: &str,
) -> Triage {
    let mut triage = judge(&Context::new(case, symbols, backing).since(changes), file);
    triage.losses.extend(backing.losses());
    triage
}

/// As [`triage`], for a case whose context is known already.
#[must_use]
pub fn judge(ctx: &Context<'_, '_>, file: &str) -> Triage {
    judge_by(RULES, ctx, file)
}

/// As [`judge`], by these rules instead of the built-in ones. Between equal scores the earlier rule comes first.
#[must_use]
pub fn judge_by(rules: &[Rule], ctx: &Context<'_, '_>, file: &str) -> Triage {
    let case = ctx.case;
    let mut hypotheses: Vec<Hypothesis> = rules
        .iter()
        .flat_map(|rule| {
            let claims = (rule.judge)(ctx).into_iter();
            claims.map(|claim| claim.finish(rule.named(), case))
        })
        .filter(|found| found.score >= LEAST)
        .collect();
    let deliberate = hypotheses.iter().any(|found| !found.is_bug);
    yield_to_bugs(&mut hypotheses);
    // The sort is stable: between equals the order of the table decides.
    let likely_bug = |found: &Hypothesis| found.is_bug && found.score >= LIKELY;
    hypotheses.sort_by(|a, b| likely_bug(b).cmp(&likely_bug(a)).then(b.score.total_cmp(&a.score)));
    hypotheses.truncate(MOST);
    if ctx.is_stack_of_death() && !killed_and_went_on(ctx) {
        for found in hypotheses.iter_mut().filter(|found| found.function.is_none() && found.is_bug) {
            found.function = ctx.guilty.clone();
        }
    }
    let trail = trail::follow(ctx);
    let call = ctx.call_in_progress().filter(|_| ctx.is_stack_of_death());
    let suspects = trail::suspects(ctx);
    let logged = answers::logged(ctx, &suspects);
    let decided: Vec<Statement> = trail::listed_suspects(&suspects).into_iter().chain(logged.clone()).collect();
    let answers = answers::rows(ctx);
    let since = since::since(ctx, &suspects);
    let changed = since.as_ref().and_then(Since::statement);
    for found in &mut hypotheses {
        if found.is_bug {
            found.evidence.extend(changed.iter().cloned().map(Evidence::context));
        }
        if FOLLOWED.contains(&found.rule) {
            found.evidence.extend(decided.iter().cloned().map(Evidence::context));
        }
        // Why init ended was decided in the program, not by the check that the kernel then failed.
        if found.rule == "INIT" {
            found.evidence.extend(logged.iter().cloned().map(Evidence::context));
        }
        if ANSWERED.contains(&found.rule) {
            found.evidence.extend(answers.iter().cloned().map(Evidence::context));
        }
        found.show_stack(call.as_deref());
        if FOLLOWED.contains(&found.rule) {
            found.evidence.extend(trail.as_ref().map(|trail| Evidence::context(trail.in_words())));
        }
    }
    for found in &mut hypotheses {
        let useful = found.next.iter().filter_map(|command| next::useful(ctx, command));
        found.next = useful.map(|command| command.replace("FILE", file)).collect();
    }
    let died = ctx.death.is_known() && ctx.death.kind != Some(CauseKind::LIVE);
    let likely = hypotheses.iter().any(|found| found.is_bug && found.score >= LIKELY);
    Triage {
        headline: ctx.death.headline(case),
        trail,
        suspects,
        since,
        undecided: (died && !deliberate && !likely).then(|| undecided(ctx)),
        died,
        kernel: kernel_line(case),
        from_log: case.is_of_log(),
        ruled_out: ruled_out(ctx, &hypotheses),
        lacking: lacking(ctx),
        losses: case.losses(),
        weakened: case.weakness(&rested_on(rules)),
        hypotheses,
        deliberate,
    }
}

/// A dump that was asked for may still show a bug, which comes first when it is likelier than not. Where that turns the
/// order of the scores around, the hypothesis behind it says why; its score stays, because both are true.
fn yield_to_bugs(hypotheses: &mut [Hypothesis]) {
    let likely = hypotheses.iter().filter(|found| found.is_bug && found.score >= LIKELY);
    let Some(bug) = likely.max_by(|a, b| a.score.total_cmp(&b.score)) else { return };
    let name = bug.about.unwrap_or(bug.rule);
    let text = format!("ranked below {name}: a requested dump does not explain the bug that it shows");
    for found in hypotheses.iter_mut().filter(|found| !found.is_bug) {
        found.against.push(Evidence::context(text.clone()));
    }
}

/// The kinds of section that any rule rests on, and the one that says whether the dump was asked for.
fn rested_on(rules: &[Rule]) -> Vec<SectionKind> {
    let mut kinds: Vec<SectionKind> = rules.iter().flat_map(|rule| rule.rests_on.iter().copied()).collect();
    kinds.push(SectionKind::IDENTITY);
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn kernel_line(case: &Case<'_>) -> String {
    let Some(identity) = case.identities.first() else { return "unknown kernel".to_owned() };
    let mut parts = vec![format!("{} {}", text(identity.kernel_name), text(identity.kernel_version)).trim().to_owned()];
    if let Some(id) = identity.kernel_build_id {
        let hex: String = id.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        parts.push(format!("build {hex}…"));
    }
    parts.extend(identity.arch.and_then(kwab_format::record::Arch::name).map(str::to_owned));
    parts.extend(identity.cpus.map(|cpus| if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") }));
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() { "unknown kernel".to_owned() } else { parts.join(", ") }
}

fn ruled_out(ctx: &Context<'_, '_>, hypotheses: &[Hypothesis]) -> Vec<String> {
    let mut out = Vec::new();
    if !ctx.death.is_known() {
        return out;
    }
    let claimed = |rule: &str| hypotheses.iter().any(|found| found.rule == rule);
    if let Some(sp) = ctx.death.sp.filter(|_| !claimed("STACK"))
        && let Some(left) = stack_left(ctx, sp).filter(|left| *left >= LARGE_FRAME)
    {
        out.push(format!("stack overflow (rsp {sp:#x}, {} KiB left)", left / 1024));
    }
    let calls = ctx.case.syscalls.len() + ctx.case.returns;
    let refused = ctx.case.syscalls.iter().any(|call| call.result == Some(NO_SYSCALL))
        || ctx.case.exits.iter().any(|exit| exit.result == Some(NO_SYSCALL));
    if calls > 0 && ctx.case.unimplemented.is_empty() && !refused && !claimed("UNIMPL") {
        out.push(format!(
            "unimplemented system call ({} recorded, all implemented)",
            units::count(calls as u64, "call", "calls")
        ));
    }
    // Entries without the mappings of the same process, or of others only, cannot contradict anything.
    let own = |pid: Option<u32>| pid.is_none() || ctx.death.pid.is_none() || pid == ctx.death.pid;
    let audited = ctx.case.ptes.iter().filter(|entry| own(entry.pid)).count();
    if audited > 0 && ctx.has_map() && ctx.audit.is_empty() {
        out.push(format!(
            "page tables against mappings ({} audited)",
            units::count(audited as u64, "entry", "entries")
        ));
    }
    let compared = ctx.case.checks.iter().filter(|check| check.result != Some(CheckResult::UNREADABLE)).count();
    if compared > 0 && ctx.pages.is_empty() {
        out.push(format!("wrong page content ({} checked)", units::count(compared as u64, "page", "pages")));
    }
    let holds = |checked: &&Checked| checked.violations.is_empty() && checked.checked >= checked.rule.least;
    for checked in invariants::check(ctx).iter().filter(|_| ctx.is_hang()).filter(holds) {
        out.push(format!("{} ({} checked)", checked.rule.violated, checked.checked));
    }
    // Who waits for a lock is what a circle is made of; locks that are merely held exclude none.
    let (locks, waits) = (ctx.case.locks.len(), ctx.case.waits.len());
    if waits > 0 && !claimed("DEADLOCK") {
        out.push(format!("deadlock of spin locks (no cycle among {locks} held and {waits} awaited)"));
    }
    out
}

/// Result of a system call that the kernel does not have: `-ENOSYS`.
const NO_SYSCALL: i64 = -38;
/// A stack with less room than this may have overflown in the frame that is about to be made.
const LARGE_FRAME: u64 = 2048;

fn stack_left(ctx: &Context<'_, '_>, sp: u64) -> Option<u64> {
    if let Some(stack) = ctx.stack_at(sp) {
        return sp.checked_sub(stack.low?);
    }
    let vma = ctx.vma_at(sp).filter(|_| !ctx.death.in_kernel)?;
    sp.checked_sub(vma.start?)
}

/// A file at hand that cannot be compared.
fn of_another_build(file: &Foreign) -> String {
    let Foreign { path, wanted, found } = file;
    format!("the content of {path} with build-id {wanted} (the file at hand has {found} and was not compared)")
}

/// Whether pages or their tables can have to do with the death: an access failed, or a program died of what it read.
fn is_about_memory(ctx: &Context<'_, '_>) -> bool {
    let death = &ctx.death;
    // The options that record page tables and pages are those of this kernel.
    if ctx.is_foreign_kernel() {
        return false;
    }
    let faulted = matches!(death.vector, Some(6 | 8 | 13 | 14)) || death.fault_addr.is_some() || death.ip == Some(0);
    faulted || ctx.program_died()
}

/// What was not recorded, and how to record it next time.
fn lacking(ctx: &Context<'_, '_>) -> Vec<String> {
    let case = ctx.case;
    let mut out: Vec<String> = ctx.foreign.iter().map(of_another_build).collect();
    if !ctx.death.is_known() || matches!(ctx.death.kind, Some(CauseKind::LIVE | CauseKind::SYSRQ)) {
        return out;
    }
    // A panic and a failed check are found by code, not by what a register held.
    let by_code = matches!(ctx.death.kind, Some(CauseKind::PANIC | CauseKind::BUG));
    let by_address = !by_code || ctx.death.vector.is_some() || ctx.death.fault_addr.is_some();
    // Of other architectures the names are kept as printed.
    let printed = case.registers.iter().any(|set| set.role == Some(RegisterRole::FAULT));
    if ctx.death.registers.is_empty() && !printed && by_address {
        out.push("registers at the fault".to_owned());
    }
    if ctx.death.fault_addr.is_none() && matches!(ctx.death.signal, Some(7 | 11)) {
        out.push("the address whose access failed".to_owned());
    }
    if ctx.instruction.is_none() && ctx.death.register(RegId::RIP).is_some_and(|ip| ip > 0xfff) {
        out.push("code bytes at the fault (give the image with --symbols)".to_owned());
    }
    if ctx.trace.len() < 2 {
        out.push("a backtrace (stack bytes, or an image with unwind tables)".to_owned());
    }
    if !ctx.trace.is_empty() && ctx.trace.iter().all(|frame| frame.name.is_none()) {
        out.push(format!("names of functions ({})", nameless(ctx)));
    }
    if ctx.program_died() && !ctx.has_map() {
        out.push("the memory map of the process".to_owned());
    }
    // What is recorded next time depends on the case: page tables say nothing about a failed assertion or a sleeper.
    if !is_about_memory(ctx) {
        return out;
    }
    if case.ptes.is_empty() {
        out.push("page-table entries, so page tables could not be audited (boot with debug=audit)".to_owned());
    }
    if case.checks.is_empty() && case.verify_oks.is_empty() && case.verify_fails.is_empty() {
        out.push("page checks (boot with debug=verify)".to_owned());
    }
    out
}
