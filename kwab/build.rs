//! Turns the table of builtin dialects, `src/import/reports/dialect/builtin.toml`, into Rust source: reading it as TOML
//! at run time costs 5 million instructions per start.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use toml::{Table, Value};

const TABLE: &str = "src/import/reports/dialect/builtin.toml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={TABLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let table: Table = std::fs::read_to_string(TABLE)?.parse()?;
    let rows = table.get("dialect").and_then(Value::as_array).ok_or("no rows")?;
    let mut source = String::new();
    writeln!(source, "static BUILTIN: [Row; {}] = [", rows.len())?;
    for row in rows {
        write_struct(&mut source, "Row", row)?;
        source.push_str(",\n");
    }
    source.push_str("];\n");
    let folder = std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    std::fs::write(Path::new(&folder).join("builtin.rs"), source)?;
    Ok(())
}

/// A literal of the struct `name`; members that the table leaves out are those of `name::EMPTY`.
fn write_struct(source: &mut String, name: &str, members: &Value) -> Result<(), Box<dyn Error>> {
    let members = members.as_table().ok_or_else(|| format!("expected a table for {name}, got {members}"))?;
    write!(source, "{name} {{ ")?;
    for (member, value) in members {
        write!(source, "{member}: ")?;
        write_value(source, value)?;
        source.push_str(", ");
    }
    write!(source, "..{name}::EMPTY }}")?;
    Ok(())
}

fn write_value(source: &mut String, value: &Value) -> Result<(), Box<dyn Error>> {
    match value {
        Value::String(text) => write!(source, "Cow::Borrowed({text:?})")?,
        Value::Boolean(flag) => write!(source, "{flag}")?,
        Value::Table(_) => write_struct(source, "Begin", value)?,
        Value::Array(values) => {
            source.push_str("Cow::Borrowed(&[");
            for value in values {
                write_value(source, value)?;
                source.push_str(", ");
            }
            source.push_str("])");
        }
        other => return Err(format!("expected a text, a list or a table, got {other}").into()),
    }
    Ok(())
}
