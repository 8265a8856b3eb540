//! Lines of a Linux report about the access that failed: the sanitizers' words, fault codes, and the object's page.

use super::super::build::{Builder, Took};
use super::super::decode;
use super::super::report::{Access, AccessKind, Arch, Code};
use super::super::words::{after, between, dec, dec_after, has, hex, hex_after, task, text};

/// Reads such a line.
pub fn learn(builder: &mut Builder, line: &[u8]) -> Took {
    let found = match line.first() {
        Some(b'R' | b'W' | b'F' | b'U' | b'O' | b'I' | b'M') => sanitizer(builder, line) || fault(builder, line),
        Some(b'r' | b'w' | b'v' | b'a') => race(builder, line) || fault(builder, line),
        Some(b'T' | b't') => object(builder, line) || fault(builder, line),
        Some(b'C') => code(builder, line) || fault(builder, line),
        Some(b'l') => object(builder, line) || wrapped(builder, line),
        _ => fault(builder, line),
    };
    if found { Took::Yes } else { Took::No }
}

fn access(builder: &mut Builder) -> &mut Access {
    builder.report.access.get_or_insert_with(Access::default)
}

/// `Read of size 8 at addr ffff8880… by task comm/12`, `Use-after-free read at 0xffff… (in kfence-#12):`.
fn sanitizer(builder: &mut Builder, line: &[u8]) -> bool {
    const KINDS: &[(&[u8], AccessKind)] = &[
        (b"Read of size ", AccessKind::Read),
        (b"Write of size ", AccessKind::Write),
        (b"Read at addr ", AccessKind::Read),
        (b"Write at addr ", AccessKind::Write),
        (b"Free of addr ", AccessKind::Free),
        (b"Invalid free of ", AccessKind::Free),
        (b"Use-after-free read at ", AccessKind::Read),
        (b"Use-after-free write at ", AccessKind::Write),
        (b"Out-of-bounds read at ", AccessKind::Read),
        (b"Out-of-bounds write at ", AccessKind::Write),
        (b"Invalid read at ", AccessKind::Read),
        (b"Invalid write at ", AccessKind::Write),
        (b"Corrupted memory at ", AccessKind::Write),
        (b"Memory access of size ", AccessKind::Read),
    ];
    let Some((mark, kind)) = KINDS.iter().find(|(mark, _)| line.starts_with(mark)) else { return false };
    let rest = &line[mark.len()..];
    let found = access(builder);
    found.kind = found.kind.or(Some(*kind));
    if mark.ends_with(b"size ") {
        found.size = found.size.or_else(|| dec(rest).map(|(size, _)| size));
        found.address = found.address.or_else(|| hex_after(rest, b"addr ").or_else(|| hex_after(rest, b"starts at ")));
    } else {
        found.address = found.address.or_else(|| hex(rest).map(|(address, _)| address));
    }
    let address = found.address;
    builder.report.fault_address = builder.report.fault_address.or(address);
    let word = match kind {
        AccessKind::Read => "Read",
        AccessKind::Write => "Write",
        AccessKind::Execute => "Execute",
        AccessKind::Free => "Free",
    };
    if *kind != AccessKind::Free {
        builder.say("access", word);
    }
    if let Some((comm, pid)) = after(line, b"by task ").and_then(|who| task(who.trim_ascii(), b'/')) {
        builder.report.pid = builder.report.pid.or(Some(pid));
        builder.report.comm.get_or_insert(comm);
    }
    if mark.starts_with(b"Use-")
        || mark.starts_with(b"Out-")
        || mark.starts_with(b"Invalid")
        || mark.starts_with(b"Corrupted")
    {
        builder.begin(super::super::report::StackKind::Crash, None);
        access(builder).object = between(line, b"(", b")").map(text);
    }
    true
}

/// `write to 0xffff… of 4 bytes by task 12 on cpu 1:`, `value changed: 0x1 -> 0x2`.
fn race(builder: &mut Builder, line: &[u8]) -> bool {
    use super::super::report::StackKind;
    let heads: [(&[u8], AccessKind); 4] = [
        (b"read to ", AccessKind::Read),
        (b"write to ", AccessKind::Write),
        (b"race at unknown origin, with read to ", AccessKind::Read),
        (b"race at unknown origin, with write to ", AccessKind::Write),
    ];
    let head =
        heads.iter().find(|(head, _)| line.starts_with(head) || has(line, b" to 0x") && line.starts_with(&head[..4]));
    if let Some((_, kind)) = head.filter(|_| has(line, b" bytes by ")) {
        let first = builder.report.access.is_none();
        let (cpu, pid) = (dec_after(line, b"on cpu "), dec_after(line, b"by task "));
        if first {
            let address = hex_after(line, b" to ");
            builder.report.access = Some(Access {
                kind: Some(*kind),
                size: dec_after(line, b" of ").map(u64::from),
                address,
                ..Access::default()
            });
            builder.report.fault_address = builder.report.fault_address.or(address);
            builder.report.cpu = builder.report.cpu.or(cpu);
            builder.report.pid = builder.report.pid.or(pid);
            builder.begin(StackKind::Crash, Some(text(line)));
        } else {
            builder.begin(StackKind::OtherAccess, Some(text(line)));
        }
        return true;
    }
    if line.starts_with(b"value changed:") {
        builder.note(text(line));
        return true;
    }
    false
}

/// `The buggy address belongs to the object at …`, `which belongs to the cache kmalloc-64 of size 64`.
fn object(builder: &mut Builder, line: &[u8]) -> bool {
    if line.starts_with(b"The buggy address ") || line.starts_with(b"located ") {
        if has(line, b" is located ") || line.starts_with(b"located ") {
            let found = text(after(line, b"located ").unwrap_or(line));
            access(builder).object.get_or_insert(found);
        }
        builder.in_stack = false;
        return true;
    }
    false
}

fn wrapped(_: &mut Builder, line: &[u8]) -> bool {
    line.starts_with(b"lr : ") || line.starts_with(b"link register")
}

/// `Code: 40 00 48 <48> 3d`, `Code: a9bd7bfd (f968d6a1)`.
fn code(builder: &mut Builder, line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"Code:") else { return false };
    builder.in_stack = false;
    if builder.report.code.is_none() && !builder.user {
        builder.report.code = bytes(rest);
    }
    true
}

/// Bytes, or words of 2 or 4 bytes in memory order; the marked one stands in `<>` or `()`.
pub fn bytes(line: &[u8]) -> Option<Code> {
    let mut code = Code::default();
    for word in line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
        let marked = matches!(word.first(), Some(b'<' | b'('));
        let inner = if marked { word.get(1..word.len().checked_sub(1)?)? } else { word };
        let (value, rest) = hex(inner)?;
        if !rest.is_empty() || !matches!(inner.len(), 2 | 4 | 8) || code.bytes.len() >= 512 {
            return None;
        }
        if marked {
            code.marked = Some(code.bytes.len() as u64);
        }
        code.bytes.extend_from_slice(&value.to_le_bytes()[..inner.len() / 2]);
    }
    (!code.bytes.is_empty()).then_some(code)
}

/// Words that the function below looks for.
const WORDS_OF_LINES: &[&[u8]] = &[
    b"Mem abort info",
    b"Data abort info",
    b"EC = 0x",
    b"SET = 0",
    b"EA = 0",
    b"FSC = 0x",
    b"ISV = 0",
    b"CM = 0",
    b"GCS = 0",
    b"Exception class =",
    b"swapper pgtable",
    b"user pgtable",
    b"pgd = ",
    b"PGD ",
    b"*pde = ",
    b"*pgd=",
    b"Thread overran stack",
    b"Bytes ",
    b"Local variable ",
    b"BTYPE",
    b"AS:",
    b"Fault in ",
    b"Memory state around",
    b"page dumped because",
    b"flags: 0x",
    b"raw: 0",
    b"page:",
    b"irq event stamp",
    b"hardirqs last",
    b"softirqs last",
    b"pfn:",
    b"prev->",
    b"Instruction dump",
    b"[inlined]",
    b"Unable to handle kernel",
    b"Thread info",
    b"Stack:",
    b"DR0:",
    b"DR3:",
    b"Last Breaking-Event",
];

/// Fault codes and addresses.
fn fault(builder: &mut Builder, line: &[u8]) -> bool {
    if let Some(rest) = line.strip_prefix(b"which belongs to the cache ") {
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let name = text(&rest[..end]);
        access(builder).cache.get_or_insert(name);
        return true;
    }
    if let Some(value) = hex_after(line, b"ESR = ").filter(|_| line.trim_ascii_start().starts_with(b"ESR")) {
        // Linux prints this line on arm64 only.
        builder.report.arch = builder.report.arch.or(Some(Arch::Arm64));
        explain(builder, value, decode::esr(value));
        return true;
    }
    if line.starts_with(b"#PF: error_code(") {
        if let Some(value) = hex_after(line, b"error_code(") {
            explain(builder, value, decode::page_fault(value));
        }
        return true;
    }
    if line.starts_with(b"#PF: ") {
        return true;
    }
    if let Some(value) = hex_after(line, b"badaddr: ") {
        builder.report.fault_address = builder.report.fault_address.or(Some(value));
        if let Some(cause) = hex_after(line, b"cause: ") {
            explain(builder, cause, decode::scause(cause));
        }
        builder.report.arch = Some(Arch::Riscv64);
        if let Some(found) = super::super::registers::line(line) {
            builder.registers(found);
        }
        return true;
    }
    if line.starts_with(b"Cause : ") || line.starts_with(b"Cause:") {
        if let Some(value) = after(line, b":").and_then(|rest| hex(rest.trim_ascii_start())) {
            explain(builder, value.0, decode::mips(value.0));
        }
        return true;
    }
    let marks: [&[u8]; 6] = [
        b"Failing address: ",
        b"BadVA : ",
        b"BADV: ",
        b"Faulting instruction address: ",
        b"FAR = ",
        b"Fault address: ",
    ];
    for mark in marks {
        if let Some(value) = line.strip_prefix(mark).and_then(hex) {
            // Linux prints this line on s390 only.
            if mark.starts_with(b"Failing") {
                builder.report.arch = builder.report.arch.or(Some(Arch::S390x));
            }
            if mark.starts_with(b"Faulting") {
                // Linux prints this line on Power only.
                builder.report.arch = builder.report.arch.or(Some(Arch::Powerpc));
                builder.report.ip = builder.report.ip.or(Some(value.0));
            } else {
                builder.report.fault_address = builder.report.fault_address.or(Some(value.0));
            }
            return true;
        }
    }
    if line.starts_with(b"DAR: ") || line.starts_with(b"dar: ") || has(line, b" DSISR: ") {
        let address = hex_after(line, b"DAR: ").or_else(|| hex_after(line, b"dar: "));
        builder.report.fault_address = builder.report.fault_address.or(address);
        if let Some(value) = hex_after(line, b"DSISR: ").filter(|value| *value != 0) {
            explain(builder, value, decode::dsisr(value));
        }
        return false;
    }
    WORDS_OF_LINES.iter().any(|mark| line.starts_with(mark))
}

fn explain(builder: &mut Builder, value: u64, fault: decode::Fault) {
    builder.report.error_code = builder.report.error_code.or(Some(value));
    builder.report.error_text.get_or_insert(fault.text);
    if let Some(kind) = fault.access {
        let address = builder.report.fault_address;
        let found = access(builder);
        found.kind = found.kind.or(Some(kind));
        found.address = found.address.or(address);
    }
}
