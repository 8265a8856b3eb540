//! The files behind the pages of a dump: an initramfs or a directory, with their pages in order of content.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use walkdir::WalkDir;

use super::page_order::PageOrder;
use super::space::PAGE;
use crate::symbols::{cpio, regular};
use crate::units;

/// The most bytes of backing files that are kept.
const MAX_BYTES: u64 = 1 << 30;

/// Why backing files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// The path cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file that could not be read.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is a file, but no archive.
    #[error("{0}: not a directory and not a cpio archive (newc, plain or gzip)")]
    NoArchive(String),
    /// It unpacks to more than archives do.
    #[error("{path}: unpacks to more than {most}, which is all that an archive of its size may take; give it unpacked")]
    TooLong {
        /// Path of the archive.
        path: String,
        /// How much that is.
        most: String,
    },
}

/// Files by path.
#[derive(Debug, Default)]
pub struct Backing {
    /// Path and content, in order of path.
    files: Vec<(String, Vec<u8>)>,
    /// Files of the directory that were not read.
    left_out: usize,
    /// Their pages by content; built when a page is looked for.
    order: OnceLock<PageOrder>,
}

impl Backing {
    /// No files: pages can only be judged by what the kernel said.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads an initramfs, or the files below a directory.
    ///
    /// # Errors
    /// [`BackingError`] when the path cannot be read or is not an archive.
    pub fn open(path: &Path) -> Result<Self, BackingError> {
        if path.is_dir() {
            let (files, left_out) = files_below(path, MAX_BYTES);
            return Ok(Self { left_out, ..Self::from_files(files) });
        }
        let io = |source| BackingError::Io { path: path.display().to_string(), source };
        if !cpio::is_archive(&cpio::head(path).map_err(io)?) {
            return Err(BackingError::NoArchive(path.display().to_string()));
        }
        let bytes = std::fs::read(path).map_err(io)?;
        let unpacked = cpio::unpack(&bytes);
        let most = cpio::most_unpacked(&bytes);
        if unpacked.len() as u64 > most {
            return Err(BackingError::TooLong { path: path.display().to_string(), most: units::bytes(most) });
        }
        let files = cpio::entries(&unpacked).filter(cpio::ArchiveFile::is_file);
        Ok(Self::from_files(files.map(|file| (format!("/{}", file.name), file.data.to_vec())).collect()))
    }

    /// Uses these files: absolute path and content.
    #[must_use]
    pub fn from_files(files: Vec<(String, Vec<u8>)>) -> Self {
        // Of several with the same path the last counts, as it does for the kernel that unpacks an archive.
        let files: BTreeMap<String, Vec<u8>> = files.into_iter().collect();
        Self { files: files.into_iter().collect(), left_out: 0, order: OnceLock::new() }
    }

    /// What of the path is not here, so that a page of it is taken for one of unknown origin.
    #[must_use]
    pub fn losses(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            let files = units::count(self.left_out as u64, "file", "files");
            let most = units::bytes(MAX_BYTES);
            let why = format!("unreadable, or beyond the {most} that are kept; name a smaller directory");
            format!("{files} of --backing not read: {why}")
        })
    }

    /// The content of a file.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(self.number(path)?).map(|(_, bytes)| bytes.as_slice())
    }

    /// The GNU build-id of a file, when it is an ELF image that has one.
    #[must_use]
    pub fn build_id(&self, path: &str) -> Option<Vec<u8>> {
        use object::Object as _;
        let file = object::File::parse(self.file(path)?).ok()?;
        file.build_id().ok()?.map(<[u8]>::to_vec)
    }

    /// Whether there are any files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A page that holds `bytes` from `in_page` on to its end: file and offset of the first byte. Pages of `prefer`
    /// win.
    pub(super) fn page_with(&self, bytes: &[u8], in_page: u64, prefer: &str) -> Option<(String, u64)> {
        let rest = usize::try_from(PAGE.checked_sub(in_page)?).ok()?;
        // A run that fits many pages by chance says nothing.
        let end = bytes.get(..rest).filter(|end| end.len() >= 32)?;
        let order = self.order.get_or_init(|| PageOrder::of(&self.files));
        let (file, page) = order.ending_with(&self.files, end, self.number(prefer))?;
        let (path, _) = self.files.get(file as usize)?;
        Some((path.clone(), u64::from(page) * PAGE + in_page))
    }

    /// Which of the files has this path.
    fn number(&self, path: &str) -> Option<usize> {
        self.files.binary_search_by(|(known, _)| known.as_str().cmp(path)).ok()
    }
}

/// The files below a directory, up to `most` bytes, and how many others there are.
fn files_below(dir: &Path, most: u64) -> (Vec<(String, Vec<u8>)>, usize) {
    let (mut left, mut all, mut left_out) = (most, Vec::new(), 0);
    for entry in WalkDir::new(dir) {
        let Ok(entry) = entry else {
            left_out += 1;
            continue;
        };
        if !entry.file_type().is_file() {
            continue;
        }
        let length = entry.metadata().map_or(u64::MAX, |meta| meta.len());
        let bytes = if length <= left { regular::read(entry.path(), left).ok() } else { None };
        match (entry.path().strip_prefix(dir), bytes) {
            (Ok(name), Some(bytes)) => {
                left = left.saturating_sub(bytes.len() as u64);
                all.push((format!("/{}", name.display()), bytes));
            }
            _ => left_out += 1,
        }
    }
    (all, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beyond_the_limit_are_counted_and_told() {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, length) in [("a", 100), ("b", 200), ("c", 50)] {
            std::fs::write(dir.path().join(name), vec![7; length]).expect("written");
        }
        let (files, left_out) = files_below(dir.path(), 160);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names.len(), left_out), (2, 1), "{names:?}");
        assert!(!names.contains(&"/b"));
        let backing = Backing { left_out, ..Backing::from_files(files) };
        assert!(backing.losses().expect("a loss").starts_with("1 file of --backing not read"));
        assert_eq!(Backing::open(dir.path()).expect("read").losses(), None);
    }
}
