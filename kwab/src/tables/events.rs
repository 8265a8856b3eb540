//! The events of a dump as Arrow batches: records of many types in the same columns.
//!
//! An event is a record of the sections `events` and `flight`. What its type has for itself is in `fields`, the object
//! that `kwab export --to jsonl` writes for the record.

use std::sync::Arc;

use arrow_array::builder::{StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use kwab_format::record::Stamp;
use kwab_format::{RawRecord, SectionKind};

use super::records::{BATCH, ROWS};
use super::walk::{Walk, chosen};
use crate::model::{DumpFile, RecordRef, json, line};
use crate::plain;

/// A column: its name, its type, whether it may be null, and what it holds.
pub type ColumnRow = (&'static str, DataType, bool, &'static str);

/// The columns of events.
pub const COLUMNS: &[ColumnRow] = &[
    ("_section", DataType::UInt32, false, "number of the section"),
    ("_record", DataType::UInt32, false, "number of the record in it"),
    ("section", DataType::Utf8, false, "kind of the section: `events`, `flight`"),
    ("type", DataType::Utf8, false, "type of the record"),
    ("seq", DataType::UInt64, true, "number among the events of the source"),
    ("cpu", DataType::UInt32, true, "processor"),
    ("ns", DataType::UInt64, true, "nanoseconds since boot"),
    ("tsc", DataType::UInt64, true, "ticks of the time-stamp counter"),
    ("line", DataType::UInt64, true, "line of the imported log, from 1"),
    ("pid", DataType::UInt32, true, "process"),
    ("text", DataType::Utf8, false, "the event in one line"),
    ("fields", DataType::Utf8, false, "all fields as a JSON object"),
];

/// The columns as a schema.
#[must_use]
pub fn event_columns() -> SchemaRef {
    let fields = COLUMNS.iter().map(|(name, kind, is_nullable, _)| Field::new(*name, kind.clone(), *is_nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Makes batches of the events of a dump as they are asked for.
#[derive(Debug)]
pub struct EventBatches {
    walk: Walk,
    schema: SchemaRef,
}

impl EventBatches {
    /// All events of a dump.
    #[must_use]
    pub fn new(file: Arc<DumpFile>) -> Self {
        let kinds = [SectionKind::EVENTS, SectionKind::FLIGHT];
        let is_of_events =
            |index: &usize| file.sections.get(*index).is_some_and(|one| kinds.contains(&one.header.kind));
        let sections = chosen(&file, None, None).into_iter().filter(is_of_events).collect();
        Self { walk: Walk::new(file, sections, None), schema: event_columns() }
    }

    /// What could not be read so far.
    #[must_use]
    pub fn lost(&self) -> &[String] {
        self.walk.lost()
    }
}

impl Iterator for EventBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut rows = EventRows::default();
        while rows.count < ROWS && rows.bytes < BATCH {
            let Some(wrong) = self.walk.next_with(|raw, at| rows.put(raw, at)) else { break };
            if let Some(wrong) = wrong {
                self.walk.lose(wrong);
            }
        }
        (rows.count > 0).then(|| RecordBatch::try_new(Arc::clone(&self.schema), rows.finish()))
    }
}

/// The columns while they are filled.
#[derive(Debug, Default)]
struct EventRows {
    count: usize,
    bytes: usize,
    position: [UInt32Builder; 2],
    kinds: [StringBuilder; 2],
    seq: UInt64Builder,
    cpu: UInt32Builder,
    clocks: [UInt64Builder; 3],
    pid: UInt32Builder,
    texts: [StringBuilder; 2],
}

impl EventRows {
    /// Puts an event; says what is wrong with it.
    fn put(&mut self, raw: RawRecord<'_>, at: RecordRef) -> Option<String> {
        let (stamp, pid, text, wrong) = match raw.decode() {
            Ok(record) => (record.stamp(), line::pid(&record), line::in_words(&record, raw), None),
            Err(error) => {
                let wrong = format!("record {} of section {}: {error}", at.record, at.section);
                (Stamp::default(), None, error.to_string(), Some(wrong))
            }
        };
        let fields = serde_json::Value::Object(json::object(raw)).to_string();
        let [section, record] = &mut self.position;
        section.append_value(at.section);
        record.append_value(at.record);
        let [section, kind] = &mut self.kinds;
        section.append_value(at.kind.to_string());
        kind.append_value(json::type_name(raw.kind));
        self.seq.append_option(stamp.seq);
        self.cpu.append_option(stamp.cpu);
        for (column, value) in self.clocks.iter_mut().zip([stamp.ns, stamp.tsc, stamp.line]) {
            column.append_option(value);
        }
        self.pid.append_option(pid);
        self.bytes += text.len() + fields.len();
        let [words, members] = &mut self.texts;
        words.append_value(plain::line(&text));
        members.append_value(fields);
        self.count += 1;
        wrong
    }

    /// The columns in the order of [`COLUMNS`].
    fn finish(mut self) -> Vec<ArrayRef> {
        let mut all: Vec<ArrayRef> = Vec::with_capacity(COLUMNS.len());
        all.extend(self.position.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        all.extend(self.kinds.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        all.extend([Arc::new(self.seq.finish()) as ArrayRef, Arc::new(self.cpu.finish())]);
        all.extend(self.clocks.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        all.push(Arc::new(self.pid.finish()));
        all.extend(self.texts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        all
    }
}
