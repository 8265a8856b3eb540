//! Disassembles the code around a fault, with what its operands were worth at that moment.
//!
//! Text is Intel syntax without spaces behind commas: `mov rax,[rdi+8]`. Values come from the registers at the fault,
//! so they are right for the faulting instruction itself; for those before it they are only shown when asked for.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, Instruction as Decoded, InstructionInfoFactory, IntelFormatter,
    MemorySizeOptions, OpAccess, OpKind, Register,
};

/// Register values and memory at the moment of the fault.
pub trait Values {
    /// A register by DWARF number (System V ABI, AMD64): 0 to 15 general, 16 the instruction pointer, 58 and 59 the
    /// bases of FS and GS.
    fn register(&self, number: u16) -> Option<u64>;

    /// The little-endian word at an address.
    fn word(&self, addr: u64) -> Option<u64>;
}

/// What an instruction does with an operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The instruction reads the operand.
    Read,
    /// The instruction writes the operand.
    Write,
    /// Reads, then writes it.
    ReadWrite,
    /// Only computes its address.
    Address,
}

impl Access {
    /// The verb, in the third person.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::ReadWrite => "reads and writes",
            Self::Address => "computes",
        }
    }
}

/// An operand in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// What is done with it.
    pub access: Access,
    /// Its address, when every register in it is known.
    pub address: Option<u64>,
    /// Its size in bytes.
    pub size: usize,
    /// The registers that its address is made of, with values: name, DWARF number, value.
    pub registers: Vec<(&'static str, u16, Option<u64>)>,
    /// The constant part of the address.
    pub displacement: u64,
}

/// Where an instruction sends the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// To the next instruction.
    Next,
    /// To a function: the address, when it is known.
    Call(Option<u64>),
    /// Elsewhere, perhaps conditionally: the address, when it is known.
    Jump(Option<u64>),
    /// Back to the caller.
    Return,
    /// Into the kernel, or into an exception on purpose (`ud2`, `int3`).
    Trap,
}

/// A decoded instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it is.
    pub addr: u64,
    /// Machine code of the instruction.
    pub bytes: Vec<u8>,
    /// Text of the instruction, Intel syntax.
    pub text: String,
    /// Operands in memory.
    pub operands: Vec<Operand>,
    /// Registers it reads, with values, in the order they appear.
    pub reads: Vec<(&'static str, u64)>,
    /// Where it leads.
    pub control: Control,
    /// Whether the bytes are not an instruction.
    pub invalid: bool,
}

impl Instruction {
    /// The operand values in one line: `rdi=0x0 → reads 0x8`. Empty when there is nothing to say.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut parts: Vec<String> = self.reads.iter().map(|(name, value)| format!("{name}={value:#x}")).collect();
        for operand in &self.operands {
            if let Some(address) = operand.address.filter(|_| operand.access != Access::Address) {
                parts.push(format!("→ {} {address:#x}", operand.access.verb()));
            }
        }
        if let (Control::Call(Some(target)) | Control::Jump(Some(target)), true) =
            (self.control, !self.reads.is_empty())
        {
            parts.push(format!("→ goes to {target:#x}"));
        }
        parts.join(" ")
    }
}

/// Decodes the instruction at the start of `bytes`, which lie at `addr`.
#[must_use]
pub fn decode_at(bytes: &[u8], addr: u64, values: &dyn Values) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, addr, DecoderOptions::NONE);
    decoder.can_decode().then(|| describe(&decoder.decode(), bytes, values))
}

/// Decodes what surrounds `ip`: up to `before` instructions that lead to it, it, and up to `after` behind it.
///
/// `bytes` lie at `start`. x86 code cannot be read backwards, so the instructions before are those of the decoding that
/// begins earliest and meets `ip` exactly.
#[must_use]
pub fn around(bytes: &[u8], start: u64, ip: u64, before: usize, after: usize, values: &dyn Values) -> Vec<Instruction> {
    let Some(middle) = ip.checked_sub(start).and_then(|at| usize::try_from(at).ok()).filter(|&at| at < bytes.len())
    else {
        return Vec::new();
    };
    let mut lines = leading_to(&bytes[..middle], start, values);
    lines.drain(..lines.len().saturating_sub(before));
    let mut decoder = Decoder::with_ip(64, &bytes[middle..], ip, DecoderOptions::NONE);
    while decoder.can_decode() && lines.len() <= before.min(lines.len()) + after {
        let at = middle + decoder.position();
        let decoded = decoder.decode();
        if decoded.is_invalid() && decoder.position() + middle >= bytes.len() && at != middle {
            // The last bytes are the front of an instruction that was not captured whole.
            break;
        }
        lines.push(describe(&decoded, &bytes[at..], values));
        if lines.iter().filter(|line| line.addr > ip).count() >= after {
            break;
        }
    }
    lines
}

/// The longest chain of valid instructions that ends exactly at the end of `bytes`.
fn leading_to(bytes: &[u8], start: u64, values: &dyn Values) -> Vec<Instruction> {
    for skip in 0..bytes.len() {
        let mut decoder = Decoder::with_ip(64, &bytes[skip..], start + skip as u64, DecoderOptions::NONE);
        let mut lines = Vec::new();
        while decoder.can_decode() {
            let at = skip + decoder.position();
            let decoded = decoder.decode();
            if decoded.is_invalid() {
                lines.clear();
                break;
            }
            lines.push(describe(&decoded, &bytes[at..], values));
        }
        if !lines.is_empty() {
            return lines;
        }
    }
    Vec::new()
}

fn describe(decoded: &Decoded, bytes: &[u8], values: &dyn Values) -> Instruction {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(decoded);
    let operands: Vec<Operand> = (0..decoded.op_count())
        .filter(|&number| is_memory(decoded.op_kind(number)))
        .map(|number| operand(decoded, number, info.op_access(number), values))
        .collect();
    let mut reads = Vec::new();
    for number in 0..decoded.op_count() {
        let read = matches!(info.op_access(number), OpAccess::Read | OpAccess::ReadWrite | OpAccess::CondRead);
        if decoded.op_kind(number) == OpKind::Register && read {
            push_register(decoded.op_register(number), values, &mut reads);
        } else if is_memory(decoded.op_kind(number)) {
            push_register(decoded.memory_base(), values, &mut reads);
            push_register(decoded.memory_index(), values, &mut reads);
        }
    }
    Instruction {
        addr: decoded.ip(),
        bytes: bytes.get(..decoded.len()).unwrap_or(bytes).to_vec(),
        text: if decoded.is_invalid() { "(bad)".to_owned() } else { text(decoded) },
        control: control(decoded, &operands, values),
        operands,
        reads,
        invalid: decoded.is_invalid(),
    }
}

/// The text of an instruction, in Intel syntax.
pub(super) fn text(decoded: &Decoded) -> String {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_memory_size_options(MemorySizeOptions::Minimal);
    options.set_show_branch_size(false);
    let mut out = String::new();
    formatter.format(decoded, &mut out);
    out
}

fn operand(decoded: &Decoded, number: u32, access: OpAccess, values: &dyn Values) -> Operand {
    let address = decoded.virtual_address(number, 0, |register, _, _| match register {
        Register::FS => values.register(58),
        Register::GS => values.register(59),
        Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
        other => value(other, values),
    });
    let parts = [decoded.memory_base(), decoded.memory_index()]
        .into_iter()
        .filter(|&register| register != Register::None && !matches!(register, Register::RIP | Register::EIP));
    let registers = parts
        .filter_map(|register| number_of(register).map(|(name, number)| (name, number, values.register(number))))
        .collect();
    let access = match access {
        OpAccess::Read | OpAccess::CondRead => Access::Read,
        OpAccess::Write | OpAccess::CondWrite => Access::Write,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Access::ReadWrite,
        _ => Access::Address,
    };
    let size = decoded.memory_size().size();
    Operand { access, address, size, registers, displacement: decoded.memory_displacement64() }
}

fn control(decoded: &Decoded, operands: &[Operand], values: &dyn Values) -> Control {
    let target = || match decoded.op_kind(0) {
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => Some(decoded.near_branch_target()),
        OpKind::Register => value(decoded.op_register(0), values),
        _ => values.word(operands.first()?.address?),
    };
    match decoded.flow_control() {
        FlowControl::Call | FlowControl::IndirectCall if decoded.op_count() > 0 => Control::Call(target()),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::ConditionalBranch => {
            Control::Jump(target())
        }
        FlowControl::Return => Control::Return,
        FlowControl::Exception | FlowControl::Interrupt | FlowControl::Call => Control::Trap,
        _ => Control::Next,
    }
}

/// Whether an operand lies in memory.
pub(super) const fn is_memory(kind: OpKind) -> bool {
    !matches!(
        kind,
        OpKind::Register
            | OpKind::NearBranch16
            | OpKind::NearBranch32
            | OpKind::NearBranch64
            | OpKind::FarBranch16
            | OpKind::FarBranch32
            | OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

fn push_register(register: Register, values: &dyn Values, out: &mut Vec<(&'static str, u64)>) {
    if let Some((name, number)) = number_of(register)
        && let Some(value) = values.register(number)
        && !out.iter().any(|(known, _)| *known == name)
    {
        out.push((name, value));
    }
}

/// The value of a register, cut to its width.
fn value(register: Register, values: &dyn Values) -> Option<u64> {
    let (_, number) = number_of(register)?;
    let whole = values.register(number)?;
    Some(match register.size() {
        8 => whole,
        4 => whole & 0xffff_ffff,
        2 => whole & 0xffff,
        _ => whole & 0xff,
    })
}

/// Name and DWARF number of the 64-bit register that a register is a part of.
pub(super) fn number_of(register: Register) -> Option<(&'static str, u16)> {
    Some(match register.full_register() {
        Register::RAX => ("rax", 0),
        Register::RDX => ("rdx", 1),
        Register::RCX => ("rcx", 2),
        Register::RBX => ("rbx", 3),
        Register::RSI => ("rsi", 4),
        Register::RDI => ("rdi", 5),
        Register::RBP => ("rbp", 6),
        Register::RSP => ("rsp", 7),
        Register::R8 => ("r8", 8),
        Register::R9 => ("r9", 9),
        Register::R10 => ("r10", 10),
        Register::R11 => ("r11", 11),
        Register::R12 => ("r12", 12),
        Register::R13 => ("r13", 13),
        Register::R14 => ("r14", 14),
        Register::R15 => ("r15", 15),
        _ => return None,
    })
}

/// The name of a general register by its DWARF number.
#[must_use]
pub const fn register_name(number: u16) -> &'static str {
    const NAMES: [&str; 16] =
        ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
    if (number as usize) < NAMES.len() { NAMES[number as usize] } else { "a register" }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Vec<(u16, u64)>, Vec<(u64, u64)>);

    impl Values for Fixed {
        fn register(&self, number: u16) -> Option<u64> {
            self.0.iter().find(|(known, _)| *known == number).map(|(_, value)| *value)
        }

        fn word(&self, addr: u64) -> Option<u64> {
            self.1.iter().find(|(known, _)| *known == addr).map(|(_, value)| *value)
        }
    }

    #[test]
    fn a_load_through_a_null_pointer_says_which_address_it_reads() {
        let values = Fixed(vec![(5, 0)], vec![]);
        let load = decode_at(&[0x48, 0x8b, 0x47, 0x08], 0x401000, &values).unwrap();
        assert_eq!((load.text.as_str(), load.explain().as_str()), ("mov rax,[rdi+8]", "rdi=0x0 → reads 0x8"));
        assert_eq!(load.operands[0].address, Some(8));
    }

    #[test]
    fn a_call_through_a_table_of_functions_says_where_it_goes() {
        let values = Fixed(vec![(0, 0x5000)], vec![(0x5018, 0)]);
        let call = decode_at(&[0xff, 0x50, 0x18], 0x401000, &values).unwrap();
        assert_eq!(call.control, Control::Call(Some(0)));
        assert_eq!(call.explain(), "rax=0x5000 → reads 0x5018 → goes to 0x0");
        let unknown = decode_at(&[0xff, 0x50, 0x18], 0x401000, &Fixed(vec![(0, 0x6000)], vec![])).unwrap();
        assert_eq!(unknown.control, Control::Call(None));
    }

    #[test]
    fn thread_local_stores_use_the_base_of_their_segment() {
        let values = Fixed(vec![(58, 0x7000)], vec![]);
        let store = decode_at(&[0x64, 0x48, 0x89, 0x04, 0x25, 0x10, 0, 0, 0], 0, &values).unwrap();
        assert_eq!((store.operands[0].access, store.operands[0].address), (Access::Write, Some(0x7010)));
    }

    #[test]
    fn the_lines_before_the_fault_end_exactly_at_it() {
        // push rbp; mov rbp,rsp; mov rax,[rdi]; call rax; ret, captured from the second byte of the mov on.
        let code = [0x89, 0xe5, 0x48, 0x8b, 0x07, 0xff, 0xd0, 0xc3];
        let values = Fixed(vec![(0, 0)], vec![]);
        let lines = around(&code, 0x1002, 0x1007, 2, 1, &values);
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["mov ebp,esp", "mov rax,[rdi]", "call rax", "ret"]);
        assert_eq!(lines[2].control, Control::Call(Some(0)));
    }

    #[test]
    fn any_bytes_decode_without_a_panic() {
        let values = Fixed(vec![], vec![]);
        let mut state = 1_u32;
        for _ in 0..3000 {
            let bytes: Vec<u8> = (0..24)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            let at = u64::from(state >> 20) % 26;
            let lines = around(&bytes, u64::MAX - 30, u64::MAX - 30 + at, 4, 4, &values);
            assert!(lines.len() <= 9);
            assert!(lines.iter().all(|line| !line.bytes.is_empty()));
        }
    }
}
