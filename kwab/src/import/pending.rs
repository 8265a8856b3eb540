//! Keeps the bytes of finished dumps that have no name yet, with a bounded number of open files.
//!
//! The first dumps of an import keep the file that they were written to, and naming them copies nothing. Further ones
//! move into one common file: a log with thousands of crashes must not need thousands of descriptors.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use super::summary::DumpSummary;
use crate::output::{Replace, Unnamed, folder_of};

/// A dump that is complete but has no name yet.
#[derive(Debug)]
pub struct PendingDump {
    /// The file; `None` in a dry run.
    pub file: Option<PendingFile>,
    /// What is in it.
    pub summary: DumpSummary,
}

/// Dumps that keep a file each.
const OWN_FILES: usize = 64;

/// The bytes of a finished dump.
#[derive(Debug)]
pub struct PendingFile(Kept);

#[derive(Debug)]
enum Kept {
    Own(Unnamed),
    FileRange { file: Arc<File>, start: u64, length: u64 },
}

impl PendingFile {
    /// Names the dump; as [`Unnamed::name`].
    ///
    /// # Errors
    /// `AlreadyExists`, or what the system says; what was at `path` is untouched then.
    pub fn name(self, path: &Path, replace: Replace) -> io::Result<()> {
        match self.0 {
            Kept::Own(file) => file.name(path, replace),
            Kept::FileRange { file, start, length } => {
                let mut own = Unnamed::in_folder(folder_of(path))?;
                io::copy(&mut FileRange { file: &file, at: start, left: length }, &mut own)?;
                own.name(path, replace)
            }
        }
    }

    /// The dump in a file of its own without a name, whose position is at the beginning.
    ///
    /// # Errors
    /// What the system says.
    pub fn into_file(self) -> io::Result<File> {
        let mut file: File = match self.0 {
            Kept::Own(file) => file.into(),
            Kept::FileRange { file, start, length } => {
                let mut own = Unnamed::in_folder(&std::env::temp_dir())?;
                io::copy(&mut FileRange { file: &file, at: start, left: length }, &mut own)?;
                own.into()
            }
        };
        file.rewind()?;
        Ok(file)
    }

    /// Copies the dump into a stream.
    ///
    /// # Errors
    /// Those of either side.
    pub fn copy_to(&mut self, out: &mut dyn Write) -> io::Result<u64> {
        match &mut self.0 {
            Kept::Own(file) => file.copy_to(out),
            Kept::FileRange { file, start, length } => {
                io::copy(&mut FileRange { file, at: *start, left: *length }, out)
            }
        }
    }
}

/// A stretch of a file, read without moving its position.
struct FileRange<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for FileRange<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.file.read_at(&mut bytes[..most], self.at)?;
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Takes the files of finished dumps.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    own: usize,
    common: Option<(Arc<File>, u64)>,
}

impl Keeper {
    /// A dump as [`Segment::finish`](super::segment::Segment::finish) gives it; it has a file unless nothing is
    /// written.
    ///
    /// # Errors
    /// When the bytes cannot be kept.
    pub(super) fn dump(
        &mut self,
        (summary, file): (DumpSummary, Option<Unnamed>),
        folder: Option<&Path>,
    ) -> io::Result<PendingDump> {
        let file = match (file, folder) {
            (Some(file), Some(folder)) => Some(self.keep(file, folder)?),
            _ => None,
        };
        Ok(PendingDump { file, summary })
    }

    /// Keeps one more; `folder` is where the common file is made when it is needed.
    ///
    /// # Errors
    /// When it cannot be copied there.
    pub(super) fn keep(&mut self, mut file: Unnamed, folder: &Path) -> io::Result<PendingFile> {
        if self.own < OWN_FILES {
            self.own += 1;
            return Ok(PendingFile(Kept::Own(file)));
        }
        if self.common.is_none() {
            self.common = Some((Arc::new(Unnamed::in_folder(folder)?.into()), 0));
        }
        let Some((common, end)) = &mut self.common else { return Err(io::ErrorKind::Other.into()) };
        let length = file.copy_to(&mut &**common)?;
        let start = *end;
        *end += length;
        Ok(PendingFile(Kept::FileRange { file: Arc::clone(common), start, length }))
    }
}
