//! Pages: every page-table entry with its frame and what checks said of it, and all of them at once as a heat map.

use kwab::analysis::Context;
use kwab::analysis::audit::is_present;
use kwab::format::record::CheckResult;
use kwab::model::{Case, RecordRef};
use kwab::report::filter::FieldValue;

use super::{Column, Key, Link, Look, Row, Slot, Target, View, number, text};
use crate::text::{Line, address, grouped};
use crate::theme::Tone;

/// Page-table entries as rows.
pub struct PagesView {
    rows: Vec<Page>,
    /// How each row stands, close together: the map looks at all of them for every picture.
    heats: Vec<Heat>,
}

/// An entry, or a run of equal ones.
#[derive(Clone)]
struct Page {
    at: RecordRef,
    pid: Option<u32>,
    vaddr: u64,
    bytes: u64,
    raw: u64,
    paddr: Option<u64>,
    rights: Option<u32>,
    refcount: Option<u64>,
    levels: Vec<(u8, u64, u64)>,
    present: bool,
    heat: Heat,
    /// Which audit rule or check speaks of it.
    said: String,
    file: String,
}

/// How a page stands, worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Heat {
    Absent,
    Present,
    Equal,
    Dirty,
    Unreadable,
    Audit,
    Wrong,
}

impl Heat {
    const fn tone(self) -> Tone {
        match self {
            Self::Absent => Tone::Dim,
            Self::Present => Tone::Plain,
            Self::Equal => Tone::Good,
            Self::Dirty => Tone::Code,
            Self::Unreadable | Self::Audit => Tone::Care,
            Self::Wrong => Tone::Alarm,
        }
    }

    const fn cell(self) -> char {
        match self {
            Self::Absent => '·',
            Self::Present => '░',
            Self::Equal => '▒',
            Self::Dirty => '▓',
            Self::Unreadable => '?',
            Self::Audit => '!',
            Self::Wrong => '█',
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Absent => "not present",
            Self::Present => "present",
            Self::Equal => "as its file",
            Self::Dirty => "written to since",
            Self::Unreadable => "unreadable",
            Self::Audit => "violates a rule",
            Self::Wrong => "differs from its file",
        }
    }
}

impl PagesView {
    /// Joins entries, page checks and findings by process and address.
    #[must_use]
    pub fn new(ctx: &Context<'_, '_>) -> Self {
        let mut rows = entries(ctx.case);
        rows.sort_by_key(|row| (row.pid, row.vaddr));
        add_checks(&mut rows, ctx.case);
        rows.sort_by_key(|row| (row.pid, row.vaddr));
        for finding in &ctx.audit {
            if let Some(row) = finding.addr.and_then(|addr| find(&rows, finding.pid, addr)) {
                rows[row].heat = rows[row].heat.max(Heat::Audit);
                rows[row].said = format!("{}: {}", finding.rule, finding.title);
            }
        }
        for page in &ctx.pages {
            if let Some(row) = find(&rows, page.pid, page.vaddr) {
                rows[row].heat = Heat::Wrong;
                rows[row].said = format!("{}: {}", page.rule, page.content.describe());
            }
        }
        let heats = rows.iter().map(|row| row.heat).collect();
        Self { rows, heats }
    }
}

fn entries(case: &Case<'_>) -> Vec<Page> {
    let pages = case.ptes.iter().map(|pte| {
        let present = is_present(pte);
        let levels = pte.levels.iter().flat_map(kwab::format::List::iter);
        Page {
            at: pte.at,
            pid: pte.pid,
            vaddr: pte.vaddr.unwrap_or(0),
            bytes: pte.size.unwrap_or(4096).saturating_mul(pte.count.unwrap_or(1)),
            raw: pte.raw.unwrap_or(0),
            paddr: pte.paddr,
            rights: pte.rights,
            refcount: pte.refcount,
            levels: levels.map(|up| (up.level.unwrap_or(0), up.raw.unwrap_or(0), up.addr.unwrap_or(0))).collect(),
            present,
            heat: if present { Heat::Present } else { Heat::Absent },
            said: String::new(),
            file: String::new(),
        }
    });
    pages.collect()
}

fn find(rows: &[Page], pid: Option<u32>, addr: u64) -> Option<usize> {
    let at = rows.partition_point(|row| (row.pid, row.vaddr) <= (pid, addr)).checked_sub(1)?;
    let row = &rows[at];
    (row.pid == pid && addr < row.vaddr.saturating_add(row.bytes)).then_some(at)
}

/// Checks of pages; a page that was checked and has no entry becomes a row of its own.
fn add_checks(rows: &mut Vec<Page>, case: &Case<'_>) {
    let mut fresh = Vec::new();
    for check in &case.checks {
        let Some(vaddr) = check.vaddr else { continue };
        let heat = match check.result {
            Some(CheckResult::EQUAL) => Heat::Equal,
            Some(CheckResult::DIFFERENT) => Heat::Wrong,
            Some(CheckResult::DIRTY) => Heat::Dirty,
            _ => Heat::Unreadable,
        };
        let file = match (check.path, check.file_offset) {
            (Some(path), Some(offset)) => format!("{} +{offset:#x}", kwab::analysis::text(Some(path))),
            (path, _) => kwab::analysis::text(path),
        };
        match find(rows, check.pid, vaddr) {
            Some(row) => {
                rows[row].heat = rows[row].heat.max(heat);
                rows[row].file = file;
            }
            None => fresh.push(Page {
                at: check.at,
                pid: check.pid,
                vaddr,
                bytes: 4096,
                raw: 0,
                paddr: check.paddr,
                rights: None,
                refcount: None,
                levels: Vec::new(),
                present: true,
                heat,
                said: String::new(),
                file,
            }),
        }
    }
    rows.extend(fresh);
}

/// `rw-u ad`: write, execute, user; accessed, dirty, global, CoW.
fn rights(rights: u32) -> String {
    const LETTERS: [(u32, char); 7] = [(1, 'w'), (2, 'x'), (3, 'u'), (4, 'a'), (5, 'd'), (6, 'g'), (7, 'c')];
    LETTERS.iter().map(|(bit, letter)| if rights >> bit & 1 == 1 { *letter } else { '-' }).collect()
}

const COLUMNS: &[Column] = &[
    Column::new("page", 18, 0),
    Column::number("size", 8, 4),
    Column::new("rights", 7, 2),
    Column::new("frame", 18, 1),
    Column::number("refs", 5, 3),
    Column::rest("state"),
    Column::number("pid", 6, 5).incidental(),
];

impl View for PagesView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    /// The first page that is accused of something.
    fn first(&self) -> usize {
        self.heats.iter().position(|heat| matches!(heat, Heat::Audit | Heat::Wrong)).unwrap_or(0)
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, index: usize, _look: &Look) -> Row {
        let row = &self.rows[index];
        let state = if row.said.is_empty() { format!("{}  {}", row.heat.words(), row.file) } else { row.said.clone() };
        let cells = [
            address(row.vaddr),
            crate::text::memory(row.bytes),
            row.rights.map(rights).unwrap_or_default(),
            row.paddr.map(address).unwrap_or_default(),
            row.refcount.map(|count| count.to_string()).unwrap_or_default(),
            state,
            row.pid.map_or_else(|| "kernel".to_string(), |pid| pid.to_string()),
        ];
        Row::of(row.heat.tone(), cells).tone(0, Tone::Plain).tone(1, Tone::Dim).tone(6, Tone::Dim)
    }

    fn detail(&self, index: usize, _look: &Look) -> Vec<Line> {
        let row = &self.rows[index];
        let mut lines = vec![
            Line::of(Tone::Head, format!("page {}", address(row.vaddr))),
            Line::field("state", "").and(row.heat.tone(), row.heat.words()),
        ];
        if !row.said.is_empty() {
            lines.push(Line::of(Tone::Alarm, format!("⚠ {}", row.said)));
        }
        if !row.file.is_empty() {
            lines.push(Line::field("file", row.file.clone()));
        }
        lines.extend(row.paddr.map(|addr| Line::field("frame", address(addr))));
        lines.push(Line::field("entry", address(row.raw)));
        if let Some(bits) = row.rights {
            const WORDS: [&str; 8] =
                ["present", "writable", "executable", "user", "accessed", "dirty", "global", "CoW"];
            let set: Vec<&str> = (0..8).filter(|bit| bits >> bit & 1 == 1).map(|bit| WORDS[bit as usize]).collect();
            lines.push(Line::field("rights", set.join(" ")));
        }
        lines.extend(row.refcount.map(|count| Line::field("refs", count.to_string())));
        for (level, raw, at) in &row.levels {
            lines.push(
                Line::of(Tone::Dim, format!("level {level}   ")).and(Tone::Plain, format!("{raw:#018x} at {at:#x}")),
            );
        }
        lines
    }

    fn links(&self, index: usize, _look: &Look) -> Vec<Link> {
        let vaddr = self.rows[index].vaddr;
        vec![
            Link::new(format!("mapping of {vaddr:#x}"), Target::Mapping(vaddr)),
            Link::new(format!("bytes at {vaddr:#x}"), Target::Bytes(vaddr)),
        ]
    }

    fn target(&self, index: usize, _look: &Look) -> Option<Target> {
        Some(Target::Page(self.rows[index].vaddr))
    }

    fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Row(Slot::Pages, row) => Some(*row).filter(|row| *row < self.len()),
            Target::Record(at) => self.rows.iter().position(|row| row.at == *at),
            Target::Page(addr) => {
                self.rows.iter().position(|row| *addr >= row.vaddr && *addr - row.vaddr < row.bytes.max(1))
            }
            _ => None,
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        &["page", "frame", "refs", "pid", "state", "present", "file"]
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        let row = &self.rows[index];
        match name {
            "page" => number(row.vaddr),
            "frame" => number(row.paddr?),
            "refs" => number(row.refcount?),
            "pid" => number(row.pid?),
            "state" => text(row.heat.words()),
            "present" => text(if row.present { "yes" } else { "no" }),
            "file" => text(row.file.clone()),
            _ => None,
        }
    }

    fn key(&self, index: usize, column: usize) -> Option<Key> {
        let row = &self.rows[index];
        Some(match column {
            1 => Key::Number(row.bytes),
            3 => row.paddr.map_or(Key::Nothing, Key::Number),
            4 => row.refcount.map_or(Key::Nothing, Key::Number),
            5 => Key::Number(row.heat as u64),
            6 => row.pid.map_or(Key::Nothing, |pid| Key::Number(pid.into())),
            _ => Key::Number(row.vaddr),
        })
    }

    fn alike(&self, index: usize) -> String {
        address(self.rows[index].vaddr)
    }

    fn command(&self, dump: &str) -> String {
        format!("kwab audit-vm {dump}")
    }

    fn when_empty(&self) -> String {
        "no page-table entries and no page checks in this dump: boot with debug=audit,verify to record them".to_string()
    }

    fn picture_height(&self, width: u16) -> usize {
        self.rows.len().div_ceil(usize::from(width.max(1))) + 2
    }

    fn row_at(&self, at: (u16, u16), _selected: usize, _look: &Look, size: (u16, u16)) -> Option<usize> {
        let (width, height) = (usize::from(size.0), usize::from(size.1));
        let line = usize::from(at.1).checked_sub(1)?;
        let each = self.rows.len().div_ceil(width * height.checked_sub(2)?.max(1)).max(1);
        Some((line * width + usize::from(at.0)) * each).filter(|row| *row < self.rows.len())
    }

    /// Each cell stands for equally many pages in order of address, the worst of them deciding what is shown.
    fn picture(&self, selected: usize, _look: &Look, width: u16, height: u16) -> Vec<Line> {
        let (width, height) = (usize::from(width), usize::from(height));
        if height < 3 || width < 8 || self.rows.is_empty() {
            return Vec::new();
        }
        let cells = width * (height - 2);
        let each = self.rows.len().div_ceil(cells);
        let mut lines = vec![Line::of(
            Tone::Dim,
            format!(
                "{} pages, {} in a cell  ░ present  ▒ as its file  ▓ written  █ wrong  ! rule  · absent",
                grouped(self.rows.len() as u64),
                grouped(each as u64)
            ),
        )];
        let mut line = Line::default();
        for (cell, pages) in self.heats.chunks(each).enumerate() {
            let worst = pages.iter().copied().max().unwrap_or(Heat::Absent);
            let here = selected / each == cell;
            line.pieces.push((if here { Tone::Selected } else { worst.tone() }, worst.cell().to_string()));
            if line.pieces.len() == width {
                lines.push(std::mem::take(&mut line));
            }
        }
        if !line.pieces.is_empty() {
            lines.push(line);
        }
        lines
    }
}
