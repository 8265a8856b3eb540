//! Turns a serial log into dumps: one per crash, or one recording when nothing crashed.
//!
//! The way of a byte: [`input`] unpacks a compressed log and refuses what is not a log, [`lines`] cuts the stream, [`scan`]
//! tells events from text and mends what is torn, [`event`] and [`lex`] read the events, [`text`] recognises what kernels
//! print around a death, [`watch`] follows it from line to line, and [`recorder`] decides which dump ([`segment`])
//! everything belongs to. [`crash`] says what one crash is; [`emit`] makes sections of the records.
//!
//! Nothing is lost silently: what could not be understood is counted, named in [`ImportReport`], and kept in the dump.
//! Memory stays bounded whatever the log holds.

pub mod assemble;
pub mod boot;
pub mod channel;
pub mod crash;
pub mod event;
pub mod input;
pub mod lines;
pub mod pending;
pub mod recorder;
pub mod reports;
pub mod scan;
pub mod segment;
pub mod summary;
pub mod text;
pub mod watch;

pub use crate::model::emit;
pub use crate::text::lex;

use std::io::{self, Read};
use std::path::PathBuf;

pub use channel::{import_channel, is_channel};
pub use input::{InputError, LogInput};
pub use pending::{PendingDump, PendingFile};
pub use summary::{DumpSummary, ImportReport, Loss, Losses};

use lines::Lines;
use recorder::Recorder;
use scan::{Place, Scanner};

/// What an import needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// The log's name, for reports and for the dumps' source record.
    pub source: String,
    /// Folder of the temporary files, on the file system of the output; `None` writes nothing.
    pub folder: Option<PathBuf>,
}

/// Why a log could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Reading the log failed.
    #[error("reading the log failed after {offset} bytes: {error}")]
    Read {
        /// Bytes read before.
        offset: u64,
        /// What the system said.
        error: io::Error,
    },
    /// Writing a dump failed.
    #[error("writing the dump failed: {0}")]
    Write(io::Error),
}

/// Reads a log to its end. `progress` hears the offset now and then.
///
/// The dumps are files without a name; they are gone with the process unless they are given one.
///
/// # Errors
/// [`ImportError`]; nothing is left behind then.
pub fn import(
    mut input: impl Read,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    import_from(&mut input, options, progress)
}

/// The same without a type parameter: one copy of the hot path, compiled here rather than in every caller.
fn import_from(
    input: &mut dyn Read,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    let mut head = Vec::new();
    let read = |error| ImportError::Read { offset: 0, error };
    Read::take(&mut *input, HEAD).read_to_end(&mut head).map_err(read)?;
    let seed = hash(&head) ^ hash(options.source.as_bytes()).rotate_left(32);
    let mut lines = Lines::new(io::Cursor::new(head).chain(input));
    let mut scanner = Scanner::new();
    let mut recorder = Recorder::new(options.folder.clone(), &options.source, seed).map_err(ImportError::Write)?;
    let mut next_check = 0;
    let mut end = Place { offset: 0, line: 1 };
    loop {
        if end.offset >= next_check {
            recorder.check().map_err(ImportError::Write)?;
            progress(end.offset);
            next_check = end.offset + (4 << 20);
        }
        let line = lines.next_line().map_err(|error| ImportError::Read { offset: end.offset, error })?;
        let Some(line) = line else { break };
        scanner.line(&line, &mut recorder);
        end.offset = line.offset + line.bytes.len() as u64 + u64::from(line.ended);
        end.line = line.number + 1;
    }
    scanner.finish(&mut recorder);
    progress(end.offset);
    recorder.finish(end).map_err(ImportError::Write)
}

/// Bytes at the front of a log that its dumps are named after.
const HEAD: u64 = 64 << 10;

/// FNV-1a: dumps are named after their log, so that importing it again gives the same bytes.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
