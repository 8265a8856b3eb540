//! The shapes that every small kernel prints: Rust's panic message, backtraces, and lists of addresses.

use super::build::{Builder, Took};
use super::class::Class;
use super::deadly::deadly;
use super::registers::Line;
use super::report::Frame;
use super::told;
use super::words::{hex, is_symbol_byte, source, text};

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

/// The frames of a line in the forms of small kernels; `inside` says that a backtrace is being printed.
pub fn frames(line: &[u8], inside: bool) -> Vec<Frame> {
    if let Some(frame) = go(line).or_else(|| numbered(line)) {
        return vec![frame];
    }
    addresses(line, inside)
}

/// `#3 0xffffffff80001234 in name (args)`, `3: 0xffff… - name+0x12`, `[3] ffffffff80001234 name`, `0xffff…: name`.
fn numbered(line: &[u8]) -> Option<Frame> {
    let mut rest = line;
    let mut index = false;
    for head in [&b"frame #"[..], b"frame ", b"Frame #", b"Frame ", b"#", b"["] {
        if let Some((_, after)) = rest.strip_prefix(head).and_then(super::words::dec) {
            rest = after;
            index = true;
            break;
        }
    }
    if !index
        && let Some((number, after)) = super::words::dec(rest)
            .filter(|(number, after)| *number < 256 && matches!(after.first(), Some(b':' | b')')))
    {
        let _ = number;
        rest = after;
        index = true;
    }
    let skip = |text: &[u8]| {
        text.iter()
            .position(|byte| !matches!(byte, b':' | b']' | b')' | b' ' | b'\t' | b'-' | b'|'))
            .unwrap_or(text.len())
    };
    rest = &rest[skip(rest)..];
    let mut frame = Frame::default();
    let angled = rest.strip_prefix(b"<").or_else(|| rest.strip_prefix(b"[<")).unwrap_or(rest);
    if let Some((address, after)) = hex(angled).filter(|(_, after)| angled.len() - after.len() >= 8) {
        frame.address = Some(address);
        rest = after.strip_prefix(b">").unwrap_or(after);
        rest = rest.strip_prefix(b"]").unwrap_or(rest);
    } else if !index {
        return None;
    }
    rest = &rest[skip(rest)..];
    for word in [&b"in "[..], b"at ", b"@ ", b"<", b"(", b"=> ", b"- "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let end = rest.iter().position(|byte| !is_symbol_byte(*byte)).unwrap_or(rest.len());
    let name = &rest[..end];
    // `cc  int 3`: the bytes of an instruction behind its address.
    let is_code = !index && name.len().is_multiple_of(2) && name.len() <= 16 && name.iter().all(u8::is_ascii_hexdigit);
    let sound = name.len() >= 2
        && !is_code
        && !name[0].is_ascii_digit()
        && name.iter().any(u8::is_ascii_alphabetic)
        && !name.ends_with(b":");
    if sound {
        frame.symbol = Some(text(name));
        let after = &rest[end..];
        let plus =
            after.strip_prefix(b"+").or_else(|| after.strip_prefix(b" + ")).or_else(|| after.strip_prefix(b" +"));
        if let Some((offset, after)) = plus.and_then(hex) {
            frame.offset = Some(offset);
            frame.size = after.strip_prefix(b"/").and_then(hex).map(|(size, _)| size);
        }
        let last = after.rsplit(|byte| matches!(byte, b' ' | b'(')).next().unwrap_or_default();
        frame.source = source(last);
    }
    let plausible = match (&frame.symbol, frame.address) {
        (Some(_), Some(_)) => true,
        // A number and a name: the name must look like a path or stand alone.
        (Some(_), None) => index && (super::words::has(name, b"::") || rest.len() == end || frame.offset.is_some()),
        (None, Some(_)) => index && rest.is_empty(),
        (None, None) => false,
    };
    plausible.then_some(frame)
}

/// `gvisor.dev/gvisor/pkg/sentry/kernel.(*Task).run(0xc000, 0x1)`; `created by main.main in goroutine 1`.
fn go(line: &[u8]) -> Option<Frame> {
    let name = match line.strip_prefix(b"created by ") {
        Some(rest) => rest.split(|byte| *byte == b' ').next()?,
        None => {
            let inner = line.strip_suffix(b")")?;
            &inner[..memchr::memrchr(b'(', inner)?]
        }
    };
    let plain = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/' | b'_' | b'(' | b')' | b'*' | b'-' | b'[' | b']')
    };
    let sound = name.iter().all(plain)
        && super::words::has(name, b".")
        && !name.starts_with(b".")
        && !name.starts_with(b"/")
        && name.len() > 5;
    sound.then(|| Frame { symbol: Some(text(name)), ..Frame::default() })
}

/// Nothing but addresses: `80103a1c 80102b3d 0`, `0xffffffff80001234`.
pub(super) fn addresses(line: &[u8], inside: bool) -> Vec<Frame> {
    let mut found = Vec::new();
    for word in line.split(|byte| matches!(byte, b' ' | b'\t' | b',')).filter(|word| !word.is_empty()) {
        // `0x4000:0x3ffb` of Xtensa: the address and the stack pointer.
        let first = word.split(|byte| *byte == b':').next().unwrap_or_default();
        match hex(first).filter(|(_, rest)| rest.is_empty()) {
            Some((value, _)) if first.len() >= 8 && value > 0xfff => {
                found.push(Frame { address: Some(value), ..Frame::default() });
            }
            Some((0, _)) if !found.is_empty() => {}
            _ => return Vec::new(),
        }
        if found.len() >= 32 {
            break;
        }
    }
    // One address alone is a backtrace only inside one, or with `0x` before it.
    if found.len() == 1 && !inside && !line.starts_with(b"0x") { Vec::new() } else { found }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_small_kernels_are_read() {
        for (line, symbol) in [
            ("#3 0xffffffff80001234 in vfs_read (fd=3)", "vfs_read"),
            ("3: 0xffffffff80001234 - vfs_read+0x12", "vfs_read"),
            ("[3] ffffffff80001234 vfs_read", "vfs_read"),
            ("0xffffffff80001234: vfs_read+0x12", "vfs_read"),
            ("  12: kernel::fs::read".trim(), "kernel::fs::read"),
            (
                "gvisor.dev/gvisor/pkg/sentry/kernel.(*Task).run(0xc000, 0x1)",
                "gvisor.dev/gvisor/pkg/sentry/kernel.(*Task).run",
            ),
            ("0xffffffff80001234 <vfs_read+0x24>", "vfs_read"),
        ] {
            let found = frames(line.as_bytes(), true);
            assert_eq!(found.first().and_then(|frame| frame.symbol.as_deref()), Some(symbol), "{line}");
        }
        assert_eq!(frames(b"80103a1c 80102b3d 80100010 0", false).len(), 3);
        assert!(frames(b"loaded 12 modules", true).is_empty());
        assert!(frames(b"1: init done", true).is_empty());
    }
}
