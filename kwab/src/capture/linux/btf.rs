//! Reads where members of structures lie, from the types that a Linux carries for BPF (`Documentation/bpf/btf.rst`).
//!
//! The section holds a header, the types one after another, and their names. A structure lists its members with name,
//! type and offset in bits; one without a name is a part of the structure around it.

use std::collections::BTreeMap;

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
/// Kinds of types that are told apart here.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Structures inside each other.
const DEEPEST: u32 = 8;

/// The types of a kernel.
#[derive(Debug)]
pub(super) struct Btf {
    bytes: Vec<u8>,
    names: usize,
    /// Where each type lies, from number 1 on.
    types: Vec<u32>,
    structures: BTreeMap<Vec<u8>, u32>,
}

/// The structures whose members are asked for.
const KEPT: &[&str] =
    &["task_struct", "thread_struct", "mm_struct", "rq", "inactive_task_frame", "sched_entity", "signal_struct"];

impl Btf {
    /// `None` when it is not such a section, or its header claims more than it has.
    pub(super) fn parse(bytes: Vec<u8>) -> Option<Self> {
        let word = |at: usize| word(&bytes, at).map(|word| word as usize);
        if half(&bytes, 0)? != MAGIC {
            return None;
        }
        let header = word(4)?.max(HEADER);
        let (types, names) = (header.checked_add(word(8)?)?, header.checked_add(word(16)?)?);
        let end = types.checked_add(word(12)?)?;
        (end <= bytes.len() && names <= bytes.len()).then_some(())?;
        let mut btf = Self { names, types: Vec::new(), structures: BTreeMap::new(), bytes };
        let mut at = types;
        while at < end {
            btf.types.push(u32::try_from(at).ok()?);
            let info = self::word(&btf.bytes, at + 4)?;
            let (kind, count) = (info >> 24 & 0x1f, info as usize & 0xffff);
            if kind == STRUCT && KEPT.iter().any(|name| name.as_bytes() == btf.name(at)) {
                let number = btf.types.len() as u32;
                btf.structures.entry(btf.name(at).to_vec()).or_insert(number);
            }
            at = at.checked_add(12 + behind(kind, count)?)?;
        }
        Some(btf)
    }

    fn name(&self, at: usize) -> &[u8] {
        let start = word(&self.bytes, at).and_then(|offset| self.names.checked_add(offset as usize));
        let text = start.and_then(|start| self.bytes.get(start..)).unwrap_or_default();
        &text[..memchr::memchr(0, text).unwrap_or(text.len())]
    }

    /// Bytes of a structure.
    pub(super) fn size(&self, structure: &str) -> Option<u64> {
        let number = *self.structures.get(structure.as_bytes())?;
        word(&self.bytes, self.place(number)? + 8).map(u64::from)
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.types.get(number.checked_sub(1)? as usize).map(|at| *at as usize)
    }

    /// Where a member lies in a structure, bytes; `path` goes into structures inside: `thread.sp`.
    pub(super) fn offset(&self, structure: &str, path: &str) -> Option<u64> {
        let mut number = *self.structures.get(structure.as_bytes())?;
        let mut sum = 0;
        for name in path.split('.') {
            let (bits, inner) = self.member(number, name.as_bytes(), DEEPEST)?;
            sum += u64::from(bits / 8);
            number = inner;
        }
        Some(sum)
    }

    /// Offset in bits and type of a member, also of one inside a structure without a name.
    fn member(&self, number: u32, name: &[u8], depth: u32) -> Option<(u32, u32)> {
        let at = self.place(number)?;
        let info = word(&self.bytes, at + 4)?;
        if !matches!(info >> 24 & 0x1f, STRUCT | UNION) {
            return None;
        }
        let members = (0..info as usize & 0xffff).map(|row| at + 12 + 12 * row);
        for row in members {
            let (inner, mut bits) = (word(&self.bytes, row + 4)?, word(&self.bytes, row + 8)?);
            if info >> 31 == 1 {
                bits &= 0xff_ffff;
            }
            let found = self.name(row);
            if found == name {
                return Some((bits, inner));
            }
            let part = if found.is_empty() && depth > 0 { self.member(inner, name, depth - 1) } else { None };
            if let Some((more, inner)) = part {
                return Some((bits.checked_add(more)?, inner));
            }
        }
        None
    }
}

/// Bytes that follow the three words of each type.
fn behind(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        3 => 12,
        STRUCT | UNION | 15 | 19 => 12 * count,
        6 | 13 => 8 * count,
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct rq { int a; struct { long b; }; }` by hand.
    fn sample() -> Vec<u8> {
        let names = b"\0rq\0a\0b\0int\0";
        let mut types: Vec<u32> = Vec::new();
        types.extend([9, 1 << 24, 4, 32]);
        types.extend([0, STRUCT << 24 | 1, 8, 6, 1, 0]);
        types.extend([1, STRUCT << 24 | 2, 16, 4, 1, 0, 0, 2, 64]);
        let types: Vec<u8> = types.into_iter().flat_map(u32::to_le_bytes).collect();
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types.len() as u32, types.len() as u32, names.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(types);
        bytes.extend(names);
        bytes
    }

    #[test]
    fn members_are_found_in_structures_without_a_name_too() {
        let btf = Btf::parse(sample()).expect("types");
        assert_eq!(btf.size("rq"), Some(16));
        assert_eq!(btf.offset("rq", "a"), Some(0));
        assert_eq!(btf.offset("rq", "b"), Some(8));
        assert_eq!(btf.offset("rq", "c"), None);
        assert_eq!(btf.offset("task_struct", "a"), None);
    }

    #[test]
    fn every_cut_and_every_changed_byte_ends_without_a_panic() {
        let whole = sample();
        for length in 0..whole.len() {
            let _ = Btf::parse(whole[..length].to_vec()).map(|btf| btf.offset("rq", "b"));
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = Btf::parse(bytes).map(|btf| btf.offset("rq", "b"));
            }
        }
    }
}
