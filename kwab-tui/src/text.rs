//! Text by meaning and by columns: pieces with a tone, lines of pieces, and cutting at what a terminal calls a column.

pub use kwab::units::{bytes, duration, grouped, memory};
use textwrap::WordSeparator;
use textwrap::core::{Word, break_words};
use textwrap::wrap_algorithms::wrap_first_fit;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::theme::Tone;

/// A line of pieces, each with its meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The pieces, left to right.
    pub pieces: Vec<(Tone, String)>,
    /// The number of the piece that is left out where the line is wider than its room.
    spare: Option<usize>,
}

impl Line {
    /// A line of one piece.
    pub fn of(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().and(tone, text)
    }

    /// An ordinary line.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::of(Tone::Plain, text)
    }

    /// The same with a piece more.
    #[must_use]
    pub fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.pieces.push((tone, shown(text.into())));
        self
    }

    /// The same with a piece that is left out where the line would be broken because of it.
    #[must_use]
    pub fn and_spare(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.spare = Some(self.pieces.len());
        self.and(tone, text)
    }

    /// A name, padded, and its value.
    pub fn field(name: &str, value: impl Into<String>) -> Self {
        Self::of(Tone::Dim, format!("{name:<9} ")).and(Tone::Plain, value)
    }

    /// The text without its colours.
    #[must_use]
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The line broken at spaces into lines of at most `width` columns; what follows the first is indented by `indent`.
    #[must_use]
    pub fn wrapped(&self, width: usize, indent: usize) -> Vec<Self> {
        let width = width.max(1);
        let indent = if indent * 2 > width { 0 } else { indent };
        let text = self.text();
        if let Some(spare) = self.spare.filter(|_| text.width() > width) {
            let mut shorter = Self { spare: None, ..self.clone() };
            shorter.pieces.remove(spare);
            return shorter.wrapped(width, indent);
        }
        let words = break_words(WordSeparator::AsciiSpace.find_words(&text), width - indent);
        let lines = wrap_first_fit(&words, &[width as f64, (width - indent) as f64]);
        let mut pieces = self.pieces.iter().map(|(tone, text)| (*tone, text.as_str()));
        let mut piece = pieces.next();
        let line = |(number, words): (usize, &[Word<'_>])| {
            let mut line = if number == 0 || indent == 0 { Self::default() } else { Self::plain(" ".repeat(indent)) };
            let mut left: usize = words.iter().map(|word| word.word.len() + word.whitespace.len()).sum();
            let mut room = width.saturating_sub(line.text().width());
            while let Some((tone, text)) = piece.filter(|_| left > 0) {
                let (here, rest) = text.split_at(left.min(text.len()));
                // Only blanks at the end reach beyond the width.
                let seen = if here.width() <= room { here } else { take(here, room).trim_end_matches(' ') };
                line.push(tone, seen);
                room = room.saturating_sub(here.width());
                left -= here.len();
                piece = if rest.is_empty() { pieces.next() } else { Some((tone, rest)) };
            }
            line
        };
        lines.into_iter().enumerate().map(line).collect()
    }

    /// Adds text to the last piece, or as a piece more when the tone is another.
    fn push(&mut self, tone: Tone, text: &str) {
        match self.pieces.last_mut() {
            Some((last, pushed)) if *last == tone => pushed.push_str(text),
            _ => self.pieces.push((tone, text.to_string())),
        }
    }
}

/// The text in one line that cannot steer a terminal; unchanged where nothing is amiss.
fn shown(text: String) -> String {
    match kwab::plain::line(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(escaped) => escaped,
    }
}

/// The front of `text` that fits into `width` columns, at least one character.
#[must_use]
pub fn take(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += character.width().unwrap_or(0);
        if used > width && at > 0 {
            return &text[..at];
        }
    }
    text
}

/// `text` in one printable line, cut to `width` columns with an ellipsis where something is missing.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    let text = &*kwab::plain::line(text);
    if text.width() <= width {
        return text.to_string();
    }
    match width {
        0 => String::new(),
        1 => "…".to_string(),
        _ => format!("{}…", take(text, width - 1)),
    }
}

/// As [`cut`], but of the place of a source line, `file:line`, the end stays, which says most.
#[must_use]
pub fn cut_cell(text: &str, width: usize) -> String {
    let place = text.trim_start();
    let is_place = place.rsplit_once(':').is_some_and(|(file, line)| {
        file.contains('.') && !file.contains(' ') && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
    });
    let wide = text.width();
    if !is_place || wide <= width || width < 2 {
        return cut(text, width);
    }
    let blanks = &text[..text.len() - place.len()];
    let Some(room) = width.checked_sub(blanks.len() + 1).filter(|room| *room > 0) else { return cut(text, width) };
    let mut from = place.len();
    for (at, _) in place.char_indices().rev().take_while(|(at, _)| place[*at..].width() <= room) {
        from = at;
    }
    format!("{blanks}…{}", &place[from..])
}

/// `text` in exactly `width` columns.
#[must_use]
pub fn pad(text: &str, width: usize, right: bool) -> String {
    let text = cut(text, width);
    let room = " ".repeat(width.saturating_sub(text.width()));
    if right { room + &text } else { text + &room }
}

/// The columns of a text.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// An address as it can be grepped: full width.
#[must_use]
pub fn address(value: u64) -> String {
    format!("0x{value:016x}")
}

/// `1 crash`, `3 crashes`.
#[must_use]
pub fn count(number: usize, one: &str, many: &str) -> String {
    kwab::units::count(number as u64, one, many)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_words_only_where_they_must() {
        let line = Line::of(Tone::Head, "against: ").and(Tone::Plain, "verify-pages passed for it at exec");
        let shown: Vec<_> = line.wrapped(20, 2).iter().map(|line| line.text().trim_end().to_string()).collect();
        assert_eq!(shown, ["against:", "  verify-pages", "  passed for it at", "  exec"]);
        let long = Line::plain("x".repeat(25)).wrapped(10, 2);
        assert!(long.iter().all(|line| width(&line.text()) <= 10), "{long:?}");
        assert_eq!(long.iter().map(|line| line.text().trim().len()).sum::<usize>(), 25);
    }

    #[test]
    fn of_a_source_line_the_end_stays_and_of_anything_else_the_beginning() {
        assert_eq!(cut_cell("kernel/machine/src/inject.rs:54", 20), "…ne/src/inject.rs:54");
        assert_eq!(cut_cell("  kernel/src/sched/mod.rs:289", 16), "  …ed/mod.rs:289");
        assert_eq!(cut_cell("a/b.rs:7", 20), "a/b.rs:7");
        assert_eq!(cut_cell("[    0.008668] Linux version 6.1", 12), "[    0.0086…");
        assert_eq!(cut_cell("kernel::sched::schedule+0x50c", 10), "kernel::s…");
        for width in 0..9 {
            assert!(super::width(&cut_cell("  ab.rs:1234567", width)) <= width);
        }
    }

    #[test]
    fn a_spare_piece_is_left_out_where_the_line_would_break_and_blanks_at_an_end_need_no_room() {
        let line = Line::of(Tone::Dim, "41fd15: ").and(Tone::Code, "mov rax,[rcx]   ").and_spare(Tone::Dim, "48 8b 01");
        let shown = |width| line.wrapped(width, 2).iter().map(Line::text).collect::<Vec<_>>();
        assert_eq!(shown(40), ["41fd15: mov rax,[rcx]   48 8b 01"]);
        assert_eq!(shown(30), ["41fd15: mov rax,[rcx]   "]);
        assert_eq!(shown(22), ["41fd15: mov rax,[rcx]"]);
    }

    #[test]
    fn cutting_counts_columns_and_not_bytes() {
        assert_eq!(cut("añb漢字", 5), "añb…");
        assert_eq!(pad("7", 3, true), "  7");
        assert_eq!(cut("abc", 0), "");
    }
}
