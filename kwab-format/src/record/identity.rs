//! Owns the records that say what the dump is about: kernel, input, processors, images.

use crate::list::List;

open_enum! {
    /// An instruction set.
    Arch: u16 {
        /// AMD64, little-endian, 64 bits.
        1 X86_64 = "x86_64",
        /// AArch64, little-endian, 64 bits.
        2 AARCH64 = "aarch64",
        /// RISC-V, 64 bits.
        3 RISCV64 = "riscv64",
        /// Power, 32 or 64 bits.
        4 POWERPC = "powerpc",
        /// IBM Z, 64 bits.
        5 S390X = "s390x",
        /// MIPS, 32 or 64 bits.
        6 MIPS = "mips",
        /// LoongArch, 64 bits.
        7 LOONGARCH = "loongarch",
        /// SPARC, 64 bits.
        8 SPARC = "sparc",
    }
}

open_enum! {
    /// Why the dump was taken.
    Reason: u16 {
        /// The kernel died.
        1 KERNEL_CRASH = "kernel crash",
        /// A user program died of a signal.
        2 PROCESS_CRASH = "process crash",
        /// A dump of the running kernel was requested.
        3 LIVE = "live",
        /// Made from a log that holds no crash.
        4 RECORDING = "recording",
        /// A hang was detected, or an NMI or SysRq was sent.
        5 HANG = "hang",
        /// Made from another dump.
        6 SALVAGE = "salvage",
    }
}

fields! {
    /// Kernel, boot and dump; the first record of the first section.
    record Identity {
        /// For example `Linux` or the name of the kernel of this workspace.
        1 kernel_name: &'a [u8],
        /// Release, and whatever the kernel prints with it.
        2 kernel_version: &'a [u8],
        /// GNU build-id of the kernel image.
        3 kernel_build_id: &'a [u8],
        /// Instruction set of the kernel.
        4 arch: Arch,
        /// Kernel command line.
        5 command_line: &'a [u8],
        /// Wall clock when the dump was taken, nanoseconds since 1970-01-01 UTC.
        6 wall_ns: i64,
        /// Monotonic nanoseconds since boot when the dump was taken.
        7 mono_ns: u64,
        /// Why the dump was taken.
        8 reason: Reason,
        /// The same in the writer's words.
        9 reason_text: &'a [u8],
        /// Program that wrote the dump, with version.
        10 producer: &'a [u8],
        /// Number of processors online when the dump was taken.
        11 cpus: u32,
        /// Bytes of the smallest page.
        12 page_size: u32,
        /// Frequency of the time-stamp counter, hertz.
        13 tsc_hz: u64,
        /// Bytes of usable memory.
        14 ram_bytes: u64,
        /// Run-time minus link-time address of the kernel.
        15 kernel_offset: u64,
        /// Virtual address of physical address 0 in the kernel's direct map.
        16 direct_map: u64,
        /// Host name, as uname(2) reports it.
        17 hostname: &'a [u8],
        /// Machine, board and firmware as the kernel names them.
        18 hardware: &'a [u8],
        /// Taint flags or other reasons to distrust the kernel.
        19 taint: &'a [u8],
        /// Safety profile or other build options.
        20 build_profile: &'a [u8],
        /// Which boot of the input this is, from 1.
        21 boot_number: u32,
        /// Which crash of the input this is, from 1.
        22 crash_number: u32,
        /// Active debug categories.
        23 debug: &'a [u8],
    }
}

fields! {
    /// The input that an importer or salvager made this dump from.
    record Source {
        /// Name of the input as the user gave it.
        1 name: &'a [u8],
        /// Bytes of the whole input.
        2 length: u64,
        /// First byte that this dump was made from.
        3 start: u64,
        /// Byte behind the last one.
        4 end: u64,
        /// Lines in that range.
        5 lines: u64,
        /// CRC32 of the bytes in that range.
        6 crc: u32,
        /// How the input was written, for example `dbg-hex`, `dbg-json`, `linux`, `armour`, `kwab`.
        7 dialect: &'a [u8],
        /// Id of the dump that this one was salvaged from.
        8 dump_id: u64,
    }
}

open_enum! {
    /// What a processor was doing when the dump was taken.
    CpuState: u8 {
        /// It wrote the dump.
        1 DUMPING = "dumping",
        /// It stopped when asked, and its registers were taken.
        2 STOPPED = "stopped",
        /// It did not answer in time.
        3 SILENT = "no answer",
        /// It was not online.
        4 OFFLINE = "offline",
        /// It went on running (live dump).
        5 RUNNING = "running",
        /// It was idle.
        6 IDLE = "idle",
    }
}

fields! {
    /// One processor and what ran on it.
    record Cpu {
        /// Number as the kernel counts.
        1 number: u32,
        /// Number as the hardware counts (APIC id, MPIDR).
        2 hardware_id: u64,
        /// What it was doing.
        3 state: CpuState,
        /// Process on it.
        4 pid: u32,
        /// Thread on it.
        5 tid: u32,
        /// Whether interrupts were on.
        6 interrupts_on: bool,
        /// Depth of nested interrupts.
        7 interrupt_depth: u32,
        /// Preemption or lock-depth counter.
        8 preempt_count: u32,
        /// Active page-table root, physical.
        9 page_table_root: u64,
        /// Model name as the processor states it.
        10 model: &'a [u8],
        /// Highest interrupt vector in service (ISR of a local APIC); 0 when none is.
        11 vector_in_service: u8,
        /// Highest interrupt vector that was requested and not taken (IRR of a local APIC); 0 when none was.
        12 vector_requested: u8,
        /// Task priority of the interrupt controller (TPR of a local APIC), which holds back vectors up to it.
        13 task_priority: u8,
        /// Whether the processor's one-shot timer is counting.
        14 timer_counts: bool,
        /// When the kernel wants that timer to expire, nanoseconds since boot; 0 when it does not.
        15 timer_ns: u64,
    }
}

open_enum! {
    /// What an image is to the machine.
    ImageKind: u8 {
        /// The kernel itself.
        1 KERNEL = "kernel",
        /// A kernel module.
        2 MODULE = "module",
        /// A program, as executed by execve(2).
        3 EXECUTABLE = "executable",
        /// The dynamic loader.
        4 INTERPRETER = "interpreter",
        /// A shared library.
        5 LIBRARY = "library",
        /// The vDSO that the kernel maps into programs.
        6 VDSO = "vdso",
    }
}

fields! {
    /// A loaded image, so that symbols can be found for it.
    record Image {
        /// Path or name.
        1 path: &'a [u8],
        /// GNU build-id, as raw bytes.
        2 build_id: &'a [u8],
        /// Run-time minus link-time address.
        3 load_bias: u64,
        /// Run-time address of the first byte.
        4 start: u64,
        /// Address behind the last.
        5 end: u64,
        /// Process; absent for the kernel's own.
        6 pid: u32,
        /// What it is.
        7 kind: ImageKind,
        /// Entry point at run time.
        8 entry: u64,
        /// Version or taint marks printed with the name.
        9 version: &'a [u8],
        /// Loadable segments, in the order of the program headers.
        10 segments: List<'a, Segment<'a>>,
        /// Run-time address of the note that holds the build-id; says the load bias of an image that is at hand.
        11 build_id_at: u64,
    }
}

fields! {
    /// A loadable segment of an [`Image`].
    element Segment {
        /// First address at run time.
        1 start: u64,
        /// Bytes in memory.
        2 length: u64,
        /// Offset in the file.
        3 file_offset: u64,
        /// Bit 0 read, bit 1 write, bit 2 execute.
        4 prot: u32,
    }
}

fields! {
    /// Bytes of an image's file, or of a small one with its names and lines, which the dump carries for readers
    /// without it.
    record ImageFile {
        /// GNU build-id of the image, as raw bytes.
        1 build_id: &'a [u8],
        /// Name of the file, without a directory.
        2 name: &'a [u8],
        /// Bytes of the whole file.
        3 length: u64,
        /// Offset in the file of the first byte here.
        4 file_offset: u64,
        /// The bytes from there on, as they stand in the file.
        5 bytes: &'a [u8],
    }
}
