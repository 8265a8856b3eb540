//! Traps, faults and device interrupts as architecture-neutral values.

use core::fmt;

use crate::addr::UserAddr;
use crate::x86_64::cpu::regs::{Control, Registers};

/// What an access wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A load from memory.
    Read,
    /// A store to memory, also one that reads first.
    Write,
    /// An instruction fetch.
    Execute,
}

/// A page fault on a user address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageFault {
    /// The address touched.
    pub addr: UserAddr,
    /// Whether the instruction loaded, stored or fetched.
    pub access: Access,
    /// The page is mapped and its rights forbid the access; otherwise it is not mapped.
    pub present: bool,
    /// The instruction that did it.
    pub ip: u64,
    /// The processor's own error code.
    pub code: u64,
}

/// An exception in user mode. The signal each becomes is the kernel's choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserTrap {
    /// An unresolved page fault.
    Page(PageFault),
    /// Division by zero or overflow.
    Divide,
    /// Single step or a hardware breakpoint.
    Debug,
    /// A breakpoint instruction.
    Breakpoint,
    /// The overflow exception (INTO) or a failed bound check (BOUND): vectors 4 and 5.
    Overflow,
    /// An invalid opcode.
    InvalidInstruction,
    /// A privileged instruction, a bad segment, a non-canonical address.
    Protection {
        /// The processor's error code.
        code: u64,
    },
    /// A stack access outside the canonical range.
    StackSegment,
    /// Misaligned, with alignment checking on.
    Alignment,
    /// A floating-point exception, x87 (`false`) or SIMD (`true`).
    FloatingPoint {
        /// SIMD, not x87.
        simd: bool,
    },
    /// Anything else, by vector.
    Other {
        /// The exception's vector, 0 to 31.
        vector: u8,
    },
}

/// A user trap's architectural identity, for `siginfo`, `ucontext` and dumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrapCode {
    /// The exception's vector, 0 to 31.
    pub vector: u8,
    /// Error code, 0 if the exception has none.
    pub error: u64,
    /// Faulting address of a page fault, else 0.
    pub addr: u64,
}

impl UserTrap {
    /// Vector, error code and address as `ucontext` reports them.
    pub fn code(&self) -> TrapCode {
        let (vector, error, addr) = match *self {
            Self::Page(fault) => (14, fault.code, fault.addr.0),
            Self::Divide => (0, 0, 0),
            Self::Debug => (1, 0, 0),
            Self::Breakpoint => (3, 0, 0),
            Self::Overflow => (4, 0, 0),
            Self::InvalidInstruction => (6, 0, 0),
            Self::Protection { code } => (13, code, 0),
            Self::StackSegment => (12, 0, 0),
            Self::Alignment => (17, 0, 0),
            Self::FloatingPoint { simd: false } => (16, 0, 0),
            Self::FloatingPoint { simd: true } => (19, 0, 0),
            Self::Other { vector } => (vector, 0, 0),
        };
        TrapCode { vector, error, addr }
    }
}

/// A fatal exception in kernel mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FatalKind {
    /// A page fault in kernel mode that no exception-table entry covers.
    PageFault {
        /// The address whose access failed (CR2).
        addr: u64,
        /// Whether the instruction loaded, stored or fetched.
        access: Access,
    },
    /// The address of a kernel page fault was in a guard page: a kernel stack overflow.
    StackOverflow {
        /// The address in the guard page (CR2).
        addr: u64,
    },
    /// A second exception while delivering a first.
    DoubleFault,
    /// A machine-check exception.
    MachineCheck,
    /// A non-maskable interrupt that the kernel did not send itself (QEMU's `nmi`, a watchdog).
    Nmi,
    /// Any other exception in kernel mode, by vector.
    Exception {
        /// The exception's vector, 0 to 31.
        vector: u8,
    },
}

/// Handed to [`crate::Kernel::fatal`].
#[derive(Clone, Copy, Debug)]
pub struct FatalTrap {
    /// Which exception it was, with the data that kind has.
    pub kind: FatalKind,
    /// The registers at that moment.
    pub registers: Registers,
    /// The control registers at that moment.
    pub control: Control,
    /// The processor's error code.
    pub code: u64,
    /// It happened in user mode (NMI, machine check).
    pub in_user: bool,
}

/// A device interrupt that is delivered to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Irq {
    /// The console received something: drain [`crate::console::read`].
    Console,
    /// A platform interrupt line.
    Line(u8),
}

/// What Intel's manual calls an exception (SDM 3, 6.3.1).
pub fn exception_name(vector: u8) -> Option<&'static str> {
    Some(match vector {
        0 => "divide error",
        1 => "debug",
        2 => "nmi",
        3 => "breakpoint",
        4 => "overflow",
        5 => "bound range",
        6 => "invalid opcode",
        7 => "device not available",
        8 => "double fault",
        10 => "invalid tss",
        11 => "segment not present",
        12 => "stack-segment fault",
        13 => "general protection",
        14 => "page fault",
        16 => "x87 floating-point",
        17 => "alignment check",
        18 => "machine check",
        19 => "simd floating-point",
        _ => return None,
    })
}

/// The sentence of a crash report: which exception, where, with which error code.
impl fmt::Display for FatalTrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, whose) = (self.code, if self.in_user { " in user mode" } else { "" });
        match self.kind {
            FatalKind::PageFault { addr, access } => {
                write!(f, "kernel page fault: {access:?} of {addr:#x}, error code {code:#x}")
            }
            FatalKind::StackOverflow { addr } => write!(f, "guard page hit at {addr:#x}"),
            FatalKind::DoubleFault => write!(f, "double fault, error code {code:#x}"),
            FatalKind::MachineCheck => write!(f, "machine check{whose}"),
            FatalKind::Nmi => write!(f, "non-maskable interrupt{whose}"),
            FatalKind::Exception { vector } => {
                let name = exception_name(vector).unwrap_or("exception");
                write!(f, "{name} in the kernel, vector {vector}, error code {code:#x}")
            }
        }
    }
}
