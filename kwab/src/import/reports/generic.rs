//! The shapes that every small kernel prints: Rust's panic message, backtraces, and lists of addresses.

use super::build::{Builder, Took};
use super::class::Class;
use super::deadly::deadly;
use super::registers::Line;
use super::told;
use super::words::{hex, source, text};

/// Takes the message out of a line that opens a report, or says that the next line has it.
pub fn message(builder: &mut Builder, line: &[u8], given: bool) {
    let has_source = builder.report.source.is_some() || super::words::has(line, b"anic");
    builder.wants_message = !given && has_source && line.trim_ascii_end().ends_with(b":")
        || line.ends_with(b"! :^(")
        || line.ends_with(b"anic!");
    if builder.report.message.is_empty() {
        builder.report.message = text(line.trim_ascii());
    }
    let named = builder.report.source.as_ref().map(|(file, line)| format!("{file}:{line}"));
    if let Some(position) = named {
        builder.values.retain(|(name, _)| name != "file");
        builder.say("file", position);
    }
}

/// Bytes of a message that are kept: a debug print of a whole context is as long as it likes.
const LONGEST_MESSAGE: usize = 300;

/// Bytes of a message from which on a printed structure in it is left out of the headline.
const LONG_MESSAGE: usize = 100;

/// Makes a headline of the message: without a quoted end of line and what follows, and without a printed structure. The
/// whole message stays as a remark, and the trap that it may tell of is read.
pub fn shorten(builder: &mut Builder) {
    let whole = builder.report.message.clone();
    trap_in(builder, whole.as_bytes());
    let first = whole.split("\\n").next().unwrap_or_default();
    let structure = first.find(" {").filter(|at| *at > 0 && (first.len() > LONG_MESSAGE || first.ends_with('{')));
    let mut shown = structure.map_or(first, |at| &first[..at]).trim();
    for quote in ['\'', '"'] {
        // A message in quotes that the line, or the cut above, ends within.
        let lone = shown.starts_with(quote) && shown.matches(quote).count() == 1;
        shown = if lone { shown.trim_start_matches(quote) } else { shown };
    }
    if shown != whole && !shown.is_empty() {
        builder.report.message = shown.to_string();
        builder.note(whole);
    }
}

/// Takes the trap registers of RISC-V that stand inside a message: `mcause: 0x5, mtval: 0x10`, `scause=0xd`.
fn trap_in(builder: &mut Builder, message: &[u8]) {
    let value = |names: &[&str]| {
        let marks = names.iter().flat_map(|name| [format!("{name}: "), format!("{name}=")]);
        marks.into_iter().find_map(|mark| super::words::hex_after(message, mark.as_bytes()))
    };
    let Some(cause) = value(&["scause", "mcause"]) else { return };
    let report = &mut builder.report;
    report.error_code = report.error_code.or(Some(cause));
    report.error_text.get_or_insert(super::decode::scause(cause).text);
    report.fault_address = report.fault_address.or_else(|| value(&["stval", "mtval"]));
    report.ip = report.ip.or_else(|| value(&["sepc", "mepc"]));
    if report.class == Class::Panic {
        report.class = Class::Exception;
    }
}

/// Takes the line behind `panicked at src/x.rs:1:2:` as the message.
pub fn wanted_message(builder: &mut Builder, line: &[u8]) -> bool {
    // The fence of a block of code in Markdown says nothing.
    if !line.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
        return false;
    }
    builder.wants_message = false;
    let position = source(line.split(|byte| *byte == b' ').next().unwrap_or_default()).is_some();
    if position || hex(line).is_some_and(|(_, rest)| rest.is_empty()) || line.ends_with(b"trace:") {
        return false;
    }
    if let Some(rest) = line.strip_prefix(b"panicked at ") {
        if builder.report.source.is_none() {
            builder.report.source = source(rest);
        }
        builder.wants_message = true;
        return true;
    }
    let message = text(&line[..line.len().min(LONGEST_MESSAGE)]);
    builder.report.message = message;
    told::head(builder, line);
    shorten(builder);
    let shown = builder.report.message.clone();
    builder.say("message", shown);
    true
}

/// Registers whose names the row lists.
pub fn own_registers(line: &[u8], own: &dyn Fn(&str) -> bool) -> Option<Line> {
    let mut found = Line::default();
    for word in line.split(|byte| matches!(byte, b' ' | b',' | b'\t')).filter(|word| !word.is_empty()) {
        let at = word.iter().position(|byte| matches!(byte, b'=' | b':'))?;
        let name = text(&word[..at]);
        let (value, rest) = hex(&word[at + 1..])?;
        if !own(&name) || !rest.is_empty() || found.pairs.len() >= 32 {
            return None;
        }
        found.pairs.push((name, value));
    }
    (!found.pairs.is_empty()).then_some(found)
}

/// Other lines of a report of a small kernel.
pub fn detail(builder: &mut Builder, line: &[u8]) -> Took {
    // Go prints the position of a frame on a line of its own.
    if let Some((file, number)) = source(line.split(|byte| *byte == b' ').next().unwrap_or_default()) {
        if let Some(frame) =
            builder.last_frame().filter(|frame| frame.source.is_none() && (file.contains('/') || file.contains('.')))
        {
            frame.source = Some((file, number));
            return Took::Yes;
        }
        // A frame of Go's runtime that is left out has a position too.
        if builder.report.source.is_none() && builder.report.family != "go" {
            builder.report.source = Some((file, number));
            return Took::Yes;
        }
    }
    if line == b"message: Some(" {
        builder.wants_message = true;
        return Took::Yes;
    }
    if let Some((class, bare)) = deadly(line) {
        if is_shout(builder) {
            builder.report.class = class;
            builder.report.message = text(bare);
            told::head(builder, bare);
        } else {
            builder.note(text(bare));
        }
        return Took::Yes;
    }
    // A row has its own words for the same things.
    if builder.report.family == "generic" && told::behind(builder, line) { Took::Yes } else { Took::No }
}

/// Whether the line that opened the report says that there is a panic, and not what happened.
fn is_shout(builder: &Builder) -> bool {
    let message = builder.report.message.trim_matches(|letter: char| !letter.is_alphanumeric());
    builder.title == "{message}" && ["kernel panic", "panic"].iter().any(|shout| message.eq_ignore_ascii_case(shout))
}
