//! FORMAT.md and RECORDS.md say what the code does: the annotated dump, the field tables, the kinds.

mod support;

use std::collections::BTreeMap;

use kwab_format::record::{Arch, Identity, SCHEMA, Stamp, SyscallEntry};
use kwab_format::*;
use support::Collect;

const FORMAT: &str = include_str!("../FORMAT.md");
const RECORDS: &str = include_str!("../RECORDS.md");

#[test]
fn the_annotated_dump_is_what_the_writer_writes() {
    let block = FORMAT.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a hex block");
    let mut documented = Vec::new();
    for line in block.lines().filter(|l| !l.is_empty()) {
        let (offset, rest) = line.split_once("  ").expect(line);
        assert_eq!(usize::from_str_radix(offset, 16).expect(line), documented.len(), "{line}");
        let bytes = rest.split("  ").next().unwrap_or_default();
        documented.extend(bytes.split(' ').map(|b| u8::from_str_radix(b, 16).expect(line)));
    }
    let header = FileHeader::new(DumpId(0x1122_3344_5566_7788), BootId(std::array::from_fn(|i| 0x10 + i as u8)));
    let mut buf = [0; 1024];
    let mut writer = Writer::new(Collect::default(), &mut buf, header);
    writer.begin(SectionKind::IDENTITY).unwrap();
    let identity = Identity {
        kernel_name: Some(b"demo"),
        arch: Some(Arch::X86_64),
        wall_ns: Some(-1),
        cpus: Some(2),
        ..Identity::default()
    };
    writer.put(&identity).unwrap();
    writer.begin(SectionKind::EVENTS).unwrap();
    let stamp = Stamp { cpu: Some(0), offset: Some(70_000), ..Stamp::default() };
    let entry = SyscallEntry {
        pid: Some(1),
        nr: Some(257),
        arg0: Some(-100i64 as u64),
        arg1: Some(0x9_ffff_eed8),
        stamp,
        ..SyscallEntry::default()
    };
    writer.put(&entry).unwrap();
    let (sink, result) = writer.finish();
    result.unwrap();
    assert_eq!(sink.0, documented);
}

#[test]
fn the_armoured_line_of_the_document_is_the_second_of_the_vectors() {
    let documented = FORMAT.lines().find(|l| l.starts_with("KW1:")).expect("a line");
    assert!(include_str!("../vectors/armour.txt").lines().any(|l| l == documented));
}

#[test]
fn the_parity_line_of_the_document_is_the_last_of_the_vectors() {
    let documented = FORMAT.lines().find(|l| l.starts_with("KP1:")).expect("a line");
    assert_eq!(include_str!("../vectors/armour-parity.txt").lines().last(), Some(documented));
}

#[test]
fn every_field_table_is_the_schema() {
    for schema in SCHEMA {
        check_table(&format!("### {} {}\n", schema.kind, schema.name), schema.fields);
        for field in schema.fields {
            if let Shape::List { element, fields } = field.shape {
                check_table(&format!("#### Element {element}\n"), fields);
            }
            if let Shape::Enum { bits, name, names } = field.shape {
                check_enum(&format!("### {name} (u{bits})\n"), names);
            }
        }
    }
    let documented = RECORDS.lines().filter(|l| l.starts_with("### ") && !l.contains('(')).count();
    assert_eq!(documented, SCHEMA.len(), "records in RECORDS.md that the code does not have");
    let stamp = rows(FORMAT, "same in every record:\n");
    assert_eq!(stamp, expected_rows(Stamp::FIELDS));
}

fn check_table(heading: &str, fields: &[FieldSchema]) {
    assert_eq!(rows(RECORDS, heading), expected_rows(fields), "{heading}");
}

fn expected_rows(fields: &[FieldSchema]) -> Vec<Vec<String>> {
    fields.iter().map(|f| vec![f.number.to_string(), format!("`{}`", f.name), f.shape.to_string()]).collect()
}

fn check_enum(heading: &str, names: &[(u64, &str)]) {
    let number = |v: u64| if v < 256 { v.to_string() } else { format!("{v:#x}") };
    let expected: Vec<_> = names.iter().map(|(v, name)| vec![number(*v), (*name).to_owned()]).collect();
    let found: Vec<_> = rows(RECORDS, heading).into_iter().map(|row| row[..2].to_vec()).collect();
    assert_eq!(found, expected, "{heading}");
}

/// The first three cells of each row of the table below a heading.
fn rows(document: &str, heading: &str) -> Vec<Vec<String>> {
    let section = document.split_once(heading).unwrap_or_else(|| panic!("{heading} is missing")).1;
    let table = section.lines().skip_while(|l| !l.starts_with("|---")).skip(1).take_while(|l| l.starts_with('|'));
    table.map(|row| row.split('|').skip(1).take(3).map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
#[cfg_attr(miri, ignore = "reads the sources")]
fn every_meaning_is_the_doc_of_its_field_or_value() {
    let docs = docs_of_records();
    let mut differing = Vec::new();
    let mut compare = |name: &str, heading: &str, numbers: &mut dyn Iterator<Item = u64>| {
        let meanings = last_cells(heading);
        for (number, meaning) in numbers.zip(meanings) {
            let doc = docs.get(&(name.to_owned(), number)).map(String::as_str);
            if doc != Some(plain(&meaning).as_str()) {
                differing.push(format!("{name} {number}: {meaning}"));
            }
        }
    };
    for schema in SCHEMA {
        let heading = format!("### {} {}\n", schema.kind, schema.name);
        compare(schema.name, &heading, &mut schema.fields.iter().map(|field| u64::from(field.number)));
        for field in schema.fields {
            match field.shape {
                Shape::List { element, fields } => {
                    let heading = format!("#### Element {element}\n");
                    compare(element, &heading, &mut fields.iter().map(|field| u64::from(field.number)));
                }
                Shape::Enum { bits, name, names } => {
                    compare(name, &format!("### {name} (u{bits})\n"), &mut names.iter().map(|row| row.0));
                }
                _ => {}
            }
        }
    }
    assert!(differing.is_empty(), "RECORDS.md means something else than the docs:\n{}", differing.join("\n"));
}

/// The docs of fields and values in `src/record`, by name of the record, element or enumeration and by number.
fn docs_of_records() -> BTreeMap<(String, u64), String> {
    let mut docs = BTreeMap::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/record")).expect("the folder is there") {
        let source = std::fs::read_to_string(entry.expect("an entry").path()).expect("a source");
        let (mut name, mut doc) = (String::new(), Vec::new());
        for line in source.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("/// ") {
                doc.push(text.to_owned());
                continue;
            }
            let mut words = line.split([' ', ':']);
            match words.next().unwrap_or_default() {
                "record" | "element" => name = words.next().unwrap_or_default().to_owned(),
                number if !doc.is_empty() && number.starts_with(|first: char| first.is_ascii_digit()) => {
                    let value = number
                        .strip_prefix("0x")
                        .map_or_else(|| number.parse(), |digits| u64::from_str_radix(&digits.replace('_', ""), 16));
                    docs.insert((name.clone(), value.expect(line)), plain(&doc.join(" ")));
                }
                first if line.ends_with('{') && line.contains(": u") => name = first.to_owned(),
                _ => {}
            }
            doc.clear();
        }
    }
    docs
}

/// The last cell of each row of the table below a heading of RECORDS.md.
fn last_cells(heading: &str) -> Vec<String> {
    let section = RECORDS.split_once(heading).unwrap_or_else(|| panic!("{heading} is missing")).1;
    let table = section.lines().skip_while(|l| !l.starts_with("|---")).skip(1).take_while(|l| l.starts_with('|'));
    table.map(|row| row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default().to_owned()).collect()
}

/// A sentence without the marks of links and code.
fn plain(text: &str) -> String {
    text.replace(['[', ']', '`'], "")
}

#[test]
fn the_section_kinds_are_those_of_the_document() {
    let documented: Vec<_> =
        rows(FORMAT, "### 2.5 Section kinds\n").into_iter().map(|r| (r[0].clone(), r[1].clone())).collect();
    let code: Vec<_> = SectionKind::NAMES.iter().map(|(n, name)| (n.to_string(), (*name).to_owned())).collect();
    assert_eq!(documented, code);
}

#[test]
fn no_field_number_is_used_twice_or_belongs_to_the_stamp() {
    for schema in SCHEMA {
        let numbers: Vec<_> = schema.fields.iter().map(|f| f.number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{}: {numbers:?}", schema.name);
        assert!(numbers.iter().all(|n| !(24..=30).contains(n) && *n > 0), "{}: {numbers:?}", schema.name);
    }
}
