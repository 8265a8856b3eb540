//! The position of a record in its dump, by which reports cite evidence.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use kwab_format::SectionKind;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

/// The position of a record in a dump: which section, and which record of it. Shown as `events[7].12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordRef {
    /// Sequence number of the section.
    pub section: u32,
    /// Kind of the section.
    pub kind: SectionKind,
    /// Number of the record in it, from 0.
    pub record: u32,
}

impl fmt::Display for RecordRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.name() {
            Some(name) => write!(f, "{name}[{}].{}", self.section, self.record),
            None => write!(f, "kind {}[{}].{}", self.kind.0, self.section, self.record),
        }
    }
}

impl Serialize for RecordRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for RecordRef {
    fn schema_name() -> Cow<'static, str> {
        "RecordRef".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// A record and its position in the dump.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located<T> {
    /// Position of the record in its dump.
    pub at: RecordRef,
    /// The decoded record, or its bytes.
    pub record: T,
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.record
    }
}
