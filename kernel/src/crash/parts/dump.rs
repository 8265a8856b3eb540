//! The dump writer: records in, each section bounded by a time budget, no lock waited for.

use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use kernel_logic::packing::{Packing, Way};
use kwab_format::wire::RecordType;
use kwab_format::{BootId, DropReason, DumpId, Progress, SectionKind, Sink as _, WriteError, Writer};
use machine::sync::Once;
use machine::time::{Nanos, now};

use super::{Amount, Collector, Subject};
use crate::crash::channel::Channel;

/// Why a part ends before everything that belongs into it was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its time is used up.
    Time,
    /// A lock it needs is taken.
    Locked,
    /// The section or the dump is full.
    Room,
    /// What is left of the channel is kept for the parts behind.
    Full,
    /// As much as a dump takes of it was put ([`Amount`]).
    Enough,
}

/// See the module.
pub struct Dump<'b> {
    writer: Writer<'b, Channel>,
    deadline: Nanos,
    patience: u64,
    /// Told when something has reached the channel.
    saved: &'b dyn Fn(&Progress),
    position: u64,
    packing: Packing,
    /// What is done to the open section before it is written, and the bytes that it and those behind it may take;
    /// `None` for a section that is never packed.
    bulk: Option<(Way, u64)>,
}

impl<'b> Dump<'b> {
    /// Around a writer; `saved` hears of every section that is out.
    pub fn new(writer: Writer<'b, Channel>, amount: &Amount, saved: &'b dyn Fn(&Progress)) -> Self {
        saved(&writer.progress());
        let position = writer.position();
        let patience = amount.patience;
        Self { writer, deadline: Nanos::MAX, patience, saved, position, packing: Packing::new(), bulk: None }
    }

    /// Collects a part and sends it.
    pub fn part(&mut self, part: &Collector, subject: &Subject<'_>) {
        self.deadline = now().saturating_add(part.budget.saturating_mul(self.patience));
        let before = self.writer.position();
        // A section before that was lost is in the totals.
        let _ = self.writer.begin(part.kind);
        if SABOTAGED.load(Ordering::Relaxed) == part.kind.0 {
            machine::crash::fault_on_purpose();
        }
        let begun = now();
        let outcome = (part.collect)(self, subject);
        let _ = match outcome {
            Ok(()) | Err(Stop::Room) => self.writer.end(),
            Err(Stop::Time) => self.writer.end_partial(DropReason::TIME_BUDGET),
            Err(Stop::Full) => self.writer.end_partial(DropReason::NO_ROOM),
            Err(Stop::Locked) => self.writer.end_partial(DropReason::LOCKED),
            Err(Stop::Enough) => self.writer.end_partial(DropReason::SKIPPED),
        };
        self.bulk = None;
        self.save();
        COST.note(part.kind, now().saturating_sub(begun), self.writer.position().saturating_sub(before));
    }

    /// Notes that a part faulted. Of the cause, `brief` puts what is known without reading memory.
    pub fn give_up(&mut self, part: &Collector, brief: impl FnOnce(&mut Self) -> Result<(), Stop>) {
        self.writer.skip(part.kind, DropReason::FAULT);
        self.save();
        if part.kind == SectionKind::CAUSE {
            self.deadline = Nanos::MAX;
            // What fails here is in the totals.
            let _ = self.writer.begin(part.kind);
            let _ = brief(self);
            let _ = self.writer.end();
            self.save();
        }
    }

    /// Puts a record.
    pub fn put<'r, R: RecordType<'r>>(&mut self, record: &R) -> Result<(), Stop> {
        let (filled, begun) = (self.writer.collected(), self.bulk.map(|_| now()));
        let outcome = self.writer.put(record);
        if self.writer.position() != self.position {
            self.closed(filled, begun);
            self.save();
        }
        match outcome {
            Err(WriteError::NoRoom) => Err(Stop::Room),
            _ if now() > self.deadline => Err(Stop::Time),
            _ => Ok(()),
        }
    }

    /// Goes on in a new section, packed where that pays. What is put from here on takes at most `needed` bytes when it
    /// is not packed.
    pub fn next_bulk(&mut self, kind: SectionKind, needed: u64) -> Result<(), Stop> {
        let (filled, begun) = (self.writer.collected(), self.bulk.map(|_| now()));
        let outcome = self.writer.begin(kind);
        self.bulk = Some((self.bulk.map_or(Way::Packed, |(way, _)| way), needed));
        self.closed(filled, begun);
        self.save();
        match outcome {
            Err(WriteError::NoRoom) => Err(Stop::Room),
            _ if self.writer.sink().room().is_some_and(|room| room < KEPT_ROOM) => Err(Stop::Full),
            _ if self.is_late() => Err(Stop::Time),
            _ => Ok(()),
        }
    }

    /// Notes what a section of `filled` bytes has cost since `begun`, and chooses the way of the one that is open now.
    fn closed(&mut self, filled: usize, begun: Option<Nanos>) {
        let Some((way, needed)) = &mut self.bulk else { return };
        if let Some(begun) = begun {
            self.packing.note(*way, filled, now().saturating_sub(begun));
        }
        let room = self.writer.sink().room();
        *way = self.packing.choose(room, needed.saturating_add(KEPT_ROOM));
        self.writer.set_packed(*way == Way::Packed);
    }

    /// Whether the time of the part is used up.
    pub fn is_late(&self) -> bool {
        now() > self.deadline
    }

    /// Takes what `attempt` gives, asking again for a short while: on a system that goes on, its holder is about to let
    /// go.
    pub fn get<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> Result<T, Stop> {
        let until = now().saturating_add(LOCK_PATIENCE);
        loop {
            match attempt() {
                Some(value) => return Ok(value),
                None if now() > until => return Err(Stop::Locked),
                None => machine::cpu::relax(),
            }
        }
    }

    /// Bytes that fit into one record.
    pub fn max_bytes(&self) -> usize {
        self.writer.max_bytes()
    }

    /// Writes the end section; the channel back. When that fails the dump is cut, and readers say so.
    pub fn finish(self) -> Channel {
        self.writer.finish().0
    }

    fn save(&mut self) {
        self.position = self.writer.position();
        (self.saved)(&self.writer.progress());
    }
}

/// Bytes of the channel that bulk memory leaves: a section of it, and the parts behind.
const KEPT_ROOM: u64 = 2 * machine::crash::BUFFER as u64;

/// How long to ask for a lock. On the crash path its holder is stopped, and this is all that is lost.
pub(super) const LOCK_PATIENCE: Nanos = 200_000;

/// An id for a new dump.
pub fn new_dump_id() -> DumpId {
    let mixed = machine::random::hardware().unwrap_or(0) ^ machine::time::cycles().rotate_left(23);
    DumpId(mixed ^ machine::time::wall_at_boot())
}

static BOOT: Once<BootId> = Once::new();

/// Names this boot in dumps and in `/proc/sys/kernel/random/boot_id`: a version 4 UUID (RFC 4122, 4.4).
pub fn boot_id() -> BootId {
    if let Some(id) = BOOT.get() {
        return *id;
    }
    let word =
        || machine::random::hardware().unwrap_or(0) ^ machine::time::cycles().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&word().to_le_bytes());
    id[8..].copy_from_slice(&word().rotate_left(32).to_le_bytes());
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    // Of two that come here at once, one is used.
    let _ = BOOT.set(BootId(id));
    BOOT.get().copied().unwrap_or(BootId(id))
}

/// What the parts cost: nanoseconds and bytes by section kind, of the dump that was written last. Told in its last
/// section.
pub(super) struct Cost([(AtomicU64, AtomicU64); KINDS]);

/// Section kinds that are told of.
pub(super) const KINDS: usize = 20;

pub(super) static COST: Cost = Cost([const { (AtomicU64::new(0), AtomicU64::new(0)) }; KINDS]);

impl Cost {
    /// Adds to what a kind has cost; the first part of a dump begins with nothing.
    fn note(&self, kind: SectionKind, ns: Nanos, bytes: u64) {
        if kind == SectionKind::IDENTITY {
            for (time, size) in &self.0 {
                time.store(0, Ordering::Relaxed);
                size.store(0, Ordering::Relaxed);
            }
        }
        if let Some((time, size)) = self.0.get(usize::from(kind.0)) {
            time.fetch_add(ns, Ordering::Relaxed);
            size.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Kind, nanoseconds and bytes of each part that wrote something.
    pub(super) fn all(&self) -> impl Iterator<Item = (SectionKind, u64, u64)> {
        let cost = self.0.iter().zip(0u16..);
        cost.map(|((ns, bytes), kind)| (SectionKind(kind), ns.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed)))
            .filter(|(.., bytes)| *bytes != 0)
    }
}

/// The kind of section in which a dump is to fault, for tests of the crash path; 0 for none.
static SABOTAGED: AtomicU16 = AtomicU16::new(0);

/// Makes every dump fault in the part of this kind.
pub fn sabotage(kind: SectionKind) {
    SABOTAGED.store(kind.0, Ordering::Relaxed);
}
