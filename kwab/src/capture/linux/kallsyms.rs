//! Reads the symbol table that a Linux carries for its own backtraces (`kernel/kallsyms.c`, `scripts/kallsyms.c`).
//!
//! Names are packed: a byte says how many tokens follow, each the number of a text in a table of 256; the first letter
//! is the symbol's type as nm(1) prints it. Addresses are offsets from a base, or, where the kernel keeps offsets of
//! per-CPU variables among them, negative ones below it. Since 6.0 `VMCOREINFO` says where all of it lies.

use std::collections::BTreeMap;

use super::super::space::Space;

/// Symbols that are read, and bytes of all their names: a kernel with everything built in has 300,000 and 9 MB.
const MOST_SYMBOLS: u32 = 1 << 20;
const MOST_NAMES: usize = 32 << 20;
const TOKENS: usize = 256;
/// The longest token, and the bytes of all of them.
const MOST_TOKEN: usize = 512;
const MOST_TABLE: usize = 64 << 10;
/// The longest name (`KSYM_NAME_LEN`).
const MOST_NAME: usize = 512;

/// The symbols of a kernel, in order of address.
#[derive(Debug, Default)]
pub(super) struct Kallsyms {
    /// Address and where the name lies in `names`.
    rows: Vec<(u64, u32, u16)>,
    names: Vec<u8>,
    most_names: usize,
    by_name: BTreeMap<Vec<u8>, u64>,
}

/// What is asked for by name; the others are only found by address.
const KEPT: &[&str] = &[
    "init_task",
    "runqueues",
    "__per_cpu_offset",
    "__start_BTF",
    "__stop_BTF",
    "__start_orc_unwind_ip",
    "__stop_orc_unwind_ip",
    "__start_orc_unwind",
    "__stop_orc_unwind",
    "__sched_text_start",
    "__sched_text_end",
    "_stext",
    "_etext",
    "_end",
    "modules",
    "nr_cpu_ids",
];

impl Kallsyms {
    /// Reads the tables; `told` gives the lines of `VMCOREINFO`. `None` where the kernel does not say where they are,
    /// or they are not what they should be.
    pub(super) fn read(space: &Space<'_>, told: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        let symbol = |name: &str| told(&format!("SYMBOL({name})"));
        let most = u64::from(MOST_SYMBOLS).min(space.held() / 4) as u32;
        let count = space.half(symbol("kallsyms_num_syms")?).filter(|count| *count <= most)?;
        let tokens = tokens(space, symbol("kallsyms_token_table")?, symbol("kallsyms_token_index")?)?;
        let offsets = space.bytes(symbol("kallsyms_offsets")?, count as usize * 4)?;
        let base = space.word(symbol("kallsyms_relative_base")?)?;
        let words = offsets.chunks_exact(4).map(|bytes| [bytes[0], bytes[1], bytes[2], bytes[3]]);
        let offsets: Vec<i32> = words.map(i32::from_le_bytes).collect();
        // Where per-CPU variables keep their offsets, all but these are negative.
        let negative = offsets.iter().filter(|offset| **offset < 0).count() > offsets.len() / 2;
        let address = |offset: i32| match negative {
            true if offset < 0 => base.wrapping_sub(1).wrapping_add_signed(-i64::from(offset)),
            true => offset as u64,
            false => base.wrapping_add(u64::from(offset as u32)),
        };
        let mut symbols = Self { most_names: MOST_NAMES.min(space.held() as usize), ..Self::default() };
        let mut at = symbol("kallsyms_names")?;
        for offset in offsets {
            at = symbols.name(space, at, &tokens, address(offset))?;
        }
        symbols.rows.sort_unstable_by_key(|row| row.0);
        // The kernel says the address of one of them itself.
        (symbols.find("_stext") == symbol("_stext")).then_some(symbols)
    }

    /// Unpacks one name; gives where the next one begins.
    fn name(&mut self, space: &Space<'_>, at: u64, tokens: &[Vec<u8>], address: u64) -> Option<u64> {
        let mut head = [0; 2];
        space.fill(at, &mut head[..1])?;
        let (mut length, mut begin) = (usize::from(head[0]), at.wrapping_add(1));
        if length & 0x80 != 0 {
            space.fill(begin, &mut head[1..])?;
            (length, begin) = (length & 0x7f | usize::from(head[1]) << 7, at.wrapping_add(2));
        }
        let packed = space.bytes(begin, length)?;
        let start = self.names.len();
        for token in packed {
            self.names.extend_from_slice(&tokens[usize::from(token)]);
        }
        let name = self
            .names
            .get(start + 1..)
            .filter(|name| name.len() <= MOST_NAME && self.names.len() <= self.most_names)?;
        if KEPT.iter().any(|kept| kept.as_bytes() == name) {
            self.by_name.entry(name.to_vec()).or_insert(address);
        }
        let kind = self.names[start].to_ascii_lowercase();
        // Only text and weak symbols name code, and a mark of the linker is not a function.
        if matches!(kind, b't' | b'w') && address >> 63 == 1 && !is_mark(name) {
            self.rows.push((address, u32::try_from(start + 1).ok()?, name.len() as u16));
        } else {
            self.names.truncate(start);
        }
        Some(begin.wrapping_add(length as u64))
    }

    /// Address of a symbol that is asked for by name.
    pub(super) fn find(&self, name: &str) -> Option<u64> {
        self.by_name.get(name.as_bytes()).copied()
    }

    /// The function around an address: its name, the distance from its begin, and its length up to the next one.
    pub(super) fn at(&self, address: u64) -> Option<(&[u8], u64, u64)> {
        let end = self.find("_etext")?;
        let inside = self.find("_stext")? <= address && address < end;
        let behind = self.rows.partition_point(|row| row.0 <= address);
        let (begin, ..) = *self.rows.get(behind.checked_sub(1).filter(|_| inside)?)?;
        // Of several names of one address the first is the one that the linker saw first.
        let first = self.rows.partition_point(|row| row.0 < begin);
        let (_, start, length) = self.rows[first];
        let next = self.rows.get(behind).map_or(end, |row| row.0);
        let name = self.names.get(start as usize..start as usize + usize::from(length))?;
        Some((name, address - begin, next.min(end) - begin))
    }
}

/// Whether a name says where a section of code begins or ends.
fn is_mark(name: &[u8]) -> bool {
    name.ends_with(b"_text_start") || name.ends_with(b"_text_end") || matches!(name, b"_text" | b"_stext" | b"_etext")
}

fn tokens(space: &Space<'_>, table: u64, index: u64) -> Option<Vec<Vec<u8>>> {
    let index = space.bytes(index, 2 * TOKENS)?;
    let starts = index.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let mut room = MOST_TABLE;
    let mut tokens = Vec::with_capacity(TOKENS);
    for start in starts {
        let token = space.text(table.checked_add(start.into())?, MOST_TOKEN);
        room = room.checked_sub(token.len())?;
        tokens.push(token);
    }
    Some(tokens)
}
