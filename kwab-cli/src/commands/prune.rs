//! `kwab prune DIR [--keep N] [--max-size SIZE] [--yes] [--index FILE] [--json]`
//!
//! Removes dumps of which a directory has more than it needs; without `--yes` it only says which. `--keep` is how many
//! of each signature stay: the first, and the newest of the others; where triage finds several bugs behind a
//! signature, of each of them. `--max-size` then takes the oldest until the rest is as small. The first and the last
//! dump always stay, and so do files that are not readable dumps.
//! The index is brought up to date before and after; on a full disk, which has no room for that, the dumps are read
//! without it first. A file is removed only if it is what was indexed, and never through a link.
//! Status 0: done, or said what would be; 3: a file could not be removed, or what has to stay is larger than
//! `--max-size`; 2: the directory or the index cannot be used.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::units::{count, memory};
use schemars::JsonSchema;
use serde::ser::{Error as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

use crate::catalogue::retention::{Folder, Plan, Rule, plan};
use crate::catalogue::store::{Leaving, Store, StoreError, Total};
use crate::catalogue::{index_of, read_all, refresh, scan};
use crate::failure::{DAMAGED, about, about_folder, say, shown, system};
use crate::fleet::Prune;
use crate::output;
use crate::since::day_of;

/// The version of [`Pruned`]'s JSON form.
const SCHEMA: u32 = 1;
/// Files that are named unless all are asked for.
const NAMED: usize = 20;

/// What was removed, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pruned<'p> {
    /// Version of this form.
    pub schema: u32,
    /// Whether files were removed; `false` when `--yes` was not given.
    pub removed: bool,
    /// Files with dumps in the directory.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
    /// Bytes of those that stay.
    pub staying_bytes: u64,
    /// What goes, the oldest first.
    #[schemars(with = "Vec<PrunedFile>")]
    pub leaving: PrunedFiles<'p>,
    /// What should have gone and could not.
    pub failed: Vec<PruneFailure>,
}

/// The files that go, read one after the other.
#[derive(Debug)]
pub(crate) struct PrunedFiles<'p> {
    plan: &'p Plan,
    folder: &'p Path,
}

impl PrunedFiles<'_> {
    fn each(&self) -> impl Iterator<Item = Result<PrunedFile, StoreError>> {
        self.plan.leaving().map(|one| {
            let Leaving { file, signatures, happened_ns, .. } = one?;
            let path = shown(&scan::path_of(self.folder, &file.name));
            Ok(PrunedFile { file: path, bytes: file.stamp.bytes, signatures, happened_ns })
        })
    }
}

impl Serialize for PrunedFiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_seq(None)?;
        for one in self.each() {
            all.serialize_element(&one.map_err(S::Error::custom)?)?;
        }
        all.end()
    }
}

/// A file that goes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PrunedFile {
    /// Its path as the directory was named.
    pub file: String,
    /// How long it is.
    pub bytes: u64,
    /// Signatures of its dumps.
    pub signatures: Vec<String>,
    /// When the last of its dumps happened, nanoseconds since 1970.
    pub happened_ns: i64,
}

/// A file that could not be removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PruneFailure {
    /// Its path as the directory was named.
    pub file: String,
    /// The reason, in words.
    pub why: String,
}

/// Runs the command.
pub(crate) fn run(arguments: &Prune) -> Result<ExitCode> {
    let folder = &arguments.folder;
    if arguments.keep.is_none() && arguments.max_size.is_none() {
        bail!("nothing says what may go: --keep N, --max-size SIZE or both");
    }
    std::fs::read_dir(folder).map_err(|error| about_folder(folder, &error))?;
    let index = index_of(folder, arguments.index.as_deref());
    let store = judged(folder, &index)?;
    let keep = arguments.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX));
    let rule = Rule { keep, max_bytes: arguments.max_size };
    let plan = plan(store, rule)?;
    let path = |one: &Leaving| shown(&scan::path_of(folder, &one.file.name));
    let mut failed = Vec::new();
    if arguments.yes {
        let within = Folder::open(folder).map_err(|error| about(folder, system(&error)))?;
        failed.extend(plan.remove(&within)?.into_iter().map(|(one, why)| PruneFailure { file: path(&one), why }));
        match refresh(folder, &index) {
            Err(error) if error.is_of_disk() => say(&anyhow::anyhow!("{error}")),
            refreshed => drop(refreshed?),
        }
    }
    let (Total { files, bytes }, leaving) = (plan.all, plan.total()?);
    let pruned = Pruned {
        schema: SCHEMA,
        removed: arguments.yes,
        files,
        bytes,
        staying_bytes: bytes.saturating_sub(leaving.bytes),
        leaving: PrunedFiles { plan: &plan, folder },
        failed,
    };
    output::beside(&pruned)?;
    if arguments.json {
        output::json(&pruned)?;
    } else {
        output::texts(page(&pruned, leaving, arguments))?;
    }
    let too_large = arguments.max_size.filter(|most| pruned.staying_bytes > *most);
    if let Some(most) = too_large {
        let text = format!("{} stay, more than the {} of --max-size", memory(pruned.staying_bytes), memory(most));
        say(&about(folder, format_args!("{text}: the first and last dumps of signatures, and what is not a dump")));
    }
    for PruneFailure { file, why } in &pruned.failed {
        say(&about(file.as_ref(), why));
    }
    let is_partial = too_large.is_some() || !pruned.failed.is_empty();
    Ok(ExitCode::from(if is_partial { DAMAGED } else { 0 }))
}

/// The dumps of a directory: its index, brought up to date, or what was read where the disk has no room for one.
fn judged(folder: &Path, index: &Path) -> Result<Store> {
    match refresh(folder, index) {
        Err(error) if error.is_of_disk() => {
            say(&anyhow::anyhow!("{error}; the dumps are read without it"));
            Ok(read_all(folder)?.store)
        }
        Err(error) => Err(error.into()),
        Ok(_) => Store::open(index)?.ok_or_else(|| about(index, "the index is gone")),
    }
}

/// What goes, in words.
fn page(pruned: &Pruned<'_>, leaving: Total, arguments: &Prune) -> impl Iterator<Item = Result<String, StoreError>> {
    let files = count(leaving.files, "file", "files");
    let end = if pruned.removed { "removed" } else { "would be removed; --yes removes them" };
    let sizes = format!("{} of {}", memory(leaving.bytes), memory(pruned.bytes));
    let head = format!("{}: {files} of {} ({sizes}) {end}\n", shown(&arguments.folder), pruned.files);
    let most = if arguments.wide { usize::MAX } else { NAMED };
    let named = pruned.leaving.each().take(most).map(|one| {
        let PrunedFile { file, signatures, happened_ns, .. } = one?;
        Ok(format!("  {}  {}  {}\n", day_of(happened_ns), signatures.join(" "), kwab::plain::line(&file)))
    });
    let more = leaving.files.checked_sub(most as u64).filter(|more| *more > 0);
    let more = more.map(|more| Ok(format!("  … and {} (--wide names all)\n", count(more, "more", "more"))));
    std::iter::once(Ok(head)).chain(named).chain(more)
}
