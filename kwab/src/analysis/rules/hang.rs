//! Nothing goes on: lost wake-ups, hung tasks, processors that are stuck, programs that never end.
//!
//! A dump by a non-maskable interrupt, by a watchdog or by the stall detector asks one question: what should have gone
//! on, and why did it not? A processor that is stuck is blamed by its own stack, a sleeper by the stack on which it
//! waits. Of sleepers that wait for each other (a parent for its child) the last of the chain is the one that hangs.

use std::collections::BTreeSet;

use kwab_format::SectionKind;
use kwab_format::record::{CauseKind, FlightKind, Registers, Task, TaskState};

use super::tasks::{ByThread, blame_of, by_thread, is_asleep, is_stopped, label, lock_name, party, ran_long, ring};
use super::{before, fault_loop, holders, stuck};
use crate::analysis::blame::{self, Guilty};
use crate::analysis::context::Context;
use crate::analysis::families::Borrowers;
use crate::analysis::finding::{Claim, Statement};
use crate::analysis::keepers::{self, ASKS, Promise};
use crate::analysis::quote::text;
use crate::analysis::rings::Rings;
use crate::analysis::{loops, stacks};
use crate::model::{Located, RecordRef};

/// The task that hangs: the one the cause names, or the one that has slept longest without a signal being able to wake
/// it.
fn hung_task<'c, 'a>(ctx: &'c Context<'_, 'a>) -> Option<&'c Located<Task<'a>>> {
    let told = blocked_thread(&ctx.death.message);
    let told = ctx.case.tasks.iter().find(|task| told.is_some() && task.tid.or(task.pid) == told && is_asleep(task));
    let named = told.or_else(|| {
        ctx.case.tasks.iter().find(|task| ctx.death.pid.is_some() && task.pid == ctx.death.pid && is_asleep(task))
    });
    let is_blocked = |task: &&Located<Task<'_>>| task.state == Some(TaskState::BLOCKED) && !is_said_before(ctx, task);
    let blocked = ctx.case.tasks.iter().filter(is_blocked);
    named.or_else(|| blocked.max_by_key(|task| task.state_ns))
}

/// Whether a log says of a thread what it waits for, and says so before the death: any program can print such a line.
fn is_said_before(ctx: &Context<'_, '_>, task: &Located<Task<'_>>) -> bool {
    let death = ctx.case.causes.first().and_then(|cause| cause.stamp.line);
    let is_before = task.stamp.line.zip(death).is_some_and(|(line, death)| line < death);
    ctx.case.is_of_log() && task.wait_reason.is_some() && is_before
}

/// The thread in `hung task: thread 7 has been blocked for 120 s`.
fn blocked_thread(message: &str) -> Option<u32> {
    message.strip_prefix("hung task: thread ")?.split_once(" has been blocked")?.0.parse().ok()
}

/// A task sleeps, no task holds what it waits for, and none woke it.
pub(super) fn lost_wakeup(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !ctx.is_hang() || ctx.death.kind == Some(CauseKind::SOFT_LOCKUP) {
        return Vec::new();
    }
    let Some(task) = hung_task(ctx) else { return Vec::new() };
    let object = task.wait_object.filter(|object| *object != 0);
    let reason = text(task.wait_reason);
    let what = match (reason.trim(), object) {
        // Without an object or a reason, nothing says that a task waits for an event at all.
        ("", None) => return Vec::new(),
        ("", Some(object)) => format!("{object:#x}"),
        (reason, _) => reason.to_owned(),
    };
    let held = ctx.case.locks.iter().any(|lock| lock.addr.is_some() && lock.addr == object);
    if held || task.wait_tid.is_some() {
        return Vec::new();
    }
    let seconds = task.state_ns.map(|ns| format!(" for {:.1} s", ns as f64 / 1e9)).unwrap_or_default();
    let mut claim =
        Claim::new(format!("a wake-up was lost: {} waits for {what} and nothing will wake it", label(task)))
            .because(0.5, format!("{} has been asleep{seconds}: {what}", label(task)), Some(task.at))
            .because(0.25, "no task holds what it waits for", None);
    if let Some(event) = Rings::of(ctx.case).of_this_sleep(task) {
        claim = if event.kind == Some(FlightKind::WAKE) {
            claim.but(0.5, "the flight recorder shows a wake-up after it went to sleep", Some(event.at))
        } else {
            claim.because(0.4, "the flight recorder shows it going to sleep and no wake-up since", Some(event.at))
        };
    }
    if let Some((waker, at)) = Borrowers::of(ctx.case).let_go(task) {
        let keepers = keepers::in_words(ctx, Promise::Vfork).map(|row| (row, None));
        claim = claim.proven(0.5, waker, at).because_if(0.0, keepers);
    }
    if ctx.case.tasks.iter().all(|other| !matches!(other.state, Some(TaskState::RUNNABLE | TaskState::RUNNING))) {
        claim = claim.because(0.2, "no task is running or runnable: none is left to wake it", None);
    }
    vec![claim.blames(blame_of(ctx, task))]
}

/// A task hangs: which task waits for which.
pub(super) fn hang(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !ctx.is_hang() {
        return Vec::new();
    }
    if ctx.death.kind == Some(CauseKind::SOFT_LOCKUP) {
        return vec![stuck_processor(ctx)];
    }
    if ctx.death.kind == Some(CauseKind::FAULT_LOOP) {
        return fault_loop::claim(ctx).into_iter().chain(busy(ctx)).collect();
    }
    let blocked = hung_task(ctx).map(|task| sleeper(ctx, task, 0.55));
    let busy = busy(ctx);
    let claims: Vec<Claim> = blocked.into_iter().chain(busy).collect();
    if !claims.is_empty() || !stuck::endless_loop(ctx).is_empty() {
        return claims;
    }
    match last_sleeper(ctx) {
        Some(task) => {
            let claim = sleeper(ctx, task, 0.35).because(0.1, "no processor runs a task, and none is runnable", None);
            vec![claim]
        }
        None if ctx.death.kind == Some(CauseKind::HUNG_TASK) && !ctx.death.program.is_empty() => vec![told_of(ctx)],
        None => vec![Claim::new("something hangs; the dump does not say which task").because(
            0.3,
            "the dump was taken for a hang",
            ctx.death.at,
        )],
    }
}

/// A task that a log tells about, which lists no others: what it ran stands in its backtrace.
fn told_of(ctx: &Context<'_, '_>) -> Claim {
    let pid = ctx.death.pid.map(|pid| format!("[{pid}]")).unwrap_or_default();
    let place = ctx.guilty.as_ref().map(|guilty| format!(" in {}", guilty.name)).unwrap_or_default();
    let told = ctx.death.message.lines().next().unwrap_or("a watchdog fired");
    // Every task sleeps in the scheduler; the function that went to sleep says what for.
    let waits = ctx.trace.iter().find(|frame| !frame.machinery);
    Claim::new(format!("{}{pid} hangs{place}", ctx.death.program))
        .because(0.55, told, ctx.death.at)
        .because_if(0.0, waits.map(|frame| (format!("it waits in {}", frame.label()), frame.at)))
        .blames(ctx.guilty.clone())
}

/// A task that sleeps and is not woken.
fn sleeper(ctx: &Context<'_, '_>, task: &Located<Task<'_>>, weight: f64) -> Claim {
    let guilty = blame_of(ctx, task);
    let chain = holders::chain(ctx, task);
    let waker = before::waker(ctx, task, guilty.as_ref());
    let held_in = guilty.as_ref().filter(|_| chain.is_empty()).map(|guilty| format!(", in {}", guilty.name));
    let state = task.state.and_then(TaskState::name).unwrap_or("asleep");
    let seconds = task.state_ns.map(|ns| format!(" for {:.1} s", ns as f64 / 1e9)).unwrap_or_default();
    let what = holders::in_words(ctx, &chain).unwrap_or_else(|| waits_for(task));
    let mut claim = Claim::new(format!("{} hangs, waiting for {what}{}", label(task), held_in.unwrap_or_default()))
        .because(weight, format!("{state}{seconds}: {}", text(task.wait_reason)), Some(task.at))
        .blames(guilty);
    claim = holders::explain(ctx, &chain, claim);
    let lock = ctx.case.locks.iter().find(|lock| lock.addr.is_some() && lock.addr == task.wait_object);
    if let Some(lock) = lock.filter(|_| chain.is_empty()) {
        claim = claim.because(0.3, format!("held: {}", lock_name(lock.name, lock.location)), Some(lock.at));
    }
    if let Some(failed) = before::failed(ctx, task) {
        claim = claim
            .because(if failed.own { 0.25 } else { 0.15 }, failed.row, Some(failed.at))
            .because_if(0.05, failed.makers.map(|row| (row, None)));
    }
    claim = claim.because_if(0.05, waker.map(|(row, at)| (row, Some(at))));
    if let Some(tid) = task.tid.or(task.pid) {
        let stack = stacks::of_task(ctx.case, ctx.symbols, &ctx.death, tid);
        claim = claim.because_if(0.0, loops::condition(ctx.symbols, &stack).map(|row| (row, None)));
    }
    if SLEEPS.iter().any(|name| text(task.wait_reason) == *name) {
        claim = claim.because_if(0.0, keepers::in_words(ctx, Promise::Deadline).map(|row| (row, None)));
    }
    claim
}

/// The calls that do nothing but sleep until a deadline.
const SLEEPS: &[&str] = &["nanosleep", "clock_nanosleep"];

/// A processor that the watchdog found in the kernel for too long: the one that died, or the one that it tells about.
fn stuck_processor(ctx: &Context<'_, '_>) -> Claim {
    let other = silent_processor(&ctx.death.message).and_then(|cpu| {
        let set = ctx.case.registers.iter().find(|set| set.stamp.cpu == Some(cpu) && is_stopped(set))?;
        blame::guilty(&stacks::of_set(ctx.case, ctx.symbols, &ctx.death, set))
    });
    let guilty = other.or_else(|| ctx.guilty.clone());
    let place = guilty.as_ref().map(|guilty| format!(" in {}", guilty.name)).unwrap_or_else(|| ctx.in_culprit());
    let told = match ctx.death.kind {
        _ if !ctx.is_foreign_kernel() => "soft lockup".to_owned(),
        _ => ctx.death.message.lines().next().unwrap_or("a watchdog fired").to_owned(),
    };
    Claim::new(format!("a processor does not schedule{place}"))
        .because(0.6, told, ctx.death.at)
        .because_if(0.3, spins_for(ctx))
        .because_if(0.0, awaits_processors(ctx, guilty.as_ref()).map(|row| (row, None)))
        .blames(guilty)
}

/// What should have answered a processor that waits for others.
fn awaits_processors(ctx: &Context<'_, '_>, guilty: Option<&Guilty>) -> Option<Statement> {
    let asks = |name: &String| ASKS.contains(&name.as_str());
    guilty.filter(|guilty| guilty.called.iter().any(asks))?;
    let keepers = keepers::in_words(ctx, Promise::Answer)?;
    Some(keepers.behind("it waits until other processors have answered an interrupt; "))
}

/// The processor in `CPU 3 has taken no interrupt`.
fn silent_processor(message: &str) -> Option<u32> {
    let (before, _) = message.split_once(" has taken no interrupt")?;
    before.rsplit_once("CPU ")?.1.parse().ok()
}

/// Processors that ran something when the dump was requested: in the kernel, or in user code.
fn busy(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let fault = ctx.case.registers.iter().filter(|set| Some(set.at) == ctx.death.registers_at);
    let stopped = ctx.case.registers.iter().filter(|set| is_stopped(set));
    let tasks = by_thread(ctx);
    fault.chain(stopped).filter_map(|set| ran(ctx, &tasks, set)).take(MOST_BUSY).collect()
}

/// Processors that are told about.
const MOST_BUSY: usize = 3;

fn ran(ctx: &Context<'_, '_>, tasks: &ByThread<'_, '_>, set: &Located<Registers<'_>>) -> Option<Claim> {
    let Some(tid) = set.tid.or(set.pid).filter(|tid| *tid != 0) else { return before_threads(ctx, set) };
    // A loop of the program is a claim of its own.
    if stuck::loop_of(ctx, tasks, set).is_some() {
        return None;
    }
    let task = tasks.get(&tid).copied();
    if task.is_some_and(|task| task.state == Some(TaskState::IDLE)) {
        return None;
    }
    let dead = Some(set.at) == ctx.death.registers_at;
    let program = Some(&ctx.death.program).filter(|program| dead && !program.is_empty());
    let unlisted = || program.map_or_else(|| format!("thread {tid}"), |program| format!("{program}[{tid}]"));
    let who = task.map_or_else(unlisted, |task| label(task));
    let cpu = set.stamp.cpu.or(ctx.death.cpu.filter(|_| dead));
    let cpu = cpu.map_or_else(|| "a processor".to_owned(), |cpu| format!("CPU {cpu}"));
    let walked = stacks::of_set(ctx.case, ctx.symbols, &ctx.death, set);
    // A log has no stack, but the backtrace that the kernel printed.
    let frames = if dead && ctx.trace.len() > walked.len() { ctx.trace.clone() } else { walked };
    let guilty = blame::guilty(&frames);
    let place = guilty.as_ref().map(|guilty| format!(" in {}", guilty.name)).unwrap_or_default();
    let repeats = Some(&frames).filter(|_| ring(set) == Some(0));
    let repeats = repeats.and_then(|frames| loops::in_words(ctx.symbols, frames)).map(|row| (row, None));
    let claim = if ring(set)? == 0 {
        Claim::new(format!("{cpu} stays in the kernel{place}, on behalf of {who}")).because(
            0.45,
            format!("{cpu} ran kernel code when the dump was requested"),
            Some(set.at),
        )
    } else {
        Claim::new(format!("{who} keeps {cpu} busy in user mode{place}")).because(
            0.45,
            format!("{cpu} ran user code of {who} when the dump was requested"),
            Some(set.at),
        )
    };
    let ran_for = task.and_then(|task| Some((ran_long(task)?, Some(task.at))));
    Some(
        claim
            .because_if(0.2, ran_for)
            .because_if(0.05, fault_loop::entry(ctx, set))
            .because_if(0.1, before::repeats(ctx, tid).map(|(row, at)| (row, Some(at))))
            .because_if(0.05, repeats)
            .blames(guilty),
    )
}

/// A processor that ran the kernel before there was a thread: it never came out of its own start.
fn before_threads(ctx: &Context<'_, '_>, set: &Located<Registers<'_>>) -> Option<Claim> {
    // Thread 0 of a processor is its idle loop, and a list of tasks that is lost says nothing.
    let is_of_none = set.tid.is_none() && set.pid.is_none() && ctx.case.tasks.is_empty();
    let is_lost = ctx.case.is_cut() || !ctx.case.weakness(&[SectionKind::TASKS]).is_empty();
    if !is_of_none || is_lost || ring(set)? != 0 {
        return None;
    }
    let frames = stacks::of_set(ctx.case, ctx.symbols, &ctx.death, set);
    let guilty = blame::guilty(&frames)?;
    let cpu = set.stamp.cpu.or(ctx.death.cpu).map_or_else(|| "a processor".to_owned(), |cpu| format!("CPU {cpu}"));
    let repeats = loops::in_words(ctx.symbols, &frames).map(|row| (row, None));
    let claim = Claim::new(format!("{cpu} stays in the kernel in {}, before the first thread runs", guilty.name))
        .because(0.45, format!("{cpu} ran kernel code when the dump was requested"), Some(set.at))
        .because_if(0.05, repeats);
    Some(claim.blames(Some(guilty)))
}

/// Of programs that sleep, the one at the end of the chain of those that wait for their children, and of several the
/// one that has slept longest.
fn last_sleeper<'c, 'a>(ctx: &'c Context<'_, 'a>) -> Option<&'c Located<Task<'a>>> {
    let tasks = &ctx.case.tasks;
    let lives = |task: &Located<Task<'_>>| task.state != Some(TaskState::ZOMBIE);
    let children = tasks.iter().filter(|child| child.pid != child.ppid && lives(child));
    let parents: BTreeSet<Option<u32>> = children.map(|child| child.ppid).collect();
    let waits_for_child = |task: &Located<Task<'_>>| {
        let reason = text(task.wait_reason);
        let waits = reason.contains("wait4") || reason.contains("waitid") || reason == "wait";
        waits && parents.contains(&task.pid)
    };
    // Threads of the kernel sleep until there is work.
    // A log that says in which call a thread sleeps lists programs only.
    let is_told =
        |task: &Located<Task<'_>>| ctx.case.is_of_log() && task.wait_reason.is_some() && !is_said_before(ctx, task);
    let programs = tasks.iter().filter(|task| is_asleep(task) && (task.user_ip.is_some() || is_told(task)));
    programs.filter(|task| !waits_for_child(task)).max_by_key(|task| task.state_ns)
}

/// The lock that a processor spins for, and who holds it.
fn spins_for(ctx: &Context<'_, '_>) -> Option<(String, Option<RecordRef>)> {
    let wait = ctx.case.waits.iter().find(|wait| wait.addr.is_some())?;
    let waiter = party(wait.waiter_tid, wait.waiter_pid, wait.waiter_cpu)?;
    let lock = ctx.case.locks.iter().find(|lock| lock.addr == wait.addr);
    let holder = lock.and_then(|lock| {
        let who = party(lock.holder_tid, lock.holder_pid, lock.holder_cpu)?;
        Some(format!(", which {who} holds: {}", lock_name(lock.name, lock.location)))
    });
    let what = lock_name(wait.name, wait.location);
    Some((format!("{waiter} waits for {what}{}", holder.unwrap_or_default()), Some(wait.at)))
}

fn waits_for(task: &Task<'_>) -> String {
    match text(task.wait_reason) {
        reason if reason.trim().is_empty() => "an event that the dump does not name".to_owned(),
        reason => reason,
    }
}
