//! The files behind the pages of a dump: an initramfs or a directory, with an index of page contents.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use walkdir::WalkDir;

use super::space::PAGE;
use crate::symbols::cpio;

/// The most bytes of backing files that are kept.
const MAX_BYTES: u64 = 1 << 30;

/// Why backing files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// The path cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is a file, but no archive.
    #[error("{0}: not a directory and not a cpio archive (newc, plain or gzip)")]
    NoArchive(String),
}

/// Files by path.
#[derive(Debug, Default)]
pub struct Backing {
    files: HashMap<String, Vec<u8>>,
    pages: OnceLock<HashMap<u32, Vec<(String, u64)>>>,
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
    /// [`BackingError`] when the path cannot be read or is no archive.
    pub fn open(path: &Path) -> Result<Self, BackingError> {
        if path.is_dir() {
            return Ok(Self::from_files(files_below(path)));
        }
        let io = |source| BackingError::Io { path: path.display().to_string(), source };
        let bytes = std::fs::read(path).map_err(io)?;
        if !cpio::is_archive(&bytes) {
            return Err(BackingError::NoArchive(path.display().to_string()));
        }
        let unpacked = cpio::unpack(&bytes);
        let files = cpio::entries(&unpacked).filter(cpio::Entry::is_file);
        Ok(Self::from_files(files.map(|file| (format!("/{}", file.name), file.data.to_vec())).collect()))
    }

    /// Uses these files: absolute path and content.
    #[must_use]
    pub fn from_files(files: Vec<(String, Vec<u8>)>) -> Self {
        Self { files: files.into_iter().collect(), pages: OnceLock::new() }
    }

    /// The content of a file.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Whether there are any files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A page that holds `bytes` from `in_page` on to its end: file and offset of the first byte. Pages of `prefer` win.
    pub(super) fn page_with(&self, bytes: &[u8], in_page: u64, prefer: &str) -> Option<(String, u64)> {
        let rest = usize::try_from(PAGE - in_page).ok()?;
        // A run that fits many pages by chance says nothing.
        if bytes.len() < rest || rest < 32 {
            return None;
        }
        let bytes = &bytes[..rest];
        let exact = |path: &str, page: u64| {
            let start = usize::try_from(page + in_page).ok()?;
            (self.files.get(path)?.get(start..start + rest)? == bytes).then_some((path.to_owned(), page + in_page))
        };
        if in_page == 0 {
            let places = self.index().get(&crc32fast::hash(bytes))?;
            let own = places.iter().filter(|(path, _)| path == prefer);
            return own.chain(places).find_map(|(path, page)| exact(path, *page));
        }
        let own = self.files.get_key_value(prefer).into_iter();
        own.chain(&self.files)
            .find_map(|(path, file)| (0..file.len() as u64 / PAGE).find_map(|page| exact(path, page * PAGE)))
    }

    fn index(&self) -> &HashMap<u32, Vec<(String, u64)>> {
        self.pages.get_or_init(|| {
            let mut pages: HashMap<u32, Vec<(String, u64)>> = HashMap::new();
            for (path, file) in &self.files {
                for (number, page) in file.chunks_exact(PAGE as usize).enumerate() {
                    pages.entry(crc32fast::hash(page)).or_default().push((path.clone(), number as u64 * PAGE));
                }
            }
            for places in pages.values_mut() {
                places.sort();
            }
            pages
        })
    }
}

fn files_below(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut left = MAX_BYTES;
    let files = WalkDir::new(dir).into_iter().filter_map(Result::ok).filter(|entry| entry.file_type().is_file());
    let mut all = Vec::new();
    for entry in files {
        let length = entry.metadata().map_or(u64::MAX, |meta| meta.len());
        let (Ok(name), true) = (entry.path().strip_prefix(dir), length <= left) else { continue };
        if let Ok(bytes) = std::fs::read(entry.path()) {
            left -= length;
            all.push((format!("/{}", name.display()), bytes));
        }
    }
    all
}
