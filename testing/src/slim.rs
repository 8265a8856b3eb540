//! Makes a small symbol file of a kernel: every name, and the source lines of the functions that one dump needs.
//!
//! A kernel with its DWARF has 35 MB, most of it about code that no stack of a given dump passes. The file made here is
//! an ELF file with the build-id, the segments without their bytes, the whole symbol table, and DWARF 5 of the chosen
//! functions: line rows and inlined calls, written from what `kwab::symbols` says of each of their addresses. Any
//! debugger reads it; `kwab` finds it by build-id in the folder `symbols` beside the dump.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use gimli::write::{
    Address, AttributeValue, DwarfUnit, EndianVec, LineProgram, LineString, Range, RangeList, Sections, UnitEntryId,
};
use gimli::{Encoding, Format, LineEncoding, LittleEndian};
use kwab::analysis::images;
use kwab::model::Dump;
use kwab::symbols::{Finder, Image, IndexCache, Probe, SourceFrame};

use crate::paths;
use crate::process::Call;

/// The longest function that is followed address by address.
const MOST_BYTES: u64 = 1 << 16;

/// Writes the symbol file for the kernel of `dump`; `report` is text in which every address stands that needs a name.
///
/// # Errors
/// When the kernel is not that of the dump, or objcopy refuses.
pub fn write(kernel: &Path, dump: &[u8], report: &str, out: &Path) -> Result<()> {
    let dump = Dump::from_bytes(dump.to_vec())?;
    let mut finder = Finder::new(vec![kernel.to_owned()], false);
    let found = images::load(&dump.case(), &mut finder, &IndexCache::of_user());
    let loaded = found.symbols.loaded().iter().find(|loaded| loaded.image.path() == Some(kernel));
    let loaded = loaded.context("the kernel is not that of the dump")?;
    let links = addresses(report).map(|addr| addr.wrapping_sub(loaded.bias));
    let functions = functions(&loaded.image, links.filter(|link| loaded.image.is_code(*link)));
    let folder = paths::build("slim")?;
    let sections = dwarf(&loaded.image, &functions)?;
    let mut objcopy = Call::new("objcopy").args(["--only-keep-debug", "--compress-debug-sections=zlib"]);
    objcopy = objcopy.args(["--remove-section=.debug_*"]).arg(kernel).arg(folder.join("names"));
    objcopy.capture().context("objcopy (Debian: binutils)")?;
    let mut objcopy = Call::new("objcopy").arg("--compress-debug-sections=zlib");
    for (name, bytes) in sections {
        let file = folder.join(name.trim_start_matches('.'));
        fs::write(&file, bytes)?;
        objcopy = objcopy.arg("--add-section").arg(format!("{name}={}", file.display()));
    }
    objcopy.arg(folder.join("names")).arg(out).capture().context("objcopy")?;
    Ok(())
}

/// Every number of a text that is written like an address.
fn addresses(text: &str) -> impl Iterator<Item = u64> {
    let digits = |rest: &str| rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    let words = text.split("0x").skip(1).map(move |rest| &rest[..digits(rest)]);
    words.filter_map(|word| u64::from_str_radix(word, 16).ok())
}

/// The functions that hold these addresses, by their first address and length.
fn functions(image: &Image, links: impl Iterator<Item = u64>) -> BTreeSet<(u64, u64)> {
    let start = |link: u64| {
        let symbol = image.locate(link, Probe::Exact).ok()?.symbol?;
        (symbol.size > 0 && symbol.size <= MOST_BYTES).then(|| (link - symbol.offset, symbol.size))
    };
    // A return address may be the first of the next function.
    links.flat_map(|link| [link, link.saturating_sub(1)]).filter_map(start).collect()
}

/// Addresses with the same frames: first, behind the last, frames with the innermost first.
type Run = (u64, u64, Vec<SourceFrame>);

fn runs(image: &Image, (start, size): (u64, u64)) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for link in start..start + size {
        let frames = image.locate(link, Probe::Exact).map(|location| location.frames).unwrap_or_default();
        match runs.last_mut() {
            Some((_, end, last)) if *last == frames => *end = link + 1,
            _ => runs.push((link, link + 1, frames)),
        }
    }
    runs
}

/// The sections of the DWARF of these functions.
fn dwarf(image: &Image, functions: &BTreeSet<(u64, u64)>) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let encoding = Encoding { format: Format::Dwarf32, version: 5, address_size: 8 };
    let mut dwarf = DwarfUnit::new(encoding);
    let text = |text: &str| LineString::String(text.as_bytes().to_vec());
    let lines = LineEncoding::default();
    dwarf.unit.line_program = LineProgram::new(encoding, lines, text("."), None, text("kernel"), None);
    let root = dwarf.unit.root();
    let mut ranges = Vec::new();
    for &(start, size) in functions {
        let runs = runs(image, (start, size));
        rows(&mut dwarf, &runs);
        let outer: Vec<&Run> = runs.iter().collect();
        if let Some(name) = runs.iter().find_map(|(_, _, frames)| frames.last()?.function.clone()) {
            let entry = add(&mut dwarf, root, gimli::DW_TAG_subprogram, &name, (start, start + size));
            inlined(&mut dwarf, entry, &outer, 1);
        }
        ranges.push(Range::StartLength { begin: Address::Constant(start), length: size });
    }
    let ranges = dwarf.unit.ranges.add(RangeList(ranges));
    dwarf.unit.get_mut(root).set(gimli::DW_AT_ranges, AttributeValue::RangeListRef(ranges));
    dwarf.unit.get_mut(root).set(gimli::DW_AT_low_pc, AttributeValue::Address(Address::Constant(0)));
    let mut sections = Sections::new(EndianVec::new(LittleEndian));
    dwarf.write(&mut sections)?;
    let mut written = Vec::new();
    sections.for_each(|id, data| {
        if !data.slice().is_empty() {
            written.push((id.name(), data.slice().to_vec()));
        }
        Ok::<(), anyhow::Error>(())
    })?;
    Ok(written)
}

/// The line of each run: that of its innermost frame.
fn rows(dwarf: &mut DwarfUnit, runs: &[Run]) {
    let Some((first, end)) = runs.first().zip(runs.last()).map(|(first, last)| (first.0, last.1)) else { return };
    dwarf.unit.line_program.begin_sequence(Some(Address::Constant(first)));
    for (start, _, frames) in runs {
        let Some((frame, file)) = frames.first().and_then(|frame| Some((frame, frame.file.as_ref()?))) else {
            continue;
        };
        let program = &mut dwarf.unit.line_program;
        let folder = program.default_directory();
        let file = program.add_file(LineString::String(place(file).into_bytes()), folder, None);
        let row = program.row();
        row.address_offset = start - first;
        row.file = file;
        row.line = frame.line.unwrap_or(0).into();
        program.generate_row();
    }
    dwarf.unit.line_program.end_sequence(end - first);
}

/// The calls that are inlined `depth` levels below the physical function, each with its addresses.
fn inlined(dwarf: &mut DwarfUnit, parent: UnitEntryId, runs: &[&Run], depth: usize) {
    let call = |run: &&Run| {
        let at = run.2.len().checked_sub(depth + 1)?;
        let (callee, caller) = (&run.2[at], &run.2[at + 1]);
        Some((callee.function.clone()?, caller.file.clone(), caller.line))
    };
    for same in runs.chunk_by(|a, b| call(a) == call(b)) {
        let Some((name, file, line)) = call(&same[0]) else { continue };
        let range = (same[0].0, same[same.len() - 1].1);
        let entry = add(dwarf, parent, gimli::DW_TAG_inlined_subroutine, &name, range);
        if let Some(file) = file {
            let program = &mut dwarf.unit.line_program;
            let folder = program.default_directory();
            let file = program.add_file(LineString::String(place(&file).into_bytes()), folder, None);
            dwarf.unit.get_mut(entry).set(gimli::DW_AT_call_file, AttributeValue::FileIndex(Some(file)));
        }
        let line = AttributeValue::Udata(line.unwrap_or(0).into());
        dwarf.unit.get_mut(entry).set(gimli::DW_AT_call_line, line);
        inlined(dwarf, entry, same, depth + 1);
    }
}

fn add(
    dwarf: &mut DwarfUnit,
    parent: UnitEntryId,
    tag: gimli::DwTag,
    name: &str,
    (low, high): (u64, u64),
) -> UnitEntryId {
    let entry = dwarf.unit.add(parent, tag);
    let name = AttributeValue::StringRef(dwarf.strings.add(name.as_bytes()));
    // The whole path of the function: with a name alone it would be looked for in enclosing namespaces.
    dwarf.unit.get_mut(entry).set(gimli::DW_AT_linkage_name, name);
    dwarf.unit.get_mut(entry).set(gimli::DW_AT_low_pc, AttributeValue::Address(Address::Constant(low)));
    dwarf.unit.get_mut(entry).set(gimli::DW_AT_high_pc, AttributeValue::Udata(high - low));
    entry
}

/// A source file's path without what is of one machine: below the workspace, a crate, or the compiler's library.
fn place(file: &str) -> String {
    let below = |mark: &str| file.split_once(mark).map(|(_, rest)| rest.to_owned());
    let root = format!("{}/", paths::root().display());
    if let Some(rest) = file.strip_prefix(&root) {
        return rest.to_owned();
    }
    let registry = below("/registry/src/").and_then(|rest| Some(rest.split_once('/')?.1.to_owned()));
    registry.or_else(|| below("/library/").map(|rest| format!("library/{rest}"))).unwrap_or_else(|| file.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_any_text_and_places_lose_what_is_of_one_machine() {
        let found: Vec<u64> = addresses("{\"a\":\"0xffff8000\",\"b\":\"at 0x10+0x2\"} 0x").collect();
        assert_eq!(found, [0xffff_8000, 0x10, 2]);
        assert_eq!(place("/x/.cargo/registry/src/index-1/gimli-0.3/src/lib.rs"), "gimli-0.3/src/lib.rs");
        assert_eq!(place("/rustc/abc/library/core/src/ptr.rs"), "library/core/src/ptr.rs");
        assert_eq!(place(&paths::root().join("kernel/src/a.rs").display().to_string()), "kernel/src/a.rs");
    }
}
