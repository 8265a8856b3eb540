//! A catalogue as Arrow batches: a row per dump.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};

use crate::report::catalogue::{CatalogueEntry, Finding};

/// A dump with what a fleet is searched by.
#[derive(Debug, Clone)]
pub struct CatalogueRow {
    /// What lists show.
    pub entry: CatalogueEntry,
    /// Every hypothesis of the triage with its score, best first.
    pub hypotheses: Vec<(String, f64)>,
    /// GNU build-id of the kernel in hexadecimal digits; empty when the dump does not say.
    pub build_id: String,
    /// Commit that the kernel's version names; empty when it names none.
    pub commit: String,
    /// The build-id, else the commit, else the kernel.
    pub build: String,
    /// When it happened: by the dump's wall clock, else when its file was written; nanoseconds since 1970.
    pub happened_ns: i64,
    /// The group that it has in a list: dumps of one bug have the same.
    pub bug: String,
    /// Whether it counts there: of a death that a log and a dump tell of, one does.
    pub counts: bool,
}

/// A column of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct CatalogueColumn {
    /// The name that files and queries have for it.
    pub name: &'static str,
    /// Whether it may be null.
    pub is_nullable: bool,
    /// What it holds.
    pub meaning: &'static str,
    make: fn(&[CatalogueRow]) -> ArrayRef,
}

const fn column(name: &'static str, make: fn(&[CatalogueRow]) -> ArrayRef, meaning: &'static str) -> CatalogueColumn {
    CatalogueColumn { name, is_nullable: false, meaning, make }
}

const fn nullable(name: &'static str, make: fn(&[CatalogueRow]) -> ArrayRef, meaning: &'static str) -> CatalogueColumn {
    CatalogueColumn { name, is_nullable: true, meaning, make }
}

/// All columns in their order.
pub const COLUMNS: &[CatalogueColumn] = &[
    column("file", |rows| texts(rows, |row| &row.entry.file), "path of the file, as `kwab list` shows it"),
    nullable("dump", dump, "which dump of the file, from 1; null when it is alone in it"),
    column("kind", |rows| texts(rows, |row| &row.entry.kind), "kind of death; `recording`, `lost`, `unreadable`"),
    column("victim", |rows| texts(rows, |row| &row.entry.victim), "`kernel`, or the program and its pid; may be empty"),
    column("cause", |rows| texts(rows, |row| &row.entry.cause), "what happened, in one line"),
    column("place", |rows| texts(rows, |row| &row.entry.place), "location, symbol or instruction; may be empty"),
    column("signature", |rows| texts(rows, |row| &row.entry.signature), "stable name of the symptom, eight digits"),
    column("process", |rows| texts(rows, |row| &row.entry.process), "`name[pid]` of the process; may be empty"),
    column("source", |rows| texts(rows, |row| &row.entry.source), "`kernel` when the kernel wrote it, `log`"),
    column("kernel", |rows| texts(rows, |row| &row.entry.kernel), "name and version; may be empty"),
    column("build_id", |rows| texts(rows, |row| &row.build_id), "build-id in hexadecimal digits; may be empty"),
    column("commit", |rows| texts(rows, |row| &row.commit), "commit that the version names; may be empty"),
    column("build", |rows| texts(rows, |row| &row.build), "`build_id`, else `commit`, else `kernel`"),
    nullable("rule", |rows| found(rows, |found| Some(&found.rule)), "rule of the best hypothesis of triage"),
    nullable("class", |rows| found(rows, |found| Some(&found.class)), "what kind of bug it says"),
    nullable("claim", |rows| found(rows, |found| Some(&found.claim)), "the claim as a sentence"),
    nullable("score", score, "how well the dump supports it, 0 to 1"),
    nullable("proven", proven, "whether evidence proves the mechanism"),
    nullable("function", |rows| found(rows, |found| found.function.as_ref()), "the function to look at first"),
    nullable("about", |rows| found(rows, |found| found.about.as_ref()), "rule of the analysis that it comes from"),
    column("hypotheses", hypotheses, "`rule` and `score` of all hypotheses, as triage orders them"),
    column(
        "bug",
        |rows| texts(rows, |row| &row.bug),
        "name of the group in `kwab list`: dumps of one bug have the same",
    ),
    column("counts", counts, "whether it counts there: of a log and a dump of one death, one does"),
    column("happened", happened, "time of `wall_ns`, else of the file's last change"),
    nullable("wall_ns", |rows| signed(rows, |entry| entry.wall_ns), "the dump's own clock, nanoseconds since 1970"),
    nullable("mono_ns", |rows| wide(rows, |entry| entry.mono_ns), "nanoseconds since boot"),
    nullable("boot", |rows| narrow(rows, |entry| entry.boot), "which boot of its log"),
    nullable("pid", |rows| narrow(rows, |entry| entry.pid), "process that died or ran"),
    nullable("cpu", |rows| narrow(rows, |entry| entry.cpu), "processor that died or ran it"),
    column("sound", sound, "whether nothing is damaged"),
    column("defects", |rows| wide(rows, |entry| Some(entry.defects as u64)), "defects that are known"),
    column("bytes", |rows| wide(rows, |entry| Some(entry.bytes)), "length of the dump in bytes"),
];

/// The columns as a schema, without the one by which files are told apart.
#[must_use]
pub fn catalogue_columns(without: Option<&str>) -> SchemaRef {
    let fields = COLUMNS
        .iter()
        .filter(|column| Some(column.name) != without)
        .map(|column| Field::new(column.name, (column.make)(&[]).data_type().clone(), column.is_nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows as a batch with these columns.
///
/// # Errors
/// When the schema is not one of [`catalogue_columns`].
pub fn catalogue_batch(rows: &[CatalogueRow], schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let wanted = COLUMNS.iter().filter(|column| schema.column_with_name(column.name).is_some());
    RecordBatch::try_new(Arc::clone(schema), wanted.map(|column| (column.make)(rows)).collect())
}

fn texts(rows: &[CatalogueRow], of: fn(&CatalogueRow) -> &str) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
}

fn found(rows: &[CatalogueRow], of: fn(&Finding) -> Option<&String>) -> ArrayRef {
    Arc::new(rows.iter().map(|row| row.entry.finding.as_ref().and_then(of)).collect::<StringArray>())
}

fn narrow(rows: &[CatalogueRow], of: fn(&CatalogueEntry) -> Option<u32>) -> ArrayRef {
    Arc::new(rows.iter().map(|row| of(&row.entry)).collect::<UInt32Array>())
}

fn wide(rows: &[CatalogueRow], of: fn(&CatalogueEntry) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(|row| of(&row.entry)).collect::<UInt64Array>())
}

fn signed(rows: &[CatalogueRow], of: fn(&CatalogueEntry) -> Option<i64>) -> ArrayRef {
    Arc::new(rows.iter().map(|row| of(&row.entry)).collect::<Int64Array>())
}

fn dump(rows: &[CatalogueRow]) -> ArrayRef {
    narrow(rows, |entry| entry.dump.and_then(|number| u32::try_from(number).ok()))
}

fn score(rows: &[CatalogueRow]) -> ArrayRef {
    Arc::new(rows.iter().map(|row| row.entry.finding.as_ref().map(|found| found.score)).collect::<Float64Array>())
}

fn proven(rows: &[CatalogueRow]) -> ArrayRef {
    Arc::new(rows.iter().map(|row| row.entry.finding.as_ref().map(|found| found.proven)).collect::<BooleanArray>())
}

fn counts(rows: &[CatalogueRow]) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(row.counts)).collect::<BooleanArray>())
}

fn sound(rows: &[CatalogueRow]) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(row.entry.sound)).collect::<BooleanArray>())
}

/// Microseconds, which every reader knows; `wall_ns` has the rest.
fn happened(rows: &[CatalogueRow]) -> ArrayRef {
    let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.happened_ns.div_euclid(1000)));
    Arc::new(times.with_timezone("UTC"))
}

fn hypotheses(rows: &[CatalogueRow]) -> ArrayRef {
    let fields =
        Fields::from(vec![Field::new("rule", DataType::Utf8, false), Field::new("score", DataType::Float64, false)]);
    let item = Field::new("item", DataType::Struct(fields.clone()), false);
    let mut lists = ListBuilder::new(StructBuilder::from_fields(fields, rows.len())).with_field(item);
    for row in rows {
        let one = lists.values();
        for (rule, score) in &row.hypotheses {
            if let Some(column) = one.field_builder::<StringBuilder>(0) {
                column.append_value(rule);
            }
            if let Some(column) = one.field_builder::<Float64Builder>(1) {
                column.append_value(*score);
            }
            one.append(true);
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}
