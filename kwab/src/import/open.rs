//! Opens whatever holds crashes: dumps as they are, logs and dump channels as the dumps they become.
//!
//! ```
//! use kwab::import::open::{Opened, open_bytes};
//!
//! let log = b"[    0.91] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n";
//! let Opened::Log(report, dumps) = open_bytes(log.to_vec(), "serial.log")? else { panic!("a log is not a dump") };
//! assert_eq!((report.lines, dumps.len()), (1, 1));
//!
//! let bytes = std::fs::read("../testing/dumps/leak.kwab")?;
//! let Opened::Dumps(dumps) = open_bytes(bytes, "leak.kwab")? else { panic!("a dump is not a log") };
//! assert_eq!(dumps.count_all(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::File;
use std::io::{Cursor, Read, Seek as _};
use std::path::Path;

use super::{
    Dialects, ImportError, ImportReport, LogInput, Options, PendingDump, import_channel, import_with, is_channel,
};
use crate::model::{DumpsOf, OpenError};
use crate::units::count;

/// A file longer than this is not looked into for a dump channel: channels are small.
const LONGEST_CHANNEL: u64 = 1 << 30;

/// What an input turned out to be.
#[derive(Debug)]
pub enum Opened {
    /// A file of dumps.
    Dumps(DumpsOf),
    /// A log or a dump channel, and the dumps that it became. They have no names and are gone with the process.
    Log(Box<ImportReport>, Vec<PendingDump>),
}

/// Why an input gives no dump.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    /// It cannot be read, or is neither a dump nor a log.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// A log that cannot be imported.
    #[error("{0}")]
    Import(#[from] ImportError),
    /// What another tool has recorded, of a kind that is not read.
    #[error("{0}")]
    Refused(String),
    /// A log in which nothing was recognised.
    #[error("is a log without a crash: nothing was recognised in {}", count(*lines, "line", "lines"))]
    NoCrash {
        /// Lines of the log.
        lines: u64,
    },
    /// A FIFO or a device, which may never end.
    #[error("is not a regular file; read it to its end, and open the bytes")]
    NotRegular,
}

/// Opens the regular file at `path`.
///
/// # Errors
/// [`NotOpened`]; damage is not an error.
pub fn open(path: &Path) -> Result<Opened, NotOpened> {
    let meta = std::fs::metadata(path).map_err(OpenError::Io)?;
    if !meta.is_file() && !meta.is_dir() {
        return Err(NotOpened::NotRegular);
    }
    let other = match DumpsOf::open(path) {
        Ok(dumps) => return Ok(Opened::Dumps(dumps)),
        Err(error) => error,
    };
    let mut file = File::open(path).map_err(OpenError::Io)?;
    let mut head = [0; 8];
    let begins_empty = file.read_exact(&mut head).is_ok() && head == [0; 8];
    file.rewind().map_err(OpenError::Io)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if begins_empty && meta.len() <= LONGEST_CHANNEL {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(OpenError::Io)?;
        return imported_bytes(bytes, other, name);
    }
    imported(file, other, &options(name))
}

/// Opens an input that is in memory; `name` is what its dumps call it.
///
/// # Errors
/// [`NotOpened`]; damage is not an error.
pub fn open_bytes(bytes: Vec<u8>, name: &str) -> Result<Opened, NotOpened> {
    if bytes.starts_with(&kwab_format::section::FILE_MAGIC) {
        return Ok(Opened::Dumps(DumpsOf::within(bytes)?));
    }
    let other = match DumpsOf::within(bytes.clone()) {
        Ok(dumps) => return Ok(Opened::Dumps(dumps)),
        Err(error) => error,
    };
    imported_bytes(bytes, other, name.to_owned())
}

fn options(source: String) -> Options {
    Options { source, folder: Some(std::env::temp_dir()) }
}

fn imported_bytes(bytes: Vec<u8>, other: OpenError, name: String) -> Result<Opened, NotOpened> {
    if is_channel(&bytes) {
        let (report, dumps) = import_channel(&bytes, &options(name))?;
        return if dumps.is_empty() { Err(other.into()) } else { Ok(Opened::Log(Box::new(report), dumps)) };
    }
    imported(Cursor::new(bytes), other, &options(name))
}

/// Imports a log; `other` says what the input is when it is not one.
fn imported(input: impl Read, other: OpenError, options: &Options) -> Result<Opened, NotOpened> {
    let may_be_log = matches!(other, OpenError::Text | OpenError::Foreign { .. } | OpenError::NotADump(_));
    let Some(log) = may_be_log.then(|| LogInput::open(input).ok()).flatten() else { return Err(other.into()) };
    let problem = log.problem();
    let (report, dumps) = import_with(log, options, Dialects::builtin(), &mut |_offset| ())?;
    let report = ImportReport { cut: problem.take(), ..report };
    let recognised = report.events > 0 || dumps.iter().any(|dump| dump.summary.number > 0);
    if recognised || report.unexplained.is_some() {
        return Ok(Opened::Log(Box::new(report), dumps));
    }
    Err(match other {
        OpenError::Text => NotOpened::NoCrash { lines: report.lines },
        // What has the first bytes of a file format, or none that are text, is not a log for having no crash.
        other => other.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_a_crash_is_refused_with_the_lines_that_were_read() {
        let error = open_bytes(b"all is well\nstill well\n".to_vec(), "log").unwrap_err();
        assert!(matches!(error, NotOpened::NoCrash { lines: 2 }), "{error}");
    }

    #[test]
    fn what_is_neither_is_said_to_be_what_it_is() {
        let error = open_bytes(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0".to_vec(), "image").unwrap_err();
        assert!(matches!(error, NotOpened::Open(OpenError::Foreign { .. })), "{error}");
        assert!(matches!(open_bytes(Vec::new(), "x").unwrap_err(), NotOpened::Open(OpenError::Empty)));
    }

    #[test]
    fn a_device_that_never_ends_is_refused() {
        assert!(matches!(open("/dev/zero".as_ref()).unwrap_err(), NotOpened::NotRegular));
    }

    #[test]
    fn a_file_and_its_bytes_become_the_same() {
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/logs");
        let mut logs = 0;
        for entry in std::fs::read_dir(log).unwrap().flatten().filter(|entry| entry.path().is_file()) {
            let bytes = std::fs::read(entry.path()).unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            match (open(&entry.path()), open_bytes(bytes, &name)) {
                (Ok(Opened::Log(one, first)), Ok(Opened::Log(other, second))) => {
                    logs += 1;
                    assert_eq!((one.lines, first.len()), (other.lines, second.len()), "{name}");
                }
                (Ok(Opened::Dumps(_)), Ok(Opened::Dumps(_))) => {}
                (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string(), "{name}"),
                _ => panic!("{name}: the file and its bytes differ"),
            }
        }
        assert!(logs > 3, "{logs} logs");
    }
}
