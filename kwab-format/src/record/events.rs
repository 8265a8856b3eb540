//! Owns the records of debug events about processes, signals, tracing and whole crashes.

use crate::list::List;
use crate::record::Reg;

fields! {
    /// Event `canary_check`: the stack protector's canary was compared around a system call.
    record CanaryCheck {
        /// Process whose canary was compared.
        1 pid: u32,
        /// Thread pointer (FS base on x86_64).
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
    /// Event `signal`: a signal was delivered.
    record Signal {
        /// Process that received the signal.
        1 pid: u32,
        /// Number of the signal, 1 to 64.
        2 signal: i64,
        /// Name of the signal, for example `SIGSEGV`.
        3 signal_name: &'a [u8],
        /// What is done about it.
        4 action: &'a [u8],
        /// User instruction at which the program was interrupted.
        5 ip: u64,
        /// Address of the handler; absent if none runs.
        6 handler: u64,
    }
}

fields! {
    /// Event `signal_stack_write`: part of a signal frame was written to a user stack.
    record SignalStackWrite {
        /// Process that received the signal.
        1 pid: u32,
        /// Number of the signal, 1 to 64.
        2 signal: i64,
        /// What was written.
        3 what: &'a [u8],
        /// User address of the first byte written.
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
    /// Event `process_fork`: a process was created.
    record ProcessFork {
        /// Process that called fork(2), vfork(2) or clone(2).
        1 parent_pid: u32,
        /// Process that was created.
        2 child_pid: u32,
    }
}

fields! {
    /// Event `process_exec`: a process executed a program.
    record ProcessExec {
        /// Process that called execve(2).
        1 pid: u32,
        /// Its new name.
        2 argv0: &'a [u8],
        /// First user instruction of the program or its interpreter.
        3 entry: u64,
    }
}

fields! {
    /// Event `process_exit`: a process ended.
    record ProcessExit {
        /// Process that ended.
        1 pid: u32,
        /// Exit status, or the number of the signal if `by_signal` is set.
        2 status: i64,
        /// Whether a signal ended it.
        3 by_signal: bool,
    }
}

fields! {
    /// Event `crash_report`: a signal ended a program.
    record CrashReport {
        /// Process that the signal ended.
        1 pid: u32,
        /// Number of the signal.
        2 signal: i64,
        /// Name of the signal.
        3 signal_name: &'a [u8],
        /// Command line of the process.
        4 cmdline: &'a [u8],
        /// Address whose access failed.
        5 fault_addr: u64,
        /// User instruction at which the signal was raised.
        6 ip: u64,
        /// Thread pointer (FS base on x86_64).
        7 fsbase: u64,
        /// User registers at that instruction.
        8 regs: List<'a, Reg<'a>>,
        /// Last system calls, oldest first.
        9 syscalls: List<'a, CrashSyscall<'a>>,
        /// Mappings of the process, in the order the source printed them.
        10 vmas: List<'a, CrashVma<'a>>,
        /// Thread that received the signal.
        11 tid: u32,
        /// `si_code` of the signal (sigaction(2)).
        12 signal_code: i64,
    }
}

fields! {
    /// A system call in a [`CrashReport`].
    element CrashSyscall {
        /// Number of the system call.
        1 nr: i64,
        /// Name of the system call as the source printed it.
        2 name: &'a [u8],
        /// What the call returned, an error as a negative number.
        3 result: i64,
        /// First argument, as the register held it.
        4 arg0: u64,
        /// Second argument, as the register held it.
        5 arg1: u64,
        /// Third argument, as the register held it.
        6 arg2: u64,
        /// Fourth argument, as the register held it.
        7 arg3: u64,
        /// Fifth argument, as the register held it.
        8 arg4: u64,
        /// Sixth argument, as the register held it.
        9 arg5: u64,
        /// Nanoseconds from entry to exit.
        10 duration_ns: u64,
        /// Processor on which the call was made.
        11 cpu: u32,
        /// Members that have no field here, as they stood.
        12 extra: &'a [u8],
    }
}

fields! {
    /// A mapping in a [`CrashReport`].
    element CrashVma {
        /// Address of the first byte, a multiple of the page size.
        1 start: u64,
        /// Address behind the last.
        2 end: u64,
        /// What it is, in the source's word.
        3 kind: &'a [u8],
        /// Protection as the source wrote it: bit 0 read, bit 1 write, bit 2 execute.
        4 prot: u64,
        /// Path of the mapped file; absent for anonymous memory.
        5 file: &'a [u8],
        /// Offset in it.
        6 file_offset: u64,
        /// Members that have no field here, as they stood.
        7 extra: &'a [u8],
    }
}

fields! {
    /// Event `panic`: the kernel panicked.
    record Panic {
        /// The panic message, without file and line.
        1 message: &'a [u8],
        /// Frames, innermost first.
        2 backtrace: List<'a, PanicFrame<'a>>,
        /// Source file of the panic.
        3 file: &'a [u8],
        /// Line in it.
        4 source_line: u32,
    }
}

fields! {
    /// A frame of a [`Panic`].
    element PanicFrame {
        /// Return address, or the panicking instruction in the innermost frame.
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
        /// Name of the span's kind.
        2 name: &'a [u8],
        /// Number of spans that enclose it on the same processor.
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
        /// Entries written, overwritten ones included.
        1 total_entries: u64,
        /// Entries the ring holds.
        2 ring_size: u64,
    }
}

open_enum! {
    /// What a flight recorder saw.
    FlightKind: u16 {
        /// Another task runs: process `a` before, `b` after (0: idle), `c` the thread before, `d` its state.
        1 CONTEXT_SWITCH = "context switch",
        /// An interrupt to another processor was sent: `a` its number.
        2 IPI_SEND = "ipi send",
        /// An interrupt from another processor came.
        3 IPI_RECEIVE = "ipi receive",
        /// Other processors must forget translations: `a` one bit for each of them, `b` 1 if the kernel's too.
        4 TLB_SEND = "tlb shootdown send",
        /// A processor forgot translations when asked: `a` 1 if the kernel's too.
        5 TLB_RECEIVE = "tlb shootdown receive",
        /// A page fault: `a` address, `b` instruction, `c` error code of the processor.
        6 PAGE_FAULT = "page fault",
        /// Memory was mapped: `a` address, `b` bytes, `c` protection (1 read, 2 write, 4 execute).
        7 MMAP = "mmap",
        /// Memory was unmapped: `a` address, `b` bytes.
        8 MUNMAP = "munmap",
        /// Protection was changed: `a` address, `b` bytes, `c` protection (1 read, 2 write, 4 execute).
        9 MPROTECT = "mprotect",
        /// A signal was sent: `a` its number, `b` the receiving process.
        10 SIGNAL_SEND = "signal send",
        /// A signal was delivered: `a` its number, `b` address of the handler, 0 for the default action.
        11 SIGNAL_DELIVER = "signal deliver",
        /// A process forked: `a` the parent, `b` the new thread.
        12 FORK = "fork",
        /// A process executed a program: `a` entry point, `b` stack pointer.
        13 EXEC = "exec",
        /// A thread ended: `a` wait status, `b` 1 if no other thread of its process is left.
        14 EXIT = "exit",
        /// An interrupt: `a` source (0 timer, 1 console, 16 + n line n), `b` repeats that followed, `c` ns of the last.
        15 IRQ = "irq",
        /// A lock was contended: `a` its address, `b` the processor that holds it.
        16 LOCK_CONTENDED = "lock contended",
        /// The processor became idle.
        17 IDLE_ENTER = "idle enter",
        /// The processor stopped being idle.
        18 IDLE_EXIT = "idle exit",
        /// A task became runnable.
        19 WAKE = "wake",
        /// A task went to sleep.
        20 SLEEP = "sleep",
        /// A processor took a lock that it had waited for: `a` its address.
        21 LOCK_TAKEN = "lock taken",
    }
}

fields! {
    /// An event of the flight recorder; processor and ticks are in the stamp.
    record FlightEvent {
        /// What happened; decides what `a` to `d` mean.
        1 kind: FlightKind,
        /// The source's word for it.
        2 name: &'a [u8],
        /// Process that was running; absent if none was.
        3 pid: u32,
        /// Thread that was running; absent if none was.
        4 tid: u32,
        /// First number; its meaning depends on the kind.
        5 a: u64,
        /// Second number; its meaning depends on the kind.
        6 b: u64,
        /// Third number; its meaning depends on the kind.
        7 c: u64,
        /// Fourth number; its meaning depends on the kind.
        8 d: u64,
        /// Details as printed.
        9 detail: &'a [u8],
        /// Ticks since the recorder's base as printed.
        10 delta_ticks: u64,
    }
}
