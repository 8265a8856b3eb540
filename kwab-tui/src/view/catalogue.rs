//! Every dump under the given paths: those of the same bug together, damaged ones with what is wrong, logs to import.

use std::collections::BTreeSet;
use std::sync::Arc;

use kwab::report::catalogue::{Arranged, CatalogueEntry, FIELDS, Finding, Rank, arrange, last_of};
use kwab::report::filter::{FieldValue, Fields as _};

pub use super::folds::Folds;
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
    /// What is known of each group beside its arrangement.
    known: Vec<Known>,
    grouped: bool,
    scanning: bool,
}

/// What rows of a group say of all its dumps.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// The row of its heading, or of its only dump.
    row: usize,
    /// The dump that happened last.
    last: Option<usize>,
    /// Dumps that are damaged.
    damaged: usize,
    /// Whether only the heading is shown.
    is_folded: bool,
}

/// The name of a group, in this list and the next.
fn name_of(group: &Arranged) -> String {
    format!("{:?} {}", group.rank, group.key)
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
    /// A dump under the heading of its group: dump and group.
    Member(usize, usize),
    Log(usize),
}

impl CatalogueView {
    /// Lays out what was found; with `folds` dumps of the same bug are together, the most frequent first.
    #[must_use]
    pub fn new(dumps: Vec<Listed>, logs: Vec<String>, folds: Option<&Folds>, scanning: bool) -> Self {
        let mut view = Self { dumps, logs, grouped: folds.is_some(), scanning, ..Self::default() };
        match folds {
            Some(folds) => view.group(folds),
            None => view.items.extend((0..view.dumps.len()).map(Item::Dump)),
        }
        view.items.extend((0..view.logs.len()).map(Item::Log));
        view
    }

    fn group(&mut self, folds: &Folds) {
        let known = self.dumps.iter().enumerate().filter_map(|(index, dump)| Some((index, dump.entry.as_deref()?)));
        let (indices, entries): (Vec<usize>, Vec<&CatalogueEntry>) = known.unzip();
        let mut groups = arrange(&entries);
        for group in &mut groups {
            let members = group.members.iter().filter_map(|member| indices.get(*member).copied());
            group.members = members.collect();
            let of = |member: &usize| self.dumps.get(*member)?.entry.as_deref();
            let all = group.members.iter().filter_map(of);
            let last = last_of(all.clone()).map(|last| &last.file);
            let known = Known {
                row: self.items.len(),
                last: group.members.iter().copied().find(|member| of(member).map(|entry| &entry.file) == last),
                damaged: all.filter(|entry| !entry.sound).count(),
                is_folded: folds.is_folded(&name_of(group), group.members.len()),
            };
            // One dump alone needs no heading.
            match group.members.as_slice() {
                [alone] => self.items.push(Item::Dump(*alone)),
                members => {
                    let number = self.groups.len();
                    self.items.push(Item::Group(number));
                    let shown = members.iter().filter(|_| !known.is_folded);
                    self.items.extend(shown.map(|member| Item::Member(*member, number)));
                }
            }
            self.known.push(known);
            self.groups.push(group.clone());
        }
        let unread = self.dumps.iter().enumerate().filter(|(_, dump)| dump.entry.is_none());
        self.items.extend(unread.map(|(index, _)| Item::Dump(index)));
    }

    /// The group of a row, and the row of its heading; `None` for a dump alone.
    #[must_use]
    pub fn group_of(&self, index: usize) -> Option<(String, usize)> {
        let (Item::Group(group) | Item::Member(_, group)) = self.items.get(index)? else { return None };
        Some((name_of(self.groups.get(*group)?), self.known.get(*group)?.row))
    }

    /// The paths of the dumps of a row: all of a group.
    #[must_use]
    pub fn paths(&self, index: usize) -> Vec<&str> {
        match self.items.get(index) {
            Some(Item::Group(group)) => {
                let members = self.groups[*group].members.iter();
                members.filter_map(|member| Some(self.dumps.get(*member)?.path.as_str())).collect()
            }
            _ => self.path(index).into_iter().collect(),
        }
    }

    /// The path of the dump of a row.
    #[must_use]
    pub fn path(&self, index: usize) -> Option<&str> {
        match self.items.get(index)? {
            Item::Dump(dump) | Item::Member(dump, _) => Some(&self.dumps.get(*dump)?.path),
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
            Item::Dump(dump) | Item::Member(dump, _) => self.dumps.get(*dump)?.entry.as_deref(),
            Item::Group(group) => self.dumps.get(*self.groups.get(*group)?.members.first()?)?.entry.as_deref(),
            Item::Log(_) => None,
        }
    }

    fn group_row(&self, group: usize) -> Row {
        let Arranged { rank, finding, count, members, .. } = &self.groups[group];
        let known = &self.known[group];
        let entry = |member: usize| self.dumps.get(member)?.entry.as_deref();
        let first = members.first().and_then(|first| entry(*first));
        let last = known.last.and_then(entry);
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
            format!(
                "{} {}",
                if known.is_folded { "▸" } else { "▾" },
                crate::text::count(members.len(), "dump", "dumps")
            ),
            match known.damaged {
                0 => "sound".to_string(),
                damaged => format!("⚠ {damaged} of {}", members.len()),
            },
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
            _ => "sound".to_string(),
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
            bytes(entry.bytes),
        ];
        Row::of(tone, cells).tone(1, Tone::Dim).tone(2, Tone::Dim).tone(6, Tone::Dim).tone(FILE, Tone::Code)
    }

    /// What a row is sorted by: the values of its group, so that a group stays together in every order.
    fn lead(&self, index: usize) -> Option<Lead<'_>> {
        let entry = |dump: usize| self.dumps.get(dump)?.entry.as_deref();
        match self.items.get(index)? {
            Item::Dump(dump) => {
                let first = entry(*dump)?;
                let damaged = if first.sound { 0 } else { first.defects.max(1) };
                Some(Lead { first, last: first, finding: likely(first), count: 1, damaged })
            }
            Item::Group(group) | Item::Member(_, group) => {
                let (arranged, known) = (self.groups.get(*group)?, self.known.get(*group)?);
                let first = entry(*arranged.members.first()?)?;
                let last = known.last.and_then(entry).unwrap_or(first);
                let finding = arranged.finding.as_ref();
                Some(Lead { first, last, finding, count: arranged.count, damaged: known.damaged })
            }
            Item::Log(_) => None,
        }
    }
}

/// What rows of a bug are sorted by.
struct Lead<'v> {
    first: &'v CatalogueEntry,
    last: &'v CatalogueEntry,
    finding: Option<&'v Finding>,
    count: usize,
    damaged: usize,
}

/// The moment of a dump, for sorting: by the wall clock, else since boot.
fn moment(entry: &CatalogueEntry) -> Key {
    Key::Number(entry.wall_ns.and_then(|ns| u64::try_from(ns).ok()).or(entry.mono_ns).unwrap_or(0))
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
    Column::new("state", 11, 3),
    Column::number("size", 8, 10),
];

impl View for CatalogueView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    fn has_column(&self, column: usize) -> bool {
        let entries = || self.dumps.iter().filter_map(|dump| dump.entry.as_deref());
        match column {
            0 | 7 => self.groups.iter().any(|group| group.members.len() > 1),
            5 => entries().any(|entry| !entry.process.is_empty()),
            _ => true,
        }
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    fn row(&self, index: usize, _look: &Look) -> Row {
        match self.items.get(index) {
            Some(Item::Group(group)) => self.group_row(*group),
            Some(Item::Dump(dump)) => self.dump_row(*dump, true),
            Some(Item::Member(dump, _)) => self.dump_row(*dump, false),
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
            let Arranged { members, count: deaths, .. } = &self.groups[*group];
            let line = Line::of(Tone::Care, count(members.len(), "dump of this bug", "dumps of this bug"));
            let deaths = if *deaths == members.len() {
                String::new()
            } else {
                format!(", of {}", count(*deaths, "death", "deaths"))
            };
            lines.push(line.and(Tone::Care, deaths));
            let kernels = members.iter().filter_map(|member| Some(self.dumps[*member].entry.as_ref()?.kernel.as_str()));
            let kernels: BTreeSet<&str> = kernels.filter(|kernel| !kernel.is_empty()).collect();
            lines.extend(kernels.into_iter().map(|kernel| Line::field("kernel", kernel)));
        }
        lines.extend(self.path(index).map(|path| Line::of(Tone::Code, path)));
        let Some(entry) = self.entry(index) else {
            lines.push(Line::of(Tone::Dim, "is being read"));
            return lines;
        };
        if let Some(found) = &entry.finding {
            let proven = if found.proven { "proven" } else { "not proven" };
            let rule = rule(Some(found));
            // The rule stands in front already.
            let claim = found.claim.strip_suffix(&format!(" [{rule}]")).unwrap_or(&found.claim);
            let text = format!("{:.2} {rule}, {proven}: {claim}", found.score);
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
        let is = |dump: &usize| self.dumps[*dump].path == *wanted;
        let shows = |item: &Item| matches!(item, Item::Dump(dump) | Item::Member(dump, _) if is(dump));
        let holds = |item: &Item| matches!(item, Item::Group(group) if self.groups[*group].members.iter().any(is));
        // A dump of a folded group is behind its heading.
        self.items.iter().position(shows).or_else(|| self.items.iter().position(holds))
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
        let Lead { first, last, finding, count, damaged } = self.lead(index)?;
        Some(match column {
            0 => Key::Number(count as u64),
            1 => Key::Number(finding.map_or(0, |found| (found.score * 1000.0) as u64)),
            2 => Key::Text(rule(finding).to_string()),
            3 => Key::Text(finding.map_or_else(|| first.cause.clone(), |found| found.claim.clone())),
            4 => Key::Text(place(finding, first)),
            5 => Key::Text(first.process.clone()),
            6 => moment(first),
            7 => moment(last),
            FILE => Key::Text(first.file.clone()),
            9 => Key::Number(damaged as u64),
            _ => Key::Number(first.bytes),
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
