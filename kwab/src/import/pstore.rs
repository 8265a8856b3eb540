//! Puts the parts of a log that a kernel saved in pstore into the order of time.
//!
//! A kernel that dies saves its log from the end: `Panic#2 Part1` holds the last lines, `Part2` those before. Files
//! that are read one after another therefore tell the end first, and a report may begin in one part and end in another.
//! Lines are numbered as they are read, in the order of time.

use std::io::{self, Read};

use super::reports::prefix::strip_clean;

/// The most bytes of such a log: a part has a few kilobytes, and a device keeps some dozens.
const MOST: u64 = 4 << 20;
/// The most parts.
const MOST_PARTS: usize = 1024;

/// Reads the rest of a log that begins with `head`, if it begins with a part of pstore, and puts the whole into the
/// order of time; nothing has been read from `input` otherwise. A log that is too long is left as it is.
///
/// # Errors
/// Those of `input`.
pub(super) fn in_order(head: &mut Vec<u8>, input: &mut dyn Read) -> io::Result<()> {
    let first = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    if !first.is_some_and(is_title) {
        return Ok(());
    }
    Read::take(input, MOST.saturating_sub(head.len() as u64)).read_to_end(head)?;
    if head.len() as u64 >= MOST {
        return Ok(());
    }
    let mut parts: Vec<(u64, &[u8])> = Vec::new();
    let mut from = 0;
    for (at, line) in lines(head) {
        if is_title(line) && at > from {
            parts.push((0, &head[from..at]));
            from = at;
        }
    }
    parts.push((0, &head[from..]));
    if parts.len() > MOST_PARTS {
        return Ok(());
    }
    for (stamp, part) in &mut parts {
        let found = lines(part).find_map(|(_, line)| strip_clean(line).ns);
        // A part without a time is of another kind: all stay where they are.
        let Some(found) = found else { return Ok(()) };
        *stamp = found;
    }
    parts.sort_by_key(|(stamp, _)| *stamp);
    let mut ordered = Vec::with_capacity(head.len());
    for (_, part) in parts {
        ordered.extend_from_slice(part);
        if !part.ends_with(b"\n") {
            ordered.push(b'\n');
        }
    }
    *head = ordered;
    Ok(())
}

/// The lines of a text with their offsets, with their ends.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    text.split_inclusive(|byte| *byte == b'\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

/// `Panic#2 Part1`, `Oops#1 Part3`: the first line of a part.
fn is_title(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let kinds: [&[u8]; 6] = [b"Panic#", b"Oops#", b"Emergency#", b"Shutdown#", b"Restart#", b"Unknown#"];
    let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(*kind)) else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let part = rest[digits..].strip_prefix(b" Part").filter(|_| digits > 0);
    part.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(text: &str) -> String {
        // The head of a log is read before.
        let (head, rest) = text.split_at(text.len().min(20));
        let mut head = head.as_bytes().to_vec();
        let mut rest = rest.as_bytes();
        in_order(&mut head, &mut rest).expect("a slice does not fail");
        head.extend_from_slice(rest);
        String::from_utf8(head).expect("text")
    }

    #[test]
    fn parts_come_in_the_order_of_time_and_other_logs_as_they_are() {
        let (one, two) =
            ("Panic#2 Part1\n<4>[   77.100021]  b\n<4>[   77.100022] c\n", "Panic#2 Part2\n<1>[   77.100000] a\n");
        assert_eq!(ordered(&format!("{one}{two}")), format!("{two}{one}"));
        assert_eq!(ordered(&format!("{two}{one}")), format!("{two}{one}"));
        assert_eq!(ordered(&format!("{one}{}", two.trim_end())), format!("{two}{one}"));
        for log in [
            "",
            "Panic#x Part1\n[    2.000000] b\nPanic#x Part2\n[    1.000000] a\n",
            "Oops#1 Part1\nb\nOops#1 Part2\n[    1.000000] a\n",
        ] {
            assert_eq!(ordered(log), log);
        }
    }
}
