//! What a line adds to an open report of Linux, and whether it ends it.

use super::super::build::{Builder, ReportedTask, Took};
use super::super::class::Class;
use super::super::frame;
use super::super::registers;
use super::super::report::{Arch, LogPosition};
use super::super::words::{between, dec, has, hex, is_symbol_byte, task, text};
use super::{access, context, stacks, wrapped};

/// Offers a line to a report.
pub fn learn(builder: &mut Builder, line: &[u8], position: LogPosition) -> Took {
    let trimmed = line.trim_ascii();
    let trimmed = trimmed.strip_prefix(b"rcu: ").map_or(trimmed, <[u8]>::trim_ascii_start);
    let trimmed = super::unruled(trimmed);
    let trimmed = wrapped::learn(builder, trimmed, position);
    if trimmed.is_empty() {
        return Took::Yes;
    }
    if let Some(first) = builder.next_register.take()
        && let Some(found) = registers::continuation(trimmed, first)
    {
        builder.next_register = Some(first + found.pairs.len()).filter(|next| *next < 16);
        builder.registers(found);
        return Took::Yes;
    }
    if let Some(took) = end(builder, trimmed) {
        return took;
    }
    for reader in [stacks::learn, context::learn] {
        match reader(builder, trimmed, position) {
            Took::No => {}
            took => return took,
        }
    }
    if trimmed.starts_with(b"Code:") {
        builder.code_line = position.line;
    }
    match access::learn(builder, trimmed) {
        Took::No => {}
        took => return took,
    }
    let found = frame::frames(trimmed, builder.in_stack);
    if !found.is_empty() {
        for frame in found {
            builder.frame(frame, position);
        }
        builder.called_by(frame::arm_caller(trimmed), position);
        return Took::Yes;
    }
    let (whole, open) = wrapped::without_open(trimmed);
    if let Some(found) = registers::line(whole) {
        builder.open_register = open;
        special_registers(builder, trimmed);
        if trimmed.starts_with(b"Krnl GPRS:") {
            builder.next_register = Some(found.pairs.len());
        }
        builder.registers(found);
        return Took::Yes;
    }
    details(builder, trimmed)
}

/// Lines that end a report.
fn end(builder: &mut Builder, line: &[u8]) -> Option<Took> {
    if line.starts_with(b"---[ end ") {
        builder.in_stack = false;
        return Some(Took::End);
    }
    if line.starts_with(b"========") {
        let closes = matches!(
            builder.report.class,
            Class::Kasan | Class::Kfence | Class::Kmsan | Class::Kcsan | Class::Ubsan | Class::SlabCorruption
        );
        let took = if closes && builder.has_stack() { Took::End } else { Took::Yes };
        builder.in_stack = false;
        return Some(took);
    }
    let over = [
        &b"Rebooting in "[..],
        b"Kernel Offset: disabled",
        b"Dumping ftrace buffer",
        b"Rebooting immediately",
        b"reboot: ",
    ];
    if over.iter().any(|mark| line.starts_with(mark)) && builder.has_stack() {
        builder.in_stack = false;
        return Some(Took::Yes);
    }
    None
}

/// Registers that say something about the failure itself.
fn special_registers(builder: &mut Builder, line: &[u8]) {
    if line.starts_with(b"CR2: ") || has(line, b" CR2: ") {
        let page_fault = matches!(builder.report.class, Class::PageFault | Class::NullDeref | Class::Oops);
        if let Some(address) = super::super::words::hex_after(line, b"CR2: ").filter(|_| page_fault && !builder.user) {
            builder.report.fault_address = builder.report.fault_address.or(Some(address));
        }
    }
    if line.starts_with(b"pc : ") && has(line, b"psr: ") {
        builder.report.arch = Some(Arch::Arm);
    }
    // Both print `PC is at`; addresses of 64 bits are those of arm64.
    let wide = |rest: &[u8]| rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() == 16;
    if line.strip_prefix(b"pc : [<").is_some_and(wide) {
        builder.report.arch = Some(Arch::Arm64);
    }
}

/// Words that the function below looks for.
const DETAILS: &[&[u8]] = &[
    b"Kernel panic",
    b"list_add ",
    b"list_del ",
    b"refcount_t",
    b"Rust panic",
    b"BUG: Bad",
    b"page:",
    b"exc",
    b"Fixing recursive fault",
    b"note: ",
    b"shift exponent",
    b"index ",
    b"signed integer overflow",
    b"unsigned integer overflow",
    b"load of value",
    b"load of misaligned",
    b"member access",
    b"division of",
    b"negation of",
    b"store to",
    b"variable length",
    b"object at",
    b"preempt_count",
    b"in_atomic",
    b"last function",
    b"Preemption disabled at",
    b"BUG kmalloc",
    b"caller is",
    b"RCU used illegally",
    b"(detected by",
    b"(t=",
    b"\"echo 0 >",
    b"Not tainted",
    b"blocked",
    b"pool ",
    b"Showing busy workqueues",
    b"workqueue ",
    b"pwq ",
    b"in-flight",
    b"pending:",
    b"delayed:",
    b"Showing backtraces",
    b"Mem-Info",
    b"Node ",
    b"active_anon",
    b"Tasks state",
    b"[  pid  ]",
    b"oom-kill:",
    b"oom_reaper",
    b"Out of memory",
    b"lowmem_reserve",
    b"Free swap",
    b"Total swap",
    b"DMA",
    b"Normal:",
    b"Swap cache",
    b"hex dump",
    b"comm \"",
    b"Redzone",
    b"Object ",
    b"Padding ",
    b"Bytes b4",
    b"INFO: Slab",
    b"INFO: Object",
    b"INFO: 0x",
    b"FIX ",
    b"Slab 0x",
    b"Memory state",
    b"The buggy",
    b"raw:",
    b"flags:",
    b"anon flags",
    b"page_type",
    b"page last",
    b"---",
    b"Disabling lock debugging",
    b"Memory cgroup stats",
    b"kfence-#",
    b"Trying to",
    b"vma ",
    b"addr:",
    b"file:",
    b"pgoff",
    b"Last Breaking",
    b"Krnl Code",
    b"Flags: ",
    b"Control: ",
    b"Stack: (",
    b"Process ",
    b"Register r",
    b"Exception stack",
    b"Register x",
    b"NIP ",
    b"LR ",
    b"MSR:",
    b"REGS:",
    b"interrupt:",
    b"ExcCode",
    b"PrId",
    b"Status:",
    b"Status :",
    b"Hi    :",
    b"Lo    :",
    b"IntEntry",
    b"swapper ",
    b"Kernel attempted",
    b"Faulting",
    b"LE PAGE_SIZE",
    b"BE PAGE_SIZE",
    b"Thread overran",
    b"SMP ",
    b"Restarting",
    b"CPU features",
    b"PHYS_OFFSET",
    b"Memory Limit",
    b"SMP: stopping",
    b"Kernel Offset",
    b"Shutting down",
    b"failed to stop",
];

/// Other lines that belong to reports.
fn details(builder: &mut Builder, line: &[u8]) -> Took {
    if let Some(inner) = line.strip_prefix(b"EIP:").filter(|_| has(line, b"[<")) {
        // `EIP:    0010:[<c0133664>]    Not tainted`
        let address = between(inner, b"[<", b">]").and_then(hex);
        builder.report.ip = builder.report.ip.or(address.map(|(value, _)| value));
        builder.report.arch = Some(Arch::I386);
        return Took::Yes;
    }
    let Some(mark) = DETAILS.iter().find(|mark| line.starts_with(mark)) else {
        return if hex_dump(builder, line) { Took::Yes } else { Took::No };
    };
    let kept = line.len() < 300
        && !mark.starts_with(b"Node ")
        && !mark.starts_with(b"---")
        && !mark.starts_with(b"Redzone")
        && !mark.starts_with(b"Object");
    if matches!(builder.report.class, Class::Ubsan | Class::InvalidContext | Class::RcuUsage) && kept {
        builder.note(text(line));
    }
    if let Some(comm) = between(line, b"comm \"", b"\"").filter(|_| builder.report.class == Class::Kmemleak) {
        builder.report.comm.get_or_insert(text(comm));
        builder.report.pid = builder.report.pid.or_else(|| super::super::words::dec_after(line, b"pid "));
    }
    if let Some(function) = line.strip_prefix(b"last function: ").filter(|_| builder.report.class == Class::LockUse) {
        builder.head_function.get_or_insert(text(function.trim_ascii()));
    }
    if let Some(works) = line.strip_prefix(b"in-flight: ").filter(|_| builder.report.class == Class::WorkqueueLockup) {
        // `in-flight: 14164:refill_work, 29532:refill_work`: the first is what does not end.
        let name = dec(works).and_then(|(_, rest)| rest.strip_prefix(b":"));
        let name = name.map(|rest| rest.iter().take_while(|byte| is_symbol_byte(**byte)).copied().collect::<Vec<_>>());
        builder.head_function = builder.head_function.take().or_else(|| name.map(|name| text(&name)));
    }
    // `note: name[12] exited with preempt_count 1`.
    if let Some(rest) = line.strip_prefix(b"note: ").filter(|rest| has(rest, b"] exited with ")) {
        let name = &rest[..super::super::words::find(rest, b"] exited with ").unwrap_or(0)];
        if let Some((comm, pid)) = task(name, b'[') {
            builder.task(ReportedTask { cpu: None, pid: Some(pid), comm: Some(comm) });
        }
    }
    if line.starts_with(b"in_atomic") {
        builder.report.pid = builder.report.pid.or_else(|| super::super::words::dec_after(line, b"pid: "));
        if let Some(name) = super::super::words::after(line, b"name: ") {
            builder.report.comm.get_or_insert(text(name.trim_ascii()));
        }
    }
    Took::Yes
}

/// Rows of hexadecimal words: stacks, objects, shadow memory, instruction dumps.
fn hex_dump(builder: &Builder, line: &[u8]) -> bool {
    let digits = |byte: &u8| {
        byte.is_ascii_hexdigit()
            || matches!(byte, b' ' | b':' | b'<' | b'>' | b'(' | b')' | b'^' | b'x' | b'.' | b'*' | b'-')
    };
    !builder.in_stack && line.iter().filter(|byte| digits(byte)).count() * 10 >= line.len() * 9
        || line.iter().all(|byte| matches!(byte, b'^' | b' '))
}
