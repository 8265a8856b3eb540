//! `kwab list PATH… [--filter TERMS] [--sort ORDER] [--quick] [--index FILE] [--json] [--wide]`
//!
//! A catalogue of dumps: what triage concludes, how sure it is, where, who, when, damage; dumps of the same bug
//! together, the most frequent first. Directories are searched for files that end in `.kwab`; one that `kwab index`
//! has indexed is answered from its index, and only what differs from that is read.
//! Status 0: all that is listed is sound; 3: some of it is damaged or not a dump; 2: a path that was named cannot be
//! read; the others are listed all the same.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use kwab::report::catalogue::{Catalogue, CatalogueEntry, FIELDS, Order};
use kwab::report::filter::Filter;

use crate::catalogue::{self, row};
use crate::cli::{Color, List, Sort};
use crate::failure::{DAMAGED, FAILED, say, shown};
use crate::inputs;
use crate::output::{self, Style};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &List, color: Color) -> Result<ExitCode> {
    let filter = Filter::parse(arguments.filter.as_deref().unwrap_or_default(), FIELDS)?;
    let (mut entries, mut readable): (Vec<CatalogueEntry>, bool) = (Vec::new(), true);
    for path in &arguments.paths {
        if inputs::is_dir(path) {
            directory(path, arguments, &mut entries);
            continue;
        }
        // A file that was named must be a dump; one that was found may be anything.
        for dump in super::open_all(path) {
            match dump {
                Ok(file) => entries.push(row::of_dump(file, arguments.quick, &shown(path), 0).entry),
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
    output::beside(&catalogue)?;
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

/// What each dump in a directory is about.
pub(super) fn entries_of(folder: &Path) -> Vec<CatalogueEntry> {
    files_in(folder, &["kwab"]).iter().flat_map(|found| entries_in(found, false)).collect()
}

/// The files in a directory whose names end so, in order.
pub(super) fn files_in(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let is_wanted = |path: &PathBuf| path.extension().is_some_and(|end| ends.iter().any(|wanted| end == *wanted));
    if let Some(files) = inputs::confined_files(folder) {
        return files.into_iter().map(|(path, _)| path).filter(is_wanted).collect();
    }
    let all = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let files = all.filter(|found| found.file_type().is_file()).map(walkdir::DirEntry::into_path);
    files.filter(is_wanted).collect()
}

/// The entries of all dumps of a file that was found.
fn entries_in(path: &Path, quick: bool) -> impl Iterator<Item = CatalogueEntry> + use<> {
    row::of_file(path, quick, 0).into_iter().map(|row| row.entry)
}

/// The entries of a directory: of its index where that is up to date. An index that cannot be read costs only time.
fn directory(folder: &Path, arguments: &List, entries: &mut Vec<CatalogueEntry>) {
    // An index lies in the folder that it describes: a server takes nothing from it.
    if arguments.quick || inputs::is_confined() {
        let quick = arguments.quick;
        entries.extend(files_in(folder, &["kwab"]).iter().flat_map(|found| entries_in(found, quick)));
        return;
    }
    let listing = catalogue::read(folder, arguments.index.as_deref()).unwrap_or_else(|error| {
        say(&error.into());
        catalogue::read_all(folder)
    });
    if let Some(stale @ 1..) = listing.stale {
        let remark = format!("{}: {stale} files differ from the index; kwab index updates it", shown(folder));
        say(&anyhow::anyhow!(remark));
    }
    entries.extend(listing.rows.into_iter().map(|row| row.entry));
}
