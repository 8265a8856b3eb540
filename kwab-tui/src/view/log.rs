//! The console, line by line, with what of it was not understood.

use std::sync::Arc;

use kwab::model::log::{LogIndex, LogText, leveled};
use kwab::model::payloads::Payloads;
use kwab::report::filter::FieldValue;

use super::{Column, Link, Look, Row, Slot, Target, View, number, text};
use crate::text::{Line, duration};
use crate::theme::Tone;

/// The lines of the console as rows.
pub struct LogView {
    payloads: Arc<Payloads>,
    index: LogIndex,
    /// Whether lines have a number or a time of their own; a kernel's own buffer has neither.
    numbered: bool,
}

impl LogView {
    /// Shows an index.
    #[must_use]
    pub fn new(payloads: Arc<Payloads>, index: LogIndex) -> Self {
        let mut view = Self { payloads, index, numbered: true };
        // One kind of record makes nearly all lines of a dump, so that the first ones tell.
        let mut first = (0..view.index.lines.len().min(FIRST)).map(|at| view.line(at));
        view.numbered = view.index.lines.is_empty() || first.any(|line| line.line.is_some() || line.ns.is_some());
        view
    }

    fn line(&self, index: usize) -> LogText {
        self.index.text(&self.payloads, index).unwrap_or_default()
    }
}

/// Lines by which it is judged whether they have numbers.
const FIRST: usize = 256;

/// How a line is shown: what was torn and what shouts stands out.
fn tone(line: &LogText) -> Tone {
    let loud = |words: &[&str]| words.iter().any(|word| line.text.contains(word));
    match line.kind {
        Some("torn event" | "malformed event" | "binary") => Tone::Care,
        Some("panic text") => Tone::Alarm,
        _ if leveled(&line.text).0.is_some_and(|level| level <= CRITICAL) => Tone::Alarm,
        _ if leveled(&line.text).0.is_some_and(|level| level <= WARNING) => Tone::Care,
        _ if loud(&["panic", "PANIC", "BUG:", "Oops", "SIGSEGV"]) => Tone::Alarm,
        _ if loud(&["WARN", "warning", "ERROR", "error:"]) => Tone::Care,
        _ => Tone::Plain,
    }
}

/// The levels of syslog(2) by their names.
const LEVELS: [&str; 8] = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];
/// Levels up to which a line is an alarm, or wants care.
const CRITICAL: u8 = 2;
const WARNING: u8 = 4;

const COLUMNS: &[Column] = &[Column::number("line", 8, 1).incidental(), Column::rest("console")];

impl View for LogView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    fn has_column(&self, column: usize) -> bool {
        column != 0 || self.numbered
    }

    fn len(&self) -> usize {
        self.index.lines.len()
    }

    fn row(&self, index: usize, _look: &Look) -> Row {
        let line = self.line(index);
        let number = match (line.line, line.ns) {
            (Some(line), _) => line.to_string(),
            (None, Some(ns)) => format!("{:.3}", ns as f64 / 1e9),
            _ => String::new(),
        };
        let tone = tone(&line);
        Row::of(tone, [number, leveled(&line.text).1.to_owned()]).tone(0, Tone::Dim)
    }

    fn detail(&self, index: usize, _look: &Look) -> Vec<Line> {
        let line = self.line(index);
        let (level, told) = leveled(&line.text);
        let mut lines = vec![Line::of(tone(&line), told.to_owned())];
        lines.extend(level.map(|level| Line::field("level", LEVELS[usize::from(level)])));
        lines.extend(line.kind.map(|kind| Line::field("kind", kind)));
        lines.extend(line.line.map(|line| Line::field("line", line.to_string())));
        lines.extend(line.ns.map(|ns| Line::field("time", duration(ns))));
        lines
    }

    fn links(&self, index: usize, _look: &Look) -> Vec<Link> {
        let line = self.line(index).line;
        line.map(|line| Link::new("events around this line", Target::Line(line))).into_iter().collect()
    }

    fn target(&self, index: usize, _look: &Look) -> Option<Target> {
        Some(Target::Row(Slot::Log, index))
    }

    fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Row(Slot::Log, row) => Some(*row).filter(|row| *row < self.len()),
            Target::Record(at) => {
                let section = self.payloads.file().sections.iter().position(|info| info.header.seq == at.section)?;
                let payload = self.payloads.get(section).ok()?;
                let mut records = kwab::format::Records::new(&payload);
                for _ in 0..at.record {
                    records.next()?;
                }
                let offset = payload.len() - records.rest().len();
                let here = |line: &kwab::model::log::LogLine| {
                    line.section as usize == section && line.offset as usize == offset
                };
                self.index.lines.iter().position(here)
            }
            Target::Line(wanted) => {
                // Lines are in the order of the log.
                let number = |index: usize| self.line(index).line.unwrap_or(0);
                let (mut low, mut high) = (0, self.len());
                while low < high {
                    let middle = (low + high) / 2;
                    if number(middle) < *wanted { low = middle + 1 } else { high = middle }
                }
                Some(low.min(self.len().checked_sub(1)?))
            }
            _ => None,
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        &["line", "kind", "level"]
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        let line = self.line(index);
        match name {
            "line" => number(line.line?),
            "kind" => text(line.kind?),
            "level" => text(LEVELS[usize::from(leveled(&line.text).0?)]),
            _ => None,
        }
    }

    fn text(&self, index: usize) -> String {
        self.line(index).text
    }

    fn command(&self, dump: &str) -> String {
        format!("kwab cat {dump} log")
    }

    fn when_empty(&self) -> String {
        "no console text in this dump".to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use kwab::model::DumpFile;

    use super::*;

    fn of(dump: &str) -> LogView {
        let path = format!("{}/../testing/dumps/{dump}.kwab", env!("CARGO_MANIFEST_DIR"));
        let file = DumpFile::from_bytes(std::fs::read(path).unwrap()).unwrap();
        let payloads = Arc::new(Payloads::new(Arc::new(file)));
        let index = LogIndex::build(&payloads, &mut |_, _| ControlFlow::Continue(())).unwrap();
        LogView::new(payloads, index)
    }

    #[test]
    fn a_kernel_s_own_buffer_shows_its_levels_as_tones_and_no_empty_column() {
        let view = of("leak");
        assert!(!view.has_column(0) && view.has_column(1));
        let look = Look::default();
        let last = view.len() - 1;
        let row = view.row(last, &look);
        assert!(row.cells[1].1.starts_with("[    "), "{:?}", row.cells);
        let detail: Vec<String> = view.detail(last, &look).iter().map(Line::text).collect();
        assert!(detail.iter().any(|line| line.starts_with("level")), "{detail:?}");
        assert!((0..view.len()).all(|at| view.field(at, "level").is_some()));
    }

    #[test]
    fn an_urgent_level_is_an_alarm_and_a_warning_wants_care() {
        let of = |text: &str| tone(&LogText { line: None, ns: None, kind: None, text: text.to_owned() });
        assert_eq!((of("<0>[ 1.0] x"), of("<4>[ 1.0] x"), of("<6>[ 1.0] x")), (Tone::Alarm, Tone::Care, Tone::Plain));
    }
}
