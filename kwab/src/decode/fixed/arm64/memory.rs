//! Loads and stores of arm64, with the place in memory that they are about.

use std::fmt::Write as _;

use super::{Meaning, SP, bit, bits, rd, reg, reg_sp, rm, rn, sign_extended};
use crate::decode::fixed::{Cell, IndexRegister};
use crate::decode::instruction::Access;

pub(in crate::decode::fixed) fn read(word: u32, addr: u64) -> Option<Meaning> {
    match bits(word, 29, 27) {
        0b001 if !bit(word, 26) && !bit(word, 24) => exclusive(word),
        0b011 if !bit(word, 24) => literal(word, addr),
        0b101 => pair(word),
        0b111 => single(word),
        _ => None,
    }
}

/// What is in memory at a register plus a number.
fn at(base: u16, displacement: i64, access: Access, size: u32) -> Cell {
    Cell { base: Some(base), index: None, displacement: displacement.cast_unsigned(), access, size: size as usize }
}

fn with_place(text: String, place: Cell) -> Meaning {
    Meaning { place: Some(place), ..Meaning::plain(text) }
}

/// Exclusive, ordered, and compare-and-swap accesses.
fn exclusive(word: u32) -> Option<Meaning> {
    let size = bits(word, 31, 30);
    let (ordered, load, pairs, release) = (bit(word, 23), bit(word, 22), bit(word, 21), bit(word, 15));
    let (wide, t, n, s) = (size == 3, rd(word), rn(word), rm(word));
    let suffix = ["b", "h", "", ""][size as usize];
    let base = reg_sp(true, n);
    let bytes = 1 << size;
    let t = reg(wide, t);
    let t2 = reg(wide, bits(word, 14, 10) as u16);
    let direction = if load { Access::Read } else { Access::Write };
    let (text, access, bytes) = match (ordered, pairs, load) {
        (false, false, true) => {
            (format!("ld{}xr{suffix} {t}, [{base}]", if release { "a" } else { "" }), direction, bytes)
        }
        (false, false, false) => {
            let l = if release { "l" } else { "" };
            (format!("st{l}xr{suffix} {}, {t}, [{base}]", reg(false, s)), direction, bytes)
        }
        (false, true, true) if size >= 2 => {
            (format!("ld{}xp {t}, {t2}, [{base}]", if release { "a" } else { "" }), direction, bytes * 2)
        }
        (false, true, false) if size >= 2 => {
            let l = if release { "l" } else { "" };
            (format!("st{l}xp {}, {t}, {t2}, [{base}]", reg(false, s)), direction, bytes * 2)
        }
        (true, false, true) if release => (format!("ldar{suffix} {t}, [{base}]"), direction, bytes),
        (true, false, false) if release => (format!("stlr{suffix} {t}, [{base}]"), direction, bytes),
        (true, true, acquire) => {
            let order = format!("{}{}", if acquire { "a" } else { "" }, if release { "l" } else { "" });
            (format!("cas{order}{suffix} {}, {t}, [{base}]", reg(wide, s)), Access::ReadWrite, bytes)
        }
        _ => return None,
    };
    Some(with_place(text, at(n, 0, access, bytes)))
}

fn literal(word: u32, addr: u64) -> Option<Meaning> {
    let target = addr.wrapping_add(sign_extended(u64::from(bits(word, 23, 5)), 19) << 2);
    let (name, t, size) = match (bits(word, 31, 30), bit(word, 26)) {
        (0, false) => ("ldr", reg(false, rd(word)), 4),
        (1, false) => ("ldr", reg(true, rd(word)), 8),
        (2, false) => ("ldrsw", reg(true, rd(word)), 4),
        _ => return None,
    };
    let place = Cell { base: None, index: None, displacement: target, access: Access::Read, size };
    Some(with_place(format!("{name} {t}, {target:#x}"), place))
}

/// `[base, #offset]`, `[base, #offset]!`, `[base], #offset`.
fn addressed(base: &str, offset: i64, mode: u32) -> String {
    match (mode, offset) {
        (1, _) => format!("[{base}], #{offset}"),
        (3, _) => format!("[{base}, #{offset}]!"),
        (_, 0) => format!("[{base}]"),
        _ => format!("[{base}, #{offset}]"),
    }
}

fn pair(word: u32) -> Option<Meaning> {
    let (kind, vector, mode, load) = (bits(word, 31, 30), bit(word, 26), bits(word, 24, 23), bit(word, 22));
    if bit(word, 25) {
        return None;
    }
    let scale = match (vector, kind) {
        (true, 0..=2) => 2 + kind,
        (false, 0) => 2,
        (false, 1) if load && mode != 0 => 2,
        (false, 2) => 3,
        _ => return None,
    };
    let wide = kind != 0;
    let register = |number: u16| match vector {
        true => format!("{}{number}", ["s", "d", "q"][kind as usize]),
        false => reg(wide, number),
    };
    let (t, t2, n) = (register(rd(word)), register(bits(word, 14, 10) as u16), rn(word));
    let offset = sign_extended(u64::from(bits(word, 21, 15)), 7).cast_signed() << scale;
    let name = match (load, mode, !vector && kind == 1) {
        (true, _, true) => "ldpsw",
        (true, 0, _) => "ldnp",
        (false, 0, _) => "stnp",
        (true, ..) => "ldp",
        (false, ..) => "stp",
    };
    let text = format!("{name} {t}, {t2}, {}", addressed(&reg_sp(true, n), offset, mode));
    let access = if load { Access::Read } else { Access::Write };
    Some(with_place(text, at(n, if mode == 1 { 0 } else { offset }, access, 2 << scale)))
}

/// What a load or store of one register does: name without its addressing, register, access; `None` for what is none.
fn transfer(word: u32, middle: &str) -> Option<(String, String, Access, u32)> {
    let (size, vector, kind) = (bits(word, 31, 30), bit(word, 26), bits(word, 23, 22));
    let t = rd(word);
    if vector {
        let scale = size | (kind >> 1) << 2;
        let letter = *["b", "h", "s", "d", "q"].get(scale as usize)?;
        let (name, access) = if kind & 1 == 1 { ("ld", Access::Read) } else { ("st", Access::Write) };
        return Some((format!("{name}{middle}r"), format!("{letter}{t}"), access, scale));
    }
    let suffix = ["b", "h", "", ""][size as usize];
    let signed = ["sb", "sh", "sw", ""][size as usize];
    Some(match kind {
        0 => (format!("st{middle}r{suffix}"), reg(size == 3, t), Access::Write, size),
        1 => (format!("ld{middle}r{suffix}"), reg(size == 3, t), Access::Read, size),
        2 if size == 3 && middle != "t" => return None,
        2 if size < 3 => (format!("ld{middle}r{signed}"), reg(true, t), Access::Read, size),
        3 if size < 2 => (format!("ld{middle}r{signed}"), reg(false, t), Access::Read, size),
        _ => return None,
    })
}

fn single(word: u32) -> Option<Meaning> {
    let n = rn(word);
    let base = reg_sp(true, n);
    if bits(word, 25, 24) == 1 {
        let (name, t, access, scale) = transfer(word, "")?;
        let offset = i64::from(bits(word, 21, 10)) << scale;
        return Some(with_place(
            format!("{name} {t}, {}", addressed(&base, offset, 2)),
            at(n, offset, access, 1 << scale),
        ));
    }
    if bits(word, 25, 24) != 0 {
        return None;
    }
    match (bit(word, 21), bits(word, 11, 10)) {
        (true, 0) => atomic(word),
        (true, 2) => indexed(word),
        (true, _) => None,
        (false, mode) => {
            let (name, t, access, scale) = transfer(word, ["u", "", "t", ""][mode as usize])?;
            if bit(word, 26) && mode == 2 {
                return None;
            }
            let offset = sign_extended(u64::from(bits(word, 20, 12)), 9).cast_signed();
            let used = if mode == 1 { 0 } else { offset };
            Some(with_place(format!("{name} {t}, {}", addressed(&base, offset, mode)), at(n, used, access, 1 << scale)))
        }
    }
}

fn indexed(word: u32) -> Option<Meaning> {
    let (name, t, access, scale) = transfer(word, "")?;
    let (n, m, shifted) = (rn(word), rm(word), bit(word, 12));
    let amount = if shifted { scale } else { 0 };
    let (wide, extend) = match bits(word, 15, 13) {
        2 => (false, "uxtw"),
        3 => (true, "lsl"),
        6 => (false, "sxtw"),
        7 => (true, "sxtx"),
        _ => return None,
    };
    let mut how = String::new();
    match (extend, shifted) {
        ("lsl", false) => {}
        (_, false) => how.push_str(&format!(", {extend}")),
        (_, true) => {
            let _ = write!(how, ", {extend} #{amount}");
        }
    }
    let text = format!("{name} {t}, [{}, {}{how}]", reg_sp(true, n), reg(wide, m));
    let index =
        (m != SP).then_some(IndexRegister { register: m, narrow: !wide, signed: extend != "uxtw", shift: amount });
    Some(with_place(text, Cell { index, ..at(n, 0, access, 1 << scale) }))
}

/// The atomic operations of the large system extensions.
fn atomic(word: u32) -> Option<Meaning> {
    const NAMES: [&str; 8] = ["add", "clr", "eor", "set", "smax", "smin", "umax", "umin"];
    if bit(word, 26) {
        return None;
    }
    let (size, acquire, release) = (bits(word, 31, 30), bit(word, 23), bit(word, 22));
    let (wide, t, n, s) = (size == 3, rd(word), rn(word), rm(word));
    let suffix = ["b", "h", "", ""][size as usize];
    let order = |acquire: bool| format!("{}{}", if acquire { "a" } else { "" }, if release { "l" } else { "" });
    let (base, place) = (reg_sp(true, n), at(n, 0, Access::ReadWrite, 1 << size));
    let text = match (bit(word, 15), bits(word, 14, 12)) {
        (true, 0) => format!("swp{}{suffix} {}, {}, [{base}]", order(acquire), reg(wide, s), reg(wide, t)),
        (true, 4) if acquire && !release && s == SP => {
            let text = format!("ldapr{suffix} {}, [{base}]", reg(wide, t));
            return Some(with_place(text, at(n, 0, Access::Read, 1 << size)));
        }
        (false, kind) if t == SP && !acquire => {
            format!("st{}{}{suffix} {}, [{base}]", NAMES[kind as usize], order(false), reg(wide, s))
        }
        (false, kind) => {
            let name = NAMES[kind as usize];
            format!("ld{name}{}{suffix} {}, {}, [{base}]", order(acquire), reg(wide, s), reg(wide, t))
        }
        _ => return None,
    };
    Some(with_place(text, place))
}
