//! Finds the crashes of a log: the fourth stage of an import pulls items and gives a segment per crash.
//!
//! Everything is recorded in the segment it belongs to ([`Segments`]). On the way, the rare events that mean something
//! for a death and the lines of console text ([`ConsoleParser`]) add to the crash at hand.

use std::io::{self, Read};

use kwab_format::SectionKind;
use kwab_format::armour::Chunk;
use kwab_format::record::{
    CauseKind, CrashReport, FrameTrust, Panic, ProcessExit, Reg, RegId, Signal, Stamp, Text, TextKind,
};

use super::ImportError;
use super::boot::BootFacts;
use super::console::ConsoleParser;
use super::crash::{Crash, Victim, cause_kind};
use super::event::{Event, EventRecord, EventSlot, ListedEvent, with_record};
use super::events::Events;
use super::item::LogItem;
use super::lines::LogPosition;
use super::parity::rows_in;
use super::pending::PendingDump;
use super::processes::Processes;
use super::quiet::{Meaning, Quiet};
use super::reported::{Heard, Reported};
use super::reports::Report;
use super::reports::dialect::Dialects;
use super::segments::{ClosedSegment, Segments};
use super::summary::ImportReport;
use super::tally::Tally;
use super::text::{Location, announces_death, clean, kernel, linux};

/// Bytes of the log between two looks at the output, and two calls of `progress`.
const CHECK_EVERY: u64 = 4 << 20;

/// The crashes of a log, in its order; or one recording when there is none.
#[derive(Debug)]
pub struct Crashes<R> {
    events: Events<R>,
    follower: Follower,
    next_check: u64,
    ended: bool,
}

impl<R: Read> Crashes<R> {
    /// Reads `events`; the crashes are recorded in `segments`, everything is counted in `tally`, and
    /// reports in console text are those of `dialects`.
    pub fn new(events: Events<R>, segments: Segments, tally: Tally, dialects: Dialects) -> Self {
        let (console, processes, reported) = (ConsoleParser::default(), Processes::default(), Reported::new(dialects));
        let follower = Follower {
            segments,
            tally,
            console,
            processes,
            reported,
            quiet: Quiet::default(),
            is_linux: false,
            releases: Vec::new(),
            whole: true,
        };
        Self { events, follower, next_check: 0, ended: false }
    }

    /// As [`Crashes::new`], in the middle of a log: `processes` is what it has said about processes before.
    pub fn starting_with(
        events: Events<R>,
        segments: Segments,
        tally: Tally,
        dialects: Dialects,
        processes: Processes,
    ) -> Self {
        let mut crashes = Self::new(events, segments, tally, dialects);
        crashes.follower.processes = processes;
        crashes.follower.whole = false;
        crashes
    }

    /// Reads on until a segment is closed; `None` at the end. `progress` hears the offset now and then.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn next_segment(&mut self, progress: &mut dyn FnMut(u64)) -> Result<Option<ClosedSegment>, ImportError> {
        loop {
            if let Some(closed) = self.follower.segments.next_closed() {
                return Ok(Some(closed));
            }
            if self.ended {
                return Ok(None);
            }
            self.read_on(progress)?;
        }
    }

    /// Reads until the next check, a closed segment, or the end.
    fn read_on(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), ImportError> {
        let follower = &mut self.follower;
        loop {
            let offset = self.events.end().offset;
            if offset >= self.next_check {
                follower.segments.current().out.check().map_err(ImportError::Write)?;
                progress(offset);
                let ahead = self.events.look_ahead().map_err(|error| ImportError::Read { offset, error })?;
                follower.quiet.sample(ahead, offset);
                self.next_check = offset + CHECK_EVERY;
            }
            let mut slot = EventSlot::default();
            match self.events.next_item(&mut slot) {
                Ok(Some(LogItem::Event { line })) => follower.event(&slot, line).map_err(ImportError::Write)?,
                Ok(Some(item)) => follower.other(item).map_err(ImportError::Write)?,
                Ok(None) => break,
                Err(error) => return Err(ImportError::Read { offset: self.events.end().offset, error }),
            }
            if follower.segments.has_closed() {
                return Ok(());
            }
        }
        let end = self.events.end();
        progress(end.offset);
        self.ended = true;
        follower.end_reports().map_err(ImportError::Write)?;
        follower.segments.current().out.check().map_err(ImportError::Write)?;
        follower.segments.finish(end).map_err(ImportError::Write)
    }

    /// Reads what there is of a log that grows: an input that would block
    /// ([`WouldBlock`](io::ErrorKind::WouldBlock)) ends this call and not the log. Says how many crashes were closed.
    ///
    /// # Errors
    /// [`ImportError`].
    pub fn read_available(&mut self) -> Result<u32, ImportError> {
        let mut closed = 0;
        let blocked = loop {
            let read = self.read_on(&mut |_offset| ());
            while let Some(segment) = self.follower.segments.next_closed() {
                closed += u32::from(segment.number > 0);
            }
            if self.ended || read.is_err() {
                break read;
            }
        };
        match blocked {
            Err(ImportError::Read { error, .. }) if error.kind() == io::ErrorKind::WouldBlock => Ok(closed),
            other => other.map(|()| closed),
        }
    }

    /// How far the crashes of a log that grows have come.
    pub fn progress(&self) -> Progress {
        let Follower { segments, console, reported, .. } = &self.follower;
        let (in_report, last_line) = reported.reading();
        let reading = in_report || console.is_in_own_block();
        let armour_lines = segments.armour_lines();
        let mut progress = Progress { open: 0, complete: true, reading, last_line, armour_lines };
        for crash in segments.open_crashes() {
            progress.open += 1;
            progress.complete &= crash.closed || crash.victim == Victim::Kernel;
        }
        progress
    }

    /// What a part of the log that begins here must know of what came before.
    pub fn bookmark(&mut self) -> Bookmark {
        let Follower { segments, processes, .. } = &mut self.follower;
        Bookmark { position: self.events.end(), boot: segments.boot().clone(), processes: processes.clone() }
    }

    /// Forgets the crashes so far, so that what follows is another one; the boot and its processes stay.
    ///
    /// # Errors
    /// When a temporary file cannot be made.
    pub fn begin_again(&mut self) -> Result<(), ImportError> {
        let position = self.events.end();
        let reported = &mut self.follower.reported;
        reported.finish();
        while reported.next_report().is_some() {}
        reported.begin_boot();
        self.follower.segments.begin_again(position).map_err(ImportError::Write)
    }

    /// What the log has been written in, as far as it has been read.
    pub fn dialect(&self) -> &'static str {
        let seen = self.events.spellings();
        match (seen.bare, seen.quoted, self.follower.tally.linux_seen()) {
            (true, true, _) => "dbg-hex, dbg-json",
            (true, false, _) => "dbg-hex",
            (false, true, _) => "dbg-json",
            (false, false, true) => "linux",
            (false, false, false) => "text",
        }
    }

    /// The report of a log that has been read to its end.
    pub fn report(mut self, dumps: &mut [PendingDump]) -> ImportReport {
        let boots = self.follower.segments.boot().number;
        self.follower.tally.report(self.events.end(), boots, self.events.rejoined(), dumps)
    }
}

/// How far the crashes of a log that grows have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Crashes to which something may still belong.
    pub open: u32,
    /// Whether each of them has had its last sign: the exit of its process, or the end of the kernel's report.
    pub complete: bool,
    /// Whether the last line was inside a report that has not ended.
    pub reading: bool,
    /// The last line that belongs to a report which has ended or not.
    pub last_line: Option<u64>,
    /// Lines of the dump that a kernel prints right now.
    pub armour_lines: u64,
}

/// A place in a log, and what is known there.
#[derive(Debug, Clone, Default)]
pub struct Bookmark {
    /// Where it is in the log.
    pub position: LogPosition,
    /// The boot that the log is in.
    pub boot: BootFacts,
    /// What it has said about processes.
    pub processes: Processes,
}

/// What is known while the items of a log go by.
#[derive(Debug)]
struct Follower {
    segments: Segments,
    tally: Tally,
    console: ConsoleParser,
    processes: Processes,
    reported: Reported,
    quiet: Quiet,
    /// Whether a kernel of the log is Linux.
    is_linux: bool,
    /// The versions that banners of Linux have named.
    releases: Vec<Vec<u8>>,
    /// Whether the log is read from its beginning, so that all its banners are known.
    whole: bool,
}

impl Follower {
    /// Takes an event.
    #[inline(always)]
    fn event(&mut self, event: &EventSlot<'_>, line: LogPosition) -> io::Result<()> {
        with_record!(event, record => self.record(event, record, line), else Ok(()))
    }

    /// Records an event; an exit closes the crash of its process behind itself.
    #[inline(always)]
    fn record<'a, T: EventRecord<'a>>(
        &mut self,
        event: &EventSlot<'_>,
        record: &T,
        line: LogPosition,
    ) -> io::Result<()> {
        let stamp = record.stamp();
        if self.segments.boot().is_new_boot(stamp) {
            self.begin_boot(LogPosition { line: stamp.line.unwrap_or(line.line), ..line })?;
            self.segments.boot().is_new_boot(stamp);
        }
        let is_interpreted = record.is_interpreted();
        if is_interpreted {
            self.interpret(event, LogPosition { line: stamp.line.unwrap_or(line.line), ..line })?;
        }
        self.tally.event(T::EVENT);
        let segment = self.segments.current();
        segment.events += 1;
        segment.out.put(T::SECTION, record);
        match &event.plain {
            Some(Event::ProcessExit(ProcessExit { pid: Some(pid), .. })) if is_interpreted => {
                self.segments.exited(*pid, line)
            }
            _ => Ok(()),
        }
    }

    /// Takes an item that is not an event.
    fn other(&mut self, item: LogItem<'_>) -> io::Result<()> {
        match item {
            LogItem::Text { bytes, .. } if self.segments.has_armour() && self.parity(bytes) => Ok(()),
            LogItem::Text { bytes, ahead, position, ends_line } => self.text(bytes, ahead, position, ends_line),
            LogItem::Armour { chunk, line } => self.armour(chunk, line),
            LogItem::Lost { kind, bytes, position, problem } => {
                if kind == TextKind::ARMOUR && !self.segments.add_lost(bytes) {
                    self.segments.keep_damaged(bytes);
                }
                self.lost(kind, bytes, position, problem);
                Ok(())
            }
            LogItem::Event { .. } | LogItem::Nothing => Ok(()),
        }
    }

    #[inline]
    fn text(&mut self, bytes: &[u8], ahead: &[u8], position: LogPosition, ends_line: bool) -> io::Result<()> {
        let meaning = self.meaning(bytes, ahead, position.offset);
        if meaning == Meaning::Any {
            return self.telling_text(bytes, position, ends_line);
        }
        let text = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let stamped = linux::timestamp(text);
        if meaning == Meaning::Fact && self.segments.boot().line(stamped.map_or(text, |(_, text)| text)) {
            // It begins a boot.
            return self.telling_text(bytes, position, ends_line);
        }
        debug_assert!(
            self.says_nothing(bytes, meaning, position),
            "a quiet line says something: {:?}",
            String::from_utf8_lossy(bytes)
        );
        let ns = stamped.map(|(ns, _)| ns);
        self.tally.text(ends_line, ns.is_some());
        self.record_text(TextKind::CONSOLE, bytes, ns, position, ends_line);
        Ok(())
    }

    /// What a line may mean; anything while a reader is in the middle of something.
    #[inline]
    fn meaning(&mut self, bytes: &[u8], ahead: &[u8], offset: u64) -> Meaning {
        let idle = self.reported.idle().filter(|_| self.console.is_idle() && self.segments.current().crash.is_none());
        idle.map_or(Meaning::Any, |recogniser| self.quiet.meaning(bytes, ahead, offset, recogniser))
    }

    /// Whether the readers of console text agree that a line is quiet, that of boots only if it tells it no fact.
    fn says_nothing(&mut self, bytes: &[u8], meaning: Meaning, position: LogPosition) -> bool {
        let cleaned = clean(bytes);
        let text = cleaned.as_deref().unwrap_or(bytes);
        let text = linux::timestamp(text).map_or(text, |(_, text)| text);
        let facts = self.segments.boot().clone();
        let begins_boot = meaning == Meaning::Nothing && self.segments.boot().line(text);
        let line = self.console.line(text, None, position, None);
        let is_console = line.kind == TextKind::CONSOLE && line.record.is_none() && self.console.is_idle();
        let heard = self.reported.line(bytes, position);
        !begins_boot
            && *self.segments.boot() == facts
            && kernel::fault_notice(text).is_none()
            && self.console.announces(text).is_none()
            && !announces_death(text)
            && is_console
            && heard == Heard { opens: None, belongs: false }
            && self.reported.idle().is_some()
    }

    /// Takes a line that may mean something.
    fn telling_text(&mut self, bytes: &[u8], position: LogPosition, ends_line: bool) -> io::Result<()> {
        let cleaned = clean(bytes);
        let text = cleaned.as_deref().unwrap_or(bytes);
        let (ns, text) = match linux::timestamp(text) {
            Some((ns, text)) => (Some(ns), text),
            None => (None, text),
        };
        self.tally.text(ends_line, ns.is_some());
        let forged = self.is_forged(bytes, text);
        self.read_ahead(text, forged, position)?;
        let belongs = self.recognise(bytes, position)?;
        let told = self.reported.has_main();
        let segment = self.segments.current();
        // A crash that a report tells about takes nothing from the lines of the next one.
        let crash = segment.crash.as_mut().filter(|crash| !told || crash.victim != Victim::Kernel);
        let mut line = self.console.line(text, ns, position, crash);
        if belongs && line.kind == TextKind::CONSOLE {
            line.kind = TextKind::PANIC;
        }
        if let Some(record) = line.record {
            record.write(position, &mut segment.out);
        }
        if segment.crash.is_none() && !forged && !self.tally.has_unexplained() && announces_death(text) {
            self.tally.unexplained(text, position);
        }
        self.record_text(line.kind, bytes, ns, position, ends_line);
        Ok(())
    }

    /// Records a piece of console text.
    #[inline]
    fn record_text(&mut self, kind: TextKind, bytes: &[u8], ns: Option<u64>, position: LogPosition, ends_line: bool) {
        let record = Text {
            kind: Some(kind),
            bytes: Some(bytes),
            continues: (!ends_line).then_some(true),
            stamp: Stamp { ns, line: Some(position.line), ..Stamp::default() },
            ..Text::default()
        };
        self.segments.current().out.put(SectionKind::LOG, &record);
    }

    /// Offers a line to the recogniser of reports; says whether the line is part of one.
    fn recognise(&mut self, bytes: &[u8], position: LogPosition) -> io::Result<bool> {
        if self.tally.has_events() {
            self.reported.leave();
        } else if self.is_own() {
            // The next boot may be that of another kernel.
            return Ok(false);
        }
        let heard = self.reported.line(bytes, position);
        self.give_reports()?;
        if let Some(kind) = heard.opens {
            self.announce(Victim::Kernel, kind, position)?;
        }
        Ok(heard.belongs)
    }

    /// Gives the finished reports to the crash of the kernel.
    fn give_reports(&mut self) -> io::Result<()> {
        while let Some(report) = self.reported.next_report() {
            let quoted = self.is_quoted(&report);
            if quoted {
                let version = report.version.as_deref().unwrap_or_default();
                self.tally
                    .unexplained(format!("a report of Linux {version}, not of this boot").as_bytes(), report.first);
            }
            if report.is_fault_of_program() {
                let place = report.ip.map(|ip| format!(" at {ip:#x}")).unwrap_or_default();
                let told = format!("a fault of a program: {}{place}", report.headline);
                self.tally.unexplained(told.as_bytes(), report.first);
            }
            if report.of_program || quoted {
                // What a kernel's report has told of the crash stays.
                if !self.reported.has_main() {
                    self.segments.withdraw(report.first.line);
                }
                continue;
            }
            if self.segments.kernel_crash().is_none() {
                let position = LogPosition { offset: report.first.offset, line: report.first.line };
                self.announce(Victim::Kernel, cause_kind(report.class, report.family == "linux"), position)?;
            }
            if let Some(crash) = self.segments.kernel_crash() {
                self.reported.give(&report, crash);
            }
        }
        Ok(())
    }

    /// Whether a report of Linux is of another version than the banner of this boot and than all others of the log: a
    /// kernel does not change while it runs, so an old report was printed. One more banner in the log hides no report.
    fn is_quoted(&mut self, report: &Report) -> bool {
        let named = report.version.as_deref().filter(|_| report.family == "linux");
        let Some(named) = named.and_then(|text| release(text.as_bytes())) else { return false };
        let boot = self.segments.boot();
        let own = boot.version.as_deref().filter(|_| boot.kernel.as_deref() == Some(b"Linux")).and_then(release);
        let seen = &self.releases;
        self.whole
            && own.is_some()
            && seen.len() < MOST_RELEASES
            && !seen.iter().any(|known| is_one_release(known, named))
    }

    /// The boot or the log ends: finishes the reports that are open.
    fn end_reports(&mut self) -> io::Result<()> {
        self.reported.finish();
        self.give_reports()
    }

    /// Whether a line of this workspace's kernel is a program's, though it reads like a kernel's death: that kernel
    /// dies in words of its own, and breaks them in what programs print. Signs that are removed to read a line (escape
    /// sequences, zeros) may hide the words from the kernel, so they count as they stand in the log.
    fn is_forged(&mut self, bytes: &[u8], text: &[u8]) -> bool {
        if !self.is_own() {
            return false;
        }
        if linux::alarm(text).is_some() || linux::segfault(text).is_some() {
            return true;
        }
        // Another kernel may print events and die in words that are not known.
        let named = self.segments.boot().is_own();
        let stands = |words: &&[u8]| super::reports::words::find(bytes, words).is_some();
        let whole = kernel::OWN_DEATHS.iter().any(stands) || !named && kernel::OTHER_DEATHS.iter().any(stands);
        !whole && (self.console.announces(text).is_some() || named && announces_death(text))
    }

    /// Whether the log is that of this workspace's kernel, and of no Linux.
    fn is_own(&mut self) -> bool {
        !self.is_linux && (self.tally.has_events() || self.segments.boot().is_own())
    }

    /// What a console line says before it is recorded: a new boot, a fault, a death.
    fn read_ahead(&mut self, text: &[u8], forged: bool, position: LogPosition) -> io::Result<()> {
        if let Some(version) = text.strip_prefix(b"Linux version ") {
            self.is_linux = true;
            let known =
                |word: &[u8]| self.releases.len() >= MOST_RELEASES || self.releases.iter().any(|one| one == word);
            self.releases.extend(release(version).filter(|word| !known(word)).map(<[u8]>::to_vec));
        }
        if self.segments.boot().line(text) {
            self.begin_boot(position)?;
            self.segments.boot().line(text);
        }
        if let Some(notice) = kernel::fault_notice(text) {
            self.processes.printed_fault(&notice, position.line);
        }
        if let Some(announced) = self.console.announces(text).filter(|_| !forged) {
            if announced.victim == Victim::Kernel && linux::alarm(text).is_none() {
                self.reported.leave();
            }
            let because_of_init = |message: &[u8]| message.starts_with(b"Attempted to kill init");
            let by_init = matches!(linux::alarm(text), Some(linux::Alarm::Panic(message)) if because_of_init(message));
            let init_died = |crash: &Crash| crash.victim == Victim::Process(1);
            if !(by_init && self.segments.current().crash.as_ref().is_some_and(init_died)) {
                self.announce(announced.victim, announced.kind, position)?;
            }
        }
        Ok(())
    }

    fn armour(&mut self, chunk: &Chunk, line: LogPosition) -> io::Result<()> {
        if !self.segments.add_armour(chunk) && self.segments.begin_armour(chunk, line)? {
            self.announce(Victim::Kernel, CauseKind::PANIC, line)?;
        }
        Ok(())
    }

    /// Whether text beside an armoured dump is parity lines of it, or lines of it whose beginning is damaged.
    #[cold]
    fn parity(&mut self, bytes: &[u8]) -> bool {
        let (rows, only) = rows_in(bytes);
        rows.iter().for_each(|row| self.segments.add_parity(row));
        !rows.is_empty() && only || self.segments.add_damaged(bytes)
    }

    fn lost(&mut self, kind: TextKind, bytes: &[u8], position: LogPosition, problem: &str) {
        self.tally.lost(kind, position, problem);
        let stamp = Stamp { line: Some(position.line), offset: Some(position.offset), ..Stamp::default() };
        let record =
            Text { kind: Some(kind), bytes: Some(bytes), problem: Some(problem.as_bytes()), stamp, ..Text::default() };
        self.segments.current().out.put(SectionKind::KEPT, &record);
    }

    #[cold]
    fn begin_boot(&mut self, position: LogPosition) -> io::Result<()> {
        self.end_reports()?;
        self.reported.begin_boot();
        self.processes.clear();
        self.segments.begin_boot(position)
    }

    /// A death is announced. Gives the crash it belongs to, unless that is not the one at hand.
    fn announce(&mut self, victim: Victim, kind: CauseKind, position: LogPosition) -> io::Result<Option<&mut Crash>> {
        self.name_init();
        if let Some(crash) = self.segments.announce(victim, kind, position)? {
            self.processes.describe(crash);
        }
        Ok(self.segments.current().crash.as_mut())
    }

    /// The program of process 1 that the console named, unless an event named another.
    fn name_init(&mut self) {
        if let Some(init) = &self.segments.boot().init {
            self.processes.init(init);
        }
    }

    /// Concludes what an event means for processes and crashes.
    #[cold]
    fn interpret(&mut self, event: &EventSlot<'_>, position: LogPosition) -> io::Result<()> {
        self.name_init();
        match event.listed.as_deref() {
            Some(ListedEvent::CrashReport(report)) => return self.crash_report(&report.record(), position),
            Some(ListedEvent::Panic(panic)) => return self.panic(&panic.record(), position),
            Some(ListedEvent::SyscallProfile(profile)) => self.clock(profile.record().tsc_freq_hz),
            Some(ListedEvent::SpanProfile(profile)) => self.clock(profile.record().tsc_freq_hz),
            _ => {}
        }
        match &event.plain {
            Some(Event::Signal(signal)) => return self.signal(signal, position),
            Some(Event::ProcessExit(exit)) => return self.exit(exit, position),
            Some(Event::PageFault(fault)) => self.processes.page_fault(fault, position.line),
            Some(Event::UserFault(fault)) => self.processes.user_fault(fault, position.line),
            Some(Event::ProcessExec(exec)) => self.processes.exec(exec),
            Some(Event::ProcessFork(fork)) => self.processes.fork(fork),
            Some(Event::UnimplementedSyscall(call)) => {
                let name = call.name.unwrap_or_default();
                self.segments.current().unimplemented(call.nr.unwrap_or(-1), name, call.pid.unwrap_or(0), position);
            }
            _ => {}
        }
        Ok(())
    }

    fn clock(&mut self, hz: Option<u64>) {
        let boot = self.segments.boot();
        boot.tsc_hz = hz.or(boot.tsc_hz);
    }

    fn signal(&mut self, signal: &Signal<'_>, position: LogPosition) -> io::Result<()> {
        let number = signal.signal.unwrap_or(0);
        let ends = signal.action.is_some_and(|action| matches!(action, b"terminate" | b"core" | b"coredump" | b"kill"));
        let Some(pid) = signal.pid.filter(|_| ends) else { return Ok(()) };
        let name = signal.signal_name.map_or_else(|| signal_name(number), <[u8]>::to_vec);
        if !Crash::is_fatal_signal(number) {
            let text = format!("pid {pid} was ended by {} ({number}); not a crash", String::from_utf8_lossy(&name));
            self.segments.current().remark(position, text);
            return Ok(());
        }
        let Some(crash) = self.announce(Victim::Process(pid), CauseKind::FATAL_SIGNAL, position)? else {
            return Ok(());
        };
        crash.death.signalled(u32::try_from(number).unwrap_or(0), name);
        // Some kernels send the signal before they know the instruction, and print 0.
        crash.death.ip = crash.death.ip.or(signal.ip.filter(|ip| *ip != 0));
        crash.death.ns = crash.death.ns.or(signal.stamp.ns);
        crash.death.cpu = crash.death.cpu.or(signal.stamp.cpu);
        Ok(())
    }

    fn crash_report(&mut self, report: &CrashReport<'_>, position: LogPosition) -> io::Result<()> {
        let pid = report.pid.unwrap_or(0);
        let Some(crash) = self.announce(Victim::Process(pid), CauseKind::FATAL_SIGNAL, position)? else {
            return Ok(());
        };
        crash.reported = true;
        if let Some(number) = report.signal {
            let name = report.signal_name.map_or_else(|| signal_name(number), <[u8]>::to_vec);
            crash.death.signal = u32::try_from(number).ok();
            crash.death.signal_name = Some(name);
        }
        crash.death.signal_code = report.signal_code;
        crash.death.tid = report.tid;
        crash.death.fault_addr = report.fault_addr.or(crash.death.fault_addr);
        crash.death.ip = report.ip.or(crash.death.ip);
        crash.death.ns = crash.death.ns.or(report.stamp.ns);
        crash.death.cpu = crash.death.cpu.or(report.stamp.cpu);
        if let Some(cmdline) = report.cmdline {
            Crash::say(&mut crash.death.cmdline, cmdline, true);
        }
        let rsp = |reg: &Reg<'_>| reg.id == Some(RegId::RSP);
        crash.death.sp =
            report.regs.and_then(|regs| regs.iter().find(rsp)).and_then(|reg| reg.value).or(crash.death.sp);
        Ok(())
    }

    fn panic(&mut self, panic: &Panic<'_>, position: LogPosition) -> io::Result<()> {
        let Some(crash) = self.announce(Victim::Kernel, CauseKind::PANIC, position)? else { return Ok(()) };
        crash.death.ns = crash.death.ns.or(panic.stamp.ns);
        crash.death.cpu = crash.death.cpu.or(panic.stamp.cpu);
        if let Some(message) = panic.message {
            Crash::say(&mut crash.death.message, message, true);
        }
        if let (Some(file), Some(line)) = (panic.file, panic.source_line) {
            crash.death.raised_at(file, line);
        }
        let trace = crash.traces();
        for frame in panic.backtrace.iter().flat_map(kwab_format::List::iter) {
            let at = frame.sym.map(|symbol| Location {
                symbol: symbol.trim_ascii(),
                offset: frame.off.unwrap_or(0),
                size: None,
                module: None,
            });
            crash.frame(trace, frame.addr, at, FrameTrust::PRINTED, position);
        }
        Ok(())
    }

    fn exit(&mut self, exit: &ProcessExit<'_>, position: LogPosition) -> io::Result<()> {
        let Some(pid) = exit.pid else { return Ok(()) };
        let died = self.segments.current().crash.as_ref().is_some_and(|crash| crash.is_same(Victim::Process(pid)));
        if died || exit.by_signal != Some(true) {
            return Ok(());
        }
        let status = exit.status.unwrap_or(0);
        let number = if status > 128 { status - 128 } else { status & 0x7f };
        if Crash::is_fatal_signal(number)
            && let Some(crash) = self.announce(Victim::Process(pid), CauseKind::FATAL_SIGNAL, position)?
        {
            crash.death.signalled(number as u32, signal_name(number));
        }
        Ok(())
    }
}

/// Versions of Linux that are remembered of a log; with more, none of its reports counts as quoted.
const MOST_RELEASES: usize = 64;

/// The numbers at the beginning of a version, `6.1.76` of `6.1.76-1-amd64`: what follows is printed in several ways.
fn release(version: &[u8]) -> Option<&[u8]> {
    let version = version.trim_ascii_start();
    let end = version.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(version.len());
    let numbers = version.get(..end).filter(|numbers| numbers.len() < 64)?;
    (numbers.first()?.is_ascii_digit() && numbers.contains(&b'.')).then_some(numbers)
}

/// Whether two are the same as far as both are there: a line may be cut.
fn is_one_release(a: &[u8], b: &[u8]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// The name of a signal by its number.
fn signal_name(number: i64) -> Vec<u8> {
    let signal = u64::try_from(number).ok().and_then(linux_abi::Signal::new);
    signal.map_or_else(|| format!("signal {number}"), |signal| signal.to_string()).into_bytes()
}
