//! Owns the records of debug events about processes, signals, tracing and whole crashes.

use crate::list::List;
use crate::record::Reg;

fields! {
    /// Event `canary_check`.
    record CanaryCheck {
        /// Process.
        1 pid: u32,
        /// Thread pointer.
        2 fsbase: u64,
        /// Canary that should be there.
        3 expected: u64,
        /// Canary that is there.
        4 found: u64,
        /// Whether the source calls that corrupted.
        5 corrupted: bool,
        /// When it was looked at.
        6 when: &'a [u8],
        /// The call around which it was looked at.
        7 syscall: &'a [u8],
    }
}

fields! {
    /// Event `signal`.
    record Signal {
        /// Process.
        1 pid: u32,
        /// Number.
        2 signal: i64,
        /// Name.
        3 signal_name: &'a [u8],
        /// What is done about it.
        4 action: &'a [u8],
        /// Interrupted instruction.
        5 ip: u64,
        /// Handler.
        6 handler: u64,
    }
}

fields! {
    /// Event `signal_stack_write`.
    record SignalStackWrite {
        /// Process.
        1 pid: u32,
        /// Number.
        2 signal: i64,
        /// What was written.
        3 what: &'a [u8],
        /// Where.
        4 addr: u64,
        /// How many bytes.
        5 len: u64,
        /// Stack pointer before.
        6 rsp_before: u64,
        /// Stack pointer after.
        7 rsp_after: u64,
    }
}

fields! {
    /// Event `process_fork`.
    record ProcessFork {
        /// Parent.
        1 parent_pid: u32,
        /// Child.
        2 child_pid: u32,
    }
}

fields! {
    /// Event `process_exec`.
    record ProcessExec {
        /// Process.
        1 pid: u32,
        /// Its new name.
        2 argv0: &'a [u8],
        /// Entry point.
        3 entry: u64,
    }
}

fields! {
    /// Event `process_exit`.
    record ProcessExit {
        /// Process.
        1 pid: u32,
        /// Exit status.
        2 status: i64,
        /// Whether a signal ended it.
        3 by_signal: bool,
    }
}

fields! {
    /// Event `crash_report`.
    record CrashReport {
        /// Process.
        1 pid: u32,
        /// Number of the signal.
        2 signal: i64,
        /// Name of the signal.
        3 signal_name: &'a [u8],
        /// Command line.
        4 cmdline: &'a [u8],
        /// Address whose access failed.
        5 fault_addr: u64,
        /// Instruction.
        6 ip: u64,
        /// Thread pointer.
        7 fsbase: u64,
        /// Registers.
        8 regs: List<'a, Reg<'a>>,
        /// Last system calls, oldest first.
        9 syscalls: List<'a, CrashSyscall<'a>>,
        /// Memory map.
        10 vmas: List<'a, CrashVma<'a>>,
        /// Thread.
        11 tid: u32,
        /// `si_code`.
        12 signal_code: i64,
    }
}

fields! {
    /// A system call in a [`CrashReport`].
    element CrashSyscall {
        /// Number.
        1 nr: i64,
        /// Name.
        2 name: &'a [u8],
        /// Result.
        3 result: i64,
        /// First argument.
        4 arg0: u64,
        /// Second argument.
        5 arg1: u64,
        /// Third argument.
        6 arg2: u64,
        /// Fourth argument.
        7 arg3: u64,
        /// Fifth argument.
        8 arg4: u64,
        /// Sixth argument.
        9 arg5: u64,
        /// Nanoseconds from entry to exit.
        10 duration_ns: u64,
        /// Processor.
        11 cpu: u32,
        /// Members that have no field here, as they stood.
        12 extra: &'a [u8],
    }
}

fields! {
    /// A mapping in a [`CrashReport`].
    element CrashVma {
        /// First address.
        1 start: u64,
        /// Address behind the last.
        2 end: u64,
        /// What it is, in the source's word.
        3 kind: &'a [u8],
        /// Protection as the source wrote it: bit 0 read, bit 1 write, bit 2 execute.
        4 prot: u64,
        /// Backing file.
        5 file: &'a [u8],
        /// Offset in it.
        6 file_offset: u64,
        /// Members that have no field here, as they stood.
        7 extra: &'a [u8],
    }
}

fields! {
    /// Event `panic`.
    record Panic {
        /// The message.
        1 message: &'a [u8],
        /// Frames, innermost first.
        2 backtrace: List<'a, PanicFrame<'a>>,
        /// Source file.
        3 file: &'a [u8],
        /// Line in it.
        4 source_line: u32,
    }
}

fields! {
    /// A frame of a [`Panic`].
    element PanicFrame {
        /// Address.
        1 addr: u64,
        /// Symbol as printed, leading space and `...` included.
        2 sym: &'a [u8],
        /// Offset into the symbol.
        3 off: u64,
        /// Members that have no field here, as they stood.
        4 extra: &'a [u8],
    }
}

fields! {
    /// Event `htrace`: one end of a nested span; processor and ticks are in the stamp.
    record Htrace {
        /// Number of the span's kind.
        1 id: u32,
        /// Its name.
        2 name: &'a [u8],
        /// Nesting depth.
        3 depth: u32,
        /// `enter` or `exit`.
        4 dir: &'a [u8],
        /// Whatever the span was given.
        5 data: u64,
    }
}

fields! {
    /// Event `htrace_summary`; the processor is in the stamp.
    record HtraceSummary {
        /// Entries written.
        1 total_entries: u64,
        /// Entries the ring holds.
        2 ring_size: u64,
    }
}

open_enum! {
    /// What a flight recorder saw.
    FlightKind: u16 {
        /// Another task runs.
        1 CONTEXT_SWITCH = "context switch",
        /// An interrupt to another processor was sent.
        2 IPI_SEND = "ipi send",
        /// An interrupt from another processor came.
        3 IPI_RECEIVE = "ipi receive",
        /// Other processors must forget translations.
        4 TLB_SEND = "tlb shootdown send",
        /// A processor forgot translations when asked.
        5 TLB_RECEIVE = "tlb shootdown receive",
        /// A page fault.
        6 PAGE_FAULT = "page fault",
        /// Memory was mapped.
        7 MMAP = "mmap",
        /// Memory was unmapped.
        8 MUNMAP = "munmap",
        /// Protection was changed.
        9 MPROTECT = "mprotect",
        /// A signal was sent.
        10 SIGNAL_SEND = "signal send",
        /// A signal was delivered.
        11 SIGNAL_DELIVER = "signal deliver",
        /// A process forked.
        12 FORK = "fork",
        /// A process executed a program.
        13 EXEC = "exec",
        /// A process ended.
        14 EXIT = "exit",
        /// A device interrupt.
        15 IRQ = "irq",
        /// A lock was contended.
        16 LOCK_CONTENDED = "lock contended",
        /// The processor became idle.
        17 IDLE_ENTER = "idle enter",
        /// The processor stopped being idle.
        18 IDLE_EXIT = "idle exit",
        /// A task became runnable.
        19 WAKE = "wake",
        /// A task went to sleep.
        20 SLEEP = "sleep",
    }
}

fields! {
    /// An event of the flight recorder; processor and ticks are in the stamp.
    record FlightEvent {
        /// What.
        1 kind: FlightKind,
        /// The source's word for it.
        2 name: &'a [u8],
        /// Process.
        3 pid: u32,
        /// Thread.
        4 tid: u32,
        /// First number; its meaning depends on the kind.
        5 a: u64,
        /// Second number.
        6 b: u64,
        /// Third number.
        7 c: u64,
        /// Fourth number.
        8 d: u64,
        /// Details as printed.
        9 detail: &'a [u8],
        /// Ticks since the recorder's base as printed.
        10 delta_ticks: u64,
    }
}
