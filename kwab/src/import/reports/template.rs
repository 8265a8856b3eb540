//! Line templates: literal text with named captures, the language of every table of this module.
//!
//! | in a template | matches |
//! |---|---|
//! | text | itself |
//! | a space | one or more spaces or tabs |
//! | `{name}` | anything, up to the first place of the texts and spaces that follow; at the end, the rest of the line |
//! | `{name:hex}` | a hexadecimal number with or without `0x`, backquotes inside allowed (Windows) |
//! | `{name:dec}` | a decimal number |
//! | `{name:sym}` | a symbol: letters, digits and `_ . $ : ~ @ - < >` |
//! | `{name:word}` | anything without spaces |
//! | `{}` | anything, not kept |
//! | `{{` | a brace |
//!
//! A symbol or a word ends before the last place of the text that follows it: `<{name:sym}>`, `[{name:word}]`.
//!
//! A template matches from the first character of the line that is not a space, unless it begins with `{}`; what
//! follows the last piece is ignored. Matching never goes back over a piece.

use super::needle::Needle;

/// A template that was understood.
#[derive(Debug, Clone)]
pub struct Template {
    pieces: Vec<TemplatePiece>,
}

/// What a capture accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Any,
    Hex,
    Dec,
    Symbol,
    Word,
}

#[derive(Debug, Clone)]
enum TemplatePiece {
    /// Text that the line must have at this point.
    Literal(Needle),
    Space,
    Capture(Option<String>, Kind),
}

/// Why a template was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace that is never closed.
    #[error("a brace is not closed")]
    OpenBrace,
    /// `{name:kind}` with a kind that does not exist.
    #[error("there is no capture kind {0:?}; kinds are hex, dec, sym, word")]
    Kind(String),
    /// Two captures of anything side by side.
    #[error("a capture of anything must be followed by text, by a space or by the end")]
    Adjacent,
    /// Nothing at all.
    #[error("the template is empty")]
    Empty,
}

/// What the captures of a template hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captures<'t, 'l> {
    found: Vec<(&'t str, &'l [u8])>,
}

impl<'t, 'l> Captures<'t, 'l> {
    /// The text of the capture `name`, unless it is absent or empty.
    pub fn get(&self, name: &str) -> Option<&'l [u8]> {
        self.found.iter().find(|(known, text)| *known == name && !text.is_empty()).map(|(_, text)| *text)
    }

    /// The same as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|text| super::words::text(text.trim_ascii()))
    }

    /// The same as a hexadecimal number.
    pub fn hex(&self, name: &str) -> Option<u64> {
        super::words::hex_all(self.get(name)?)
    }

    /// The same as a decimal number.
    pub fn dec(&self, name: &str) -> Option<u32> {
        std::str::from_utf8(self.get(name)?).ok()?.parse().ok()
    }

    /// All captures, in the order of the line.
    pub fn iter(&self) -> impl Iterator<Item = (&'t str, &'l [u8])> {
        self.found.iter().copied()
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TemplateError`] says what is wrong.
    pub fn new(text: &str) -> Result<Self, TemplateError> {
        let mut pieces: Vec<TemplatePiece> = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', ' ']) {
            let (before, behind) = rest.split_at(at);
            literal.push_str(before);
            if let Some(behind) = behind.strip_prefix("{{") {
                literal.push('{');
                rest = behind;
                continue;
            }
            flush(&mut literal, &mut pieces);
            if let Some(behind) = behind.strip_prefix('{') {
                let (name, behind) = behind.split_once('}').ok_or(TemplateError::OpenBrace)?;
                pieces.push(capture(name)?);
                rest = behind;
            } else {
                pieces.push(TemplatePiece::Space);
                rest = behind.trim_start_matches(' ');
            }
        }
        literal.push_str(rest);
        flush(&mut literal, &mut pieces);
        let any = |piece: &TemplatePiece| matches!(piece, TemplatePiece::Capture(_, Kind::Any));
        if pieces.windows(2).any(|pair| any(&pair[0]) && matches!(pair[1], TemplatePiece::Capture(..))) {
            return Err(TemplateError::Adjacent);
        }
        if pieces.is_empty() {
            return Err(TemplateError::Empty);
        }
        Ok(Self { pieces })
    }

    /// The bytes that a line must begin with, if the template begins with text.
    pub fn first_bytes(&self) -> Option<&[u8]> {
        match self.pieces.first() {
            Some(TemplatePiece::Literal(needle)) => Some(needle.text()),
            _ => None,
        }
    }

    /// The longest text that a line must hold anywhere.
    pub fn longest_literal(&self) -> Option<&[u8]> {
        let literals = self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Literal(needle) => Some(needle.text()),
            _ => None,
        });
        literals.max_by_key(|bytes| bytes.len())
    }

    /// All texts that a line without tabs must hold; a space where the template has one beside the text.
    pub fn literals(&self) -> Vec<Vec<u8>> {
        let is_space = |at: Option<usize>| matches!(at.and_then(|at| self.pieces.get(at)), Some(TemplatePiece::Space));
        let literal = |(at, piece): (usize, &TemplatePiece)| match piece {
            TemplatePiece::Literal(needle) => {
                let blank = |space: bool| if space { &b" "[..] } else { b"" };
                Some([blank(is_space(at.checked_sub(1))), needle.text(), blank(is_space(Some(at + 1)))].concat())
            }
            _ => None,
        };
        self.pieces.iter().enumerate().filter_map(literal).collect()
    }

    /// Matches a line.
    pub fn matches<'t, 'l>(&'t self, line: &'l [u8]) -> Option<Captures<'t, 'l>> {
        self.prefix(line).map(|(captures, _)| captures)
    }

    /// Matches the front of a line; gives what stands behind the last piece as well.
    pub fn prefix<'t, 'l>(&'t self, line: &'l [u8]) -> Option<(Captures<'t, 'l>, &'l [u8])> {
        let mut rest = line.trim_ascii_start();
        let mut found = Captures::default();
        let mut at = 0;
        while let Some(piece) = self.pieces.get(at) {
            match piece {
                TemplatePiece::Literal(needle) => rest = rest.strip_prefix(needle.text())?,
                TemplatePiece::Space => {
                    let trimmed = rest.trim_ascii_start();
                    if trimmed.len() == rest.len() {
                        return None;
                    }
                    rest = trimmed;
                }
                TemplatePiece::Capture(name, kind) => {
                    let end = match (kind, self.pieces.get(at + 1)) {
                        (Kind::Any, Some(TemplatePiece::Literal(needle))) => self.text_at(rest, needle, at + 2)?,
                        (Kind::Any, Some(TemplatePiece::Space)) => self.space_before(rest, at + 2)?,
                        (Kind::Any, _) => rest.len(),
                        (kind @ (Kind::Symbol | Kind::Word), Some(TemplatePiece::Literal(needle))) => {
                            let run = kind.length(rest)?;
                            last_before(rest, run, needle.text()).unwrap_or(run)
                        }
                        (kind, _) => kind.length(rest)?,
                    };
                    if let Some(name) = name {
                        found.found.push((name, &rest[..end]));
                    }
                    rest = &rest[end..];
                }
            }
            at += 1;
        }
        Some((found, rest))
    }

    /// Where a capture of anything ends that is followed by a text and then by the piece `next`: `kworker/0:1` ends at
    /// the second colon of `kworker/0:1: page`.
    fn text_at(&self, rest: &[u8], needle: &Needle, next: usize) -> Option<usize> {
        let mut from = 0;
        loop {
            let at = from + needle.find(rest.get(from..)?)?;
            let behind = &rest[at + needle.text().len()..];
            if self.text_follows(behind, next) {
                return Some(at);
            }
            from = at + 1;
        }
    }

    /// Whether the spaces and texts from the piece `next` on, up to a capture, stand at the front of `rest`.
    fn text_follows(&self, mut rest: &[u8], next: usize) -> bool {
        for piece in self.pieces.iter().skip(next) {
            match piece {
                TemplatePiece::Literal(needle) => match rest.strip_prefix(needle.text()) {
                    Some(behind) => rest = behind,
                    None => return false,
                },
                TemplatePiece::Space => {
                    let trimmed = rest.trim_ascii_start();
                    if trimmed.len() == rest.len() {
                        return false;
                    }
                    rest = trimmed;
                }
                TemplatePiece::Capture(..) => break,
            }
        }
        true
    }

    /// Where a capture of anything ends that is followed by a space and then by the piece `next`.
    fn space_before(&self, rest: &[u8], next: usize) -> Option<usize> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        match self.pieces.get(next) {
            Some(TemplatePiece::Literal(needle)) => {
                let mut from = 0;
                loop {
                    let at = from + needle.find(&rest[from..])?;
                    let head = &rest[..at];
                    let behind = &rest[at + needle.text().len()..];
                    if head.last().is_some_and(blank) && self.text_follows(behind, next + 1) {
                        return Some(head.trim_ascii_end().len());
                    }
                    from = at + needle.text().len().max(1);
                    if from > rest.len() {
                        return None;
                    }
                }
            }
            _ => rest.iter().position(blank),
        }
    }
}

impl Kind {
    /// How long the capture is at the front of `text`; absent when nothing fits.
    fn length(self, text: &[u8]) -> Option<usize> {
        let run = |accept: &dyn Fn(u8) -> bool, from: usize| {
            text[from..].iter().position(|byte| !accept(*byte)).map_or(text.len(), |at| from + at)
        };
        let (from, end) = match self {
            Self::Any => (0, text.len()),
            Self::Hex => {
                let from = if text.starts_with(b"0x") || text.starts_with(b"0X") { 2 } else { 0 };
                (from, run(&|byte| byte.is_ascii_hexdigit() || byte == b'`', from))
            }
            Self::Dec => (0, run(&|byte| byte.is_ascii_digit(), 0)),
            Self::Symbol => (0, run(&super::words::is_symbol_byte, 0)),
            Self::Word => (0, run(&|byte| !byte.is_ascii_whitespace(), 0)),
        };
        (end > from).then_some(end)
    }
}

/// Where a capture whose run takes in the text behind it gives way: the last place in the run, or right behind it.
fn last_before(rest: &[u8], run: usize, text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let stands = |at: &usize| *at > 0 && rest[*at..].starts_with(text);
    (rest.len() > run && stands(&run)).then_some(run).or_else(|| memchr::memrchr_iter(first, &rest[..run]).find(stands))
}

fn flush(literal: &mut String, pieces: &mut Vec<TemplatePiece>) {
    if !literal.is_empty() {
        pieces.push(TemplatePiece::Literal(Needle::new(literal.as_bytes())));
        literal.clear();
    }
}

fn capture(text: &str) -> Result<TemplatePiece, TemplateError> {
    let (name, kind) = text.split_once(':').unwrap_or((text, ""));
    let kind = match kind {
        "" => Kind::Any,
        "hex" => Kind::Hex,
        "dec" => Kind::Dec,
        "sym" => Kind::Symbol,
        "word" => Kind::Word,
        other => return Err(TemplateError::Kind(other.to_string())),
    };
    Ok(TemplatePiece::Capture((!name.is_empty()).then(|| name.to_string()), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_take_what_their_kind_accepts() {
        let template =
            Template::new("WARNING: CPU: {cpu:dec} PID: {pid:dec} at {file}:{line:dec} {function:sym}").unwrap();
        let found =
            template.matches(b"WARNING: CPU: 1 PID:  77 at fs/x.c:12 foo_bar.cold+0x1/0x2").expect("it matches");
        assert_eq!((found.dec("cpu"), found.dec("pid"), found.dec("line")), (Some(1), Some(77), Some(12)));
        assert_eq!(found.text("function").as_deref(), Some("foo_bar.cold"));
        assert!(template.matches(b"WARNING: CPU: one").is_none());
        let address = Template::new("at {address:hex}`").unwrap();
        assert!(address.matches(b"at ").is_none());
    }

    #[test]
    fn a_capture_of_anything_ends_at_the_text_that_follows() {
        let template = Template::new("task {comm}:{pid:dec} blocked for").unwrap();
        let found = template.matches(b"task kworker/u8:3:19 blocked for more");
        assert_eq!(found, None, "the shortest reading fails and nothing is tried again");
        let template = Template::new("{comm}: page allocation failure").unwrap();
        let found = template.matches(b"kworker/u8:2: page allocation failure: order:4").expect("it matches");
        assert_eq!(
            found.text("comm").as_deref(),
            Some("kworker/u8:2"),
            "a colon that the text does not follow is passed"
        );
        let template = Template::new("task {comm} failed in state").unwrap();
        let found = template.matches(b"task a failed b failed in state 1").expect("it matches");
        assert_eq!(found.text("comm").as_deref(), Some("a failed b"));
        let floating = Template::new("{} panicked at {message}").unwrap();
        let found = floating.matches(b"[ERROR] kernel panicked at src/a.rs:1:2:").expect("it matches");
        assert_eq!(found.text("message").as_deref(), Some("src/a.rs:1:2:"));
    }

    #[test]
    fn a_template_that_cannot_be_read_says_why() {
        assert_eq!(Template::new("{a").unwrap_err(), TemplateError::OpenBrace);
        assert_eq!(Template::new("{a:b}").unwrap_err(), TemplateError::Kind("b".into()));
        assert_eq!(Template::new("{a}{b}").unwrap_err(), TemplateError::Adjacent);
        assert_eq!(Template::new("").unwrap_err(), TemplateError::Empty);
    }
}
