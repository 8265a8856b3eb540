//! Opens inputs, and opens their dumps again: each analysis loads as much of a dump as it needs, from the beginning.
//!
//! A file is opened by its path each time and must still be the same one; bytes are kept; a dump made of a log is kept
//! in a file without a name.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kwab::exchange::open::{self, NotOpened, Opened};
use kwab::import::{ImportReport, PendingFile};
use kwab::model::{DumpFile, OpenError};
use kwab::output::{Inputs, OutputError, Replace, Target, Unnamed};

/// Where an input comes from.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// The file at a path.
    Path(PathBuf),
    /// Bytes in memory.
    Bytes(Arc<Vec<u8>>),
}

/// What tells whether a file is still the one that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino(), length: meta.len(), changed: (meta.mtime(), meta.mtime_nsec()) }
    }
}

/// Where a dump can be read again.
#[derive(Debug)]
pub(crate) struct Source {
    /// How the user named the input.
    pub(crate) name: PathBuf,
    /// Which dump of the input it is, from 1.
    pub(crate) number: usize,
    /// Dumps that the input holds.
    pub(crate) dumps: usize,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    /// An absolute path, so that neither another name nor another working directory leads elsewhere.
    Path(PathBuf, Stamp),
    Bytes(Arc<Vec<u8>>),
    Made(Mutex<PendingFile>),
}

impl Source {
    /// Opens the dump from its beginning.
    pub(crate) fn open(&self) -> Result<DumpFile, NotOpened> {
        let mut file = match &self.kept {
            Kept::Path(path, stamp) => DumpFile::of_file(same(path, *stamp).map_err(OpenError::Io)?, self.number)?,
            Kept::Bytes(bytes) => DumpFile::number_of(bytes.to_vec(), self.number)?,
            Kept::Made(_) => DumpFile::of_file(self.copy().map_err(OpenError::Io)?.into(), 1)?,
        };
        (file.number, file.dumps) = (self.number, self.dumps);
        Ok(file)
    }

    /// A dump that was made of a log, in a file of its own.
    fn copy(&self) -> io::Result<Unnamed> {
        let mut file = Unnamed::in_folder(&std::env::temp_dir())?;
        if let Kept::Made(made) = &self.kept {
            made.lock().unwrap_or_else(PoisonError::into_inner).copy_to(&mut file)?;
        }
        io::Seek::rewind(&mut file)?;
        Ok(file)
    }

    /// Writes the dump to a file, which is whole or absent; of an input with several only this one. Only a regular
    /// file is replaced, and never the one that this dump is read from.
    pub(crate) fn save(&self, path: &Path, replace: Replace) -> Result<(), OutputError> {
        let inputs = match &self.kept {
            Kept::Path(own, _) => Inputs::of([own.as_path()]),
            Kept::Bytes(_) | Kept::Made(_) => Inputs::default(),
        };
        // An absolute path: `-` is a name like any other here.
        let Target::File(path) = Target::of(&std::path::absolute(path)?, replace, &inputs)? else {
            return Err(OutputError::NotOwn);
        };
        let mut file = Unnamed::in_folder(kwab::output::folder_of(&path))?;
        match &self.kept {
            Kept::Made(made) => {
                made.lock().unwrap_or_else(PoisonError::into_inner).copy_to(&mut file)?;
            }
            Kept::Bytes(bytes) => file.write_all(self.part(bytes)?)?,
            Kept::Path(path, stamp) => {
                let mut input = same(path, *stamp)?;
                if self.dumps > 1 {
                    let mut bytes = Vec::new();
                    input.read_to_end(&mut bytes)?;
                    file.write_all(self.part(&bytes)?)?;
                } else {
                    io::copy(&mut input, &mut file)?;
                }
            }
        }
        Ok(file.name(&path, replace)?)
    }

    /// The bytes of this dump among those of its input.
    fn part<'b>(&self, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        if self.dumps < 2 {
            return Ok(bytes);
        }
        let extent = kwab::model::extents(bytes).into_iter().nth(self.number - 1);
        let gone = || io::Error::other(format!("there is no dump {} in it any more; open it again", self.number));
        extent.and_then(|extent| bytes.get(extent)).ok_or_else(gone)
    }
}

/// Opens a file that must still be the one that this stamp was taken of.
fn same(path: &Path, stamp: Stamp) -> io::Result<File> {
    let file = File::open(path)?;
    if Stamp::of(&file.metadata()?) == stamp {
        return Ok(file);
    }
    Err(io::Error::other("the file is not the one that was opened: it was changed or replaced; open it again"))
}

/// Where a file is, and its stamp before it is opened: what replaces it meanwhile is then noticed.
fn place(input: &Input) -> io::Result<Option<(PathBuf, Stamp)>> {
    let Input::Path(path) = input else { return Ok(None) };
    let path = std::path::absolute(path)?;
    let stamp = Stamp::of(&std::fs::metadata(&path)?);
    Ok(Some((path, stamp)))
}

/// Looks at an input: where each of its dumps can be read, and what the import of a log said.
pub(crate) fn look(input: &Input, name: &Path) -> Result<(Vec<Source>, Option<ImportReport>), NotOpened> {
    let place = place(input).map_err(OpenError::Io)?;
    let opened = match input {
        Input::Path(path) => open::open(path)?,
        Input::Bytes(bytes) => open::open_bytes(bytes.to_vec(), &name.display().to_string())?,
    };
    let (kept, report): (Vec<Kept>, _) = match (opened, input) {
        (Opened::Dumps(dumps), _) => {
            let kept = || match (&place, input) {
                (Some((path, stamp)), _) => Some(Kept::Path(path.clone(), *stamp)),
                (None, Input::Bytes(bytes)) => Some(Kept::Bytes(Arc::clone(bytes))),
                (None, Input::Path(_)) => None,
            };
            ((0..dumps.count_all()).filter_map(|_| kept()).collect(), None)
        }
        (Opened::Log(report, dumps), _) => {
            let files = dumps.into_iter().filter_map(|dump| dump.file);
            (files.map(|file| Kept::Made(Mutex::new(file))).collect(), Some(*report))
        }
    };
    let dumps = kept.len();
    let source = |(number, kept)| Source { name: name.to_path_buf(), number, dumps, kept };
    Ok(((1..).zip(kept).map(source).collect(), report))
}
