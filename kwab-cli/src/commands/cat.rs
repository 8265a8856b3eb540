//! `kwab cat DUMP|- SECTION [--payload] [--raw]`
//!
//! Prints the sections of one kind, or the one section with that number: console text and what was not understood as it
//! stood in the log, everything else as JSON lines. A terminal gets control characters
//! escaped, unless `--raw`; a pipe gets the bytes. `--payload` gives the bytes of the dump.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::format::{AnyRecord, Records, SectionKind};
use kwab::model::{DumpFile, json};
use kwab::plain;

use super::open_file;
use crate::cli::Cat;
use crate::failure::{DAMAGED, about, say, shown};
use crate::output;

/// Runs the command.
pub(crate) fn run(arguments: &Cat) -> Result<ExitCode> {
    let file = open_file(&arguments.dump, arguments.which.number)?;
    super::tell_others(&file, &arguments.dump);
    let chosen = chosen(&file, &arguments.section);
    if chosen.is_empty() {
        let mut kinds: Vec<String> = file.sections.iter().map(|section| section.header.kind.to_string()).collect();
        kinds.sort();
        kinds.dedup();
        let held = if kinds.is_empty() { "no sound section".to_string() } else { kinds.join(", ") };
        bail!("{}: section {} does not exist; the dump holds {held}", shown(&arguments.dump), arguments.section);
    }
    let mut damaged = false;
    let escape = !arguments.raw && io::stdout().is_terminal();
    if arguments.payload && escape {
        bail!("stdout: is a terminal, and a payload is not text; redirect it, or print it with --raw");
    }
    output::to_stdout(|out| {
        for index in chosen {
            match file.payload(index) {
                Ok(payload) if arguments.payload => out.write_all(&payload)?,
                Ok(payload) => records(&payload, escape, out)?,
                Err(defect) => {
                    damaged = true;
                    say(&about(&arguments.dump, defect));
                }
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::from(if damaged || !file.defects.is_empty() { DAMAGED } else { 0 }))
}

fn chosen(file: &DumpFile, wanted: &str) -> Vec<usize> {
    let number = wanted.parse::<u32>().ok();
    let matches = |kind: SectionKind| kind.name().is_some_and(|name| name == wanted) || kind.to_string() == wanted;
    let all = file.sections.iter().enumerate();
    all.filter(|(_, section)| number == Some(section.header.seq) || matches(section.header.kind))
        .map(|(index, _)| index)
        .collect()
}

/// Prints records; `escape` says whether text goes to a terminal.
fn records(payload: &[u8], escape: bool, out: &mut dyn Write) -> io::Result<()> {
    let print = |bytes: &[u8], out: &mut dyn Write| {
        if escape { out.write_all(plain::page_of_bytes(bytes).as_bytes()) } else { out.write_all(bytes) }
    };
    for raw in Records::new(payload) {
        match raw.decode() {
            Ok(AnyRecord::Text(record)) => {
                print(record.bytes.unwrap_or_default(), out)?;
                if record.continues != Some(true) {
                    out.write_all(b"\n")?;
                }
            }
            Ok(AnyRecord::LogChunk(chunk)) => print(chunk.bytes.unwrap_or_default(), out)?,
            _ => {
                serde_json::to_writer(plain::JsonWriter(&mut *out), &json::object(raw))?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(())
}
