//! Puts reports into words and columns that fit the terminal.

pub(crate) mod analysis;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod tables;

use kwab::plain;
pub(crate) use kwab::report::units::{bytes, count, duration, grouped};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::output::{Style, sgr};

/// Colours by meaning.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tone {
    /// Headings and column names.
    Head,
    /// What matters most.
    Alarm,
    /// What to be careful about.
    Care,
    /// What may be skipped.
    Dim,
    /// Code: symbols and calls.
    Code,
}

/// `text` in the colour of its meaning.
pub(crate) fn paint(style: Style, tone: Tone, text: &str) -> String {
    if !style.color || text.is_empty() {
        return text.to_string();
    }
    let code = match tone {
        Tone::Head => "1",
        Tone::Alarm => "1;31",
        Tone::Care => "33",
        Tone::Dim => "2",
        Tone::Code => "36",
    };
    format!("{}{text}{}", sgr(code), sgr("0"))
}

/// `text` in one printable line, cut to `width` columns with an ellipsis where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = &*plain::line(text);
    if text.width() <= width {
        return text.to_string();
    }
    let mut out = String::new();
    let mut used = 0;
    for character in text.chars() {
        let columns = character.width().unwrap_or(0);
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        out.push(character);
    }
    out.push('…');
    out
}

/// `text` in lines of at most `width` columns, the later ones behind an indent that comes on top; broken at spaces, or where they must.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let room = width.max(8);
    for paragraph in text.lines().map(plain::line) {
        let body = paragraph.trim_start_matches(' ');
        let mut line = " ".repeat(paragraph.len() - body.len());
        let mut fresh = true;
        for word in body.split(' ') {
            if !fresh && line.width() + 1 + word.width() > room {
                lines.push(std::mem::take(&mut line).trim_end().to_string());
            } else if !fresh {
                line.push(' ');
            }
            fresh = false;
            line.push_str(word);
            while line.width() > room {
                let head: String = take_columns(&line, room);
                line.drain(..head.len());
                lines.push(head);
            }
        }
        lines.push(line);
    }
    lines.join(&format!("\n{indent}"))
}

fn take_columns(text: &str, width: usize) -> String {
    let mut used = 0;
    text.chars()
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_and_cut_to_its_columns() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(wrap("one two three four", 9, "  "), "one two\n  three\n  four");
        assert_eq!(wrap("  #0  log  here", 80, ""), "  #0  log  here");
        let long = wrap(&"x".repeat(30), 10, "  ");
        assert!(long.lines().all(|line| line.width() <= 12), "{long}");
    }
}
