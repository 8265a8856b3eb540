//! A file of any bytes: the walk ends, stays within the file, and what it calls sound is sound.
//!
//! The input is also read a second time with all its checksums put right, so that the fuzzer gets past them.
#![no_main]

use std::collections::BTreeSet;

use kwab_format::{DefectKind, Item, Reader, section};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    walk(data);
    walk(&with_right_checksums(data));
});

fn walk(data: &[u8]) {
    let Ok(reader) = Reader::new(data) else { return };
    let mut end = 0;
    let (mut read, mut late, mut out_of_order) = (BTreeSet::new(), false, false);
    let mut scratch = [0; 600];
    for item in reader.sections() {
        match item {
            Item::Section(section) => {
                assert!(section.offset >= end, "sections overlap");
                late |= read.last().is_some_and(|last| section.header.seq < *last);
                assert!(read.insert(section.header.seq), "a section is read twice");
                end = section.offset + section.header.total_len() as usize;
                assert!(end <= data.len());
                section.verify().expect("sections() yields sound sections");
                for record in section.records() {
                    let _ = record.decode();
                }
                let _ = section.unpack(&mut scratch);
            }
            Item::Defect(defect) => {
                assert!(defect.offset + defect.length <= data.len() as u64, "{defect}");
                out_of_order |= matches!(defect.kind, DefectKind::OutOfOrder { .. });
            }
        }
    }
    assert!(!late || out_of_order, "a late section is read without a word");
    let _ = reader.headers().count();
    let _ = kwab_format::tail::find_end(data).map(|end| kwab_format::tail::end_record(&end));
}

/// Wherever a mark stands, the checksums behind it become right, if there is room for them.
fn with_right_checksums(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    if data.len() >= section::FILE_HEADER_LEN {
        data[..8].copy_from_slice(&section::FILE_MAGIC);
        data[8..10].copy_from_slice(&1u16.to_le_bytes());
        seal(&mut data, 0, section::FILE_HEADER_LEN);
    }
    let mut at = section::FILE_HEADER_LEN;
    while at + section::SECTION_HEADER_LEN <= data.len() {
        data[at..at + 4].copy_from_slice(&section::SYNC_MARK);
        // Two bytes of length are plenty here, and they let several sections fit.
        data[at + 10..at + 12].fill(0);
        let id: [u8; 8] = data[16..24].try_into().expect("eight bytes");
        data[at + 16..at + 24].copy_from_slice(&id);
        seal(&mut data, at, section::SECTION_HEADER_LEN);
        let payload = usize::from(u16::from_le_bytes([data[at + 8], data[at + 9]]));
        let total = section::SECTION_HEADER_LEN + payload + section::SECTION_TRAILER_LEN;
        if at + total <= data.len() {
            seal(&mut data, at + section::PAYLOAD_CRC_START, total - section::PAYLOAD_CRC_START);
        }
        at += total;
    }
    data
}

fn seal(data: &mut [u8], at: usize, len: usize) {
    let crc = crc32fast::hash(&data[at..at + len - 4]);
    data[at + len - 4..at + len].copy_from_slice(&crc.to_le_bytes());
}
