//! The records of one type as Arrow batches: the columns are the fields of the format in its order, then those that say
//! when and where; an absent field is null.
//!
//! A batch is made of at most one section of the dump and at most [`ROWS`] records, when the reader asks for it. An
//! integer has the width that the format gives it, an enumeration is the name of its value, text is UTF-8 with
//! replacement characters, and a list is a list of structs. `_section` and `_record` are the position of each record in
//! the dump.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use kwab_format::record::{RecordKind, Stamp};
use kwab_format::{FieldSchema, Fields as _, RawRecord, RecordSchema, Shape};

use super::walk::{Walk, chosen};
use crate::model::DumpFile;
use crate::model::fields::{self, RecordValue};

/// Records of a batch.
pub(super) const ROWS: usize = 1 << 14;
/// Bytes of records after which a batch is closed: each may take many times as much when it is decoded.
pub(super) const BATCH: usize = 256 << 10;

/// Makes batches of the records of one type as they are asked for.
#[derive(Debug)]
pub struct RecordBatches {
    walk: Walk,
    record: &'static RecordSchema,
    schema: SchemaRef,
    /// The first record of the next batch.
    waiting: Option<PlacedRecord>,
}

/// A record that stands in a batch: section, number, bytes.
type PlacedRecord = (u32, u32, Vec<u8>);

impl RecordBatches {
    /// All records of this type.
    #[must_use]
    pub fn new(file: Arc<DumpFile>, record: &'static RecordSchema) -> Self {
        let sections = chosen(&file, None, None);
        let walk = Walk::new(file, sections, Some(RecordKind(record.kind)));
        Self { walk, record, schema: record_columns(record), waiting: None }
    }

    /// The schema of every batch.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// What could not be read so far.
    #[must_use]
    pub fn lost(&self) -> &[String] {
        self.walk.lost()
    }

    fn next_rows(&mut self) -> Vec<PlacedRecord> {
        let mut rows: Vec<PlacedRecord> = self.waiting.take().into_iter().collect();
        let mut bytes = rows.first().map_or(0, |row| row.2.len());
        while rows.len() < ROWS {
            let next = self.walk.next_with(|record, at| (at.section, at.record, record.body.to_vec()));
            let Some(row) = next else { break };
            bytes += row.2.len();
            if !rows.is_empty() && (bytes > BATCH || rows.last().is_some_and(|last| last.0 != row.0)) {
                self.waiting = Some(row);
                break;
            }
            rows.push(row);
        }
        rows
    }

    fn batch(&mut self, rows: &[PlacedRecord]) -> Result<RecordBatch, ArrowError> {
        let mut decoded = Vec::with_capacity(rows.len());
        for (section, record, body) in rows {
            let found = fields::fields(RawRecord { kind: RecordKind(self.record.kind), body });
            if let Some(error) = found.wrong {
                self.walk.lose(format!("record {record} of section {section}: {error}"));
            }
            for (name, value) in &found.values {
                if let RecordValue::List(elements, left_out @ 1..) = value {
                    let kept = elements.len();
                    let text = format!("{left_out} elements of {name} behind the first {kept} were left out");
                    self.walk.lose(format!("record {record} of section {section}: {text}"));
                }
            }
            decoded.push(found.values);
        }
        let position = |number: fn(&PlacedRecord) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(number)))
        };
        let mut columns = vec![position(|row| row.0), position(|row| row.1)];
        let all = self.record.fields.iter().chain(Stamp::FIELDS);
        for field in all {
            columns.push(column(self.record.name, field, &mut decoded)?);
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

impl Iterator for RecordBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.next_rows();
        (!rows.is_empty()).then(|| self.batch(&rows))
    }
}

/// The columns of a type of records.
#[must_use]
pub fn record_columns(record: &RecordSchema) -> SchemaRef {
    let position = ["_section", "_record"].map(|name| Field::new(name, DataType::UInt32, false));
    let own = record.fields.iter().chain(Stamp::FIELDS).map(|column| arrow_field(record.name, column));
    Arc::new(Schema::new(position.into_iter().chain(own).collect::<Vec<_>>()))
}

pub(super) fn arrow_field(record: &str, field: &FieldSchema) -> Field {
    Field::new(field.name, data_type(record, field), true)
}

fn data_type(record: &str, field: &FieldSchema) -> DataType {
    match field.shape {
        Shape::Unsigned(0..=8) => DataType::UInt8,
        Shape::Unsigned(9..=16) => DataType::UInt16,
        Shape::Unsigned(17..=32) => DataType::UInt32,
        Shape::Unsigned(_) => DataType::UInt64,
        Shape::Signed => DataType::Int64,
        Shape::Bool => DataType::Boolean,
        Shape::Bytes if !fields::is_text(record, field.name) => DataType::Binary,
        Shape::Bytes | Shape::Enum { .. } => DataType::Utf8,
        Shape::List { fields, .. } => DataType::List(Arc::new(item(record, fields))),
    }
}

/// The element of a list.
fn item(record: &str, fields: &[FieldSchema]) -> Field {
    Field::new("item", DataType::Struct(struct_fields(record, fields)), false)
}

fn struct_fields(record: &str, fields: &[FieldSchema]) -> Fields {
    fields.iter().map(|field| arrow_field(record, field)).collect()
}

/// The fields of one row.
type FieldValues<'a> = Vec<(&'static str, RecordValue<'a>)>;

/// Takes a field out of every row and makes a column of it.
fn column(record: &str, field: &'static FieldSchema, rows: &mut [FieldValues<'_>]) -> Result<ArrayRef, ArrowError> {
    let mut taken = rows.iter_mut().map(|row| {
        let at = row.iter().position(|(name, _)| *name == field.name)?;
        Some(row.swap_remove(at).1)
    });
    let unsigned = |value: Option<RecordValue<'_>>| match value {
        Some(RecordValue::Unsigned(value)) => Some(value),
        _ => None,
    };
    Ok(match field.shape {
        Shape::Unsigned(0..=8) => Arc::new(
            taken.map(|value| unsigned(value).and_then(|value| u8::try_from(value).ok())).collect::<UInt8Array>(),
        ),
        Shape::Unsigned(9..=16) => Arc::new(
            taken.map(|value| unsigned(value).and_then(|value| u16::try_from(value).ok())).collect::<UInt16Array>(),
        ),
        Shape::Unsigned(17..=32) => Arc::new(
            taken.map(|value| unsigned(value).and_then(|value| u32::try_from(value).ok())).collect::<UInt32Array>(),
        ),
        Shape::Unsigned(_) => Arc::new(taken.map(unsigned).collect::<UInt64Array>()),
        Shape::Signed => Arc::new(
            taken
                .map(|value| match value {
                    Some(RecordValue::Signed(value)) => Some(value),
                    _ => None,
                })
                .collect::<Int64Array>(),
        ),
        Shape::Bool => Arc::new(
            taken
                .map(|value| match value {
                    Some(RecordValue::Bool(value)) => Some(value),
                    _ => None,
                })
                .collect::<BooleanArray>(),
        ),
        Shape::Bytes if !fields::is_text(record, field.name) => Arc::new(
            taken
                .map(|value| match value {
                    Some(RecordValue::Bytes(bytes)) => Some(bytes),
                    _ => None,
                })
                .collect::<BinaryArray>(),
        ),
        Shape::Bytes | Shape::Enum { .. } => Arc::new(taken.map(|value| text(&value?)).collect::<StringArray>()),
        Shape::List { fields, .. } => lists(record, fields, &mut taken)?,
    })
}

/// Text with replacement characters, the name of a value, or its number when it has none.
fn text(value: &RecordValue<'_>) -> Option<String> {
    match value {
        RecordValue::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        RecordValue::Name(name) => Some((*name).to_owned()),
        RecordValue::Unsigned(value) => Some(value.to_string()),
        _ => None,
    }
}

fn lists<'a>(
    record: &str,
    fields: &'static [FieldSchema],
    values: &mut dyn Iterator<Item = Option<RecordValue<'a>>>,
) -> Result<ArrayRef, ArrowError> {
    let (mut elements, mut lengths, mut present) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        let list = match value {
            Some(RecordValue::List(list, _)) => Some(list),
            _ => None,
        };
        present.push(list.is_some());
        lengths.push(list.as_ref().map_or(0, Vec::len));
        elements.extend(list.unwrap_or_default());
    }
    let count = elements.len();
    let columns: Vec<ArrayRef> =
        fields.iter().map(|field| column(record, field, &mut elements)).collect::<Result<_, _>>()?;
    let structs = StructArray::try_new_with_length(struct_fields(record, fields), columns, None, count)?;
    let (offsets, nulls) = (OffsetBuffer::from_lengths(lengths), NullBuffer::from(present));
    Ok(Arc::new(ListArray::try_new(Arc::new(item(record, fields)), offsets, Arc::new(structs), Some(nulls))?))
}
