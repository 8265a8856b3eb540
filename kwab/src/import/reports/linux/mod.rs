//! Reports of Linux: which lines open one ([`heads`]), and what the lines behind them add ([`body`], [`context`],
//! [`access`], [`stacks`], [`wrapped`]), and what is left of one tells ([`lost`]).

pub mod access;
pub mod body;
pub mod context;
pub mod heads;
pub mod lost;
pub mod stacks;
pub mod wrapped;

use std::sync::LazyLock;

use super::build::{Builder, ReportedTask};
use super::class::Class;
use super::function::is_skipped;
use super::report::{LogPosition, StackKind};
use super::table::Index;
use super::template::Captures;
use super::words::{after, dec_after, has, hex_after, task, text};
use heads::{HEADS, Head, NULL, PAGING, Part};

/// The templates of [`HEADS`] with the numbers of their rows; built when the first line is looked up.
static INDEX: LazyLock<Index<usize>> = LazyLock::new(|| {
    let mut index = Index::default();
    for (number, head) in HEADS.iter().enumerate() {
        for template in head.templates {
            match template.strip_prefix('*') {
                Some(rest) => {
                    for word in ["WARNING", "INFO", "BUG"] {
                        index.add(format!("{word}{rest}"), number);
                    }
                }
                None => index.add(*template, number),
            }
        }
    }
    index
});

/// A line that opens a report, or is a later head of one.
#[derive(Debug)]
pub struct Found<'t, 'l> {
    /// The row of the table whose template matched.
    pub head: &'static Head,
    /// What its template caught.
    pub captures: Captures<'t, 'l>,
}

/// For each template of [`HEADS`] the texts that every line which it finds holds.
pub fn needles() -> impl Iterator<Item = Vec<Vec<u8>>> {
    INDEX.needles().chain(lost::needles())
}

/// Looks a line up in [`HEADS`].
pub fn find(line: &[u8]) -> Option<Found<'static, '_>> {
    let line = line.trim_ascii();
    // Older lockdep wrote `[ INFO: possible circular locking dependency detected ]`.
    let line = line.strip_prefix(b"[ ").map_or(line, |rest| rest.strip_suffix(b"]").unwrap_or(rest));
    let line = unruled(line);
    let (number, captures) = INDEX.find(line)?;
    let head = &HEADS[*number];
    is_sound(head, &captures, line).then_some(Found { head, captures })
}

/// The line behind a rule of signs that lost its end.
pub(super) fn unruled(line: &[u8]) -> &[u8] {
    const SHORTEST: usize = 20;
    let Some(sign @ (b'=' | b'-')) = line.first() else { return line };
    let rule = line.iter().take_while(|byte| *byte == sign).count();
    match &line[rule..] {
        [b' ', rest @ ..] if rule >= SHORTEST => rest.trim_ascii_start(),
        _ => line,
    }
}

/// Lines that fit a template by accident.
fn is_sound(head: &Head, captures: &Captures<'_, '_>, line: &[u8]) -> bool {
    match head.class {
        // `foo: 12 [#1]`: the kind of a trap has letters and no colon.
        Class::Oops if head.title.starts_with("{kind}") => captures.get("kind").is_some_and(|kind| {
            kind.len() <= 48
                && !kind.contains(&b':')
                && !kind.contains(&b'=')
                && kind.iter().any(u8::is_ascii_lowercase)
        }),
        Class::Warning if head.title.starts_with("WARNING in") => {
            // A directory is not a function: the name stands on the next line when a mail program wrapped this one.
            let path = captures.get("function").filter(|_| captures.get("file").is_none());
            let is_path = path.is_some_and(|name| has(line, &[name, b"/"].concat()));
            !is_path && captures.get("file").is_none_or(|file| file.len() < 200 && (has(file, b".") || has(file, b"/")))
        }
        Class::Bug if head.title == "BUG: {message}" => {
            // `BUG: ` of user space's words: the kernel's are followed by text with letters.
            captures.get("message").is_some_and(|message| message.len() >= 8) && !has(line, b"BUG: 0")
        }
        Class::SlabCorruption => line.starts_with(b"S") || line.starts_with(b"s") || has(line, b"ainted"),
        Class::OomKill | Class::Refcount | Class::Odebug => line.len() < 400,
        // `UBSAN: shift-out-of-bounds in`, and not `UBSAN: enabled` or a sentence about it.
        Class::Ubsan => {
            let kind = after(line, b"UBSAN: ").and_then(|rest| rest.split(|byte| *byte == b' ').next());
            has(line, b" in ") || line.ends_with(b" in") || kind.is_none_or(|kind| kind.contains(&b'-'))
        }
        Class::MachineCheck => !is_corrected(line),
        _ => true,
    }
}

/// Whether the hardware corrected the error of a machine check that the kernel only logs: bit 61 (UC) of the bank's
/// status is clear (Intel SDM 17.3.2.2).
fn is_corrected(line: &[u8]) -> bool {
    const UNCORRECTED: u64 = 1 << 61;
    let bank = after(line, b"Machine Check: ").and_then(|rest| after(rest, b" Bank "));
    let status = bank.and_then(|bank| hex_after(bank, b": "));
    status.is_some_and(|status| status & UNCORRECTED == 0)
}

/// Begins a report with its first line.
pub fn open(found: &Found<'_, '_>, line: &[u8], position: LogPosition) -> Builder {
    let line = line.trim_ascii();
    let mut builder = Builder::new("linux", found.head.class, found.head.title, position);
    builder.announced = found.head.part == Part::Announces;
    builder.report.message = text(line);
    head_line(&mut builder, found, line);
    if found.head.part == Part::Panic {
        let message = after(line, b"syncing: ").or_else(|| after(line, b"panic: ")).unwrap_or(line);
        builder.report.message = text(message.trim_ascii());
    }
    if matches!(found.head.class, Class::Kmsan | Class::Kcsan) {
        builder.begin(StackKind::Crash, None);
    }
    builder
}

/// What a head says, whether it opens the report or comes later.
pub fn head_line(builder: &mut Builder, found: &Found<'_, '_>, line: &[u8]) {
    let captures = &found.captures;
    for (name, value) in captures.iter() {
        if matches!(name, "kind" | "racer" | "other" | "device" | "victim" | "cache" | "comm") {
            builder.say(name, kind(name, value));
        }
    }
    // syzbot repeats the line for each function that was inlined; a helper among them only did what it was told.
    let helps = |name: &str| line.ends_with(b"[inline]") && is_skipped(name);
    let function = captures.text("function").or_else(|| captures.text("racer"));
    if let Some(function) = function.filter(|name| !helps(name) && !name.starts_with("0x")) {
        builder.head_function.get_or_insert(function);
    }
    let report = &mut builder.report;
    let cpu = || captures.hex("processor").and_then(|cpu| u32::try_from(cpu).ok());
    report.cpu = report.cpu.or(captures.dec("cpu")).or_else(cpu);
    let named = captures.hex("address");
    let shadowed = named.filter(|_| found.head.class == Class::GeneralProtection).and_then(of_shadow);
    report.fault_address = report.fault_address.or(shadowed).or(named);
    report.error_code = report.error_code.or(captures.hex("code"));
    report.ip = report.ip.or(captures.hex("ip"));
    if let (Some(file), Some(number)) = (captures.text("file"), captures.dec("line")) {
        report.source.get_or_insert((file, number));
    }
    let pid = captures.dec("pid");
    if let Some(comm) = captures.text("comm").filter(|_| report.class != Class::Oops) {
        report.comm.get_or_insert(comm);
    }
    let named = |who: &[u8]| task(who, b':').or_else(|| task(who, b'/'));
    let who = captures.get("task").and_then(|who| named(bracketed(line, who)).or_else(|| named(who)));
    match who {
        Some((comm, pid)) => {
            let comm = Some(comm.trim_start_matches("process ").to_string());
            builder.task(ReportedTask { cpu: None, pid: Some(pid), comm });
        }
        None if found.head.class != Class::OomKill => report.pid = report.pid.or(pid),
        None => {}
    }
    if let Some((comm, pid)) = after(line, b"by task ").and_then(|who| task(who.trim_ascii(), b'/')) {
        builder.task(ReportedTask { cpu: None, pid: Some(pid), comm: Some(comm) });
    }
    if found.head.class == Class::RcuStall && has(line, b"{ ") {
        builder.report.cpu = builder.report.cpu.or(dec_after(line, b"{ "));
    }
}

/// What stands in brackets at the end of a line, where a capture that begins there ends at the first that closes: a
/// thread's name may have brackets of its own, `[runc:[1:CHILD]:123]`.
fn bracketed<'l>(line: &'l [u8], capture: &'l [u8]) -> &'l [u8] {
    let begin = memchr::memmem::rfind(line, capture).unwrap_or(line.len());
    let end = memchr::memrchr(b']', line).filter(|end| *end > begin);
    end.map_or(capture, |end| &line[begin..end])
}

/// The address whose shadow byte lies at an address that x86-64 cannot map: KASAN looked there before the access.
fn of_shadow(address: u64) -> Option<u64> {
    const SHADOW: u64 = 0xdfff_fc00_0000_0000;
    address.checked_sub(SHADOW).filter(|offset| *offset < 1 << 44).map(|offset| offset << 3)
}

/// The words of a capture as headlines use them.
fn kind(name: &str, value: &[u8]) -> String {
    let mut value = text(value.trim_ascii());
    if name == "kind" {
        for tail in [" in", " on address", "."] {
            value = value.strip_suffix(tail).map_or(value.clone(), str::to_string);
        }
    }
    value
}
