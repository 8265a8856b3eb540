//! Numbers of processors, and which of them run.

use core::sync::atomic::{AtomicU64, Ordering};

/// Most processors supported.
pub const MAX_CPUS: usize = 32;

/// A processor, numbered from 0 in the order they were found; 0 booted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct CpuId(pub u32);

/// A set of processors, bit n for processor n.
pub type CpuMask = u64;

pub(crate) static ONLINE: AtomicU64 = AtomicU64::new(1);

/// Processors that run.
pub fn online() -> CpuMask {
    ONLINE.load(Ordering::Acquire)
}
