//! Known bugs that `inject=NAME` plants at boot, each of them one that kernels really had.
//!
//! [`FAULTS`] is the list: `cat /proc/inject` shows it, and an unknown name is refused with it. The bug itself sits
//! where it belongs: a check of [`is`] in the code that has it, or below for those that need a victim of their own.
//! `inject=NAME:FILE` confines a bug that meets files to those of that name, so that the rest of the system goes on.
//! What is planted stands nowhere in a dump, a log or `/proc`: finding out is what the tools are examined with (`cargo
//! xtask exam`).

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use machine::inject as machine_faults;
use machine::sync::SpinLock;

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// See [`FAULTS`], as for all of them.
    ElfProtection = 1,
    /// In the machine.
    NoExecTables,
    /// In the fault handler.
    CacheWritable,
    /// In the machine.
    ReferencesKept,
    /// In the machine.
    CacheFreed,
    /// In the machine.
    Uncounted,
    /// Planted in `task::clone`.
    ForkShares,
    /// In this module.
    StackOverflow,
    /// In the machine.
    NoShootdown,
    /// In this module.
    LockOrder,
    /// Where a vfork child lets go of its parent.
    LostWakeup,
    /// In this module.
    UseAfterFree,
    /// In this module.
    NullDereference,
    /// In this module.
    UserPointer,
    /// In this module.
    Leak,
    /// In the fault handler.
    StaleLeaf,
    /// In the machine.
    HugeUncounted,
    /// In the machine.
    HugeExecutable,
    /// In the prefault of exec.
    PrefaultBoundary,
    /// In the prefault of exec.
    PrefaultWritable,
    /// In the templates of exec.
    TemplateStale,
    /// In the allocator of frames.
    NoCoalescing,
    /// In the prefault of exec.
    PrefaultEager,
    /// In the images of exec.
    ImageBoundary,
}

/// Every bug: name and what it is.
pub const FAULTS: &[(&str, Fault, &str)] = &[
    ("cache-freed", Fault::CacheFreed, "the end of an address space drops cached pages that it does not own"),
    ("cache-writable", Fault::CacheWritable, "a cached page is given to a writable private mapping"),
    ("elf-protection", Fault::ElfProtection, "segments are mapped with every right, whatever their headers say"),
    ("fork-shares", Fault::ForkShares, "a child with a stack of its own runs in its parent's address space"),
    (
        "huge-executable",
        Fault::HugeExecutable,
        "the small pages of a split huge page lose the bit that forbids execution",
    ),
    ("huge-uncounted", Fault::HugeUncounted, "the small pages of a split huge page share its one reference"),
    (
        "image-boundary",
        Fault::ImageBoundary,
        "an assembled image has the page in which a segment ends, with what the file has behind the end",
    ),
    ("leak", Fault::Leak, "each pipe leaks kernel memory"),
    ("lock-order", Fault::LockOrder, "two locks are taken in both orders"),
    ("lost-wakeup", Fault::LostWakeup, "the parent of a vfork is never woken"),
    ("no-coalescing", Fault::NoCoalescing, "blocks of frames that are given back are not joined with their buddies"),
    ("null-dereference", Fault::NullDereference, "a list without entries is walked, deep in a chain of calls"),
    ("nx-tables", Fault::NoExecTables, "intermediate page tables inherit NX from one of their leaves"),
    (
        "prefault-boundary",
        Fault::PrefaultBoundary,
        "exec maps the page in which a segment ends from the cache, with what the file has behind the end",
    ),
    (
        "prefault-eager",
        Fault::PrefaultEager,
        "exec makes up to 512 pages of a program's zeros in advance, whether it uses them or not",
    ),
    (
        "prefault-writable",
        Fault::PrefaultWritable,
        "pages that exec maps in advance have the rights of their mapping, although the file keeps them",
    ),
    ("references-kept", Fault::ReferencesKept, "the end of an address space keeps its references"),
    ("stack-overflow", Fault::StackOverflow, "a large object is passed by value on the kernel stack"),
    (
        "stale-leaf",
        Fault::StaleLeaf,
        "copy-on-write of a page shared by a fork reports success and leaves the leaf unchanged",
    ),
    (
        "template-stale",
        Fault::TemplateStale,
        "the template of a program is used although pages of its file were replaced",
    ),
    ("tlb-shootdown", Fault::NoShootdown, "other processors keep translations of unmapped pages"),
    ("uncounted-frames", Fault::Uncounted, "fault-around maps frames without a reference"),
    ("use-after-free", Fault::UseAfterFree, "a session is used through a stale pointer after it was freed"),
    ("user-pointer", Fault::UserPointer, "an address from a program is used without a check"),
];

/// Whether there is anything to plant: not in the profile that leaves every check out.
const ON: bool = cfg!(all(feature = "inject", not(feature = "ludicrous")));

static PLANTED: AtomicU8 = AtomicU8::new(0);

/// Whether a bug is planted: one relaxed load.
#[inline(always)]
pub fn is(fault: Fault) -> bool {
    ON && PLANTED.load(Ordering::Relaxed) == fault as u8
}

/// The name of the files that the bug is confined to.
static CONFINED: SpinLock<Option<Vec<u8>>> = SpinLock::new(None);

/// Whether a bug is planted that meets the file that `is_called` knows the name of.
#[inline(always)]
pub fn is_for(fault: Fault, is_called: impl FnOnce(&[u8]) -> bool) -> bool {
    is(fault) && CONFINED.lock().as_deref().is_none_or(is_called)
}

/// Plants what the command line asks for.
pub fn start(wish: Option<&[u8]>) {
    let Some(wish) = wish else { return };
    let mut words = wish.splitn(2, |byte| *byte == b':');
    let name = words.next().unwrap_or_default();
    *CONFINED.lock() = words.next().map(<[u8]>::to_vec);
    let known = FAULTS.iter().find(|(known, ..)| ON && known.as_bytes() == name);
    let Some((_, fault, _)) = known else {
        let text = list();
        panic!("inject={}: unknown fault; the known ones:\n{}", crate::log::Escaped(name), crate::log::Escaped(&text));
    };
    PLANTED.store(*fault as u8, Ordering::Relaxed);
    let below = match fault {
        Fault::NoExecTables => machine_faults::Fault::NoExecTables,
        Fault::NoShootdown => machine_faults::Fault::NoShootdown,
        Fault::ReferencesKept => machine_faults::Fault::KeepReferences,
        Fault::CacheFreed => machine_faults::Fault::DropTwice,
        Fault::Uncounted => machine_faults::Fault::Uncounted,
        Fault::HugeUncounted => machine_faults::Fault::SplitUncounted,
        Fault::HugeExecutable => machine_faults::Fault::SplitExecutable,
        _ => return,
    };
    machine_faults::plant(below);
}

/// The list, for `/proc/inject`.
pub fn list() -> Vec<u8> {
    let mut text = Vec::new();
    for (name, _, what) in FAULTS.iter().filter(|_| ON) {
        text.extend_from_slice(name.as_bytes());
        text.resize(text.len() + 18_usize.saturating_sub(name.len()), b' ');
        text.extend_from_slice(what.as_bytes());
        text.push(b'\n');
    }
    text
}

/// A program asks for statistics of the system (sysinfo(2)) to be stored at `at`.
pub fn statistics_asked(at: u64) {
    if !ON || PLANTED.load(Ordering::Relaxed) == 0 {
        return;
    }
    if is(Fault::NullDereference) {
        count_sessions();
    } else if is(Fault::UserPointer) {
        raw::load(at);
    } else if is(Fault::StackOverflow) {
        take_snapshot(at);
    } else if is(Fault::UseAfterFree) {
        end_session();
    }
}

/// The host name (or else the domain name) changes.
pub fn names_change(host: bool) {
    static HOST: SpinLock<u64> = SpinLock::new(0);
    static DOMAIN: SpinLock<u64> = SpinLock::new(0);
    if !is(Fault::LockOrder) {
        return;
    }
    let (first, second) = if host { (&HOST, &DOMAIN) } else { (&DOMAIN, &HOST) };
    let mut first = first.lock();
    // Long enough for another processor to take the other one.
    (0..200_000).for_each(|_| machine::cpu::relax());
    *second.lock() += 1;
    *first += 1;
}

/// A pipe is made.
pub fn pipe_made() {
    if is(Fault::Leak) {
        vec![0u8; 128 << 10].leak();
    }
}

/// Loads without a check.
mod raw {
    #[cfg(feature = "inject")]
    pub(super) use machine::inject::load;

    #[cfg(not(feature = "inject"))]
    pub(super) fn load(_addr: u64) -> u64 {
        0
    }
}

/// A session as a list has it: the next one, a name, a count of users.
#[repr(C)]
struct Session {
    next: u64,
    name: [u8; 16],
    users: u64,
    owner: u64,
}

/// The first session.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn count_sessions() -> u64 {
    core::hint::black_box(sum_over_groups(2)) + 1
}

#[inline(never)]
fn sum_over_groups(groups: u64) -> u64 {
    (0..groups).map(|group| core::hint::black_box(users_of_group(group))).sum()
}

#[inline(never)]
fn users_of_group(group: u64) -> u64 {
    core::hint::black_box(users_of_first(SESSIONS.load(Ordering::Relaxed))) + group
}

/// The mistake: an empty list has no first session.
#[inline(never)]
fn users_of_first(session: u64) -> u64 {
    raw::load(session + core::mem::offset_of!(Session, users) as u64) + 1
}

/// The mistake: the owner is looked up after the session is gone.
#[inline(never)]
fn end_session() {
    machine_faults::plant(machine_faults::Fault::Poison);
    let owner = Box::new(Session { next: 0, name: *b"owner of session", users: 1, owner: 0 });
    let owner_at = core::ptr::from_ref(&*owner).addr() as u64;
    let session = Box::new(Session { next: 0, name: *b"the session     ", users: 1, owner: owner_at });
    let at = core::ptr::from_ref(&*session).addr() as u64;
    drop(core::hint::black_box(session));
    let owner = raw::load(at + core::mem::offset_of!(Session, owner) as u64);
    core::hint::black_box(raw::load(owner + core::mem::offset_of!(Session, users) as u64));
}

/// Words of a snapshot: more than a kernel stack has.
const SAMPLES: usize = 8192;

/// The mistake: this is passed by value.
#[derive(Clone, Copy)]
struct Snapshot {
    samples: [u64; SAMPLES],
}

#[inline(never)]
fn take_snapshot(seed: u64) {
    core::hint::black_box(summarise(Snapshot { samples: [seed; SAMPLES] }));
}

#[inline(never)]
fn summarise(snapshot: Snapshot) -> u64 {
    core::hint::black_box(&snapshot).samples.iter().fold(0, |sum, word| sum ^ word)
}
