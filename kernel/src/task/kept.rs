//! Kernel memory that a thread's call keeps while it sleeps or others run, for the OOM killer's choice.
//!
//! Only calls that may keep several pages say so: a copy of a large packet, a list of thousands of descriptors, a text
//! of thousands of mappings that is being made.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use machine::addr::PAGE_SIZE;

use super::current;

/// Pages that the call of a thread keeps.
#[derive(Default)]
pub struct Kept(AtomicU32);

impl Kept {
    /// Whole pages only: what is smaller does not count.
    pub fn pages(&self) -> u64 {
        u64::from(self.0.load(Relaxed))
    }
}

/// A note that the running thread's call keeps memory, until this is dropped by the same thread.
pub struct Keeping(u32);

impl Keeping {
    /// For `bytes` of memory, of which whole pages count.
    pub fn new(bytes: usize) -> Self {
        let pages = (bytes / PAGE_SIZE) as u32;
        current().kept.0.fetch_add(pages, Relaxed);
        Self(pages)
    }

    /// It keeps `bytes` from now on.
    pub fn change(&mut self, bytes: usize) {
        *self = Self::new(bytes);
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        current().kept.0.fetch_sub(self.0, Relaxed);
    }
}
