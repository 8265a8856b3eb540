//! `kwab cat DUMP|- SECTION [--payload]`
//!
//! Prints the sections of one kind, or the one section with that number: console text and what was not understood as it
//! stood in the log, everything else as JSON lines. `--payload` gives the bytes of the dump.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::format::{AnyRecord, Records, SectionKind};
use kwab::model::{DumpFile, json};

use super::open_file;
use crate::cli::Cat;
use crate::failure::{DAMAGED, shown};
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
        bail!("{}: there is no section {}; it holds {held}", shown(&arguments.dump), arguments.section);
    }
    let mut damaged = false;
    output::to_stdout(|out| {
        for index in chosen {
            match file.payload(index) {
                Ok(payload) if arguments.payload => out.write_all(&payload)?,
                Ok(payload) => records(&payload, out)?,
                Err(defect) => {
                    damaged = true;
                    let _ = writeln!(io::stderr(), "kwab: {}: {defect}", shown(&arguments.dump));
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

fn records(payload: &[u8], out: &mut dyn Write) -> io::Result<()> {
    for raw in Records::new(payload) {
        match raw.decode() {
            Ok(AnyRecord::Text(text)) => {
                out.write_all(text.bytes.unwrap_or_default())?;
                if text.continues != Some(true) {
                    out.write_all(b"\n")?;
                }
            }
            Ok(AnyRecord::LogChunk(chunk)) => out.write_all(chunk.bytes.unwrap_or_default())?,
            _ => {
                serde_json::to_writer(&mut *out, &json::object(raw))?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(())
}
