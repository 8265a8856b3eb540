//! Reads at virtual addresses: what was captured by virtual address, then what page tables lead to.

use kwab_format::record::Memory;

use super::ram::Ram;
use super::space::Space;
use super::walk::{Outcome, walk};
use crate::intervals::ByProcess;
use crate::model::{Case, Located};

impl<'a> Case<'a> {
    fn memory_map(&self) -> &ByProcess {
        self.lookup.memory.get_or_init(|| {
            ByProcess::of(self.memory.iter().enumerate().filter_map(|(number, memory)| {
                let (start, length) = (memory.vaddr?, memory.bytes?.len() as u64);
                let last = start.saturating_add(length.checked_sub(1)?);
                Some((memory.pid, (start, last, u32::try_from(number).ok()?)))
            }))
        })
    }

    /// The first captured bytes that hold an address and are visible to a process: its own, those without a process,
    /// and those of the kernel. `None` as the process sees everything.
    pub(crate) fn memory_holding(&self, pid: Option<u32>, addr: u64) -> Option<&Located<Memory<'a>>> {
        let map = self.memory_map();
        let everything = pid.is_none() || addr >> 63 == 1;
        let number = if everything { map.anywhere(addr) } else { map.seen_by(pid, addr) };
        self.memory.get(number? as usize)
    }
}

/// The memory of a dump by virtual address.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'d, 'a> {
    case: &'d Case<'a>,
    ram: &'d Ram<'d>,
}

impl<'d, 'a> Reader<'d, 'a> {
    /// Reads from the records of `case`, then from `ram`.
    #[must_use]
    pub const fn new(case: &'d Case<'a>, ram: &'d Ram<'d>) -> Self {
        Self { case, ram }
    }

    /// The physical memory behind it.
    #[must_use]
    pub const fn ram(&self) -> &'d Ram<'d> {
        self.ram
    }

    /// The record with the byte at an address, and how far into it, when it was captured by virtual address.
    #[must_use]
    pub fn captured(&self, space: &Space, addr: u64) -> Option<(&'d Located<Memory<'a>>, usize)> {
        // With page tables at hand, the memory of some other process is never taken for that of this one.
        let map = self.case.memory_map();
        let own = space.tables.is_some() && !self.ram.is_empty();
        let memory = match space.pid {
            None if own && addr >> 63 == 0 => self.case.memory.get(map.seen_by(None, addr)? as usize)?,
            pid => self.case.memory_holding(pid, addr)?,
        };
        let skip = usize::try_from(addr.checked_sub(memory.vaddr?)?).ok()?;
        (skip < memory.bytes?.len()).then_some((memory, skip))
    }

    /// Fills `out` from a virtual address on; how many bytes are known.
    #[must_use]
    pub fn read(&self, space: &Space, addr: u64, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len() {
            let Some(at) = addr.checked_add(done as u64) else { break };
            let read = self.read_once(space, at, &mut out[done..]);
            if read == 0 {
                break;
            }
            done += read;
        }
        done
    }

    /// The little-endian word at a virtual address.
    #[must_use]
    pub fn word(&self, space: &Space, addr: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(space, addr, &mut word) == 8).then(|| u64::from_le_bytes(word))
    }

    fn read_once(&self, space: &Space, at: u64, out: &mut [u8]) -> usize {
        if let Some((memory, skip)) = self.captured(space, at) {
            let bytes = memory.bytes.and_then(|bytes| bytes.get(skip..)).unwrap_or_default();
            let count = bytes.len().min(out.len());
            out[..count].copy_from_slice(&bytes[..count]);
            return count;
        }
        let Some(tables) = space.tables.filter(|_| !self.ram.is_empty()) else { return 0 };
        match walk(tables, at, &|paddr| self.ram.word(paddr)).outcome {
            Outcome::Page { paddr, size, .. } => {
                let room = usize::try_from(size - (paddr & (size - 1))).unwrap_or(usize::MAX).min(out.len());
                // The next bytes may have been captured by address, which comes first: a page at a time.
                let room = room.min(4096 - (at % 4096) as usize);
                let starts = self.case.memory.iter().filter_map(|memory| memory.vaddr);
                let near = starts.filter(|start| *start > at && *start - at < room as u64);
                let next = near.filter(|start| self.captured(space, *start).is_some()).min();
                let room = next.map_or(room, |start| (start - at) as usize);
                self.ram.read(paddr, &mut out[..room])
            }
            _ => 0,
        }
    }
}
