//! System calls as strace writes them, a call and its result on one row.

use std::sync::Arc;

use kwab::format::record::{SyscallEntry, SyscallExit, SyscallRecord, UnimplementedSyscall};
use kwab::format::{AnyRecord, RecordType as _};
use kwab::model::call::{Call, arguments, result};
use kwab::model::index::{Event, EventIndex, Mood};
use kwab::model::payloads::Payloads;
use kwab::report::filter::FieldValue;
use kwab::report::inspect::EventRow;

use super::timeline::{cpu, dash, field, links, members, pid, span, summary, time, tone};
use super::{Column, Link, Look, Row, Slot, Target, View, number, text};
use crate::text::{Line, duration};
use crate::theme::Tone;

/// The calls of a dump as rows.
pub struct SyscallsView {
    payloads: Arc<Payloads>,
    index: Arc<EventIndex>,
    /// Events that begin a row.
    rows: Vec<u32>,
    /// Calls of a crash report, when there are no events of calls.
    report: Vec<EventRow>,
    /// Whether the return of any call was recorded, so that it is known how long it took.
    is_timed: bool,
}

impl SyscallsView {
    /// The calls among the events; without any, those of the report.
    #[must_use]
    pub fn new(payloads: Arc<Payloads>, index: Arc<EventIndex>, report: &[EventRow]) -> Self {
        let rows: Vec<u32> = (0..).zip(&index.events).filter(|(_, event)| begins(event)).map(|(at, _)| at).collect();
        let report = if rows.is_empty() { report.to_vec() } else { Vec::new() };
        let is_timed = rows.iter().any(|row| index.events[*row as usize].pair != Event::ALONE);
        Self { payloads, index, rows, report, is_timed }
    }

    fn event(&self, row: usize) -> Option<&Event> {
        self.index.events.get(*self.rows.get(row)? as usize)
    }

    fn other(&self, event: &Event) -> Option<&Event> {
        self.index.events.get(event.pair as usize)
    }
}

fn begins(event: &Event) -> bool {
    match event.kind {
        SyscallEntry::KIND | SyscallRecord::KIND | UnimplementedSyscall::KIND => true,
        SyscallExit::KIND => event.pair == Event::ALONE,
        _ => false,
    }
}

/// `read(3, 0x9ffffc40, 4096) = 1180`.
fn told(payloads: &Payloads, event: &Event, exit: Option<&Event>) -> String {
    if event.kind != SyscallEntry::KIND {
        return summary(payloads, event);
    }
    let value = exit.and_then(|exit| {
        payloads.record(exit.section as usize, exit.offset as usize, |raw| match raw.decode() {
            Ok(AnyRecord::SyscallExit(exit)) => exit.result.map(|value| result(exit.nr, value)),
            _ => None,
        })?
    });
    let call = payloads.record(event.section as usize, event.offset as usize, |raw| match raw.decode() {
        Ok(AnyRecord::SyscallEntry(entry)) => {
            Some(arguments(&Call { nr: entry.nr, name: entry.name, args: entry.args(), ..Call::default() }))
        }
        _ => None,
    });
    let call = call.flatten().unwrap_or_else(|| "cannot be read".to_string());
    format!("{call} = {}", value.unwrap_or_else(|| "? (no return seen)".to_string()))
}

/// A call as strace writes it; of one that is longer than a line each argument on a line of its own.
fn strace(call: &str) -> Vec<Line> {
    const A_LINE: usize = 44;
    let parts = call.split_once('(').and_then(|(name, rest)| Some((name, rest.rsplit_once(") = ")?)));
    match parts {
        Some((name, (arguments, result))) if call.len() > A_LINE => {
            let mut lines = vec![Line::of(Tone::Head, format!("{name}("))];
            let arguments = split_arguments(arguments);
            let last = arguments.len().saturating_sub(1);
            lines.extend(arguments.iter().enumerate().map(|(at, argument)| {
                Line::of(Tone::Code, format!("    {argument}{}", if at < last { "," } else { "" }))
            }));
            lines.push(Line::of(Tone::Head, format!(") = {result}")));
            lines
        }
        _ => vec![Line::of(Tone::Code, call)],
    }
}

/// The arguments of a call: parted at commas that lie neither in a string nor in brackets.
fn split_arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0_usize, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

const COLUMNS: &[Column] = &[
    Column::number("time", 14, 1).incidental(),
    Column::number("cpu", 3, 4).incidental(),
    Column::number("pid", 6, 2).incidental(),
    Column::rest("call"),
    Column::number("took", 10, 3).incidental(),
];

impl View for SyscallsView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    fn has_column(&self, column: usize) -> bool {
        let names = |value: &dyn Fn(&EventRow) -> bool| self.report.iter().any(value);
        match column {
            4 if self.report.is_empty() => self.is_timed,
            _ if self.report.is_empty() => true,
            0 | 4 => false,
            1 => names(&|call| call.cpu.is_some()),
            2 => names(&|call| call.pid.is_some()),
            _ => true,
        }
    }

    fn len(&self) -> usize {
        self.rows.len().max(self.report.len())
    }

    fn row(&self, row: usize, _look: &Look) -> Row {
        if let Some(call) = self.report.get(row) {
            let mood = if call.text.contains(" = -1 E") { Tone::Care } else { Tone::Plain };
            let cells = [String::new(), dash(call.cpu), dash(call.pid), call.text.clone(), String::new()];
            return Row::of(mood, cells);
        }
        let Some(event) = self.event(row) else { return Row::default() };
        let exit = self.other(event);
        let took = exit.and_then(|exit| self.index.clock.nanoseconds(exit.order.saturating_sub(event.order)));
        let cells = [
            time(&self.index, event),
            dash(cpu(event)),
            dash(pid(event)),
            told(&self.payloads, event, exit),
            took.map(duration).unwrap_or_default(),
        ];
        let mood = tone(event.mood.min(Mood::Failed));
        Row::of(mood, cells).tone(0, Tone::Dim).tone(1, Tone::Dim).tone(2, Tone::Dim).tone(4, Tone::Dim)
    }

    fn detail(&self, row: usize, _look: &Look) -> Vec<Line> {
        if let Some(call) = self.report.get(row) {
            let mut lines = strace(&call.text);
            lines.push(Line::of(Tone::Dim, "from the crash report"));
            return lines;
        }
        let Some(event) = self.event(row) else { return Vec::new() };
        let exit = self.other(event);
        let mut lines = strace(&told(&self.payloads, event, exit));
        if let Some(exit) = exit {
            lines.push(Line::field("took", span(self.index.clock, exit.order.saturating_sub(event.order))));
        }
        lines.extend(members(&self.payloads, event));
        lines
    }

    fn links(&self, row: usize, _look: &Look) -> Vec<Link> {
        let Some(event) = self.event(row) else { return Vec::new() };
        let here = Link::new("this moment in the timeline", Target::Event(self.rows[row] as usize));
        std::iter::once(here).chain(links(&self.payloads, &self.index, event)).collect()
    }

    fn target(&self, row: usize, _look: &Look) -> Option<Target> {
        Some(match self.rows.get(row) {
            Some(event) => Target::Event(*event as usize),
            None => Target::Row(Slot::Syscalls, row),
        })
    }

    fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Event(event) => self.rows.binary_search(&u32::try_from(*event).ok()?).ok(),
            Target::Row(Slot::Syscalls, row) => Some(*row).filter(|row| *row < self.len()),
            _ => None,
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        &["cpu", "pid", "kind", "time", "call", "failed", "took"]
    }

    fn field(&self, row: usize, name: &str) -> Option<FieldValue<'static>> {
        if let Some(call) = self.report.get(row) {
            return match name {
                "cpu" => number(call.cpu?),
                "pid" => number(call.pid?),
                "call" => text(call.text.clone()),
                "failed" => text(if call.text.contains(" = -1 E") { "yes" } else { "no" }),
                _ => None,
            };
        }
        let event = self.event(row)?;
        match name {
            "call" => text(self.text(row).split('(').next().unwrap_or_default()),
            "took" => {
                let exit = self.other(event)?;
                number(self.index.clock.nanoseconds(exit.order.saturating_sub(event.order))?)
            }
            name => field(&self.index, event, name),
        }
    }

    fn text(&self, row: usize) -> String {
        if let Some(call) = self.report.get(row) {
            return call.text.clone();
        }
        self.event(row).map(|event| told(&self.payloads, event, self.other(event))).unwrap_or_default()
    }

    fn key(&self, row: usize, column: usize) -> Option<super::Key> {
        let event = self.event(row)?;
        match column {
            2 => Some(super::Key::Number(u64::from(event.pid))),
            3 => Some(super::Key::Text(self.text(row))),
            4 => Some(super::Key::Number(self.other(event)?.order.saturating_sub(event.order))),
            _ => Some(super::Key::Number(row as u64)),
        }
    }

    fn command(&self, dump: &str) -> String {
        format!("kwab inspect {dump} --section syscalls")
    }

    fn when_empty(&self) -> String {
        "no system calls in this dump: boot with debug=syscall to record them".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_call_has_a_line_for_each_argument_and_a_string_with_a_comma_is_one() {
        let call = r#"execve("/bin/a,b", ["sh", "-c\"("], 0x7ffe5db455a0) = -1 ENOENT (No such file or directory)"#;
        let lines: Vec<String> = strace(call).iter().map(Line::text).collect();
        let expected = [
            "execve(",
            r#"    "/bin/a,b","#,
            r#"    ["sh", "-c\"("],"#,
            "    0x7ffe5db455a0",
            ") = -1 ENOENT (No such file or directory)",
        ];
        assert_eq!(lines, expected);
        assert_eq!(strace("getpid() = 2").len(), 1);
        assert_eq!(strace("a call that was cut (").len(), 1);
    }
}
