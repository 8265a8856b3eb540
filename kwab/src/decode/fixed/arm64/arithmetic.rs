//! Integer arithmetic of arm64: with immediates and between registers.

use super::{CONDITIONS, Meaning, SP, bit, bits, rd, reg, reg_sp, rm, rn, sign_extended};

pub(in crate::decode::fixed) fn immediate(word: u32, addr: u64) -> Option<Meaning> {
    let wide = bit(word, 31);
    match bits(word, 25, 23) {
        0 | 1 => {
            let offset = sign_extended(u64::from(bits(word, 23, 5) << 2 | bits(word, 30, 29)), 21);
            let (name, target) = match wide {
                true => ("adrp", (addr & !0xfff).wrapping_add(offset << 12)),
                false => ("adr", addr.wrapping_add(offset)),
            };
            Some(Meaning::plain(format!("{name} {}, {target:#x}", reg(true, rd(word)))))
        }
        2 => Some(Meaning::plain(add_immediate(word, wide))),
        4 => logical_immediate(word, wide).map(Meaning::plain),
        5 => move_wide(word, wide).map(Meaning::plain),
        6 => bitfield(word, wide).map(Meaning::plain),
        7 if bits(word, 30, 29) == 0 && bit(word, 22) == wide && !bit(word, 21) && (wide || !bit(word, 15)) => {
            let (n, m, at) = (rn(word), rm(word), bits(word, 15, 10));
            let d = reg(wide, rd(word));
            Some(Meaning::plain(match n == m {
                true => format!("ror {d}, {}, #{at}", reg(wide, n)),
                false => format!("extr {d}, {}, {}, #{at}", reg(wide, n), reg(wide, m)),
            }))
        }
        _ => None,
    }
}

fn add_immediate(word: u32, wide: bool) -> String {
    let (subtract, flags, shifted) = (bit(word, 30), bit(word, 29), bit(word, 22));
    let (d, n, number) = (rd(word), rn(word), bits(word, 21, 10));
    let amount = if shifted { format!("#{number:#x}, lsl #12") } else { format!("#{number:#x}") };
    let from = reg_sp(wide, n);
    match (subtract, flags) {
        (false, false) if number == 0 && !shifted && (d == SP || n == SP) => {
            format!("mov {}, {from}", reg_sp(wide, d))
        }
        (true, true) if d == SP => format!("cmp {from}, {amount}"),
        (false, true) if d == SP => format!("cmn {from}, {amount}"),
        (true, true) => format!("subs {}, {from}, {amount}", reg(wide, d)),
        (false, true) => format!("adds {}, {from}, {amount}", reg(wide, d)),
        (true, false) => format!("sub {}, {from}, {amount}", reg_sp(wide, d)),
        (false, false) => format!("add {}, {from}, {amount}", reg_sp(wide, d)),
    }
}

/// The value of a bitmask immediate (`DecodeBitMasks` of the manual).
fn bitmask(word: u32, wide: bool) -> Option<u64> {
    let (n, rotate, ones) = (bits(word, 22, 22), bits(word, 21, 16), bits(word, 15, 10));
    if !wide && n == 1 {
        return None;
    }
    let length = (n << 6 | !ones & 63).checked_ilog2()?;
    let size = 1_u32.checked_shl(length)?;
    if length == 0 {
        return None;
    }
    let (ones, rotate) = (ones & (size - 1), rotate & (size - 1));
    if ones == size - 1 {
        return None;
    }
    let element = u64::MAX >> (63 - ones);
    let mask = u64::MAX >> (64 - size);
    let rotated = if rotate == 0 { element } else { (element >> rotate | element << (size - rotate)) & mask };
    let mut value = rotated;
    let mut filled = size;
    while filled < 64 {
        value |= value << filled;
        filled *= 2;
    }
    Some(if wide { value } else { value & 0xffff_ffff })
}

/// Whether a `mov` of the value is rather one of a shifted half (`MoveWidePreferred`).
fn fits_move_wide(value: u64, wide: bool) -> bool {
    let width = if wide { 64 } else { 32 };
    let whole = if wide { u64::MAX } else { 0xffff_ffff };
    (0..width / 16).any(|half| {
        let mask = 0xffff_u64 << (half * 16);
        value & !mask == 0 || !value & whole & !mask == 0
    })
}

fn logical_immediate(word: u32, wide: bool) -> Option<String> {
    let value = bitmask(word, wide)?;
    let (d, n) = (rd(word), rn(word));
    Some(match bits(word, 30, 29) {
        0 => format!("and {}, {}, #{value:#x}", reg_sp(wide, d), reg(wide, n)),
        1 if n == SP && !fits_move_wide(value, wide) => format!("mov {}, #{value:#x}", reg_sp(wide, d)),
        1 => format!("orr {}, {}, #{value:#x}", reg_sp(wide, d), reg(wide, n)),
        2 => format!("eor {}, {}, #{value:#x}", reg_sp(wide, d), reg(wide, n)),
        _ if d == SP => format!("tst {}, #{value:#x}", reg(wide, n)),
        _ => format!("ands {}, {}, #{value:#x}", reg(wide, d), reg(wide, n)),
    })
}

fn move_wide(word: u32, wide: bool) -> Option<String> {
    let (half, number) = (bits(word, 22, 21), u64::from(bits(word, 20, 5)));
    if !wide && half > 1 {
        return None;
    }
    let d = reg(wide, rd(word));
    let shift = if half == 0 { String::new() } else { format!(", lsl #{}", half * 16) };
    let value = number << (half * 16);
    let whole = if wide { u64::MAX } else { 0xffff_ffff };
    Some(match bits(word, 30, 29) {
        0 if number == 0 && half != 0 || !wide && number == 0xffff => format!("movn {d}, #{number:#x}{shift}"),
        0 => format!("mov {d}, #{:#x}", !value & whole),
        2 if number == 0 && half != 0 => format!("movz {d}, #{number:#x}{shift}"),
        2 => format!("mov {d}, #{value:#x}"),
        3 => format!("movk {d}, #{number:#x}{shift}"),
        _ => return None,
    })
}

fn bitfield(word: u32, wide: bool) -> Option<String> {
    if bit(word, 22) != wide {
        return None;
    }
    let (r, s) = (bits(word, 21, 16), bits(word, 15, 10));
    let (d, from, last) = (reg(wide, rd(word)), reg(wide, rn(word)), if wide { 63 } else { 31 });
    if r > last || s > last {
        return None;
    }
    let narrow = reg(false, rn(word));
    let insert = |name: &str, from: &str| format!("{name} {d}, {from}, #{}, #{}", (last + 1 - r) & last, s + 1);
    let extract = |name: &str| format!("{name} {d}, {from}, #{r}, #{}", s + 1 - r);
    Some(match (bits(word, 30, 29), r, s) {
        (0, r, s) if s == last => format!("asr {d}, {from}, #{r}"),
        (0, 0, 7) => format!("sxtb {d}, {narrow}"),
        (0, 0, 15) => format!("sxth {d}, {narrow}"),
        (0, 0, 31) => format!("sxtw {d}, {narrow}"),
        (0, r, s) if s < r => insert("sbfiz", &from),
        (0, ..) => extract("sbfx"),
        (1, r, s) if s < r && rn(word) == SP => format!("bfc {d}, #{}, #{}", (last + 1 - r) & last, s + 1),
        (1, r, s) if s < r => insert("bfi", &from),
        (1, ..) => extract("bfxil"),
        (2, r, s) if s != last && s + 1 == r => format!("lsl {d}, {from}, #{}", last - s),
        (2, r, s) if s == last => format!("lsr {d}, {from}, #{r}"),
        (2, 0, 7) if !wide => format!("uxtb {d}, {narrow}"),
        (2, 0, 15) if !wide => format!("uxth {d}, {narrow}"),
        (2, r, s) if s < r => insert("ubfiz", &from),
        (2, ..) => extract("ubfx"),
        _ => return None,
    })
}

pub(in crate::decode::fixed) fn register(word: u32) -> Option<Meaning> {
    let text = match (bit(word, 28), bits(word, 24, 21)) {
        (false, 0..=7) => logical_register(word),
        (false, kind) if kind & 1 == 0 => add_register(word),
        (false, _) => add_extended(word),
        (true, 0) if bits(word, 15, 10) == 0 => Some(carry(word)),
        (true, 2) => conditional_compare(word),
        (true, 4) => conditional_select(word),
        (true, 6) => few_sources(word),
        (true, 8..=15) => multiply(word),
        _ => None,
    };
    text.map(Meaning::plain)
}

fn shift_of(word: u32, rotates: bool) -> Option<String> {
    let (kind, amount) = (bits(word, 23, 22), bits(word, 15, 10));
    if kind == 3 && !rotates || !bit(word, 31) && amount > 31 {
        return None;
    }
    let name = ["lsl", "lsr", "asr", "ror"][kind as usize];
    Some(if kind == 0 && amount == 0 { String::new() } else { format!(", {name} #{amount}") })
}

fn logical_register(word: u32) -> Option<String> {
    let wide = bit(word, 31);
    let shift = shift_of(word, true)?;
    let (d, n, m) = (rd(word), rn(word), rm(word));
    let names = ["and", "bic", "orr", "orn", "eor", "eon", "ands", "bics"];
    let kind = bits(word, 30, 29) << 1 | bits(word, 21, 21);
    let (to, from, by) = (reg(wide, d), reg(wide, n), reg(wide, m));
    Some(match kind {
        2 if n == SP && shift.is_empty() => format!("mov {to}, {by}"),
        3 if n == SP => format!("mvn {to}, {by}{shift}"),
        6 if d == SP => format!("tst {from}, {by}{shift}"),
        _ => format!("{} {to}, {from}, {by}{shift}", names[kind as usize]),
    })
}

fn add_register(word: u32) -> Option<String> {
    let wide = bit(word, 31);
    let shift = shift_of(word, false)?;
    let (d, n) = (rd(word), rn(word));
    let (to, from, by) = (reg(wide, d), reg(wide, n), reg(wide, rm(word)));
    Some(match bits(word, 30, 29) {
        0 => format!("add {to}, {from}, {by}{shift}"),
        1 if d == SP => format!("cmn {from}, {by}{shift}"),
        1 => format!("adds {to}, {from}, {by}{shift}"),
        2 if n == SP => format!("neg {to}, {by}{shift}"),
        2 => format!("sub {to}, {from}, {by}{shift}"),
        _ if d == SP => format!("cmp {from}, {by}{shift}"),
        _ if n == SP => format!("negs {to}, {by}{shift}"),
        _ => format!("subs {to}, {from}, {by}{shift}"),
    })
}

fn add_extended(word: u32) -> Option<String> {
    let (wide, kind, amount) = (bit(word, 31), bits(word, 15, 13), bits(word, 12, 10));
    if bits(word, 23, 22) != 0 || amount > 4 {
        return None;
    }
    let (d, n) = (rd(word), rn(word));
    let extend = ["uxtb", "uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"][kind as usize];
    let by = reg(wide && kind & 3 == 3, rm(word));
    let flags = bit(word, 29);
    let plain = kind == if wide { 3 } else { 2 } && (n == SP || d == SP && !flags);
    let how = match (plain, amount) {
        (true, 0) => String::new(),
        (true, _) => format!(", lsl #{amount}"),
        (false, 0) => format!(", {extend}"),
        (false, _) => format!(", {extend} #{amount}"),
    };
    let from = reg_sp(wide, n);
    Some(match bits(word, 30, 29) {
        0 => format!("add {}, {from}, {by}{how}", reg_sp(wide, d)),
        1 if d == SP => format!("cmn {from}, {by}{how}"),
        1 => format!("adds {}, {from}, {by}{how}", reg(wide, d)),
        2 => format!("sub {}, {from}, {by}{how}", reg_sp(wide, d)),
        _ if d == SP => format!("cmp {from}, {by}{how}"),
        _ => format!("subs {}, {from}, {by}{how}", reg(wide, d)),
    })
}

fn carry(word: u32) -> String {
    let wide = bit(word, 31);
    let name = ["adc", "adcs", "sbc", "sbcs"][bits(word, 30, 29) as usize];
    let (to, from, by) = (reg(wide, rd(word)), reg(wide, rn(word)), reg(wide, rm(word)));
    match (name, rn(word)) {
        ("sbc", SP) => format!("ngc {to}, {by}"),
        ("sbcs", SP) => format!("ngcs {to}, {by}"),
        _ => format!("{name} {to}, {from}, {by}"),
    }
}

fn conditional_compare(word: u32) -> Option<String> {
    if !bit(word, 29) || bit(word, 10) || bit(word, 4) {
        return None;
    }
    let wide = bit(word, 31);
    let name = if bit(word, 30) { "ccmp" } else { "ccmn" };
    let by = if bit(word, 11) { format!("#{:#x}", rm(word)) } else { reg(wide, rm(word)) };
    let condition = CONDITIONS[bits(word, 15, 12) as usize];
    Some(format!("{name} {}, {by}, #{:#x}, {condition}", reg(wide, rn(word)), bits(word, 3, 0)))
}

fn conditional_select(word: u32) -> Option<String> {
    let (wide, d, n, m) = (bit(word, 31), rd(word), rn(word), rm(word));
    if bit(word, 29) || bit(word, 11) {
        return None;
    }
    let number = bits(word, 15, 12);
    let (condition, inverse) = (CONDITIONS[number as usize], CONDITIONS[(number ^ 1) as usize]);
    let (to, from, other) = (reg(wide, d), reg(wide, n), reg(wide, m));
    let aliased = number < 14 && n == m;
    Some(match (bit(word, 30), bit(word, 10)) {
        (false, false) => format!("csel {to}, {from}, {other}, {condition}"),
        (false, true) if aliased && n == SP => format!("cset {to}, {inverse}"),
        (false, true) if aliased => format!("cinc {to}, {from}, {inverse}"),
        (false, true) => format!("csinc {to}, {from}, {other}, {condition}"),
        (true, false) if aliased && n == SP => format!("csetm {to}, {inverse}"),
        (true, false) if aliased => format!("cinv {to}, {from}, {inverse}"),
        (true, false) => format!("csinv {to}, {from}, {other}, {condition}"),
        (true, true) if aliased => format!("cneg {to}, {from}, {inverse}"),
        (true, true) => format!("csneg {to}, {from}, {other}, {condition}"),
    })
}

fn few_sources(word: u32) -> Option<String> {
    let wide = bit(word, 31);
    if bit(word, 29) {
        return None;
    }
    let (to, from) = (reg(wide, rd(word)), reg(wide, rn(word)));
    if bit(word, 30) {
        let name = match (bits(word, 20, 10), wide) {
            (0, _) => "rbit",
            (1, _) => "rev16",
            (2, false) | (3, true) => "rev",
            (2, true) => "rev32",
            (4, _) => "clz",
            (5, _) => "cls",
            _ => return None,
        };
        return Some(format!("{name} {to}, {from}"));
    }
    let name = match bits(word, 15, 10) {
        2 => "udiv",
        3 => "sdiv",
        8 => "lsl",
        9 => "lsr",
        10 => "asr",
        11 => "ror",
        _ => return None,
    };
    Some(format!("{name} {to}, {from}, {}", reg(wide, rm(word))))
}

fn multiply(word: u32) -> Option<String> {
    let (wide, minus) = (bit(word, 31), bit(word, 15));
    let a = bits(word, 14, 10) as u16;
    let kind = bits(word, 23, 21);
    if bits(word, 30, 29) != 0 || !wide && kind != 0 {
        return None;
    }
    let (to, add) = (reg(wide, rd(word)), reg(wide, a));
    let sources = |wide: bool| format!("{}, {}", reg(wide, rn(word)), reg(wide, rm(word)));
    let long = |letter: &str| match (a == SP, minus) {
        (true, false) => format!("{letter}mull {to}, {}", sources(false)),
        (true, true) => format!("{letter}mnegl {to}, {}", sources(false)),
        (false, false) => format!("{letter}maddl {to}, {}, {add}", sources(false)),
        (false, true) => format!("{letter}msubl {to}, {}, {add}", sources(false)),
    };
    Some(match (kind, minus, a == SP) {
        (0, false, true) => format!("mul {to}, {}", sources(wide)),
        (0, true, true) => format!("mneg {to}, {}", sources(wide)),
        (0, false, false) => format!("madd {to}, {}, {add}", sources(wide)),
        (0, true, false) => format!("msub {to}, {}, {add}", sources(wide)),
        (1, ..) => long("s"),
        (5, ..) => long("u"),
        (2, false, true) => format!("smulh {to}, {}", sources(true)),
        (6, false, true) => format!("umulh {to}, {}", sources(true)),
        _ => return None,
    })
}
