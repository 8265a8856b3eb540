//! Synthetic recordings, of which what caused what is known, and recordings that no kernel makes.

use std::sync::Arc;
use std::time::Instant;

use kwab_format::record::{Cpu, FlightEvent, FlightKind, ProcessExec, ProcessFork, Stamp};
use kwab_format::{BootId, DumpId, FileHeader, SectionKind};

use super::*;
use crate::model::DumpFile;
use crate::model::emit::DumpWriter;
use crate::model::memory::Budget;

/// A recording: each event with the next number of its processor's ring.
struct Recording {
    writer: DumpWriter<Vec<u8>>,
    numbers: BTreeMap<u32, u64>,
}

impl Recording {
    fn new() -> Self {
        let writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        Self { writer, numbers: BTreeMap::new() }
    }

    /// An event of a thread whose process has the same number.
    fn put(&mut self, cpu: u32, ns: u64, kind: FlightKind, tid: u32, numbers: &[u64]) -> &mut Self {
        let number = self.numbers.entry(cpu).or_default();
        let at = |index: usize| numbers.get(index).copied();
        let stamp = Stamp { seq: Some(*number), cpu: Some(cpu), ns: Some(ns), ..Stamp::default() };
        *number += 1;
        let who = FlightEvent { kind: Some(kind), pid: Some(tid), tid: Some(tid), stamp, ..FlightEvent::default() };
        self.writer.put(SectionKind::FLIGHT, &FlightEvent { a: at(0), b: at(1), c: at(2), d: at(3), ..who });
        self
    }

    /// A switch between threads; the first was left asleep, or able to run.
    fn switch(&mut self, cpu: u32, ns: u64, (from, to): (u32, u32), asleep: bool) -> &mut Self {
        let state = if asleep { 2 } else { 1 };
        self.put(cpu, ns, FlightKind::CONTEXT_SWITCH, to, &[from.into(), to.into(), from.into(), state])
    }

    /// Events that newer ones have overwritten.
    fn lose(&mut self, cpu: u32, events: u64) -> &mut Self {
        *self.numbers.entry(cpu).or_default() += events;
        self
    }

    fn causes(self) -> Causes {
        Causes::of(&Dump::from_bytes(self.writer.finish().unwrap()).unwrap())
    }
}

/// Flows as kind, evidence and times.
fn told(causes: &Causes) -> Vec<(FlowKind, Evidence, u64, u64)> {
    let ns = |moment: u32| causes.moments[moment as usize].ns;
    causes.flows.iter().map(|flow| (flow.kind, flow.evidence, ns(flow.from), ns(flow.to))).collect()
}

fn unpaired(causes: &Causes) -> Vec<(FlowKind, Why, u64)> {
    causes.unpaired.iter().map(|((kind, why), count)| (*kind, *why, *count)).collect()
}

#[test]
fn a_child_is_forked_woken_and_run_on_another_processor() {
    let mut recording = Recording::new();
    recording
        .switch(0, 10, (0, 3), false)
        .put(0, 100, FlightKind::FORK, 3, &[3, 7])
        .put(0, 110, FlightKind::WAKE, 7, &[])
        .put(0, 111, FlightKind::IPI_SEND, 3, &[1])
        .put(1, 120, FlightKind::IPI_RECEIVE, 0, &[1])
        .switch(1, 130, (0, 7), false)
        .put(1, 200, FlightKind::SLEEP, 7, &[2])
        .switch(1, 200, (7, 0), true);
    let causes = recording.causes();
    assert_eq!(
        told(&causes),
        [
            (FlowKind::InterruptToHandler, Evidence::Order, 111, 120),
            (FlowKind::WakeToRun, Evidence::Named, 110, 130),
            (FlowKind::ForkToChild, Evidence::Named, 100, 130),
        ]
    );
    assert_eq!(unpaired(&causes), [(FlowKind::WakeToRun, Why::NoCause, 1)], "the first thread of all");
    let child = causes.flows[1].to;
    assert_eq!(causes.causes_of(child).map(|(number, _)| number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(causes.cause_words(&causes.flows[1]), "woken by thread 3 on CPU 0, 20 ns before");
    assert_eq!(causes.cause_words(&causes.flows[0]), "interrupted by thread 3 on CPU 0, 9 ns before (by order alone)");
    assert_eq!(causes.effect_words(&causes.flows[2]), "forked thread 7, which ran on CPU 1 30 ns later");
    assert_eq!(causes.effects_of(causes.flows[0].from).count(), 1);
    assert_eq!(causes.effects_of(child).count(), 0);
}

#[test]
fn a_thread_that_was_preempted_goes_on_without_a_cause_and_one_that_slept_does_not() {
    let mut recording = Recording::new();
    recording
        .switch(0, 10, (4, 3), false)
        .switch(0, 20, (3, 4), true)
        .switch(0, 30, (4, 3), false)
        .switch(0, 40, (3, 4), false)
        .switch(0, 50, (4, 3), false);
    let causes = recording.causes();
    assert!(causes.flows.is_empty());
    // Thread 3 at 10, which is new, and at 30, after it slept.
    assert_eq!(unpaired(&causes), [(FlowKind::WakeToRun, Why::NoCause, 2)]);
}

#[test]
fn a_switch_without_a_state_leaves_a_thread_asleep_that_said_so() {
    for slept in [false, true] {
        let mut recording = Recording::new();
        recording.switch(0, 10, (4, 5), false);
        if slept {
            recording.put(0, 20, FlightKind::SLEEP, 5, &[2]);
        }
        recording.put(0, 21, FlightKind::CONTEXT_SWITCH, 4, &[5, 4, 5]).switch(0, 30, (4, 5), false);
        let causes = recording.causes();
        // Thread 5 at 10, which is new, and at 30 where it slept before.
        let expected = 1 + u64::from(slept);
        assert_eq!(unpaired(&causes), [(FlowKind::WakeToRun, Why::NoCause, expected)], "slept: {slept}");
    }
}

#[test]
fn a_wake_before_the_sleep_is_not_the_cause_of_a_later_run() {
    let mut recording = Recording::new();
    recording
        .put(1, 10, FlightKind::WAKE, 5, &[])
        .put(0, 20, FlightKind::SLEEP, 5, &[2])
        .put(1, 30, FlightKind::WAKE, 5, &[])
        .put(1, 31, FlightKind::WAKE, 5, &[])
        .switch(0, 40, (0, 5), false)
        .put(1, 50, FlightKind::WAKE, 6, &[]);
    let causes = recording.causes();
    assert_eq!(told(&causes), [(FlowKind::WakeToRun, Evidence::Named, 31, 40)]);
    assert_eq!(
        unpaired(&causes),
        [(FlowKind::WakeToRun, Why::NoEffect, 2), (FlowKind::WakeToRun, Why::Joined, 1)],
        "the wake before the sleep and that of thread 6"
    );
}

#[test]
fn a_pair_that_spans_what_a_ring_has_lost_is_less_certain() {
    let mut recording = Recording::new();
    recording
        .put(0, 100, FlightKind::WAKE, 5, &[])
        .put(0, 900, FlightKind::WAKE, 6, &[])
        .lose(1, 40)
        .put(1, 500, FlightKind::IRQ, 0, &[0])
        .switch(1, 600, (0, 5), false)
        .switch(1, 950, (5, 6), false);
    let causes = recording.causes();
    assert_eq!(
        told(&causes),
        [(FlowKind::WakeToRun, Evidence::AcrossLoss, 100, 600), (FlowKind::WakeToRun, Evidence::Named, 900, 950)]
    );
}

#[test]
fn a_processor_without_events_makes_every_pair_less_certain() {
    let mut recording = Recording::new();
    recording.put(0, 100, FlightKind::WAKE, 5, &[]).switch(0, 110, (0, 5), false);
    for number in 0..2 {
        recording.writer.put(SectionKind::REGISTERS, &Cpu { number: Some(number), ..Cpu::default() });
    }
    assert_eq!(told(&recording.causes()), [(FlowKind::WakeToRun, Evidence::AcrossLoss, 100, 110)]);
}

#[test]
fn signals_are_paired_by_process_and_number_and_by_order_where_several_wait() {
    let mut recording = Recording::new();
    recording
        .put(0, 10, FlightKind::SIGNAL_SEND, 1, &[11, 5])
        .put(0, 11, FlightKind::SIGNAL_SEND, 1, &[11, 6])
        .put(1, 20, FlightKind::SIGNAL_DELIVER, 5, &[11, 0])
        .put(0, 30, FlightKind::SIGNAL_SEND, 1, &[17, 5])
        .put(0, 31, FlightKind::SIGNAL_SEND, 1, &[17, 5])
        .put(1, 40, FlightKind::SIGNAL_DELIVER, 5, &[17, 9])
        .put(0, 50, FlightKind::SIGNAL_SEND, 1, &[34, 5])
        .put(0, 51, FlightKind::SIGNAL_SEND, 1, &[34, 5])
        .put(1, 60, FlightKind::SIGNAL_DELIVER, 5, &[34, 9])
        .put(1, 61, FlightKind::SIGNAL_DELIVER, 5, &[34, 9])
        .put(1, 62, FlightKind::SIGNAL_DELIVER, 5, &[34, 9]);
    let causes = recording.causes();
    let kind = FlowKind::SignalToDelivery;
    assert_eq!(
        told(&causes),
        [
            (kind, Evidence::Named, 10, 20),
            (kind, Evidence::Order, 31, 40),
            (kind, Evidence::Order, 50, 60),
            (kind, Evidence::Named, 51, 61),
        ]
    );
    assert_eq!(unpaired(&causes), [(kind, Why::NoCause, 1), (kind, Why::NoEffect, 1), (kind, Why::Joined, 1)]);
}

#[test]
fn interrupts_that_join_are_one_and_each_processor_that_flushes_has_its_own_cause() {
    let mut recording = Recording::new();
    recording
        .put(0, 10, FlightKind::IPI_SEND, 1, &[2])
        .put(1, 11, FlightKind::IPI_SEND, 2, &[2])
        .put(2, 12, FlightKind::IPI_RECEIVE, 0, &[2])
        .put(2, 13, FlightKind::IPI_RECEIVE, 0, &[2])
        .put(0, 20, FlightKind::TLB_SEND, 1, &[0b110, 0])
        .put(1, 21, FlightKind::TLB_RECEIVE, 2, &[0])
        .put(2, 22, FlightKind::TLB_RECEIVE, 0, &[0]);
    let causes = recording.causes();
    let (interrupt, flush) = (FlowKind::InterruptToHandler, FlowKind::ShootdownToFlush);
    assert_eq!(
        told(&causes),
        [(interrupt, Evidence::Order, 10, 12), (flush, Evidence::Order, 20, 21), (flush, Evidence::Order, 20, 22)]
    );
    assert_eq!(unpaired(&causes), [(interrupt, Why::NoCause, 1), (interrupt, Why::Joined, 1)]);
}

#[test]
fn a_lock_is_waited_for_because_of_the_thread_on_the_processor_that_holds_it() {
    let mut recording = Recording::new();
    recording.switch(0, 10, (0, 3), false).put(1, 20, FlightKind::LOCK_CONTENDED, 4, &[0xfff0, 0]).put(
        1,
        40,
        FlightKind::LOCK_CONTENDED,
        4,
        &[0xfff0, 9],
    );
    let causes = recording.causes();
    assert_eq!(told(&causes), [(FlowKind::HolderToWaiter, Evidence::Processor, 10, 20)]);
    let (held, wait) = (FlowKind::HolderToWaiter, FlowKind::WaitToLock);
    assert_eq!(unpaired(&causes)[1..], [(held, Why::NoCause, 1), (wait, Why::NoEffect, 2)]);
}

#[test]
fn a_wait_for_a_lock_ends_where_its_processor_takes_it() {
    let mut recording = Recording::new();
    let (wait, taken) = (FlightKind::LOCK_CONTENDED, FlightKind::LOCK_TAKEN);
    recording
        .put(1, 20, wait, 4, &[0xf0, 0])
        .put(2, 25, wait, 5, &[0xf0, 0])
        .put(1, 30, wait, 4, &[0xe0, 0])
        .put(1, 40, taken, 4, &[0xe0])
        .put(1, 60, taken, 4, &[0xf0])
        .put(2, 90, taken, 5, &[0xd0]);
    let causes = recording.causes();
    let kind = FlowKind::WaitToLock;
    assert_eq!(told(&causes), [(kind, Evidence::Named, 30, 40), (kind, Evidence::Named, 20, 60)]);
    let alone: Vec<_> = unpaired(&causes).into_iter().filter(|(of, ..)| *of == kind).collect();
    assert_eq!(alone, [(kind, Why::NoCause, 1), (kind, Why::NoEffect, 1)]);
    let (_, flow) = causes.causes_of(causes.flows[1].to).next().unwrap();
    assert_eq!(causes.cause_words(flow), "waited for it for 40 ns");
    assert_eq!(causes.effect_words(flow), "took the lock 40 ns later");
}

#[test]
fn a_log_tells_of_forks_and_of_the_first_event_of_a_child() {
    let mut recording = Recording::new();
    let stamp = |ns| Stamp { ns: Some(ns), ..Stamp::default() };
    let fork = ProcessFork { parent_pid: Some(1), child_pid: Some(9), stamp: stamp(5) };
    recording.writer.put(SectionKind::EVENTS, &fork);
    for (pid, ns) in [(1, 6), (9, 7), (9, 8)] {
        let exec = ProcessExec { pid: Some(pid), stamp: stamp(ns), ..ProcessExec::default() };
        recording.writer.put(SectionKind::EVENTS, &exec);
    }
    let causes = recording.causes();
    assert_eq!(told(&causes), [(FlowKind::ForkToChild, Evidence::Named, 5, 7)]);
    assert_eq!(causes.moments.len(), 2);
}

#[test]
fn events_that_name_nobody_and_events_without_a_time_are_counted() {
    let mut recording = Recording::new();
    for kind in 1..=FlightKind::LOCK_TAKEN.0 {
        recording.writer.put(
            SectionKind::FLIGHT,
            &FlightEvent {
                kind: Some(FlightKind(kind)),
                stamp: Stamp { ns: Some(1), ..Stamp::default() },
                ..FlightEvent::default()
            },
        );
    }
    recording.writer.put(SectionKind::FLIGHT, &FlightEvent { kind: Some(FlightKind::WAKE), ..FlightEvent::default() });
    let causes = recording.causes();
    assert_eq!((causes.untimed, causes.flows.len()), (1, 0));
    let unnamed: u64 =
        unpaired(&causes).iter().map(|(_, why, count)| if *why == Why::Unnamed { *count } else { 0 }).sum();
    assert_eq!(unnamed, 12);
}

/// A recording of `count` events that a fixed seed makes, of few threads and processors or of any.
fn hostile(count: u64, any: bool) -> Recording {
    let mut recording = Recording::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..count {
        let number = |word: u64| if any { word } else { word % 5 };
        let kind = FlightKind((next() % 22) as u16);
        let numbers = [number(next()), number(next()), number(next()), number(next())];
        let numbers = if kind == FlightKind::TLB_SEND { [u64::MAX; 4] } else { numbers };
        let (cpu, tid) = (number(next()) as u32, number(next()) as u32);
        recording.put(cpu, number(next()), kind, tid, &numbers);
    }
    recording
}

#[test]
fn no_recording_makes_more_than_two_flows_per_event_and_every_flow_goes_forward() {
    for any in [false, true] {
        let causes = hostile(3000, any).causes();
        assert!(causes.flows.len() <= 2 * causes.moments.len());
        assert!(causes.flows.iter().all(|flow| flow.from < flow.to));
        assert!(causes.moments.is_sorted_by_key(|moment| moment.ns));
        assert!(any || !causes.flows.is_empty());
    }
}

#[test]
fn events_without_room_are_counted_and_every_pair_may_then_lack_a_nearer_partner() {
    let mut recording = Recording::new();
    recording.put(0, 10, FlightKind::WAKE, 5, &[]).switch(0, 20, (0, 5), false).put(0, 30, FlightKind::WAKE, 6, &[]);
    let dump = Dump::from_bytes(recording.writer.finish().unwrap()).unwrap();
    let budget = &dump.file.budget;
    assert!(budget.take(budget.left() - 2 * moments::PRICE));
    let causes = Causes::of(&dump);
    assert_eq!((causes.moments.len(), causes.left_out), (2, 1));
    assert_eq!(told(&causes), [(FlowKind::WakeToRun, Evidence::AcrossLoss, 10, 20)]);
}

#[test]
fn a_quarter_of_a_million_events_are_paired_in_the_time_of_sorting_them() {
    let time = |count| {
        let file = DumpFile::from_bytes(hostile(count, false).writer.finish().unwrap()).unwrap();
        let begun = Instant::now();
        let mut moments = Moments::new(Clock::of_stamps(None, std::iter::empty()), &Arc::new(Budget::of(1 << 30, 0)));
        for (index, section) in (0..).zip(&file.sections) {
            let payload = file.payload(index as usize).unwrap();
            moments.read(index, section.header.kind, &payload);
        }
        let causes = Causes::paired(moments);
        assert_eq!((causes.moments.len() as u64, causes.left_out), (count, 0));
        begun.elapsed().as_secs_f64()
    };
    let (few, many) = (time(25_000).max(0.002), time(250_000));
    // Ten times the events; a table that is searched would take a hundred times as long.
    assert!(many < 40.0 * few, "{few} s for 25,000, {many} s for 250,000");
    println!("{many} s for 250,000 events");
}
