//! The frames of a backtrace in the forms that small kernels, debuggers and the runtimes of languages print.

use super::report::Frame;
use super::words::{hex, is_symbol_byte, source, text};

/// The frames of a line in the forms of small kernels; `inside` says that a backtrace is being printed.
pub(super) fn frames(line: &[u8], inside: bool) -> Vec<Frame> {
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
pub(super) fn go(line: &[u8]) -> Option<Frame> {
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
