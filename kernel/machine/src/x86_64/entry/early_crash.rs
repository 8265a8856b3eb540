//! Reports a crash before there is a kernel: the text that the kernel's own crash path writes, without a process and
//! without a dump.

use core::fmt::{Arguments, Write};
use core::panic::{Location, PanicInfo};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::trap::{FatalKind, FatalTrap};
use crate::x86_64::cpu::regs::{self, Registers};
use crate::x86_64::memory::stacks;
use crate::{boot, console, power};

/// Most return addresses shown.
const FRAMES: usize = 32;

/// A report has begun: a crash inside it only halts.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Reports an exception in boot's code with the registers of that moment.
pub(super) fn fatal(trap: &FatalTrap) -> ! {
    let addr = match trap.kind {
        FatalKind::PageFault { addr, .. } | FatalKind::StackOverflow { addr } => Some(addr),
        _ => None,
    };
    report(format_args!("{trap}"), None, &trap.registers, addr)
}

/// Reports a panic of boot's code with its source location.
pub(super) fn panic(info: &PanicInfo<'_>) -> ! {
    report(format_args!("{}", info.message()), info.location(), &regs::registers_here(), None)
}

fn report(what: Arguments<'_>, at: Option<&Location<'_>>, registers: &Registers, fault: Option<u64>) -> ! {
    if !BEGUN.swap(true, Relaxed) {
        // The console takes everything.
        let _ = write(&mut console::Writer, what, at, registers, fault);
    }
    power::halt()
}

fn write(
    to: &mut impl Write,
    what: Arguments<'_>,
    at: Option<&Location<'_>>,
    registers: &Registers,
    fault: Option<u64>,
) -> core::fmt::Result {
    write!(to, "\n[PANIC] CPU=0")?;
    if let Some(at) = at {
        write!(to, " at {}:{}", at.file(), at.line())?;
    }
    writeln!(to, "\n{what}\n{registers}\n{}", boot::Image)?;
    if let Some(fault) = fault {
        writeln!(to, "CR2 (fault vaddr) = {fault:016x}")?;
    }
    let callers = callers(registers.rbp);
    core::iter::once(registers.rip)
        .chain(callers)
        .take(FRAMES)
        .enumerate()
        .try_for_each(|(index, addr)| writeln!(to, "{index}: {addr:016x}"))
}

/// Return addresses of the frames on the boot stack from frame pointer `fp` outwards. Other memory is not read: the
/// tables that say what is mapped may not be there yet.
fn callers(fp: u64) -> impl Iterator<Item = u64> {
    let (low, high) = stacks::boot_bounds();
    let mut fp = fp;
    core::iter::from_fn(move || {
        let inside = (low..high - 15).contains(&fp) && fp.is_multiple_of(8);
        let at = inside.then_some(fp as *const [u64; 2])?;
        // SAFETY: inside the boot stack, which is always mapped, and aligned.
        let [next, ip] = unsafe { at.read_volatile() };
        fp = if next > fp { next } else { 0 };
        (ip != 0).then_some(ip)
    })
}
