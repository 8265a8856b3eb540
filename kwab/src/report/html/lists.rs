//! The long lists of the page: timeline, address space, calls, events, trace, tasks, log.
//!
//! A row with a time carries it in `data-t` (nanoseconds since boot) and its processor in `data-c`: the script draws
//! the timeline from the rows, so that no text is in the file twice.

use std::fmt::Write as _;

use super::chain::Chain;
use super::{Cell, Contents, Keep, MARKED, Page, ROW, class, seconds, unprinted};
use crate::report::inspect::{EventRow, LogRow, Profile, RegisterSet, Report, TaskRow, VmaRow};
use crate::units;

/// Gaps between mappings from this size on have a row.
const GAP: u64 = 1;

/// The lanes, which the script fills; absent when fewer than two rows have a time.
pub(super) fn timeline(contents: &Contents<'_>, page: &mut Page) {
    let report = contents.report;
    let trace = if is_on_the_timeline(report) { report.trace.as_slice() } else { &[] };
    let rows = report.events.iter().chain(&report.syscalls).chain(trace);
    let timed = rows.filter(|row| row.ns.is_some()).count();
    if timed + logged(report) < 2 {
        return;
    }
    let death = report.cause.as_ref().and_then(|cause| nanoseconds(cause.time.as_deref()?.split(' ').next()?));
    let death = death.map_or(String::new(), |ns| format!(" data-death=\"{ns}\""));
    page.part("timeline", "Timeline", |page| {
        let _ = writeln!(
            page.body,
            "<noscript><p class=\"left\">the timeline needs this page's script</p></noscript>\
             <p class=\"tools\"><button data-zoom=\"0.5\">+</button><button data-zoom=\"2\">−</button>\
             <button data-zoom=\"all\">all</button> <span id=\"range\"></span></p>\
             <div id=\"lanes\"{death}></div><p id=\"readout\" aria-live=\"polite\"></p><div id=\"links\"></div>"
        );
    });
}

/// Lines of the log that begin with a time.
fn logged(report: &Report) -> usize {
    report.log.iter().filter(|row| printed_time(&row.text).is_some()).count()
}

/// Whether the recorder's clock is that of the timeline: one that begins at the first row is not that of other lists.
fn is_on_the_timeline(report: &Report) -> bool {
    let is_own = report.trace.first().is_some_and(|row| row.ns == Some(0));
    let others = report.events.iter().chain(&report.syscalls).any(|row| row.ns.is_some()) || logged(report) > 0;
    !(is_own && others)
}

/// Everything below the address space.
pub(super) fn all(contents: &Contents<'_>, page: &mut Page) {
    let (report, held) = (contents.report, contents.held);
    let chain = &Chain::of(contents.causes, report);
    page.part_of("checks", "Page checks", &report.page_checks, |page, rows| events(rows, 32_000, Some(chain), page));
    page.part_of("calls", "System calls", &report.syscalls, |page, rows| {
        events(rows, 192_000, Some(chain), page);
        more(contents.rows, rows.len(), held.calls, "calls and events", page);
    });
    page.part_of("events", "Events", &report.events, |page, rows| {
        events(rows, 192_000, Some(chain), page);
        more(contents.rows, rows.len(), held.events, "events", page);
    });
    page.part_of("trace", "Recorder and trace", &report.trace, |page, rows| {
        events(rows, 160_000, is_on_the_timeline(report).then_some(chain), page);
        more(contents.rows, rows.len(), held.trace, "events and trace", page);
    });
    chain.list(contents.rows, page);
    page.part_of("profiles", "Counters and profiles", &report.profiles, profiles);
    page.part_of("tasks", "Tasks", &report.tasks, tasks);
    page.part_of("log", "Log", &report.log, |page, rows| {
        log(rows, page);
        more(contents.rows, rows.len(), held.log, "the log", page);
    });
}

/// Says that the inspection was asked for no more rows than there are, when it may have left out some.
fn more(asked: usize, rows: usize, held: u64, what: &str, page: &mut Page) {
    if rows >= asked && held > rows as u64 {
        page.note(&format!("the last {rows} rows; the dump has {held} records of {what} (-n shows more)"));
    }
}

/// The attributes of a row with a time.
fn timed(mut attributes: String, ns: Option<u64>, cpu: Option<u32>) -> String {
    if let Some(ns) = ns {
        let _ = write!(attributes, " data-t={ns}");
    }
    if let Some(cpu) = cpu {
        let _ = write!(attributes, " data-c={cpu}");
    }
    attributes
}

/// Rows of events; those whose clock is that of the timeline have a chain.
fn events(rows: &[EventRow], share: usize, chain: Option<&Chain<'_>>, page: &mut Page) {
    unprinted(rows.len(), page);
    let has_lines = rows.iter().any(|row| row.line.is_some());
    let heads: &[&str] =
        if has_lines { &["line", "time, s", "CPU", "pid", ""] } else { &["time, s", "CPU", "pid", ""] };
    page.table(heads, rows, (share, Keep::Last, "rows"), |page, index, row| {
        let time = row.ns.map_or(String::new(), seconds);
        let (cpu, pid) = (number(row.cpu), number(row.pid));
        let attributes = timed(class(index, rows.len(), ""), row.ns.filter(|_| chain.is_some()), row.cpu);
        let attributes = attributes + &chain.map_or(String::new(), |chain| chain.marks(row));
        let line = row.line.map_or(String::new(), |line| line.to_string());
        let cells = [&line, &time, &cpu, &pid, &row.text].map(|one| Cell::Mono(one));
        page.row(&attributes, if has_lines { &cells } else { &cells[1..] });
    });
}

fn log(rows: &[LogRow], page: &mut Page) {
    unprinted(rows.len(), page);
    page.body.push_str("<div class=log>\n");
    let left = page.rows(rows, 256_000, Keep::Last, |page, index, row| {
        let level = match row.level {
            Some(0..=3) => " alarm",
            Some(4) => " care",
            _ => "",
        };
        let line = row.line.map_or(String::new(), |line| format!("<i>{line:>6}</i> "));
        let attributes = timed(class(index, rows.len(), level), printed_time(&row.text), None);
        let _ = writeln!(page.body, "<div {attributes}>{line}{}</div>", super::text(&row.text));
    });
    page.body.push_str("</div>\n");
    page.left_out(left, rows.len(), Keep::Last, "lines");
}

fn profiles(page: &mut Page, all: &[Profile]) {
    page.list(all, 64_000, Keep::First, "profiles", |page, _, profile| {
        page.heading(&profile.title);
        let room = (24_000, Keep::First, "rows");
        page.table(&["", "calls", "total, ns", "average, ns"], &profile.rows, room, |page, _, row| {
            let figures = [row.calls, row.total_ns, row.avg_ns].map(Cell::Number);
            page.row(ROW, &[Cell::Mono(&row.name), figures[0], figures[1], figures[2]]);
        });
    });
}

fn tasks(page: &mut Page, rows: &[TaskRow]) {
    let room = (96_000, Keep::First, "tasks");
    page.table(&["pid", "parent", "name", "state", "where"], rows, room, |page, _, one| {
        let (pid, parent) = (number(one.pid), number(one.ppid));
        let cells = [&pid, &parent, &one.comm].map(|one| Cell::Mono(one));
        page.row(ROW, &[cells[0], cells[1], cells[2], Cell::Text(&one.state), Cell::Mono(&one.place)]);
    });
}

/// Mappings in the order of addresses with what lies between them; a bar is as long as the logarithm of the size, so
/// that a page and a gigabyte are both seen. The registers that point into a mapping are named beside it.
pub(super) fn address_space(vmas: &[VmaRow], sets: &[RegisterSet], page: &mut Page) {
    let room = (128_000, Keep::First, "mappings");
    page.table(&["start", "end", "", "size", "mapping", ""], vmas, room, |page, index, vma| {
        let (start, end) = (address(&vma.start), address(&vma.end));
        if let Some(before) = index.checked_sub(1).and_then(|before| vmas.get(before)) {
            gap(address(&before.end), start, page);
        }
        let class = if vma.fault || vma.ip { " class=hot" } else { "" };
        let size = sized(end.saturating_sub(start), class);
        let mut marks: Vec<&str> =
            [(vma.fault, "fault"), (vma.ip, "ip")].iter().filter_map(|(is, what)| is.then_some(*what)).collect();
        // A value that is not an address, as that of cr3, has no note.
        let pointing = sets.first().into_iter().flat_map(|set| &set.registers).filter(|one| one.note.is_some());
        marks.extend(pointing.filter(|one| (start..end).contains(&address(&one.value))).map(|one| one.name.as_str()));
        let marks = if marks.is_empty() { String::new() } else { format!("← {}", marks.join(", ")) };
        let cells = [&vma.start, &vma.end, &vma.prot].map(|one| Cell::Mono(one));
        let last = [Cell::Own(&size), Cell::Mono(&vma.name), Cell::Text(&marks)];
        page.row(if vma.fault { MARKED } else { ROW }, &[cells[0], cells[1], cells[2], last[0], last[1], last[2]]);
    });
}

/// What lies between two mappings, when it is more than nothing.
fn gap(from: u64, to: u64, page: &mut Page) {
    if let Some(size @ GAP..) = to.checked_sub(from) {
        let size = sized(size, " class=gap");
        let blank = Cell::Text("");
        page.row("class=\"dim\"", &[blank, blank, blank, Cell::Own(&size), Cell::Text("not mapped"), blank]);
    }
}

/// A size in words behind its bar.
fn sized(size: u64, class: &str) -> String {
    // From 256 bytes on, four units for each doubling.
    let width = size.checked_ilog2().map_or(0, |log| log.saturating_sub(8) * 4);
    format!(
        "<svg class=size viewBox=\"0 0 224 10\" preserveAspectRatio=none aria-hidden=true><rect{class} width={width} \
         height=10 /></svg> {}",
        units::bytes(size)
    )
}

fn address(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
}

fn number(number: Option<u32>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

/// The time that a kernel prints before its message, `[   12.345678] `, in nanoseconds.
fn printed_time(line: &str) -> Option<u64> {
    let (time, _) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    nanoseconds(time.trim())
}

/// Seconds with a fraction as nanoseconds.
fn nanoseconds(seconds: &str) -> Option<u64> {
    let (whole, fraction) = seconds.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 1_000_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_before_a_message_is_read_and_nothing_else_is() {
        assert_eq!(printed_time("[   12.345678] oops"), Some(12_345_678_000));
        assert_eq!(printed_time("  [0.5] x"), Some(500_000_000));
        for other in ["[12] x", "[1.x] y", "oops [1.5]", "[-1.5] z", "[1.5", "[1234567890.5] far", "[1.2.3] v"] {
            assert_eq!(printed_time(other), None, "{other}");
        }
    }
}
