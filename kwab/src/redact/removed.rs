//! Counts what a redaction removes, by field.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::table::{self, Field, Holds};

/// A field of a kind of record, or of the elements of one of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    kind: u8,
    field: Option<u8>,
    inner: Option<u8>,
    in_element: bool,
}

impl Place {
    /// A record as a whole.
    pub(super) const fn kind(kind: u8) -> Self {
        Self { kind, field: None, inner: None, in_element: false }
    }

    /// A field of it.
    pub(super) const fn at(self, number: u8) -> Self {
        if self.in_element { self.of(number) } else { Self { field: Some(number), ..self } }
    }

    /// A field of the elements of this list.
    pub(super) const fn of(self, number: u8) -> Self {
        Self { inner: Some(number), ..self }
    }

    /// The elements of this list: what comes is a field of theirs.
    pub(super) const fn element(self) -> Self {
        Self { in_element: true, ..self }
    }

    fn key(self) -> Self {
        Self { in_element: false, ..self }
    }

    fn name(self) -> String {
        let Some(rows) = table::rows(self.kind) else { return format!("kind {}", self.kind) };
        let Some(field) = self.field else { return rows.name.to_owned() };
        let found = |fields: &'static [Field], number: u8| fields.iter().find(|known| known.number == number);
        let own = found(rows.fields, field).or_else(|| found(table::STAMP, field));
        let Some(own) = own else { return format!("{}.field {field}", rows.name) };
        match (self.inner, own.holds) {
            (Some(inner), Holds::List(fields)) => {
                let inner =
                    found(fields, inner).map_or_else(|| format!("field {inner}"), |known| known.name.to_owned());
                format!("{}.{}.{inner}", rows.name, own.name)
            }
            _ => format!("{}.{}", rows.name, own.name),
        }
    }
}

/// What was removed of one field.
#[derive(Debug, Clone, Serialize, JsonSchema, PartialEq, Eq)]
pub struct RemovedField {
    /// The record and its field, as `Task.cmdline`; `kind 200` is a record that this version does not know.
    pub field: String,
    /// Values that were removed or shortened.
    pub values: u64,
    /// Bytes of them; a number counts for eight.
    pub bytes: u64,
}

/// What was removed of a dump.
#[derive(Debug, Default)]
pub(super) struct Removed(BTreeMap<Place, (u64, u64)>);

impl Removed {
    /// One more value with so many bytes.
    pub(super) fn add(&mut self, place: Place, bytes: usize) {
        let entry = self.0.entry(place.key()).or_default();
        entry.0 += 1;
        entry.1 = entry.1.saturating_add(bytes as u64);
    }

    /// All fields, in the order of the format.
    pub(super) fn fields(&self) -> Vec<RemovedField> {
        let row = |(place, (values, bytes)): (&Place, &(u64, u64))| RemovedField {
            field: place.name(),
            values: *values,
            bytes: *bytes,
        };
        self.0.iter().map(row).collect()
    }
}
