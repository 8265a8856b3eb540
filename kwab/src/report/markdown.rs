//! An inspection as Markdown, for an issue or a mail: what a reader needs first, at most [`LIMIT`] bytes of it.
//!
//! Sentences are escaped character by character (`plain_text`); rows of code stand in fences that are longer than any
//! run of backticks in them. So nothing of a dump becomes markup, HTML, a link or a mention. A block that does not fit
//! is left out and named.

use std::fmt::Write as _;

use super::html::Contents;
use super::inspect::{FrameRow, Report};
use crate::analysis::{Since, Triage};
use crate::plain;
use crate::unwind::Trust;

/// The longest text that is written, in bytes: an issue or a comment of GitHub takes 65,536 characters.
pub const LIMIT: usize = 60_000;

/// Rows of each list.
const ROWS: usize = 24;
/// Characters of a row.
const ROW: usize = 200;
/// Characters of a sentence.
const SENTENCE: usize = 300;

/// Writes the text.
#[must_use]
pub fn markdown(contents: &Contents<'_>) -> String {
    let report = contents.report;
    let mut out = format!("### {}\n\n", plain_text(&report.headline, SENTENCE));
    let shown = ["kernel", "arch", "build-id"];
    let facts = report.meta.iter().filter(|fact| shown.contains(&fact.name.as_str()));
    let facts: String = facts.map(|fact| format!(" · {} {}", fact.name, code(&fact.value))).collect();
    let _ = writeln!(out, "signature {}{facts}", code(&report.signature));
    let mut blocks = vec![("triage", triage(contents.triage))];
    let traces =
        report.backtraces.iter().take(2).map(|trace| ("backtrace", fenced(&trace.title, frames(&trace.frames))));
    blocks.extend(traces);
    let code = report.code.iter().flat_map(|code| &code.lines).map(|line| {
        let mark = if line.marked { "▶" } else { " " };
        format!("{mark} {}  {}  {}", line.addr, line.text, line.values.as_deref().unwrap_or_default())
    });
    blocks.push(("code", fenced("Code", code.collect())));
    for set in report.registers.iter().take(1) {
        let rows: Vec<_> = set.registers.iter().map(|one| format!("{:>8} {}", one.name, one.value)).collect();
        blocks.push(("registers", fenced(&set.title, rows.chunks(3).map(|three| three.join("  ")).collect())));
    }
    let calls = report.syscalls.iter().map(|row| row.text.clone()).collect();
    blocks.push(("system calls", fenced("System calls, oldest first", last(calls))));
    // No line of a log is a line of its own for what reads only lines.
    let log = report.log.iter().map(|row| format!("  {}", row.text)).collect();
    blocks.push(("log", fenced("Log", last(log))));
    blocks.push(("completeness", completeness(report)));
    let mut left = Vec::new();
    for (name, block) in blocks {
        if out.len() + block.len() > LIMIT - 200 {
            left.push(name);
        } else {
            out.push_str(&block);
        }
    }
    if !left.is_empty() {
        let _ = writeln!(out, "\nleft out for length: {}", left.join(", "));
    }
    out
}

/// A name in the font of code when it is one word, else as text.
fn code(name: &str) -> String {
    let is_word =
        name.len() <= 64 && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_word { format!("`{name}`") } else { plain_text(name, 120) }
}

fn triage(triage: &Triage) -> String {
    let mut out = String::from("\n");
    for (index, one) in triage.hypotheses.iter().take(3).enumerate() {
        let claim = plain_text(&one.claim, SENTENCE);
        let _ = writeln!(out, "{}. {:.2} {claim} \\[{}\\]", index + 1, one.score, plain_text(one.rule, 40));
        if let Some(function) = &one.function {
            let _ = writeln!(out, "   - look at: {}", plain_text(&function.in_words(), SENTENCE));
        }
        for fact in one.evidence.iter().take(4) {
            let _ = writeln!(out, "   - {}", plain_text(&fact.head(), SENTENCE));
            for function in fact.first_functions() {
                let _ = writeln!(out, "      - {}", plain_text(&function.in_words(), SENTENCE));
            }
            if let rest @ 1.. = fact.other_functions().len() {
                let _ = writeln!(out, "      - {rest} more");
            }
        }
        for fact in one.against.iter().take(2) {
            let _ = writeln!(out, "   - against: {}", plain_text(&fact.text, SENTENCE));
        }
    }
    if triage.hypotheses.is_empty() {
        out.push_str("no hypothesis: nothing in the dump supports one\n");
    }
    more(&mut out, triage.hypotheses.len(), 3, "hypotheses");
    // Among the evidence it may be cut, or there is no bug that it could be evidence of.
    let title = |since: &Since| plain_text(&since.title(), SENTENCE);
    if let Some(since) = triage.since.as_ref().filter(|since| !out.contains(&title(since))) {
        let _ = writeln!(out, "\n{}:\n", title(since));
        for line in since.lines(4) {
            let _ = writeln!(out, "- {}", plain_text(&line, SENTENCE));
        }
    }
    out
}

fn completeness(report: &Report) -> String {
    let complete = &report.completeness;
    let mut out = String::from("\n");
    if complete.complete {
        let _ = writeln!(out, "complete: {} of {} sections verified", complete.verified, complete.sections);
    }
    for gap in complete.missing.iter().take(ROWS) {
        let _ = writeln!(out, "- missing: {}; {}", plain_text(&gap.what, ROW), plain_text(&gap.weakens, ROW));
    }
    for defect in complete.defects.iter().take(ROWS) {
        let _ = writeln!(out, "- damaged: {}", plain_text(defect, ROW));
    }
    more(&mut out, complete.defects.len(), ROWS, "defects");
    out
}

/// Says how many of a list were not shown.
pub(super) fn more(out: &mut String, all: usize, shown: usize, what: &str) {
    if let Some(rest @ 1..) = all.checked_sub(shown) {
        let _ = writeln!(out, "\n… and {rest} more {what}");
    }
}

/// Frames with how each was found, and a line about what the short words mean. A stack without addresses has no column.
fn frames(frames: &[FrameRow]) -> Vec<String> {
    let known = |frame: &FrameRow| Trust::of_name(&frame.trust);
    let has_addresses = frames.iter().any(|frame| frame.addr.is_some());
    let mut rows: Vec<String> = frames
        .iter()
        .map(|frame| {
            let addr = if has_addresses {
                format!("{:<18}  ", frame.addr.as_deref().unwrap_or_default())
            } else {
                String::new()
            };
            let trust = known(frame).map_or("?", Trust::short);
            let place = frame.place.as_deref().unwrap_or_default();
            format!("#{:<2} {trust:<4} {addr}{}  {place}", frame.index, frame.symbol).trim_end().to_string()
        })
        .collect();
    let used = |trust: &Trust| frames.iter().any(|frame| known(frame) == Some(*trust));
    let words = Trust::ALL.into_iter().filter(used).map(|trust| format!("{} = {}", trust.short(), trust.about()));
    let words: Vec<String> = words.collect();
    if !words.is_empty() {
        rows.truncate(2 * ROWS - 1);
        rows.push(format!("({})", words.join(", ")));
    }
    rows
}

/// The last rows, behind the number of those before them.
fn last(mut rows: Vec<String>) -> Vec<String> {
    if let Some(older @ 1..) = rows.len().checked_sub(ROWS) {
        rows.drain(..older);
        rows.insert(0, format!("… {older} before"));
    }
    rows
}

/// Rows in a fence, under a title; nothing when there are none.
fn fenced(title: &str, mut rows: Vec<String>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    if let Some(rest @ 1..) = rows.len().checked_sub(2 * ROWS) {
        rows.truncate(2 * ROWS);
        rows.push(format!("… {rest} more"));
    }
    let rows: Vec<String> = rows.iter().map(|row| cut(row, ROW)).collect();
    let longest = rows.iter().flat_map(|row| row.split(|character| character != '`')).map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{}\n\n{fence}text\n{}\n{fence}\n", plain_text(title, SENTENCE), rows.join("\n"))
}

/// At most `most` characters in one printable line.
fn cut(text: &str, most: usize) -> String {
    let shown: String = text.chars().take(most).collect();
    let mark = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{mark}", plain::line(&shown))
}

/// Text that is text, in GitHub's Markdown and in others: characters that may mean something where they stand are
/// character references. An empty comment behind what mentions, references and links begin with, and within what may be
/// the hash of a commit, keeps them from being found in the finished text. What means nothing stays as it is, so that
/// a mail can be read as it is.
pub(super) fn plain_text(text: &str, most: usize) -> String {
    let text: Vec<char> = cut(text, most).chars().collect();
    let mut out = String::new();
    // Characters of the word so far, all of them hexadecimal digits.
    let mut digits = Some(0);
    for (index, &character) in text.iter().enumerate() {
        digits = match character {
            _ if !character.is_ascii_alphanumeric() => Some(0),
            _ if character.is_ascii_hexdigit() => digits.map(|digits| digits + 1),
            _ => None,
        };
        if digits.is_some_and(|digits| digits > 0 && digits % HASH == 0) {
            out.push_str(UNSEEN);
        }
        if !character.is_ascii() || means_nothing(&text[..index], character, text.get(index + 1).copied()) {
            out.push(character);
            continue;
        }
        let _ = write!(out, "&#{};", u32::from(character));
        if matches!(character, '@' | '#' | ':' | '.' | '-') {
            out.push_str(UNSEEN);
        }
    }
    out
}

/// Whether an ASCII character is only itself behind `before` and before `next`.
fn means_nothing(before: &[char], character: char, next: Option<char>) -> bool {
    let ends = next.is_none_or(|next| next == ' ');
    let last = before.last().copied();
    let within = last.is_some_and(|last| last.is_ascii_alphanumeric());
    let is_between = within && next.is_some_and(|next| next.is_ascii_alphanumeric());
    // A number in front may begin a list.
    let is_begun = before.iter().any(|character| !character.is_ascii_digit() && *character != ' ');
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | ',' | ';' | '%' | '\'' | '?' => true,
        '=' | '(' | '/' => is_begun && last != Some(character),
        ')' => is_begun,
        '+' => within || last.is_some_and(|last| last == '[' || last == ' ') && is_begun,
        '_' => is_between,
        // The names of people, issues and commits have a dash or a dot in them; neither is in a number.
        '-' => is_between && !before.ends_with(&['G', 'H']) && !before.ends_with(&['g', 'h']),
        '.' => is_begun && (within && ends || is_number(before) && next.is_some_and(|next| next.is_ascii_digit())),
        ':' => is_begun && ends,
        _ => false,
    }
}

fn is_number(before: &[char]) -> bool {
    before.last().is_some_and(char::is_ascii_digit)
}

/// What splits a word and is not shown.
const UNSEEN: &str = "<!-- -->";
/// Digits from which on a word may be the hash of a commit.
const HASH: u32 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_holds_neither_markup_nor_a_link_nor_a_mention() {
        let hostile =
            "www.a.b a|b`c`<img src=x onerror=y>[l](http://x) @user #12 **b** ![i](j) \u{202e}\n# h GH-12 _i_ $x$";
        let safe = plain_text(hostile, usize::MAX);
        let rest = safe.replace(UNSEEN, "");
        assert!(!rest.contains(['|', '`', '<', '>', '[', ']', '*', '!', '@', '\n', '\u{202e}', '$', '_']), "{safe}");
        for gone in ["www.", "http:", "//", "@user", " #12", "GH-12"] {
            assert!(!rest.contains(gone), "{gone}: {safe}");
        }
        assert!(safe.contains("&#64;<!-- -->user") && safe.contains("GH&#45;<!-- -->12"), "{safe}");
        assert!(plain_text(&"x".repeat(500), 120).chars().count() < 130);
    }

    #[test]
    fn text_that_means_nothing_stays_as_it_is() {
        for text in
            ["kwab 6.1.0-kwab (kwab), x86_64", "page fault: read of 0x18", "copy_to_user+0x4e/0x90", "it is so."]
        {
            assert_eq!(plain_text(text, 99), text);
        }
        for text in ["1. x", "2) y", "- z", "+ w", "=====", "a:b", "12. x", "a.com", "x.z", "~~a~~", ":smile:"] {
            assert_ne!(plain_text(text, 99), text);
        }
    }

    #[test]
    fn no_word_is_the_hash_of_a_commit() {
        assert_eq!(plain_text("c0ffee12 decade 123456", 99), format!("c0ffee{UNSEEN}12 decade 123456"));
        let long = plain_text(&"a1".repeat(20), 99);
        assert!(long.split(UNSEEN).all(|part| part.len() < 8), "{long}");
        assert_eq!(plain_text("0xffffffff81000000", 99), "0xffffffff81000000", "no hash begins with 0x");
    }
}
