//! Turns a serial log into dumps: one per crash, or one recording when nothing crashed.
//!
//! A pipeline in which each stage pulls from the one before it:
//!
//! | stage | takes | gives |
//! |---|---|---|
//! | [`input`] | bytes | text: unpacked, and refused when it is not a log |
//! | [`lines::Lines`] | text | lines with their positions |
//! | [`tokens::Tokens`] | lines | text, or the mark of an event and what follows it |
//! | [`events::Events`] | tokens | [`item::LogItem`]: typed events ([`event`]), text, armour, losses ([`mend`]) |
//! | [`crashes::Crashes`] | items | one recorded [`segment`] of the log per crash |
//! | [`dumps::Dumps`] | segments | finished dumps |
//!
//! [`crashes`] records every item in the segment that [`segments`] says it belongs to. [`console`] reads what a line of
//! console text means, with the grammars of [`text`]; [`printed`] has the records that are printed as text.
//! `pstore` puts a log that was saved from its end into the order of time.
//! [`processes`] remembers programs and faults, [`boot`] the facts about the running kernel, [`crash`] says what one
//! crash is, and [`tally`] counts everything for the report.
//!
//! Nothing is lost silently: what could not be understood is counted, named in [`ImportReport`], and kept in the dump.
//! Memory stays bounded whatever the log holds.

pub mod assemble;
pub mod boot;
pub mod channel;
pub mod console;
pub mod crash;
pub mod crashes;
pub mod dumps;
pub mod event;
pub mod events;
pub mod input;
pub mod item;
pub mod lines;
pub mod made;
pub mod mend;
pub mod open;
pub mod parity;
pub mod pending;
pub mod printed;
pub mod processes;
mod pstore;
mod quiet;
pub mod reported;
pub mod reports;
mod scout;
pub mod segment;
pub mod segments;
pub mod summary;
pub mod tally;
pub mod text;
pub mod tokens;

pub use crate::model::emit;
pub use crate::text::lex;

use std::hash::Hasher as _;
use std::io::{self, Read};
use std::path::PathBuf;

pub use channel::{import_channel, is_channel};
pub use input::{InputError, LogInput};
pub use pending::{PendingDump, PendingFile};
pub use reports::dialect::{DialectError, Dialects};
pub use summary::{DumpSummary, ImportReport, Loss, Losses, PrintedDump};

use fnv::FnvHasher;

use crashes::{Bookmark, Crashes};
use dumps::Dumps;
use events::Events;
use lines::Lines;
use segments::Segments;
use tally::Tally;
use tokens::Tokens;

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

/// As [`import`], with further dialects of kernels' reports ([`Dialects::from_toml`]).
///
/// # Errors
/// As [`import`].
pub fn import_with(
    mut input: impl Read,
    options: &Options,
    dialects: Dialects,
    progress: &mut dyn FnMut(u64),
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    import_from(&mut input, options, dialects, progress)
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
    import_from(&mut input, options, Dialects::builtin(), progress)
}

/// The same without a type parameter: one copy of the hot path, compiled here rather than in every caller.
fn import_from(
    input: &mut dyn Read,
    options: &Options,
    dialects: Dialects,
    progress: &mut dyn FnMut(u64),
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    let mut head = Vec::new();
    let read = |error| ImportError::Read { offset: 0, error };
    Read::take(&mut *input, HEAD).read_to_end(&mut head).map_err(read)?;
    pstore::in_order(&mut head, input).map_err(read)?;
    let seed = hash(&head) ^ hash(options.source.as_bytes()).rotate_left(32);
    let segments = Segments::new(options.folder.clone(), seed).map_err(ImportError::Write)?;
    let lines = Lines::new(io::Cursor::new(head).chain(input));
    let crashes = Crashes::new(Events::new(Tokens::new(lines)), segments, Tally::new(&options.source), dialects);
    let mut dumps = Dumps::new(crashes, options);
    let mut done = Vec::new();
    while let Some(dump) = dumps.next_dump(progress)? {
        done.push(dump);
    }
    let report = dumps.report(&mut done);
    Ok((report, done))
}

/// Imports a part of a log that begins at `start`. The dumps are as [`import`]'s.
///
/// # Errors
/// As [`import`].
pub fn import_part(
    mut part: impl Read,
    start: &Bookmark,
    options: &Options,
    dialects: Dialects,
) -> Result<Vec<PendingDump>, ImportError> {
    let seed = hash(options.source.as_bytes()).rotate_left(32) ^ hash(&start.position.offset.to_le_bytes());
    let segments = Segments::starting_at(options.folder.clone(), seed, start.boot.clone(), start.position);
    let lines = Lines::starting_at(&mut part as &mut dyn Read, start.position);
    let (events, tally) = (Events::new(Tokens::new(lines)), Tally::new(&options.source));
    let processes = start.processes.clone();
    let crashes = Crashes::starting_with(events, segments.map_err(ImportError::Write)?, tally, dialects, processes);
    let mut dumps = Dumps::new(crashes, options);
    std::iter::from_fn(|| dumps.next_dump(&mut |_offset| ()).transpose()).collect()
}

/// Bytes at the front of a log that its dumps are named after.
const HEAD: u64 = 64 << 10;

/// FNV-1a of 64 bits, which never changes: dumps are named after their log, so that importing it again gives the same
/// bytes.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
