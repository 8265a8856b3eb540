//! Every dump under the given paths: those of the same crash together, damaged ones with what is wrong, logs to import.

use std::collections::BTreeMap;
use std::sync::Arc;

use kwab::report::catalogue::{CatalogueEntry, FIELDS};
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
    groups: Vec<Vec<usize>>,
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
    Log(usize),
}

impl CatalogueView {
    /// Lays out what was found; `grouped` puts dumps of the same crash together, the most frequent first.
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
        let mut groups: BTreeMap<(u8, &str), Vec<usize>> = BTreeMap::new();
        for (index, dump) in self.dumps.iter().enumerate() {
            let key = match &dump.entry {
                None => (3, ""),
                Some(entry) if entry.kind == "unreadable" => (2, ""),
                Some(entry) if entry.kind == "recording" => (1, ""),
                Some(entry) => (0, entry.signature.as_str()),
            };
            groups.entry(key).or_default().push(index);
        }
        let mut groups: Vec<(u8, Vec<usize>)> = groups.into_iter().map(|((rank, _), dumps)| (rank, dumps)).collect();
        groups.sort_by_key(|(rank, dumps)| (*rank, std::cmp::Reverse(dumps.len())));
        for (_, dumps) in &mut groups {
            dumps.sort_by_key(|index| time_key(&self.dumps[*index]));
        }
        for (rank, dumps) in groups {
            // One dump alone, and dumps that have not been read, need no heading.
            if dumps.len() > 1 && rank < 3 {
                self.items.push(Item::Group(self.groups.len()));
            }
            self.items.extend(dumps.iter().copied().map(Item::Dump));
            self.groups.push(dumps);
        }
    }

    /// The path of the dump of a row.
    #[must_use]
    pub fn path(&self, index: usize) -> Option<&str> {
        match self.items.get(index)? {
            Item::Dump(dump) => Some(&self.dumps.get(*dump)?.path),
            Item::Group(group) => Some(&self.dumps.get(*self.groups.get(*group)?.first()?)?.path),
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
            Item::Dump(dump) => self.dumps.get(*dump)?.entry.as_deref(),
            Item::Group(group) => self.dumps.get(*self.groups.get(*group)?.first()?)?.entry.as_deref(),
            Item::Log(_) => None,
        }
    }

    fn group_row(&self, group: usize) -> Row {
        let dumps = &self.groups[group];
        let first = self.dumps[dumps[0]].entry.as_deref();
        let last = dumps.last().and_then(|last| self.dumps[*last].entry.as_deref());
        let died = first.is_some_and(|entry| !matches!(entry.kind.as_str(), "recording" | "unreadable"));
        let what = first.map_or(String::new(), |entry| match entry.kind.as_str() {
            "recording" => "recordings without a crash".to_string(),
            "unreadable" => "files that are not dumps".to_string(),
            _ => entry.cause.clone(),
        });
        let cells = [
            if dumps.len() < 10_000 { dumps.len().to_string() } else { format!("{}k", dumps.len() / 1000) },
            first.filter(|_| died).map_or("–".to_string(), |entry| entry.signature.clone()),
            first.map(when).unwrap_or_default(),
            last.map(when).unwrap_or_default(),
            what,
        ];
        Row::of(Tone::Head, cells).tone(1, Tone::Code).tone(2, Tone::Dim).tone(3, Tone::Dim)
    }

    fn dump_row(&self, dump: usize) -> Row {
        let Listed { path, entry } = &self.dumps[dump];
        let name = path.rsplit('/').next().unwrap_or(path).to_string();
        let Some(entry) = entry else {
            let cells =
                [String::new(), "…".to_string(), String::new(), String::new(), "not read yet".to_string(), name];
            return Row::of(Tone::Dim, cells).tone(5, Tone::Plain);
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
        let signature =
            if entry.kind == "recording" || entry.kind == "unreadable" { "–" } else { entry.signature.as_str() };
        let cells =
            [String::new(), signature.to_string(), when(entry), String::new(), entry.cause.clone(), name, state];
        Row::of(tone, cells).tone(1, Tone::Dim).tone(2, Tone::Dim).tone(5, Tone::Code)
    }
}

fn time_key(dump: &Listed) -> (Option<i64>, Option<u32>, Option<u64>, &str) {
    let entry = dump.entry.as_deref();
    (
        entry.and_then(|entry| entry.wall_ns),
        entry.and_then(|entry| entry.boot),
        entry.and_then(|entry| entry.mono_ns),
        &dump.path,
    )
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

const COLUMNS: &[Column] = &[
    Column::number("n", 4, 2),
    Column::new("signature", 9, 4),
    Column::new("first", 9, 5),
    Column::new("last", 9, 6),
    Column::rest("what happened"),
    Column::new("file", 26, 1),
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
            Some(Item::Dump(dump)) => self.dump_row(*dump),
            Some(Item::Log(log)) => {
                let path = &self.logs[*log];
                let name = path.rsplit('/').next().unwrap_or(path).to_string();
                let cells = ["", "log", "", "", "a serial log: i makes dumps of it"].map(str::to_string);
                Row::of(Tone::Dim, cells.into_iter().chain([name])).tone(4, Tone::Link)
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
                count(self.groups[*group].len(), "dump of this crash", "dumps of this crash"),
            ));
        }
        lines.extend(self.path(index).map(|path| Line::of(Tone::Code, path)));
        let Some(entry) = self.entry(index) else {
            lines.push(Line::of(Tone::Dim, "is being read"));
            return lines;
        };
        lines.push(Line::of(Tone::Head, entry.cause.clone()));
        let mut fact = |name: &str, value: &str| {
            if !value.is_empty() {
                lines.push(Line::field(name, value));
            }
        };
        fact("kind", &entry.kind);
        fact("victim", &entry.victim);
        fact("place", &entry.place);
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
        let is = |item: &Item| matches!(item, Item::Dump(dump) if self.dumps[*dump].path == *wanted);
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
            1 => Key::Text(entry.signature.clone()),
            2 | 3 => Key::Number(entry.wall_ns.and_then(|ns| u64::try_from(ns).ok()).or(entry.mono_ns).unwrap_or(0)),
            4 => Key::Text(entry.cause.clone()),
            5 => Key::Text(entry.file.clone()),
            6 => Key::Number(entry.bytes),
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
            let kinds = self
                .groups
                .iter()
                .filter(|group| {
                    self.dumps[group[0]]
                        .entry
                        .as_ref()
                        .is_some_and(|entry| !matches!(entry.kind.as_str(), "recording" | "unreadable"))
                })
                .count();
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
