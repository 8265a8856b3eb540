//! Any sequence of calls on a writer with a failing sink: the dump that comes out has only the defects that the sink
//! made.
#![no_main]

use kwab_format::record::{LogChunk, Text};
use kwab_format::*;
use libfuzzer_sys::fuzz_target;

struct Flaky<'d> {
    out: Vec<u8>,
    failures: &'d [u8],
    failed: bool,
}

impl Sink for Flaky<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        match self.failures.split_off_first() {
            Some(&cut) if cut & 3 == 3 => {
                let written = bytes.len() * usize::from(cut) / 256;
                self.out.extend_from_slice(&bytes[..written]);
                self.failed = true;
                Err(SinkError { written: written as u64 })
            }
            _ => {
                self.out.extend_from_slice(bytes);
                Ok(())
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let (failures, calls) = data.split_at(data.len() / 4);
    let (mut buf, mut scratch, mut table) = ([0; 700], [0; 700], [0; lz4::TABLE_LEN]);
    let mut slots = [IndexSlot::default(); 5];
    let sink = Flaky { out: Vec::new(), failures, failed: false };
    let header = FileHeader::new(DumpId(3), BootId::default());
    let mut writer = Writer::new(sink, &mut buf, header)
        .with_index(&mut slots)
        .with_compression(Compression { table: &mut table, scratch: &mut scratch });
    for call in calls.as_chunks::<2>().0 {
        let [op, arg] = *call;
        let bytes = vec![arg; usize::from(arg) * 3];
        let _ = match op % 9 {
            0 => writer.begin(SectionKind(u16::from(arg))),
            1 => writer.begin_with(SectionKind(u16::from(arg)), Flags::COMPRESSED),
            2 | 3 => writer.put(&Text { bytes: Some(&bytes), ..Text::default() }),
            4 => writer.put(&LogChunk {
                bytes: Some(&bytes),
                log_offset: Some(u64::from(arg) << 40),
                level: None,
                stamp: Default::default(),
            }),
            5 => writer.end(),
            6 => writer.end_partial(DropReason(arg)),
            7 => {
                writer.abandon(DropReason(arg));
                Ok(())
            }
            _ => {
                writer.skip(SectionKind(u16::from(arg)), DropReason(arg));
                Ok(())
            }
        };
    }
    let (sink, _) = writer.finish();
    let Ok(reader) = Reader::new(&sink.out) else { return assert!(sink.failed) };
    for item in reader.sections() {
        match item {
            Item::Defect(defect) => assert!(
                sink.failed
                    || matches!(defect.kind, DefectKind::CriticalUnknown | DefectKind::Trailing | DefectKind::NoEnd),
                "{defect}"
            ),
            Item::Section(section) => {
                let mut out = [0; 800];
                let records = section.unpack(&mut out).expect("it was packed here");
                let records = Records::new(records);
                assert_eq!(records.count() as u32, section.header.records);
                for record in Records::new(section.unpack(&mut [0; 800]).expect("again")) {
                    record.decode().expect("it was written here");
                }
            }
        }
    }
});
