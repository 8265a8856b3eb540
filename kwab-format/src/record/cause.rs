//! Owns the records of the death itself: cause, printed frames, register sets.

use crate::list::List;
use crate::record::Arch;

open_enum! {
    /// What kind of death it was.
    CauseKind: u16 {
        /// The kernel gave up by itself.
        1 PANIC = "panic",
        /// An exception in the kernel that nothing could handle.
        2 EXCEPTION = "exception",
        /// A fault while delivering a fault.
        3 DOUBLE_FAULT = "double fault",
        /// A kernel stack ran into its guard page.
        4 STACK_OVERFLOW = "kernel stack overflow",
        /// A processor did not schedule for too long.
        5 SOFT_LOCKUP = "soft lockup",
        /// A task did not run for too long.
        6 HUNG_TASK = "hung task",
        /// Out of memory, and no process left that may be killed.
        7 OUT_OF_MEMORY = "out of memory",
        /// A non-maskable interrupt.
        8 NMI = "nmi",
        /// Requested through SysRq.
        9 SYSRQ = "sysrq",
        /// A user program died of a signal.
        10 FATAL_SIGNAL = "fatal signal",
        /// An oops that the kernel survived.
        11 OOPS = "oops",
        /// A failed check that the kernel survived.
        12 BUG = "bug",
        /// Nothing died: a dump was asked for.
        13 LIVE = "live",
        /// A second panic while the first was dumped.
        14 RECURSIVE_PANIC = "panic while dumping",
        /// No program runs, and nothing can wake one or it has been so for too long.
        15 STALL = "stall",
        /// The same page fault again and again, each said to be resolved.
        16 FAULT_LOOP = "page fault loop",
    }
}

fields! {
    /// What died, where and why, as far as the writer knew.
    record Cause {
        /// What kind of death.
        1 kind: CauseKind,
        /// The panic message or headline, as the kernel printed it.
        2 message: &'a [u8],
        /// Source file of the panic.
        3 file: &'a [u8],
        /// Line in it.
        4 source_line: u32,
        /// Column in it.
        5 column: u32,
        /// Process that was running; absent if none was.
        6 pid: u32,
        /// Thread that was running; absent if none was.
        7 tid: u32,
        /// Name of the thread.
        8 comm: &'a [u8],
        /// Command line of the process.
        9 cmdline: &'a [u8],
        /// Number of the signal that ended the program, 1 to 64.
        10 signal: u32,
        /// Name of that signal, for example `SIGSEGV`.
        11 signal_name: &'a [u8],
        /// `si_code` of that signal (sigaction(2)).
        12 signal_code: i64,
        /// Address whose access failed.
        13 fault_addr: u64,
        /// Address of the instruction at which it happened.
        14 ip: u64,
        /// Stack pointer at that instruction.
        15 sp: u64,
        /// Number of the exception as the processor counts it.
        16 vector: u32,
        /// Name of the exception as the source printed it.
        17 exception: &'a [u8],
        /// Error code of the exception.
        18 error_code: u64,
        /// System call in progress.
        19 syscall: i64,
        /// Function names printed with the instruction, for example `do_sys_open+0x12/0x80`.
        20 location: &'a [u8],
        /// Whether the processor was in the kernel.
        21 in_kernel: bool,
        /// Address of the lock that is held or awaited.
        22 lock: u64,
        /// What the kernel was doing, in its words.
        23 context: &'a [u8],
    }
}

open_enum! {
    /// How far a printed or captured frame can be trusted.
    FrameTrust: u8 {
        /// The interrupted instruction itself.
        1 EXACT = "exact",
        /// Followed frame pointers.
        2 FRAME_POINTER = "frame pointer",
        /// Followed unwind tables.
        3 UNWIND_TABLE = "unwind table",
        /// A plausible address found on the stack.
        4 SCAN = "scan",
        /// Printed by a kernel that did not say how it found it.
        5 PRINTED = "printed",
    }
}

fields! {
    /// A frame of a backtrace that the source had already made.
    record Frame {
        /// Which backtrace of the dump, from 0.
        1 trace: u32,
        /// Which frame of it, 0 innermost.
        2 index: u32,
        /// Return address, or the interrupted instruction in the innermost frame.
        3 addr: u64,
        /// Symbol as printed.
        4 symbol: &'a [u8],
        /// Offset into the symbol.
        5 symbol_offset: u64,
        /// Size of the symbol.
        6 symbol_size: u64,
        /// Module as printed.
        7 module: &'a [u8],
        /// How far to trust it.
        8 trust: FrameTrust,
        /// Stack it lies on as printed, for example `TASK` or `IRQ`.
        9 stack: &'a [u8],
        /// Process whose backtrace it is.
        10 pid: u32,
        /// Thread whose backtrace it is.
        11 tid: u32,
        /// Source file of the instruction, as printed.
        12 file: &'a [u8],
        /// Line in it.
        13 source_line: u32,
    }
}

open_enum! {
    /// Whose registers they are.
    RegisterRole: u8 {
        /// The interrupted code that led to the dump.
        1 FAULT = "at the fault",
        /// User code below the kernel's.
        2 USER = "user",
        /// Kernel code of a processor that was stopped.
        3 STOPPED = "stopped",
        /// Saved when the task was switched out.
        4 SWITCHED_OUT = "switched out",
        /// The code that wrote the dump.
        5 DUMPER = "dumper",
    }
}

fields! {
    /// One set of registers.
    record Registers {
        /// In which of its roles the code had these values.
        1 role: RegisterRole,
        /// Process that ran with them; absent if none did.
        2 pid: u32,
        /// Thread that ran with them; absent if none did.
        3 tid: u32,
        /// How [`RegId`] is to be read.
        4 arch: Arch,
        /// Exception number of the trap frame.
        5 vector: u32,
        /// Error code of the trap frame.
        6 error_code: u64,
        /// Values; what could not be read is not there.
        7 regs: List<'a, Reg<'a>>,
        /// Floating-point and vector state as the processor saves it (XSAVE area, `fpsimd_context`).
        8 extended: &'a [u8],
    }
}

fields! {
    /// One register and its value.
    element Reg {
        /// Which register; read together with the architecture.
        1 id: RegId,
        /// The value; a narrower register is zero-extended.
        2 value: u64,
        /// Its name, when [`RegId`] has none for it.
        3 name: &'a [u8],
    }
}

open_enum! {
    /// A register: below 0x100 the DWARF number of the architecture named here, from 0x100 on numbers of this format.
    RegId: u16 {
        /// x86_64 DWARF 0.
        0 RAX = "rax",
        /// x86_64 DWARF 1.
        1 RDX = "rdx",
        /// x86_64 DWARF 2.
        2 RCX = "rcx",
        /// x86_64 DWARF 3.
        3 RBX = "rbx",
        /// x86_64 DWARF 4.
        4 RSI = "rsi",
        /// x86_64 DWARF 5.
        5 RDI = "rdi",
        /// x86_64 DWARF 6.
        6 RBP = "rbp",
        /// x86_64 DWARF 7.
        7 RSP = "rsp",
        /// x86_64 DWARF 8.
        8 R8 = "r8",
        /// x86_64 DWARF 9.
        9 R9 = "r9",
        /// x86_64 DWARF 10.
        10 R10 = "r10",
        /// x86_64 DWARF 11.
        11 R11 = "r11",
        /// x86_64 DWARF 12.
        12 R12 = "r12",
        /// x86_64 DWARF 13.
        13 R13 = "r13",
        /// x86_64 DWARF 14.
        14 R14 = "r14",
        /// x86_64 DWARF 15.
        15 R15 = "r15",
        /// x86_64 DWARF 16, the return address column.
        16 RIP = "rip",
        /// x86_64 DWARF 49.
        49 RFLAGS = "rflags",
        /// x86_64 DWARF 50.
        50 ES = "es",
        /// x86_64 DWARF 51.
        51 CS = "cs",
        /// x86_64 DWARF 52.
        52 SS = "ss",
        /// x86_64 DWARF 53.
        53 DS = "ds",
        /// x86_64 DWARF 54.
        54 FS = "fs",
        /// x86_64 DWARF 55.
        55 GS = "gs",
        /// x86_64 DWARF 58.
        58 FS_BASE = "fs_base",
        /// x86_64 DWARF 59.
        59 GS_BASE = "gs_base",
        /// x86_64 control register.
        0x100 CR0 = "cr0",
        /// x86_64 control register: the faulting address.
        0x102 CR2 = "cr2",
        /// x86_64 control register: the page-table root.
        0x103 CR3 = "cr3",
        /// x86_64 control register.
        0x104 CR4 = "cr4",
        /// x86_64 control register.
        0x108 CR8 = "cr8",
        /// x86_64 debug register.
        0x110 DR0 = "dr0",
        /// x86_64 debug register.
        0x111 DR1 = "dr1",
        /// x86_64 debug register.
        0x112 DR2 = "dr2",
        /// x86_64 debug register.
        0x113 DR3 = "dr3",
        /// x86_64 debug register.
        0x116 DR6 = "dr6",
        /// x86_64 debug register.
        0x117 DR7 = "dr7",
        /// x86_64 MSR 0xC000_0080.
        0x120 EFER = "efer",
        /// x86_64 MSR 0xC000_0102.
        0x121 KERNEL_GS_BASE = "kernel_gs_base",
        /// x86_64: rax at the entry of the system call.
        0x122 ORIG_RAX = "orig_rax",
        /// AArch64: exception syndrome.
        0x200 ESR = "esr",
        /// AArch64: faulting address.
        0x201 FAR = "far",
        /// AArch64: saved processor state.
        0x202 PSTATE = "pstate",
        /// AArch64: user page-table root.
        0x203 TTBR0 = "ttbr0",
        /// AArch64: kernel page-table root.
        0x204 TTBR1 = "ttbr1",
        /// AArch64: system control.
        0x205 SCTLR = "sctlr",
        /// AArch64: translation control.
        0x206 TCR = "tcr",
        /// AArch64: memory attributes.
        0x207 MAIR = "mair",
        /// AArch64: user thread pointer.
        0x208 TPIDR_EL0 = "tpidr_el0",
        /// AArch64: kernel thread pointer.
        0x209 TPIDR_EL1 = "tpidr_el1",
    }
}

impl RegId {
    /// The register's name on `arch`; unlike [`name`](Self::name) it knows that low numbers are the architecture's own.
    #[must_use]
    pub fn name_on(self, arch: Arch) -> Option<&'static str> {
        match arch {
            Arch::AARCH64 if self.0 < 0x100 => AARCH64_NAMES.get(usize::from(self.0)).copied(),
            Arch::X86_64 => self.name(),
            _ => self.name().filter(|_| self.0 >= 0x100),
        }
    }
}

/// DWARF numbers 0 to 32 of AArch64.
static AARCH64_NAMES: [&str; 33] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
    "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp", "pc",
];

impl<'a> Reg<'a> {
    /// A register that has a number.
    #[must_use]
    pub const fn new(id: RegId, value: u64) -> Self {
        Self { id: Some(id), value: Some(value), name: None, borrows: core::marker::PhantomData }
    }
}
