//! Owns the records of debug events about faults, user copies and page checks.

use crate::list::List;

fields! {
    /// Event `page_fault`.
    record PageFault {
        /// Process.
        1 pid: u32,
        /// Address.
        2 vaddr: u64,
        /// Instruction.
        3 ip: u64,
        /// The access and what forbids it, in the source's words.
        4 reason: &'a [u8],
        /// Whether the fault could be served.
        5 resolved: bool,
        /// First address of the mapping.
        6 vma_start: u64,
        /// Address behind its last.
        7 vma_end: u64,
        /// What it is, in the source's word.
        8 vma_type: &'a [u8],
        /// Error code of the exception.
        9 error_code: u64,
    }
}

fields! {
    /// Event `user_fault`.
    record UserFault {
        /// Process.
        1 pid: u32,
        /// Exception.
        2 exception: &'a [u8],
        /// Instruction.
        3 ip: u64,
        /// The signal it becomes.
        4 signal_delivered: i64,
        /// Address whose access failed.
        5 fault_addr: u64,
    }
}

fields! {
    /// Event `usercopy_fault`.
    record UsercopyFault {
        /// Process.
        1 pid: u32,
        /// Address.
        2 fault_addr: u64,
        /// Instruction.
        3 ip: u64,
        /// Which part of the copy loop.
        4 label: &'a [u8],
        /// To.
        5 dst: u64,
        /// From.
        6 src: u64,
        /// Bytes not copied.
        7 remaining: u64,
        /// Bytes asked for.
        8 orig_len: u64,
        /// Who asked.
        9 ctx: &'a [u8],
    }
}

fields! {
    /// Event `ucopy_trace_dump`.
    record UcopyTraceDump {
        /// Process.
        1 pid: u32,
        /// Why it was dumped.
        2 trigger: &'a [u8],
        /// Copies since boot.
        3 total_calls: u64,
        /// Last copies.
        4 entries: List<'a, UcopyEntry<'a>>,
    }
}

fields! {
    /// A copy in a [`UcopyTraceDump`].
    element UcopyEntry {
        /// To.
        1 dst: u64,
        /// From.
        2 src: u64,
        /// Bytes.
        3 len: u64,
        /// Return address.
        4 ret: u64,
        /// Members that have no field here, as they stood.
        5 extra: &'a [u8],
    }
}

fields! {
    /// Event `usercopy`.
    record Usercopy {
        /// Process.
        1 pid: u32,
        /// Direction.
        2 dir: &'a [u8],
        /// User address.
        3 addr: u64,
        /// Bytes.
        4 len: u64,
        /// Who asked.
        5 ctx: &'a [u8],
    }
}

fields! {
    /// Event `page_verify_fail`.
    record PageVerifyFail {
        /// Process.
        1 pid: u32,
        /// Page.
        2 vaddr: u64,
        /// First byte that differs.
        3 first_diff: u64,
        /// What should be there.
        4 expected: u64,
        /// What is there.
        5 actual: u64,
        /// Offset of the page in its file.
        6 file_offset: u64,
        /// First address of the mapping.
        7 vma_start: u64,
    }
}

fields! {
    /// Event `huge_page_verify_fail`.
    record HugePageVerifyFail {
        /// Process.
        1 pid: u32,
        /// Huge page.
        2 huge_base: u64,
        /// Small page of it.
        3 sub_page: u64,
        /// First byte that differs.
        4 first_diff: u64,
        /// What should be there.
        5 expected: u64,
        /// What is there.
        6 actual: u64,
        /// First address of the mapping.
        7 vma_start: u64,
        /// What it is, in the source's word.
        8 vma_type: &'a [u8],
    }
}

fields! {
    /// Event `page_verify_ok`.
    record PageVerifyOk {
        /// Process.
        1 pid: u32,
        /// Pages looked at.
        2 verified: u64,
        /// Pages that differ.
        3 failed: u64,
    }
}

fields! {
    /// Event `vm_audit`.
    record VmAudit {
        /// Process.
        1 pid: u32,
        /// Mappings.
        2 vmas: List<'a, AuditVma<'a>>,
    }
}

fields! {
    /// A mapping in a [`VmAudit`].
    element AuditVma {
        /// First address.
        1 start: u64,
        /// Address behind the last.
        2 end: u64,
        /// Protection.
        3 prot: u64,
        /// Pages with an entry.
        4 mapped: u64,
        /// Pages without.
        5 unmapped: u64,
        /// Entries that allow what the mapping does not, or the reverse.
        6 perm_mismatch: u64,
        /// Members that have no field here, as they stood.
        7 extra: &'a [u8],
    }
}

fields! {
    /// Event `exec_prefault`.
    record ExecPrefault {
        /// Process.
        1 pid: u32,
        /// Where.
        2 vaddr: u64,
        /// Pages from the cache.
        3 cached: u64,
        /// Pages read from the file.
        4 file_read: u64,
        /// Zero pages.
        5 zero: u64,
        /// Pages in all.
        6 total: u64,
    }
}
