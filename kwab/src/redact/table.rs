//! Owns the table of redaction: of every kind of record and every field, what it may hold.
//!
//! The table allows: a kind or a field that is not in it is removed. `Holds` says what becomes of each class under each
//! policy, so that a row decides one thing only. A test compares the rows with the schema of the format, so that a new
//! field cannot be forgotten, and with its shapes.

use super::Policy;

/// What a field may hold. The order is that of `kwab redact --rules`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A value of an enumeration of the format, or a truth value.
    Named,
    /// A number that the kernel or a reader counted: a process, a line, a size, a time since boot.
    Count,
    /// Time by the wall clock.
    Clock,
    /// The address of a mapping, an instruction, an object, an access.
    Address,
    /// A page-table entry.
    Entry,
    /// A number of the flight recorder, whose kind says what it is.
    Recorded,
    /// 64 bits that code chose: a register, an argument, a result.
    Word,
    /// A fixed text of kwab or of a kernel: the name of a call, of a signal, of a counter.
    Known,
    /// The name of something in the kernel: a function, a module, a lock.
    Symbol,
    /// A source file of the kernel, with or without a line.
    Source,
    /// Name and release of a kernel or program.
    Version,
    /// A sentence that the kernel or kwab made, with anything in it.
    Prose,
    /// The build-id of an image.
    BuildId,
    /// Bytes of memory.
    Memory,
    /// Elements, each with fields of its own.
    List(&'static [Field]),
    /// Text, names or bytes of users, or a digest of them; also what could be such.
    Private,
}

impl Holds {
    /// The name in the list of rules.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Count => "count",
            Self::Clock => "clock",
            Self::Address => "address",
            Self::Entry => "entry",
            Self::Recorded => "recorded",
            Self::Word => "word",
            Self::Known => "known",
            Self::Symbol => "symbol",
            Self::Source => "source",
            Self::Version => "version",
            Self::Prose => "prose",
            Self::BuildId => "build-id",
            Self::Memory => "memory",
            Self::List(_) => "list",
            Self::Private => "private",
        }
    }

    /// What stays of it under a policy.
    #[must_use]
    pub const fn under(self, policy: Policy) -> &'static str {
        match (self, policy) {
            (Self::Named, _) => "values with a name",
            (Self::Count, _) => "all",
            (Self::Clock, Policy::Kernel) => "all",
            (Self::Address, _) => "addresses",
            (Self::Entry, _) => "page-table entries",
            (Self::Recorded, _) => "addresses, numbers of 32 bits",
            (Self::Word, _) => "pointers, small numbers",
            (Self::Known, _) => "fixed texts",
            (Self::Symbol, Policy::Kernel) => "names of the kernel",
            (Self::Source, Policy::Kernel) => "relative paths, else the last part",
            (Self::Version, Policy::Kernel) => "up to three words",
            (Self::Prose, Policy::Kernel) => "words of the list, addresses",
            (Self::BuildId, Policy::Kernel) => "the kernel's and its modules'",
            (Self::Memory, Policy::Kernel) => "kernel code, pointers, numbers",
            (Self::List(_), _) => "element by element",
            (_, Policy::Structure) | (Self::Private, _) => "nothing",
        }
    }
}

/// A field of a record or of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The number in the format.
    pub number: u8,
    /// The name in the format.
    pub name: &'static str,
    /// What it may hold.
    pub holds: Holds,
}

/// A kind of record.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The number in the format.
    pub kind: u8,
    /// The name in the format.
    pub name: &'static str,
    /// Its own fields, without the stamp.
    pub fields: &'static [Field],
}

macro_rules! fields {
    ($($number:literal $name:ident $holds:ident $(($element:ident))?),* $(,)?) => {
        &[$(Field { number: $number, name: stringify!($name), holds: Holds::$holds $(($element))? }),*]
    };
}

macro_rules! table {
    ($($kind:literal $name:ident { $($fields:tt)* })*) => {
        /// The rows of every kind of record, in ascending order of number.
        pub static TABLE: &[Rows] = &[$(Rows { kind: $kind, name: stringify!($name), fields: fields!($($fields)*) }),*];
    };
}

/// The fields that every record may carry.
pub const STAMP: &[Field] = fields! {
    24 seq Count, 25 cpu Count, 26 ns Count, 27 tsc Count, 28 offset Count, 29 line Count, 30 extra Private,
};

const SEGMENT: &[Field] = fields! { 1 start Address, 2 length Count, 3 file_offset Count, 4 prot Count };
const REG: &[Field] = fields! { 1 id Count, 2 value Word, 3 name Known };
const UCOPY: &[Field] = fields! { 1 dst Address, 2 src Address, 3 len Count, 4 ret Address, 5 extra Private };
const CRASH_CALL: &[Field] = fields! {
    1 nr Count, 2 name Known, 3 result Word, 4 arg0 Word, 5 arg1 Word, 6 arg2 Word, 7 arg3 Word, 8 arg4 Word,
    9 arg5 Word, 10 duration_ns Count, 11 cpu Count, 12 extra Private,
};
const CRASH_VMA: &[Field] = fields! {
    1 start Address, 2 end Address, 3 kind Known, 4 prot Count, 5 file Private, 6 file_offset Count, 7 extra Private,
};
const PANIC_FRAME: &[Field] = fields! { 1 addr Address, 2 sym Symbol, 3 off Count, 4 extra Private };
const CALL_PROFILE: &[Field] = fields! {
    1 nr Count, 2 name Known, 3 calls Count, 4 total_ns Count, 5 avg_ns Count, 6 min_ns Count, 7 max_ns Count,
    8 extra Private,
};
const SPAN: &[Field] = fields! {
    1 id Count, 2 name Symbol, 3 calls Count, 4 total_ns Count, 5 avg_ns Count, 6 min_ns Count, 7 max_ns Count,
    8 extra Private,
};
const AUDIT_VMA: &[Field] = fields! {
    1 start Address, 2 end Address, 3 prot Count, 4 mapped Count, 5 unmapped Count, 6 perm_mismatch Count,
    7 extra Private,
};
const LEVEL: &[Field] = fields! { 1 level Count, 2 raw Entry, 3 addr Count };

table! {
    1 Identity {
        1 kernel_name Version, 2 kernel_version Version, 3 kernel_build_id BuildId, 4 arch Named,
        5 command_line Private, 6 wall_ns Clock, 7 mono_ns Count, 8 reason Named, 9 reason_text Prose,
        10 producer Version, 11 cpus Count, 12 page_size Count, 13 tsc_hz Count, 14 ram_bytes Count,
        15 kernel_offset Count, 16 direct_map Address, 17 hostname Private, 18 hardware Private, 19 taint Prose,
        20 build_profile Prose, 21 boot_number Count, 22 crash_number Count, 23 debug Private,
    }
    2 Source {
        1 name Private, 2 length Count, 3 start Count, 4 end Count, 5 lines Count, 6 crc Private, 7 dialect Known,
        8 dump_id Private,
    }
    3 Cpu {
        1 number Count, 2 hardware_id Count, 3 state Named, 4 pid Count, 5 tid Count, 6 interrupts_on Named,
        7 interrupt_depth Count, 8 preempt_count Count, 9 page_table_root Count, 10 model Private,
        11 vector_in_service Count, 12 vector_requested Count, 13 task_priority Count, 14 timer_counts Named,
        15 timer_ns Count,
    }
    4 Image {
        1 path Symbol, 2 build_id BuildId, 3 load_bias Count, 4 start Address, 5 end Address, 6 pid Count, 7 kind Named,
        8 entry Address, 9 version Private, 10 segments List(SEGMENT), 11 build_id_at Address,
    }
    5 Cause {
        1 kind Named, 2 message Prose, 3 file Source, 4 source_line Count, 5 column Count, 6 pid Count, 7 tid Count,
        8 comm Private, 9 cmdline Private, 10 signal Count, 11 signal_name Known, 12 signal_code Count,
        13 fault_addr Address, 14 ip Address, 15 sp Address, 16 vector Count, 17 exception Known, 18 error_code Count,
        19 syscall Count, 20 location Symbol, 21 in_kernel Named, 22 lock Address, 23 context Prose,
    }
    6 Frame {
        1 trace Count, 2 index Count, 3 addr Address, 4 symbol Symbol, 5 symbol_offset Count, 6 symbol_size Count,
        7 module Symbol, 8 trust Named, 9 stack Known, 10 pid Count, 11 tid Count, 12 file Source,
        13 source_line Count,
    }
    7 Registers {
        1 role Named, 2 pid Count, 3 tid Count, 4 arch Named, 5 vector Count, 6 error_code Count, 7 regs List(REG),
        8 extended Private,
    }
    8 Memory {
        1 kind Named, 2 vaddr Address, 3 paddr Count, 4 pid Count, 5 tid Count, 6 bytes Memory, 7 wanted Count,
        8 marked Count, 9 label Known, 10 zeros Count,
    }
    9 StackBounds {
        1 label Known, 2 low Address, 3 high Address, 4 guard Count, 5 pid Count, 6 tid Count, 7 deepest Address,
    }
    10 SyscallEntry {
        1 pid Count, 2 tid Count, 3 nr Count, 4 name Known, 5 arg0 Word, 6 arg1 Word, 7 arg2 Word, 8 arg3 Word,
        9 arg4 Word, 10 arg5 Word,
    }
    11 SyscallExit {
        1 pid Count, 2 tid Count, 3 nr Count, 4 name Known, 5 result Word, 6 errno Known, 7 duration_ns Count,
        8 text0 Private, 9 text1 Private, 10 text2 Private, 11 text3 Private, 12 text4 Private, 13 text5 Private,
        14 texts_cut Count,
    }
    12 SyscallRecord {
        1 pid Count, 2 tid Count, 3 nr Count, 4 name Known, 5 arg0 Word, 6 arg1 Word, 7 arg2 Word, 8 arg3 Word,
        9 arg4 Word, 10 arg5 Word, 11 result Word, 12 duration_ns Count, 13 duration_ticks Count, 14 in_progress Named,
        15 index Count, 16 text0 Private, 17 text1 Private, 18 text2 Private, 19 text3 Private, 20 text4 Private,
        21 text5 Private, 22 texts_cut Count,
    }
    13 UnimplementedSyscall { 1 pid Count, 2 nr Count, 3 name Known }
    14 CanaryCheck {
        1 pid Count, 2 fsbase Address, 3 expected Private, 4 found Private, 5 corrupted Named, 6 when Known,
        7 syscall Known,
    }
    15 PageFault {
        1 pid Count, 2 vaddr Address, 3 ip Address, 4 reason Prose, 5 resolved Named, 6 vma_start Address,
        7 vma_end Address, 8 vma_type Known, 9 error_code Count,
    }
    16 UserFault { 1 pid Count, 2 exception Known, 3 ip Address, 4 signal_delivered Count, 5 fault_addr Address }
    17 UsercopyFault {
        1 pid Count, 2 fault_addr Address, 3 ip Address, 4 label Known, 5 dst Address, 6 src Address,
        7 remaining Count, 8 orig_len Count, 9 ctx Known,
    }
    18 UcopyTraceDump { 1 pid Count, 2 trigger Known, 3 total_calls Count, 4 entries List(UCOPY) }
    19 Usercopy { 1 pid Count, 2 dir Known, 3 addr Address, 4 len Count, 5 ctx Known }
    20 Signal { 1 pid Count, 2 signal Count, 3 signal_name Known, 4 action Known, 5 ip Address, 6 handler Address }
    21 SignalStackWrite {
        1 pid Count, 2 signal Count, 3 what Known, 4 addr Address, 5 len Count, 6 rsp_before Address,
        7 rsp_after Address,
    }
    22 ProcessFork { 1 parent_pid Count, 2 child_pid Count }
    23 ProcessExec { 1 pid Count, 2 argv0 Private, 3 entry Address }
    24 ProcessExit { 1 pid Count, 2 status Count, 3 by_signal Named }
    25 CrashReport {
        1 pid Count, 2 signal Count, 3 signal_name Known, 4 cmdline Private, 5 fault_addr Address, 6 ip Address,
        7 fsbase Address, 8 regs List(REG), 9 syscalls List(CRASH_CALL), 10 vmas List(CRASH_VMA), 11 tid Count,
        12 signal_code Count,
    }
    26 Panic { 1 message Prose, 2 backtrace List(PANIC_FRAME), 3 file Source, 4 source_line Count }
    27 SyscallProfile { 1 tsc_freq_hz Count, 2 entries List(CALL_PROFILE) }
    28 PageFaults { 1 count Count, 2 total_ns Count, 3 avg_ns Count }
    29 SpanProfile { 1 tsc_freq_hz Count, 2 entries List(SPAN) }
    30 Htrace { 1 id Count, 2 name Symbol, 3 depth Count, 4 dir Known, 5 data Word }
    31 HtraceSummary { 1 total_entries Count, 2 ring_size Count }
    32 PageVerifyFail {
        1 pid Count, 2 vaddr Address, 3 first_diff Count, 4 expected Private, 5 actual Private, 6 file_offset Count,
        7 vma_start Address,
    }
    33 HugePageVerifyFail {
        1 pid Count, 2 huge_base Address, 3 sub_page Count, 4 first_diff Count, 5 expected Private, 6 actual Private,
        7 vma_start Address, 8 vma_type Known,
    }
    34 PageVerifyOk { 1 pid Count, 2 verified Count, 3 failed Count }
    35 VmAudit { 1 pid Count, 2 vmas List(AUDIT_VMA) }
    36 ExecPrefault { 1 pid Count, 2 vaddr Address, 3 cached Count, 4 file_read Count, 5 zero Count, 6 total Count }
    37 UnknownEvent { 1 type_name Private, 2 json Private, 3 pid Count }
    38 FlightEvent {
        1 kind Named, 2 name Known, 3 pid Count, 4 tid Count, 5 a Recorded, 6 b Recorded, 7 c Recorded, 8 d Recorded,
        9 detail Private, 10 delta_ticks Count,
    }
    39 Vma {
        1 pid Count, 2 start Address, 3 end Address, 4 prot Count, 5 flags Count, 6 path Private, 7 file_offset Count,
        8 inode Private, 9 device Private, 10 name Known, 11 resident Count,
    }
    40 Pte {
        1 pid Count, 2 vaddr Address, 3 raw Entry, 4 paddr Count, 5 size Count, 6 rights Count, 7 count Count,
        8 refcount Count, 9 levels List(LEVEL), 10 root Count,
    }
    41 PageCheck {
        1 pid Count, 2 vaddr Address, 3 path Private, 4 file_offset Count, 5 length Count, 6 expected_crc Private,
        7 actual_crc Private, 8 first_diff Count, 9 expected Private, 10 actual Private, 11 paddr Count,
        12 result Named, 13 generation Count,
    }
    42 FrameInfo {
        1 frame Count, 2 count Count, 3 refcount Count, 4 mapped Count, 5 order Count, 6 flags Count, 7 owner Known,
        8 path Private, 9 file_offset Count,
    }
    43 Task {
        1 pid Count, 2 tid Count, 3 ppid Count, 4 comm Private, 5 state Named, 6 wait_reason Known,
        7 wait_object Address, 8 wait_tid Count, 9 state_ns Count, 10 last_cpu Count, 11 kernel_sp Address,
        12 kernel_ip Address, 13 user_sp Address, 14 user_ip Address, 15 syscall Count, 16 cmdline Private,
        17 run_ns Count, 18 priority Count, 19 page_table_root Count, 20 pending Count, 21 blocked Count,
        22 current Named, 23 state_text Known, 32 wait_object_name Symbol, 33 deadline_ns Count,
    }
    44 Lock {
        1 addr Address, 2 name Symbol, 3 kind Named, 4 holder_cpu Count, 5 holder_pid Count, 6 holder_tid Count,
        7 location Source, 8 location_ip Address, 9 held_ns Count, 10 readers Count, 11 irqs_off Named,
    }
    45 LockWait {
        1 addr Address, 2 name Symbol, 3 waiter_cpu Count, 4 waiter_pid Count, 5 waiter_tid Count, 6 location Source,
        7 waited_ns Count, 8 kind Named,
    }
    46 LogChunk { 1 bytes Private, 2 log_offset Count, 3 level Count }
    47 Counter { 1 group Known, 2 name Known, 3 value Count, 4 unit Known, 5 pid Count }
    48 Text { 1 kind Named, 2 bytes Private, 3 continues Named, 4 problem Private, 5 repeated Count }
    49 Drops {
        1 recorder Known, 2 total Count, 3 overwritten Count, 4 dropped Count, 5 capacity Count, 6 pid Count,
    }
    50 Note { 1 kind Named, 2 text Private, 3 section Count, 4 input_offset Count, 5 input_length Count }
    51 ImageFile { 1 build_id BuildId, 2 name Private, 3 length Count, 4 file_offset Count, 5 bytes Private }
    250 IndexEntry {
        1 kind Count, 2 section Count, 3 position Count, 4 length Count, 5 records Count, 6 paddr Count, 7 span Count,
    }
    251 KindTotal { 1 kind Count, 2 sections Count, 3 records Count, 4 bytes Count }
    252 DroppedSection { 1 kind Count, 2 reason Named, 3 sections Count, 4 records Count, 5 bytes Count }
    253 End {
        1 sections Count, 2 records Count, 3 bytes Count, 4 complete Named, 5 index Count, 6 unindexed Count,
    }
}

/// The rows of a kind of record; `None` for a kind that the table does not know, which is removed.
#[must_use]
pub fn rows(kind: u8) -> Option<&'static Rows> {
    let at = TABLE.binary_search_by_key(&kind, |rows| rows.kind).ok()?;
    TABLE.get(at)
}
