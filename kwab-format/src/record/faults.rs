//! Owns the records of debug events about faults, user copies and page checks.

use crate::list::List;

fields! {
    /// Event `page_fault`: a program's access faulted.
    record PageFault {
        /// Process whose access faulted.
        1 pid: u32,
        /// Virtual address of the access.
        2 vaddr: u64,
        /// Address of the instruction that made the access.
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
    /// Event `user_fault`: an exception in a program became a signal.
    record UserFault {
        /// Process that raised the exception.
        1 pid: u32,
        /// Name of the exception as the source printed it.
        2 exception: &'a [u8],
        /// Address of the instruction that raised it.
        3 ip: u64,
        /// The signal it becomes.
        4 signal_delivered: i64,
        /// Address whose access failed.
        5 fault_addr: u64,
    }
}

fields! {
    /// Event `usercopy_fault`: a copy between kernel and user memory stopped at a fault.
    record UsercopyFault {
        /// Process whose memory was copied.
        1 pid: u32,
        /// First user address that could not be accessed.
        2 fault_addr: u64,
        /// Address of the copying instruction.
        3 ip: u64,
        /// Which part of the copy loop.
        4 label: &'a [u8],
        /// Address that the copy began to write at.
        5 dst: u64,
        /// Address that the copy began to read at.
        6 src: u64,
        /// Bytes not copied.
        7 remaining: u64,
        /// Bytes asked for.
        8 orig_len: u64,
        /// What made the copy, usually the name of a system call.
        9 ctx: &'a [u8],
    }
}

fields! {
    /// Event `ucopy_trace_dump`: the recorded copies between kernel and user memory.
    record UcopyTraceDump {
        /// Process that was running.
        1 pid: u32,
        /// Why it was dumped.
        2 trigger: &'a [u8],
        /// Copies since boot.
        3 total_calls: u64,
        /// The last copies, in the order the source printed them.
        4 entries: List<'a, UcopyEntry<'a>>,
    }
}

fields! {
    /// A copy in a [`UcopyTraceDump`].
    element UcopyEntry {
        /// Address that the copy began to write at.
        1 dst: u64,
        /// Address that the copy began to read at.
        2 src: u64,
        /// Number of bytes to copy.
        3 len: u64,
        /// Return address of the copy function.
        4 ret: u64,
        /// Members that have no field here, as they stood.
        5 extra: &'a [u8],
    }
}

fields! {
    /// Event `usercopy`: a copy between kernel and user memory.
    record Usercopy {
        /// Process whose memory was copied.
        1 pid: u32,
        /// `to_user` or `from_user`.
        2 dir: &'a [u8],
        /// User address of the first byte.
        3 addr: u64,
        /// Number of bytes to copy.
        4 len: u64,
        /// What made the copy, usually the name of a system call.
        5 ctx: &'a [u8],
    }
}

fields! {
    /// Event `page_verify_fail`: a page differs from its file.
    record PageVerifyFail {
        /// Process whose page was compared.
        1 pid: u32,
        /// Virtual address of the page.
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
    /// Event `huge_page_verify_fail`: a small page of a huge page differs from its file.
    record HugePageVerifyFail {
        /// Process whose page was compared.
        1 pid: u32,
        /// Virtual address of the huge page.
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
    /// Event `page_verify_ok`: totals of one comparison of pages with their files.
    record PageVerifyOk {
        /// Process whose pages were compared.
        1 pid: u32,
        /// Pages looked at.
        2 verified: u64,
        /// Pages that differ.
        3 failed: u64,
    }
}

fields! {
    /// Event `vm_audit`: the page table of a process, compared with its mappings.
    record VmAudit {
        /// Process whose page table was compared.
        1 pid: u32,
        /// Mappings of the process, in the order the source printed them.
        2 vmas: List<'a, AuditVma<'a>>,
    }
}

fields! {
    /// A mapping in a [`VmAudit`].
    element AuditVma {
        /// Address of the first byte, a multiple of the page size.
        1 start: u64,
        /// Address behind the last.
        2 end: u64,
        /// Protection as the source wrote it: bit 0 read, bit 1 write, bit 2 execute.
        3 prot: u64,
        /// Pages with an entry.
        4 mapped: u64,
        /// Pages without an entry.
        5 unmapped: u64,
        /// Entries that allow what the mapping does not, or the reverse.
        6 perm_mismatch: u64,
        /// Members that have no field here, as they stood.
        7 extra: &'a [u8],
    }
}

fields! {
    /// Event `exec_prefault`: pages that execve(2) mapped before the program ran.
    record ExecPrefault {
        /// Process that called execve(2).
        1 pid: u32,
        /// Virtual address of the first page.
        2 vaddr: u64,
        /// Pages from the cache.
        3 cached: u64,
        /// Pages read from the file.
        4 file_read: u64,
        /// Pages that were filled with zeros.
        5 zero: u64,
        /// Pages in all.
        6 total: u64,
    }
}
