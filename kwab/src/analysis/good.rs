//! Finds a build that worked, and what was changed between it and the build that a dump is of.

use std::path::Path;

use crate::builds::{BuildChanges, BuildsError, changes};
use crate::model::Case;
use crate::symbols::{FindError, Finder, Image, IndexCache, SymbolError, Symbols, Wanted};

/// Why it is not known what was changed since a build that worked.
#[derive(Debug, thiserror::Error)]
pub enum GoodError {
    /// It was named by something else than a file or a build-id.
    #[error("is neither a file nor a build-id")]
    Name,
    /// No store and no folder has an image with this build-id.
    #[error(transparent)]
    Unknown(#[from] FindError),
    /// The image that the dump is of is not at hand.
    #[error("cannot be compared: the image that the dump is of was not found; name it with --symbols")]
    NoImage,
    /// Both are the same build.
    #[error("is the build that the dump is of")]
    Same,
    /// It cannot be read.
    #[error(transparent)]
    Image(#[from] SymbolError),
    /// The builds cannot be compared.
    #[error(transparent)]
    Builds(#[from] BuildsError),
}

/// What differs between the build `good`, a file or the build-id of an image in the store, and the image of the case
/// with the same file name, or else its kernel.
///
/// # Errors
/// [`GoodError`] when one of the builds is not found, or they cannot be compared.
pub fn changes_since(good: &Path, case: &Case<'_>, symbols: &Symbols) -> Result<BuildChanges, GoodError> {
    let old = named(good)?;
    let loaded = symbols.loaded();
    let id = case.identities.first().and_then(|identity| identity.kernel_build_id);
    let is_same = |image: &Image| image.file_name() == old.file_name();
    let is_kernels = |image: &Image| id.is_some() && image.build_id().map(|own| own.0) == id.map(<[u8]>::to_vec);
    let new = loaded.iter().find(|loaded| is_same(&loaded.image));
    let new = new.or_else(|| loaded.iter().find(|loaded| is_kernels(&loaded.image)));
    let new = new.or_else(|| loaded.iter().find(|loaded| loaded.pid.is_none()));
    let new = &new.ok_or(GoodError::NoImage)?.image;
    if old.build_id().is_some() && old.build_id() == new.build_id() {
        return Err(GoodError::Same);
    }
    Ok(changes(&old, new)?)
}

/// The image of a file, or with a build-id.
fn named(good: &Path) -> Result<Image, GoodError> {
    if good.exists() {
        return Ok(Image::open(good, &IndexCache::of_user())?);
    }
    let id = good.to_str().and_then(bytes).ok_or(GoodError::Name)?;
    let wanted = Wanted { build_id: Some(&id), name: None };
    let found = Finder::new(Vec::new(), false).find(wanted)?;
    Ok(Image::from_bytes(found, &IndexCache::of_user())?)
}

/// The bytes of a number in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let pairs = digits.filter(|digits| digits.len() >= 8 && digits.len().is_multiple_of(2))?;
    Some(pairs.chunks_exact(2).filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect())
}
