//! Programs that do not go on: threads that wait for each other, loops that never end.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::symbols::{Image as Elf, IndexCache, LoadedImage};

const SECOND: u64 = 1_000_000_000;
/// The number of the system call.
const FUTEX: i64 = 202;

fn asked() -> Maker {
    let cause = Cause {
        kind: Some(CauseKind::NMI),
        message: Some(b"non-maskable interrupt"),
        in_kernel: Some(true),
        stamp: Stamp { ns: Some(20 * SECOND), ..Stamp::default() },
        ..Cause::default()
    };
    Maker::new().put(SectionKind::CAUSE, &cause)
}

fn thread(tid: u32, state: TaskState, why: &'static str) -> Task<'static> {
    Task {
        pid: Some(5),
        tid: Some(tid),
        ppid: Some(1),
        comm: Some(b"prog"),
        state: Some(state),
        user_ip: Some(0x40_1120),
        wait_reason: Some(why.as_bytes()),
        syscall: (why == "futex").then_some(FUTEX),
        ..Task::default()
    }
}

/// A thread that sleeps for the mutex at an address, whose memory has these bytes.
fn waiting(maker: Maker, tid: u32, mutex: u64, bytes: &'static [u8]) -> Maker {
    let values = regs(&[(RegId::RIP, 0x40_0100), (RegId::RDI, mutex), (RegId::CS, 0x33)]);
    let set = Registers {
        role: Some(RegisterRole::USER),
        pid: Some(5),
        tid: Some(tid),
        regs: Some(List::new(&values)),
        ..Registers::default()
    };
    let memory = Memory {
        kind: Some(MemoryKind::OBJECT),
        vaddr: Some(mutex),
        pid: Some(5),
        bytes: Some(bytes),
        ..Memory::default()
    };
    let maker = maker.put(SectionKind::TASKS, &thread(tid, TaskState::SLEEPING, "futex"));
    maker.put(SectionKind::TASKS, &set).put(SectionKind::TASKS, &memory)
}

fn found<'t>(triage: &'t Triage, rule: &str) -> Option<&'t finding::Hypothesis> {
    triage.hypotheses.iter().find(|found| found.rule == rule)
}

/// `testing/data/trail/reach.elf` as the program.
fn program() -> Symbols {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/trail/reach.elf");
    let mut symbols = Symbols::new();
    symbols.add(LoadedImage::new(Arc::new(Elf::open(&path, &IndexCache::none()).unwrap()), 0, Some(5)));
    symbols
}

#[test]
fn threads_that_hold_what_the_other_waits_for_are_a_deadlock_whatever_the_others_do() {
    // musl has the thread in the word, with a bit for waiters; glibc behind it.
    let musl: (&[u8], &[u8]) = (&[7, 0, 0, 0x80], &[6, 0, 0, 0x80]);
    let glibc: (&[u8], &[u8]) = (&[2, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0], &[2, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0]);
    for (one, other) in [musl, glibc] {
        let maker = waiting(waiting(asked(), 6, 0x1000, one), 7, 0x2000, other);
        let maker = maker.put(SectionKind::TASKS, &thread(5, TaskState::RUNNING, ""));
        let triage = judge(maker.bytes());
        let claim = found(&triage, "THREADS").unwrap();
        assert!(
            claim.claim.starts_with("a deadlock of threads: 2 of prog[6] wait for each other's mutexes"),
            "{claim:#?}"
        );
        assert!(claim.proven && claim.score > 0.7 && triage.hypotheses[0].rule == "THREADS", "{claim:#?}");
    }
    // A thread that holds it and runs, and one that waits for itself, are no circle.
    let runs = waiting(asked(), 6, 0x1000, &[5, 0, 0, 0]).put(SectionKind::TASKS, &thread(5, TaskState::RUNNING, ""));
    assert!(found(&judge(runs.bytes()), "THREADS").is_none());
}

#[test]
fn threads_that_wait_for_a_while_are_no_deadlock() {
    let pool = |deadline_ns| {
        let sleeps = |tid| Task { deadline_ns, ..thread(tid, TaskState::SLEEPING, "futex") };
        let maker = asked().put(SectionKind::TASKS, &sleeps(5)).put(SectionKind::TASKS, &sleeps(6));
        found(&judge(maker.bytes()), "THREADS").is_some()
    };
    assert!(pool(None) && !pool(Some(21 * SECOND)));
}

#[test]
fn a_program_that_ran_for_long_in_a_loop_is_told_with_the_function_of_the_loop() {
    let judged = |ip: u64, run_ns: u64| {
        let values = regs(&[(RegId::RIP, ip), (RegId::RSP, 0x7000), (RegId::CS, 0x33)]);
        let set = Registers {
            role: Some(RegisterRole::STOPPED),
            pid: Some(5),
            tid: Some(5),
            regs: Some(List::new(&values)),
            ..Registers::default()
        };
        let task = Task { run_ns: Some(run_ns), ..thread(5, TaskState::RUNNING, "") };
        let dump = Dump::from_bytes(asked().put(SectionKind::TASKS, &task).put(SectionKind::REGISTERS, &set).bytes());
        triage(&dump.unwrap().case(), &program(), &Backing::none(), "x")
    };
    // The second call of `kernel::fs::write_all`, which goes back to the first.
    let told = judged(0x40_1125, 9 * SECOND);
    let first = &told.hypotheses[0];
    assert_eq!((first.rule, first.claim.as_str()), ("LOOP", "prog[5] does not leave a loop in kernel::fs::write_all"));
    let row = "kernel::fs::write_all repeats a loop (0x401120..0x40112c) that calls kernel::time::from_timeval";
    assert!(first.evidence.iter().any(|fact| fact.text.contains(row)), "{:#?}", first.evidence);
    assert!((0.5..0.7).contains(&first.score), "{}", first.score);
    assert!(told.hypotheses.iter().all(|found| found.rule != "HANG"), "{:#?}", told.hypotheses);
    // Behind its loop, and just begun.
    for (ip, ran) in [(0x40_1133, 9 * SECOND), (0x40_1125, SECOND / 2)] {
        let told = judged(ip, ran);
        assert!(found(&told, "LOOP").is_none() && found(&told, "HANG").is_some(), "{ip:#x}");
    }
}

#[test]
fn a_parent_in_vfork_waits_only_while_its_child_uses_its_memory() {
    let parent =
        Task { page_table_root: Some(0x1000), state_ns: Some(9 * SECOND), ..thread(5, TaskState::BLOCKED, "vfork") };
    let child =
        |root, state| Task { pid: Some(9), tid: Some(9), ppid: Some(5), page_table_root: root, ..thread(9, state, "") };
    let judged = |child: Option<&Task<'_>>| {
        let maker = asked().put(SectionKind::TASKS, &parent);
        let maker = child.into_iter().fold(maker, |maker, child| maker.put(SectionKind::TASKS, child));
        let triage = judge(maker.bytes());
        triage.hypotheses.iter().any(|found| found.about == Some("INV-VFORK"))
    };
    assert!(judged(Some(&child(None, TaskState::ZOMBIE))) && judged(Some(&child(Some(0x2000), TaskState::SLEEPING))));
    assert!(judged(None));
    assert!(!judged(Some(&child(Some(0x1000), TaskState::RUNNABLE))));
    assert!(!judged(Some(&child(None, TaskState::RUNNABLE))), "its memory is not told");
}

#[test]
fn rights_that_are_only_given_need_no_shootdown() {
    let event = |kind, cpu, ns, values: [u64; 3]| FlightEvent {
        kind: Some(kind),
        pid: Some(5),
        tid: Some(5),
        a: Some(values[0]),
        b: Some(values[1]),
        c: Some(values[2]),
        stamp: Stamp { cpu: Some(cpu), ns: Some(ns), ..Stamp::default() },
        ..FlightEvent::default()
    };
    let judged = |had: u64, gets: u64| {
        let events = [
            event(FlightKind::CONTEXT_SWITCH, 1, 1, [0; 3]),
            event(FlightKind::MMAP, 0, 2, [0x7000, 0x9000, had]),
            event(FlightKind::MPROTECT, 0, 3, [0x8000, 0x8000, gets]),
            event(FlightKind::PAGE_FAULT, 0, 4, [0x8000, 0x40_1000, 6]),
        ];
        let maker = events.iter().fold(asked(), |maker, event| maker.put(SectionKind::FLIGHT, event));
        found(&judge(maker.bytes()), "TLB").is_some()
    };
    assert!(!judged(0, 3) && !judged(1, 3), "the guard of a new stack");
    assert!(judged(3, 1) && judged(3, 0) && judged(1, 2));
}
