//! Two builds of an image: `kwab diff OLD NEW`, and `--good OLD` of the commands that judge a dump.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use kwab::analysis::changes_since;
use kwab::builds::{BuildChanges, changes};
use kwab::model::Case;
use kwab::symbols::{Image, IndexCache, Symbols};

use crate::analyses::GoodBuild;
use crate::cli::Diff;
use crate::failure::{FINDINGS, about};
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

/// What differs between the build that worked, if one was named, and the one that a dump is of.
pub(super) fn since(good: &GoodBuild, case: &Case<'_>, symbols: &Symbols) -> Result<Option<BuildChanges>> {
    let Some(image) = &good.image else { return Ok(None) };
    changes_since(image, case, symbols).map(Some).map_err(|error| about(image, format!("--good: {error}")))
}
