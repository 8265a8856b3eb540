//! Reads what the monitor's `info registers -a` prints of x86-64 processors.
//!
//! A processor begins with `CPU#0`; then come words `NAME=HEX`, short names padded before the sign (`R8 =…`). A
//! segment's line holds selector, base, limit and flags. What is not known is passed over.

use kwab_format::record::RegId;

/// Registers of one virtual processor, as QEMU prints them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processor {
    /// Number of the processor, from 0.
    pub number: u32,
    /// Its registers, in the order in which they are printed.
    pub registers: Vec<(RegId, u64)>,
    /// It waits for an interrupt.
    pub halted: bool,
    /// It runs a program.
    pub in_user: bool,
}

impl Processor {
    /// A register's value; 0 when it was not printed.
    #[must_use]
    pub fn get(&self, id: RegId) -> u64 {
        self.registers.iter().find(|(known, _)| *known == id).map_or(0, |(_, value)| *value)
    }

    /// Its stack pointer.
    #[must_use]
    pub fn sp(&self) -> u64 {
        self.get(RegId::RSP)
    }

    /// Its instruction pointer.
    #[must_use]
    pub fn ip(&self) -> u64 {
        self.get(RegId::RIP)
    }

    /// Whether it takes interrupts.
    #[must_use]
    pub fn interrupts_on(&self) -> bool {
        self.get(RegId::RFLAGS) >> 9 & 1 != 0
    }
}

/// Names as the monitor has them.
const NAMES: [(&str, RegId); 23] = [
    ("RAX", RegId::RAX),
    ("RBX", RegId::RBX),
    ("RCX", RegId::RCX),
    ("RDX", RegId::RDX),
    ("RSI", RegId::RSI),
    ("RDI", RegId::RDI),
    ("RBP", RegId::RBP),
    ("RSP", RegId::RSP),
    ("R8", RegId::R8),
    ("R9", RegId::R9),
    ("R10", RegId::R10),
    ("R11", RegId::R11),
    ("R12", RegId::R12),
    ("R13", RegId::R13),
    ("R14", RegId::R14),
    ("R15", RegId::R15),
    ("RIP", RegId::RIP),
    ("RFL", RegId::RFLAGS),
    ("CR0", RegId::CR0),
    ("CR2", RegId::CR2),
    ("CR3", RegId::CR3),
    ("CR4", RegId::CR4),
    ("EFER", RegId::EFER),
];

/// Segments: selector, and base where that is kept.
const SEGMENTS: [(&str, RegId, Option<RegId>); 6] = [
    ("CS", RegId::CS, None),
    ("SS", RegId::SS, None),
    ("DS", RegId::DS, None),
    ("ES", RegId::ES, None),
    ("FS", RegId::FS, Some(RegId::FS_BASE)),
    ("GS", RegId::GS, Some(RegId::GS_BASE)),
];

/// The register of a name that GDB's description of a machine has too, in its small letters.
pub(super) fn named(name: &str) -> Option<RegId> {
    let segments = SEGMENTS.iter().map(|(name, id, _)| (name, id));
    let mut all = NAMES.iter().map(|(name, id)| (name, id)).chain(segments);
    all.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, id)| *id)
}

/// The processors of a text that have an instruction pointer of 64 bits.
#[must_use]
pub fn parse(text: &str) -> Vec<Processor> {
    let mut all: Vec<Processor> = Vec::new();
    for line in text.lines() {
        if let Some(number) = line.trim().strip_prefix("CPU#").and_then(|number| number.trim().parse().ok()) {
            all.push(Processor { number, ..Processor::default() });
        } else if let Some(processor) = all.last_mut() {
            take(processor, line);
        }
    }
    all.retain(|processor| processor.registers.iter().any(|(id, _)| *id == RegId::RIP));
    all
}

/// Takes what a line of the block says.
pub(crate) fn take(processor: &mut Processor, line: &str) {
    let line = line.replace(" =", "=");
    let mut words = line.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let Some((name, value)) = word.split_once('=') else { continue };
        let Ok(value) = u64::from_str_radix(value, 16) else { continue };
        if let Some((_, id)) = NAMES.iter().find(|(known, _)| *known == name) {
            processor.registers.push((*id, value));
        } else if let Some((_, id, base)) = SEGMENTS.iter().find(|(known, ..)| *known == name) {
            processor.registers.push((*id, value));
            let at = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            processor.registers.extend((*base).zip(at));
        } else if name == "HLT" {
            processor.halted = value != 0;
        } else if name == "CPL" {
            processor.in_user = value == 3;
        }
    }
}
