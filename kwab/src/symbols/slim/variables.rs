//! Copies what an image says of variables into a small symbol file: statics, arguments and locals of the chosen
//! functions, and the types that these lead to.
//!
//! Units repeat the types of their headers and crates; what has the same name, layout and surroundings is written
//! once. A type too many is written by its name and size, so that its values are not shown as something else.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

use gimli::write::{Address, AttributeValue, DwarfUnit, Expression, Location, LocationList, UnitEntryId};
use gimli::{DwAt, DwLang, DwTag, Operation, Reader as _};

use crate::symbols::info::{Die, Entry, Info, Value};
use crate::symbols::{Dwarf, Image};

/// Entries of types that are written.
const MOST_ENTRIES: usize = 1 << 17;
/// How far around a type is looked to tell it from another of its name.
const SURROUNDINGS: u8 = 3;
/// Namespaces inside each other.
const MOST_SPACES: usize = 64;
/// Levels of entries below a type: a structure, its variants, one of them, its member.
const DEEPEST: usize = 4;

/// Attributes that are copied as they are.
const COPIED: [DwAt; 12] = [
    gimli::DW_AT_byte_size,
    gimli::DW_AT_encoding,
    gimli::DW_AT_data_member_location,
    gimli::DW_AT_bit_size,
    gimli::DW_AT_data_bit_offset,
    gimli::DW_AT_alignment,
    gimli::DW_AT_count,
    gimli::DW_AT_lower_bound,
    gimli::DW_AT_upper_bound,
    gimli::DW_AT_const_value,
    gimli::DW_AT_discr_value,
    gimli::DW_AT_declaration,
];

/// Parts of a type that say how its values look.
const PARTS: [DwTag; 6] = [
    gimli::DW_TAG_member,
    gimli::DW_TAG_variant_part,
    gimli::DW_TAG_variant,
    gimli::DW_TAG_enumerator,
    gimli::DW_TAG_subrange_type,
    gimli::DW_TAG_inheritance,
];

/// A namespace by its number; the first is the whole image.
type NameSpace = u32;

/// Where a type may be: its namespace, and its name with its surroundings.
type Look = (NameSpace, u64);

/// What the DWARF of an image has of variables, and what of it was copied.
pub(super) struct Variables {
    info: Info,
    /// The chosen functions by their first address.
    functions: HashMap<u64, Die>,
    statics: Vec<(Entry, NameSpace)>,
    /// Each with the one around it.
    spaces: Vec<(NameSpace, String)>,
    space_of: HashMap<Die, NameSpace>,
    copied: HashMap<Die, UnitEntryId>,
    by_look: HashMap<Look, UnitEntryId>,
    space_entries: HashMap<NameSpace, UnitEntryId>,
    looks: HashMap<(Die, u8), u64>,
    /// Types that are named but not filled yet.
    open: Vec<(Entry, UnitEntryId)>,
    room: usize,
    /// How many units are of each language.
    languages: BTreeMap<u16, usize>,
}

impl Variables {
    /// Finds the statics of an image, and the functions with these first addresses; `None` without DWARF.
    pub(super) fn of(image: &Image, functions: &BTreeSet<(u64, u64)>) -> Option<Self> {
        let mut found = Self {
            info: Info::of(image)?,
            functions: HashMap::new(),
            statics: Vec::new(),
            spaces: vec![(0, String::new())],
            space_of: HashMap::new(),
            copied: HashMap::new(),
            by_look: HashMap::new(),
            space_entries: HashMap::new(),
            looks: HashMap::new(),
            open: Vec::new(),
            room: MOST_ENTRIES,
            languages: BTreeMap::new(),
        };
        let starts: BTreeSet<u64> = functions.iter().map(|(start, _)| *start).collect();
        let mut known = HashMap::new();
        for unit in 0..found.info.len() {
            found.survey(unit, &starts, &mut known);
        }
        Some(found)
    }

    /// The language of most units: a debugger reads names by its rules.
    pub(super) fn language(&self) -> Option<DwLang> {
        let (language, _) = self.languages.iter().max_by_key(|(_, units)| **units)?;
        Some(DwLang(*language))
    }

    /// Whether something was left out because it costs too much.
    pub(super) fn is_cut(&self) -> bool {
        self.room == 0 || self.info.is_cut()
    }

    /// The entry of a chosen function.
    pub(super) fn function(&self, start: u64) -> Option<Die> {
        self.functions.get(&start).copied()
    }

    /// The entries of the DWARF of the image.
    pub(super) const fn info(&self) -> &Info {
        &self.info
    }

    fn survey(&mut self, unit: usize, starts: &BTreeSet<u64>, known: &mut HashMap<(NameSpace, String), NameSpace>) {
        let Self { info, functions, statics, spaces, space_of, languages, .. } = self;
        let mut around: Vec<(isize, NameSpace)> = Vec::new();
        info.each(unit, None, &mut |depth, entry| {
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            if let Some(Value::Language(language)) = entry.get(gimli::DW_AT_language) {
                *languages.entry(language.0).or_default() += 1;
            }
            let outer = around.last().map_or(0, |(_, space)| *space);
            if entry.tag == gimli::DW_TAG_subprogram {
                let is_chosen = |start: u64, _| {
                    let is_chosen = starts.contains(&start);
                    if is_chosen {
                        functions.entry(start).or_insert(entry.die);
                    }
                    is_chosen
                };
                info.any_range(&entry, &mut { is_chosen });
            }
            let is_space = entry.tag == gimli::DW_TAG_namespace || entry.tag == gimli::DW_TAG_subprogram;
            // What lies deeper is put into the deepest.
            if is_space && around.len() < MOST_SPACES {
                let name = info.name(&entry).unwrap_or_default();
                let next = NameSpace::try_from(spaces.len()).unwrap_or(0);
                let space = *known.entry((outer, name.clone())).or_insert(next);
                if space == next {
                    spaces.push((outer, name));
                }
                around.push((depth, space));
            } else if entry.tag == gimli::DW_TAG_variable {
                if is_static(info, &entry) {
                    statics.push((entry, outer));
                }
            } else if outer != 0 && is_type(entry.tag) {
                space_of.insert(entry.die, outer);
            }
            true
        });
    }

    /// Writes every static that has a name, and the types that they and what was written before lead to.
    pub(super) fn statics(&mut self, out: &mut DwarfUnit) {
        for (entry, space) in std::mem::take(&mut self.statics) {
            let Some(name) = self.info.name(&entry).filter(|name| !name.contains("{vtable")) else { continue };
            let parent = self.space(out, space);
            let id = out.unit.add(parent, entry.tag);
            set_text(out, id, gimli::DW_AT_name, &name);
            if let Some(linkage) = self.info.linkage(&entry) {
                set_text(out, id, gimli::DW_AT_linkage_name, &linkage);
            }
            self.kind(out, id, &entry);
            self.location(out, id, &entry);
        }
        while let Some((entry, id)) = self.open.pop() {
            self.fill(out, id, &entry, 0);
        }
    }

    /// Writes an argument or a local; not a static, which is written once.
    pub(super) fn local(&mut self, out: &mut DwarfUnit, parent: UnitEntryId, entry: &Entry) {
        let name = self.info.name(entry).filter(|name| !name.is_empty());
        let Some(name) = name.filter(|_| !is_static(&self.info, entry)) else { return };
        let id = out.unit.add(parent, entry.tag);
        set_text(out, id, gimli::DW_AT_name, &name);
        self.kind(out, id, entry);
        self.location(out, id, entry);
    }

    /// Writes what the variables of a function are relative to.
    pub(super) fn frame_base(&self, out: &mut DwarfUnit, id: UnitEntryId, entry: &Entry) {
        if let Some((unit, Value::Exprloc(expression))) = self.info.attribute(entry, gimli::DW_AT_frame_base)
            && let Some(copy) = self.expression(unit, expression)
        {
            out.unit.get_mut(id).set(gimli::DW_AT_frame_base, AttributeValue::Exprloc(copy));
        }
    }

    /// Sets the type of an entry.
    fn kind(&mut self, out: &mut DwarfUnit, id: UnitEntryId, entry: &Entry) {
        if let Some(target) = self.info.type_of(entry).and_then(|die| self.type_entry(out, die)) {
            out.unit.get_mut(id).set(gimli::DW_AT_type, AttributeValue::UnitRef(target));
        }
    }

    /// The entry of a type, which is filled later.
    fn type_entry(&mut self, out: &mut DwarfUnit, die: Die) -> Option<UnitEntryId> {
        if let Some(known) = self.copied.get(&die) {
            return Some(*known);
        }
        let entry = self.info.entry(die).filter(|entry| is_type(entry.tag))?;
        let space = self.space_of.get(&die).copied().unwrap_or_default();
        let look = (space, self.look(&entry, SURROUNDINGS));
        if let Some(known) = self.by_look.get(&look) {
            self.copied.insert(die, *known);
            return Some(*known);
        }
        let parent = self.space(out, space);
        let tag = if self.room == 0 { gimli::DW_TAG_unspecified_type } else { entry.tag };
        let id = out.unit.add(parent, tag);
        self.copied.insert(die, id);
        self.by_look.insert(look, id);
        if self.room == 0 {
            self.names(out, id, &entry);
        } else {
            self.room -= 1;
            self.open.push((entry, id));
        }
        Some(id)
    }

    /// What a type is to those who use it: its own entry, its parts, and the same of what they refer to, so far.
    fn look(&mut self, entry: &Entry, far: u8) -> u64 {
        if let Some(known) = self.looks.get(&(entry.die, far)) {
            return *known;
        }
        let mut hasher = DefaultHasher::new();
        self.look_of(entry, far, 0, &mut hasher);
        let look = hasher.finish();
        self.looks.insert((entry.die, far), look);
        look
    }

    fn look_of(&mut self, entry: &Entry, far: u8, depth: usize, hasher: &mut DefaultHasher) {
        (entry.tag.0, self.info.name(entry)).hash(hasher);
        COPIED.map(|name| entry.get(name).map(|value| format!("{value:?}"))).hash(hasher);
        let target = self.info.type_of(entry).and_then(|die| self.info.entry(die));
        match target {
            Some(target) if far > 0 => self.look(&target, far - 1).hash(hasher),
            target => target.and_then(|target| self.info.name(&target)).hash(hasher),
        }
        if depth < DEEPEST {
            let parts = self.parts(entry);
            parts.len().hash(hasher);
            parts.iter().for_each(|part| self.look_of(part, far, depth + 1, hasher));
        }
    }

    fn parts(&self, entry: &Entry) -> Vec<Entry> {
        let mut parts = self.info.children(entry.die);
        parts.retain(|part| PARTS.contains(&part.tag));
        parts
    }

    /// Writes the attributes and the parts of an entry.
    fn fill(&mut self, out: &mut DwarfUnit, id: UnitEntryId, entry: &Entry, depth: usize) {
        self.names(out, id, entry);
        self.kind(out, id, entry);
        if depth == DEEPEST {
            return;
        }
        for part in self.parts(entry) {
            let part_id = out.unit.add(id, part.tag);
            self.copied.insert(part.die, part_id);
            self.room = self.room.saturating_sub(1);
            self.fill(out, part_id, &part, depth + 1);
        }
        // What tells the variants apart is one of the parts.
        let discriminant = entry.get(gimli::DW_AT_discr).and_then(|value| self.info.target(entry.die.unit, &value));
        if let Some(target) = discriminant.and_then(|die| self.copied.get(&die)) {
            out.unit.get_mut(id).set(gimli::DW_AT_discr, AttributeValue::UnitRef(*target));
        }
    }

    /// Writes the name and the numbers of an entry.
    fn names(&self, out: &mut DwarfUnit, id: UnitEntryId, entry: &Entry) {
        if let Some(name) = self.info.name(entry) {
            set_text(out, id, gimli::DW_AT_name, &name);
        }
        for name in COPIED {
            if let Some(value) = entry.get(name).and_then(plain) {
                out.unit.get_mut(id).set(name, value);
            }
        }
    }

    /// The entry of a namespace.
    fn space(&mut self, out: &mut DwarfUnit, space: NameSpace) -> UnitEntryId {
        // From the outermost that is not there yet.
        let (mut missing, mut at) = (Vec::new(), space);
        while at != 0 && !self.space_entries.contains_key(&at) {
            missing.push(at);
            at = self.spaces.get(at as usize).map_or(0, |(outer, _)| *outer);
        }
        let mut id = self.space_entries.get(&at).copied().unwrap_or_else(|| out.unit.root());
        for space in missing.into_iter().rev() {
            id = out.unit.add(id, gimli::DW_TAG_namespace);
            let name = self.spaces.get(space as usize).map(|(_, name)| name.clone()).unwrap_or_default();
            set_text(out, id, gimli::DW_AT_name, &name);
            self.space_entries.insert(space, id);
        }
        id
    }

    /// Sets where a variable lives, or its value.
    fn location(&self, out: &mut DwarfUnit, id: UnitEntryId, entry: &Entry) {
        let Some((unit, value)) = self.info.attribute(entry, gimli::DW_AT_location) else {
            let constant = self.info.attribute(entry, gimli::DW_AT_const_value).and_then(|(_, value)| plain(value));
            if let Some(constant) = constant {
                out.unit.get_mut(id).set(gimli::DW_AT_const_value, constant);
            }
            return;
        };
        if let Value::Exprloc(expression) = value {
            if let Some(copy) = self.expression(unit, expression) {
                out.unit.get_mut(id).set(gimli::DW_AT_location, AttributeValue::Exprloc(copy));
            }
            return;
        }
        let Some(mut list) = self.info.unit(unit).and_then(|unit| unit.attr_locations(value).ok().flatten()) else {
            return;
        };
        let mut copies = Vec::new();
        while let (true, Ok(Some(row))) = (self.info.charge_entry(), list.next()) {
            if let Some(data) = self.expression(unit, row.data) {
                let (begin, end) = (Address::Constant(row.range.begin), Address::Constant(row.range.end));
                copies.push(Location::StartEnd { begin, end, data });
            }
        }
        let list = out.unit.locations.add(LocationList(copies));
        out.unit.get_mut(id).set(gimli::DW_AT_location, AttributeValue::LocationListRef(list));
    }

    /// A copy of an expression; `None` of one that refers to entries or to addresses in another section.
    fn expression(&self, unit: usize, expression: gimli::Expression<Dwarf>) -> Option<Expression> {
        if let Some(address) = address(&self.info, unit, &expression) {
            return Some(Expression::raw([&[gimli::DW_OP_addr.0][..], &address.to_le_bytes()].concat()));
        }
        let encoding = self.info.unit(unit)?.encoding();
        let mut operations = expression.clone().operations(encoding);
        while let Some(operation) = operations.next().ok()? {
            let base = match operation {
                Operation::Deref { base_type, .. }
                | Operation::RegisterOffset { base_type, .. }
                | Operation::TypedLiteral { base_type, .. }
                | Operation::Convert { base_type }
                | Operation::Reinterpret { base_type } => base_type.0,
                Operation::ParameterRef { .. }
                | Operation::Call { .. }
                | Operation::VariableValue { .. }
                | Operation::ImplicitPointer { .. }
                | Operation::AddressIndex { .. }
                | Operation::ConstantIndex { .. } => return None,
                _ => 0,
            };
            if base != 0 {
                return None;
            }
        }
        Some(Expression::raw(expression.0.to_slice().ok()?.into_owned()))
    }
}

/// Whether a variable has one address for ever.
fn is_static(info: &Info, entry: &Entry) -> bool {
    let location = info.attribute(entry, gimli::DW_AT_location);
    matches!(location, Some((unit, Value::Exprloc(expression))) if address(info, unit, &expression).is_some())
}

/// The address that is all of an expression: its own, or one of the table of its unit.
fn address(info: &Info, unit: usize, expression: &gimli::Expression<Dwarf>) -> Option<u64> {
    let unit = info.unit(unit)?;
    let mut operations = expression.clone().operations(unit.encoding());
    let first = operations.next().ok().flatten()?;
    let is_all = operations.next().ok().is_some_and(|next| next.is_none());
    match first {
        Operation::Address { address } if is_all => Some(address),
        Operation::AddressIndex { index } if is_all => unit.address(index).ok(),
        _ => None,
    }
}

/// Whether an entry is a type that a variable may have or lead to.
fn is_type(tag: DwTag) -> bool {
    [
        gimli::DW_TAG_base_type,
        gimli::DW_TAG_structure_type,
        gimli::DW_TAG_class_type,
        gimli::DW_TAG_union_type,
        gimli::DW_TAG_enumeration_type,
        gimli::DW_TAG_array_type,
        gimli::DW_TAG_pointer_type,
        gimli::DW_TAG_reference_type,
        gimli::DW_TAG_rvalue_reference_type,
        gimli::DW_TAG_typedef,
        gimli::DW_TAG_const_type,
        gimli::DW_TAG_volatile_type,
        gimli::DW_TAG_restrict_type,
        gimli::DW_TAG_atomic_type,
        gimli::DW_TAG_subroutine_type,
        gimli::DW_TAG_unspecified_type,
    ]
    .contains(&tag)
}

/// A number, a flag or bytes as they are written; `None` of what refers to something.
fn plain(value: Value) -> Option<AttributeValue> {
    Some(match value {
        Value::Data1(number) => AttributeValue::Data1(number),
        Value::Data2(number) => AttributeValue::Data2(number),
        Value::Data4(number) => AttributeValue::Data4(number),
        Value::Data8(number) => AttributeValue::Data8(number),
        Value::Data16(number) => AttributeValue::Data16(number),
        Value::Udata(number) => AttributeValue::Udata(number),
        Value::Sdata(number) => AttributeValue::Sdata(number),
        Value::Flag(flag) => AttributeValue::Flag(flag),
        Value::Encoding(encoding) => AttributeValue::Encoding(encoding),
        Value::Block(bytes) => AttributeValue::Block(bytes.to_slice().ok()?.into_owned()),
        _ => return None,
    })
}

fn set_text(out: &mut DwarfUnit, id: UnitEntryId, name: DwAt, text: &str) {
    let text = AttributeValue::StringRef(out.strings.add(text.as_bytes()));
    out.unit.get_mut(id).set(name, text);
}
