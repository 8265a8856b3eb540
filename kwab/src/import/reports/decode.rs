//! Says in words what the fault codes of the architectures mean.
//!
//! Sources: Arm ARM (ESR_EL1), the RISC-V privileged manual (scause), Intel SDM volume 3 (page-fault error code),
//! z/Architecture Principles of Operation (program interruption codes), Power ISA (DSISR), MIPS32 volume III (Cause).

use super::report::AccessKind;

/// What a fault code says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fault {
    /// The error code in words.
    pub text: String,
    /// How memory was accessed, if the code tells.
    pub access: Option<AccessKind>,
}

/// The first fault that a Cortex-M processor notes in its configurable fault status register (Armv7-M ARM, section
/// B3.2.15); `None` when no bit is set that says one.
pub fn cortex_m(cfsr: u64) -> Option<&'static str> {
    const BITS: &[(u32, &str)] = &[
        (0, "instruction access violation"),
        (1, "data access violation"),
        (3, "access violation while returning from an exception"),
        (4, "access violation while entering an exception"),
        (8, "instruction bus error"),
        (9, "precise data bus error"),
        (10, "imprecise data bus error"),
        (11, "bus error while returning from an exception"),
        (12, "bus error while entering an exception"),
        (16, "undefined instruction"),
        (17, "invalid execution state"),
        (18, "invalid return from an exception"),
        (19, "no coprocessor"),
        (24, "unaligned access"),
        (25, "division by zero"),
    ];
    BITS.iter().find(|(bit, _)| cfsr >> bit & 1 == 1).map(|(_, text)| *text)
}

/// The exception syndrome of arm64.
pub fn esr(value: u64) -> Fault {
    let class = value >> 26 & 0x3f;
    let name = match class {
        0x00 => "unknown reason",
        0x07 => "access to SVE, SIMD or floating point",
        0x0d => "branch target exception",
        0x0e => "illegal execution state",
        0x15 => "system call",
        0x18 => "trapped system register access",
        0x1c => "pointer authentication failure",
        0x20 | 0x21 => "instruction abort",
        0x22 => "pc alignment fault",
        0x24 | 0x25 => "data abort",
        0x26 => "sp alignment fault",
        0x2c => "floating-point exception",
        0x2f => "SError interrupt",
        0x30 | 0x31 => "breakpoint",
        0x32 | 0x33 => "software step",
        0x34 | 0x35 => "watchpoint",
        0x3c => "BRK instruction",
        _ => return Fault { text: format!("exception class {class:#x}"), access: None },
    };
    if !matches!(class, 0x20 | 0x21 | 0x24 | 0x25) {
        return Fault { text: name.to_string(), access: None };
    }
    let data = class >= 0x24;
    let access = match (data, value >> 6 & 1) {
        (false, _) => AccessKind::Execute,
        (true, 0) => AccessKind::Read,
        (true, _) => AccessKind::Write,
    };
    let level = value & 3;
    let status = match value & 0x3f {
        0x00..=0x03 => format!("level {level} address size fault"),
        0x04..=0x07 => format!("level {level} translation fault"),
        0x08..=0x0b => format!("level {level} access flag fault"),
        0x0c..=0x0f => format!("level {level} permission fault"),
        0x10 => "synchronous external abort".to_string(),
        0x11 => "synchronous tag check fault".to_string(),
        0x14..=0x17 => format!("synchronous external abort on table walk, level {level}"),
        0x21 => "alignment fault".to_string(),
        0x30 => "TLB conflict abort".to_string(),
        other => format!("status {other:#x}"),
    };
    Fault { text: format!("{name}, {status}, {}", verb(access)), access: Some(access) }
}

/// The cause register of riscv.
pub fn scause(value: u64) -> Fault {
    let interrupt = value >> 63 == 1 || (value >> 31 == 1 && value >> 32 == 0);
    if interrupt {
        return Fault { text: format!("interrupt {}", value & 0xff), access: None };
    }
    let (text, access) = match value {
        0 => ("instruction address misaligned", Some(AccessKind::Execute)),
        1 => ("instruction access fault", Some(AccessKind::Execute)),
        2 => ("illegal instruction", None),
        3 => ("breakpoint", None),
        4 => ("load address misaligned", Some(AccessKind::Read)),
        5 => ("load access fault", Some(AccessKind::Read)),
        6 => ("store address misaligned", Some(AccessKind::Write)),
        7 => ("store access fault", Some(AccessKind::Write)),
        8 => ("environment call from user mode", None),
        9 => ("environment call from supervisor mode", None),
        11 => ("environment call from machine mode", None),
        12 => ("instruction page fault", Some(AccessKind::Execute)),
        13 => ("load page fault", Some(AccessKind::Read)),
        15 => ("store page fault", Some(AccessKind::Write)),
        18 => ("software check", None),
        19 => ("hardware error", None),
        _ => return Fault { text: format!("cause {value}"), access: None },
    };
    Fault { text: text.to_string(), access }
}

/// The error code of an x86 page fault.
pub fn page_fault(code: u64) -> Fault {
    let access = match (code >> 4 & 1, code >> 1 & 1) {
        (1, _) => AccessKind::Execute,
        (0, 1) => AccessKind::Write,
        _ => AccessKind::Read,
    };
    let mode = if code & 4 == 0 { "supervisor" } else { "user" };
    let why = match (code >> 3 & 1, code >> 5 & 1, code & 1) {
        (1, _, _) => "reserved bit set",
        (_, 1, _) => "protection key",
        (_, _, 1) => "protection violation",
        _ => "page not present",
    };
    Fault { text: format!("{mode} {}, {why}", verb(access)), access: Some(access) }
}

/// The program interruption code of s390.
pub fn s390(code: u64) -> Fault {
    let text = match code & 0x7f {
        0x01 => "operation exception",
        0x02 => "privileged operation",
        0x04 => "protection exception",
        0x05 => "addressing exception",
        0x06 => "specification exception",
        0x07 => "data exception",
        0x08 | 0x09 => "fixed-point divide",
        0x10 => "segment translation",
        0x11 => "page translation",
        0x12 => "translation specification",
        0x38 => "ASCE type",
        0x39 => "region first translation",
        0x3a => "region second translation",
        0x3b => "region third translation",
        _ => return Fault { text: format!("interruption code {code:#x}"), access: None },
    };
    Fault { text: text.to_string(), access: None }
}

/// The exception code in the Cause register of mips.
pub fn mips(cause: u64) -> Fault {
    let (text, access) = match cause >> 2 & 0x1f {
        1 => ("TLB modification", Some(AccessKind::Write)),
        2 => ("TLB miss on load or fetch", Some(AccessKind::Read)),
        3 => ("TLB miss on store", Some(AccessKind::Write)),
        4 => ("address error on load or fetch", Some(AccessKind::Read)),
        5 => ("address error on store", Some(AccessKind::Write)),
        6 => ("bus error on fetch", Some(AccessKind::Execute)),
        7 => ("bus error on data", None),
        9 => ("breakpoint", None),
        10 => ("reserved instruction", None),
        13 => ("trap", None),
        other => return Fault { text: format!("exception code {other}"), access: None },
    };
    Fault { text: text.to_string(), access }
}

/// The data storage interrupt status of powerpc.
pub fn dsisr(value: u64) -> Fault {
    let access = if value >> 25 & 1 == 1 { AccessKind::Write } else { AccessKind::Read };
    let why = match value {
        value if value >> 30 & 1 == 1 => "no translation",
        value if value >> 27 & 1 == 1 => "protection violation",
        _ => "data storage interrupt",
    };
    Fault { text: format!("{why}, {}", verb(access)), access: Some(access) }
}

fn verb(access: AccessKind) -> &'static str {
    match access {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Execute => "instruction fetch",
        AccessKind::Free => "free",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_said_in_words() {
        assert_eq!(esr(0x9600_0145).text, "data abort, level 1 translation fault, write");
        assert_eq!(esr(0x8600_0004).access, Some(AccessKind::Execute));
        assert_eq!(esr(0xf200_0800).text, "BRK instruction");
        assert_eq!(scause(13).text, "load page fault");
        assert_eq!(page_fault(2).text, "supervisor write, page not present");
        assert_eq!(page_fault(0x10).access, Some(AccessKind::Execute));
        assert_eq!(s390(0x3b).text, "region third translation");
        assert_eq!(mips(0x0c).text, "TLB miss on store");
        assert_eq!(dsisr(0x4200_0000).text, "no translation, write");
    }
}
