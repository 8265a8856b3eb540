//! Which registers and memory an instruction reads and writes, for a slice through code that is known to have run.
//!
//! Other than [`super::flow`], which reduces an instruction to one value that moves, this lists all that it uses,
//! vector registers and implicit operands too. Registers that only make an address are listed with the memory they
//! address.

use iced_x86::{
    Code, FlowControl, Instruction as Decoded, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

use super::flow;

/// A register, by a number of its own: parts of it count as the whole.
pub type Named = u8;

/// Memory that an instruction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The base register; `None` for an absolute address.
    pub base: Option<Named>,
    /// The index register with its scale, or a segment, so that base and displacement do not say all.
    pub indexed: bool,
    /// The constant part.
    pub displacement: i64,
    /// How many bytes.
    pub bytes: u8,
}

/// What a register is afterwards, when it is known from what was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The value of another register with a constant added.
    Sum(Named, i64),
    /// What is in memory.
    Loaded,
}

/// What an instruction uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Where it is.
    pub addr: u64,
    /// Where the next one in memory is.
    pub end: u64,
    /// Registers whose values it reads.
    pub reads: Vec<Named>,
    /// Registers that it writes.
    pub writes: Vec<Named>,
    /// Memory that it reads.
    pub loads: Vec<Cell>,
    /// Memory that it writes.
    pub stores: Vec<Cell>,
    /// Whether it reads flags.
    pub reads_flags: bool,
    /// Whether it changes flags.
    pub writes_flags: bool,
    /// What the one register that it writes is afterwards.
    pub moved: Option<(Named, Moved)>,
    /// The register that it stores as it is.
    pub stored: Option<Named>,
    /// Whether control goes on by what it tests: a conditional branch, or a jump to a computed address.
    pub decides: bool,
    /// Whether it is a call.
    pub calls: bool,
}

/// The stack pointer.
pub const STACK: Named = 4;
/// Registers in which a function returns: rax, rdx.
pub const RETURNED: [Named; 2] = [0, 2];
/// Registers that [`Named`] numbers.
pub const REGISTERS: usize = 48;
/// Bytes of an operand that are followed.
const MOST_BYTES: usize = 16;

/// The uses of consecutive instructions. Bytes that are not an instruction end the list.
#[must_use]
pub fn uses(bytes: &[u8], start: u64) -> Vec<Uses> {
    flow::each(bytes, start, uses_of)
}

fn uses_of(decoded: &Decoded, factory: &mut InstructionInfoFactory) -> Uses {
    let flow = decoded.flow_control();
    let mut all = Uses {
        addr: decoded.ip(),
        end: decoded.next_ip(),
        reads_flags: decoded.rflags_read() != 0,
        writes_flags: decoded.rflags_modified() != 0,
        decides: matches!(flow, FlowControl::ConditionalBranch | FlowControl::IndirectBranch),
        calls: matches!(flow, FlowControl::Call | FlowControl::IndirectCall) && decoded.mnemonic() == Mnemonic::Call,
        moved: moved(decoded),
        stored: stored(decoded),
        ..Uses::default()
    };
    let info = factory.info(decoded);
    let explicit: Vec<Register> = (0..decoded.op_count())
        .filter(|number| decoded.op_kind(*number) == OpKind::Register && is_read(info.op_access(*number)))
        .map(|number| decoded.op_register(number).full_register())
        .collect();
    let mut addressing: Vec<Register> = Vec::new();
    for used in info.used_memory() {
        addressing.extend([used.base(), used.index()].map(Register::full_register));
        let cell = Cell {
            base: named(used.base()),
            indexed: used.index() != Register::None || matches!(used.segment(), Register::FS | Register::GS),
            displacement: used.displacement().cast_signed(),
            bytes: u8::try_from(used.memory_size().size().min(MOST_BYTES)).unwrap_or_default(),
        };
        if is_read(used.access()) {
            all.loads.push(cell);
        }
        if is_written(used.access()) {
            all.stores.push(cell);
        }
    }
    for used in info.used_registers() {
        let Some(number) = named(used.register()) else { continue };
        let full = used.register().full_register();
        if is_read(used.access()) && (!addressing.contains(&full) || explicit.contains(&full)) {
            all.reads.push(number);
        }
        if is_written(used.access()) {
            all.writes.push(number);
        }
    }
    all
}

fn is_read(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn is_written(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn named(register: Register) -> Option<Named> {
    let full = register.full_register();
    if full.is_gpr64() {
        return u8::try_from(full.number()).ok();
    }
    (full.is_vector_register()).then(|| u8::try_from(16 + full.number()).ok())?
}

fn moved(decoded: &Decoded) -> Option<(Named, Moved)> {
    let own = |number: u32| {
        let register = (decoded.op_kind(number) == OpKind::Register).then(|| decoded.op_register(number));
        register.filter(|register| register.is_gpr64()).and_then(named)
    };
    let to = (decoded.op_count() > 0).then(|| own(0)).flatten();
    match decoded.mnemonic() {
        Mnemonic::Mov => match own(1) {
            Some(from) => Some((to?, Moved::Sum(from, 0))),
            None if decoded.op1_kind() == OpKind::Memory => Some((to?, Moved::Loaded)),
            None => None,
        },
        Mnemonic::Pop => Some((to?, Moved::Loaded)),
        Mnemonic::Lea if decoded.memory_index() == Register::None => {
            Some((to?, Moved::Sum(named(decoded.memory_base())?, decoded.memory_displacement64().cast_signed())))
        }
        mnemonic @ (Mnemonic::Add | Mnemonic::Sub) if is_immediate(decoded.op1_kind()) => {
            let by = decoded.immediate(1).cast_signed();
            Some((to?, Moved::Sum(to?, if mnemonic == Mnemonic::Add { by } else { by.wrapping_neg() })))
        }
        Mnemonic::Inc => Some((to?, Moved::Sum(to?, 1))),
        Mnemonic::Dec => Some((to?, Moved::Sum(to?, -1))),
        Mnemonic::Push | Mnemonic::Call | Mnemonic::Ret if decoded.code() != Code::Call_m1664 => {
            Some((STACK, Moved::Sum(STACK, i64::from(decoded.stack_pointer_increment()))))
        }
        _ => None,
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(kind, OpKind::Immediate8to64 | OpKind::Immediate32to64 | OpKind::Immediate8 | OpKind::Immediate32)
}

fn stored(decoded: &Decoded) -> Option<Named> {
    let of = match decoded.mnemonic() {
        Mnemonic::Push => 0,
        Mnemonic::Mov if decoded.op0_kind() == OpKind::Memory => 1,
        _ => return None,
    };
    (decoded.op_kind(of) == OpKind::Register && decoded.op_register(of).is_gpr64())
        .then(|| named(decoded.op_register(of)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_that_make_an_address_are_not_read_for_their_value() {
        // mov rax, [rdi+8]; mov [rsi], rcx; cmp rax, rcx; jne +0; add rsp, 0x10
        let code = [0x48, 0x8b, 0x47, 8, 0x48, 0x89, 0x0e, 0x48, 0x39, 0xc8, 0x75, 0, 0x48, 0x83, 0xc4, 0x10];
        let all = uses(&code, 0x1000);
        assert_eq!(all.len(), 5);
        let cell = |base, displacement| Cell { base: Some(base), indexed: false, displacement, bytes: 8 };
        assert_eq!((&*all[0].reads, &*all[0].writes, &*all[0].loads), (&[][..], &[0][..], &[cell(7, 8)][..]));
        assert_eq!(all[0].moved, Some((0, Moved::Loaded)));
        assert_eq!((&*all[1].reads, &*all[1].stores, all[1].stored), (&[1][..], &[cell(6, 0)][..], Some(1)));
        assert_eq!((&*all[2].reads, all[2].writes_flags), (&[0, 1][..], true));
        assert!(all[3].decides && all[3].reads_flags && !all[2].decides);
        assert_eq!(all[4].moved, Some((STACK, Moved::Sum(STACK, 0x10))));
    }

    #[test]
    fn a_call_and_a_return_move_the_stack_pointer_and_use_what_lies_there() {
        // call +0; ret; pop rbx; push rbx
        let all = uses(&[0xe8, 0, 0, 0, 0, 0xc3, 0x5b, 0x53], 0x1000);
        assert_eq!((all[0].calls, all[0].moved), (true, Some((STACK, Moved::Sum(STACK, -8)))));
        assert_eq!(all[1].moved, Some((STACK, Moved::Sum(STACK, 8))));
        assert_eq!((all[2].moved, all[3].stored), (Some((3, Moved::Loaded)), Some(3)));
        assert_eq!((all[2].loads[0].base, all[3].stores[0].displacement), (Some(STACK), -8));
    }
}
