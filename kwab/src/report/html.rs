//! An inspection as one HTML file: complete without a network, with a script of its own for search, keys and timeline.
//!
//! A dump is hostile input. Every string of it passes `text`, which leaves no character that has a meaning in HTML,
//! in a quoted attribute or to a terminal. The page's content security policy names the hashes of its one script and
//! its one style and allows nothing else, so nothing of a dump would run even if an escape were forgotten.
//!
//! The file is bounded: every list has a share of [`LIMIT`] bytes, and what does not fit is left out and counted.

mod chain;
mod lists;
mod parts;

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kwab_format::SectionKind;
use sha2::{Digest as _, Sha256};

use super::inspect::Report;
use crate::analysis::Triage;
use crate::causes::Causes;
use crate::model::Dump;
use crate::plain;

/// The longest file that is written, in bytes.
pub const LIMIT: usize = 2_000_000;

/// Characters of one cell; more are counted.
const CELL: usize = 1000;
/// Rows of a long list that are printed on paper, the newest.
const PRINTED: usize = 60;

/// The page's script and style.
const SCRIPT: &str = include_str!("html/script.js");
const STYLE: &str = include_str!("html/style.css");

/// What a file is made of.
#[derive(Debug, Clone, Copy)]
pub struct Contents<'a> {
    /// The inspection, concluded.
    pub report: &'a Report,
    /// All of the triage.
    pub triage: &'a Triage,
    /// What caused what, when it was concluded.
    pub causes: Option<&'a Causes>,
    /// Records of the dump, of which the inspection holds the last.
    pub held: Held,
    /// The rows that the inspection was asked for.
    pub rows: usize,
}

/// Records of a dump by what they are shown as, as its section headers count them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Held {
    calls: u64,
    events: u64,
    trace: u64,
    log: u64,
}

impl Held {
    /// Adds up the records of the sections behind each list.
    #[must_use]
    pub fn of(dump: &Dump) -> Self {
        let count = |kinds: &[SectionKind]| {
            let sections = dump.file.sections.iter().filter(|section| kinds.contains(&section.header.kind));
            sections.map(|section| u64::from(section.header.records)).sum()
        };
        Self {
            calls: count(&[SectionKind::SYSCALLS, SectionKind::EVENTS]),
            events: count(&[SectionKind::EVENTS]),
            trace: count(&[SectionKind::FLIGHT, SectionKind::EVENTS]),
            log: count(&[SectionKind::LOG]),
        }
    }
}

/// Writes the file.
#[must_use]
pub fn html(contents: &Contents<'_>) -> String {
    let mut page = Page::default();
    parts::all(contents, &mut page);
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let title = text(&contents.report.headline);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{style}'; \
         script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header><div class=\"bar\">\
         <h1>{title}</h1><input id=\"search\" type=\"search\" placeholder=\"search all rows (/)\" \
         aria-label=\"search all rows\"><output id=\"found\"></output>\
         <button id=\"theme\" title=\"dark or light (t)\">◐</button>\
         <button id=\"keys\" title=\"keys (?)\">?</button></div>\n<nav>"
    );
    for (id, title) in &page.titles {
        let _ = write!(out, "<a href=\"#{id}\">{title}</a>");
    }
    let _ = write!(
        out,
        "</nav></header>\n<div id=\"help\" hidden>{KEYS}</div>\n<main>\n{}</main>\n\
         <footer>{} · kwab {}</footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        page.body,
        text(&contents.report.file),
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// What the keys do.
const KEYS: &str = "<b>/</b> search, <b>Esc</b> show all rows again<br><b>j k</b> next and previous part<br>\
    <b>+ - 0</b> zoom the timeline in, out, all of it; <b>h l</b> move it<br>\
    <b>n p</b> next and previous event, <b>Enter</b> its row<br>\
    <b>c e</b> to the cause of the event, to its effect<br><b>t</b> dark or light<br><b>?</b> these keys";

/// The hash of an inline element, as a policy names it (CSP level 3, `hash-source`).
fn hash(content: &str) -> String {
    STANDARD.encode(Sha256::digest(content))
}

/// Text of a dump as text of HTML or of an attribute in quotes, at most [`CELL`] characters of it.
fn text(raw: &str) -> String {
    let (shown, more) = match raw.char_indices().nth(CELL) {
        Some((end, _)) => (&raw[..end], raw[end..].chars().count()),
        None => (raw, 0),
    };
    let plain = plain::line(shown);
    let mut out = String::with_capacity(plain.len() + 16);
    for character in plain.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            other => out.push(other),
        }
    }
    if more > 0 {
        let _ = write!(out, "… ({more} more characters)");
    }
    out
}

/// The parts so far.
#[derive(Debug, Default)]
struct Page {
    body: String,
    /// Their ids and titles, both words of this module.
    titles: Vec<(&'static str, &'static str)>,
}

/// A cell of a table.
#[derive(Debug, Clone, Copy)]
enum Cell<'a> {
    /// Text of a dump.
    Text(&'a str),
    /// The same, in the font of code.
    Mono(&'a str),
    /// An aligned number.
    Number(u64),
    /// Markup of this module.
    Own(&'a str),
}

/// Which rows stay when not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    First,
    Last,
}

impl Page {
    /// Writes a part.
    fn part(&mut self, id: &'static str, title: &'static str, write: impl FnOnce(&mut Self)) {
        self.titles.push((id, title));
        let _ = writeln!(self.body, "<section id=\"{id}\" tabindex=\"-1\"><h2>{title}</h2>");
        write(self);
        self.body.push_str("</section>\n");
    }

    /// A part that is left out when `rows` is empty.
    fn part_of<T>(&mut self, id: &'static str, title: &'static str, rows: &[T], write: impl FnOnce(&mut Self, &[T])) {
        if !rows.is_empty() {
            self.part(id, title, |page| write(page, rows));
        }
    }

    fn heading(&mut self, title: &str) {
        let _ = writeln!(self.body, "<h3>{}</h3>", text(title));
    }

    /// A line of text, behind a label of this module.
    fn line(&mut self, class: &str, label: &str, line: &str) {
        let label = if label.is_empty() { String::new() } else { format!("<b>{label}</b> ") };
        let _ = writeln!(self.body, "<div class=\"r {class}\">{label}{}</div>", text(line));
    }

    /// What is not in the page.
    fn note(&mut self, note: &str) {
        let _ = writeln!(self.body, "<p class=\"left\">{note}</p>");
    }

    /// Rows within a share of bytes, each whole or left out; the number left out is said.
    fn list<T>(&mut self, rows: &[T], share: usize, keep: Keep, what: &str, write: impl Fn(&mut Self, usize, &T)) {
        let left = self.rows(rows, share, keep, write);
        self.left_out(left, rows.len(), keep, what);
    }

    /// The same, as a table with these heads.
    fn table<T>(
        &mut self,
        heads: &[&str],
        rows: &[T],
        (share, keep, what): (usize, Keep, &str),
        write: impl Fn(&mut Self, usize, &T),
    ) {
        self.body.push_str("<table>");
        if !heads.is_empty() {
            let cells: String = heads.iter().map(|head| format!("<th>{head}</th>")).collect();
            let _ = write!(self.body, "<thead><tr>{cells}</tr></thead>");
        }
        let left = self.rows(rows, share, keep, write);
        self.body.push_str("</table>\n");
        self.left_out(left, rows.len(), keep, what);
    }

    fn left_out(&mut self, left: usize, of: usize, keep: Keep, what: &str) {
        if left > 0 {
            let end = if keep == Keep::Last { "the oldest" } else { "the last" };
            self.note(&format!("left out for length: {end} {left} of {of} {what}"));
        }
    }

    /// Writes what fits and gives the number of rows that did not.
    fn rows<T>(&mut self, rows: &[T], share: usize, keep: Keep, write: impl Fn(&mut Self, usize, &T)) -> usize {
        let begin = self.body.len();
        if keep == Keep::First {
            for (index, row) in rows.iter().enumerate() {
                let before = self.body.len();
                write(self, index, row);
                if self.body.len() - begin > share {
                    self.body.truncate(before);
                    return rows.len() - index;
                }
            }
            return 0;
        }
        let mut written = Vec::new();
        let mut room = share;
        for (index, row) in rows.iter().enumerate().rev() {
            write(self, index, row);
            let row = self.body.split_off(begin);
            let Some(rest) = room.checked_sub(row.len()) else { break };
            room = rest;
            written.push(row);
        }
        let count = written.len();
        for row in written.iter().rev() {
            self.body.push_str(row);
        }
        rows.len() - count
    }

    /// A row of a table with attributes and cells.
    fn row(&mut self, attributes: &str, cells: &[Cell<'_>]) {
        let _ = write!(self.body, "<tr {attributes}>");
        for cell in cells {
            let _ = match cell {
                Cell::Text(raw) => write!(self.body, "<td>{}", text(raw)),
                Cell::Mono(raw) => write!(self.body, "<td class=m>{}", text(raw)),
                Cell::Number(number) => write!(self.body, "<td class=n>{number}"),
                Cell::Own(markup) => write!(self.body, "<td>{markup}"),
            };
        }
        self.body.push('\n');
    }
}

/// The class of a row, old rows not for paper.
fn class(index: usize, of: usize, class: &str) -> String {
    let old = if index + PRINTED < of { " old" } else { "" };
    match (old, class) {
        ("", "") => ROW.to_string(),
        _ => format!("class=\"r{old}{class}\""),
    }
}

/// Says on paper how many rows are only on the screen.
fn unprinted(rows: usize, page: &mut Page) {
    if let Some(old @ 1..) = rows.checked_sub(PRINTED) {
        let _ = writeln!(page.body, "<p class=\"left paper\">{old} older rows are not printed</p>");
    }
}

/// A time in seconds.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// The attributes of a row that search finds.
const ROW: &str = "class=r";
/// The same, of a row that matters.
const MARKED: &str = "class=\"r mark\"";

#[cfg(test)]
mod tests;
