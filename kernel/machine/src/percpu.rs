//! This processor: its number, its values, the work requested of it.

use core::sync::atomic::Ordering;

use crate::processor::{CpuId, MAX_CPUS};
use crate::x86_64::cpu::{irq, local};

/// This processor. Stable until the thread switches.
#[inline]
pub fn id() -> CpuId {
    local::id()
}

/// Ask that [`crate::Kernel::return_work`] be called before this processor next returns to user mode.
#[inline]
pub fn request_work() {
    local::here().work.store(1, Ordering::Release);
}

/// Whether that is requested (cleared by the call). Idle loops and long kernel loops look here.
#[inline]
pub fn work_requested() -> bool {
    local::here().work.load(Ordering::Acquire) != 0
}

/// Clear the request, reporting whether there was one.
#[inline]
pub fn take_work() -> bool {
    local::here().work.swap(0, Ordering::AcqRel) != 0
}

/// Wait for an interrupt, unless work is requested; interrupts are on afterwards. No wake-up is lost between the check
/// and the wait.
pub fn idle() {
    irq::disable();
    if work_requested() {
        irq::enable();
    } else {
        irq::enable_and_halt();
    }
}

/// A hint inside a spinning loop.
#[inline]
pub fn relax() {
    core::hint::spin_loop();
}

/// A value per processor. Shared references only: `T` brings its own interior mutability (atomics,
/// [`crate::sync::SpinLock`]).
pub struct PerCpu<T>([Line<T>; MAX_CPUS]);

/// Keeps neighbours off each other's cache line.
#[repr(align(64))]
struct Line<T>(T);

impl<T> PerCpu<T> {
    /// Bytes from one processor's value to the next one's.
    pub const STRIDE: usize = size_of::<Line<T>>();

    /// From one value each: `PerCpu::new([const { AtomicU64::new(0) }; MAX_CPUS])`.
    pub const fn new(values: [T; MAX_CPUS]) -> Self {
        let values = core::mem::ManuallyDrop::new(values);
        let mut lines = [const { core::mem::MaybeUninit::<Line<T>>::uninit() }; MAX_CPUS];
        let mut cpu = 0;
        while cpu < MAX_CPUS {
            // SAFETY: each element is moved out once, and the array is not dropped.
            lines[cpu].write(Line(unsafe { core::ptr::from_ref(&values).cast::<T>().add(cpu).read() }));
            cpu += 1;
        }
        // SAFETY: all elements were written.
        Self(unsafe { core::mem::transmute_copy::<[core::mem::MaybeUninit<Line<T>>; MAX_CPUS], _>(&lines) })
    }

    /// The running processor's value. The caller may migrate afterwards unless interrupts are off.
    #[inline]
    pub fn here(&self) -> &T {
        // SAFETY: processors are numbered below `MAX_CPUS` (`smp::start_others` starts no more).
        unsafe { &self.0.get_unchecked(local::index()).0 }
    }

    /// The value of processor `cpu`; panics if `cpu` is not below `MAX_CPUS`.
    #[inline]
    pub fn of(&self, cpu: CpuId) -> &T {
        &self.0[cpu.0 as usize].0
    }
}
