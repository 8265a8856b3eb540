//! The parts of the page, most valuable first: conclusions, the death, its stacks, code and registers.

use super::lists;
use super::{Cell, Contents, Keep, MARKED, Page, ROW, text};
use crate::analysis::Triage;
use crate::analysis::finding::{Evidence, Hypothesis, ListedFunction};
use crate::report::inspect::{CodeReport, FrameRow, InlinedRow, RegisterSet, Report};

/// Writes all parts that have something to say.
pub(super) fn all(contents: &Contents<'_>, page: &mut Page) {
    let report = contents.report;
    page.part("triage", "Triage", |page| triage(contents.triage, page));
    page.part("cause", "Cause", |page| cause(report, page));
    page.part_of("backtrace", "Backtrace", &report.backtraces, |page, traces| {
        page.list(traces, 96_000, Keep::First, "backtraces", |page, _, trace| {
            if trace.title != "backtrace" {
                page.heading(&trace.title);
            }
            frames(&trace.frames, page);
        });
    });
    if let Some(code) = &report.code {
        page.part("code", "Code", |page| code_around(code, page));
    }
    page.part_of("registers", "Registers", &report.registers, registers);
    lists::timeline(contents, page);
    page.part_of("space", "Address space", &report.vmas, |page, vmas| {
        lists::address_space(vmas, &report.registers, page);
    });
    page.part_of("stacks", "Other stacks", &report.stacks, |page, stacks| {
        page.list(stacks, 192_000, Keep::First, "stacks", |page, _, stack| {
            page.heading(&stack.owners.join(", "));
            frames(&stack.frames, page);
            stack.ends.iter().for_each(|ends| page.line("dim", "", ends));
        });
    });
    page.part_of("memory", "Memory", &report.memory, |page, rows| {
        let room = (32_000, Keep::First, "excerpts");
        page.table(&["", "address", "bytes", "captured"], rows, room, |page, _, one| {
            let addr = one.addr.as_deref().unwrap_or_default();
            let bytes = grouped(&one.bytes);
            let cells = [Cell::Text(&one.label), Cell::Mono(addr), Cell::Mono(&bytes), Cell::Number(one.length)];
            page.row(ROW, &cells);
        });
    });
    lists::all(contents, page);
    page.part("meta", "Kernel and completeness", |page| meta(report, page));
}

fn triage(triage: &Triage, page: &mut Page) {
    page.list(&triage.hypotheses, 96_000, Keep::First, "hypotheses", |page, index, one| {
        hypothesis(index + 1, one, page);
    });
    if triage.hypotheses.is_empty() {
        page.line("", "", "no hypothesis: nothing in the dump supports one");
    }
    if let Some(since) = triage.untold_changes() {
        page.line("what", "Δ", &format!("{}:", since.title()));
        since.lines(usize::MAX - 1).iter().for_each(|line| page.line("fact m", "–", line));
    }
    if let Some(trail) = &triage.trail {
        page.line("m", "the bad value:", &trail.in_words());
    }
    if let Some(undecided) = &triage.undecided {
        undecided.advice().iter().for_each(|(label, text)| page.line("", &format!("{label}:"), text));
    }
    for (label, lines) in [("ruled out:", &triage.ruled_out), ("not in this dump:", &triage.lacking)] {
        page.list(lines, 16_000, Keep::First, "lines", |page, _, line| page.line("dim", label, line));
    }
    page.list(&triage.losses, 16_000, Keep::First, "lines", |page, _, line| page.line("care", "damaged:", line));
}

fn hypothesis(rank: usize, one: &Hypothesis, page: &mut Page) {
    let strength = if rank == 1 { "claim first" } else { "claim" };
    page.body.push_str(&format!("<div class=\"{strength}\">"));
    page.line("what", &format!("{rank} · {:.2}", one.score), &format!("{} [{}]", one.claim, one.rule));
    one.function.iter().for_each(|function| page.line("", "look at:", &function.in_words()));
    for fact in &one.evidence {
        let at = fact.at.map_or(String::new(), |at| format!(" ({at})"));
        let weight = if fact.weight > 0.0 { format!("+{:.2}", fact.weight) } else { "·".to_string() };
        let colon = if fact.functions.is_empty() { "" } else { ":" };
        page.line("fact", &weight, &format!("{}{at}{colon}", fact.text));
        listed(fact, page);
    }
    for fact in &one.against {
        let weight = if fact.weight > 0.0 { format!("−{:.2} against:", fact.weight) } else { "against:".to_string() };
        page.line("fact care", &weight, &fact.text);
    }
    one.weakened.iter().for_each(|why| page.line("fact care", "weaker:", why));
    one.next.iter().for_each(|next| page.line("fact m", "next:", next));
    page.body.push_str("</div>\n");
}

/// The functions that a fact lists: the first at once, the others folded.
fn listed(fact: &Evidence, page: &mut Page) {
    let row = |page: &mut Page, function: &ListedFunction| page.line("fact m", "–", &function.in_words());
    fact.first_functions().iter().for_each(|function| row(page, function));
    let rest = fact.other_functions();
    if !rest.is_empty() {
        page.body.push_str(&format!("<details class=\"fact\"><summary>{} more</summary>", rest.len()));
        rest.iter().for_each(|function| row(page, function));
        page.body.push_str("</details>\n");
    }
}

fn cause(report: &Report, page: &mut Page) {
    let Some(cause) = &report.cause else { return page.line("", "", &report.headline) };
    let line = cause.line.map(|line| format!("line {line} of the log"));
    let cpu = cause.cpu.map(|cpu| cpu.to_string());
    let facts = [
        ("kind", Some(&cause.kind)),
        ("victim", Some(&cause.victim)),
        ("message", cause.message.as_ref()),
        ("where", cause.place.as_ref()),
        ("signal", cause.signal.as_ref()),
        ("exception", cause.exception.as_ref()),
        ("fault address", cause.fault_addr.as_ref()),
        ("ip", cause.ip.as_ref()),
        ("sp", cause.sp.as_ref()),
        ("CPU", cpu.as_ref()),
        ("command", cause.cmdline.as_ref()),
        ("time since boot", cause.time.as_ref()),
        ("seen", line.as_ref()),
        ("signature", Some(&report.signature)),
    ];
    let facts: Vec<_> = facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    page.table(&[], &facts, (32_000, Keep::First, "facts"), |page, _, (name, value)| {
        page.row(ROW, &[Cell::Text(name), Cell::Mono(value)]);
    });
    page.list(&cause.reasons, 16_000, Keep::First, "reasons", |page, _, reason| page.line("", "", reason));
    report.nameless.iter().for_each(|what| page.line("care", "", what));
}

/// The frames of one stack: address, how it was found, function, place, with the source line and what is inlined below.
fn frames(frames: &[FrameRow], page: &mut Page) {
    let room = (48_000, Keep::First, "frames");
    // A stack that was printed by name has no addresses, and then no column for them.
    let has_addresses = frames.iter().any(|frame| frame.addr.is_some());
    let columns: &[&str] = match has_addresses {
        true => &["", "address", "found by", "function", "source"],
        false => &["", "found by", "function", "source"],
    };
    page.table(columns, frames, room, |page, _, frame| {
        let index = format!("#{}", frame.index);
        let (addr, place) = (frame.addr.as_deref().unwrap_or("–"), frame.place.as_deref().unwrap_or_default());
        let function = format!("<span class=m>{}</span>{}", text(&frame.symbol), source(frame.source.as_deref()));
        let dim = if frame.machinery || frame.trust == "scan" { "class=\"r dim\"" } else { ROW };
        let mut cells = vec![Cell::Mono(&index)];
        cells.extend(has_addresses.then_some(Cell::Mono(addr)));
        cells.extend([Cell::Text(&frame.trust), Cell::Own(&function), Cell::Mono(place)]);
        page.row(dim, &cells);
        frame.inlined.iter().for_each(|one| inlined(one, has_addresses, page));
    });
}

fn inlined(one: &InlinedRow, has_addresses: bool, page: &mut Page) {
    let function =
        format!("<span class=m>└ {}</span> <i>inlined</i>{}", text(&one.function), source(one.source.as_deref()));
    let place = one.place.as_deref().unwrap_or_default();
    let dim = if one.machinery { "class=\"r dim\"" } else { ROW };
    let mut cells = vec![Cell::Text(""); if has_addresses { 3 } else { 2 }];
    cells.extend([Cell::Own(&function), Cell::Mono(place)]);
    page.row(dim, &cells);
}

/// The text of a source line, below the name of its function.
fn source(line: Option<&str>) -> String {
    line.map_or(String::new(), |line| format!("<code>{}</code>", text(line.trim())))
}

fn code_around(code: &CodeReport, page: &mut Page) {
    let what = format!("← {}", code.mark);
    page.table(&[], &code.lines, (32_000, Keep::First, "instructions"), |page, _, line| {
        let values = line.values.as_deref().unwrap_or_default();
        let mark = if line.marked { what.as_str() } else { "" };
        let label = code.label(line);
        let cells = [&label, &line.bytes, &line.text].map(|one| Cell::Mono(one));
        let attributes = if line.marked { MARKED } else { ROW };
        page.row(attributes, &[cells[0], cells[1], cells[2], Cell::Mono(values), Cell::Text(mark)]);
    });
}

fn registers(page: &mut Page, sets: &[RegisterSet]) {
    page.body.push_str("<div class=\"sets\">");
    page.list(sets, 64_000, Keep::First, "sets of registers", |page, _, set| {
        page.body.push_str("<div>");
        page.heading(&set.title);
        page.table(&[], &set.registers, (24_000, Keep::First, "registers"), |page, _, one| {
            let note = one.note.as_deref().unwrap_or_default();
            page.row(ROW, &[Cell::Mono(&one.name), Cell::Mono(&one.value), Cell::Text(note)]);
        });
        page.body.push_str("</div>");
    });
    page.body.push_str("</div>\n");
}

/// Hexadecimal digits in groups of eight bytes.
fn grouped(hex: &str) -> String {
    let digits: Vec<char> = hex.chars().collect();
    digits.chunks(16).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}

fn meta(report: &Report, page: &mut Page) {
    page.table(&[], &report.meta, (32_000, Keep::First, "facts"), |page, _, fact| {
        page.row(ROW, &[Cell::Text(&fact.name), Cell::Mono(&fact.value)]);
    });
    let complete = &report.completeness;
    let state = if complete.complete { "complete" } else { "not complete" };
    page.line("", "", &format!("{state}: {} of {} sections verified", complete.verified, complete.sections));
    page.list(&complete.defects, 16_000, Keep::First, "defects", |page, _, line| page.line("alarm", "damaged:", line));
    page.list(&complete.missing, 16_000, Keep::First, "gaps", |page, _, gap| {
        page.line("care", "missing:", &format!("{}; {}", gap.what, gap.weakens));
    });
    if complete.kept > 0 {
        page.line("dim", "", &format!("{} pieces of the log were not understood and are kept", complete.kept));
    }
    page.list(&report.remarks, 24_000, Keep::First, "remarks", |page, _, one| page.line("dim", "", &one.text));
}
