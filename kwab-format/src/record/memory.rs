//! Owns the records of memory: captured bytes, stacks, mappings, page-table entries, frames, page checks.

use crate::list::List;

open_enum! {
    /// What captured bytes are.
    MemoryKind: u8 {
        /// A kernel stack.
        1 KERNEL_STACK = "kernel stack",
        /// A user stack.
        2 USER_STACK = "user stack",
        /// Machine code around an instruction pointer.
        3 CODE = "code",
        /// A whole page.
        4 PAGE = "page",
        /// A kernel object.
        5 OBJECT = "object",
        /// A page table.
        6 PAGE_TABLE = "page table",
        /// Anything the kinds above do not describe; `label` says what.
        7 OTHER = "other",
    }
}

fields! {
    /// Bytes of memory.
    record Memory {
        /// What they are.
        1 kind: MemoryKind,
        /// Virtual address of the first.
        2 vaddr: u64,
        /// Physical address of the first.
        3 paddr: u64,
        /// Process whose address space `vaddr` is in; absent for the kernel's.
        4 pid: u32,
        /// Thread whose stack it is.
        5 tid: u32,
        /// The bytes, in ascending order of address.
        6 bytes: &'a [u8],
        /// Bytes that were wanted; more than there are when the rest could not be read.
        7 wanted: u64,
        /// Index of the byte at the instruction pointer.
        8 marked: u64,
        /// What it is, in the writer's words.
        9 label: &'a [u8],
        /// Bytes of value 0 that follow `bytes` in memory and are not stored. Absent is none.
        10 zeros: u64,
    }
}

fields! {
    /// Where a stack begins and ends.
    record StackBounds {
        /// What it is: task, interrupt, double fault, user.
        1 label: &'a [u8],
        /// Lowest address of the stack; the guard lies below it.
        2 low: u64,
        /// Address behind the highest.
        3 high: u64,
        /// Bytes of guard below `low`.
        4 guard: u64,
        /// Process whose stack it is; absent for a stack of a processor.
        5 pid: u32,
        /// Thread whose stack it is; absent for a stack of a processor.
        6 tid: u32,
        /// Deepest stack pointer ever seen.
        7 deepest: u64,
    }
}

fields! {
    /// A mapping of an address space.
    record Vma {
        /// Process whose address space it is in.
        1 pid: u32,
        /// Address of the first byte, a multiple of the page size.
        2 start: u64,
        /// Address behind the last.
        3 end: u64,
        /// Bit 0 read, bit 1 write, bit 2 execute.
        4 prot: u32,
        /// Bit 0 shared, bit 1 grows down, bit 2 locked, bit 3 huge pages wanted, bit 4 huge pages forbidden.
        5 flags: u32,
        /// Path of the mapped file; absent for anonymous memory.
        6 path: &'a [u8],
        /// Offset of `start` in it.
        7 file_offset: u64,
        /// Inode of the file.
        8 inode: u64,
        /// Device of the file.
        9 device: u64,
        /// What it is, in the source's word: `Anonymous`, `[heap]`, `[stack]`.
        10 name: &'a [u8],
        /// Pages of it that have a frame.
        11 resident: u64,
    }
}

fields! {
    /// A leaf page-table entry, or a run of equal ones.
    record Pte {
        /// Process; absent for the kernel's own.
        1 pid: u32,
        /// Virtual address it maps.
        2 vaddr: u64,
        /// The entry as the hardware sees it.
        3 raw: u64,
        /// Physical address it maps to.
        4 paddr: u64,
        /// Bytes one entry maps: 4096, 2 MiB, 1 GiB.
        5 size: u64,
        /// Rights of the leaf alone: bit 0 present, 1 write, 2 execute, 3 user, 4 accessed, 5 dirty, 6 global, 7 CoW.
        6 rights: u32,
        /// Entries in the run; each maps the next `size` bytes of both address spaces. Absent is 1.
        7 count: u64,
        /// References to the frame.
        8 refcount: u64,
        /// The entries above the leaf, root first.
        9 levels: List<'a, PteLevel<'a>>,
        /// Page-table root, physical.
        10 root: u64,
    }
}

fields! {
    /// An entry above a leaf.
    element PteLevel {
        /// 4 or 5 is the root, 1 the leaf's own level.
        1 level: u8,
        /// The entry as the hardware sees it.
        2 raw: u64,
        /// Physical address of the entry itself.
        3 addr: u64,
    }
}

open_enum! {
    /// What a page check found.
    CheckResult: u8 {
        /// The page is what the file says.
        1 EQUAL = "equal",
        /// It is not.
        2 DIFFERENT = "different",
        /// It could not be read.
        3 UNREADABLE = "unreadable",
        /// It was written to since, as it may be.
        4 DIRTY = "dirty",
    }
}

fields! {
    /// A page against its file.
    record PageCheck {
        /// Process whose page was compared.
        1 pid: u32,
        /// Virtual address of the page.
        2 vaddr: u64,
        /// Path of the file that the page belongs to.
        3 path: &'a [u8],
        /// Offset of the page in it.
        4 file_offset: u64,
        /// Bytes that were compared: fewer than a page at the end of the file.
        5 length: u64,
        /// CRC32 of the file's bytes.
        6 expected_crc: u32,
        /// CRC32 of the page's bytes.
        7 actual_crc: u32,
        /// First byte that differs.
        8 first_diff: u64,
        /// What the file has from there on.
        9 expected: &'a [u8],
        /// What the page has from there on.
        10 actual: &'a [u8],
        /// Physical address of the frame.
        11 paddr: u64,
        /// What was found.
        12 result: CheckResult,
        /// Generation of the cached page.
        13 generation: u64,
    }
}

fields! {
    /// A physical frame, or a run of equal ones.
    record FrameInfo {
        /// First frame: physical address divided by the page size.
        1 frame: u64,
        /// Frames in the run. Absent is 1.
        2 count: u64,
        /// References to each frame of the run.
        3 refcount: u64,
        /// Page-table entries that map it, when counted.
        4 mapped: u64,
        /// Log2 of the block it was allocated in.
        5 order: u8,
        /// Bit 0 free, 1 page cache, 2 page table, 3 kernel, 4 huge head, 5 huge tail.
        6 flags: u32,
        /// Who owns it, in the writer's words.
        7 owner: &'a [u8],
        /// Path of the file whose page cache holds the frame.
        8 path: &'a [u8],
        /// Offset in it.
        9 file_offset: u64,
    }
}
