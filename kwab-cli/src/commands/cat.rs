//! `kwab cat DUMP|- SECTION [--payload] [--untrusted] [--raw]`
//!
//! Prints the sections of one kind, or the one section with that number: console text and what was not understood as it
//! stood in the log, everything else as JSON lines. A terminal gets control characters
//! escaped, unless `--raw`; a pipe gets the bytes. `--payload` gives the bytes of the dump.
//!
//! Sections whose checksum is wrong are left out and named. With `--untrusted` their records follow the sound ones, all
//! marked: text by `untrusted: ` before it, an object by its member `untrusted`. No other command reads them.

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::format::{AnyRecord, Defect, Records, SectionHeader};
use kwab::model::memory::Payload;
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
    let untrusted = if arguments.untrusted { untrusted(&file, &chosen, &arguments.section) } else { Vec::new() };
    if chosen.is_empty() && untrusted.is_empty() {
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
                Ok(payload) => records(&payload, Trust::Sound, escape, out)?,
                Err(defect) => {
                    damaged = true;
                    say(&about(&arguments.dump, defect));
                }
            }
        }
        for (_, payload) in &untrusted {
            records(payload, Trust::None, escape, out)?;
        }
        Ok(())
    })?;
    for (header, _) in &untrusted {
        let text = format!("the checksum of section {}, {}, is wrong: what it says is marked", header.seq, header.kind);
        say(&about(&arguments.dump, text));
    }
    Ok(ExitCode::from(if damaged || !file.defects.is_empty() { DAMAGED } else { 0 }))
}

fn chosen(file: &DumpFile, wanted: &str) -> Vec<usize> {
    let all = file.sections.iter().enumerate();
    all.filter(|(_, section)| is_wanted(&section.header, wanted)).map(|(index, _)| index).collect()
}

fn is_wanted(header: &SectionHeader, wanted: &str) -> bool {
    let kind = header.kind;
    let named = kind.name().is_some_and(|name| name == wanted) || kind.to_string() == wanted;
    named || wanted.parse::<u32>().is_ok_and(|number| number == header.seq)
}

/// The sections whose checksum is wrong; those of a long dump are only checked when they are read.
fn untrusted(file: &DumpFile, chosen: &[usize], wanted: &str) -> Vec<(SectionHeader, Payload)> {
    let read = chosen.iter().filter_map(|index| file.payload(*index).err());
    let defects: Vec<Defect> = file.defects.iter().copied().chain(read).collect();
    let sections = defects.iter().filter_map(|defect| file.untrusted(defect));
    sections.filter(|(header, _)| is_wanted(header, wanted)).collect()
}

/// Whether the checksum of a section is right.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Sound,
    None,
}

/// Prints records; `escape` says whether text goes to a terminal.
fn records(payload: &[u8], trust: Trust, escape: bool, out: &mut dyn Write) -> io::Result<()> {
    let print = |bytes: &[u8], out: &mut dyn Write| {
        if trust == Trust::None {
            out.write_all(b"untrusted: ")?;
        }
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
                let mut object = json::object(raw);
                if trust == Trust::None {
                    object.insert("untrusted".into(), true.into());
                }
                serde_json::to_writer(plain::JsonWriter(&mut *out), &object)?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(())
}
