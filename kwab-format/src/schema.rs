//! Describes records as data: the fields of each kind with their numbers, names and shapes.
//!
//! The tables in `record` make these descriptions together with the code, so that a field is listed exactly once. A
//! test compares `FORMAT.md` and `RECORDS.md` with them.

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// An unsigned integer of at most this many bits.
    Unsigned(u32),
    /// A zigzag-coded signed integer.
    Signed,
    /// 0 or 1.
    Bool,
    /// Bytes; text is whatever the source wrote, not necessarily UTF-8.
    Bytes,
    /// An unsigned integer of at most `bits` bits with named values; unknown values are kept.
    Enum {
        /// Width of the widest value.
        bits: u32,
        /// Name of the enumeration.
        name: &'static str,
        /// The values that have a name, in ascending order.
        names: &'static [(u64, &'static str)],
    },
    /// Elements, each a set of fields.
    List {
        /// Name of the element.
        element: &'static str,
        /// Fields of one element, in ascending order of number.
        fields: &'static [FieldSchema],
    },
}

/// The shape as the documents write it.
impl core::fmt::Display for Shape {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unsigned(bits) => write!(f, "u{bits}"),
            Self::Signed => f.write_str("i64"),
            Self::Bool => f.write_str("bool"),
            Self::Bytes => f.write_str("bytes"),
            Self::Enum { bits, name, .. } => write!(f, "u{bits} {name}"),
            Self::List { element, .. } => write!(f, "list of {element}"),
        }
    }
}

/// One field of a record or list element.
#[derive(Clone, Copy, Debug)]
pub struct FieldSchema {
    /// The number in the key.
    pub number: u8,
    /// The name in the struct and in documents.
    pub name: &'static str,
    /// What it holds.
    pub shape: Shape,
}

/// One kind of record.
#[derive(Clone, Copy, Debug)]
pub struct RecordSchema {
    /// The number in the record header.
    pub kind: u8,
    /// The name of the struct.
    pub name: &'static str,
    /// Its own fields, then the stamp's.
    pub fields: &'static [FieldSchema],
}
