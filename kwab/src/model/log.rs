//! Where every line of the console stands: 16 bytes each, the text stays in the dump.
//!
//! A log is kept as records of one line ([`Text`]) or as pieces of many ([`LogChunk`]); here both are lines. Torn and
//! unknown lines of an import are among them, in the order of the log.

use std::borrow::Cow;
use std::ops::ControlFlow;

use kwab_format::record::{LogChunk, Text, TextKind};
use kwab_format::{AnyRecord, RawRecord, RecordType, Records, SectionKind};

use super::line::printable;
use super::memory::Budget;
use super::payloads::Payloads;

/// The position of a line in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine {
    /// Index of its section.
    pub section: u32,
    /// Where its record begins in the section's payload.
    pub offset: u32,
    /// Where the line begins in the record's bytes.
    pub start: u32,
    /// Bytes of the line.
    pub length: u32,
}

/// A line as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogText {
    /// Line of the imported log.
    pub line: Option<u64>,
    /// Nanoseconds since boot.
    pub ns: Option<u64>,
    /// What kind of text, when the dump says.
    pub kind: Option<&'static str>,
    /// The text, without control characters.
    pub text: String,
}

/// What a line takes of the dump's budget: its position, and room to grow and to sort.
const PRICE: u64 = 3 * size_of::<(u64, LogLine)>() as u64;

/// The console lines of a dump, in the order of the log.
#[derive(Debug, Clone, Default)]
pub struct LogIndex {
    /// The lines, in the order of the log.
    pub lines: Vec<LogLine>,
    /// Sections that could not be read.
    pub lost: usize,
    /// Lines that the dump's memory limit left no room for.
    pub left_out: usize,
}

impl LogIndex {
    /// Reads all sections with console text. `progress` is told the sections done and all; breaking off gives `None`.
    pub fn build(payloads: &Payloads, progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>) -> Option<Self> {
        let file = payloads.file();
        let is_log = |kind: SectionKind| matches!(kind, SectionKind::LOG | SectionKind::KEPT);
        let wanted: Vec<usize> =
            (0..file.sections.len()).filter(|index| is_log(file.sections[*index].header.kind)).collect();
        let mut found: Vec<(u64, LogLine)> = Vec::new();
        let (mut lost, mut left_out) = (0, 0);
        for (done, section) in wanted.iter().enumerate() {
            if progress(done, wanted.len()).is_break() {
                return None;
            }
            match file.payload(*section) {
                Ok(payload) => left_out += add(*section, &payload, &file.budget, &mut found),
                Err(_) => lost += 1,
            }
        }
        found.sort_by_key(|(line, _)| *line);
        Some(Self { lines: found.into_iter().map(|(_, line)| line).collect(), lost, left_out })
    }

    /// The text of a line.
    #[must_use]
    pub fn text(&self, payloads: &Payloads, index: usize) -> Option<LogText> {
        let line = *self.lines.get(index)?;
        payloads.record(line.section as usize, line.offset as usize, |raw| {
            let record = raw.decode().ok()?;
            let stamp = record.stamp();
            let bytes = bytes_of(&record)?;
            let piece = bytes.get(line.start as usize..)?.get(..line.length as usize)?;
            let kind = match record {
                AnyRecord::Text(text) => text.kind.and_then(TextKind::name),
                _ => None,
            };
            Some(LogText { line: stamp.line, ns: stamp.ns, kind, text: printable(piece) })
        })?
    }
}

/// The level of a line and its text behind it: 0 is the most urgent, 7 for debugging, as syslog(2) numbers them; no
/// level where the line does not begin with a priority.
#[must_use]
pub fn leveled(line: &str) -> (Option<u8>, &str) {
    let prefixed = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let priority = |number: &str| number.parse::<u32>().ok().filter(|number| *number < 192);
    match prefixed.and_then(|(number, rest)| Some((priority(number)?, rest))) {
        Some((priority, rest)) => (Some((priority & 7) as u8), rest),
        None => (None, line),
    }
}

fn bytes_of<'a>(record: &AnyRecord<'a>) -> Option<&'a [u8]> {
    match record {
        AnyRecord::Text(text) => text.bytes,
        AnyRecord::LogChunk(chunk) => chunk.bytes,
        _ => None,
    }
}

/// Adds the lines of a section; gives how many had no room.
fn add(section: usize, payload: &[u8], budget: &Budget, found: &mut Vec<(u64, LogLine)>) -> usize {
    let mut records = Records::new(payload);
    let (mut at, mut number, mut left_out) = (0, 0, 0);
    while let Some(raw) = records.next() {
        let offset = at;
        at = payload.len() - records.rest().len();
        if !matches!(raw.kind, Text::KIND | LogChunk::KIND) {
            continue;
        }
        let Some((line, bytes)) = line_and_bytes(raw) else { continue };
        number = line.unwrap_or(number);
        let mut start = 0;
        for piece in bytes.split(|byte| *byte == b'\n') {
            let last = start + piece.len() >= bytes.len();
            // What follows the last newline is not a line of its own.
            if !(piece.is_empty() && last && start > 0) {
                let position =
                    [section, offset, start, piece.len()].map(|part| u32::try_from(part).unwrap_or(u32::MAX));
                let [section, offset, start, length] = position;
                if budget.take(PRICE) {
                    found.push((number, LogLine { section, offset, start, length }));
                } else {
                    left_out += 1;
                }
            }
            start += piece.len() + 1;
        }
    }
    left_out
}

fn line_and_bytes(raw: RawRecord<'_>) -> Option<(Option<u64>, Cow<'_, [u8]>)> {
    let record = raw.decode().ok()?;
    Some((record.stamp().line, Cow::Borrowed(bytes_of(&record)?)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kwab_format::record::Stamp;
    use kwab_format::{BootId, DumpId, FileHeader};

    use super::*;
    use crate::model::DumpFile;
    use crate::model::emit::DumpWriter;

    #[test]
    fn a_chunk_of_many_lines_and_records_of_one_become_lines() {
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        let stamp = Stamp { line: Some(4), ..Stamp::default() };
        writer.put(SectionKind::LOG, &LogChunk { bytes: Some(b"one\n\nthree\n"), ..LogChunk::default() });
        writer.put(SectionKind::LOG, &Text { bytes: Some(b"four"), stamp, ..Text::default() });
        let file = DumpFile::from_bytes(writer.finish().unwrap()).unwrap();
        let payloads = Payloads::new(Arc::new(file));
        let index = LogIndex::build(&payloads, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let texts: Vec<_> = (0..index.lines.len()).map(|at| index.text(&payloads, at).unwrap().text).collect();
        assert_eq!(texts, ["one", "", "three", "four"]);
        assert_eq!((index.text(&payloads, 9), index.left_out), (None, 0));
        let budget = &payloads.file().budget;
        let length = payloads.file().payload(0).unwrap().len() as u64;
        assert!(budget.take(budget.left() - length - PRICE));
        let short = LogIndex::build(&payloads, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!((short.lines.len(), short.left_out), (1, 3));
    }
}
