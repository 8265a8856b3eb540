//! Every thread's last system calls, always on: number, arguments, result, processor, duration, and how the strings
//! begin that it was given.
//!
//! A string (a path, the arguments of a program) is taken where the kernel has copied it in anyway; what `read` and
//! `write` move is never recorded. Dumps of the kernel and `/proc/kwab` hold strings of every user's programs, and are
//! for root alone.
//!
//! A thread's ring ([`kernel_logic::recorder::calls`]) is written by that thread alone, without a lock; a process's
//! calls are those of its threads. Rings are handed from ended threads to new ones, so that a fork clears nothing.
//! Without the feature `recorders` all are one that is never written.

#[cfg(feature = "recorders")]
use alloc::sync::Arc;
#[cfg(feature = "recorders")]
use alloc::vec::Vec;
#[cfg(feature = "recorders")]
use core::mem::offset_of;

use kernel_logic::recorder::Counts;
pub use kernel_logic::recorder::calls::{Call, CallRing, Open};
use kernel_logic::recorder::texts::{CallText, KEPT_BYTES, TextRing};
use kwab_format::record::{Stamp, SyscallRecord};
use linux_abi::syscalls::{self, ArgKind};
use machine::describe::Entry;
#[cfg(feature = "recorders")]
use machine::sync::SpinLock;
use machine::time::ClockParams;

use super::{Traced, flight};
use crate::upper::{Task, current};

/// A thread's ring, to which it derefs.
pub struct Calls {
    #[cfg(feature = "recorders")]
    ring: Arc<CallRing>,
}

/// Most rings kept for threads to come.
#[cfg(feature = "recorders")]
const SPARE: usize = 32;
#[cfg(feature = "recorders")]
static POOL: SpinLock<Vec<Arc<CallRing>>> = SpinLock::new(Vec::new());

/// How a ring lies in memory, in [`machine::describe`].
pub static FIELDS: [Entry; 14] = Entry::numbers(CallRing::LAYOUT);
/// How the ring of its strings does.
pub static TEXTS: [Entry; 8] = Entry::numbers(TextRing::LAYOUT);

impl Calls {
    /// Where the pointer to a thread's ring lies in this, and the ring behind what an `Arc` keeps before its value.
    #[cfg(feature = "recorders")]
    pub const OFFSETS: (usize, usize) =
        (offset_of!(Self, ring), (2 * size_of::<usize>()).next_multiple_of(align_of::<CallRing>()));

    /// Without recorders there is none.
    #[cfg(not(feature = "recorders"))]
    pub const OFFSETS: (usize, usize) = (0, 0);

    /// One for a new thread.
    #[cfg(feature = "recorders")]
    pub fn new() -> Self {
        let spare = POOL.lock().pop();
        let ring = spare.unwrap_or_else(|| Arc::new(CallRing::new(Some(TextRing::boxed()))));
        ring.hand_over();
        Self { ring }
    }

    /// Without recorders a thread has no ring.
    #[cfg(not(feature = "recorders"))]
    pub fn new() -> Self {
        Self {}
    }
}

impl core::ops::Deref for Calls {
    type Target = CallRing;

    #[cfg(feature = "recorders")]
    #[inline(always)]
    fn deref(&self) -> &CallRing {
        &self.ring
    }

    #[cfg(not(feature = "recorders"))]
    fn deref(&self) -> &CallRing {
        static NONE: CallRing = CallRing::new(None);
        &NONE
    }
}

#[cfg(feature = "recorders")]
impl Drop for Calls {
    fn drop(&mut self) {
        let mut pool = POOL.lock();
        if pool.len() < SPARE {
            pool.push(self.ring.clone());
        }
    }
}

/// A string that the running thread's call was given: its address, how it begins, its length. What lies in `start`
/// behind the length is not recorded.
#[inline(always)]
pub fn text<const ROOM: usize>(addr: u64, start: &[u8; ROOM], len: usize) {
    if flight::ON
        && let Some(start) = start.first_chunk()
    {
        current().calls().text(addr, start, len);
    }
}

/// The same of a string on the heap.
#[cold]
pub fn long_text(addr: u64, bytes: &[u8]) {
    strings(addr, core::iter::once(bytes), bytes.len());
}

/// The same of several strings, one behind the other, of `len` bytes together.
pub fn strings<'s>(addr: u64, strings: impl Iterator<Item = &'s [u8]>, len: usize) {
    let mut start = [0; KEPT_BYTES];
    let mut room = &mut start[..];
    for string in strings {
        let (to, rest) = room.split_at_mut(room.len().min(string.len()));
        to.copy_from_slice(&string[..to.len()]);
        room = rest;
        if room.is_empty() {
            break;
        }
    }
    text(addr, &start, len);
}

/// A thread's calls as the dump format has them, oldest first; how many could not be had although they should. Never
/// waits, never faults, allocates nothing; the thread may be running on another processor. The last call that takes no
/// slot (getpid and its like) stands where it was made, with its number only.
pub fn for_each(task: &Task, clock: &ClockParams, mut visit: impl FnMut(&SyscallRecord<'_>)) -> u32 {
    let mut brief = task.calls().last_brief();
    let bare =
        |nr: u32| SyscallRecord { nr: Some(i64::from(nr)), name: name(nr), in_progress: Some(false), ..of(task) };
    let missing = task.calls().for_each(|call| {
        if let Some(before) = brief.take_if(|brief| brief.before == call.index) {
            visit(&bare(before.nr));
        }
        let texts = texts_of(task, &call);
        let mut record = record(task, clock, &call);
        with_texts(&mut record, &texts);
        visit(&record);
    });
    if let Some(last) = brief.filter(|brief| u64::from(brief.before) == task.calls().counts().total) {
        visit(&bare(last.nr));
    }
    missing
}

/// The strings that a thread's last call was given, by argument; none when that was another call than `nr`, since some
/// calls take no slot.
pub fn last_texts(task: &Task, nr: u64) -> [Option<CallText>; 6] {
    let call = task.calls().last().filter(|call| u64::from(call.nr) == nr);
    call.map_or([None; 6], |call| texts_of(task, &call))
}

/// What a thread's ring has seen.
pub fn counts(task: &Task) -> Counts {
    task.calls().counts()
}

fn of(task: &Task) -> SyscallRecord<'static> {
    SyscallRecord { pid: Some((task.ids() >> 32) as u32), tid: Some(task.ids() as u32), ..SyscallRecord::default() }
}

fn name(nr: u32) -> Option<&'static [u8]> {
    syscalls::by_number(u64::from(nr)).map(|call| call.name.as_bytes())
}

/// The string that each argument points at, as far as it is recorded.
fn texts_of(task: &Task, call: &Call) -> [Option<CallText>; 6] {
    let known = syscalls::by_number(u64::from(call.nr)).map_or(&[][..], |known| known.args);
    let points =
        |at: usize| known.get(at).is_some_and(|arg| matches!(arg.kind, ArgKind::Path | ArgKind::Str | ArgKind::Ptr));
    let addrs = core::array::from_fn(|at| points(at).then_some(call.args[at]));
    if addrs == [None; 6] { [None; 6] } else { task.calls().texts_at(call.index, addrs) }
}

fn with_texts<'t>(record: &mut SyscallRecord<'t>, texts: &'t [Option<CallText>; 6]) {
    let [a, b, c, d, e, f] = texts.each_ref().map(|text| text.as_ref().map(CallText::bytes));
    (record.text0, record.text1, record.text2, record.text3, record.text4, record.text5) = (a, b, c, d, e, f);
    let cut = |(at, text): (usize, &Option<CallText>)| u32::from(text.is_some_and(|text| text.is_cut())) << at;
    record.texts_cut = Some(texts.iter().enumerate().map(cut).sum()).filter(|cut| *cut != 0);
}

fn record(task: &Task, clock: &ClockParams, call: &Call) -> SyscallRecord<'static> {
    let known = syscalls::by_number(u64::from(call.nr)).map_or(6, |known| known.args.len());
    let arg = |n: usize| (n < known).then(|| call.args[n]);
    let ticks = call.done.map(|(exit, _)| exit.saturating_sub(call.entry));
    SyscallRecord {
        nr: Some(i64::from(call.nr)),
        name: name(call.nr),
        arg0: arg(0),
        arg1: arg(1),
        arg2: arg(2),
        arg3: arg(3),
        arg4: arg(4),
        arg5: arg(5),
        result: call.done.map(|(_, result)| result),
        duration_ns: ticks.map(|ticks| clock.nanoseconds(ticks)),
        duration_ticks: ticks,
        in_progress: call.done.is_none().then_some(true),
        index: Some(u64::from(call.index)),
        stamp: Stamp {
            cpu: Some(call.cpu),
            ns: Some(clock.nanoseconds(call.entry.saturating_sub(clock.base))),
            tsc: Some(call.entry),
            ..Stamp::default()
        },
        ..of(task)
    }
}
