//! Pages against files: what the wrong content is.

use super::*;
use crate::analysis::verify::{Content, verified, verify};

const K: SectionKind = SectionKind::PAGE_CHECKS;

/// A file whose pages are all different and hold no run twice.
fn file(seed: u32, pages: usize) -> Vec<u8> {
    let mut state = seed;
    (0..pages * 4096)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

fn backing() -> Backing {
    Backing::from_files(vec![("/bin/a".into(), file(1, 6)), ("/bin/b".into(), file(2, 6))])
}

fn captured(bytes: &[u8]) -> Vec<u8> {
    let memory = Memory {
        kind: Some(MemoryKind::PAGE),
        vaddr: Some(0x40_2000),
        pid: Some(7),
        bytes: Some(bytes),
        ..Memory::default()
    };
    Maker::new()
        .put(SectionKind::MEMORY_MAP, &vma(0x40_0000, 0x40_6000, 5, "/bin/a"))
        .put(SectionKind::MEMORY, &memory)
        .bytes()
}

fn content_of(bytes: Vec<u8>) -> Vec<Content> {
    let dump = Dump::from_bytes(bytes).unwrap();
    verify(&dump.case(), &backing()).into_iter().map(|page| page.content).collect()
}

#[test]
fn wrong_pages_are_recognised_for_what_they_hold() {
    let (a, b) = (file(1, 6), file(2, 6));
    assert_eq!(content_of(captured(&a[0x2000..0x3000])), []);
    assert_eq!(content_of(captured(&[0; 4096])), [Content::Zeros]);
    assert_eq!(content_of(captured(&[0x6b; 4096])), [Content::Poison { byte: 0x6b }]);
    assert_eq!(content_of(captured(&a[0x4000..0x5000])), [Content::SameFile { offset: 0x4000 }]);
    assert_eq!(
        content_of(captured(&b[0x1000..0x2000])),
        [Content::OtherFile { path: "/bin/b".into(), offset: 0x1000 }]
    );
    assert_eq!(content_of(captured(&a[0x2010..0x3010])), [Content::Shifted { by: 16 }]);
    let mut half = a[0x2000..0x3000].to_vec();
    half[0xbf0..].fill(0);
    let dump = Dump::from_bytes(captured(&half)).unwrap();
    let pages = verify(&dump.case(), &backing());
    // The file itself may have a zero at the boundary; the first difference is the first byte that is not.
    let expected = (0xbf0..4096).find(|at| a[0x2000 + at] != 0).unwrap() as u64;
    assert_eq!(
        (pages[0].first_diff, pages[0].file_offset, &pages[0].content),
        (Some(expected), Some(0x2000), &Content::Zeros)
    );
    assert_eq!(verified(&dump.case(), &backing()).here, 1);
}

#[test]
fn an_older_generation_of_a_cached_page_is_stale() {
    let check = |vaddr, generation, result| PageCheck {
        vaddr: Some(vaddr),
        path: Some(b"/bin/a"),
        file_offset: Some(0),
        generation: Some(generation),
        result: Some(result),
        first_diff: Some(4),
        actual: Some(b"older content"),
        ..PageCheck::default()
    };
    let maker =
        Maker::new().put(K, &check(0x1000, 3, CheckResult::DIFFERENT)).put(K, &check(0x2000, 5, CheckResult::EQUAL));
    assert_eq!(content_of(maker.bytes()), [Content::Stale { generation: 3, newest: 5 }]);
}

#[test]
fn zeros_behind_a_segment_that_hold_the_files_bytes_are_its_boundary() {
    let check = PageCheck {
        pid: Some(7),
        vaddr: Some(0x40_2000),
        path: Some(b"/bin/a"),
        file_offset: Some(0x2000),
        result: Some(CheckResult::DIFFERENT),
        first_diff: Some(0x200),
        expected: Some(&[0; 4]),
        actual: Some(b"name"),
        ..PageCheck::default()
    };
    let with = |check: &PageCheck<'_>, behind: &'static str| {
        Maker::new()
            .put(SectionKind::MEMORY_MAP, &vma(0x40_0000, 0x40_3000, 3, "/bin/a"))
            .put(SectionKind::MEMORY_MAP, &vma(0x40_3000, 0x40_5000, 3, behind))
            .put(K, check)
            .bytes()
    };
    assert_eq!(content_of(with(&check, "")), [Content::Boundary]);
    let triage = judge(with(&check, ""));
    assert_eq!(triage.hypotheses[0].rule, "PAGE");
    assert!(triage.hypotheses[0].claim.contains("[PG-BOUNDARY]"), "{}", triage.hypotheses[0].claim);
    // Another file behind it, a page inside of the mapping, or bytes that should not be zeros.
    assert_eq!(content_of(with(&check, "/bin/b")), [Content::Unknown]);
    let inside = PageCheck { vaddr: Some(0x40_1000), ..check };
    assert_eq!(content_of(with(&inside, "")), [Content::Unknown]);
    let told = PageCheck { expected: Some(b"real"), ..check };
    assert_eq!(content_of(with(&told, "")), [Content::Unknown]);
}

#[test]
fn pages_that_a_program_may_write_are_not_compared() {
    let memory = Memory { vaddr: Some(0x40_2000), pid: Some(7), bytes: Some(&[9; 4096]), ..Memory::default() };
    let maker = Maker::new()
        .put(SectionKind::MEMORY_MAP, &vma(0x40_0000, 0x40_6000, 3, "/bin/a"))
        .put(SectionKind::MEMORY, &memory);
    assert_eq!(content_of(maker.bytes()), []);
}

#[test]
fn the_serial_event_of_a_failed_check_is_a_wrong_page_too() {
    let event = PageVerifyFail {
        pid: Some(7),
        vaddr: Some(0x51_c000),
        first_diff: Some(0xbf0),
        expected: Some(0xc0),
        actual: Some(0),
        ..PageVerifyFail::default()
    };
    let maker = Maker::new().put(SectionKind::EVENTS, &event);
    assert_eq!(content_of(maker.bytes()), [Content::Zeros]);
    let triage = judge(maker.bytes());
    assert_eq!(triage.hypotheses[0].rule, "PAGE");
    assert!(triage.hypotheses[0].claim.contains("0x51c000") && triage.hypotheses[0].claim.contains("zeros"));
}
