//! Hangs and refusals whose cause lies elsewhere: the call that failed before, the mechanism that did not act.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::analysis::finding::{Evidence, ListedFunction};
use crate::model::{Depth, DumpFile};
use crate::symbols::{Image, IndexCache, LoadedImage};

const C: SectionKind = SectionKind::CAUSE;
const SECOND: u64 = 1_000_000_000;

/// `testing/data/trail/reach.elf` as the kernel, moved by a megabyte.
fn kernel() -> Symbols {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/trail/reach.elf");
    let mut symbols = Symbols::new();
    symbols.add(LoadedImage::new(Arc::new(Image::open(&path, &IndexCache::none()).unwrap()), 1 << 20, None));
    symbols
}

fn judge_as(symbols: &Symbols, maker: &Maker) -> Triage {
    let dump = Dump::from_bytes(maker.bytes()).unwrap();
    triage(&dump.case(), symbols, &Backing::none(), "crash.kwab")
}

fn ours() -> Maker {
    Maker::new().put(SectionKind::IDENTITY, &Identity { kernel_name: Some(b"kwab"), ..Identity::default() })
}

fn stopped() -> Cause<'static> {
    Cause {
        kind: Some(CauseKind::NMI),
        message: Some(b"non-maskable interrupt"),
        in_kernel: Some(true),
        stamp: Stamp { ns: Some(20 * SECOND), ..Stamp::default() },
        ..Cause::default()
    }
}

fn sleeper(pid: u32, ppid: u32, why: &'static str) -> Task<'static> {
    Task {
        pid: Some(pid),
        tid: Some(pid),
        ppid: Some(ppid),
        comm: Some(b"prog"),
        state: Some(TaskState::SLEEPING),
        user_ip: Some(0x40_1000),
        wait_reason: Some(why.as_bytes()),
        state_ns: Some(15 * SECOND),
        ..Task::default()
    }
}

/// Thread 2 runs for nine seconds when its processor is stopped with these registers.
fn stopped_with(values: &[Reg<'_>]) -> Maker {
    let set = Registers {
        role: Some(RegisterRole::STOPPED),
        pid: Some(2),
        tid: Some(2),
        regs: Some(List::new(values)),
        ..Registers::default()
    };
    let task = Task { state: Some(TaskState::RUNNING), run_ns: Some(9 * SECOND), ..sleeper(2, 1, "") };
    ours().put(C, &stopped()).put(SectionKind::TASKS, &task).put(SectionKind::REGISTERS, &set)
}

fn called(pid: u32, nr: i64, result: i64, ns: u64) -> SyscallRecord<'static> {
    SyscallRecord {
        pid: Some(pid),
        tid: Some(pid),
        nr: Some(nr),
        arg0: Some(0),
        arg1: Some(0x7000),
        arg2: Some(0),
        result: Some(result),
        stamp: Stamp { ns: Some(ns), ..Stamp::default() },
        ..SyscallRecord::default()
    }
}

fn told(triage: &Triage, words: &str) -> bool {
    triage.hypotheses[0].evidence.iter().any(|fact| whole(fact).contains(words))
}

/// A fact with all functions that it lists.
fn whole(fact: &Evidence) -> String {
    let functions: Vec<String> = fact.functions.iter().map(ListedFunction::in_words).collect();
    format!("{} {}", fact.head(), functions.join("; "))
}

#[test]
fn a_set_up_call_that_failed_before_an_endless_wait_is_evidence_and_its_error_is_followed_into_the_kernel() {
    let hang = |call: &SyscallRecord<'_>, why| {
        let maker = ours().put(C, &stopped()).put(SectionKind::TASKS, &sleeper(2, 1, why));
        judge_as(&kernel(), &maker.put(SectionKind::SYSCALLS, call))
    };
    let timer = hang(&called(2, 38, -22, 5 * SECOND - 3_000_000), "pause");
    assert_eq!(timer.hypotheses[0].rule, "HANG", "{:#?}", timer.hypotheses);
    let row = "setitimer(ITIMER_REAL, 0x7000, NULL) = -1 EINVAL (Invalid argument), 3.0 ms before it went to sleep";
    assert!(told(&timer, row), "{:#?}", timer.hypotheses[0].evidence);
    assert!(told(&timer, "can come from: kernel::syscalls::setitimer; kernel::time::from_timeval"));
    assert!((0.5..0.8).contains(&timer.hypotheses[0].score), "{}", timer.hypotheses[0].score);
    // A call that succeeded, one that only found nothing yet, and one that has to do with another kind of wait.
    for (nr, result, why) in [(38, 0, "pause"), (46, -11, "recvmsg"), (38, -22, "recvmsg")] {
        let triage = hang(&called(2, nr, result, SECOND), why);
        assert!(!told(&triage, "went to sleep"), "{nr} {result} {why}: {:#?}", triage.hypotheses[0].evidence);
    }
}

#[test]
fn a_program_that_was_killed_died_of_no_lack_of_memory_that_killed_another() {
    use kwab_format::record::LogChunk;

    let told = |line: &'static str| {
        let cause = Cause {
            kind: Some(CauseKind::FATAL_SIGNAL),
            signal: Some(9),
            pid: Some(3),
            in_kernel: Some(false),
            ..stopped()
        };
        let chunk = LogChunk { bytes: Some(line.as_bytes()), ..LogChunk::default() };
        let maker = ours().put(C, &cause).put(SectionKind::LOG, &chunk);
        judge_as(&Symbols::new(), &maker).hypotheses.iter().any(|found| found.rule == "OOM-KILL")
    };
    assert!(told("<4>[    3.586060] Out of memory: killed process 3 (tail), 477556 KiB resident\n"));
    assert!(told("Out of memory: Killed process 3 (stress) total-vm:2400000kB\n"));
    assert!(!told("<4>[    3.586060] Out of memory: killed process 13 (tail), 333 KiB resident\n"));
}

#[test]
fn the_error_that_the_log_ends_with_is_told_of_a_panic() {
    use kwab_format::record::LogChunk;

    let cause = Cause { kind: Some(CauseKind::PANIC), message: Some(b"No working init found."), ..stopped() };
    let mut maker = ours().put(C, &cause);
    for line in
        ["<6>[    0.017] booting (EIO)\n", "<3>[    0.022] unpacking failed: ENOSPC\n", "<6>[    0.023] 1 member\n"]
    {
        maker = maker.put(SectionKind::LOG, &LogChunk { bytes: Some(line.as_bytes()), ..LogChunk::default() });
    }
    let dump = Dump::load(DumpFile::from_bytes(maker.bytes()).unwrap(), Depth::Rules);
    let found = triage(&dump.case(), &kernel(), &Backing::none(), "x");
    assert!(told(&found, "the log said before: [    0.022] unpacking failed: ENOSPC"), "{:#?}", found.hypotheses);
}

#[test]
fn of_an_init_that_ended_the_call_that_failed_before_is_told_and_what_it_is_made_of() {
    let message = Some(&b"Attempted to kill init! exitcode=0x00000100"[..]);
    let cause = Cause { kind: Some(CauseKind::PANIC), message, pid: Some(1), ..stopped() };
    let maker = ours().put(C, &cause).put(SectionKind::SYSCALLS, &called(1, 38, -22, SECOND));
    let found = judge_as(&kernel(), &maker);
    assert_eq!(found.hypotheses[0].rule, "INIT", "{:#?}", found.hypotheses);
    assert!(told(&found, "the last call that failed before: setitimer("), "{:#?}", found.hypotheses[0].evidence);
    assert!(told(&found, "that error can come from: kernel::syscalls::setitimer"), "{:#?}", found.hypotheses[0]);
}

#[test]
fn a_system_call_is_made_of_its_handler_and_what_that_calls() {
    let parts = |nr| -> Vec<String> { reach::parts(&kernel(), nr).iter().map(ListedFunction::in_words).collect() };
    assert_eq!(parts(38), ["kernel::syscalls::setitimer", "kernel::time::from_timeval"]);
    let message = ["kernel::syscalls::send_message", "kernel::time::from_timeval", "kernel::syscalls::control::read"];
    assert_eq!(parts(46), message, "a jump out of it is a call, and locks are not what it does");
    assert_eq!(parts(4000), [""; 0]);
}

#[test]
fn a_function_that_right_answers_are_made_of_is_a_later_suspect() {
    let symbols = kernel();
    let behind = |right: &[i64]| Spectrum::of(&symbols, right.iter().copied()).behind_call(46, None);
    let (own, shared) = ("kernel::syscalls::control::read", "kernel::time::from_timeval");
    let place = |found: &[String], name: &str| found.iter().position(|found| found == name).expect("it is listed");
    let found = behind(&[]);
    assert!(place(&found, shared) < place(&found, own), "{found:?}");
    // setitimer is made of it too, and answered right.
    let found = behind(&[38]);
    assert!(place(&found, own) < place(&found, shared), "{found:?}");
}

#[test]
fn a_sleeper_s_own_call_that_failed_is_told_with_what_makes_its_error() {
    let hang = |result: i64| {
        let maker = ours().put(C, &stopped()).put(SectionKind::TASKS, &sleeper(2, 1, "pause"));
        let maker = maker.put(SectionKind::SYSCALLS, &called(2, 46, result, SECOND));
        let waits = SyscallRecord { result: None, ..called(2, 34, 0, 2 * SECOND) };
        judge_as(&kernel(), &maker.put(SectionKind::SYSCALLS, &waits))
    };
    let row = "the last call that failed before: sendmsg(0, 0x7000, 0) = -1 ENOBUFS";
    assert!(told(&hang(-105), row) && told(&hang(-105), "kernel::syscalls::control::read"), "{:#?}", hang(-105));
    assert!(!told(&hang(-11), "that failed before") && !told(&hang(0), "that failed before"));
}

#[test]
fn a_program_that_may_not_access_what_a_call_changed_is_told_the_call() {
    let death = |start: u64| {
        let row = SyscallRecord { arg0: Some(start), arg1: Some(4096), ..called(7, 10, 0, SECOND) };
        let maker = ours().put(C, &user_death(11, 0x40_1000, Some(0x7000_0004)));
        judge_as(&kernel(), &maker.put(SectionKind::SYSCALLS, &row))
    };
    let row = "the kernel's last answer about 0x70000004: mprotect(0x70000000, 4096, PROT_NONE) = 0";
    assert!(told(&death(0x7000_0000), row), "{:#?}", death(0x7000_0000).hypotheses);
    assert!(!told(&death(0x6000_0000), "the kernel's last answer"));
}

#[test]
fn the_failed_call_of_the_parent_counts_less_and_that_of_a_stranger_not_at_all() {
    let hang = |caller: u32| {
        let maker = ours().put(C, &stopped()).put(SectionKind::TASKS, &sleeper(2, 1, "wait4"));
        let maker = maker.put(SectionKind::TASKS, &sleeper(3, 2, "recvmsg"));
        let maker = maker.put(SectionKind::TASKS, &Task { state_ns: Some(SECOND), ..sleeper(9, 1, "nanosleep") });
        judge_as(&kernel(), &maker.put(SectionKind::SYSCALLS, &called(caller, 46, -105, 5 * SECOND)))
    };
    let (own, parent, other) = (hang(3), hang(2), hang(9));
    let score = |triage: &Triage| triage.hypotheses.iter().find(|found| found.claim.contains("recvmsg")).unwrap().score;
    let text = |triage: &Triage| format!("{:?}", triage.hypotheses);
    assert!(score(&own) > score(&parent) && score(&parent) > score(&other), "{}", text(&parent));
    assert!(text(&parent).contains("process 2: sendmsg(0, 0x7000, 0) = -1 ENOBUFS"), "{}", text(&parent));
    // The lock's code has the number too, but locks make no errors.
    let facts = own.hypotheses.iter().flat_map(|found| &found.evidence).map(whole);
    let can = "that error can come from: kernel::syscalls::control::read";
    assert!(facts.into_iter().any(|fact| fact == can), "{}", text(&own));
    assert!(!text(&other).contains("sendmsg"), "{}", text(&other));
}

#[test]
fn the_call_that_was_to_wake_a_sleeper_is_the_first_of_its_kind_that_a_relative_made_since() {
    let hang = |caller: u32, nr: i64, at: u64| {
        let maker = ours().put(C, &stopped()).put(SectionKind::TASKS, &sleeper(2, 4, "recvmsg"));
        let maker = maker.put(SectionKind::TASKS, &Task { state_ns: Some(SECOND), ..sleeper(3, 4, "nanosleep") });
        let maker = maker.put(SectionKind::TASKS, &Task { state_ns: Some(SECOND), ..sleeper(9, 1, "nanosleep") });
        judge_as(&kernel(), &maker.put(SectionKind::SYSCALLS, &called(caller, nr, 5, at)))
    };
    let text = |triage: &Triage| format!("{:?}", triage.hypotheses);
    let woken = text(&hang(3, 46, 7 * SECOND));
    assert!(woken.contains("process 3: sendmsg(0, 0x7000, 0) = 5, 2000.0 ms after it went to sleep"), "{woken}");
    let made = "it may have been to wake it; the call is made of: kernel::syscalls::send_message; ";
    let facts = hang(3, 46, 7 * SECOND).hypotheses;
    let mut facts = facts.iter().flat_map(|found| &found.evidence).map(whole);
    assert!(facts.any(|fact| fact.contains(made)), "{woken}");
    // Before it slept, by a stranger, and of a kind that wakes sleepers of another kind.
    for (caller, nr, at) in [(3, 46, SECOND), (9, 46, 7 * SECOND), (3, 38, 7 * SECOND)] {
        let other = text(&hang(caller, nr, at));
        assert!(!other.contains("to wake it"), "{caller} {nr} {at}: {other}");
    }
}

#[test]
fn calls_that_a_busy_thread_makes_again_and_again_are_told_once() {
    let values = regs(&[(RegId::RIP, 0x40_1000), (RegId::CS, 0x33)]);
    let spin = |results: &[i64]| {
        let calls = results.iter().map(|result| called(2, 46, *result, SECOND));
        let maker = calls.fold(stopped_with(&values), |maker, call| maker.put(SectionKind::SYSCALLS, &call));
        format!("{:?}", judge_as(&kernel(), &maker).hypotheses)
    };
    let told = spin(&[0; 9]);
    assert!(told.contains("its last 9 calls are sendmsg(0, 0x7000, 0) = 0 again and again, made of"), "{told}");
    assert!(spin(&[1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]).contains("its last 12 calls are"));
    assert!(!spin(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).contains("again and again"));
}

#[test]
fn a_sleeper_past_its_deadline_is_overdue_and_the_timer_s_functions_are_named_for_our_kernel_alone() {
    let hang = |maker: Maker, deadline: u64| {
        let task = Task { deadline_ns: Some(deadline), ..sleeper(1, 0, "nanosleep") };
        judge_as(&Symbols::new(), &maker.put(C, &stopped()).put(SectionKind::TASKS, &task))
    };
    let late = hang(ours(), 6 * SECOND);
    assert_eq!(late.hypotheses[0].about, Some("INV-DEADLINE"), "{:#?}", late.hypotheses);
    assert!(told(&late, "should have woken 14.0 s ago") && told(&late, "machine::time::expired"));
    assert!(!told(&hang(Maker::new(), 6 * SECOND), "machine::time::expired"));
    for in_time in [30 * SECOND, u64::MAX] {
        let triage = hang(ours(), in_time);
        assert!(triage.hypotheses.iter().all(|found| found.about.is_none()), "{:#?}", triage.hypotheses);
    }
}

/// A machine that hangs, whose only sleeper should have woken at 6 s, and its processor.
fn hang_on(cpu: Cpu<'_>) -> Triage {
    let task = Task { deadline_ns: Some(6 * SECOND), last_cpu: Some(0), ..sleeper(1, 0, "nanosleep") };
    let cpu = Cpu { number: Some(0), ..cpu };
    let maker = ours().put(C, &stopped()).put(SectionKind::TASKS, &task).put(SectionKind::REGISTERS, &cpu);
    judge_as(&Symbols::new(), &maker)
}

#[test]
fn an_interrupt_that_did_not_end_explains_what_a_processor_misses() {
    let serving = Cpu {
        interrupts_on: Some(true),
        vector_in_service: Some(0xf0),
        vector_requested: Some(0xf1),
        task_priority: Some(0),
        ..Cpu::default()
    };
    let found = hang_on(serving);
    assert_eq!(found.hypotheses[0].about, Some("INV-INTERRUPT"), "{:#?}", found.hypotheses);
    assert!(found.hypotheses[0].score > 0.8 && told(&found, "apic::end_of_interrupt"), "{:#?}", found.hypotheses);
    let row = "0xf0 of the timer is still in service: its end was not written, and no vector up to 0xff is delivered; \
               interrupt 0xf1 of another processor waits";
    assert!(told(&found, row), "{:#?}", found.hypotheses);
    let held = Cpu { vector_in_service: Some(0), task_priority: Some(0xf0), ..serving };
    assert!(told(&hang_on(held), "is held back by the task priority 0xf0"));
    // A handler runs with interrupts off, and a request that nothing holds back is about to be taken.
    let handler = Cpu { interrupts_on: Some(false), ..serving };
    let on_its_way = Cpu { vector_in_service: Some(0), task_priority: Some(0xe0), ..serving };
    for sound in [handler, on_its_way] {
        let triage = hang_on(sound);
        assert!(triage.hypotheses.iter().all(|found| found.about != Some("INV-INTERRUPT")), "{:#?}", triage.hypotheses);
    }
}

#[test]
fn a_sleeper_past_its_deadline_says_what_became_of_the_timer() {
    let timer = |counts, at, served, on| {
        hang_on(Cpu {
            interrupts_on: Some(on),
            vector_in_service: Some(served),
            vector_requested: Some(if served == 0 && !on { 0xf0 } else { 0 }),
            timer_counts: Some(counts),
            timer_ns: Some(at),
            ..Cpu::default()
        })
    };
    for (triage, row) in [
        (timer(false, 0, 0, true), "14.0 s ago; the timer of CPU 0 is not armed"),
        (timer(true, 26 * SECOND, 0, true), "is armed for 20.0 s after that deadline"),
        (timer(false, 6 * SECOND, 0xf0, true), "has expired, while an interrupt is still in service"),
        (timer(false, 6 * SECOND, 0, false), "has expired; an interrupt is requested, and interrupts are off"),
        (timer(false, 6 * SECOND, 0, true), "has expired, and the kernel did not handle it"),
        (timer(true, 5 * SECOND, 0, true), "counts although its time is over"),
        (timer(true, 0, 0, true), "counts though the kernel wants no interrupt of it"),
    ] {
        let mut facts = triage.hypotheses.iter().flat_map(|found| &found.evidence);
        assert!(facts.any(|fact| fact.text.contains(row)), "{row}: {:#?}", triage.hypotheses);
    }
}

#[test]
fn a_page_fault_that_comes_again_is_its_own_claim_with_the_call_that_decides_it() {
    let message = b"page fault loop: thread 7 faults at 0x7ffbf7ed3000, ip 0x402f8c, for 10 s";
    let cause = Cause { kind: Some(CauseKind::FAULT_LOOP), message: Some(message), pid: Some(7), ..stopped() };
    let protect = |start| SyscallRecord { arg0: Some(start), arg1: Some(12288), ..called(7, 10, 0, SECOND) };
    let maker = ours().put(C, &cause).put(SectionKind::SYSCALLS, &protect(0x7ffb_f7ed_3000));
    let triage = judge_as(&Symbols::new(), &maker.put(SectionKind::SYSCALLS, &protect(0x1000)));
    let found = &triage.hypotheses[0];
    assert!(found.claim.starts_with("the page fault at 0x7ffbf7ed3000 is resolved again and again"), "{}", found.claim);
    assert!(told(&triage, "mprotect(0x7ffbf7ed3000, 12288, PROT_NONE) = 0"), "{:#?}", found.evidence);
    assert!(told(&triage, "kernel_logic::fault::decide") && found.score < 0.7, "{found:#?}");
}

#[test]
fn a_processor_that_always_enters_by_a_page_fault_is_told_so() {
    let symbols = kernel();
    let (stubs, _) = symbols.loaded()[0].image.find_symbol("trap_stubs").unwrap();
    let hang = |vector: u64| {
        let values = regs(&[(RegId::RIP, stubs + (1 << 20) + vector * 16), (RegId::CS, 0x10)]);
        judge_as(&symbols, &stopped_with(&values))
    };
    assert!(told(&hang(14), "it was taking a page fault"), "{:#?}", hang(14).hypotheses);
    assert!(told(&hang(14), "kernel::task::memory::resolve") && !told(&hang(32), "page fault"));
}

#[test]
fn a_processor_that_stays_in_a_loop_of_the_kernel_names_what_the_loop_calls() {
    let symbols = kernel();
    let at = |name: &str| symbols.loaded()[0].image.find_symbol(name).unwrap().0 + (1 << 20);
    let hang = |offset: u64| {
        // The stack pointer is at the return address into the function, behind its call at that offset.
        let read = at("kernel::syscalls::control::read");
        let values = regs(&[(RegId::RIP, read), (RegId::RSP, 0xffff_8000_0000_1000), (RegId::CS, 0x10)]);
        let words: Vec<u8> = (at("kernel::fs::write_all") + offset).to_le_bytes().into();
        let stack = Memory {
            kind: Some(MemoryKind::KERNEL_STACK),
            vaddr: Some(0xffff_8000_0000_1000),
            bytes: Some(&words),
            ..Memory::default()
        };
        judge_as(&symbols, &stopped_with(&values).put(SectionKind::STACKS, &stack))
    };
    let row = "kernel::fs::write_all repeats a loop that calls kernel::time::from_timeval";
    assert!(told(&hang(10), row), "{:#?}", hang(10).hypotheses);
    // Behind the loop it calls something once.
    assert!(!told(&hang(19), "repeats a loop"), "{:#?}", hang(19).hypotheses);
}

#[test]
fn a_processor_that_never_comes_out_of_the_kernel_s_start_is_told_by_its_stack() {
    let symbols = kernel();
    let at = |name: &str| symbols.loaded()[0].image.find_symbol(name).unwrap().0 + (1 << 20);
    let read = at("kernel::syscalls::control::read");
    let values = regs(&[(RegId::RIP, read), (RegId::RSP, 0xffff_8000_0000_1000), (RegId::CS, 0x10)]);
    let set = Registers { role: Some(RegisterRole::STOPPED), regs: Some(List::new(&values)), ..Registers::default() };
    let early = ours().put(C, &stopped()).put(SectionKind::REGISTERS, &set);
    let idle = Registers { tid: Some(0), ..set };
    let idle = ours().put(C, &stopped()).put(SectionKind::REGISTERS, &idle);
    let (claim, place) = ("a processor stays in the kernel", ", before the first thread runs");
    let first = |maker: &Maker| judge_as(&symbols, maker).hypotheses[0].claim.clone();
    assert!(first(&early).starts_with(claim) && first(&early).ends_with(place), "{}", first(&early));
    assert!(!first(&idle).contains(place), "the idle loop: {}", first(&idle));
    // With threads the idle loop may be what it ran.
    let later = early.put(SectionKind::TASKS, &sleeper(2, 1, "read"));
    assert!(!first(&later).contains(place), "{}", first(&later));
}

#[test]
fn a_processor_that_waits_for_others_names_what_should_have_answered() {
    let lockup = |inner: &'static str| {
        let cause = Cause { kind: Some(CauseKind::SOFT_LOCKUP), message: Some(b"soft lockup"), ..stopped() };
        let mut maker = ours().put(C, &cause);
        for (number, name) in
            (0..).zip([inner, "machine::x86_64::memory::stacks::release", "kernel::task::clone::clone"])
        {
            let addr = Some(0xffff_ffff_8010_0000 + u64::from(number) * 16);
            let symbol = Some(name.as_bytes());
            maker = maker.put(C, &Frame { index: Some(number), trace: Some(0), addr, symbol, ..Frame::default() });
        }
        judge_as(&Symbols::new(), &maker)
    };
    let asks = lockup("machine::x86_64::interrupts::tlb::ask");
    assert!(told(&asks, "machine::x86_64::interrupts::ipi::interrupt"), "{:#?}", asks.hypotheses);
    assert!(!told(&lockup("machine::percpu::relax"), "ipi::interrupt"));
}

#[test]
fn memory_that_is_refused_while_frames_are_free_is_no_leak() {
    let death = |free: i64, message: &'static [u8]| {
        let cause =
            Cause { kind: Some(CauseKind::PANIC), message: Some(message), in_kernel: Some(true), ..Cause::default() };
        let mut maker = ours().put(C, &cause);
        for (name, value) in [("total", 130_943), ("free", free), ("in use", 118_098), ("of the kernel heap", 2)] {
            let (group, name) = (Some(&b"memory"[..]), Some(name.as_bytes()));
            maker =
                maker.put(SectionKind::COUNTERS, &Counter { group, name, value: Some(value), ..Counter::default() });
        }
        judge_as(&Symbols::new(), &maker)
    };
    let refused = death(4096, b"memory for an idle thread at boot");
    let leak = |triage: &Triage| triage.hypotheses.iter().find(|found| found.rule == "LEAK").cloned().unwrap();
    let found = leak(&refused);
    assert!(found.claim.starts_with("an allocation failed although 4096 pages (3 %) are free"), "{}", found.claim);
    assert!(found.score < 0.7 && !found.proven, "{}", found.score);
    assert!(found.evidence.iter().any(|fact| whole(fact).contains("machine::frame::meta::claim")), "{found:#?}");
    for other in [death(100, b"memory for an idle thread at boot"), death(4096, b"index out of bounds")] {
        assert!(leak(&other).claim.contains("are in use without an owner"), "{:#?}", other.hypotheses);
    }
}

#[test]
fn a_log_of_refused_memory_names_the_allocator_unless_the_kernel_said_that_none_was_left() {
    let panicked = |message: &'static [u8]| {
        let kind = Some(CauseKind::PANIC);
        let cause = Cause { kind, message: Some(message), in_kernel: Some(true), ..Cause::default() };
        judge_as(&Symbols::new(), &ours().put(C, &cause))
    };
    let refused = panicked(b"memory for an idle thread at boot");
    assert!(told(&refused, "machine::frame::meta::claim"), "{:#?}", refused.hypotheses);
    for other in [&b"memory allocation of 131072 bytes failed"[..], b"index out of bounds: the memory map"] {
        assert!(!format!("{:?}", panicked(other).hypotheses).contains("machine::frame"));
    }
}

#[test]
fn a_bus_error_in_shared_memory_without_a_file_is_the_kernel_s() {
    let death = |name: &'static [u8]| {
        let shared = Vma { name: Some(name), ..vma(0x7000_0000, 0x7000_1000, 3, "") };
        let maker = ours().put(C, &user_death(7, 0x40_1000, Some(0x7000_0004)));
        judge_as(&Symbols::new(), &maker.put(SectionKind::MEMORY_MAP, &shared))
    };
    let shared = death(b"Shared");
    assert_eq!(shared.hypotheses[0].rule, "BUS", "{:#?}", shared.hypotheses);
    assert!(shared.hypotheses[0].claim.starts_with("the kernel sent SIGBUS for shared memory without a file"));
    assert!(told(&shared, "kernel::mm::shared::SharedMemory::page") && shared.hypotheses[0].score < 0.7);
    assert!(death(b"Anonymous").hypotheses.iter().all(|found| found.rule != "BUS"));
}

/// Task `tid` sleeps for the mutex at `object`, which `on` has.
fn mutex_waiter(tid: u32, object: u64, on: u32) -> Task<'static> {
    Task {
        state: Some(TaskState::BLOCKED),
        wait_object: Some(object),
        wait_object_name: Some(b"a mutex of the kernel"),
        wait_tid: Some(on),
        ..sleeper(tid, 1, "write")
    }
}

fn mutex(addr: u64, tid: u32) -> Lock<'static> {
    Lock {
        addr: Some(addr),
        kind: Some(LockKind::MUTEX),
        holder_pid: Some(tid),
        holder_tid: Some(tid),
        ..Lock::default()
    }
}

fn awaited(addr: u64, tid: u32) -> LockWait<'static> {
    LockWait {
        addr: Some(addr),
        kind: Some(LockKind::MUTEX),
        waiter_pid: Some(tid),
        waiter_tid: Some(tid),
        ..LockWait::default()
    }
}

fn hung(message: &'static str) -> Cause<'static> {
    Cause { kind: Some(CauseKind::HUNG_TASK), message: Some(message.as_bytes()), ..stopped() }
}

fn first_of(maker: &Maker) -> (String, String) {
    let triage = judge_as(&Symbols::new(), maker);
    let first = triage.hypotheses.first().expect("a hypothesis");
    (first.rule.to_owned(), first.claim.clone())
}

#[test]
fn the_holder_of_a_mutex_is_named_with_what_it_does() {
    let message = "hung task: thread 4 has been blocked for 15 s: it waits on thread 3, which sleeps";
    let holder =
        |state| Task { state: Some(state), wait_object_name: Some(b"a point in time"), ..sleeper(3, 1, "read") };
    let maker = |state| {
        // One that is runnable for long is a finding of its own.
        let since = if state == TaskState::BLOCKED { 16 * SECOND } else { SECOND / 10 };
        ours()
            .put(C, &hung(message))
            .put(SectionKind::TASKS, &Task { state_ns: Some(since), ..holder(state) })
            .put(SectionKind::TASKS, &mutex_waiter(4, 0xa0, 3))
    };
    let says = |state, end: &str| {
        let with_locks =
            maker(state).put(SectionKind::LOCKS, &mutex(0xa0, 3)).put(SectionKind::LOCKS, &awaited(0xa0, 4));
        // The tasks alone say it too.
        for maker in [with_locks, maker(state)] {
            let (rule, claim) = first_of(&maker);
            assert_eq!(
                (rule.as_str(), claim),
                ("HANG", format!("prog[4] hangs, waiting for a mutex that prog[3] has, {end}"))
            );
        }
    };
    says(TaskState::BLOCKED, "which sleeps");
    says(TaskState::RUNNABLE, "which is kept from a processor");
    says(TaskState::RUNNING, "which runs");
}

#[test]
fn a_chain_of_mutexes_is_followed_to_its_end() {
    let maker = ours()
        .put(C, &hung("hung task: thread 4 has been blocked for 15 s: it waits on thread 2, which sleeps"))
        .put(SectionKind::TASKS, &sleeper(2, 1, "read"))
        .put(SectionKind::TASKS, &mutex_waiter(3, 0xb0, 2))
        .put(SectionKind::TASKS, &mutex_waiter(4, 0xa0, 3));
    let (_, claim) = first_of(&maker);
    let way = "a mutex that prog[3] has, which waits for a mutex that prog[2] has, which sleeps";
    assert_eq!(claim, format!("prog[4] hangs, waiting for {way}"));
}

#[test]
fn a_circle_of_mutexes_is_a_deadlock_also_where_the_locks_are_lost() {
    let message = "hung task: thread 4 has been blocked for 15 s: it waits on thread 3, which waits on itself";
    let tasks = ours()
        .put(C, &hung(message))
        .put(SectionKind::TASKS, &mutex_waiter(3, 0xb0, 4))
        .put(SectionKind::TASKS, &mutex_waiter(4, 0xa0, 3));
    let (rule, claim) = first_of(&tasks);
    assert_eq!(
        (rule.as_str(), claim.as_str()),
        ("DEADLOCK", "deadlock: prog[3] and prog[4] wait for each other's locks")
    );
    // A waiter of another mutex, whose holder sleeps, is in no circle.
    let apart = ours().put(C, &hung(message)).put(SectionKind::TASKS, &mutex_waiter(4, 0xa0, 3));
    let (rule, _) = first_of(&apart.put(SectionKind::TASKS, &mutex_waiter(3, 0xb0, 2)));
    assert_eq!(rule, "HANG");
}

#[test]
fn of_a_circle_of_fifty_thousand_the_first_are_named_and_the_others_counted() {
    const TASKS: u32 = 50_000;
    let mut tasks = ours().put(C, &hung("hung task: thread 4 has been blocked for 15 s"));
    for number in 0..TASKS {
        let next = (number + 1) % TASKS;
        tasks = tasks.put(SectionKind::TASKS, &mutex_waiter(3 + number, 0x1000 + u64::from(number), 3 + next));
    }
    let dump = Dump::from_bytes(tasks.bytes()).unwrap();
    let begun = std::time::Instant::now();
    let judged = triage(&dump.case(), &Symbols::new(), &Backing::none(), "crash.kwab");
    let took = begun.elapsed();
    let found = judged.hypotheses.iter().find(|found| found.rule == "DEADLOCK").unwrap();
    let text = &found.claim;
    assert!(text.starts_with("deadlock: prog[3] and prog[4] and "), "{text}");
    assert!(text.ends_with(" and prog[18] and 49984 more wait for each other's locks"), "{text}");
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}
