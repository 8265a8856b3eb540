//! Reads values out of a dump by their types and shows them within limits.
//!
//! Slices and texts are what their pointer and length say; of a Rust enum the variant is shown that its number
//! chooses. Nothing that was not captured is shown as a value.

use std::cell::Cell;

use gimli::DwAte;
use schemars::JsonSchema;
use serde::Serialize;

use super::place::Store;
use super::types::{Member, Shape, Type, Variants};
use crate::symbols::info::{Die, Info};

/// How much is shown.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Levels of fields within fields.
    pub depth: usize,
    /// Elements of an array or slice.
    pub elements: usize,
}

/// Nodes of one answer.
const MOST_NODES: usize = 4096;
/// Characters of a text that are shown.
const MOST_TEXT: u64 = 256;

/// Why a value is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// The dump does not hold the memory.
    NotCaptured,
    /// The compiler did not keep it at this instruction.
    OptimizedOut,
    /// A limit of depth or size was reached.
    Limit,
}

/// A value, or why there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Node {
    /// Name of the variable or field; an element has none.
    pub name: Option<String>,
    /// Name of the type.
    pub type_name: String,
    /// Where it is, hexadecimal; none for a value that is in registers.
    pub address: Option<String>,
    /// A number, pointer, text or variant in words.
    pub value: Option<String>,
    /// Fields or elements.
    pub fields: Vec<Self>,
    /// Elements that are not shown.
    pub more: u64,
    /// Why there is no value.
    pub missing: Option<Missing>,
}

/// A value's place and type.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    /// Where it is.
    pub(super) store: Store,
    /// Entry of its type.
    pub(super) die: Option<Die>,
}

/// Shows values of one image's types.
pub(super) struct Values<'v> {
    /// Where types are read.
    pub(super) info: &'v Info,
    /// Fills bytes from a virtual address on; how many are known.
    pub(super) read: &'v dyn Fn(u64, &mut [u8]) -> usize,
    /// How much is shown.
    pub(super) limits: Limits,
    /// Nodes that may still be made.
    pub(super) left: Cell<usize>,
}

impl<'v> Values<'v> {
    /// Nothing shown yet.
    pub(super) fn new(info: &'v Info, read: &'v dyn Fn(u64, &mut [u8]) -> usize, limits: Limits) -> Self {
        Self { info, read, limits, left: Cell::new(MOST_NODES) }
    }

    /// The type of a value.
    pub(super) fn type_of(&self, typed: &Typed) -> Type {
        self.info.type_at(typed.die)
    }

    /// Bytes of a value.
    fn bytes(&self, store: &Store, length: u64) -> Result<Vec<u8>, Missing> {
        const MOST: u64 = 1 << 16;
        let length = usize::try_from(length.min(MOST)).unwrap_or(0);
        match store {
            Store::Lost => Err(Missing::OptimizedOut),
            Store::At(addr) => {
                let mut bytes = vec![0; length];
                let known = (self.read)(*addr, &mut bytes);
                if known == length { Ok(bytes) } else { Err(Missing::NotCaptured) }
            }
            Store::Bytes(bytes) => {
                let own = bytes.get(..length).ok_or(Missing::OptimizedOut)?;
                own.iter().copied().collect::<Option<_>>().ok_or(Missing::OptimizedOut)
            }
        }
    }

    /// A number of up to 16 bytes.
    fn number(&self, store: &Store, size: u64) -> Result<u128, Missing> {
        let bytes = self.bytes(store, size.min(16))?;
        let mut wide = [0; 16];
        wide[..bytes.len()].copy_from_slice(&bytes);
        Ok(u128::from_le_bytes(wide))
    }

    /// A field or element of a value.
    pub(super) fn part(&self, store: &Store, offset: u64) -> Store {
        match store {
            Store::At(addr) => Store::At(addr.wrapping_add(offset)),
            Store::Bytes(bytes) => usize::try_from(offset)
                .ok()
                .and_then(|offset| bytes.get(offset..))
                .map_or(Store::Lost, |rest| Store::Bytes(rest.to_vec())),
            Store::Lost => Store::Lost,
        }
    }

    /// What a pointer points at; `None` when the value is not a pointer.
    pub(super) fn follow(&self, typed: &Typed) -> Option<Result<Typed, Missing>> {
        let found = self.type_of(typed);
        let (store, die) = match found.shape {
            Shape::Pointer(die) => (typed.store.clone(), die),
            Shape::Fields(members, None) => {
                let pointer = fat(&members)?.0;
                let Shape::Pointer(die) = self.info.type_at(pointer.die).shape else { return None };
                (self.part(&typed.store, pointer.offset), die)
            }
            _ => return None,
        };
        Some(self.number(&store, 8).map(|addr| Typed { store: Store::At(addr as u64), die }))
    }

    /// The field of a name, through pointers and the only variant that fits.
    pub(super) fn field(&self, typed: &Typed, name: &str) -> Option<Result<Typed, Missing>> {
        const MOST_POINTERS: usize = 4;
        let mut typed = typed.clone();
        for _ in 0..MOST_POINTERS {
            let found = self.type_of(&typed);
            let Shape::Fields(members, variants) = &found.shape else {
                match self.follow(&typed)? {
                    Ok(next) => typed = next,
                    Err(missing) => return Some(Err(missing)),
                }
                continue;
            };
            let named = |member: &&Member| {
                // Fields of tuples are `__0` in DWARF.
                member.name == name || member.name.strip_prefix("__") == Some(name)
            };
            if let Some(member) = members.iter().find(named) {
                return Some(Ok(Typed { store: self.part(&typed.store, member.offset), die: member.die }));
            }
            let variant = match self.variant(&typed.store, variants.as_ref()?) {
                Ok(variant) => variant?,
                Err(missing) => return Some(Err(missing)),
            };
            let inner = Typed { store: self.part(&typed.store, variant.offset), die: variant.die };
            if variant.name == name {
                return Some(Ok(inner));
            }
            typed = inner;
        }
        None
    }

    /// The element of a number: of an array, a slice, or behind a pointer.
    pub(super) fn element(&self, typed: &Typed, number: u64) -> Option<Result<Typed, Missing>> {
        let found = self.type_of(typed);
        let (first, die) = match found.shape {
            Shape::Array(die, _) => (typed.store.clone(), die),
            _ => match self.follow(typed)? {
                Ok(target) => match self.type_of(&target).shape {
                    Shape::Array(die, _) => (target.store, die),
                    _ => (target.store, target.die),
                },
                Err(missing) => return Some(Err(missing)),
            },
        };
        let size = self.info.type_at(die).size;
        Some(Ok(Typed { store: self.part(&first, number.wrapping_mul(size)), die }))
    }

    /// The variant that a value is.
    fn variant<'t>(&self, store: &Store, variants: &'t Variants) -> Result<Option<&'t Member>, Missing> {
        let Some(discriminant) = &variants.discriminant else {
            return Ok(variants.list.first().map(|(_, member)| member));
        };
        let size = self.info.type_at(discriminant.die).size.clamp(1, 8);
        let number = self.number(&self.part(store, discriminant.offset), size)? as u64;
        let mask = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
        let own = variants.list.iter().find(|(value, _)| value.is_some_and(|value| value & mask == number));
        let other = || variants.list.iter().find(|(value, _)| value.is_none());
        Ok(own.or_else(other).map(|(_, member)| member))
    }

    /// Shows a value.
    pub(super) fn show(&self, name: Option<&str>, typed: &Typed, depth: usize) -> Node {
        let found = self.type_of(typed);
        let address = match typed.store {
            Store::At(addr) => Some(format!("{addr:#018x}")),
            _ => None,
        };
        let mut node =
            Node { name: name.map(str::to_owned), type_name: found.name.clone(), address, ..Node::default() };
        let left = self.left.get();
        if left == 0 {
            node.missing = Some(Missing::Limit);
            return node;
        }
        self.left.set(left - 1);
        if let Err(missing) = self.fill(&mut node, typed, &found, depth) {
            node.missing = Some(missing);
        }
        node
    }

    fn fill(&self, node: &mut Node, typed: &Typed, found: &Type, depth: usize) -> Result<(), Missing> {
        let deeper = || depth.checked_sub(1).ok_or(Missing::Limit);
        match &found.shape {
            Shape::Base(encoding) => node.value = Some(self.base(&typed.store, found, *encoding)?),
            Shape::Pointer(_) => node.value = Some(format!("{:#x}", self.number(&typed.store, 8)?)),
            Shape::Named(names) => {
                let number = self.number(&typed.store, found.size)? as u64;
                let name = names.iter().find(|(value, _)| *value == number).map(|(_, name)| name.clone());
                node.value = Some(name.unwrap_or_else(|| format!("{number} (no such value)")));
            }
            Shape::Array(die, count) => self.elements(node, &typed.store, *die, *count, deeper()?),
            Shape::Fields(members, None) if fat(members).is_some() => self.fat(node, typed, members, depth)?,
            Shape::Fields(members, variants) => {
                // An enum's own bytes decide what is shown, so nothing is shown without them.
                if let Some(variants) = variants {
                    let Some(variant) = self.variant(&typed.store, variants)? else {
                        node.value = Some("<no such variant>".to_owned());
                        return Ok(());
                    };
                    node.value = Some(variant.name.clone());
                    let inner = Typed { store: self.part(&typed.store, variant.offset), die: variant.die };
                    if let Shape::Fields(members, None) = self.type_of(&inner).shape
                        && !members.is_empty()
                    {
                        self.fields(node, &inner.store, &members, deeper()?);
                    }
                    return Ok(());
                }
                if !members.is_empty() {
                    self.fields(node, &typed.store, members, deeper()?);
                }
            }
            Shape::Opaque => node.value = Some(if found.size == 0 { "()".to_owned() } else { "…".to_owned() }),
        }
        Ok(())
    }

    fn fields(&self, node: &mut Node, store: &Store, members: &[Member], depth: usize) {
        // One more says that there are more.
        for member in members.iter().take(self.left.get() + 1) {
            let name = member.name.strip_prefix("__").unwrap_or(&member.name);
            let part = Typed { store: self.part(store, member.offset), die: member.die };
            node.fields.push(self.show(Some(name), &part, depth));
        }
    }

    fn elements(&self, node: &mut Node, store: &Store, die: Option<Die>, count: u64, depth: usize) {
        let size = self.info.type_at(die).size;
        let shown = count.min(self.limits.elements as u64);
        for number in 0..shown {
            let part = Typed { store: self.part(store, number.wrapping_mul(size)), die };
            let element = self.show(None, &part, depth);
            let ends = element.missing == Some(Missing::NotCaptured) && number > 0;
            node.fields.push(element);
            if self.left.get() == 0 {
                break;
            }
            if ends && node.fields.iter().rev().take(4).all(|element| element.missing.is_some()) {
                break;
            }
        }
        node.more = count - node.fields.len() as u64;
    }

    /// A slice or text: a pointer with a length.
    fn fat(&self, node: &mut Node, typed: &Typed, members: &[Member], depth: usize) -> Result<(), Missing> {
        let Some((pointer, length)) = fat(members) else { return Ok(()) };
        let count = self.number(&self.part(&typed.store, length.offset), 8)? as u64;
        let addr = self.number(&self.part(&typed.store, pointer.offset), 8)? as u64;
        let die = match self.info.type_at(pointer.die).shape {
            Shape::Pointer(die) => die,
            _ => None,
        };
        node.value = Some(format!("{addr:#x}, {count} long"));
        if node.type_name.ends_with("str") {
            let text = self.bytes(&Store::At(addr), count.min(MOST_TEXT))?;
            let more = if count > MOST_TEXT { "…" } else { "" };
            node.value = Some(format!("{:?}{more}", String::from_utf8_lossy(&text)));
            return Ok(());
        }
        self.elements(node, &Store::At(addr), die, count, depth.checked_sub(1).ok_or(Missing::Limit)?);
        Ok(())
    }

    fn base(&self, store: &Store, found: &Type, encoding: DwAte) -> Result<String, Missing> {
        if found.size == 0 {
            return Ok("()".to_owned());
        }
        let number = self.number(store, found.size)?;
        let bits = 8 * found.size.min(16) as u32;
        let signed = (number << (128 - bits)) as i128 >> (128 - bits);
        Ok(match encoding {
            gimli::DW_ATE_boolean if number < 2 => (number == 1).to_string(),
            gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => signed.to_string(),
            gimli::DW_ATE_UTF if let Some(character) = char::from_u32(number as u32) => format!("{character:?}"),
            gimli::DW_ATE_float if bits == 32 => f32::from_bits(number as u32).to_string(),
            gimli::DW_ATE_float if bits == 64 => f64::from_bits(number as u64).to_string(),
            _ if number > 0xffff => format!("{number} ({number:#x})"),
            _ => number.to_string(),
        })
    }
}

/// Pointer and length of what is a slice or a text.
fn fat(members: &[Member]) -> Option<(&Member, &Member)> {
    let [first, second] = members else { return None };
    (first.name == "data_ptr" && second.name == "length").then_some((first, second))
}
