//! Writes kwab dumps by the letter of `kwab-format/FORMAT.md`, sharing no type and no line with the crate of that name.
//!
//! It is the second opinion: plain vectors, one rule after the other, its own CRC32. Where it and the crate write
//! different bytes, one of them or the document is wrong. It also makes the dumps that a sound writer never makes.
//!
//! [`Dump`] collects [`Record`]s of [`Field`]s into sections; [`vectors`] reads the test vectors' text form; [`armour`]
//! writes the lines for a console.

pub mod armour;
mod crc;
mod fields;
pub mod vectors;

pub use crc::crc32;
pub use fields::{Field, Record, Value};

/// Section kind of the index.
pub const INDEX: u16 = 126;
/// Section kind of the end.
pub const END: u16 = 127;

/// A dump in the making.
#[derive(Clone, Debug)]
pub struct Dump {
    id: u64,
    bytes: Vec<u8>,
    sections: Vec<Written>,
}

/// What index and end section say of a section.
#[derive(Clone, Copy, Debug)]
struct Written {
    kind: u16,
    position: u64,
    length: u64,
    records: u64,
}

impl Dump {
    /// FORMAT.md 2.1: the file header.
    #[must_use]
    pub fn new(id: u64, boot: [u8; 16]) -> Self {
        let mut bytes = vec![0x89, 0x4B, 0x57, 0x41, 0x42, 0x0D, 0x0A, 0x1A];
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(id.to_le_bytes());
        bytes.extend(boot);
        bytes.extend([0; 4]);
        let crc = crc32(&bytes);
        bytes.extend(crc.to_le_bytes());
        Self { id, bytes, sections: Vec::new() }
    }

    /// FORMAT.md 2.2: a section of these records.
    #[must_use]
    pub fn section(self, kind: u16, records: &[Record]) -> Self {
        let payload: Vec<u8> = records.iter().flat_map(Record::encode).collect();
        let flags = if kind == END { 1 } else { 0 };
        self.payload(kind, flags, records.len(), &payload)
    }

    /// A section with any payload and flags.
    #[must_use]
    pub fn payload(mut self, kind: u16, flags: u8, records: usize, payload: &[u8]) -> Self {
        let position = self.bytes.len() as u64;
        let mut section = vec![0xF5, 0x4B, 0x57, 0x53];
        section.extend(kind.to_le_bytes());
        section.extend([0, flags]);
        section.extend((payload.len() as u32).to_le_bytes());
        section.extend((self.sections.len() as u32).to_le_bytes());
        section.extend(self.id.to_le_bytes());
        section.extend(position.to_le_bytes());
        section.extend((records as u32).to_le_bytes());
        let crc = crc32(&section);
        section.extend(crc.to_le_bytes());
        section.extend_from_slice(payload);
        let crc = crc32(&section[36..]);
        section.extend(crc.to_le_bytes());
        self.bytes.extend(section);
        self.sections.push(Written { kind, position, length: payload.len() as u64, records: records as u64 });
        self
    }

    /// FORMAT.md 2.7: an index of all sections so far, and the end section.
    #[must_use]
    pub fn finish_with_index(self) -> Vec<u8> {
        let position = self.bytes.len() as u64;
        let entry = |(seq, s): (usize, &Written)| {
            let fields = [u64::from(s.kind), seq as u64, s.position, s.length, s.records];
            Record::new(
                250,
                fields.iter().zip(1..).map(|(v, number)| Field::new(number, Value::Unsigned(*v))).collect(),
            )
        };
        let entries: Vec<_> = self.sections.iter().enumerate().map(entry).collect();
        self.section(INDEX, &entries).end(Some(position))
    }

    /// FORMAT.md 2.7: the end section of a complete dump.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.end(None)
    }

    /// The bytes so far, without an end section.
    #[must_use]
    pub fn cut(self) -> Vec<u8> {
        self.bytes
    }

    fn end(self, index: Option<u64>) -> Vec<u8> {
        let mut kinds: Vec<u16> = Vec::new();
        for section in &self.sections {
            if !kinds.contains(&section.kind) {
                kinds.push(section.kind);
            }
        }
        let number = |n, v| Field::new(n, Value::Unsigned(v));
        let total = |kind: &u16| {
            let of_kind = || self.sections.iter().filter(|s| s.kind == *kind);
            let (records, bytes) = (of_kind().map(|s| s.records).sum(), of_kind().map(|s| s.length).sum());
            let fields = vec![
                number(1, u64::from(*kind)),
                number(2, of_kind().count() as u64),
                number(3, records),
                number(4, bytes),
            ];
            Record::new(251, fields)
        };
        let mut records: Vec<_> = kinds.iter().map(total).collect();
        let mut end = vec![
            number(1, self.sections.len() as u64),
            number(2, self.sections.iter().map(|s| s.records).sum()),
            number(3, self.bytes.len() as u64),
            Field::new(4, Value::Bool(true)),
        ];
        if let Some(position) = index {
            end.extend([number(5, position), number(6, 0)]);
        }
        records.push(Record::new(253, end));
        self.section(END, &records).bytes
    }
}
