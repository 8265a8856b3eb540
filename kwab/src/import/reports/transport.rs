//! Transports of the consoles of other kernels: terminal programs, Solaris' syslog, test runners, a login prompt.

use super::words::{after, dec, has};

/// Bytes at the front of a line in which a transport is looked for.
const REACH: usize = 128;

/// Takes one such transport off the front of a line.
pub(super) fn other(line: &[u8]) -> Option<&[u8]> {
    let near = &line[..line.len().min(REACH)];
    match line.first()? {
        b'#' => line.strip_prefix(b"#012").or_else(|| line.strip_prefix(b"#015")),
        b'\xe2' => visible_escape(line),
        _ if has(near, b".notice] ") => solaris(line),
        _ if has(near, b" console output: ") => after(line, b" console output: "),
        _ => prompt(line).or_else(|| python(line)).or_else(|| compose(line)),
    }
}

/// What a terminal program of RIOT writes behind its time stamp: `- INFO # text`, `# text`.
pub(super) fn of_terminal(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"- INFO # ").or_else(|| line.strip_prefix(b"# ")).unwrap_or(line)
}

/// `00> text`: the channel of a debug probe's terminal (SEGGER RTT).
pub(super) fn of_probe(line: &[u8]) -> Option<&[u8]> {
    match line {
        [b'0'..=b'9', b'0'..=b'9', b'>', b' ', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// `I0409 12:04:12.853912    8843 vm_console.go:96] text` of Google's loggers, and the machine whose console it is.
pub(super) fn glog(line: &[u8]) -> Option<&[u8]> {
    let day = line.get(1..5).filter(|_| matches!(line[0], b'I' | b'W' | b'E' | b'F'))?;
    let rest = line[5..].strip_prefix(b" ").filter(|_| day.iter().all(u8::is_ascii_digit))?;
    let end = rest.iter().take(REACH).position(|byte| *byte == b' ')?;
    let clock = rest[..end].iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
    let (_, rest) = dec(rest[end..].trim_ascii_start()).filter(|_| clock && end >= 8)?;
    let (at, rest) = (memchr::memchr(b']', &rest[..rest.len().min(REACH)])?, rest);
    let rest = rest[at + 1..].strip_prefix(b" ").filter(|_| rest[..at].contains(&b':'))?;
    // `SB[vm-oIkNyXZLZD] [CNL] text`
    let machine = rest.strip_prefix(b"SB[").and_then(|_| after(&rest[..rest.len().min(REACH)], b"] [CNL] "));
    Some(machine.map_or(rest, |console| &rest[rest.len().min(REACH) - console.len()..]))
}

/// `\u{241b}[1;31m`: an escape sequence whose first byte was made visible.
fn visible_escape(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix("\u{241b}[".as_bytes())?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b';')?;
    (rest[end] == b'm').then(|| &rest[end + 1..])
}

/// `host unix: [ID 836849 kern.notice] text`, with or without the host.
fn solaris(line: &[u8]) -> Option<&[u8]> {
    let rest = after(line, b": [ID ")?;
    let (_, rest) = dec(rest)?;
    let rest = rest.strip_prefix(b" kern.notice] ")?;
    Some(rest)
}

/// `login: text`, `host login: text`: a kernel prints where the cursor stands.
fn prompt(line: &[u8]) -> Option<&[u8]> {
    let rest = match line.strip_prefix(b"login: ") {
        Some(rest) => rest,
        None => {
            let space = line[..line.len().min(64)].iter().position(|byte| *byte == b' ')?;
            line[space + 1..].strip_prefix(b"login: ")?
        }
    };
    // A name that a user types is one word.
    rest.contains(&b' ').then_some(rest)
}

/// `qemu    | text`: what a service of Docker Compose prints behind its name.
fn compose(line: &[u8]) -> Option<&[u8]> {
    const LONGEST_NAME: usize = 32;
    let end = line[..line.len().min(LONGEST_NAME)].iter().position(|byte| *byte == b' ')?;
    let named =
        line[..end].iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(byte));
    line[end..].trim_ascii_start().strip_prefix(b"| ").filter(|_| named && end > 0)
}

/// `INFO - text`, `ERROR   - text`: the level of a Python logger, and what Zephyr's test runner writes behind it.
fn python(line: &[u8]) -> Option<&[u8]> {
    let levels = [&b"INFO"[..], b"ERROR", b"DEBUG", b"WARN"];
    let rest = levels.iter().find_map(|level| line.strip_prefix(*level))?;
    let rest = rest.strip_prefix(b" - ").or_else(|| rest.trim_ascii_start().strip_prefix(b"- "))?;
    Some(rest.strip_prefix(b"DEVICE: ").unwrap_or(rest))
}
