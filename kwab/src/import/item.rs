//! What a log holds, as the stages from [`events`](super::events) on hand it over.

use kwab_format::armour::Chunk;
use kwab_format::record::TextKind;

use super::lines::LogPosition;

/// One thing that a log holds. It borrows from the stage that gives it and is valid until the next pull.
///
/// An event comes in a slot of the caller's: it is long, and moving it would cost a tenth of the import.
#[derive(Debug)]
pub enum LogItem<'a> {
    /// An event that was understood; it is in the slot. Its `stamp.line` is the line it begins on.
    Event {
        /// The line whose reading completed it.
        line: LogPosition,
    },
    /// Console text: a line, or a piece of one.
    Text {
        /// Its bytes, as they stood.
        bytes: &'a [u8],
        /// What has been read of the log from its first byte on; nothing if the bytes were put together from pieces.
        ahead: &'a [u8],
        /// Where they stand.
        position: LogPosition,
        /// Whether a line end follows.
        ends_line: bool,
    },
    /// A sound armoured line.
    Armour {
        /// What it carries.
        chunk: &'a Chunk,
        /// Line of the log that it stands on.
        line: LogPosition,
    },
    /// Something that should have been understood and was not.
    Lost {
        /// What it looks like.
        kind: TextKind,
        /// Bytes of the line, without its end.
        bytes: &'a [u8],
        /// Where they stand.
        position: LogPosition,
        /// Why it was not understood.
        problem: &'a str,
    },
    /// The token gave nothing by itself: line noise, or a torn event that waits for its rest.
    Nothing,
}
