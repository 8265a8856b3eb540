//! Runs DWARF expressions with the registers and the memory of a frame.

use gimli::{Evaluation, EvaluationResult, Piece, Reader, Value};

use super::Registers;

/// Operations that an expression may take.
const MOST_OPERATIONS: u32 = 4096;

/// What a location, an address or a value is put together from; `None` when the expression is broken, takes too many
/// operations or needs what is not known. `word` gives words of memory, and `more` answers what is neither a register
/// nor memory.
pub(crate) fn pieces<R: Reader>(
    mut evaluation: Evaluation<R>,
    registers: &Registers,
    word: &dyn Fn(u64) -> Option<u64>,
    more: impl Fn(EvaluationResult<R>, &mut Evaluation<R>) -> Option<gimli::Result<EvaluationResult<R>>>,
) -> Option<Vec<Piece<R>>> {
    evaluation.set_max_iterations(MOST_OPERATIONS);
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => return Some(evaluation.result()),
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let mask = if size >= 8 { u64::MAX } else { (1 << (8 * u32::from(size))) - 1 };
                evaluation.resume_with_memory(Value::Generic(word(address)? & mask))
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                evaluation.resume_with_register(Value::Generic(registers.get(register.0)?))
            }
            other => more(other, &mut evaluation)?,
        }
        .ok()?;
    }
}
