//! Programs that do not go on by a mistake of their own: threads that wait for each other, loops that never end.
//!
//! Both are told from the user code of threads that did not die: their user registers and stacks, the words of the
//! mutexes they wait for, the machine code of the functions they stand in.

use std::collections::BTreeMap;

use kwab_format::record::{RegId, RegisterRole, Registers, Task, TaskState};
use linux_abi::syscalls;

use super::tasks::{ByThread, by_thread, is_asleep, is_stopped, label, ran_long, ring};
use crate::analysis::blame::{self, Guilty};
use crate::analysis::context::{Context, View};
use crate::analysis::finding::Claim;
use crate::analysis::quote::text;
use crate::analysis::{loops, stacks};
use crate::model::{Located, RecordRef};

type SleepingThread<'a> = Located<Task<'a>>;

/// Threads of a program that are told about.
const MOST: usize = 16;
/// The thread in the word of a mutex (robust futex ABI: `FUTEX_TID_MASK`).
const OWNER: u32 = 0x3fff_ffff;
/// Where glibc keeps the thread that holds a mutex, from its word on.
const OWNER_BEHIND: usize = 8;

/// A thread that waits for a futex.
struct Waiter<'c, 'a> {
    task: &'c SleepingThread<'a>,
    /// The function on whose behalf it waits.
    function: Option<Guilty>,
    /// The thread that holds what it waits for.
    holder: Option<u32>,
}

/// Threads of a program wait for futexes: in a circle of mutexes, or all of them and without an end.
pub(super) fn threads(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !ctx.is_hang() {
        return Vec::new();
    }
    let mut programs: BTreeMap<u32, Vec<&SleepingThread<'_>>> = BTreeMap::new();
    for task in ctx.case.tasks.iter().filter(|task| task.state != Some(TaskState::ZOMBIE)) {
        if let Some(pid) = task.pid.filter(|_| task.user_ip.is_some()) {
            programs.entry(pid).or_default().push(task);
        }
    }
    let sets = UserSets::of(ctx);
    let programs = programs.values().filter(|threads| threads.len() > 1);
    programs.filter_map(|threads| deadlock(ctx, &sets, threads)).take(1).collect()
}

fn deadlock(ctx: &Context<'_, '_>, sets: &UserSets<'_, '_>, threads: &[&SleepingThread<'_>]) -> Option<Claim> {
    let waits = |task: &&&SleepingThread<'_>| is_asleep(task) && text(task.wait_reason).contains("futex");
    let tids: Vec<u32> = threads.iter().filter_map(|task| task.tid).collect();
    let waiting = threads.iter().filter(waits).take(MOST);
    let waiters: Vec<Waiter<'_, '_>> = waiting
        .map(|task| {
            let set = sets.of_task(task);
            Waiter { task, function: user_function(ctx, set), holder: holder(ctx, task, set, &tids) }
        })
        .collect();
    let circle = circle(&waiters);
    let is_whole = waiters.len() == threads.len() && waiters.iter().all(|waiter| waiter.task.deadline_ns.is_none());
    if circle.is_empty() && !is_whole {
        return None;
    }
    let first = threads[0];
    let in_circle = |waiter: &&Waiter<'_, '_>| waiter.task.tid.is_some_and(|tid| circle.contains(&tid));
    let locks = |waiter: &&Waiter<'_, '_>| {
        let called = waiter.function.iter().flat_map(|function| &function.called);
        called.into_iter().any(|name| LOCKS.iter().any(|lock| name.contains(lock)))
    };
    // A thread that only waits for others to end has no part in it.
    let mut blamed: Vec<&Waiter<'_, '_>> = waiters.iter().filter(in_circle).collect();
    if blamed.is_empty() {
        blamed = waiters.iter().filter(locks).collect();
    }
    let mut names: Vec<&str> =
        blamed.iter().filter_map(|waiter| Some(waiter.function.as_ref()?.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let place = if names.is_empty() { String::new() } else { format!(", in {}", names.join(" and ")) };
    let claim = Claim::new(if circle.is_empty() {
        format!("a deadlock of threads: all {} of {} wait for futexes{place}", threads.len(), label(first))
    } else {
        format!("a deadlock of threads: {} of {} wait for each other's mutexes{place}", circle.len(), label(first))
    });
    let claim = waiters.iter().take(4).fold(claim, |claim, waiter| {
        let place = waiter.function.as_ref().map(|function| format!(" in {}", function.in_words())).unwrap_or_default();
        claim.because(0.2, format!("{} sleeps in futex{place}", label(waiter.task)), Some(waiter.task.at))
    });
    let claim = waiters.iter().filter(in_circle).fold(claim, |claim, waiter| {
        let holder = waiter.holder.unwrap_or_default();
        let text = format!("{} waits for a mutex that thread {holder} holds", label(waiter.task));
        claim.proven(0.4, text, Some(waiter.task.at))
    });
    // Threads that lock and wait without an end are no other kind of wait.
    let locking = waiters.iter().filter(locks).count();
    let claim =
        if locking > 1 { claim.because(0.2, format!("{locking} of them wait for a mutex"), None) } else { claim };
    Some(claim.blames(blamed.first().and_then(|waiter| waiter.function.clone())))
}

/// Parts of the names of functions that wait for a mutex.
const LOCKS: &[&str] = &["mutex_lock", "mutex_timedlock", "lll_lock", "rwlock"];

/// The threads that wait for each other in a circle; empty without one.
fn circle(waiters: &[Waiter<'_, '_>]) -> Vec<u32> {
    let holders: BTreeMap<u32, u32> = waiters.iter().filter_map(|waiter| waiter.task.tid.zip(waiter.holder)).collect();
    for start in holders.keys() {
        let mut way = vec![*start];
        while let Some(next) = way.last().and_then(|last| holders.get(last)) {
            if next == start {
                return way;
            }
            if way.contains(next) {
                break;
            }
            way.push(*next);
        }
    }
    Vec::new()
}

/// The registers with which threads left user mode, by thread; of several sets of one the first.
struct UserSets<'c, 'a>(BTreeMap<u32, &'c Located<Registers<'a>>>);

impl<'c, 'a> UserSets<'c, 'a> {
    fn of(ctx: &'c Context<'_, 'a>) -> Self {
        let sets = ctx.case.registers.iter().rev().filter(|set| set.role == Some(RegisterRole::USER));
        Self(sets.filter_map(|set| Some((set.tid.or(set.pid)?, set))).collect())
    }

    fn of_task(&self, task: &Task<'_>) -> Option<&'c Located<Registers<'a>>> {
        self.0.get(&task.tid.or(task.pid)?).copied()
    }
}

fn user_function(ctx: &Context<'_, '_>, set: Option<&Located<Registers<'_>>>) -> Option<Guilty> {
    blame::guilty(&stacks::of_set(ctx.case, ctx.symbols, &ctx.death, set?))
}

/// The thread of the same program that holds the mutex for which one waits: glibc and musl keep it in the mutex.
fn holder(ctx: &Context<'_, '_>, task: &Task<'_>, set: Option<&Located<Registers<'_>>>, tids: &[u32]) -> Option<u32> {
    let register = |id: RegId| set?.regs.as_ref()?.iter().find(|reg| reg.id == Some(id))?.value;
    let is_futex =
        |nr: i64| u64::try_from(nr).ok().and_then(syscalls::by_number).is_some_and(|call| call.name == "futex");
    let argument = task.syscall.filter(|nr| is_futex(*nr)).and_then(|_| register(RegId::RDI));
    let word = argument.or(task.wait_object)?;
    let bytes = View::of(ctx.case, ctx.symbols, task.pid, &ctx.death).bytes(word);
    let at = |skip: usize| Some(u32::from_le_bytes(*bytes.get(skip..)?.first_chunk()?));
    let owners = [at(0).map(|word| word & OWNER), at(OWNER_BEHIND)];
    owners.into_iter().flatten().find(|owner| tids.contains(owner) && Some(*owner) != task.tid)
}

/// A processor runs a loop of a program.
pub(super) fn endless_loop(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !ctx.is_hang() {
        return Vec::new();
    }
    let sets = ctx.case.registers.iter();
    let sets = sets.filter(|set| Some(set.at) == ctx.death.registers_at || is_stopped(set));
    let tasks = by_thread(ctx);
    sets.filter_map(|set| loop_of(ctx, &tasks, set)).take(MOST_LOOPS).collect()
}

/// Loops that are told about.
const MOST_LOOPS: usize = 3;

/// The loop of a program that ran when its processor stopped, if it has run for long.
pub(super) fn loop_of(ctx: &Context<'_, '_>, tasks: &ByThread<'_, '_>, set: &Located<Registers<'_>>) -> Option<Claim> {
    let tid = set.tid.or(set.pid).filter(|tid| *tid != 0 && ring(set) == Some(3))?;
    let task = *tasks.get(&tid)?;
    let long = ran_long(task)?;
    let frames = stacks::of_set(ctx.case, ctx.symbols, &ctx.death, set);
    let found = loops::of_program(ctx.symbols, set.pid.or(task.pid), &frames)?;
    let guilty = blame::guilty(&frames[found.frame..])?;
    let cpu = set.stamp.cpu.map_or_else(|| "a processor".to_owned(), |cpu| format!("CPU {cpu}"));
    let claim = Claim::new(format!("{} does not leave a loop in {}", label(task), guilty.name))
        .because(0.45, format!("{cpu} ran user code of {} when the dump was requested", label(task)), Some(set.at))
        .because(0.3, found.words, Some(set.at))
        .because(0.2, long, Some(task.at))
        .because_if(0.1, last_call(ctx, tid));
    Some(claim.blames(Some(guilty)))
}

/// How long ago a thread made its last call, if that is long.
fn last_call(ctx: &Context<'_, '_>, tid: u32) -> Option<(String, Option<RecordRef>)> {
    let own = ctx.case.syscalls.iter().filter(|call| call.tid.or(call.pid) == Some(tid));
    let last = own.max_by_key(|call| call.stamp.ns)?;
    let passed = ctx.death.ns?.checked_sub(last.stamp.ns?).filter(|ns| *ns > SECOND)?;
    Some((format!("its last system call was {:.1} s before", passed as f64 / 1e9), Some(last.at)))
}

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;
