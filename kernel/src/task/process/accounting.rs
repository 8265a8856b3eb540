//! What a process has used and what it may use: times and counters, resource limits, its part of its user's sum.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use machine::sync::SpinLock;
use machine::time::Nanos;

use crate::mm::{AddressSpace, MemoryLimits};
use crate::task::account::Charge;
use crate::task::limits::{Limits, resource};

/// Times and counters of getrusage(2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Time in user mode.
    pub user: Nanos,
    /// Time in the kernel.
    pub system: Nanos,
    /// Page faults resolved without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
    /// Switches to another thread because this one slept.
    pub voluntary: u64,
    /// Switches because its turn was over.
    pub involuntary: u64,
    /// Largest resident set, KiB.
    pub max_rss: u64,
}

impl Usage {
    /// Adds `other`: sums, and the larger of the two resident sets.
    pub fn add(&mut self, other: &Usage) {
        self.user += other.user;
        self.system += other.system;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        self.max_rss = self.max_rss.max(other.max_rss);
    }
}

#[derive(Clone, Copy, Default)]
struct Totals {
    /// Of its ended threads.
    own: Usage,
    /// Of the children it has waited for, with theirs.
    children: Usage,
}

/// The account of a process.
pub struct Accounting {
    totals: SpinLock<Totals>,
    limits: SpinLock<Limits>,
    /// The soft limits once more, for those who enforce one: read without the lock. Follows `limits`.
    enforced: [AtomicU64; resource::COUNT],
    /// Processor time in ns at which `RLIMIT_CPU` is enforced next, `u64::MAX` for never; follows `limits`.
    cpu_deadline: AtomicU64,
    /// Its part of `RLIMIT_NPROC` between the end of its last thread and its reaping.
    charge: SpinLock<Option<Charge>>,
}

impl Accounting {
    /// Nothing used yet.
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            totals: SpinLock::new(Totals::default()),
            cpu_deadline: AtomicU64::new(limits.cpu_deadline()),
            enforced: limits.0.map(|limit| AtomicU64::new(limit.soft)),
            limits: SpinLock::new(limits),
            charge: SpinLock::new(None),
        }
    }

    /// What its ended threads used.
    pub fn ended_threads(&self) -> Usage {
        self.totals.lock().own
    }

    /// What the children it has waited for used, with theirs.
    pub fn children(&self) -> Usage {
        self.totals.lock().children
    }

    /// Adds what a thread that ends has used.
    pub fn add_thread(&self, used: &Usage) {
        self.totals.lock().own.add(used);
    }

    /// Adds what a reaped child has used.
    pub fn add_child(&self, child: &Accounting) {
        let Totals { own, children } = *child.totals.lock();
        let mut totals = self.totals.lock();
        totals.children.add(&own);
        totals.children.add(&children);
    }

    /// Notes the largest resident set of `mm`, which the process no longer uses.
    pub fn note_resident(&self, mm: &AddressSpace) {
        let mut totals = self.totals.lock();
        totals.own.max_rss = totals.own.max_rss.max(mm.peak() * 4);
    }

    /// The limits, as of now.
    pub fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    /// The enforced limits of memory.
    #[inline]
    pub fn memory_limits(&self) -> MemoryLimits {
        let [space, data, stack, locked] =
            [resource::AS, resource::DATA, resource::STACK, resource::MEMLOCK].map(|resource| self.limit(resource));
        MemoryLimits { space, data, stack, locked }
    }

    /// The soft limit of a resource.
    #[inline]
    pub fn limit(&self, resource: usize) -> u64 {
        self.enforced[resource].load(Relaxed)
    }

    /// Changes the limits; what is read without the lock follows in the same critical section.
    pub fn change_limits<R>(&self, edit: impl FnOnce(&mut Limits) -> R) -> R {
        let mut limits = self.limits.lock();
        let result = edit(&mut limits);
        self.cpu_deadline.store(limits.cpu_deadline(), Relaxed);
        for (enforced, limit) in self.enforced.iter().zip(&limits.0) {
            enforced.store(limit.soft, Relaxed);
        }
        result
    }

    /// Processor time in ns at which `RLIMIT_CPU` is enforced next, `u64::MAX` for never.
    #[inline]
    pub fn cpu_deadline(&self) -> Nanos {
        self.cpu_deadline.load(Relaxed)
    }

    /// Keeps the last thread's charge until the process is reaped.
    pub fn keep_charge(&self, charge: Option<Charge>) {
        *self.charge.lock() = charge;
    }

    /// Gives the kept charge back to the user.
    pub fn release_charge(&self) {
        let charge = self.charge.lock().take();
        drop(charge);
    }
}
