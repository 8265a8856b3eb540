//! Opens whatever holds crashes, as [`crate::import::open`] does, and what other tools have recorded beside it.
//!
//! ```
//! use kwab::exchange::open::{Opened, open};
//!
//! let path = "../testing/data/exchange/process.core.gz";
//! let Opened::Log(report, dumps) = open(path.as_ref())? else { panic!("a core is not a dump") };
//! assert_eq!((report.dumps[0].kind.as_str(), dumps.len()), ("process", 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::File;
use std::io::{self, Cursor, Read, SeekFrom};
use std::path::Path;

use super::{ExchangeError, Format, HEAD, TextFormat, import_file, import_text};
use crate::import::open as logs;
pub use crate::import::open::{NotOpened, Opened};
use crate::import::{ImportReport, LogInput, Options, PendingDump};
use crate::model::OpenError;

/// Opens the regular file at `path`.
///
/// # Errors
/// [`NotOpened`]; damage is not an error.
pub fn open(path: &Path) -> Result<Opened, NotOpened> {
    let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if is_file && let Some(opened) = recorded(File::open(path).map_err(OpenError::Io)?, &name)? {
        return Ok(opened);
    }
    logs::open(path)
}

/// Opens an input that is in memory; `name` is what its dumps call it.
///
/// # Errors
/// [`NotOpened`]; damage is not an error.
pub fn open_bytes(bytes: Vec<u8>, name: &str) -> Result<Opened, NotOpened> {
    match recorded(Cursor::new(&bytes), name)? {
        Some(opened) => Ok(opened),
        None => logs::open_bytes(bytes, name),
    }
}

/// What another tool has recorded, also packed; `None` for a dump, a log or nothing that is known.
fn recorded(mut input: impl Read + io::Seek, name: &str) -> Result<Option<Opened>, NotOpened> {
    let options = Options { source: name.to_owned(), folder: Some(std::env::temp_dir()) };
    let mut head = Vec::new();
    (&mut input).take(HEAD as u64).read_to_end(&mut head).map_err(OpenError::Io)?;
    input.seek(SeekFrom::Start(0)).map_err(OpenError::Io)?;
    if let Some(format) = Format::of_head(&head) {
        return made(import_file(kept(&mut input)?, format, &options), None).map(Some);
    }
    let Ok(mut log) = LogInput::open(&mut input) else { return Ok(None) };
    let (head, problem) = (log.head().to_vec(), log.problem());
    if let Some(format) = Format::of_head(&head).filter(|_| log.is_recorded) {
        let file = kept(&mut log)?;
        return made(import_file(file, format, &options), problem.take()).map(Some);
    }
    let Some(format) = TextFormat::of_head(&head).filter(|_| !log.is_recorded) else { return Ok(None) };
    let imported = import_text(log, &head, format, &options, &mut |_| ()).map_err(ExchangeError::Import);
    made(imported, problem.take()).map(Some)
}

/// What is not read in order, in a file without a name.
fn kept(input: &mut impl Read) -> Result<File, NotOpened> {
    let copied = tempfile::tempfile().and_then(|mut file| io::copy(input, &mut file).map(|_| file));
    copied.map_err(|error| OpenError::Io(error).into())
}

fn made(
    imported: Result<(ImportReport, Vec<PendingDump>), ExchangeError>,
    problem: Option<String>,
) -> Result<Opened, NotOpened> {
    let (report, dumps) = imported.map_err(|error| match error {
        ExchangeError::Io(error) => OpenError::Io(error).into(),
        ExchangeError::Import(error) => NotOpened::Import(error),
        ExchangeError::Refused(why) => NotOpened::Refused(why),
    })?;
    Ok(Opened::Log(Box::new(ImportReport { cut: problem.or(report.cut), ..report }), dumps))
}
