//! Input made to exhaust memory or to recurse: bounded memory, a clear message, no panic.

use crate::common::peak;
use std::io::Write as _;
use std::path::Path;

use crate::common::{folder, run, text};
use kwab::format::section::{SECTION_HEADER_LEN, SectionHeader};
use kwab::format::{BootId, DumpId, FileHeader, Flags, SectionKind};

/// Peak memory that any import or inspection may need: the 64 MiB of the promise.
const LIMIT: u64 = 64 << 20;

/// Imports from a pipe what `write` writes; gives the peak memory.
fn import_peak(
    folder: &Path,
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()> + Send + 'static,
) -> u64 {
    let mut child = peak::start(folder, &["import", "-", "-o", "x.kwab", "--force"]);
    let mut pipe = std::io::BufWriter::with_capacity(1 << 20, child.stdin.take().expect("a pipe"));
    let writer = std::thread::spawn(move || write(&mut pipe).and_then(|()| pipe.flush()));
    writer.join().expect("the writer ends").expect("everything was read");
    let (status, peak) = peak::end(child);
    assert_eq!(status, Some(0));
    peak
}

#[test]
fn a_quarter_gigabyte_without_a_line_end_is_imported_in_bounded_memory() {
    let folder = folder();
    let peak = import_peak(folder.path(), |pipe| {
        let chunk = vec![b'x'; 1 << 20];
        (0..256).try_for_each(|_| pipe.write_all(&chunk))
    });
    assert!(peak > 0 && peak < LIMIT, "{peak} bytes");
    let kept = std::fs::metadata(folder.path().join("x.kwab")).expect("written").len();
    assert!(kept > 256 << 20, "nothing of it may be lost: {kept} bytes");
}

#[test]
fn an_event_nested_a_million_deep_is_kept_and_not_followed() {
    let folder = folder();
    let peak = import_peak(folder.path(), |pipe| {
        pipe.write_all(b"DBG {\"type\":\"deep\",\"a\":")?;
        pipe.write_all(&b"[".repeat(1_000_000))?;
        pipe.write_all(&b"]".repeat(1_000_000))?;
        pipe.write_all(b"}\nDBG {\"type\":\"process_fork\",\"parent_pid\":1,\"child_pid\":2}\n")
    });
    assert!(peak < LIMIT, "{peak} bytes");
    let page = run(folder.path(), &["inspect", "x.kwab"]);
    assert!(text(&page.stdout).contains("fork: child 2"), "{}", text(&page.stdout));
}

#[test]
fn a_hundred_thousand_torn_events_cost_neither_memory_nor_patience() {
    let folder = folder();
    let peak = import_peak(folder.path(), |pipe| {
        (0..100_000).try_for_each(|_| pipe.write_all(b"DBG {\"type\":\"signal\",\"pid\":1,\"sig\nnoise }\n"))
    });
    assert!(peak < LIMIT, "{peak} bytes");
}

/// A dump of a file header and these sections.
fn dump(sections: &[(SectionKind, u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = FileHeader::new(DumpId(7), BootId([0; 16])).encode().to_vec();
    for (seq, (kind, claimed, payload)) in sections.iter().enumerate() {
        let header = SectionHeader {
            kind: *kind,
            version: 0,
            flags: Flags(0),
            payload_len: *claimed,
            seq: seq as u32,
            dump_id: DumpId(7),
            position: bytes.len() as u64,
            records: 0,
        };
        let header = header.encode();
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(payload);
        // The checksum of a payload covers that of its header (FORMAT.md, 2.2).
        let sealed = [&header[SECTION_HEADER_LEN - 4..], payload].concat();
        bytes.extend_from_slice(&crc32(&sealed).to_le_bytes());
    }
    bytes
}

/// CRC-32 (IEEE 802.3), written here so that the test does not trust the library that it tests.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn a_section_that_claims_four_gigabytes_is_damage_and_nothing_more() {
    let folder = folder();
    for claimed in [u32::MAX, 1 << 30, 16 << 20] {
        let bytes = dump(&[(SectionKind::LOG, claimed, b"short".to_vec())]);
        std::fs::write(folder.path().join("bad.kwab"), bytes).expect("written");
        for command in ["inspect", "check"] {
            let (status, peak) = peak::of(folder.path(), &[command, "bad.kwab"]);
            assert!(matches!(status, Some(0 | 3)), "{command}: {status:?}");
            assert!(peak < LIMIT, "{command}: {peak} bytes");
        }
        let check = run(folder.path(), &["check", "bad.kwab"]);
        assert_eq!(check.status.code(), Some(3), "{}", text(&check.stderr));
    }
}

#[test]
fn a_million_empty_sections_are_walked_in_bounded_memory() {
    let folder = folder();
    let count = 1_000_000;
    let mut sections = vec![(SectionKind::EVENTS, 0, Vec::new()); count];
    sections.push((SectionKind::END, 0, Vec::new()));
    let bytes = dump(&sections);
    assert!(bytes.len() > count * SECTION_HEADER_LEN);
    std::fs::write(folder.path().join("many.kwab"), bytes).expect("written");
    let promised = LIMIT + 4 * std::fs::metadata(folder.path().join("many.kwab")).expect("it is there").len();
    for command in ["inspect", "check", "list", "triage"] {
        let (status, peak) = peak::of(folder.path(), &[command, "many.kwab"]);
        assert_eq!(status, Some(0), "{command}: every section is sound, and no total is wrong");
        // The directory of a million sections, and nothing per section beyond it.
        assert!(peak < promised, "{command}: {peak} bytes");
    }
}
