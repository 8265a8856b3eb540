//! The memory map: mappings with protection and backing, what is wrong with them, and a picture of the address space.

use std::collections::BTreeMap;

use kwab::analysis::Context;
use kwab::analysis::audit::Finding;
use kwab::analysis::verify::WrongPage;
use kwab::format::record::Vma;
use kwab::model::{Case, Located, RecordRef};
use kwab::report::filter::FieldValue;

use super::coverage::Coverage;
use super::{Column, Link, Look, Row, Slot, Target, View, number, text};
use crate::text::{Line, address, memory, pad};
use crate::theme::Tone;

/// Mappings as rows.
pub struct MappingsView {
    rows: Vec<Mapping>,
}

struct Mapping {
    at: RecordRef,
    pid: Option<u32>,
    start: u64,
    end: u64,
    prot: String,
    name: String,
    offset: Option<u64>,
    /// Pages that page-table entries or the dump itself call present.
    resident: Option<u64>,
    captured: u64,
    /// The first captured address, and the first page with an entry.
    first_byte: Option<u64>,
    first_page: Option<u64>,
    wrong: Vec<String>,
    fault: bool,
    ip: bool,
}

/// Bit 0 read, bit 1 write, bit 2 execute.
pub(super) fn protection(prot: u32) -> String {
    [(1, 'r'), (2, 'w'), (4, 'x')].iter().map(|(bit, letter)| if prot & bit != 0 { *letter } else { '-' }).collect()
}

impl MappingsView {
    /// All mappings of the dump, those of the dead process first, with what audit and page checks say about them.
    #[must_use]
    pub fn new(ctx: &Context<'_, '_>) -> Self {
        let captured = captured(ctx.case);
        let mut rows: Vec<Mapping> = ctx.case.vmas.iter().map(|vma| mapping(vma, ctx, &captured)).collect();
        let dead = ctx.death.pid;
        rows.sort_by_key(|row| (row.pid != dead, row.pid, row.start));
        for finding in &ctx.audit {
            mark(&mut rows, finding);
        }
        mark_pages(&mut rows, &ctx.pages);
        count_resident(&mut rows, ctx.case);
        Self { rows }
    }
}

/// What was captured of each process.
fn captured(case: &Case<'_>) -> BTreeMap<Option<u32>, Coverage> {
    let mut ranges: BTreeMap<Option<u32>, Vec<(u64, u64)>> = BTreeMap::new();
    for memory in &case.memory {
        if let (Some(addr), Some(bytes)) = (memory.vaddr, memory.bytes) {
            ranges.entry(memory.pid).or_default().push((addr, addr.saturating_add(bytes.len() as u64)));
        }
    }
    ranges.into_iter().map(|(pid, ranges)| (pid, Coverage::of(ranges))).collect()
}

fn mapping(vma: &Located<Vma<'_>>, ctx: &Context<'_, '_>, captured: &BTreeMap<Option<u32>, Coverage>) -> Mapping {
    let (start, end) = (vma.start.unwrap_or(0), vma.end.unwrap_or(0));
    let dying = vma.pid.is_none() || ctx.death.pid.is_none() || vma.pid == ctx.death.pid;
    let holds = |addr: Option<u64>| dying && addr.is_some_and(|addr| (start..end).contains(&addr));
    let said = vma.path.filter(|path| !path.is_empty()).or(vma.name);
    let own = if vma.pid.is_some() { captured.get(&vma.pid) } else { None };
    let seen = || captured.get(&None).into_iter().chain(own);
    Mapping {
        at: vma.at,
        pid: vma.pid,
        start,
        end,
        prot: vma.prot.map_or_else(|| "???".to_string(), protection),
        name: said.map_or_else(|| "[anon]".to_string(), |name| kwab::analysis::text(Some(name))),
        offset: vma.file_offset.filter(|_| vma.path.is_some_and(|path| !path.is_empty())),
        resident: vma.resident,
        captured: seen().fold(0, |sum, seen| sum.saturating_add(seen.bytes(start, end))),
        first_byte: seen().filter_map(|seen| seen.first(start, end)).min(),
        first_page: None,
        wrong: Vec::new(),
        fault: holds(ctx.death.fault_addr),
        ip: holds(ctx.death.ip),
    }
}

fn mark(rows: &mut [Mapping], finding: &Finding) {
    let Some(addr) = finding.addr else { return };
    let same = |row: &&mut Mapping| finding.pid.is_none() || row.pid.is_none() || row.pid == finding.pid;
    for row in rows.iter_mut().filter(same).filter(|row| (row.start..row.end).contains(&addr)) {
        row.wrong.push(format!("{}: {}", finding.rule, finding.title));
    }
}

/// `1 page`, `281 pages`.
fn of_pages(number: u64) -> String {
    kwab::units::count(number, "page", "pages")
}

/// Notes wrong pages in the mappings that hold them. Of mappings that overlap each other the first get the notes: a
/// dump in which every mapping holds every page would take memory for each pair.
fn mark_pages(rows: &mut [Mapping], pages: &[WrongPage]) {
    let mut by_process: BTreeMap<Option<u32>, Vec<&WrongPage>> = BTreeMap::new();
    for page in pages {
        by_process.entry(page.pid).or_default().push(page);
    }
    for of_process in by_process.values_mut() {
        of_process.sort_by_key(|page| page.vaddr);
    }
    let mut room = 4 * pages.len();
    for row in rows {
        let Some(of_process) = by_process.get(&row.pid) else { continue };
        let first = of_process.partition_point(|page| page.vaddr < row.start);
        let held = of_process[first..].iter().take_while(|page| page.vaddr < row.end).take(room);
        let before = row.wrong.len();
        let said =
            |page: &&WrongPage| format!("{}: page {:#x} holds {}", page.rule, page.vaddr, page.content.describe());
        row.wrong.extend(held.map(said));
        room -= row.wrong.len() - before;
    }
}

fn count_resident(rows: &mut [Mapping], case: &Case<'_>) {
    if case.ptes.is_empty() {
        return;
    }
    let mut pages: Vec<(Option<u32>, u64)> = case.ptes.iter().filter_map(|pte| Some((pte.pid, pte.vaddr?))).collect();
    pages.sort_unstable();
    for row in rows.iter_mut() {
        let first = pages.get(pages.partition_point(|page| *page < (row.pid, row.start)));
        row.first_page = first.filter(|(pid, addr)| *pid == row.pid && *addr < row.end).map(|(_, addr)| *addr);
    }
    let mut runs: BTreeMap<Option<u32>, Vec<(u64, u64)>> = BTreeMap::new();
    for pte in case.ptes.iter().filter(|pte| kwab::analysis::audit::is_present(pte)) {
        let Some(addr) = pte.vaddr else { continue };
        let bytes = pte.size.unwrap_or(4096).saturating_mul(pte.count.unwrap_or(1));
        runs.entry(pte.pid).or_default().push((addr, addr.saturating_add(bytes)));
    }
    let present: BTreeMap<Option<u32>, Coverage> =
        runs.into_iter().map(|(pid, runs)| (pid, Coverage::of(runs))).collect();
    for row in rows.iter_mut().filter(|row| row.resident.is_none()) {
        let bytes = present.get(&row.pid).map_or(0, |present| present.bytes(row.start, row.end));
        row.resident = Some(bytes / 4096);
    }
}

impl Mapping {
    fn pages(&self) -> u64 {
        self.end.saturating_sub(self.start).div_ceil(4096)
    }

    fn notes(&self) -> String {
        let mut notes = Vec::new();
        if self.fault {
            notes.push("← fault".to_string());
        }
        if self.ip {
            notes.push("← ip".to_string());
        }
        if let Some(first) = self.wrong.first() {
            let rule = first.split(':').next().unwrap_or_default();
            let more = if self.wrong.len() > 1 { format!(" +{}", self.wrong.len() - 1) } else { String::new() };
            notes.push(format!("⚠ {rule}{more}"));
        }
        notes.join(" ")
    }

    fn tone(&self) -> Tone {
        match () {
            () if !self.wrong.is_empty() => Tone::Alarm,
            () if self.fault || self.ip => Tone::Care,
            () => Tone::Plain,
        }
    }

    /// Its pages as cells: how many of them are present, as far as is known.
    fn cells(&self, width: usize) -> String {
        let pages = self.pages();
        // Small mappings get a cell per page, large ones share the width by logarithm.
        let wide = usize::try_from(pages).unwrap_or(usize::MAX).min(8 + (pages as f64).log2().max(0.0) as usize * 3);
        let wide = wide.clamp(1, width.max(1));
        match self.resident {
            None => "▒".repeat(wide),
            Some(resident) => {
                let full = (resident.min(pages) as f64 / pages.max(1) as f64 * wide as f64).ceil() as usize;
                format!("{}{}", "█".repeat(full.min(wide)), "░".repeat(wide - full.min(wide)))
            }
        }
    }
}

const COLUMNS: &[Column] = &[
    Column::new("start", 18, 0),
    Column::new("end", 18, 4),
    Column::new("prot", 4, 0),
    Column::number("size", 9, 2),
    Column::number("pages", 7, 6),
    Column::rest("what"),
    Column::new("", 18, 1),
    Column::number("pid", 6, 5).incidental(),
];

impl View for MappingsView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, index: usize, _look: &Look) -> Row {
        let row = &self.rows[index];
        let offset = row.offset.map_or(String::new(), |offset| format!(" +{offset:#x}"));
        let cells = [
            address(row.start),
            address(row.end),
            row.prot.clone(),
            memory(row.end.saturating_sub(row.start)),
            row.resident.map_or(String::new(), |pages| pages.to_string()),
            format!("{}{offset}", row.name),
            row.notes(),
            row.pid.map_or(String::new(), |pid| pid.to_string()),
        ];
        Row::of(row.tone(), cells).tone(3, Tone::Dim).tone(7, Tone::Dim)
    }

    fn detail(&self, index: usize, _look: &Look) -> Vec<Line> {
        let row = &self.rows[index];
        let mut lines = vec![
            Line::of(Tone::Head, row.name.clone()),
            Line::field("range", format!("{}-{}", address(row.start), address(row.end))),
            Line::field("size", format!("{} in {}", memory(row.end.saturating_sub(row.start)), of_pages(row.pages()))),
            Line::field("rights", row.prot.clone()),
        ];
        lines.extend(row.offset.map(|offset| Line::field("file", format!("{} from {offset:#x}", row.name))));
        lines.extend(row.resident.map(|present| Line::field("present", of_pages(present))));
        lines.extend(row.pid.map(|pid| Line::field("process", pid.to_string())));
        let captured = if row.captured > 0 {
            format!("{} (↵ shows them)", memory(row.captured))
        } else {
            "no bytes".to_string()
        };
        lines.push(Line::field("captured", captured));
        if row.fault {
            lines.push(Line::of(Tone::Care, "the address whose access failed lies here"));
        }
        lines.extend(row.wrong.iter().map(|wrong| Line::of(Tone::Alarm, format!("⚠ {wrong}"))));
        lines
    }

    fn links(&self, index: usize, _look: &Look) -> Vec<Link> {
        let row = &self.rows[index];
        let bytes = row.first_byte.map(|addr| Link::new(format!("bytes at {addr:#x}"), Target::Bytes(addr)));
        let pages = row.first_page.map(|addr| Link::new(format!("pages from {addr:#x}"), Target::Page(addr)));
        bytes.into_iter().chain(pages).collect()
    }

    fn target(&self, index: usize, _look: &Look) -> Option<Target> {
        Some(Target::Mapping(self.rows[index].start))
    }

    fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Row(Slot::Mappings, row) => Some(*row).filter(|row| *row < self.len()),
            Target::Record(at) => self.rows.iter().position(|row| row.at == *at),
            Target::Mapping(addr) | Target::Page(addr) | Target::Bytes(addr) => {
                self.rows.iter().position(|row| (row.start..row.end).contains(addr))
            }
            _ => None,
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        &["start", "end", "prot", "size", "pages", "name", "pid", "wrong"]
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        let row = &self.rows[index];
        match name {
            "start" => number(row.start),
            "end" => number(row.end),
            "prot" => text(row.prot.clone()),
            "size" => number(row.end.saturating_sub(row.start)),
            "pages" => number(row.resident?),
            "name" => text(row.name.clone()),
            "pid" => number(row.pid?),
            "wrong" => text(if row.wrong.is_empty() { "no".to_string() } else { row.wrong.join(" ") }),
            _ => None,
        }
    }

    fn key(&self, index: usize, column: usize) -> Option<super::Key> {
        use super::Key;
        let row = &self.rows[index];
        Some(match column {
            3 => Key::Number(row.end.saturating_sub(row.start)),
            4 => row.resident.map_or(Key::Nothing, Key::Number),
            2 => Key::Text(row.prot.clone()),
            5 => Key::Text(row.name.clone()),
            6 => Key::Number(row.wrong.len() as u64),
            7 => row.pid.map_or(Key::Nothing, |pid| Key::Number(pid.into())),
            _ => Key::Number(row.start),
        })
    }

    /// Images move; what is mapped from where stays.
    fn alike(&self, index: usize) -> String {
        let row = &self.rows[index];
        format!("{} {:?} {}", row.name, row.offset, row.prot)
    }

    fn command(&self, dump: &str) -> String {
        format!("kwab inspect {dump} --section vmas")
    }

    fn when_empty(&self) -> String {
        "no memory map in this dump: the kernel records one when a process dies, or with debug=process".to_string()
    }

    fn picture_height(&self, _width: u16) -> usize {
        self.rows.len() + 1
    }

    fn picture(&self, selected: usize, _look: &Look, width: u16, height: u16) -> Vec<Line> {
        let height = usize::from(height);
        if height < 3 || self.rows.is_empty() {
            return Vec::new();
        }
        let shown = (height - 1).min(self.rows.len());
        let first = selected.saturating_sub(shown / 2).min(self.rows.len() - shown);
        let mut lines = vec![Line::of(
            Tone::Dim,
            "address space: █ present  ░ not present  ▒ not known (each cell a page, long ones shortened)",
        )];
        for (index, row) in self.rows.iter().enumerate().skip(first).take(shown) {
            let name = row.name.rsplit('/').next().unwrap_or(&row.name);
            let mark = if index == selected { "▸" } else { " " };
            let label = format!("{mark}{} {} ", pad(name, 14, false), row.prot);
            let cells = row.cells(usize::from(width).saturating_sub(label.chars().count() + 20));
            let line = Line::of(if index == selected { Tone::Head } else { Tone::Dim }, label).and(row.tone(), cells);
            lines.push(line.and(Tone::Care, format!(" {}", row.notes())));
        }
        lines
    }
}
