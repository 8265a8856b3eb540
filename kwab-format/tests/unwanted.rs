//! Sections that are skipped because they belong to another dump or were read already hide nothing when they are
//! damaged.

mod support;

use kwab_format::*;
use support::*;

/// A whole dump of several sections, and where its section 1 stands.
fn dump() -> (Vec<u8>, usize) {
    let dump = DUMPS[1].to_vec();
    let (good, bad) = read(&dump);
    assert!(good.len() > 3 && bad.is_empty());
    let at = good[1].offset;
    (dump, at)
}

fn numbers(dump: &[u8]) -> Vec<u32> {
    read(dump).0.iter().map(|section| section.header.seq).collect()
}

/// The header of an empty section of another dump that claims `payload_len` bytes.
fn claim(payload_len: u32) -> [u8; section::SECTION_HEADER_LEN] {
    let header = SectionHeader {
        kind: SectionKind::EVENTS,
        version: 0,
        flags: Flags::default(),
        payload_len,
        seq: 0,
        dump_id: DumpId(0xF0E1_6E00),
        position: 48,
        records: 0,
    };
    header.encode()
}

#[test]
fn a_header_of_another_dump_that_claims_more_than_there_is_hides_no_section() {
    let (whole, at) = dump();
    let mut damaged = whole.clone();
    damaged.splice(at..at, claim(1 << 20));
    assert_eq!(numbers(&damaged), numbers(&whole));
    let (_, bad) = read(&damaged);
    assert!(matches!(bad[0], Defect { kind: DefectKind::Foreign { .. }, length: 40, .. }), "{bad:?}");
}

#[test]
fn a_header_of_another_dump_that_was_overwritten_by_this_one_hides_no_section() {
    let (whole, at) = dump();
    let mut damaged = whole.clone();
    damaged.splice(at..at, claim(100));
    assert_eq!(numbers(&damaged), numbers(&whole));
}

#[test]
fn a_torn_repetition_hides_no_section() {
    let (whole, at) = dump();
    let mut damaged = whole.clone();
    let first = whole[48..48 + section::SECTION_HEADER_LEN].to_vec();
    damaged.splice(at..at, first);
    assert_eq!(numbers(&damaged), numbers(&whole));
}

#[test]
fn zeros_behind_a_section_that_follows_an_early_end_are_padding() {
    let (mut dump, _) = dump();
    let (good, _) = read(&dump);
    let (end, last) = (good[good.len() - 1].offset, good[good.len() - 2].offset);
    let late = dump[last..end].to_vec();
    dump.drain(last..end);
    dump.extend(late);
    let before = read(&dump).1;
    dump.extend([0; 64]);
    assert_eq!(read(&dump).1, before);
}
