//! Small readers of words, numbers and names that every part of the recogniser shares.

use super::report::LONGEST_TEXT;

/// The bytes of console text, the most frequent first; all others are rarer. Counted in the logs of
/// `testing/data/logs`.
const FREQUENT: &[u8] = b" 0eat:\"rs1cfn2diolp43x68.,5u_97m[]-hbk=/gyCwPDI+SBv()ARTEG*FNU";

/// How frequent a byte is, by its position in the list above; 0 for the rare ones.
pub const FREQUENCY: [u8; 256] = {
    let mut ranks = [0; 256];
    let mut at = 0;
    while at < FREQUENT.len() {
        ranks[FREQUENT[at] as usize] = (FREQUENT.len() - at) as u8;
        at += 1;
    }
    ranks
};

/// Offset of the first `mark`. It is looked for by its rarest byte: to build a searcher costs more than to search a
/// line.
#[inline]
pub fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    /// Bytes of a text among which the rarest is chosen.
    const CANDIDATES: usize = 6;
    let rarest = (0..mark.len().min(CANDIDATES)).min_by_key(|at| FREQUENCY[usize::from(mark[*at])]);
    let Some(rarest) = rarest else { return Some(0) };
    let end = (bytes.len() + 1).checked_sub(mark.len())? + rarest;
    let places = memchr::memchr_iter(mark[rarest], bytes.get(rarest..end)?);
    places.into_iter().find(|at| bytes[*at..].starts_with(mark))
}

/// Offsets of all `mark`s that do not overlap.
pub fn find_all<'a>(bytes: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + find(bytes.get(from..)?, mark)?;
        from = at + mark.len().max(1);
        Some(at)
    })
}

/// Text of at most [`LONGEST_TEXT`] bytes; what is not UTF-8 is replaced, control characters vanish.
pub fn text(bytes: &[u8]) -> String {
    let kept = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_TEXT)]);
    kept.chars().filter(|letter| !letter.is_control() || *letter == '\t').collect()
}

/// A hexadecimal number at the front, with or without `0x`: the number and what follows.
pub fn hex(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let digits = bytes.strip_prefix(b"0x").or_else(|| bytes.strip_prefix(b"0X")).unwrap_or(bytes);
    let mut value = 0u64;
    let mut length = 0;
    let mut at = 0;
    while let Some(byte) = digits.get(at) {
        match (*byte as char).to_digit(16) {
            Some(digit) => {
                value = value.checked_shl(4)? | u64::from(digit);
                length += 1;
            }
            None if *byte == b'`' && length > 0 => {}
            None => break,
        }
        if length > 16 {
            return None;
        }
        at += 1;
    }
    (length > 0).then(|| (value, &digits[at..]))
}

/// A text that is one hexadecimal number.
pub fn hex_all(bytes: &[u8]) -> Option<u64> {
    hex(bytes.trim_ascii()).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// A decimal number at the front.
pub fn dec(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    let value = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    Some((value, &bytes[end..]))
}

/// The decimal number behind the first `mark`.
pub fn dec_after(bytes: &[u8], mark: &[u8]) -> Option<u32> {
    let (value, _) = dec(after(bytes, mark)?.trim_ascii_start())?;
    u32::try_from(value).ok()
}

/// The hexadecimal number behind the first `mark`.
pub fn hex_after(bytes: &[u8], mark: &[u8]) -> Option<u64> {
    hex(after(bytes, mark)?.trim_ascii_start()).map(|(value, _)| value)
}

/// What follows the first `mark`.
pub fn after<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    find(bytes, mark).map(|at| &bytes[at + mark.len()..])
}

/// What stands between the first `open` and the next `close` behind it.
pub fn between<'a>(bytes: &'a [u8], open: &[u8], close: &[u8]) -> Option<&'a [u8]> {
    let rest = after(bytes, open)?;
    find(rest, close).map(|at| &rest[..at])
}

/// Whether `mark` stands anywhere.
pub fn has(bytes: &[u8], mark: &[u8]) -> bool {
    find(bytes, mark).is_some()
}

/// Whether a byte may stand in a symbol.
pub fn is_symbol_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'.' | b'$' | b':' | b'~' | b'@' | b'-' | b'<' | b'>')
        || byte >= 0x80
}

/// `name/12` or `name:12`: a task's name, which may hold the separator itself, and its number.
pub fn task(bytes: &[u8], separator: u8) -> Option<(String, u32)> {
    let at = memchr::memrchr(separator, bytes)?;
    let (pid, rest) = dec(&bytes[at + 1..])?;
    let rest_is_clean = rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let pid = u32::try_from(pid).ok().filter(|_| rest_is_clean)?;
    Some((text(bytes[..at].trim_ascii()), pid))
}

/// `file.c:12` at the front of a word: the file and the line. A column behind it (`a.rs:1:2`) is dropped.
pub fn source(word: &[u8]) -> Option<(String, u32)> {
    let word = word.strip_prefix(b"(").unwrap_or(word);
    let colon = memchr::memchr_iter(b':', word).find(|at| word.get(at + 1).is_some_and(u8::is_ascii_digit))?;
    let name = &word[..colon];
    let (line, _) = dec(&word[colon + 1..])?;
    let looks = name.contains(&b'.') && !name.is_empty() && !name.contains(&b' ') && !name.starts_with(b"<");
    Some((text(name), u32::try_from(line).ok()?)).filter(|_| looks)
}

/// The position that a message tells in words: `file: x.c, line: 3`, `file "x.c", line 3`.
pub fn place_in(message: &str) -> Option<(String, u32)> {
    let behind = ["file: ", "file "].iter().find_map(|mark| message.split_once(mark).map(|(_, rest)| rest))?;
    // `file: /arch/demo.c:561 task`
    let word = behind.split(' ').next().unwrap_or_default();
    if let Some(place) = source(word.as_bytes()) {
        return Some(place);
    }
    let (file, rest) = behind.split_once(", line")?;
    let file = file.trim_matches(['"', '\'', '`']);
    let (line, _) = dec(rest.trim_start_matches([':', ' ']).as_bytes())?;
    let looks = file.contains('.') && !file.contains(' ') && file.len() < 200;
    looks.then(|| Some((file.to_string(), u32::try_from(line).ok()?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_where_the_searcher_of_memchr_finds_it() {
        let lines: [&[u8]; 6] = [b"", b"a", b"aab aaab aaaab", b"Call Trace:", b"x [#1] y [#2]", b"zzz\xff\0end"];
        let marks: [&[u8]; 11] =
            [b"", b"a", b"aab", b"aaaab", b"ab a", b"Call Trace:", b"all Trace: ", b"[#", b"#2]", b"\xff\0", b"q"];
        for line in lines {
            for mark in marks {
                assert_eq!(find(line, mark), memchr::memmem::find(line, mark), "{mark:?} in {line:?}");
                let all: Vec<usize> = find_all(line, mark).take(64).collect();
                let known: Vec<usize> = memchr::memmem::find_iter(line, mark).take(64).collect();
                assert_eq!(all, known, "{mark:?} in {line:?}");
            }
        }
    }
}
