//! Names the dumps of a console: `STEM-1.kwab`, `STEM-2.kwab`, …, behind those that are there already.

use std::io;
use std::path::{Path, PathBuf};

/// The numbers that are taken.
#[derive(Debug)]
pub(super) struct Names {
    folder: PathBuf,
    stem: String,
    last: u64,
}

impl Names {
    /// Continues behind the dumps of earlier runs.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn in_folder(folder: &Path, stem: &str) -> io::Result<Self> {
        let mut last = 0;
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(stem)?.strip_suffix(".kwab"));
            let number = number.and_then(|rest| rest.rsplit('-').next()?.parse().ok());
            last = last.max(number.unwrap_or(0));
        }
        Ok(Self { folder: folder.to_path_buf(), stem: stem.to_string(), last })
    }

    /// The name of the dump that is replaced while nothing has crashed.
    pub(super) fn live(&self) -> PathBuf {
        self.folder.join(format!("{}-live.kwab", self.stem))
    }

    /// The next free name; `what` stands before its number.
    ///
    /// # Errors
    /// When the numbers are used up.
    pub(super) fn next(&mut self, what: &str) -> io::Result<PathBuf> {
        self.last = self.last.checked_add(1).ok_or_else(|| io::Error::other("the numbers of dumps are used up"))?;
        Ok(self.folder.join(format!("{}-{what}{}.kwab", self.stem, self.last)))
    }
}
