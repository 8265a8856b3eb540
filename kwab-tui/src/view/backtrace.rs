//! Who called whom: the trace of the death with inlined frames, then every other processor and task, code beside each.

use std::collections::{BTreeSet, HashMap};

use kwab::analysis::text as of_bytes;
use kwab::analysis::{Context, TraceFrame, View as Space, stacks};
use kwab::decode::{Values, around};
use kwab::format::record::Task;
use kwab::model::{Located, RecordRef};
use kwab::report::align::shape;
use kwab::report::inspect::{Backtrace, Report};
use kwab::symbols::SourceLines;
use kwab::unwind::{Stopped, Trust};

use super::table::{Table, TableRow};
use super::{Column, Link, Row, Slot, Target, text};
use crate::text::{Line, address};
use crate::theme::Tone;

/// Instructions shown before and behind an address.
const AROUND: (usize, usize) = (6, 6);
/// Frames that are shown with their code: enough for every stack that is read by eye.
const WITH_CODE: usize = 2_000;

const COLUMNS: &[Column] = &[
    Column::number("#", 4, 0),
    Column::new("found by", 8, 2),
    Column::new("address", 18, 1),
    Column::rest("function"),
    Column::new("source", 28, 3),
];

/// The trace that triage uses, those of other processors and tasks, then those that were printed.
#[must_use]
pub fn backtrace(report: &Report, ctx: &Context<'_, '_>, sources: SourceLines) -> Table {
    let owners = ctx.case.registers.iter().map(|set| (set.at, set.pid)).collect();
    let mut traces = Traces { ctx, rows: Vec::new(), sources, with_code: 0, whose: String::new(), owners };
    // A trace that is nothing but what the kernel printed is shown once, with what it guessed.
    let only_printed = ctx.trace.iter().all(|frame| frame.at.is_some()) && !report.backtraces.is_empty();
    if !ctx.trace.is_empty() && !only_printed {
        traces.heading("crashed thread", Vec::new());
        traces.frames(&ctx.trace, ctx.death.code_pid());
    }
    if only_printed {
        traces.printed(report, &[]);
    }
    for stack in stacks::all(ctx.case, ctx.symbols, &ctx.death) {
        traces.stack(&stack);
    }
    if !only_printed {
        traces.printed(report, &ctx.trace);
    }
    Table {
        slot: Slot::Backtrace,
        columns: COLUMNS,
        fields: &["function", "source", "trust", "whose"],
        rows: traces.rows,
        command: "kwab inspect DUMP --section bt,tasks",
        when_empty: "no backtrace: neither printed frames nor a stack to walk are in this dump".to_string(),
        summary: None,
        flame: None,
        left_out: 0,
    }
}

/// Rows as they are made.
struct Traces<'r, 'c, 'a> {
    ctx: &'r Context<'c, 'a>,
    rows: Vec<TableRow>,
    sources: SourceLines,
    with_code: usize,
    /// Whose trace the rows are of.
    whose: String,
    /// The process of each set of registers.
    owners: HashMap<RecordRef, Option<u32>>,
}

impl Traces<'_, '_, '_> {
    fn heading(&mut self, title: &str, links: Vec<Link>) {
        self.whose = title.to_string();
        let cells = [String::new(), String::new(), String::new(), title.to_string(), String::new()];
        let detail = vec![Line::of(Tone::Head, title)];
        self.rows.push(TableRow {
            row: Row::of(Tone::Head, cells),
            detail,
            links,
            values: vec![None, None, None, text(title)],
            ..TableRow::default()
        });
    }

    fn push(&mut self, frame: &Shown, code: Vec<Line>, links: Vec<Link>, at: Option<RecordRef>) {
        let addr = frame.addr.map(address).unwrap_or_default();
        let cells = [frame.index.clone(), frame.trust.clone(), addr, frame.name.clone(), frame.location.clone()];
        let tone = if frame.quiet { Tone::Dim } else { Tone::Code };
        let name = if frame.name.is_empty() { "no symbol is known here" } else { &frame.name };
        let mut detail = vec![Line::of(Tone::Head, name)];
        detail.extend(frame.addr.map(|addr| Line::field("address", address(addr))));
        if !frame.location.is_empty() {
            detail.push(Line::field("source", frame.location.clone()));
        }
        if !frame.trust.is_empty() {
            detail.push(Line::field("found by", trust_in_words(&frame.trust)));
        }
        detail.push(Line::field("stack of", self.whose.clone()));
        if code.is_empty() && frame.addr.is_some() {
            let why = "no code bytes in the dump and no image with them (--symbols PATH)";
            detail.push(Line::of(Tone::Dim, why));
        }
        detail.extend(code);
        self.rows.push(TableRow {
            row: Row::of(Tone::Plain, cells).tone(1, Tone::Dim).tone(3, tone).tone(4, Tone::Dim),
            detail,
            links,
            at,
            source: Some(frame.location.clone()).filter(|location| !location.is_empty()),
            values: vec![
                text(frame.name.clone()),
                text(frame.location.clone()),
                text(frame.trust.clone()),
                text(self.whose.clone()),
            ],
            alike: Some(shape(if frame.name.is_empty() { &frame.index } else { &frame.name })),
            ..TableRow::default()
        });
    }

    /// A stack that was walked or printed for a processor or a task.
    fn stack(&mut self, stack: &stacks::Stack) {
        const NAMED: usize = 4;
        let mut title = stack.owners.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        if let Some(more @ 1..) = stack.owners.len().checked_sub(NAMED) {
            title.push_str(&format!("; and {more} more like it"));
        }
        let pid = stack.at.and_then(|at| self.owners.get(&at).copied()).flatten();
        let tasks = stack.owners.iter().filter_map(|owner| {
            let (_, rest) = owner.split_once('[')?;
            let tid: u32 = rest.split_once(']')?.0.parse().ok()?;
            Some(Link::new(owner.clone(), self.task(tid, owner)))
        });
        let tasks = tasks.collect();
        self.heading(&title, tasks);
        self.frames(&stack.frames, pid.filter(|_| stack.user));
        if let Some(why) = stack.stopped.and_then(Stopped::in_words) {
            let shown = Shown { index: "…".to_string(), name: why, quiet: true, ..Shown::default() };
            self.push(&shown, Vec::new(), Vec::new(), None);
        }
    }

    /// The task of a thread. Idle threads of Linux share the number 0: of those the owner has the name.
    fn task(&self, tid: u32, owner: &str) -> Target {
        let named = |task: &&Located<Task<'_>>| owner.contains(&format!("{}[0]", of_bytes(task.comm)));
        let mut idle = self.ctx.case.tasks.iter().filter(|task| tid == 0 && task.tid == Some(0));
        idle.rfind(named).map_or(Target::Task(tid), |task| Target::Record(task.at))
    }

    fn frames(&mut self, frames: &[TraceFrame], pid: Option<u32>) {
        for (number, frame) in frames.iter().enumerate() {
            let space = Space::of(self.ctx.case, self.ctx.symbols, pid, &self.ctx.death);
            let mut links = vec![Link::new(format!("mapping of {:#x}", frame.ip), Target::Mapping(frame.ip))];
            if !space.bytes(frame.ip).is_empty() {
                links.insert(0, Link::new(format!("bytes at {:#x}", frame.ip), Target::Bytes(frame.ip)));
            }
            links.extend(frame.at.map(|at| Link::new(format!("record {at}"), Target::Record(at))));
            let code = self.code(frame, pid, &space);
            let shown = Shown {
                index: format!("#{number}"),
                trust: frame.trust.short().to_string(),
                addr: Some(frame.ip).filter(|ip| *ip != 0 || frame.at.is_none()),
                name: frame.name.clone().unwrap_or_default(),
                location: location(frame),
                quiet: frame.machinery,
            };
            self.push(&shown, code, links, frame.at);
            self.inlined(frame);
        }
    }

    /// What was inlined where a frame stands, below it, the outermost first.
    fn inlined(&mut self, frame: &TraceFrame) {
        let inlined = frame.functions.iter().take(frame.functions.len().saturating_sub(1));
        for inlined in inlined.rev().filter(|function| function.inlined) {
            let location = inlined.file.as_ref().map(|file| format!("{file}:{}", inlined.line.unwrap_or(0)));
            let shown = Shown {
                index: "└".to_string(),
                trust: INLINED.to_string(),
                name: format!("{} (inlined)", inlined.function.as_deref().unwrap_or("?")),
                location: location.unwrap_or_default(),
                quiet: true,
                ..Shown::default()
            };
            self.push(&shown, Vec::new(), Vec::new(), None);
        }
    }

    /// The source lines and the instructions of a frame.
    fn code(&mut self, frame: &TraceFrame, pid: Option<u32>, space: &Space<'_, '_>) -> Vec<Line> {
        self.with_code += 1;
        if self.with_code > WITH_CODE {
            return vec![Line::of(Tone::Dim, "code is shown beside the first 2,000 frames only")];
        }
        let mut lines = Vec::new();
        let mut doubts = BTreeSet::new();
        for function in &frame.functions {
            let (Some(file), Some(line)) = (&function.file, function.line) else { continue };
            if let Some(source) = self.sources.line(file, line, function.version) {
                lines.push(Line::of(Tone::Dim, format!("{line:>5}  ")).and(Tone::Plain, source.trim_end()));
            }
            doubts.extend(self.sources.doubt(file, function.version).map(|why| format!("{file} {why}")));
        }
        lines.extend(doubts.into_iter().map(|why| Line::of(Tone::Care, why)));
        lines.extend(disassembly(frame.ip, pid, space, self.ctx));
        lines
    }

    /// The traces as the kernel printed them, with what it guessed.
    fn printed(&mut self, report: &Report, shown: &[TraceFrame]) {
        let addresses = |trace: &Backtrace| -> Vec<Option<u64>> {
            let frames = trace.frames.iter().map(|frame| frame.addr.as_ref());
            frames.map(|addr| kwab::report::filter::number(addr?)).collect()
        };
        let is_shown = |addr: &Option<u64>| addr.is_some_and(|addr| shown.iter().any(|frame| frame.ip == addr));
        // A trace that tells nothing but what was walked is not told twice.
        for trace in report.backtraces.iter().filter(|trace| !addresses(trace).iter().all(is_shown)) {
            self.heading(&format!("{}, as printed", trace.title), Vec::new());
            for frame in &trace.frames {
                let addr = frame.addr.as_ref().and_then(|addr| kwab::report::filter::number(addr));
                let shown = Shown {
                    index: format!("#{}", frame.index),
                    trust: short(&frame.trust).to_string(),
                    addr,
                    name: frame.symbol.clone(),
                    location: frame.place.clone().unwrap_or_default(),
                    quiet: frame.trust == "scan",
                };
                let bytes = addr.map(|addr| Link::new(format!("bytes at {addr:#x}"), Target::Bytes(addr)));
                self.push(&shown, Vec::new(), bytes.into_iter().collect(), None);
            }
        }
    }
}

/// Where the physical frame's own function stands: the outermost of those at its address.
fn location(frame: &TraceFrame) -> String {
    let own = frame.functions.last().filter(|_| frame.functions.len() > 1);
    let own = own.and_then(|own| Some(format!("{}:{}", own.file.as_ref()?, own.line?)));
    own.or_else(|| frame.source.clone()).unwrap_or_default()
}

/// A frame as it is shown.
#[derive(Default)]
struct Shown {
    index: String,
    trust: String,
    addr: Option<u64>,
    name: String,
    location: String,
    quiet: bool,
}

/// The instructions around an address, from captured bytes or from the image.
fn disassembly(ip: u64, pid: Option<u32>, space: &Space<'_, '_>, ctx: &Context<'_, '_>) -> Vec<Line> {
    let start = ip.saturating_sub(48);
    let (start, bytes) = match space.memory_at(ip) {
        Some((memory, skip)) => {
            let from = skip.saturating_sub(48);
            let bytes = memory.bytes.unwrap_or_default();
            (ip - (skip - from) as u64, bytes[from..bytes.len().min(skip + 64)].to_vec())
        }
        None => {
            let mut bytes = vec![0; 112];
            let found = ctx.symbols.read(start, pid, &mut bytes);
            bytes.truncate(found);
            (start, bytes)
        }
    };
    let at_death = ctx.death.ip == Some(ip) && pid == ctx.death.code_pid();
    let decoded = if at_death {
        around(&bytes, start, ip, AROUND.0, AROUND.1, space)
    } else {
        around(&bytes, start, ip, AROUND.0, AROUND.1, &NoValues)
    };
    let lines = decoded.iter().map(|instruction| {
        let here = instruction.addr == ip;
        let mark = if here { "▶" } else { " " };
        let hex: Vec<String> = instruction.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let tone = if here { Tone::Alarm } else { Tone::Code };
        let line = Line::of(if here { Tone::Alarm } else { Tone::Dim }, format!("{mark} {:x}: ", instruction.addr));
        let line = line.and(tone, format!("{:<28}", instruction.text));
        let line = line.and_spare(Tone::Dim, format!("  {}", hex.join(" ")));
        let said = if here && at_death { instruction.explain() } else { String::new() };
        if said.is_empty() { line } else { line.and(Tone::Care, format!("  {said}")) }
    });
    lines.collect()
}

/// Registers of outer frames are not those of the death.
struct NoValues;

impl Values for NoValues {
    fn register(&self, _number: u16) -> Option<u64> {
        None
    }

    fn word(&self, _addr: u64) -> Option<u64> {
        None
    }
}

/// What a report calls a way to find a frame, as short as in walked traces.
fn short(trust: &str) -> &str {
    Trust::of_name(trust).map_or(trust, |known| known.short())
}

/// The way in the words that reports have for it.
fn trust_in_words(short: &str) -> String {
    match Trust::ALL.into_iter().find(|trust| trust.short() == short) {
        Some(trust) if trust.name() == trust.about() => trust.name().to_string(),
        Some(trust) => format!("{}: {}", trust.name(), trust.about()),
        None if short == INLINED => "inlined into the frame above, from the debug information".to_string(),
        None => short.to_string(),
    }
}

/// The word of a frame that was inlined.
const INLINED: &str = "inl";
