//! The end of the console log before the death, from lines of an imported log or from the kernel's own buffer.

use std::collections::HashSet;

use kwab_format::record::{Cause, LogChunk, TextKind};
use kwab_format::{AnyRecord, Records, SectionKind};

use super::LogRow;
use crate::model::log::leveled;
use crate::model::{Dump, line};

/// The last `rows` lines that say something, oldest first.
pub(super) fn log(dump: &Dump, rows: usize) -> Vec<LogRow> {
    let death = dump.records::<Cause<'_>>().next().and_then(|cause| cause.stamp.line);
    let mut found: Vec<(Option<u64>, &[u8])> = Vec::new();
    let mut buffer: Vec<&[u8]> = Vec::new();
    for section in dump.loaded.iter().filter(|section| section.kind == SectionKind::LOG) {
        for raw in Records::new(&section.payload) {
            match raw.decode() {
                Ok(AnyRecord::Text(text)) => {
                    let wanted = matches!(text.kind, Some(TextKind::CONSOLE | TextKind::PANIC));
                    if wanted && death.is_none_or(|death| text.stamp.line.is_none_or(|line| line <= death + 4)) {
                        found.push((text.stamp.line, text.bytes.unwrap_or_default()));
                    }
                }
                Ok(AnyRecord::LogChunk(LogChunk { bytes: Some(bytes), .. })) => buffer.push(bytes),
                _ => {}
            }
        }
    }
    // A line may begin in one piece of the kernel's buffer and end in the next.
    let buffer = buffer.concat();
    // What the console showed of the buffer is shown once, with the buffer's priorities.
    if !found.is_empty() {
        let kept: HashSet<&[u8]> = buffer.split(|byte| *byte == b'\n').map(message).collect();
        found.retain(|(_, bytes)| !kept.contains(message(bytes)));
    }
    found.extend(buffer.split(|byte| *byte == b'\n').map(|line| (None, line)));
    let last = found.into_iter().rev().map(row).filter(|row| !row.text.trim().is_empty()).take(rows);
    let mut shown: Vec<LogRow> = last.collect();
    shown.reverse();
    shown
}

/// A line without its priority and the blanks around it.
fn message(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| *byte == b'>').unwrap_or_default();
    let is_priority =
        line.first() == Some(&b'<') && (2..=4).contains(&end) && line[1..end].iter().all(u8::is_ascii_digit);
    line.get(end + 1..).filter(|_| is_priority).unwrap_or(line).trim_ascii()
}

/// A line; the priority that syslog(2) puts before it is a member of its own.
fn row((line, bytes): (Option<u64>, &[u8])) -> LogRow {
    let text = line::printable(bytes);
    let (level, text) = leveled(&text);
    LogRow { line, level, text: text.to_string() }
}

#[cfg(test)]
mod tests {
    use kwab_format::record::Text;
    use kwab_format::{BootId, DumpId, FileHeader};

    use super::*;
    use crate::model::emit::DumpWriter;

    #[test]
    fn lines_of_the_kernels_buffer_are_whole_and_tell_their_level() {
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        let mut put = |bytes: &[u8]| {
            writer.put(SectionKind::LOG, &LogChunk { bytes: Some(bytes), ..LogChunk::default() });
        };
        put(b"tail of a line\n<6>[ 0.1] memory\n<3>[ 0.2] broken be");
        put(b"yond repair\n<x>odd\n\n");
        let dump = Dump::from_bytes(writer.finish().unwrap()).unwrap();
        let told = |rows| -> Vec<(Option<u8>, String)> {
            log(&dump, rows).into_iter().map(|row| (row.level, row.text)).collect()
        };
        assert_eq!(
            told(3),
            [
                (Some(6), "[ 0.1] memory".into()),
                (Some(3), "[ 0.2] broken beyond repair".into()),
                (None, "<x>odd".into())
            ]
        );
        assert_eq!(told(9).len(), 4);
    }

    #[test]
    fn a_line_that_the_console_showed_of_the_buffer_is_shown_once() {
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        for line in ["[ 0.1] memory", "firmware only"] {
            let text = Text { kind: Some(TextKind::CONSOLE), bytes: Some(line.as_bytes()), ..Text::default() };
            writer.put(SectionKind::LOG, &text);
        }
        let chunk = LogChunk { bytes: Some(b"<6>[ 0.1] memory\n<6>[ 0.2] more\n"), ..LogChunk::default() };
        writer.put(SectionKind::LOG, &chunk);
        let dump = Dump::from_bytes(writer.finish().unwrap()).unwrap();
        let told: Vec<String> = log(&dump, 9).into_iter().map(|row| row.text).collect();
        assert_eq!(told, ["firmware only", "[ 0.1] memory", "[ 0.2] more"]);
    }
}
