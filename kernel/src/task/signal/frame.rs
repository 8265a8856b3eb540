//! The signal frame on the user stack, x86_64: written for a handler, read back by `rt_sigreturn`.
//!
//! From low to high: return address (the restorer), `struct ucontext`, `siginfo_t`, and, 64-byte aligned above, the FPU
//! state as XSAVE writes it with its software-reserved words and trailing magic. Source: asm/sigcontext.h,
//! asm/ucontext.h, and the System V ABI's rules for stack alignment and the red zone.

use kernel_logic::signal::{Disposition, SIGINFO_WORDS, SigInfo, SigSet, sa};
use kernel_logic::sigstack::{AltStack, FrameAddress, FrameSize};
use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::arch::{Registers, UserFrame};
use machine::thread::running;

use super::set_blocked;
use crate::task::Task;
use crate::trace::{self, Category, event};
use crate::user;

/// Writes the frame for a handler and points `user` at it. EFAULT if that cannot be written, and for one that would
/// reach below the alternate stack, of which nothing is written.
pub fn push(
    me: &Task,
    user: &mut UserFrame,
    info: &SigInfo,
    disposition: &Disposition,
    old_mask: SigSet,
) -> Result<(), Errno> {
    if disposition.flags & sa::RESTORER == 0 {
        return Err(Errno::EFAULT);
    }
    let regs = user.registers();
    let reported = me.signals.alt_stack.get();
    let fpu_bytes = running::fpu_size() as u64;
    let size = FrameSize { fpu: fpu_bytes, words: FRAME_BYTES as u64 };
    let on_alternate = disposition.flags & sa::ONSTACK != 0;
    let FrameAddress { fpu: fpu_at, sp } = reported.fit(regs.rsp, on_alternate, size).ok_or(Errno::EFAULT)?;
    running::save_fpu(UserAddr(fpu_at)).map_err(|_| Errno::EFAULT)?;
    let out = words(me, user.registers(), disposition.restorer, &reported, (old_mask, fpu_at), info);
    user::write_words(sp, &out)?;
    if reported.auto_disarm {
        me.signals.alt_stack.set(AltStack::default());
    }
    if trace::is_on(Category::Signal) {
        event::signal_stack_write(me, info.signal, "fpu", fpu_at, fpu_bytes, regs.rsp, fpu_at);
        event::signal_stack_write(me, info.signal, "frame", sp, FRAME_BYTES as u64, regs.rsp, sp);
    }
    user.call(disposition.handler, sp, [u64::from(info.signal), sp + 8 * SIGINFO as u64, sp + 8]);
    Ok(())
}

/// The frame's words. Each is given at once: filled with zeros first, most would be stored twice.
#[inline(always)]
fn words(
    me: &Task,
    regs: &Registers,
    restorer: u64,
    reported: &AltStack,
    (old_mask, fpu_at): (SigSet, u64),
    info: &SigInfo,
) -> [u64; FRAME_WORDS] {
    let trap = me.last_trap();
    let segments = regs.cs & 0xffff | (regs.ss & 0xffff) << 48;
    #[rustfmt::skip]
    let mut out: [u64; FRAME_WORDS] = [
        restorer,
        UC_FLAGS,
        0,
        reported.base,
        reported.flags(regs.rsp),
        reported.size,
        regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
        regs.rdi, regs.rsi, regs.rbp, regs.rbx, regs.rdx, regs.rax, regs.rcx,
        regs.rsp,
        regs.rip,
        regs.rflags,
        segments,
        trap.error,
        u64::from(trap.vector),
        old_mask.0,
        trap.addr,
        fpu_at,
        // The rest of sigcontext, `uc_sigmask`, and the siginfo.
        0, 0, 0, 0, 0, 0, 0, 0,
        old_mask.0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    if let Some(siginfo) = out.last_chunk_mut() {
        info.write(siginfo);
    }
    out
}

/// `rt_sigreturn`: takes registers, FPU state, mask and alternate stack back from the frame the stack pointer is at.
pub fn pop(me: &Task, user: &mut UserFrame) -> Result<(), Errno> {
    // The handler's return popped the restorer's address.
    let base = user.sp().wrapping_sub(8);
    user::with_words(base, |words| restore(me, user, words))?
}

fn restore(me: &Task, user: &mut UserFrame, words: &[u64; SIGINFO]) -> Result<(), Errno> {
    let word = |index: usize| words[index];
    check_segments(word(1), word(GREGS + 18))?;
    let fpu_at = word(GREGS + 23);
    load_fpu(fpu_at)?;
    let mut regs = Registers {
        r8: word(GREGS),
        r9: word(GREGS + 1),
        r10: word(GREGS + 2),
        r11: word(GREGS + 3),
        r12: word(GREGS + 4),
        r13: word(GREGS + 5),
        r14: word(GREGS + 6),
        r15: word(GREGS + 7),
        rdi: word(GREGS + 8),
        rsi: word(GREGS + 9),
        rbp: word(GREGS + 10),
        rbx: word(GREGS + 11),
        rdx: word(GREGS + 12),
        rax: word(GREGS + 13),
        rcx: word(GREGS + 14),
        rsp: word(GREGS + 15),
        rip: word(GREGS + 16),
        rflags: word(GREGS + 17),
        ..*user.registers()
    };
    regs.orig_rax = u64::MAX;
    user.set_registers(&regs);
    // Where there is no stack, and none in the frame, nothing changes.
    if word(5) != 0 || !me.signals.alt_stack.is_none() {
        take_stack(me, [word(3), word(4), word(5)], regs.rsp);
    }
    set_blocked(me, SigSet(word(SIGMASK)));
    Ok(())
}

/// Takes over the alternate stack of a frame: what `sigaltstack` would refuse leaves it as it is.
#[cold]
fn take_stack(me: &Task, words: [u64; 3], sp: u64) {
    if let Ok(new) = me.signals.alt_stack.get().replaced_by(words, sp) {
        me.signals.alt_stack.set(new);
    }
}

/// Refuses code and stack segments that are not a program's, which the return to user mode would fault on. The
/// privilege in a selector is not looked at; the stack's is taken only if the frame says so, as on Linux.
fn check_segments(flags: u64, segments: u64) -> Result<(), Errno> {
    let selector = |shift: u32| (segments >> shift) as u16 | 3;
    let strict = flags & UC_STRICT_RESTORE_SS != 0;
    if selector(0) != USER_CODE || (strict && selector(48) != USER_STACK) {
        return Err(Errno::EFAULT);
    }
    Ok(())
}

fn load_fpu(from: u64) -> Result<(), Errno> {
    if from == 0 {
        running::reset_fpu();
        return Ok(());
    }
    running::load_fpu(UserAddr(from)).map_err(|_| Errno::EFAULT)
}

/// `UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS`
const UC_FLAGS: u64 = 3 | UC_STRICT_RESTORE_SS;
const UC_STRICT_RESTORE_SS: u64 = 4;
/// Selectors of a program's code and stack (`__USER_CS`, `__USER_DS`).
const USER_CODE: u16 = 0x33;
const USER_STACK: u16 = 0x2b;
/// Index of the first general register in words from the frame's start.
const GREGS: usize = 6;
/// Index of `uc_sigmask`: return address, five words, 32 words of sigcontext.
const SIGMASK: usize = GREGS + 32;
/// Index of the siginfo.
const SIGINFO: usize = SIGMASK + 1;
/// The whole frame without FPU state.
const FRAME_WORDS: usize = SIGINFO + SIGINFO_WORDS;
const FRAME_BYTES: usize = 8 * FRAME_WORDS;
