//! How many descriptions the whole system may have open (`/proc/sys/fs/file-max`, proc(5)).
//!
//! A [`FileSlot`] is the right to one more and a part of it: none is made without. It is taken before anything else is
//! done, so that an open that is refused has neither cut nor made a file.
//!
//! A processor counts for itself and adds to the sum of all by [`BATCH`]. The sum is off by as much for each of them,
//! which is looked into only once it has reached the limit.

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

use linux_abi::Errno;
use linux_abi::capabilities as cap;
use machine::addr::PAGE_SIZE;
use machine::cpu::{CpuId, MAX_CPUS, PerCpu};

use super::Actor as _;
use crate::mm::frames;
use crate::upper::try_current;

/// What a processor counts before it adds that to the sum.
const BATCH: i64 = 32;
/// Least that may be open unless a smaller number was set (`NR_FILE` of Linux).
const FEWEST: u64 = 8192;
/// Bytes of memory for each description that may be open.
const SHARE: u64 = 10 << 10;

static SUM: AtomicI64 = AtomicI64::new(0);
static COUNTED: PerCpu<AtomicI64> = PerCpu::new([const { AtomicI64::new(0) }; MAX_CPUS]);

/// Most that may be open; below 0 until that was asked.
static LIMIT: AtomicI64 = AtomicI64::new(-1);

/// The right to one open description, counted until it is dropped.
pub struct FileSlot(());

impl FileSlot {
    /// Counts one more. ENFILE beyond [`limit`], unless the running thread has `CAP_SYS_ADMIN`.
    #[inline]
    pub fn take() -> Result<Self, Errno> {
        if SUM.load(Relaxed) >= LIMIT.load(Relaxed) {
            check_exactly()?;
        }
        count(1);
        Ok(Self(()))
    }
}

impl Drop for FileSlot {
    #[inline]
    fn drop(&mut self) {
        count(-1);
    }
}

/// Of two that add what a processor has counted at once, one adds too much and the next to come here takes it back.
#[inline]
fn count(by: i64) {
    let here = COUNTED.here();
    let counted = here.fetch_add(by, Relaxed) + by;
    if counted.abs() >= BATCH {
        here.fetch_sub(counted, Relaxed);
        SUM.fetch_add(counted, Relaxed);
    }
}

#[cold]
#[inline(never)]
fn check_exactly() -> Result<(), Errno> {
    let privileged = || try_current().is_none_or(|task| task.capable(cap::SYS_ADMIN));
    if open() < limit() || privileged() { Ok(()) } else { Err(Errno::ENFILE) }
}

/// Descriptions that are open.
pub fn open() -> u64 {
    let apart: i64 = (0..MAX_CPUS as u32).map(|cpu| COUNTED.of(CpuId(cpu)).load(Relaxed)).sum();
    (SUM.load(Relaxed) + apart).max(0) as u64
}

/// Most that may be open: what was set, or one for each [`SHARE`] of memory that was free at boot.
pub fn limit() -> u64 {
    let known = LIMIT.load(Relaxed);
    u64::try_from(known).unwrap_or_else(|_| {
        let by_memory = (frames::given() as u64 * PAGE_SIZE as u64 / SHARE).max(FEWEST);
        match LIMIT.compare_exchange(known, by_memory as i64, Relaxed, Relaxed) {
            // Set meanwhile, which is never to a number below 0.
            Err(set) => set as u64,
            Ok(_) => by_memory,
        }
    })
}

/// Sets it. EINVAL for a number that Linux has none of.
pub fn set_limit(most: u64) -> Result<(), Errno> {
    LIMIT.store(i64::try_from(most).map_err(|_| Errno::EINVAL)?, Relaxed);
    Ok(())
}
