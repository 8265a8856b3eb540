//! The pages of the process that was running against the files behind them.
//!
//! What [`super::cached`] and [`super::boundary`] look for is in every dump; the rest needs `debug=verify`. Every page
//! of a file mapping that is in memory is compared with what its file held when it was unpacked. A page that the
//! process has copied for itself, or shares to write to it, may differ: it is dirty then, not wrong. What the caches
//! hold must not. Files that were written since have nothing to be compared with.

use kernel_logic::vma::{Prot, VmaFlags};
use kwab_format::record::{CheckResult, PageCheck};
use machine::addr::PhysAddr;
use machine::crash::{self, RawLeaf};

use super::cached::{PIECE, TOLD};
use super::memory::with_map;
use super::pages::{bit, take_one};
use super::{Dump, Stop, Subject, boundary, cached};
use crate::fs::File;
use crate::mm::{Backing, TAG_FILE, Vma};
use crate::trace::{Category, is_on};

pub(super) fn checks(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let verifies = is_on(Category::Verify);
    let pid = subject.pid();
    let mut left = subject.amount.entries;
    with_map(dump, subject, |dump, map, mm| {
        let root = mm.space.root();
        for vma in map.vmas.iter() {
            let Backing::File { file, offset } = &vma.backing else { continue };
            cached::stale(dump, pid, root, vma, (file, *offset), &mut left)?;
            if *offset == 0 && map.is_image(&vma.backing) {
                boundary::behind(dump, pid, root, vma.start, file, &mut left)?;
            }
            if verifies {
                mapping(dump, pid, root, vma, (file, *offset), &mut left)?;
            }
        }
        Ok(())
    })
}

/// The pages of one mapping that are in memory.
fn mapping(
    dump: &mut Dump<'_>,
    pid: Option<u32>,
    root: PhysAddr,
    vma: &Vma,
    (file, offset): (&File, u64),
    left: &mut usize,
) -> Result<(), Stop> {
    let mut outcome = Ok(());
    crash::leaves(root, vma.start, vma.end, &mut |leaf| {
        let at = offset + (leaf.at - vma.start);
        let present = leaf.entry & bit::PRESENT != 0;
        if let Some(found) = present.then(|| compare(file, at, &leaf)).flatten() {
            let check = PageCheck { pid, vaddr: Some(leaf.at), file_offset: Some(at), ..PageCheck::default() };
            outcome = take_one(left).and_then(|()| put(dump, &check, &found, vma, (file, &leaf)));
        }
        outcome.is_ok()
    });
    outcome
}

/// How a page compares.
struct PageComparison {
    /// Bytes that were read.
    length: u64,
    /// Whether the whole page was.
    whole: bool,
    /// Where the first difference is, and how many of the bytes after it are in both of these: the file's, the page's.
    difference: Option<(u64, usize, [u8; TOLD], [u8; TOLD])>,
}

/// `None` when the file has nothing to compare with.
fn compare(file: &File, at: u64, leaf: &RawLeaf) -> Option<PageComparison> {
    let (mut expected, mut actual) = ([0; PIECE], [0; PIECE]);
    let frame = leaf.entry & bit::ADDRESS;
    let mut done = 0;
    while done < leaf.size {
        let len = file.inode().original(at + done, &mut expected)?;
        // Behind its end a file reads as zeros.
        expected[len..].fill(0);
        let read = crash::probe_physical(frame + done, &mut actual);
        if let Some(first) = (0..read).find(|index| expected[*index] != actual[*index]) {
            let (mut file_has, mut page_has) = ([0; TOLD], [0; TOLD]);
            let told = (read - first).min(TOLD);
            file_has[..told].copy_from_slice(&expected[first..first + told]);
            page_has[..told].copy_from_slice(&actual[first..first + told]);
            let difference = Some((done + first as u64, told, file_has, page_has));
            return Some(PageComparison { length: done + read as u64, whole: true, difference });
        }
        done += read as u64;
        if read < PIECE {
            return Some(PageComparison { length: done, whole: false, difference: None });
        }
    }
    Some(PageComparison { length: done, whole: true, difference: None })
}

fn put(
    dump: &mut Dump<'_>,
    check: &PageCheck<'_>,
    found: &PageComparison,
    vma: &Vma,
    (file, leaf): (&File, &RawLeaf),
) -> Result<(), Stop> {
    let own = leaf.entry >> bit::TAG & 3 != u64::from(TAG_FILE);
    let may_differ = own || (vma.flags.has(VmaFlags::SHARED) && vma.prot.has(Prot::WRITE));
    let result = match &found.difference {
        Some(_) if may_differ => CheckResult::DIRTY,
        Some(_) => CheckResult::DIFFERENT,
        None if found.whole => CheckResult::EQUAL,
        None => CheckResult::UNREADABLE,
    };
    let check = PageCheck { length: Some(found.length), result: Some(result), ..*check };
    let Some((first, told, file_has, page_has)) = found.difference.as_ref().filter(|_| !may_differ) else {
        return dump.put(&check);
    };
    let mut room = [0; 256];
    dump.put(&PageCheck {
        path: Some(file.path.try_name(&mut room)),
        first_diff: Some(*first),
        expected: Some(&file_has[..*told]),
        actual: Some(&page_has[..*told]),
        paddr: Some(leaf.entry & bit::ADDRESS),
        ..check
    })
}
