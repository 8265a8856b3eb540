//! Records which spin lock each processor waits for, for dumps.

use core::mem::offset_of;
use core::panic::Location;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::describe::Entry;
use crate::processor::CpuId;

/// Who holds a lock, for dumps: a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The processor that took the lock.
    pub cpu: CpuId,
    /// The call site that took it.
    pub location: &'static Location<'static>,
}

/// A lock a processor spins for.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    /// The lock's virtual address, which identifies it in a dump.
    pub lock: u64,
    /// The call site that waits.
    pub location: &'static Location<'static>,
    /// Its holder; `None` if it was released meanwhile.
    pub holder: Option<Holder>,
}

/// What a processor spins for: written by itself alone.
pub(crate) struct Waiting {
    lock: AtomicPtr<AtomicU32>,
    taken: AtomicPtr<AtomicPtr<Location<'static>>>,
    location: AtomicPtr<Location<'static>>,
}

impl Waiting {
    /// Its part of [`crate::describe`], for one at offset `at` of a processor's block: the lock, or 0, and pointers to
    /// where it was taken and to where it is awaited.
    pub(crate) const fn fields(at: usize) -> [Entry; 3] {
        [
            Entry::number("cpu.awaits", at + offset_of!(Self, lock)),
            Entry::number("cpu.awaits_taken", at + offset_of!(Self, taken)),
            Entry::number("cpu.awaits_from", at + offset_of!(Self, location)),
        ]
    }

    pub(crate) const fn new() -> Self {
        use core::ptr::null_mut;
        Self {
            lock: AtomicPtr::new(null_mut()),
            taken: AtomicPtr::new(null_mut()),
            location: AtomicPtr::new(null_mut()),
        }
    }

    /// The processor begins to wait. (An interrupt handler that waits meanwhile makes it forget: less is known then.)
    pub(crate) fn begin(
        &self,
        lock: &AtomicU32,
        taken: &AtomicPtr<Location<'static>>,
        location: &'static Location<'static>,
    ) {
        self.lock.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.taken.store(core::ptr::from_ref(taken).cast_mut(), Ordering::Relaxed);
        self.location.store(core::ptr::from_ref(location).cast_mut(), Ordering::Relaxed);
        self.lock.store(core::ptr::from_ref(lock).cast_mut(), Ordering::Release);
    }

    /// The wait is over: the processor holds the lock.
    pub(crate) fn end(&self) {
        self.lock.store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    /// What it waits for. Only for a processor that is stopped for good: its lock is alive while it spins.
    pub(crate) fn get(&self) -> Option<Awaited> {
        let lock = self.lock.load(Ordering::Acquire);
        // SAFETY: set by a processor that was stopped while it spun for the lock, so lock and locations are alive for
        // ever.
        let (count, taken, location) = unsafe {
            let taken = self.taken.load(Ordering::Relaxed).as_ref()?;
            (lock.as_ref()?, taken.load(Ordering::Relaxed).as_ref(), self.location.load(Ordering::Relaxed).as_ref()?)
        };
        let cpu = count.load(Ordering::Relaxed).checked_sub(1);
        let holder = cpu.zip(taken).map(|(cpu, location)| Holder { cpu: CpuId(cpu), location });
        Some(Awaited { lock: lock as u64, location, holder })
    }
}
