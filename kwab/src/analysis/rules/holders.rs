//! Who has the lock that a task sleeps for, and what that task does: the one at the end of the chain is to blame.
//!
//! A dump says it twice: as records of the lock and its waiters, and in the task's own record. Each may be lost.

use kwab_format::record::{LockKind, Task, TaskState};

use super::tasks::{blame_of, is_asleep, label};
use crate::analysis::blame::Guilty;
use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::keepers::{self, Promise};
use crate::analysis::quote::text;
use crate::model::{Located, RecordRef};

/// A lock that a task waits for has this holder.
pub(super) struct HeldLock<'c, 'a> {
    tid: u32,
    task: Option<&'c Located<Task<'a>>>,
    is_mutex: bool,
    object: u64,
    at: RecordRef,
}

/// Most locks that are followed from a task on.
const MOST: usize = 8;

/// The holder of what `task` waits for, the holder of what that one waits for, and so on, no thread twice.
pub(super) fn chain<'c, 'a>(ctx: &'c Context<'_, 'a>, task: &'c Located<Task<'a>>) -> Vec<HeldLock<'c, 'a>> {
    let mut chain: Vec<HeldLock<'c, 'a>> = Vec::new();
    let mut at = Some(task);
    while let Some(held) = at.and_then(|task| holder(ctx, task)).filter(|_| chain.len() < MOST) {
        if Some(held.tid) == task.tid.or(task.pid) || chain.iter().any(|before| before.tid == held.tid) {
            break;
        }
        at = held.task;
        chain.push(held);
    }
    chain
}

fn holder<'c, 'a>(ctx: &'c Context<'_, 'a>, task: &'c Located<Task<'a>>) -> Option<HeldLock<'c, 'a>> {
    let object = task.wait_object.filter(|object| *object != 0 && is_asleep(task));
    let lock = ctx.case.locks.iter().find(|lock| object.is_some() && lock.addr == object);
    let by_lock = lock.and_then(|lock| Some((lock.holder_tid.or(lock.holder_pid)?, lock.kind, lock.at)));
    let by_task = || Some((task.wait_tid.filter(|_| is_asleep(task))?, Some(LockKind::MUTEX), task.at));
    let (tid, kind, at) = by_lock.or_else(by_task)?;
    let task = ctx.case.tasks.iter().find(|other| other.tid.or(other.pid) == Some(tid));
    Some(HeldLock { tid, task, is_mutex: kind == Some(LockKind::MUTEX), object: object.unwrap_or(0), at })
}

impl HeldLock<'_, '_> {
    fn who(&self) -> String {
        self.task.map_or_else(|| format!("thread {}", self.tid), |task| label(task))
    }

    /// What the holder does, but for a wait for the next lock of the chain.
    fn does(&self, ctx: &Context<'_, '_>) -> String {
        let Some(task) = self.task else { return "which the dump does not list".to_owned() };
        match task.state {
            Some(TaskState::RUNNING) => "which runs".to_owned(),
            Some(TaskState::RUNNABLE) => "which is kept from a processor".to_owned(),
            Some(TaskState::ZOMBIE) => "which has ended".to_owned(),
            _ => {
                let place = blame_of(ctx, task).map(|guilty| format!(" in {}", guilty.name)).unwrap_or_default();
                format!("which sleeps{place}")
            }
        }
    }
}

/// `a mutex that cat[7] has, which sleeps in read_page`.
pub(super) fn in_words(ctx: &Context<'_, '_>, chain: &[HeldLock<'_, '_>]) -> Option<String> {
    let (last, before) = chain.split_last()?;
    let lock =
        |held: &HeldLock<'_, '_>| format!("a {} that {} has", if held.is_mutex { "mutex" } else { "lock" }, held.who());
    let before: String = before.iter().map(|held| format!("{}, which waits for ", lock(held))).collect();
    Some(format!("{before}{}, {}", lock(last), last.does(ctx)))
}

/// Adds what is known of each holder, and blames the one at the end.
pub(super) fn explain(ctx: &Context<'_, '_>, chain: &[HeldLock<'_, '_>], mut claim: Claim) -> Claim {
    for (held, weight) in chain.iter().zip([0.3, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0]) {
        let what = held.task.filter(|task| is_asleep(task)).map(|task| text(task.wait_object_name)).unwrap_or_default();
        let seconds = held.task.and_then(|task| task.state_ns).map(|ns| format!(" for {:.1} s", ns as f64 / 1e9));
        let state = held.task.and_then(|task| task.state.and_then(TaskState::name));
        let state = state.map(|state| format!(": {state}{}", seconds.unwrap_or_default())).unwrap_or_default();
        let sleeps_for = if what.is_empty() { String::new() } else { format!(", {what}") };
        let row = format!("{} has the lock at {:#x}{state}{sleeps_for}", held.who(), held.object);
        claim = claim.because(weight, row, Some(held.at));
    }
    // A holder that sleeps for something else may have given the mutex back, and nothing took it.
    let keepers = chain.last().filter(|held| held.is_mutex).and_then(|_| keepers::in_words(ctx, Promise::Mutex));
    claim.because_if(0.0, keepers.map(|row| (row, None))).blames(blame(ctx, chain))
}

/// The function in which the last holder sleeps.
pub(super) fn blame(ctx: &Context<'_, '_>, chain: &[HeldLock<'_, '_>]) -> Option<Guilty> {
    chain.last()?.task.filter(|task| is_asleep(task)).and_then(|task| blame_of(ctx, task))
}
