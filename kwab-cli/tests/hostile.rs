//! Input made to exhaust memory or to recurse: bounded memory, a clear message, no panic.

mod common;

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use common::{folder, run, text};
use kwab::format::section::{SECTION_HEADER_LEN, SectionHeader};
use kwab::format::{BootId, DumpId, FileHeader, Flags, SectionKind};

/// Peak memory that any import or inspection may need, in KiB: the 64 MiB of the promise.
const LIMIT_KIB: u64 = 64 << 10;

/// Waits for the end and gives the peak memory the kernel saw, KiB; the last look is a moment before the end.
fn peak(mut child: Child) -> (ExitStatus, u64) {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let now = line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0);
            peak = peak.max(now);
        }
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return (status, peak);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
    command.current_dir(folder).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs")
}

/// Imports from a pipe what `write` writes; gives the peak memory.
fn import_peak(
    folder: &Path,
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()> + Send + 'static,
) -> u64 {
    let mut child = start(folder, &["import", "-", "-o", "x.kwab", "--force"]);
    let mut pipe = std::io::BufWriter::with_capacity(1 << 20, child.stdin.take().expect("a pipe"));
    let writer = std::thread::spawn(move || write(&mut pipe).and_then(|()| pipe.flush()));
    let (status, peak) = peak(child);
    writer.join().expect("the writer ends").expect("everything was read");
    assert!(status.success(), "{status}");
    peak
}

#[test]
fn a_quarter_gigabyte_without_a_line_end_is_imported_in_bounded_memory() {
    let folder = folder();
    let peak = import_peak(folder.path(), |pipe| {
        let chunk = vec![b'x'; 1 << 20];
        (0..256).try_for_each(|_| pipe.write_all(&chunk))
    });
    assert!(peak > 0 && peak < LIMIT_KIB, "{peak} KiB");
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
    assert!(peak < LIMIT_KIB, "{peak} KiB");
    let page = run(folder.path(), &["inspect", "x.kwab"]);
    assert!(text(&page.stdout).contains("fork: child 2"), "{}", text(&page.stdout));
}

#[test]
fn a_hundred_thousand_torn_events_cost_neither_memory_nor_patience() {
    let folder = folder();
    let peak = import_peak(folder.path(), |pipe| {
        (0..100_000).try_for_each(|_| pipe.write_all(b"DBG {\"type\":\"signal\",\"pid\":1,\"sig\nnoise }\n"))
    });
    assert!(peak < LIMIT_KIB, "{peak} KiB");
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
        bytes.extend_from_slice(&header.encode());
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(&crc32(payload).to_le_bytes());
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
            let (status, peak) = peak(start(folder.path(), &[command, "bad.kwab"]));
            assert!(matches!(status.code(), Some(0 | 3)), "{command}: {status}");
            assert!(peak < LIMIT_KIB, "{command}: {peak} KiB");
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
    let (status, peak) = peak(start(folder.path(), &["inspect", "many.kwab"]));
    // Its end section has no totals, which is a defect.
    assert_eq!(status.code(), Some(3), "{status}");
    // The directory of a million sections, and nothing per section beyond it.
    assert!(peak < 4 * LIMIT_KIB, "{peak} KiB");
}
