//! Threads: a kernel stack, saved registers, FPU state, and the kernel's own data.
//!
//! States: *parked* (registers saved, anybody may resume it), *running* on one processor, *dead*. Only
//! [`Start::switch_to`](crate::Start::switch_to) moves between them, by atomic exchange, so a thread never runs twice at once
//! whatever the scheduler believes.
//!
//! The FPU state is saved when a user thread is switched from and loaded only when the registers hold another thread's;
//! kernel code never uses those registers without restoring them itself.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::cpu::CpuId;
use crate::frame::OutOfFrames;
use crate::space::UserSpace;
use crate::x86_64::regs::UserFrame;

/// Bytes of a kernel stack; below it lies an unmapped guard page.
pub const KERNEL_STACK_SIZE: usize = 32 * 1024;

/// A thread with the kernel's data `T` (which it derefs to).
pub struct Thread<T> {
    data: T,
}

/// The thread to resume was not parked: it runs, or is being switched from, or is dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotParked;

/// How a user thread begins.
pub struct UserStart<'a> {
    /// Its user registers at the first return to user mode.
    pub frame: &'a UserFrame,
    /// Thread pointer (FS base on x86-64).
    pub tls: u64,
    /// Begin with a copy of the running thread's FPU state (fork, clone), or a fresh one.
    pub fpu: FpuStart,
}

/// Where a new thread's FPU state comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FpuStart {
    /// The architecture's initial state.
    Fresh,
    /// A copy of the running thread's.
    Inherit,
}

impl<T: Send + Sync + 'static> Thread<T> {
    /// A parked thread that will run `entry` in the kernel; `entry` must end in [`crate::Start::exit_to`] (returning panics).
    pub fn kernel(data: T, entry: fn() -> !) -> Result<Arc<Self>, OutOfFrames> {
        let _ = (data, entry);
        todo!()
    }

    /// A parked thread that will call [`crate::Kernel::return_work`] and then go to user mode.
    pub fn user(data: T, start: &UserStart<'_>) -> Result<Arc<Self>, OutOfFrames> {
        let _ = (data, start);
        todo!()
    }

    /// Whether `switch_to` would take it now.
    pub fn is_parked(&self) -> bool {
        todo!()
    }

    /// The processor it runs on or last ran on.
    pub fn last_cpu(&self) -> CpuId {
        todo!()
    }

    /// The space to activate when this thread is switched to; `None` deactivates. If the thread is the running one the
    /// processor changes at once. The old space is released.
    pub fn set_space(&self, space: Option<Arc<UserSpace>>) {
        let _ = space;
        todo!()
    }

    /// Bounds `[lowest, top)` of its kernel stack, for dumps.
    pub fn stack(&self) -> (u64, u64) {
        todo!()
    }

    /// Where it will continue: kernel instruction pointer, stack pointer, frame pointer. Meaningful when parked.
    pub fn resume_point(&self) -> ResumePoint {
        todo!()
    }

    /// The user registers saved at its last entry to the kernel, if it has user mode at all. Of a running thread this is a
    /// torn snapshot, good enough for a dump.
    pub fn user_frame(&self) -> Option<UserFrame> {
        todo!()
    }
}

/// Where a parked thread continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResumePoint {
    /// Instruction.
    pub ip: u64,
    /// Stack.
    pub sp: u64,
    /// Frame pointer, the start of a walk.
    pub fp: u64,
}

impl<T> Deref for Thread<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.data
    }
}

/// The running thread, borrowed for as long as this kernel stack runs: cannot be sent to another thread.
pub struct Current<T> {
    thread: NonNull<Thread<T>>,
    _this_stack_only: PhantomData<*mut ()>,
}

impl<T> Current<T> {
    /// An owned reference that may go anywhere.
    #[inline]
    pub fn to_arc(&self) -> Arc<Thread<T>> {
        todo!()
    }
}

impl<T> Deref for Current<T> {
    type Target = Thread<T>;

    #[inline]
    fn deref(&self) -> &Thread<T> {
        let _ = self.thread;
        todo!()
    }
}

impl<T> Clone for Current<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Current<T> {}

/// Of the running thread.
pub mod running {
    /// Its thread pointer (FS base on x86-64).
    pub fn tls() -> u64 {
        todo!()
    }

    /// Set it.
    pub fn set_tls(base: u64) {
        let _ = base;
        todo!()
    }

    /// The second user segment base (GS on x86-64), for `arch_prctl`.
    pub fn second_base() -> u64 {
        todo!()
    }

    /// Set it. A non-canonical value is refused.
    pub fn set_second_base(base: u64) -> Result<(), super::BadState> {
        let _ = base;
        todo!()
    }

    /// Back to the architecture's initial FPU state (exec).
    pub fn reset_fpu() {
        todo!()
    }

    /// Bytes [`save_fpu`] writes.
    pub fn fpu_size() -> usize {
        todo!()
    }

    /// Write the FPU state as a signal frame wants it (x86-64: the XSAVE image with the software-reserved bytes filled in, as
    /// Linux does, without the trailing magic). Returns bytes written; `to` must hold [`fpu_size`] bytes.
    pub fn save_fpu(to: &mut [u8]) -> usize {
        let _ = to;
        todo!()
    }

    /// Load a state a program may have made up: validated, so that nothing faults; on an invalid image nothing changes.
    pub fn load_fpu(from: &[u8]) -> Result<(), super::BadState> {
        let _ = from;
        todo!()
    }

    /// Bytes left on this kernel stack.
    pub fn stack_left() -> usize {
        todo!()
    }
}

/// A register image the processor would refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadState;
