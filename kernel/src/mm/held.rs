//! Memory that an address space holds besides resident pages, for the OOM killer's choice.

use alloc::sync::Arc;

use kernel_logic::vma::PAGE;

use super::{AddressSpace, Backing, Mapped, Vma};

/// See [`AddressSpace::held`]; in pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// What is kept about its ranges.
    pub ranges: u64,
    /// Shared memory and files without a name that it maps, resident or not.
    pub contents: u64,
}

impl AddressSpace {
    /// What it keeps in memory beside resident pages, as far as that is known without waiting: for the choice of a
    /// victim when memory is short.
    pub fn held(&self) -> Held {
        let Some(map) = self.try_lock() else { return Held::default() };
        let ranges = (map.vmas.len() * size_of::<Vma>()) as u64 / PAGE;
        let mut last = core::ptr::null();
        let mut contents = 0;
        for vma in map.vmas.iter() {
            // Parts of one mapping follow each other: their pages count once.
            let (this, pages) = match &vma.backing {
                Backing::Shared { memory, .. } => (Arc::as_ptr(memory).cast::<()>(), memory.held_pages()),
                Backing::File { file, .. } => file.held(),
                Backing::Anonymous | Backing::Pool { .. } | Backing::Vdso { .. } => continue,
            };
            if this != last {
                contents += pages;
                last = this;
            }
        }
        Held { ranges, contents }
    }
}
