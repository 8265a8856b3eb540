//! Finds dumps in a larger run of bytes: a dump channel, a disk, a memory region with slots.
//!
//! In a stream any bytes may stand before, between and behind dumps: padding, an older dump, noise. A dump begins at a
//! sound file header, or at a sound section header of a dump whose file header is lost, and ends behind its end section
//! (and the sections of the same dump that follow it at once) or where another dump begins.

use crate::section::{
    DumpId, FILE_HEADER_LEN, FILE_MAGIC, FileHeader, SECTION_HEADER_LEN, SYNC_MARK, SectionHeader, SectionKind,
};

/// A stretch of a stream that holds one dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// Id in the dump's file header; the key to tell interleaved dumps apart.
    pub dump_id: DumpId,
    /// Where it begins in the stream.
    pub offset: usize,
    /// Its bytes, to be given to [`Reader::new`](crate::Reader::new).
    pub bytes: &'a [u8],
}

/// Iterates the dumps of a stream in order of offset.
#[derive(Clone, Copy, Debug)]
pub struct Dumps<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Dumps<'a> {
    /// Looks from the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0 }
    }
}

impl<'a> Iterator for Dumps<'a> {
    type Item = Found<'a>;

    fn next(&mut self) -> Option<Found<'a>> {
        let (start, first) = find_mark(self.bytes, self.pos)?;
        let dump_id = first.dump_id();
        let mut at = start.saturating_add(first.len());
        loop {
            match find_mark(self.bytes, at) {
                Some((next, Mark::Section(header))) if header.dump_id == dump_id => {
                    let end = next.saturating_add(usize::try_from(header.total_len()).unwrap_or(usize::MAX));
                    if header.kind == SectionKind::END {
                        at = end.min(self.bytes.len());
                        let next = self.bytes.get(at..).and_then(mark_at);
                        if matches!(next, Some(Mark::Section(header)) if header.dump_id == dump_id) {
                            continue;
                        }
                        break;
                    }
                    at = if ends_soundly(self.bytes, end) { end } else { next.saturating_add(SECTION_HEADER_LEN) };
                }
                Some((next, _)) => {
                    at = next;
                    break;
                }
                None => {
                    at = self.bytes.len();
                    break;
                }
            }
        }
        self.pos = at;
        Some(Found { dump_id, offset: start, bytes: self.bytes.get(start..at).unwrap_or_default() })
    }
}

/// Whether a slot of a memory region begins with a dump that has not been collected yet.
#[must_use]
pub fn slot_is_used(slot: &[u8]) -> bool {
    slot.first_chunk::<FILE_HEADER_LEN>().is_some_and(|header| FileHeader::decode(header).is_ok())
}

enum Mark {
    File(FileHeader),
    Section(SectionHeader),
}

impl Mark {
    const fn dump_id(&self) -> DumpId {
        match self {
            Self::File(header) => header.dump_id,
            Self::Section(header) => header.dump_id,
        }
    }

    /// How far to go before looking for the next mark.
    const fn len(&self) -> usize {
        match self {
            Self::File(_) => FILE_HEADER_LEN,
            Self::Section(_) => 0,
        }
    }
}

/// Whether a mark of any kind, or the end, stands at `at`: then the payload before it need not be searched.
fn ends_soundly(bytes: &[u8], at: usize) -> bool {
    let up_to_header = bytes.get(..at.saturating_add(FILE_HEADER_LEN)).unwrap_or(bytes);
    find_mark(up_to_header, at).is_some_and(|(found, _)| found == at)
}

/// The first sound header of either kind at or behind `from`, in one pass: looking for one kind to the end each time
/// would make a channel full of the other kind quadratic.
fn find_mark(bytes: &[u8], from: usize) -> Option<(usize, Mark)> {
    let ([section_mark, ..], [file_mark, ..]) = (SYNC_MARK, FILE_MAGIC);
    let mut at = from;
    loop {
        let skip = bytes.get(at..)?.iter().position(|&b| b == section_mark || b == file_mark)?;
        at = at.saturating_add(skip);
        if let Some(mark) = mark_at(bytes.get(at..)?) {
            return Some((at, mark));
        }
        at = at.saturating_add(1);
    }
}

fn mark_at(bytes: &[u8]) -> Option<Mark> {
    let section = bytes.first_chunk::<SECTION_HEADER_LEN>().map(SectionHeader::decode);
    let file = bytes.first_chunk::<FILE_HEADER_LEN>().map(FileHeader::decode);
    match (section, file) {
        (Some(Ok(header)), _) => Some(Mark::Section(header)),
        (_, Some(Ok(header))) => Some(Mark::File(header)),
        _ => None,
    }
}
