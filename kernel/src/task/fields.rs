//! Where a thread's facts lie, counted from its [`Thread`], for readers of memory ([`machine::describe`]).
//!
//! `process.…` counts from a [`Process`], `memory.…` from an [`AddressSpace`], `space.…` from the machine's space. What
//! an `Arc` points to has its value behind two counts; the step `outside` of the tests holds that against what a
//! running kernel says of itself, and so the layout of maps in [`tree`](super::tree).

use alloc::sync::Arc;
use core::mem::offset_of;

use machine::arch::UserFrame;
use machine::describe::Entry;
use machine::space::UserSpace;
use machine::sync::SpinLock;

use super::process::family::Family;
use super::process::{Life, ProcessSignals};
use super::signal::ThreadSignals;
use super::{OptionSlot, PendingSignals, Process, Task, Thread};
use crate::mm::AddressSpace;
use crate::sched::SchedState;
use crate::trace::ring::Calls;

/// The machine's part of a thread.
pub static STAND: [Entry; 7] = Thread::FIELDS;
/// The user registers at the top of its stack.
pub static FRAME: [Entry; 4] = UserFrame::FIELDS;
/// The scheduler's part.
pub static SCHED: [Entry; 11] = SchedState::fields(Thread::DATA + offset_of!(Task, sched));

/// The value of a slot of memory: a pointer, or 0.
const MEMORY: usize = offset_of!(OptionSlot<AddressSpace>, 0) + SpinLock::<Option<Arc<AddressSpace>>>::VALUE;
const PENDING: usize = offset_of!(ThreadSignals, pending) + PendingSignals::SET;
const OF_PROCESS: usize = offset_of!(Process, signals) + offset_of!(ProcessSignals, pending) + PendingSignals::SET;

/// A thread's ring of calls, `calls.…` and `texts.…` behind it; a value of 0 where the kernel has no recorders.
pub static CALLS: [Entry; 2] = [
    Entry::number("task.calls", Thread::DATA + offset_of!(Task, calls) + Calls::OFFSETS.0),
    Entry::number("calls.value", Calls::OFFSETS.1),
];

/// What else a thread has and leads to.
pub static FIELDS: [Entry; 14] = [
    Entry::number("task.ids", Thread::DATA + offset_of!(Task, ids)),
    Entry::number("task.process", Thread::DATA + offset_of!(Task, process)),
    Entry::number("task.name", Thread::DATA + offset_of!(Task, name) + SpinLock::<[u8; 16]>::VALUE),
    Entry::number("task.memory", Thread::DATA + offset_of!(Task, mm) + MEMORY),
    Entry::number("task.pending", Thread::DATA + offset_of!(Task, signals) + PENDING),
    Entry::number("task.blocked", Thread::DATA + offset_of!(Task, signals) + ThreadSignals::BLOCKED),
    Entry::number("arc.value", 2 * size_of::<usize>()),
    Entry::number("process.pid", offset_of!(Process, pid)),
    Entry::number("process.parent", offset_of!(Process, family) + Family::PARENT),
    Entry::number("process.gone", offset_of!(Process, life) + Life::GONE),
    Entry::number("process.pending", OF_PROCESS),
    Entry::number("memory.space", offset_of!(AddressSpace, space)),
    Entry::number("space.root", UserSpace::ROOT),
    Entry::number("space.frame_size", machine::addr::PAGE_SIZE),
];
