//! Decides which dump everything of a log belongs to.
//!
//! The rule of segments: the log is cut behind the last sign of one crash (the exit of its process, or the end of its
//! boot) and before the first sign of the next. A segment in which no crash comes is given back to the one before it,
//! so a log with crashes has exactly as many dumps as crashes; a log without any is one recording. Until that is known,
//! two segments are open at most.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use kwab_format::SectionKind;
use kwab_format::armour::Chunk;
use kwab_format::parity::Row;
use kwab_format::record::{CauseKind, Note, NoteKind, Stamp};

use super::assemble::Assembly;
use super::boot::BootFacts;
use super::crash::{Crash, Victim};
use super::lines::LogPosition;
use super::parity::MOST_LINE;
use super::segment::Segment;

/// Events within which a dump on the console still belongs to the process that has just exited.
const SOON: u64 = 16;
/// What the ids of the dumps of one log differ by.
const ID_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A segment to which nothing more can belong.
#[derive(Debug)]
pub struct ClosedSegment {
    /// What it holds.
    pub segment: Segment,
    /// Which crash of the log it is, from 1; 0 for a recording without a crash.
    pub number: u32,
    /// Where it ends in the log.
    pub end: LogPosition,
}

/// The open segments of a log.
#[derive(Debug)]
pub struct Segments {
    folder: Option<PathBuf>,
    dump_seed: u64,
    current: Segment,
    /// The segment before the current one, which may get the current one back.
    held: Option<Segment>,
    closed: VecDeque<ClosedSegment>,
    crashes: u32,
    boot: BootFacts,
    boot_starts: u64,
    /// Damaged lines of a dump of which no sound line has come yet.
    early: VecDeque<Vec<u8>>,
}

/// Damaged lines that are kept until a dump begins.
const MOST_EARLY: usize = 64;

impl Segments {
    /// Starts with an empty log. Dumps grow in `folder`; without one, nothing is written.
    ///
    /// # Errors
    /// When the first temporary file cannot be made.
    pub fn new(folder: Option<PathBuf>, dump_seed: u64) -> io::Result<Self> {
        Self::starting_at(folder, dump_seed, BootFacts::first(), LogPosition { offset: 0, line: 1 })
    }

    /// Starts in the middle of a log, in the boot that `boot` tells of.
    ///
    /// # Errors
    /// When the first temporary file cannot be made.
    pub fn starting_at(
        folder: Option<PathBuf>,
        dump_seed: u64,
        boot: BootFacts,
        position: LogPosition,
    ) -> io::Result<Self> {
        let current = Segment::new(folder.as_deref(), dump_seed, boot.clone(), position)?;
        let (held, closed) = (None, VecDeque::new());
        let early = VecDeque::new();
        Ok(Self { folder, dump_seed, current, held, closed, crashes: 0, boot, boot_starts: position.line, early })
    }

    /// Forgets what has been recorded; the boot that the log is in stays.
    ///
    /// # Errors
    /// When a temporary file cannot be made.
    pub fn begin_again(&mut self, position: LogPosition) -> io::Result<()> {
        *self = Self::starting_at(self.folder.take(), self.dump_seed, self.boot.clone(), position)?;
        Ok(())
    }

    /// The crashes that may still get something: of the segment before the current one, and of that.
    pub fn open_crashes(&self) -> impl Iterator<Item = &Crash> {
        self.held.iter().chain([&self.current]).filter_map(|segment| segment.crash.as_ref())
    }

    /// Lines of the dump that a kernel prints right now.
    pub fn armour_lines(&self) -> u64 {
        let lines = |segment: &Segment| segment.assembly.as_ref().map_or(0, |assembly| assembly.lines);
        lines(&self.current) + self.held.as_ref().map_or(0, lines)
    }

    /// The segment that records go into.
    #[inline(always)]
    pub fn current(&mut self) -> &mut Segment {
        &mut self.current
    }

    /// The crash of the kernel that is being read: of the current segment, or of the one before it.
    pub fn kernel_crash(&mut self) -> Option<&mut Crash> {
        let kernel =
            |segment: &&mut Segment| segment.crash.as_ref().is_some_and(|crash| crash.victim == Victim::Kernel);
        let current = Some(&mut self.current).filter(kernel);
        let segment = current.or_else(|| self.held.as_mut().filter(kernel))?;
        segment.crash.as_mut()
    }

    /// Takes back the death of the kernel that the line `line` announced: it was a program's.
    pub fn withdraw(&mut self, line: u64) {
        let crash = &mut self.current.crash;
        let _ = crash.take_if(|crash| crash.victim == Victim::Kernel && crash.position.line == line);
    }

    /// The boot that the log is in.
    #[inline(always)]
    pub fn boot(&mut self) -> &mut BootFacts {
        &mut self.boot
    }

    /// The next segment that is closed, in the order of the log.
    pub fn next_closed(&mut self) -> Option<ClosedSegment> {
        self.closed.pop_front()
    }

    /// Whether a segment is closed.
    #[inline(always)]
    pub fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// A death is announced: it belongs to the crash at hand, or it begins a segment and is given back.
    ///
    /// # Errors
    /// When a temporary file cannot be made.
    pub fn announce(
        &mut self,
        victim: Victim,
        kind: CauseKind,
        position: LogPosition,
    ) -> io::Result<Option<&mut Crash>> {
        if let Some(crash) = &mut self.current.crash {
            if crash.is_same(victim) {
                // A panic says more than the fault before it, but the fault is the cause.
                if victim == Victim::Kernel
                    && matches!(crash.death.kind, Some(CauseKind::HUNG_TASK | CauseKind::SOFT_LOCKUP))
                {
                    crash.death.kind = Some(kind);
                }
                return Ok(None);
            }
            // Linux panics because init died.
            let because_of_init = crash.victim == Victim::Process(1) && kind == CauseKind::PANIC;
            if victim == Victim::Kernel && because_of_init {
                return Ok(None);
            }
            self.begin_next(position, true)?;
        }
        self.current.boot = self.boot.clone();
        // The segment that was held cannot be given anything back any more.
        self.close_held();
        Ok(Some(self.current.crash.insert(Crash::new(victim, kind, position))))
    }

    /// The process has exited. If it is the one that crashed, its exit is the last thing that belongs to its crash.
    ///
    /// # Errors
    /// When a temporary file cannot be made.
    #[cold]
    pub fn exited(&mut self, pid: u32, line: LogPosition) -> io::Result<()> {
        match &mut self.current.crash {
            Some(crash) if crash.is_same(Victim::Process(pid)) => crash.closed = true,
            _ => return Ok(()),
        }
        self.begin_next(LogPosition { line: line.line + 1, ..line }, true)
    }

    /// A boot begins at `position`.
    ///
    /// # Errors
    /// When a temporary file cannot be made.
    #[cold]
    pub fn begin_boot(&mut self, position: LogPosition) -> io::Result<()> {
        self.boot = self.boot.next();
        self.boot_starts = position.line;
        if self.current.crash.is_some() {
            self.begin_next(position, false)?;
        }
        let text = format!("boot {} begins at line {}", self.boot.number, position.line);
        let stamp = Stamp { line: Some(position.line), offset: Some(position.offset), ..Stamp::default() };
        let note = Note { kind: Some(NoteKind::INFERRED), text: Some(text.as_bytes()), stamp, ..Note::default() };
        self.current.out.put(SectionKind::NOTES, &note);
        Ok(())
    }

    /// Adds an armoured line to the dump it belongs to. `false` when that dump begins with it: then
    /// [`Segments::begin_armour`] takes it.
    pub fn add_armour(&mut self, chunk: &Chunk) -> bool {
        let of = |segment: &mut Segment| match &mut segment.assembly {
            Some(assembly) if assembly.dump == chunk.dump => {
                assembly.add(chunk);
                true
            }
            _ => false,
        };
        of(&mut self.current) || self.held.as_mut().is_some_and(of)
    }

    /// Whether a dump comes on the console.
    #[inline(always)]
    pub fn has_armour(&self) -> bool {
        self.current.assembly.is_some() || self.held.as_ref().is_some_and(|held| held.assembly.is_some())
    }

    /// Adds a parity line to the dump it belongs to, if that has begun.
    pub fn add_parity(&mut self, row: &Row) {
        let assemblies = self.assemblies().find(|assembly| assembly.dump == row.dump);
        if let Some(assembly) = assemblies {
            assembly.add_row(row);
        }
    }

    /// Gives what looks like a damaged line to the dump that it may belong to; `true` when it looks like one of that.
    pub fn add_damaged(&mut self, text: &[u8]) -> bool {
        self.assemblies().any(|assembly| assembly.add_damaged(text))
    }

    /// The same with a line that was counted as not understood.
    pub fn add_lost(&mut self, text: &[u8]) -> bool {
        let taken = self.assemblies().find_map(|assembly| assembly.add_damaged(text).then_some(assembly));
        taken.map(|assembly| assembly.damaged += 1).is_some()
    }

    /// Keeps a damaged line for the dump that begins next.
    pub fn keep_damaged(&mut self, text: &[u8]) {
        if self.early.len() == MOST_EARLY {
            self.early.pop_front();
        }
        self.early.push_back(text[..text.len().min(MOST_LINE)].to_vec());
    }

    fn assemblies(&mut self) -> impl Iterator<Item = &mut Assembly> {
        [Some(&mut self.current), self.held.as_mut()].into_iter().flatten().filter_map(|it| it.assembly.as_mut())
    }

    /// A dump begins on the console. It tells about the death just behind, or the one at hand; `true` when it tells
    /// about one that nothing has announced.
    ///
    /// # Errors
    /// When a temporary file cannot be made.
    pub fn begin_armour(&mut self, chunk: &Chunk, line: LogPosition) -> io::Result<bool> {
        if self.current.assembly.is_some() {
            // Another dump: the kernel crashed again, or printed the next process.
            self.begin_next(line, true)?;
        }
        let mut assembly = Assembly::new(chunk)?;
        for text in self.early.drain(..) {
            assembly.damaged += u64::from(assembly.add_damaged(&text));
        }
        let just_ended = |held: &&mut Segment| held.crash.is_some() && held.assembly.is_none();
        match self.held.as_mut().filter(just_ended) {
            Some(held) if self.current.crash.is_none() && self.current.events < SOON => {
                held.assembly = Some(assembly);
                Ok(false)
            }
            _ => {
                self.current.assembly = Some(assembly);
                Ok(self.current.crash.is_none())
            }
        }
    }

    /// Begins a new segment at `position`; the current one, which has a crash, waits for what may be given back to it.
    fn begin_next(&mut self, position: LogPosition, same_boot: bool) -> io::Result<()> {
        self.close_held();
        let id = self.dump_seed.wrapping_add((u64::from(self.crashes) + 1).wrapping_mul(ID_STEP));
        let mut next = Segment::new(self.folder.as_deref(), id, self.boot.clone(), position)?;
        if same_boot {
            next.begin_with_context(&self.current.out, self.boot_starts);
        }
        self.held = Some(std::mem::replace(&mut self.current, next));
        Ok(())
    }

    fn close_held(&mut self) {
        if let Some(held) = self.held.take() {
            self.close(held, self.current.start);
        }
    }

    fn close(&mut self, segment: Segment, end: LogPosition) {
        self.crashes += 1;
        self.closed.push_back(ClosedSegment { segment, number: self.crashes, end });
    }

    /// Closes everything; `end` is where the log ends.
    ///
    /// # Errors
    /// Those of the files.
    pub fn finish(&mut self, end: LogPosition) -> io::Result<()> {
        let empty = Segment::new(None, 0, BootFacts::default(), end)?;
        let mut last = std::mem::replace(&mut self.current, empty);
        match self.held.take() {
            Some(mut held) => {
                held.absorb(last)?;
                self.close(held, end);
            }
            None => {
                last.boot = self.boot.clone();
                if last.crash.is_some() {
                    self.close(last, end);
                } else {
                    self.closed.push_back(ClosedSegment { segment: last, number: 0, end });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(line: u64) -> LogPosition {
        LogPosition { offset: line * 100, line }
    }

    fn closed(segments: &mut Segments) -> Vec<(u32, u64, u64)> {
        std::iter::from_fn(|| segments.next_closed())
            .map(|closed| (closed.number, closed.segment.start.line, closed.end.line))
            .collect()
    }

    #[test]
    fn a_log_without_a_crash_is_one_recording() {
        let mut segments = Segments::new(None, 1).expect("nothing is written");
        segments.finish(position(9)).expect("nothing is written");
        assert_eq!(closed(&mut segments), [(0, 1, 9)]);
    }

    #[test]
    fn the_log_is_cut_behind_an_exit_and_its_end_is_given_back() {
        let mut segments = Segments::new(None, 1).expect("nothing is written");
        let kind = CauseKind::FATAL_SIGNAL;
        assert!(segments.announce(Victim::Process(7), kind, position(3)).is_ok_and(|crash| crash.is_some()));
        assert!(segments.announce(Victim::Process(7), kind, position(4)).is_ok_and(|crash| crash.is_none()));
        segments.exited(8, position(5)).expect("nothing is written");
        segments.exited(7, position(6)).expect("nothing is written");
        assert!(segments.announce(Victim::Process(9), kind, position(8)).is_ok_and(|crash| crash.is_some()));
        segments.exited(9, position(9)).expect("nothing is written");
        assert_eq!(closed(&mut segments), [(1, 1, 7)]);
        segments.finish(position(20)).expect("nothing is written");
        assert_eq!(closed(&mut segments), [(2, 7, 20)]);
    }

    #[test]
    fn a_panic_because_init_died_belongs_to_the_death_of_init() {
        let mut segments = Segments::new(None, 1).expect("nothing is written");
        let announce = |segments: &mut Segments, victim, kind, line| {
            segments.announce(victim, kind, position(line)).is_ok_and(|crash| crash.is_some())
        };
        assert!(announce(&mut segments, Victim::Process(1), CauseKind::FATAL_SIGNAL, 3));
        assert!(!announce(&mut segments, Victim::Kernel, CauseKind::PANIC, 4));
        assert!(announce(&mut segments, Victim::Kernel, CauseKind::OOPS, 5));
        segments.finish(position(9)).expect("nothing is written");
        assert_eq!(closed(&mut segments), [(1, 1, 5), (2, 5, 9)]);
    }
}
