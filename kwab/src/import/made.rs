//! Makes finished dumps of records that do not come from a log: of a dump channel, a core file, another tool's trace.
//!
//! The reader of such a file fills a [`DumpWriter`] and says what died; this gives the dump its identity, its place
//! among the others of the import, and the summary that every import prints.

use std::io::{self, Seek as _};

use kwab_format::{BootId, DumpId, FileHeader};

use super::boot::BootFacts;
use super::crash::Crash;
use super::emit::DumpWriter;
use super::lines::LogPosition;
use super::pending::{Keeper, PendingDump};
use super::segment::{Out, Segment};
use super::summary::{DumpSummary, ImportReport, SCHEMA};
use super::tally::mark_repetitions;
use super::{ImportError, Options, hash};
use crate::model::Death;
use crate::output::Unnamed;

/// What the reader of a file says about a dump that it has filled.
#[derive(Debug, Default)]
pub struct Told {
    /// The death; `None` for a recording.
    pub death: Option<Death>,
    /// Line of a text where it was first seen.
    pub line: Option<u64>,
    /// Events that were recorded.
    pub events: u64,
    /// What is missing, in a few words.
    pub missing: Vec<String>,
}

impl Told {
    /// The summary of dump `number`, whose bytes are not counted yet.
    pub(super) fn summary(&self, number: u32, boot: u32, crash: Option<Crash>) -> io::Result<DumpSummary> {
        let mut segment = Segment::new(None, 0, BootFacts::first(), LogPosition::default())?;
        segment.crash = crash;
        segment.events = self.events;
        Ok(DumpSummary {
            number,
            path: None,
            boot,
            kind: segment.kind_name().to_owned(),
            subject: segment.subject(),
            cause: segment.cause(),
            line: self.line,
            signature: segment.signature(),
            same_as: None,
            events: self.events,
            bytes: 0,
            missing: self.missing.clone(),
            printed: None,
        })
    }
}

/// The dumps of one file, in the order in which they are added.
#[derive(Debug)]
pub struct Maker<'o> {
    options: &'o Options,
    seed: u64,
    keeper: Keeper,
    report: ImportReport,
    dumps: Vec<PendingDump>,
}

impl<'o> Maker<'o> {
    /// Dumps of a file of `bytes` bytes whose beginning is `head`: what they are named after, so that importing it
    /// again gives the same bytes.
    #[must_use]
    pub fn new(options: &'o Options, head: &[u8], bytes: u64) -> Self {
        let seed = hash(head) ^ hash(options.source.as_bytes()).rotate_left(32) ^ bytes;
        let (schema, source) = (SCHEMA, options.source.clone());
        let report = ImportReport { schema, source, bytes, boots: 1, ..ImportReport::default() };
        Self { options, seed, keeper: Keeper::default(), report, dumps: Vec::new() }
    }

    /// Adds the dump that `fill` writes.
    ///
    /// # Errors
    /// [`ImportError::Write`] when the bytes cannot be kept.
    pub fn add(&mut self, fill: impl FnOnce(&mut DumpWriter<Out>) -> io::Result<Told>) -> Result<(), ImportError> {
        let dump = self.made(fill).map_err(ImportError::Write)?;
        self.report.events += dump.summary.events;
        self.dumps.push(dump);
        Ok(())
    }

    /// Bytes of all dumps that were added.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.dumps.iter().map(|dump| dump.summary.bytes).sum()
    }

    fn made(&mut self, fill: impl FnOnce(&mut DumpWriter<Out>) -> io::Result<Told>) -> io::Result<PendingDump> {
        let out = match &self.options.folder {
            Some(folder) => Out::File(Unnamed::in_folder(folder)?),
            None => Out::Nowhere,
        };
        let id = DumpId(self.seed.wrapping_add(self.dumps.len() as u64));
        let mut writer = DumpWriter::new(out, FileHeader::new(id, BootId([0; 16])));
        let told = fill(&mut writer)?;
        let position = LogPosition { offset: 0, line: told.line.unwrap_or(0) };
        let crash = told.death.as_ref().map(|death| Crash::from_cause(&death.record(), position));
        let deaths = self.dumps.iter().filter(|dump| dump.summary.number > 0).count() as u32;
        let number = if crash.is_some() { deaths + 1 } else { 0 };
        let mut summary = told.summary(number, 1, crash)?;
        let file = match (writer.finish()?, &self.options.folder) {
            (Out::File(mut file), Some(folder)) => {
                summary.bytes = file.stream_position()?;
                Some(self.keeper.keep(file, folder)?)
            }
            _ => None,
        };
        Ok(PendingDump { file, summary })
    }

    /// What was made; `cut` says why the file gave less than it claims, `lines` how many lines a text has.
    #[must_use]
    pub fn finish(mut self, lines: u64, cut: Option<String>) -> (ImportReport, Vec<PendingDump>) {
        mark_repetitions(&mut self.dumps);
        self.report.dumps = self.dumps.iter().map(|dump| dump.summary.clone()).collect();
        (self.report.lines, self.report.cut) = (lines, cut);
        (self.report, self.dumps)
    }
}
