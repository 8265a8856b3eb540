//! Sorts what the stubs catch: faults of programs, faults inside user copies, interrupts, and what the kernel cannot
//! survive.

use core::sync::atomic::Ordering;

use crate::addr::{USER_END, UserAddr};
use crate::hooks::hooks;
use crate::time;
use crate::trap::{Access, FatalKind, FatalTrap, Irq, PageFault, UserTrap};
use crate::x86_64::cpu::regs::{self, Control, Registers, TrapFrame, UserFrame};
use crate::x86_64::cpu::{features, irq, local, msr};
use crate::x86_64::interrupts::{apic, call, nmi, vectors};
use crate::x86_64::layout;
use crate::x86_64::memory::{stacks, stage};

const DEBUG: u64 = 1;
const NMI: u64 = 2;
const DOUBLE_FAULT: u64 = 8;
const PROTECTION: u64 = 13;
const PAGE: u64 = 14;
const MACHINE_CHECK: u64 = 18;

/// Page-fault error code bits.
const CODE_PRESENT: u64 = 1;
const CODE_WRITE: u64 = 2;
const CODE_USER: u64 = 4;
const CODE_FETCH: u64 = 16;

const RFLAGS_IF: u64 = 1 << 9;

/// A trap from user mode, interrupts off; returns into `return_to_user`.
pub(super) extern "C" fn from_user(vector: u64, frame: &mut UserFrame, code: u64) {
    close_user_access();
    // Looked at first: a jump by the table below takes longer, and most traps are page faults.
    if vector == PAGE {
        let fault = page_fault(msr::cr2(), code, frame.ip());
        irq::enable();
        // An access of the processor's own, to a descriptor table say, is not the program's: mapping would not help it.
        if code & CODE_USER == 0 || fault.addr.0 >= USER_END || !(hooks().user_fault)(&fault) {
            (hooks().user_trap)(frame, UserTrap::Page(fault));
        }
        return;
    }
    if vector >= 32 {
        return dispatch(vector as u8, true);
    }
    let trap = match vector {
        0 => UserTrap::Divide,
        DEBUG => UserTrap::Debug,
        3 => UserTrap::Breakpoint,
        4 | 5 => UserTrap::Overflow,
        6 => UserTrap::InvalidInstruction,
        12 => UserTrap::StackSegment,
        11 | PROTECTION => UserTrap::Protection { code },
        16 => UserTrap::FloatingPoint { simd: false },
        17 => UserTrap::Alignment,
        19 => UserTrap::FloatingPoint { simd: true },
        other => UserTrap::Other { vector: other as u8 },
    };
    irq::enable();
    (hooks().user_trap)(frame, trap);
}

fn page_fault(addr: u64, code: u64, ip: u64) -> PageFault {
    PageFault { addr: UserAddr(addr), access: access(code), present: code & CODE_PRESENT != 0, ip, code }
}

fn access(code: u64) -> Access {
    match code {
        c if c & CODE_FETCH != 0 => Access::Execute,
        c if c & CODE_WRITE != 0 => Access::Write,
        _ => Access::Read,
    }
}

/// A trap in kernel mode, interrupts off, on the current stack.
pub(super) extern "C" fn from_kernel(vector: u64, frame: &mut TrapFrame, code: u64) {
    close_user_access();
    if vector >= 32 {
        return dispatch(vector as u8, false);
    }
    let addr = if vector == PAGE { msr::cr2() } else { 0 };
    if matches!(vector, PAGE | PROTECTION)
        && let Some(resume) = fixup(frame.regs.rip)
    {
        let ask = vector == PAGE && addr < USER_END && frame.regs.rflags & RFLAGS_IF != 0 && may_fault();
        if ask && resolve(&page_fault(addr, code, frame.regs.rip)) {
            return;
        }
        frame.regs.rip = resume;
        return;
    }
    let kind = match vector {
        PAGE if stacks::is_guard(addr) => FatalKind::StackOverflow { addr },
        PAGE => FatalKind::PageFault { addr, access: access(code) },
        other => FatalKind::Exception { vector: other as u8 },
    };
    fatal(kind, &frame.regs, code, regs::control_here());
}

/// Run the handler of `vector`, which interrupted a program (`from_user`) or the kernel, in interrupt context,
/// interrupts off.
fn dispatch(vector: u8, from_user: bool) {
    if vector == vectors::SPURIOUS {
        return;
    }
    let local = local::here();
    local.from_user.store(from_user, Ordering::Relaxed);
    let depth = &local.irq_depth;
    depth.store(depth.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    apic::end_of_interrupt();
    match vector {
        vectors::TIMER => time::expired(),
        vectors::KICK => call::kicked(),
        v if v == vectors::LINES + vectors::CONSOLE_LINE => (hooks().interrupt)(Irq::Console),
        v => (hooks().interrupt)(Irq::Line(v.wrapping_sub(vectors::LINES))),
    }
    depth.store(depth.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
}

/// A program may have set AC, and a copy in the kernel does: neither may weaken SMAP in a handler. The interrupted code
/// gets it back with its flags.
#[inline]
fn close_user_access() {
    if features::has(features::Feature::Smap) {
        // SAFETY: CLAC exists with SMAP; it only takes access away.
        unsafe { core::arch::asm!("clac", options(nomem, nostack)) };
    }
}

/// Let the kernel resolve a fault of one of its own copies.
fn resolve(fault: &PageFault) -> bool {
    irq::enable();
    let resolved = (hooks().copy_fault)(fault);
    irq::disable();
    resolved
}

/// Whether the kernel may be asked: a lock or an interrupt handler below would deadlock or sleep.
fn may_fault() -> bool {
    let local = local::here();
    let busy = local.locks.load(Ordering::Relaxed)
        | local.irq_depth.load(Ordering::Relaxed)
        | local.no_fault.load(Ordering::Relaxed);
    busy == 0
}

fn fixup(ip: u64) -> Option<u64> {
    layout::fixups().iter().find(|pair| pair[0] == ip).map(|pair| pair[1])
}

fn fatal(kind: FatalKind, regs: &Registers, code: u64, control: Control) -> ! {
    // The stubs push -1 where the processor pushes nothing.
    let code = if code == u64::MAX { 0 } else { code };
    let in_user = regs.cs & 3 != 0;
    (hooks().fatal)(&FatalTrap { kind, registers: *regs, control, code, in_user })
}

/// NMI, double fault, machine check: on their own stacks, from anywhere. `gs_base` is what was in use there.
pub(super) extern "C" fn paranoid(vector: u64, frame: &mut TrapFrame, code: u64, gs_base: u64) {
    close_user_access();
    let control = || Control { gs_base, ..regs::control_here() };
    let fatal = |kind| fatal(kind, &frame.regs, code, control());
    match vector {
        // A second NMI while this processor handles the crash already.
        NMI if stage::is_mine() => {}
        // QEMU interrupts all processors at once: the first deals with it.
        NMI if nmi::stop_requested() || !stage::claim() => nmi::stop(&frame.regs, control()),
        NMI => fatal(FatalKind::Nmi),
        DOUBLE_FAULT if stacks::is_guard(msr::cr2()) => fatal(FatalKind::StackOverflow { addr: msr::cr2() }),
        DOUBLE_FAULT => fatal(FatalKind::DoubleFault),
        MACHINE_CHECK => fatal(FatalKind::MachineCheck),
        other => fatal(FatalKind::Exception { vector: other as u8 }),
    }
}

/// Return work was requested: clear the request, let the kernel do it. Interrupts are off before and after.
pub(super) extern "C" fn return_work(frame: &mut UserFrame) {
    local::here().work.store(0, Ordering::Relaxed);
    irq::enable();
    (hooks().return_work)(frame);
}

/// The program set an instruction pointer outside the canonical user half: what the processor would have said.
pub(super) extern "C" fn bad_ip(frame: &mut UserFrame) {
    irq::enable();
    (hooks().user_trap)(frame, UserTrap::Protection { code: 0 });
}
