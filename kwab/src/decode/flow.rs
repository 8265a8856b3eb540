//! What an instruction does to registers, memory and control, as far as a backward walk needs it.
//!
//! Only what moves a value as it is keeps its source ([`Effect::Copy`]); arithmetic keeps the register that it changes
//! ([`Effect::Change`]). Everything else that an instruction writes is a definition without a source.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction as Decoded, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use super::instruction::{is_memory, number_of, text};

/// DWARF number of the stack pointer.
pub const RSP: u16 = 7;
/// DWARF number of the frame pointer.
pub const RBP: u16 = 6;

/// A memory operand, as an instruction writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOperand {
    /// The base register; `None` for an absolute address.
    pub base: Option<u16>,
    /// Whether an index register or a segment takes part, so that base and displacement do not say all.
    pub indexed: bool,
    /// The constant part; the whole address when it is relative to the instruction or has no base.
    pub displacement: i64,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The register with this DWARF number.
    Register(u16),
    /// The memory that this operand names.
    Memory(MemoryOperand),
    /// The address of the operand, not its content.
    Address(MemoryOperand),
    /// An immediate of the instruction.
    Constant(u64),
}

/// What an instruction defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A register gets a value from elsewhere.
    Copy(u16, Source),
    /// A register gets a value from elsewhere, or keeps its own.
    Choose(u16, Source),
    /// A register is computed from itself.
    Change(u16),
    /// Memory gets a value.
    Store(MemoryOperand, Source),
    /// Nothing that can be followed.
    None,
}

/// How control goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the next instruction.
    Next,
    /// To the next instruction or to the target.
    Branch(u64),
    /// To the target; `None` when it is computed.
    Jump(Option<u64>),
    /// Through a function, and back; the function when it is known.
    Call(Option<u64>),
    /// Nowhere in this function.
    End,
}

/// An instruction, reduced to what flows through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Where it is.
    pub addr: u64,
    /// Its length in bytes.
    pub len: usize,
    /// Text of the instruction, Intel syntax.
    pub text: String,
    /// What it defines.
    pub effect: Effect,
    /// All general registers that it may write, a bit for each DWARF number.
    pub writes: u16,
    /// How control goes on.
    pub way: Way,
    /// The address that holds the target, when control goes on through a pointer at a constant address, as the calls
    /// into another crate do through the global offset table.
    pub through: Option<u64>,
    /// What it adds to the stack pointer; `None` when that is not a constant.
    pub stack: Option<i64>,
    /// What it compares, when it only sets flags.
    pub compares: Vec<Source>,
    /// Whether it may change the flags.
    pub sets_flags: bool,
    /// Whether it is a branch that is taken when the compared values are equal, or not taken then.
    pub on_equal: Option<bool>,
}

/// Registers that a called function need not preserve (System V ABI, figure 3.4): rax, rdx, rcx, rsi, rdi, r8 to r11.
const CLOBBERED: u16 = 0b1111_0011_0111;

/// Decodes consecutive instructions. Bytes that are not an instruction end the list.
#[must_use]
pub fn flows(bytes: &[u8], start: u64) -> Vec<Flow> {
    each(bytes, start, flow)
}

/// What is made of each of consecutive instructions. Bytes that are not an instruction end the list.
pub(super) fn each<T>(bytes: &[u8], start: u64, of: fn(&Decoded, &mut InstructionInfoFactory) -> T) -> Vec<T> {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut all = Vec::new();
    while decoder.can_decode() {
        let decoded = decoder.decode();
        if decoded.is_invalid() {
            break;
        }
        all.push(of(&decoded, &mut factory));
    }
    all
}

fn flow(decoded: &Decoded, factory: &mut InstructionInfoFactory) -> Flow {
    let info = factory.info(decoded);
    let mut writes = 0;
    for used in info.used_registers() {
        let written = !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
        if let Some((_, number)) = number_of(used.register()).filter(|_| written) {
            writes |= 1 << number;
        }
    }
    let way = way(decoded);
    if matches!(way, Way::Call(_)) {
        writes |= CLOBBERED;
    }
    let sets_flags = decoded.rflags_modified() != 0;
    let compares = match decoded.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Test => (0..2).filter_map(|number| source(decoded, number)).collect(),
        _ => Vec::new(),
    };
    let on_equal = match decoded.mnemonic() {
        Mnemonic::Je => Some(true),
        Mnemonic::Jne => Some(false),
        _ => None,
    };
    Flow {
        addr: decoded.ip(),
        len: decoded.len(),
        text: text(decoded),
        effect: effect(decoded),
        writes,
        way,
        through: through(decoded),
        stack: stack(decoded, writes),
        compares,
        sets_flags,
        on_equal,
    }
}

fn way(decoded: &Decoded) -> Way {
    let near = matches!(decoded.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16);
    let target = near.then(|| decoded.near_branch_target());
    match decoded.flow_control() {
        FlowControl::Call | FlowControl::IndirectCall if decoded.mnemonic() == Mnemonic::Call => Way::Call(target),
        FlowControl::ConditionalBranch => target.map_or(Way::Next, Way::Branch),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => Way::Jump(target),
        FlowControl::Return | FlowControl::Exception => Way::End,
        _ => Way::Next,
    }
}

/// The address of the pointer that a call or jump goes through.
fn through(decoded: &Decoded) -> Option<u64> {
    let indirect = matches!(decoded.flow_control(), FlowControl::IndirectCall | FlowControl::IndirectBranch);
    let operand = (indirect && is_memory(decoded.op0_kind())).then(|| memory_operand(decoded))?;
    (operand.base.is_none() && !operand.indexed).then_some(operand.displacement.cast_unsigned())
}

/// What an instruction adds to the stack pointer. A call gives back what it takes.
fn stack(decoded: &Decoded, writes: u16) -> Option<i64> {
    if writes & 1 << RSP == 0 || matches!(decoded.mnemonic(), Mnemonic::Call | Mnemonic::Syscall) {
        return Some(0);
    }
    let own = decoded.op0_kind() == OpKind::Register && decoded.op0_register() == Register::RSP;
    match (decoded.mnemonic(), source(decoded, 1)) {
        (Mnemonic::Sub, Some(Source::Constant(bytes))) if own => Some((bytes as i64).wrapping_neg()),
        (Mnemonic::Add, Some(Source::Constant(bytes))) if own => Some(bytes as i64),
        _ if own || decoded.mnemonic() == Mnemonic::Leave => None,
        _ => Some(i64::from(decoded.stack_pointer_increment())),
    }
}

fn effect(decoded: &Decoded) -> Effect {
    use Mnemonic as M;
    let whole = |register: Register| number_of(register).filter(|_| register.size() >= 4).map(|(_, number)| number);
    let to = (decoded.op_count() > 0 && decoded.op0_kind() == OpKind::Register)
        .then(|| whole(decoded.op0_register()))
        .flatten();
    let stored = decoded.op_count() > 0 && is_memory(decoded.op0_kind());
    match decoded.mnemonic() {
        M::Mov | M::Movzx | M::Movsx | M::Movsxd => match (to, source(decoded, 1)) {
            (Some(to), Some(from)) => Effect::Copy(to, from),
            (None, Some(from)) if stored => Effect::Store(memory_operand(decoded), from),
            _ => Effect::None,
        },
        M::Lea => to.map_or(Effect::None, |to| Effect::Copy(to, Source::Address(memory_operand(decoded)))),
        M::Xor | M::Sub
            if decoded.op1_kind() == OpKind::Register && decoded.op0_register() == decoded.op1_register() =>
        {
            to.map_or(Effect::None, |to| Effect::Copy(to, Source::Constant(0)))
        }
        M::Pop => to.map_or(Effect::None, |to| Effect::Copy(to, Source::Memory(on_stack(0)))),
        M::Push => source(decoded, 0).map_or(Effect::None, |from| Effect::Store(on_stack(-8), from)),
        M::Cmp | M::Test | M::Call => Effect::None,
        _ if format!("{:?}", decoded.mnemonic()).starts_with("Cmov") => match (to, source(decoded, 1)) {
            (Some(to), Some(from)) => Effect::Choose(to, from),
            _ => Effect::None,
        },
        _ => to.map_or(Effect::None, Effect::Change),
    }
}

const fn on_stack(displacement: i64) -> MemoryOperand {
    MemoryOperand { base: Some(RSP), indexed: false, displacement }
}

fn memory_operand(decoded: &Decoded) -> MemoryOperand {
    let base = number_of(decoded.memory_base()).map(|(_, number)| number);
    let segment = matches!(decoded.segment_prefix(), Register::FS | Register::GS);
    let indexed = decoded.memory_index() != Register::None || segment;
    MemoryOperand { base, indexed, displacement: decoded.memory_displacement64() as i64 }
}

fn source(decoded: &Decoded, number: u32) -> Option<Source> {
    if number >= decoded.op_count() {
        return None;
    }
    let kind = decoded.op_kind(number);
    if kind == OpKind::Register {
        return number_of(decoded.op_register(number)).map(|(_, number)| Source::Register(number));
    }
    if is_memory(kind) {
        return Some(Source::Memory(memory_operand(decoded)));
    }
    let branch = matches!(kind, OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    (!branch).then(|| Source::Constant(decoded.immediate(number)))
}
