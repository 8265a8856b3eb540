//! Makes a sound dump whose every string is hostile to a terminal.

use kwab::format::record::SCHEMA;
use kwab::format::wire::{Encoder, zigzag};
use kwab::format::{BootId, DumpId, FieldSchema, FileHeader, RawRecord, RecordKind, SectionKind, Shape};
use kwab::import::emit::DumpWriter;

/// Sequences that set titles and colours, reverse text, hide it, end lines, and are no text at all.
const HOSTILE: &[u8] =
    b"\x1b]0;owned\x07\x1b[1;31mA\xc2\x9b1mB\x9b2J\r\tC\0\x7f\xe2\x80\xaeD\xe2\x80\x8b\xe2\x80\xa8\xe2\x81\xa6\
    \xe2\x80\x8f\
    \xff\xfeE\xef\xbb\xbf\xf3\xa0\x81\x81evil\nkwab: all is well\n";

/// Encodes a value for every field: `text`, a small number, one of the named values.
fn encode(fields: &[FieldSchema], text: &[u8], variant: usize, out: &mut Encoder<'_>) {
    for field in fields {
        match field.shape {
            Shape::Bytes => out.bytes(field.number, text),
            Shape::Unsigned(_) => out.int(field.number, 3 + variant as u64),
            Shape::Signed => out.int(field.number, zigzag(3)),
            Shape::Bool => out.int(field.number, 1),
            Shape::Enum { names, .. } => out.int(field.number, names[variant % names.len()].0),
            Shape::List { fields, .. } => {
                out.nested(field.number, |out| out.prefixed(|out| encode(fields, text, variant, out)));
            }
        }
    }
}

/// A sound dump that holds every kind of record in every section, each string hostile to a terminal.
#[allow(dead_code, reason = "the browser is attacked with other texts")]
pub(crate) fn hostile_dump(variant: usize) -> Vec<u8> {
    dump_of(HOSTILE, variant)
}

/// The same with another text for every string.
pub(crate) fn dump_of(text: &[u8], variant: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = DumpWriter::new(&mut bytes, FileHeader::new(DumpId(variant as u64), BootId([1; 16])));
    for (number, _) in SectionKind::NAMES.iter().filter(|(number, _)| *number < 126) {
        for schema in SCHEMA.iter().filter(|schema| schema.kind < 250) {
            let mut body = vec![0; 64 << 10];
            let mut encoder = Encoder::new(&mut body, 0);
            encode(schema.fields, text, variant, &mut encoder);
            let end = encoder.position().expect("it fits");
            writer.put_raw(SectionKind(*number), RawRecord { kind: RecordKind(schema.kind), body: &body[..end] });
        }
    }
    writer.finish().expect("a vector takes everything");
    bytes
}
