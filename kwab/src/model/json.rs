//! Turns any record into JSON, guided by the format's own description of its fields.
//!
//! Events have the names and members of the `DBG` dialect, so that what is exported can be imported again. Addresses
//! and other 64-bit words are `"0x…"` strings, because JSON numbers lose bits beyond 53; bytes that are not text are
//! hexadecimal strings. A text that is not UTF-8 is shown with replacement characters, and its bytes in `<name>_hex`.

use kwab_format::record::{RecordKind, SCHEMA, Stamp};
use kwab_format::wire::{FieldIter, Fields, Raw, unzigzag};
use kwab_format::{FieldSchema, RawRecord, RecordSchema, Shape};
use serde_json::{Map, Value};

use super::fields::{MOST_ELEMENTS, is_text, split_prefixed};
use crate::text::dialect::EventKind;
use crate::text::lex::{Lexer, Malformed};

/// Fields that hold words rather than counts.
const WORDS: &[&str] = &[
    "addr",
    "vaddr",
    "paddr",
    "ip",
    "sp",
    "entry",
    "fsbase",
    "fault_addr",
    "handler",
    "dst",
    "src",
    "ret",
    "start",
    "end",
    "vma_start",
    "vma_end",
    "huge_base",
    "rsp_before",
    "rsp_after",
    "value",
    "raw",
    "root",
    "low",
    "high",
    "deepest",
    "arg0",
    "arg1",
    "arg2",
    "arg3",
    "arg4",
    "arg5",
    "error_code",
    "kernel_sp",
    "kernel_ip",
    "user_sp",
    "user_ip",
    "wait_object",
    "page_table_root",
    "load_bias",
    "kernel_offset",
    "direct_map",
    "location_ip",
    "lock",
    "canary",
    "pending",
    "blocked",
    "dump_id",
    "crc",
    "expected_crc",
    "actual_crc",
    "prot_word",
];

/// Words only in these records; elsewhere the same names are counts or texts.
const WORDS_OF: &[(&str, &str)] = &[
    ("CanaryCheck", "expected"),
    ("CanaryCheck", "found"),
    ("PageVerifyFail", "expected"),
    ("PageVerifyFail", "actual"),
    ("PageVerifyFail", "file_offset"),
    ("HugePageVerifyFail", "expected"),
    ("HugePageVerifyFail", "actual"),
];

/// The record as an object with its `type`.
pub fn object(record: RawRecord<'_>) -> Map<String, Value> {
    let mut out = Map::new();
    let Some(schema) = SCHEMA.iter().find(|schema| schema.kind == record.kind.0) else {
        out.insert("type".into(), format!("record_{}", record.kind.0).into());
        out.insert("body_hex".into(), hex(record.body).into());
        return out;
    };
    out.insert("type".into(), type_name(record.kind).into());
    members(schema, schema.fields, record.body, &mut out);
    if schema.name == "UnknownEvent" {
        unwrap_unknown(&mut out);
    }
    out
}

/// The name of a record type: that of its event, or the record's own in snake case.
pub fn type_name(kind: RecordKind) -> String {
    let name = kind.name().unwrap_or("unknown");
    let snake = snake_case(name);
    let event = EventKind::ALL.iter().find(|event| event.name() == snake);
    event.map_or(snake, |event| event.name().to_string())
}

/// The description of the records with this type name.
#[must_use]
pub fn schema_named(name: &str) -> Option<&'static RecordSchema> {
    SCHEMA.iter().find(|schema| type_name(RecordKind(schema.kind)) == name)
}

fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            if !out.is_empty() {
                out.push('_');
            }
            out.push(character.to_ascii_lowercase());
        } else {
            out.push(character);
        }
    }
    out
}

/// The members of a body that `fields` describe, then those of the stamp.
fn members(schema: &RecordSchema, fields: &[FieldSchema], body: &[u8], out: &mut Map<String, Value>) {
    let mut iter = FieldIter::new(body);
    let mut args: Vec<Value> = Vec::new();
    while let Ok(Some((number, raw))) = iter.next_field() {
        let own = fields.iter().find(|field| field.number == number);
        let field = own.or_else(|| Stamp::FIELDS.iter().find(|field| field.number == number));
        let Some(field) = field else {
            out.insert(format!("field_{number}"), plain(raw));
            continue;
        };
        match field.name {
            "arg0" | "arg1" | "arg2" | "arg3" | "arg4" | "arg5" => args.push(word(raw)),
            "extra" => extra(raw, out),
            name => insert(schema, name, field.shape, raw, out),
        }
    }
    if !args.is_empty() {
        out.insert("args".into(), args.into());
    }
}

fn insert(schema: &RecordSchema, name: &str, shape: Shape, raw: Raw<'_>, out: &mut Map<String, Value>) {
    let is_word = WORDS.contains(&name) || WORDS_OF.contains(&(schema.name, name));
    let value = match (shape, raw) {
        (Shape::Unsigned(_), Raw::Int(_)) if is_word => word(raw),
        (Shape::Signed, Raw::Int(value)) => unzigzag(value).into(),
        (Shape::Bool, Raw::Int(value)) => (value != 0).into(),
        (Shape::Enum { names, .. }, Raw::Int(value)) => match names.iter().find(|(number, _)| *number == value) {
            Some((_, text)) => (*text).into(),
            None => value.into(),
        },
        (Shape::List { fields, .. }, Raw::Bytes(bytes)) => list(schema, fields, bytes),
        (Shape::Bytes, Raw::Bytes(bytes)) if !is_text(schema.name, name) => hex(bytes).into(),
        (Shape::Bytes, Raw::Bytes(bytes)) => {
            if std::str::from_utf8(bytes).is_err() {
                out.insert(format!("{name}_hex"), hex(bytes).into());
            }
            String::from_utf8_lossy(bytes).into()
        }
        (_, raw) => plain(raw),
    };
    out.insert(name.to_string(), value);
}

/// A list of elements; registers become an object by name, as events have them.
fn list(schema: &RecordSchema, fields: &[FieldSchema], bytes: &[u8]) -> Value {
    let mut elements = Vec::new();
    let mut rest = bytes;
    while let Some((element, after)) = split_prefixed(rest) {
        if elements.len() >= MOST_ELEMENTS {
            let more =
                std::iter::successors(Some(rest), |rest| split_prefixed(rest).map(|(_, after)| after)).count() - 1;
            elements.push(Map::from_iter([("elements_left_out".to_owned(), Value::from(more))]));
            break;
        }
        let mut object = Map::new();
        members(schema, fields, element, &mut object);
        elements.push(object);
        rest = after;
    }
    let is_register = |object: &Map<String, Value>| {
        object.contains_key("value") && (object.contains_key("id") || object.contains_key("name")) && object.len() == 2
    };
    if !elements.is_empty() && elements.iter().all(is_register) {
        let pairs = elements.into_iter().filter_map(|mut object| {
            let name = object.remove("id").or_else(|| object.remove("name"))?;
            let name = name.as_str().map_or_else(|| name.to_string(), str::to_string);
            Some((name, object.remove("value")?))
        });
        return Value::Object(pairs.collect());
    }
    let renamed = elements.into_iter().map(|mut object| {
        if let Some(kind) = object.remove("kind").filter(|_| schema.name == "CrashReport") {
            object.insert("type".into(), kind);
        }
        if let Some(Value::Array(args)) = object.remove("args").filter(|_| schema.name == "CrashReport") {
            for (index, arg) in args.into_iter().enumerate() {
                object.insert(format!("a{index}"), arg);
            }
        }
        Value::Object(object)
    });
    Value::Array(renamed.collect())
}

fn word(raw: Raw<'_>) -> Value {
    match raw {
        Raw::Int(value) => format!("{value:#x}").into(),
        Raw::Bytes(_) => plain(raw),
    }
}

fn plain(raw: Raw<'_>) -> Value {
    match raw {
        Raw::Int(value) => value.into(),
        Raw::Bytes(bytes) => hex(bytes).into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Members that had no field become members again.
fn extra(raw: Raw<'_>, out: &mut Map<String, Value>) {
    let Raw::Bytes(bytes) = raw else { return };
    let object = [b"{", bytes, b"}"].concat();
    match relaxed(&object) {
        Some(Value::Object(members)) => {
            for (name, value) in members {
                out.entry(name).or_insert(value);
            }
        }
        _ => {
            out.insert("extra".into(), String::from_utf8_lossy(bytes).into());
        }
    }
}

/// An event of an unknown type is its own object again.
fn unwrap_unknown(out: &mut Map<String, Value>) {
    let Some(Value::String(json)) = out.get("json").cloned() else { return };
    if let Some(Value::Object(members)) = relaxed(json.as_bytes()) {
        out.remove("json");
        out.remove("type_name");
        for (name, value) in members {
            out.insert(name, value);
        }
    }
}

/// An object of either dialect as JSON; bare hexadecimal numbers become strings.
pub fn relaxed(object: &[u8]) -> Option<Value> {
    let mut scratch = vec![0; object.len()];
    let mut lexer = Lexer::new(object, 0, &mut scratch);
    let value = relaxed_value(&mut lexer, 0).ok()?;
    lexer.skip_space();
    (lexer.at() == object.len()).then_some(value)
}

fn relaxed_value(lexer: &mut Lexer<'_>, depth: usize) -> Result<Value, Malformed> {
    if depth > 32 {
        return Err(Malformed);
    }
    lexer.skip_space();
    match lexer.peek() {
        Some(b'{') => {
            lexer.expect(b'{')?;
            let mut members = Map::new();
            while !lexer.eat_byte(b'}') {
                if !members.is_empty() {
                    lexer.expect(b',')?;
                }
                let name = String::from_utf8_lossy(lexer.string()?).into_owned();
                lexer.expect(b':')?;
                members.insert(name, relaxed_value(lexer, depth + 1)?);
                lexer.skip_space();
            }
            Ok(Value::Object(members))
        }
        Some(b'[') => {
            lexer.expect(b'[')?;
            let mut items = Vec::new();
            while !lexer.eat_byte(b']') {
                if !items.is_empty() {
                    lexer.expect(b',')?;
                }
                items.push(relaxed_value(lexer, depth + 1)?);
                lexer.skip_space();
            }
            Ok(Value::Array(items))
        }
        Some(b'"') => Ok(String::from_utf8_lossy(lexer.string()?).into()),
        _ => {
            let start = lexer.at();
            lexer.skip_value()?;
            let text = String::from_utf8_lossy(lexer.since(start)).into_owned();
            Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_name_leads_to_its_description() {
        for schema in SCHEMA {
            let name = type_name(RecordKind(schema.kind));
            assert_eq!(schema_named(&name).map(|found| found.kind), Some(schema.kind), "{name}");
        }
        assert!(schema_named("no_such_type").is_none());
    }

    #[test]
    fn both_dialects_give_the_same_json() {
        assert_eq!(
            relaxed(br#"{"a":0x1f,"b":[1,{"c":"x"}],"d":-2}"#).map(|value| value.to_string()),
            Some(r#"{"a":"0x1f","b":[1,{"c":"x"}],"d":-2}"#.to_string())
        );
        assert_eq!(relaxed(b"{\"a\":}"), None);
        assert_eq!(relaxed(&[&b"{\"a\":"[..], &b"[".repeat(100_000)].concat()), None);
    }
}
