//! Reads the frames of a backtrace, in the forms of every Linux architecture and of symbolised logs.
//!
//! | form | printed by |
//! |---|---|
//! | `foo+0x1c/0x40 [mod]`, `? foo+0x1c/0x40`, `foo+0x1/0x2 [mod] (P)` | x86, arm64, riscv, loongarch |
//! | `[<ffffffff81>] foo+0x1c/0x40`, `([<00000000>] foo+0x1/0x2)` | older kernels, mips, s390 |
//! | `[c0000000] [c0001000] foo+0x1c/0x40 (unreliable)` | powerpc |
//! | `[<c0>] (foo) from [<c1>] (bar+0x1/0x2)`, `foo from bar+0x1/0x2` | arm |
//! | `foo+0x1c/0x40 fs/x.c:12`, `foo fs/x.c:12 [inline]` | syzbot |
//! | `foo (fs/x.c:12)` | `decode_stacktrace.sh` |
//! | `<ffffffff80160b33>{foo+21}` | x86-64 in Linux 2.6 |
//! | `[foo+34/224] [bar+203/272]` | klogd of Linux 2.4 |
//! | `#3 [ffff9774ac03fb40] foo at ffffffff96d18738` | `bt` of crash(8) |
//! | `[<c0133793>] [<c0133c16>]`, `0xffffffffa0001234` | kernels without symbols, generated code |

use super::report::Frame;
use super::words::{hex, is_symbol_byte, source, text};

/// Frames that one line may hold.
const MOST_PER_LINE: usize = 16;

/// Reads the frames of a line; `inside` says that a backtrace is being printed, where looser forms count.
pub fn frames(line: &[u8], inside: bool) -> Vec<Frame> {
    let line = line.trim_ascii();
    if line.len() < 4 {
        return Vec::new();
    }
    let line = ["<IRQ>", "<TASK>", "<NMI>", "<EOI>", "<#DF>", "</IRQ>"]
        .iter()
        .find_map(|tag| line.strip_prefix(tag.as_bytes()))
        .map_or(line, <[u8]>::trim_ascii_start);
    // A web page took the address in angle brackets for a tag.
    let line = line.strip_prefix(b"[] ").unwrap_or(line);
    if let Some(frame) = arm(line).or_else(|| of_crash(line)) {
        return vec![frame];
    }
    let braced = braced(line);
    if !braced.is_empty() {
        return braced;
    }
    let logged = logged(line);
    if !logged.is_empty() {
        return logged;
    }
    let several = several(line, inside);
    if !several.is_empty() {
        return several;
    }
    if let Some(frame) = one(line, inside) {
        return vec![frame];
    }
    if inside { bare(line) } else { Vec::new() }
}

/// `#3 [ffff9774ac03fb40] foo at ffffffff96d18738`: the command `bt` of crash(8).
fn of_crash(line: &[u8]) -> Option<Frame> {
    let (_, rest) = super::words::dec(line.strip_prefix(b"#")?)?;
    let (_, rest) = address(rest.trim_ascii_start())?;
    let rest = rest.trim_ascii_start();
    let end = rest.iter().position(|byte| !is_symbol_byte(*byte)).filter(|end| *end > 0)?;
    let (address, _) = hex(rest[end..].strip_prefix(b" at ")?)?;
    Some(Frame { address: Some(address), symbol: Some(text(&rest[..end])), ..Frame::default() })
}

/// `<ffffffff80160b33>{foo+21} <ffffffff80154db0>{bar+85}` of Linux 2.6 on x86-64.
fn braced(line: &[u8]) -> Vec<Frame> {
    let mut found = Vec::new();
    for at in super::words::find_all(line, b">{").take(MOST_PER_LINE) {
        let Some(open) = memchr::memrchr(b'<', &line[..at]) else { continue };
        let inner = &line[at + 2..];
        let end = inner.iter().position(|byte| !is_symbol_byte(*byte)).unwrap_or(inner.len());
        let Some((address, b"")) = hex(&line[open + 1..at]) else { continue };
        let offset = inner[end..].strip_prefix(b"+").and_then(super::words::dec).map(|(offset, _)| offset);
        if end > 0 {
            let symbol = Some(text(&inner[..end]));
            found.push(Frame { address: Some(address), symbol, offset, ..Frame::default() });
        }
    }
    found
}

/// `[foo+34/224] [bar+203/272]`: klogd wrote the name and decimal numbers in the place of each address.
fn logged(line: &[u8]) -> Vec<Frame> {
    let mut found = Vec::new();
    let words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    for word in words.take(MOST_PER_LINE) {
        let inner = word.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
        match inner.and_then(|inner| numbered(inner, super::words::dec)) {
            Some(frame) => found.push(frame),
            None => break,
        }
    }
    found
}

/// `foo+34/224` with both numbers as `read` has them.
fn numbered(text_of: &[u8], read: impl Fn(&[u8]) -> Option<(u64, &[u8])>) -> Option<Frame> {
    let end = text_of.iter().position(|byte| !is_symbol_byte(*byte)).filter(|end| *end > 0)?;
    let (offset, rest) = read(text_of[end..].strip_prefix(b"+")?)?;
    let (size, rest) = read(rest.strip_prefix(b"/")?)?;
    let symbol = Some(text(&text_of[..end]));
    rest.is_empty().then(|| Frame { symbol, offset: Some(offset), size: Some(size), ..Frame::default() })
}

/// Names of the instruction pointer where ksymoops looked it up.
const KSYMOOPS: [&[u8]; 6] = [b"EIP;", b"RIP;", b"NIP;", b"PC;", b"PSW;", b"IP;"];

/// Whether a line is where ksymoops says that the fault was.
pub fn is_fault_of_ksymoops(line: &[u8]) -> bool {
    KSYMOOPS.iter().any(|mark| unquoted(line).starts_with(mark))
}

/// A line without the signs that ksymoops points with; they look like those of quoted mail, which may have gone.
fn unquoted(line: &[u8]) -> &[u8] {
    &line[line.iter().take_while(|byte| **byte == b'>').count().min(2)..]
}

/// `>>EIP; c0117c48 <foo+2ac/304>`, `Trace; c0109f0c <bar+34/38>`: an address that ksymoops looked up.
pub fn ksymoops(line: &[u8]) -> Option<Frame> {
    let rest = KSYMOOPS.iter().chain([&&b"Trace;"[..]]).find_map(|mark| unquoted(line).strip_prefix(*mark))?;
    let (address, rest) = hex(rest.trim_ascii_start())?;
    let inner = super::words::between(rest, b"<", b">")?;
    // `[ext3]name` of a module.
    let name = inner.strip_prefix(b"[").and_then(|rest| super::words::after(rest, b"]")).unwrap_or(inner);
    numbered(name, hex).map(|frame| Frame { address: Some(address), ..frame })
}

/// `__free_pages_ok [kernel] 0x5e`: the name, the package and the offset as a distribution of Linux 2.4 printed them.
pub fn of_package(line: &[u8]) -> Option<Frame> {
    let line = line.trim_ascii();
    let end = line.iter().position(|byte| !is_symbol_byte(*byte)).filter(|end| *end > 0)?;
    let rest = line[end..].strip_prefix(b" [")?;
    let (offset, _) = hex(super::words::after(rest, b"] ")?)?;
    Some(Frame { symbol: Some(text(&line[..end])), offset: Some(offset), ..Frame::default() })
}

/// `[<ffffffff81000010>] foo+0x1c/0x40 [<ffffffff81000020>] bar+0x1/0x2`: several frames with their symbols.
fn several(line: &[u8], inside: bool) -> Vec<Frame> {
    let mut starts = super::words::find_all(line, b"[<").filter(|at| *at == 0 || line[at - 1] == b' ');
    if starts.next() != Some(0) {
        return Vec::new();
    }
    let ends: Vec<usize> = starts.take(MOST_PER_LINE).chain([line.len()]).collect();
    let mut found = Vec::new();
    let mut from = 0;
    for end in ends {
        match one(line[from..end].trim_ascii(), inside).filter(|frame| frame.symbol.is_some()) {
            Some(frame) => found.push(frame),
            None => return Vec::new(),
        }
        from = end;
    }
    if found.len() > 1 { found } else { Vec::new() }
}

/// The usual forms: an optional address, an optional `?`, a symbol with its offset.
fn one(line: &[u8], inside: bool) -> Option<Frame> {
    let mut frame = Frame::default();
    let mut rest = line;
    if let Some(inner) = rest.strip_prefix(b"(").filter(|rest| rest.starts_with(b"[<")) {
        rest = inner.strip_suffix(b")").unwrap_or(inner);
    }
    rest = guess(rest, &mut frame);
    for _ in 0..3 {
        let Some((address, after)) = address(rest) else { break };
        frame.address = Some(address);
        rest = guess(after.trim_ascii_start(), &mut frame);
    }
    let parens = rest.starts_with(b"(") && frame.address.is_some();
    if parens {
        rest = &rest[1..];
    }
    let end = rest.iter().position(|byte| !is_symbol_byte(*byte)).unwrap_or(rest.len());
    let name = &rest[..end];
    if name.is_empty() || name.first().is_some_and(|byte| matches!(byte, b'-' | b'<' | b':' | b'>')) {
        return None;
    }
    frame.symbol = Some(text(name));
    let after = &rest[end..];
    match after.strip_prefix(b"+").and_then(hex) {
        Some((offset, after)) => {
            frame.offset = Some(offset);
            let sized = after.strip_prefix(b"/").and_then(hex);
            frame.size = sized.map(|(size, _)| size);
            let tail = sized.map_or(after, |(_, tail)| tail);
            let ends =
                tail.first().is_none_or(|byte| matches!(byte, b' ' | b')' | b'\t' | b'/' | b'[' | b',' | b']' | b'.'));
            if !ends || (frame.size.is_none() && frame.address.is_none() && !inside) {
                return None;
            }
            trailer(tail, &mut frame);
            Some(frame)
        }
        // The line was cut behind the name.
        None if inside && matches!(after, b"+" | b"+0x") => Some(frame),
        None if inside || frame.address.is_some() => loose(name, after, frame, parens),
        None => None,
    }
}

/// A symbol without an offset: inlined, decoded, or behind its address.
fn loose(name: &[u8], after: &[u8], mut frame: Frame, parens: bool) -> Option<Frame> {
    if name.starts_with(b"0x") && after.trim_ascii().is_empty() {
        let (address, rest) = hex(name)?;
        frame.symbol = None;
        frame.address = Some(address);
        return (rest.is_empty() && name.len() >= 6).then_some(frame);
    }
    let tail = after.trim_ascii_start();
    if after.starts_with(b" (") {
        // `foo (fs/x.c:12 fs/y.c:3)`, `foo (??:?)`
        let inner = &tail[1..];
        // The line may have been cut.
        let end = memchr::memchr(b')', inner).unwrap_or(inner.len());
        let first = inner[..end].split(|byte| *byte == b' ').next()?;
        frame.source = source(first);
        let unknown = first.ends_with(b"?");
        trailer(inner.get(end + 1..).unwrap_or_default(), &mut frame);
        return (frame.source.is_some() || unknown).then_some(frame);
    }
    let mut words = tail.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    if let Some(position) = source(first) {
        frame.source = Some(position);
        frame.inline = words.next() == Some(b"[inline]");
        return Some(frame).filter(|frame| frame.inline || frame.address.is_some());
    }
    let addressed = frame.address.is_some() && (tail.is_empty() || parens || tail.starts_with(b"["));
    addressed.then(|| {
        trailer(after, &mut frame);
        frame
    })
}

/// What stands behind a location: `[module]`, `file:line`, `(unreliable)`.
fn trailer(tail: &[u8], frame: &mut Frame) {
    for word in tail.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).take(4) {
        if let Some(inner) = word.strip_prefix(b"[") {
            let name = inner.strip_suffix(b"]").unwrap_or(inner);
            if name == b"inline" {
                frame.inline = true;
            } else if frame.module.is_none() && name.iter().all(|byte| is_symbol_byte(*byte)) && !name.is_empty() {
                frame.module = Some(text(name));
            }
        } else if word.starts_with(b"(unreliable") {
            frame.guess = true;
        } else if frame.source.is_none() {
            frame.source = source(word);
        }
    }
}

fn guess<'a>(rest: &'a [u8], frame: &mut Frame) -> &'a [u8] {
    match rest.strip_prefix(b"? ") {
        Some(rest) => {
            frame.guess = true;
            rest.trim_ascii_start()
        }
        None => rest,
    }
}

/// `[<ffffffff81000000>]`, `[c000000000001000]`, `ffffffff81000000:`.
fn address(text: &[u8]) -> Option<(u64, &[u8])> {
    let inner = text.strip_prefix(b"[")?;
    let angled = inner.starts_with(b"<");
    let inner = inner.strip_prefix(b"<").unwrap_or(inner);
    let (value, rest) = hex(inner)?;
    let digits = inner.len() - rest.len();
    let rest = if angled { rest.strip_prefix(b">")? } else { rest };
    let rest = rest.strip_prefix(b"]")?;
    (digits >= 6).then_some((value, rest))
}

/// `[<c0>] (foo) from [<c1>] (bar+0x1/0x2)` and `foo from bar+0x1/0x2`: the frame is `foo`.
fn arm(line: &[u8]) -> Option<Frame> {
    let at = super::words::find(line, b" from ")?;
    let (callee, caller) = (line[..at].trim_ascii(), &line[at + 6..]);
    let known = super::words::find(caller, b"+0x").is_some() || caller.trim_ascii().starts_with(b"0x");
    let mut frame = Frame::default();
    let mut rest = callee;
    if let Some((value, after)) = address(rest) {
        frame.address = Some(value);
        rest = after.trim_ascii();
    }
    let parens = rest.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let inner = parens.unwrap_or(rest);
    let end = inner.iter().position(|byte| !is_symbol_byte(*byte)).unwrap_or(inner.len());
    if end == 0 || !known || (parens.is_none() && frame.address.is_some()) {
        return None;
    }
    frame.symbol = Some(text(&inner[..end]));
    if let Some((offset, after)) = inner[end..].strip_prefix(b"+").and_then(hex) {
        frame.offset = Some(offset);
        let sized = after.strip_prefix(b"/").and_then(hex);
        frame.size = sized.map(|(size, _)| size);
        trailer(sized.map_or(after, |(_, tail)| tail), &mut frame);
    } else if !inner[end..].trim_ascii().is_empty() && !inner[end..].trim_ascii().starts_with(b"[") {
        return None;
    } else {
        trailer(&inner[end..], &mut frame);
    }
    Some(frame)
}

/// The caller that a line of arm names behind `from`. The next line is its frame; the last one has no other.
pub fn arm_caller(line: &[u8]) -> Option<Frame> {
    let line = line.trim_ascii();
    let at = super::words::find(line, b" from ")?;
    arm(line)?;
    let caller = line[at + 6..].trim_ascii();
    let (address, rest) = address(caller).map_or((None, caller), |(value, rest)| (Some(value), rest.trim_ascii()));
    let inner = rest.strip_prefix(b"(").unwrap_or(rest);
    let inner = inner.split(|byte| *byte == b')').next()?;
    let mut frame = one(inner, inner.ends_with(b"+0x"))?;
    frame.address = frame.address.or(address);
    Some(frame)
}

/// Nothing but addresses: `[<c0133793>] [<c0133c16>]`.
fn bare(line: &[u8]) -> Vec<Frame> {
    let mut found = Vec::new();
    for word in line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
        match address(word) {
            Some((value, rest)) if rest.is_empty() && found.len() < MOST_PER_LINE => {
                found.push(Frame { address: Some(value), ..Frame::default() });
            }
            _ => return Vec::new(),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(line: &str) -> Frame {
        frames(line.as_bytes(), true).into_iter().next().unwrap_or_else(|| panic!("no frame in {line}"))
    }

    #[test]
    fn every_form_names_the_function() {
        for line in [
            " foo_bar+0x1c/0x40",
            " ? foo_bar+0x1c/0x40 [ext4]",
            " foo_bar+0x1c/0x40 [ath12k] (P)",
            "[<ffffffff81000010>] foo_bar+0x1c/0x40",
            " [<ffffffff81000010>] ? foo_bar+0x1c/0x40 [xfs]",
            "([<0000000000123456>] foo_bar+0x1c/0x40)",
            "[c000000001] [c000000000123400] foo_bar+0x1c/0x40 (unreliable)",
            "[c0001000] (foo_bar) from [<c0002000>] (other+0x10/0x20)",
            "[<c0001000>] (foo_bar+0x1/0x2) from [<c0002000>] (other+0x10/0x20)",
            "foo_bar from other+0x10/0x20",
            " foo_bar+0x1c/0x40 fs/x.c:12",
            " foo_bar fs/x.c:12 [inline]",
            " foo_bar (fs/x.c:12 fs/y.c:3)",
            " <IRQ>  [<ffffffff8107888e>] ? foo_bar+0x7e/0xd0",
            "[<ffffffff80160b33>] <ffffffff80160b33>{foo_bar+21}",
            "[foo_bar+34/224] [other+203/272]",
            " #3 [ffff9774ac03fb40] foo_bar at ffffffff96d18738",
            "#10 [ffff9774ac03fd60] foo_bar at ffffffff96d18738 [mod]",
        ] {
            assert_eq!(first(line).symbol.as_deref(), Some("foo_bar"), "{line}");
        }
        for cut in [" foo_bar+0x", " foo_bar+", "foo_bar.cold (./include/linux/log2.h:57 fs/demo.c:46"] {
            assert!(first(cut).symbol.is_some_and(|name| name.starts_with("foo_bar")), "{cut}");
        }
        let caller = arm_caller(b"__ubsan_handle from foo_bar+0x").expect("a caller");
        assert_eq!(caller.symbol.as_deref(), Some("foo_bar"));
        assert_eq!(first(" foo_bar+0x1c/0x40 [mod 1234abcd]").module.as_deref(), Some("mod"));
        assert_eq!(first(" foo (fs/x.c:12)").source, Some(("fs/x.c".into(), 12)));
        assert!(first(" foo fs/x.c:12 [inline]").inline);
        assert_eq!(frames(b" [<c0133793>] [<c0133c16>]", true).len(), 2);
        assert_eq!(frames(b"[foo+34/224] [bar+203/272]", false).len(), 2);
        let looked_up = ksymoops(b">>EIP; c0117c48 <foo_bar+2ac/304>   <=====").expect("a frame");
        assert_eq!((looked_up.symbol.as_deref(), looked_up.offset), (Some("foo_bar"), Some(0x2ac)));
        assert_eq!(ksymoops(b"Trace; c0109f0c <[ext3]bar+34/38>").and_then(|frame| frame.size), Some(0x38));
        assert!(ksymoops(b"Code;  c0117c48 <foo+2ac/304>").is_none());
        let several = frames(b"[<ffffffff81000010>] foo+0x1c/0x40 [<ffffffff81000020>] ? bar+0x1/0x2", true);
        let names: Vec<_> = several.iter().filter_map(|frame| frame.symbol.as_deref()).collect();
        assert_eq!((names, several[1].guess), (vec!["foo", "bar"], true));
    }

    #[test]
    fn other_lines_are_not_frames() {
        for line in [
            "Code: 00 11 22",
            "Modules linked in: a b",
            "R10: 0000 R11: 0000",
            "RBP: ffff8880 R08: 0",
            "---[ end trace ]---",
        ] {
            assert!(frames(line.as_bytes(), true).is_empty(), "{line}");
        }
        assert!(frames(b"loop0: detected capacity change from 0 to 4096", true).is_empty());
    }
}
