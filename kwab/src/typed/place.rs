//! Where a variable is: DWARF location expressions and lists, evaluated with the registers and memory of a dump.

use gimli::{AttributeValue, EvaluationResult, Location, Piece, Reader as _, UnitRef};

use crate::symbols::info::{Entry, Info, Value};
use crate::symbols::{Dwarf, Registers, expression};

/// Bytes of a value that is put together from pieces.
const MOST_BYTES: u64 = 1 << 16;

/// Where the bytes of a value come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Store {
    /// Memory at this address.
    At(u64),
    /// Bytes themselves, as from registers; `None` where they are lost.
    Bytes(Vec<Option<u8>>),
    /// The compiler did not keep it, or says so in a way that cannot be followed.
    Lost,
}

/// What an expression may ask for.
pub(super) struct Machine<'m> {
    /// Registers of the frame.
    pub(super) registers: Registers,
    /// Stack pointer of its caller before the call.
    pub(super) cfa: Option<u64>,
    /// What the function's variables are relative to.
    pub(super) frame_base: Option<u64>,
    /// Run-time minus link address of the image.
    pub(super) bias: u64,
    /// Link address of the instruction.
    pub(super) link: u64,
    /// Words of memory.
    pub(super) word: &'m dyn Fn(u64) -> Option<u64>,
}

impl Machine<'_> {
    /// Where a variable is, by its entry.
    pub(super) fn locate(&self, info: &Info, entry: &Entry) -> Store {
        if let Some((unit, value)) = info.attribute(entry, gimli::DW_AT_location) {
            return self.at(info, unit, value).unwrap_or(Store::Lost);
        }
        info.attribute(entry, gimli::DW_AT_const_value).map_or(Store::Lost, |(_, value)| constant(&value))
    }

    /// The address that a function's variables are relative to.
    pub(super) fn base(&self, info: &Info, function: &Entry) -> Option<u64> {
        let (unit, value) = info.attribute(function, gimli::DW_AT_frame_base)?;
        match self.at(info, unit, value)? {
            Store::At(addr) => Some(addr),
            Store::Bytes(bytes) => {
                let bytes: Vec<u8> = bytes.into_iter().collect::<Option<_>>()?;
                bytes.first_chunk().map(|word| u64::from_le_bytes(*word))
            }
            Store::Lost => None,
        }
    }

    fn at(&self, info: &Info, unit: usize, value: Value) -> Option<Store> {
        let unit = info.unit(unit)?;
        if let AttributeValue::Exprloc(expression) = value {
            return self.evaluate(unit, expression);
        }
        let mut list = unit.attr_locations(value).ok()??;
        while let Ok(Some(entry)) = list.next() {
            if (entry.range.begin..entry.range.end).contains(&self.link) {
                return self.evaluate(unit, entry.data);
            }
        }
        None
    }

    fn evaluate(&self, unit: UnitRef<'_, Dwarf>, expression: gimli::Expression<Dwarf>) -> Option<Store> {
        let evaluation = expression.evaluation(unit.encoding());
        let pieces = expression::pieces(evaluation, &self.registers, self.word, |wanted, evaluation| match wanted {
            EvaluationResult::RequiresFrameBase => Some(evaluation.resume_with_frame_base(self.frame_base?)),
            EvaluationResult::RequiresCallFrameCfa => Some(evaluation.resume_with_call_frame_cfa(self.cfa?)),
            EvaluationResult::RequiresRelocatedAddress(address) => {
                Some(evaluation.resume_with_relocated_address(address.wrapping_add(self.bias)))
            }
            EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                let bias = if relocate { self.bias } else { 0 };
                Some(evaluation.resume_with_indexed_address(unit.address(index).ok()?.wrapping_add(bias)))
            }
            // Values at the function's entry are not kept, thread-local ones not known.
            _ => None,
        })?;
        self.joined(pieces)
    }

    fn joined(&self, pieces: Vec<Piece<Dwarf>>) -> Option<Store> {
        if let [Piece { size_in_bits: None, location, .. }] = pieces.as_slice() {
            return match location {
                Location::Address { address } => Some(Store::At(*address)),
                other => Some(Store::Bytes(self.bytes(other, None)?)),
            };
        }
        let mut all = Vec::new();
        for piece in pieces {
            let size = piece.size_in_bits?;
            if size % 8 != 0 || all.len() as u64 + size / 8 > MOST_BYTES {
                return None;
            }
            let size = (size / 8) as usize;
            let mut bytes = self.bytes(&piece.location, Some(size)).unwrap_or_default();
            bytes.resize(size, None);
            all.extend(bytes);
        }
        (!all.is_empty()).then_some(Store::Bytes(all))
    }

    /// The bytes of a piece; of memory only with a size.
    fn bytes(&self, location: &Location<Dwarf>, size: Option<usize>) -> Option<Vec<Option<u8>>> {
        let known = |bytes: &[u8]| bytes.iter().copied().map(Some).collect::<Vec<_>>();
        Some(match location {
            Location::Register { register } => known(&self.registers.get(register.0)?.to_le_bytes()),
            Location::Value { value } => known(&value.to_u64(u64::MAX).ok()?.to_le_bytes()),
            Location::Bytes { value } => known(&value.to_slice().ok()?),
            Location::Address { address } => {
                let byte = |at: usize| Some((self.word)(address.wrapping_add(at as u64 & !7))?.to_le_bytes()[at % 8]);
                (0..size?).map(byte).collect()
            }
            _ => return None,
        })
    }
}

/// A value that stands in DWARF itself.
fn constant(value: &Value) -> Store {
    if let AttributeValue::Block(block) = value {
        return match block.to_slice() {
            Ok(bytes) => Store::Bytes(bytes.iter().copied().map(Some).collect()),
            Err(_) => Store::Lost,
        };
    }
    let number = value.udata_value().or_else(|| value.sdata_value().map(|value| value as u64));
    number.map_or(Store::Lost, |number| Store::Bytes(number.to_le_bytes().into_iter().map(Some).collect()))
}
