//! Tells the first line of a report from lines that look like one.

use super::build::Builder;
use super::class::Class;
use super::dialect::{self, Dialects};
use super::template::Captures;
use super::{LogPosition, deadly, linux};

/// What a line that opens a report of another kernel says, by a row or by deadly words; `is_open` says that its stream
/// has a report already, `linux` that the log is one of Linux.
pub(super) fn opening<'t, 'l>(
    dialects: &'t Dialects,
    text: &'l [u8],
    is_open: bool,
    linux: bool,
) -> Option<(dialect::Opening, Option<Captures<'t, 'l>>)> {
    if let Some((opening, captures)) = dialects.opens(text) {
        // The expression of an assertion is not a setting, whatever its name.
        let may_be = opening.class != Class::Assertion;
        let healthy = may_be && captures.get("message").is_some_and(deadly::is_healthy);
        return (!healthy).then(|| (opening.clone(), Some(captures)));
    }
    // A report in quotation marks, where prose cites it: worth one only with what a kernel prints behind it.
    if let Some((opening, captures)) = text.strip_prefix(b"\"").and_then(|text| dialects.opens(text)) {
        return Some((dialect::Opening { weak: true, ..opening.clone() }, Some(captures)));
    }
    let said = deadly::deadly(text).map(|(class, bare)| (class, bare == text && deadly::is_title(class, bare)));
    // A report that is open reads such a line as one of its own.
    let mentioned = || deadly::mentions(text).filter(|_| !is_open && !linux);
    let said = said.or_else(|| mentioned().map(|class| (class, true)));
    let (class, weak) = said.filter(|(class, _)| !linux || *class == Class::Panic)?;
    let title = "{message}".into();
    Some((dialect::Opening { row: usize::MAX, class, title, stage: true, program: false, weak }, None))
}

/// Whether what is open is only the text that a warning prints between the cut mark and its first line.
pub(super) fn is_text_of(builder: &Builder, found: &linux::Found<'_, '_>, position: LogPosition) -> bool {
    let report = &builder.report;
    let behind_the_mark = report.first.line < report.last.line && report.last.line + 1 == position.line;
    found.head.class == Class::Warning
        && found.head.title == "WARNING in {function}"
        && behind_the_mark
        && !builder.has_stack()
        && report.registers.is_empty()
}

/// The text of a Markdown heading, as an issue has it that is titled with the first line of its report.
pub(super) fn title(text: &[u8]) -> Option<&[u8]> {
    let signs = text.iter().take_while(|byte| **byte == b'#').count();
    let rest = text.get(signs..)?.strip_prefix(b" ")?;
    (1..=6).contains(&signs).then(|| rest.trim_ascii_start())
}

/// Whether the first line of a report is told well enough to be one in a heading.
pub(super) fn may_be_title(found: &linux::Found<'_, '_>) -> bool {
    use linux::heads::Part;
    matches!(found.head.part, Part::Opens | Part::Announces | Part::Panic) && found.head.title != "BUG: {message}"
}

/// A line of signs by which reports begin.
pub(super) fn is_cut(text: &[u8]) -> bool {
    text.starts_with(b"------------[ cut here ]")
        || text.starts_with(b"8<--- cut here")
        || text.starts_with(b"====================")
}
