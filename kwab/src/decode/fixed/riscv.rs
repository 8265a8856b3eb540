//! Reads instructions of riscv (RV64GC): loads, stores, branches, traps, atomics and integer arithmetic; of floating
//! point only loads and stores.
//!
//! Source: The RISC-V Instruction Set Manual, volume I (chapters RV32/64G listings, "C" extension), volume II (CSRs).

use super::{Cell, Meaning, sign_extended};
use crate::decode::instruction::{Access, Control};

const NAMES: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "s2",
    "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

/// The name of a general register by its number.
pub(in crate::decode::fixed) fn name(number: u16) -> &'static str {
    NAMES[usize::from(number & 31)]
}

const fn bits(word: u32, high: u32, low: u32) -> u32 {
    word >> low & ((1 << (high - low + 1)) - 1)
}

fn rd(word: u32) -> u16 {
    bits(word, 11, 7) as u16
}

fn rs1(word: u32) -> u16 {
    bits(word, 19, 15) as u16
}

fn rs2(word: u32) -> u16 {
    bits(word, 24, 20) as u16
}

fn signed(value: u32, width: u32) -> i64 {
    sign_extended(u64::from(value), width).cast_signed()
}

/// A floating-point register.
fn float(number: u16) -> String {
    match number {
        0..=7 => format!("ft{number}"),
        8 | 9 => format!("fs{}", number - 8),
        10..=17 => format!("fa{}", number - 10),
        18..=27 => format!("fs{}", number - 16),
        _ => format!("ft{}", number - 20),
    }
}

/// Reads an instruction of four bytes; `None` for what is not among those above.
pub(in crate::decode::fixed) fn read(word: u32, addr: u64) -> Option<Meaning> {
    let (d, one, two, kind) = (name(rd(word)), name(rs1(word)), name(rs2(word)), bits(word, 14, 12));
    match word & 0x7f {
        0x03 => {
            let load = *["lb", "lh", "lw", "ld", "lbu", "lhu", "lwu"].get(kind as usize)?;
            Some(load_at(load, d, rs1(word), signed(word >> 20, 12), 1 << (kind & 3)))
        }
        0x07 if kind == 2 || kind == 3 => {
            let load = if kind == 2 { "flw" } else { "fld" };
            Some(load_at(load, &float(rd(word)), rs1(word), signed(word >> 20, 12), 1 << kind))
        }
        0x23 if kind < 4 => {
            let store = ["sb", "sh", "sw", "sd"][kind as usize];
            Some(store_at(store, two, rs1(word), store_offset(word), 1 << kind))
        }
        0x27 if kind == 2 || kind == 3 => {
            let store = if kind == 2 { "fsw" } else { "fsd" };
            Some(store_at(store, &float(rs2(word)), rs1(word), store_offset(word), 1 << kind))
        }
        0x2f => atomic(word),
        0x63 => branch(word, addr),
        0x6f => {
            let offset = bits(word, 31, 31) << 20
                | bits(word, 19, 12) << 12
                | bits(word, 20, 20) << 11
                | bits(word, 30, 21) << 1;
            Some(jump(rd(word), addr.wrapping_add(signed(offset, 21).cast_unsigned())))
        }
        0x67 if kind == 0 => Some(jump_register(rd(word), rs1(word), signed(word >> 20, 12))),
        0x37 => Some(Meaning::plain(format!("lui {d},{:#x}", word >> 12))),
        0x17 => Some(Meaning::plain(format!("auipc {d},{:#x}", word >> 12))),
        0x13 => with_immediate(word).map(Meaning::plain),
        0x1b => with_word_immediate(word).map(Meaning::plain),
        0x33 => between(word, false).map(|name| Meaning::plain(three(name, d, one, two))),
        0x3b => between(word, true).map(|name| Meaning::plain(three(name, d, one, two))),
        0x0f => fence(word).map(Meaning::plain),
        0x73 => system(word),
        _ => None,
    }
}

fn three(name: &str, d: &str, one: &str, two: &str) -> String {
    match (name, one, two) {
        ("sub", "zero", _) => format!("neg {d},{two}"),
        ("subw", "zero", _) => format!("negw {d},{two}"),
        ("sltu", "zero", _) => format!("snez {d},{two}"),
        ("slt", _, "zero") => format!("sltz {d},{one}"),
        ("slt", "zero", _) => format!("sgtz {d},{two}"),
        _ => format!("{name} {d},{one},{two}"),
    }
}

fn place(base: u16, offset: i64, access: Access, size: usize) -> Cell {
    Cell { base: Some(base), index: None, displacement: offset.cast_unsigned(), access, size }
}

fn load_at(load: &str, to: &str, base: u16, offset: i64, size: usize) -> Meaning {
    let text = format!("{load} {to},{offset}({})", name(base));
    Meaning { place: Some(place(base, offset, Access::Read, size)), ..Meaning::plain(text) }
}

fn store_at(store: &str, what: &str, base: u16, offset: i64, size: usize) -> Meaning {
    let text = format!("{store} {what},{offset}({})", name(base));
    Meaning { place: Some(place(base, offset, Access::Write, size)), ..Meaning::plain(text) }
}

fn store_offset(word: u32) -> i64 {
    signed(bits(word, 31, 25) << 5 | bits(word, 11, 7), 12)
}

fn jump(link: u16, target: u64) -> Meaning {
    let text = match link {
        0 => format!("j {target:#x}"),
        1 => format!("jal {target:#x}"),
        _ => format!("jal {},{target:#x}", name(link)),
    };
    let control = if link == 0 { Control::Jump(Some(target)) } else { Control::Call(Some(target)) };
    Meaning { control, ..Meaning::plain(text) }
}

fn jump_register(link: u16, to: u16, offset: i64) -> Meaning {
    let register = name(to);
    let text = match (link, to, offset) {
        (0, 1, 0) => return Meaning { control: Control::Return, ..Meaning::plain("ret".to_owned()) },
        (0, _, 0) => format!("jr {register}"),
        (0, ..) => format!("jr {offset}({register})"),
        (1, _, 0) => format!("jalr {register}"),
        (1, ..) => format!("jalr {offset}({register})"),
        (_, _, 0) => format!("jalr {},{register}", name(link)),
        _ => format!("jalr {},{offset}({register})", name(link)),
    };
    let control = if link == 0 { Control::Jump(None) } else { Control::Call(None) };
    Meaning { control, goes_to: Some((to, offset.cast_unsigned())), ..Meaning::plain(text) }
}

fn branch(word: u32, addr: u64) -> Option<Meaning> {
    let offset = bits(word, 31, 31) << 12 | bits(word, 7, 7) << 11 | bits(word, 30, 25) << 5 | bits(word, 11, 8) << 1;
    let target = addr.wrapping_add(signed(offset, 13).cast_unsigned());
    let kind = match bits(word, 14, 12) {
        0 => "beq",
        1 => "bne",
        4 => "blt",
        5 => "bge",
        6 => "bltu",
        7 => "bgeu",
        _ => return None,
    };
    Some(conditional(kind, rs1(word), rs2(word), target))
}

fn conditional(kind: &str, left: u16, right: u16, target: u64) -> Meaning {
    let (one, two) = (name(left), name(right));
    let text = match (kind, left, right) {
        ("beq", _, 0) => format!("beqz {one},{target:#x}"),
        ("bne", _, 0) => format!("bnez {one},{target:#x}"),
        ("bge", 0, _) => format!("blez {two},{target:#x}"),
        ("bge", _, 0) => format!("bgez {one},{target:#x}"),
        ("blt", _, 0) => format!("bltz {one},{target:#x}"),
        ("blt", 0, _) => format!("bgtz {two},{target:#x}"),
        _ => format!("{kind} {one},{two},{target:#x}"),
    };
    let tested = [left, right].into_iter().filter(|number| *number != 0).collect();
    Meaning { control: Control::Jump(Some(target)), tested, ..Meaning::plain(text) }
}

fn atomic(word: u32) -> Option<Meaning> {
    let (size, letter) = match bits(word, 14, 12) {
        2 => (4, 'w'),
        3 => (8, 'd'),
        _ => return None,
    };
    let order = ["", ".rl", ".aq", ".aqrl"][bits(word, 26, 25) as usize];
    let (d, base, two) = (name(rd(word)), rs1(word), name(rs2(word)));
    let (text, access) = match word >> 27 {
        2 if rs2(word) == 0 => (format!("lr.{letter}{order} {d},({})", name(base)), Access::Read),
        3 => (format!("sc.{letter}{order} {d},{two},({})", name(base)), Access::Write),
        kind => {
            let operation = match kind {
                0 => "add",
                1 => "swap",
                4 => "xor",
                8 => "or",
                12 => "and",
                16 => "min",
                20 => "max",
                24 => "minu",
                28 => "maxu",
                _ => return None,
            };
            (format!("amo{operation}.{letter}{order} {d},{two},({})", name(base)), Access::ReadWrite)
        }
    };
    Some(Meaning { place: Some(place(base, 0, access, size)), ..Meaning::plain(text) })
}

fn with_immediate(word: u32) -> Option<String> {
    let (d, one, number) = (name(rd(word)), name(rs1(word)), signed(word >> 20, 12));
    let shift = bits(word, 25, 20);
    Some(match (bits(word, 14, 12), word >> 26) {
        (0, _) if rd(word) == 0 && rs1(word) == 0 && number == 0 => "nop".to_owned(),
        (0, _) if rs1(word) == 0 => format!("li {d},{number}"),
        (0, _) if number == 0 => format!("mv {d},{one}"),
        (0, _) => format!("addi {d},{one},{number}"),
        (2, _) => format!("slti {d},{one},{number}"),
        (3, _) if number == 1 => format!("seqz {d},{one}"),
        (3, _) => format!("sltiu {d},{one},{number}"),
        (4, _) if number == -1 => format!("not {d},{one}"),
        (4, _) => format!("xori {d},{one},{number}"),
        (6, _) => format!("ori {d},{one},{number}"),
        (7, _) if number == 255 => format!("zext.b {d},{one}"),
        (7, _) => format!("andi {d},{one},{number}"),
        (1, 0) => format!("slli {d},{one},{shift:#x}"),
        (5, 0) => format!("srli {d},{one},{shift:#x}"),
        (5, 0x10) => format!("srai {d},{one},{shift:#x}"),
        _ => return None,
    })
}

fn with_word_immediate(word: u32) -> Option<String> {
    let (d, one, number, shift) = (name(rd(word)), name(rs1(word)), signed(word >> 20, 12), bits(word, 24, 20));
    Some(match (bits(word, 14, 12), word >> 25) {
        (0, _) if number == 0 => format!("sext.w {d},{one}"),
        (0, _) => format!("addiw {d},{one},{number}"),
        (1, 0) => format!("slliw {d},{one},{shift:#x}"),
        (5, 0) => format!("srliw {d},{one},{shift:#x}"),
        (5, 0x20) => format!("sraiw {d},{one},{shift:#x}"),
        _ => return None,
    })
}

fn between(word: u32, narrow: bool) -> Option<&'static str> {
    let kind = bits(word, 14, 12) as usize;
    let names: [&str; 8] = match (word >> 25, narrow) {
        (0, false) => ["add", "sll", "slt", "sltu", "xor", "srl", "or", "and"],
        (0x20, false) => ["sub", "", "", "", "", "sra", "", ""],
        (1, false) => ["mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu"],
        (0, true) => ["addw", "sllw", "", "", "", "srlw", "", ""],
        (0x20, true) => ["subw", "", "", "", "", "sraw", "", ""],
        (1, true) => ["mulw", "", "", "", "divw", "divuw", "remw", "remuw"],
        _ => return None,
    };
    Some(names[kind]).filter(|name| !name.is_empty())
}

fn fence(word: u32) -> Option<String> {
    let who = |set: u32| -> String {
        "iorw".chars().enumerate().filter(|(at, _)| set >> (3 - at) & 1 == 1).map(|(_, letter)| letter).collect()
    };
    match (bits(word, 14, 12), word >> 28) {
        (1, 0) => Some("fence.i".to_owned()),
        (0, 8) => Some("fence.tso".to_owned()),
        (0, 0) if word == 0x0100_000f => Some("pause".to_owned()),
        (0, 0) if bits(word, 27, 20) == 0xff => Some("fence".to_owned()),
        (0, 0) => Some(format!("fence {},{}", who(bits(word, 27, 24)), who(bits(word, 23, 20)))),
        _ => None,
    }
}

fn system(word: u32) -> Option<Meaning> {
    match word {
        0x0000_0073 => return Some(Meaning::trap("ecall".to_owned())),
        0x0010_0073 => return Some(Meaning::trap("ebreak".to_owned())),
        0x1020_0073 => return Some(Meaning { control: Control::Return, ..Meaning::plain("sret".to_owned()) }),
        0x3020_0073 => return Some(Meaning { control: Control::Return, ..Meaning::plain("mret".to_owned()) }),
        0x1050_0073 => return Some(Meaning::plain("wfi".to_owned())),
        0xc000_1073 => return Some(Meaning::trap("unimp".to_owned())),
        _ if word & 0xfe00_7fff == 0x1200_0073 => return Some(Meaning::plain(sfence(word))),
        _ => {}
    }
    csr(word).map(Meaning::plain)
}

fn sfence(word: u32) -> String {
    match (rs1(word), rs2(word)) {
        (0, 0) => "sfence.vma".to_owned(),
        (address, 0) => format!("sfence.vma {}", name(address)),
        (address, space) => format!("sfence.vma {},{}", name(address), name(space)),
    }
}

/// Reads and writes of control and status registers; those without a name here by their numbers.
fn csr(word: u32) -> Option<String> {
    const KNOWN: &[(u32, &str)] = &[
        (0x100, "sstatus"),
        (0x104, "sie"),
        (0x105, "stvec"),
        (0x106, "scounteren"),
        (0x140, "sscratch"),
        (0x141, "sepc"),
        (0x142, "scause"),
        (0x143, "stval"),
        (0x144, "sip"),
        (0x14d, "stimecmp"),
        (0x180, "satp"),
        (0x001, "fflags"),
        (0x002, "frm"),
        (0x003, "fcsr"),
        (0xc00, "cycle"),
        (0xc01, "time"),
        (0xc02, "instret"),
    ];
    let number = word >> 20;
    let known = KNOWN.iter().find(|(known, _)| *known == number);
    let register = known.map_or_else(|| format!("{number:#x}"), |(_, name)| (*name).to_owned());
    let (d, source, by) = (name(rd(word)), name(rs1(word)), rs1(word));
    Some(match (bits(word, 14, 12), rd(word), by) {
        (1, 0, _) => format!("csrw {register},{source}"),
        (1, ..) => format!("csrrw {d},{register},{source}"),
        (2, _, 0) => format!("csrr {d},{register}"),
        (2, 0, _) => format!("csrs {register},{source}"),
        (2, ..) => format!("csrrs {d},{register},{source}"),
        (3, 0, _) => format!("csrc {register},{source}"),
        (3, ..) => format!("csrrc {d},{register},{source}"),
        (5, 0, _) => format!("csrwi {register},{by}"),
        (5, ..) => format!("csrrwi {d},{register},{by}"),
        (6, 0, _) => format!("csrsi {register},{by}"),
        (6, ..) => format!("csrrsi {d},{register},{by}"),
        (7, 0, _) => format!("csrci {register},{by}"),
        (7, ..) => format!("csrrci {d},{register},{by}"),
        _ => return None,
    })
}

/// Reads an instruction of two bytes.
pub(in crate::decode::fixed) fn compressed(half: u16, addr: u64) -> Option<Meaning> {
    let word = u32::from(half);
    let kind = bits(word, 15, 13);
    match word & 3 {
        0 => quadrant_0(word, kind),
        1 => quadrant_1(word, kind, addr),
        2 => quadrant_2(word, kind),
        _ => None,
    }
}

/// One of the eight registers s0, s1, a0 to a5, by three bits that begin at `low`.
fn short(word: u32, low: u32) -> u16 {
    8 + bits(word, low + 2, low) as u16
}

fn quadrant_0(word: u32, kind: u32) -> Option<Meaning> {
    let (to, base) = (short(word, 2), short(word, 7));
    let four = i64::from(bits(word, 12, 10) << 3 | bits(word, 6, 6) << 2 | bits(word, 5, 5) << 6);
    let eight = i64::from(bits(word, 12, 10) << 3 | bits(word, 6, 5) << 6);
    Some(match kind {
        0 if word == 0 => Meaning::trap("unimp".to_owned()),
        0 => {
            let number =
                bits(word, 10, 7) << 6 | bits(word, 12, 11) << 4 | bits(word, 5, 5) << 3 | bits(word, 6, 6) << 2;
            if number == 0 {
                return None;
            }
            Meaning::plain(format!("addi {},sp,{number}", name(to)))
        }
        1 => load_at("fld", &float(to), base, eight, 8),
        2 => load_at("lw", name(to), base, four, 4),
        3 => load_at("ld", name(to), base, eight, 8),
        5 => store_at("fsd", &float(to), base, eight, 8),
        6 => store_at("sw", name(to), base, four, 4),
        7 => store_at("sd", name(to), base, eight, 8),
        _ => return None,
    })
}

fn quadrant_1(word: u32, kind: u32, addr: u64) -> Option<Meaning> {
    let d = rd(word);
    let number = signed(bits(word, 12, 12) << 5 | bits(word, 6, 2), 6);
    let text = match kind {
        0 if d == 0 => "nop".to_owned(),
        0 => format!("addi {0},{0},{number}", name(d)),
        1 if d == 0 => return None,
        1 if number == 0 => format!("sext.w {0},{0}", name(d)),
        1 => format!("addiw {0},{0},{number}", name(d)),
        2 => format!("li {},{number}", name(d)),
        3 if d == 2 => {
            let number = bits(word, 12, 12) << 9
                | bits(word, 4, 3) << 7
                | bits(word, 5, 5) << 6
                | bits(word, 2, 2) << 5
                | bits(word, 6, 6) << 4;
            format!("addi sp,sp,{}", signed(number, 10))
        }
        3 if number == 0 => return None,
        3 => format!("lui {},{:#x}", name(d), number & 0xf_ffff),
        4 => return arithmetic(word, number).map(Meaning::plain),
        5 => {
            let offset = bits(word, 12, 12) << 11
                | bits(word, 8, 8) << 10
                | bits(word, 10, 9) << 8
                | bits(word, 6, 6) << 7
                | bits(word, 7, 7) << 6
                | bits(word, 2, 2) << 5
                | bits(word, 11, 11) << 4
                | bits(word, 5, 3) << 1;
            return Some(jump(0, addr.wrapping_add(signed(offset, 12).cast_unsigned())));
        }
        _ => {
            let offset = bits(word, 12, 12) << 8
                | bits(word, 6, 5) << 6
                | bits(word, 2, 2) << 5
                | bits(word, 11, 10) << 3
                | bits(word, 4, 3) << 1;
            let target = addr.wrapping_add(signed(offset, 9).cast_unsigned());
            return Some(conditional(if kind == 6 { "beq" } else { "bne" }, short(word, 7), 0, target));
        }
    };
    Some(Meaning::plain(text))
}

fn arithmetic(word: u32, number: i64) -> Option<String> {
    let (d, two) = (name(short(word, 7)), name(short(word, 2)));
    let shift = number & 63;
    Some(match (bits(word, 11, 10), bits(word, 12, 12), bits(word, 6, 5)) {
        (0, ..) => format!("srli {d},{d},{shift:#x}"),
        (1, ..) => format!("srai {d},{d},{shift:#x}"),
        (2, ..) => format!("andi {d},{d},{number}"),
        (_, 0, 0) => format!("sub {d},{d},{two}"),
        (_, 0, 1) => format!("xor {d},{d},{two}"),
        (_, 0, 2) => format!("or {d},{d},{two}"),
        (_, 0, _) => format!("and {d},{d},{two}"),
        (_, _, 0) => format!("subw {d},{d},{two}"),
        (_, _, 1) => format!("addw {d},{d},{two}"),
        _ => return None,
    })
}

fn quadrant_2(word: u32, kind: u32) -> Option<Meaning> {
    const SP: u16 = 2;
    let (d, two) = (rd(word), bits(word, 6, 2) as u16);
    let four = i64::from(bits(word, 3, 2) << 6 | bits(word, 12, 12) << 5 | bits(word, 6, 4) << 2);
    let eight = i64::from(bits(word, 4, 2) << 6 | bits(word, 12, 12) << 5 | bits(word, 6, 5) << 3);
    let eight_out = i64::from(bits(word, 9, 7) << 6 | bits(word, 12, 10) << 3);
    Some(match kind {
        0 => Meaning::plain(format!("slli {0},{0},{1:#x}", name(d), bits(word, 12, 12) << 5 | u32::from(two))),
        1 => load_at("fld", &float(d), SP, eight, 8),
        2 if d != 0 => load_at("lw", name(d), SP, four, 4),
        3 if d != 0 => load_at("ld", name(d), SP, eight, 8),
        4 => match (bits(word, 12, 12), d, two) {
            (0, 0, 0) => return None,
            (0, _, 0) => jump_register(0, d, 0),
            (0, ..) => Meaning::plain(format!("mv {},{}", name(d), name(two))),
            (_, 0, 0) => Meaning::trap("ebreak".to_owned()),
            (_, _, 0) => jump_register(1, d, 0),
            _ => Meaning::plain(format!("add {0},{0},{1}", name(d), name(two))),
        },
        5 => store_at("fsd", &float(two), SP, eight_out, 8),
        6 => {
            let offset = i64::from(bits(word, 8, 7) << 6 | bits(word, 12, 9) << 2);
            store_at("sw", name(two), SP, offset, 4)
        }
        7 => store_at("sd", name(two), SP, eight_out, 8),
        _ => return None,
    })
}
