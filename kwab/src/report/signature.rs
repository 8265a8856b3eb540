//! Names a crash by its cause and location, so that the same bug has the same name tomorrow.
//!
//! What varies from run to run is left out: addresses of data, process ids, times, numbers inside messages. What stays
//! is the kind of death and the code: symbols when there are any, else the offset of the instruction in its page, which
//! address-space randomisation leaves alone, with the program's name.

use std::hash::Hasher as _;

use fnv::FnvHasher;

use crate::decode::{PointerClass, classify};

/// The version of the way signatures are made: it rises when the same crash gets another signature than before, so that
/// a stored list of them can tell that it is out of date.
pub const VERSION: u32 = 1;

/// What a signature is made of.
#[derive(Debug, Clone, Default)]
pub struct Parts<'a> {
    /// Kind of death (`panic`, `fatal signal`).
    pub kind: &'a str,
    /// Name of the signal or exception.
    pub signal: &'a [u8],
    /// The message of a kernel crash.
    pub message: &'a [u8],
    /// Symbols of the backtrace, innermost first.
    pub symbols: Vec<&'a [u8]>,
    /// Address of the instruction.
    pub ip: Option<u64>,
    /// Program that died; empty for the kernel.
    pub program: &'a [u8],
    /// Address whose access failed.
    pub fault_addr: Option<u64>,
}

/// Functions that every panic passes through; they tell nothing about the cause.
const MACHINERY: &[&[u8]] = &[
    b"rust_begin_unwind",
    b"panic_fmt",
    b"panic",
    b"dump_stack",
    b"dump_stack_lvl",
    b"show_stack",
    b"handle_kernel_page_fault",
    b"page_fault_oops",
    b"exc_page_fault",
    b"asm_exc_page_fault",
    b"interrupt_common",
    b"__die",
    b"die",
    b"oops_end",
];

/// Whether a frame belongs to the machinery of panicking rather than to its cause.
pub fn is_machinery(symbol: &[u8]) -> bool {
    let symbol = symbol.trim_ascii();
    let last = memchr::memmem::rfind(symbol, b"::").map_or(symbol, |at| &symbol[at + 2..]);
    let last = memchr::memrchr(b':', last).map_or(last, |at| &last[at + 1..]);
    let last = last.split(|byte| *byte == b'.').next().unwrap_or(last);
    MACHINERY.contains(&last)
}

/// The signature: eight hexadecimal digits.
pub fn of(parts: &Parts<'_>) -> String {
    // FNV-1a of 64 bits never changes, so a signature is the same in every version of this program.
    let mut hash = FnvHasher::default();
    field(&mut hash, parts.kind.as_bytes());
    field(&mut hash, parts.signal);
    field(&mut hash, &without_numbers(parts.message));
    let telling: Vec<_> = parts.symbols.iter().filter(|symbol| !is_machinery(symbol)).take(3).collect();
    for symbol in &telling {
        field(&mut hash, symbol.trim_ascii());
    }
    // A call through null, a jump into the wild and an access of either kind are different bugs at the same location.
    field(&mut hash, &[kind_of(parts.ip), kind_of(parts.fault_addr)]);
    if telling.is_empty() {
        field(&mut hash, base_name(parts.program));
        field(&mut hash, &parts.ip.map_or(u64::MAX, |ip| ip & 0xfff).to_le_bytes());
    }
    let hash = hash.finish();
    format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
}

/// What kind of address it is: this does not vary from run to run.
fn kind_of(addr: Option<u64>) -> u8 {
    match addr.map(classify) {
        None => 0,
        Some(PointerClass::Null | PointerClass::NearNull) => 1,
        Some(PointerClass::BelowNull) => 2,
        Some(PointerClass::NonCanonical) => 3,
        Some(PointerClass::Poison(_)) => 4,
        Some(PointerClass::User) => 5,
        Some(PointerClass::Kernel) => 6,
    }
}

/// The last component of the first word: `/bin/grep -r x` is `grep`.
pub fn base_name(command: &[u8]) -> &[u8] {
    let path = command.split(|byte| *byte == b' ').next().unwrap_or(command);
    memchr::memrchr(b'/', path).map_or(path, |at| &path[at + 1..])
}

/// The name of a task: the last component of a path, but the whole of `ksoftirqd/0`, which is none.
pub fn task_name(comm: &[u8]) -> &[u8] {
    if matches!(comm, [b'/', ..] | [b'.', b'/', ..] | [b'.', b'.', b'/', ..]) { base_name(comm) } else { comm }
}

/// The text with every number replaced by `#`.
pub(crate) fn without_numbers(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for word in text.split_inclusive(|byte| !byte.is_ascii_alphanumeric()) {
        let (body, tail) = match word.split_last() {
            Some((last, body)) if !last.is_ascii_alphanumeric() => (body, Some(*last)),
            _ => (word, None),
        };
        let digits = body.strip_prefix(b"0x").unwrap_or(body);
        let numeric = digits.iter().any(u8::is_ascii_digit) && digits.iter().all(u8::is_ascii_hexdigit);
        out.extend_from_slice(if numeric { b"#" } else { body });
        out.extend(tail);
    }
    out
}

/// Adds a field and its end, so that `ab` `c` and `a` `bc` differ.
fn field(hash: &mut FnvHasher, bytes: &[u8]) {
    hash.write(bytes);
    hash.write_u8(0xff);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_run_do_not_change_a_signature_and_the_place_does() {
        let panic = |message: &'static str, symbols: &[&'static str]| {
            let symbols = symbols.iter().map(|symbol| symbol.as_bytes()).collect();
            of(&Parts { kind: "panic", message: message.as_bytes(), symbols, ..Parts::default() })
        };
        let first = panic("page fault: rip=0, rsp=ffff80003ff37468, cpu 1", &["core::panicking::panic_fmt", "do_wake"]);
        assert_eq!(first, panic("page fault: rip=0, rsp=ffff80003ff99999, cpu 3", &["panic_fmt", "do_wake"]));
        assert_ne!(first, panic("page fault: rip=0, rsp=ffff80003ff37468, cpu 1", &["do_sleep"]));
        assert_ne!(first, panic("out of memory", &["do_wake"]));
    }

    #[test]
    fn signatures_stay_what_they_are_until_the_version_rises() {
        let symbols = vec![&b"do_wake"[..], b"do_sleep"];
        let parts = Parts { kind: "panic", message: b"out of memory: 12 frames", symbols, ..Parts::default() };
        assert_eq!((VERSION, of(&parts).as_str()), (1, "4a208d1b"));
    }

    #[test]
    fn without_symbols_the_page_offset_and_the_program_are_the_location() {
        let death = |program: &'static [u8], ip| {
            of(&Parts { kind: "fatal signal", signal: b"SIGSEGV", program, ip: Some(ip), ..Parts::default() })
        };
        assert_eq!(death(b"/bin/grep -r x", 0x5555_0000_116c), death(b"grep", 0x5666_0000_116c));
        assert_ne!(death(b"grep", 0x116c), death(b"grep", 0x1170));
    }

    #[test]
    fn a_call_through_null_and_a_wild_jump_have_signatures_of_their_own() {
        let jump = |ip, fault_addr| of(&Parts { kind: "exception", ip: Some(ip), fault_addr, ..Parts::default() });
        let (null, wild) = (jump(0, Some(0)), jump(0x4141_4141_4141_4000, None));
        assert_ne!(null, wild);
        assert_ne!(jump(0x4000, Some(8)), jump(0x4000, Some(0xffff_8000_0000_0000)));
        assert_eq!(jump(0x4000, Some(8)), jump(0x4000, Some(0x18)));
    }

    #[test]
    fn the_machinery_of_panics_is_known_however_it_is_printed() {
        for symbol in
            [&b" __rustc::rust_begin_unwind"[..], b"kevlar_platform::x64::inte...:handle_kernel_page_fault", b"panic"]
        {
            assert!(is_machinery(symbol), "{symbol:?}");
        }
        assert!(!is_machinery(b"sysrq_handle_crash"));
    }
}
