//! Runs lines through the stages of an import that records nothing, to know when a crash begins and ends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;

use crate::import::boot::BootFacts;
use crate::import::crashes::{Bookmark, Crashes, Progress};
use crate::import::events::Events;
use crate::import::lines::{Lines, LogPosition};
use crate::import::processes::Processes;
use crate::import::segments::Segments;
use crate::import::tally::Tally;
use crate::import::tokens::Tokens;
use crate::import::{Dialects, ImportError};

/// Bytes that wait to be read; a reader that finds none would block.
#[derive(Debug, Clone, Default)]
struct Feed(Rc<RefCell<VecDeque<u8>>>);

impl Read for Feed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.0.borrow_mut().read(bytes)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

/// The stages, and what feeds them.
#[derive(Debug)]
pub(super) struct Watch {
    feed: Feed,
    crashes: Crashes<Feed>,
}

impl Watch {
    /// Starts with an empty log.
    ///
    /// # Errors
    /// None that the system knows: nothing is written.
    pub(super) fn new(source: &str, dialects: Dialects) -> io::Result<Self> {
        let feed = Feed::default();
        let events = Events::new(Tokens::new(Lines::new(feed.clone())));
        let start = LogPosition { offset: 0, line: 1 };
        let segments = Segments::starting_at(None, 0, BootFacts::first(), start)?;
        let (tally, processes) = (Tally::new(source), Processes::default());
        Ok(Self { feed, crashes: Crashes::starting_with(events, segments, tally, dialects, processes) })
    }

    /// Takes a line with its end, or a piece of one. Says how many crashes it closed.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<u32, ImportError> {
        self.feed.0.borrow_mut().extend(line);
        self.crashes.read_available()
    }

    /// How far the crashes have come.
    pub(super) fn progress(&self) -> Progress {
        self.crashes.progress()
    }

    /// The place behind the last line.
    pub(super) fn bookmark(&mut self) -> Bookmark {
        self.crashes.bookmark()
    }

    /// Forgets the crashes so far.
    pub(super) fn begin_again(&mut self) -> Result<(), ImportError> {
        self.crashes.begin_again()
    }
}
