//! Records which spin lock each processor waits for, for dumps.

use core::panic::Location;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::processor::CpuId;

/// Who holds a lock, for dumps: a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The processor that took the lock.
    pub cpu: CpuId,
    /// The call site that took it.
    pub place: &'static Location<'static>,
}

/// A lock a processor spins for.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    /// The lock's virtual address, which identifies it in a dump.
    pub lock: u64,
    /// The call site that waits.
    pub place: &'static Location<'static>,
    /// Its holder; `None` if it was released meanwhile.
    pub holder: Option<Holder>,
}

/// What a processor spins for: written by itself alone.
pub(crate) struct Waiting {
    lock: AtomicPtr<AtomicU32>,
    taken: AtomicPtr<AtomicPtr<Location<'static>>>,
    place: AtomicPtr<Location<'static>>,
}

impl Waiting {
    pub(crate) const fn new() -> Self {
        use core::ptr::null_mut;
        Self { lock: AtomicPtr::new(null_mut()), taken: AtomicPtr::new(null_mut()), place: AtomicPtr::new(null_mut()) }
    }

    /// The processor begins to wait. (An interrupt handler that waits meanwhile makes it forget: less is known then.)
    pub(crate) fn begin(
        &self,
        lock: &AtomicU32,
        taken: &AtomicPtr<Location<'static>>,
        place: &'static Location<'static>,
    ) {
        self.lock.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.taken.store(core::ptr::from_ref(taken).cast_mut(), Ordering::Relaxed);
        self.place.store(core::ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
        self.lock.store(core::ptr::from_ref(lock).cast_mut(), Ordering::Release);
    }

    /// The wait is over: the processor holds the lock.
    pub(crate) fn end(&self) {
        self.lock.store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    /// What it waits for. Only for a processor that is stopped for good: its lock is alive while it spins.
    pub(crate) fn get(&self) -> Option<Awaited> {
        let lock = self.lock.load(Ordering::Acquire);
        // SAFETY: set by a processor that was stopped while it spun for the lock, so lock and places are alive for
        // ever.
        let (count, taken, place) = unsafe {
            let taken = self.taken.load(Ordering::Relaxed).as_ref()?;
            (lock.as_ref()?, taken.load(Ordering::Relaxed).as_ref(), self.place.load(Ordering::Relaxed).as_ref()?)
        };
        let cpu = count.load(Ordering::Relaxed).checked_sub(1);
        let holder = cpu.zip(taken).map(|(cpu, place)| Holder { cpu: CpuId(cpu), place });
        Some(Awaited { lock: lock as u64, place, holder })
    }
}
