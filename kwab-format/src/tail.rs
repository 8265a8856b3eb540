//! Finds the end section from the back, so that a reader that seeks needs only the last few kilobytes of a large dump.
//!
//! The end section says where the index is, and the index where everything else is. Neither is ever required: a walk
//! over the headers finds the same sections.

use crate::reader::Section;
use crate::record::{AnyRecord, End, RawRecord};
use crate::section::{SECTION_HEADER_LEN, SYNC_MARK, SectionHeader, SectionKind};

/// Bytes from the back of a dump that always hold its end section: what a writer keeps free for it.
pub const TAIL_LEN: usize = 2048;

/// The end section, given the last [`TAIL_LEN`] bytes of a dump or more, and where its header stands in `tail`.
#[must_use]
pub fn find_end(tail: &[u8]) -> Option<Section<'_>> {
    let marks = tail.windows(SYNC_MARK.len()).enumerate().rev().filter(|(_, window)| **window == SYNC_MARK);
    marks.filter_map(|(at, _)| end_at(tail, at)).next()
}

/// What the end section says, when it is sound.
#[must_use]
pub fn end_record<'a>(end: &Section<'a>) -> Option<End<'a>> {
    let decoded = |raw: RawRecord<'a>| match raw.decode() {
        Ok(AnyRecord::End(end)) => Some(end),
        _ => None,
    };
    end.records().filter_map(decoded).last()
}

fn end_at(tail: &[u8], at: usize) -> Option<Section<'_>> {
    let rest = tail.get(at..)?;
    let header = SectionHeader::decode(rest.first_chunk::<SECTION_HEADER_LEN>()?).ok()?;
    if header.kind != SectionKind::END {
        return None;
    }
    let section = Section::parse(rest, at)?;
    section.verify().is_ok().then_some(section)
}
