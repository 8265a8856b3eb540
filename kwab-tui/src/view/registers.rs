//! Registers with their bits decoded, and what each value points at.

use kwab::analysis::Context;
use kwab::decode::{CR0, CR4, EFER, PointerClass, RFLAGS, describe_bits};
use kwab::model::memory::Budget;
use kwab::report::inspect::Report;
use kwab::symbols::{Probe, short};

use super::table::{Table, TableRow, kept};
use super::{Column, Link, Row, Slot, Target, number, text};
use crate::text::{Line, address};
use crate::theme::Tone;

const COLUMNS: &[Column] = &[Column::new("register", 9, 0), Column::new("value", 18, 0), Column::rest("what it is")];

/// The registers of the report as rows, with what they point at.
#[must_use]
pub fn registers(report: &Report, ctx: &Context<'_, '_>, budget: &Budget) -> Table {
    let several = report.registers.len() > 1;
    let rows = report.registers.iter().enumerate().flat_map(|(number, set)| {
        let heading = several.then(|| TableRow {
            row: Row::of(Tone::Head, [String::new(), String::new(), set.title.clone()]),
            detail: vec![Line::of(Tone::Head, set.title.clone())],
            values: vec![None, None, text(set.title.clone())],
            ..TableRow::default()
        });
        heading.into_iter().chain(set.registers.iter().map(move |register| {
            let value = u64::from_str_radix(&register.value, 16).unwrap_or(0);
            let meaning = meaning(&register.name, value, ctx);
            let said = register.note.clone().filter(|note| !meaning.contains(note.as_str()));
            let note: Vec<String> = said.into_iter().chain(Some(meaning)).filter(|note| !note.is_empty()).collect();
            let row = row(&set.title, &register.name, value, &note.join("; "), ctx);
            TableRow { alike: Some(format!("{number} {}", register.name)), ..row }
        }))
    });
    let (rows, left_out) = kept(rows, budget);
    Table {
        slot: Slot::Registers,
        columns: COLUMNS,
        fields: &["name", "value", "set"],
        rows,
        command: "kwab inspect DUMP --section regs",
        when_empty: "no registers in this dump: the state at the fault is known only by its message".to_string(),
        summary: None,
        flame: None,
        left_out,
    }
}

fn row(set: &str, name: &str, value: u64, note: &str, ctx: &Context<'_, '_>) -> TableRow {
    let space = ctx.view();
    let bytes = space.bytes(value);
    let bytes = &bytes[..bytes.len().min(32)];
    let mut links = Vec::new();
    if !bytes.is_empty() {
        links.push(Link::new(format!("bytes at {value:#x}"), Target::Bytes(value)));
    }
    if ctx.vma_at(value).is_some() {
        links.push(Link::new(format!("mapping of {value:#x}"), Target::Mapping(value)));
    }
    let tone = if links.is_empty() { Tone::Plain } else { Tone::Link };
    TableRow {
        row: Row::of(Tone::Plain, [name.to_string(), address(value), note.to_string()])
            .tone(0, Tone::Code)
            .tone(1, tone),
        detail: detail(set, name, value, note, bytes),
        links,
        values: vec![text(name), number(value), text(set)],
        ..TableRow::default()
    }
}

fn detail(set: &str, name: &str, value: u64, note: &str, bytes: &[u8]) -> Vec<Line> {
    let mut lines = vec![
        Line::of(Tone::Code, format!("{name} ")).and(Tone::Plain, address(value)),
        Line::field("set", set),
        Line::field("decimal", format!("{value} / {}", value as i64)),
    ];
    if !note.is_empty() {
        lines.push(Line::field("is", note));
    }
    let table = match name {
        "rflags" => RFLAGS,
        "cr0" => CR0,
        "cr4" => CR4,
        "efer" => EFER,
        _ => &[],
    };
    for bit in table.iter().filter(|bit| value >> bit.bit & 1 == 1) {
        lines.push(Line::of(Tone::Code, format!("  {:<8}", bit.name)).and(Tone::Plain, bit.meaning));
    }
    for (row, bytes) in bytes.chunks(8).enumerate() {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown: String =
            bytes.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' }).collect();
        let name = if row == 0 { "points at" } else { "" };
        lines.push(
            Line::of(Tone::Dim, format!("{name:<9} "))
                .and(Tone::Plain, format!("{:<24}", hex.join(" ")))
                .and(Tone::Dim, shown),
        );
    }
    lines
}

/// What is known of a value: the bits of a control register, or what an address is.
fn meaning(name: &str, value: u64, ctx: &Context<'_, '_>) -> String {
    match name {
        "rflags" => return describe_bits(value, RFLAGS),
        "cr0" => return describe_bits(value, CR0),
        "cr4" => return describe_bits(value, CR4),
        "efer" => return describe_bits(value, EFER),
        "cs" | "ss" | "ds" | "es" | "fs" | "gs" => return String::new(),
        // Entries that are not system calls leave it so.
        "orig_rax" if value == u64::MAX => return "not a system call".to_owned(),
        _ => {}
    }
    let pid = ctx.death.code_pid();
    if let Some(symbol) = short(&ctx.symbols.resolve(value, pid, Probe::Exact)) {
        return symbol;
    }
    let stack = ctx.stack_at(value).and_then(|stack| Some((stack, value.checked_sub(stack.low?)?)));
    if let Some((stack, above)) = stack {
        return format!("{} stack, {above:#x} above its low end", kwab::analysis::text(stack.label));
    }
    let class = match ctx.class_of(value) {
        PointerClass::Null | PointerClass::NearNull | PointerClass::User => "",
        PointerClass::BelowNull => "just below zero: an error number or a negative offset",
        PointerClass::NonCanonical => "not an address: the upper bits differ",
        PointerClass::Poison(what) => what,
        PointerClass::Kernel => "kernel address",
    };
    class.to_string()
}

#[cfg(test)]
mod tests {
    use kwab::analysis::verify::Backing;
    use kwab::format::record::{Reg, RegId, RegisterRole, Registers};
    use kwab::format::{BootId, DumpId, FileHeader, List, SectionKind};
    use kwab::model::Dump;
    use kwab::model::emit::DumpWriter;
    use kwab::symbols::Symbols;

    use super::*;

    fn meaning_with(cr4: u64, value: u64) -> String {
        let regs = [Reg::new(RegId::RAX, value), Reg::new(RegId::CR4, cr4)];
        let set = Registers { role: Some(RegisterRole::FAULT), regs: Some(List::new(&regs)), ..Registers::default() };
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(9), BootId([1; 16])));
        writer.put(SectionKind::REGISTERS, &set);
        let dump = Dump::from_bytes(writer.finish().expect("memory")).expect("a dump");
        let (case, symbols) = (dump.case(), Symbols::new());
        meaning("rax", value, &Context::new(&case, &symbols, &Backing::none()))
    }

    #[test]
    fn an_address_of_57_bits_is_the_kernels_where_cr4_says_so() {
        let direct_map = 0xff11_0000_1234_5678;
        assert_eq!(meaning_with(1 << 12, direct_map), "kernel address");
        assert_eq!(meaning_with(0, direct_map), "not an address: the upper bits differ");
    }
}
