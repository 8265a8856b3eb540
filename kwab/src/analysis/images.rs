//! Finds the images that a dump names, and puts their symbols where they were loaded.

use std::collections::HashMap;
use std::sync::Arc;

use kwab_format::record::ImageKind;

use super::dump::{Case, text};
use crate::symbols::{Finder, Image, IndexCache, Loaded, Symbols, Wanted};

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
    bias: u64,
    pid: Option<u32>,
}

/// Looks for the kernel and for every image record.
#[must_use]
pub fn load(case: &Case<'_>, finder: &mut Finder, cache: &IndexCache) -> Images {
    let mut images = Images::default();
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
        images.symbols.add(Loaded::new(image, named.bias, named.pid));
    }
    images.problems.sort();
    images.problems.dedup();
    images
}

fn named<'c>(case: &'c Case<'_>) -> Vec<Named<'c>> {
    let mut all: Vec<Named<'_>> = case
        .images
        .iter()
        .map(|image| Named {
            name: image.path.map(|path| text(Some(path))),
            build_id: image.build_id,
            bias: image.load_bias.unwrap_or(0),
            pid: image.pid,
        })
        .collect();
    let kernel_named = case.images.iter().any(|image| image.kind == Some(ImageKind::KERNEL));
    let identity = case.identities.first().filter(|identity| !kernel_named && identity.kernel_build_id.is_some());
    if let Some(identity) = identity {
        let bias = identity.kernel_offset.unwrap_or(0);
        all.push(Named { name: None, build_id: identity.kernel_build_id, bias, pid: None });
    }
    all
}
