//! A payload of any bytes: records decode or fail, and what decodes survives being written and read again.
#![no_main]

use kwab_format::{AnyRecord, FileHeader, Item, Reader, Records, SectionKind, SliceSink, Writer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    check(data);
    // The same bytes as the body of one record of each of two kinds, so that the fuzzer need not find the header.
    if let [kind, body @ ..] = data {
        let len = (body.len() as u32).to_le_bytes();
        check(&[&[*kind, len[0], len[1], len[2]], body].concat());
    }
});

fn check(payload: &[u8]) {
    let mut left = payload.len();
    let mut records = Records::new(payload);
    for raw in records.by_ref() {
        left -= 4 + raw.body.len();
        if let Ok(record) = raw.decode() {
            again(&record);
            let _ = format!("{record:?}");
        }
    }
    assert_eq!(records.rest().len(), left);
}

fn again(record: &AnyRecord<'_>) {
    let (mut out, mut buf) = ([0; 16 << 10], [0; 8 << 10]);
    let mut writer =
        Writer::new(SliceSink::new(&mut out), &mut buf, FileHeader::new(Default::default(), Default::default()));
    writer.begin(SectionKind::EVENTS).expect("room");
    writer.put_any(record).expect("room");
    let (sink, result) = writer.finish();
    result.expect("room");
    let Some(Item::Section(section)) = Reader::new(sink.written()).expect("a dump").sections().next() else { panic!() };
    let raw = section.records().next().expect("a record");
    assert_eq!(raw.decode().as_ref(), Ok(record));
}
