//! A dump that is written and read back says the same things; a writer that meets trouble says so and goes on.

use kwab_format::record::{AnyRecord, Cause, CauseKind, Stamp, SyscallEntry, Text};
use kwab_format::*;

const ID: FileHeader = FileHeader::new(DumpId(0x1122_3344_5566_7788), BootId([7; 16]));

fn sections(bytes: &[u8]) -> (Vec<Section<'_>>, Vec<Defect>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for item in Reader::new(bytes).expect("a dump").sections() {
        match item {
            Item::Section(section) => good.push(section),
            Item::Defect(defect) => bad.push(defect),
        }
    }
    (good, bad)
}

#[test]
fn a_small_dump_comes_back_as_it_was_written() {
    let mut out = vec![0; 1 << 16];
    let mut buf = vec![0; 4096];
    let mut writer = Writer::new(SliceSink::new(&mut out), &mut buf, ID);
    let cause = Cause { kind: Some(CauseKind::PANIC), message: Some(b"oh \xFF no"), ip: Some(0), ..Cause::default() };
    let entry = SyscallEntry {
        pid: Some(1),
        nr: Some(-1),
        stamp: Stamp { ns: Some(5), ..Stamp::default() },
        ..SyscallEntry::default()
    }
    .with_args([Some(0x1002), Some(u64::MAX), Some(0), None, None, Some(1 << 40)]);
    writer.begin(SectionKind::CAUSE).unwrap();
    writer.put(&cause).unwrap();
    writer.begin(SectionKind::EVENTS).unwrap();
    for _ in 0..500 {
        writer.put(&entry).unwrap();
    }
    let (sink, result) = writer.finish();
    result.unwrap();
    let (good, bad) = sections(sink.written());
    assert_eq!(bad, []);
    assert_eq!(good[0].records().next().unwrap().decode(), Ok(AnyRecord::Cause(cause)));
    let events: Vec<_> = good.iter().filter(|s| s.header.kind == SectionKind::EVENTS).collect();
    assert!(events.len() > 3, "500 records do not fit one 4 KiB section");
    let records: Vec<_> = events.iter().flat_map(|s| s.records()).map(|r| r.decode().unwrap()).collect();
    assert_eq!(records, vec![AnyRecord::SyscallEntry(entry); 500]);
    assert_eq!(good.last().unwrap().header.kind, SectionKind::END);
}

#[test]
fn a_record_longer_than_the_buffer_costs_only_itself() {
    let mut out = vec![0; 1 << 16];
    let mut buf = vec![0; 1024];
    let mut writer = Writer::new(SliceSink::new(&mut out), &mut buf, ID);
    writer.begin(SectionKind::KEPT).unwrap();
    let long = [b'x'; 2000];
    assert_eq!(writer.put(&Text { bytes: Some(&long), ..Text::default() }), Err(WriteError::TooLong));
    writer.put(&Text { bytes: Some(b"short"), ..Text::default() }).unwrap();
    let (sink, result) = writer.finish();
    result.unwrap();
    let (good, bad) = sections(sink.written());
    assert_eq!((good.len(), bad.len()), (2, 0));
}
