//! `kwab list PATH… [--filter TERMS] [--json] [--wide]`
//!
//! A catalogue of dumps: time, kind, cause, place, signature, completeness; dumps of the same crash together, the most
//! frequent first. Directories are searched for files that end in `.kwab`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use kwab::model::{Depth, Dump, DumpFile};
use kwab::report::catalogue::{Catalogue, Entry, FIELDS, entry, unreadable};
use kwab::report::filter::Filter;

use crate::cli::{Color, List};
use crate::failure::{about, system};
use crate::output::{self, Style};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &List, color: Color) -> Result<ExitCode> {
    let filter = Filter::parse(arguments.filter.as_deref().unwrap_or_default(), FIELDS)?;
    let mut entries: Vec<Entry> = Vec::new();
    for path in &arguments.paths {
        let meta = std::fs::metadata(path).map_err(|error| about(path, system(&error)))?;
        if meta.is_dir() {
            for found in dumps_in(path) {
                read(&found, &mut entries);
            }
        } else {
            // A file that was named must be a dump; one that was found may be anything.
            let file = DumpFile::open(path).map_err(|error| about(path, error))?;
            read_all(file, path, &mut entries);
        }
    }
    entries.retain(|entry| filter.holds(entry));
    let catalogue = Catalogue::of(entries);
    if arguments.json {
        output::json(&catalogue)?;
    } else {
        let text = render::tables::list(&catalogue, Style::of_stdout(color, arguments.wide));
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn dumps_in(folder: &std::path::Path) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let dumps = all.filter(|found| found.file_type().is_file());
    dumps.map(walkdir::DirEntry::into_path).filter(|path| path.extension().is_some_and(|end| end == "kwab")).collect()
}

fn read(path: &std::path::Path, entries: &mut Vec<Entry>) {
    match DumpFile::open(path) {
        Ok(file) => read_all(file, path, entries),
        Err(error) => entries.push(unreadable(&path.display().to_string(), &error.to_string())),
    }
}

/// The entries of all dumps in a file of which the first is open.
fn read_all(first: DumpFile, path: &std::path::Path, entries: &mut Vec<Entry>) {
    let name = path.display().to_string();
    let dumps = first.dumps;
    entries.push(entry(&Dump::load(first, Depth::Catalogue), &name));
    for number in 2..=dumps {
        let Ok(file) = DumpFile::open_number(path, number) else { continue };
        entries.push(entry(&Dump::load(file, Depth::Catalogue), &name));
    }
}
