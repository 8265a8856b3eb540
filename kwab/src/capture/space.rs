//! Reads a kernel's memory by virtual address out of a core, through the page tables that the kernel says it has.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::vmcore::Vmcore;
use crate::memory::{Tables, walk};

const PAGE: u64 = 4096;
/// Translations and contents that are kept; more are read again.
const MOST_KEPT: usize = 1 << 12;

/// An address space of the core.
#[derive(Debug)]
pub(in crate::capture) struct Space<'c> {
    core: &'c Vmcore,
    tables: Tables,
    pages: RefCell<BTreeMap<u64, Option<Box<[u8]>>>>,
}

impl<'c> Space<'c> {
    pub(in crate::capture) fn new(core: &'c Vmcore, tables: Tables) -> Self {
        Self { core, tables, pages: RefCell::default() }
    }

    /// Bytes of memory that the core can hold: nothing in it is longer, however often page tables map it.
    pub(in crate::capture) fn held(&self) -> u64 {
        self.core.held()
    }

    /// The space of a program, whose tables have the kernel's depth.
    pub(in crate::capture) fn of_root(&self, root: u64) -> Self {
        Self::new(self.core, Tables { root, ..self.tables })
    }

    /// Physical address of a mapped byte.
    pub(in crate::capture) fn physical(&self, vaddr: u64) -> Option<u64> {
        walk(self.tables, vaddr, &|paddr| self.core.word(paddr)).paddr()
    }

    fn page(&self, page: u64) -> Option<Box<[u8]>> {
        let paddr = self.physical(page)?;
        let mut bytes = vec![0; PAGE as usize];
        (self.core.read(paddr, &mut bytes).ok()? == bytes.len()).then(|| bytes.into_boxed_slice())
    }

    /// Fills `out` from an address on; `None` unless all of it is mapped and in the core.
    pub(in crate::capture) fn fill(&self, vaddr: u64, out: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < out.len() {
            let at = vaddr.checked_add(done as u64)?;
            let (page, skip) = (at & !(PAGE - 1), (at % PAGE) as usize);
            let mut pages = self.pages.borrow_mut();
            if pages.len() >= MOST_KEPT && !pages.contains_key(&page) {
                pages.clear();
            }
            let kept = pages.entry(page).or_insert_with(|| self.page(page)).as_deref()?;
            let count = (out.len() - done).min(kept.len() - skip);
            out[done..done + count].copy_from_slice(&kept[skip..skip + count]);
            done += count;
        }
        Some(())
    }

    /// So many bytes.
    pub(in crate::capture) fn bytes(&self, vaddr: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.fill(vaddr, &mut bytes)?;
        Some(bytes)
    }

    /// Bytes from `start` on, as far as they are mapped and in the core, up to `end`.
    pub(in crate::capture) fn as_far(&self, start: u64, end: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = start;
        while at < end {
            let stop = end.min((at / PAGE + 1).saturating_mul(PAGE));
            let Some(piece) = self.bytes(at, (stop - at) as usize) else { break };
            bytes.extend(piece);
            at = stop;
        }
        bytes
    }

    /// A little-endian word of 64 bits.
    pub(in crate::capture) fn word(&self, vaddr: u64) -> Option<u64> {
        let mut word = [0; 8];
        self.fill(vaddr, &mut word)?;
        Some(u64::from_le_bytes(word))
    }

    /// One of 32.
    pub(in crate::capture) fn half(&self, vaddr: u64) -> Option<u32> {
        let mut word = [0; 4];
        self.fill(vaddr, &mut word)?;
        Some(u32::from_le_bytes(word))
    }

    /// Bytes up to a NUL, `most` at most; what is not mapped ends them too.
    pub(in crate::capture) fn text(&self, vaddr: u64, most: usize) -> Vec<u8> {
        let mut bytes = self.bytes(vaddr, most).unwrap_or_default();
        if bytes.is_empty() {
            // The end of the page is nearer than the most that it could be.
            let rest = (PAGE - vaddr % PAGE) as usize;
            bytes = self.bytes(vaddr, rest.min(most)).unwrap_or_default();
        }
        let end = memchr::memchr(0, &bytes).unwrap_or(bytes.len());
        bytes.truncate(end);
        bytes
    }
}
