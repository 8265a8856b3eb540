//! Counts what a log holds and what of it was not understood, for the report of the import.

use std::collections::HashMap;

use kwab_format::record::TextKind;

use super::event::EventKind;
use super::lines::LogPosition;
use super::pending::PendingDump;
use super::summary::{ImportReport, Loss, SCHEMA};

/// Losses that the report names one by one.
const NAMED_LOSSES: usize = 16;
/// Bytes of a line that the report quotes.
const QUOTED: usize = 200;

/// The counters of an import.
#[derive(Debug)]
pub struct Tally {
    report: ImportReport,
    events: [u64; EventKind::ALL.len()],
    /// Whether the text so far ended inside a line.
    fragment: bool,
    linux_seen: bool,
}

impl Tally {
    /// Nothing counted; `source` is the log's name.
    pub fn new(source: &str) -> Self {
        Self {
            report: ImportReport { schema: SCHEMA, source: source.to_string(), ..ImportReport::default() },
            events: [0; EventKind::ALL.len()],
            fragment: false,
            linux_seen: false,
        }
    }

    /// Counts an event.
    #[inline(always)]
    pub fn event(&mut self, kind: EventKind) {
        self.events[kind as usize] += 1;
    }

    /// Counts a piece of console text; `stamped` says that it has Linux's time stamp.
    pub fn text(&mut self, ends_line: bool, stamped: bool) {
        self.linux_seen |= stamped;
        self.report.text_lines += u64::from(!self.fragment);
        self.fragment = !ends_line;
    }

    /// Whether a line had Linux's time stamp.
    pub fn linux_seen(&self) -> bool {
        self.linux_seen
    }

    /// Counts something that was not understood.
    pub fn lost(&mut self, kind: TextKind, position: LogPosition, problem: &str) {
        let name = kind.name().unwrap_or("unknown");
        let losses = &mut self.report.not_understood;
        losses.count += 1;
        *losses.by_kind.entry(name.to_string()).or_default() += 1;
        if losses.first.len() < NAMED_LOSSES {
            losses.first.push(loss(name, position, problem.to_string()));
        }
    }

    /// Whether the log has events.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.events.iter().any(|count| *count > 0)
    }

    /// Whether a death that nothing explains is known already.
    pub fn has_unexplained(&self) -> bool {
        self.report.unexplained.is_some()
    }

    /// Notes the first line that announces a death of which nothing else is understood.
    #[cold]
    pub fn unexplained(&mut self, text: &[u8], position: LogPosition) {
        let quoted = String::from_utf8_lossy(&text[..text.len().min(QUOTED)]).into_owned();
        self.report.unexplained.get_or_insert_with(|| loss("death", position, quoted));
    }

    /// The report of an import that ended at `end` and gave `dumps`, whose repetitions are marked.
    pub fn report(mut self, end: LogPosition, boots: u32, rejoined: u64, dumps: &mut [PendingDump]) -> ImportReport {
        let report = &mut self.report;
        (report.bytes, report.lines) = (end.offset, end.line.saturating_sub(1));
        (report.boots, report.rejoined) = (boots, rejoined);
        for (kind, count) in EventKind::ALL.iter().zip(self.events) {
            if *kind != EventKind::Other && count > 0 {
                report.events_by_type.insert(kind.name().to_string(), count);
            }
        }
        report.events = self.events.iter().sum();
        report.unknown_events = self.events[EventKind::Other as usize];
        mark_repetitions(dumps);
        if dumps.iter().any(|dump| dump.summary.kind == "panic") {
            report.unexplained = None;
        }
        let mended = dumps.iter().filter_map(|dump| dump.summary.printed).map(|printed| printed.damaged_lines).sum();
        report.not_understood.take_back(TextKind::ARMOUR.name().unwrap_or_default(), mended);
        report.dumps = dumps.iter().map(|dump| dump.summary.clone()).collect();
        self.report
    }
}

fn loss(kind: &str, position: LogPosition, problem: String) -> Loss {
    Loss { kind: kind.to_string(), line: position.line, offset: position.offset, problem }
}

/// Marks crashes with the signature of an earlier one.
pub(super) fn mark_repetitions(dumps: &mut [PendingDump]) {
    let mut first_of: HashMap<String, u32> = HashMap::new();
    for PendingDump { summary, .. } in dumps.iter_mut().filter(|dump| dump.summary.number > 0) {
        let first = *first_of.entry(summary.signature.clone()).or_insert(summary.number);
        summary.same_as = (first != summary.number).then_some(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_by_kind_and_the_first_are_named() {
        let mut tally = Tally::new("log");
        for line in 1..=20 {
            tally.lost(TextKind::TORN, LogPosition { offset: line * 10, line }, "torn");
        }
        tally.event(EventKind::Signal);
        tally.event(EventKind::Other);
        let report = tally.report(LogPosition { offset: 300, line: 22 }, 1, 2, &mut []);
        assert_eq!((report.not_understood.count, report.not_understood.first.len()), (20, NAMED_LOSSES));
        assert_eq!(report.not_understood.first[1].offset, 20);
        assert_eq!((report.events, report.unknown_events, report.rejoined), (2, 1, 2));
        assert_eq!((report.bytes, report.lines), (300, 21));
    }

    #[test]
    fn a_line_in_two_pieces_is_one_line_of_text() {
        let mut tally = Tally::new("log");
        for ends_line in [false, true, true] {
            tally.text(ends_line, false);
        }
        assert_eq!(tally.report(LogPosition::default(), 1, 0, &mut []).text_lines, 2);
    }
}
