//! Two writers of the format that share nothing agree on every byte: kwab-format's and the synthetic one.

use kwab_format::armour::ArmourSink;
use kwab_format::parity::{GROUP_BYTES, Parity, ParitySink};
use kwab_format::{
    AnyRecord, BootId, DumpId, FileHeader, IndexSlot, Item, Reader, Records, SectionKind, Sink, SinkError, Writer,
};
use proptest::prelude::*;
use testing::synth::{Dump, Record, Value, armour, vectors};

const ID: u64 = 0x0BAD_F00D_1234_5678;
const BOOT: [u8; 16] = *b"sixteen bytes id";

/// Collects what is written.
#[derive(Default)]
struct Collect(Vec<u8>);

impl Sink for Collect {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn records() -> Vec<vectors::Vector> {
    vectors::parse(include_str!("../../kwab-format/vectors/records.txt")).expect("the vectors follow their grammar")
}

/// The typed record that kwab-format makes of a synthetic one.
fn typed<R>(record: &Record, use_it: impl FnOnce(&AnyRecord<'_>) -> R) -> R {
    let bytes = record.encode();
    let raw = Records::new(&bytes).next().expect("a record");
    let decoded = raw.decode().expect("a sound record");
    assert!(!matches!(decoded, AnyRecord::Unknown(_)), "kind {}", record.kind);
    use_it(&decoded)
}

/// The same plan through kwab-format.
fn by_the_crate(sections: &[(u16, Vec<Record>)], index: bool) -> Vec<u8> {
    let (mut buf, mut slots) = (vec![0; 1 << 20], [IndexSlot::default(); 64]);
    let mut writer = Writer::new(Collect::default(), &mut buf, FileHeader::new(DumpId(ID), BootId(BOOT)));
    if index {
        writer = writer.with_index(&mut slots);
    }
    for (kind, records) in sections {
        writer.begin(SectionKind(*kind)).expect("a section");
        for record in records {
            typed(record, |record| writer.put_any(record)).expect("room");
        }
    }
    let (sink, result) = writer.finish();
    result.expect("a whole dump");
    sink.0
}

fn by_the_book(sections: &[(u16, Vec<Record>)], index: bool) -> Vec<u8> {
    let dump = sections.iter().fold(Dump::new(ID, BOOT), |dump, (kind, records)| dump.section(*kind, records));
    if index { dump.finish_with_index() } else { dump.finish() }
}

#[test]
fn the_synthetic_writer_makes_the_bytes_of_the_vectors() {
    for vector in records() {
        assert_eq!(vector.record.encode(), vector.bytes, "kind {}", vector.record.kind);
    }
}

#[test]
fn a_dump_of_every_kind_of_record_is_the_same_from_both() {
    let all: Vec<_> = records().into_iter().map(|v| v.record).collect();
    let sections: Vec<_> = all.chunks(7).zip(1..).map(|(chunk, kind)| (kind, chunk.to_vec())).collect();
    for index in [false, true] {
        assert_eq!(by_the_crate(&sections, index), by_the_book(&sections, index));
    }
}

#[test]
fn what_the_synthetic_writer_writes_is_read_without_a_defect() {
    let all: Vec<_> = records().into_iter().map(|v| v.record).collect();
    let dump = Dump::new(ID, BOOT).section(15, &all).payload(0x9000, 0, 3, b"private bytes").finish_with_index();
    let mut sections = Vec::new();
    for item in Reader::new(&dump).expect("a dump").sections() {
        match item {
            Item::Section(section) => sections.push((section.header.kind.0, section.header.records)),
            Item::Defect(defect) => panic!("{defect}"),
        }
    }
    assert_eq!(sections, [(15, all.len() as u32), (0x9000, 3), (126, 2), (127, 4)]);
}

#[test]
fn armoured_lines_are_the_same_from_both() {
    let dump = by_the_book(&[(1, records().into_iter().take(9).map(|v| v.record).collect())], false);
    let mut lines = Vec::new();
    let mut sink = ArmourSink::new(DumpId(ID), |line: &[u8]| {
        lines.push(String::from_utf8(line.to_vec()).expect("text"));
        true
    });
    sink.write(&dump).expect("lines");
    let expected: Vec<_> =
        dump.chunks(48).zip((0..).step_by(48)).map(|(piece, at)| armour::line(ID, at, piece) + "\n").collect();
    assert_eq!(lines, expected);
}

#[test]
fn parity_lines_are_the_same_from_both() {
    let sections: Vec<_> =
        (1..40).map(|kind| (kind, records().into_iter().take(9).map(|v| v.record).collect())).collect();
    let dump = by_the_book(&sections, false);
    assert!(dump.len() > 2 * GROUP_BYTES && !dump.len().is_multiple_of(GROUP_BYTES));
    let (mut lines, mut parity) = (Vec::new(), Parity::new());
    let mut sink = ParitySink::new(DumpId(ID), &mut parity, |line: &[u8]| {
        lines.push(String::from_utf8(line.trim_ascii_end().to_vec()).expect("text"));
        true
    });
    sink.write(&dump).and_then(|()| sink.flush()).expect("lines");
    assert_eq!(lines, armour::with_parity(ID, &dump));
}

#[test]
fn the_vector_of_parity_lines_is_made_by_the_synthetic_writer() {
    let dump = include_bytes!("../../kwab-format/vectors/dumps/smallest.kwab");
    let id = Reader::new(dump).ok().and_then(|reader| reader.dump_id()).expect("a dump").0;
    let vector = include_str!("../../kwab-format/vectors/armour-parity.txt");
    assert_eq!(armour::with_parity(id, dump).join("\n") + "\n", vector);
}

/// Some of the fields of some of the vectors' records, in some sections.
fn plan() -> impl Strategy<Value = Vec<(u16, Vec<Record>)>> {
    let all: Vec<_> = records().into_iter().map(|v| v.record).collect();
    let record = (proptest::sample::select(all), any::<u32>(), any::<u64>()).prop_map(|(mut record, keep, number)| {
        record.fields.retain(|field| keep >> (field.number % 32) & 1 == 1);
        for field in &mut record.fields {
            if let Value::Signed(v) = &mut field.value {
                *v = v.wrapping_add_unsigned(number);
            }
        }
        record
    });
    proptest::collection::vec((1..120u16, proptest::collection::vec(record, 1..20)), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_dump_is_the_same_from_both(sections in plan(), index in any::<bool>()) {
        prop_assert_eq!(by_the_crate(&sections, index), by_the_book(&sections, index));
    }
}
