//! Reads instructions of arm64 (A64): loads, stores, branches, traps, and integer arithmetic; vectors only as far as
//! they are loaded and stored.
//!
//! Source: Arm Architecture Reference Manual for A-profile (DDI 0487), chapters C4.1 (encodings) and C6.2.

mod arithmetic;
mod memory;

use super::{Meaning, sign_extended};
use crate::decode::instruction::Control;

/// The number by which the stack pointer is known; the zero register shares its encoding.
pub(in crate::decode::fixed) const SP: u16 = 31;

const X: [&str; 32] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
    "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",
];

const CONDITIONS: [&str; 16] =
    ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv"];

/// The name of a general register by its number (DWARF for the Arm 64-bit architecture).
pub(in crate::decode::fixed) fn name(number: u16) -> &'static str {
    X[usize::from(number & 31)]
}

/// Reads one instruction; `None` for what is not among those above.
pub(in crate::decode::fixed) fn read(word: u32, addr: u64) -> Option<Meaning> {
    match word >> 25 & 15 {
        0 if word >> 16 == 0 => Some(Meaning::trap(format!("udf #{}", word & 0xffff))),
        0b1000 | 0b1001 => arithmetic::immediate(word, addr),
        0b1010 | 0b1011 => branch(word, addr),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => memory::read(word, addr),
        0b0101 | 0b1101 => arithmetic::register(word),
        _ => None,
    }
}

const fn bits(word: u32, high: u32, low: u32) -> u32 {
    word >> low & ((1 << (high - low + 1)) - 1)
}

const fn bit(word: u32, at: u32) -> bool {
    word >> at & 1 == 1
}

fn rd(word: u32) -> u16 {
    bits(word, 4, 0) as u16
}

fn rn(word: u32) -> u16 {
    bits(word, 9, 5) as u16
}

fn rm(word: u32) -> u16 {
    bits(word, 20, 16) as u16
}

/// A register where number 31 is zero.
fn reg(wide: bool, number: u16) -> String {
    let kind = if wide { 'x' } else { 'w' };
    if number == SP { format!("{kind}zr") } else { format!("{kind}{number}") }
}

/// A register where number 31 is the stack pointer.
fn reg_sp(wide: bool, number: u16) -> String {
    match (number, wide) {
        (SP, true) => "sp".to_owned(),
        (SP, false) => "wsp".to_owned(),
        _ => reg(wide, number),
    }
}

fn branch(word: u32, addr: u64) -> Option<Meaning> {
    let ahead = |offset: u32, width: u32| addr.wrapping_add(sign_extended(u64::from(offset), width) << 2);
    let jump = |text: String, target: u64, tested: Option<u16>| Meaning {
        control: Control::Jump(Some(target)),
        tested: tested.filter(|number| *number != SP).into_iter().collect(),
        ..Meaning::plain(text)
    };
    let wide = bit(word, 31);
    match word >> 26 & 31 {
        0b00101 => {
            let target = ahead(bits(word, 25, 0), 26);
            let name = if wide { "bl" } else { "b" };
            let control = if wide { Control::Call(Some(target)) } else { Control::Jump(Some(target)) };
            return Some(Meaning { control, ..Meaning::plain(format!("{name} {target:#x}")) });
        }
        0b01101 => {
            let (wide, tested) = (wide, rd(word));
            let set = if bit(word, 24) { "n" } else { "" };
            if bit(word, 25) {
                let target = ahead(bits(word, 18, 5), 14);
                let number = u32::from(wide) << 5 | bits(word, 23, 19);
                let text = format!("tb{set}z {}, #{number}, {target:#x}", reg(wide, tested));
                return Some(jump(text, target, Some(tested)));
            }
            let target = ahead(bits(word, 23, 5), 19);
            return Some(jump(format!("cb{set}z {}, {target:#x}", reg(wide, tested)), target, Some(tested)));
        }
        _ => {}
    }
    if word >> 24 == 0b0101_0100 && !bit(word, 4) {
        let target = ahead(bits(word, 23, 5), 19);
        return Some(jump(format!("b.{} {target:#x}", CONDITIONS[bits(word, 3, 0) as usize]), target, None));
    }
    match word >> 24 {
        0b1101_0100 => exception(word),
        0b1101_0101 => system(word),
        0b1101_0110 | 0b1101_0111 => branch_register(word),
        _ => None,
    }
}

fn exception(word: u32) -> Option<Meaning> {
    let name = match (bits(word, 23, 21), bits(word, 4, 0)) {
        (0, 1) => "svc",
        (0, 2) => "hvc",
        (0, 3) => "smc",
        (1, 0) => "brk",
        (2, 0) => "hlt",
        _ => return None,
    };
    Some(Meaning::trap(format!("{name} #{:#x}", bits(word, 20, 5))))
}

fn branch_register(word: u32) -> Option<Meaning> {
    let target = rn(word);
    let to = reg(true, target);
    let (text, control) = match word & 0xffff_fc1f {
        0xd61f_0000 => (format!("br {to}"), Control::Jump(None)),
        0xd63f_0000 => (format!("blr {to}"), Control::Call(None)),
        0xd65f_0000 if target == 30 => ("ret".to_owned(), Control::Return),
        0xd65f_0000 => (format!("ret {to}"), Control::Return),
        _ => match word {
            0xd69f_03e0 => ("eret".to_owned(), Control::Return),
            0xd65f_0bff => ("retaa".to_owned(), Control::Return),
            0xd65f_0fff => ("retab".to_owned(), Control::Return),
            _ => return None,
        },
    };
    let goes_to = (!matches!(control, Control::Return) && target != SP).then_some((target, 0));
    Some(Meaning { control, goes_to, ..Meaning::plain(text) })
}

fn system(word: u32) -> Option<Meaning> {
    const HINTS: &[(u32, &str)] = &[
        (0, "nop"),
        (1, "yield"),
        (2, "wfe"),
        (3, "wfi"),
        (4, "sev"),
        (5, "sevl"),
        (7, "xpaclri"),
        (16, "esb"),
        (20, "csdb"),
        (25, "paciasp"),
        (29, "autiasp"),
        (32, "bti"),
        (34, "bti c"),
        (36, "bti j"),
        (38, "bti jc"),
    ];
    const DOMAINS: [&str; 16] =
        ["", "oshld", "oshst", "osh", "", "nshld", "nshst", "nsh", "", "ishld", "ishst", "ish", "", "ld", "st", "sy"];
    if word & 0xffff_f01f == 0xd503_201f {
        let hint = bits(word, 11, 5);
        return HINTS.iter().find(|(known, _)| *known == hint).map(|(_, name)| Meaning::plain((*name).to_owned()));
    }
    let domain = DOMAINS[bits(word, 11, 8) as usize];
    let text = match word & 0xffff_f0ff {
        0xd503_30bf if !domain.is_empty() => format!("dmb {domain}"),
        0xd503_309f if !domain.is_empty() => format!("dsb {domain}"),
        0xd503_30df if domain == "sy" => "isb".to_owned(),
        0xd503_305f => "clrex".to_owned(),
        0xd503_30ff if bits(word, 11, 8) == 0 => "sb".to_owned(),
        _ => return system_register(word).map(Meaning::plain),
    };
    Some(Meaning::plain(text))
}

/// `mrs`, `msr` of the registers that a kernel uses all the time; others by their numbers.
fn system_register(word: u32) -> Option<String> {
    const NAMES: &[(u32, &str)] = &[
        (0xc208, "sp_el0"),
        (0xc684, "tpidr_el1"),
        (0xe682, "tpidr_el2"),
        (0xde82, "tpidr_el0"),
        (0xde83, "tpidrro_el0"),
        (0xda11, "daif"),
        (0xc212, "currentel"),
        (0xc290, "esr_el1"),
        (0xc300, "far_el1"),
        (0xc200, "spsr_el1"),
        (0xc201, "elr_el1"),
        (0xc080, "sctlr_el1"),
        (0xc100, "ttbr0_el1"),
        (0xc101, "ttbr1_el1"),
        (0xc102, "tcr_el1"),
        (0xdf02, "cntvct_el0"),
        (0xc230, "icc_pmr_el1"),
    ];
    let read = match word >> 20 {
        0xd53 => true,
        0xd51 => false,
        _ => return None,
    };
    let encoded = 0x8000 | bits(word, 19, 5);
    let known = NAMES.iter().find(|(number, _)| *number == encoded).map(|(_, name)| (*name).to_owned());
    let (op0, op1, n, m, op2) = (encoded >> 14, encoded >> 11 & 7, encoded >> 7 & 15, encoded >> 3 & 15, encoded & 7);
    let name = known.unwrap_or_else(|| format!("s{op0}_{op1}_c{n}_c{m}_{op2}"));
    let other = reg(true, rd(word));
    Some(if read { format!("mrs {other}, {name}") } else { format!("msr {name}, {other}") })
}
