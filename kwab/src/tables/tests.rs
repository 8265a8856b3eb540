//! Tables are what their documents say, exact, and written in row groups of bounded size.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::Schema;
use kwab_format::record::{PageFault, Stamp, Vma};
use kwab_format::{BootId, DumpId, FileHeader, SectionKind};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;
use crate::model::DumpFile;
use crate::model::emit::DumpWriter;

/// The rows of a table of one dump, read back from a file, and its row groups.
fn written(table: DumpTable, bytes: Vec<u8>) -> (Vec<RecordBatch>, usize) {
    let file = DumpFile::from_bytes(bytes).unwrap();
    let mut writer = TableWriter::new(tempfile::tempfile().unwrap(), table).unwrap();
    let lost = writer.put(Arc::new(file), &Origin { file: "a.kwab".into(), dump: Some(2) }).unwrap();
    assert_eq!(lost, Vec::<String>::new());
    let reader = ParquetRecordBatchReaderBuilder::try_new(writer.finish().unwrap()).unwrap();
    let groups = reader.metadata().num_row_groups();
    (reader.build().unwrap().collect::<Result<_, _>>().unwrap(), groups)
}

fn dump() -> DumpWriter<Vec<u8>> {
    DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])))
}

#[test]
fn a_word_of_64_bits_and_an_absent_one_are_read_back_as_they_were() {
    let mut writer = dump();
    writer.put(SectionKind::MEMORY_MAP, &Vma { pid: Some(1), start: Some(u64::MAX), end: None, ..Vma::default() });
    let path = Some(&b"/bin/\xff"[..]);
    writer.put(SectionKind::MEMORY_MAP, &Vma { start: Some(1 << 63), path, ..Vma::default() });
    let (batches, groups) = written(DumpTable::named("mappings").unwrap(), writer.finish().unwrap());
    assert_eq!((batches.len(), groups), (1, 1));
    let column = |name: &str| batches[0].column_by_name(name).unwrap().clone();
    assert_eq!(column("start").as_primitive::<UInt64Type>().values()[..], [u64::MAX, 1 << 63]);
    assert_eq!(column("end").null_count(), 2);
    assert_eq!(column("path").as_string::<i32>().value(1), "/bin/\u{fffd}");
    assert_eq!(column("_file").as_string::<i32>().value(1), "a.kwab");
    assert_eq!(column("_dump").as_primitive::<UInt32Type>().values()[..], [2, 2]);
}

#[test]
fn many_events_become_row_groups_and_keep_their_order_and_their_clock() {
    const COUNT: u64 = 140_000;
    let mut writer = dump();
    for ns in 0..COUNT {
        let stamp = Stamp { ns: Some(ns), cpu: Some(3), ..Stamp::default() };
        writer.put(SectionKind::EVENTS, &PageFault { pid: Some(9), vaddr: Some(ns), stamp, ..PageFault::default() });
    }
    let (batches, groups) = written(DumpTable::Events, writer.finish().unwrap());
    assert!(groups > 1, "{groups}");
    let mut next = 0;
    for batch in &batches {
        let ns = batch.column_by_name("ns").unwrap().as_primitive::<UInt64Type>();
        for row in 0..batch.num_rows() {
            assert_eq!(ns.value(row), next);
            next += 1;
        }
    }
    assert_eq!(next, COUNT);
    let fields = batches[0].column_by_name("fields").unwrap().as_string::<i32>().value(2);
    let object: serde_json::Value = serde_json::from_str(fields).unwrap();
    assert_eq!((&object["pid"], &object["vaddr"]), (&9.into(), &"0x2".into()));
}

/// Rows of a table of columns in the page.
fn documented(heading: &str) -> Vec<[String; 4]> {
    let page = std::fs::read_to_string("../docs/parquet.md").unwrap();
    let part = page.split("\n## ").find(|part| part.starts_with(heading)).unwrap();
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_string()).collect());
    cells.map(|cells: Vec<String>| cells.try_into().unwrap()).collect()
}

/// What the page must say of a schema.
fn described(schema: &Schema, meanings: &[&str]) -> Vec<[String; 4]> {
    let types = |text: String| match text.as_str() {
        "Utf8" => "STRING".to_string(),
        "Timestamp(µs, \"UTC\")" => "TIMESTAMP(MICROS, UTC)".to_string(),
        "Float64" => "DOUBLE".to_string(),
        list if list.starts_with("List(") => "LIST of STRUCT".to_string(),
        other => other.to_uppercase(),
    };
    let fields = schema.fields().iter().zip(meanings);
    fields
        .map(|(field, meaning)| {
            let null = if field.is_nullable() { "yes" } else { "no" };
            let kind = types(field.data_type().to_string());
            [format!("`{}`", field.name()), kind, null.to_string(), (*meaning).to_string()]
        })
        .collect()
}

#[test]
fn the_page_lists_the_columns_as_they_are() {
    let meanings: Vec<&str> = catalogue::COLUMNS.iter().map(|column| column.meaning).collect();
    assert_eq!(documented("The catalogue"), described(&catalogue_columns(None), &meanings));
    let meanings: Vec<&str> = events::COLUMNS.iter().map(|column| column.3).collect();
    assert_eq!(documented("Events"), described(&event_columns(), &meanings));
}

#[test]
fn every_table_that_is_offered_has_columns_and_no_two_of_one_name() {
    for name in DumpTable::names() {
        let columns = DumpTable::named(&name).unwrap().columns();
        let mut names: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert!(names.len() == all && all > 2, "{name}: {names:?}");
    }
    assert!(DumpTable::named("nonsense").is_none());
}

#[test]
fn a_column_that_is_a_folder_is_not_in_the_file() {
    let without = catalogue_columns(Some("signature"));
    assert!(without.column_with_name("signature").is_none());
    assert_eq!(without.fields().len() + 1, catalogue_columns(None).fields().len());
}
