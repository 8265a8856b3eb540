//! Makes finished dumps of the segments of a log: the last stage of an import.

use std::io::Read;

use super::crashes::Crashes;
use super::pending::{Keeper, PendingDump};
use super::segments::ClosedSegment;
use super::summary::ImportReport;
use super::{ImportError, Options};

/// The dumps of a log, in its order. They have no names yet.
#[derive(Debug)]
pub struct Dumps<'a, R> {
    crashes: Crashes<R>,
    keeper: Keeper,
    options: &'a Options,
}

impl<'a, R: Read> Dumps<'a, R> {
    /// Finishes the segments of `crashes`.
    pub fn new(crashes: Crashes<R>, options: &'a Options) -> Self {
        Self { crashes, keeper: Keeper::default(), options }
    }

    /// Reads on until a dump is complete; `None` at the end. `progress` hears the offset now and then.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn next_dump(&mut self, progress: &mut dyn FnMut(u64)) -> Result<Option<PendingDump>, ImportError> {
        let Some(ClosedSegment { segment, number, end }) = self.crashes.next_segment(progress)? else {
            return Ok(None);
        };
        let finished = segment.finish(number, &self.options.source, end, self.crashes.dialect());
        let folder = self.options.folder.as_deref();
        finished.and_then(|finished| self.keeper.dump(finished, folder)).map(Some).map_err(ImportError::Write)
    }

    /// The report of a log that has been read to its end and gave `dumps`.
    pub fn report(self, dumps: &mut [PendingDump]) -> ImportReport {
        self.crashes.report(dumps)
    }
}
