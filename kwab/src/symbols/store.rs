//! The user's store of images by build-id, in which every reading command looks by itself.
//!
//! It lies at `$XDG_DATA_HOME/kwab/symbols` and is laid out as a debug directory: `.build-id/ab/cdef.debug` for an
//! image with line tables, `.build-id/ab/cdef` for one without, which is of use for its unwind tables and code. gdb
//! finds them too (`set debug-file-directory`). An image is kept whole, its debug sections compressed (`compact`), so
//! that an answer is the same as with the image that was built.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use walkdir::WalkDir;

use super::build::ListSources;
use super::bytes::ImageBytes;
use super::compact::{NAME, compacted};
use super::elf::{self, Elf, ElfTask, ReadHeaders, with_elf};
use super::version::{self, SOURCES};
use super::{BuildId, debug_files, regular};
use crate::output::{OutputError, replace_own};

/// Files of a store that are looked at.
const MOST_FILES: usize = 100_000;
/// Lengths of build-ids that can be kept, in bytes.
const ID_BYTES: std::ops::RangeInclusive<usize> = 4..=64;

/// A store of images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    folder: Option<PathBuf>,
}

/// Why an image was not added.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no folder to keep it in.
    #[error("no store: neither XDG_DATA_HOME nor HOME is set")]
    NoFolder,
    /// It has no build-id by which it could be found.
    #[error("{0}: has no build-id (link with --build-id)")]
    NoBuildId(String),
    /// It is not an image, or cannot be read.
    #[error("{0}: {1}")]
    Image(String, String),
    /// The store cannot be written.
    #[error("{0}: {1}")]
    Write(String, OutputError),
}

/// An image that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// Build-id by which the store finds it.
    pub build_id: BuildId,
    /// Where it is kept.
    pub path: PathBuf,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// Bytes that it takes in the store.
    pub bytes: u64,
    /// Whether the store did not have it before.
    pub is_new: bool,
}

/// An image in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptImage {
    /// Build-id by which the store finds it.
    pub build_id: String,
    /// What its file was called when it was added; empty when it does not say.
    pub name: String,
    /// Where it is kept.
    pub path: PathBuf,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Whether it has line tables.
    pub has_lines: bool,
    /// When it was added last.
    pub added: SystemTime,
}

impl Store {
    /// `$XDG_DATA_HOME/kwab/symbols`, or below `$HOME/.local/share`; none when neither is set.
    #[must_use]
    pub fn of_user() -> Self {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
        Self { folder: base.map(|base| base.join("kwab").join("symbols")) }
    }

    /// A folder of the caller's choice.
    #[must_use]
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    /// The folder, when there is one; it need not exist yet.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Keeps an image; one that is there already is only marked as added now.
    ///
    /// # Errors
    /// [`StoreError`]; the store is as it was then.
    pub fn add(&self, image: &ImageBytes) -> Result<Added, StoreError> {
        let folder = self.folder().ok_or(StoreError::NoFolder)?;
        let unusable = |error: String| StoreError::Image(image.name(), error);
        let headers = with_elf(image, ReadHeaders).map_err(|failure| unusable(failure.to_string()))?;
        if !ID_BYTES.contains(&headers.build_id.len()) {
            return Err(StoreError::NoBuildId(image.name()));
        }
        let path = folder.join(debug_files::name(&headers.build_id, headers.has_debug_info));
        let build_id = BuildId(headers.build_id);
        let image_bytes = image.size().map_err(|error| unusable(error.to_string()))?;
        if debug_files::is_image(&path, &build_id.0) {
            // The mark only decides what is pruned first.
            let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
            let bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
            return Ok(Added { build_id, path, image_bytes, bytes, is_new: false });
        }
        let whole = match image {
            ImageBytes::File(path) => regular::read(path, u64::MAX).map_err(|error| unusable(error.to_string()))?,
            ImageBytes::Memory { bytes, .. } => bytes.to_vec(),
        };
        let name = image.name();
        let name = name.rsplit(['/', ':']).next().unwrap_or_default();
        let kept = compacted(&whole, &[(NAME, name.to_owned()), source_sums(image)]).unwrap_or(whole);
        let wrong = |error: OutputError| StoreError::Write(path.display().to_string(), error);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(|error| wrong(error.into()))?;
        replace_own(&path, &kept).map_err(wrong)?;
        Ok(Added { build_id, path, image_bytes, bytes: kept.len() as u64, is_new: true })
    }

    /// What the store holds, the latest first; nothing when there is none.
    #[must_use]
    pub fn list(&self) -> Vec<KeptImage> {
        let Some(folder) = self.folder() else { return Vec::new() };
        let entries = WalkDir::new(folder.join(".build-id")).min_depth(2).max_depth(2).into_iter();
        let files = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
        let mut kept: Vec<KeptImage> = files.take(MOST_FILES).filter_map(|entry| of_file(entry.path())).collect();
        kept.sort_by(|a, b| (b.added, &a.build_id).cmp(&(a.added, &b.build_id)));
        kept
    }

    /// Which images have to go so that the rest has at most this many bytes: those that were added first, and never the
    /// latest one.
    #[must_use]
    pub fn beyond(&self, most_bytes: u64) -> Vec<KeptImage> {
        let mut sum = 0_u64;
        let mut is_beyond = |kept: &KeptImage| {
            sum = sum.saturating_add(kept.bytes);
            sum > most_bytes && sum > kept.bytes
        };
        self.list().into_iter().filter(|kept| is_beyond(kept)).collect()
    }

    /// Removes an image that [`Store::list`] or [`Store::beyond`] named.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, kept: &KeptImage) -> io::Result<()> {
        fs::remove_file(&kept.path)?;
        // The folder of the first byte goes with its last image.
        let _ = kept.path.parent().map(fs::remove_dir);
        Ok(())
    }
}

/// A file of the store; `None` when its name is not one of a build-id.
fn of_file(path: &Path) -> Option<KeptImage> {
    let (first, rest) = (path.parent()?.file_name()?.to_str()?, path.file_name()?.to_str()?);
    let (rest, has_lines) = rest.strip_suffix(".debug").map_or((rest, false), |rest| (rest, true));
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if first.len() != 2 || !is_hex(first) || !is_hex(rest) {
        return None;
    }
    let meta = fs::metadata(path).ok()?;
    let name = with_elf(&ImageBytes::File(path.to_path_buf()), ReadName).unwrap_or_default();
    let (build_id, added) = (format!("{first}{rest}"), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH));
    Some(KeptImage { build_id, name, path: path.to_path_buf(), bytes: meta.len(), has_lines, added })
}

/// When the file of an image was written; `None` for what was copied into a store, which may be used later.
pub(super) fn written(image: &ImageBytes) -> Option<SystemTime> {
    let ImageBytes::File(path) = image else { return None };
    let is_copy = with_elf(image, ReadName).is_ok_and(|name| !name.is_empty());
    if is_copy { None } else { path.metadata().ok()?.modified().ok() }
}

/// The section with the checksums of the source files of an image, as far as they are there.
pub(super) fn source_sums(image: &ImageBytes) -> (&'static str, String) {
    let elf_size = image.size().unwrap_or(0);
    let files = with_elf(image, ListSources { elf_size }).unwrap_or_default();
    (SOURCES, version::lines(&files, written(image)))
}

/// Reads what the file of an image was called when it was added.
pub(super) struct ReadName;

impl ElfTask for ReadName {
    type Output = String;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<String> {
        Ok(String::from_utf8_lossy(&elf::Sections::of(elf).get(NAME)).chars().take(256).collect())
    }
}
