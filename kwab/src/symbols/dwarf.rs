//! Reads DWARF into flat tables: which inline chain, file and line every address belongs to.
//!
//! Units are read by several threads and merged in the order of the file, so that the result does not depend on timing.
//! What a unit does not say properly costs that unit only; it is counted in [`Tables::bad_units`].

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use gimli::{AttributeValue, DwAt, EndianSlice, LittleEndian, UnitOffset, UnitRef};

use super::layout::NONE;
use super::names::{self, demangle};
use super::split::{self, SplitFiles};
use super::units::Units;
use super::version::{Md5, marked};

/// The bytes of a section.
pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A function, or a call that was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The node it is inlined into; [`NONE`] for a physical function.
    pub(super) parent: u32,
    /// Its name, a string.
    pub(super) function: u32,
    /// File of the call that was inlined, a string.
    pub(super) call_file: u32,
    /// Line of that call; 0 is unknown.
    pub(super) call_line: u32,
}

/// A run of addresses with the same node and line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// First address of the range, as linked.
    pub(super) start: u64,
    /// Address behind the last.
    pub(super) end: u64,
    /// Index of the innermost function or inlined call of these addresses.
    pub(super) node: u32,
    /// File, a string.
    pub(super) file: u32,
    /// Line; 0 is unknown.
    pub(super) line: u32,
}

/// Strings, each once.
#[derive(Debug, Default)]
pub(super) struct Strings {
    ids: HashMap<String, u32>,
    list: Vec<String>,
}

impl Strings {
    /// The number of a string.
    pub(super) fn intern(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = u32::try_from(self.list.len()).unwrap_or(NONE);
        self.ids.insert(text.to_owned(), id);
        self.list.push(text.to_owned());
        id
    }

    /// All of them, in order of number.
    pub(super) fn list(&self) -> &[String] {
        &self.list
    }
}

/// Everything that the DWARF of an image says about addresses.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Sorted, not overlapping.
    pub(super) segments: Vec<Segment>,
    /// Parents come before their children.
    pub(super) nodes: Vec<Node>,
    /// Names and paths.
    pub(super) strings: Strings,
    /// Units that could not be read to their end.
    pub(super) bad_units: usize,
    /// Those of them that would have cost too much, or stand behind one that did.
    pub(super) left_out: usize,
    /// Units whose skeleton only was found.
    pub(super) missing: usize,
}

/// What a row, a range of addresses, a node and a string take beside its text.
const ROW: u64 = 2 * size_of::<Segment>() as u64;
const SPAN: u64 = 2 * size_of::<Segment>() as u64;
const NODE: u64 = 2 * size_of::<Node>() as u64;
const TEXT: u64 = 16;
/// What a worker takes out of the allowance at once.
const AT_ONCE: u64 = 1 << 16;

/// What is known of an image besides its DWARF.
pub(super) struct AroundDwarf<'a> {
    /// Bytes of its file.
    pub(super) length: u64,
    /// Checksums of source files, by path.
    pub(super) sums: HashMap<String, Md5>,
    /// Whether an address is in its code; others are ignored (functions the linker dropped).
    pub(super) in_code: &'a (dyn Fn(u64) -> bool + Sync),
    /// Its path, beside which its units may lie; `None` of one that is in no file.
    pub(super) path: Option<&'a Path>,
}

/// Reads all units of `dwarf`.
pub(super) fn collect(dwarf: gimli::Dwarf<Slice<'_>>, around: &AroundDwarf<'_>) -> Tables {
    let units = Units::of(dwarf, around.length);
    let apart = SplitFiles::of(around.path, units.skeletons(), around.length);
    let mut units = match &apart {
        Some(files) => units.with_splits(files.with(|bytes| Slice::new(bytes, LittleEndian)), files.length),
        None => units,
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8).min(units.len().max(1));
    let mut parts = read_all(&units, threads, around);
    if units.is_spent() {
        // Which units cost too much depends on which came first: one worker takes them in the order of the file.
        drop(parts);
        units.reset();
        parts = read_all(&units, 1, around);
    }
    parts.sort_by_key(|(index, _)| *index);
    let mut tables = merge(parts.into_iter().map(|(_, part)| part));
    tables.left_out = if units.is_spent() { tables.bad_units.max(1) } else { 0 };
    tables.missing = apart.as_ref().map_or(0, |files| files.missing);
    tables
}

fn read_all(units: &Units<Slice<'_>>, threads: usize, around: &AroundDwarf<'_>) -> Vec<(usize, UnitTables)> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(units, &next, around))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    })
}

fn work(units: &Units<Slice<'_>>, next: &AtomicUsize, around: &AroundDwarf<'_>) -> Vec<(usize, UnitTables)> {
    let (mut names, mut purse) = (HashMap::new(), 0);
    let mut done = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= units.len() {
            return done;
        }
        let (files, out) = (HashMap::new(), UnitTables::default());
        let mut reader = UnitReader { units, index, around, names: &mut names, purse: &mut purse, files, out };
        if reader.read().is_err() {
            reader.out.bad = true;
        }
        reader.out.flatten();
        done.push((index, reader.out));
    }
}

fn merge(parts: impl Iterator<Item = UnitTables>) -> Tables {
    let mut all = Tables::default();
    for part in parts {
        let strings: Vec<u32> = part.strings.list().iter().map(|text| all.strings.intern(text)).collect();
        let string = |id: u32| strings.get(id as usize).copied().unwrap_or(NONE);
        let first = u32::try_from(all.nodes.len()).unwrap_or(NONE);
        let node = |id: u32| if id == NONE { NONE } else { first.saturating_add(id) };
        all.nodes.extend(part.nodes.iter().map(|n| Node {
            parent: node(n.parent),
            function: string(n.function),
            call_file: string(n.call_file),
            call_line: n.call_line,
        }));
        all.segments.extend(part.segments.iter().map(|s| Segment { node: node(s.node), file: string(s.file), ..*s }));
        all.bad_units += usize::from(part.bad);
    }
    all.segments.sort_by_key(|segment| segment.start);
    clip(&mut all.segments);
    all
}

/// Makes sorted segments disjoint, the earlier one winning, and joins equal neighbours.
fn clip(segments: &mut Vec<Segment>) {
    let mut kept: Vec<Segment> = Vec::with_capacity(segments.len());
    for mut segment in segments.drain(..) {
        if let Some(last) = kept.last_mut() {
            segment.start = segment.start.max(last.end);
            let same = (last.node, last.file, last.line) == (segment.node, segment.file, segment.line);
            if same && last.end == segment.start && segment.end > segment.start {
                last.end = segment.end;
                continue;
            }
        }
        if segment.start < segment.end {
            kept.push(segment);
        }
    }
    *segments = kept;
}

/// What one unit says, with its own numbering.
#[derive(Default)]
struct UnitTables {
    nodes: Vec<Node>,
    strings: Strings,
    spans: Vec<Span>,
    lines: Vec<Segment>,
    segments: Vec<Segment>,
    bad: bool,
}

/// Addresses of a node before nesting is resolved.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    end: u64,
    level: u32,
    node: u32,
}

impl UnitTables {
    fn flatten(&mut self) {
        let spans = flatten_spans(std::mem::take(&mut self.spans));
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_by_key(|line| line.start);
        clip(&mut lines);
        self.segments = overlay(&spans, &lines);
    }
}

/// Turns nested spans into disjoint ones that carry the innermost node.
fn flatten_spans(mut spans: Vec<Span>) -> Vec<Segment> {
    spans.sort_by_key(|span| (span.start, span.level));
    let mut out = Vec::with_capacity(spans.len() * 2);
    let mut open: Vec<Span> = Vec::new();
    let mut at = 0;
    let emit = |start: u64, end: u64, node: u32, out: &mut Vec<Segment>| {
        if start < end {
            out.push(Segment { start, end, node, file: NONE, line: 0 });
        }
    };
    for mut span in spans {
        while let Some(top) = open.last().copied().filter(|top| top.end <= span.start) {
            emit(at, top.end, top.node, &mut out);
            at = at.max(top.end);
            open.pop();
        }
        if let Some(top) = open.last() {
            emit(at, span.start, top.node, &mut out);
            span.end = span.end.min(top.end);
        }
        at = at.max(span.start);
        open.push(span);
    }
    while let Some(top) = open.pop() {
        emit(at, top.end, top.node, &mut out);
        at = at.max(top.end);
    }
    out
}

/// Joins function spans and line rows, both disjoint and sorted, into segments that carry both.
fn overlay(spans: &[Segment], lines: &[Segment]) -> Vec<Segment> {
    let mut out = Vec::with_capacity(spans.len() + lines.len());
    let (mut s, mut l, mut at) = (0, 0, 0);
    while s < spans.len() || l < lines.len() {
        let span = spans.get(s).filter(|span| span.start <= at);
        let line = lines.get(l).filter(|line| line.start <= at);
        let stops = [spans.get(s), lines.get(l)].into_iter().flatten();
        let Some(end) = stops.flat_map(|seg| [seg.start, seg.end]).filter(|&stop| stop > at).min() else { break };
        if span.is_some() || line.is_some() {
            let (file, number) = line.map_or((NONE, 0), |line| (line.file, line.line));
            out.push(Segment { start: at, end, node: span.map_or(NONE, |span| span.node), file, line: number });
        }
        at = end;
        s += usize::from(spans.get(s).is_some_and(|span| span.end <= at));
        l += usize::from(lines.get(l).is_some_and(|line| line.end <= at));
    }
    clip(&mut out);
    out
}

/// Why a unit is not read to its end: it is damaged, or costs too much.
struct BadUnit;

impl From<gimli::Error> for BadUnit {
    fn from(_: gimli::Error) -> Self {
        Self
    }
}

struct UnitReader<'u, 'a> {
    units: &'u Units<Slice<'a>>,
    /// Which of them is read.
    index: usize,
    /// What was taken out of the allowance and is not spent.
    purse: &'u mut u64,
    around: &'u AroundDwarf<'u>,
    /// Names by the entry that holds them, over all units of the worker.
    names: &'u mut HashMap<(usize, usize), Option<String>>,
    files: HashMap<u64, u32>,
    out: UnitTables,
}

/// The attributes that matter of a function or an inlined call.
#[derive(Default)]
struct FunctionEntry<'a> {
    linkage: Option<Slice<'a>>,
    name: Option<Slice<'a>>,
    origin: Option<AttributeValue<Slice<'a>>>,
    low: Option<u64>,
    high: Option<u64>,
    size: Option<u64>,
    ranges: Option<gimli::RangeListsOffset>,
    call_file: Option<u64>,
    call_line: u32,
}

impl<'a> UnitReader<'_, 'a> {
    fn charge(&mut self, cost: u64) -> Result<(), BadUnit> {
        if *self.purse < cost {
            if !self.units.charge(cost.max(AT_ONCE)) {
                return Err(BadUnit);
            }
            *self.purse += cost.max(AT_ONCE);
        }
        *self.purse -= cost;
        Ok(())
    }

    fn read(&mut self) -> Result<(), BadUnit> {
        let Some((unit, own)) = self.units.unit(self.index).zip(self.units.own(self.index)) else {
            self.out.bad = true;
            return Ok(());
        };
        let lines = self.read_lines(own);
        self.read_functions(unit)?;
        lines
    }

    fn read_lines(&mut self, unit: UnitRef<'_, Slice<'a>>) -> Result<(), BadUnit> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut rows = program.rows();
        let mut last: Option<Segment> = None;
        while let Some((_, row)) = rows.next_row()? {
            let address = row.address();
            self.charge(1)?;
            if let Some(mut before) = last.take() {
                before.end = address;
                if before.start < before.end && (self.around.in_code)(before.start) {
                    self.charge(ROW)?;
                    self.out.lines.push(before);
                }
            }
            if !row.end_sequence() {
                let file = self.file(row.file_index())?;
                let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
                last = Some(Segment { start: address, end: address, node: NONE, file, line });
            }
        }
        Ok(())
    }

    fn read_functions(&mut self, unit: UnitRef<'_, Slice<'a>>) -> Result<(), BadUnit> {
        let mut entries = unit.entries_raw(None)?;
        // Functions around the entry: depth in the tree and node, `NONE` for one without code.
        let mut around: Vec<(isize, u32)> = Vec::new();
        while !entries.is_empty() {
            let depth = entries.next_depth();
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            let Some(abbrev) = entries.read_abbreviation()? else { continue };
            self.charge(1 + abbrev.attributes().len() as u64)?;
            let inlined = abbrev.tag() == gimli::DW_TAG_inlined_subroutine;
            if !inlined && abbrev.tag() != gimli::DW_TAG_subprogram {
                entries.skip_attributes(abbrev.attributes())?;
                continue;
            }
            let mut entry = FunctionEntry::default();
            for spec in abbrev.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                entry.take(unit, attribute.name(), attribute.value())?;
            }
            let parent = around.last().map_or(NONE, |(_, node)| *node);
            let spans = self.out.spans.len();
            let added =
                if inlined && parent == NONE { Ok(NONE) } else { self.add(unit, &entry, inlined, parent, &around) };
            // Addresses of a node that did not come to be would make an index that cannot be read.
            let node = added.inspect_err(|_| self.out.spans.truncate(spans))?;
            around.push((depth, node));
        }
        Ok(())
    }

    /// Adds a node for a function with code; [`NONE`] when it has none.
    fn add(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        entry: &FunctionEntry<'a>,
        inlined: bool,
        parent: u32,
        around: &[(isize, u32)],
    ) -> Result<u32, BadUnit> {
        let node = u32::try_from(self.out.nodes.len()).unwrap_or(NONE);
        let level = if inlined { u32::try_from(around.len()).unwrap_or(NONE) } else { 0 };
        let before = self.out.spans.len();
        entry.each_range(unit, |start, end| {
            self.charge(1)?;
            if start < end && (self.around.in_code)(start) {
                self.charge(SPAN)?;
                self.out.spans.push(Span { start, end, level, node });
            }
            Ok(())
        })?;
        if self.out.spans.len() == before {
            return Ok(NONE);
        }
        let function = match self.name(unit, entry, 16) {
            Some(name) => {
                self.charge(TEXT + name.len() as u64)?;
                self.out.strings.intern(&name)
            }
            None => NONE,
        };
        let call_file = entry.call_file.map_or(Ok(NONE), |file| self.file(file))?;
        self.charge(NODE)?;
        let parent = if inlined { parent } else { NONE };
        self.out.nodes.push(Node { parent, function, call_file, call_line: entry.call_line });
        Ok(node)
    }

    fn name(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        entry: &FunctionEntry<'a>,
        limit: u32,
    ) -> Option<Cow<'static, str>> {
        if let Some(raw) = entry.linkage {
            return Some(demangle(&text(raw)).into());
        }
        // An origin knows the mangled, that is the full, name; the local name of a Rust function lacks its path.
        if let Some(name) = entry.origin.and_then(|origin| self.origin_name(unit, origin, limit)) {
            return Some(name);
        }
        entry.name.map(|raw| text(raw).into())
    }

    fn origin_name(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        origin: AttributeValue<Slice<'a>>,
        limit: u32,
    ) -> Option<Cow<'static, str>> {
        let limit = limit.checked_sub(1)?;
        let (unit, offset) = match origin {
            AttributeValue::UnitRef(offset) => (unit, offset),
            AttributeValue::DebugInfoRef(offset) => {
                let (index, offset) = self.units.containing(self.index, offset)?;
                (self.units.unit(index)?, offset)
            }
            _ => return None,
        };
        let is_apart = self.units.is_apart(self.index);
        let key = split::key(self.index, is_apart, offset.to_debug_info_offset(&unit.header)?);
        if let Some(name) = self.names.get(&key) {
            return name.clone().map(Cow::Owned);
        }
        let name = self.read_name(unit, offset, limit);
        self.charge(TEXT + name.as_ref().map_or(0, String::len) as u64).ok()?;
        self.names.insert(key, name.clone());
        name.map(Cow::Owned)
    }

    fn read_name(&mut self, unit: UnitRef<'_, Slice<'a>>, offset: UnitOffset, limit: u32) -> Option<String> {
        let mut entries = unit.entries_raw(Some(offset)).ok()?;
        let abbrev = entries.read_abbreviation().ok()??;
        self.charge(1 + abbrev.attributes().len() as u64).ok()?;
        let mut entry = FunctionEntry::default();
        for spec in abbrev.attributes() {
            let attribute = entries.read_attribute(*spec).ok()?;
            entry.take(unit, attribute.name(), attribute.value()).ok()?;
        }
        self.name(unit, &entry, limit).map(Cow::into_owned)
    }

    fn file(&mut self, index: u64) -> Result<u32, BadUnit> {
        if let Some(&id) = self.files.get(&index) {
            return Ok(id);
        }
        let path = self.units.own(self.index).and_then(|unit| render_file(unit, index, &self.around.sums));
        self.charge(TEXT + path.as_ref().map_or(0, String::len) as u64)?;
        let id = path.map_or(NONE, |path| self.out.strings.intern(&path));
        self.files.insert(index, id);
        Ok(id)
    }
}

impl<'a> FunctionEntry<'a> {
    fn take(
        &mut self,
        unit: UnitRef<'_, Slice<'a>>,
        name: DwAt,
        value: AttributeValue<Slice<'a>>,
    ) -> gimli::Result<()> {
        match name {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => self.linkage = unit.attr_string(value).ok(),
            gimli::DW_AT_name => self.name = unit.attr_string(value).ok(),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => self.origin = Some(value),
            gimli::DW_AT_low_pc => self.low = unit.attr_address(value)?,
            gimli::DW_AT_high_pc => match value {
                AttributeValue::Udata(size) => self.size = Some(size),
                other => self.high = unit.attr_address(other)?,
            },
            gimli::DW_AT_ranges => self.ranges = unit.attr_ranges_offset(value)?,
            gimli::DW_AT_call_file => {
                // Before DWARF 5, file 0 meant "none"; since then it is the first of the table.
                if let AttributeValue::FileIndex(file) = value
                    && (file > 0 || unit.header.version() >= 5)
                {
                    self.call_file = Some(file);
                }
            }
            gimli::DW_AT_call_line => {
                self.call_line = value.udata_value().and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
            }
            _ => {}
        }
        Ok(())
    }

    fn each_range(
        &self,
        unit: UnitRef<'_, Slice<'a>>,
        mut add: impl FnMut(u64, u64) -> Result<(), BadUnit>,
    ) -> Result<(), BadUnit> {
        if let Some(offset) = self.ranges {
            let mut ranges = unit.ranges(offset)?;
            while let Some(range) = ranges.next()? {
                add(range.begin, range.end)?;
            }
        } else if let Some(low) = self.low {
            let end = self.high.or_else(|| low.checked_add(self.size?));
            add(low, end.unwrap_or(low))?;
        }
        Ok(())
    }
}

/// The source files that the line tables of all units name, with the checksums that are recorded there or `known`.
pub(super) fn source_files(
    dwarf: gimli::Dwarf<Slice<'_>>,
    length: u64,
    known: &HashMap<String, Md5>,
) -> BTreeSet<String> {
    let (units, mut files) = (Units::of(dwarf, length), BTreeSet::new());
    for unit in (0..units.len()).filter_map(|index| units.unit(index)) {
        let Some(header) = unit.line_program.as_ref().map(gimli::IncompleteLineProgram::header) else { continue };
        // Numbers begin at 1 before DWARF 5.
        for index in 0..=header.file_names().len() as u64 {
            let file = render_file(unit, index, known);
            if !units.charge(1 + file.as_ref().map_or(0, |file| TEXT + file.len() as u64)) {
                return files;
            }
            files.extend(file);
        }
    }
    files
}

/// The path of a source file, with its checksum if the line table has one or the image says it otherwise.
fn render_file(unit: UnitRef<'_, Slice<'_>>, index: u64, sums: &HashMap<String, Md5>) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let mut path = unit.comp_dir.map(text).unwrap_or_default();
    if file.directory_index() != 0
        && let Some(directory) = file.directory(header)
    {
        push_path(&mut path, &text(unit.attr_string(directory).ok()?));
    }
    push_path(&mut path, &text(unit.attr_string(file.path_name()).ok()?));
    let recorded = header.file_has_md5().then(|| Md5(*file.md5())).filter(|sum| sum.0 != [0; 16]);
    Some(marked(&path, recorded.or_else(|| sums.get(&path).copied())))
}

/// A name or path, cut at the longest that is kept.
fn text(raw: Slice<'_>) -> String {
    names::cut(raw.slice())
}

fn push_path(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
