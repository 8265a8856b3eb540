//! What kwab-format reads in a dump, in the JSON form of the second reader.
//!
//! Fields are shown as they come out of the decoded record: it is written again, and the bytes of that are shown after
//! the schema. So a value that the decoder lost or changed differs from what the second reader shows.

use kwab::model::{DumpFile, extents};
use kwab::report::check::check;
use kwab_format::reader::OpenError;
use kwab_format::record::{SCHEMA, Stamp};
use kwab_format::stream::Dumps;
use kwab_format::wire::{FieldIter, Raw, unzigzag};
use kwab_format::{
    AnyRecord, BootId, Defect, DefectKind, DumpId, FieldSchema, FileHeader, Item, RawRecord, Reader, Records, Section,
    SectionKind, Shape, Sink, SinkError, WireError, Writer,
};
use serde_json::{Map, Value, json};

/// A record as it stands, and what it says.
type Decoded<'a> = (RawRecord<'a>, Result<AnyRecord<'a>, WireError>);

/// Room for the headers and the end section around records that are written again.
const SLACK: usize = 4096;

/// What there is to say about a file: the dumps of a stream of its bytes, and the dumps that it holds as a file.
#[must_use]
pub fn file(bytes: &[u8]) -> Value {
    let stream =
        Dumps::new(bytes).map(|found| json!([found.dump_id.0, found.offset, found.offset + found.bytes.len()]));
    let mut extents = extents(bytes);
    if extents.is_empty() {
        extents.push(0..bytes.len());
    }
    let dumps = extents.into_iter().map(|extent| report(&bytes[extent]));
    json!({ "stream": stream.collect::<Vec<_>>(), "dumps": dumps.collect::<Vec<_>>() })
}

/// What the end section counts wrongly, as `kwab check` finds it.
fn totals(bytes: &[u8]) -> Vec<Value> {
    let Ok(mut file) = DumpFile::alone(bytes.to_vec()) else { return Vec::new() };
    let _ = check(&mut file, "");
    let wrong = file.defects.iter().filter_map(|defect| match defect.kind {
        DefectKind::Totals { what, claimed, found } => Some(json!({
            "what": what.to_string(),
            "kind": defect.section_kind.map(|kind| kind.0),
            "claimed": claimed,
            "found": found,
        })),
        _ => None,
    });
    wrong.collect()
}

/// What there is to say about a dump.
#[must_use]
pub fn report(bytes: &[u8]) -> Value {
    let reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return json!({ "refused": refusal(error) }),
    };
    let (mut sections, mut defects) = (Vec::new(), Vec::new());
    for item in reader.sections() {
        match item {
            Item::Section(section) => {
                let records = records(&section, &mut defects);
                sections.push(json!({ "header": header(&section), "records": records }));
            }
            Item::Defect(defect) => defects.push(defect),
        }
    }
    defects.sort_by_key(|defect| {
        let first = defect.sections.map_or(-1, |(first, _)| i64::from(first));
        (defect.offset, defect.kind.name(), defect.length, first, detail(defect).map_or(0, |(_, number)| number))
    });
    let totals = totals(bytes);
    let file = reader
        .file_header()
        .map(|file| json!({ "minor": file.minor, "dump_id": file.dump_id.0, "boot_id": hex(&file.boot_id.0) }));
    let defects: Vec<_> = defects.iter().map(defect).collect();
    json!({ "file": file, "sections": sections, "defects": defects, "totals": totals })
}

const fn refusal(error: OpenError) -> &'static str {
    match error {
        OpenError::Empty => "empty",
        OpenError::NotADump => "not-a-dump",
        OpenError::Version { .. } => "version",
    }
}

/// The number that a defect of this kind has beside its extent.
fn detail(defect: &Defect) -> Option<(&'static str, i64)> {
    match defect.kind {
        DefectKind::Displaced { by } => Some(("by", by)),
        DefectKind::BadRecord { record, .. } => Some(("record", i64::from(record))),
        DefectKind::RecordCount { found, .. } => Some(("found", i64::from(found))),
        _ => None,
    }
}

fn defect(defect: &Defect) -> Value {
    let mut object = Map::new();
    object.insert("name".into(), defect.kind.name().into());
    object.insert("offset".into(), defect.offset.into());
    object.insert("length".into(), defect.length.into());
    if let Some((name, number)) = detail(defect) {
        object.insert(name.into(), number.into());
    }
    if let Some((first, last)) = defect.sections {
        object.insert("first".into(), first.into());
        object.insert("last".into(), last.into());
    }
    object.into()
}

fn header(section: &Section<'_>) -> Value {
    let header = section.header;
    json!({
        "kind": header.kind.0, "version": header.version, "flags": header.flags.0, "sequence": header.seq,
        "offset": section.offset, "payload": header.payload_len, "position": header.position, "count": header.records,
    })
}

/// The records of a sound section, and the defects within it.
fn records(section: &Section<'_>, defects: &mut Vec<Defect>) -> Vec<Value> {
    let mut scratch = vec![0; section.unpacked_len()];
    let bytes = match section.unpack(&mut scratch) {
        Ok(bytes) => bytes,
        Err(defect) => {
            defects.push(defect);
            return Vec::new();
        }
    };
    let mut walk = Records::new(bytes);
    let decoded: Vec<_> = walk.by_ref().map(|raw| (raw, raw.decode())).collect();
    note_faults(section, &decoded, walk.rest(), defects);
    let again = written(decoded.iter().filter_map(|(_, record)| record.as_ref().ok()), bytes.len());
    let mut again = again.iter();
    let show = |(raw, decoded): &Decoded<'_>| {
        let (kind, name) = (raw.kind.0, raw.kind.name());
        let body = if decoded.is_ok() { again.next() } else { None };
        match (decoded, body) {
            (Ok(AnyRecord::Unknown(_)), _) => json!({ "kind": kind, "unknown": hex(raw.body) }),
            (Ok(_), Some(body)) => json!({ "kind": kind, "name": name, "fields": fields(kind, body) }),
            _ => json!({ "kind": kind, "name": name, "malformed": hex(raw.body) }),
        }
    };
    decoded.iter().map(show).collect()
}

/// The defects within a sound section; none of a later version.
fn note_faults(section: &Section<'_>, decoded: &[Decoded<'_>], rest: &[u8], defects: &mut Vec<Defect>) {
    if section.header.version != 0 {
        return;
    }
    let (seq, found) = (section.header.seq, decoded.len() as u32);
    let mut note = |kind| {
        let (offset, length) = (section.offset as u64, section.header.total_len());
        let (sections, section_kind) = (Some((seq, seq)), Some(section.header.kind));
        defects.push(Defect { kind, offset, length, sections, section_kind });
    };
    for (number, (_, record)) in decoded.iter().enumerate() {
        if let Err(error) = record {
            note(DefectKind::BadRecord { record: number as u32, error: *error });
        }
    }
    if !rest.is_empty() {
        note(DefectKind::RecordTail);
    }
    if section.header.records != found {
        note(DefectKind::RecordCount { claimed: section.header.records, found });
    }
}

/// Collects what is written.
#[derive(Default)]
struct Collect(Vec<u8>);

impl Sink for Collect {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// The bodies of decoded records, encoded again; they are at most as long as they were.
fn written<'r>(records: impl Iterator<Item = &'r AnyRecord<'r>>, length: usize) -> Vec<Vec<u8>> {
    let mut buf = vec![0; length + SLACK];
    let mut writer = Writer::new(Collect::default(), &mut buf, FileHeader::new(DumpId(1), BootId([0; 16])));
    let mut complete = writer.begin(SectionKind::KEPT).is_ok();
    for record in records {
        complete &= writer.put_any(record).is_ok();
    }
    let (sink, result) = writer.finish();
    assert!(complete && result.is_ok(), "a decoded record cannot be written again");
    let sections = Reader::new(&sink.0).map(|reader| reader.sections()).into_iter().flatten();
    let kept = sections.filter_map(|item| match item {
        Item::Section(section) if section.header.kind == SectionKind::KEPT => Some(section),
        _ => None,
    });
    kept.flat_map(|section| section.records().map(|raw| raw.body.to_vec()).collect::<Vec<_>>()).collect()
}

/// The fields of a record body after the schema of its kind.
fn fields(kind: u8, body: &[u8]) -> Value {
    let own = SCHEMA.iter().find(|schema| schema.kind == kind).map_or(&[][..], |schema| schema.fields);
    shown(body, &[own, <Stamp<'_> as kwab_format::Fields<'_>>::FIELDS])
}

fn shown(body: &[u8], tables: &[&[FieldSchema]]) -> Value {
    let mut object = Map::new();
    let mut walk = FieldIter::new(body);
    while let Ok(Some((number, raw))) = walk.next_field() {
        if let Some(schema) = tables.iter().copied().flatten().find(|schema| schema.number == number) {
            object.insert(schema.name.into(), value(&schema.shape, raw));
        }
    }
    object.into()
}

fn value(shape: &Shape, raw: Raw<'_>) -> Value {
    match (shape, raw) {
        (Shape::Signed, Raw::Int(value)) => unzigzag(value).into(),
        (Shape::Bool, Raw::Int(value)) => (value == 1).into(),
        (_, Raw::Int(value)) => value.into(),
        (Shape::List { fields, .. }, Raw::Bytes(bytes)) => {
            let mut rest = bytes;
            let mut elements = Vec::new();
            while let Some((element, after)) = split(rest) {
                elements.push(shown(element, &[fields]));
                rest = after;
            }
            elements.into()
        }
        (_, Raw::Bytes(bytes)) => hex(bytes).into(),
    }
}

/// Splits `length, bytes` (FORMAT.md, 2.4) off the front.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let width = [0, 2, 4][usize::from(first.saturating_sub(253))];
    let (wide, rest) = rest.split_at_checked(width)?;
    let length = wide.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    rest.split_at_checked(if width == 0 { usize::from(first) } else { length })
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
