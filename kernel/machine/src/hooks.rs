//! The kernel's methods as plain pointers, for code that cannot be generic, and what happens before there is a kernel.

use core::cell::UnsafeCell;
use core::panic::PanicInfo;

use crate::addr::FrameNumber;
use crate::cpu::CpuId;
use crate::irq::Irq;
use crate::note::Note;
use crate::trap::{FatalTrap, PageFault, UserTrap};
use crate::x86_64::regs::UserFrame;

/// One pointer per method of [`crate::Kernel`]. The system call's comes first: `entry` calls it.
#[repr(C)]
pub(crate) struct Hooks {
    pub syscall: extern "C" fn(&mut UserFrame, u64, u64),
    pub user_trap: fn(&mut UserFrame, UserTrap),
    pub user_fault: fn(&PageFault) -> bool,
    pub copy_fault: fn(&PageFault) -> bool,
    pub return_work: fn(&mut UserFrame),
    pub timer: fn(),
    pub interrupt: fn(Irq),
    pub kicked: fn(),
    pub note: fn(&Note),
    pub fatal: fn(&FatalTrap) -> !,
    pub panic: fn(&PanicInfo<'_>) -> !,
    pub ap_main: fn(CpuId) -> !,
    pub take_frames: fn(&mut [FrameNumber]) -> usize,
    pub give_frames: fn(&[FrameNumber]),
    pub take_block: fn(u8) -> Option<FrameNumber>,
    pub give_block: fn(FrameNumber, u8),
}

/// Where the pointers are.
#[repr(transparent)]
pub(crate) struct SharedHooks(UnsafeCell<Hooks>);

// SAFETY: written once, by `enter`, before a second processor runs.
unsafe impl Sync for SharedHooks {}

/// Until the kernel is found: nothing to allocate, and any trap is fatal.
pub(crate) static HOOKS: SharedHooks = SharedHooks(UnsafeCell::new(Hooks {
    syscall: early::syscall,
    user_trap: |_, _| {},
    user_fault: |_| false,
    copy_fault: |_| false,
    return_work: |_| {},
    timer: || {},
    interrupt: |_| {},
    kicked: || {},
    note: |_| {},
    fatal: early::fatal,
    panic: early::panic,
    ap_main: |_| crate::power::halt(),
    take_frames: |_| 0,
    give_frames: |_| {},
    take_block: |_| None,
    give_block: |_, _| {},
}));

/// Fill them in.
///
/// # Safety
/// One processor runs, interrupts are off, and nobody has called up yet.
pub(crate) unsafe fn set(hooks: Hooks) {
    // SAFETY: the caller's.
    unsafe { *HOOKS.0.get() = hooks };
}

/// The kernel's methods.
#[inline]
pub(crate) fn hooks() -> &'static Hooks {
    // SAFETY: see `SharedHooks`.
    unsafe { &*HOOKS.0.get() }
}

/// What happens before there is a kernel to ask: say so on the console, stop.
mod early {
    use core::fmt::Write;
    use core::panic::PanicInfo;

    use crate::arch::UserFrame;
    use crate::trap::FatalTrap;

    pub(super) extern "C" fn syscall(_: &mut UserFrame, _: u64, _: u64) {}

    pub(super) fn fatal(trap: &FatalTrap) -> ! {
        let _ = writeln!(crate::console::Writer, "machine: {:?} at {:#x}", trap.kind, trap.registers.rip);
        crate::power::halt()
    }

    pub(super) fn panic(info: &PanicInfo<'_>) -> ! {
        let _ = writeln!(crate::console::Writer, "machine: {info}");
        crate::power::halt()
    }
}
