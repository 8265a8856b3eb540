//! How long processors spun for spin locks, by the call site that waited and the type that the lock protects.
//!
//! Counted once a wait, in the slow path of a lock alone: a lock that is free when it is taken pays nothing. The table
//! has room for [`SITES`]; waits at further ones are counted together.

use core::any::type_name;
use core::panic::Location;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Call sites that are told apart.
const SITES: usize = 512;
/// Entries that are looked at for a place.
const PROBES: usize = 16;

/// What was waited at one place since boot.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// The call site that waited and the name of the type behind the lock; `None` for all places beyond the table.
    pub site: Option<(&'static Location<'static>, &'static str)>,
    /// How often a processor spun.
    pub count: u64,
    /// How long in all, in cycles of the time-stamp counter.
    pub cycles: u64,
}

/// An entry, taken by the store of its location. The name follows: another processor that comes between takes an entry
/// of its own.
struct Entry {
    location: AtomicPtr<Location<'static>>,
    /// A `fn() -> &'static str`, or null.
    name: AtomicPtr<()>,
    count: AtomicU64,
    cycles: AtomicU64,
}

impl Entry {
    const fn new() -> Self {
        Self {
            location: AtomicPtr::new(null_mut()),
            name: AtomicPtr::new(null_mut()),
            count: AtomicU64::new(0),
            cycles: AtomicU64::new(0),
        }
    }

    /// Whether it is, or has now become, that of this place.
    fn is_of(&self, location: *mut Location<'static>, name: *mut ()) -> bool {
        let free = self.location.compare_exchange(null_mut(), location, Ordering::Relaxed, Ordering::Relaxed);
        if free.is_ok() {
            self.name.store(name, Ordering::Release);
            return true;
        }
        free == Err(location) && self.name.load(Ordering::Relaxed) == name
    }

    fn site(&self) -> Option<(&'static Location<'static>, &'static str)> {
        let name = self.name.load(Ordering::Acquire);
        if name.is_null() {
            return None;
        }
        // SAFETY: only locations of callers are stored, which are static, and before the name.
        let location = unsafe { self.location.load(Ordering::Relaxed).as_ref() }?;
        // SAFETY: `count` alone stores names, and only of functions of this type.
        let name = unsafe { core::mem::transmute::<*mut (), fn() -> &'static str>(name) };
        Some((location, name()))
    }

    fn add(&self, cycles: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.cycles.fetch_add(cycles, Ordering::Relaxed);
    }

    fn waits(&self, site: Option<(&'static Location<'static>, &'static str)>) -> Waits {
        Waits { site, count: self.count.load(Ordering::Relaxed), cycles: self.cycles.load(Ordering::Relaxed) }
    }
}

static ENTRIES: [Entry; SITES] = [const { Entry::new() }; SITES];
static OTHERS: Entry = Entry::new();

/// The time-stamp counter, now.
pub(crate) fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has it, and reading it is not restricted to a mode.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Counts a wait of so many cycles at `location` for a lock around a `T`.
pub(crate) fn count<T: ?Sized>(location: &'static Location<'static>, cycles: u64) {
    let name: fn() -> &'static str = type_name::<T>;
    let (location, name) = (core::ptr::from_ref(location).cast_mut(), name as *mut ());
    let first = (location.addr() ^ name.addr().rotate_left(7)) / 8;
    let entries = (first..first.wrapping_add(PROBES)).map(|at| &ENTRIES[at % SITES]);
    entries.into_iter().find(|entry| entry.is_of(location, name)).unwrap_or(&OTHERS).add(cycles);
}

/// Shows what was counted so far, place by place in no order.
pub fn waits(mut visit: impl FnMut(Waits)) {
    for entry in &ENTRIES {
        if let Some(site) = entry.site() {
            visit(entry.waits(Some(site)));
        }
    }
    let others = OTHERS.waits(None);
    if others.count > 0 {
        visit(others);
    }
}
