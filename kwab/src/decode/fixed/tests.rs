//! What real reports show, and that no bytes stop the readers.

use super::*;

struct Named(&'static [(u16, u64)]);

impl Values for Named {
    fn register(&self, number: u16) -> Option<u64> {
        self.0.iter().find(|(known, _)| *known == number).map(|(_, value)| *value)
    }

    fn word(&self, _addr: u64) -> Option<u64> {
        None
    }
}

fn arm64(word: u32, addr: u64, values: &Named) -> Instruction {
    Fixed::Arm64.decode_at(&word.to_le_bytes(), addr, values).expect("four bytes")
}

fn riscv(word: u32, addr: u64, values: &Named) -> Instruction {
    Fixed::Riscv64.decode_at(&word.to_le_bytes(), addr, values).expect("four bytes")
}

#[test]
fn a_load_through_a_null_pointer_on_arm64_says_which_address_it_reads() {
    let load = arm64(0xb940_1801, 0, &Named(&[(0, 0)]));
    assert_eq!((load.text.as_str(), load.explain().as_str()), ("ldr w1, [x0, #24]", "x0=0x0 → reads 0x18"));
    assert_eq!(load.operands[0].registers, [("x0", 0, Some(0))]);
    let store = arm64(0xa9bf_7bfd, 0, &Named(&[(31, 0xffff_8000_0000_1000)]));
    assert_eq!(
        (store.text.as_str(), store.operands[0].address),
        ("stp x29, x30, [sp, #-16]!", Some(0xffff_8000_0000_0ff0))
    );
    let indexed = arm64(0xf863_d801, 0, &Named(&[(0, 0x1000), (3, 0xffff_ffff)]));
    assert_eq!((indexed.text.as_str(), indexed.operands[0].address), ("ldr x1, [x0, w3, sxtw #3]", Some(0xff8)));
}

#[test]
fn traps_and_branches_of_arm64_are_told_from_other_code() {
    let none = Named(&[]);
    assert_eq!(arm64(0xd421_0000, 0, &none).text, "brk #0x800");
    assert_eq!(arm64(0xd421_0000, 0, &none).control, Control::Trap);
    assert_eq!(arm64(0x0000_0000, 0, &none).text, "udf #0");
    assert_eq!(arm64(0x97ff_ffff, 0x1000, &none).text, "bl 0xffc");
    assert_eq!(arm64(0xd63f_0020, 0, &Named(&[(1, 0)])).explain(), "x1=0x0 → goes to 0x0");
    assert_eq!(arm64(0xd65f_03c0, 0, &none).control, Control::Return);
    let vector = arm64(0x4ea1_1c20, 0, &none);
    assert!(vector.invalid && vector.text == ".inst 0x4ea11c20 (not decoded)", "{}", vector.text);
}

#[test]
fn code_of_riscv_is_read_in_both_lengths() {
    let load = riscv(0x0187_b783, 0, &Named(&[(15, 0)]));
    assert_eq!((load.text.as_str(), load.explain().as_str()), ("ld a5,24(a5)", "a5=0x0 → reads 0x18"));
    let short = riscv(0x0001_9002, 0, &Named(&[]));
    assert_eq!((short.text.as_str(), short.bytes.len(), short.control), ("ebreak", 2, Control::Trap));
    assert_eq!(riscv(0x0001_8082, 0, &Named(&[])).control, Control::Return);
    assert_eq!(riscv(0x0000_0463, 0x1000, &Named(&[])).text, "beqz zero,0x1008");
}

#[test]
fn the_lines_before_the_fault_of_riscv_end_exactly_at_it() {
    // ld a5,24(a5) behind half of an instruction of four bytes; then ebreak.
    let code = [0x87, 0x01, 0x83, 0xb7, 0x87, 0x01, 0x02, 0x90];
    let lines = Fixed::Riscv64.around(&code, 0x1000, 0x1006, (4, 2), &Named(&[]));
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts.last(), Some(&"ebreak"));
    assert_eq!(lines[lines.len() - 2].text, "ld a5,24(a5)");
}

#[test]
fn any_bytes_are_read_without_a_panic() {
    let values = Named(&[(0, u64::MAX), (1, 0), (31, 1 << 63)]);
    let mut state = 1_u64;
    for round in 0..200_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bytes = (state >> 16).to_le_bytes();
        let addr = if round % 2 == 0 { u64::MAX - 3 } else { state };
        for isa in [Fixed::Arm64, Fixed::Riscv64] {
            let found = isa.decode_at(&bytes, addr, &values).expect("enough bytes");
            assert!(!found.text.is_empty() && found.bytes.len() <= 4);
            let lines = isa.around(&bytes, addr, addr.wrapping_add(state % 9), (4, 4), &values);
            assert!(lines.len() <= 9);
        }
    }
    assert!(Fixed::Arm64.decode_at(&[1, 2, 3], 0, &values).is_none());
    assert!(Fixed::Riscv64.decode_at(&[3], 0, &values).is_none());
    assert!(Fixed::Riscv64.decode_at(&[], 0, &values).is_none());
}
