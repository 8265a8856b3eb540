//! `kwab export DUMP|- --to json|jsonl|csv|… [-o FILE|-] [--section KIND,…] [--force]`
//!
//! Writes every record in the order of the log. Events have the names and members of the `DBG` dialect, so that
//! `kwab export --to jsonl` with `DBG ` before each line can be imported again. A dump of any size needs little memory.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::format::{RawRecord, SectionKind};
use kwab::model::{DumpFile, json, line, stream};
use kwab::plain;
use kwab::units::count;
use serde_json::Value;

use super::open_file;
use crate::cli::{Export, Form};
use crate::failure::{DAMAGED, about, say, shown};
use crate::output::Output;

/// The version of the exported form.
const SCHEMA: u32 = 1;
/// The columns of the CSV form.
const COLUMNS: &[&str] = &["line", "seq", "cpu", "ns", "tsc", "pid", "type", "section", "text", "json"];

/// Runs the command.
pub(crate) fn run(arguments: &Export) -> Result<ExitCode> {
    let output = destination(arguments)?;
    for wanted in &arguments.section {
        if !SectionKind::NAMES.iter().any(|(_, name)| name == wanted) {
            let names: Vec<_> = SectionKind::NAMES.iter().map(|(_, name)| *name).collect();
            bail!("unknown kind of section {wanted}; expected one of {}", names.join(", "));
        }
    }
    let file = open_file(&arguments.dump, arguments.which.number)?;
    super::tell_others(&file, &arguments.dump);
    let name = shown(&arguments.dump);
    let mut lost = 0;
    let write = |out: &mut dyn Write| {
        lost = export(&file, &name, arguments, out)?;
        Ok(())
    };
    output.write(write)?;
    let damaged = file.defects.len() + lost;
    if damaged > 0 {
        say(&about(
            &arguments.dump,
            format_args!("{}; what is sound was exported (see kwab check)", count(damaged as u64, "defect", "defects")),
        ));
        return Ok(ExitCode::from(DAMAGED));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the export goes; its inputs are the dump and the files with symbols.
pub(super) fn destination(arguments: &Export) -> Result<Output> {
    let inputs = arguments.symbols.iter().chain([&arguments.dump]).map(PathBuf::as_path);
    Output::of(arguments.output.as_deref(), arguments.force, inputs)
}

/// Writes everything; gives how many sections could not be read.
fn export(file: &DumpFile, name: &str, arguments: &Export, out: &mut dyn Write) -> io::Result<usize> {
    let wanted = |kind: SectionKind| {
        arguments.section.is_empty()
            || kind.name().is_some_and(|name| arguments.section.iter().any(|want| want == name))
    };
    match arguments.to {
        Form::Json => {
            let quoted_name = Value::from(name).to_string();
            write!(out, "{{\"schema\":{SCHEMA},\"file\":{},\"records\":[", plain::json(&quoted_name))?;
            let mut separator = "\n";
            let lost = stream::for_each(file, wanted, |_, raw| {
                out.write_all(separator.as_bytes())?;
                separator = ",\n";
                serde_json::to_writer(plain::JsonWriter(&mut *out), &json::object(raw)).map_err(io::Error::from)
            })?;
            out.write_all(b"\n]}\n")?;
            Ok(lost.len())
        }
        Form::Jsonl => {
            let lost = stream::for_each(file, wanted, |_, raw| {
                serde_json::to_writer(plain::JsonWriter(&mut *out), &json::object(raw))?;
                out.write_all(b"\n")
            })?;
            Ok(lost.len())
        }
        Form::Csv => {
            writeln!(out, "{}", COLUMNS.join(","))?;
            let lost = stream::for_each(file, wanted, |kind, raw| csv_row(kind, raw, out))?;
            Ok(lost.len())
        }
        Form::ElfCore | Form::Minidump | Form::ChromeTrace | Form::Perfetto | Form::Folded | Form::Parquet => Ok(0),
    }
}

fn csv_row(kind: SectionKind, raw: RawRecord<'_>, out: &mut dyn Write) -> io::Result<()> {
    let object = json::object(raw);
    let text = match raw.decode() {
        // The whole of a long record stands in the last column.
        Ok(record) => line::in_words(&record, raw),
        Err(error) => error.to_string(),
    };
    let section = kind.to_string();
    for (index, column) in COLUMNS.iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        match *column {
            "section" => quoted(&plain::line(&section), out)?,
            "text" => quoted(&plain::line(&text), out)?,
            "json" => {
                out.write_all(b"\"")?;
                serde_json::to_writer(plain::JsonWriter(Doubled(&mut *out)), &object)?;
                out.write_all(b"\"")?;
            }
            name => match object.get(name) {
                Some(Value::String(text)) => quoted(&plain::line(text), out)?,
                Some(value) => write!(out, "{value}")?,
                None => {}
            },
        }
    }
    out.write_all(b"\n")
}

/// Writes the inside of a quoted field: each quotation mark twice.
struct Doubled<'o>(&'o mut dyn Write);

impl Write for Doubled<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pieces = bytes.split(|byte| *byte == b'"');
        self.0.write_all(pieces.next().unwrap_or_default())?;
        for piece in pieces {
            self.0.write_all(b"\"\"")?;
            self.0.write_all(piece)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A field as RFC 4180 wants it.
fn quoted(text: &str, out: &mut dyn Write) -> io::Result<()> {
    if text.contains(['"', ',', '\n', '\r']) {
        out.write_all(b"\"")?;
        Doubled(&mut *out).write_all(text.as_bytes())?;
        out.write_all(b"\"")
    } else {
        out.write_all(text.as_bytes())
    }
}
