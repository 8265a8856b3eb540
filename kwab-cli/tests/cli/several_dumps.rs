//! Files with more than one dump, dumps that lost what they are about, and dumps whose writer was wrong.

use std::path::Path;

use crate::common::{folder, imported, run, text};
use kwab::format::section::{SECTION_HEADER_LEN, SECTION_TRAILER_LEN, SectionHeader, seal};
use kwab::format::{BootId, DumpId, FileHeader, Flags, Item, Reader, SectionKind};
use serde_json::Value;

/// Two dumps of different logs, one behind the other.
fn two(folder: &Path) -> (String, String) {
    let (first, second) = (imported(folder, "kevlar-pipe-profile"), imported(folder, "linux-6.1-sysrq-panic"));
    let read = |name: &str| std::fs::read(folder.join(name)).expect("imported");
    std::fs::write(folder.join("both.kwab"), [read(&first), read(&second)].concat()).expect("written");
    (first, second)
}

#[test]
fn each_dump_of_a_file_is_read_as_its_own() {
    let folder = folder();
    let (first, second) = two(folder.path());
    for (number, alone) in [("1", &first), ("2", &second)] {
        let page = run(folder.path(), &["inspect", "both.kwab", "--dump", number]);
        assert_eq!(page.status.code(), Some(0), "{}", text(&page.stdout));
        let expected = run(folder.path(), &["inspect", alone]);
        assert_eq!(text(&page.stdout), text(&expected.stdout).replace(alone.as_str(), "both.kwab"));
        assert!(text(&page.stderr).contains("holds 2 dumps"), "{}", text(&page.stderr));
        let events =
            |name: &str, number: &str| run(folder.path(), &["export", "--to", "jsonl", name, "--dump", number]);
        assert_eq!(events("both.kwab", number).stdout, events(alone, "1").stdout);
    }
    let third = run(folder.path(), &["inspect", "both.kwab", "--dump", "3"]);
    assert_eq!(third.status.code(), Some(2));
    assert!(text(&third.stderr).contains("holds 2 dumps; there is no dump 3"), "{}", text(&third.stderr));
}

#[test]
fn a_file_with_two_dumps_is_listed_checked_and_salvaged_as_two() {
    let folder = folder();
    two(folder.path());
    let list = run(folder.path(), &["list", "--json", "both.kwab"]);
    let list: Value = serde_json::from_slice(&list.stdout).expect("JSON");
    let numbers = list["groups"].as_array().into_iter().flatten().flat_map(|group| group["dumps"].as_array());
    let mut numbers: Vec<_> = numbers.flatten().filter_map(|dump| dump["dump"].as_u64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    let check = run(folder.path(), &["check", "both.kwab"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stdout));
    assert!(text(&check.stdout).contains("both.kwab, dump 2"), "{}", text(&check.stdout));
    let salvage = run(folder.path(), &["salvage", "both.kwab", "-o", "good.kwab"]);
    assert_eq!(salvage.status.code(), Some(0), "{}", text(&salvage.stderr));
    let stdin = std::fs::File::open(folder.path().join("both.kwab")).expect("there");
    let mut piped = std::process::Command::new(assert_cmd::cargo::cargo_bin("kwab"));
    piped.current_dir(folder.path()).args(["salvage", "-", "-o", "piped.kwab"]).stdin(stdin);
    let piped = piped.output().expect("runs");
    assert_eq!(piped.status.code(), Some(0), "{}", text(&piped.stderr));
    for number in [1, 2] {
        let [good, piped] = ["good", "piped"].map(|name| format!("{name}-{number}.kwab"));
        for salvaged in [&good, &piped] {
            assert_eq!(run(folder.path(), &["check", salvaged]).status.code(), Some(0), "{salvaged}");
        }
        let headline =
            |name: &str| text(&run(folder.path(), &["triage", name]).stdout).lines().next().map(str::to_owned);
        assert!(headline(&good).is_some() && headline(&good) == headline(&piped), "{number}");
    }
}

#[test]
fn a_dump_without_its_cause_section_is_not_called_a_recording_without_a_crash() {
    let folder = folder();
    let bytes = std::fs::read(folder.path().join(imported(folder.path(), "linux-6.1-sysrq-panic"))).expect("imported");
    let sections = Reader::new(&bytes).expect("a dump").sections();
    let cause = sections
        .filter_map(|item| match item {
            Item::Section(section) if section.header.kind == SectionKind::CAUSE => Some(section),
            _ => None,
        })
        .next()
        .expect("a cause");
    let end = cause.offset + cause.header.total_len() as usize;
    let mut damaged = bytes.clone();
    damaged[cause.offset + SECTION_HEADER_LEN] ^= 1;
    let mut headless = bytes.clone();
    headless[cause.offset..end].fill(0xff);
    let removed = [&bytes[..cause.offset], &bytes[end..]].concat();
    for dump in [damaged, headless, removed] {
        std::fs::write(folder.path().join("lost.kwab"), dump).expect("written");
        let page = run(folder.path(), &["inspect", "lost.kwab"]);
        assert_eq!(page.status.code(), Some(3));
        let page = text(&page.stdout);
        assert!(page.starts_with("the section with the cause is lost"), "{page}");
        let list = text(&run(folder.path(), &["list", "lost.kwab"]).stdout);
        assert!(!list.contains("no crash"), "{list}");
    }
}

/// A dump of these sections and an end section with `totals`; a section is its kind, flags, claimed records and
/// payload.
fn dump(sections: &[(u16, u8, u32, &[u8])], totals: &[u8]) -> Vec<u8> {
    let mut bytes = FileHeader::new(DumpId(7), BootId([0; 16])).encode().to_vec();
    let end = (127, 1, 1, totals);
    for (seq, (kind, flags, records, payload)) in sections.iter().chain([&end]).enumerate() {
        let header = SectionHeader {
            kind: SectionKind(*kind),
            version: 0,
            flags: Flags(*flags),
            payload_len: payload.len() as u32,
            seq: seq as u32,
            dump_id: DumpId(7),
            position: bytes.len() as u64,
            records: *records,
        };
        let mut buf = vec![0; SECTION_HEADER_LEN + payload.len() + SECTION_TRAILER_LEN];
        buf[SECTION_HEADER_LEN..][..payload.len()].copy_from_slice(payload);
        bytes.extend_from_slice(seal(&mut buf, &header).expect("room"));
    }
    bytes
}

#[test]
fn check_unpacks_counts_and_decodes_and_compares_the_totals() {
    let folder = folder();
    // A ProcessExit of pid 5; the same with the reserved wire code.
    let (good, bad): (&[u8], &[u8]) = (&[24, 2, 0, 0, 9, 5], &[24, 1, 0, 0, 15]);
    let (two, tail) = ([good, bad].concat(), [good, &[9, 9]].concat());
    let sound_end: &[u8] = &[253, 2, 0, 0, 9, 1];
    // KindTotal: of kind 15, one section with 9 records.
    let wrong_end: &[u8] = &[251, 6, 0, 0, 9, 15, 17, 1, 25, 9];
    /// Sections as kind, flags, claimed count and payload; the payload of the end section; what is found.
    type Faulty<'a> = (&'a [(u16, u8, u32, &'a [u8])], &'a [u8], &'a str);
    let cases: [Faulty<'_>; 5] = [
        (&[(15, 0, 2, &two)], sound_end, "section 0 (events) at 0x30: record 1 is malformed"),
        (&[(15, 0, 1, &tail)], sound_end, "section 0 (events) at 0x30: bytes behind the last whole record"),
        (&[(15, 0, 5, good)], sound_end, "section 0 (events) at 0x30: the header claims 5 records, 1 are there"),
        (&[(17, 2, 1, &[64, 0, 0, 0, 1, 2, 3])], sound_end, "section 0 (memory) at 0x30: the checksum is right but"),
        (&[(15, 0, 1, good)], wrong_end, "(events) at 0x62: the end section claims 9 records, 1 are there"),
    ];
    for (sections, end, expected) in cases {
        std::fs::write(folder.path().join("odd.kwab"), dump(sections, end)).expect("written");
        let output = run(folder.path(), &["check", "odd.kwab"]);
        assert_eq!(output.status.code(), Some(3), "{expected}");
        assert!(text(&output.stdout).contains(expected), "{expected}: {}", text(&output.stdout));
    }
    std::fs::write(folder.path().join("odd.kwab"), dump(&[(15, 0, 1, good)], sound_end)).expect("written");
    let output = run(folder.path(), &["check", "odd.kwab"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}
