//! Tasks that do not go on: deadlocks, locks held across sleep, lost wake-ups, hangs.

use std::collections::BTreeMap;

use kwab_format::record::{CauseKind, FlightKind, LockKind, Reason, Task, TaskState};

use crate::analysis::context::Context;
use crate::analysis::dump::{Found, RecordRef, text, waits_in_vfork};
use crate::analysis::finding::Claim;

/// Who holds or awaits a lock: a thread, or a processor when no thread is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
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

fn party(tid: Option<u32>, pid: Option<u32>, cpu: Option<u32>) -> Option<Party> {
    tid.or(pid).map(Party::Thread).or(cpu.map(Party::Cpu))
}

/// A circle of parties, each waiting for a lock that the next one holds.
pub(super) fn deadlock(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let mut holders: BTreeMap<u64, (Party, RecordRef, String)> = BTreeMap::new();
    for lock in &ctx.case.locks {
        if let (Some(addr), Some(holder)) = (lock.addr, party(lock.holder_tid, lock.holder_pid, lock.holder_cpu)) {
            holders.insert(addr, (holder, lock.at, place(lock.name, lock.location)));
        }
    }
    let mut awaits: BTreeMap<Party, (u64, RecordRef, String)> = BTreeMap::new();
    for wait in &ctx.case.waits {
        if let (Some(addr), Some(waiter)) = (wait.addr, party(wait.waiter_tid, wait.waiter_pid, wait.waiter_cpu)) {
            awaits.insert(waiter, (addr, wait.at, place(wait.name, wait.location)));
        }
    }
    if let Some(circle) = circle(&awaits, &holders) {
        let names: Vec<String> = circle.iter().map(ToString::to_string).collect();
        let text = match circle.len() {
            1 => format!("{} waits for a lock that it holds itself", names[0]),
            _ => format!("deadlock: {} wait for each other's locks", names.join(" and ")),
        };
        let mut claim = Claim::new(text);
        for party in circle {
            let (addr, at, what) = &awaits[&party];
            let (holder, held_at, held) = &holders[addr];
            claim = claim.because(0.7, format!("{party} waits for {what} ({addr:#x})"), Some(*at));
            claim = claim.because(0.3, format!("{holder} holds {held} ({addr:#x})"), Some(*held_at));
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
            if let Some((by, place)) = seen.get(&party) {
                let mut circle = if *by == walk { path.split_off(*place) } else { Vec::new() };
                let first = circle.iter().enumerate().min_by_key(|(_, party)| **party).map_or(0, |(place, _)| place);
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

fn place(name: Option<&[u8]>, location: Option<&[u8]>) -> String {
    let (name, location) = (text(name), text(location));
    match (name.is_empty(), location.is_empty()) {
        (false, false) => format!("{name}, taken at {location}"),
        (false, true) => name,
        (true, false) => format!("a lock, taken at {location}"),
        (true, true) => "a lock".to_owned(),
    }
}

fn is_asleep(task: &Task<'_>) -> bool {
    matches!(task.state, Some(TaskState::SLEEPING | TaskState::BLOCKED))
}

fn label(task: &Task<'_>) -> String {
    format!("{}[{}]", text(task.comm), task.tid.or(task.pid).unwrap_or(0))
}

/// A spinning lock whose holder sleeps.
pub(super) fn lock_across_sleep(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let mut asleep: BTreeMap<u32, &Found<Task<'_>>> = BTreeMap::new();
    for task in ctx.case.tasks.iter().filter(|task| is_asleep(task)) {
        if let Some(tid) = task.tid.or(task.pid) {
            asleep.entry(tid).or_insert(task);
        }
    }
    for lock in ctx.case.locks.iter().filter(|lock| lock.kind == Some(LockKind::SPIN)) {
        let Some(task) = lock.holder_tid.or(lock.holder_pid).and_then(|holder| asleep.get(&holder)) else { continue };
        let what = place(lock.name, lock.location);
        let claim = Claim::new(format!("{} sleeps while it holds {what}", label(task)))
            .because(0.6, format!("it holds the spin lock {what}"), Some(lock.at))
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

fn is_hang(ctx: &Context<'_, '_>) -> bool {
    let reason = ctx.case.identities.first().and_then(|identity| identity.reason);
    matches!(ctx.death.kind, Some(CauseKind::HUNG_TASK | CauseKind::SOFT_LOCKUP)) || reason == Some(Reason::HANG)
}

/// The task that hangs: the one the cause names, or the one that has slept longest without a signal being able to wake it.
fn hung_task<'c, 'a>(ctx: &'c Context<'_, 'a>) -> Option<&'c Found<Task<'a>>> {
    let named =
        ctx.case.tasks.iter().find(|task| ctx.death.pid.is_some() && task.pid == ctx.death.pid && is_asleep(task));
    let blocked = ctx.case.tasks.iter().filter(|task| task.state == Some(TaskState::BLOCKED));
    named.or_else(|| blocked.max_by_key(|task| task.state_ns))
}

/// A task sleeps, nobody holds what it waits for, and nobody woke it.
pub(super) fn lost_wakeup(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !is_hang(ctx) || ctx.death.kind == Some(CauseKind::SOFT_LOCKUP) {
        return Vec::new();
    }
    let Some(task) = hung_task(ctx) else { return Vec::new() };
    let object = task.wait_object.filter(|object| *object != 0);
    let held = ctx.case.locks.iter().any(|lock| lock.addr.is_some() && lock.addr == object);
    if held || task.wait_tid.is_some() {
        return Vec::new();
    }
    let seconds = task.state_ns.map(|ns| format!(" for {:.1} s", ns as f64 / 1e9)).unwrap_or_default();
    let mut claim = Claim::new(format!(
        "a wake-up was lost: {} waits for {} and nobody will wake it",
        label(task),
        text(task.wait_reason)
    ))
    .because(0.5, format!("{} has been asleep{seconds}: {}", label(task), text(task.wait_reason)), Some(task.at))
    .because(0.25, "nobody holds what it waits for", None);
    let tid = task.tid.or(task.pid);
    let slept = ctx
        .case
        .flight
        .iter()
        .rposition(|event| event.kind == Some(FlightKind::SLEEP) && event.tid.or(event.pid) == tid);
    if let Some(slept) = slept {
        let woken = ctx.case.flight[slept..]
            .iter()
            .any(|event| event.kind == Some(FlightKind::WAKE) && event.tid.or(event.pid) == tid);
        let at = ctx.case.flight[slept].at;
        claim = if woken {
            claim.but(0.5, "the flight recorder shows a wake-up after it went to sleep", Some(at))
        } else {
            claim.because(0.4, "the flight recorder shows it going to sleep and no wake-up since", Some(at))
        };
    }
    if let Some((waker, at)) = let_go(ctx, task) {
        claim = claim.because(0.5, waker, at);
    }
    if ctx.case.tasks.iter().all(|other| !matches!(other.state, Some(TaskState::RUNNABLE | TaskState::RUNNING))) {
        claim = claim.because(0.2, "no task is running or runnable: nobody is left to wake it", None);
    }
    vec![claim]
}

/// What a parent in vfork waits for has happened: no child uses its memory any more.
fn let_go(ctx: &Context<'_, '_>, task: &Found<Task<'_>>) -> Option<(String, Option<RecordRef>)> {
    if !waits_in_vfork(task) || task.page_table_root.is_none() {
        return None;
    }
    let mut children = ctx.case.tasks.iter().filter(|child| child.ppid == task.pid && child.pid != task.pid);
    let uses = |child: &&Found<Task<'_>>| {
        child.page_table_root == task.page_table_root && child.state != Some(TaskState::ZOMBIE)
    };
    if children.clone().any(|child| uses(&child)) {
        return None;
    }
    Some(match children.next() {
        Some(child) => {
            let state = child.state.and_then(TaskState::name).unwrap_or("there");
            (format!("its child {} does not use its memory any more: {state}", child.pid.unwrap_or(0)), Some(child.at))
        }
        None => ("its child is gone".to_owned(), None),
    })
}

/// Somebody hangs: who waits for whom.
pub(super) fn hang(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !is_hang(ctx) {
        return Vec::new();
    }
    if ctx.death.kind == Some(CauseKind::SOFT_LOCKUP) {
        let claim = Claim::new(format!("a processor does not schedule{}", ctx.in_culprit()))
            .because(0.6, "soft lockup", ctx.death.at)
            .because_if(0.3, spins_for(ctx));
        return vec![claim];
    }
    let Some(task) = hung_task(ctx) else {
        let claim = Claim::new("something hangs; the dump does not say which task").because(
            0.3,
            "the dump was taken for a hang",
            ctx.death.at,
        );
        return vec![claim];
    };
    let mut claim = Claim::new(format!("{} hangs, waiting for {}", label(task), waits_for(ctx, task))).because(
        0.55,
        format!("{}: {}", task.state.and_then(TaskState::name).unwrap_or("asleep"), text(task.wait_reason)),
        Some(task.at),
    );
    let lock = ctx.case.locks.iter().find(|lock| lock.addr.is_some() && lock.addr == task.wait_object);
    if let Some(lock) = lock {
        claim = claim.because(0.3, format!("held: {}", place(lock.name, lock.location)), Some(lock.at));
    }
    vec![claim]
}

/// The lock that a processor spins for, and who holds it.
fn spins_for(ctx: &Context<'_, '_>) -> Option<(String, Option<RecordRef>)> {
    let wait = ctx.case.waits.iter().find(|wait| wait.addr.is_some())?;
    let waiter = party(wait.waiter_tid, wait.waiter_pid, wait.waiter_cpu)?;
    let lock = ctx.case.locks.iter().find(|lock| lock.addr == wait.addr);
    let holder = lock.and_then(|lock| {
        let who = party(lock.holder_tid, lock.holder_pid, lock.holder_cpu)?;
        Some(format!(", which {who} holds: {}", place(lock.name, lock.location)))
    });
    let what = place(wait.name, wait.location);
    Some((format!("{waiter} waits for {what}{}", holder.unwrap_or_default()), Some(wait.at)))
}

fn waits_for(ctx: &Context<'_, '_>, task: &Task<'_>) -> String {
    let lock = ctx.case.locks.iter().find(|lock| lock.addr.is_some() && lock.addr == task.wait_object);
    let holder = lock.and_then(|lock| lock.holder_tid.or(lock.holder_pid)).or(task.wait_tid);
    let by_tid =
        |tid: u32| ctx.case.tasks.iter().find(|other| other.tid.or(other.pid) == Some(tid)).map(|other| label(other));
    match holder {
        Some(tid) => by_tid(tid).unwrap_or_else(|| format!("thread {tid}")),
        None => text(task.wait_reason),
    }
}
