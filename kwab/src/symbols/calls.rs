//! Whether an address is behind a call instruction, as every return address is.
//!
//! An address that a log shows proves by it that an image is the one that ran: few of the other addresses of code are
//! behind a call (about one in thirty on x86-64, one in ten where all instructions have four bytes).

use object::Architecture;

/// Whether the bytes before an address end in a call instruction; `None` when there are too few of them or the
/// architecture is not known here.
pub(crate) fn is_after_call(architecture: Architecture, big_endian: bool, before: &[u8]) -> Option<bool> {
    let word = |back: usize| Some(number(last::<4>(before, back)?, big_endian));
    let half = |back: usize| Some(number(last::<2>(before, back)?, big_endian));
    match architecture {
        Architecture::X86_64 | Architecture::I386 => is_after_x86_call(before),
        // BL and BLR (Arm DDI 0487, C6.2).
        Architecture::Aarch64 => {
            word(4).map(|word| word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000)
        }
        Architecture::Arm => {
            // BL, BLX of ARM code; BLX with a register and BL of Thumb code (Arm DDI 0406, A8.8.25 and A8.8.26).
            let arm = word(4).is_some_and(|word| {
                word & 0x0f00_0000 == 0x0b00_0000
                    || word & 0xfe00_0000 == 0xfa00_0000
                    || word & 0x0fff_fff0 == 0x012f_ff30
            });
            let pair = half(4).is_some_and(|first| first & 0xf800 == 0xf000);
            half(2).map(|end| arm || end & 0xff87 == 0x4780 || (pair && end & 0xc000 == 0xc000))
        }
        // C.JALR, C.JAL of RV32, and JAL and JALR that link in ra (RISC-V unprivileged specification, 2.5 and 16.4).
        Architecture::Riscv32 | Architecture::Riscv64 => half(2).map(|end| {
            let compressed = (end & 0xf07f == 0x9002 && end & 0x0f80 != 0)
                || (architecture == Architecture::Riscv32 && end & 0xe003 == 0x2001);
            compressed || word(4).is_some_and(|word| matches!(word & 0xfff, 0x0ef | 0x0e7))
        }),
        // bl, bctrl, blrl (Power ISA, book I, 2.4).
        Architecture::PowerPc | Architecture::PowerPc64 => {
            word(4).map(|word| word & 0xfc00_0001 == 0x4800_0001 || matches!(word, 0x4e80_0421 | 0x4e80_0021))
        }
        // brasl and basl of six bytes, bras of four, basr of two (z/Architecture Principles of Operation, 7).
        Architecture::S390x => half(2).map(|end| {
            let long = half(6).is_some_and(|start| start & 0xff0f == 0xc005);
            let middle = half(4).is_some_and(|start| start & 0xff0f == 0xa705 || start & 0xff00 == 0x4d00);
            long || middle || end & 0xff00 == 0x0d00
        }),
        // The instruction in the delay slot is between the call and the address it returns to.
        Architecture::Mips | Architecture::Mips64 => {
            word(8).map(|word| word & 0xfc00_0000 == 0x0c00_0000 || word & 0xfc1f_003f == 0x0000_0009)
        }
        Architecture::LoongArch64 => {
            word(4).map(|word| word & 0xfc00_0000 == 0x5400_0000 || word & 0xfc00_001f == 0x4c00_0001)
        }
        _ => None,
    }
}

/// Whether the bytes before an address end in a call instruction of x86 (Intel SDM volume 2, `CALL`); `None` when there
/// are too few of them.
pub(crate) fn is_after_x86_call(before: &[u8]) -> Option<bool> {
    if before.len() < 2 {
        return None;
    }
    let at = |back: usize| before.len().checked_sub(back).and_then(|at| before.get(at)).copied();
    let direct = at(5) == Some(0xe8);
    // FF /2 with its ModRM byte: register or [reg] (2), [reg+disp8] (3), SIB+disp8 (4), [reg+disp32] (6), SIB+disp32
    // (7).
    let indirect = [2, 3, 4, 6, 7].into_iter().any(|length| {
        at(length) == Some(0xff)
            && at(length - 1)
                .is_some_and(|modrm| (modrm >> 3) & 7 == 2 && fits(modrm, length, at(length.saturating_sub(2))))
    });
    Some(direct || indirect)
}

/// Whether an `FF /2` instruction with this ModRM byte has this length (Intel SDM volume 2, table 2-2).
fn fits(modrm: u8, length: usize, sib: Option<u8>) -> bool {
    let (mode, rm) = (modrm >> 6, modrm & 7);
    let has_sib = mode != 3 && rm == 4;
    let no_base = has_sib && mode == 0 && sib.is_some_and(|sib| sib & 7 == 5);
    let displacement = match mode {
        0 if rm == 5 || no_base => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    length == 2 + usize::from(has_sib) + displacement
}

/// The `N` bytes that begin `back` bytes before the end.
fn last<const N: usize>(before: &[u8], back: usize) -> Option<&[u8; N]> {
    before.get(before.len().checked_sub(back)?..)?.first_chunk()
}

/// Two or four bytes as a number.
fn number(bytes: &[u8], big_endian: bool) -> u32 {
    let join = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
    if big_endian { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls as assemblers write them, and one instruction of each that is none.
    #[test]
    fn calls_of_each_architecture_are_told_from_other_instructions() {
        let cases: [(Architecture, bool, &[u8], &[u8]); 10] = [
            (Architecture::X86_64, false, &[0xe8, 1, 2, 3, 4], &[0xe9, 1, 2, 3, 4]),
            (Architecture::X86_64, false, &[0x41, 0xff, 0xd4], &[0x41, 0xff, 0xe4]),
            (Architecture::Aarch64, false, &0x97ff_fff4_u32.to_le_bytes(), &0x17ff_fff4_u32.to_le_bytes()),
            (Architecture::Aarch64, false, &0xd63f_0260_u32.to_le_bytes(), &0xd61f_0260_u32.to_le_bytes()),
            (Architecture::Arm, false, &[0x00, 0xf0, 0x02, 0xf8], &[0x00, 0xbf, 0x70, 0xbd]),
            (Architecture::Riscv64, false, &0x0100_00ef_u32.to_le_bytes(), &0x0100_006f_u32.to_le_bytes()),
            (Architecture::PowerPc64, true, &0x4bff_fff1_u32.to_be_bytes(), &0x4bff_fff0_u32.to_be_bytes()),
            (Architecture::S390x, true, &[0xc0, 0xe5, 0, 0, 0, 1], &[0xc0, 0x10, 0, 0, 0, 1]),
            (Architecture::Mips, true, &[0x0c, 1, 2, 3, 0, 0, 0, 0], &[0x08, 1, 2, 3, 0, 0, 0, 0]),
            (Architecture::LoongArch64, false, &0x5400_1000_u32.to_le_bytes(), &0x5000_1000_u32.to_le_bytes()),
        ];
        for (architecture, big, call, other) in cases {
            assert_eq!(is_after_call(architecture, big, call), Some(true), "{architecture:?} {call:x?}");
            assert_eq!(is_after_call(architecture, big, other), Some(false), "{architecture:?} {other:x?}");
            assert_eq!(is_after_call(architecture, big, &call[..1]), None, "{architecture:?}");
        }
        assert_eq!(is_after_call(Architecture::Unknown, false, &[0; 8]), None);
    }
}
