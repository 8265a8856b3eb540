//! Makes a string from a dump, a log or a file name safe to print: what could steer a terminal becomes a visible
//! escape.
//!
//! Escaped are control characters (C0, DEL, C1), line separators, characters that reorder text (bidi), and characters
//! without a width of their own that hide in it. Everything a front end prints passes here, at its edge: reports keep
//! the strings as they are.
//!
//! ```
//! assert_eq!(kwab::plain::line("a\u{1b}[31mb\u{202e}\n"), r"a\x1b[31mb\u{202e}\n");
//! assert_eq!(kwab::plain::bytes(b"caf\xc3\xa9 \xff"), "café \\xff");
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a character is escaped.
///
/// Sources: Unicode's `Cc`, `Zl`, `Zp`, UAX #9 (bidi controls), and `Default_Ignorable_Code_Point` of the character
/// database, the last without the combining grapheme joiner's neighbours that have a width.
#[must_use]
pub const fn is_hostile(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text in one line: line ends are escaped too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

/// The text with its line ends.
#[must_use]
pub fn page(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

/// Bytes in one line; what is not UTF-8 becomes `\xNN`.
#[must_use]
pub fn bytes(bytes: &[u8]) -> String {
    of_bytes(bytes, false)
}

/// Bytes with their line ends; what is not UTF-8 becomes `\xNN`.
#[must_use]
pub fn page_of_bytes(bytes: &[u8]) -> String {
    of_bytes(bytes, true)
}

fn of_bytes(bytes: &[u8], line_ends: bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(&escaped(chunk.valid(), line_ends));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

fn escaped(text: &str, line_ends: bool) -> Cow<'_, str> {
    let wanted = |character: char| is_hostile(character) && !(line_ends && character == '\n');
    let Some(first) = text.find(wanted) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for character in text[first..].chars() {
        // Writing to a String does not fail.
        let _ = match character {
            _ if !wanted(character) => out.write_char(character),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            '\0'..='\u{7f}' => write!(out, "\\x{:02x}", character as u32),
            _ => write!(out, "\\u{{{:x}}}", character as u32),
        };
    }
    Cow::Owned(out)
}

/// A JSON text with the same value, whose strings spell hostile characters as `\uXXXX` (RFC 8259, section 7).
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    // Below DEL, only white space between values is left raw by a JSON writer.
    let wanted = |character: char| is_hostile(character) && character >= '\u{7f}';
    let Some(first) = text.find(wanted) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for character in text[first..].chars() {
        if wanted(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Passes JSON on as [`json`] spells it. Each write must hold whole characters, as those of `serde_json` do.
#[derive(Debug)]
pub struct JsonWriter<W>(pub W);

impl<W: Write> Write for JsonWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(json(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_escaped_or_has_a_glyph_and_escapes_need_no_escape() {
        for character in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = character.to_string();
            let shown = line(&text);
            assert!(!shown.chars().any(|shown| is_hostile(shown) || shown.is_control()), "{:x}", character as u32);
            assert_eq!(is_hostile(character), shown != text, "{:x}", character as u32);
        }
        for bidi in "\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}".chars() {
            assert!(is_hostile(bidi), "{:x}", bidi as u32);
        }
        assert_eq!(page("a\nb\r\n\u{85}"), "a\nb\\r\n\\u{85}");
        assert_eq!(bytes(b"\xff\xe2\x80 \x9b\t"), "\\xff\\xe2\\x80 \\x9b\\t");
    }

    #[test]
    fn json_keeps_its_value_and_loses_its_hostile_characters() {
        let value = serde_json::json!({"a\u{7f}\u{9b}31m": "\u{202e}x\u{e0041}\n\u{1b}é"});
        let mut out = Vec::new();
        serde_json::to_writer_pretty(JsonWriter(&mut out), &value).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.chars().any(|character| is_hostile(character) && character != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
