//! The inspection page: most valuable first, completeness last.

mod stacks;

use std::fmt::Write as _;

use kwab::analysis::finding::Evidence;
use kwab::report::inspect::{
    Completeness, EventRow, LogRow, MemoryExcerpt, Profile, RegisterSet, Remark, Report, TaskRow, VmaRow,
};
use kwab::{plain, units};

use super::{Tone, beside, count, cut, duration, grouped, paint, wrap};
use crate::cli::Part;
use crate::output::Style;
use crate::paint::columns;

/// The order of the page.
const ORDER: &[Part] = &[
    Part::Triage,
    Part::Cause,
    Part::Remarks,
    Part::Bt,
    Part::Code,
    Part::Regs,
    Part::Vmas,
    Part::Checks,
    Part::Syscalls,
    Part::Events,
    Part::Trace,
    Part::Profile,
    Part::Tasks,
    Part::Log,
    Part::Memory,
    Part::Meta,
    Part::Completeness,
];

/// The order on wide terminals: the judgement over the whole width, then the first screen, then the rest. The parts of
/// a group stand beside each other.
const WIDE: [&[Part]; 3] = [
    &[Part::Triage],
    &[Part::Bt, Part::Cause, Part::Remarks, Part::Code, Part::Syscalls, Part::Log, Part::Completeness],
    &[
        Part::Regs,
        Part::Vmas,
        Part::Checks,
        Part::Events,
        Part::Trace,
        Part::Profile,
        Part::Tasks,
        Part::Memory,
        Part::Meta,
    ],
];

/// The page, or the parts of it that are wanted.
pub(crate) fn page(report: &Report, wanted: &[Part], style: Style) -> String {
    let mut out = String::new();
    if wanted.is_empty() {
        head(report, style, &mut out);
        let groups = if beside::count(style) == 1 { &[ORDER][..] } else { &WIDE };
        for group in groups {
            beside::parts(group, style, |part, style| of_part(report, part, false, style), &mut out);
        }
        return out;
    }
    for part in ORDER.iter().filter(|part| wanted.contains(part)) {
        out.push_str(&of_part(report, *part, true, style));
    }
    if out.is_empty() {
        let names: Vec<&str> = ORDER.iter().filter(|part| wanted.contains(part)).map(|part| name_of(*part)).collect();
        let _ = writeln!(out, "no {} in this dump", names.join(", no "));
    }
    out
}

/// What a part holds, for a dump that has none of it.
const fn name_of(part: Part) -> &'static str {
    match part {
        Part::Triage => "hypothesis",
        Part::Cause => "cause of death",
        Part::Remarks => "remarks",
        Part::Bt => "backtrace",
        Part::Code => "code",
        Part::Regs => "registers",
        Part::Vmas => "memory map",
        Part::Checks => "failed page check",
        Part::Syscalls => "system calls",
        Part::Events => "events",
        Part::Trace => "trace",
        Part::Profile => "profile",
        Part::Tasks => "tasks",
        Part::Log => "log",
        Part::Memory => "captured memory",
        Part::Meta => "facts about kernel and boot",
        Part::Completeness => "statement of completeness",
    }
}

/// One part; of lists that can be long, a part that was asked for has all rows.
fn of_part(report: &Report, part: Part, asked: bool, style: Style) -> String {
    let mut text = String::new();
    let out = &mut text;
    match part {
        Part::Cause => cause(report, style, out),
        Part::Remarks => remarks(&report.remarks, style, out),
        Part::Triage => {
            hypotheses(report, style, out);
            changed(report, style, out);
        }
        Part::Bt => {
            stacks::backtraces(&report.backtraces, style, asked, out);
            stacks::nameless(report, style, out);
            stacks::others(&report.stacks, style, asked, out);
        }
        Part::Code => stacks::code(report.code.as_ref(), style, out),
        Part::Regs => registers(&report.registers, style, out),
        Part::Memory if asked => memory(&report.memory, style, out),
        Part::Memory => captured(&report.memory, style, out),
        Part::Vmas => vmas(&report.vmas, style, out),
        Part::Checks => rows("page checks that failed", &report.page_checks, style, out),
        Part::Syscalls => rows("system calls (oldest first)", &report.syscalls, style, out),
        Part::Events => rows("events before the end (oldest first)", &report.events, style, out),
        Part::Trace => rows("trace (oldest first)", &report.trace, style, out),
        Part::Profile => profiles(&report.profiles, style, out),
        Part::Tasks => tasks(&report.tasks, style, asked, out),
        Part::Log => log(&report.log, style, out),
        Part::Meta => meta(report, style, out),
        Part::Completeness => completeness(&report.completeness, style, out),
    }
    text
}

/// The first lines: what died, of what, and in which kernel.
fn head(report: &Report, style: Style, out: &mut String) {
    let _ =
        writeln!(out, "{}", paint(style, Tone::Alarm, &wrap(&report.headline, style.width.saturating_sub(2), "  ")));
    let fact = |name: &str| report.meta.iter().find(|fact| fact.name == name).map(|fact| fact.value.clone());
    let mut told = Vec::new();
    if report.cause.is_some() {
        told.push(format!("signature {}", report.signature));
    }
    // The version line of Linux goes on about compilers.
    let kernel = fact("kernel").map(|kernel| kernel.split(" (").next().unwrap_or_default().to_string());
    told.extend(kernel);
    told.extend(fact("arch"));
    told.extend(fact("cpus").map(|cpus| count(cpus.parse().unwrap_or(0), "CPU", "CPUs")));
    told.extend(fact("boot").map(|boot| format!("boot {boot}")));
    let _ = writeln!(out, "{}", paint(style, Tone::Dim, &wrap(&told.join("  "), style.width.saturating_sub(2), "  ")));
}

pub(super) fn title(text: &str, style: Style, out: &mut String) {
    heading(&plain::line(text), style, out);
}

/// A title that may have lines of its own; the caller has made it plain.
pub(super) fn heading(text: &str, style: Style, out: &mut String) {
    let _ = writeln!(out, "\n{}", paint(style, Tone::Head, text));
}

fn field(name: &str, value: &str, style: Style, out: &mut String) {
    let indent = " ".repeat(15);
    let room = style.width.saturating_sub(15).max(20);
    let _ = writeln!(out, "  {name:<13}{}", wrap(value, room, &indent));
}

fn cause(report: &Report, style: Style, out: &mut String) {
    let Some(cause) = &report.cause else { return };
    title("cause", style, out);
    let mut show = |name: &str, value: &Option<String>| {
        if let Some(value) = value {
            field(name, value, style, out);
        }
    };
    show("kind", &Some(cause.kind.clone()));
    show("message", &cause.message);
    show("signal", &cause.signal);
    show("exception", &cause.exception);
    show("location", &cause.place);
    show("ip", &cause.ip);
    show("fault addr", &cause.fault_addr);
    show("sp", &cause.sp);
    let process = match (&cause.comm, cause.pid) {
        (Some(comm), Some(pid)) => Some(format!("{comm}, pid {pid}")),
        (None, Some(pid)) => Some(format!("pid {pid}")),
        (Some(comm), None) => Some(comm.clone()),
        (None, None) => None,
    };
    show("process", &process);
    show("command", &cause.cmdline);
    show("cpu", &cause.cpu.map(|cpu| cpu.to_string()));
    let when = match (&cause.time, cause.line) {
        (Some(time), Some(line)) => Some(format!("{time} after boot, line {line} of the log")),
        (Some(time), None) => Some(format!("{time} after boot")),
        (None, Some(line)) => Some(format!("line {line} of the log")),
        (None, None) => None,
    };
    show("when", &when);
    for reason in &cause.reasons {
        field("because", reason, style, out);
    }
}

/// Each hypothesis in three lines: the claim, what it rests on, what to run next.
fn hypotheses(report: &Report, style: Style, out: &mut String) {
    if report.hypotheses.is_empty() {
        return;
    }
    title("what may have happened (kwab triage shows all)", style, out);
    for (number, found) in report.hypotheses.iter().enumerate() {
        let rule = format!("  [{}]", found.rule);
        let claim = format!("{:3}  {:.2}  {}", number + 1, found.score, found.claim);
        let line = cut(&claim, style.width.saturating_sub(rule.len())) + &rule;
        let _ = writeln!(out, "{}", paint(style, Tone::Care, &line));
        let facts: Vec<String> = found.evidence.iter().map(Evidence::in_words).collect();
        let weaker = if found.weakened.is_empty() { "" } else { "less certain, sections are lost: " };
        let _ = writeln!(out, "{}", cut(&format!("           {weaker}{}", facts.join("; ")), style.width));
        if let Some(command) = found.next.first() {
            let _ = writeln!(out, "{}", super::command("           next: ", command, style));
        }
    }
}

/// What was changed since a build that worked.
fn changed(report: &Report, style: Style, out: &mut String) {
    let Some(since) = &report.since else { return };
    title(&since.title(), style, out);
    for line in since.lines(CHANGED) {
        let _ = writeln!(out, "  {}", wrap(&line, style.width.saturating_sub(6), "    "));
    }
}

fn remarks(remarks: &[Remark], style: Style, out: &mut String) {
    if remarks.is_empty() {
        return;
    }
    title("remarks", style, out);
    for remark in remarks {
        let line = remark.line.map_or(String::new(), |line| format!(" (line {line})"));
        let text = wrap(&format!("{}{line}", remark.text), style.width.saturating_sub(6), "    ");
        let _ = writeln!(out, "  {text}");
    }
}

fn registers(sets: &[RegisterSet], style: Style, out: &mut String) {
    for set in sets {
        title(&format!("registers {}", set.title), style, out);
        let (noted, plain): (Vec<_>, Vec<_>) = set.registers.iter().partition(|register| register.note.is_some());
        let mut line = String::new();
        for register in plain {
            let cell = format!(" {:>8} {}", register.name, register.value);
            if !line.is_empty() && line.len() + cell.len() >= style.width.min(120) {
                let _ = writeln!(out, " {line}");
                line.clear();
            }
            line.push_str(&cell);
        }
        if !line.is_empty() {
            let _ = writeln!(out, " {line}");
        }
        for register in noted {
            let note = register.note.as_deref().unwrap_or_default();
            let text = format!("  {:>8} {}  {note}", register.name, register.value);
            let _ = writeln!(out, "{}", cut(&text, style.width));
        }
    }
}

fn memory(excerpts: &[MemoryExcerpt], style: Style, out: &mut String) {
    for excerpt in excerpts {
        title(&format!("{} ({} bytes)", excerpt.label, excerpt.length), style, out);
        let base = excerpt.addr.as_ref().and_then(|addr| u64::from_str_radix(addr.trim_start_matches("0x"), 16).ok());
        let pairs: Vec<&str> = (0..excerpt.bytes.len() / 2).map(|at| &excerpt.bytes[2 * at..2 * at + 2]).collect();
        for (row, chunk) in pairs.chunks(16).enumerate() {
            let readable = chunk.iter().map(|pair| match u8::from_str_radix(pair, 16) {
                Ok(byte @ 0x20..0x7f) => char::from(byte),
                _ => '.',
            });
            let readable: String = readable.collect();
            let at = match base {
                Some(base) => format!("0x{:016x}", base.wrapping_add(16 * row as u64)),
                None => format!("+{:#06x}", 16 * row),
            };
            let cells = chunk.iter().enumerate().map(|(column, byte)| {
                let marked = excerpt.marked == Some((16 * row + column) as u64);
                if marked { format!(">{byte}") } else { format!(" {byte}") }
            });
            let _ = writeln!(out, "  {at} {:<48}  {readable}", cells.collect::<String>());
        }
    }
}

/// What [`memory`] would show, in a line.
fn captured(excerpts: &[MemoryExcerpt], style: Style, out: &mut String) {
    let bytes: u64 = excerpts.iter().map(|excerpt| excerpt.length).sum();
    if bytes > 0 {
        title("captured memory", style, out);
        let pieces = count(excerpts.len() as u64, "piece", "pieces");
        let text = format!("  {pieces}, {}: --section memory", units::bytes(bytes));
        let _ = writeln!(out, "{}", paint(style, Tone::Dim, &text));
    }
}

fn vmas(rows: &[VmaRow], style: Style, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    title("memory map", style, out);
    for row in rows {
        let mark = if row.fault { "▶" } else { " " };
        let note = match (row.fault, row.ip) {
            (true, true) => "  ← fault, ip",
            (true, false) => "  ← fault",
            (false, true) => "  ← ip",
            (false, false) => "",
        };
        let text = format!("{mark} {}-{} {} {}{note}", row.start, row.end, row.prot, row.name);
        let tone = if row.fault { Tone::Care } else { Tone::Code };
        let _ = writeln!(out, "{}", paint(style, tone, &cut(&text, style.width)));
    }
}

/// Rows of a timeline: time since the first row when there is a clock, else the line of the log.
fn rows(name: &str, rows: &[EventRow], style: Style, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    title(name, style, out);
    // A call of which only the number was recorded has neither a time nor a processor, and hides those of no other.
    let is_of_log = rows.iter().any(|row| row.line.is_some());
    let timed =
        if is_of_log { rows.iter().all(|row| row.ns.is_some()) } else { rows.iter().any(|row| row.ns.is_some()) };
    let base = rows.iter().filter_map(|row| row.ns).min().unwrap_or(0);
    let mut cpus = rows.iter().filter_map(|row| row.cpu);
    let first = cpus.next();
    let several_cpus = cpus.any(|cpu| Some(cpu) != first);
    let several_pids = rows.iter().any(|row| row.pid != rows[0].pid);
    let is_same = |a: &EventRow, b: &EventRow| (&a.text, a.pid, a.cpu) == (&b.text, b.pid, b.cpu);
    for same in rows.chunk_by(is_same) {
        let row = &same[0];
        let mut text = String::from("  ");
        match (timed, row.ns, row.line) {
            (true, Some(ns), _) => {
                let ns = ns - base;
                let _ = write!(text, "+{}.{:06}  ", ns / 1_000_000_000, ns / 1000 % 1_000_000);
            }
            (_, _, Some(line)) => {
                let _ = write!(text, "{line:>7}  ");
            }
            (true, None, None) => text.push_str(&" ".repeat("+0.000000  ".len())),
            _ => {}
        }
        if several_cpus {
            let _ = write!(text, "cpu{} ", row.cpu.map_or("?".to_string(), |cpu| cpu.to_string()));
        }
        if several_pids {
            let _ = write!(text, "{:>5}  ", row.pid.map_or("–".to_string(), |pid| pid.to_string()));
        }
        text.push_str(&row.text);
        let behind = match (same.len(), row.took_ns) {
            (1, Some(ns)) => format!(" <{}.{:06}>", ns / 1_000_000_000, ns / 1000 % 1_000_000),
            (1, None) => String::new(),
            (count, _) => format!(" × {count}"),
        };
        let _ = writeln!(out, "{}{behind}", cut_inside(&text, style.width.saturating_sub(columns(&behind))));
    }
    if !several_pids && let Some(pid) = rows[0].pid {
        let _ = writeln!(out, "{}", paint(style, Tone::Dim, &format!("  (all of pid {pid})")));
    }
}

/// [`cut`] of a call among its arguments: what it returned is what a reader looks for.
fn cut_inside(text: &str, width: usize) -> String {
    let Some(end) = text.rfind(") = ").filter(|_| columns(text) > width) else { return cut(text, width) };
    let (head, result) = text.split_at(end);
    let room = width.saturating_sub(columns(result));
    if room < width / 2 { cut(text, width) } else { cut(head, room) + result }
}

fn profiles(profiles: &[Profile], style: Style, out: &mut String) {
    for profile in profiles {
        title(&format!("profile: {}", profile.title), style, out);
        let head = format!("  {:<22}{:>8}{:>12}{:>11}{:>11}{:>11}", "", "calls", "total", "avg", "min", "max");
        let _ = writeln!(out, "{}", paint(style, Tone::Dim, &head));
        let or_dash = |value: Option<u64>| value.map_or("–".to_string(), duration);
        for row in &profile.rows {
            let _ = writeln!(
                out,
                "  {:<22}{:>8}{:>12}{:>11}{:>11}{:>11}",
                cut(&row.name, 21),
                grouped(row.calls),
                duration(row.total_ns),
                duration(row.avg_ns),
                or_dash(row.min_ns),
                or_dash(row.max_ns)
            );
        }
    }
}

/// Changed functions that are shown; `kwab triage` has more.
const CHANGED: usize = 4;
/// The tasks of the short form: those that run, and a few more.
const FEW_TASKS: usize = 12;

fn tasks(tasks: &[TaskRow], style: Style, all: bool, out: &mut String) {
    if tasks.is_empty() {
        return;
    }
    title(&format!("tasks ({})", tasks.len()), style, out);
    let urgent = |task: &&TaskRow| matches!(task.state.as_str(), "running" | "blocked" | "zombie");
    let (first, rest): (Vec<_>, Vec<_>) = tasks.iter().partition(urgent);
    let shown = if all { tasks.len() } else { FEW_TASKS.max(first.len()) };
    for task in first.into_iter().chain(rest).take(shown) {
        let pid = task.pid.map_or("?".to_string(), |pid| pid.to_string());
        let text = format!("  {pid:>6}  {:<16} {:<9} {}", cut(&task.comm, 16), task.state, task.place);
        let _ = writeln!(out, "{}", cut(text.trim_end(), style.width));
    }
    if tasks.len() > shown {
        let text = format!("  … and {} more: --section tasks", tasks.len() - shown);
        let _ = writeln!(out, "{}", paint(style, Tone::Dim, &text));
    }
}

fn log(rows: &[LogRow], style: Style, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    title("last lines of the log", style, out);
    for row in rows {
        let text = cut(&row.text, style.width.saturating_sub(2));
        let text = match row.level {
            Some(0..=3) => paint(style, Tone::Alarm, &text),
            Some(4) => paint(style, Tone::Care, &text),
            Some(7) => paint(style, Tone::Dim, &text),
            _ => text,
        };
        let _ = writeln!(out, "  {text}");
    }
}

fn meta(report: &Report, style: Style, out: &mut String) {
    title("kernel, boot and log", style, out);
    for fact in &report.meta {
        field(&fact.name, &fact.value, style, out);
    }
}

fn completeness(state: &Completeness, style: Style, out: &mut String) {
    title("completeness", style, out);
    let sections = count(state.sections as u64, "section", "sections");
    let checked = if state.verified == state.sections {
        "all checksums good".to_string()
    } else {
        format!("the {} that this page needed have good checksums (kwab check reads all)", state.verified)
    };
    let sound =
        if state.defects.is_empty() { format!("{sections}, {checked}.") } else { format!("{sections} are sound.") };
    let _ = writeln!(out, "  {}", wrap(&sound, style.width.saturating_sub(4), "  "));
    for defect in &state.defects {
        let text = wrap(&format!("damaged: {defect}"), style.width.saturating_sub(6), "    ");
        let _ = writeln!(out, "  {}", paint(style, Tone::Care, &text));
    }
    for gap in &state.missing {
        let text = wrap(&format!("missing: {}; {}", gap.what, gap.weakens), style.width.saturating_sub(6), "    ");
        let _ = writeln!(out, "  {text}");
    }
    if state.kept > 0 {
        let pieces = count(state.kept as u64, "piece", "pieces");
        let _ = writeln!(out, "  not understood: {pieces} of the log (kwab cat DUMP kept)");
    }
    if state.complete {
        let _ = writeln!(out, "  Nothing is missing.");
    }
}
