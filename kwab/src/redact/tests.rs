//! Proves the table against the schema, and the policies by planted secrets.

mod leaks;
mod planted;
mod secrets;

use kwab_format::record::{SCHEMA, Stamp};
use kwab_format::{FieldSchema, Fields as _, Shape};

use super::table::{Field, Holds, STAMP, TABLE};

#[test]
fn the_table_has_every_kind_and_every_field_of_the_format() {
    let named = |rows: &[Field]| rows.iter().map(|field| (field.number, field.name)).collect::<Vec<_>>();
    let wanted = |fields: &[FieldSchema]| fields.iter().map(|field| (field.number, field.name)).collect::<Vec<_>>();
    let kinds: Vec<_> = TABLE.iter().map(|rows| (rows.kind, rows.name)).collect();
    assert_eq!(kinds, SCHEMA.iter().map(|schema| (schema.kind, schema.name)).collect::<Vec<_>>());
    assert_eq!(named(STAMP), wanted(Stamp::FIELDS));
    for (rows, schema) in TABLE.iter().zip(SCHEMA) {
        assert_eq!(named(rows.fields), wanted(schema.fields), "{}", schema.name);
        for (field, own) in rows.fields.iter().zip(schema.fields) {
            if let (Holds::List(fields), Shape::List { element, fields: schema }) = (field.holds, own.shape) {
                assert_eq!(named(fields), wanted(schema), "{element}");
            }
        }
    }
}

#[test]
fn a_row_says_what_a_field_of_its_shape_can_hold() {
    let fits = |field: &Field, schema: &FieldSchema| match (schema.shape, field.holds) {
        (Shape::Enum { .. } | Shape::Bool, Holds::Named)
        | (Shape::List { .. }, Holds::List(_))
        | (_, Holds::Private)
        | (Shape::Signed, Holds::Count | Holds::Clock | Holds::Word) => true,
        // The id of a register has values without a name on other machines.
        (Shape::Enum { .. }, Holds::Count) => schema.name == "id",
        (Shape::Unsigned(bits), holds) => {
            matches!(holds, Holds::Count)
                || bits == 64 && matches!(holds, Holds::Address | Holds::Entry | Holds::Recorded | Holds::Word)
        }
        (Shape::Bytes, holds) => matches!(
            holds,
            Holds::Known
                | Holds::Symbol
                | Holds::Source
                | Holds::Version
                | Holds::Prose
                | Holds::BuildId
                | Holds::Memory
        ),
        _ => false,
    };
    let all = TABLE.iter().zip(SCHEMA).flat_map(|(rows, schema)| rows.fields.iter().zip(schema.fields));
    for (field, schema) in all.chain(STAMP.iter().zip(Stamp::FIELDS)) {
        assert!(fits(field, schema), "{} holds {:?}", schema.name, field.holds);
        if let (Holds::List(fields), Shape::List { fields: schemas, .. }) = (field.holds, schema.shape) {
            for (field, schema) in fields.iter().zip(schemas) {
                assert!(fits(field, schema), "{} holds {:?}", schema.name, field.holds);
            }
        }
    }
}
