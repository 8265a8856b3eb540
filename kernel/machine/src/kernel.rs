//! The [`Kernel`] trait, through which traps and interrupts reach the kernel, and how its implementation is found.
//!
//! The kernel forbids unsafe code, and an exported symbol counts as unsafe; but `#[global_allocator]` is safe and makes
//! the compiler export one. So the kernel declares `#[global_allocator] static START: Start<MyKernel> = Start::new();`
//! and the boot code's first call to `alloc` lands in [`Start`] before any heap exists: that call enters
//! [`Kernel::main`]. Every later call is an ordinary allocation.

use alloc::alloc::{GlobalAlloc, Layout};
use alloc::sync::Arc;
use core::panic::PanicInfo;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::heap;
use crate::hooks::{self, Hooks, Kernel, hooks};
use crate::percpu;
use crate::processor::{CpuId, MAX_CPUS};
use crate::thread::{Current, NotParked, Thread};
use crate::x86_64::cpu::{irq, local};
use crate::x86_64::memory::thread::{Core, Leave, switch};

/// The kernel's handle to the machine, and its heap. One static, marked `#[global_allocator]`.
pub struct Start<K: Kernel> {
    /// The running thread of each processor. Kept here and not in the per-CPU block so that a thread of kernel `K` can
    /// only be reached through a `Start<K>` that really switched to it.
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
        match self.try_current() {
            Some(current) => current,
            None => no_thread(),
        }
    }

    /// The running thread and the processor it runs on, as of now.
    #[inline]
    pub fn current_here(&self) -> (Current<K::Task>, CpuId) {
        let cpu = local::index();
        match self.running(cpu) {
            Some(current) => (current, CpuId(cpu as u32)),
            None => no_thread(),
        }
    }

    /// The running thread, or `None` before [`enter`](Self::enter) on this processor. Safe anywhere, also while
    /// crashing.
    #[inline]
    pub fn try_current(&self) -> Option<Current<K::Task>> {
        self.running(local::index())
    }

    /// The thread of this processor, whose index is `here`.
    #[inline]
    fn running(&self, here: usize) -> Option<Current<K::Task>> {
        // SAFETY: processors are numbered below `MAX_CPUS` (`smp::start_others` starts no more).
        let slot = unsafe { self.current.get_unchecked(here) };
        let thread = NonNull::new(slot.load(Ordering::Relaxed))?;
        // SAFETY: the slot of this processor holds the thread whose stack we are on, which keeps itself alive.
        Some(unsafe { Current::new(thread) })
    }

    /// The running thread of any processor, for dumps; `None` for one that has not entered, and for another processor
    /// that is not stopped (see [`crate::crash::stop_others`]), since its thread might end while we look.
    pub fn current_of(&self, cpu: CpuId) -> Option<Current<K::Task>> {
        if cpu != percpu::id() && !crate::crash::is_stopped(cpu) {
            return None;
        }
        let thread = NonNull::new(self.current.get(cpu.0 as usize)?.load(Ordering::Acquire))?;
        // SAFETY: a stopped processor never runs again, so its thread lives as long as anything does.
        Some(unsafe { Current::new(thread) })
    }

    /// Leave the boot stack for `first`, for good: what each processor's `main` ends with. Turns interrupts on.
    pub fn enter(&self, first: Arc<Thread<K::Task>>) -> ! {
        irq::disable();
        assert!(self.try_current().is_none(), "entered twice");
        let Ok(core) = self.claim(&first) else { panic!("the first thread is not parked") };
        drop(first);
        // SAFETY: claimed for this processor, whose boot stack is left for good.
        unsafe { switch(core, Leave::Boot) };
        unreachable!("the boot stack was resumed")
    }

    /// Run `next` on this processor in place of the current thread; returns when a processor switches back to it, maybe
    /// another one. Interrupts are as before. `next` being the current thread is a no-op.
    ///
    /// The thread switched from is *parked* once its registers are saved, an instant after another thread runs; until
    /// then it cannot be resumed, and this returns [`NotParked`] instead of spinning, since two processors waiting
    /// for each other's thread would never stop. Rule for wake-ups: put a thread that is not
    /// [parked](Thread::is_parked) on the queue of the processor it last ran on ([`Thread::last_cpu`]).
    ///
    /// Panics with a spin lock held or in interrupt context.
    #[inline]
    pub fn switch_to(&self, next: &Arc<Thread<K::Task>>) -> Result<(), NotParked> {
        let _off = crate::irq::off();
        if self.current().is(next) {
            return Ok(());
        }
        let core = self.claim(next)?;
        // SAFETY: claimed for this processor; interrupts are off.
        unsafe { switch(core, Leave::Parked) };
        Ok(())
    }

    /// Like [`switch_to`](Self::switch_to), and the current thread never runs again: its stack is released after the
    /// switch, its `Arc` dropped in the context of `next`. Spins while `next` is not parked.
    pub fn exit_to(&self, next: Arc<Thread<K::Task>>) -> ! {
        irq::disable();
        assert!(!self.current().is(&next), "a thread cannot exit to itself");
        let core = loop {
            match self.claim(&next) {
                Ok(core) => break core,
                Err(NotParked) => percpu::relax(),
            }
        };
        // Nothing on this stack is dropped any more. The thread owns itself now.
        drop(next);
        // SAFETY: claimed for this processor; interrupts are off; this thread is not resumed, since it is not parked
        // again.
        unsafe { switch(core, Leave::Dead) };
        unreachable!("a dead thread was resumed")
    }

    /// Take `next` out of the parked state and enter it as this processor's current thread; the caller switches at
    /// once. Interrupts are off.
    #[inline]
    fn claim(&self, next: &Arc<Thread<K::Task>>) -> Result<*const Core, NotParked> {
        let local = local::here();
        let busy = local.locks.load(Ordering::Relaxed)
            | local.irq_depth.load(Ordering::Relaxed)
            | local.no_fault.load(Ordering::Relaxed);
        assert!(busy == 0, "switch with a lock held or in interrupt context");
        if !next.core().claim(percpu::id()) {
            return Err(NotParked);
        }
        next.core().own(|| Arc::clone(next).into_reference());
        // The thread keeps itself alive while it runs, so the pointer outlives its use.
        self.current[percpu::id().0 as usize % MAX_CPUS].store(Arc::as_ptr(next).cast_mut(), Ordering::Release);
        Ok(core::ptr::from_ref(next.core()))
    }
}

#[cold]
#[inline(never)]
fn no_thread() -> ! {
    panic!("no thread runs on this processor yet")
}

// SAFETY: allocations are disjoint, aligned and as large as asked; see `heap`.
unsafe impl<K: Kernel> GlobalAlloc for Start<K> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match heap::alloc_fast(layout) {
            Some(at) => at,
            None => alloc_slow::<K>(layout),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { heap::dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's: `size` is not 0 and does not overflow with the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if heap::same_block(at, layout, wanted) {
            return at;
        }
        // SAFETY: a fresh allocation and the caller's old one, which is released after the copy.
        unsafe {
            let to = self.alloc(wanted);
            if !to.is_null() {
                at.copy_to_nonoverlapping(to, layout.size().min(size));
                self.dealloc(at, layout);
            }
            to
        }
    }
}

/// No magazine could serve it. The very first time there are no magazines: that is boot calling for the kernel.
#[cold]
#[inline(never)]
fn alloc_slow<K: Kernel>(layout: Layout) -> *mut u8 {
    if !ENTERED.load(Ordering::Relaxed) {
        ENTERED.store(true, Ordering::Relaxed);
        enter::<K>();
    }
    heap::alloc_slow(layout)
}

static ENTERED: AtomicBool = AtomicBool::new(false);

/// Find the kernel and run it: never returns. Boot calls this with everything ready but [`Kernel::main`].
pub(crate) fn find_and_enter() -> ! {
    // SAFETY: the layout has a size. This is the first allocation, so this call is the one that enters.
    let at = unsafe { alloc::alloc::alloc(Layout::new::<u64>()) };
    unreachable!("no kernel was declared: the heap gave {at:?}")
}

fn enter<K: Kernel>() -> ! {
    // SAFETY: one processor runs, interrupts are off, and nothing has called up yet but boot itself.
    unsafe { hooks::set(Hooks::of::<K>()) };
    K::main()
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    irq::disable();
    (hooks().panic)(info)
}
