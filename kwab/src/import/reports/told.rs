//! Reads what a line of an unknown kernel tells in words: where the instruction was, what it accessed, which processor
//! ran it, and the position in the source.
//!
//! No row knows these kernels, but they name the same things by few names: `pc=0x80001234`, `EIP: c0101234`,
//! `cr2 0x10`, `on CPU 3`, `at kernel/mm.c:120`, `kernel/mm.c, line 120`. Only the first [`LONGEST`] bytes of a line
//! are read.

use super::build::Builder;
use super::words::{dec, hex, source, text};

/// Bytes of a line that are read.
const LONGEST: usize = 400;
/// Words of a line that may be the position in the source.
const MOST_WORDS: usize = 48;

/// How kernels call the address of the instruction, what says most first.
const INSTRUCTION: [&str; 14] = [
    "rip",
    "eip",
    "sepc",
    "mepc",
    "elr_el1",
    "elr_el2",
    "elr_el3",
    "elr",
    "epc",
    "pc",
    "instruction pointer",
    "program counter",
    "faulting instruction",
    "ip",
];
/// How kernels call the address that could not be accessed.
const ACCESSED: [&str; 9] = [
    "cr2",
    "stval",
    "mtval",
    "far_el1",
    "badvaddr",
    "faulting address",
    "fault address",
    "page fault at",
    "accessing address",
];
/// How kernels call a processor.
const PROCESSORS: [&str; 4] = ["cpu", "core", "hart", "processor"];

/// Takes what the first line of a report, or its message, tells.
pub(super) fn head(builder: &mut Builder, line: &[u8]) {
    let line = &line[..line.len().min(LONGEST)];
    let lower = line.to_ascii_lowercase();
    let report = &mut builder.report;
    report.ip = report.ip.or_else(|| address(&lower, &INSTRUCTION));
    if report.class.is_trap() || report.ip.is_some() {
        report.fault_address = report.fault_address.or_else(|| address(&lower, &ACCESSED));
    }
    report.cpu = report.cpu.or_else(|| processor(&lower));
    if report.source.is_none() {
        report.source = position(line);
    }
}

/// Words that begin a line which says where a failure was.
const PLACES: [&[u8]; 15] = [
    b"at ",
    b"in ",
    b"file",
    b"from ",
    b"where",
    b"location",
    b"source",
    b"thrown",
    b"throw ",
    b"raised",
    b"occurred",
    b"called",
    b"function",
    b"caller",
    b"-> ",
];

/// Takes the place that a line behind the first one tells; says whether it did.
pub(super) fn behind(builder: &mut Builder, line: &[u8]) -> bool {
    let line = &line[..line.len().min(LONGEST)];
    let lower = line.to_ascii_lowercase();
    let report = &mut builder.report;
    let says = PLACES.iter().any(|word| lower.starts_with(word));
    if says && report.source.is_none() {
        report.source = position(line);
    }
    let known = report.ip.is_some();
    report.ip = report.ip.or_else(|| address(&lower, &INSTRUCTION));
    says && report.source.is_some() || !known && report.ip.is_some()
}

/// The address behind the first of some names: `pc=0x80001234`, `EIP: c0101234`, `pc at 0x1234`.
fn address(lower: &[u8], names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| {
        super::words::find_all(lower, name.as_bytes()).find_map(|at| {
            let rest = whole_word(lower, at, name.len())?;
            let rest = rest.strip_prefix(b" at ").or_else(|| rest.strip_prefix(b" is ")).unwrap_or(rest);
            let signs = rest.iter().take(6).take_while(|byte| b" \t:=@([<".contains(byte)).count();
            let digits = &rest[signs..];
            let (value, behind) = hex(digits)?;
            let long = digits.starts_with(b"0x") || digits.len() - behind.len() >= 8;
            let ends = behind.first().is_none_or(|byte| !byte.is_ascii_alphanumeric());
            (long && ends).then_some(value)
        })
    })
}

/// `cpu 3`, `CPU#3`, `core: 3`.
fn processor(lower: &[u8]) -> Option<u32> {
    PROCESSORS.iter().find_map(|name| {
        super::words::find_all(lower, name.as_bytes()).find_map(|at| {
            let rest = whole_word(lower, at, name.len())?;
            let signs = rest.iter().take(3).take_while(|byte| b" #:=".contains(byte)).count();
            let (number, behind) = dec(&rest[signs..]).filter(|(number, _)| *number < 1024)?;
            let ends = behind.first().is_none_or(|byte| b" :,;)]}!.".contains(byte));
            u32::try_from(number).ok().filter(|_| ends)
        })
    })
}

/// What follows a name that stands at `at`, unless it is a part of a word.
fn whole_word(lower: &[u8], at: usize, length: usize) -> Option<&[u8]> {
    let joins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let before = at.checked_sub(1).and_then(|at| lower.get(at));
    let rest = &lower[at + length..];
    (!before.is_some_and(|byte| joins(byte) || byte.is_ascii_digit()) && !rest.first().is_some_and(joins))
        .then_some(rest)
}

/// Ends of the names of files that hold source text.
const SOURCES: [&str; 16] =
    [".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".rs", ".zig", ".go", ".s", ".asm", ".d", ".nim", ".adb", ".v"];

/// The position in the source: `mm/page.c:120`, `mm/page.c(120)`, `mm/page.c, line 120`, `line 120 of mm/page.c`.
fn position(line: &[u8]) -> Option<(String, u32)> {
    let signs = |byte: &u8| b" \t,;\"'`<>{}()[]@#|".contains(byte);
    let mut words = line.split(signs).filter(|word| !word.is_empty()).take(MOST_WORDS).peekable();
    let mut numbered = None;
    let mut last = &b""[..];
    while let Some(word) = words.next() {
        let word = word.strip_prefix(b"file:").filter(|rest| !rest.is_empty()).unwrap_or(word);
        if let Some((file, number)) = source(word).filter(|(file, _)| is_source(file.as_bytes())) {
            return Some((file, number));
        }
        let file = word.strip_suffix(b":").unwrap_or(word);
        if is_source(file) {
            if let Some(number) = numbered {
                return Some((text(file), number));
            }
            let mut next = words.next()?;
            // The function stands between: `page.c demo() ln120`.
            if dec(next).is_none() && words.peek().is_some_and(|word| word.starts_with(b"ln")) {
                next = words.next()?;
            }
            while [&b"line"[..], b"line:", b"ln", b":", b"on", b"at", b"-", b"Line", b"Line:", b"LINE"].contains(&next)
            {
                next = words.next()?;
            }
            let next = next.strip_prefix(b"ln").or_else(|| next.strip_prefix(b":")).unwrap_or(next);
            let next = next.strip_prefix(b"line:").or_else(|| next.strip_prefix(b"line=")).unwrap_or(next);
            let (number, rest) = dec(next)?;
            let plain = rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric());
            return u32::try_from(number).ok().filter(|_| plain).map(|number| (text(file), number));
        }
        if last.eq_ignore_ascii_case(b"line") {
            let number = dec(word).filter(|(_, rest)| rest.is_empty() || rest == b":");
            numbered = number.and_then(|(number, _)| u32::try_from(number).ok());
        }
        last = word.strip_suffix(b":").unwrap_or(word);
    }
    None
}

fn is_source(name: &[u8]) -> bool {
    let Some(dot) = memchr::memrchr(b'.', name).filter(|dot| *dot > 0) else { return false };
    let end = &name[dot..];
    SOURCES.iter().any(|known| end.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_words_are_read() {
        for line in [
            "PANIC at mm/page.c:120",
            "kernel/mm/page.c(120): out of frames",
            "assertion in mm/page.c, line 120",
            "failed: file \"mm/page.c\", line 120",
            "on line 120 of mm/page.c",
            "at mm/page.c demo() ln120",
            "Line: 120, File: mm/page.c",
            "[mm/page.c @ 120] no frame",
        ] {
            let found = position(line.as_bytes()).unwrap_or_else(|| panic!("no position in {line}"));
            assert!(found.0.ends_with("mm/page.c") && found.1 == 120, "{line}: {found:?}");
        }
        for line in ["loaded 12 modules", "v1.2:3 of the demo", "10.0.2.15:22", "README.md:3", "demo.c is missing"] {
            assert_eq!(position(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn addresses_and_processors_in_words_are_read() {
        for line in ["trap 14, eip=0x1234", "fault (pc: 00001234)", "died with PC at 0x1234", "rip 0x0000000000001234"]
        {
            assert_eq!(address(&line.to_ascii_lowercase().into_bytes(), &INSTRUCTION), Some(0x1234), "{line}");
        }
        for line in ["ip: 10.0.2.15", "pcie at 0x10", "chip 0x1234", "epc 12", "my pc is on"] {
            assert_eq!(address(line.as_bytes(), &INSTRUCTION), None, "{line}");
        }
        for line in ["panic on cpu 3", "cpu#3: died", "[core 3] died", "hart=3, dead"] {
            assert_eq!(processor(line.as_bytes()), Some(3), "{line}");
        }
        for line in ["cpu exception 14", "core 3a", "score 3", "cpu 3-way"] {
            assert_eq!(processor(line.as_bytes()), None, "{line}");
        }
    }
}
