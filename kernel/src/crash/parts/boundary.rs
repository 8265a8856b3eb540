//! The pages in which segments of the running program end, in every dump: behind its end a segment is zeros.
//!
//! What the program wrote there may be anything, but not what its file has at the same place. A piece of those bytes in
//! such a page was never cleared: the page is the file's own one, or a copy of it. A page check tells the piece.

use kernel_logic::elf::notes::{self, Loadable};
use kernel_logic::vma::PAGE;
use kwab_format::record::PageCheck;
use machine::addr::PhysAddr;
use machine::crash::{self, RawLeaf};

use super::cached::{PIECE, TOLD, put};
use super::pages::{bit, take_one};
use super::{Dump, Stop};
use crate::fs::File;

/// Bytes of a piece that are not zeros, at least: fewer are the same by chance.
const MARKED: usize = 8;

/// Pages of the image whose file offset 0 is mapped at `start`.
pub(super) fn behind(
    dump: &mut Dump<'_>,
    pid: Option<u32>,
    root: PhysAddr,
    start: u64,
    file: &File,
    left: &mut usize,
) -> Result<(), Stop> {
    let Some(found) = notes::find(start, crash::probe_read) else { return Ok(()) };
    let mut outcome = Ok(());
    notes::segments(start, found.bias, crash::probe_read, |segment| {
        if outcome.is_ok() && segment.in_file < segment.length {
            outcome = segment_end(dump, pid, root, &segment, file, left);
        }
    });
    outcome
}

fn segment_end(
    dump: &mut Dump<'_>,
    pid: Option<u32>,
    root: PhysAddr,
    segment: &Loadable,
    file: &File,
    left: &mut usize,
) -> Result<(), Stop> {
    let end = segment.start.wrapping_add(segment.in_file);
    let (page, at) = (end & !(PAGE - 1), segment.offset.wrapping_add(segment.in_file) & !(PAGE - 1));
    let Some(now) = file.inode().present(at / PAGE).map(|frame| frame.addr().0).filter(|_| end > page) else {
        return Ok(());
    };
    let mut outcome = Ok(());
    crash::leaves(root, page, page + PAGE, &mut |leaf: RawLeaf| {
        let small = leaf.size == PAGE && leaf.entry & bit::PRESENT != 0;
        let frame = leaf.entry & bit::ADDRESS;
        if let Some((first, bytes)) = small.then(|| same_piece(now, frame, end - page)).flatten() {
            let check =
                PageCheck { pid, vaddr: Some(page), file_offset: Some(at), length: Some(PAGE), ..PageCheck::default() };
            let difference = Some((first, [0; TOLD], bytes));
            outcome = take_one(left).and_then(|()| put(dump, &check, file, Some(frame), difference));
        }
        false
    });
    outcome
}

/// The first piece from `from` on that two frames have in common, if it is not mostly zeros.
fn same_piece(one: u64, other: u64, from: u64) -> Option<(u64, [u8; TOLD])> {
    let (mut left, mut right) = ([0; PIECE], [0; PIECE]);
    for done in (0..PAGE).step_by(PIECE) {
        let read = crash::probe_physical(one + done, &mut left);
        let read = read.min(crash::probe_physical(other + done, &mut right));
        let pieces = left[..read].chunks_exact(TOLD).zip(right[..read].chunks_exact(TOLD));
        for (number, (piece, same)) in pieces.enumerate() {
            let first = done + (number * TOLD) as u64;
            let marked = piece.iter().filter(|byte| **byte != 0).count() >= MARKED;
            if let (true, true, Ok(bytes)) = (first >= from && marked, piece == same, piece.try_into()) {
                return Some((first, bytes));
            }
        }
    }
    None
}
