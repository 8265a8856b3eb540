//! Reads the events of recorders as moments: when, where, whose, and which numbers decide what caused what.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kwab_format::record::{FlightEvent, FlightKind, ProcessFork};
use kwab_format::{AnyRecord, RecordType as _, Records, SectionKind};

use super::clock::{self, Clock};
use super::gaps::Gaps;
use crate::model::line;
use crate::model::memory::Budget;

/// What happened at a moment, as far as it can cause or be caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The processor began to run the moment's thread; what is known of the thread before.
    Run {
        /// The thread that ran before, 0 for the idle thread.
        before: Option<u32>,
        /// Whether that thread can go on at once.
        runnable: bool,
    },
    /// The moment's thread went to sleep.
    Sleep,
    /// The moment's thread was made runnable.
    Wake,
    /// Another processor was interrupted.
    Interrupt {
        /// Number of that processor.
        to: u32,
    },
    /// The processor was interrupted by another.
    Interrupted,
    /// Other processors were asked to forget translations.
    Shootdown {
        /// One bit for each.
        to: u64,
    },
    /// The processor forgot translations.
    Flushed,
    /// A signal was sent.
    Signal {
        /// Number of the signal.
        number: u32,
        /// The receiving process.
        to: u32,
    },
    /// A signal was delivered.
    Delivered {
        /// Number of the signal.
        number: u32,
    },
    /// A thread was made.
    Fork {
        /// Number of that thread.
        child: u32,
    },
    /// The processor began to wait for a lock.
    Contended {
        /// The processor that held it.
        holder: u32,
        /// The lock's address.
        lock: u64,
    },
    /// The processor took a lock that it had waited for.
    Taken {
        /// The lock's address.
        lock: u64,
    },
    /// An event of these that does not say whom it is about.
    Unnamed(FlightKind),
    /// The first event of a process whose creation a log tells of.
    First,
    /// Any other event of a recorder.
    Other,
}

/// An event with a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, in nanoseconds of the [`Clock`].
    pub ns: u64,
    /// What happened, as far as pairing needs it.
    pub what: What,
    /// Its section, as the reader numbers them.
    pub section: u32,
    /// Where its record begins in the section's payload.
    pub offset: u32,
    /// The record's number in the section.
    pub record: u32,
    /// Processor, or [`Moment::NONE`].
    pub cpu: u32,
    /// Process, or [`Moment::NONE`].
    pub pid: u32,
    /// Thread that it is about, or [`Moment::NONE`].
    pub tid: u32,
    /// Thread that its processor ran, 0 for the idle thread, or [`Moment::NONE`].
    pub by: u32,
}

impl Moment {
    /// The record names no processor, process or thread.
    pub const NONE: u32 = u32::MAX;

    /// Causes of a time before its effects.
    fn order(&self, number: u32) -> (u64, bool, u32) {
        let is_effect = matches!(
            self.what,
            What::Run { .. } | What::Interrupted | What::Flushed | What::Delivered { .. } | What::Taken { .. }
        );
        (self.ns, is_effect, number)
    }
}

/// What a moment takes of the dump's budget: itself twice while they are sorted, its flows, its share of the tables by
/// which it is paired.
pub(super) const PRICE: u64 = (2 * size_of::<Moment>() + 4 * size_of::<super::Flow>() + 64) as u64;

/// Where the ring of a processor was read to.
#[derive(Clone, Copy, Debug)]
struct Read {
    seq: Option<u64>,
    ns: u64,
}

/// The moments of a dump while they are read.
#[derive(Debug)]
pub struct Moments {
    pub(super) clock: Clock,
    pub(super) untimed: u64,
    pub(super) left_out: u64,
    moments: Vec<Moment>,
    gaps: Gaps,
    budget: Arc<Budget>,
    /// How far each processor's ring was read.
    rings: HashMap<u32, Read>,
    /// Processes that a log saw made, until their first event.
    awaited: HashSet<u32>,
}

impl Moments {
    /// None so far.
    #[must_use]
    pub fn new(clock: Clock, budget: &Arc<Budget>) -> Self {
        Self {
            clock,
            untimed: 0,
            left_out: 0,
            moments: Vec::new(),
            gaps: Gaps::default(),
            budget: Arc::clone(budget),
            rings: HashMap::new(),
            awaited: HashSet::new(),
        }
    }

    /// Reads the events of a section, which the moments name by `section`.
    pub fn read(&mut self, section: u32, kind: SectionKind, payload: &[u8]) {
        if !clock::is_timed(kind) {
            return;
        }
        let mut records = Records::new(payload);
        let (mut at, mut number) = (0, 0);
        while let Some(raw) = records.next() {
            let (offset, record) = (at, number);
            (at, number) = (payload.len() - records.rest().len(), number + 1);
            let wanted = match raw.kind {
                FlightEvent::KIND | ProcessFork::KIND => true,
                _ => !self.awaited.is_empty(),
            };
            let Some(found) = wanted.then(|| raw.decode().ok()).flatten() else { continue };
            let Some(what) = self.what(&found) else { continue };
            let stamp = clock::stamp_of(&found);
            let Some(ns) = self.clock.at(&stamp) else {
                self.untimed += 1;
                continue;
            };
            let (Ok(offset), true) = (u32::try_from(offset), self.budget.take(PRICE)) else {
                self.left_out += 1;
                continue;
            };
            let cpu = stamp.cpu.unwrap_or(Moment::NONE);
            if raw.kind == FlightEvent::KIND {
                self.follow_ring(cpu, stamp.seq, ns);
            }
            let (pid, tid) = whose(&found);
            self.moments.push(Moment { ns, what, section, offset, record, cpu, pid, tid, by: tid });
        }
    }

    /// What a record tells; `None` for one that neither causes nor is caused.
    fn what(&mut self, record: &AnyRecord<'_>) -> Option<What> {
        match record {
            AnyRecord::FlightEvent(event) => Some(what(event)),
            AnyRecord::ProcessFork(fork) => {
                let child = fork.child_pid?;
                self.awaited.insert(child);
                Some(What::Fork { child })
            }
            other => self.awaited.remove(&line::pid(other)?).then_some(What::First),
        }
    }

    /// Notes what the ring of a processor has lost before this event.
    fn follow_ring(&mut self, cpu: u32, seq: Option<u64>, ns: u64) {
        let before = self.rings.insert(cpu, Read { seq, ns });
        let is_next = match (before.map(|before| before.seq), seq) {
            // The first event of all; a log does not number them.
            (None, seq) => seq == Some(0),
            // A switch and the sleep before it are one event of the ring.
            (Some(Some(before)), Some(seq)) => seq.wrapping_sub(before) <= 1,
            _ => true,
        };
        if !is_next {
            self.gaps.add(before.map_or(0, |before| before.ns), ns);
        }
    }

    /// Notes that events may be missing at any time.
    pub fn lose_all(&mut self) {
        self.gaps.add(0, u64::MAX);
    }

    /// Whether a processor has an event in a recorder.
    #[must_use]
    pub fn has_processor(&self, cpu: u32) -> bool {
        self.rings.contains_key(&cpu)
    }

    /// The moments by their time, and what is lost.
    pub(super) fn sorted(mut self) -> (Vec<Moment>, Gaps) {
        if self.left_out > 0 {
            self.lose_all();
        }
        let mut order: Vec<((u64, bool, u32), u32)> =
            (0..).zip(&self.moments).map(|(number, moment)| (moment.order(number), number)).collect();
        order.sort_unstable();
        let mut moments: Vec<Moment> = order.into_iter().map(|(_, number)| self.moments[number as usize]).collect();
        say_who_ran(&mut moments);
        self.gaps.sort();
        (moments, self.gaps)
    }
}

/// A wake and a sleep name a thread that is not, or no longer, the one that runs.
fn say_who_ran(moments: &mut [Moment]) {
    let mut running: HashMap<u32, u32> = HashMap::new();
    for moment in moments {
        match moment.what {
            What::Wake | What::First | What::Unnamed(_) => {
                moment.by = running.get(&moment.cpu).copied().unwrap_or(Moment::NONE);
            }
            _ if moment.tid != Moment::NONE => drop(running.insert(moment.cpu, moment.tid)),
            _ => {}
        }
    }
}

/// Process and thread of a record.
fn whose(record: &AnyRecord<'_>) -> (u32, u32) {
    match record {
        AnyRecord::FlightEvent(event) => {
            (event.pid.unwrap_or(Moment::NONE), event.tid.or(event.pid).unwrap_or(Moment::NONE))
        }
        other => {
            let pid = line::pid(other).unwrap_or(Moment::NONE);
            (pid, pid)
        }
    }
}

/// What an event of the recorder tells, by the meanings of its numbers in `RECORDS.md`.
fn what(event: &FlightEvent<'_>) -> What {
    let Some(kind) = event.kind else { return What::Other };
    let small = |word: Option<u64>| word.and_then(|word| u32::try_from(word).ok());
    let named = || -> Option<What> {
        let whose = || event.tid.or(event.pid);
        Some(match kind {
            FlightKind::CONTEXT_SWITCH => {
                whose()?;
                // States 0 and 1 are running and queued; a switch without a state says nothing of the one before.
                What::Run { before: small(event.c), runnable: event.d.is_none_or(|state| state < 2) }
            }
            FlightKind::SLEEP => whose().map(|_| What::Sleep)?,
            FlightKind::WAKE => whose().map(|_| What::Wake)?,
            FlightKind::IPI_SEND => What::Interrupt { to: small(event.a)? },
            FlightKind::IPI_RECEIVE => event.stamp.cpu.map(|_| What::Interrupted)?,
            FlightKind::TLB_SEND => What::Shootdown { to: event.a? },
            FlightKind::TLB_RECEIVE => event.stamp.cpu.map(|_| What::Flushed)?,
            FlightKind::SIGNAL_SEND => What::Signal { number: small(event.a)?, to: small(event.b)? },
            FlightKind::SIGNAL_DELIVER => event.pid.and(Some(What::Delivered { number: small(event.a)? }))?,
            FlightKind::FORK => What::Fork { child: small(event.b)? },
            FlightKind::LOCK_CONTENDED => What::Contended { holder: small(event.b)?, lock: event.a? },
            FlightKind::LOCK_TAKEN => What::Taken { lock: event.a? },
            _ => What::Other,
        })
    };
    named().unwrap_or(What::Unnamed(kind))
}
