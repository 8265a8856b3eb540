//! Makes text safe for a terminal and keeps the program's own colours in it.
//!
//! Text passes [`kwab::plain`] here, so nothing from a dump, a log or a file name can steer the terminal. The program's
//! own colours carry a mark that no input can know ([`sgr`]).

use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::sync::OnceLock;

use kwab::plain;
use unicode_width::UnicodeWidthStr as _;

/// The program's own control sequence `CSI code m`; [`printable`] prints it as such and escapes every other.
pub(crate) fn sgr(code: &str) -> String {
    format!("{}{code}m", mark())
}

/// What begins an own control sequence: escape and 64 bits that differ from run to run.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| format!("\u{1b}{:016x}[", std::hash::RandomState::new().build_hasher().finish()))
}

/// `text` in one line, its own control sequences kept for [`printable`].
pub(crate) fn one_line(text: &str) -> String {
    own_and_others(text, sgr, |rest| plain::line(rest).into_owned())
}

/// Columns of `text` without own control sequences.
pub(crate) fn columns(text: &str) -> usize {
    own_and_others(text, |_| String::new(), str::to_owned).width()
}

/// The lines of `text`, each with its colours alone: what an earlier line began is begun again.
pub(crate) fn self_contained(text: &str) -> Vec<String> {
    let mut open = String::new();
    let line = |line: &str| {
        let begun = std::mem::take(&mut open);
        if let Some(last) = line.rsplit(mark()).next().filter(|last| last.len() < line.len()) {
            let code = last.split_once('m').map_or("0", |(code, _)| code);
            open = if code == "0" { String::new() } else { sgr(code) };
        } else {
            open.clone_from(&begun);
        }
        let end = if open.is_empty() { String::new() } else { sgr("0") };
        if line.is_empty() { String::new() } else { format!("{begun}{line}{end}") }
    };
    text.lines().map(line).collect()
}

fn own_and_others(text: &str, own: impl Fn(&str) -> String, other: impl Fn(&str) -> String) -> String {
    let mut pieces = text.split(mark());
    let mut out = other(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (code, rest) = piece.split_once('m').unwrap_or(("0", piece));
        out.push_str(&own(code));
        out.push_str(&other(rest));
    }
    out
}

/// A page as it is printed: own control sequences as such, other control characters except line ends escaped.
pub(crate) fn printable(page: &str) -> String {
    own_and_others(page, |code| format!("\u{1b}[{code}m"), |rest| plain::page(rest).into_owned())
}

/// Says something on stderr; that it cannot be said is not worth an error.
pub(crate) fn remark(text: &str) {
    let _ = io::stderr().write_all(printable(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_over_several_lines_ends_and_begins_with_each() {
        let (red, end) = (sgr("31"), sgr("0"));
        let text = format!("a {red}b\nc\n\nd{end} e\nf");
        let lines = self_contained(&text);
        let wanted =
            [format!("a {red}b{end}"), format!("{red}c{end}"), String::new(), format!("{red}d{end} e"), "f".into()];
        assert_eq!(lines, wanted);
    }
}
