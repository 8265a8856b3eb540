//! Tasks that do not go on because of locks: deadlocks, locks held across sleep.

use std::collections::BTreeMap;

use kwab_format::record::{LockKind, RegId, RegisterRole, Registers, Task, TaskState};

use crate::analysis::blame::{self, Guilty};
use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::quote::text;
use crate::analysis::stacks;
use crate::model::{Located, RecordRef};

/// Who holds or awaits a lock: a thread, or a processor when no thread is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Party {
    Thread(u32),
    Cpu(u32),
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Thread(tid) => write!(f, "thread {tid}"),
            Self::Cpu(cpu) => write!(f, "CPU {cpu}"),
        }
    }
}

pub(super) fn party(tid: Option<u32>, pid: Option<u32>, cpu: Option<u32>) -> Option<Party> {
    tid.or(pid).map(Party::Thread).or(cpu.map(Party::Cpu))
}

/// Members of a circle that are named, with what they wait for; the others are counted.
const MOST_NAMED: usize = 16;

/// A circle of parties, each waiting for a lock that the next one holds.
pub(super) fn deadlock(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let mut holders: BTreeMap<u64, (Party, RecordRef, String)> = BTreeMap::new();
    for lock in &ctx.case.locks {
        if let (Some(addr), Some(holder)) = (lock.addr, party(lock.holder_tid, lock.holder_pid, lock.holder_cpu)) {
            holders.insert(addr, (holder, lock.at, named(lock.kind, lock.name, lock.location)));
        }
    }
    let mut awaits: BTreeMap<Party, (u64, RecordRef, String)> = BTreeMap::new();
    for wait in &ctx.case.waits {
        if let (Some(addr), Some(waiter)) = (wait.addr, party(wait.waiter_tid, wait.waiter_pid, wait.waiter_cpu)) {
            awaits.insert(waiter, (addr, wait.at, named(wait.kind, wait.name, wait.location)));
        }
    }
    // What a thread's own record says of it, where the section of locks is lost.
    for task in ctx.case.tasks.iter().filter(|task| is_asleep(task)) {
        if let (Some(tid), Some(addr), Some(on)) = (task.tid.or(task.pid), task.wait_object, task.wait_tid) {
            let mutex = || "a mutex".to_owned();
            awaits.entry(Party::Thread(tid)).or_insert_with(|| (addr, task.at, mutex()));
            holders.entry(addr).or_insert_with(|| (Party::Thread(on), task.at, mutex()));
        }
    }
    let mut tasks: BTreeMap<Party, &Located<Task<'_>>> = BTreeMap::new();
    for task in &ctx.case.tasks {
        if let Some(tid) = task.tid.or(task.pid) {
            tasks.entry(Party::Thread(tid)).or_insert(task);
        }
    }
    let who = |party: &Party| tasks.get(party).map_or_else(|| party.to_string(), |task| label(task));
    if let Some(circle) = circle(&awaits, &holders) {
        let mut names: Vec<String> = circle.iter().take(MOST_NAMED).map(who).collect();
        if let Some(more @ 1..) = circle.len().checked_sub(MOST_NAMED) {
            names.push(format!("{more} more"));
        }
        let text = match circle.len() {
            1 => format!("{} waits for a lock that it holds itself", names[0]),
            _ => format!("deadlock: {} wait for each other's locks", names.join(" and ")),
        };
        let mut claim = Claim::new(text);
        for party in circle.into_iter().take(MOST_NAMED) {
            let (addr, at, what) = &awaits[&party];
            let (holder, held_at, held) = &holders[addr];
            claim = claim.proven(0.7, format!("{} waits for {what} ({addr:#x})", who(&party)), Some(*at));
            claim = claim.because(0.3, format!("{} holds {held} ({addr:#x})", who(holder)), Some(*held_at));
        }
        return vec![claim];
    }
    Vec::new()
}

/// The circle with the first of all parties that are in one, beginning with that party. Everybody waits for one lock at
/// most, so each party is looked at once.
fn circle(
    awaits: &BTreeMap<Party, (u64, RecordRef, String)>,
    holders: &BTreeMap<u64, (Party, RecordRef, String)>,
) -> Option<Vec<Party>> {
    let next = |party: &Party| holders.get(&awaits.get(party)?.0).map(|(holder, ..)| *holder);
    // Which walk has seen a party, and how far into it.
    let mut seen: BTreeMap<Party, (usize, usize)> = BTreeMap::new();
    let mut found: Option<Vec<Party>> = None;
    for (walk, start) in awaits.keys().enumerate() {
        let mut path = Vec::new();
        let mut at = Some(*start);
        while let Some(party) = at {
            if let Some((by, first)) = seen.get(&party) {
                let mut circle = if *by == walk { path.split_off(*first) } else { Vec::new() };
                let first = circle.iter().enumerate().min_by_key(|(_, party)| **party).map_or(0, |(index, _)| index);
                circle.rotate_left(first);
                if !circle.is_empty() && found.as_ref().is_none_or(|other| circle.first() < other.first()) {
                    found = Some(circle);
                }
                break;
            }
            seen.insert(party, (walk, path.len()));
            path.push(party);
            at = next(&party);
        }
    }
    found
}

/// A lock of this kind, with its name and where it was taken as far as they are known.
fn named(kind: Option<LockKind>, name: Option<&[u8]>, location: Option<&[u8]>) -> String {
    match (kind, name, location) {
        (Some(LockKind::MUTEX), None, None) => "a mutex".to_owned(),
        _ => lock_name(name, location),
    }
}

pub(super) fn lock_name(name: Option<&[u8]>, location: Option<&[u8]>) -> String {
    let (name, location) = (text(name), text(location));
    match (name.is_empty(), location.is_empty()) {
        (false, false) => format!("{name}, taken at {location}"),
        (false, true) => name,
        (true, false) => format!("a lock, taken at {location}"),
        (true, true) => "a lock".to_owned(),
    }
}

pub(super) fn is_asleep(task: &Task<'_>) -> bool {
    matches!(task.state, Some(TaskState::SLEEPING | TaskState::BLOCKED))
}

pub(super) fn label(task: &Task<'_>) -> String {
    format!("{}[{}]", text(task.comm), task.tid.or(task.pid).unwrap_or(0))
}

/// The tasks by the number of their thread.
pub(super) type ByThread<'c, 'a> = BTreeMap<u32, &'c Located<Task<'a>>>;

/// Of several tasks with one number the first.
pub(super) fn by_thread<'c, 'a>(ctx: &'c Context<'_, 'a>) -> ByThread<'c, 'a> {
    ctx.case.tasks.iter().rev().filter_map(|task| Some((task.tid.or(task.pid)?, task))).collect()
}

/// The function on whose behalf a task sleeps.
pub(super) fn blame_of(ctx: &Context<'_, '_>, task: &Task<'_>) -> Option<Guilty> {
    let tid = task.tid.or(task.pid)?;
    blame::guilty(&stacks::of_task(ctx.case, ctx.symbols, &ctx.death, tid))
}

/// A spinning lock whose holder sleeps.
pub(super) fn lock_across_sleep(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let mut asleep: BTreeMap<u32, &Located<Task<'_>>> = BTreeMap::new();
    for task in ctx.case.tasks.iter().filter(|task| is_asleep(task)) {
        if let Some(tid) = task.tid.or(task.pid) {
            asleep.entry(tid).or_insert(task);
        }
    }
    for lock in ctx.case.locks.iter().filter(|lock| lock.kind == Some(LockKind::SPIN)) {
        let Some(task) = lock.holder_tid.or(lock.holder_pid).and_then(|holder| asleep.get(&holder)) else { continue };
        let what = lock_name(lock.name, lock.location);
        let claim = Claim::new(format!("{} sleeps while it holds {what}", label(task)))
            .proven(0.6, format!("it holds the spin lock {what}"), Some(lock.at))
            .because(
                0.6,
                format!(
                    "it is {}: {}",
                    task.state.and_then(TaskState::name).unwrap_or("asleep"),
                    text(task.wait_reason)
                ),
                Some(task.at),
            );
        return vec![claim];
    }
    Vec::new()
}

/// Whether registers are those of a processor that was stopped.
pub(super) fn is_stopped(set: &Registers<'_>) -> bool {
    set.role == Some(RegisterRole::STOPPED)
}

/// Ring of the code that a register set belongs to.
pub(super) fn ring(set: &Registers<'_>) -> Option<u64> {
    let value = set.regs.as_ref()?.iter().find(|reg| reg.id == Some(RegId::CS))?.value?;
    Some(value & 3)
}

/// A task that ran for longer than this did not just begin, nanoseconds.
const LONG: u64 = 1_000_000_000;

/// How long a task has run, if that is long.
pub(super) fn ran_long(task: &Task<'_>) -> Option<String> {
    let ns = task.run_ns.filter(|ns| *ns > LONG)?;
    Some(format!("{} has run for {:.1} s", label(task), ns as f64 / 1e9))
}
