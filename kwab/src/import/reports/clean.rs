//! Makes plain text of a line with escapes: ANSI sequences, control characters, HTML entities, quoted-printable, JSON.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::words::has;

/// Longest line that is unpacked from JSON.
const LONGEST_JSON: usize = 64 << 10;

/// Whether a line without control characters may be JSON, or hold entities of HTML or quoted-printable text.
pub(super) fn may_be_wrapped(line: &[u8]) -> bool {
    let printable = |at: usize| line[at..].starts_with(b"=3D") || line[at..].starts_with(b"=A0 ");
    line.starts_with(b"{")
        || line.ends_with(b"=0A=")
        || line.ends_with(b"=20")
        || memchr::memchr(b'&', line).is_some()
        || memchr::memchr_iter(b'=', line).any(printable)
}

/// End of the name of the string that holds a report of XNU.
pub(super) const PANIC_STRING: &[u8] = b"anicString\"";

/// U+241B, the picture of an escape: terminal programs write it for the character itself.
const SHOWN_ESCAPE: &[u8] = "\u{241b}".as_bytes();

/// A hexadecimal number as typesetting programs write it: with the sign of a multiplication.
const TYPESET: &[u8] = "0\u{d7}".as_bytes();

/// Writes the clean line into `out`; `false` when nothing had to be cleaned.
pub(super) fn clean(line: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    if line.starts_with(b"{") && line.len() <= LONGEST_JSON && json_message(line, out) {
        return true;
    }
    let entities =
        has(line, b"&lt;") || has(line, b"&gt;") || has(line, b"&amp;") || has(line, b"&nbsp;") || has(line, b"&#");
    let printable = has(line, b"=3D") || has(line, b"=A0 ") || line.ends_with(b"=0A=") || line.ends_with(b"=20");
    let control = line.iter().any(|byte| matches!(byte, 0..=8 | 10..=31 | 0x7f));
    let typeset = has(line, TYPESET);
    if !entities && !printable && !control && !typeset && !has(line, SHOWN_ESCAPE) {
        return false;
    }
    // A carriage return begins the line again: what stands before it was overwritten, unless nothing follows.
    let line = match memchr::memrchr(b'\r', line.trim_ascii_end()) {
        Some(at) => &line[at + 1..],
        None => line,
    };
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        let (taken, plain) = match byte {
            0x1b => (escape(&line[at..]), None),
            0xe2 if line[at..].starts_with(SHOWN_ESCAPE) => (2 + escape(&line[at + 2..]), None),
            0xc3 if typeset && at > 0 && line[at - 1..].starts_with(TYPESET) => (2, Some(b'x')),
            b'&' if entities => entity(&line[at..]),
            b'=' if printable => match line.get(at..at + 3) {
                Some([_, high, low]) => match (char::from(*high).to_digit(16), char::from(*low).to_digit(16)) {
                    (Some(high), Some(low)) if !line[at + 1].is_ascii_lowercase() => {
                        (3, plain_byte((high * 16 + low) as u8))
                    }
                    _ => (1, Some(b'=')),
                },
                _ => (1, None),
            },
            0..=8 | 10..=31 | 0x7f => (1, None),
            byte => (1, Some(*byte)),
        };
        out.extend(plain);
        at += taken.max(1);
    }
    true
}

/// What a byte of quoted-printable text becomes.
fn plain_byte(byte: u8) -> Option<u8> {
    match byte {
        0xa0 => Some(b' '),
        0..=8 | 10..=31 | 0x7f..=0xff => None,
        byte => Some(byte),
    }
}

/// How long the escape sequence at the front is.
fn escape(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'[') => text[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)).map_or(text.len(), |end| end + 3),
        Some(b']') => text[2..].iter().position(|byte| *byte == 7).map_or(text.len(), |end| end + 3),
        Some(_) => 2,
        None => 1,
    }
}

/// An HTML entity: its length and its character.
fn entity(text: &[u8]) -> (usize, Option<u8>) {
    const NAMED: &[(&[u8], u8)] =
        &[(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&quot;", b'"'), (b"&apos;", b'\''), (b"&nbsp;", b' ')];
    if let Some((name, byte)) = NAMED.iter().find(|(name, _)| text.starts_with(name)) {
        return (name.len(), Some(*byte));
    }
    let Some(rest) = text.strip_prefix(b"&#") else { return (1, Some(b'&')) };
    let (digits, radix, head) = match rest.strip_prefix(b"x") {
        Some(digits) => (digits, 16, 3),
        None => (rest, 10, 2),
    };
    let end = digits.iter().take(4).position(|byte| *byte == b';');
    let value = end.and_then(|end| u8::from_str_radix(std::str::from_utf8(&digits[..end]).ok()?, radix).ok());
    match (end, value) {
        (Some(end), Some(value)) => (head + end + 1, Some(value)),
        _ => (1, Some(b'&')),
    }
}

/// The report that XNU's diagnostics keep as one string, the value of `panicString` or `macOSPanicString` in JSON; what
/// was cut off at its end is missing.
pub(super) fn quoted_panic(line: &[u8]) -> Option<String> {
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PANIC_STRING));
    let named = NAME.find(line)?;
    let rest = line[named + NAME.needle().len()..].trim_ascii_start().strip_prefix(b":")?;
    let text = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let mut end = 0;
    while let Some(byte) = text.get(end) {
        match byte {
            b'"' => break,
            b'\\' if end + 1 < text.len() => end += 2,
            b'\\' => break,
            _ => end += 1,
        }
    }
    let literal = [b"\"", &text[..end], b"\""].concat();
    serde_json::from_slice(&literal).ok()
}

/// The message of a line of `journalctl -o json`: a text, or an array of bytes when it is not UTF-8.
fn json_message(line: &[u8], out: &mut Vec<u8>) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Message {
        Text(String),
        Bytes(Vec<u8>),
    }
    #[derive(serde::Deserialize)]
    struct QuotedLine {
        #[serde(rename = "MESSAGE", alias = "message", alias = "msg", alias = "log")]
        message: Message,
    }
    if !has(line, b"\"MESSAGE\"") && !has(line, b"\"message\"") && !has(line, b"\"msg\"") && !has(line, b"\"log\"") {
        return false;
    }
    let Ok(entry) = serde_json::from_slice::<QuotedLine>(line.trim_ascii()) else { return false };
    let bytes = match entry.message {
        Message::Text(text) => text.into_bytes(),
        Message::Bytes(bytes) => bytes,
    };
    out.extend(bytes.into_iter().filter(|byte| !matches!(byte, 0..=8 | 10..=31 | 0x7f)));
    true
}
