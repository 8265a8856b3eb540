//! Invariants of a running kernel that a dump can confirm or refute: sleepers, locks, deadlines, run queues, stacks,
//! frames.
//!
//! Each rule of the table goes through the records that it is about, counts what it could check, and keeps what
//! violates it. A rule without anything to check says nothing; one that checked and found nothing excludes its kind of
//! bug, as far as the dump goes. The rules about mappings and page tables are those of [`audit`](super::audit).

use std::collections::{BTreeMap, BTreeSet};

use kwab_format::SectionKind;
use kwab_format::record::{FlightKind, RegId, RegisterRole, Task, TaskState};

use super::context::{Context, View};
use super::controller;
use super::families::{Borrowers, Families, OpenCalls};
use super::futexes;
use super::keepers::Promise;
use super::quote::{text, waits_in_vfork};
use super::rings::Rings;
use super::space::Spaces;
use crate::model::{Located, RecordRef};
use crate::unwind::Space as _;

/// A rule of the table.
#[derive(Clone, Copy, Debug)]
pub struct Invariant {
    /// Name of the invariant.
    pub id: &'static str,
    /// What holds, as a sentence.
    pub holds: &'static str,
    /// What is wrong when it does not hold.
    pub violated: &'static str,
    /// How strongly a violation supports that this is the bug, 0 to 1.
    pub weight: f64,
    /// How much must have been checked before that nothing was found excludes anything.
    pub least: u64,
    /// What the kernel did not do when it is violated, where that is one thing.
    pub promise: Option<Promise>,
    check: fn(&Context<'_, '_>, &mut Rows),
}

/// What a rule found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The violated invariant.
    pub rule: &'static Invariant,
    /// Things that it could check.
    pub checked: u64,
    /// What violates it.
    pub violations: Vec<Violation>,
}

/// Something that violates an invariant.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// What, with its numbers.
    pub text: String,
    /// The record that shows it.
    pub at: Option<RecordRef>,
    /// The thread whose stack is to be looked at.
    pub tid: Option<u32>,
}

/// The invariants that are checked, in the order of the report.
pub const INVARIANTS: &[Invariant] = &[
    kept(
        Promise::Child,
        rule(
            "INV-CHILD",
            "no parent waits for a child that has ended",
            "a parent waits for a child that has ended",
            0.75,
            child,
        ),
    ),
    kept(
        Promise::Vfork,
        rule(
            "INV-VFORK",
            "no parent in vfork waits for a child that has left its memory",
            "a parent in vfork waits for a child that has left its memory",
            0.75,
            vfork,
        ),
    ),
    kept(
        Promise::Interrupt,
        rule(
            "INV-INTERRUPT",
            "processors with interrupts on get those that are requested",
            "a processor does not get the interrupts that are requested",
            0.9,
            interrupt,
        ),
    ),
    kept(
        Promise::Deadline,
        rule(
            "INV-DEADLINE",
            "no sleeper is past its deadline",
            "a sleeper is past its deadline and was not woken",
            0.8,
            deadline,
        ),
    ),
    kept(
        Promise::Signal,
        rule(
            "INV-SIGNAL",
            "no sleeper has a signal to take",
            "a thread sleeps although a signal for it is pending",
            0.75,
            signal,
        ),
    ),
    kept(
        Promise::Futex,
        rule(
            "INV-FUTEX",
            "FUTEX_WAKE finds those that sleep on the word",
            "a thread sleeps on a futex, and a FUTEX_WAKE of it since did not find it",
            0.85,
            futex,
        ),
    ),
    kept(
        Promise::Woken,
        rule("INV-WOKEN", "no thread sleeps after its wake-up", "a thread was woken and still sleeps", 0.6, woken),
    ),
    kept(
        Promise::Runnable,
        rule(
            "INV-RUNNABLE",
            "no thread waits for an idle processor",
            "a thread is runnable and does not run",
            0.8,
            runnable,
        ),
    ),
    rule("INV-OWNER", "owners of locks exist", "a lock is held by a thread that no longer exists", 0.75, owner),
    rule(
        "INV-RETURN",
        "return addresses point into code",
        "a return address on a kernel stack points to no code",
        0.7,
        back,
    ),
    // One page shares its frame with none.
    Invariant {
        least: 2,
        ..rule(
            "INV-FRAME",
            "private pages have frames of their own",
            "two private anonymous pages share a frame",
            0.9,
            frame,
        )
    },
];

const fn rule(
    id: &'static str,
    holds: &'static str,
    violated: &'static str,
    weight: f64,
    check: fn(&Context<'_, '_>, &mut Rows),
) -> Invariant {
    Invariant { id, holds, violated, weight, least: 1, promise: None, check }
}

const fn kept(promise: Promise, rule: Invariant) -> Invariant {
    Invariant { promise: Some(promise), ..rule }
}

/// Violations that are kept of one rule.
const MOST: usize = 8;
/// A sleeper or a runnable thread that has been so for less may be on its way, nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

#[derive(Default)]
struct Rows {
    checked: u64,
    violations: Vec<Violation>,
}

impl Rows {
    fn violated(&mut self, text: String, at: Option<RecordRef>, tid: Option<u32>) {
        if self.violations.len() < MOST {
            self.violations.push(Violation { text, at, tid });
        }
    }
}

/// Checks every rule for which the dump has something to check.
#[must_use]
pub fn check(ctx: &Context<'_, '_>) -> Vec<Checked> {
    let checked = INVARIANTS.iter().map(|rule| {
        let mut rows = Rows::default();
        (rule.check)(ctx, &mut rows);
        Checked { rule, checked: rows.checked, violations: rows.violations }
    });
    checked.filter(|checked| checked.checked > 0).collect()
}

fn is_asleep(task: &Task<'_>) -> bool {
    matches!(task.state, Some(TaskState::SLEEPING | TaskState::BLOCKED))
}

fn label(task: &Task<'_>) -> String {
    format!("{}[{}]", text(task.comm), task.tid.or(task.pid).unwrap_or(0))
}

fn seconds(task: &Task<'_>) -> String {
    task.state_ns.map(|ns| format!(" for {:.1} s", ns as f64 / 1e9)).unwrap_or_default()
}

/// Sleepers that have slept for so long that no wake-up is under way.
fn sleepers<'c, 'a>(ctx: &'c Context<'_, 'a>) -> impl Iterator<Item = &'c Located<Task<'a>>> {
    ctx.case.tasks.iter().filter(|task| is_asleep(task) && task.state_ns.is_some_and(|ns| ns > PATIENCE))
}

fn child(ctx: &Context<'_, '_>, rows: &mut Rows) {
    let (families, calls) = (Families::of(ctx.case), OpenCalls::of(ctx.case));
    for task in sleepers(ctx) {
        let reason = text(task.wait_reason);
        let Some(pid) = task.pid.filter(|_| reason.contains("wait4") || reason.contains("waitid")) else { continue };
        let Some(own) = families.children(pid) else { continue };
        rows.checked += 1;
        // wait4(2): a positive number is one child, -1 and 0 are any.
        let wanted = calls.of_task(task).and_then(|args| args[0]).map(|arg| arg as u32 as i32);
        let ended = match wanted.filter(|_| reason.contains("wait4")) {
            Some(child @ 1..) => families.ended(pid, child.unsigned_abs()),
            Some(-1 | 0) => own.ended,
            _ => own.ended.filter(|_| !own.any_lives),
        };
        if let Some(child) = ended {
            let row = format!(
                "{} has slept{} in {reason}, and its child {} is a zombie",
                label(task),
                seconds(task),
                child.pid.unwrap_or(0)
            );
            rows.violated(row, Some(task.at), task.tid);
        }
    }
}

fn vfork(ctx: &Context<'_, '_>, rows: &mut Rows) {
    // A child that is missing from a list that is not whole may still use the memory.
    if !ctx.case.weakness(&[SectionKind::TASKS]).is_empty() {
        return;
    }
    let borrowers = Borrowers::of(ctx.case);
    for task in sleepers(ctx).filter(|task| waits_in_vfork(task) && task.page_table_root.is_some()) {
        rows.checked += 1;
        if let Some((why, _)) = borrowers.let_go(task) {
            let row = format!("{} has slept{} in vfork, and {why}", label(task), seconds(task));
            rows.violated(row, Some(task.at), task.tid);
        }
    }
}

fn interrupt(ctx: &Context<'_, '_>, rows: &mut Rows) {
    let (checked, untaken) = controller::untaken(ctx);
    rows.checked += checked;
    untaken.into_iter().for_each(|(row, at)| rows.violated(row, Some(at), None));
}

/// The argument with the timeout in milliseconds, of the calls that have one by value.
const TIMEOUTS: &[(&str, usize)] = &[("poll", 2), ("epoll_wait", 3), ("epoll_pwait", 3)];

fn deadline(ctx: &Context<'_, '_>, rows: &mut Rows) {
    let calls = OpenCalls::of(ctx.case);
    // Of several records of one processor the first: the last that is inserted.
    let cpus: BTreeMap<u32, _> = ctx.case.cpus.iter().rev().filter_map(|cpu| Some((cpu.number?, cpu))).collect();
    for task in sleepers(ctx) {
        let reason = text(task.wait_reason);
        if let (Some(deadline), Some(now)) = (task.deadline_ns.filter(|at| *at != u64::MAX), ctx.death.ns) {
            rows.checked += 1;
            let late = now.saturating_sub(deadline);
            if late > PATIENCE {
                let (who, slept, late) = (label(task), seconds(task), late as f64 / 1e9);
                let timer = task.last_cpu.and_then(|cpu| controller::timer_in_words(cpus.get(&cpu)?, deadline));
                let timer = timer.map(|words| format!("; {words}")).unwrap_or_default();
                let row = format!("{who} has slept{slept} in {reason}, and should have woken {late:.1} s ago{timer}");
                rows.violated(row, Some(task.at), task.tid);
            }
            continue;
        }
        let Some((_, number)) = TIMEOUTS.iter().find(|(name, _)| *name == reason) else { continue };
        let timeout = calls.of_task(task).and_then(|args| args[*number]).map(|arg| arg as u32 as i32);
        let (Some(ms @ 0..), Some(slept)) = (timeout, task.state_ns) else { continue };
        rows.checked += 1;
        if slept > u64::from(ms.unsigned_abs()).saturating_mul(1_000_000).saturating_add(PATIENCE) {
            let row = format!("{} has slept{} in {reason} with a timeout of {ms} ms", label(task), seconds(task));
            rows.violated(row, Some(task.at), task.tid);
        }
    }
}

/// Signals that do nothing by default (signal(7)): SIGCHLD, SIGCONT, SIGURG, SIGWINCH.
const HARMLESS: u64 = 1 << 16 | 1 << 17 | 1 << 22 | 1 << 27;

fn signal(ctx: &Context<'_, '_>, rows: &mut Rows) {
    for task in sleepers(ctx).filter(|task| task.state == Some(TaskState::SLEEPING)) {
        let (Some(pending), Some(blocked)) = (task.pending, task.blocked) else { continue };
        rows.checked += 1;
        let due = pending & !blocked & !HARMLESS;
        if due != 0 {
            let number = due.trailing_zeros() + 1;
            let row = format!(
                "{} sleeps{} in {}, and signal {number} is pending and not blocked",
                label(task),
                seconds(task),
                text(task.wait_reason)
            );
            rows.violated(row, Some(task.at), task.tid);
        }
    }
}

fn futex(ctx: &Context<'_, '_>, rows: &mut Rows) {
    let (checked, unwoken) = futexes::unwoken(ctx);
    rows.checked += checked;
    unwoken.into_iter().for_each(|found| rows.violated(found.text, Some(found.at), found.tid));
}

fn woken(ctx: &Context<'_, '_>, rows: &mut Rows) {
    let rings = Rings::of(ctx.case);
    for task in sleepers(ctx) {
        let Some(last) = rings.of_this_sleep(task) else { continue };
        rows.checked += 1;
        if last.kind == Some(FlightKind::WAKE) {
            let row = format!("{} sleeps{}, and its last recorded event is its wake-up", label(task), seconds(task));
            rows.violated(row, Some(last.at), task.tid.or(task.pid));
        }
    }
}

fn runnable(ctx: &Context<'_, '_>, rows: &mut Rows) {
    let idle =
        ctx.case.tasks.iter().filter(|task| task.state == Some(TaskState::IDLE) && task.current == Some(true)).count();
    for task in ctx.case.tasks.iter().filter(|task| task.state == Some(TaskState::RUNNABLE)) {
        let Some(waited) = task.state_ns else { continue };
        rows.checked += 1;
        let (limit, why) =
            if idle > 0 { (PATIENCE, "while a processor idles") } else { (10 * PATIENCE, "and others run") };
        if waited > limit {
            let row = format!("{} has been runnable{} {why}", label(task), seconds(task));
            rows.violated(row, Some(task.at), task.tid);
        }
    }
}

fn owner(ctx: &Context<'_, '_>, rows: &mut Rows) {
    // A thread that is missing from a list that is not whole may be alive.
    if ctx.case.tasks.is_empty() || !ctx.case.weakness(&[SectionKind::TASKS]).is_empty() {
        return;
    }
    let living = |task: &&Located<Task<'_>>| task.state != Some(TaskState::ZOMBIE);
    let alive: BTreeSet<u32> = ctx.case.tasks.iter().filter(living).filter_map(|task| task.tid.or(task.pid)).collect();
    for lock in &ctx.case.locks {
        let Some(holder) = lock.holder_tid.or(lock.holder_pid).filter(|holder| *holder != 0) else { continue };
        rows.checked += 1;
        if !alive.contains(&holder) {
            let row = format!(
                "{} at {:#x} is held by thread {holder}, which no longer exists",
                text(lock.name),
                lock.addr.unwrap_or(0)
            );
            rows.violated(row.trim_start().to_owned(), Some(lock.at), None);
        }
    }
}

/// Frames of a stack that are followed.
const MOST_FRAMES: usize = 64;

fn back(ctx: &Context<'_, '_>, rows: &mut Rows) {
    let view = View::of(ctx.case, ctx.symbols, None, &ctx.death);
    for set in ctx.case.registers.iter().filter(|set| set.role != Some(RegisterRole::USER)) {
        let value = |id: RegId| set.regs.as_ref()?.iter().find(|reg| reg.id == Some(id))?.value;
        let (Some(sp), Some(mut frame)) = (value(RegId::RSP), value(RegId::RBP)) else { continue };
        let Some((low, high)) = ctx.stack_at(sp).and_then(|stack| stack.low.zip(stack.high)) else { continue };
        for _ in 0..MOST_FRAMES {
            if frame < sp.max(low) || frame >= high.saturating_sub(16) || !frame.is_multiple_of(8) {
                break;
            }
            let (Some(next), Some(word)) = (view.word(frame), view.word(frame + 8)) else { break };
            rows.checked += 1;
            if word != 0 && !view.is_code(word) {
                let row = format!("the frame at {frame:#x} returns to {word:#x}");
                rows.violated(row, Some(set.at), set.tid);
                break;
            }
            if next <= frame {
                break;
            }
            frame = next;
        }
    }
}

fn frame(ctx: &Context<'_, '_>, rows: &mut Rows) {
    // Pages of one process that share a frame are counted by the audit; what is looked for here is a frame of two.
    let first = ctx.case.ptes.first().and_then(|entry| entry.pid);
    if ctx.case.ptes.iter().all(|entry| entry.pid == first) {
        return;
    }
    let spaces = Spaces::of(ctx.case);
    let mut seen: BTreeMap<u64, (Option<u32>, u64)> = BTreeMap::new();
    for (mapping, vma) in spaces.mapped_pairs() {
        let private = vma.flags.unwrap_or(0) & 1 == 0
            && vma.path.is_none()
            && vma.name.is_none_or(|name| !name.starts_with(b"[v"));
        if !private || !mapping.rights.write || mapping.rights.cow || mapping.end - mapping.start != mapping.size {
            continue;
        }
        rows.checked += 1;
        match seen.get(&mapping.frame) {
            Some((pid, addr)) if (*pid, *addr) != (mapping.pid, mapping.start) => {
                let row = format!(
                    "frame {:#x} is the page {addr:#x} of process {} and the page {:#x} of process {}",
                    mapping.frame,
                    pid.unwrap_or(0),
                    mapping.start,
                    mapping.pid.unwrap_or(0)
                );
                rows.violated(row, Some(mapping.source.at), None);
            }
            Some(_) => {}
            None => {
                seen.insert(mapping.frame, (mapping.pid, mapping.start));
            }
        }
    }
}
