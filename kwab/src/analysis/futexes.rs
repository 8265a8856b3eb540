//! Futex words by the recorded calls: which thread sleeps on which, and which wake-up passed it over.
//!
//! FUTEX_WAKE answers how many it woke (futex(2)). A thread that slept on the word before the call and still does is
//! one that a call should have found which woke fewer than it was allowed to.

use std::collections::{BTreeMap, HashMap};

use kwab_format::record::{SyscallRecord, Task, TaskState, Vma};

use super::context::Context;
use super::quote::text;
use crate::model::{Located, RecordRef};

/// The number of the system call.
const FUTEX: i64 = 202;
/// Operations, without the flags for private words and the clock.
const WAIT: u64 = 0;
const WAKE: u64 = 1;
const WAIT_BITSET: u64 = 9;
const WAKE_BITSET: u64 = 10;
const PRIVATE: u64 = 128;
const COMMAND: u64 = 0x7f;
/// The operations that only sleep, wake or lock: they move no sleeper to another word.
const NO_MOVE: [u64; 8] = [WAIT, WAKE, 6, 7, 8, WAIT_BITSET, WAKE_BITSET, 13];
/// Bit 0 of a mapping's flags: shared.
const SHARED: u64 = 1;

/// What tells words apart: memory of one process, or a place in a file that several map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Word<'a> {
    Private(u32, u64),
    Shared(&'a [u8], Option<u64>, u64),
}

/// A wake-up that should have found a thread.
pub(super) struct Unwoken {
    /// Who sleeps, and the call that woke too few.
    pub(super) text: String,
    /// The record of the wake-up.
    pub(super) at: RecordRef,
    /// The thread that sleeps.
    pub(super) tid: Option<u32>,
}

/// How many sleepers could be checked, and those that a later FUTEX_WAKE of their word passed over.
pub(super) fn unwoken(ctx: &Context<'_, '_>) -> (u64, Vec<Unwoken>) {
    let calls = || ctx.case.syscalls.iter().filter(|call| call.nr == Some(FUTEX));
    // A sleeper that was moved sleeps on another word than its call says.
    if calls().any(|call| call.arg1.is_none_or(|op| !NO_MOVE.contains(&(op & COMMAND)))) {
        return (0, Vec::new());
    }
    let words = Words::of(ctx);
    let mut waits: HashMap<(Option<u32>, Option<u32>), Word<'_>> = HashMap::new();
    let mut wakes: HashMap<Word<'_>, &Located<SyscallRecord<'_>>> = HashMap::new();
    for call in calls() {
        if call.in_progress == Some(true) && is_for_all(call, WAIT, WAIT_BITSET) {
            waits.extend(words.of_call(call).map(|word| ((call.pid, call.tid), word)));
        }
        let room = 0..i64::from(call.arg2.unwrap_or(0) as u32 as i32);
        if is_for_all(call, WAKE, WAKE_BITSET) && call.result.is_some_and(|woken| room.contains(&woken)) {
            let Some(word) = words.of_call(call) else { continue };
            let last = wakes.entry(word).or_insert(call);
            if call.stamp.ns > last.stamp.ns {
                *last = call;
            }
        }
    }
    let (mut checked, mut found) = (0, Vec::new());
    for task in ctx.case.tasks.iter().filter(|task| is_asleep(task) && text(task.wait_reason).contains("futex")) {
        let word = waits.get(&(task.pid, task.tid)).or_else(|| waits.get(&(task.pid, None)));
        let slept = task.stamp.ns.zip(task.state_ns).and_then(|(now, ns)| now.checked_sub(ns));
        let (Some(word), Some(slept)) = (word, slept) else { continue };
        checked += 1;
        let wake = wakes.get(word).and_then(|wake| Some((wake, wake.stamp.ns?.checked_sub(slept)?)));
        let Some((wake, later)) = wake else { continue };
        let (addr, woken, most) = (wake.arg0.unwrap_or(0), wake.result.unwrap_or(0), wake.arg2.unwrap_or(0) as u32);
        let (name, tid, pid) = (text(task.comm), task.tid.or(task.pid), wake.pid.unwrap_or(0));
        let text = format!(
            "{name}[{}] sleeps on the futex {addr:#x} of process {pid}, whose FUTEX_WAKE of up to {most} woke {woken}, \
             {:.1} ms after it fell asleep",
            tid.unwrap_or(0),
            later as f64 / 1e6
        );
        found.push(Unwoken { text, at: wake.at, tid });
    }
    (checked, found)
}

fn is_asleep(task: &Task<'_>) -> bool {
    matches!(task.state, Some(TaskState::SLEEPING | TaskState::BLOCKED))
}

/// Whether a call is one of both operations, with all bits of its mask if it has one.
fn is_for_all(call: &SyscallRecord<'_>, plain: u64, masked: u64) -> bool {
    let mask = call.args()[5].unwrap_or(0) as u32;
    call.arg1.is_some_and(|op| op & COMMAND == plain || op & COMMAND == masked && mask == u32::MAX)
}

/// The mappings by process and first address.
struct Words<'c>(BTreeMap<(u32, u64), &'c Vma<'c>>);

impl<'c> Words<'c> {
    fn of(ctx: &Context<'c, '_>) -> Self {
        let vmas = ctx.case.vmas.iter().filter_map(|vma| Some(((vma.pid?, vma.start?), &vma.record)));
        Self(vmas.collect())
    }

    /// The word that a call is about; `None` where the dump lacks the mapping of one that is not private.
    fn of_call(&self, call: &SyscallRecord<'_>) -> Option<Word<'c>> {
        let (pid, addr, op) = (call.pid?, call.arg0?, call.arg1?);
        let below = self.0.range((pid, 0)..=(pid, addr)).next_back();
        match below.filter(|(_, vma)| vma.end.is_some_and(|end| addr < end)) {
            Some(((_, start), vma)) if op & PRIVATE == 0 && u64::from(vma.flags.unwrap_or(0)) & SHARED != 0 => {
                Some(Word::Shared(vma.path?, vma.inode, (addr - start).wrapping_add(vma.file_offset.unwrap_or(0))))
            }
            // Without FUTEX_PRIVATE_FLAG a word of private memory is found as one with it.
            Some(_) => Some(Word::Private(pid, addr)),
            None => (op & PRIVATE != 0).then_some(Word::Private(pid, addr)),
        }
    }
}
