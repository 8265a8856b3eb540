//! What tells two dumps or two directories of dumps apart, in words.

use std::fmt::Write as _;

use kwab::builds::BuildChanges;
use kwab::plain;
use kwab::report::catalogue::{CatalogueEntry, Finding};
use kwab::report::diff::{Change, Count, Difference, Fate, FolderDifference, Part, Which};

use super::{Tone, count, cut, paint};
use crate::output::{Style, columns};

/// Columns of the kind and the name of a fact.
const KIND: usize = 12;
const NAME: usize = 20;

/// The page about two dumps: the verdict, what differs, and what was left out.
pub(crate) fn dumps(found: &Difference, rows: usize, style: Style) -> String {
    let mut page = String::new();
    let tone = if found.same_bug == Some(false) { Tone::Alarm } else { Tone::Head };
    let _ = writeln!(page, "{}", paint(style, tone, &cut(&verdict(found), style.width)));
    for (letter, entry) in [("A", &found.left), ("B", &found.right)] {
        let line = format!("{letter}  {}  {}", plain::line(&entry.file), entry.cause);
        let _ = writeln!(page, "{}", cut(&line, style.width));
    }
    for (fate, title) in [(Fate::New, "new in B"), (Fate::Changed, "different"), (Fate::Gone, "only in A")] {
        let mut title = Some(title);
        for part in &found.parts {
            let changes: Vec<&Change> = part.changes.iter().filter(|change| change.fate == fate).collect();
            if changes.is_empty() {
                continue;
            }
            if let Some(title) = title.take() {
                let _ = writeln!(page, "\n{}", paint(style, Tone::Head, title));
            }
            changes.iter().take(rows).for_each(|change| row(&mut page, part, change, style));
            if let Some(more) = changes.len().checked_sub(rows).filter(|more| *more > 0) {
                let line = format!("  {:KIND$}… {more} more (-n {} shows them)", "", changes.len());
                let _ = writeln!(page, "{}", paint(style, Tone::Dim, &cut(&line, style.width)));
            }
        }
    }
    if found.parts.iter().all(|part| part.changes.is_empty()) {
        page.push_str("\nnothing differs but what varies from run to run\n");
    }
    page.push('\n');
    for line in rest(found) {
        let _ = writeln!(page, "{}", paint(style, Tone::Dim, &super::wrap(&line, style.width.saturating_sub(2), "  ")));
    }
    page
}

/// The page about two builds of an image.
pub(crate) fn builds(found: &BuildChanges, rows: usize, style: Style) -> String {
    let short = |id: &str| if id.is_empty() { "without build-id".to_owned() } else { id.chars().take(8).collect() };
    let mut page = String::new();
    let head = format!("build {}… against {}…", short(&found.new), short(&found.old));
    let _ = writeln!(page, "{}", paint(style, Tone::Head, &head));
    let names = count(found.compared as u64, "function", "functions");
    if found.functions.is_empty() {
        let _ = writeln!(page, "the code of {names} is the same; data was not compared");
        return page;
    }
    let verb = if found.differing == 1 { "differs" } else { "differ" };
    let _ = writeln!(page, "{} of {names} of the image {verb}; of the source, most changed first:\n", found.differing);
    let telling = found.functions.iter().filter(|function| function.explains > 0).count();
    let shown = rows.min(if style.width == usize::MAX { usize::MAX } else { telling });
    for function in found.functions.iter().take(shown) {
        let place = function.place().map(|place| format!("  {}", plain::line(&place))).unwrap_or_default();
        let _ = writeln!(page, "{}", cut(&format!("  {}{place}", plain::line(&function.name)), style.width));
        let mut inside: Vec<String> = function.inside.iter().map(|name| plain::line(name).into_owned()).collect();
        inside.retain(|name| *name != function.name);
        let inside = if inside.is_empty() { String::new() } else { format!("; inlined into {}", inside.join(", ")) };
        let _ = writeln!(page, "{}", cut(&format!("      {}{inside}", function.in_words()), style.width));
    }
    if let Some(more) = telling.checked_sub(shown).filter(|more| *more > 0) {
        let line = format!("  … {more} more (-n {telling} shows them)");
        let _ = writeln!(page, "{}", paint(style, Tone::Dim, &line));
    }
    if let Some(along) = found.functions.len().checked_sub(telling.max(shown)).filter(|along| *along > 0) {
        let others = count(along as u64, "function", "functions");
        let line = format!("  and {others} around them, whose code differs along with theirs (--wide shows them)");
        let _ = writeln!(page, "{}", paint(style, Tone::Dim, &line));
    }
    page
}

fn named(finding: Option<&Finding>) -> String {
    finding.map_or_else(
        || "no finding".to_string(),
        |found| match &found.function {
            Some(function) => format!("{} in {function}, {:.2}", found.rule, found.score),
            None => format!("{}, {:.2}", found.rule, found.score),
        },
    )
}

fn verdict(found: &Difference) -> String {
    let (left, right) = (&found.left, &found.right);
    match found.same_bug {
        Some(true) if left.finding.is_none() && right.finding.is_none() => {
            "the same symptom; nothing more is known".into()
        }
        Some(true) => format!("the same bug: {}", named(right.finding.as_ref().or(left.finding.as_ref()))),
        Some(false) => {
            format!("different bugs: A {}; B {}", named(left.finding.as_ref()), named(right.finding.as_ref()))
        }
        None => {
            let is_live = |entry: &CatalogueEntry| entry.kind == "live";
            if is_live(left) && is_live(right) {
                return "nothing died in A or B: both are live dumps".into();
            }
            let is_crash = |entry: &CatalogueEntry| !matches!(entry.kind.as_str(), "recording" | "lost" | "live");
            match (is_crash(left), is_crash(right)) {
                (false, false) => "neither tells of a crash".into(),
                (true, false) => "only A tells of a crash".into(),
                (false, true) => "only B tells of a crash".into(),
                (true, true) => "not comparable as bugs".into(),
            }
        }
    }
}

/// One fact that differs: on one line where it fits, else each dump's on its own.
fn row(page: &mut String, part: &Part, change: &Change, style: Style) {
    let name = plain::line(&change.name);
    let head = match &*name {
        "" => format!("  {:KIND$}", part.name),
        name => format!("  {:KIND$}{name:NAME$} ", part.name),
    };
    match (&change.left, &change.right) {
        (Some(left), Some(right)) => {
            let (left, right) = (plain::line(left), plain::line(right));
            let line = format!("{head}{left} → {right}");
            if cut(&line, style.width) == line {
                let _ = writeln!(page, "{line}");
                return;
            }
            let _ = writeln!(page, "{}", cut(&format!("{head}A {left}"), style.width));
            let indent = " ".repeat(columns(&head));
            let _ = writeln!(page, "{}", cut(&format!("{indent}B {right}"), style.width));
        }
        (one, two) => {
            let value = plain::line(one.as_ref().or(two.as_ref()).map(String::as_str).unwrap_or_default());
            let _ = writeln!(page, "{}", cut(&format!("{head}{value}"), style.width));
        }
    }
}

/// What is the same, what was not compared.
fn rest(found: &Difference) -> Vec<String> {
    let told = |title: &str, number: fn(&Part) -> usize| {
        let parts = found.parts.iter().filter(|part| number(part) > 0);
        let parts: Vec<_> = parts.map(|part| format!("{} {}", part.name, number(part))).collect();
        (!parts.is_empty()).then(|| format!("{title}: {}", parts.join(", ")))
    };
    let only = |which: Which, letter: &str| {
        let parts = found.parts.iter().filter(|part| part.only == Some(which));
        let parts: Vec<_> = parts.map(|part| part.name.clone()).collect();
        (!parts.is_empty()).then(|| format!("not compared, as only {letter} records it: {}", parts.join(", ")))
    };
    let lines = [
        told("the same", |part| part.equal),
        told("not shown, as it varies from run to run", |part| part.noise),
        told("not compared, as only one dump records it", |part| part.unpaired),
        told("not compared, as there are too many", |part| part.left_out),
        only(Which::Left, "A"),
        only(Which::Right, "B"),
    ];
    lines.into_iter().flatten().collect()
}

/// The page about two directories: the bugs of one, of the other, of both.
pub(crate) fn folders(found: &FolderDifference, names: &(String, String), style: Style) -> String {
    let mut page = String::new();
    let dumps = |number: usize| count(number as u64, "dump", "dumps");
    let head = format!("A  {}: {}\nB  {}: {}", names.0, dumps(found.left), names.1, dumps(found.right));
    let _ = writeln!(page, "{}", plain::page(&head));
    for (fate, title) in [(Fate::New, "only in B"), (Fate::Gone, "only in A"), (Fate::Changed, "in both")] {
        let bugs: Vec<&Count> = found.bugs.iter().filter(|bug| bug.fate == fate).collect();
        if bugs.is_empty() {
            continue;
        }
        let tone = if fate == Fate::New { Tone::Alarm } else { Tone::Head };
        let _ = writeln!(page, "\n{}", paint(style, tone, title));
        for bug in bugs {
            let counts = match fate {
                Fate::New => bug.right.to_string(),
                Fate::Gone => bug.left.to_string(),
                Fate::Changed => format!("{} → {}", bug.left, bug.right),
            };
            let what = bug.finding.as_ref().map_or(&bug.example.cause, |found| &found.claim);
            let rule = bug.finding.as_ref().map_or("", |found| &found.rule);
            let line = format!("  {counts:>8}  {rule:KIND$} {what}");
            let _ = writeln!(page, "{}", cut(&line, style.width));
            let _ =
                writeln!(page, "  {:8}  {:KIND$} {}", "", "", paint(style, Tone::Dim, &plain::line(&bug.example.file)));
        }
    }
    if found.bugs.is_empty() {
        page.push_str("\nneither has a dump of a crash\n");
    }
    page
}
