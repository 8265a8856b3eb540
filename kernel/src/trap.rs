//! Traps from user mode besides calls: page faults, exceptions, and the work before each exit to user mode.

use core::sync::atomic::Ordering;

use kernel_logic::signal::{SigInfo, code, sig};
use linux_abi::signals::FPE_FLTINV;
use machine::arch::UserFrame;
use machine::trap::{PageFault, UserTrap};

use crate::mm::fault::Unresolved;
use crate::task::signal;
use crate::task::{current, memory, rseq};
use crate::trace::span::{Id, span_with};
use crate::trace::{self, Category};
use crate::user::UserPtr;
use crate::{boot, sched};

/// A page fault of a program or of a copy on its behalf: whether it may try again.
pub fn page_fault(page: &PageFault) -> bool {
    let _span = span_with(Id::PageFault, page.addr.0);
    let me = current();
    trace::flight::page_fault(&me, page.addr.0, page.ip, page.code);
    let outcome = memory::resolve(&me, page.addr.0, page.access);
    if trace::is_on(Category::Fault) {
        let reason = match outcome {
            Ok(()) => "demand",
            Err(Unresolved::NotMapped) => "not_mapped",
            Err(Unresolved::Forbidden) => "forbidden",
            Err(Unresolved::Beyond) => "beyond_file",
            Err(Unresolved::OutOfMemory) => "out_of_memory",
        };
        trace::event::page_fault(page.addr.0, page.ip, reason, outcome.is_ok());
    }
    outcome.is_ok()
}

/// An exception of a program becomes its signal.
pub fn user(frame: &mut UserFrame, trap: &UserTrap) {
    let me = current();
    *me.trap.lock() = trap.code();
    let ip = frame.ip();
    let (name, info) = match trap {
        UserTrap::Page(page) => match memory::resolve(&me, page.addr.0, page.access) {
            // Another thread mapped it meanwhile.
            Ok(()) => return,
            Err(why) => ("page_fault", page_signal(page.addr.0, why)),
        },
        UserTrap::Divide => ("divide", SigInfo::fault(sig::FPE, code::FPE_INTDIV, ip)),
        UserTrap::Debug => ("debug", SigInfo::fault(sig::TRAP, code::TRAP_TRACE, ip)),
        UserTrap::Breakpoint => ("breakpoint", SigInfo::kernel(sig::TRAP)),
        UserTrap::Overflow => ("overflow", SigInfo::kernel(sig::SEGV)),
        UserTrap::InvalidInstruction => ("invalid_opcode", SigInfo::fault(sig::ILL, code::ILL_ILLOPN, ip)),
        UserTrap::Protection { .. } => ("general_protection", SigInfo::kernel(sig::SEGV)),
        UserTrap::StackSegment => ("stack_segment", SigInfo::kernel(sig::BUS)),
        UserTrap::Alignment => ("alignment", SigInfo::fault(sig::BUS, code::BUS_ADRALN, ip)),
        // The status word that would tell more is in the signal frame.
        UserTrap::FloatingPoint { .. } => ("floating_point", SigInfo::fault(sig::FPE, FPE_FLTINV, ip)),
        UserTrap::Other { .. } => ("other", SigInfo::kernel(sig::SEGV)),
    };
    if trace::is_on(Category::Fault) {
        trace::event::user_fault(name, ip, info.signal);
    }
    signal::force(info);
}

fn page_signal(addr: u64, why: Unresolved) -> SigInfo {
    match why {
        Unresolved::NotMapped => SigInfo::fault(sig::SEGV, code::SEGV_MAPERR, addr),
        Unresolved::Forbidden => SigInfo::fault(sig::SEGV, code::SEGV_ACCERR, addr),
        Unresolved::Beyond => SigInfo::fault(sig::BUS, code::BUS_ADRERR, addr),
        // The process is the one to go; nothing of its doing could avert it.
        Unresolved::OutOfMemory => SigInfo::kernel(sig::KILL),
    }
}

/// What is due before a thread goes (back) to user mode.
pub fn before_user(frame: &mut UserFrame) {
    let me = current();
    if me.becomes_init.load(Ordering::Relaxed) {
        me.becomes_init.store(false, Ordering::Relaxed);
        boot::become_init(&me, frame);
    }
    let tid_at = me.set_child_tid.load(Ordering::Relaxed);
    if tid_at != 0 {
        me.set_child_tid.store(0, Ordering::Relaxed);
        // As on Linux a bad address is the program's own loss.
        let _ = UserPtr::<u32>::new(tid_at).write(me.tid());
    }
    sched::on_return();
    rseq::on_return(&me, frame);
    signal::deliver::deliver(frame);
}
