//! What died, where and why, in words.

use kwab_format::record::{CauseKind, Frame, FrameTrust, Panic, Reason};
use kwab_format::{AnyRecord, RawRecord, Records, SectionKind};
use linux_abi::Signal;
use linux_abi::signals::code_name;

use super::{Backtrace, CauseReport, FrameRow, VmaRow, address, explain, text};
use crate::analysis::headline;
use crate::model::{Death, Dump};
use crate::report::signature::{self, Parts, task_name};
use crate::units::count;

/// What died and of what, in one line.
pub(super) fn headline(dump: &Dump, death: Option<&Death>) -> String {
    let Some(death) = death else {
        let events: u64 = dump.file.sections.iter().map(|section| u64::from(section.header.records)).sum();
        return match lost_cause(dump) {
            Some(lost) => format!("{lost} ({})", count(events, "record", "records")),
            None => format!("no crash in this recording ({})", count(events, "record", "records")),
        };
    };
    headline::of(death)
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

/// The stable name of the crash.
pub(super) fn signature(dump: &Dump, death: &Option<Death>) -> String {
    let Some(death) = death else { return "00000000".to_string() };
    let kernel = death.is_of_kernel();
    let frames: Vec<Frame<'_>> =
        dump.records::<Frame<'_>>().filter(|frame| is_of_death(frame, dump)).take(MOST_FRAMES).collect();
    let first = frames.iter().filter(|frame| frame.trust != Some(FrameTrust::SCAN));
    let mut symbols: Vec<&[u8]> = first.filter_map(|frame| frame.symbol).collect();
    if let Some(location) = death.location.as_deref().and_then(crate::text::console::location) {
        symbols.insert(0, location.symbol);
    }
    signature::of(&Parts {
        kind: death.kind.and_then(CauseKind::name).unwrap_or_default(),
        signal: death.signal_name.as_deref().unwrap_or_default(),
        message: death.message.as_deref().filter(|_| kernel).unwrap_or_default(),
        symbols,
        ip: death.ip,
        program: if kernel { b"" } else { death.cmdline.as_deref().or(death.comm.as_deref()).unwrap_or_default() },
        fault_addr: death.fault_addr,
    })
}

/// Frames of the first backtrace; those of listed tasks lie in another kind of section.
fn is_of_death(frame: &Frame<'_>, _dump: &Dump) -> bool {
    frame.trace.unwrap_or(0) == 0
}

/// Everything known about the death.
pub(super) fn report(dump: &Dump, death: &Death, vmas: &[VmaRow]) -> CauseReport {
    let signal = death.signal.map(u64::from).and_then(Signal::new);
    let code = death.signal_code.and_then(|code| code_name(signal?, i32::try_from(code).ok()?));
    let signal_text = signal.map(|signal| {
        let code = code.map_or(String::new(), |(name, what)| format!(", {name}: {what}"));
        format!("{} ({}){code}", headline::signal(death), signal.text())
    });
    let location = death.source().map(|source| text(source.as_bytes()));
    let location = location.or_else(|| death.location.as_deref().map(text));
    CauseReport {
        kind: death.kind.and_then(CauseKind::name).unwrap_or("unknown").to_string(),
        victim: headline::victim(death),
        message: death.message.as_deref().map(text),
        place: location,
        cpu: death.cpu,
        pid: death.pid,
        comm: death.comm.as_deref().map(|comm| text(task_name(comm))),
        cmdline: death.cmdline.as_deref().map(text),
        signal: signal_text.or_else(|| death.signal_name.as_deref().map(text)),
        exception: explain::exception(death),
        fault_addr: death.fault_addr.map(address),
        ip: death.ip.map(address),
        sp: death.sp.map(address),
        time: time(death.ns),
        line: death.line,
        reasons: explain::reasons(dump, death, vmas),
    }
}

fn time(ns: Option<u64>) -> Option<String> {
    ns.map(|ns| format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1000))
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
    let location = match (frame.file, frame.source_line, frame.module) {
        (Some(file), Some(line), _) => Some(format!("{}:{line}", text(file))),
        (_, _, Some(module)) => Some(format!("[{}]", text(module))),
        _ => None,
    };
    FrameRow {
        index: frame.index.unwrap_or(0),
        trust: frame.trust.and_then(FrameTrust::name).unwrap_or("unknown").to_string(),
        addr: frame.addr.map(address),
        symbol: symbol(frame.symbol, frame.symbol_offset, frame.symbol_size),
        place: location,
        ..FrameRow::default()
    }
}

fn symbol(name: Option<&[u8]>, offset: Option<u64>, size: Option<u64>) -> String {
    let Some(name) = name else { return String::new() };
    let size = size.map_or(String::new(), |size| format!("/{size:#x}"));
    format!("{}+{:#x}{size}", text(name.trim_ascii()), offset.unwrap_or(0))
}
