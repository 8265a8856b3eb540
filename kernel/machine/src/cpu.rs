//! Processors: who am I, who else runs, and how to get their attention.

use core::ops::Deref;

/// Most processors supported.
pub const MAX_CPUS: usize = 32;

/// A processor, numbered from 0 in the order they were found; 0 booted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct CpuId(pub u32);

/// A set of processors, bit n for processor n.
pub type CpuMask = u64;

/// This processor. Stable until the thread switches.
#[inline]
pub fn id() -> CpuId {
    todo!()
}

/// Processors that run.
pub fn online() -> CpuMask {
    todo!()
}

/// Start every other processor; each enters [`crate::Kernel::ap_main`]. Returns how many run now. Once, after the frame
/// allocator works.
pub fn start_others() -> u32 {
    todo!()
}

/// Ask that [`crate::Kernel::return_work`] be called before this processor next returns to user mode.
#[inline]
pub fn request_work() {
    todo!()
}

/// Whether that is requested (cleared by the call). Idle loops and long kernel loops look here.
#[inline]
pub fn work_requested() -> bool {
    todo!()
}

/// Clear the request, reporting whether there was one.
#[inline]
pub fn take_work() -> bool {
    todo!()
}

/// [`request_work`] for `cpu`, interrupting it so that it happens soon, also out of idle.
pub fn kick(cpu: CpuId) {
    let _ = cpu;
    todo!()
}

/// Wait for an interrupt, unless work is requested; interrupts are on afterwards. No wake-up is lost between the check and the
/// wait.
pub fn idle() {
    todo!()
}

/// Run `f` on every processor in `mask` in interrupt context (this one included if set), and wait until all did. `f` must be
/// short. Panics with interrupts off.
pub fn call(mask: CpuMask, f: &(dyn Fn() + Sync)) {
    let _ = (mask, f);
    todo!()
}

/// A hint inside a spinning loop.
#[inline]
pub fn relax() {
    core::hint::spin_loop();
}

/// Vendor and model strings and a few identification numbers, for `/proc/cpuinfo`.
#[derive(Clone, Copy, Debug)]
pub struct CpuInfo {
    /// Twelve letters.
    pub vendor: [u8; 12],
    /// Brand string, NUL-padded.
    pub model: [u8; 48],
    /// Family.
    pub family: u32,
    /// Model number.
    pub model_number: u32,
    /// Stepping.
    pub stepping: u32,
    /// The capability words for `AT_HWCAP` and `AT_HWCAP2`.
    pub hwcap: [u64; 2],
    /// Smallest stack for signals, for `AT_MINSIGSTKSZ`.
    pub min_signal_stack: usize,
}

/// Of this processor.
pub fn info() -> CpuInfo {
    todo!()
}

/// A value per processor. Shared references only: `T` brings its own interior mutability (atomics, [`crate::sync::SpinLock`]).
pub struct PerCpu<T>([Line<T>; MAX_CPUS]);

/// Keeps neighbours off each other's cache line.
#[repr(align(64))]
struct Line<T>(T);

impl<T> PerCpu<T> {
    /// From one value each: `PerCpu::new([const { AtomicU64::new(0) }; MAX_CPUS])`.
    pub const fn new(values: [T; MAX_CPUS]) -> Self {
        let values = core::mem::ManuallyDrop::new(values);
        let _ = &values;
        todo!()
    }

    /// This processor's.
    #[inline]
    pub fn here(&self) -> &T {
        self.of(id())
    }

    /// Another's.
    #[inline]
    pub fn of(&self, cpu: CpuId) -> &T {
        &self.0[cpu.0 as usize].0
    }
}

impl<T> Deref for PerCpu<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.here()
    }
}
