//! The register files: what a trap saves, and what signals and dumps spell.

use core::arch::asm;
use core::fmt;
use core::mem::offset_of;

use super::descriptors::{KERNEL_CODE, KERNEL_DATA, USER_CODE, USER_DATA};
use super::msr;
use crate::describe::Entry;

/// All general registers with instruction pointer, flags and segments, by their x86-64 names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
#[expect(missing_docs, reason = "the names are the registers")]
pub struct Registers {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    /// System call number at entry, or -1 when the entry was not a system call.
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

/// Six lines of names and values, as the console's report of a crash shows them.
impl fmt::Display for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "RIP={:016x} RSP={:016x} RBP={:016x}", self.rip, self.rsp, self.rbp)?;
        writeln!(f, "RAX={:016x} RBX={:016x} RCX={:016x} RDX={:016x}", self.rax, self.rbx, self.rcx, self.rdx)?;
        writeln!(f, "RSI={:016x} RDI={:016x} R8 ={:016x} R9 ={:016x}", self.rsi, self.rdi, self.r8, self.r9)?;
        writeln!(f, "R10={:016x} R11={:016x} R12={:016x} R13={:016x}", self.r10, self.r11, self.r12, self.r13)?;
        write!(f, "R14={:016x} R15={:016x} CS={:04x} RFLAGS={:016x}", self.r14, self.r15, self.cs, self.rflags)
    }
}

impl Registers {
    /// All zero, for statics.
    pub(crate) const ZERO: Self = Self {
        r15: 0,
        r14: 0,
        r13: 0,
        r12: 0,
        rbp: 0,
        rbx: 0,
        r11: 0,
        r10: 0,
        r9: 0,
        r8: 0,
        rax: 0,
        rcx: 0,
        rdx: 0,
        rsi: 0,
        rdi: 0,
        orig_rax: 0,
        rip: 0,
        cs: 0,
        rflags: 0,
        rsp: 0,
        ss: 0,
    };

    /// The names in the order of the fields, for dumps and tables.
    pub const NAMES: [&'static str; 21] = [
        "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
        "orig_rax", "rip", "cs", "rflags", "rsp", "ss",
    ];
}

/// Registers here, for a panic that has none of its own: the caller's instruction, stack and frame pointer, and the
/// callee-saved ones; the others are whatever they are.
#[inline(never)]
pub fn registers_here() -> Registers {
    let mut regs = Registers::ZERO;
    // SAFETY: stores registers into the structure, and reads the frame record this function's prologue made.
    unsafe {
        asm!(
            "mov [{to}], r15", "mov [{to} + 8], r14", "mov [{to} + 16], r13", "mov [{to} + 24], r12",
            "mov {tmp}, [rbp]", "mov [{to} + 32], {tmp}",
            "mov [{to} + 40], rbx",
            "mov {tmp}, [rbp + 8]", "mov [{to} + 128], {tmp}",
            "lea {tmp}, [rbp + 16]", "mov [{to} + 152], {tmp}",
            "pushfq", "pop {tmp}", "mov [{to} + 144], {tmp}",
            to = in(reg) &raw mut regs,
            tmp = out(reg) _,
        );
    }
    regs.cs = u64::from(KERNEL_CODE);
    regs.ss = u64::from(KERNEL_DATA);
    regs.orig_rax = u64::MAX;
    regs
}

/// What the processor keeps outside of [`Registers`], as it was when asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "the names are the registers")]
pub struct Control {
    pub cr0: u64,
    /// Address of the last page fault.
    pub cr2: u64,
    /// Root of the page tables.
    pub cr3: u64,
    pub cr4: u64,
    pub efer: u64,
    pub fs_base: u64,
    pub gs_base: u64,
    pub kernel_gs_base: u64,
}

impl Control {
    /// All zero, for statics.
    pub(crate) const ZERO: Self =
        Self { cr0: 0, cr2: 0, cr3: 0, cr4: 0, efer: 0, fs_base: 0, gs_base: 0, kernel_gs_base: 0 };
}

/// Where each register lies in [`Registers`], in [`crate::describe`].
pub static REGISTERS: [Entry; 21] = [
    Entry::number("regs.r15", offset_of!(Registers, r15)),
    Entry::number("regs.r14", offset_of!(Registers, r14)),
    Entry::number("regs.r13", offset_of!(Registers, r13)),
    Entry::number("regs.r12", offset_of!(Registers, r12)),
    Entry::number("regs.rbp", offset_of!(Registers, rbp)),
    Entry::number("regs.rbx", offset_of!(Registers, rbx)),
    Entry::number("regs.r11", offset_of!(Registers, r11)),
    Entry::number("regs.r10", offset_of!(Registers, r10)),
    Entry::number("regs.r9", offset_of!(Registers, r9)),
    Entry::number("regs.r8", offset_of!(Registers, r8)),
    Entry::number("regs.rax", offset_of!(Registers, rax)),
    Entry::number("regs.rcx", offset_of!(Registers, rcx)),
    Entry::number("regs.rdx", offset_of!(Registers, rdx)),
    Entry::number("regs.rsi", offset_of!(Registers, rsi)),
    Entry::number("regs.rdi", offset_of!(Registers, rdi)),
    Entry::number("regs.orig_rax", offset_of!(Registers, orig_rax)),
    Entry::number("regs.rip", offset_of!(Registers, rip)),
    Entry::number("regs.cs", offset_of!(Registers, cs)),
    Entry::number("regs.rflags", offset_of!(Registers, rflags)),
    Entry::number("regs.rsp", offset_of!(Registers, rsp)),
    Entry::number("regs.ss", offset_of!(Registers, ss)),
];
/// And in [`Control`].
pub static CONTROL: [Entry; 8] = [
    Entry::number("control.cr0", offset_of!(Control, cr0)),
    Entry::number("control.cr2", offset_of!(Control, cr2)),
    Entry::number("control.cr3", offset_of!(Control, cr3)),
    Entry::number("control.cr4", offset_of!(Control, cr4)),
    Entry::number("control.efer", offset_of!(Control, efer)),
    Entry::number("control.fs_base", offset_of!(Control, fs_base)),
    Entry::number("control.gs_base", offset_of!(Control, gs_base)),
    Entry::number("control.kernel_gs_base", offset_of!(Control, kernel_gs_base)),
];

/// This processor's, now.
pub fn control_here() -> Control {
    // SAFETY: every x86-64 processor has these registers; reading them has no effect.
    let read = |register| unsafe { msr::read(register) };
    Control {
        cr0: msr::cr0(),
        cr2: msr::cr2(),
        cr3: msr::cr3(),
        cr4: msr::cr4(),
        efer: read(msr::EFER),
        fs_base: read(msr::FS_BASE),
        gs_base: read(msr::GS_BASE),
        kernel_gs_base: read(msr::KERNEL_GS_BASE),
    }
}

/// The control registers of the program that entered the kernel through this thread's last trap or call: the two bases
/// of GS were exchanged on the way in.
pub fn control_of_user() -> Control {
    let here = control_here();
    Control { gs_base: here.kernel_gs_base, kernel_gs_base: here.gs_base, ..here }
}

/// The flags a program may choose: CF PF AF ZF SF TF DF OF AC ID (and IF is always on).
const USER_FLAGS: u64 = 0x24_0dd5;
const IF: u64 = 1 << 9;
/// What an ABI's function does not start with.
const FLAG_TRAP: u64 = 1 << 8;
const FLAG_DIRECTION: u64 = 1 << 10;
const FLAG_RESUME: u64 = 1 << 16;
const ALWAYS: u64 = 1 << 1;

/// What a trap in kernel mode leaves on the stack.
#[repr(C)]
pub(crate) struct TrapFrame {
    way: u64,
    pub(crate) regs: Registers,
}

/// The user registers of the running thread, on its kernel stack. Whatever is stored in it, returning to user mode is
/// safe: segments and privileged flags are not the caller's to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct UserFrame {
    /// 0 while SYSRET restores everything that changed, else 1; `entry` looks here. While it is 0, RBX and R12 to R15
    /// are those of entry.
    way: u64,
    regs: Registers,
}

impl UserFrame {
    /// Its size and the registers that say what a program does.
    pub const FIELDS: [Entry; 4] = [
        Entry::number("frame.size", size_of::<Self>()),
        Entry::number("frame.syscall", offset_of!(Self, regs.orig_rax)),
        Entry::number("frame.ip", offset_of!(Self, regs.rip)),
        Entry::number("frame.sp", offset_of!(Self, regs.rsp)),
    ];

    /// A program's start: everything 0 but these.
    pub fn new(ip: u64, sp: u64) -> Self {
        let mut frame = Self { way: 1, regs: Registers::default() };
        frame.set_registers(&Registers { rip: ip, rsp: sp, orig_rax: u64::MAX, ..Registers::default() });
        frame
    }

    /// The system call number at entry; `None` when the entry was a trap or interrupt.
    #[inline]
    pub fn syscall(&self) -> Option<u64> {
        if self.regs.orig_rax == u64::MAX { None } else { Some(self.regs.orig_rax) }
    }

    /// The system call number register at entry, without asking whether it was a system call: for the dispatcher.
    #[inline]
    pub fn syscall_number(&self) -> u64 {
        self.regs.orig_rax
    }

    /// The six arguments, as at entry.
    #[inline]
    pub fn args(&self) -> [u64; 6] {
        [self.regs.rdi, self.regs.rsi, self.regs.rdx, self.regs.r10, self.regs.r8, self.regs.r9]
    }

    /// The result register.
    #[inline]
    pub fn result(&self) -> u64 {
        self.regs.rax
    }

    /// Set the result register.
    #[inline]
    pub fn set_result(&mut self, value: u64) {
        self.regs.rax = value;
    }

    /// Go back to the system call instruction with its number restored, to run it again.
    pub fn restart_syscall(&mut self) {
        self.regs.rax = self.regs.orig_rax;
        self.set_ip(self.regs.rip.wrapping_sub(2));
    }

    /// No longer a system call: a later check will not restart it.
    pub fn forget_syscall(&mut self) {
        self.regs.orig_rax = u64::MAX;
    }

    /// The instruction pointer at which user mode resumes.
    #[inline]
    pub fn ip(&self) -> u64 {
        self.regs.rip
    }

    /// Sets the instruction pointer; the return then goes through `iretq`, since RCX no longer equals it.
    pub fn set_ip(&mut self, ip: u64) {
        self.regs.rip = ip;
        self.way = 1;
    }

    /// The user stack pointer.
    #[inline]
    pub fn sp(&self) -> u64 {
        self.regs.rsp
    }

    /// Sets the user stack pointer.
    pub fn set_sp(&mut self, sp: u64) {
        self.regs.rsp = sp;
    }

    /// Go on at a function of the program instead, with three arguments and the flags the ABI wants at its start.
    pub fn call(&mut self, function: u64, sp: u64, args: [u64; 3]) {
        [self.regs.rdi, self.regs.rsi, self.regs.rdx] = args;
        // No count of vector arguments.
        self.regs.rax = 0;
        self.regs.rflags &= !(FLAG_DIRECTION | FLAG_TRAP | FLAG_RESUME);
        self.set_sp(sp);
        self.set_ip(function);
        self.forget_syscall();
    }

    /// All of them.
    pub fn registers(&self) -> &Registers {
        &self.regs
    }

    /// Replace all of them from a source a program controls: segments stay the user's, of the flags only those a
    /// program may change are taken.
    #[inline]
    pub fn set_registers(&mut self, regs: &Registers) {
        self.regs = Registers {
            cs: u64::from(USER_CODE),
            ss: u64::from(USER_DATA),
            rflags: regs.rflags & USER_FLAGS | IF | ALWAYS,
            ..*regs
        };
        self.way = 1;
    }

    /// From a copy of the bytes of one.
    pub(crate) fn from_bytes(bytes: &[u8; size_of::<Self>()]) -> Self {
        // SAFETY: any bytes are a value of this structure of integers.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }
}
