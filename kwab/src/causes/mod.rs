//! Concludes what caused what: pairs the events of the flight recorders of all processors on one clock.
//!
//! A [`Moment`] is an event with a time; a [`Flow`] says that one moment caused another, which kind of cause it was and
//! what that rests on ([`Evidence`]). What could not be paired is counted by kind and reason ([`Why`]); a pair is never
//! assumed. Three things make a pair less certain, and each is said:
//!
//! * an interrupt between processors names no sender, so that it is paired by order alone ([`Evidence::Order`]);
//! * a holder of a lock is named by its processor, and its thread is the one that ran there
//!   ([`Evidence::Processor`]);
//! * the rings of processors reach back to different times: a pair that spans a time of which a ring has lost its
//!   events may hide a nearer partner ([`Evidence::AcrossLoss`]).
//!
//! [`clock`] puts records that were stamped in nanoseconds and in ticks on one clock; [`moments`] reads, [`pair`]
//! decides. A dump is hostile: time and memory are those of sorting its events, and flows are no more than twice as
//! many as events.

pub mod clock;
mod file;
mod gaps;
pub mod moments;
pub mod pair;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kwab_format::record::Cpu;
use kwab_format::{AnyRecord, Records, SectionKind};
use serde::Serialize;

use crate::model::Dump;
use crate::units;
pub use clock::{Clock, Scale};
pub use moments::{Moment, Moments, What};

/// What a cause did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowKind {
    /// A thread was made runnable, and then ran.
    WakeToRun,
    /// A processor interrupted another, whose handler ran.
    InterruptToHandler,
    /// A processor asked others to forget translations, and one did.
    ShootdownToFlush,
    /// A signal was sent, and then delivered.
    SignalToDelivery,
    /// The thread that held a lock ran, and another processor began to wait for it.
    HolderToWaiter,
    /// A thread was made, and ran for the first time.
    ForkToChild,
    /// A processor began to wait for a lock, and then took it.
    WaitToLock,
}

impl FlowKind {
    /// All kinds, the most telling first.
    pub const ALL: [Self; 7] = [
        Self::WakeToRun,
        Self::InterruptToHandler,
        Self::ShootdownToFlush,
        Self::SignalToDelivery,
        Self::HolderToWaiter,
        Self::ForkToChild,
        Self::WaitToLock,
    ];

    /// Cause and effect in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WakeToRun => "wake → run",
            Self::InterruptToHandler => "IPI → handler",
            Self::ShootdownToFlush => "TLB shootdown → flush",
            Self::SignalToDelivery => "signal → delivery",
            Self::HolderToWaiter => "lock holder → waiter",
            Self::ForkToChild => "fork → child",
            Self::WaitToLock => "lock wait → lock taken",
        }
    }

    /// What the cause did to the effect, as a participle.
    #[must_use]
    pub const fn done(self) -> &'static str {
        match self {
            Self::WakeToRun => "woken",
            Self::InterruptToHandler => "interrupted",
            Self::ShootdownToFlush => "asked",
            Self::SignalToDelivery => "sent",
            Self::HolderToWaiter => "held up",
            Self::ForkToChild => "forked",
            Self::WaitToLock => "waited for",
        }
    }

    /// The order of importance among the causes of one effect, which is that of the list.
    const fn rank(self) -> u8 {
        self as u8
    }
}

/// What a pair rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Both events name the same thread, process or lock, and no event between them is lost.
    Named,
    /// The cause is named by its processor; the thread is the one that ran there.
    Processor,
    /// Both events name the same, and between them a ring has lost events, so that a nearer partner may be missing.
    AcrossLoss,
    /// Nothing names the pair: they follow each other.
    Order,
}

impl Evidence {
    /// The evidence in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Named => "both events name it",
            Self::Processor => "the processor is named, the thread ran there",
            Self::AcrossLoss => "both events name it, but events between them are lost",
            Self::Order => "by order alone",
        }
    }
}

/// A cause and its effect, as numbers of moments in [`Causes::moments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What the cause did.
    pub kind: FlowKind,
    /// What the pair rests on.
    pub evidence: Evidence,
    /// Number of the moment that is the cause.
    pub from: u32,
    /// Number of the moment that is the effect.
    pub to: u32,
}

/// Why an event has no partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// An effect whose cause is not in the dump: it was overwritten, or never recorded.
    NoCause,
    /// A cause without an effect up to the end of the recording.
    NoEffect,
    /// A cause that another one of its kind joined before the effect, which is paired with one of them.
    Joined,
    /// The record does not say which thread, processor or process it is about.
    Unnamed,
}

impl Why {
    /// The reason in words, of a number of events.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoCause => "without a cause in the dump",
            Self::NoEffect => "without an effect in the dump",
            Self::Joined => "joined another before the effect",
            Self::Unnamed => "do not say whom they are about",
        }
    }
}

/// What caused what in a dump.
#[derive(Debug)]
pub struct Causes {
    /// The clock of the moments.
    pub clock: Clock,
    /// The events, earliest first.
    pub moments: Vec<Moment>,
    /// Causes and effects in the order of the effects; of one effect the most telling kind first.
    pub flows: Vec<Flow>,
    /// Events without a partner.
    pub unpaired: BTreeMap<(FlowKind, Why), u64>,
    /// Events without a time on the clock.
    pub untimed: u64,
    /// Events that the dump's memory limit left no room for.
    pub left_out: u64,
    /// Numbers of flows in the order of their causes.
    by_cause: Vec<u32>,
}

impl Causes {
    /// Reads the events of a dump and pairs them.
    #[must_use]
    pub fn of(dump: &Dump) -> Self {
        let clock = Clock::of(dump);
        let mut moments = Moments::new(clock, &dump.file.budget);
        for (index, section) in (0..).zip(&dump.loaded) {
            moments.read(index, section.kind, &section.payload);
        }
        if is_damaged(dump) || lacks_a_processor(dump, &moments) {
            moments.lose_all();
        }
        Self::paired(moments)
    }

    /// Pairs the moments that were read.
    #[must_use]
    pub fn paired(moments: Moments) -> Self {
        let (clock, untimed, left_out) = (moments.clock, moments.untimed, moments.left_out);
        let (moments, gaps) = moments.sorted();
        let (mut flows, unpaired) = pair::pair(&moments, &gaps);
        flows.sort_unstable_by_key(|flow| (flow.to, flow.kind.rank(), flow.from));
        let mut by_cause: Vec<u32> = (0..).take(flows.len()).collect();
        by_cause.sort_unstable_by_key(|at| (flows[*at as usize].from, *at));
        Self { clock, moments, flows, unpaired, untimed, left_out, by_cause }
    }

    /// What caused a moment, with the numbers of the flows.
    pub fn causes_of(&self, moment: u32) -> impl Iterator<Item = (u32, &Flow)> {
        let begin = self.flows.partition_point(|flow| flow.to < moment);
        let flows = self.flows[begin..].iter().take_while(move |flow| flow.to == moment);
        (begin as u32..).zip(flows)
    }

    /// What a moment caused, with the numbers of the flows.
    pub fn effects_of(&self, moment: u32) -> impl Iterator<Item = (u32, &Flow)> {
        let of = |at: &u32| &self.flows[*at as usize];
        let begin = self.by_cause.partition_point(|at| of(at).from < moment);
        self.by_cause[begin..].iter().map(move |at| (*at, of(at))).take_while(move |(_, flow)| flow.from == moment)
    }

    /// How many flows there are of each kind and evidence.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<(FlowKind, Evidence), u64> {
        let mut counts = BTreeMap::new();
        for flow in &self.flows {
            *counts.entry((flow.kind, flow.evidence)).or_default() += 1;
        }
        counts
    }
}

impl Causes {
    /// The record of a moment, in the dump of which [`of`](Self::of) read it.
    #[must_use]
    pub fn record<'d>(&self, dump: &'d Dump, moment: &Moment) -> Option<AnyRecord<'d>> {
        let payload: &[u8] = &dump.loaded.get(moment.section as usize)?.payload;
        Records::new(payload.get(moment.offset as usize..)?).next()?.decode().ok()
    }

    /// What caused the effect of a flow, in words.
    #[must_use]
    pub fn cause_words(&self, flow: &Flow) -> String {
        let [from, to] = self.ends(flow);
        let before = self.span(to.ns.saturating_sub(from.ns));
        let evidence = match flow.evidence {
            Evidence::Named | Evidence::Processor => String::new(),
            weak => format!(" ({})", weak.words()),
        };
        match flow.kind {
            FlowKind::HolderToWaiter => {
                format!("held up by {}, which ran on CPU {} since {before} before{evidence}", who(from.tid), from.cpu)
            }
            FlowKind::WaitToLock => format!("waited for it for {before}{evidence}"),
            kind => format!("{} by {}{}, {before} before{evidence}", kind.done(), who(from.by), place(from)),
        }
    }

    /// What the cause of a flow led to, in words.
    #[must_use]
    pub fn effect_words(&self, flow: &Flow) -> String {
        let [from, to] = self.ends(flow);
        let later = self.span(to.ns.saturating_sub(from.ns));
        let (whom, place) = (who(to.tid), place(to));
        match flow.kind {
            FlowKind::WakeToRun => format!("woke {whom}, which ran{place} {later} later"),
            FlowKind::ForkToChild => format!("forked {whom}, which ran{place} {later} later"),
            FlowKind::InterruptToHandler => format!("interrupted CPU {} {later} later", to.cpu),
            FlowKind::ShootdownToFlush => format!("made CPU {} flush {later} later", to.cpu),
            FlowKind::SignalToDelivery => format!("delivered to {whom}{place} {later} later"),
            FlowKind::HolderToWaiter => format!("{whom} waits{place} {later} later for a lock that it holds"),
            FlowKind::WaitToLock => format!("took the lock {later} later"),
        }
    }

    fn ends(&self, flow: &Flow) -> [&Moment; 2] {
        [flow.from, flow.to].map(|end| &self.moments[end as usize])
    }

    fn span(&self, ns: u64) -> String {
        match self.clock.scale() {
            Scale::Time => units::duration(ns),
            Scale::Ticks => units::count(ns, "tick", "ticks"),
        }
    }
}

fn who(tid: u32) -> String {
    match tid {
        Moment::NONE => "an unknown thread".to_owned(),
        0 => "the idle thread or an interrupt".to_owned(),
        tid => format!("thread {tid}"),
    }
}

fn place(moment: &Moment) -> String {
    if moment.cpu == Moment::NONE { String::new() } else { format!(" on CPU {}", moment.cpu) }
}

/// Whether events of the recorders are damaged or were not read.
fn is_damaged(dump: &Dump) -> bool {
    let concerns = |kind: Option<SectionKind>| kind.is_none_or(|kind| kind == SectionKind::FLIGHT);
    dump.file.defects.iter().any(|defect| defect.sections.is_some() && concerns(defect.section_kind))
}

/// Whether a processor of the machine has no event.
fn lacks_a_processor(dump: &Dump, moments: &Moments) -> bool {
    dump.records::<Cpu<'_>>().filter_map(|cpu| cpu.number).any(|number| !moments.has_processor(number))
}
