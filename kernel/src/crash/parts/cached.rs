//! The pages of the process that was running against the page cache, in every dump.
//!
//! A page that is mapped as its file's own is the frame that the file has for it now, whatever a program does. One that
//! is another frame, with other bytes, is of an older generation: a page check tells what it has and what the file has.

use kernel_logic::vma::PAGE;
use kwab_format::record::{CheckResult, PageCheck};
use machine::addr::PhysAddr;
use machine::crash::{self, RawLeaf};

use super::pages::{bit, take_one};
use super::{Dump, Stop};
use crate::fs::File;
use crate::mm::{TAG_FILE, TemplateSlot, Vma};

/// Bytes compared at a time: they pass over the crash path's stack.
pub(super) const PIECE: usize = 512;
/// Bytes told from the first difference on.
pub(super) const TOLD: usize = 16;

/// Where the difference is, and the bytes there: as they must be, and as they are.
pub(super) type Difference = (u64, [u8; TOLD], [u8; TOLD]);

/// Pages of a mapping that are the file's of another generation.
pub(super) fn stale(
    dump: &mut Dump<'_>,
    pid: Option<u32>,
    root: PhysAddr,
    vma: &Vma,
    (file, offset): (&File, u64),
    left: &mut usize,
) -> Result<(), Stop> {
    let Some(newest) = file.inode().template().map(TemplateSlot::generation) else { return Ok(()) };
    let mut outcome = Ok(());
    crash::leaves(root, vma.start, vma.end, &mut |leaf| {
        let at = offset + (leaf.at - vma.start);
        if let Some(now) = other_frame(file, at, &leaf)
            && let Some(difference) = compare(now, leaf.entry & bit::ADDRESS)
        {
            let page = PageCheck { file_offset: Some(at), length: Some(PAGE), ..PageCheck::default() };
            let here = PageCheck { pid, vaddr: Some(leaf.at), generation: Some(newest.saturating_sub(1)), ..page };
            outcome =
                take_one(left).and_then(|()| put(dump, &here, file, Some(leaf.entry & bit::ADDRESS), Some(difference)));
            // What the file has there now, for the reader to compare generations with.
            let current = PageCheck { generation: Some(newest), ..page };
            outcome = outcome.and_then(|()| put(dump, &current, file, Some(now), None));
        }
        outcome.is_ok()
    });
    outcome
}

/// The frame that the file has for a page, if the leaf shows another one as the file's.
fn other_frame(file: &File, at: u64, leaf: &RawLeaf) -> Option<u64> {
    let cached = leaf.entry & bit::PRESENT != 0 && leaf.entry >> bit::TAG & 3 == u64::from(TAG_FILE);
    let now = file.inode().present(at / PAGE).filter(|_| cached)?.addr().0;
    (now != leaf.entry & bit::ADDRESS).then_some(now)
}

/// The first difference of two frames.
fn compare(expected: u64, actual: u64) -> Option<Difference> {
    let (mut wanted, mut found) = ([0; PIECE], [0; PIECE]);
    for done in (0..PAGE).step_by(PIECE) {
        let read = crash::probe_physical(expected + done, &mut wanted);
        let read = read.min(crash::probe_physical(actual + done, &mut found));
        if let Some(first) = (0..read).find(|index| wanted[*index] != found[*index]) {
            return Some((done + first as u64, some(&wanted[first..read]), some(&found[first..read])));
        }
    }
    None
}

/// The first bytes.
fn some(bytes: &[u8]) -> [u8; TOLD] {
    let mut told = [0; TOLD];
    let len = bytes.len().min(TOLD);
    told[..len].copy_from_slice(&bytes[..len]);
    told
}

pub(super) fn put(
    dump: &mut Dump<'_>,
    page: &PageCheck<'_>,
    file: &File,
    paddr: Option<u64>,
    difference: Option<Difference>,
) -> Result<(), Stop> {
    let mut room = [0; 256];
    let path = Some(file.path.try_name(&mut room));
    let check = PageCheck { path, paddr, ..*page };
    match &difference {
        None => dump.put(&PageCheck { result: Some(CheckResult::EQUAL), ..check }),
        Some((first, expected, actual)) => dump.put(&PageCheck {
            first_diff: Some(*first),
            expected: Some(expected),
            actual: Some(actual),
            result: Some(CheckResult::DIFFERENT),
            ..check
        }),
    }
}
