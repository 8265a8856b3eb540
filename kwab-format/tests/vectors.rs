//! The test vectors, made by a program that shares nothing with this crate, say what the crate says.

mod support;

use kwab_format::record::SCHEMA;
use kwab_format::*;
use support::*;

#[test]
fn every_record_of_the_vectors_is_read_and_written_byte_for_byte() {
    let mut kinds = Vec::new();
    for stanza in include_str!("../vectors/records.txt").split("\n\n").filter(|s| s.contains("record ")) {
        let vector = Vector::parse(stanza);
        let schema = SCHEMA.iter().find(|s| s.kind == vector.kind).expect("a known kind");
        assert_eq!(schema.name, vector.name);
        assert_eq!(encode_record(vector.kind, &vector.fields), vector.bytes, "FORMAT.md, read literally: {stanza}");
        let record = only_record(&vector.bytes).decode().expect("a sound record");
        assert_eq!(written(&record), vector.bytes, "{stanza}");
        // Formatting is what takes Miri minutes, and it has nothing to find there.
        let debug = if cfg!(miri) { String::new() } else { format!("{record:?}") };
        for said in vector.debug.into_iter().filter(|_| !cfg!(miri)) {
            assert!(debug.contains(&said), "{said} is not in {debug}");
        }
        kinds.push(vector.kind);
    }
    let missing: Vec<_> = SCHEMA.iter().filter(|s| !kinds.contains(&s.kind)).map(|s| s.name).collect();
    assert!(missing.is_empty(), "no vector for {missing:?}");
}

/// One stanza of records.txt.
#[derive(Default)]
struct Vector {
    kind: u8,
    name: String,
    fields: Vec<(u8, Val)>,
    /// What Rust's debug form of the record must contain.
    debug: Vec<String>,
    bytes: Vec<u8>,
}

impl Vector {
    fn parse(stanza: &str) -> Self {
        let mut vector = Self::default();
        let mut lines = stanza.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).peekable();
        let head: Vec<_> = lines.next().expect("a head").split(' ').collect();
        (vector.kind, vector.name) = (head[1].parse().unwrap(), head[2].to_owned());
        let stamp = record::Stamp::FIELDS;
        let schema = SCHEMA.iter().find(|s| s.kind == vector.kind).expect("a known kind").fields;
        while let Some(line) = lines.next() {
            if let Some(hex) = line.strip_prefix("hex ") {
                vector.bytes.extend(unhex(hex));
                continue;
            }
            let (number, value) = if line.contains(" list of ") {
                let mut elements = Vec::new();
                let field = schema.iter().find(|f| line.starts_with(&format!("{} {} ", f.number, f.name))).expect(line);
                let Shape::List { fields: inner, .. } = field.shape else { panic!("{line}") };
                while let Some(line) = lines.next_if(|l| l.starts_with("  ")) {
                    match line.strip_prefix("    ") {
                        None => elements.push(Vec::new()),
                        Some(field) => elements.last_mut().unwrap().push(scalar(field, inner, &mut vector.debug)),
                    }
                }
                (field.number, Val::List(elements))
            } else {
                let own = schema.iter().any(|f| line.starts_with(&format!("{} ", f.number)));
                scalar(line, if own { schema } else { stamp }, &mut vector.debug)
            };
            vector.fields.push((number, value));
        }
        vector
    }
}

/// `NUMBER FIELD SHAPE = VALUE`, compared with the schema.
fn scalar(line: &str, schema: &[FieldSchema], debug: &mut Vec<String>) -> (u8, Val) {
    let (left, text) = line.split_once(" = ").expect(line);
    let mut words = left.splitn(3, ' ');
    let (number, name, shape) = (words.next().unwrap().parse().unwrap(), words.next().unwrap(), words.next().unwrap());
    let field = schema.iter().find(|f| f.number == number).expect(line);
    assert_eq!((field.name, field.shape.to_string().as_str()), (name, shape));
    let (value, said) = match field.shape {
        Shape::Unsigned(_) => (Val::Int(text.parse().unwrap()), text.to_owned()),
        Shape::Signed => (Val::Int(zigzag(text.parse().unwrap())), text.to_owned()),
        Shape::Bool => (Val::Int(u64::from(text == "true")), text.to_owned()),
        Shape::Enum { name, .. } => (Val::Int(text.parse().unwrap()), format!("{name}({text})")),
        Shape::Bytes => {
            let bytes = if text == "-" { Vec::new() } else { unhex(text) };
            let said = format!("{bytes:?}");
            (Val::Bytes(bytes), said)
        }
        Shape::List { .. } => panic!("{line}"),
    };
    debug.push(format!("{name}: Some({said})"));
    (number, value)
}

/// 0, -1, 1, -2, 2 … to 0, 1, 2, 3, 4 …, the way the document says it.
fn zigzag(v: i64) -> u64 {
    if v >= 0 { v as u64 * 2 } else { (-i128::from(v) * 2 - 1) as u64 }
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
}

macro_rules! listed {
    ($folder:literal: $($name:literal)*) => {
        [$((
            $name,
            include_bytes!(concat!("../vectors/", $folder, "/", $name, ".kwab")).as_slice(),
            include_str!(concat!("../vectors/", $folder, "/", $name, ".txt")),
        ),)*]
    };
}

#[test]
fn whole_and_damaged_dumps_read_as_their_listings_say() {
    let whole = listed!("dumps": "smallest" "every-kind" "packed-and-indexed").to_vec();
    let damaged = listed!("damaged": "file-header" "magic" "section-header" "sync-mark" "payload" "payload-crc"
        "end-section" "cut-in-file-header" "cut-in-header" "cut-in-payload" "cut-between" "lost-section" "lost-bytes"
        "inserted-bytes" "foreign-section" "repeated-section" "trailing" "padding" "critical-unknown");
    for (name, dump, listing) in whole.into_iter().chain(damaged) {
        let about = listing.lines().next().unwrap_or_default();
        let expected: Vec<_> = listing.lines().skip(1).collect();
        assert_eq!(list(dump), expected, "{name}: {about}");
    }
}

fn list(dump: &[u8]) -> Vec<String> {
    let (good, mut bad) = read(dump);
    // What is missing is only known at the end of the walk; listings are in order of place, missing sections first.
    bad.sort_by_key(|defect| (defect.offset, defect.kind != DefectKind::Missing));
    let sections = good.iter().map(|s| {
        let h = s.header;
        format!("section {} kind {} at {} payload {} records {}", h.seq, h.kind.0, s.offset, h.payload_len, h.records)
    });
    let defects = bad.iter().map(|d| {
        let lost = d.sections.map(|(first, last)| format!(" sections {first} to {last}")).unwrap_or_default();
        format!("defect {} at {} length {}{lost}", name_of(d.kind), d.offset, d.length)
    });
    sections.chain(defects).collect()
}

fn name_of(kind: DefectKind) -> String {
    match kind {
        DefectKind::BadFileHeader => "bad-file-header".into(),
        DefectKind::BadSectionHeader => "bad-section-header".into(),
        DefectKind::BadPayload { .. } => "bad-payload".into(),
        DefectKind::Cut { .. } => "cut".into(),
        DefectKind::Missing => "missing".into(),
        DefectKind::Displaced { by } => format!("displaced by {by}"),
        DefectKind::Foreign { .. } => "foreign".into(),
        DefectKind::Repeated => "repeated".into(),
        DefectKind::NoEnd => "no-end".into(),
        DefectKind::Trailing => "trailing".into(),
        DefectKind::CriticalUnknown => "critical-unknown".into(),
        DefectKind::BadRecords => "bad-records".into(),
        DefectKind::BadCompression => "bad-compression".into(),
        DefectKind::OutOfOrder { .. } => "out-of-order".into(),
        other => format!("{other:?}"),
    }
}

#[test]
fn the_compressed_section_of_the_vectors_unpacks() {
    let (good, _) = read(DUMPS[2]);
    let packed = good.iter().find(|s| s.header.flags.contains(Flags::COMPRESSED)).expect("a compressed section");
    let mut scratch = vec![0; packed.unpacked_len()];
    let expected = include_bytes!("../vectors/dumps/packed-and-indexed.unpacked");
    assert_eq!(packed.unpack(&mut scratch), Ok(expected.as_slice()));
    assert_eq!(packed.records().count(), 0, "packed bytes are not records");
}

#[test]
fn fields_and_kinds_of_the_future_are_skipped_and_kept() {
    let (good, bad) = read(DUMPS[1]);
    assert_eq!(bad, []);
    let last = good[good.len() - 2];
    let records: Vec<_> = last.records().map(|r| (r.kind.0, r.decode())).collect();
    let Ok(AnyRecord::ProcessExit(exit)) = records[1].1 else { panic!("{records:?}") };
    assert_eq!(exit.pid, Some(9));
    let Ok(AnyRecord::Unknown(unknown)) = records[2].1 else { panic!("{records:?}") };
    assert_eq!((unknown.kind.0, unknown.body), (199, &[7u8, 7, 7][..]));
}
