//! Dumps in which every record goes with every other: lists grow with the records, not with their pairs.

mod common;

use common::Driven;
use kwab::format::record::{Frame, Lock, LockWait, Task, Vma};
use kwab::format::{BootId, DumpId, FileHeader, SectionKind};
use kwab::import::emit::DumpWriter;
use kwab_tui::view::Slot;

/// Records of each kind.
const MANY: u32 = 400;

fn opened(records: impl FnOnce(&mut DumpWriter<Vec<u8>>)) -> (tempfile::TempDir, Driven) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut out = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
    records(&mut out);
    let file = folder.path().join("flood.kwab");
    std::fs::write(&file, out.finish().expect("written")).expect("written");
    let driven = Driven::new(&file, (80, 24));
    (folder, driven)
}

#[test]
fn locks_of_one_address_do_not_list_its_waiters_each() {
    let (_folder, driven) = opened(|out| {
        for tid in 0..MANY {
            out.put(SectionKind::LOCKS, &Lock { addr: Some(64), holder_tid: Some(tid), ..Lock::default() });
            out.put(SectionKind::LOCKS, &LockWait { addr: Some(64), waiter_tid: Some(tid), ..LockWait::default() });
        }
    });
    let crash = driven.app.workspace().session().crash().expect("it is open");
    assert_eq!(crash.view(Slot::Locks).expect("it is there").len(), 2 * MANY as usize, "a row per record");
}

#[test]
fn tasks_of_one_number_list_few_frames_each() {
    let (_folder, driven) = opened(|out| {
        for index in 0..MANY {
            out.put(SectionKind::TASKS, &Task { pid: Some(3), tid: Some(3), ..Task::default() });
            let frame = Frame { pid: Some(3), tid: Some(3), index: Some(index), ..Frame::default() };
            out.put(SectionKind::TASKS, &frame);
        }
    });
    let crash = driven.app.workspace().session().crash().expect("it is open");
    let tasks = crash.view(Slot::Tasks).expect("it is there");
    assert_eq!(tasks.len(), MANY as usize);
    assert!(tasks.detail(0, &crash.list(Slot::Tasks).look).len() < 100);
}

#[test]
fn mappings_that_overlap_share_the_notes_about_wrong_pages() {
    let (_folder, driven) = opened(|out| {
        for number in 0..MANY {
            let (start, end) = (Some(0x40_0000), Some(0x7f00_0000_0000));
            out.put(SectionKind::MEMORY_MAP, &Vma { pid: Some(3), start, end, ..Vma::default() });
            let vaddr = Some(0x50_0000 + u64::from(number) * 4096);
            let fail = kwab::format::record::PageVerifyFail { pid: Some(3), vaddr, ..Default::default() };
            out.put(SectionKind::PAGE_CHECKS, &fail);
        }
    });
    let crash = driven.app.workspace().session().crash().expect("it is open");
    let mappings = crash.view(Slot::Mappings).expect("it is there");
    let look = crash.list(Slot::Mappings).look;
    let notes: usize = (0..mappings.len()).map(|row| mappings.detail(row, &look).len()).sum();
    assert!(notes < 20 * MANY as usize, "{notes} lines for {MANY} mappings and {MANY} pages");
}
