//! Looks which dumps there are, and reads what each says about itself.

use std::path::{Path, PathBuf};

use kwab::model::{Depth, Dump, DumpFile, DumpsOf, OpenError};
use kwab::report::catalogue::{CatalogueEntry, entry, judge, unreadable};

use crate::changes::MOST_WATCHED;

use super::{Found, Generations, Job, Message};

/// Files told at once, so that the first are seen while the rest is looked for; the first time fewer.
const AT_ONCE: usize = 512;
const AT_FIRST: usize = 48;

/// Goes through files and directories.
pub(super) fn scan(generation: u64, paths: &[PathBuf], current: &Generations, send: &mut dyn FnMut(Message)) {
    let mut dumps = Vec::new();
    let mut logs = Vec::new();
    let mut folders = Vec::new();
    let mut most = AT_FIRST;
    for path in paths {
        for found in walkdir::WalkDir::new(path).sort_by_file_name().into_iter().flatten() {
            // What was named may be a link to a directory.
            let is_folder = found.file_type().is_dir() || (found.depth() == 0 && found.path().is_dir());
            if is_folder && folders.len() <= MOST_WATCHED {
                folders.push(found.path().to_path_buf());
            }
            if !found.file_type().is_file() && found.depth() > 0 {
                continue;
            }
            let end = found.path().extension().and_then(|end| end.to_str());
            // A file that was named is looked at whatever its name is.
            if end == Some("kwab") || (found.depth() == 0 && found.file_type().is_file()) {
                let Ok(meta) = found.metadata() else { continue };
                dumps.push(Found { path: found.into_path(), len: meta.len(), modified: meta.modified().ok() });
            } else if end == Some("log") {
                logs.push(found.into_path());
            }
            if dumps.len() >= most {
                most = AT_ONCE;
                if !current.is_catalogue(generation) {
                    return;
                }
                send(Message::Found { generation, dumps: std::mem::take(&mut dumps), logs: Vec::new(), done: false });
            }
        }
    }
    send(Message::Folders { generation, folders });
    send(Message::Found { generation, dumps, logs, done: true });
}

/// Reads what dumps say about themselves; what follows from it is the next job.
pub(super) fn read(generation: u64, files: Vec<PathBuf>, current: &Generations, send: &mut dyn FnMut(Message)) -> Job {
    let quick = |file: DumpFile, name: &str| entry(&Dump::load(file, Depth::Catalogue), name);
    tell(generation, &files, false, quick, current, send);
    Job::Judge { generation, files }
}

/// Reads the dumps whole, and says what triage concludes from each.
pub(super) fn judged(generation: u64, files: &[PathBuf], current: &Generations, send: &mut dyn FnMut(Message)) {
    let whole = |file: DumpFile, name: &str| judge(&Dump::load(file, Depth::Rules), name);
    tell(generation, files, true, whole, current, send);
}

fn tell(
    generation: u64,
    files: &[PathBuf],
    judged: bool,
    said: fn(DumpFile, &str) -> CatalogueEntry,
    current: &Generations,
    send: &mut dyn FnMut(Message),
) {
    let mut entries = Vec::new();
    for file in files {
        if !current.is_catalogue(generation) {
            return;
        }
        entries.push((file.clone(), entries_of(file, said)));
    }
    send(Message::Entries { generation, entries, judged });
}

/// What `said` makes of the dumps of a file; damage and files that are not dumps are entries too.
fn entries_of(path: &Path, said: fn(DumpFile, &str) -> CatalogueEntry) -> Vec<CatalogueEntry> {
    let name = path.display().to_string();
    let told = |dump: Result<DumpFile, OpenError>| match dump {
        Ok(file) => said(file, &name),
        Err(error) => unreadable(&name, &error.to_string()),
    };
    match DumpsOf::open(path) {
        Ok(dumps) => dumps.map(told).collect(),
        Err(error) => vec![told(Err(error))],
    }
}
