//! Reads the code of instruction sets whose instructions have fixed lengths, as a kernel prints it around a fault:
//! arm64 and riscv64.
//!
//! What a crash is about is read whole: loads, stores, branches, traps, integer arithmetic. The rest is said to be not
//! decoded, with its number; it is never guessed. Text follows GNU objdump, so that it can be searched for.

mod arm64;
mod riscv;
#[cfg(test)]
mod tests;

use kwab_format::record::Arch;

use super::instruction::{Access, Control, Instruction, Operand, Values};

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// A64: four bytes each.
    Arm64,
    /// RV64GC: two or four bytes each.
    Riscv64,
}

/// What an instruction does, apart from the values.
#[derive(Clone, Debug)]
struct Meaning {
    text: String,
    /// The place in memory that it is about.
    place: Option<Cell>,
    control: Control,
    /// Registers whose values decide where it goes on.
    tested: Vec<u16>,
    /// The register that holds where it goes, and what is added to it.
    goes_to: Option<(u16, u64)>,
}

/// A place in memory.
#[derive(Clone, Debug)]
struct Cell {
    base: Option<u16>,
    index: Option<IndexRegister>,
    displacement: u64,
    access: Access,
    size: usize,
}

/// What is added to a base register.
#[derive(Clone, Debug)]
struct IndexRegister {
    register: u16,
    /// Only its lower 32 bits count.
    narrow: bool,
    signed: bool,
    shift: u32,
}

impl Meaning {
    const fn plain(text: String) -> Self {
        Self { text, place: None, control: Control::Next, tested: Vec::new(), goes_to: None }
    }

    const fn trap(text: String) -> Self {
        Self { text, place: None, control: Control::Trap, tested: Vec::new(), goes_to: None }
    }
}

impl Fixed {
    /// The instruction set of a recorded architecture.
    #[must_use]
    pub fn of(arch: Option<Arch>) -> Option<Self> {
        match arch {
            Some(Arch::AARCH64) => Some(Self::Arm64),
            Some(Arch::RISCV64) => Some(Self::Riscv64),
            _ => None,
        }
    }

    /// The name of a general register by its DWARF number.
    #[must_use]
    pub fn register_name(self, number: u16) -> &'static str {
        match self {
            Self::Arm64 => arm64::name(number),
            Self::Riscv64 => riscv::name(number),
        }
    }

    /// Reads the instruction at the start of `bytes`, which lie at `addr`; `None` when they end within it.
    #[must_use]
    pub fn decode_at(self, bytes: &[u8], addr: u64, values: &dyn Values) -> Option<Instruction> {
        let bytes = bytes.get(..self.length(bytes)?)?;
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u32::from_le_bytes(word);
        let meaning = match self {
            Self::Arm64 => arm64::read(word, addr),
            Self::Riscv64 if bytes.len() == 2 => riscv::compressed(word as u16, addr),
            Self::Riscv64 => riscv::read(word, addr),
        };
        Some(match meaning {
            Some(meaning) => self.described(meaning, bytes, addr, values),
            None => not_decoded(word, bytes, addr),
        })
    }

    /// Reads what surrounds `ip`, as [`around`](super::around) does for x86: `bytes` lie at `start`.
    #[must_use]
    pub fn around(
        self,
        bytes: &[u8],
        start: u64,
        ip: u64,
        (before, after): (usize, usize),
        values: &dyn Values,
    ) -> Vec<Instruction> {
        let middle = ip.checked_sub(start).and_then(|at| usize::try_from(at).ok()).filter(|&at| at < bytes.len());
        let Some(middle) = middle else { return Vec::new() };
        let mut lines = self.leading_to(&bytes[..middle], start, values);
        lines.drain(..lines.len().saturating_sub(before));
        lines.extend(self.run(&bytes[middle..], ip, values).take(after + 1));
        lines
    }

    fn run<'b>(self, bytes: &'b [u8], start: u64, values: &'b dyn Values) -> impl Iterator<Item = Instruction> + 'b {
        let mut at = 0;
        std::iter::from_fn(move || {
            let found = self.decode_at(bytes.get(at..)?, start.wrapping_add(at as u64), values)?;
            at += found.bytes.len();
            Some(found)
        })
    }

    /// The run of instructions that begins earliest and ends exactly where `bytes` end.
    fn leading_to(self, bytes: &[u8], start: u64, values: &dyn Values) -> Vec<Instruction> {
        let step = if self == Self::Arm64 { 4 } else { 2 };
        let first = bytes.len() % step;
        for skip in (first..bytes.len()).step_by(step).take(4) {
            let lines: Vec<Instruction> = self.run(&bytes[skip..], start.wrapping_add(skip as u64), values).collect();
            if lines.iter().map(|line| line.bytes.len()).sum::<usize>() == bytes.len() - skip {
                return lines;
            }
        }
        Vec::new()
    }

    fn length(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Arm64 => Some(4),
            // Longer ones than of four bytes are not in use.
            Self::Riscv64 => Some(if bytes.first()? & 3 == 3 { 4 } else { 2 }),
        }
    }

    fn described(self, meaning: Meaning, bytes: &[u8], addr: u64, values: &dyn Values) -> Instruction {
        let value = |number: u16| match (self, number) {
            (Self::Riscv64, 0) => Some(0),
            _ => values.register(number),
        };
        let mut reads: Vec<(&'static str, u64)> = Vec::new();
        let place = meaning.place.as_ref();
        let used = place.and_then(|place| place.base).into_iter().chain(place.and_then(Cell::index_register));
        for number in used.chain(meaning.goes_to.map(|(number, _)| number)).chain(meaning.tested.iter().copied()) {
            let name = self.register_name(number);
            if let Some(value) = value(number).filter(|_| !reads.iter().any(|(known, _)| *known == name)) {
                reads.push((name, value));
            }
        }
        let target = meaning.goes_to.and_then(|(number, offset)| Some(value(number)?.wrapping_add(offset)));
        let control = match meaning.control {
            Control::Call(None) => Control::Call(target),
            Control::Jump(None) => Control::Jump(target),
            other => other,
        };
        let operands = meaning.place.map(|place| self.operand(&place, &value)).into_iter().collect();
        Instruction { addr, bytes: bytes.to_vec(), text: meaning.text, operands, reads, control, invalid: false }
    }

    fn operand(self, place: &Cell, value: &dyn Fn(u16) -> Option<u64>) -> Operand {
        let registers = place.base.into_iter().chain(place.index_register());
        let registers = registers.map(|number| (self.register_name(number), number, value(number))).collect();
        let base = place.base.map_or(Some(0), value);
        let index = place.index.as_ref().map_or(Some(0), |index| Some(index.worth(value(index.register)?)));
        let address = base.zip(index).map(|(base, index)| base.wrapping_add(index).wrapping_add(place.displacement));
        let (access, size, displacement) = (place.access, place.size, place.displacement);
        Operand { access, address, size, registers, displacement }
    }
}

impl Cell {
    fn index_register(&self) -> Option<u16> {
        self.index.as_ref().map(|index| index.register)
    }
}

impl IndexRegister {
    fn worth(&self, value: u64) -> u64 {
        let value = match (self.narrow, self.signed) {
            (false, _) => value,
            (true, false) => value & 0xffff_ffff,
            (true, true) => sign_extended(value & 0xffff_ffff, 32),
        };
        value << self.shift
    }
}

fn not_decoded(word: u32, bytes: &[u8], addr: u64) -> Instruction {
    let digits = bytes.len() * 2;
    Instruction {
        addr,
        bytes: bytes.to_vec(),
        text: format!(".inst 0x{word:0digits$x} (not decoded)"),
        operands: Vec::new(),
        reads: Vec::new(),
        control: Control::Next,
        invalid: true,
    }
}

/// A number of `width` bits with its sign.
const fn sign_extended(value: u64, width: u32) -> u64 {
    let shift = 64 - width;
    ((value << shift).cast_signed() >> shift).cast_unsigned()
}
