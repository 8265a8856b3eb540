//! Entries of the DWARF of one image: attributes, children, names, and references between them.
//!
//! Nothing is believed to end by itself: children, references and names are followed within limits.

use gimli::{AttributeValue, DwAt, DwTag, UnitOffset, UnitRef};

use super::{Dwarf, Image, Units, cut, demangle};

/// References that are followed from entry to entry.
const MOST_HOPS: usize = 8;
/// Children of an entry that are looked at.
const MOST_CHILDREN: usize = 1 << 16;

/// What it costs to look at an entry, and at each of its attributes.
const ENTRY: u64 = 8;
const ATTRIBUTE: u64 = 2;

/// An attribute's value.
pub(crate) type Value = AttributeValue<Dwarf>;

/// An entry's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Die {
    /// Number of its unit.
    pub(crate) unit: usize,
    /// Where it is in the unit.
    pub(crate) offset: UnitOffset,
}

/// An entry's tag and attributes.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// What it is.
    pub(crate) tag: DwTag,
    /// Where it is.
    pub(crate) die: Die,
    attributes: Vec<(DwAt, Value)>,
}

impl Entry {
    /// An attribute of the entry itself.
    pub(crate) fn get(&self, name: DwAt) -> Option<Value> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    /// An attribute that is a number.
    pub(crate) fn number(&self, name: DwAt) -> Option<u64> {
        let value = self.get(name)?;
        value.udata_value().or_else(|| value.sdata_value().map(|value| value as u64))
    }
}

/// The DWARF of an image.
#[derive(Debug)]
pub(crate) struct Info(Units<Dwarf>);

impl Info {
    /// Reads the unit headers; `None` without DWARF.
    pub(crate) fn of(image: &Image) -> Option<Self> {
        image.units().map(Self)
    }

    /// Whether something was left out because it costs more than an image of its length may.
    pub(crate) fn is_cut(&self) -> bool {
        self.0.is_spent()
    }

    /// Charges for one more row of a list; whether it may go on.
    pub(crate) fn charge_entry(&self) -> bool {
        self.0.charge(ENTRY)
    }

    /// Number of units.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// A unit, when it can be read.
    pub(crate) fn unit(&self, index: usize) -> Option<UnitRef<'_, Dwarf>> {
        self.0.unit(index)
    }

    /// Calls `look` with every entry below `from` (of the whole unit without it) and its depth, until it says stop or
    /// the tree ends.
    pub(crate) fn each(&self, unit: usize, from: Option<UnitOffset>, look: &mut dyn FnMut(isize, Entry) -> bool) {
        let Some(reference) = self.unit(unit) else { return };
        let Ok(mut entries) = reference.entries_raw(from) else { return };
        let mut first = true;
        while !entries.is_empty() {
            let (depth, offset) = (entries.next_depth(), entries.next_offset());
            if !first && from.is_some() && depth <= 0 {
                return;
            }
            first = false;
            let Ok(abbreviation) = entries.read_abbreviation() else { return };
            let Some(abbreviation) = abbreviation else { continue };
            if !self.0.charge(ENTRY + ATTRIBUTE * abbreviation.attributes().len() as u64) {
                return;
            }
            let mut attributes = Vec::with_capacity(abbreviation.attributes().len());
            for spec in abbreviation.attributes() {
                let Ok(attribute) = entries.read_attribute(*spec) else { return };
                attributes.push((attribute.name(), attribute.value()));
            }
            let entry = Entry { tag: abbreviation.tag(), die: Die { unit, offset }, attributes };
            if !look(depth, entry) {
                return;
            }
        }
    }

    /// The entry at a place.
    pub(crate) fn entry(&self, die: Die) -> Option<Entry> {
        let mut found = None;
        self.each(die.unit, Some(die.offset), &mut |_, entry| {
            found = Some(entry);
            false
        });
        found
    }

    /// The entries directly below one.
    pub(crate) fn children(&self, die: Die) -> Vec<Entry> {
        let mut children = Vec::new();
        let mut seen = 0;
        self.each(die.unit, Some(die.offset), &mut |depth, entry| {
            seen += 1;
            if depth == 1 {
                children.push(entry);
            }
            seen < MOST_CHILDREN
        });
        children
    }

    /// The entry that an attribute of unit `unit` refers to.
    pub(crate) fn target(&self, unit: usize, value: &Value) -> Option<Die> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Die { unit, offset: *offset }),
            AttributeValue::DebugInfoRef(offset) => {
                let (unit, offset) = self.0.containing(unit, *offset)?;
                Some(Die { unit, offset })
            }
            _ => None,
        }
    }

    /// An attribute of an entry, or of what it is an instance of; with the unit that it is read in.
    pub(crate) fn attribute(&self, entry: &Entry, name: DwAt) -> Option<(usize, Value)> {
        let mut entry = entry.clone();
        for _ in 0..MOST_HOPS {
            if let Some(value) = entry.get(name) {
                return Some((entry.die.unit, value));
            }
            let origin = entry.get(gimli::DW_AT_abstract_origin).or_else(|| entry.get(gimli::DW_AT_specification))?;
            entry = self.entry(self.target(entry.die.unit, &origin)?)?;
        }
        None
    }

    /// The entry that the type of an entry is.
    pub(crate) fn type_of(&self, entry: &Entry) -> Option<Die> {
        let (unit, value) = self.attribute(entry, gimli::DW_AT_type)?;
        self.target(unit, &value)
    }

    /// The plain name of an entry.
    pub(crate) fn name(&self, entry: &Entry) -> Option<String> {
        self.text(self.attribute(entry, gimli::DW_AT_name)?)
    }

    /// The full name of an entry, as the linker sees it.
    pub(crate) fn linkage(&self, entry: &Entry) -> Option<String> {
        Some(demangle(&self.text(self.attribute(entry, gimli::DW_AT_linkage_name)?)?))
    }

    fn text(&self, (unit, value): (usize, Value)) -> Option<String> {
        let text = self.unit(unit)?.attr_string(value).ok()?;
        let text = cut(&gimli::Reader::to_slice(&text).ok()?);
        self.0.charge(text.len() as u64).then_some(text)
    }

    /// Whether the code of an entry covers a link address.
    pub(crate) fn covers(&self, entry: &Entry, link: u64) -> bool {
        self.any_range(entry, &mut |start, end| (start..end).contains(&link))
    }

    /// Whether one of the ranges of an entry's code, start and end, is as asked.
    pub(crate) fn any_range(&self, entry: &Entry, is_wanted: &mut dyn FnMut(u64, u64) -> bool) -> bool {
        let Some(unit) = self.unit(entry.die.unit) else { return false };
        if let Some(ranges) = entry.get(gimli::DW_AT_ranges) {
            let Ok(Some(mut ranges)) = unit.attr_ranges(ranges) else { return false };
            while let (true, Ok(Some(range))) = (self.0.charge(ENTRY), ranges.next()) {
                if is_wanted(range.begin, range.end) {
                    return true;
                }
            }
            return false;
        }
        let address = |name| entry.get(name).and_then(|value| unit.attr_address(value).ok().flatten());
        let Some(low) = address(gimli::DW_AT_low_pc) else { return false };
        let end = match entry.get(gimli::DW_AT_high_pc) {
            Some(AttributeValue::Udata(size)) => low.checked_add(size),
            _ => address(gimli::DW_AT_high_pc),
        };
        end.is_some_and(|end| is_wanted(low, end))
    }

    /// Whether the code of a unit covers a link address.
    pub(crate) fn unit_covers(&self, index: usize, link: u64) -> bool {
        let Some(unit) = self.0.own(index) else { return false };
        let Ok(mut ranges) = unit.unit_ranges() else { return false };
        while let (true, Ok(Some(range))) = (self.0.charge(ENTRY), ranges.next()) {
            if (range.begin..range.end).contains(&link) {
                return true;
            }
        }
        false
    }
}
