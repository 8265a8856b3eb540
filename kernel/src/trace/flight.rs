//! The flight recorder: what each processor did last, always on.
//!
//! One ring per processor ([`kernel_logic::recorder`]); the functions here are the points that write it, and
//! [`for_each`] is how a dump reads it, from any processor, at any moment, without a lock. Without the feature
//! `recorders` every point is empty and the rings stay so.
//!
//! An idle machine does not overwrite what happened before: a timer interrupt that directly follows another one of the
//! same thread is counted in the event of the first, and an idle loop that only timer interrupts disturb is entered
//! once and left once.

use core::sync::atomic::{AtomicU64, Ordering};

use kernel_logic::recorder::{self, Counts, Recorder, TAG_BITS};
use kernel_logic::runqueue::ThreadState;
use kwab_format::record::{FlightEvent, FlightKind, Stamp};
use machine::cpu::{self, CpuId, MAX_CPUS, PerCpu};
use machine::describe::Entry;
use machine::note::Note;
use machine::time::{Nanos, cycles, params};

use super::Traced;
use crate::upper::{Task, try_current};

/// Events a processor's ring holds.
pub const EVENTS: usize = 512;
/// Time, whose doing, three numbers; the rest makes a slot a power of two long, so that finding one takes a shift.
const WORDS: usize = 7;
/// Whether the recorders are compiled in.
pub const ON: bool = cfg!(feature = "recorders");

static RINGS: PerCpu<Recorder<WORDS, EVENTS>> = PerCpu::new([const { Recorder::new() }; MAX_CPUS]);

const LAYOUT: [usize; 5] = Recorder::<WORDS, EVENTS>::LAYOUT;
/// The rings in [`machine::describe`]: each processor's, and in it where its count and its slots lie.
pub static FIELDS: [Entry; 9] = [
    Entry::address("flight", &RINGS),
    Entry::number("flight.stride", PerCpu::<Recorder<WORDS, EVENTS>>::STRIDE),
    Entry::number("flight.count", if ON { EVENTS } else { 0 }),
    Entry::number("flight.next", LAYOUT[0]),
    Entry::number("flight.slots", LAYOUT[1]),
    Entry::number("flight.slot", LAYOUT[2]),
    Entry::number("flight.seal", LAYOUT[3]),
    Entry::number("flight.words", LAYOUT[4]),
    Entry::number("flight.tag_bits", TAG_BITS as usize),
];

/// An event as read. What `a` to `d` mean is beside the function that records the kind.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Kind of the event.
    pub kind: FlightKind,
    /// Its number among the processor's events.
    pub number: u64,
    /// The processor that recorded it.
    pub cpu: CpuId,
    /// When, on the monotonic clock.
    pub ns: Nanos,
    /// Process id, 0 for idle threads and before the first thread.
    pub pid: u32,
    /// Thread id, 0 likewise.
    pub tid: u32,
    /// Numbers; those the kind does not have are `None`.
    pub numbers: [Option<u64>; 4],
}

impl Event {
    /// As the dump format has it.
    pub fn record(&self) -> FlightEvent<'static> {
        let [a, b, c, d] = self.numbers;
        FlightEvent {
            kind: Some(self.kind),
            pid: Some(self.pid),
            tid: Some(self.tid),
            a,
            b,
            c,
            d,
            stamp: Stamp { seq: Some(self.number), cpu: Some(self.cpu.0), ns: Some(self.ns), ..Stamp::default() },
            ..FlightEvent::default()
        }
    }
}

/// Every event of a processor's ring that can be had, oldest first; how many could not although they should. Never
/// waits, never faults, allocates nothing. A switch away from a thread that went to sleep reads as two events, the
/// sleep first.
pub fn for_each(cpu: CpuId, mut visit: impl FnMut(&Event)) -> u32 {
    if !ON || cpu.0 as usize >= MAX_CPUS {
        return 0;
    }
    // A switch does not name the thread that leaves the processor: the switch before it does.
    let mut running = None;
    RINGS.of(cpu).for_each(|entry| {
        if let Some(sleep) = sleep_before(&entry, running, cpu) {
            visit(&sleep);
        }
        visit(&decode(&entry, running, cpu));
        if entry.tag == tag(FlightKind::CONTEXT_SWITCH) {
            running = Some(entry.words[1]);
        }
    })
}

/// What a processor's ring has seen.
pub fn counts(cpu: CpuId) -> Counts {
    RINGS.of(cpu).counts()
}

fn decode(entry: &recorder::Entry<WORDS>, running: Option<u64>, cpu: CpuId) -> Event {
    let [_, who, a, b, c, ..] = entry.words;
    let kind = FlightKind(u16::from(entry.tag & !IN_CYCLES));
    let ns = time_of(entry);
    let numbers = match kind {
        FlightKind::CONTEXT_SWITCH => {
            let from = running.map(|from| from >> 32);
            [from, Some(who >> 32), running.map(|from| from & LOW), Some(a)]
        }
        FlightKind::WAKE | FlightKind::IDLE_ENTER | FlightKind::IDLE_EXIT => [None; 4],
        FlightKind::IRQ if b != 0 => [Some(a), Some(b), Some(in_nanos(c)), None],
        FlightKind::IRQ | FlightKind::LOCK_TAKEN => [Some(a), None, None, None],
        FlightKind::PAGE_FAULT | FlightKind::MMAP | FlightKind::MPROTECT => [Some(a), Some(b), Some(c), None],
        _ => [Some(a), Some(b), None, None],
    };
    Event { kind, number: entry.number, cpu, ns, pid: (who >> 32) as u32, tid: who as u32, numbers }
}

fn sleep_before(entry: &recorder::Entry<WORDS>, running: Option<u64>, cpu: CpuId) -> Option<Event> {
    let [ns, _, left_in, ..] = entry.words;
    let from = running?;
    let slept = ThreadState::from_number(left_in as u8).is_asleep();
    let switch = entry.tag == tag(FlightKind::CONTEXT_SWITCH);
    (switch && slept).then_some(Event {
        kind: FlightKind::SLEEP,
        number: entry.number,
        cpu,
        ns,
        pid: (from >> 32) as u32,
        tid: from as u32,
        numbers: [Some(left_in), None, None, None],
    })
}

/// When an event was: what a point has at hand costs least, nanoseconds or a cycle count.
fn time_of(entry: &recorder::Entry<WORDS>) -> Nanos {
    let [at, ..] = entry.words;
    if entry.tag & IN_CYCLES == 0 { at } else { in_nanos(at) }
}

fn in_nanos(cycles: u64) -> Nanos {
    let clock = params();
    clock.nanoseconds(cycles.saturating_sub(clock.base))
}

/// In a tag: the time is a cycle count.
const IN_CYCLES: u8 = 1 << 5;

/// Kinds are few enough for a tag, with a bit to spare.
const fn tag(kind: FlightKind) -> u8 {
    assert!(kind.0 < IN_CYCLES as u16, "the event kind does not fit its tag");
    kind.0 as u8
}

const LOW: u64 = 0xffff_ffff;

#[inline(always)]
fn put<const GIVEN: usize>(kind: FlightKind, words: [u64; GIVEN]) {
    if ON {
        RINGS.here().put(tag(kind), words);
    }
}

/// Another thread gets the processor. Reads as `a` process and `c` thread it is taken from, `b` process it is given to,
/// `d` the number of the state ([`ThreadState`]) the first was left in; `a` and `c` are absent where no earlier switch
/// is kept.
#[inline(always)]
pub fn switch(left_in: ThreadState, to: &Task, at: Nanos) {
    put(FlightKind::CONTEXT_SWITCH, [at, to.ids(), u64::from(left_in as u8)]);
}

/// A thread may run again.
#[inline(always)]
pub fn wake(thread: &Task, at: Nanos) {
    put(FlightKind::WAKE, [at, thread.ids()]);
}

/// Something the running thread does or suffers.
#[inline(always)]
fn mine<const GIVEN: usize>(kind: FlightKind, numbers: [u64; GIVEN]) {
    if ON {
        of(try_current().map_or(0, |task| task.ids()), kind, numbers);
    }
}

/// The same of a thread that is known.
#[inline(always)]
fn of<const GIVEN: usize>(who: u64, kind: FlightKind, numbers: [u64; GIVEN]) {
    if ON {
        let mut words = [cycles(), who, 0, 0, 0];
        for (to, from) in words[2..].iter_mut().zip(numbers) {
            *to = from;
        }
        RINGS.here().put(tag(kind) | IN_CYCLES, words);
    }
}

/// A page fault of a program or of a copy on its behalf: address, instruction, the processor's error code.
#[inline(always)]
pub fn page_fault(task: &Task, addr: u64, ip: u64, code: u64) {
    of(task.ids(), FlightKind::PAGE_FAULT, [addr, ip, code]);
}

/// Memory was mapped: address, bytes, protection (1 read, 2 write, 4 execute).
#[inline(always)]
pub fn mmap(addr: u64, len: u64, prot: u8) {
    mine(FlightKind::MMAP, [addr, len, u64::from(prot)]);
}

/// Memory is being unmapped: address, bytes. Recorded before the tables change, so that the shootdown follows it.
#[inline(always)]
pub fn munmap(addr: u64, len: u64) {
    mine(FlightKind::MUNMAP, [addr, len]);
}

/// Protection is being changed: address, bytes, new protection. Before the tables change.
#[inline(always)]
pub fn mprotect(addr: u64, len: u64, prot: u8) {
    mine(FlightKind::MPROTECT, [addr, len, u64::from(prot)]);
}

/// A signal was sent: its number, the receiving process.
#[inline(always)]
pub fn signal_sent(signal: u8, to: u32) {
    mine(FlightKind::SIGNAL_SEND, [u64::from(signal), u64::from(to)]);
}

/// A signal is delivered: its number, the handler (0: the default action).
#[inline(always)]
pub fn signal_delivered(signal: u8, handler: u64) {
    mine(FlightKind::SIGNAL_DELIVER, [u64::from(signal), handler]);
}

/// A process or thread was made: the parent's process, the new thread.
#[inline(always)]
pub fn fork(parent: u32, child: u32) {
    mine(FlightKind::FORK, [u64::from(parent), u64::from(child)]);
}

/// A program begins: entry point, initial stack pointer.
#[inline(always)]
pub fn exec(entry: u64, sp: u64) {
    mine(FlightKind::EXEC, [entry, sp]);
}

/// A thread ends and will let go of its memory: its wait status, whether no other thread of the process is left.
#[inline(always)]
pub fn exit(status: i32, last: bool) {
    mine(FlightKind::EXIT, [u64::from(status.cast_unsigned()), u64::from(last)]);
}

/// Number of the event by which a processor's idle loop was entered, plus 1; 0 while it is left.
static IDLE_SINCE: PerCpu<AtomicU64> = PerCpu::new([const { AtomicU64::new(0) }; MAX_CPUS]);

/// The processor found nothing to do. Recorded unless only timer interrupts came since the last time.
pub fn idle_enter() {
    if ON {
        let ring = RINGS.here();
        let who = try_current().map_or(0, |task| task.ids());
        let since = IDLE_SINCE.here();
        let events = ring.counts().total.wrapping_sub(since.load(Ordering::Relaxed));
        if since.load(Ordering::Relaxed) != 0 && (events == 0 || events == 1 && ring.is_newest(TIMER_TAG, [who, TIMER]))
        {
            return;
        }
        of(who, FlightKind::IDLE_ENTER, []);
        since.store(ring.counts().total, Ordering::Relaxed);
    }
}

/// The idle processor has work again.
pub fn idle_exit() {
    if ON && IDLE_SINCE.here().swap(0, Ordering::Relaxed) != 0 {
        mine(FlightKind::IDLE_EXIT, []);
    }
}

/// Source of timer interrupts.
const TIMER: u64 = 0;
const TIMER_TAG: u8 = tag(FlightKind::IRQ) | IN_CYCLES;

/// A timer interrupt: source 0, repeats that directly followed, time of the last of them. The last two are absent
/// without repeats. Interrupt context.
pub fn timer() {
    if ON {
        let who = try_current().map_or(0, |task| task.ids());
        if !RINGS.here().repeat(TIMER_TAG, [who, TIMER], cycles()) {
            of(who, FlightKind::IRQ, [TIMER]);
        }
    }
}

/// A device interrupt: 1 the console, 16 + n platform line n.
#[inline(always)]
pub fn interrupt(source: u64) {
    mine(FlightKind::IRQ, [source]);
}

/// What the machine does by itself: interrupts between processors, shootdowns, contended locks.
pub fn machine(note: &Note) {
    match *note {
        Note::InterruptSent { to } => mine(FlightKind::IPI_SEND, [u64::from(to.0)]),
        Note::InterruptReceived => mine(FlightKind::IPI_RECEIVE, [u64::from(cpu::id().0)]),
        // First the processors asked, then whether kernel translations go too.
        Note::FlushAsked { of, kernel } => mine(FlightKind::TLB_SEND, [of, u64::from(kernel)]),
        Note::FlushServed { kernel } => mine(FlightKind::TLB_RECEIVE, [u64::from(kernel)]),
        // Its address, and the processor that holds it.
        Note::LockContended { lock, holder } => mine(FlightKind::LOCK_CONTENDED, [lock, u64::from(holder.0)]),
        Note::LockTaken { lock } => mine(FlightKind::LOCK_TAKEN, [lock]),
    }
}
