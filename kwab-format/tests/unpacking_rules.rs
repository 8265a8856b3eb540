//! Payloads whose section header says that they are not a plain run of records: packed beyond the limit, or of a later
//! version.

mod support;

use kwab_format::*;
use support::*;

/// A section 0 of the tests' dump.
fn header(flags: Flags, version: u8, payload: &[u8]) -> SectionHeader {
    SectionHeader {
        kind: SectionKind::MEMORY,
        version,
        flags,
        payload_len: payload.len() as u32,
        seq: 0,
        dump_id: HEADER.dump_id,
        position: 48,
        records: 1,
    }
}

/// Seals a payload and gives its section to `check`.
fn with_section(flags: Flags, version: u8, payload: &[u8], check: impl FnOnce(&Section<'_>)) {
    let mut bytes = vec![0; section::SECTION_HEADER_LEN + payload.len() + section::SECTION_TRAILER_LEN];
    bytes[section::SECTION_HEADER_LEN..][..payload.len()].copy_from_slice(payload);
    section::seal(&mut bytes, &header(flags, version, payload)).expect("room");
    let section = Section::parse(&bytes, 48).expect("a section");
    section.verify().expect("a right checksum");
    check(&section);
}

fn packed(claimed: u32, unpacked: usize) -> Vec<u8> {
    let mut payload = claimed.to_le_bytes().to_vec();
    payload.extend(lz4_flex::block::compress(&vec![0; unpacked]));
    payload
}

#[test]
#[cfg_attr(miri, ignore = "sixteen megabytes")]
fn a_packed_payload_that_claims_more_than_the_limit_does_not_unpack_to_the_limit() {
    let limit = section::MAX_PAYLOAD_LEN as usize;
    for (claimed, expected) in [(limit, true), (limit + 1, false)] {
        with_section(Flags::COMPRESSED, 0, &packed(claimed as u32, limit), |section| {
            let mut scratch = vec![0; limit];
            let result = section.unpack(&mut scratch);
            assert_eq!(
                result.map_err(|defect| defect.kind).map(<[u8]>::len),
                if expected { Ok(limit) } else { Err(DefectKind::BadCompression) }
            );
            assert_eq!(section.unpacked_len(), if expected { limit } else { 0 });
        });
    }
}

#[test]
fn a_section_of_a_later_version_is_neither_unpacked_nor_read() {
    let one_record = [10, 0, 0, 0];
    for (flags, payload) in [(Flags::default(), &one_record[..]), (Flags::COMPRESSED, b"rules of another version")] {
        with_section(flags, 1, payload, |section| {
            assert_eq!(section.unpacked_len(), 0);
            assert_eq!(section.unpack(&mut []), Ok(&[][..]));
            assert_eq!(section.check_records(&[]), Ok(()));
            assert_eq!(section.records().count(), 0);
        });
    }
    with_section(Flags::default(), 0, &one_record, |section| assert_eq!(section.records().count(), 1));
}
