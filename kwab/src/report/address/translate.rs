//! Shows the way from a virtual to a physical address, level by level.
//!
//! The tables themselves are read when the dump holds physical memory. A dump without it may have records of the
//! entries that its kernel went through; those are shown as far as they go.

use kwab_format::record::Pte;
use schemars::JsonSchema;
use serde::Serialize;

use super::hex;
use crate::memory::{Outcome, Ram, Rights, Space, flags, walk};
use crate::model::{Case, Located};

/// The version of [`Translation`]'s JSON form.
pub const SCHEMA: u32 = 1;
/// Where an entry holds a physical address.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// The most entries that a run is believed to hold, as the audit of page tables has it: 2^48 bytes.
const MAX_RUN: u64 = 1 << 36;

/// One level of the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LevelRow {
    /// 5 or 4 for the root, 1 for the last level.
    pub level: u8,
    /// Name of its table.
    pub table: &'static str,
    /// Index in the table.
    pub index: u16,
    /// Physical address of the entry, hexadecimal; none when the dump does not say it.
    pub at: Option<String>,
    /// The entry, hexadecimal; none when it was not captured.
    pub entry: Option<String>,
    /// Its flags by name.
    pub flags: Vec<&'static str>,
}

/// Where an address leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Translation {
    /// Version of this form.
    pub schema: u32,
    /// Name of the dump as the user gave it.
    pub file: String,
    /// The virtual address, hexadecimal.
    pub address: String,
    /// The address space.
    pub space: String,
    /// What the answer rests on.
    pub source: Source,
    /// The levels, root first, as far as they go.
    pub levels: Vec<LevelRow>,
    /// The physical address, hexadecimal.
    pub physical: Option<String>,
    /// Bytes of the page.
    pub page_bytes: Option<u64>,
    /// What all levels together allow, as `rw- user`.
    pub rights: Option<String>,
    /// Whether the dump holds the byte there.
    pub captured: bool,
    /// The answer in words.
    pub conclusion: String,
    /// Whether something was missing that could change the answer.
    pub incomplete: bool,
}

/// What a translation rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The tables in captured memory.
    Tables,
    /// Records of entries that the kernel wrote.
    Records,
    /// The dump has neither.
    Nothing,
}

/// Translates an address.
#[must_use]
pub fn translate(case: &Case<'_>, ram: &Ram<'_>, space: &Space, addr: u64, file: &str) -> Translation {
    let mut answer = Translation {
        schema: SCHEMA,
        file: file.to_owned(),
        address: hex(addr),
        space: space.name.clone(),
        source: Source::Nothing,
        levels: Vec::new(),
        physical: None,
        page_bytes: None,
        rights: None,
        captured: false,
        conclusion: String::new(),
        incomplete: false,
    };
    if !ram.is_empty() && space.tables.is_some() {
        by_tables(&mut answer, ram, space, addr);
        return answer;
    }
    match recorded(case, space.pid, addr) {
        Some(pte) => by_record(&mut answer, pte, addr),
        None => {
            answer.incomplete = true;
            let about = case.ptes.iter().any(|pte| pte.pid == space.pid || pte.pid.is_none());
            answer.conclusion = if about {
                answer.source = Source::Records;
                "no recorded entry covers it: not mapped, or not recorded".to_owned()
            } else {
                "the dump holds neither page tables nor records of them for this address space".to_owned()
            };
        }
    }
    answer
}

fn by_tables(answer: &mut Translation, ram: &Ram<'_>, space: &Space, addr: u64) {
    let Some(tables) = space.tables else { return };
    answer.source = Source::Tables;
    let walked = walk(tables, addr, &|paddr| ram.word(paddr));
    answer.levels = walked.steps.iter().map(|step| row(step.level, addr, Some(step.at), step.raw)).collect();
    answer.conclusion = match walked.outcome {
        Outcome::Page { paddr, size, rights } => {
            reached(answer, paddr, size, rights);
            let mut byte = [0];
            answer.captured = ram.read(paddr, &mut byte) == 1;
            let there = if answer.captured { "captured" } else { "not captured" };
            format!("physical {}, {there}", hex(paddr))
        }
        Outcome::NotPresent(level) => format!("not mapped: the {} entry is not present", table(level)),
        Outcome::Reserved(level) => format!("not mapped: the {} entry has its large-page bit set", table(level)),
        Outcome::NotCanonical => format!("not an address: not canonical with {} levels", tables.levels),
        Outcome::NotCaptured(level) => {
            answer.incomplete = true;
            format!("unknown: the {} entry was not captured", table(level))
        }
    };
}

fn reached(answer: &mut Translation, paddr: u64, size: u64, rights: Rights) {
    answer.physical = Some(hex(paddr));
    answer.page_bytes = Some(size);
    answer.rights = Some(rights.to_string());
}

fn row(level: u8, addr: u64, at: Option<u64>, raw: Option<u64>) -> LevelRow {
    let index = (addr / reach(level) % 512) as u16;
    let flags = raw.map(|raw| flags(raw, level)).unwrap_or_default();
    LevelRow { level, table: table(level), index, at: at.map(hex), entry: raw.map(hex), flags }
}

/// Bytes that an entry of a level covers.
const fn reach(level: u8) -> u64 {
    1 << (12 + 9 * (if level == 0 || level > 5 { 0 } else { level as u32 - 1 }))
}

/// The name of a level's table (SDM volume 3A, 4.5).
const fn table(level: u8) -> &'static str {
    match level {
        5 => "PML5",
        4 => "PML4",
        3 => "PDPT",
        2 => "PD",
        _ => "PT",
    }
}

/// The recorded entry that covers an address: of the process, or of the kernel.
pub(super) fn recorded<'c, 'a>(case: &'c Case<'a>, pid: Option<u32>, addr: u64) -> Option<&'c Located<Pte<'a>>> {
    let covers = |pte: &&Located<Pte<'_>>| {
        let length = size(pte).saturating_mul(pte.count.unwrap_or(1).clamp(1, MAX_RUN));
        pte.vaddr.is_some_and(|start| addr >= start && addr - start < length)
    };
    let kernel = addr >> 63 == 1;
    case.ptes.iter().find(|pte| (pte.pid == pid || pte.pid.is_none() || kernel) && covers(pte))
}

fn size(pte: &Pte<'_>) -> u64 {
    pte.size.filter(|size| size.is_power_of_two() && *size >= 4096).unwrap_or(4096)
}

fn by_record(answer: &mut Translation, pte: &Pte<'_>, addr: u64) {
    answer.source = Source::Records;
    let (start, size) = (pte.vaddr.unwrap_or(0), size(pte));
    let leaf = match size {
        0x20_0000 => 2,
        0x4000_0000 => 3,
        _ => 1,
    };
    let number = (addr - start) / size;
    let raw = pte.raw.map(|raw| raw.wrapping_add(number.wrapping_mul(size)));
    let mut rights = raw.map(Rights::of);
    let mut below = None;
    for upper in pte.levels.iter().flat_map(kwab_format::List::iter) {
        let Some(level) = upper.level.filter(|level| (leaf + 1..=5).contains(level)) else { continue };
        // A run may go on in another table, whose entries above are not recorded.
        let same = start / reach(level) == addr / reach(level);
        let own = upper.raw.filter(|_| same);
        answer.incomplete |= !same;
        answer.levels.push(row(level, addr, upper.addr.filter(|_| same), own));
        rights = rights.zip(own).map(|(all, raw)| all.and(Rights::of(raw)));
        below = own.filter(|_| level == leaf + 1);
    }
    let at = below.map(|raw| (raw & ADDRESS) + addr / reach(leaf) % 512 * 8);
    answer.levels.push(row(leaf, addr, at, raw));
    answer.incomplete |= raw.is_none();
    let physical = pte.paddr.or_else(|| pte.raw.map(|raw| raw & ADDRESS));
    let present = pte.rights.map_or_else(|| pte.raw.is_none_or(|raw| raw & 1 == 1), |rights| rights & 1 == 1);
    answer.conclusion = match physical {
        Some(first) if present => {
            let paddr = first.wrapping_add(addr - start);
            answer.physical = Some(hex(paddr));
            answer.page_bytes = Some(size);
            answer.rights = rights.map(|rights| rights.to_string());
            format!("physical {}, by the kernel's record of the entry", hex(paddr))
        }
        _ => "not mapped: the recorded entry is not present".to_owned(),
    };
}
