//! Adds to the page what follows from the records: hypotheses, walked stacks, code with operand values, source lines.

use super::{Backtrace, CodeReport, CodeRow, FrameRow, InlinedRow, Remark, Report, StackReport, address, pointed};
use crate::analysis::verify::Backing;
use crate::analysis::{Context, TraceFrame, Triage, code, images, judge, stacks};
use crate::builds::BuildChanges;
use crate::model::{Case, is_of_library};
use crate::symbols::{Location, PrintedFunction, Probe, SourceFrame, SourceLines, Symbols};
use crate::unwind::Stopped;

/// Hypotheses that head the page; `kwab triage` has all of them.
const HEAD: usize = 3;

/// Judges the case and writes the conclusions into the report of the same dump, which commands call `named`
/// ([`command::arguments`](crate::report::command::arguments));
/// gives all of the triage, of which the report has the head.
pub fn conclude(
    report: &mut Report,
    case: &Case<'_>,
    symbols: &Symbols,
    sources: &mut SourceLines,
    named: &str,
) -> Triage {
    conclude_since(report, case, symbols, None, sources, named)
}

/// As [`conclude`], with what differs from a build that worked.
pub fn conclude_since(
    report: &mut Report,
    case: &Case<'_>,
    symbols: &Symbols,
    changes: Option<&BuildChanges>,
    sources: &mut SourceLines,
    named: &str,
) -> Triage {
    let ctx = Context::new(case, symbols, &Backing::none()).since(changes);
    let triage = judge(&ctx, named);
    report.hypotheses = triage.hypotheses.iter().take(HEAD).cloned().collect();
    report.since.clone_from(&triage.since);
    let bare = !ctx.trace.is_empty() && ctx.trace.iter().all(|frame| frame.name.is_none());
    report.nameless = bare.then(|| images::nameless(&ctx));
    // A trace that was walked has no records behind its frames.
    let walked = ctx.trace.len() > 1 && ctx.trace.iter().all(|frame| frame.at.is_none());
    if walked {
        let told: Vec<_> = ctx.trace.iter().map(|frame| Some(address(frame.ip))).collect();
        // What the kernel printed is worth a second look only where it says something else.
        report.backtraces.retain(|printed| printed.frames.iter().any(|frame| !told.contains(&frame.addr)));
        for printed in &mut report.backtraces {
            printed.title = "the same, printed by the kernel".to_string();
        }
        let frames = rows(&ctx.trace, sources);
        report.backtraces.insert(0, Backtrace { title: "backtrace".to_string(), frames });
        report.completeness.filled("backtrace");
    }
    name_printed(&mut report.backtraces, &ctx, sources);
    place_of_ours(report);
    pointed::strings(&mut report.syscalls, case, symbols);
    let found = stacks::all(case, symbols, &ctx.death);
    report.stacks = found
        .into_iter()
        .map(|stack| StackReport {
            frames: rows(&stack.frames, sources),
            ends: stack.stopped.and_then(Stopped::in_words),
            owners: stack.owners,
            user: stack.user,
        })
        .collect();
    let doubts = sources.remarks().into_iter().map(|text| Remark { kind: "remark".to_owned(), text, line: None });
    report.remarks.extend(doubts);
    report.code = code::of_death(&ctx).map(|code| code_report(&code, ctx.death.is_fault()));
    triage
}

/// Puts the innermost place of the kernel's own for one in Rust's library, where the death was only noticed.
fn place_of_ours(report: &mut Report) {
    let Some(place) = report.cause.as_mut().and_then(|cause| cause.place.as_mut()) else { return };
    let frames = report.backtraces.first().map(|trace| trace.frames.as_slice()).unwrap_or_default();
    let frames = frames.iter().filter(|frame| !frame.machinery);
    let places = frames.flat_map(|frame| {
        let inlined = frame.inlined.iter().rev().filter(|one| !one.machinery).map(|one| &one.place);
        inlined.chain([&frame.place]).flatten()
    });
    if let Some(own) = places.into_iter().find(|own| !is_of_library(own)).filter(|_| is_of_library(place)) {
        place.clone_from(own);
    }
}

fn code_report(code: &code::Code, is_fault: bool) -> CodeReport {
    let row = |line: &crate::decode::Instruction| {
        let marked = line.addr == code.marked;
        // Registers are those of the fault; the instructions before it ran with others.
        let values = Some(line.explain()).filter(|values| marked && code.is_fault && !values.is_empty());
        CodeRow {
            addr: address(line.addr),
            bytes: line.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: line.text.clone(),
            values,
            marked,
        }
    };
    let mark = match (code.is_fault, is_fault) {
        (false, _) => "the call that led to it",
        (true, true) => "fault",
        (true, false) => "stopped here",
    };
    let lines = code.lines.iter().map(row).collect();
    CodeReport { is_fault: code.is_fault, mark: mark.to_owned(), within: code.within.clone(), lines }
}

/// Gives the addresses that the kernel found the names that images have for them, where it gave none.
fn name_printed(backtraces: &mut [Backtrace], ctx: &Context<'_, '_>, sources: &mut SourceLines) {
    for (index, printed) in backtraces.iter_mut().flat_map(|backtrace| backtrace.frames.iter_mut().enumerate()) {
        if let Some(location) = location(printed, ctx) {
            let module = printed.place.take().filter(|place| place.starts_with('['));
            let place = location.frames.last().and_then(source_location);
            printed.place = [place, module].into_iter().flatten().reduce(|place, module| format!("{place} {module}"));
            printed.source = location.frames.last().and_then(|outer| source(outer, sources));
            printed.inlined = inlined(&location.frames, sources);
            continue;
        }
        let nameless = printed.addr.as_deref().filter(|_| printed.symbol.is_empty());
        let Some(addr) = nameless.and_then(|addr| u64::from_str_radix(addr.trim_start_matches("0x"), 16).ok()) else {
            continue;
        };
        if let Some(named) = ctx.printed(index, addr) {
            let trust = std::mem::take(&mut printed.trust);
            *printed = FrameRow { index: printed.index, trust, ..row(index, &named, sources) };
        }
    }
}

/// What an image says of a frame that was printed by name, offset and size.
fn location(printed: &FrameRow, ctx: &Context<'_, '_>) -> Option<Location> {
    let told = crate::text::console::location(printed.symbol.as_bytes())?;
    let module = printed.place.as_deref().and_then(|place| place.strip_prefix('[')?.strip_suffix(']'));
    let function = PrintedFunction::new(std::str::from_utf8(told.symbol).ok()?, told.size, module)?;
    let probe = if ctx.death.is_instruction(printed.index, told.symbol) { Probe::Exact } else { Probe::Return };
    Some(ctx.symbols.resolve_printed(&function, told.offset, probe)).filter(|found| !found.frames.is_empty())
}

fn rows(frames: &[TraceFrame], sources: &mut SourceLines) -> Vec<FrameRow> {
    frames.iter().enumerate().map(|(index, frame)| row(index, frame, sources)).collect()
}

fn row(index: usize, frame: &TraceFrame, sources: &mut SourceLines) -> FrameRow {
    // The outermost function is the physical frame; the others are inlined into it.
    let outer = frame.functions.last();
    let inlined = inlined(&frame.functions, sources);
    FrameRow {
        index: index as u32,
        trust: frame.trust.name().to_string(),
        addr: Some(address(frame.ip)),
        symbol: frame.name.clone().unwrap_or_default(),
        place: outer.and_then(source_location).or_else(|| frame.source.clone()),
        source: outer.and_then(|outer| source(outer, sources)),
        inlined,
        machinery: frame.machinery,
    }
}

/// The functions inlined into a physical frame, outermost first.
fn inlined(functions: &[SourceFrame], sources: &mut SourceLines) -> Vec<InlinedRow> {
    let inner = functions.iter().rev().skip(1);
    let rows = inner.map(|function| InlinedRow {
        function: function.function.as_ref().map(ToString::to_string).unwrap_or_default(),
        place: source_location(function),
        source: source(function, sources),
        machinery: function.machinery,
    });
    rows.collect()
}

fn source_location(frame: &SourceFrame) -> Option<String> {
    let file = frame.file.as_ref()?;
    Some(match frame.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_string(),
    })
}

fn source(frame: &SourceFrame, sources: &mut SourceLines) -> Option<String> {
    sources.line(frame.file.as_ref()?, frame.line?, frame.version).map(str::to_string)
}
