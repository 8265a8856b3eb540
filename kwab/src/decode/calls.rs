//! What a function's code calls and which constants it moves, in order of address.
//!
//! Only what the instruction itself says is known: a call through a pointer has no target here.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction as Decoded, Mnemonic, OpKind};

/// Something that an instruction refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A call, or a jump out of the function: the function it goes to.
    Call {
        /// Where the instruction is.
        at: u64,
        /// The first instruction of the function that it goes to.
        target: u64,
    },
    /// A constant that is moved to a register or to memory, as wide as it was written.
    Constant {
        /// Where the instruction is.
        at: u64,
        /// The constant, zero-extended.
        value: u64,
    },
}

/// The calls and constants of consecutive instructions. Bytes that are not an instruction end the list.
#[must_use]
pub fn references(bytes: &[u8], start: u64) -> Vec<Reference> {
    let end = start.saturating_add(bytes.len() as u64);
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut all = Vec::new();
    while decoder.can_decode() {
        let decoded = decoder.decode();
        if decoded.is_invalid() {
            break;
        }
        all.extend(reference(&decoded, start..end));
    }
    all
}

/// Where the instructions of a piece of code begin. Bytes that are not an instruction end the list.
#[must_use]
pub fn starts(bytes: &[u8], start: u64) -> Vec<u64> {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut all = Vec::new();
    while decoder.can_decode() {
        let decoded = decoder.decode();
        if decoded.is_invalid() {
            break;
        }
        all.push(decoded.ip());
    }
    all
}

fn reference(decoded: &Decoded, own: std::ops::Range<u64>) -> Option<Reference> {
    let at = decoded.ip();
    if decoded.op0_kind() == OpKind::NearBranch64 {
        let target = decoded.near_branch_target();
        let leaves = decoded.flow_control() == FlowControl::Call || !own.contains(&target);
        return leaves.then_some(Reference::Call { at, target });
    }
    if decoded.mnemonic() != Mnemonic::Mov || decoded.op_count() != 2 {
        return None;
    }
    let value = match decoded.op1_kind() {
        OpKind::Immediate8 => u64::from(decoded.immediate8()),
        OpKind::Immediate16 => u64::from(decoded.immediate16()),
        OpKind::Immediate32 => u64::from(decoded.immediate32()),
        OpKind::Immediate32to64 | OpKind::Immediate64 => decoded.immediate(1),
        _ => return None,
    };
    Some(Reference::Constant { at, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_jumps_out_of_the_function_and_moved_constants_are_listed_and_jumps_inside_are_not() {
        let code = [
            &[0xe8, 0x0b, 0, 0, 0][..],            // 0x1000 call 0x1010
            &[0x74, 0x05],                         // 0x1005 je 0x100c
            &[0x66, 0xc7, 0x47, 0x02, 0x16, 0x00], // 0x1007 mov word [rdi+2],0x16
            &[0xc7, 0x03, 0x01, 0x00, 0x69, 0x00], // 0x100d mov dword [rbx],0x690001
            &[0x83, 0xf8, 0x16],                   // 0x1013 cmp eax,0x16
            &[0xe9, 0xe5, 0x0f, 0, 0],             // 0x1016 jmp 0x2000
        ]
        .concat();
        let found = references(&code, 0x1000);
        let expected = [
            Reference::Call { at: 0x1000, target: 0x1010 },
            Reference::Constant { at: 0x1007, value: 0x16 },
            Reference::Constant { at: 0x100d, value: 0x69_0001 },
            Reference::Call { at: 0x1016, target: 0x2000 },
        ];
        assert_eq!(found, expected);
        assert_eq!(references(&[0x06], 0), []);
    }
}
