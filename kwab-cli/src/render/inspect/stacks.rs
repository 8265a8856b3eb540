//! Backtraces of the death, all other stacks, and the code around the fault.

use std::fmt::Write as _;

use kwab::plain;
use kwab::report::inspect::{Backtrace, CodeReport, FrameRow, Report, StackReport};
use kwab::unwind::Trust;
use unicode_width::UnicodeWidthStr as _;

use super::{heading, title};
use crate::output::Style;
use crate::render::{Tone, count, cut, paint, wrap};

/// Where the symbol of a frame begins.
const INDENT: usize = 11;
/// Columns below which code is shown without its bytes.
const NARROW: usize = 72;
/// Owners of a stack that are named in its title.
const NAMED: usize = 6;

/// The backtraces of the death; all of them when they were asked for, else the first.
pub(super) fn backtraces(traces: &[Backtrace], style: Style, all: bool, out: &mut String) {
    for trace in traces.iter().take(if all { usize::MAX } else { 1 }) {
        title(&trace.title, style, out);
        frames(&trace.frames, style, out);
        legend(&trace.frames, style, out);
    }
}

/// Why a backtrace has no names, and what would give it some.
pub(super) fn nameless(report: &Report, style: Style, out: &mut String) {
    let frames = report.backtraces.first().map_or(&[][..], |trace| &trace.frames);
    if frames.is_empty() || frames.iter().any(|frame| !frame.symbol.is_empty()) {
        return;
    }
    let Some(why) = &report.nameless else { return };
    let text = format!("  (no names: {})", plain::line(why));
    let _ = writeln!(out, "{}", paint(style, Tone::Dim, &wrap(&text, style.width, "   ")));
}

/// All other stacks.
pub(super) fn others(stacks: &[StackReport], style: Style, all: bool, out: &mut String) {
    if !all {
        if !stacks.is_empty() {
            let text = format!("  … and {}: --section bt", count(stacks.len() as u64, "other stack", "other stacks"));
            let _ = writeln!(out, "{}", paint(style, Tone::Dim, &text));
        }
        return;
    }
    for stack in stacks {
        let mut owners: Vec<String> = stack.owners.iter().take(NAMED).cloned().collect();
        if stack.owners.len() > NAMED {
            owners.push(format!("and {} more", stack.owners.len() - NAMED));
        }
        let several = if stack.owners.len() > 1 { format!("{} × ", stack.owners.len()) } else { String::new() };
        let owners = format!("{several}{}", owners.join("; "));
        heading(&wrap(&plain::line(&owners), style.width, "  "), style, out);
        frames(&stack.frames, style, out);
        if let Some(ends) = &stack.ends {
            let _ = writeln!(out, "{}", paint(style, Tone::Dim, &format!("  ({ends})")));
        }
    }
}

/// Frames with what is inlined into them; a run of machinery becomes one row.
fn frames(frames: &[FrameRow], style: Style, out: &mut String) {
    let mut at = 0;
    while let Some(row) = frames.get(at) {
        let run = frames[at..].iter().take_while(|frame| frame.machinery && frame.trust != "printed").count();
        if run >= 2 && style.width != usize::MAX {
            let text =
                format!("  #{:<2} …    {run} frames of panic and library machinery (--wide shows them)", row.index);
            let _ = writeln!(out, "{}", paint(style, Tone::Dim, &text));
            at += run;
            continue;
        }
        frame(row, style, out);
        at += 1;
    }
}

fn frame(frame: &FrameRow, style: Style, out: &mut String) {
    let address = frame.addr.as_ref().map_or(String::new(), |addr| format!("{addr}  "));
    let location = frame.place.as_ref().map_or(String::new(), |source| format!("  {source}"));
    let text = format!("  #{:<2} {:<4} {address}{}{location}", frame.index, short(&frame.trust), frame.symbol);
    let tone = if frame.trust == "scan" { Tone::Dim } else { Tone::Code };
    let room = style.width.saturating_sub(INDENT);
    let _ = writeln!(out, "{}", paint(style, tone, &wrap(&text, room, &" ".repeat(INDENT))));
    source(frame.source.as_deref(), style, out);
    let told = |machinery: bool| !machinery || style.width == usize::MAX;
    for inlined in frame.inlined.iter().filter(|inlined| told(inlined.machinery)) {
        let location = inlined.place.as_ref().map_or(String::new(), |source| format!("  {source}"));
        let text = format!("      inl  └ {} (inlined){location}", inlined.function);
        let _ = writeln!(out, "{}", paint(style, tone, &wrap(&text, room, &" ".repeat(INDENT + 2))));
        source(inlined.source.as_deref(), style, out);
    }
}

fn source(line: Option<&str>, style: Style, out: &mut String) {
    if let Some(line) = line {
        let text = cut(&format!("{:INDENT$}│ {line}", ""), style.width);
        let _ = writeln!(out, "{}", paint(style, Tone::Dim, &text));
    }
}

fn short(trust: &str) -> &'static str {
    Trust::of_name(trust).map_or("?", Trust::short)
}

/// What the short words mean, where one of them is not obvious.
fn legend(frames: &[FrameRow], style: Style, out: &mut String) {
    let shown = |trust: &Trust| frames.iter().any(|frame| frame.trust == trust.name());
    let words = [Trust::UnwindTable, Trust::FramePointer, Trust::TopOfStack, Trust::Printed, Trust::Scan];
    let used = words.into_iter().filter(shown).map(|trust| format!("{} = {}", trust.short(), trust.about()));
    let used: Vec<String> = used.collect();
    if used.len() > 1 {
        let text = format!("  ({})", used.join(", "));
        let _ = writeln!(out, "{}", paint(style, Tone::Dim, &wrap(&text, style.width, "   ")));
    }
}

/// The code around the fault.
pub(super) fn code(code: Option<&CodeReport>, style: Style, out: &mut String) {
    let Some(code) = code else { return };
    title(if code.is_fault { "code" } else { "code (the call that led there)" }, style, out);
    let widest = code.lines.iter().map(|line| code.label(line).width()).max().unwrap_or_default();
    for line in &code.lines {
        let mark = if line.marked { "▶" } else { " " };
        // In a narrow column the operands' values are worth more than the bytes.
        let bytes = if style.width < NARROW { String::new() } else { format!("{:<22} ", line.bytes) };
        let text = format!("{mark} {:<widest$}  {bytes}{}", code.label(line), line.text);
        let values = line.values.as_ref().map_or(String::new(), |values| format!("    {values}"));
        let fault = if line.marked && code.is_fault { format!("  ← {}", code.mark) } else { String::new() };
        let whole = format!("{text}{values}{fault}");
        // The operands of the marked instruction have a line of their own where they do not fit.
        let text = if line.marked && whole.width() > style.width && !values.is_empty() {
            let indent = " ".repeat(if style.width < NARROW { 6 } else { 22 });
            let values = wrap(values.trim_start(), style.width - indent.len(), &indent);
            format!("{}\n{indent}{values}", cut(&format!("{text}{fault}"), style.width))
        } else {
            cut(&whole, style.width)
        };
        let tone = if line.marked { Tone::Care } else { Tone::Code };
        let _ = writeln!(out, "{}", paint(style, tone, &text));
    }
}
