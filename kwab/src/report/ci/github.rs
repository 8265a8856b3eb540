//! Workflow commands of GitHub Actions: annotations at file and line.
//!
//! The runner reads every line that a step prints, on either stream. A line that begins with `::`, behind any white
//! space, is a command; so is `##[` anywhere in a line. What a log says must reach neither position: [`tame`] is for
//! everything else that `kwab ci` prints.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::CiReport;
use crate::plain;

/// The annotations of a report, one line each: an error for each new crash, a notice for what is known.
#[must_use]
pub fn annotations(report: &CiReport) -> String {
    let mut out = String::new();
    let bugs = report.new.iter().map(|bug| ("error", bug)).chain(report.known.iter().map(|bug| ("notice", bug)));
    for (level, bug) in bugs {
        let mut properties = String::new();
        if let Some(location) = &bug.location {
            let _ = write!(properties, "file={},line={},", property(&location.file), location.line);
        }
        let state = if level == "error" { "new crash" } else { "known crash" };
        let title = format!("{state} {}", bug.signature());
        let mut message = format!("{} ({})", bug.title, bug.example.file);
        if !bug.comment.is_empty() {
            let _ = write!(message, ": {}", bug.comment);
        }
        let _ = writeln!(out, "::{level} {properties}title={}::{}", property(&title), data(&message));
    }
    out
}

/// The text of a command: line ends become visible escapes, percent signs the runner's.
#[must_use]
pub fn data(text: &str) -> String {
    let text = plain::line(text);
    inert(&text).replace('%', "%25")
}

/// The value of a property: also `:` and `,`, which end it.
#[must_use]
pub fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A page of which no line is a command to a runner.
#[must_use]
pub fn tame(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    for line in page.split_inclusive('\n') {
        let text = line.trim_start();
        match text.strip_prefix("::") {
            Some(rest) => {
                let _ = write!(out, "{}: :{}", &line[..line.len() - text.len()], inert(rest));
            }
            None => out.push_str(&inert(line)),
        }
    }
    out
}

/// JSON with the same value of which no line is a command: `#` behind `#`, which stands in strings only, is written as
/// an escape.
#[must_use]
pub fn tame_json(text: &str) -> Cow<'_, str> {
    if text.contains("##") { Cow::Owned(text.replace("##", "#\\u0023")) } else { Cow::Borrowed(text) }
}

/// The text without two `#` in a row: runners take commands of older forms, such as `##[error]`, anywhere in a line.
fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '#' && out.ends_with('#') {
            out.push(' ');
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_property_or_a_line_is_escaped() {
        assert_eq!(property("a,b:c%\r\n"), r"a%2Cb%3Ac%25\r\n");
        assert_eq!(data("100%: a, b"), "100%25: a, b");
        assert_eq!(data("x##[error]y###[z"), "x# #[error]y# # #[z");
    }

    #[test]
    fn no_line_of_a_tame_page_is_a_command() {
        let page = "::set-env name=X::1\n  \t::add-mask::x\n\u{a0}::y\nfine :: here\n##[command]\n####\n";
        let tame = tame(page);
        for line in tame.lines() {
            assert!(!line.trim_start().starts_with("::") && !line.contains("##"), "{line:?}");
        }
        assert!(tame.contains("fine :: here") && tame.ends_with('\n'), "{tame}");
        assert_eq!(tame_json("\"a###b\""), "\"a#\\u0023#b\"");
    }
}
