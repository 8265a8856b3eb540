//! Reads the fields of any record by name, each with its exact value, guided by the format's own description of them.
//!
//! [`json`](super::json) shows records to people; this module hands them to programs that do not know the types of
//! `kwab-format`: a scripting language, a table of columns. An absent field is not listed, and 64-bit words keep all
//! their bits. Of a record that is written wrongly the sound fields come with what is wrong.
//!
//! ```
//! use kwab::format::Records;
//! use kwab::model::DumpFile;
//! use kwab::model::fields::{RecordValue, fields};
//!
//! let file = DumpFile::open("../testing/dumps/null-dereference.kwab".as_ref())?;
//! let cause = file.sections.iter().position(|section| section.header.kind.name() == Some("cause"));
//! let payload = file.payload(cause.expect("the dump tells of a death")).expect("it is sound");
//! let record = Records::new(&payload).next().expect("it has a record");
//! let found = fields(record);
//! assert_eq!(found.wrong, None);
//! let (_, kind) = found.values.iter().find(|(name, _)| *name == "kind").expect("its kind");
//! assert_eq!(*kind, RecordValue::Name("exception"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use kwab_format::record::{RecordKind, SCHEMA, Stamp};
use kwab_format::wire::{FieldIter, Raw, WireError, unzigzag};
use kwab_format::{FieldSchema, Fields as _, RawRecord, RecordSchema, Shape};

/// Byte fields that are not text.
const BINARY: &[&str] = &["build_id", "kernel_build_id", "extended"];
/// The same, only in these records.
const BINARY_OF: &[(&str, &str)] = &[("Memory", "bytes"), ("PageCheck", "expected"), ("PageCheck", "actual")];

/// Elements of a list that are read: more than any kernel writes, and few enough that one record is not a burden.
pub const MOST_ELEMENTS: usize = 1 << 16;

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordValue<'a> {
    /// An unsigned integer; also a value of an enumeration that has no name.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A truth value.
    Bool(bool),
    /// A value of an enumeration, by its name.
    Name(&'static str),
    /// Text as the source wrote it, not necessarily UTF-8.
    Text(&'a [u8]),
    /// Bytes that are not text.
    Bytes(&'a [u8]),
    /// Elements, each a set of fields, and how many more there are than [`MOST_ELEMENTS`].
    List(Vec<Vec<(&'static str, RecordValue<'a>)>>, usize),
}

/// The fields of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFields<'a> {
    /// The sound fields that are present, in the order of the record.
    pub values: Vec<(&'static str, RecordValue<'a>)>,
    /// The first thing that is wrong with the record.
    pub wrong: Option<WireError>,
}

/// Reads the fields of a record that this version knows; a record of an unknown kind has none.
#[must_use]
pub fn fields(record: RawRecord<'_>) -> RecordFields<'_> {
    let mut wrong = None;
    let values = match schema_of(record.kind) {
        Some(schema) => read(schema.name, schema.fields, Stamp::FIELDS, record.body, &mut wrong),
        None => Vec::new(),
    };
    RecordFields { values, wrong }
}

/// The description of a kind of record; `None` for one that this version does not know.
#[must_use]
pub fn schema_of(kind: RecordKind) -> Option<&'static RecordSchema> {
    SCHEMA.iter().find(|schema| schema.kind == kind.0)
}

/// All fields that records of a kind can have: their own, then those that say when and where.
pub fn columns(schema: &'static RecordSchema) -> impl Iterator<Item = &'static FieldSchema> {
    schema.fields.iter().chain(Stamp::FIELDS)
}

/// Whether a field of bytes holds text.
#[must_use]
pub fn is_text(record: &str, field: &str) -> bool {
    !BINARY.contains(&field) && !BINARY_OF.contains(&(record, field))
}

/// Splits `length, bytes` off the front: FORMAT.md, "lists".
pub(crate) fn split_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (len, rest) = match first {
        254 => rest.split_first_chunk::<2>().map(|(len, rest)| (usize::from(u16::from_le_bytes(*len)), rest))?,
        255 => rest.split_first_chunk::<4>().map(|(len, rest)| (u32::from_le_bytes(*len) as usize, rest))?,
        short => (usize::from(short), rest),
    };
    rest.split_at_checked(len)
}

fn read<'a>(
    record: &str,
    own: &'static [FieldSchema],
    common: &'static [FieldSchema],
    body: &'a [u8],
    wrong: &mut Option<WireError>,
) -> Vec<(&'static str, RecordValue<'a>)> {
    let mut values: Vec<(&'static str, RecordValue<'a>)> = Vec::new();
    let mut iter = FieldIter::new(body);
    loop {
        let (number, raw) = match iter.next_field() {
            Ok(Some(field)) => field,
            Ok(None) => return values,
            Err(error) => {
                wrong.get_or_insert(error);
                return values;
            }
        };
        // A later version's field is skipped.
        let Some(field) = own.iter().chain(common).find(|field| field.number == number) else { continue };
        match value(record, field, raw, wrong) {
            // Of a field that is there twice the later one counts, as for every other reader.
            Some(value) => match values.iter_mut().find(|(name, _)| *name == field.name) {
                Some(known) => known.1 = value,
                None => values.push((field.name, value)),
            },
            None => {
                wrong.get_or_insert(WireError::BadShape { number });
            }
        }
    }
}

/// The value of a field; `None` when it cannot be the field's.
fn value<'a>(
    record: &str,
    field: &'static FieldSchema,
    raw: Raw<'a>,
    wrong: &mut Option<WireError>,
) -> Option<RecordValue<'a>> {
    let fits = |value: u64, bits: u32| value.checked_shr(bits).unwrap_or(0) == 0;
    Some(match (field.shape, raw) {
        (Shape::Unsigned(bits), Raw::Int(value)) if fits(value, bits) => RecordValue::Unsigned(value),
        (Shape::Enum { bits, names, .. }, Raw::Int(value)) if fits(value, bits) => {
            let named = names.iter().find(|(number, _)| *number == value);
            named.map_or(RecordValue::Unsigned(value), |(_, name)| RecordValue::Name(name))
        }
        (Shape::Signed, Raw::Int(value)) => RecordValue::Signed(unzigzag(value)),
        (Shape::Bool, Raw::Int(value @ (0 | 1))) => RecordValue::Bool(value == 1),
        (Shape::Bytes, Raw::Bytes(bytes)) if is_text(record, field.name) => RecordValue::Text(bytes),
        (Shape::Bytes, Raw::Bytes(bytes)) => RecordValue::Bytes(bytes),
        (Shape::List { fields, .. }, Raw::Bytes(bytes)) => {
            let mut elements = Vec::new();
            let mut rest = bytes;
            while let Some((element, after)) = split_prefixed(rest).filter(|_| elements.len() < MOST_ELEMENTS) {
                elements.push(read(record, fields, &[], element, wrong));
                rest = after;
            }
            let more = std::iter::successors(Some(rest), |rest| Some(split_prefixed(rest)?.1)).count() - 1;
            RecordValue::List(elements, more)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use kwab_format::record::{Cause, CauseKind, Note, Reg, RegId, Registers};
    use kwab_format::wire::Encoder;
    use kwab_format::{List, RecordType};

    use super::*;

    fn body<'a, T: RecordType<'a>>(record: &T) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        let mut encoder = Encoder::new(&mut bytes, 0);
        record.encode(&mut encoder);
        let end = encoder.position().unwrap();
        bytes.truncate(end);
        bytes
    }

    fn of(kind: RecordKind, body: &[u8]) -> RecordFields<'_> {
        fields(RawRecord { kind, body })
    }

    #[test]
    fn words_keep_all_bits_and_absent_fields_are_not_listed() {
        let cause = Cause { kind: Some(CauseKind(77)), fault_addr: Some(u64::MAX), ..Cause::default() };
        let bytes = body(&cause);
        let found = of(Cause::KIND, &bytes);
        let wanted = [("kind", RecordValue::Unsigned(77)), ("fault_addr", RecordValue::Unsigned(u64::MAX))];
        assert_eq!((found.values.as_slice(), found.wrong), (&wanted[..], None));
    }

    #[test]
    fn elements_of_a_list_are_fields_by_name() {
        let regs = [Reg { id: Some(RegId::RIP), value: Some(1 << 63), ..Reg::default() }, Reg::default()];
        let bytes = body(&Registers { regs: Some(List::new(&regs)), ..Registers::default() });
        let found = of(Registers::KIND, &bytes);
        let rip = vec![("id", RecordValue::Name("rip")), ("value", RecordValue::Unsigned(1 << 63))];
        assert_eq!(found.values, [("regs", RecordValue::List(vec![rip, Vec::new()], 0))]);
    }

    #[test]
    fn of_a_record_that_is_cut_the_sound_fields_come_with_what_is_wrong() {
        let bytes = body(&Note { text: Some(b"kept"), ..Note::default() });
        let mut cut = body(&Note { kind: Some(kwab_format::record::NoteKind(1)), ..Note::default() });
        cut.extend_from_slice(&bytes[..bytes.len() - 1]);
        let found = of(Note::KIND, &cut);
        assert_eq!(found.values.len(), 1);
        assert!(matches!(found.wrong, Some(WireError::Short { .. })));
    }

    #[test]
    fn a_list_of_more_elements_than_are_read_says_how_many_are_left_out() {
        let field = Registers::FIELDS.iter().find(|field| field.name == "regs").unwrap();
        let empty = vec![0; MOST_ELEMENTS + 7];
        let found = value("Registers", field, Raw::Bytes(&empty), &mut None);
        assert!(matches!(found, Some(RecordValue::List(elements, 7)) if elements.len() == MOST_ELEMENTS));
    }
}
