//! Receives what the scanner finds, decides which dump it belongs to, and counts everything.
//!
//! The rule of segments: the log is cut behind the last sign of one crash (the exit of its process, or the end of its
//! boot) and before the first sign of the next. A segment in which no crash comes is given back to the one before it, so
//! a log with crashes has exactly as many dumps as crashes; a log without any is one recording. Until that is known,
//! two segments are open at most.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use kwab_format::SectionKind;
use kwab_format::armour::Chunk;
use kwab_format::record::{
    CauseKind, CrashReport, FrameTrust, Note, NoteKind, Panic, ProcessExit, Signal, Stamp, Text, TextKind,
};
use kwab_format::wire::RecordType;

use super::assemble::Assembly;
use super::boot::BootFacts;
use super::crash::{Crash, Victim};
use super::event::{EventKind, EventSink, Notable, Notice};
use super::pending::{Keeper, PendingDump};
use super::scan::{LogSink, Place};
use super::segment::Segment;
use super::summary::{ImportReport, Loss, SCHEMA};
use super::text::{Location, announces_death, clean, kernel, linux};
use super::watch::Watch;

/// Losses that the report names one by one.
const NAMED_LOSSES: usize = 16;
/// Processes whose names and last faults are remembered.
const REMEMBERED: usize = 4096;

/// What is known about the last fault of a process.
#[derive(Debug, Clone, Default)]
struct Fault {
    ip: Option<u64>,
    address: Option<u64>,
    exception: Option<Vec<u8>>,
    line: u64,
}

/// The importer behind the scanner.
#[derive(Debug)]
pub struct Recorder {
    folder: Option<PathBuf>,
    source: String,
    dump_seed: u64,
    current: Segment,
    held: Option<Segment>,
    done: Vec<PendingDump>,
    keeper: Keeper,
    boot: BootFacts,
    boot_starts: u64,
    watch: Watch,
    /// Whether the text so far ended inside a line.
    fragment: bool,
    place: Place,
    programs: HashMap<u32, Vec<u8>>,
    faults: HashMap<u32, Fault>,
    counts: [u64; EventKind::ALL.len()],
    hex_seen: bool,
    json_seen: bool,
    linux_seen: bool,
    report: ImportReport,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Starts with an empty log. Dumps grow in `folder`; without one, nothing is written.
    ///
    /// # Errors
    /// When the first temporary file cannot be made.
    pub fn new(folder: Option<PathBuf>, source: &str, dump_seed: u64) -> io::Result<Self> {
        let boot = BootFacts::first();
        let place = Place { offset: 0, line: 1 };
        let current = Segment::new(folder.as_deref(), dump_seed, boot.clone(), place)?;
        Ok(Self {
            folder,
            source: source.to_string(),
            dump_seed,
            current,
            held: None,
            done: Vec::new(),
            keeper: Keeper::default(),
            boot,
            boot_starts: 1,
            watch: Watch::default(),
            fragment: false,
            place,
            programs: HashMap::new(),
            faults: HashMap::new(),
            counts: [0; EventKind::ALL.len()],
            hex_seen: false,
            json_seen: false,
            linux_seen: false,
            report: ImportReport { schema: SCHEMA, source: source.to_string(), ..ImportReport::default() },
            failed: None,
        })
    }

    /// The first failure so far.
    ///
    /// # Errors
    /// That failure.
    pub fn check(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.current.out.check(),
        }
    }

    /// Closes everything; `end` is where the log ends.
    ///
    /// # Errors
    /// Those of the files.
    pub fn finish(mut self, end: Place) -> io::Result<(ImportReport, Vec<PendingDump>)> {
        self.place = end;
        self.check()?;
        let dialect = self.dialect_name();
        let boot = self.boot.clone();
        let mut last = self.current;
        if last.crash.is_none() && self.held.is_none() {
            last.boot = boot;
            let finished = last.finish(0, &self.source, end, dialect)?;
            self.done.push(self.keeper.dump(finished, self.folder.as_deref())?);
        } else {
            if let Some(mut held) = self.held.take() {
                held.absorb(last)?;
                last = held;
            } else {
                last.boot = boot;
            }
            let number = self.done.len() as u32 + 1;
            let finished = last.finish(number, &self.source, end, dialect)?;
            self.done.push(self.keeper.dump(finished, self.folder.as_deref())?);
        }
        let mut report = self.report;
        report.bytes = end.offset;
        report.lines = end.line.saturating_sub(1);
        report.boots = self.boot.number;
        for (kind, count) in EventKind::ALL.iter().zip(self.counts) {
            if *kind != EventKind::Other && count > 0 {
                report.events_by_type.insert(kind.name().to_string(), count);
            }
        }
        report.events = self.counts.iter().sum();
        report.unknown_events = self.counts[EventKind::Other as usize];
        let mut first_of: HashMap<String, u32> = HashMap::new();
        for dump in self.done.iter_mut().filter(|dump| dump.summary.number > 0) {
            let number = dump.summary.number;
            let first = *first_of.entry(dump.summary.signature.clone()).or_insert(number);
            dump.summary.same_as = (first != number).then_some(first);
        }
        if self.done.iter().any(|dump| dump.summary.kind == "panic") {
            report.unexplained = None;
        }
        report.dumps = self.done.iter().map(|dump| dump.summary.clone()).collect();
        Ok((report, self.done))
    }

    fn dialect_name(&self) -> &'static str {
        match (self.hex_seen, self.json_seen, self.linux_seen) {
            (true, true, _) => "dbg-hex, dbg-json",
            (true, false, _) => "dbg-hex",
            (false, true, _) => "dbg-json",
            (false, false, true) => "linux",
            (false, false, false) => "text",
        }
    }

    /// Whatever fails while segments change is told at the next check.
    fn attempt(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
        }
    }

    /// A death is announced: it belongs to the crash at hand, or a new segment begins.
    fn alarm(&mut self, victim: Victim, kind: CauseKind, place: Place) {
        if let Some(crash) = &mut self.current.crash {
            if crash.is_same(victim) {
                // A panic says more than the fault before it, but the fault is the cause.
                if victim == Victim::Kernel && matches!(crash.kind, CauseKind::HUNG_TASK | CauseKind::SOFT_LOCKUP) {
                    crash.kind = kind;
                }
                return;
            }
            if victim == Victim::Kernel && crash.victim == Victim::Process(1) && !self.kernel_alarm_is_own(kind) {
                return;
            }
            let outcome = self.next_segment(place, true);
            self.attempt(outcome);
        }
        let mut crash = Crash::new(victim, kind, place);
        if let Victim::Process(pid) = victim {
            crash.comm = self.programs.get(&pid).cloned();
            if let Some(fault) = self.faults.get(&pid).filter(|fault| place.line - fault.line.min(place.line) <= 64) {
                crash.ip = fault.ip;
                crash.fault_addr = fault.address;
                crash.exception.clone_from(&fault.exception);
            }
        }
        self.current.crash = Some(crash);
        self.current.boot = self.boot.clone();
        // The segment that was held cannot be given anything back any more.
        if let Some(held) = self.held.take() {
            let outcome = self.finish_segment(held, self.current.start);
            self.attempt(outcome);
        }
    }

    /// Whether a kernel alarm behind the death of init is a death of its own. Linux panics because init died.
    fn kernel_alarm_is_own(&self, kind: CauseKind) -> bool {
        kind != CauseKind::PANIC
    }

    fn finish_segment(&mut self, segment: Segment, end: Place) -> io::Result<()> {
        let number = self.done.len() as u32 + 1;
        let dialect = self.dialect_name();
        let finished = segment.finish(number, &self.source, end, dialect)?;
        self.done.push(self.keeper.dump(finished, self.folder.as_deref())?);
        Ok(())
    }

    /// Begins a new segment at `place`; the current one, which has a crash, waits for what may be given back to it.
    fn next_segment(&mut self, place: Place, same_boot: bool) -> io::Result<()> {
        if let Some(held) = self.held.take() {
            self.finish_segment(held, self.current.start)?;
        }
        let id = self.dump_seed.wrapping_add((self.done.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut next = Segment::new(self.folder.as_deref(), id, self.boot.clone(), place)?;
        if same_boot {
            next.begin_with_context(&self.current.out, self.boot_starts);
        }
        self.held = Some(std::mem::replace(&mut self.current, next));
        Ok(())
    }

    #[cold]
    fn new_boot(&mut self, place: Place) {
        self.boot = self.boot.next();
        self.boot_starts = place.line;
        self.programs.clear();
        self.faults.clear();
        if self.current.crash.is_some() {
            let outcome = self.next_segment(place, false);
            self.attempt(outcome);
        }
        let text = format!("boot {} begins at line {}", self.boot.number, place.line);
        let stamp = Stamp { line: Some(place.line), offset: Some(place.offset), ..Stamp::default() };
        let note = Note { kind: Some(NoteKind::INFERRED), text: Some(text.as_bytes()), stamp, ..Note::default() };
        self.current.out.put(SectionKind::NOTES, &note);
    }

    fn remember_fault(&mut self, pid: u32, fault: Fault) {
        if self.faults.len() >= REMEMBERED {
            self.faults.clear();
        }
        self.faults.insert(pid, fault);
    }

    /// The rare events that mean something for crashes.
    #[cold]
    fn notice(&mut self, notice: Notice<'_, '_>, stamp: &Stamp<'_>) {
        let place = Place { offset: self.place.offset, line: stamp.line.unwrap_or(self.place.line) };
        match notice {
            Notice::None => {}
            Notice::Signal(signal) => self.signal(signal, place),
            Notice::CrashReport(report) => self.crash_report(report, place),
            Notice::Panic(panic) => self.panic_event(panic, place),
            Notice::PageFault(fault) => {
                let address = fault.vaddr;
                let exception = Some(b"page fault".to_vec());
                let fault_of = Fault { ip: fault.ip, address, exception, line: place.line };
                self.remember_fault(fault.pid.unwrap_or(0), fault_of);
            }
            Notice::UserFault(fault) => {
                let pid = fault.pid.unwrap_or(0);
                let known = self.faults.get(&pid).and_then(|known| known.address);
                let exception = fault.exception.map(<[u8]>::to_vec);
                let address = fault.fault_addr.or(known);
                self.remember_fault(pid, Fault { ip: fault.ip, address, exception, line: place.line });
            }
            Notice::Exec(exec) => {
                if let (Some(pid), Some(argv0)) = (exec.pid, exec.argv0) {
                    if self.programs.len() >= REMEMBERED {
                        self.programs.clear();
                    }
                    self.programs.insert(pid, argv0.to_vec());
                }
            }
            Notice::Fork(fork) => {
                if let (Some(parent), Some(child)) = (fork.parent_pid, fork.child_pid) {
                    self.faults.remove(&child);
                    match self.programs.get(&parent).cloned() {
                        Some(program) => self.programs.insert(child, program),
                        None => self.programs.remove(&child),
                    };
                }
            }
            Notice::Exit(exit) => self.process_exit(exit, place),
            Notice::Unimplemented(call) => {
                let name = call.name.unwrap_or_default();
                self.current.unimplemented(call.nr.unwrap_or(-1), name, call.pid.unwrap_or(0), place);
            }
            Notice::Clock(hz) => self.boot.tsc_hz = hz.or(self.boot.tsc_hz),
        }
    }

    fn signal(&mut self, signal: &Signal<'_>, place: Place) {
        let number = signal.signal.unwrap_or(0);
        let ends = signal.action.is_some_and(|action| matches!(action, b"terminate" | b"core" | b"coredump" | b"kill"));
        let Some(pid) = signal.pid.filter(|_| ends) else { return };
        let name = signal.signal_name.map_or_else(|| signal_name(number), <[u8]>::to_vec);
        if !Crash::is_fatal_signal(number) {
            let text = format!("pid {pid} was ended by {} ({number}); not a crash", String::from_utf8_lossy(&name));
            self.current.remark(place, text);
            return;
        }
        self.alarm(Victim::Process(pid), CauseKind::FATAL_SIGNAL, place);
        let Some(crash) = &mut self.current.crash else { return };
        crash.signal.get_or_insert((u32::try_from(number).unwrap_or(0), name));
        // Some kernels send the signal before they know the instruction, and print 0.
        crash.ip = crash.ip.or(signal.ip.filter(|ip| *ip != 0));
        crash.ns = crash.ns.or(signal.stamp.ns);
        crash.cpu = crash.cpu.or(signal.stamp.cpu);
    }

    fn crash_report(&mut self, report: &CrashReport<'_>, place: Place) {
        let pid = report.pid.unwrap_or(0);
        self.alarm(Victim::Process(pid), CauseKind::FATAL_SIGNAL, place);
        let Some(crash) = &mut self.current.crash else { return };
        crash.reported = true;
        if let Some(number) = report.signal {
            let name = report.signal_name.map_or_else(|| signal_name(number), <[u8]>::to_vec);
            crash.signal = Some((u32::try_from(number).unwrap_or(0), name));
        }
        crash.signal_code = report.signal_code;
        crash.tid = report.tid;
        crash.fault_addr = report.fault_addr.or(crash.fault_addr);
        crash.ip = report.ip.or(crash.ip);
        crash.ns = crash.ns.or(report.stamp.ns);
        crash.cpu = crash.cpu.or(report.stamp.cpu);
        if let Some(cmdline) = report.cmdline {
            Crash::say(&mut crash.cmdline, cmdline, true);
        }
        let rsp = |reg: &kwab_format::record::Reg<'_>| reg.id == Some(kwab_format::record::RegId::RSP);
        crash.sp = report.regs.and_then(|regs| regs.iter().find(rsp)).and_then(|reg| reg.value).or(crash.sp);
    }

    fn panic_event(&mut self, panic: &Panic<'_>, place: Place) {
        self.alarm(Victim::Kernel, CauseKind::PANIC, place);
        let Some(crash) = &mut self.current.crash else { return };
        crash.ns = crash.ns.or(panic.stamp.ns);
        crash.cpu = crash.cpu.or(panic.stamp.cpu);
        if let Some(message) = panic.message {
            Crash::say(&mut crash.message, message, true);
        }
        if let (Some(file), Some(line)) = (panic.file, panic.source_line) {
            crash.source.get_or_insert((file.to_vec(), line));
        }
        let trace = crash.traces();
        for frame in panic.backtrace.iter().flat_map(kwab_format::List::iter) {
            let at = frame.sym.map(|symbol| Location {
                symbol: symbol.trim_ascii(),
                offset: frame.off.unwrap_or(0),
                size: None,
                module: None,
            });
            crash.frame(trace, frame.addr, at, FrameTrust::PRINTED, place);
        }
    }

    fn process_exit(&mut self, exit: &ProcessExit<'_>, place: Place) {
        let Some(pid) = exit.pid else { return };
        let died = self.current.crash.as_ref().is_some_and(|crash| crash.is_same(Victim::Process(pid)));
        if !died && exit.by_signal == Some(true) {
            let status = exit.status.unwrap_or(0);
            let number = if status > 128 { status - 128 } else { status & 0x7f };
            if Crash::is_fatal_signal(number) {
                self.alarm(Victim::Process(pid), CauseKind::FATAL_SIGNAL, place);
                if let Some(crash) = &mut self.current.crash {
                    crash.signal.get_or_insert((number as u32, signal_name(number)));
                }
            }
        }
    }

    /// The exit of the process that crashed is the last thing that belongs to its crash.
    #[cold]
    fn after_exit(&mut self, exit: &ProcessExit<'_>) {
        let Some(pid) = exit.pid else { return };
        let Some(crash) = &mut self.current.crash else { return };
        if crash.is_same(Victim::Process(pid)) {
            crash.closed = true;
            let outcome = self.next_segment(Place { line: self.place.line + 1, ..self.place }, true);
            self.attempt(outcome);
        }
    }

    /// What a console line says before it is recorded: a new boot, a death, a fault.
    fn read_line(&mut self, text: &[u8], place: Place) {
        if self.boot.line(text) {
            self.new_boot(place);
            self.boot.line(text);
        }
        if let Some(init) = self.boot.init.as_ref().filter(|_| !self.programs.contains_key(&1)) {
            self.programs.insert(1, init.clone());
        }
        if let Some(notice) = kernel::fault_notice(text) {
            let exception = self.faults.get(&notice.pid).and_then(|fault| fault.exception.clone());
            let fault = Fault { ip: Some(notice.ip), address: notice.address, exception, line: place.line };
            self.remember_fault(notice.pid, fault);
        }
        if let Some(alarm) = self.watch.alarm(text) {
            let by_init = matches!(linux::alarm(text), Some(linux::Alarm::Panic(message)) if message.starts_with(b"Attempted to kill init"));
            let init_died = |crash: &Crash| crash.victim == Victim::Process(1);
            if !(by_init && self.current.crash.as_ref().is_some_and(init_died)) {
                self.alarm(alarm.victim, alarm.kind, place);
            }
        }
    }
}

/// The name of a signal by its number.
fn signal_name(number: i64) -> Vec<u8> {
    let signal = u64::try_from(number).ok().and_then(linux_abi::Signal::new);
    signal.map_or_else(|| format!("signal {number}"), |signal| signal.to_string()).into_bytes()
}

impl EventSink for Recorder {
    #[inline(always)]
    fn event<'a, T: RecordType<'a> + Notable<'a>>(&mut self, kind: EventKind, record: &T) {
        let stamp = record.stamp();
        if self.boot.is_new_boot(stamp) {
            self.new_boot(Place { line: stamp.line.unwrap_or(self.place.line), ..self.place });
            self.boot.is_new_boot(stamp);
        }
        let notice = record.notice();
        if !matches!(notice, Notice::None) {
            self.notice(notice, stamp);
        }
        self.counts[kind as usize] += 1;
        self.current.events += 1;
        self.current.out.put(T::SECTION, record);
        if let Notice::Exit(exit) = notice {
            self.after_exit(exit);
        }
    }
}

impl LogSink for Recorder {
    fn line(&mut self, place: Place) {
        self.place = place;
    }

    fn dialect(&mut self, json: bool) {
        if json {
            self.json_seen = true;
        } else {
            self.hex_seen = true;
        }
    }

    fn text(&mut self, bytes: &[u8], place: Place, ends_line: bool) {
        let cleaned = clean(bytes);
        let text = cleaned.as_deref().unwrap_or(bytes);
        let (ns, text) = match linux::timestamp(text) {
            Some((ns, text)) => (Some(ns), text),
            None => (None, text),
        };
        self.linux_seen |= ns.is_some();
        self.report.text_lines += u64::from(!self.fragment);
        self.fragment = !ends_line;
        self.read_line(text, place);
        let segment = &mut self.current;
        let kind = self.watch.learn(text, ns, place, segment.crash.as_mut(), &mut segment.out);
        if segment.crash.is_none() && self.report.unexplained.is_none() && announces_death(text) {
            self.report.unexplained = Some(Loss {
                kind: "death".to_string(),
                line: place.line,
                offset: place.offset,
                problem: String::from_utf8_lossy(&text[..text.len().min(200)]).into_owned(),
            });
        }
        let stamp = Stamp { ns, line: Some(place.line), ..Stamp::default() };
        let record = Text {
            kind: Some(kind),
            bytes: Some(bytes),
            continues: (!ends_line).then_some(true),
            stamp,
            ..Text::default()
        };
        segment.out.put(SectionKind::LOG, &record);
    }

    fn lost(&mut self, kind: TextKind, bytes: &[u8], place: Place, problem: &str) {
        let name = kind.name().unwrap_or("unknown");
        let losses = &mut self.report.not_understood;
        losses.count += 1;
        *losses.by_kind.entry(name.to_string()).or_default() += 1;
        if losses.first.len() < NAMED_LOSSES {
            losses.first.push(Loss {
                kind: name.to_string(),
                line: place.line,
                offset: place.offset,
                problem: problem.to_string(),
            });
        }
        let stamp = Stamp { line: Some(place.line), offset: Some(place.offset), ..Stamp::default() };
        let record =
            Text { kind: Some(kind), bytes: Some(bytes), problem: Some(problem.as_bytes()), stamp, ..Text::default() };
        self.current.out.put(SectionKind::KEPT, &record);
    }

    fn rejoined(&mut self) {
        self.report.rejoined += 1;
    }

    fn armour(&mut self, chunk: &Chunk) {
        let current = self.current.assembly.as_mut().filter(|assembly| assembly.dump == chunk.dump);
        let held =
            self.held.as_mut().and_then(|held| held.assembly.as_mut()).filter(|assembly| assembly.dump == chunk.dump);
        if let Some(assembly) = current.or(held) {
            assembly.add(chunk);
            return;
        }
        if self.current.assembly.is_some() {
            // Another dump: the kernel crashed again, or printed the next process.
            let place = self.place;
            let outcome = self.next_segment(place, true);
            self.attempt(outcome);
        }
        self.start_assembly(chunk);
    }
}

impl Recorder {
    /// A dump begins on the console. It tells about the death at hand, or the one just behind, or one of its own.
    fn start_assembly(&mut self, chunk: &Chunk) {
        let assembly = match Assembly::new(chunk) {
            Ok(assembly) => assembly,
            Err(error) => return self.attempt(Err(error)),
        };
        let just_ended = |held: &&mut Segment| held.crash.is_some() && held.assembly.is_none();
        match self.held.as_mut().filter(just_ended) {
            Some(held) if self.current.crash.is_none() && self.current.events < SOON => held.assembly = Some(assembly),
            _ => {
                if self.current.crash.is_none() {
                    let place = self.place;
                    self.alarm(Victim::Kernel, CauseKind::PANIC, place);
                }
                self.current.assembly = Some(assembly);
            }
        }
    }
}

/// Events within which a dump on the console still belongs to the process that has just exited.
const SOON: u64 = 16;
