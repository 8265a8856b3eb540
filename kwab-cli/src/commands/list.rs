//! `kwab list PATH… [--filter TERMS] [--sort ORDER] [--quick] [--json] [--wide]`
//!
//! A catalogue of dumps: what triage concludes, how sure it is, where, who, when, damage; dumps of the same bug
//! together, the most frequent first. Directories are searched for files that end in `.kwab`.
//! Status 0: all that is listed is sound; 3: some of it is damaged or not a dump; 2: a path that was named cannot be
//! read; the others are listed all the same.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use kwab::model::{Depth, Dump, DumpFile, DumpsOf};
use kwab::report::catalogue::{Catalogue, CatalogueEntry, FIELDS, Order, entry, judge, unreadable};
use kwab::report::filter::Filter;

use crate::cli::{Color, List, Sort};
use crate::failure::{DAMAGED, FAILED, say, shown};
use crate::output::{self, Style};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &List, color: Color) -> Result<ExitCode> {
    let filter = Filter::parse(arguments.filter.as_deref().unwrap_or_default(), FIELDS)?;
    let (mut entries, mut readable): (Vec<CatalogueEntry>, bool) = (Vec::new(), true);
    for path in &arguments.paths {
        if path.is_dir() {
            for found in dumps_in(path) {
                read(&found, arguments.quick, &mut entries);
            }
            continue;
        }
        // A file that was named must be a dump; one that was found may be anything.
        for dump in super::open_all(path) {
            match dump {
                Ok(file) => entries.push(entry_of(file, arguments.quick, &shown(path))),
                Err(error) => {
                    say(&error);
                    readable = false;
                }
            }
        }
    }
    entries.retain(|entry| filter.holds(entry));
    let sound = entries.iter().all(|entry| entry.sound);
    let catalogue = Catalogue::of(entries, order(arguments.sort));
    if arguments.json {
        output::json(&catalogue)?;
    } else {
        let text = render::tables::list(&catalogue, Style::of_stdout(color, arguments.wide));
        output::text(&text)?;
    }
    Ok(ExitCode::from(match (readable, sound) {
        (false, _) => FAILED,
        (true, false) => DAMAGED,
        (true, true) => 0,
    }))
}

const fn order(sort: Sort) -> Order {
    match sort {
        Sort::Count => Order::Count,
        Sort::Score => Order::Score,
        Sort::First => Order::First,
        Sort::Last => Order::Last,
        Sort::Finding => Order::Finding,
        Sort::Place => Order::Place,
        Sort::Process => Order::Process,
    }
}

/// What a dump is about: what it says of itself, and unless it has to be quick what triage concludes.
fn entry_of(file: DumpFile, quick: bool, name: &str) -> CatalogueEntry {
    if quick {
        return entry(&Dump::load(file, Depth::Catalogue), name);
    }
    judge(&Dump::load(file, Depth::Rules), name)
}

/// What each dump in a directory is about.
pub(super) fn entries_of(folder: &Path) -> Vec<CatalogueEntry> {
    let mut entries = Vec::new();
    dumps_in(folder).iter().for_each(|found| read(found, false, &mut entries));
    entries
}

fn dumps_in(folder: &Path) -> Vec<PathBuf> {
    files_in(folder, &["kwab"])
}

/// The files in a directory whose names end so, in order.
pub(super) fn files_in(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let files = all.filter(|found| found.file_type().is_file()).map(walkdir::DirEntry::into_path);
    files.filter(|path| path.extension().is_some_and(|end| ends.iter().any(|wanted| end == *wanted))).collect()
}

/// The entries of all dumps of a file that was found.
fn read(path: &Path, quick: bool, entries: &mut Vec<CatalogueEntry>) {
    let name = shown(path);
    match DumpsOf::open(path) {
        Ok(dumps) => entries.extend(dumps.map(|dump| match dump {
            Ok(file) => entry_of(file, quick, &name),
            Err(error) => unreadable(&name, &error.to_string()),
        })),
        Err(error) => entries.push(unreadable(&name, &error.to_string())),
    }
}
