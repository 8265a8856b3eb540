//! Names the functions that are never guilty: reporters, panic machinery, allocators, copies, lists, locks, trap
//! entries.
//!
//! One table serves the importer of console reports and the blame of triage. It is by prefix (`kasan_`) and by whole
//! name (`panic`); `skip.txt` holds it. Paths of Rust crates have a table of their own, because a path says what a
//! function belongs to and a bare name does not.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::names::{KERNEL, is_machinery};

/// The table: sections `[prefix]` and `[whole]`, names between blanks.
const TABLE: &str = include_str!("skip.txt");

/// Names by which functions are skipped.
struct Skip {
    /// By their first byte, names that begin so are skipped.
    prefixes: HashMap<u8, Vec<&'static str>>,
    /// Names that are skipped whole.
    whole: HashSet<&'static str>,
}

static SKIP: LazyLock<Skip> = LazyLock::new(|| {
    let mut skip = Skip { prefixes: HashMap::new(), whole: HashSet::new() };
    let mut prefix = true;
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        match line {
            "[prefix]" => prefix = true,
            "[whole]" => prefix = false,
            line => {
                for name in line.split_whitespace() {
                    if !prefix {
                        skip.whole.insert(name);
                    } else if let Some(first) = name.bytes().next() {
                        skip.prefixes.entry(first).or_default().push(name);
                    }
                }
            }
        }
    }
    skip
});

/// A symbol without what compilers append to it.
#[must_use]
pub fn plain(symbol: &str) -> &str {
    const SUFFIXES: &[&str] =
        &[".constprop.", ".isra.", ".part.", ".cold", ".llvm.", ".__", ".lto_priv", ".localalias"];
    // Most names have none, and pay for one search.
    if !symbol.as_bytes().contains(&b'.') {
        return symbol;
    }
    let end = SUFFIXES.iter().filter_map(|suffix| symbol.find(suffix)).min().unwrap_or(symbol.len());
    // `foo.12345`: a static function of the same name as another.
    let base = &symbol[..end];
    match base.rsplit_once('.') {
        Some((head, tail))
            if !head.is_empty() && !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            head
        }
        _ => base,
    }
}

/// Whether a function is never the guilty one.
#[must_use]
pub fn is_skipped(symbol: &str) -> bool {
    let name = plain(symbol);
    // Mach-O puts an underscore before each name of C.
    let bare = name.strip_prefix('_').filter(|bare| !bare.starts_with('_'));
    is_listed(name) || bare.is_some_and(|bare| !bare.is_empty() && SKIP.whole.contains(bare))
}

fn is_listed(name: &str) -> bool {
    let Some(first) = name.bytes().next() else { return true };
    let prefixes = SKIP.prefixes.get(&first).map(Vec::as_slice).unwrap_or_default();
    SKIP.whole.contains(name) || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// What a function is to the blame for a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It may be guilty.
    Suspect,
    /// It reports, panics, enters a trap, or belongs to the language's library.
    Reporter,
    /// It does what its caller says: an allocator, a list, a lock, a copy. A fault in it means corruption before.
    Helper,
    /// It waits or schedules on behalf of its caller.
    Waiter,
}

/// What a function is, by its demangled name.
#[must_use]
pub fn role(name: &str) -> Role {
    let path = name.trim_start_matches(['<', '&', ' ']);
    let begins = |table: &[&str]| table.iter().any(|prefix| path.starts_with(prefix));
    if is_machinery(name) || is_of_the_library(name) || begins(ENTRIES) {
        return Role::Reporter;
    }
    if BOUNDARIES.contains(&plain(name)) {
        return Role::Reporter;
    }
    // The function that a kernel in Rust panics with or enters a fault by, whatever it belongs to; the path before it
    // may be shortened.
    let called = path.split('(').next().unwrap_or(path);
    if called.rsplit(':').next().is_some_and(|last| PANICS.contains(&last.trim_end()) || FAULTS.contains(&last)) {
        return Role::Reporter;
    }
    if begins(WAITERS) {
        return Role::Waiter;
    }
    // `<usize as talc::base::bitfield::BitField>::count`: what a library does for a type of the language.
    let of_library = path.split_once(" as ").map_or(path, |(own, of)| if own.contains("::") { path } else { of });
    if begins(HELPERS) || LIBRARIES.iter().any(|library| of_library.starts_with(library)) {
        return Role::Helper;
    }
    if REPORTERS_OF_PROGRAMS.contains(&plain(name)) {
        return Role::Reporter;
    }
    if WAITERS_OF_PROGRAMS.contains(&plain(name).trim_start_matches('_')) {
        return Role::Waiter;
    }
    if is_allocator(name) {
        return Role::Helper;
    }
    // The table of bare names says nothing about the paths of Rust crates.
    if name.contains("::") || !is_skipped(name) {
        return Role::Suspect;
    }
    let bare = plain(name);
    // What reports about memory is not the memory.
    if ["check_memory_region", "warn_alloc"].iter().any(|name| bare.starts_with(name)) {
        return Role::Reporter;
    }
    if MEMORY.iter().any(|part| bare.contains(part)) { Role::Helper } else { Role::Reporter }
}

/// Last components of paths of functions that panic for their callers.
const PANICS: &[&str] = &[
    "__panic",
    "__assertion_failed",
    "panic_fmt",
    "panic_impl",
    "panic_handler",
    "begin_panic",
    "begin_panic_handler",
];

/// Last components of paths of functions that kernels in Rust take a fault by.
const FAULTS: &[&str] = &["handle_kernel_page_fault", "handle_page_fault", "page_fault_handler"];

/// Symbols that linkers and their scripts define at the bounds of sections and images: an address has such a name when
/// no function is near it (GNU ld manual, "Source Code Reference"; `PROVIDE` in its default script).
const BOUNDARIES: &[&str] = &[
    "__executable_start",
    "__ehdr_start",
    "__image_base__",
    "__text_start",
    "__text_end",
    "_text",
    "_stext",
    "_etext",
    "__etext",
    "etext",
    "_sinittext",
    "_einittext",
    "__init_begin",
    "__init_end",
    "__start_rodata",
    "__end_rodata",
    "_sdata",
    "_edata",
    "edata",
    "__bss_start",
    "__bss_stop",
    "_end",
    "end",
    "_GLOBAL_OFFSET_TABLE_",
    "_DYNAMIC",
];

/// Whether a function is the standard library's implementation of a trait of its own: `<[u8] as
/// core::ops::Index>::index`.
fn is_of_the_library(name: &str) -> bool {
    let Some((own, _)) =
        name.strip_prefix('<').and_then(|rest| rest.split_once(" as core::").or(rest.split_once(" as alloc::")))
    else {
        return false;
    };
    !own.contains("::") || ["core::", "alloc::", "std::"].iter().any(|library| own.starts_with(library))
}

/// Whether a function is part of a C library's allocator, by its bare name (glibc, musl, jemalloc).
#[must_use]
pub fn is_allocator(name: &str) -> bool {
    ALLOCATORS.contains(&plain(name))
}

/// Every row by which a function of this workspace's kernel is told: each begins the name of at least one function of
/// its image, behind the `<` of an implementation.
pub fn kernel_rows() -> impl Iterator<Item = &'static str> {
    [KERNEL, ENTRIES, WAITERS, HELPERS].into_iter().flatten().copied()
}

/// Functions of C libraries by which a program ends itself.
const REPORTERS_OF_PROGRAMS: &[&str] = &[
    "raise",
    "gsignal",
    "__GI_raise",
    "__GI_abort",
    "pthread_kill",
    "__pthread_kill_implementation",
    "__pthread_kill_internal",
    "__libc_message",
    "__libc_message_impl",
    "__fortify_fail",
    "__fortify_fail_abort",
    "__stack_chk_fail",
    "__stack_chk_fail_local",
    "__assert_fail_base",
    "__assert",
    "a_crash",
    "malloc_printerr",
    "__restore_rt",
    "__restore",
    "__restore_sigs",
    "__block_app_sigs",
    "kill",
    "tkill",
    "tgkill",
];

/// Functions of C libraries that wait for other threads, and what they call to do so; without the underscores that they
/// begin with.
const WAITERS_OF_PROGRAMS: &[&str] = &[
    "GI___futex_abstimed_wait_cancelable64",
    "GI___lll_lock_wait",
    "GI___pthread_mutex_lock",
    "cp_begin",
    "cp_end",
    "futex4_cp",
    "futex_abstimed_wait_cancelable64",
    "futex_abstimed_wait_common",
    "futex_abstimed_wait_common64",
    "futex_wait",
    "futexwait",
    "lll_lock_wait",
    "lll_lock_wait_private",
    "pthread_barrier_wait",
    "pthread_clockjoin_ex",
    "pthread_cond_timedwait",
    "pthread_cond_wait",
    "pthread_cond_wait_common",
    "pthread_join",
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_wrlock",
    "pthread_timedjoin_np",
    "sem_timedwait",
    "sem_wait",
    "syscall_cp",
    "syscall_cp_asm",
    "syscall_cp_c",
    "timedwait",
    "timedwait_cp",
    "wait",
];

/// Functions of allocators.
const ALLOCATORS: &[&str] = &[
    "malloc",
    "free",
    "calloc",
    "realloc",
    "cfree",
    "memalign",
    "aligned_alloc",
    "_int_malloc",
    "_int_free",
    "_int_free_chunk",
    "_int_free_merge_chunk",
    "_int_realloc",
    "malloc_consolidate",
    "unlink_chunk",
    "sysmalloc",
    "systrim",
    "tcache_get",
    "tcache_put",
    "malloc_printerr",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_malloc_impl",
    "default_malloc",
    "default_free",
    "get_meta",
    "get_nominal_size",
    "nontrivial_free",
    "free_group",
    "alloc_slot",
    "alloc_group",
    "try_avail",
    "dequeue",
    "operator new(unsigned long)",
    "operator delete(void*)",
];

/// Paths of the ways into the kernel.
const ENTRIES: &[&str] = &[
    "machine::x86_64::entry::early_crash",
    "machine::x86_64::entry::stubs",
    "machine::x86_64::entry::trampoline",
    "machine::x86_64::entry::trap",
    "machine::hooks::",
    "machine::x86_64::interrupts::clock",
    "machine::x86_64::interrupts::nmi",
    "kernel::<impl machine::hooks::",
    "__rustc::",
    "trap_common",
    "trap_stubs",
    "syscall_entry",
    "return_to_user",
];

/// Paths of what waits and schedules.
const WAITERS: &[&str] = &[
    "machine::x86_64::interrupts::",
    "kernel::sched::",
    "kernel::sync::",
    "machine::kernel::Start",
    "machine::percpu::",
    "machine::waiting",
    "machine::thread::Thread",
    "machine::x86_64::memory::thread",
];

/// Paths of allocators, collections, locks and copies.
const HELPERS: &[&str] = &[
    "machine::sync::",
    "machine::heap::",
    "machine::kernel::alloc",
    "machine::addr::",
    "machine::frame::",
    "machine::user::",
    "machine::x86_64::cpu::",
    "machine::inject::",
    "kernel_logic::buddy::",
];

/// Paths of the same in libraries that kernels written in Rust use.
const LIBRARIES: &[&str] = &[
    "AK::",
    "hashbrown::",
    "smallvec::",
    "spin::",
    "memchr::",
    "talc::",
    "linked_list_allocator::",
    "buddy_system_allocator::",
];

/// Parts of bare names in the table that mean memory, strings, lists and trees.
const MEMORY: &[&str] = &[
    "mem",
    "alloc",
    "free",
    "slab",
    "list",
    "rb_",
    "str",
    "copy",
    "lock",
    "page_from",
    "put_cpu_partial",
    "qlist",
    "xas_",
    "radix",
    "idr_",
    "bcmp",
    "mutex",
    "rwsem",
    "atomic",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_are_told_from_what_serves_them() {
        for (name, expected) in [
            ("kernel::mm::fault::handle", Role::Suspect),
            ("<kernel::fs::pipe::End as kernel::fs::file::File>::read", Role::Suspect),
            ("core::panicking::panic_bounds_check", Role::Reporter),
            ("machine::hooks::syscall", Role::Reporter),
            ("machine::x86_64::entry::trap::fatal", Role::Reporter),
            ("machine::x86_64::entry::early_crash::panic", Role::Reporter),
            ("machine::x86_64::entry::start::memory", Role::Suspect),
            ("kernel::<impl machine::hooks::Kernel for kernel::upper::Kwab>::panic", Role::Reporter),
            ("<machine::sync::SpinLock<kernel::mm::map::Map>>::lock", Role::Helper),
            ("talc::base::Talc<S,B>::try_allocate", Role::Helper),
            ("<usize as talc::base::bitfield::BitField>::bit_scan_forward", Role::Helper),
            ("<kernel::heap::Source as talc::source::Source>::acquire", Role::Suspect),
            ("kernel::sync::wait::WaitQueue::sleep", Role::Waiter),
            ("kernel::sched::schedule", Role::Waiter),
            ("<[u8] as core::ops::index::Index<usize>>::index", Role::Reporter),
            ("<kernel::fs::Inode as core::ops::drop::Drop>::drop", Role::Suspect),
            ("my_os::Kernel::__panic", Role::Reporter),
            ("kfree", Role::Helper),
            ("__restore_sigs", Role::Reporter),
            ("__pthread_mutex_timedlock", Role::Waiter),
            ("___pthread_cond_wait", Role::Waiter),
            ("pthread_mutex_lock_all", Role::Suspect),
            ("__list_del_entry_valid", Role::Helper),
            ("asm_exc_page_fault", Role::Reporter),
            ("ext4_lookup", Role::Suspect),
            ("", Role::Reporter),
        ] {
            assert_eq!(role(name), expected, "{name}");
        }
    }
}
