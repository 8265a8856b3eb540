//! Each rule on a dump made for it.

use super::*;

const C: SectionKind = SectionKind::CAUSE;
const R: SectionKind = SectionKind::REGISTERS;

fn first(triage: &Triage) -> (&'static str, f64) {
    triage.hypotheses.first().map_or(("none", 0.0), |found| (found.rule, found.score))
}

fn at_fault(values: &[Reg<'static>]) -> Vec<u8> {
    let set = Registers {
        role: Some(RegisterRole::FAULT),
        pid: Some(7),
        regs: Some(List::new(values)),
        ..Registers::default()
    };
    Maker::new().put(R, &set).parts.remove(0).1
}

fn with_regs(mut maker: Maker, values: &[(RegId, u64)]) -> Maker {
    maker.parts.push((R, at_fault(&regs(values))));
    maker
}

fn code(bytes: &'static [u8], at: u64) -> Memory<'static> {
    Memory { kind: Some(MemoryKind::CODE), vaddr: Some(at), bytes: Some(bytes), marked: Some(0), ..Memory::default() }
}

/// One dump per class of bug, with the rule that must come first.
fn classes() -> Vec<(&'static str, Maker)> {
    let k = 0xffff_ffff_8010_0000;
    let null = null_dereference(k);
    let freed = 0x6b6b_6b6b_6b6b_6b6b;
    let gp = Cause { vector: Some(13), fault_addr: None, ..kernel_fault(0, k, 0) };
    let uaf = with_regs(Maker::new().put(C, &gp), &[(RegId::RIP, k), (RegId::RDI, freed)])
        .put(SectionKind::STACKS, &code(&[0x48, 0x8b, 0x47, 0x08], k));
    let wild = with_regs(Maker::new().put(C, &gp), &[(RegId::RIP, k), (RegId::RDI, 0x1234_0000_0000_0000)])
        .put(SectionKind::STACKS, &code(&[0x48, 0x8b, 0x47, 0x08], k));
    let jump = with_regs(
        Maker::new().put(C, &kernel_fault(0, 0, 0x10)),
        &[(RegId::RIP, 0), (RegId::RSP, 0xffff_8000_0000_1000)],
    );
    let user = with_regs(Maker::new().put(C, &kernel_fault(0x40_2010, k, 0)), &[(RegId::RIP, k)]).put(
        SectionKind::SYSCALLS,
        &SyscallRecord {
            pid: Some(7),
            name: Some(b"write"),
            arg1: Some(0x40_2000),
            in_progress: Some(true),
            ..SyscallRecord::default()
        },
    );
    let low = 0xffff_a000_0000_4000;
    let bounds = StackBounds {
        label: Some(b"task"),
        low: Some(low),
        high: Some(low + 0x4000),
        guard: Some(4096),
        ..StackBounds::default()
    };
    let over = Cause { kind: Some(CauseKind::DOUBLE_FAULT), ..kernel_fault(low - 8, k, 2) };
    let overflow = with_regs(Maker::new().put(C, &over), &[(RegId::RIP, k), (RegId::RSP, low - 16)])
        .put(SectionKind::STACKS, &bounds);
    let panic = |message: &'static [u8]| Cause {
        kind: Some(CauseKind::PANIC),
        message: Some(message),
        in_kernel: Some(true),
        ..Cause::default()
    };
    let page = PageCheck {
        pid: Some(7),
        vaddr: Some(0x51_c000),
        path: Some(b"/bin/busybox"),
        file_offset: Some(0x11_b000),
        first_diff: Some(0xbf0),
        expected: Some(&[0xc0, 0x1f, 0x52, 0]),
        actual: Some(&[0; 8]),
        result: Some(CheckResult::DIFFERENT),
        ..PageCheck::default()
    };
    vec![
        ("NULL", null),
        ("POISON", uaf),
        ("WILD", wild),
        ("JUMP-ZERO", jump),
        ("USER-PTR", user),
        ("STACK", overflow),
        ("PANIC", Maker::new().put(C, &panic(b"called `Option::unwrap()` on a `None` value"))),
        ("OOM", Maker::new().put(C, &Cause { kind: Some(CauseKind::OUT_OF_MEMORY), ..panic(b"out of memory") })),
        ("INIT", Maker::new().put(C, &panic(b"Attempted to kill init! exitcode=0x0000000b"))),
        (
            "JUMP-DATA",
            Maker::new()
                .put(C, &user_death(11, 0x7000, Some(0x7000)))
                .put(SectionKind::MEMORY_MAP, &vma(0x7000, 0x8000, 3, "")),
        ),
        ("ABORT", Maker::new().put(C, &user_death(6, 0x40_1000, None))),
        ("PROGRAM", Maker::new().put(C, &user_death(5, 0x40_1000, None))),
        ("DIVIDE", Maker::new().put(C, &user_death(8, 0x40_1000, None))),
        ("PAGE", Maker::new().put(C, &user_death(11, 0, Some(0))).put(SectionKind::PAGE_CHECKS, &page)),
        ("DEADLOCK", deadlock()),
        ("LOCK-SLEEP", lock_sleep()),
        ("LOST-WAKE", lost_wake(false)),
        ("TLB", tlb(false)),
        ("UNIMPL", unimplemented()),
        ("CANARY", canary()),
    ]
}

/// The class that counters alone tell: free blocks of which three pairs were not joined.
fn counted() -> (&'static str, Maker) {
    let counter = |name: &'static str, value| Counter {
        group: Some(b"memory"),
        name: Some(name.as_bytes()),
        value: Some(value),
        ..Counter::default()
    };
    let maker = Maker::new()
        .put(SectionKind::COUNTERS, &counter("free blocks of order 0", 6))
        .put(SectionKind::COUNTERS, &counter("free blocks apart from their free buddies", 3));
    ("PIECES", maker)
}

/// What exec made in advance for four samples, how much of it was never accessed, and how long it took for that of
/// 10 ms.
fn made_ahead(made: i64, unused: i64, ms: u64) -> Maker {
    let counter = |name: &'static str, value| Counter {
        group: Some(b"exec"),
        name: Some(name.as_bytes()),
        value: Some(value),
        ..Counter::default()
    };
    let entry = |name: &'static str, ns| SpanProfileEntry {
        name: Some(name.as_bytes()),
        calls: Some(64),
        total_ns: Some(ns),
        ..SpanProfileEntry::default()
    };
    let entries = [entry("exec", 10_000_000), entry("exec.prefault", ms * 1_000_000)];
    let spans = SpanProfile { entries: Some(List::new(&entries)), ..SpanProfile::default() };
    Maker::new()
        .put(SectionKind::COUNTERS, &counter("samples", 4))
        .put(SectionKind::COUNTERS, &counter("made in advance for the samples", made))
        .put(SectionKind::COUNTERS, &counter("made in advance and never accessed", unused))
        .put(SectionKind::COUNTERS, &spans)
}

#[test]
fn memory_made_in_advance_is_over_eager_only_where_most_of_it_was_never_accessed() {
    let first = |made, unused, ms| first(&judge(made_ahead(made, unused, ms).bytes()));
    assert_eq!(first(2048, 2000, 7), ("EAGER", 0.89));
    assert_eq!(first(2048, 2000, 1), ("EAGER", 0.82));
    // Used, or within what programs differ by from run to run, whatever share of the time it takes; and nonsense.
    for (made, unused) in [(2048, 1000), (150, 120), (0, 0), (100, 2000), (-4, -4)] {
        assert_eq!(first(made, unused, 9).0, "none", "{made} {unused}");
    }
}

/// A load through a null `rdi` by the code at `at`.
fn null_dereference(at: u64) -> Maker {
    let fault = Maker::new().put(C, &kernel_fault(8, at, 0));
    with_regs(fault, &[(RegId::RIP, at), (RegId::RDI, 0), (RegId::RSP, at)])
        .put(SectionKind::STACKS, &code(&[0x48, 0x8b, 0x47, 0x08], at))
}

fn deadlock() -> Maker {
    let lock = |addr, tid| Lock {
        addr: Some(addr),
        holder_tid: Some(tid),
        name: Some(b"table"),
        kind: Some(LockKind::SPIN),
        ..Lock::default()
    };
    let wait =
        |addr, tid| LockWait { addr: Some(addr), waiter_tid: Some(tid), name: Some(b"table"), ..LockWait::default() };
    let cause = Cause { kind: Some(CauseKind::SOFT_LOCKUP), in_kernel: Some(true), ..Cause::default() };
    Maker::new()
        .put(C, &cause)
        .put(SectionKind::LOCKS, &lock(0xa0, 1))
        .put(SectionKind::LOCKS, &lock(0xb0, 2))
        .put(SectionKind::LOCKS, &wait(0xb0, 1))
        .put(SectionKind::LOCKS, &wait(0xa0, 2))
}

fn task(tid: u32, state: TaskState, why: &'static str) -> Task<'static> {
    Task {
        pid: Some(tid),
        tid: Some(tid),
        comm: Some(b"task"),
        state: Some(state),
        wait_reason: Some(why.as_bytes()),
        wait_object: (!why.is_empty()).then_some(0xc0),
        ..Task::default()
    }
}

fn lock_sleep() -> Maker {
    let lock = Lock {
        addr: Some(0xa0),
        holder_tid: Some(3),
        kind: Some(LockKind::SPIN),
        name: Some(b"inode"),
        ..Lock::default()
    };
    let cause = Cause { kind: Some(CauseKind::HUNG_TASK), in_kernel: Some(true), pid: Some(4), ..Cause::default() };
    Maker::new()
        .put(C, &cause)
        .put(SectionKind::LOCKS, &lock)
        .put(SectionKind::TASKS, &task(3, TaskState::BLOCKED, "disk"))
}

fn lost_wake(woken: bool) -> Maker {
    let event = |kind, tid| FlightEvent { kind: Some(kind), tid: Some(tid), ..FlightEvent::default() };
    let cause = Cause { kind: Some(CauseKind::HUNG_TASK), in_kernel: Some(true), pid: Some(5), ..Cause::default() };
    let maker = Maker::new()
        .put(C, &cause)
        .put(SectionKind::TASKS, &task(5, TaskState::BLOCKED, "pipe read"))
        .put(SectionKind::TASKS, &task(1, TaskState::SLEEPING, "wait"))
        .put(SectionKind::FLIGHT, &event(FlightKind::SLEEP, 5));
    if woken { maker.put(SectionKind::FLIGHT, &event(FlightKind::WAKE, 5)) } else { maker }
}

fn tlb(told: bool) -> Maker {
    let event = |kind, pid, cpu, tsc| FlightEvent {
        kind: Some(kind),
        pid: Some(pid),
        a: Some(0x7000),
        stamp: Stamp { cpu: Some(cpu), tsc: Some(tsc), ..Stamp::default() },
        ..FlightEvent::default()
    };
    let mut maker = Maker::new()
        .put(C, &user_death(6, 0x40_1000, None))
        .put(SectionKind::FLIGHT, &event(FlightKind::CONTEXT_SWITCH, 7, 1, 10))
        .put(SectionKind::FLIGHT, &event(FlightKind::CONTEXT_SWITCH, 7, 0, 11))
        .put(SectionKind::FLIGHT, &event(FlightKind::MUNMAP, 7, 0, 20));
    if told {
        maker = maker.put(SectionKind::FLIGHT, &event(FlightKind::TLB_SEND, 7, 0, 21));
    }
    for tsc in 30..40 {
        maker = maker.put(SectionKind::FLIGHT, &event(FlightKind::IRQ, 7, 0, tsc));
    }
    maker
}

fn unimplemented() -> Maker {
    let call = |name: &'static [u8], result| SyscallRecord {
        pid: Some(7),
        name: Some(name),
        result: Some(result),
        ..SyscallRecord::default()
    };
    Maker::new()
        .put(C, &user_death(11, 0x40_1000, None))
        .put(SectionKind::SYSCALLS, &call(b"brk", 0))
        .put(SectionKind::SYSCALLS, &call(b"io_uring_setup", -38))
}

fn canary() -> Maker {
    let check = CanaryCheck {
        pid: Some(7),
        expected: Some(0x1100),
        found: Some(0x4141_4141),
        corrupted: Some(true),
        when: Some(b"post_syscall"),
        syscall: Some(b"read"),
        ..CanaryCheck::default()
    };
    Maker::new().put(C, &user_death(6, 0x40_1000, None)).put(SectionKind::EVENTS, &check)
}

#[test]
fn every_class_of_bug_is_the_first_hypothesis_of_its_own_dump() {
    for (rule, maker) in classes().into_iter().chain([counted(), ("EAGER", made_ahead(2048, 2000, 7))]) {
        let triage = judge(maker.bytes());
        assert_eq!(first(&triage).0, rule, "{rule}: {:#?}", triage.hypotheses);
        let top = &triage.hypotheses[0];
        assert!(top.evidence.iter().any(|fact| fact.at.is_some()), "{rule} names no record");
        assert!(top.next.iter().all(|command| command.contains("crash.kwab")), "{:?}", top.next);
        assert!(triage.has_findings() && !triage.deliberate, "{rule}");
        assert!(triage.losses.is_empty(), "{:?}", triage.losses);
    }
}

#[test]
fn a_lost_section_that_a_rule_rests_on_lowers_its_score_and_is_named() {
    for (rule, maker) in classes().into_iter().chain([counted(), ("EAGER", made_ahead(2048, 2000, 7))]) {
        let rests_on = rules::RULES.iter().find(|known| known.id == rule).unwrap().rests_on;
        let sound = judge(maker.bytes());
        let damaged = judge(maker.bytes_with_lost(&rests_on[..1]));
        let of = |triage: &Triage| triage.hypotheses.iter().find(|found| found.rule == rule).cloned().unwrap();
        let (sound, damaged) = (of(&sound), of(&damaged));
        assert!(damaged.score < sound.score, "{rule}: {} is not below {}", damaged.score, sound.score);
        let name = rests_on[0].name().unwrap();
        assert!(damaged.weakened.iter().any(|why| why.contains(name)), "{rule}: {:?}", damaged.weakened);
        assert!(sound.weakened.is_empty());
    }
}

#[test]
fn a_lost_section_that_nothing_rests_on_changes_no_score() {
    let maker = &classes()[0].1;
    let (sound, damaged) = (judge(maker.bytes()), judge(maker.bytes_with_lost(&[SectionKind::LOG])));
    assert_eq!(first(&sound), first(&damaged));
    assert_eq!(damaged.losses.len(), 1);
}

#[test]
fn a_dump_without_a_fault_has_no_hypothesis() {
    let quiet = Maker::new()
        .put(SectionKind::IDENTITY, &Identity { reason: Some(Reason::RECORDING), ..Identity::default() })
        .put(SectionKind::TASKS, &task(1, TaskState::SLEEPING, "wait"))
        .put(SectionKind::MEMORY_MAP, &vma(0x40_0000, 0x40_1000, 5, "/init"))
        .put(SectionKind::PAGE_TABLE, &pte(0x40_0000, 0x9000, "xu"));
    let triage = judge(quiet.bytes());
    assert_eq!(triage.hypotheses, []);
    assert!(!triage.has_findings());
}

#[test]
fn what_contradicts_a_rule_keeps_it_silent_or_low() {
    assert!(judge(tlb(true).bytes()).hypotheses.iter().all(|found| found.rule != "TLB"));
    let woken = judge(lost_wake(true).bytes());
    let score = |triage: &Triage| triage.hypotheses.iter().find(|f| f.rule == "LOST-WAKE").map(|f| f.score);
    assert!(score(&woken) < score(&judge(lost_wake(false).bytes())), "{woken:#?}");
    // The same two locks without a circle.
    let mut no_circle = deadlock();
    no_circle.parts.pop();
    assert!(judge(no_circle.bytes()).hypotheses.iter().all(|found| found.rule != "DEADLOCK"));
    // A null address in a program is never the kernel's user pointer, nor the reverse.
    let user = judge(Maker::new().put(C, &user_death(11, 0x40_1000, Some(8))).bytes());
    assert!(user.hypotheses.iter().all(|found| found.rule != "USER-PTR"));
    assert_eq!(first(&user).0, "NULL");
}

#[test]
fn a_stack_full_of_zeros_is_told_apart_from_a_call_through_null() {
    let sp = 0xffff_8000_3ff3_7468;
    let stack = |bytes: &'static [u8]| Memory {
        kind: Some(MemoryKind::KERNEL_STACK),
        vaddr: Some(sp),
        bytes: Some(bytes),
        ..Memory::default()
    };
    let base = || with_regs(Maker::new().put(C, &kernel_fault(0, 0, 0x10)), &[(RegId::RIP, 0), (RegId::RSP, sp)]);
    let zeroed = judge(base().put(SectionKind::STACKS, &stack(&[0; 64])).bytes());
    assert!(
        zeroed.hypotheses[0].claim.contains("returned to 0x0 through a zeroed stack"),
        "{}",
        zeroed.hypotheses[0].claim
    );

    let kernel = Image {
        kind: Some(ImageKind::KERNEL),
        start: Some(0xffff_ffff_8010_0000),
        end: Some(0xffff_ffff_8020_0000),
        ..Image::default()
    };
    let back: &'static [u8] = &[0x34, 0x12, 0x10, 0x80, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
    let called = judge(base().put(SectionKind::IMAGES, &kernel).put(SectionKind::STACKS, &stack(back)).bytes());
    assert!(called.hypotheses[0].claim.contains("called a null function pointer"), "{}", called.hypotheses[0].claim);
    assert!(called.hypotheses[0].claim.contains("0xffffffff80101234"));
}

#[test]
fn scores_are_explained_by_the_weights_that_make_them() {
    for (rule, maker) in classes() {
        let triage = judge(maker.bytes());
        let top = &triage.hypotheses[0];
        let open: f64 = top.evidence.iter().map(|fact| 1.0 - fact.weight).product();
        let left: f64 = top.against.iter().map(|fact| 1.0 - fact.weight).product();
        let best = if top.proven { finding::BEST } else { finding::SYMPTOM };
        assert!(((1.0 - open).min(best) * left - top.score).abs() < 0.006, "{rule}");
        assert!(top.explain().iter().any(|line| line.starts_with(&format!("={:.2}", top.score))));
    }
}

#[test]
fn a_death_that_was_asked_for_is_no_bug() {
    let cause = Cause {
        kind: Some(CauseKind::PANIC),
        message: Some(b"sysrq triggered crash"),
        in_kernel: Some(true),
        ..Cause::default()
    };
    let triage = judge(Maker::new().put(C, &cause).bytes());
    assert_eq!(first(&triage).0, "DELIBERATE");
    assert!(triage.deliberate && !triage.has_findings(), "{:#?}", triage.hypotheses);
}

#[test]
fn rust_panics_are_told_apart_by_their_words() {
    let cases: &[(&'static str, &str)] = &[
        (
            "panicked at kernel/src/mm/vma.rs:10:5:\nindex out of bounds: the len is 3 but the index is 7",
            "index out of bounds at kernel/src/mm/vma.rs:10:5",
        ),
        ("attempt to subtract with overflow", "arithmetic overflow"),
        ("assertion `left == right` failed\n  left: 1\n right: 2", "failed assertion"),
        ("called `Result::unwrap()` on an `Err` value: NoMemory", "unwrap of an error"),
        ("the run queue is empty", "explicit panic: the run queue is empty"),
    ];
    for (message, claim) in cases {
        let cause = Cause {
            kind: Some(CauseKind::PANIC),
            message: Some(message.as_bytes()),
            in_kernel: Some(true),
            ..Cause::default()
        };
        let triage = judge(Maker::new().put(C, &cause).bytes());
        assert_eq!(triage.hypotheses[0].claim, *claim);
    }
}

#[test]
fn mappings_and_calls_inside_a_crash_report_serve_like_records_of_their_own() {
    let vmas = [CrashVma {
        start: Some(0x7000),
        end: Some(0x8000),
        prot: Some(3),
        kind: Some(b"heap"),
        ..CrashVma::default()
    }];
    let calls = [CrashSyscall { name: Some(b"io_uring_setup"), result: Some(-38), ..CrashSyscall::default() }];
    let report = CrashReport {
        pid: Some(7),
        signal: Some(11),
        ip: Some(0x7010),
        fault_addr: Some(0x7010),
        vmas: Some(List::new(&vmas)),
        syscalls: Some(List::new(&calls)),
        ..CrashReport::default()
    };
    let triage = judge(Maker::new().put(SectionKind::EVENTS, &report).bytes());
    let rules: Vec<_> = triage.hypotheses.iter().map(|found| found.rule).collect();
    assert_eq!(rules[0], "JUMP-DATA", "{:#?}", triage.hypotheses);
    assert!(triage.hypotheses[0].claim.contains("heap") && rules.contains(&"UNIMPL"), "{rules:?}");
    assert!(triage.headline.contains("SIGSEGV"), "{}", triage.headline);
}
