//! The console, line by line, with what of it was not understood.

use std::sync::Arc;

use kwab::model::log::{LogIndex, LogText};
use kwab::model::payloads::Payloads;
use kwab::report::filter::FieldValue;

use super::{Column, Link, Look, Row, Slot, Target, View, number, text};
use crate::text::{Line, duration};
use crate::theme::Tone;

/// The lines of the console as rows.
pub struct LogView {
    payloads: Arc<Payloads>,
    index: LogIndex,
}

impl LogView {
    /// Shows an index.
    #[must_use]
    pub const fn new(payloads: Arc<Payloads>, index: LogIndex) -> Self {
        Self { payloads, index }
    }

    fn line(&self, index: usize) -> LogText {
        self.index.text(&self.payloads, index).unwrap_or_default()
    }
}

/// How a line is shown: what was torn and what shouts stands out.
fn tone(line: &LogText) -> Tone {
    let loud = |words: &[&str]| words.iter().any(|word| line.text.contains(word));
    match line.kind {
        Some("torn event" | "malformed event" | "binary") => Tone::Care,
        Some("panic text") => Tone::Alarm,
        _ if loud(&["panic", "PANIC", "BUG:", "Oops", "SIGSEGV"]) => Tone::Alarm,
        _ if loud(&["WARN", "warning", "ERROR", "error:"]) => Tone::Care,
        _ => Tone::Plain,
    }
}

const COLUMNS: &[Column] = &[Column::number("line", 8, 1).incidental(), Column::rest("console")];

impl View for LogView {
    fn columns(&self) -> &[Column] {
        COLUMNS
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
        Row::of(tone, [number, line.text]).tone(0, Tone::Dim)
    }

    fn detail(&self, index: usize, _look: &Look) -> Vec<Line> {
        let line = self.line(index);
        let mut lines = vec![Line::of(tone(&line), line.text.clone())];
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
        &["line", "kind"]
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        let line = self.line(index);
        match name {
            "line" => number(line.line?),
            "kind" => text(line.kind?),
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
