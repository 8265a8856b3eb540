//! The units of an image's DWARF: headers, abbreviations and roots, each read once and within an [`Allowance`]. Of a
//! skeleton, whose unit lies in a file of its own ([`split`]), both are read.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use gimli::{DebugAbbrevOffset, DebugInfoOffset, Reader, Section as _, UnitOffset, UnitRef};

use super::allowance::Allowance;
use super::split::{self, Splits};

/// What a byte of the image's file may cost. Honest images stay within it, with packed sections too: this workspace's
/// kernel, and a program in Rust of 113 MB.
const GROWTH: u64 = 40;
/// What a unit takes that has nothing but a root.
const UNIT: u64 = 1024;
/// What a byte in the header of a line program takes: a name of one letter becomes an entry of a table.
const LINE_HEADER: u64 = 32;
/// What a byte of abbreviations takes.
const ABBREVIATION: u64 = 16;

/// Where a unit is read when it is asked for first; `None` when it cannot be.
type Slot<R> = OnceLock<Option<Box<OpenUnit<R>>>>;

/// A unit that was read.
#[derive(Debug)]
struct OpenUnit<R: Reader<Offset = usize>> {
    /// As the image has it.
    own: gimli::Unit<R>,
    /// What it is the skeleton of, with the sections that lies in.
    apart: Option<(gimli::Dwarf<R>, gimli::Unit<R>)>,
}

/// The units, in the order of `.debug_info`.
#[derive(Debug)]
pub(crate) struct Units<R: Reader<Offset = usize>> {
    dwarf: gimli::Dwarf<R>,
    headers: Vec<gimli::UnitHeader<R>>,
    units: Vec<Slot<R>>,
    /// Tables of abbreviations that were too much.
    refused: HashSet<usize>,
    splits: Option<Splits<R>>,
    length: u64,
    allowance: Allowance,
}

impl<R: Reader<Offset = usize>> Units<R> {
    /// Reads the headers and the abbreviations of an image whose file has `length` bytes.
    pub(crate) fn of(mut dwarf: gimli::Dwarf<R>, length: u64) -> Self {
        let mut headers = Vec::new();
        let mut iter = dwarf.units();
        // A broken header ends the iteration: its length is what leads to the next.
        while let Ok(Some(header)) = iter.next() {
            headers.push(header);
        }
        let allowance = Allowance::new(length, GROWTH);
        let refused = read_abbreviations(&mut dwarf, &headers, &allowance);
        if !allowance.take(UNIT * headers.len() as u64 / 4) {
            headers.clear();
        }
        let units = headers.iter().map(|_| OnceLock::new()).collect();
        Self { dwarf, headers, units, refused, splits: None, length, allowance }
    }

    /// Forgets what was read and spent since [`Units::of`].
    pub(crate) fn reset(&mut self) {
        self.units.iter_mut().for_each(|unit| *unit = OnceLock::new());
        self.allowance = Allowance::new(self.length, GROWTH);
    }

    /// The same with the files that its skeletons belong to, which have so many bytes.
    pub(super) fn with_splits(mut self, splits: Splits<R>, bytes: u64) -> Self {
        self.splits = Some(splits);
        self.length = self.length.saturating_add(bytes);
        self.reset();
        self
    }

    /// The units that are skeletons.
    pub(super) fn skeletons(&self) -> impl Iterator<Item = UnitRef<'_, R>> {
        let may_be = |index: &usize| split::may_be_skeleton(&self.dwarf, &self.headers[*index]);
        (0..self.headers.len()).filter(may_be).filter_map(|index| self.own(index))
    }

    /// Whether a unit lies in a file of its own.
    pub(crate) fn is_apart(&self, index: usize) -> bool {
        self.slot(index).is_some_and(|unit| unit.apart.is_some())
    }

    /// Number of units.
    pub(crate) const fn len(&self) -> usize {
        self.headers.len()
    }

    /// A unit, when it can be read: its entries.
    pub(crate) fn unit(&self, index: usize) -> Option<UnitRef<'_, R>> {
        let unit = self.slot(index)?;
        Some(
            unit.apart.as_ref().map_or(UnitRef::new(&self.dwarf, &unit.own), |(dwarf, unit)| UnitRef::new(dwarf, unit)),
        )
    }

    /// The same as the image itself has it: its lines, and where its code lies.
    pub(crate) fn own(&self, index: usize) -> Option<UnitRef<'_, R>> {
        Some(UnitRef::new(&self.dwarf, &self.slot(index)?.own))
    }

    fn slot(&self, index: usize) -> Option<&OpenUnit<R>> {
        let header = self.headers.get(index)?;
        self.units.get(index)?.get_or_init(|| self.open(header)).as_deref()
    }

    /// The unit at an offset of `.debug_info` that an entry of another one names, and the offset in it. A unit in a
    /// file of its own names none.
    pub(crate) fn containing(&self, from: usize, offset: DebugInfoOffset) -> Option<(usize, UnitOffset)> {
        if self.is_apart(from) {
            return None;
        }
        let after = self.headers.partition_point(|header| header.debug_info_offset().is_some_and(|o| o.0 <= offset.0));
        let index = after.checked_sub(1)?;
        Some((index, offset.to_unit_offset(self.headers.get(index)?)?))
    }

    /// Charges what reading the units costs; whether it may go on.
    pub(crate) fn charge(&self, cost: u64) -> bool {
        self.allowance.take(cost)
    }

    /// Whether units were left out because they cost more than an image of its length may.
    pub(crate) fn is_spent(&self) -> bool {
        self.allowance.is_spent()
    }

    fn open(&self, header: &gimli::UnitHeader<R>) -> Option<Box<OpenUnit<R>>> {
        if self.allowance.is_spent() || self.refused.contains(&header.debug_abbrev_offset().0) {
            return None;
        }
        let unit = self.dwarf.unit(header.clone()).ok()?;
        let files = unit.line_program.as_ref().map_or(0, |program| program.header().header_length() as u64);
        self.charge(UNIT + LINE_HEADER * files).then(|| Box::new(OpenUnit { apart: self.apart(&unit), own: unit }))
    }

    /// What a skeleton is one of.
    fn apart(&self, skeleton: &gimli::Unit<R>) -> Option<(gimli::Dwarf<R>, gimli::Unit<R>)> {
        let (dwarf, header) = self.splits.as_ref()?.find(skeleton.dwo_id?, &self.dwarf)?;
        let length = length_of_table(&dwarf.debug_abbrev, header.debug_abbrev_offset(), &self.allowance)?;
        if !self.charge(UNIT + ABBREVIATION * length) {
            return None;
        }
        let mut unit = dwarf.unit(header).ok()?;
        unit.copy_relocated_attributes(skeleton);
        Some((dwarf, unit))
    }
}

/// Reads each table of abbreviations once; the places of those that cost too much.
fn read_abbreviations<R: Reader<Offset = usize>>(
    dwarf: &mut gimli::Dwarf<R>,
    headers: &[gimli::UnitHeader<R>],
    allowance: &Allowance,
) -> HashSet<usize> {
    let mut places: HashMap<usize, bool> = HashMap::new();
    for header in headers {
        let offset = header.debug_abbrev_offset();
        places.entry(offset.0).or_insert_with(|| {
            let length = length_of_table(&dwarf.debug_abbrev, offset, allowance);
            let fits = length.is_some_and(|length| allowance.take(ABBREVIATION * length));
            // A table that cannot be read costs its units, when they ask for it.
            if let Some(table) = fits.then(|| dwarf.debug_abbrev.abbreviations(offset).ok()).flatten() {
                dwarf.abbreviations_cache.set::<R>(offset, Arc::new(table));
                return true;
            }
            false
        });
    }
    places.into_iter().filter(|(_, is_read)| !is_read).map(|(offset, _)| offset).collect()
}

/// The bytes of a table of abbreviations (DWARF 5, 7.5.3); `None` when it has no end, or is too long.
fn length_of_table<R: Reader<Offset = usize>>(
    section: &gimli::DebugAbbrev<R>,
    offset: DebugAbbrevOffset,
    allowance: &Allowance,
) -> Option<u64> {
    let mut table = section.reader().clone();
    table.skip(offset.0).ok()?;
    let whole = table.len();
    while table.read_uleb128().ok()? != 0 {
        let before = table.len();
        table.skip_leb128().ok()?;
        table.read_u8().ok()?;
        loop {
            let (name, form) = (table.read_uleb128().ok()?, table.read_uleb128().ok()?);
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                table.skip_leb128().ok()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
        if !allowance.take((before - table.len()) as u64) {
            return None;
        }
    }
    Some((whole - table.len()) as u64)
}
