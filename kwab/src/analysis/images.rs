//! Finds the images that a dump names, and puts their symbols where they were loaded.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kwab_format::record::{Image as ImageRecord, ImageKind, Vma};

use super::context::Context;
use super::frame::printed_function;
use super::quote::text;
use super::{bare, embedded};
use crate::model::{Case, Located};
use crate::symbols::{BuildId, Finder, Image, IndexCache, LoadedImage, PrintedFunction, Symbols, Wanted};

/// Functions of one image that are looked for by name.
const MOST_PRINTED: usize = 512;

/// The symbols of a dump, and why some of its images have none.
#[derive(Debug, Default)]
pub struct Images {
    /// What was found.
    pub symbols: Symbols,
    /// One sentence for each image that was not found or cannot be used.
    pub problems: Vec<String>,
}

/// What the dump says of an image: name, build-id, load bias, process.
struct Named<'c> {
    name: Option<String>,
    build_id: Option<&'c [u8]>,
    /// Run-time minus link address, when the dump says so.
    bias: Option<u64>,
    /// Run-time address of the note with the build-id, which says it otherwise.
    note: Option<u64>,
    /// Run-time address of the first byte of a program or library, which says it when nothing else does.
    start: Option<u64>,
    pid: Option<u32>,
}

/// Looks for the kernel and for every image record.
#[must_use]
pub fn load(case: &Case<'_>, finder: &mut Finder, cache: &IndexCache) -> Images {
    let mut images = Images::default();
    let (files, problems) = embedded::files(case);
    finder.add_inside(files);
    images.problems.extend(problems);
    let mut open: HashMap<String, Arc<Image>> = HashMap::new();
    for named in named(case) {
        let wanted = Wanted { build_id: named.build_id, name: named.name.as_deref() };
        let bytes = match finder.find(wanted) {
            Ok(bytes) => bytes,
            Err(error) => {
                images.problems.push(error.to_string());
                continue;
            }
        };
        let image = match open.get(&bytes.name()) {
            Some(image) => Arc::clone(image),
            None => match Image::from_bytes(bytes.clone(), cache) {
                Ok(image) => Arc::clone(open.entry(bytes.name()).or_insert(Arc::new(image))),
                Err(error) => {
                    images.problems.push(error.to_string());
                    continue;
                }
            },
        };
        images.problems.extend(image.remark());
        let by_note = || Some(named.note?.wrapping_sub(image.build_id_note()?));
        let bias = named.bias.or_else(by_note).or_else(|| by_start(named.start?, &image)).unwrap_or(0);
        images.symbols.add(LoadedImage::new(image, bias, named.pid));
    }
    if case.identities.first().is_none_or(|identity| identity.kernel_build_id.is_none()) {
        load_printed(case, finder, cache, &mut images);
        if images.symbols.loaded().iter().all(|loaded| loaded.pid.is_some()) {
            let found = bare::find(case, finder, cache, &mut images.problems);
            found.into_iter().for_each(|loaded| images.symbols.add(loaded));
        }
    }
    if case.is_of_log() {
        load_mapped(case, finder, cache, &mut images);
    }
    images.problems.extend(finder.remarks());
    images.problems.sort();
    images.problems.dedup();
    images
}

/// The load bias of an image whose file begins at this address.
fn by_start(start: u64, image: &Image) -> Option<u64> {
    let (link, offset, _) = image.loaded().min()?;
    Some(start.wrapping_sub(link.wrapping_sub(offset)))
}

/// Looks for the images of the files that a log shows mapped. Such a log has no build-ids: a file that the user named
/// counts when it is loaded as that one was.
fn load_mapped(case: &Case<'_>, finder: &mut Finder, cache: &IndexCache, images: &mut Images) {
    let mut files: BTreeMap<(u32, String), Vec<&Located<Vma<'_>>>> = BTreeMap::new();
    let known: HashSet<_> = case.images.iter().map(|image| (image.pid, image.path)).collect();
    for vma in &case.vmas {
        let Some((pid, path)) = vma.pid.zip(vma.path.filter(|path| !path.is_empty())) else { continue };
        if !known.contains(&(vma.pid, vma.path)) {
            files.entry((pid, text(Some(path)))).or_default().push(vma);
        }
    }
    let mut open: HashMap<String, Option<Arc<Image>>> = HashMap::new();
    for ((pid, path), mapped) in files.into_iter().take(MOST_MAPPED) {
        let image = open.entry(path.clone()).or_insert_with(|| {
            let bytes = finder.find(Wanted { build_id: None, name: Some(&path) }).ok()?;
            let image = Image::from_bytes(bytes, cache);
            image.map(Arc::new).map_err(|error| images.problems.push(error.to_string())).ok()
        });
        let Some(image) = image else { continue };
        images.problems.extend(image.remark());
        match by_mappings(image, &mapped) {
            Some(bias) => images.symbols.add(LoadedImage::new(Arc::clone(image), bias, Some(pid))),
            None => {
                let problem = format!("{} is not the {path} of this log: it is loaded otherwise", image.name());
                images.problems.push(problem);
            }
        }
    }
}

/// The load bias by which every mapping of a file holds what the image has at that place of it.
fn by_mappings(image: &Image, mapped: &[&Located<Vma<'_>>]) -> Option<u64> {
    let parts: Vec<(u64, u64, u64)> = image.loaded().collect();
    // A page of the file may be in two parts.
    let biases = |vma: &Vma<'_>| -> Vec<u64> {
        let Some(((start, end), offset)) = vma.start.zip(vma.end).zip(vma.file_offset) else { return Vec::new() };
        let holds = |(_, from, length): &&(u64, u64, u64)| {
            let last = from.checked_add(*length).and_then(|end| end.checked_next_multiple_of(PAGE));
            let room = last.and_then(|last| last.checked_sub(offset));
            from - from % PAGE <= offset && room.is_some_and(|room| end.wrapping_sub(start) <= room)
        };
        let bias =
            |(link, from, _): &(u64, u64, u64)| start.wrapping_sub(offset).wrapping_sub(link.wrapping_sub(*from));
        parts.iter().filter(holds).map(bias).collect()
    };
    let (first, rest) = mapped.split_first()?;
    let is_code = mapped.iter().any(|vma| vma.prot.is_some_and(|prot| prot & EXECUTE != 0));
    let rest: Vec<Vec<u64>> = rest.iter().map(|vma| biases(vma)).collect();
    let fits = |bias: &u64| is_code && rest.iter().all(|of_other| of_other.contains(bias));
    biases(first).into_iter().find(fits)
}

/// Files that are looked for by their names in one log.
const MOST_MAPPED: usize = 32;
/// Mappings are of whole pages.
const PAGE: u64 = 4096;
/// The bit of [`Vma::prot`] that allows execution.
const EXECUTE: u32 = 4;

/// Looks for the images of functions that the kernel printed by name, for a log that has no build-id.
fn load_printed(case: &Case<'_>, finder: &mut Finder, cache: &IndexCache, images: &mut Images) {
    let mut groups: BTreeMap<Option<String>, BTreeSet<PrintedFunction>> = BTreeMap::new();
    for function in case.frames.iter().filter_map(|frame| printed_function(frame)) {
        groups.entry(function.module.clone()).or_default().insert(function);
    }
    for (module, functions) in groups {
        let functions: Vec<PrintedFunction> = functions.into_iter().take(MOST_PRINTED).collect();
        let mut refused = Vec::new();
        let found = finder.by_module(module.as_deref()).into_iter().take(bare::MOST_CANDIDATES).find_map(|bytes| {
            let image = Image::from_bytes(bytes, cache).map_err(|error| refused.push(error.to_string())).ok()?;
            let links = image.find_printed(&functions);
            let fitting = links.iter().flatten().count();
            if fitting * 4 >= functions.len() * 3 {
                images.problems.extend(image.remark());
                return Some((Arc::new(image), links));
            }
            let sizes = format!("{fitting} of {} printed functions have the size that it has", functions.len());
            refused.push(format!("{} is not the image of this log: {sizes}", image.name()));
            None
        });
        let Some((image, links)) = found else {
            images.problems.extend(refused);
            continue;
        };
        for (function, link) in functions.into_iter().zip(links) {
            if let Some(link) = link {
                images.symbols.add_printed(function, Arc::clone(&image), link);
            }
        }
    }
}

/// What would name the frames of a death that have no names: the image that holds the innermost one.
#[must_use]
pub fn nameless(ctx: &Context<'_, '_>) -> String {
    let pid = ctx.death.code_pid();
    let at = ctx.trace.first().map(|frame| frame.ip).filter(|ip| *ip != 0).or_else(|| Some(ctx.trace.get(1)?.ip));
    if let Some(loaded) = at.and_then(|ip| ctx.symbols.image_at(ip, pid)) {
        return format!("{} has no symbols for these addresses", loaded.image.name());
    }
    let kernel = ctx.case.identities.first().and_then(|identity| identity.kernel_build_id);
    let programs = || ctx.case.images.iter().filter(|image| image.pid.is_some() && image.pid == ctx.death.pid);
    let holds = |image: &&Located<ImageRecord<'_>>| {
        at.is_some_and(|ip| image.start.is_some_and(|start| start <= ip) && image.end.is_some_and(|end| ip < end))
    };
    let image = match (ctx.death.in_kernel, programs().find(holds).or_else(|| programs().next())) {
        (true, _) => kernel.map(|id| format!("the kernel with build-id {}", BuildId(id.to_vec()))),
        (false, Some(image)) => {
            let id = image.build_id.map(|id| format!(" with build-id {}", BuildId(id.to_vec()))).unwrap_or_default();
            image.path.map(|path| format!("{}{id}", text(Some(path))))
        }
        (false, None) => None,
    };
    format!("give {} with --symbols", image.unwrap_or_else(|| "the image".to_owned()))
}

fn named<'c>(case: &'c Case<'_>) -> Vec<Named<'c>> {
    let mut all: Vec<Named<'_>> = case
        .images
        .iter()
        .map(|image| Named {
            name: image.path.map(|path| text(Some(path))),
            build_id: image.build_id,
            bias: image.load_bias,
            note: image.build_id_at,
            start: image.start.filter(|_| image.pid.is_some()),
            pid: image.pid,
        })
        .collect();
    let kernel_named = case.images.iter().any(|image| image.kind == Some(ImageKind::KERNEL));
    let identity = case.identities.first().filter(|identity| !kernel_named && identity.kernel_build_id.is_some());
    if let Some(identity) = identity {
        let (bias, build_id) = (identity.kernel_offset, identity.kernel_build_id);
        all.push(Named { name: None, build_id, bias, note: None, start: None, pid: None });
    }
    all
}
