//! `/proc/meminfo` and `/proc/vmstat` (proc(5)): what memory is used for.
//!
//! What the kernel counts as it goes (free frames, pages of files) is exact. Pages of programs are summed up over the
//! address spaces when asked, without a counter that every fault would pay for: a page that two processes show counts
//! in both, within what there can be at most.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use linux_abi::Errno;

use super::Target;
use crate::fs::{headers, tmpfs};
use crate::mm::{SharedMemory, TAG_ANON, TAG_FILE, frames, huge, image, pool, template};
use crate::sched;
use crate::task::tree;

type Text = Result<Vec<u8>, Errno>;

/// What frames are used for, in pages.
struct Census {
    total: usize,
    free: usize,
    /// Of files, in memory; every file is.
    cached: usize,
    /// Of these and of memory without a file, what processes share.
    shared: usize,
    anonymous: usize,
    mapped: usize,
    tables: usize,
}

impl Census {
    fn take() -> Self {
        let (mut anonymous, mut mapped, mut tables) = (0, 0, 0);
        let mut from = 0;
        while let Some(process) = tree::next_process(from) {
            from = process.pid.saturating_add(1);
            if let Some(mm) = process.threads.first().and_then(|thread| thread.mm()) {
                let resident = mm.resident();
                anonymous += resident.anonymous as usize;
                mapped += (resident.file + resident.shmem) as usize;
                tables += mm.space.table_frames();
            }
            sched::breathe();
        }
        let (total, free) = (frames::total(), frames::free());
        let used = frames::given().saturating_sub(free);
        // All files lie in a tmpfs, which Linux counts as shared memory.
        let cached = (tmpfs::pages() as usize + SharedMemory::pages()).min(used);
        let anonymous = anonymous.min(used - cached);
        let mapped = mapped.min(cached);
        Self { total, free, cached, shared: cached, anonymous, mapped, tables: tables.min(used) }
    }
}

pub(super) fn meminfo(_: Target) -> Text {
    let kib = |pages: usize| pages * 4;
    let census = Census::take();
    let (total, free) = (kib(census.total), kib(census.free));
    let heap = machine::heap::usage();
    let unused = heap.held - heap.used;
    let stacks = tree::thread_count() * machine::thread::KERNEL_STACK_SIZE;
    let idle_stacks = machine::thread::idle_stack_bytes();
    let mut out = String::new();
    let leaves = machine::space::huge_leaves().0;
    let huge = |tag: u8| kib(leaves[usize::from(tag)] * machine::addr::HUGE_PAGES);
    let rows: [(&str, usize); 25] = [
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", free + (unused + idle_stacks) / 1024),
        ("Buffers", 0),
        ("Cached", kib(census.cached)),
        ("SwapCached", 0),
        ("Active", kib(census.anonymous + census.cached)),
        ("Inactive", 0),
        ("Unevictable", 0),
        ("Mlocked", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", 0),
        ("Writeback", 0),
        ("AnonPages", kib(census.anonymous)),
        ("Mapped", kib(census.mapped)),
        ("Shmem", kib(census.shared)),
        ("Slab", heap.held / 1024),
        ("SReclaimable", unused / 1024),
        ("SUnreclaim", heap.used / 1024),
        ("KernelStack", (stacks + idle_stacks) / 1024),
        ("PageTables", kib(census.tables)),
        ("CommitLimit", total / 2),
        ("AnonHugePages", huge(TAG_ANON)),
        ("FilePmdMapped", huge(TAG_FILE)),
    ];
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:<16}{value:8} kB", format!("{name}:"));
    }
    let pool = pool::counts();
    let pages = [("Total", pool.total), ("Free", pool.free), ("Rsvd", pool.reserved), ("Surp", pool.surplus)];
    for (name, value) in pages {
        let _ = writeln!(out, "{:<16}{value:8}", format!("HugePages_{name}:"));
    }
    for (name, value) in [("Hugepagesize", 1), ("Hugetlb", pool.total)] {
        let _ = writeln!(out, "{:<16}{:8} kB", format!("{name}:"), kib(value * machine::addr::HUGE_PAGES));
    }
    Ok(out.into_bytes())
}

pub(super) fn vmstat(_: Target) -> Text {
    let ((leaves, splits), [faults, fallbacks, collapses]) = (machine::space::huge_leaves(), huge::counts());
    let census = Census::take();
    let mut text = format!(
        "nr_free_pages {}\nnr_anon_pages {}\nnr_mapped {}\nnr_file_pages {}\nnr_shmem {}\nnr_page_table_pages {}\n\
         nr_anon_transparent_hugepages {}\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\n\
         thp_fault_alloc {faults}\nthp_fault_fallback {fallbacks}\nthp_collapse_alloc {collapses}\n\
         thp_split_pmd {splits}\n",
        census.free,
        census.anonymous,
        census.mapped,
        census.cached,
        census.shared,
        census.tables,
        leaves[usize::from(TAG_ANON)],
    );
    // Writing to a string cannot fail.
    for (name, count) in template::counts() {
        let _ = writeln!(text, "exec_template_{name} {count}");
    }
    let (prepared, waiting) = machine::frame::prepared();
    let _ = writeln!(text, "idle_zeroed {prepared}\nidle_zeroed_waiting {waiting}");
    for (name, count) in image::counts() {
        let _ = writeln!(text, "exec_image_{name} {count}");
    }
    for (name, count) in headers::counts() {
        let _ = writeln!(text, "exec_headers_{name} {count}");
    }
    Ok(text.into_bytes())
}
