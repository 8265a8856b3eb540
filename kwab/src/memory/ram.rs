//! The physical memory of a dump, by address: which section holds what, unpacked when it is asked for.
//!
//! The index of the dump says which addresses a section has. What it says is only believed as far as the section
//! agrees, and a section that it does not list is unpacked once to see.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use kwab_format::record::{IndexEntry, Memory};
use kwab_format::{Fields as _, RecordType as _, Records};

use crate::model::memory::Payload;
use crate::model::payloads::Payloads;
use crate::model::{Dump, DumpFile};

/// A run of physical memory: bytes, then zeros that are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'p> {
    /// Physical address of the first byte.
    pub start: u64,
    /// The bytes that are stored.
    pub bytes: &'p [u8],
    /// Zeros behind them.
    pub zeros: u64,
}

impl<'p> Piece<'p> {
    fn of(record: &Memory<'p>) -> Option<Self> {
        let (start, bytes) = (record.paddr?, record.bytes.unwrap_or_default());
        // A run that leaves the address space is cut there.
        let zeros = record.zeros.unwrap_or(0).min(u64::MAX - start.saturating_add(bytes.len() as u64));
        Some(Self { start, bytes, zeros })
    }

    /// Address behind the last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64).saturating_add(self.zeros)
    }

    /// Fills `out` from an address on; how many bytes there are.
    fn read(&self, at: u64, out: &mut [u8]) -> usize {
        let Some(skip) = at.checked_sub(self.start) else { return 0 };
        let stored = usize::try_from(skip).ok().and_then(|skip| self.bytes.get(skip..)).unwrap_or_default();
        let count = stored.len().min(out.len());
        let (bytes, rest) = out.split_at_mut(count);
        bytes.copy_from_slice(&stored[..count]);
        let zeros = self.end().saturating_sub(at.saturating_add(count as u64));
        let zeros = rest.len().min(usize::try_from(zeros).unwrap_or(usize::MAX));
        rest[..zeros].fill(0);
        count + zeros
    }
}

/// Where a stretch of memory lies in the dump.
#[derive(Debug, Clone, Copy)]
enum Holder {
    /// In this section, which is packed.
    Section(usize),
    /// In this record of the loaded ones.
    Loaded(usize),
}

/// The physical memory of a dump.
#[derive(Debug)]
pub struct Ram<'d> {
    payloads: Payloads<&'d DumpFile>,
    /// Records that are loaded and say a physical address.
    loaded: Vec<Piece<'d>>,
    /// Addresses with what holds them, in order of their start.
    extents: Vec<(Range<u64>, Holder)>,
    /// The highest end among each extent and all before it.
    reach: Vec<u64>,
}

impl<'d> Ram<'d> {
    /// Looks where the memory lies; sections that an index lists are not read.
    #[must_use]
    pub fn of(dump: &'d Dump) -> Self {
        let file = &dump.file;
        let payloads = Payloads::new(file);
        let listed = listed(file);
        let mut extents = Vec::new();
        for (index, section) in file.sections.iter().enumerate().filter(|(_, section)| section.is_bulk()) {
            let extent = listed.get(&section.header.seq).cloned().or_else(|| extent(&payloads.get(index).ok()?));
            extents.extend(extent.map(|extent| (extent, Holder::Section(index))));
        }
        let loaded: Vec<Piece<'_>> = dump.records::<Memory<'_>>().filter_map(|record| Piece::of(&record)).collect();
        extents.extend(loaded.iter().enumerate().map(|(at, piece)| (piece.start..piece.end(), Holder::Loaded(at))));
        extents.retain(|(extent, _)| extent.start < extent.end);
        extents.sort_by_key(|(extent, _)| extent.start);
        let mut highest = 0;
        let reach = extents.iter().map(|(extent, _)| {
            highest = extent.end.max(highest);
            highest
        });
        let reach = reach.collect();
        Self { payloads, loaded, extents, reach }
    }

    /// Whether the dump has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Bytes of the file that the memory is stored in.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.payloads.file().len
    }

    /// Whether whole sections of the dump are physical memory, as where all of a machine's was captured.
    #[must_use]
    pub fn has_sections(&self) -> bool {
        self.extents.iter().any(|(_, holder)| matches!(holder, Holder::Section(_)))
    }

    /// Fills `out` from a physical address on; how many bytes are known.
    #[must_use]
    pub fn read(&self, paddr: u64, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len() {
            let Some(at) = paddr.checked_add(done as u64) else { break };
            let read = self.read_once(at, &mut out[done..]);
            if read == 0 {
                break;
            }
            done += read;
        }
        done
    }

    /// The little-endian word at a physical address.
    #[must_use]
    pub fn word(&self, paddr: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(paddr, &mut word) == 8).then(|| u64::from_le_bytes(word))
    }

    fn read_once(&self, at: u64, out: &mut [u8]) -> usize {
        /// Extents with the address that are tried. A kernel writes its memory in order of value, a few passes over all
        /// addresses, of which each has a section with holes around the address.
        const MOST_TRIED: usize = 8;
        /// Extents that begin before the address and are looked at.
        const MOST_PASSED: usize = 4096;
        let behind = self.extents.partition_point(|(extent, _)| extent.start <= at);
        let first = behind.saturating_sub(MOST_PASSED);
        let before = self.extents[first..behind].iter().zip(&self.reach[first..behind]).rev();
        let near = before.take_while(|(_, reach)| **reach > at).map(|(held, _)| held);
        for (_, holder) in near.filter(|(extent, _)| extent.contains(&at)).take(MOST_TRIED) {
            let read = match holder {
                Holder::Loaded(number) => self.loaded.get(*number).map_or(0, |piece| piece.read(at, out)),
                Holder::Section(index) => self.payloads.get(*index).map_or(0, |payload| {
                    pieces(&payload)
                        .find(|piece| (piece.start..piece.end()).contains(&at))
                        .map_or(0, |p| p.read(at, out))
                }),
            };
            if read > 0 {
                return read;
            }
        }
        0
    }

    /// Calls `look` with every piece, in order of address as far as the dump is sound, one section in memory at a time.
    /// Gives the sections that could not be read.
    pub fn each(&self, look: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>) -> usize {
        let mut lost = 0;
        for (_, holder) in &self.extents {
            let flow = match holder {
                Holder::Loaded(number) => {
                    self.loaded.get(*number).map_or(ControlFlow::Continue(()), |piece| look(*piece))
                }
                // Not by the cache, which others need for their page tables.
                Holder::Section(index) => match self.payloads.file().payload(*index) {
                    Ok(payload) => pieces(&payload).try_for_each(&mut *look),
                    Err(_) => {
                        lost += 1;
                        ControlFlow::Continue(())
                    }
                },
            };
            if flow.is_break() {
                break;
            }
        }
        lost
    }
}

fn pieces(payload: &Payload) -> impl Iterator<Item = Piece<'_>> {
    let memory = Records::new(payload).filter(|record| record.kind == Memory::KIND);
    memory.filter_map(|record| Piece::of(&Memory::decode(record.body).ok()?.0))
}

/// The addresses of a section, by its records.
fn extent(payload: &Arc<Payload>) -> Option<Range<u64>> {
    let low = pieces(payload).map(|piece| piece.start).min()?;
    Some(low..pieces(payload).map(|piece| piece.end()).max()?)
}

/// The addresses of sections that an index of the dump lists, by sequence number.
fn listed(file: &DumpFile) -> HashMap<u32, Range<u64>> {
    let mut listed = HashMap::new();
    for table in &file.tables {
        let Ok(payload) = file.payload_of(table) else { continue };
        for record in Records::new(&payload).filter(|record| record.kind == IndexEntry::KIND) {
            let Ok((entry, _)) = IndexEntry::decode(record.body) else { continue };
            if let (Some(section), Some(start), Some(span)) = (entry.section, entry.paddr, entry.span) {
                listed.insert(section, start..start.saturating_add(span));
            }
        }
    }
    listed
}
