//! Two builds of an image: `kwab diff OLD NEW` and `kwab triage --good OLD`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use kwab::builds::{BuildChanges, changes};
use kwab::model::Case;
use kwab::symbols::{Finder, Image, IndexCache, Symbols, Wanted};

use crate::cli::Diff;
use crate::failure::{FINDINGS, about, shown};
use crate::output::{self, Style};
use crate::{pager, render};

/// First bytes of an ELF file.
const MAGIC: [u8; 4] = *b"\x7fELF";

/// Whether a path is that of an image.
pub(super) fn is_image(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head));
    path.is_file() && read.is_ok() && head == MAGIC
}

/// Compares two images.
pub(super) fn diff(arguments: &Diff, style: Style) -> Result<ExitCode> {
    let open = |path: &Path| Image::open(path, &IndexCache::of_user()).map_err(anyhow::Error::from);
    let found = changes(&open(&arguments.left)?, &open(&arguments.right)?)?;
    output::beside(&found)?;
    if arguments.json {
        output::json(&found)?;
    } else {
        pager::text(&render::diff::builds(&found, arguments.rows.max(1), style))?;
    }
    Ok(ExitCode::from(if found.differing > 0 { FINDINGS } else { 0 }))
}

/// What differs between a build that worked and the one that a dump is of.
pub(super) fn since(good: &Path, case: &Case<'_>, symbols: &Symbols) -> Result<BuildChanges> {
    let old = named(good)?;
    let loaded = symbols.loaded();
    let id = case.identities.first().and_then(|identity| identity.kernel_build_id);
    let is_same = |image: &Image| image.file_name() == old.file_name();
    let is_kernels = |image: &Image| id.is_some() && image.build_id().map(|own| own.0) == id.map(<[u8]>::to_vec);
    let new = loaded.iter().find(|loaded| is_same(&loaded.image));
    let new = new.or_else(|| loaded.iter().find(|loaded| is_kernels(&loaded.image)));
    let new = new.or_else(|| loaded.iter().find(|loaded| loaded.pid.is_none()));
    let new = new.context("--good: the image that the dump is of was not found; name it with --symbols")?;
    ensure!(
        old.build_id().is_none() || old.build_id() != new.image.build_id(),
        "--good: {} is the build that the dump is of",
        shown(good)
    );
    changes(&old, &new.image).map_err(|error| about(good, format!("--good: {error}")))
}

/// The image of a file, or with a build-id.
fn named(good: &Path) -> Result<Image> {
    if good.exists() {
        return Ok(Image::open(good, &IndexCache::of_user())?);
    }
    let Some(id) = good.to_str().and_then(bytes) else {
        bail!("{}: --good: is neither a file nor a build-id", shown(good));
    };
    let wanted = Wanted { build_id: Some(&id), name: None };
    let found = Finder::new(Vec::new(), false).find(wanted).with_context(|| format!("--good: {}", shown(good)))?;
    Ok(Image::from_bytes(found, &IndexCache::of_user())?)
}

/// The bytes of a number in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let pairs = digits.filter(|digits| digits.len() >= 8 && digits.len().is_multiple_of(2))?;
    Some(pairs.chunks_exact(2).filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect())
}
