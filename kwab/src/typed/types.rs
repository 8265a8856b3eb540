//! What a type's values look like in memory: numbers, pointers, fields at offsets, variants chosen by a number.

use gimli::DwAte;

use crate::symbols::info::{Die, Entry, Info};

/// Names of types that are followed through typedefs and qualifiers.
const MOST_ALIASES: usize = 16;

/// A part of a value.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// Its name in the source.
    pub(super) name: String,
    /// Where it begins, bytes from the start of the whole.
    pub(super) offset: u64,
    /// Entry of its type.
    pub(super) die: Option<Die>,
}

/// The variants of a Rust enum.
#[derive(Debug, Clone)]
pub(super) struct Variants {
    /// What tells which one it is; `None` when there is only one.
    pub(super) discriminant: Option<Member>,
    /// Each with the number that stands for it; `None` stands for every other number.
    pub(super) list: Vec<(Option<u64>, Member)>,
}

/// How a value is laid out.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// A number, a character or a truth value.
    Base(DwAte),
    /// An address of a target.
    Pointer(Option<Die>),
    /// Fields, and perhaps variants.
    Fields(Vec<Member>, Option<Variants>),
    /// Elements, one behind the other.
    Array(Option<Die>, u64),
    /// A number with names.
    Named(Vec<(u64, String)>),
    /// Nothing that can be shown.
    Opaque,
}

/// A type and its layout.
#[derive(Debug, Clone)]
pub(super) struct Type {
    /// Its name as the source has it.
    pub(super) name: String,
    /// Bytes of a value.
    pub(super) size: u64,
    /// How a value is laid out.
    pub(super) shape: Shape,
}

impl Info {
    /// The type at an entry; an opaque one where DWARF does not say.
    pub(super) fn type_at(&self, die: Option<Die>) -> Type {
        let nothing = || Type { name: "()".to_owned(), size: 0, shape: Shape::Opaque };
        let Some(mut entry) = die.and_then(|die| self.entry(die)) else { return nothing() };
        let mut alias = None;
        for _ in 0..MOST_ALIASES {
            let through = [
                gimli::DW_TAG_typedef,
                gimli::DW_TAG_const_type,
                gimli::DW_TAG_volatile_type,
                gimli::DW_TAG_restrict_type,
                gimli::DW_TAG_atomic_type,
            ];
            if !through.contains(&entry.tag) {
                break;
            }
            alias = alias.or_else(|| self.name(&entry));
            let Some(next) = self.type_of(&entry).and_then(|die| self.entry(die)) else { return nothing() };
            entry = next;
        }
        let mut found = self.plain(&entry);
        found.name = alias.unwrap_or(found.name);
        found
    }

    fn plain(&self, entry: &Entry) -> Type {
        let size = entry.number(gimli::DW_AT_byte_size);
        let name = self.name(entry);
        let named = |size, shape| Type { name: name.clone().unwrap_or_else(|| "?".to_owned()), size, shape };
        match entry.tag {
            gimli::DW_TAG_base_type => {
                let encoding = entry.number(gimli::DW_AT_encoding).and_then(|code| u8::try_from(code).ok());
                // `()` is a base type without bytes.
                let shape = match entry.get(gimli::DW_AT_encoding) {
                    Some(gimli::AttributeValue::Encoding(encoding)) => Shape::Base(encoding),
                    _ => encoding.map_or(Shape::Opaque, |code| Shape::Base(DwAte(code))),
                };
                named(size.unwrap_or(0), shape)
            }
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                let target = self.type_of(entry);
                let to = || target.and_then(|die| self.entry(die)).and_then(|to| self.name(&to));
                let name = name.clone().unwrap_or_else(|| format!("*{}", to().unwrap_or_else(|| "void".to_owned())));
                Type { name, size: size.unwrap_or(8), shape: Shape::Pointer(target) }
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let (members, variants) = self.members(entry);
                named(size.unwrap_or(0), Shape::Fields(members, variants))
            }
            gimli::DW_TAG_array_type => self.array(entry),
            gimli::DW_TAG_enumeration_type => {
                let values = self
                    .children(entry.die)
                    .into_iter()
                    .filter_map(|child| Some((child.number(gimli::DW_AT_const_value)?, self.name(&child)?)));
                named(size.unwrap_or(0), Shape::Named(values.collect()))
            }
            gimli::DW_TAG_subroutine_type => Type { name: "fn".to_owned(), size: 0, shape: Shape::Opaque },
            _ => named(size.unwrap_or(0), Shape::Opaque),
        }
    }

    fn member(&self, entry: &Entry) -> Member {
        Member {
            name: self.name(entry).unwrap_or_default(),
            offset: entry.number(gimli::DW_AT_data_member_location).unwrap_or(0),
            die: self.type_of(entry),
        }
    }

    fn members(&self, entry: &Entry) -> (Vec<Member>, Option<Variants>) {
        let (mut members, mut variants) = (Vec::new(), None);
        for child in self.children(entry.die) {
            match child.tag {
                gimli::DW_TAG_member => members.push(self.member(&child)),
                gimli::DW_TAG_variant_part => variants = Some(self.variants(&child)),
                _ => {}
            }
        }
        (members, variants)
    }

    fn variants(&self, part: &Entry) -> Variants {
        let discriminant = part.get(gimli::DW_AT_discr).and_then(|value| self.target(part.die.unit, &value));
        let discriminant = discriminant.and_then(|die| self.entry(die)).map(|entry| self.member(&entry));
        let variants = self.children(part.die).into_iter().filter(|child| child.tag == gimli::DW_TAG_variant);
        let list = variants.filter_map(|variant| {
            let value = variant.number(gimli::DW_AT_discr_value);
            let member = self.children(variant.die).into_iter().find(|child| child.tag == gimli::DW_TAG_member)?;
            Some((value, self.member(&member)))
        });
        Variants { discriminant, list: list.collect() }
    }

    fn array(&self, entry: &Entry) -> Type {
        let element = self.type_of(entry);
        let counts = self.children(entry.die).into_iter().filter(|child| child.tag == gimli::DW_TAG_subrange_type);
        let count = counts.fold(1_u64, |all, range| {
            let count = range.number(gimli::DW_AT_count);
            let count = count.or_else(|| range.number(gimli::DW_AT_upper_bound).map(|last| last.wrapping_add(1)));
            all.saturating_mul(count.unwrap_or(0))
        });
        // Not the whole type: an array of itself would have no end.
        let inner = element.and_then(|die| self.entry(die));
        let name = inner.as_ref().and_then(|inner| self.name(inner)).unwrap_or_else(|| "?".to_owned());
        let size = inner.map_or(0, |inner| self.size(&inner));
        Type {
            name: format!("[{name}; {count}]"),
            size: count.saturating_mul(size),
            shape: Shape::Array(element, count),
        }
    }

    /// Bytes of a value of a type, where its entry says so, or through names, pointers and arrays of it.
    fn size(&self, entry: &Entry) -> u64 {
        let mut entry = entry.clone();
        let mut times = 1_u64;
        for _ in 0..MOST_ALIASES {
            if let Some(size) = entry.number(gimli::DW_AT_byte_size) {
                return times.saturating_mul(size);
            }
            if entry.tag == gimli::DW_TAG_pointer_type {
                return times.saturating_mul(8);
            }
            if entry.tag == gimli::DW_TAG_array_type {
                let range = self.children(entry.die).into_iter().find_map(|child| {
                    let last = child.number(gimli::DW_AT_upper_bound).map(|last| last.wrapping_add(1));
                    child.number(gimli::DW_AT_count).or(last)
                });
                times = times.saturating_mul(range.unwrap_or(0));
            }
            let Some(next) = self.type_of(&entry).and_then(|die| self.entry(die)) else { return 0 };
            entry = next;
        }
        0
    }
}
