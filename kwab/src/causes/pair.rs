//! Decides which moments belong together, in one pass over them in the order of time.
//!
//! For each kind of cause there is a table of those that wait for their effect, by what the effect will name: thread,
//! processor, process and signal. An effect takes what waits for it. Where several wait, one is taken and the
//! others are counted as joined:
//!
//! * of wakes of a thread the last, since the ones before it found it awake;
//! * of interrupts of a processor the first, since the hardware keeps one pending and drops the others; likewise of
//!   flushes, since one serves all that were asked for;
//! * of signals below 32 the last, since one that is ignored is recorded as sent and never delivered; of those from 32
//!   on, which queue, the first. Both only by order: which of them it was, no record says.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use kwab_format::record::FlightKind;

use super::gaps::Gaps;
use super::{Evidence, Flow, FlowKind, Moment, What, Why};

/// Flows, and the moments without one.
type Pairs = (Vec<Flow>, BTreeMap<(FlowKind, Why), u64>);

/// Pairs moments that are sorted by time.
pub(super) fn pair(moments: &[Moment], gaps: &Gaps) -> Pairs {
    let mut pairing = Pairing {
        moments,
        gaps,
        flows: Vec::new(),
        unpaired: BTreeMap::new(),
        running: HashMap::new(),
        left: HashMap::new(),
        wakes: Table::new(),
        forks: Table::new(),
        interrupts: Table::new(),
        shootdowns: Table::new(),
        signals: Table::new(),
        queued: HashMap::new(),
        locks: Table::new(),
    };
    for (number, moment) in (0..).zip(moments) {
        pairing.see(number, moment);
    }
    pairing.finish()
}

/// A thread as it left its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Asleep,
    Runnable,
}

/// Causes that wait for one effect.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    first: u32,
    last: u32,
    count: u64,
}

/// Where each cause waits for its effect.
type Table<K> = HashMap<K, Waiting>;

struct Pairing<'m> {
    moments: &'m [Moment],
    gaps: &'m Gaps,
    flows: Vec<Flow>,
    unpaired: BTreeMap<(FlowKind, Why), u64>,
    /// What each processor runs: the moment at which it began, and the thread.
    running: HashMap<u32, (u32, u32)>,
    left: HashMap<u32, Left>,
    wakes: Table<u32>,
    forks: Table<u32>,
    interrupts: Table<u32>,
    shootdowns: Table<u32>,
    /// By process and number.
    signals: Table<(u32, u32)>,
    queued: HashMap<(u32, u32), VecDeque<u32>>,
    /// By the waiting processor and the lock's address.
    locks: Table<(u32, u64)>,
}

/// The first signal that is queued as often as it is sent (signal(7), real-time signals).
const FIRST_QUEUED: u32 = 32;

impl Pairing<'_> {
    fn see(&mut self, number: u32, moment: &Moment) {
        match moment.what {
            What::Run { before, runnable } => self.run(number, moment, before, runnable),
            What::Sleep => {
                self.left.insert(moment.tid, Left::Asleep);
                // It was awake when it was woken, or its run is lost.
                if let Some(waiting) = self.wakes.remove(&moment.tid) {
                    self.count(FlowKind::WakeToRun, Why::NoEffect, waiting.count);
                }
            }
            What::Wake => wait(&mut self.wakes, moment.tid, number),
            What::Fork { child } => wait(&mut self.forks, child, number),
            What::First => self.born(number, moment.pid),
            What::Interrupt { to } => wait(&mut self.interrupts, to, number),
            What::Interrupted => {
                let waiting = self.interrupts.remove(&moment.cpu);
                self.by_order(FlowKind::InterruptToHandler, waiting, number);
            }
            What::Shootdown { to } => {
                for cpu in (0..u64::BITS).filter(|bit| to >> bit & 1 != 0) {
                    wait(&mut self.shootdowns, cpu, number);
                }
            }
            What::Flushed => {
                let waiting = self.shootdowns.remove(&moment.cpu);
                self.by_order(FlowKind::ShootdownToFlush, waiting, number);
            }
            What::Signal { number: signal, to } if signal >= FIRST_QUEUED => {
                self.queued.entry((to, signal)).or_default().push_back(number);
            }
            What::Signal { number: signal, to } => wait(&mut self.signals, (to, signal), number),
            What::Delivered { number: signal } => self.delivered(number, (moment.pid, signal)),
            What::Contended { holder, lock } => {
                self.contended(number, moment, holder);
                wait(&mut self.locks, (moment.cpu, lock), number);
            }
            What::Taken { lock } => self.taken(number, (moment.cpu, lock)),
            What::Unnamed(kind) => self.unnamed(kind),
            What::Other => {}
        }
    }

    /// A processor runs another thread.
    fn run(&mut self, number: u32, moment: &Moment, before: Option<u32>, runnable: bool) {
        if let Some(before) = before.filter(|before| *before != 0) {
            if runnable {
                // A recorder that keeps no state of the switch may have told of the sleep before it.
                self.left.entry(before).or_insert(Left::Runnable);
            } else {
                self.left.insert(before, Left::Asleep);
            }
        }
        self.running.insert(moment.cpu, (number, moment.tid));
        if moment.tid == 0 {
            return;
        }
        self.born(number, moment.tid);
        let left = self.left.remove(&moment.tid);
        match self.wakes.remove(&moment.tid) {
            Some(waiting) => {
                self.count(FlowKind::WakeToRun, Why::Joined, waiting.count - 1);
                self.named(FlowKind::WakeToRun, waiting.last, number);
            }
            // It was taken from its processor for another, and goes on.
            None if left == Some(Left::Runnable) => {}
            None => self.count(FlowKind::WakeToRun, Why::NoCause, 1),
        }
    }

    /// A thread is seen for the first time since it was made.
    fn born(&mut self, number: u32, child: u32) {
        if let Some(waiting) = self.forks.remove(&child) {
            self.count(FlowKind::ForkToChild, Why::Joined, waiting.count - 1);
            self.named(FlowKind::ForkToChild, waiting.last, number);
        }
    }

    fn delivered(&mut self, number: u32, of: (u32, u32)) {
        let kind = FlowKind::SignalToDelivery;
        if let Some(queue) = self.queued.get_mut(&of) {
            let (sent, left) = (queue.pop_front(), queue.len());
            match sent {
                Some(sent) if left == 0 => self.named(kind, sent, number),
                Some(sent) => self.flow(kind, Evidence::Order, sent, number),
                None => self.count(kind, Why::NoCause, 1),
            }
            return;
        }
        match self.signals.remove(&of) {
            Some(waiting) if waiting.count == 1 => self.named(kind, waiting.last, number),
            Some(waiting) => {
                self.count(kind, Why::Joined, waiting.count - 1);
                self.flow(kind, Evidence::Order, waiting.last, number);
            }
            None => self.count(kind, Why::NoCause, 1),
        }
    }

    fn contended(&mut self, number: u32, moment: &Moment, holder: u32) {
        match self.running.get(&holder) {
            Some((since, thread)) if *thread != 0 && holder != moment.cpu => {
                let since = *since;
                let lost = self.gaps.between(self.moments[since as usize].ns, moment.ns);
                let evidence = if lost { Evidence::AcrossLoss } else { Evidence::Processor };
                self.flow(FlowKind::HolderToWaiter, evidence, since, number);
            }
            _ => self.count(FlowKind::HolderToWaiter, Why::NoCause, 1),
        }
    }

    /// The end of a wait. A processor waits for a lock once at a time: of several begins the last is this wait's.
    fn taken(&mut self, number: u32, of: (u32, u64)) {
        match self.locks.remove(&of) {
            Some(waiting) => {
                self.count(FlowKind::WaitToLock, Why::NoEffect, waiting.count - 1);
                self.named(FlowKind::WaitToLock, waiting.last, number);
            }
            None => self.count(FlowKind::WaitToLock, Why::NoCause, 1),
        }
    }

    fn by_order(&mut self, kind: FlowKind, waiting: Option<Waiting>, number: u32) {
        match waiting {
            Some(waiting) => {
                self.count(kind, Why::Joined, waiting.count - 1);
                self.flow(kind, Evidence::Order, waiting.first, number);
            }
            None => self.count(kind, Why::NoCause, 1),
        }
    }

    fn unnamed(&mut self, kind: FlightKind) {
        let flow = match kind {
            FlightKind::CONTEXT_SWITCH | FlightKind::WAKE | FlightKind::SLEEP => FlowKind::WakeToRun,
            FlightKind::IPI_SEND | FlightKind::IPI_RECEIVE => FlowKind::InterruptToHandler,
            FlightKind::TLB_SEND | FlightKind::TLB_RECEIVE => FlowKind::ShootdownToFlush,
            FlightKind::SIGNAL_SEND | FlightKind::SIGNAL_DELIVER => FlowKind::SignalToDelivery,
            FlightKind::FORK => FlowKind::ForkToChild,
            FlightKind::LOCK_TAKEN => FlowKind::WaitToLock,
            _ => FlowKind::HolderToWaiter,
        };
        self.count(flow, Why::Unnamed, 1);
    }

    /// A pair whose events name the same.
    fn named(&mut self, kind: FlowKind, from: u32, to: u32) {
        let time = |number: u32| self.moments[number as usize].ns;
        let lost = self.gaps.between(time(from), time(to));
        self.flow(kind, if lost { Evidence::AcrossLoss } else { Evidence::Named }, from, to);
    }

    fn flow(&mut self, kind: FlowKind, evidence: Evidence, from: u32, to: u32) {
        self.flows.push(Flow { kind, evidence, from, to });
    }

    fn count(&mut self, kind: FlowKind, why: Why, times: u64) {
        if times > 0 {
            *self.unpaired.entry((kind, why)).or_default() += times;
        }
    }

    /// Counts what still waits.
    fn finish(mut self) -> Pairs {
        for (kind, left) in [
            (FlowKind::WakeToRun, waiting(&self.wakes)),
            (FlowKind::ForkToChild, waiting(&self.forks)),
            (FlowKind::WaitToLock, waiting(&self.locks)),
            (FlowKind::InterruptToHandler, waiting(&self.interrupts)),
            (FlowKind::ShootdownToFlush, waiting(&self.shootdowns)),
            (FlowKind::SignalToDelivery, waiting(&self.signals)),
            (FlowKind::SignalToDelivery, self.queued.values().map(|queue| queue.len() as u64).sum()),
        ] {
            self.count(kind, Why::NoEffect, left);
        }
        (self.flows, self.unpaired)
    }
}

/// A cause waits for its effect.
fn wait<K: Hash + Eq>(table: &mut Table<K>, of: K, number: u32) {
    let waiting = table.entry(of).or_insert(Waiting { first: number, last: number, count: 0 });
    waiting.last = number;
    waiting.count += 1;
}

fn waiting<K>(table: &Table<K>) -> u64 {
    table.values().map(|waiting| waiting.count).sum()
}
