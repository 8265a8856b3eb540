//! Cleans lines of console text, and reads the pieces that the grammars of printed lines share: numbers and code
//! locations.

use nom::IResult;
use nom::Parser;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{digit1, hex_digit1};
use nom::combinator::{map_opt, opt};

/// The outcome of a parser over the bytes of a line.
pub(crate) type Parsed<'a, T> = IResult<&'a [u8], T>;

/// Removes terminal escape sequences, NULs and carriage returns; `None` when there are none, which is the usual case.
pub fn clean(line: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr3(0x1b, 0, b'\r', line)?;
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        match byte {
            0x1b => at += escape_length(&line[at..]),
            0 | b'\r' => at += 1,
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    Some(out)
}

/// Text without control characters, escape sequences removed.
pub fn printable(bytes: &[u8]) -> String {
    let cleaned = clean(bytes);
    let text = String::from_utf8_lossy(cleaned.as_deref().unwrap_or(bytes)).into_owned();
    let text = text.trim_end_matches(char::is_control);
    text.chars().map(|character| if character.is_control() && character != '\t' { '·' } else { character }).collect()
}

/// Length of the escape sequence at the front of `bytes` (ECMA-48: CSI ends at a byte of 0x40..=0x7e).
fn escape_length(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(b'[') => {
            let parameters = bytes[2..].iter().take(32).take_while(|byte| (0x20..0x40).contains(*byte)).count();
            (2 + parameters + 1).min(bytes.len())
        }
        Some(0x20..0x7f) => 2,
        _ => 1,
    }
}

/// Decimal digits that fit 64 bits.
pub(crate) fn decimal(input: &[u8]) -> Parsed<'_, u64> {
    map_opt(digit1, |digits| std::str::from_utf8(digits).ok()?.parse().ok()).parse(input)
}

/// A decimal that may be negative.
pub(crate) fn signed(input: &[u8]) -> Parsed<'_, i64> {
    let (rest, minus) = opt(tag(&b"-"[..])).parse(input)?;
    let (rest, value) = decimal(rest)?;
    let value = if minus.is_some() { 0i64.wrapping_sub_unsigned(value) } else { value as i64 };
    Ok((rest, value))
}

/// Hexadecimal digits that fit 64 bits, with or without `0x`.
pub(crate) fn hex(input: &[u8]) -> Parsed<'_, u64> {
    let (rest, _) = opt(tag(&b"0x"[..])).parse(input)?;
    map_opt(hex_digit1, |digits| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).parse(rest)
}

/// Spaces and tabs, at least one.
pub(crate) fn spaces(input: &[u8]) -> Parsed<'_, &[u8]> {
    take_while1(|byte| byte == b' ' || byte == b'\t').parse(input)
}

/// `symbol+0xoff`, `symbol+0xoff/0xsize`, `symbol()+0xoff`: the pieces of a printed code location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'a> {
    /// The symbol without its parentheses.
    pub symbol: &'a [u8],
    /// Bytes behind its start.
    pub offset: u64,
    /// Its length, when printed.
    pub size: Option<u64>,
    /// The module in brackets behind it, when printed.
    pub module: Option<&'a [u8]>,
}

/// Reads a whole field as a location. The last `+0x` counts, since symbols may hold anything.
pub fn location(text: &[u8]) -> Option<Location<'_>> {
    let (text, module) = match text.strip_suffix(b"]") {
        Some(inner) => {
            let open = memchr::memrchr(b'[', inner)?;
            (inner[..open].trim_ascii(), Some(&inner[open + 1..]))
        }
        None => (text, None),
    };
    let plus = memchr::memmem::rfind(text, b"+0x")?;
    let symbol = text[..plus].trim_ascii();
    let symbol = symbol.strip_suffix(b"()").unwrap_or(symbol);
    let (rest, offset) = hex(&text[plus + 1..]).ok()?;
    let size = match rest.strip_prefix(b"/") {
        Some(size) => Some(hex(size).ok().filter(|(rest, _)| rest.is_empty())?.1),
        None if rest.is_empty() => None,
        None => return None,
    };
    (!symbol.is_empty()).then_some(Location { symbol, offset, size, module })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_nuls_and_returns_are_removed_and_nothing_else() {
        assert_eq!(clean(b"plain \xff"), None);
        assert_eq!(clean(b"\x1b[33m  RIP=0\x1b[0m\r").as_deref(), Some(&b"  RIP=0"[..]));
        assert_eq!(clean(b"\x1bc\x1b[?7l\x1b[2Ja\0b").as_deref(), Some(&b"ab"[..]));
        assert_eq!(clean(b"cut \x1b[3").as_deref(), Some(&b"cut "[..]));
        assert_eq!(clean(b"cut \x1b").as_deref(), Some(&b"cut "[..]));
    }

    #[test]
    fn locations_of_both_kernels_are_read() {
        let plain = location(b"core::panicking::panic_fmt()+0x2b");
        assert_eq!(
            plain.map(|at| (at.symbol, at.offset, at.size)),
            Some((&b"core::panicking::panic_fmt"[..], 0x2b, None))
        );
        let sized = location(b"ext4_iget+0x16/0x20 [ext4]").expect("a location");
        assert_eq!((sized.symbol, sized.size, sized.module), (&b"ext4_iget"[..], Some(0x20), Some(&b"ext4"[..])));
        assert_eq!(location(b"no offset here"), None);
        assert_eq!(location(b"x+0xzz"), None);
    }
}
