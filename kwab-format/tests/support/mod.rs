//! What several tests need: a sink that collects, a plain encoder after the letter of FORMAT.md, the vectors.
#![allow(dead_code, unreachable_pub, reason = "every test binary uses its own part of it")]

use kwab_format::*;

/// Collects what is written.
#[derive(Debug, Default)]
pub struct Collect(pub Vec<u8>);

impl Sink for Collect {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

pub const HEADER: FileHeader = FileHeader::new(DumpId(0x0123_4567_89AB_CDEF), BootId([9; 16]));

/// A value as the wire knows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    Int(u64),
    Bytes(Vec<u8>),
    List(Vec<Vec<(u8, Val)>>),
}

/// Fields to bytes, one rule of FORMAT.md 2.4 after the other and without a thought of speed.
pub fn encode_fields(fields: &[(u8, Val)]) -> Vec<u8> {
    let mut sorted = fields.to_vec();
    sorted.sort_by_key(|(number, _)| *number);
    let mut out = Vec::new();
    for (number, value) in sorted {
        match value {
            Val::Int(v) => {
                let (code, width) = match v {
                    0 => (0, 0),
                    1..=0xFF => (1, 1),
                    0x100..=0xFFFF => (2, 2),
                    0x1_0000..=0xFFFF_FFFF => (3, 4),
                    0x1_0000_0000..=0xFFFF_FFFF_FFFF => (4, 6),
                    _ => (5, 8),
                };
                key(&mut out, number, code);
                out.extend_from_slice(&v.to_le_bytes()[..width]);
            }
            Val::Bytes(bytes) => {
                key(&mut out, number, 6);
                prefixed(&mut out, &bytes);
            }
            Val::List(elements) => {
                let mut inner = Vec::new();
                for element in elements {
                    prefixed(&mut inner, &encode_fields(&element));
                }
                key(&mut out, number, 6);
                prefixed(&mut out, &inner);
            }
        }
    }
    out
}

fn key(out: &mut Vec<u8>, number: u8, code: u8) {
    if number < 31 {
        out.push(number * 8 + code);
    } else {
        out.extend_from_slice(&[31 * 8 + code, number]);
    }
}

fn prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        len @ 0..=253 => out.push(len as u8),
        len @ 254..=0xFFFF => {
            out.push(254);
            out.extend_from_slice(&(len as u16).to_le_bytes());
        }
        len => {
            out.push(255);
            out.extend_from_slice(&(len as u32).to_le_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

/// A record with its header.
pub fn encode_record(kind: u8, fields: &[(u8, Val)]) -> Vec<u8> {
    let body = encode_fields(fields);
    let mut out = vec![kind];
    out.extend_from_slice(&(body.len() as u32).to_le_bytes()[..3]);
    out.extend(body);
    out
}

/// The one record in `bytes`.
pub fn only_record(bytes: &[u8]) -> RawRecord<'_> {
    let mut records = Records::new(bytes);
    let record = records.next().expect("a record");
    assert_eq!((records.next(), records.rest()), (None, &[][..]));
    record
}

/// The payload that the writer makes of one record.
pub fn written(record: &AnyRecord<'_>) -> Vec<u8> {
    let mut buf = vec![0; if cfg!(miri) { 1 << 13 } else { 1 << 20 }];
    let mut writer = Writer::new(Collect::default(), &mut buf, HEADER);
    writer.begin(SectionKind::EVENTS).unwrap();
    writer.put_any(record).unwrap();
    let (sink, result) = writer.finish();
    result.unwrap();
    match Reader::new(&sink.0).unwrap().sections().next() {
        Some(Item::Section(section)) => section.payload.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Sound sections and defects of a dump.
pub fn read(bytes: &[u8]) -> (Vec<Section<'_>>, Vec<Defect>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let Ok(reader) = Reader::new(bytes) else { return (good, bad) };
    for item in reader.sections() {
        match item {
            Item::Section(section) => good.push(section),
            Item::Defect(defect) => bad.push(defect),
        }
    }
    (good, bad)
}

/// 1, or under Miri, which is a thousand times slower, a stride that still visits every kind of place.
pub const fn stride(under_miri: usize) -> usize {
    if cfg!(miri) { under_miri } else { 1 }
}

/// Whole dumps of different make: smallest, every kind of record, compressed and indexed.
pub const DUMPS: [&[u8]; 3] = [
    include_bytes!("../../vectors/dumps/smallest.kwab"),
    include_bytes!("../../vectors/dumps/every-kind.kwab"),
    include_bytes!("../../vectors/dumps/packed-and-indexed.kwab"),
];
