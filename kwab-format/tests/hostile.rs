//! Input that wants to hurt the reader: huge claims, endless sections, nested lies. Time stays linear.

mod support;

use kwab_format::*;
use std::time::{Duration, Instant};
use support::*;

fn header(seq: u32, payload_len: u32, position: usize) -> SectionHeader {
    SectionHeader {
        kind: SectionKind::EVENTS,
        version: 0,
        flags: Flags::default(),
        payload_len,
        seq,
        dump_id: HEADER.dump_id,
        position: position as u64,
        records: 0,
    }
}

fn append(dump: &mut Vec<u8>, header: SectionHeader, payload: &[u8]) {
    let start = dump.len() + section::PAYLOAD_CRC_START;
    dump.extend(header.encode());
    dump.extend_from_slice(payload);
    dump.extend(crc32fast::hash(&dump[start..]).to_le_bytes());
}

#[test]
fn a_section_that_claims_four_gigabytes_is_no_section() {
    let mut dump = HEADER.encode().to_vec();
    dump.extend(header(0, u32::MAX, 48).encode());
    dump.extend([0; 500]);
    let (good, bad) = read(&dump);
    assert_eq!(good.len(), 0);
    assert_eq!(bad[0].kind, DefectKind::BadSectionHeader);
}

#[test]
fn a_section_that_claims_more_than_there_is_hides_nothing_behind_it() {
    let mut dump = HEADER.encode().to_vec();
    dump.extend(header(0, 1 << 24, 48).encode());
    let (whole, _) = read(DUMPS[1]);
    let inner = SectionHeader { seq: 1, position: dump.len() as u64, dump_id: HEADER.dump_id, ..whole[0].header };
    append(&mut dump, inner, whole[0].payload);
    let (good, bad) = read(&dump);
    assert_eq!(good.iter().map(|s| s.header.seq).collect::<Vec<_>>(), [1]);
    assert!(matches!(bad[0].kind, DefectKind::Cut { claimed, .. } if claimed > 1 << 24));
}

#[test]
fn a_million_empty_sections_take_no_time() {
    let count = if cfg!(miri) { 50 } else { 1_000_000 };
    let mut dump = HEADER.encode().to_vec();
    for seq in 0..count {
        let header = header(seq, 0, dump.len());
        append(&mut dump, header, &[]);
    }
    let start = Instant::now();
    let (good, bad) = read(&dump);
    assert_eq!((good.len(), bad.len()), (count as usize, 1));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn sections_nested_in_the_claims_of_damaged_sections_take_linear_time() {
    // Every header claims a megabyte with a wrong CRC, and the next header stands right behind it.
    let count = if cfg!(miri) { 50 } else { 50_000 };
    let mut dump = HEADER.encode().to_vec();
    for seq in 0..count {
        let at = dump.len();
        dump.extend(header(seq, 1 << 20, at).encode());
    }
    dump.extend(vec![0x55; if cfg!(miri) { 100 } else { 3 << 20 }]);
    let start = Instant::now();
    let (good, bad) = read(&dump);
    assert_eq!(good.len(), 0);
    assert!(!bad.is_empty());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn sync_marks_everywhere_take_linear_time() {
    let marks = section::SYNC_MARK.repeat(if cfg!(miri) { 100 } else { 1 << 20 });
    let mut dump = HEADER.encode().to_vec();
    dump.extend(marks);
    let start = Instant::now();
    let (good, bad) = read(&dump);
    assert_eq!((good.len(), bad[0].kind), (0, DefectKind::BadSectionHeader));
    assert_eq!(stream::Dumps::new(&dump).count(), 1);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_channel_full_of_file_headers_takes_linear_time() {
    let count = if cfg!(miri) { 20 } else { 200_000 };
    let mut channel: Vec<_> =
        (0..count).flat_map(|id| FileHeader::new(DumpId(id), BootId::default()).encode()).collect();
    let last = header(0, 0, 0);
    append(&mut channel, last, &[]);
    let start = Instant::now();
    assert_eq!(stream::Dumps::new(&channel).count(), count as usize + 1);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_compressed_section_cannot_claim_more_than_the_format_allows() {
    let mut payload = u32::MAX.to_le_bytes().to_vec();
    payload.extend([0x10, b'x']);
    let header = SectionHeader { flags: Flags::COMPRESSED, ..header(0, payload.len() as u32, 48) };
    let mut dump = HEADER.encode().to_vec();
    append(&mut dump, header, &payload);
    let (good, _) = read(&dump);
    assert_eq!(good[0].unpacked_len(), 0);
    let mut scratch = vec![0; 1000];
    assert_eq!(good[0].unpack(&mut scratch).unwrap_err().kind, DefectKind::BadCompression);
}

#[test]
fn behind_the_last_sequence_number_only_what_is_missing_counts_as_new() {
    let mut dump = HEADER.encode().to_vec();
    for seq in [7, u32::MAX, u32::MAX, 8, 8] {
        let header = header(seq, 0, dump.len());
        append(&mut dump, header, &[]);
    }
    let (good, bad) = read(&dump);
    assert_eq!(good.iter().map(|s| s.header.seq).collect::<Vec<_>>(), [7, u32::MAX, 8]);
    assert_eq!(bad.iter().filter(|d| d.kind == DefectKind::Repeated).count(), 2);
}

#[test]
fn a_lone_section_header_is_a_dump_that_lost_its_beginning_and_its_end() {
    let only = header(3, 0, 0).encode();
    let (good, bad) = read(&only);
    assert_eq!(good.len(), 0);
    let kinds: Vec<_> = bad.iter().map(|d| (d.kind, d.sections)).collect();
    assert_eq!(kinds[0], (DefectKind::BadFileHeader, None));
    assert!(
        matches!(
            kinds[1..],
            [.., (DefectKind::Cut { .. }, Some((3, 3))), (DefectKind::NoEnd, None), (_, Some((0, 2)))]
        ),
        "{kinds:?}"
    );
    assert_eq!(stream::Dumps::new(&only).map(|f| f.bytes.len()).collect::<Vec<_>>(), [40]);
}

#[test]
fn a_writer_that_lies_about_its_records_is_named() {
    let record = encode_record(24, &[(1, Val::Int(5))]);
    for (payload, count) in [(&record[..], 1), (&record[..], 2), (&record[..5], 1), (&[], 0), (&record[..3], 0)] {
        let header = SectionHeader { records: count, ..header(0, payload.len() as u32, 48) };
        let mut dump = HEADER.encode().to_vec();
        append(&mut dump, header, payload);
        let (good, _) = read(&dump);
        let honest = (payload.len(), count) == (record.len(), 1) || (payload.len(), count) == (0, 0);
        let checked = good[0].check_records(payload).map_err(|d| d.kind);
        assert_eq!(checked, if honest { Ok(()) } else { Err(DefectKind::BadRecords) }, "{count} in {payload:?}");
    }
}

#[test]
fn what_is_no_dump_is_refused_by_name() {
    use reader::OpenError;
    assert_eq!(Reader::new(b"").err(), Some(OpenError::Empty));
    assert_eq!(Reader::new(b"DBG {\"type\":\"panic\"}\n".repeat(9).as_slice()).err(), Some(OpenError::NotADump));
    assert_eq!(Reader::new(b"short").err(), Some(OpenError::NotADump));
    let future = FileHeader { major: 2, ..HEADER }.encode();
    assert_eq!(Reader::new(&future).err(), Some(OpenError::Version { major: 2 }));
}
