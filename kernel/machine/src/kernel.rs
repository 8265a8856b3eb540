//! How this crate finds the kernel, and everything it calls up for.
//!
//! The kernel forbids unsafe code, and an exported symbol counts as unsafe; but `#[global_allocator]` is safe and makes the
//! compiler export one. So the kernel declares `#[global_allocator] static START: Start<MyKernel> = Start::new();` and the
//! boot code's first call to `alloc` lands in [`Start`] before any heap exists: that call enters [`Kernel::main`].
//! Every later call is an ordinary allocation.

use alloc::alloc::{GlobalAlloc, Layout};
use alloc::sync::Arc;
use core::panic::PanicInfo;
use core::sync::atomic::AtomicPtr;

use crate::addr::FrameNumber;
use crate::boot::BootInfo;
use crate::cpu::{CpuId, MAX_CPUS};
use crate::irq::Irq;
use crate::thread::{Current, NotParked, Thread};
use crate::trap::{FatalTrap, PageFault, UserTrap};
use crate::x86_64::regs::UserFrame;

/// The kernel, as the machine sees it. All methods may be called on any processor at any time after
/// [`main`](Kernel::main) was entered, within what each one says.
///
/// *Thread context*: on a thread's kernel stack, interrupts on, may switch. *Interrupt context*: interrupts off, must
/// not switch (it panics); allocation works but takes the slow path.
pub trait Kernel: Sized + Sync + 'static {
    /// What the kernel keeps per thread; wrapped in [`Thread`], which derefs to it.
    type Task: Send + Sync + 'static;

    /// Entered once, on the first processor, on the boot stack, interrupts off, one processor running. Frames may be
    /// claimed once this has told its allocator of `boot.free`; ends in [`Start::enter`].
    fn main(boot: BootInfo) -> !;

    /// Entered once per further processor, interrupts off, on its idle stack; ends in [`Start::enter`].
    fn ap_main(cpu: CpuId) -> !;

    /// A system call. Thread context. The result goes into `frame`.
    fn syscall(frame: &mut UserFrame);

    /// An exception in user mode that is the program's doing, including page faults nobody resolved. Thread context.
    fn user_trap(frame: &mut UserFrame, trap: UserTrap);

    /// A page fault in user mode: map something and return `true` to retry, or `false` to get
    /// [`UserTrap::Page`]. Thread context.
    fn user_fault(fault: &PageFault) -> bool;

    /// A page fault on a user address inside one of the copies of [`crate::user`]. `true` retries; `false` makes the copy
    /// return its error. Thread context; not called while this processor holds a spin lock (the copy fails instead).
    fn copy_fault(fault: &PageFault) -> bool;

    /// Called on the way back to user mode when [`crate::cpu::request_work`] was called for this processor (signals,
    /// rescheduling), and always before a new user thread's first instruction. Thread context. The request is already
    /// cleared; it is called again until nothing is requested.
    fn return_work(frame: &mut UserFrame);

    /// This processor's one-shot timer expired. Interrupt context.
    fn timer();

    /// A device interrupt. Interrupt context.
    fn interrupt(irq: Irq);

    /// Another processor called [`crate::cpu::kick`], or a call was queued, while this one was in the kernel or idle.
    /// Interrupt context. The work request is already set; most kernels do nothing here.
    fn kicked() {}

    /// A kernel-mode exception, a non-maskable interrupt or a machine check. Never returns. Interrupts off, on whichever
    /// stack the exception has (double faults have their own).
    fn fatal(trap: &FatalTrap) -> !;

    /// A Rust panic.
    fn panic(info: &PanicInfo<'_>) -> !;

    /// Fill `out` with free single frames, return how many (0: out of memory). Any context.
    fn take_frames(out: &mut [FrameNumber]) -> usize;

    /// Single frames nobody references any more. Any context.
    fn give_frames(frames: &[FrameNumber]);

    /// A free block of `2^order` frames aligned to its size. Any context.
    fn take_block(order: u8) -> Option<FrameNumber>;

    /// A block nobody references any more. Any context.
    fn give_block(first: FrameNumber, order: u8);
}

/// The kernel's handle to the machine, and its heap. One static, marked `#[global_allocator]`.
pub struct Start<K: Kernel> {
    /// The running thread of each processor. Kept here and not in the per-CPU block so that a thread of kernel `K` can only
    /// be reached through a `Start<K>` that really switched to it.
    current: [AtomicPtr<Thread<K::Task>>; MAX_CPUS],
}

impl<K: Kernel> Start<K> {
    /// The one value, for the static.
    #[expect(clippy::new_without_default, reason = "a second Start would be a mistake")]
    pub const fn new() -> Self {
        Self { current: [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_CPUS] }
    }

    /// The running thread; panics before [`enter`](Self::enter).
    #[inline]
    pub fn current(&self) -> Current<K::Task> {
        todo!()
    }

    /// The running thread, or `None` before [`enter`](Self::enter) on this processor. Safe anywhere, also while crashing.
    pub fn try_current(&self) -> Option<Current<K::Task>> {
        todo!()
    }

    /// The running thread of any processor, for dumps: `None` if that one is idle before `enter`. The reference is only
    /// taken when the processor is stopped (see [`crate::crash`]) or is this one.
    pub fn current_of(&self, cpu: CpuId) -> Option<Current<K::Task>> {
        let _ = cpu;
        todo!()
    }

    /// Leave the boot stack for `first`, for good: what each processor's `main` ends with. Turns interrupts on.
    pub fn enter(&self, first: Arc<Thread<K::Task>>) -> ! {
        let _ = first;
        todo!()
    }

    /// Run `next` on this processor in place of the current thread; returns when somebody switches back to it, maybe on
    /// another processor. Interrupts are as before. `next` being the current thread is a no-op.
    ///
    /// The thread switched from is *parked* once its registers are saved, an instant after another thread runs; until
    /// then nobody else may resume it, and this returns [`NotParked`] instead of spinning, since two processors waiting
    /// for each other's thread would never stop. Rule for wake-ups: put a thread that is not
    /// [parked](Thread::is_parked) on the queue of the processor it last ran on ([`Thread::last_cpu`]).
    ///
    /// Panics with a spin lock held or in interrupt context.
    pub fn switch_to(&self, next: &Arc<Thread<K::Task>>) -> Result<(), NotParked> {
        let _ = next;
        todo!()
    }

    /// Like [`switch_to`](Self::switch_to), and the current thread never runs again: its stack is released after the switch,
    /// its `Arc` dropped in the context of `next`. Spins while `next` is not parked.
    pub fn exit_to(&self, next: &Arc<Thread<K::Task>>) -> ! {
        let _ = next;
        todo!()
    }
}

// SAFETY: allocations are disjoint, aligned and as large as asked; see `heap`.
unsafe impl<K: Kernel> GlobalAlloc for Start<K> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = (layout, &self.current);
        todo!()
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let _ = (at, layout);
        todo!()
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let _ = info;
    crate::power::halt()
}
