//! Every dump under the given paths: those of the same bug together, damaged ones with what is wrong, logs to import.

use std::sync::Arc;

use kwab::report::catalogue::{Arranged, CatalogueEntry, FIELDS, Finding, Rank, arrange, last_of};
use kwab::report::filter::{FieldValue, Fields as _};

use super::{Column, Key, Link, Look, Row, Target, View, text};
use crate::text::{Line, bytes, count};
use crate::theme::Tone;

/// Dumps and logs as rows.
#[derive(Default)]
pub struct CatalogueView {
    items: Vec<Item>,
    dumps: Vec<Listed>,
    logs: Vec<String>,
    groups: Vec<Arranged>,
    grouped: bool,
    scanning: bool,
}

/// A dump that was found.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Path of the file.
    pub path: String,
    /// What it says; absent until it has been read.
    pub entry: Option<Arc<CatalogueEntry>>,
}

#[derive(Debug, Clone, Copy)]
enum Item {
    Group(usize),
    Dump(usize),
    /// A dump under the heading of its group.
    Member(usize),
    Log(usize),
}

impl CatalogueView {
    /// Lays out what was found; `grouped` puts dumps of the same bug together, the most frequent first.
    #[must_use]
    pub fn new(dumps: Vec<Listed>, logs: Vec<String>, grouped: bool, scanning: bool) -> Self {
        let mut view = Self { items: Vec::new(), dumps, logs, groups: Vec::new(), grouped, scanning };
        if grouped {
            view.group();
        } else {
            view.items.extend((0..view.dumps.len()).map(Item::Dump));
        }
        view.items.extend((0..view.logs.len()).map(Item::Log));
        view
    }

    fn group(&mut self) {
        let known = self.dumps.iter().enumerate().filter_map(|(index, dump)| Some((index, dump.entry.as_deref()?)));
        let (indices, entries): (Vec<usize>, Vec<&CatalogueEntry>) = known.unzip();
        let mut groups = arrange(&entries);
        for group in &mut groups {
            let members = group.members.iter().filter_map(|member| indices.get(*member).copied());
            group.members = members.collect();
            // One dump alone needs no heading.
            match group.members.as_slice() {
                [alone] => self.items.push(Item::Dump(*alone)),
                members => {
                    self.items.push(Item::Group(self.groups.len()));
                    self.items.extend(members.iter().copied().map(Item::Member));
                }
            }
            self.groups.push(group.clone());
        }
        let unread = self.dumps.iter().enumerate().filter(|(_, dump)| dump.entry.is_none());
        self.items.extend(unread.map(|(index, _)| Item::Dump(index)));
    }

    /// The path of the dump of a row.
    #[must_use]
    pub fn path(&self, index: usize) -> Option<&str> {
        match self.items.get(index)? {
            Item::Dump(dump) | Item::Member(dump) => Some(&self.dumps.get(*dump)?.path),
            Item::Group(group) => Some(&self.dumps.get(*self.groups.get(*group)?.members.first()?)?.path),
            Item::Log(_) => None,
        }
    }

    /// The path of the log of a row.
    #[must_use]
    pub fn log(&self, index: usize) -> Option<&str> {
        match self.items.get(index)? {
            Item::Log(log) => self.logs.get(*log).map(String::as_str),
            _ => None,
        }
    }

    fn entry(&self, index: usize) -> Option<&CatalogueEntry> {
        match self.items.get(index)? {
            Item::Dump(dump) | Item::Member(dump) => self.dumps.get(*dump)?.entry.as_deref(),
            Item::Group(group) => self.dumps.get(*self.groups.get(*group)?.members.first()?)?.entry.as_deref(),
            Item::Log(_) => None,
        }
    }

    fn group_row(&self, group: usize) -> Row {
        let Arranged { rank, finding, count, members, .. } = &self.groups[group];
        let entries = members.iter().filter_map(|member| self.dumps.get(*member)?.entry.as_deref());
        let (first, last) = (entries.clone().next(), last_of(entries));
        let what = match (rank, finding) {
            (_, Some(found)) => found.claim.clone(),
            (Rank::Recording, None) => "recordings without a crash".to_string(),
            (Rank::Unreadable, None) => "files that are not dumps".to_string(),
            (Rank::Crash, None) => first.map_or(String::new(), |entry| entry.cause.clone()),
        };
        let cells = [
            if *count < 10_000 { count.to_string() } else { format!("{}k", count / 1000) },
            score(finding.as_ref()),
            rule(finding.as_ref()).to_string(),
            what,
            first.map(|first| place(finding.as_ref(), first)).unwrap_or_default(),
            first.map(|first| first.process.clone()).unwrap_or_default(),
            first.map(when).unwrap_or_default(),
            last.map(when).unwrap_or_default(),
        ];
        Row::of(Tone::Head, cells).tone(4, Tone::Code).tone(6, Tone::Dim).tone(7, Tone::Dim)
    }

    /// The row of a dump; `alone` says what is concluded, which otherwise stands in the heading of its group.
    fn dump_row(&self, dump: usize, alone: bool) -> Row {
        let Listed { path, entry } = &self.dumps[dump];
        let name = path.rsplit('/').next().unwrap_or(path).to_string();
        let Some(entry) = entry else {
            let cells = ["", "…", "", "not read yet", "", "", "", ""].map(str::to_string);
            return Row::of(Tone::Dim, cells.into_iter().chain([name])).tone(FILE, Tone::Plain);
        };
        let tone = match (entry.kind.as_str(), entry.sound) {
            ("unreadable", _) => Tone::Alarm,
            (_, false) => Tone::Care,
            ("recording", _) => Tone::Dim,
            _ => Tone::Plain,
        };
        let state = match (entry.kind.as_str(), entry.sound) {
            ("unreadable", _) => "⚠ no dump".to_string(),
            (_, false) => format!("⚠ {}", count(entry.defects.max(1), "defect", "defects")),
            _ => bytes(entry.bytes),
        };
        let likely = likely(entry);
        let cells = [
            String::new(),
            score(likely),
            if alone { rule(likely).to_string() } else { String::new() },
            likely.filter(|_| alone).map_or_else(|| entry.cause.clone(), |found| found.claim.clone()),
            place(likely, entry),
            entry.process.clone(),
            when(entry),
            String::new(),
            name,
            state,
        ];
        Row::of(tone, cells).tone(1, Tone::Dim).tone(2, Tone::Dim).tone(6, Tone::Dim).tone(FILE, Tone::Code)
    }
}

/// What is concluded of a dump, when it is likelier than not.
fn likely(entry: &CatalogueEntry) -> Option<&Finding> {
    entry.finding.as_ref().filter(|found| found.is_likely())
}

fn score(finding: Option<&Finding>) -> String {
    finding.map_or("–".to_string(), |found| format!("{:.2}", found.score))
}

/// The rule, or the one of the audit that it rests on.
fn rule(finding: Option<&Finding>) -> &str {
    finding.map_or("–", |found| found.about.as_deref().unwrap_or(&found.rule))
}

/// The function that a finding names; else the location of the death, unless an audit found the bug elsewhere.
fn place(finding: Option<&Finding>, entry: &CatalogueEntry) -> String {
    match finding {
        Some(Finding { function: Some(function), .. }) => function.clone(),
        Some(Finding { about: Some(_), .. }) => String::new(),
        _ => entry.place.clone(),
    }
}

/// When it happened: by the wall clock, else since boot.
fn when(entry: &CatalogueEntry) -> String {
    if let Some(wall) = entry.wall_ns {
        let seconds = wall.div_euclid(1_000_000_000).rem_euclid(86_400);
        return format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    match (entry.boot, entry.mono_ns) {
        (_, Some(ns)) => format!("+{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000),
        (Some(boot), None) => format!("boot {boot}"),
        (None, None) => "–".to_string(),
    }
}

/// Index of the column of file names.
const FILE: usize = 8;

const COLUMNS: &[Column] = &[
    Column::number("n", 4, 2),
    Column::number("score", 5, 5),
    Column::new("rule", 12, 4),
    Column::rest("what happened"),
    Column::new("where", 24, 7),
    Column::new("process", 14, 8),
    Column::new("first", 9, 6),
    Column::new("last", 9, 9),
    Column::new("file", 24, 1),
    Column::new("", 11, 3),
];

impl View for CatalogueView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    fn row(&self, index: usize, _look: &Look) -> Row {
        match self.items.get(index) {
            Some(Item::Group(group)) => self.group_row(*group),
            Some(Item::Dump(dump)) => self.dump_row(*dump, true),
            Some(Item::Member(dump)) => self.dump_row(*dump, false),
            Some(Item::Log(log)) => {
                let path = &self.logs[*log];
                let name = path.rsplit('/').next().unwrap_or(path).to_string();
                let cells = ["", "", "log", "a serial log: i makes dumps of it", "", "", "", ""].map(str::to_string);
                Row::of(Tone::Dim, cells.into_iter().chain([name])).tone(3, Tone::Link)
            }
            None => Row::default(),
        }
    }

    fn detail(&self, index: usize, _look: &Look) -> Vec<Line> {
        if let Some(log) = self.log(index) {
            return vec![
                Line::of(Tone::Head, log),
                Line::plain("i imports it: one dump per crash, written beside the log"),
            ];
        }
        let mut lines = Vec::new();
        if let Some(Item::Group(group)) = self.items.get(index) {
            lines.push(Line::of(
                Tone::Care,
                count(self.groups[*group].members.len(), "dump of this bug", "dumps of this bug"),
            ));
        }
        lines.extend(self.path(index).map(|path| Line::of(Tone::Code, path)));
        let Some(entry) = self.entry(index) else {
            lines.push(Line::of(Tone::Dim, "is being read"));
            return lines;
        };
        if let Some(found) = &entry.finding {
            let proven = if found.proven { "proven" } else { "not proven" };
            let text = format!("{:.2} {}, {proven}: {}", found.score, rule(Some(found)), found.claim);
            lines.push(Line::of(if found.is_likely() { Tone::Head } else { Tone::Dim }, text));
        }
        lines.push(Line::of(Tone::Head, entry.cause.clone()));
        let mut fact = |name: &str, value: &str| {
            if !value.is_empty() {
                lines.push(Line::field(name, value));
            }
        };
        fact("kind", &entry.kind);
        fact("victim", &entry.victim);
        fact("process", &entry.process);
        fact("place", &place(likely(entry), entry));
        fact("signature", &entry.signature);
        fact("cpu", &entry.cpu.map(|cpu| cpu.to_string()).unwrap_or_default());
        fact("boot", &entry.boot.map(|boot| boot.to_string()).unwrap_or_default());
        fact("size", &bytes(entry.bytes));
        if !entry.sound {
            let defects = count(entry.defects, "defect", "defects");
            lines.push(Line::of(Tone::Alarm, format!("damaged: {defects}; 0 Integrity says which")));
        }
        lines
    }

    fn links(&self, index: usize, _look: &Look) -> Vec<Link> {
        let path = self.path(index);
        path.map(|path| Link::new(format!("open {path}"), Target::Dump(path.to_string()))).into_iter().collect()
    }

    fn target(&self, index: usize, _look: &Look) -> Option<Target> {
        self.path(index).map(|path| Target::Dump(path.to_string()))
    }

    fn find(&self, target: &Target) -> Option<usize> {
        let Target::Dump(wanted) = target else { return None };
        let is =
            |item: &Item| matches!(item, Item::Dump(dump) | Item::Member(dump) if self.dumps[*dump].path == *wanted);
        self.items.iter().position(is)
    }

    fn fields(&self) -> &'static [&'static str] {
        FIELDS
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        match self.entry(index) {
            Some(entry) => match entry.field(name)? {
                FieldValue::Number(number) => Some(FieldValue::Number(number)),
                FieldValue::Text(text) => Some(FieldValue::Text(text.into_owned().into())),
            },
            None if name == "file" => text(self.path(index).or(self.log(index))?),
            None => None,
        }
    }

    fn text(&self, index: usize) -> String {
        let path = self.path(index).or_else(|| self.log(index)).unwrap_or_default();
        match self.entry(index) {
            Some(entry) => format!("{path} {}", entry.text()),
            None => path.to_string(),
        }
    }

    fn key(&self, index: usize, column: usize) -> Option<Key> {
        let entry = self.entry(index)?;
        Some(match column {
            1 => Key::Number(likely(entry).map_or(0, |found| (found.score * 1000.0) as u64)),
            2 => Key::Text(rule(likely(entry)).to_string()),
            3 => Key::Text(likely(entry).map_or_else(|| entry.cause.clone(), |found| found.claim.clone())),
            4 => Key::Text(place(likely(entry), entry)),
            5 => Key::Text(entry.process.clone()),
            6 | 7 => Key::Number(entry.wall_ns.and_then(|ns| u64::try_from(ns).ok()).or(entry.mono_ns).unwrap_or(0)),
            FILE => Key::Text(entry.file.clone()),
            9 => Key::Number(entry.bytes),
            _ => Key::Number(index as u64),
        })
    }

    fn command(&self, dump: &str) -> String {
        format!("kwab list {dump}")
    }

    fn when_empty(&self) -> String {
        if self.scanning {
            "looking for dumps …".to_string()
        } else {
            "no dumps here: kwab import makes them of serial logs".to_string()
        }
    }

    fn summary(&self) -> Option<Line> {
        let crashes = self
            .dumps
            .iter()
            .filter_map(|dump| dump.entry.as_ref())
            .filter(|entry| !matches!(entry.kind.as_str(), "recording" | "unreadable"))
            .count();
        let unread = self.dumps.iter().filter(|dump| dump.entry.is_none()).count();
        let damaged = self.dumps.iter().filter_map(|dump| dump.entry.as_ref()).filter(|entry| !entry.sound).count();
        let mut line = Line::of(
            Tone::Dim,
            format!("{}, {}", count(self.dumps.len(), "dump", "dumps"), count(crashes, "crash", "crashes")),
        );
        if self.grouped {
            let kinds = self.groups.iter().filter(|group| group.rank == Rank::Crash).count();
            line = line.and(Tone::Dim, format!(" of {}", count(kinds, "kind", "kinds")));
        }
        if damaged > 0 {
            line = line.and(Tone::Care, format!(", {damaged} damaged"));
        }
        if unread > 0 {
            line = line.and(Tone::Dim, format!(", {unread} not read yet"));
        }
        Some(line)
    }
}
