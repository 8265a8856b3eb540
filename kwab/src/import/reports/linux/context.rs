//! Lines of a Linux report that say who runs, on what hardware, with which kernel, and where the instruction stands.

use super::super::build::{Builder, ReportedTask, Took};
use super::super::frame;
use super::super::report::{Arch, Frame, LogPosition};
use super::super::words::{after, between, dec, dec_after, has, hex, hex_after, text};

/// Reads such a line.
pub fn learn(builder: &mut Builder, line: &[u8], position: LogPosition) -> Took {
    let found = match line.first() {
        Some(b'C') => cpu_line(builder, line),
        Some(b'P') => process(builder, line) || instruction(builder, line, position),
        Some(b'H') => keep(&mut builder.report.hardware, line.strip_prefix(b"Hardware name:")),
        Some(b'M') => keep(&mut builder.report.modules, line.strip_prefix(b"Modules linked in:")),
        Some(b'K') => kernel_words(builder, line, position),
        Some(b'T') => taint(builder, line) || task_of_power(builder, line) || instruction(builder, line, position),
        Some(b'p') => process(builder, line) || instruction(builder, line, position),
        Some(b'W') => note(builder, line, &[b"Workqueue: "]),
        Some(b'S') => note(builder, line, &[b"Stopper: ", b"Sched_ext: "]),
        _ => instruction(builder, line, position),
    };
    if found { Took::Yes } else { Took::No }
}

fn keep(slot: &mut Option<String>, rest: Option<&[u8]>) -> bool {
    let Some(rest) = rest else { return false };
    if slot.is_none() {
        *slot = Some(text(rest.trim_ascii()));
    }
    true
}

fn note(builder: &mut Builder, line: &[u8], heads: &[&[u8]]) -> bool {
    let fits = heads.iter().any(|head| line.starts_with(head));
    if fits {
        builder.note(text(line));
    }
    fits
}

/// `CPU: 0 UID: 0 PID: 1 Comm: swapper/0 Tainted: G W 6.1.0 #1`, `CPU: 0`, `CPU 1`, `Comm: x`, `CR2: …`.
fn cpu_line(builder: &mut Builder, line: &[u8]) -> bool {
    if let Some(found) = task_line(line) {
        let rest = after(line, b"Comm: ").unwrap_or(line);
        versions(builder, rest);
        builder.task(found);
        return true;
    }
    let rest = [&b"CPU: "[..], b"CPU:", b"CPU ", b"Cpu "].iter().find_map(|head| line.strip_prefix(*head));
    let Some((cpu, rest)) = rest.map(<[u8]>::trim_ascii_start).and_then(dec) else { return false };
    if rest.first().is_some_and(|byte| !matches!(byte, b' ' | b'\t')) {
        return false;
    }
    let plain = rest.trim_ascii().is_empty() || has(rest, b"ainted");
    if plain {
        builder.report.cpu = builder.report.cpu.or(u32::try_from(cpu).ok());
        versions(builder, rest);
    }
    plain
}

/// The processor, number and name of `CPU: … PID: … Comm: …`.
pub fn task_line(line: &[u8]) -> Option<ReportedTask> {
    let rest = line.strip_prefix(b"CPU:")?.trim_ascii_start();
    let (cpu, rest) = dec(rest)?;
    let pid = dec_after(rest, b"PID: ")?;
    let comm = after(rest, b"Comm: ")?;
    // A line that was wrapped ends within one of the marks.
    let marks: [&[u8]; 5] = [b" Kdump:", b" Not t", b" Tainted:", b" tainted ", b" Tainted "];
    let end = marks.iter().filter_map(|mark| super::super::words::find(comm, mark)).min().unwrap_or(comm.len());
    let comm = comm[..end].trim_ascii();
    let comm = comm.strip_suffix(b" Not").unwrap_or(comm);
    let comm = Some(text(comm)).filter(|comm| !comm.is_empty());
    Some(ReportedTask { cpu: u32::try_from(cpu).ok(), pid: Some(pid), comm })
}

/// Taint and version behind the name of the task.
fn versions(builder: &mut Builder, rest: &[u8]) {
    let report = &mut builder.report;
    if let Some(version) = after(rest, b"Not tainted") {
        report.version.get_or_insert_with(|| text(version.trim_ascii()));
    } else if let Some(tainted) = after(rest, b"Tainted: ") {
        // Single letters and blanks up to the version.
        let end =
            tainted.windows(2).position(|pair| pair[0] == b' ' && pair[1].is_ascii_digit()).unwrap_or(tainted.len());
        report.taint.get_or_insert_with(|| text(tainted[..end].trim_ascii()));
        if end < tainted.len() {
            report.version.get_or_insert_with(|| text(tainted[end..].trim_ascii()));
        }
    }
}

/// Reads `Tainted: [W]=WARN` and the flags before it.
fn taint(builder: &mut Builder, line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"Tainted: ") else { return false };
    builder.report.taint.get_or_insert_with(|| text(rest.trim_ascii()));
    true
}

/// `Pid: 1, comm: init Not tainted 2.6.32`, `Process dd (pid: 9335, stackpage=c4251000)`, `PID: 1 Comm: x`.
fn process(builder: &mut Builder, line: &[u8]) -> bool {
    if let Some(rest) = line.strip_prefix(b"Pid: ") {
        let pid = dec(rest).and_then(|(pid, _)| u32::try_from(pid).ok());
        let comm = after(rest, b"comm: ").unwrap_or_default();
        let marks: [&[u8]; 3] = [b" Not tainted", b" Tainted: ", b" xid: "];
        let end = marks.iter().filter_map(|mark| super::super::words::find(comm, mark)).min().unwrap_or(comm.len());
        versions(builder, comm);
        builder.task(ReportedTask {
            cpu: None,
            pid,
            comm: Some(text(comm[..end].trim_ascii())).filter(|name| !name.is_empty()),
        });
        return pid.is_some();
    }
    if let Some(rest) = line.strip_prefix(b"Process ")
        && let Some(at) = super::super::words::find(rest, b" (pid: ")
    {
        let pid = dec_after(rest, b" (pid: ");
        builder.task(ReportedTask { cpu: None, pid, comm: Some(text(&rest[..at])) });
        return pid.is_some();
    }
    if let Some(found) = task_of_crash(line).or_else(|| task_of_xmon(line)) {
        builder.task(found);
        return true;
    }
    false
}

/// `pid   = 0, comm = swapper/0`: xmon, the debugger of Power.
fn task_of_xmon(line: &[u8]) -> Option<ReportedTask> {
    let rest = line.strip_prefix(b"pid ")?.trim_ascii_start().strip_prefix(b"= ")?;
    let (pid, rest) = dec(rest)?;
    let comm = rest.strip_prefix(b", comm = ")?.trim_ascii();
    Some(ReportedTask { cpu: None, pid: u32::try_from(pid).ok(), comm: Some(text(comm)) })
}

/// `TASK = cfa5d000[950] 'bash' THREAD: cf9ce000 CPU: 0` of Power.
fn task_of_power(builder: &mut Builder, line: &[u8]) -> bool {
    let Some((_, rest)) = line.strip_prefix(b"TASK = ").and_then(hex) else { return false };
    let Some((pid, rest)) = rest.strip_prefix(b"[").and_then(dec) else { return false };
    let comm = after(rest, b"] '").and_then(|rest| Some(&rest[..super::super::words::find(rest, b"' THREAD")?]));
    let (cpu, comm) = (dec_after(rest, b" CPU: "), comm.map(text));
    builder.task(ReportedTask { cpu, pid: u32::try_from(pid).ok(), comm });
    true
}

/// `PID: 12  TASK: ffff9780a738af70  CPU: 3   COMMAND: "name"`: the command `bt` of crash(8).
fn task_of_crash(line: &[u8]) -> Option<ReportedTask> {
    let rest = line.strip_prefix(b"PID: ").filter(|rest| has(rest, b" TASK: "))?;
    let comm = after(rest, b" COMMAND: \"")?;
    let cpu = dec_after(rest, b" CPU: ");
    Some(ReportedTask { cpu, pid: dec_after(line, b"PID: "), comm: comm.strip_suffix(b"\"").map(text) })
}

/// `Krnl PSW : …`, `Kernel Offset: …`, `KASAN: null-ptr-deref in range …`.
fn kernel_words(builder: &mut Builder, line: &[u8], position: LogPosition) -> bool {
    if let Some(rest) = line.strip_prefix(b"Krnl PSW :") {
        builder.report.arch = Some(Arch::S390x);
        let mut words = rest.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let (mask, address) = (words.next().and_then(hex), words.next().and_then(hex));
        if let (Some((mask, _)), Some((address, _))) = (mask, address) {
            builder.report.ip = builder.report.ip.or(Some(address));
            let pairs = vec![("PSWM".to_string(), mask), ("PSWA".to_string(), address)];
            builder.registers(super::super::registers::Line { pairs, user: false });
        }
        // A mail program may have wrapped the line before the module.
        let place = between(rest, b"(", b")").or_else(|| after(rest, b"("));
        located(builder, place.unwrap_or_default(), position);
        return true;
    }
    if let Some(offset) = hex_after(line, b"Kernel Offset: ") {
        builder.report.kernel_offset = builder.report.kernel_offset.or(Some(offset));
        return true;
    }
    if line.starts_with(b"KASAN: ") {
        builder.note(text(line));
        if let Some(from) = hex_after(line, b"range [") {
            builder.say("range", format!("{from:#x}"));
            if has(line, b"user-memory-access") || has(line, b"null-ptr-deref") || has(line, b"wild-memory") {
                // The address that faulted is that of the shadow byte.
                builder.report.fault_address = Some(from);
            }
        }
        return true;
    }
    line.starts_with(b"Kernel panic") || line.starts_with(b"Kernel tried")
}

/// The instruction pointer as a symbol, in the words of every architecture.
fn instruction(builder: &mut Builder, line: &[u8], position: LogPosition) -> bool {
    const MARKS: &[(&[u8], Option<Arch>)] = &[
        (b"RIP: ", Some(Arch::X86_64)),
        (b"RIP ", Some(Arch::X86_64)),
        (b"[exception RIP: ", Some(Arch::X86_64)),
        (b"EIP: ", Some(Arch::I386)),
        (b"EIP is at ", Some(Arch::I386)),
        (b"IP: ", None),
        (b"IP is at ", None),
        (b"PC is at ", Some(Arch::Arm)),
        (b"NIP [", Some(Arch::Powerpc)),
        (b"pc : ", None),
        (b"epc : ", None),
        (b"epc   : ", Some(Arch::Mips)),
        (b"ERA: ", Some(Arch::Loongarch)),
        (b"era   : ", Some(Arch::Loongarch)),
        (b"TPC: <", Some(Arch::Sparc)),
        (b"PC: [<", None),
        (b"pc: ", None),
    ];
    const OTHERS: &[&[u8]] =
        &[b"lr : ", b"lr: ", b"LR is at ", b"LR [", b"ra : ", b"ra   : ", b"ra    : ", b"ra: ", b"RPC: <", b"I7: <"];
    let line = line.trim_ascii_start();
    let other = OTHERS.iter().find(|mark| line.starts_with(mark));
    if let Some(mark) = other.filter(|_| has(line, b"+0x") || has(line, b"(")) {
        let rest = line[mark.len() - usize::from(mark.ends_with(b"["))..].trim_ascii_start();
        let rest = hex(rest).filter(|(_, tail)| tail.starts_with(b" ")).map_or(rest, |(_, tail)| tail);
        let found = frame::frames(rest, true).into_iter().next().and_then(|frame| frame.symbol);
        builder.link = builder.link.take().or(found);
        return true;
    }
    if let Some(found) = frame::ksymoops(line) {
        if frame::is_fault_of_ksymoops(line) {
            place(builder, found, position);
        } else {
            builder.in_stack = true;
            builder.frame(found, position);
        }
        return true;
    }
    let Some((mark, arch)) = MARKS.iter().find(|(mark, _)| line.starts_with(mark)) else { return false };
    let rest = &line[mark.iter().position(|byte| *byte == b'[').unwrap_or(mark.len())..];
    let rest = rest.trim_ascii_start();
    // A register line (`pc : [<c0>]    lr : [<c1>]`) is read as registers.
    if *mark == b"pc : " && has(rest, b" lr : ") || *mark == b"epc : " && has(rest, b" ra : ") {
        return false;
    }
    builder.report.arch = builder.report.arch.or(*arch);
    builder.in_stack = false;
    let mut rest = rest.strip_suffix(b">").filter(|_| mark.ends_with(b"<")).unwrap_or(rest);
    if mark.ends_with(b"IP: ") {
        // `0010:symbol`, `0010:[<addr>]  [<addr>] symbol`, `0033:0x7f…`
        if let Some((selector, position)) = hex(rest).filter(|(_, position)| position.starts_with(b":")) {
            builder.user = selector & 3 == 3;
            rest = &position[1..];
            if let Some((address, _)) = hex(rest).filter(|_| builder.user) {
                let pairs = vec![("RIP".to_string(), address)];
                builder.registers(super::super::registers::Line { pairs, user: true });
            }
        } else if let Some(body) = rest.strip_prefix(b"0x").and_then(hex).filter(|(_, tail)| tail.is_empty()) {
            builder.report.ip = builder.report.ip.or(Some(body.0));
            return true;
        }
    }
    if builder.user {
        return true;
    }
    if let Some((address, tail)) = hex(rest).filter(|(_, tail)| tail.is_empty() || tail.starts_with(b" ")) {
        builder.report.ip = builder.report.ip.or(Some(address));
        rest = tail.trim_ascii_start();
    } else if let Some((address, tail)) =
        hex(rest).and_then(|(address, tail)| Some((address, tail.strip_prefix(b": ")?)))
    {
        // `pc: c000000000022148: symbol+0x0/0x24` of xmon.
        builder.report.ip = builder.report.ip.or(Some(address));
        rest = tail;
    }
    located(builder, rest, position);
    true
}

/// Keeps the first location of the failure.
fn located(builder: &mut Builder, rest: &[u8], position: LogPosition) {
    // `RIP: 0010:foo include/x.h:12 [inline]` names an inlined call; the next line has the function.
    // A page made a link of the address: `[ [<ffffffff81001234>](<ffffffff81001234>]) demo+0x13/0x20`.
    let rest = after(rest, b">]) ").unwrap_or(rest);
    let found: Option<Frame> = frame::frames(rest, true).into_iter().next();
    let found = found.filter(|frame| !frame.inline).or_else(|| frame::of_package(rest)).or_else(|| annotated(rest));
    if let Some(found) = found {
        place(builder, found, position);
    }
}

/// `symbol+0xe8(what the reporter says of it)/0xec`.
fn annotated(rest: &[u8]) -> Option<Frame> {
    let end = super::super::words::find(rest, b"(")?;
    let (name, offset) = rest[..end].split_at(super::super::words::find(&rest[..end], b"+0x")?);
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    let (offset, left) = hex(&offset[1..])?;
    let fits = !name.is_empty() && name.iter().all(word) && left.is_empty();
    fits.then(|| Frame { symbol: Some(text(name)), offset: Some(offset), ..Frame::default() })
}

/// The same of a frame that was read.
fn place(builder: &mut Builder, mut found: Frame, position: LogPosition) {
    let other_cpu = builder.other.as_ref().is_some_and(|other| other.cpu != builder.report.cpu);
    if found.symbol.is_some() && builder.report.location.is_none() && !other_cpu {
        found.line = position.line;
        builder.report.location = Some(found);
    } else if let (Some(address), None) = (found.address, builder.report.ip) {
        builder.report.ip = Some(address);
    }
}
