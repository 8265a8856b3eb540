//! Puts reports into words and columns that fit the terminal.

pub(crate) mod address;
pub(crate) mod analysis;
pub(crate) mod beside;
pub(crate) mod ci;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod follow;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod pack;
pub(crate) mod print;
pub(crate) mod redact;
pub(crate) mod tables;
pub(crate) mod trends;

use kwab::plain;
pub(crate) use kwab::units::{bytes, count, duration, grouped};
use textwrap::WordSeparator;
use textwrap::core::{Fragment, Word, break_words};
use textwrap::wrap_algorithms::wrap_first_fit;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::output::{Style, columns, sgr};

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

/// What becomes of a word that is wider than a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongWords {
    /// It is cut at the end of the line.
    Cut,
    /// It has a line of its own and sticks out, so that addresses and paths can be searched for.
    Kept,
}

/// A word as wide as it is shown: colours take no columns.
#[derive(Debug)]
struct ShownWord<'a>(Word<'a>);

impl Fragment for ShownWord<'_> {
    fn width(&self) -> f64 {
        columns(self.0.word) as f64
    }

    fn whitespace_width(&self) -> f64 {
        self.0.whitespace.len() as f64
    }

    fn penalty_width(&self) -> f64 {
        0.0
    }
}

/// `text` broken at spaces into lines of at most `first` columns, then `rest`.
pub(crate) fn broken(text: &str, first: usize, rest: usize, long: LongWords) -> Vec<String> {
    let words = WordSeparator::AsciiSpace.find_words(text);
    let words = match long {
        LongWords::Cut => break_words(words, rest),
        LongWords::Kept => words.collect(),
    };
    let words: Vec<ShownWord<'_>> = words.into_iter().map(ShownWord).collect();
    let line = |words: &[ShownWord<'_>]| {
        let mut line: String = words.iter().flat_map(|word| [word.0.word, word.0.whitespace]).collect();
        line.truncate(line.len() - words.last().map_or(0, |last| last.0.whitespace.len()));
        line
    };
    wrap_first_fit(&words, &[first as f64, rest as f64]).into_iter().map(line).collect()
}

/// `text` in lines of at most `width` columns, the later ones behind an indent that comes on top; broken at spaces, or
/// where they must.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let room = width.max(8);
    let lines = text.lines().map(plain::line).flat_map(|line| broken(&line, room, room, LongWords::Cut));
    lines.collect::<Vec<_>>().join(&format!("\n{indent}"))
}

/// A command line for a shell behind `head`: broken between words with a backslash where it is wider than the page, so
/// that it can still be copied.
pub(crate) fn command(head: &str, text: &str, style: Style) -> String {
    let text = plain::line(text);
    if head.width() + text.width() <= style.width {
        return format!("{head}{text}");
    }
    let indent = " ".repeat(head.width() + 2);
    let (mut lines, mut line) = (Vec::new(), head.to_string());
    let mut words = shell_words(&text).into_iter().peekable();
    while let Some(word) = words.next() {
        let blank = usize::from(!line.ends_with(' '));
        let end = if words.peek().is_some() { 2 } else { 0 };
        if line.width() + blank + word.width() + end > style.width && !line.trim().is_empty() && line != head {
            lines.push(line + " \\");
            line = indent.clone();
        } else if blank == 1 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

/// The words of a command line as they are written, quotes with them.
fn shell_words(text: &str) -> Vec<&str> {
    let (mut words, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, sign) in text.char_indices() {
        match (quote, sign) {
            (None, ' ') => {
                words.push(&text[start..at]);
                start = at + 1;
            }
            (None, '\'' | '"') => quote = Some(sign),
            (Some(open), _) if open == sign => quote = None,
            _ => {}
        }
    }
    words.push(&text[start..]);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_too_wide_can_still_be_copied() {
        let narrow = Style { width: 24, color: false };
        assert_eq!(command("next: ", "kwab triage a", narrow), "next: kwab triage a");
        let long = command("next: ", "kwab triage 'a b' --symbols build", narrow);
        assert_eq!(long, "next: kwab triage \\\n        'a b' \\\n        --symbols build");
        assert!(long.lines().all(|line| line.width() <= 24), "{long}");
    }

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
