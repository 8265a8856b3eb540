//! The names by which a lower layer reaches the layers above it: the kernel as the machine sees it, and its threads.
//!
//! A layer states in a trait of its own what it needs from above: of a thread (as `trace::Traced`), or of the kernel as
//! a whole (as `trace::Fatal`). [`Task`] and [`Kwab`] implement these traits; a lower layer calls nothing else of them.
//! Calls are resolved at compile time: nothing is registered at boot, and none goes through a pointer.

use alloc::sync::Arc;

use machine::cpu::CpuId;
use machine::thread::Current;
use machine::{Kernel, Start};

/// This kernel, as the machine sees it.
pub struct Kwab;

/// The machine's handle, and the heap.
#[global_allocator]
pub static START: Start<Kwab> = Start::new();

/// What the kernel keeps per thread: `task::Task`.
pub type Task = <Kwab as Kernel>::Task;
/// A machine thread carrying a [`Task`].
pub type Thread = machine::thread::Thread<Task>;
/// A counted reference to one.
pub type ThreadRef = Arc<Thread>;

/// The running thread.
#[inline(always)]
pub fn current() -> Current<Task> {
    START.current()
}

/// The running thread and its processor.
pub fn current_here() -> (Current<Task>, CpuId) {
    START.current_here()
}

/// The running thread, or `None` while this processor boots.
pub fn try_current() -> Option<Current<Task>> {
    START.try_current()
}
