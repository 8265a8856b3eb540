//! Threads: a kernel stack, saved registers, FPU state, and the kernel's own data.
//!
//! States: *parked* (registers saved, any processor may resume it), *running* on one processor, *dead*. Only
//! [`Start::switch_to`](crate::Start::switch_to) moves between them, by atomic exchange, so a thread never runs twice
//! at once whatever the scheduler believes.
//!
//! The FPU state is saved when a user thread is switched from and loaded only when the registers hold another thread's;
//! kernel code never uses those registers without restoring them itself.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::describe::Entry;
use crate::frame::OutOfFrames;
use crate::processor::CpuId;
use crate::space::UserSpace;
use crate::x86_64::cpu::regs::UserFrame;
use crate::x86_64::memory::thread::Core;

pub mod running;

pub use crate::x86_64::memory::stacks::KERNEL_STACK_SIZE;

/// Bytes of kernel stacks that no thread uses and that are kept for the next ones.
pub fn idle_stack_bytes() -> usize {
    crate::x86_64::memory::stacks::idle() * KERNEL_STACK_SIZE
}

/// Frees the kernel stacks of ended threads, but for a few, if there are many. Thread context, no lock held.
#[inline]
pub fn trim_stacks() {
    crate::x86_64::memory::stacks::trim_batch();
}

/// A thread with the kernel's data `T` (which it derefs to).
pub struct Thread<T> {
    core: Core,
    data: T,
}

/// The thread to resume was not parked: it runs, or is being switched from, or is dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotParked;

/// How a user thread begins.
pub struct UserStart<'a> {
    /// Its user registers at the first return to user mode.
    pub frame: &'a UserFrame,
    /// Thread pointer (FS base on x86-64); a non-canonical one is taken as 0.
    pub tls: u64,
    /// Begin with a copy of the running thread's FPU state (fork, clone), or a fresh one.
    pub fpu: FpuStart,
    /// The address space it runs in.
    pub space: Option<Arc<UserSpace>>,
}

/// Where a new thread's FPU state and second segment base come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FpuStart {
    /// The architecture's initial state, and 0.
    Fresh,
    /// A copy of the running thread's.
    Inherit,
}

impl<T: Send + Sync + 'static> Thread<T> {
    /// A parked thread that will run `entry` in the kernel; `entry` ends in [`crate::Start::exit_to`] or never.
    pub fn kernel(data: T, entry: fn() -> !) -> Result<Arc<Self>, OutOfFrames> {
        Ok(Arc::new(Self { core: Core::kernel(entry, release::<T>)?, data }))
    }

    /// A parked thread that will call [`crate::Kernel::return_work`] and then go to user mode.
    pub fn user(data: T, start: &UserStart<'_>) -> Result<Arc<Self>, OutOfFrames> {
        let inherit = start.fpu == FpuStart::Inherit;
        let tls = if running::is_canonical_user(start.tls) { start.tls } else { 0 };
        let thread = Arc::new(Self { core: Core::user(start.frame, inherit, tls, release::<T>)?, data });
        if let Some(space) = &start.space {
            thread.set_space(Some(Arc::clone(space)));
        }
        Ok(thread)
    }
}

impl<T> Thread<T> {
    /// Offset of the kernel's data.
    pub const DATA: usize = offset_of!(Self, data);
    /// Where its stack and its registers stand.
    pub const FIELDS: [Entry; 7] = Core::fields(offset_of!(Self, core));

    /// Whether `switch_to` would take it now.
    #[inline]
    pub fn is_parked(&self) -> bool {
        self.core.is_parked()
    }

    /// The processor it runs on or last ran on.
    #[inline]
    pub fn last_cpu(&self) -> CpuId {
        self.core.last_cpu()
    }

    /// The space to activate when this thread is switched to; `None` deactivates. If the thread is the running one the
    /// processor changes at once. The old space is released. Panics for a thread that runs on another processor.
    pub fn set_space(&self, space: Option<Arc<UserSpace>>) {
        self.core.set_space(space);
    }

    /// Bounds `[lowest, top)` of its kernel stack, for dumps.
    pub fn stack(&self) -> (u64, u64) {
        self.core.stack_bounds()
    }

    /// Where it will continue: meaningful when parked, else zeros or stale.
    pub fn resume_point(&self) -> ResumePoint {
        let ([ip, sp, fp], saved) = self.core.resume_point();
        ResumePoint { ip, sp, fp, saved }
    }

    /// The user registers saved at its last entry to the kernel, if it has user mode at all. Of a running thread this
    /// is a torn snapshot, good enough for a dump; for the running thread's own, the handler was given them.
    pub fn user_frame(&self) -> Option<UserFrame> {
        let at = self.core.frame_address()?;
        let mut bytes = [0; size_of::<UserFrame>()];
        (crate::crash::probe_read(at, &mut bytes) == bytes.len()).then(|| UserFrame::from_bytes(&bytes))
    }

    #[inline]
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }
}

/// Where a parked thread continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResumePoint {
    /// The instruction at which the thread resumes.
    pub ip: u64,
    /// The stack pointer it resumes with.
    pub sp: u64,
    /// Frame pointer, the start of a walk.
    pub fp: u64,
    /// RBX and R12 to R15, which the switch saved too.
    pub saved: [u64; 5],
}

impl<T> Thread<T> {
    /// Another reference, for the thread itself to own.
    pub(crate) fn into_reference(self: Arc<Self>) -> *const () {
        Arc::into_raw(self).cast()
    }
}

impl<T> Deref for Thread<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.data
    }
}

/// Give up the reference a thread owned to itself.
///
/// # Safety
/// `thread` came from [`Thread::into_reference`], and is used once.
unsafe fn release<T>(thread: *const ()) {
    // SAFETY: the caller's.
    drop(unsafe { Arc::from_raw(thread.cast::<Thread<T>>()) });
}

/// The running thread, borrowed for as long as this kernel stack runs: cannot be sent to another thread.
pub struct Current<T> {
    thread: NonNull<Thread<T>>,
    _this_stack_only: PhantomData<*mut ()>,
}

impl<T> Current<T> {
    /// # Safety
    /// `thread` runs on this stack, or is stopped for ever.
    #[inline]
    pub(crate) unsafe fn new(thread: NonNull<Thread<T>>) -> Self {
        Self { thread, _this_stack_only: PhantomData }
    }

    /// Whether `thread` is this one.
    #[inline]
    pub fn is(&self, thread: &Arc<Thread<T>>) -> bool {
        core::ptr::eq(self.thread.as_ptr(), Arc::as_ptr(thread))
    }

    /// An owned reference that may go anywhere.
    #[inline]
    pub fn to_arc(&self) -> Arc<Thread<T>> {
        // SAFETY: a running thread lives in an `Arc` and owns one reference to it; this adds another.
        unsafe {
            Arc::increment_strong_count(self.thread.as_ptr());
            Arc::from_raw(self.thread.as_ptr())
        }
    }
}

impl<T> Deref for Current<T> {
    type Target = Thread<T>;

    #[inline]
    fn deref(&self) -> &Thread<T> {
        // SAFETY: this value stays on the thread's own stack, and the thread owns itself while it runs.
        unsafe { self.thread.as_ref() }
    }
}

impl<T> Clone for Current<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Current<T> {}

/// A register image the processor would refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadState;
