//! Each page of a fresh program against its file in the initramfs (`debug=verify`).
//!
//! Each page that exec mapped is compared with the bytes of the archive that its file came from, and so is each other
//! one that is in memory, which a fault would give: `page_verify_fail` for each that differs, then one `page_verify_ok`
//! with the counts. Nothing is mapped for that: a program whose pages are all there already meets none of the bugs of
//! faults and prefault. Files that were written since have no archive to compare with. The last page of a segment is
//! the program's own, cleared where the segment ends: there, zeros up to the end of the page are as good as the file's
//! bytes.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use kernel_logic::vma::{PAGE, Prot};
use machine::addr::UserPage;
use machine::frame::Frame;

use crate::fs::File;
use crate::mm::{AddressSpace, Backing, TAG_ANON};
use crate::trace::event::Event;

/// Pages that differ which are told one by one.
const MOST_TOLD: u64 = 16;

struct FileRange {
    start: u64,
    end: u64,
    file: Arc<File>,
    offset: u64,
}

/// Compares the pages of `mm`, which process `pid` runs now.
#[inline(never)]
pub fn verify(pid: u32, mm: &AddressSpace) {
    let (mut verified, mut failed) = (0, 0);
    let mut actual = vec![0; PAGE as usize];
    let mut expected = vec![0; PAGE as usize];
    for piece in pieces(mm) {
        for at in (piece.start..piece.end).step_by(PAGE as usize) {
            let file_offset = piece.offset + (at - piece.start);
            let Some(len) = piece.file.inode().original(file_offset, &mut expected) else { break };
            let Some(own) = content(mm, at, &piece, &mut actual) else { continue };
            expected[len..].fill(0);
            verified += 1;
            let Some(first) = difference(&expected, &actual, own) else { continue };
            failed += 1;
            if failed <= MOST_TOLD {
                let bytes = [expected[first], actual[first]];
                tell_difference(pid, [at, first as u64, file_offset, piece.start], bytes);
            }
        }
    }
    tell_counts(pid, verified, failed);
}

#[inline(never)]
fn tell_difference(pid: u32, [at, first, file_offset, vma_start]: [u64; 4], [expected, actual]: [u8; 2]) {
    let mut event = Event::new("page_verify_fail");
    event.number("pid", u64::from(pid)).address("vaddr", at).number("first_diff", first);
    event.address("expected", u64::from(expected)).address("actual", u64::from(actual));
    event.address("file_offset", file_offset).address("vma_start", vma_start);
    event.emit();
}

#[inline(never)]
fn tell_counts(pid: u32, verified: u64, failed: u64) {
    let mut event = Event::new("page_verify_ok");
    event.number("pid", u64::from(pid)).number("verified", verified).number("failed", failed);
    event.emit();
}

fn pieces(mm: &AddressSpace) -> Vec<FileRange> {
    let map = mm.lock();
    let piece = |vma: &crate::mm::Vma| match &vma.backing {
        Backing::File { file, offset } if vma.prot != Prot::NONE => {
            Some(FileRange { start: vma.start, end: vma.end, file: (**file).clone(), offset: *offset })
        }
        _ => None,
    };
    map.vmas.iter().filter_map(piece).collect()
}

/// What the program sees at `at`, or will when it faults there, and whether that frame is its own; `None` for a page of
/// which nothing is in memory.
fn content(mm: &AddressSpace, at: u64, piece: &FileRange, to: &mut [u8]) -> Option<bool> {
    if let Some((frame, leaf)) = mm.space.frame(UserPage::new(at)?) {
        frame.read(0, to);
        return Some(leaf.prot.tag == TAG_ANON);
    }
    let mut frame = [const { None::<Frame> }];
    piece.file.inode().cached((piece.offset + (at - piece.start)) / PAGE, &mut frame);
    let [Some(frame)] = frame else { return None };
    frame.read(0, to);
    Some(false)
}

/// The first byte that is not as it must be.
fn difference(expected: &[u8], actual: &[u8], own: bool) -> Option<usize> {
    let first = expected.iter().zip(actual).position(|(expected, actual)| expected != actual)?;
    let cleared = own && actual[first..].iter().all(|byte| *byte == 0);
    (!cleared).then_some(first)
}
