//! `kwab symbols add PATH… [--json]`, `kwab symbols list [--json]`,
//! `kwab symbols prune --max-size SIZE [--yes] [--json]`, `kwab symbols slim DUMP [-o DIR] [--symbols PATH] [--json]`,
//! `kwab symbols embed DUMP -o FILE|- [--whole] [--symbols PATH] [--json]`
//!
//! The user's store of images by build-id (`$XDG_DATA_HOME/kwab/symbols`), in which every reading command looks by
//! itself. `cargo xtask kernel` and the builds of guests add to it. Status 0: done, or said what would be; 2: the store
//! cannot be used; 3: one of the paths has no image that can be kept, or an image could not be removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use kwab::format::List;
use kwab::model::{Case, Depth};
use kwab::output::folder_of;
use kwab::pack::{FileOfImage, embed};
use kwab::symbols::{BuildId, Finder, KeptImage, Store, StoreError, slim};
use kwab::units::{count, memory};
use schemars::JsonSchema;
use serde::Serialize;

use super::analyse::{load_images, open_dump};
use super::open_file;
use crate::analyses::SymbolOptions;
use crate::failure::{DAMAGED, about, is_stdio, say, shown, system};
use crate::images::{StoreCommand, Symbols};
use crate::output::{self, Output};
use crate::since::day_of;

/// The version of [`Stored`]'s JSON form.
const SCHEMA: u32 = 1;

/// What the store holds, or what was done with it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Stored {
    /// Version of this form.
    pub schema: u32,
    /// The folder of the store; of `slim` and `embed` where the files went, the dump itself of `embed`.
    pub folder: String,
    /// Whether it was changed; `false` of a list, and of what would be removed.
    pub changed: bool,
    /// The images that were added, are listed, or go.
    pub images: Vec<StoredImage>,
    /// Bytes of these images in the store.
    pub bytes: u64,
    /// What could not be done, in words.
    pub failed: Vec<String>,
}

/// An image in the store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoredImage {
    /// Build-id by which the store finds it.
    pub build_id: String,
    /// What its file was called; empty when it does not say.
    pub name: String,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Whether it has line tables.
    pub has_lines: bool,
    /// When it was added last, nanoseconds since 1970.
    pub added_ns: i64,
    /// Where it is kept.
    pub file: String,
}

/// Runs the command.
pub(crate) fn run(arguments: &Symbols) -> Result<ExitCode> {
    let store = Store::of_user();
    let Some(folder) = store.folder() else { bail!("{}", StoreError::NoFolder) };
    let (stored, json) = match &arguments.what {
        StoreCommand::Add { paths, json } => (add(&store, folder, paths)?, *json),
        StoreCommand::Slim { dump, output, symbols, source, force, json } => {
            let options = SymbolOptions { paths: symbols.clone(), force: false, source: source.clone() };
            (slimmed(dump, output.as_deref(), &options, *force)?, *json)
        }
        StoreCommand::Embed { dump, output, whole, symbols, source, force, json } => {
            let options = SymbolOptions { paths: symbols.clone(), force: false, source: source.clone() };
            let inputs = std::iter::once(dump.as_path()).chain(symbols.iter().map(PathBuf::as_path));
            let output = Output::of(Some(output), *force, inputs)?.of_binary()?;
            if output.is_stdout() && *json {
                bail!("--json and the dump would both go to stdout; name a file with -o");
            }
            (embedded(dump, &output, &options, *whole)?, *json)
        }
        StoreCommand::List { json } => (report(folder, false, &store.list()), *json),
        StoreCommand::Prune { max_size, yes, json } => (prune(&store, folder, *max_size, *yes), *json),
    };
    output::beside(&stored)?;
    let page = page(&stored, &arguments.what);
    match (json, &arguments.what) {
        (true, _) => output::json(&stored)?,
        (false, StoreCommand::Embed { output, .. }) if is_stdio(output) => output::remark(&page),
        (false, _) => output::text(&page)?,
    }
    for why in &stored.failed {
        say(&anyhow::anyhow!("{why}"));
    }
    Ok(ExitCode::from(if stored.failed.is_empty() { 0 } else { DAMAGED }))
}

fn add(store: &Store, folder: &Path, paths: &[PathBuf]) -> Result<Stored> {
    let (mut added, mut failed) = (Vec::new(), Vec::new());
    for path in paths {
        let meta = std::fs::metadata(path).map_err(|error| about(path, system(&error)))?;
        if !meta.is_file() && !meta.is_dir() {
            return Err(about(path, "is neither a file nor a directory"));
        }
        let mut finder = Finder::new(vec![path.clone()], false);
        let images = finder.images();
        for image in &images {
            match store.add(image) {
                Ok(image) => added.push(image.path),
                Err(error @ StoreError::Write(..)) => bail!("{error}"),
                Err(error) => failed.push(error.to_string()),
            }
        }
        if images.is_empty() {
            failed.push(format!("{}: no image with a build-id", shown(path)));
        }
        failed.extend(finder.remarks());
    }
    let mut kept = store.list();
    kept.retain(|image| added.contains(&image.path));
    Ok(Stored { failed, ..report(folder, true, &kept) })
}

/// The files of the images of a dump that have line tables, small ones or whole, and what could not be made.
fn files_of(case: &Case<'_>, options: &SymbolOptions, whole: bool) -> Result<(Vec<FileOfImage>, Vec<String>)> {
    let found = load_images(case, options)?;
    let here = std::env::current_dir().unwrap_or_default();
    let roots: Vec<&Path> = options.source.iter().map(PathBuf::as_path).chain([here.as_path()]).collect();
    let addresses = code_addresses(case);
    let (mut files, mut failed) = (Vec::<FileOfImage>::new(), Vec::new());
    for loaded in found.symbols.loaded().iter().filter(|loaded| loaded.image.has_debug_info() || whole) {
        let image = &loaded.image;
        let (name, id) = (image.file_name(), image.build_id().map(|id| id.0));
        if id.as_ref().is_some_and(|id| files.iter().any(|file| file.build_id == *id)) {
            continue;
        }
        let links = addresses.iter().map(|addr| loaded.link(*addr)).filter(|link| image.is_code(*link));
        let small = || slim::slim(image, &slim::functions(image, links), &roots);
        let made = if whole { slim::whole(image).map(|bytes| (bytes, false)) } else { small() };
        match made.zip(id) {
            Some(((bytes, is_cut), build_id)) => {
                if is_cut {
                    let why = "they cost more than an image of its length may";
                    failed.push(format!("{name}: variables or types are left out of its file: {why}"));
                }
                files.push(FileOfImage { name, build_id, bytes, has_lines: image.has_debug_info() });
            }
            None => failed.push(format!("{name}: no 64-bit ELF image with a build-id")),
        }
    }
    Ok((files, failed))
}

/// The row of a file that was written to `path`.
fn kept(file: &FileOfImage, path: PathBuf) -> KeptImage {
    KeptImage {
        build_id: BuildId(file.build_id.clone()).to_string(),
        name: file.name.clone(),
        path,
        bytes: file.bytes.len() as u64,
        has_lines: file.has_lines,
        added: SystemTime::now(),
    }
}

/// Writes a small file for each image of a dump that has line tables.
fn slimmed(path: &Path, output: Option<&Path>, options: &SymbolOptions, force: bool) -> Result<Stored> {
    let dump = open_dump(path, 1, Depth::Rules)?;
    let (files, mut failed) = files_of(&dump.case(), options, false)?;
    let folder = output.map_or_else(|| folder_of(path).join("symbols"), Path::to_path_buf);
    std::fs::create_dir_all(&folder).map_err(|error| about(&folder, system(&error)))?;
    let inputs: Vec<&Path> = std::iter::once(path).chain(options.paths.iter().map(PathBuf::as_path)).collect();
    let mut written = Vec::new();
    for image in &files {
        let file = folder.join(format!("{}.debug", image.name));
        let target = Output::of(Some(&file), force, inputs.iter().copied())?.of_binary()?;
        target.write(|out| out.write_all(&image.bytes))?;
        written.push(kept(image, file));
    }
    if written.is_empty() {
        failed.push(none_found(path));
    }
    Ok(Stored { failed, ..report(&folder, true, &written) })
}

/// Writes a copy of a dump that carries the files of its images.
fn embedded(path: &Path, output: &Output, options: &SymbolOptions, whole: bool) -> Result<Stored> {
    if is_stdio(path) {
        bail!("stdin: symbols embed reads the dump twice; name a file");
    }
    let mut file = open_file(path, 1)?;
    file.verify_all();
    let dump = open_dump(path, 1, Depth::Rules)?;
    let (images, mut failed) = files_of(&dump.case(), options, whole)?;
    if images.is_empty() {
        bail!("{}", failed.pop().unwrap_or_else(|| none_found(path)));
    }
    let mut lost = Vec::new();
    output.write(|out| {
        lost = embed(&file, &shown(path), &images, out)?;
        Ok(())
    })?;
    failed.extend(lost.iter().map(|lost| format!("lost: {lost}")));
    let rows: Vec<KeptImage> = images.iter().map(|image| kept(image, output.path().to_path_buf())).collect();
    Ok(Stored { failed, ..report(output.path(), true, &rows) })
}

fn none_found(dump: &Path) -> String {
    format!("{}: no image of it with line tables was found", shown(dump))
}

/// Every word of a dump that may be an address of code: registers, frames, places of tasks, captured stacks.
fn code_addresses(case: &Case<'_>) -> BTreeSet<u64> {
    let mut found: BTreeSet<u64> = case.frames.iter().filter_map(|frame| frame.addr).collect();
    found
        .extend(case.registers.iter().flat_map(|set| set.regs.iter().flat_map(List::iter)).filter_map(|reg| reg.value));
    found.extend(case.tasks.iter().filter_map(|task| task.kernel_ip));
    for piece in case.memory.iter().filter_map(|piece| piece.bytes) {
        let words = piece.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
        found.extend(words.filter(|word| *word > 0xffff));
    }
    found
}

fn prune(store: &Store, folder: &Path, most: u64, remove: bool) -> Stored {
    let (mut gone, mut failed) = (Vec::new(), Vec::new());
    for image in store.beyond(most) {
        match if remove { store.remove(&image) } else { Ok(()) } {
            Ok(()) => gone.push(image),
            Err(error) => failed.push(format!("{}: {}", shown(&image.path), system(&error))),
        }
    }
    Stored { failed, ..report(folder, remove, &gone) }
}

fn report(folder: &Path, changed: bool, images: &[KeptImage]) -> Stored {
    let ns = |image: &KeptImage| image.added.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let images = images.iter().map(|image| StoredImage {
        build_id: image.build_id.clone(),
        name: image.name.clone(),
        bytes: image.bytes,
        has_lines: image.has_lines,
        added_ns: i64::try_from(ns(image)).unwrap_or(i64::MAX),
        file: shown(&image.path),
    });
    let images: Vec<StoredImage> = images.collect();
    let bytes = images.iter().map(|image| image.bytes).sum();
    Stored { schema: SCHEMA, folder: shown(folder), changed, images, bytes, failed: Vec::new() }
}

fn page(stored: &Stored, what: &StoreCommand) -> String {
    let images = count(stored.images.len() as u64, "image", "images");
    let end = match what {
        StoreCommand::Add { .. } => "kept",
        StoreCommand::Slim { .. } => "written",
        StoreCommand::Embed { .. } => "carried",
        StoreCommand::List { .. } => "",
        StoreCommand::Prune { yes: true, .. } => "removed",
        StoreCommand::Prune { yes: false, .. } => "would be removed; --yes removes them",
    };
    let folder = kwab::plain::line(&stored.folder);
    let mut out = format!("{folder}: {images} ({}) {end}", memory(stored.bytes)).trim_end().to_owned() + "\n";
    for StoredImage { build_id, name, bytes, has_lines, added_ns, .. } in &stored.images {
        let (name, lines) = (kwab::plain::line(name), if *has_lines { "" } else { ", no lines" });
        out += &format!("  {}  {build_id}  {name} ({}{lines})\n", day_of(*added_ns), memory(*bytes));
    }
    out
}
