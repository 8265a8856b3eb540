//! Builds the index of an ELF file: DWARF tables and symbol table, written in the layout of `layout`.

use std::collections::BTreeSet;
use std::path::Path;

use object::Object;

use super::allowance::Allowance;
use super::dwarf::{self, AroundDwarf, Slice, Strings, Tables};
use super::elf::{self, Elf, ElfTask, Headers, RawSymbol};
use super::layout::{BLOCK, BLOCKED, ENTRY, HEADER, Header, NONE, PER_BLOCK, SECTIONS, Section};
use super::names::demangle;
use super::version;

/// What an ELF file says about addresses, ready to be written.
pub(super) struct BuildIndex<'h> {
    /// The program and section headers of the image.
    pub(super) headers: &'h Headers,
    /// Its size in bytes.
    pub(super) elf_size: u64,
    /// Its path, if it is a file of its own.
    pub(super) path: Option<&'h Path>,
}

/// What a byte of the file may add to names that are demangled.
const NAMES: u64 = 4;

/// The index and how many units lie in files that were not found, or by how much the image is too wide for one.
pub(super) type Built = Result<(Vec<u8>, usize), u64>;

impl ElfTask for BuildIndex<'_> {
    type Output = Built;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Built> {
        let mut symbols = elf::symbols(elf);
        keep_near_code(self.headers, &mut symbols);
        let tables = if elf.is_little_endian() { read_dwarf(elf, &self) } else { Tables::default() };
        let missing = tables.missing;
        Ok(encode(self.headers, self.elf_size, tables, &symbols).map(|bytes| (bytes, missing)))
    }
}

/// Lists the source files of an ELF file.
pub(super) struct ListSources {
    /// Its size in bytes.
    pub(super) elf_size: u64,
}

impl ElfTask for ListSources {
    type Output = BTreeSet<String>;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<BTreeSet<String>> {
        let all = elf::Sections::of(elf);
        let sections = gimli::DwarfSections::load(|id| Ok::<_, ()>(all.get(id.name())));
        let Some(sections) = sections.ok().filter(|_| elf.is_little_endian()) else { return Ok(BTreeSet::new()) };
        let dwarf = sections.borrow(|bytes| Slice::new(bytes, gimli::LittleEndian));
        Ok(dwarf::source_files(dwarf, self.elf_size, &version::read(&all.get(version::SOURCES))))
    }
}

/// Drops symbols too far from the code for an index of both: x86 kernels link per-processor variables at address 0.
fn keep_near_code(headers: &Headers, symbols: &mut Vec<RawSymbol>) {
    let code = headers.loads.iter().filter(|load| load.executable).map(|load| load.start).min();
    let is_near = |symbol: &RawSymbol| code.is_none_or(|code| symbol.address.abs_diff(code) < u64::from(NONE) / 2);
    symbols.retain(is_near);
}

fn read_dwarf<'data, R: object::ReadRef<'data>>(elf: &Elf<'data, R>, image: &BuildIndex<'_>) -> Tables {
    let all = elf::Sections::of(elf);
    let sections = gimli::DwarfSections::load(|id| Ok::<_, ()>(all.get(id.name())));
    let Ok(sections) = sections else { return Tables::default() };
    let dwarf = sections.borrow(|bytes| Slice::new(bytes, gimli::LittleEndian));
    let code = code(image.headers);
    // Code at address 0 is what a linker makes of dropped functions, unless the image really begins there.
    let in_code = |addr: u64| {
        let after = code.partition_point(|(start, _)| *start <= addr);
        after.checked_sub(1).and_then(|at| code.get(at)).is_some_and(|(_, end)| addr < *end)
    };
    let sums = version::read(&all.get(version::SOURCES));
    let around = AroundDwarf { length: image.elf_size, sums, in_code: &in_code, path: image.path };
    let mut tables = dwarf::collect(dwarf, &around);
    tables.left_out = tables.left_out.max(usize::from(all.is_cut()));
    tables
}

/// First addresses of the code and those behind its last, in order and apart.
fn code(headers: &Headers) -> Vec<(u64, u64)> {
    let code = headers.loads.iter().filter(|load| load.executable);
    let mut ranges: Vec<(u64, u64)> = code.map(|load| (load.start, load.start.saturating_add(load.length))).collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        last.1 = if joins { last.1.max(next.1) } else { last.1 };
        joins
    });
    ranges
}

fn encode(headers: &Headers, elf_size: u64, tables: Tables, symbols: &[RawSymbol]) -> Result<Vec<u8>, u64> {
    let lowest = [tables.segments.first().map(|s| s.start), symbols.first().map(|s| s.address)];
    let base = lowest.into_iter().flatten().min().unwrap_or(0);
    let highest = [tables.segments.last().map(|s| s.end), symbols.last().map(|s| s.address)];
    let span = highest.into_iter().flatten().max().unwrap_or(0).saturating_sub(base);
    if span >= u64::from(NONE) {
        return Err(span);
    }
    let offset = |addr: u64| u32::try_from(addr - base).unwrap_or(NONE);
    let mut text = Text::default();
    let mut strings = tables.strings;
    let room = Allowance::new(elf_size, NAMES);
    let mut name = |raw: &str| {
        let shown = demangle(raw);
        // Short names that grow are many names' worth; the rest stay as they are in the file.
        let grows = shown.len().saturating_sub(raw.len()) as u64;
        strings.intern(if room.take(grows) { &shown } else { raw })
    };
    let names: Vec<u32> = symbols.iter().map(|symbol| name(&symbol.name)).collect();
    let offsets = text.write_all(&strings);
    let string = |id: u32| offsets.get(id as usize).copied().unwrap_or(NONE);

    let mut segments = Entries::default();
    let mut end = None;
    for segment in &tables.segments {
        if let Some(end) = end.filter(|&end| end < segment.start) {
            segments.push([offset(end), NONE, NONE, 0]);
        }
        segments.push([offset(segment.start), segment.node, string(segment.file), segment.line]);
        end = Some(segment.end);
    }
    if let Some(end) = end {
        segments.push([offset(end), NONE, NONE, 0]);
    }
    let mut nodes = Entries::default();
    for node in &tables.nodes {
        nodes.push([node.parent, string(node.function), string(node.call_file), node.call_line]);
    }
    let mut table = Entries::default();
    for (symbol, name) in symbols.iter().zip(names) {
        table.push([offset(symbol.address), u32::try_from(symbol.size).unwrap_or(NONE), string(name), 0]);
    }
    let left_out = u32::try_from(tables.left_out).unwrap_or(u32::MAX);
    Ok(assemble(headers, elf_size, (left_out, base), [segments.bytes, nodes.bytes, table.bytes, text.bytes]))
}

fn assemble(headers: &Headers, elf_size: u64, (left_out, base): (u32, u64), blocked: [Vec<u8>; 4]) -> Vec<u8> {
    let fences: Vec<u8> =
        blocked[0].chunks(PER_BLOCK * ENTRY).flat_map(|block| block.iter().take(4).copied()).collect();
    let checks: Vec<u8> =
        blocked.iter().flat_map(|bytes| bytes.chunks(BLOCK)).flat_map(|b| crc32fast::hash(b).to_le_bytes()).collect();
    let mut eager = crc32fast::Hasher::new();
    eager.update(&fences);
    eager.update(&checks);
    let mut header = Header {
        left_out,
        base,
        elf_size,
        build_id: headers.build_id.clone(),
        sections: [(0, 0); SECTIONS],
        eager_crc: eager.finalize(),
    };
    let mut body = Vec::new();
    let mut add = |section: Section, bytes: &[u8]| {
        header.sections[section as usize] = ((HEADER + body.len()) as u64, bytes.len() as u64);
        body.extend_from_slice(bytes);
    };
    add(Section::Fences, &fences);
    add(Section::Checks, &checks);
    for (section, bytes) in BLOCKED.into_iter().zip(&blocked) {
        add(section, bytes);
    }
    let mut out = header.encode();
    out.extend_from_slice(&body);
    out
}

#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
}

impl Entries {
    fn push(&mut self, entry: [u32; 4]) {
        self.bytes.extend(entry.into_iter().flat_map(u32::to_le_bytes));
    }
}

#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
}

impl Text {
    /// Writes all strings; the result is the offset of each.
    fn write_all(&mut self, strings: &Strings) -> Vec<u32> {
        let mut offsets = Vec::with_capacity(strings.list().len());
        for text in strings.list() {
            let offset = u32::try_from(self.bytes.len()).unwrap_or(NONE);
            offsets.push(offset);
            if offset != NONE {
                self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
                self.bytes.extend_from_slice(text.as_bytes());
            }
        }
        offsets
    }
}
