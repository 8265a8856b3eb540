//! What died, where and why: the cause record, or what the events say when a kernel wrote none.

use kwab_format::record::{Cause, CauseKind, CrashReport, Frame, FrameTrust, Panic, Reason, Stamp};
use kwab_format::{AnyRecord, RawRecord, Records, SectionKind};
use linux_abi::Signal;
use linux_abi::signals::code_name;

use super::{Backtrace, CauseReport, FrameRow, VmaRow, address, explain, text};
use crate::decode::without_debug_location;
use crate::model::Dump;
use crate::report::signature::{self, Parts, task_name};

/// The cause of death. A dump without a cause record may still hold a crash report or a panic event.
pub(super) fn cause(dump: &Dump) -> Option<Cause<'_>> {
    if let Some(cause) = dump.records::<Cause<'_>>().next() {
        return Some(cause);
    }
    if let Some(panic) = dump.records::<Panic<'_>>().next() {
        let kind = Some(CauseKind::PANIC);
        return Some(Cause {
            kind,
            message: panic.message,
            in_kernel: Some(true),
            stamp: panic.stamp,
            ..Cause::default()
        });
    }
    dump.records::<CrashReport<'_>>().next().map(|report| Cause {
        kind: Some(CauseKind::FATAL_SIGNAL),
        pid: report.pid,
        cmdline: report.cmdline,
        signal: report.signal.and_then(|signal| u32::try_from(signal).ok()),
        signal_name: report.signal_name,
        fault_addr: report.fault_addr,
        ip: report.ip,
        stamp: report.stamp,
        ..Cause::default()
    })
}

/// Whether the kernel died, rather than a program.
fn in_kernel(cause: &Cause<'_>) -> bool {
    cause.in_kernel.unwrap_or(cause.kind != Some(CauseKind::FATAL_SIGNAL))
}

/// The last line of a message: Rust's panics put the place first.
fn short_message(cause: &Cause<'_>) -> Option<String> {
    let message = text(cause.message?);
    let message = without_debug_location(&message);
    let telling = message.lines().rfind(|line| !line.trim().is_empty() && !line.starts_with("panicked at"));
    Some(telling.unwrap_or(&message).trim().to_string())
}

/// `/bin/grep[130]`, `kernel`.
fn victim(cause: &Cause<'_>) -> String {
    if in_kernel(cause) {
        return "kernel".to_string();
    }
    let pid = cause.pid.map_or_else(|| "?".to_string(), |pid| pid.to_string());
    match cause.cmdline.or(cause.comm) {
        Some(program) => {
            let program = program.split(|byte| *byte == b' ').next().unwrap_or(program);
            format!("{}[{pid}]", text(program))
        }
        None => format!("process {pid}"),
    }
}

/// What died and of what, in one line.
pub(super) fn headline(dump: &Dump, cause: Option<&Cause<'_>>) -> String {
    let Some(cause) = cause else {
        let events: u64 = dump.file.sections.iter().map(|section| u64::from(section.header.records)).sum();
        return match lost_cause(dump) {
            Some(lost) => format!("{lost} ({events} records)"),
            None => format!("no crash in this recording ({events} records)"),
        };
    };
    if cause.kind == Some(CauseKind::LIVE) {
        let message = short_message(cause).map_or(String::new(), |message| format!(": {message}"));
        return format!("nothing died (live dump){message}");
    }
    if in_kernel(cause) {
        let kind = cause.kind.and_then(CauseKind::name).unwrap_or("death");
        let cpu = cause.stamp.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let running = match (cause.comm, cause.pid) {
            (Some(comm), Some(pid)) => format!(", running {}[{pid}]", text(comm)),
            _ => String::new(),
        };
        let message = short_message(cause).map_or(String::new(), |message| format!(": {message}"));
        let what = match (cause.kind, cause.exception) {
            (Some(CauseKind::EXCEPTION), Some(exception)) => format!("kernel {}", text(exception)),
            (Some(CauseKind::PANIC | CauseKind::OOPS | CauseKind::STACK_OVERFLOW), _) => {
                format!("kernel {}", kind.trim_start_matches("kernel "))
            }
            (Some(CauseKind::SYSRQ), _) => "kernel panic (sysrq)".to_string(),
            (Some(CauseKind::NMI), _) => "kernel stopped (nmi)".to_string(),
            _ => format!("kernel died ({kind})"),
        };
        return format!("{what}{cpu}{running}{message}");
    }
    let signal = signal_name(cause);
    let how = explain::in_brief(cause).map_or(String::new(), |how| format!(": {how}"));
    format!("{} died of {signal}{how}", victim(cause))
}

/// What to say of a dump without a cause that may have had one.
pub(super) fn lost_cause(dump: &Dump) -> Option<&'static str> {
    let file = &dump.file;
    let here = file.sections.iter().any(|section| section.header.kind == SectionKind::CAUSE);
    let of_end = |raw: RawRecord<'_>| match raw.decode() {
        Ok(AnyRecord::KindTotal(total)) if total.kind == Some(SectionKind::CAUSE.0) => total.sections,
        _ => None,
    };
    let written = Records::new(&file.end).filter_map(of_end).any(|sections| sections > 0);
    let damaged = file.defects.iter().any(|defect| defect.section_kind == Some(SectionKind::CAUSE));
    let reason = dump.identity().and_then(|identity| identity.reason);
    let died = matches!(reason, Some(Reason::KERNEL_CRASH | Reason::PROCESS_CRASH | Reason::HANG));
    if damaged || died || (written && !here) {
        return Some("the section with the cause is lost");
    }
    let lost = file.defects.iter().any(|defect| defect.sections.is_some_and(|_| defect.section_kind.is_none()));
    let quiet = matches!(reason, Some(Reason::RECORDING | Reason::LIVE));
    let unsure = (lost || !file.ended || file.header.is_none()) && !here && !quiet;
    unsure.then_some("the section with the cause is lost, if there was one")
}

fn signal_name(cause: &Cause<'_>) -> String {
    let number = cause.signal.map(u64::from);
    match (cause.signal_name, number.and_then(Signal::new)) {
        (Some(name), _) => text(name),
        (None, Some(signal)) => signal.to_string(),
        (None, None) => "a signal".to_string(),
    }
}

/// The stable name of the crash.
pub(super) fn signature(dump: &Dump, cause: &Option<Cause<'_>>) -> String {
    let Some(cause) = cause else { return "00000000".to_string() };
    let kernel = in_kernel(cause);
    let frames: Vec<Frame<'_>> =
        dump.records::<Frame<'_>>().filter(|frame| is_of_death(frame, dump)).take(MOST_FRAMES).collect();
    let first = frames.iter().filter(|frame| frame.trust != Some(FrameTrust::SCAN));
    let mut symbols: Vec<&[u8]> = first.filter_map(|frame| frame.symbol).collect();
    if let Some(location) = cause.location.and_then(crate::text::console::location) {
        symbols.insert(0, location.symbol);
    }
    signature::of(&Parts {
        kind: cause.kind.and_then(CauseKind::name).unwrap_or_default(),
        signal: cause.signal_name.unwrap_or_default(),
        message: cause.message.filter(|_| kernel).unwrap_or_default(),
        symbols,
        ip: cause.ip,
        program: if kernel { b"" } else { cause.cmdline.or(cause.comm).unwrap_or_default() },
        fault_addr: cause.fault_addr,
    })
}

/// Frames of the first backtrace; those of listed tasks lie in another kind of section.
fn is_of_death(frame: &Frame<'_>, _dump: &Dump) -> bool {
    frame.trace.unwrap_or(0) == 0
}

/// Everything known about the death.
pub(super) fn report(dump: &Dump, cause: &Cause<'_>, vmas: &[VmaRow]) -> CauseReport {
    let signal = cause.signal.map(u64::from).and_then(Signal::new);
    let code = cause.signal_code.and_then(|code| code_name(signal?, i32::try_from(code).ok()?));
    let signal_text = signal.map(|signal| {
        let code = code.map_or(String::new(), |(name, what)| format!(", {name}: {what}"));
        format!("{} ({}){code}", signal_name(cause), signal.text())
    });
    let place = match (cause.file, cause.source_line, cause.location) {
        (Some(file), Some(line), _) => Some(format!("{}:{line}", text(file))),
        (Some(file), None, _) => Some(text(file)),
        (None, _, Some(location)) => Some(text(location)),
        (None, _, None) => None,
    };
    CauseReport {
        kind: cause.kind.and_then(CauseKind::name).unwrap_or("unknown").to_string(),
        victim: victim(cause),
        message: cause.message.map(text),
        place,
        cpu: cause.stamp.cpu,
        pid: cause.pid,
        comm: cause.comm.map(|comm| text(task_name(comm))),
        cmdline: cause.cmdline.map(text),
        signal: signal_text.or_else(|| cause.signal_name.map(text)),
        exception: explain::exception(cause),
        fault_addr: cause.fault_addr.map(address),
        ip: cause.ip.map(address),
        sp: cause.sp.map(address),
        time: time(&cause.stamp),
        line: cause.stamp.line,
        reasons: explain::reasons(dump, cause, vmas),
    }
}

fn time(stamp: &Stamp<'_>) -> Option<String> {
    stamp.ns.map(|ns| format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1000))
}

/// Frames of all printed backtraces together.
const MOST_FRAMES: usize = 4096;

/// The printed backtraces: Frame records by number, else what the panic event carries.
pub(super) fn backtraces(dump: &Dump) -> Vec<Backtrace> {
    let sections = dump.loaded.iter().filter(|section| section.kind != SectionKind::TASKS);
    let records = sections.flat_map(|section| Records::new(&section.payload));
    let mut traces: Vec<Backtrace> = Vec::new();
    let mut rows = 0;
    for record in records {
        let Ok(AnyRecord::Frame(frame)) = record.decode() else { continue };
        let trace = frame.trace.unwrap_or(0) as usize;
        if trace >= 64 {
            continue;
        }
        rows += 1;
        if rows > MOST_FRAMES {
            break;
        }
        while traces.len() <= trace {
            let title = if traces.is_empty() { "backtrace" } else { "the same, printed again" };
            traces.push(Backtrace { title: title.to_string(), frames: Vec::new() });
        }
        traces[trace].frames.push(frame_row(&frame));
    }
    if traces.is_empty()
        && let Some(panic) = dump.records::<Panic<'_>>().next()
    {
        let frames = panic.backtrace.iter().flat_map(kwab_format::List::iter).take(MOST_FRAMES).enumerate();
        let frames: Vec<FrameRow> = frames
            .map(|(index, frame)| FrameRow {
                index: index as u32,
                trust: "printed".to_string(),
                addr: frame.addr.map(address),
                symbol: symbol(frame.sym, frame.off, None),
                ..FrameRow::default()
            })
            .collect();
        if !frames.is_empty() {
            traces.push(Backtrace { title: "backtrace".to_string(), frames });
        }
    }
    traces.retain(|trace| !trace.frames.is_empty());
    traces
}

fn frame_row(frame: &Frame<'_>) -> FrameRow {
    let place = match (frame.file, frame.source_line, frame.module) {
        (Some(file), Some(line), _) => Some(format!("{}:{line}", text(file))),
        (_, _, Some(module)) => Some(format!("[{}]", text(module))),
        _ => None,
    };
    FrameRow {
        index: frame.index.unwrap_or(0),
        trust: frame.trust.and_then(FrameTrust::name).unwrap_or("unknown").to_string(),
        addr: frame.addr.map(address),
        symbol: symbol(frame.symbol, frame.symbol_offset, frame.symbol_size),
        place,
        ..FrameRow::default()
    }
}

fn symbol(name: Option<&[u8]>, offset: Option<u64>, size: Option<u64>) -> String {
    let Some(name) = name else { return String::new() };
    let size = size.map_or(String::new(), |size| format!("/{size:#x}"));
    format!("{}+{:#x}{size}", text(name.trim_ascii()), offset.unwrap_or(0))
}
