//! Makes a small symbol file of an image: every name, the unwind tables, statics with their types, and the source lines
//! and variables of chosen functions.
//!
//! A kernel with its DWARF has tens of megabytes, most of it about code that no stack of a given dump passes. The file
//! made here is an ELF file with the build-id, the sections that are loaded without their bytes, the symbol table, the
//! unwind tables, and DWARF 5 of the chosen functions: line rows and inlined calls, written from what an [`Image`]
//! says of each of their addresses. Their arguments and locals, the statics of the whole image and the types of all
//! these are copied. Any debugger reads it; `kwab` finds it by build-id in the folder `symbols` beside a dump.

mod variables;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use gimli::write::{
    Address, AttributeValue, DwarfUnit, EndianVec, FileInfo, LineProgram, LineString, Range, RangeList, Sections,
    UnitEntryId,
};
use gimli::{Encoding, Format, LineEncoding, LittleEndian};

use super::allowance::Allowance;
use super::bytes::ImageBytes;
use super::info::Die;
use super::version::{self, Md5, SourceVersion};
use super::{Image, Probe, SourceFrame, compact, regular, store};
use variables::Variables;

/// The longest function that is followed address by address, and how many there may be.
const MOST_BYTES: u64 = 1 << 16;
const MOST_FUNCTIONS: usize = 4096;
/// Scopes inside each other that are followed, whatever an image claims.
const MOST_SCOPES: usize = 64;
/// How many bytes they may have together. The functions on the stacks of a dump have half a megabyte; symbols that
/// overlap claim any sum.
const MOST_TOGETHER: u64 = 4 << 20;

/// The functions of an image that hold these link addresses, by first address and length.
pub fn functions(image: &Image, links: impl IntoIterator<Item = u64>) -> BTreeSet<(u64, u64)> {
    let (mut found, mut left) = (BTreeSet::new(), MOST_TOGETHER);
    for link in links {
        // A return address may be the first of the next function.
        for at in [link, link.saturating_sub(1)] {
            let symbol = image.locate(at, Probe::Exact).ok().and_then(|location| location.symbol);
            let Some(symbol) = symbol.filter(|symbol| symbol.size > 0 && symbol.size <= MOST_BYTES) else { continue };
            if image.is_code(at) && found.len() < MOST_FUNCTIONS && symbol.size <= left {
                let is_new = found.insert((at - symbol.offset, symbol.size));
                left -= if is_new { symbol.size } else { 0 };
            }
        }
    }
    found
}

/// The symbol file of an image with the lines of these functions. Paths of source files lose what is of one machine:
/// what lies above one of the `roots`, a crate's folder or the compiler's library.
///
/// With it comes whether variables or types were left out, since they cost more than an image of its length may.
/// `None` when the image is not a little-endian ELF file of 64 bits that can be read.
#[must_use]
pub fn slim(image: &Image, functions: &BTreeSet<(u64, u64)>, roots: &[&Path]) -> Option<(Vec<u8>, bool)> {
    let whole = bytes(image)?;
    let maker = Maker { image, roots, dwarf: unit(), sums: HashMap::new(), room: version::room() };
    let (sections, is_cut) = maker.write(functions)?;
    Some((compact::slimmed(&whole, &sections)?, is_cut))
}

/// The image as the store keeps it: all of it, its debug sections compressed.
///
/// `None` when it cannot be read.
#[must_use]
pub fn whole(image: &Image) -> Option<Vec<u8>> {
    let bytes = bytes(image)?;
    let named = [(compact::NAME, image.file_name()), store::source_sums(image.source())];
    Some(compact::compacted(&bytes, &named).unwrap_or(bytes))
}

fn bytes(image: &Image) -> Option<Vec<u8>> {
    match image.source() {
        ImageBytes::File(path) => regular::read(path, u64::MAX).ok(),
        ImageBytes::Memory { bytes, .. } => Some(bytes.to_vec()),
    }
}

/// Sections of DWARF, each with its name.
type DebugSections = Vec<(&'static str, Vec<u8>)>;

/// An empty unit of DWARF 5.
fn unit() -> DwarfUnit {
    let encoding = Encoding { format: Format::Dwarf32, version: 5, address_size: 8 };
    let mut dwarf = DwarfUnit::new(encoding);
    let text = |text: &str| LineString::String(text.as_bytes().to_vec());
    let program = LineProgram::new(encoding, LineEncoding::default(), text("."), None, text("image"), None);
    dwarf.unit.line_program = program;
    dwarf.unit.line_program.file_has_md5 = true;
    dwarf
}

/// Addresses with the same frames: first, behind the last, frames with the innermost first.
type Run = (u64, u64, Vec<SourceFrame>);

fn runs(image: &Image, (start, size): (u64, u64)) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for link in start..start.saturating_add(size) {
        let frames = image.locate(link, Probe::Exact).map(|location| location.frames).unwrap_or_default();
        match runs.last_mut() {
            Some((_, end, last)) if *last == frames => *end = link + 1,
            _ => runs.push((link, link + 1, frames)),
        }
    }
    runs
}

/// Where the DWARF of the functions grows.
struct Maker<'i> {
    image: &'i Image,
    roots: &'i [&'i Path],
    dwarf: DwarfUnit,
    /// Checksums of source files that were looked for.
    sums: HashMap<(String, SourceVersion), Option<Md5>>,
    /// How many bytes of them may still be read.
    room: Allowance,
}

impl Maker<'_> {
    /// The sections of the DWARF of these functions, and whether variables or types of them were left out.
    fn write(mut self, functions: &BTreeSet<(u64, u64)>) -> Option<(DebugSections, bool)> {
        let root = self.dwarf.unit.root();
        let mut variables = Variables::of(self.image, functions);
        let mut ranges = Vec::new();
        for &(start, size) in functions {
            let runs = runs(self.image, (start, size));
            self.rows(&runs);
            let outer: Vec<&Run> = runs.iter().collect();
            if let Some(name) = runs.iter().find_map(|(_, _, frames)| frames.last()?.function.clone()) {
                let entry = self.add(root, gimli::DW_TAG_subprogram, &name, &[(start, start + size)]);
                match variables.as_mut().and_then(|variables| Some((variables.function(start)?, variables))) {
                    Some((function, variables)) => {
                        if let Some(function) = variables.info().entry(function) {
                            variables.frame_base(&mut self.dwarf, entry, &function);
                        }
                        self.scope(entry, (function, 0, 0), &runs, variables);
                    }
                    None => self.inlined(entry, &outer, 1),
                }
            }
            ranges.push(Range::StartLength { begin: Address::Constant(start), length: size });
        }
        if let Some(variables) = &mut variables {
            variables.statics(&mut self.dwarf);
            if let Some(language) = variables.language() {
                self.dwarf.unit.get_mut(root).set(gimli::DW_AT_language, AttributeValue::Language(language));
            }
        }
        let ranges = self.dwarf.unit.ranges.add(RangeList(ranges));
        self.dwarf.unit.get_mut(root).set(gimli::DW_AT_ranges, AttributeValue::RangeListRef(ranges));
        self.dwarf.unit.get_mut(root).set(gimli::DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));
        let mut sections = Sections::new(EndianVec::new(LittleEndian));
        self.dwarf.write(&mut sections).ok()?;
        let mut written = Vec::new();
        let each = sections.for_each(|id, data| {
            if !data.slice().is_empty() {
                written.push((id.name(), data.slice().to_vec()));
            }
            Ok::<(), gimli::write::Error>(())
        });
        let is_cut = variables.is_some_and(|variables| variables.is_cut());
        each.ok().map(|()| (written, is_cut))
    }

    /// The line of each run: that of its innermost frame.
    fn rows(&mut self, runs: &[Run]) {
        let Some((first, end)) = runs.first().zip(runs.last()).map(|(first, last)| (first.0, last.1)) else { return };
        self.dwarf.unit.line_program.begin_sequence(Some(Address::Constant(first)));
        for (start, _, frames) in runs {
            let Some((frame, file)) = frames.first().and_then(|frame| Some((frame, frame.file.as_ref()?))) else {
                continue;
            };
            let file = self.file(file, frame.version);
            let row = self.dwarf.unit.line_program.row();
            row.address_offset = start - first;
            row.file = file;
            row.line = frame.line.unwrap_or(0).into();
            self.dwarf.unit.line_program.generate_row();
        }
        self.dwarf.unit.line_program.end_sequence(end - first);
    }

    fn file(&mut self, path: &str, version: SourceVersion) -> gimli::write::FileId {
        let kept = self.sums.entry((path.to_owned(), version));
        // Without a checksum of its own a file has one of zeros: a table has them for all files or none.
        let md5 = kept.or_insert_with(|| version::of_file(path, version, &self.room)).map_or([0; 16], |sum| sum.0);
        let place = LineString::String(place(path, self.roots).into_bytes());
        let program = &mut self.dwarf.unit.line_program;
        let folder = program.default_directory();
        program.add_file(place, folder, Some(FileInfo { md5, ..FileInfo::default() }))
    }

    /// The calls that are inlined `depth` levels below the physical function, each with its addresses.
    fn inlined(&mut self, parent: UnitEntryId, runs: &[&Run], depth: usize) {
        for same in runs.chunk_by(|a, b| call(a, depth) == call(b, depth)) {
            let Some(inlined) = call(same[0], depth) else { continue };
            let range = (same[0].0, same[same.len() - 1].1);
            let entry = self.add_call(parent, inlined, &[range]);
            self.inlined(entry, same, depth + 1);
        }
    }

    /// What lies in a function, or in a scope of it `depth` calls and `level` scopes below: variables, blocks and
    /// inlined calls.
    fn scope(
        &mut self,
        parent: UnitEntryId,
        (die, depth, level): (Die, usize, usize),
        runs: &[Run],
        variables: &mut Variables,
    ) {
        if level > MOST_SCOPES {
            return;
        }
        for child in variables.info().children(die) {
            match child.tag {
                gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable => {
                    variables.local(&mut self.dwarf, parent, &child);
                }
                gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_lexical_block => {
                    let mut ranges = Vec::new();
                    variables.info().any_range(&child, &mut |start, end| {
                        ranges.push((start, end));
                        false
                    });
                    let Some(&(first, _)) = ranges.first() else { continue };
                    if child.tag == gimli::DW_TAG_lexical_block {
                        let block = self.dwarf.unit.add(parent, child.tag);
                        self.put_ranges(block, &ranges);
                        self.scope(block, (child.die, depth, level + 1), runs, variables);
                        continue;
                    }
                    let run = runs.iter().find(|(start, end, _)| (*start..*end).contains(&first));
                    if let Some(inlined) = run.and_then(|run| call(run, depth + 1)) {
                        let entry = self.add_call(parent, inlined, &ranges);
                        self.scope(entry, (child.die, depth + 1, level + 1), runs, variables);
                    }
                }
                _ => {}
            }
        }
    }

    fn add_call(&mut self, parent: UnitEntryId, (name, file, line): Call, ranges: &[(u64, u64)]) -> UnitEntryId {
        let entry = self.add(parent, gimli::DW_TAG_inlined_subroutine, &name, ranges);
        if let Some((file, version)) = file {
            let file = AttributeValue::FileIndex(Some(self.file(&file, version)));
            self.dwarf.unit.get_mut(entry).set(gimli::DW_AT_call_file, file);
        }
        let line = AttributeValue::Udata(line.unwrap_or(0).into());
        self.dwarf.unit.get_mut(entry).set(gimli::DW_AT_call_line, line);
        entry
    }

    fn add(&mut self, parent: UnitEntryId, tag: gimli::DwTag, name: &str, ranges: &[(u64, u64)]) -> UnitEntryId {
        let entry = self.dwarf.unit.add(parent, tag);
        let name = AttributeValue::StringRef(self.dwarf.strings.add(name.as_bytes()));
        // The whole path of the function: with a name alone it would be looked for in enclosing namespaces.
        self.dwarf.unit.get_mut(entry).set(gimli::DW_AT_linkage_name, name);
        self.put_ranges(entry, ranges);
        entry
    }

    fn put_ranges(&mut self, entry: UnitEntryId, ranges: &[(u64, u64)]) {
        if let &[(low, high)] = ranges {
            let entry = self.dwarf.unit.get_mut(entry);
            entry.set(gimli::DW_AT_low_pc, AttributeValue::Address(Address::Constant(low)));
            entry.set(gimli::DW_AT_high_pc, AttributeValue::Udata(high.saturating_sub(low)));
            return;
        }
        let list = ranges
            .iter()
            .map(|(start, end)| Range::StartEnd { begin: Address::Constant(*start), end: Address::Constant(*end) });
        let list = self.dwarf.unit.ranges.add(RangeList(list.collect()));
        self.dwarf.unit.get_mut(entry).set(gimli::DW_AT_ranges, AttributeValue::RangeListRef(list));
    }
}

/// An inlined call: the function, and file and line of the caller.
type Call = (Arc<str>, Option<(Arc<str>, SourceVersion)>, Option<u32>);

/// The call that is inlined `depth` levels below the physical function.
fn call(run: &Run, depth: usize) -> Option<Call> {
    let at = run.2.len().checked_sub(depth + 1)?;
    let (callee, caller) = (&run.2[at], &run.2[at + 1]);
    Some((callee.function.clone()?, caller.file.clone().map(|file| (file, caller.version)), caller.line))
}

/// A source file's path without what is of one machine.
fn place(file: &str, roots: &[&Path]) -> String {
    let path = Path::new(file);
    if let Some(rest) = roots.iter().find_map(|root| path.strip_prefix(root).ok()?.to_str()) {
        return rest.to_owned();
    }
    let below = |mark: &str| file.split_once(mark).map(|(_, rest)| rest.to_owned());
    let registry = below("/registry/src/").and_then(|rest| Some(rest.split_once('/')?.1.to_owned()));
    registry
        .or_else(|| below("/library/").map(|rest| format!("library/{rest}")))
        .unwrap_or_else(|| file.trim_start_matches("./").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lose_what_is_of_one_machine() {
        let roots = [Path::new("/tree")];
        for (file, wanted) in [
            ("/x/.cargo/registry/src/index-1/gimli-0.3/src/lib.rs", "gimli-0.3/src/lib.rs"),
            ("/rustc/abc/library/core/src/ptr.rs", "library/core/src/ptr.rs"),
            ("/tree/kernel/src/a.rs", "kernel/src/a.rs"),
            ("/elsewhere/a.c", "/elsewhere/a.c"),
        ] {
            assert_eq!(place(file, &roots), wanted);
        }
    }
}
