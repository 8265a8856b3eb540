//! Lays out the physical memory of a machine in a core file: which of it is stored where, and where it is mapped.
//!
//! A machine is a dump with all memory (`kwab capture --memory all`) or with that which its kernel chose to write. Each
//! of its blocks is stored once, in the order in which the dump has them; program headers give it the virtual addresses
//! that the page tables give it, so that gdb reads all of the kernel's memory and that of the program that ran, and its
//! physical ones for tools that translate by themselves.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::{ControlFlow, Range};

use super::ranges::PAGE;
use crate::memory::vmcoreinfo::{self, MOST_TEXTS};
use crate::memory::{Piece, Ram, Reverse, Wanted};
use crate::model::Case;

/// A part of the stored memory with the virtual address that it is shown at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    pub vaddr: u64,
    pub paddr: u64,
    pub length: u64,
    /// Where it lies behind the first byte of the first block.
    pub offset: u64,
}

/// A stored part of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Its physical addresses.
    physical: Range<u64>,
    /// Where it lies behind the first byte that is stored.
    offset: u64,
}

/// The memory of a machine.
#[derive(Debug, Default)]
pub(super) struct Machine {
    /// What is stored, without overlap, in order of physical addresses.
    pub blocks: Vec<Block>,
    /// What is shown, in order of virtual addresses.
    pub shown: Vec<Shown>,
    /// What a Linux says about itself, as it left it in its memory for readers of cores.
    pub info: Option<String>,
}

/// Bit 63 without the bits below it: no processor takes such an address, so what no page table maps is shown behind it.
const UNMAPPED: u64 = 1 << 63;
/// The most memory that is written: so much, and for each byte of the dump so much more.
const MOST: u64 = 1 << 30;
const PER_BYTE: u64 = 256;

/// Whether an address is one that [`Shown`] gives to what is mapped nowhere.
pub(super) const fn is_unmapped(vaddr: u64) -> bool {
    vaddr >> 48 == UNMAPPED >> 48
}

impl Machine {
    /// Looks through the memory; shows at most `room` parts of it, the longest first.
    ///
    /// # Errors
    /// How much memory the dump claims, when that is more than a file of its length holds: a run of zeros takes a few
    /// bytes in a dump, and its length in a core file.
    pub(super) fn of(case: &Case<'_>, ram: &Ram<'_>, room: usize) -> Result<Self, u64> {
        let (mut blocks, mut texts) = (Vec::<Block>::new(), Vec::<String>::new());
        let mut claimed = 0_u64;
        each(ram, &mut |piece| {
            match blocks.last_mut() {
                Some(last) if last.physical.end == piece.start => last.physical.end = piece.end(),
                _ => blocks.push(Block { physical: piece.start..piece.end(), offset: claimed }),
            }
            claimed = claimed.saturating_add(piece.end() - piece.start);
            let first = piece.start.next_multiple_of(PAGE) - piece.start;
            let pages = piece.bytes.get(first as usize..).unwrap_or_default().chunks(PAGE as usize);
            let found = pages.filter_map(vmcoreinfo::text).map(str::to_owned);
            texts.extend(found.take(MOST_TEXTS.saturating_sub(texts.len())));
            ControlFlow::Continue(())
        });
        blocks.sort_unstable_by_key(|block| block.physical.start);
        if claimed > MOST.saturating_add(ram.file_len().saturating_mul(PER_BYTE)) {
            return Err(claimed);
        }
        let space = Wanted::default().find(case).ok();
        let tables = space.as_ref().and_then(|space| space.tables);
        let own =
            case.identities.first().and_then(|identity| identity.kernel_name).is_some_and(|name| name != b"Linux");
        let of_kernel = |text: &String| vmcoreinfo::is_of(text, tables.as_slice(), |paddr| ram.word(paddr));
        let info = texts.into_iter().find(|text| !own && of_kernel(text));
        let runs = Reverse::of(ram, space.as_slice());
        // Of a Linux only the kernel's: makedumpfile and crash take the first part for its direct map.
        let visible = runs.runs().iter().filter(|run| own || run.start >> 63 == 1);
        let pages = joined(visible.map(|run| (run.start, run.physical.clone())));
        let shown = shown(&blocks, &pages, room);
        Ok(Self { blocks, shown, info })
    }

    /// Writes the blocks.
    ///
    /// # Errors
    /// Those of `out`, and when the memory is not what it was.
    pub(super) fn write(&self, ram: &Ram<'_>, out: &mut dyn Write) -> io::Result<()> {
        let zeros = [0; 64 << 10];
        let (mut result, mut written) = (Ok(()), 0_u64);
        each(ram, &mut |piece| {
            result = out.write_all(piece.bytes);
            let mut left = piece.zeros;
            while left > 0 && result.is_ok() {
                let count = left.min(zeros.len() as u64);
                result = out.write_all(&zeros[..count as usize]);
                left -= count;
            }
            written += piece.end() - piece.start;
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        result?;
        if written != self.blocks.iter().map(|block| block.physical.end - block.physical.start).sum::<u64>() {
            return Err(io::Error::other("the dump has changed while it was read"));
        }
        Ok(())
    }
}

/// Calls `look` with every piece of memory; of pieces that overlap the first counts. A kernel writes frames in order of
/// their value, so a piece may lie anywhere.
fn each(ram: &Ram<'_>, look: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>) {
    let mut covered = Covered::default();
    ram.each(&mut |piece| {
        covered.add(piece.start..piece.end()).into_iter().try_for_each(|part| {
            let skip = usize::try_from(part.start - piece.start).unwrap_or(usize::MAX);
            let most = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
            let bytes = piece.bytes.get(skip..).unwrap_or_default();
            let bytes = &bytes[..bytes.len().min(most)];
            look(Piece { start: part.start, bytes, zeros: part.end - part.start - bytes.len() as u64 })
        })
    });
}

/// Addresses, as ranges that do not touch: ends by starts.
#[derive(Debug, Default)]
struct Covered(BTreeMap<u64, u64>);

impl Covered {
    /// Adds a range; gives the parts of it that were not there, in order.
    fn add(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let (mut fresh, mut at) = (Vec::new(), range.start);
        let (mut low, mut high) = (range.start, range.end);
        if range.is_empty() {
            return fresh;
        }
        let before = self.0.range(..=range.start).next_back().filter(|(_, end)| **end >= range.start);
        let touching: Vec<(u64, u64)> = before
            .into_iter()
            .chain(self.0.range(range.start + 1..=range.end))
            .map(|(start, end)| (*start, *end))
            .collect();
        for (start, end) in touching {
            if start > at {
                fresh.push(at..start.min(range.end));
            }
            at = at.max(end);
            (low, high) = (low.min(start), high.max(end));
            self.0.remove(&start);
        }
        if at < range.end {
            fresh.push(at..range.end);
        }
        self.0.insert(low, high);
        fresh
    }
}

/// Mappings in order of their virtual addresses, those that continue each other as one whatever their rights.
fn joined(runs: impl Iterator<Item = (u64, Range<u64>)>) -> Vec<(u64, Range<u64>)> {
    let mut runs: Vec<_> = runs.collect();
    runs.sort_unstable_by_key(|(start, physical)| (*start, physical.start));
    let mut joined: Vec<(u64, Range<u64>)> = Vec::new();
    for (start, physical) in runs {
        match joined.last_mut() {
            Some((first, last)) if last.end == physical.start && *first + (last.end - last.start) == start => {
                last.end = physical.end;
            }
            _ => joined.push((start, physical)),
        }
    }
    joined
}

/// The mapped parts of the blocks and, behind [`UNMAPPED`], those that are mapped nowhere.
fn shown(blocks: &[Block], mapped: &[(u64, Range<u64>)], room: usize) -> Vec<Shown> {
    let (mut shown, stored) = (Vec::new(), Stored { blocks });
    for (start, physical) in mapped {
        shown.extend(stored.parts(physical).map(|(paddr, length, offset)| Shown {
            vaddr: start.wrapping_add(paddr - physical.start),
            paddr,
            length,
            offset,
        }));
    }
    // A block needs a header of its own when none of its mappings is kept, and one more for each mapping inside it.
    shown.sort_by_key(|part| std::cmp::Reverse(part.length));
    shown.truncate(room.saturating_sub(blocks.len()) / 2);
    let mut covered: Vec<Range<u64>> = shown.iter().map(|part| part.paddr..part.paddr + part.length).collect();
    covered.sort_by_key(|part| part.start);
    let mut rest = Vec::new();
    for block in blocks.iter().map(|block| &block.physical) {
        let mut at = block.start;
        let from = covered.partition_point(|part| part.end <= block.start);
        for part in covered.iter().skip(from).take_while(|part| part.start < block.end) {
            if part.start > at {
                rest.push(at..part.start);
            }
            at = at.max(part.end);
        }
        if at < block.end {
            rest.push(at..block.end);
        }
    }
    rest.sort_by_key(|part| std::cmp::Reverse(part.end - part.start));
    for part in rest.iter().take(room.saturating_sub(shown.len())) {
        shown.extend(stored.parts(part).map(|(paddr, length, offset)| Shown {
            vaddr: UNMAPPED | paddr,
            paddr,
            length,
            offset,
        }));
    }
    shown.sort_by_key(|part| part.vaddr);
    shown
}

/// What is stored, by address.
struct Stored<'b> {
    blocks: &'b [Block],
}

impl Stored<'_> {
    /// The parts of a range that are stored: physical address, length, offset.
    fn parts(&self, wanted: &Range<u64>) -> impl Iterator<Item = (u64, u64, u64)> {
        let (low, high) = (wanted.start, wanted.end);
        // A hostile dump has as many blocks as mappings: the first one is not looked for from the beginning.
        let from = self.blocks.partition_point(|block| block.physical.end <= low);
        let near = self.blocks[from..].iter().take_while(move |block| block.physical.start < high);
        near.map(move |Block { physical, offset }| {
            let (start, end) = (physical.start.max(low), physical.end.min(high));
            (start, end - start, offset + (start - physical.start))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_byte_is_shown_where_it_is_mapped_or_else_where_no_address_is() {
        // The second was written first.
        let block = |physical, offset| Block { physical, offset };
        let blocks = [block(0..0x4000, 0x8000), block(0x10_0000..0x10_8000, 0)];
        let mapped = joined(
            [(0xffff_8000_0010_2000, 0x10_2000..0x10_4000), (0xffff_8000_0010_4000, 0x10_4000..0x20_0000)].into_iter(),
        );
        assert_eq!(mapped.len(), 1);
        let found = shown(&blocks, &mapped, 100);
        let part = |vaddr, paddr, length, offset| Shown { vaddr, paddr, length, offset };
        assert_eq!(
            found,
            [
                part(UNMAPPED, 0, 0x4000, 0x8000),
                part(UNMAPPED | 0x10_0000, 0x10_0000, 0x2000, 0),
                part(0xffff_8000_0010_2000, 0x10_2000, 0x6000, 0x2000),
            ]
        );
        // Without room for the mapping the blocks are left.
        let found = shown(&blocks, &mapped, 2);
        assert_eq!(found, [part(UNMAPPED, 0, 0x4000, 0x8000), part(UNMAPPED | 0x10_0000, 0x10_0000, 0x8000, 0)]);
    }

    #[test]
    fn of_pieces_in_any_order_each_address_counts_once() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let (mut covered, mut known) = (Covered::default(), [false; 64]);
            for _ in 0..20 {
                let start = random(60);
                let range = start..start + random(5);
                let expected: Vec<u64> = range.clone().filter(|at| !known[*at as usize]).collect();
                let fresh: Vec<u64> = covered.add(range.clone()).into_iter().flatten().collect();
                assert_eq!(fresh, expected, "{range:?}");
                range.for_each(|at| known[at as usize] = true);
                let ranges: Vec<_> = covered.0.iter().collect();
                assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
            }
        }
        assert!(covered_at_the_end().into_iter().eq(std::iter::once(u64::MAX - 1..u64::MAX)));
    }

    fn covered_at_the_end() -> Vec<Range<u64>> {
        let mut covered = Covered::default();
        covered.add(u64::MAX - 8..u64::MAX - 1);
        covered.add(u64::MAX - 4..u64::MAX)
    }
}
