//! Deaths of programs by their class, hangs that an NMI recorded, and what a score may claim.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::symbols::{Image as Elf, IndexCache, LoadedImage};

const C: SectionKind = SectionKind::CAUSE;
const IP: u64 = 0x40_1000;

fn code(bytes: &'static [u8]) -> Memory<'static> {
    Memory { kind: Some(MemoryKind::CODE), vaddr: Some(IP), pid: Some(7), bytes: Some(bytes), ..Memory::default() }
}

fn fault_set(values: &[(RegId, u64)], error_code: u64) -> Vec<u8> {
    let values = regs(values);
    let set = Registers {
        role: Some(RegisterRole::FAULT),
        pid: Some(7),
        vector: Some(14),
        error_code: Some(error_code),
        regs: Some(List::new(&values)),
        ..Registers::default()
    };
    Maker::new().put(SectionKind::REGISTERS, &set).parts.remove(0).1
}

fn with_set(mut maker: Maker, values: &[(RegId, u64)], error_code: u64) -> Maker {
    maker.parts.push((SectionKind::REGISTERS, fault_set(values, error_code)));
    maker
}

fn printed(number: u32, symbol: &'static str) -> Frame<'static> {
    Frame {
        trace: Some(0),
        index: Some(number),
        addr: Some(IP + u64::from(number) * 0x100),
        symbol: Some(symbol.as_bytes()),
        ..Frame::default()
    }
}

/// The stack of a program's death as a debugger's log has it: the trace of a kernel death is printed the same way.
fn stack_of(maker: Maker, names: &[&'static str]) -> Maker {
    (0..).zip(names).fold(maker, |maker, (number, name)| maker.put(SectionKind::STACKS, &printed(number, name)))
}

fn first(triage: &Triage) -> (&'static str, &str) {
    triage.hypotheses.first().map_or(("none", ""), |found| (found.rule, found.claim.as_str()))
}

#[test]
fn a_division_names_its_divisor_in_programs_and_in_the_kernel() {
    // div ecx
    let dump = |cause: &Cause<'static>| {
        let maker = Maker::new().put(C, cause).put(SectionKind::STACKS, &code(&[0xf7, 0xf1]));
        judge(with_set(maker, &[(RegId::RIP, IP), (RegId::RCX, 1 << 40)], 0).bytes())
    };
    let triage = dump(&Cause { ip: Some(IP), ..user_death(8, IP, None) });
    assert_eq!(first(&triage), ("DIVIDE", "prog divided by zero"), "{:#?}", triage.hypotheses);
    assert!(triage.hypotheses[0].proven && triage.hypotheses[0].score > 0.7);
    let gone = Cause { vector: Some(0), message: Some(b"divide error"), fault_addr: None, ..kernel_fault(0, IP, 0) };
    let triage = dump(&gone);
    assert_eq!(first(&triage).0, "DIVIDE", "{:#?}", triage.hypotheses);
    assert!(triage.hypotheses.iter().all(|found| !found.claim.contains("explicit panic")));
}

#[test]
fn an_illegal_instruction_is_told_from_a_trap_of_the_compiler() {
    let trap =
        judge(Maker::new().put(C, &user_death(4, IP, None)).put(SectionKind::STACKS, &code(&[0x0f, 0x0b])).bytes());
    assert_eq!(first(&trap).0, "ILLEGAL", "{:#?}", trap.hypotheses);
    assert!(first(&trap).1.contains("code that must not be reached"), "{}", first(&trap).1);
    let other = judge(Maker::new().put(C, &user_death(4, IP, None)).bytes());
    assert!(first(&other).1.contains("illegal instruction"), "{}", first(&other).1);
    assert!(other.hypotheses[0].score < 0.7, "nothing shows the instruction");
}

#[test]
fn an_access_behind_the_end_of_a_mapped_file_names_file_and_offset() {
    let death = user_death(7, IP, Some(0x7000_2010));
    let triage = judge(
        Maker::new()
            .put(C, &death)
            .put(SectionKind::MEMORY_MAP, &vma(0x7000_0000, 0x7000_4000, 3, "/tmp/data"))
            .bytes(),
    );
    assert_eq!(first(&triage).0, "BUS", "{:#?}", triage.hypotheses);
    assert!(first(&triage).1.contains("/tmp/data") && first(&triage).1.contains("0x2010"), "{}", first(&triage).1);
}

#[test]
fn a_write_to_read_only_memory_is_the_programs_and_a_signal_for_an_allowed_write_the_kernels() {
    let death = |prot| {
        let maker = Maker::new().put(C, &user_death(11, IP, Some(0x50_0010)));
        let maker = maker.put(SectionKind::MEMORY_MAP, &vma(0x50_0000, 0x50_1000, prot, "/bin/prog"));
        judge(with_set(maker, &[(RegId::RIP, IP)], 7).bytes())
    };
    let denied = death(1);
    assert_eq!(first(&denied).0, "READ-ONLY", "{:#?}", denied.hypotheses);
    let allowed = death(3);
    assert_eq!(first(&allowed).0, "REFUSED", "{:#?}", allowed.hypotheses);
    assert!(first(&allowed).1.contains("the kernel sent SIGSEGV for an access that the mapping allows"));
    // A mapping without any right is a guard page, no constant that was written.
    assert_ne!(first(&death(0)).0, "READ-ONLY");
}

#[test]
fn a_live_dump_that_was_taken_for_a_hang_is_not_deliberate() {
    let judged = |reason| {
        let identity = Identity { reason: Some(reason), ..Identity::default() };
        let cause = Cause { kind: Some(CauseKind::LIVE), ..Cause::default() };
        judge(Maker::new().put(SectionKind::IDENTITY, &identity).put(C, &cause).bytes())
    };
    let asked = judged(Reason::LIVE);
    assert!(first(&asked).0 == "DELIBERATE" && !asked.has_findings(), "{:#?}", asked.hypotheses);
    let hang = judged(Reason::HANG);
    assert!(first(&hang).0 == "HANG" && hang.has_findings(), "{:#?}", hang.hypotheses);
}

#[test]
fn a_stack_pointer_below_the_stack_proves_that_it_ran_out() {
    let judged = |sp| {
        let death = Cause { sp: Some(sp), ..user_death(11, IP, Some(0x7fff_0ffc)) };
        let maker = Maker::new().put(C, &death);
        let maker = maker.put(SectionKind::MEMORY_MAP, &vma(0x7fff_1000, 0x7fff_9000, 3, "[stack]"));
        judge(with_set(maker, &[(RegId::RIP, IP), (RegId::RSP, sp)], 6).bytes())
    };
    let below = judged(0x7fff_0fc0);
    assert_eq!((first(&below).0, below.hypotheses[0].score), ("STACK", 0.8), "{:#?}", below.hypotheses);
    // `call` with the stack pointer at the very end writes 8 bytes below it, and a leaf function up to 128.
    for sp in [0x7fff_1004, 0x7fff_107c] {
        let pushed = judged(sp);
        assert_eq!((first(&pushed).0, pushed.hypotheses[0].score), ("STACK", 0.8), "{:#?}", pushed.hypotheses);
    }
    for sp in [0x7fff_107d, 0x7fff_1100] {
        let above = judged(sp);
        let score = above.hypotheses.iter().find(|found| found.rule == "STACK").map_or(0.0, |found| found.score);
        assert!(score < 0.7, "an access below the stack alone proves nothing: {score}");
    }
}

/// The named fixture as the program's image, so that its stack has names.
fn fixture() -> (Symbols, u64, u64) {
    use object::{Object as _, ObjectSymbol as _};
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/trail/trail.elf");
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let of = |name: &str| file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
    let mut symbols = Symbols::new();
    symbols.add(LoadedImage::new(Arc::new(Elf::open(&path, &IndexCache::none()).unwrap()), 0, None));
    (symbols, of("close_session"), of("run"))
}

#[test]
fn frames_that_the_kernel_printed_as_addresses_get_the_names_of_the_image() {
    let (symbols, close, run) = fixture();
    let bare = |number, addr| Frame { index: Some(number), addr: Some(addr), trace: Some(0), ..Frame::default() };
    let lockup = Cause {
        kind: Some(CauseKind::PANIC),
        message: Some(b"the table is gone"),
        ip: Some(close + 0x11),
        in_kernel: Some(true),
        ..Cause::default()
    };
    let mut maker = Maker::new().put(C, &lockup);
    for number in 1..9 {
        maker = maker.put(SectionKind::STACKS, &bare(number, if number == 1 { close + 0x11 } else { run + 0x1f }));
    }
    let dump = Dump::from_bytes(maker.bytes()).unwrap();
    let triage = triage(&dump.case(), &symbols, &Backing::none(), "x");
    let found = &triage.hypotheses[0];
    assert_eq!(found.function.as_ref().map(|function| function.name.as_str()), Some("close_session"), "{found:#?}");
    assert!(found.claim.contains("close_session"), "{}", found.claim);
    assert!(triage.lacking.iter().all(|lack| !lack.contains("names of functions")), "{:?}", triage.lacking);
}

#[test]
fn a_fault_in_list_code_blames_the_caller_and_says_that_something_was_corrupted_before() {
    let maker = Maker::new().put(C, &kernel_fault(0xffff_8000_1234_0000, IP, 0));
    let triage =
        judge(stack_of(maker, &["__list_del_entry_valid", "kmem_cache_free", "session_close", "sys_close"]).bytes());
    let found = &triage.hypotheses[0];
    let guilty = found.function.as_ref().unwrap();
    assert_eq!(
        (guilty.name.as_str(), guilty.died_in.as_deref()),
        ("session_close", Some("__list_del_entry_valid")),
        "{found:#?}"
    );
    assert!(found.claim.contains("in __list_del_entry_valid, called by session_close"), "{}", found.claim);
    assert!(found.score < 0.7, "{}", found.score);
    assert!(found.evidence.iter().any(|fact| fact.text.contains("session_close ← sys_close")), "{found:#?}");
}

fn nmi(pid: Option<u32>, comm: &'static [u8]) -> Cause<'static> {
    let kind = Some(CauseKind::NMI);
    Cause {
        kind,
        pid,
        comm: Some(comm),
        message: Some(b"non-maskable interrupt"),
        in_kernel: Some(true),
        ..Cause::default()
    }
}

fn task(pid: u32, ppid: u32, state: TaskState, why: &'static str) -> Task<'static> {
    Task {
        pid: Some(pid),
        tid: Some(pid),
        ppid: Some(ppid),
        comm: Some(b"prog"),
        state: Some(state),
        user_ip: Some(IP),
        wait_reason: Some(why.as_bytes()),
        state_ns: Some(20_000_000_000),
        ..Task::default()
    }
}

#[test]
fn a_dump_by_nmi_is_a_hang_to_be_explained_and_never_deliberate() {
    let idle = Maker::new()
        .put(C, &nmi(None, b"swapper"))
        .put(SectionKind::TASKS, &task(1, 0, TaskState::SLEEPING, "wait4"))
        .put(SectionKind::TASKS, &task(2, 1, TaskState::SLEEPING, "pipe_read"))
        .put(SectionKind::TASKS, &Task { user_ip: None, ..task(3, 0, TaskState::SLEEPING, "work") });
    let triage = judge(idle.bytes());
    assert_eq!(first(&triage).0, "HANG", "{:#?}", triage.hypotheses);
    assert!(first(&triage).1.starts_with("prog[2] hangs, waiting for pipe_read"), "{}", first(&triage).1);
    assert!(triage.hypotheses.iter().all(|found| found.rule != "DELIBERATE"));
    assert!(triage.has_findings() && !triage.deliberate);
    let ran = regs(&[(RegId::RIP, IP), (RegId::RSP, 0x7000), (RegId::CS, 0x33)]);
    let set = Registers {
        role: Some(RegisterRole::FAULT),
        pid: Some(2),
        tid: Some(2),
        regs: Some(List::new(&ran)),
        ..Registers::default()
    };
    let spinning = Task { run_ns: Some(19_000_000_000), ..task(2, 1, TaskState::RUNNING, "") };
    let busy = Maker::new()
        .put(C, &Cause { in_kernel: Some(false), ..nmi(Some(2), b"prog") })
        .put(SectionKind::REGISTERS, &set)
        .put(SectionKind::TASKS, &spinning);
    let triage = judge(busy.bytes());
    assert_eq!(first(&triage).0, "HANG", "{:#?}", triage.hypotheses);
    assert!(first(&triage).1.contains("prog[2] keeps a processor busy in user mode"), "{}", first(&triage).1);
}

#[test]
fn threads_that_all_wait_for_futexes_are_a_deadlock() {
    let thread = |tid| Task { tid: Some(tid), ..task(5, 1, TaskState::SLEEPING, "futex") };
    let maker = Maker::new().put(C, &nmi(None, b"swapper"));
    let both = maker.put(SectionKind::TASKS, &thread(5)).put(SectionKind::TASKS, &thread(6));
    let rules = |triage: &Triage| triage.hypotheses.iter().map(|found| found.rule).collect::<Vec<_>>();
    assert!(rules(&judge(both.bytes())).contains(&"THREADS"));
    let one = Maker::new().put(C, &nmi(None, b"swapper")).put(SectionKind::TASKS, &thread(5));
    let other = one.put(SectionKind::TASKS, &Task { tid: Some(6), ..task(5, 1, TaskState::SLEEPING, "read") });
    assert!(!rules(&judge(other.bytes())).contains(&"THREADS"));
}

#[test]
fn ranks_follow_scores_and_say_why_a_dump_that_was_asked_for_comes_second() {
    let sysrq =
        Cause { kind: Some(CauseKind::SYSRQ), message: Some(b"sysrq"), in_kernel: Some(true), ..Cause::default() };
    let page = PageCheck {
        pid: Some(7),
        vaddr: Some(0x51_c000),
        path: Some(b"/bin/busybox"),
        expected: Some(&[1]),
        actual: Some(&[0; 8]),
        result: Some(CheckResult::DIFFERENT),
        ..PageCheck::default()
    };
    let triage = judge(Maker::new().put(C, &sysrq).put(SectionKind::PAGE_CHECKS, &page).bytes());
    let ranks: Vec<_> = triage.hypotheses.iter().map(|found| (found.rule, found.score)).collect();
    assert_eq!((ranks[0].0, ranks[1].0), ("PAGE", "DELIBERATE"));
    let why = &triage.hypotheses[1].against[0].text;
    assert!(why.starts_with("ranked below PAGE"), "{ranks:?}: {why}");
    let alone = judge(Maker::new().put(C, &sysrq).bytes());
    assert!(alone.hypotheses[0].score > 0.9 && !alone.has_findings());
}

#[test]
fn a_clean_audit_adds_nothing_and_a_symptom_says_that_nothing_proves_it() {
    let death = user_death(11, IP, Some(8));
    let bare = judge(Maker::new().put(C, &death).bytes());
    let audited = Maker::new()
        .put(C, &death)
        .put(SectionKind::MEMORY_MAP, &vma(0x40_0000, 0x40_2000, 5, "/bin/prog"))
        .put(SectionKind::PAGE_TABLE, &pte(0x40_0000, 0x9000, "xu"));
    let audited = judge(audited.bytes());
    let score =
        |triage: &Triage, rule| triage.hypotheses.iter().find(|found| found.rule == rule).map(|found| found.score);
    assert!(score(&audited, "PROGRAM") <= Some(0.45), "{:?}", score(&audited, "PROGRAM"));
    assert_eq!(score(&audited, "NULL"), score(&bare, "NULL"));
    let null = &bare.hypotheses[0];
    assert!(null.rule == "NULL" && null.score < 0.7 && !null.proven, "{null:#?}");
    assert!(null.explain().iter().any(|line| line.contains("a symptom alone is not scored higher")));
}

#[test]
fn only_what_could_have_seen_it_rules_anything_out() {
    let death = kernel_fault(8, IP, 0);
    let held = Lock { addr: Some(0xa0), holder_tid: Some(3), ..Lock::default() };
    let foreign = Pte { pid: Some(9), ..pte(0x40_0000, 0x9000, "xu") };
    let unread = PageCheck { pid: Some(7), result: Some(CheckResult::UNREADABLE), ..PageCheck::default() };
    let call = SyscallRecord { pid: Some(7), name: Some(b"x"), result: Some(-38), ..SyscallRecord::default() };
    let triage = judge(
        Maker::new()
            .put(C, &death)
            .put(SectionKind::LOCKS, &held)
            .put(SectionKind::PAGE_TABLE, &foreign)
            .put(SectionKind::PAGE_CHECKS, &unread)
            .put(SectionKind::SYSCALLS, &call)
            .bytes(),
    );
    assert_eq!(triage.ruled_out, [""; 0]);
    let quiet = judge(
        Maker::new()
            .put(
                C,
                &Cause {
                    kind: Some(CauseKind::PANIC),
                    message: Some(b"no"),
                    in_kernel: Some(true),
                    ..Cause::default()
                },
            )
            .bytes(),
    );
    assert!(
        quiet.lacking.iter().all(|lack| !lack.contains("debug=")),
        "page checks decide nothing here: {:?}",
        quiet.lacking
    );
}

fn invariants(triage: &Triage) -> Vec<&'static str> {
    triage.hypotheses.iter().filter(|found| found.rule == "INVARIANT").filter_map(|found| found.about).collect()
}

#[test]
fn a_sleeper_whose_wait_has_already_happened_breaks_an_invariant() {
    let hang = || Maker::new().put(C, &nmi(None, b"swapper"));
    let call = |name: &'static [u8], args: [Option<u64>; 3]| SyscallRecord {
        pid: Some(1),
        tid: Some(1),
        name: Some(name),
        arg0: args[0],
        arg1: args[1],
        arg2: args[2],
        in_progress: Some(true),
        ..SyscallRecord::default()
    };
    let parent = task(1, 0, TaskState::SLEEPING, "wait4");
    let waits = |child: Option<u64>, state| {
        let maker = hang().put(SectionKind::TASKS, &parent).put(SectionKind::TASKS, &task(2, 1, state, "read"));
        judge(maker.put(SectionKind::SYSCALLS, &call(b"wait4", [child, None, None])).bytes())
    };
    let any = Some(u64::MAX);
    assert_eq!(invariants(&waits(any, TaskState::ZOMBIE)), ["INV-CHILD"]);
    assert_eq!(invariants(&waits(Some(3), TaskState::ZOMBIE)), [""; 0], "it waits for another child");
    let alive = waits(any, TaskState::SLEEPING);
    assert_eq!(invariants(&alive), [""; 0]);
    assert!(
        alive.ruled_out.iter().any(|line| line.contains("a child that has ended (1 checked)")),
        "{:?}",
        alive.ruled_out
    );

    let poll = |ms| {
        let maker = hang().put(SectionKind::TASKS, &task(1, 0, TaskState::SLEEPING, "poll"));
        judge(maker.put(SectionKind::SYSCALLS, &call(b"poll", [Some(0), Some(1), Some(ms)])).bytes())
    };
    assert_eq!(invariants(&poll(500)), ["INV-DEADLINE"]);
    assert_eq!(invariants(&poll(60_000)), [""; 0]);
    assert_eq!(invariants(&poll(u64::from(u32::MAX))), [""; 0], "-1 is not a deadline");
}

#[test]
fn threads_that_should_run_and_do_not_break_an_invariant() {
    let judged = |task: &Task<'static>| {
        let idle =
            Task { pid: Some(0), tid: Some(0), state: Some(TaskState::IDLE), current: Some(true), ..Task::default() };
        judge(
            Maker::new()
                .put(C, &nmi(None, b"swapper"))
                .put(SectionKind::TASKS, &idle)
                .put(SectionKind::TASKS, task)
                .bytes(),
        )
    };
    let signalled = |pending, blocked| Task {
        pending: Some(pending),
        blocked: Some(blocked),
        ..task(4, 1, TaskState::SLEEPING, "read")
    };
    assert_eq!(invariants(&judged(&signalled(1 << 14, 0))), ["INV-SIGNAL"]);
    assert_eq!(invariants(&judged(&signalled(1 << 14, 1 << 14))), [""; 0]);
    assert_eq!(invariants(&judged(&signalled(1 << 16, 0))), [""; 0], "SIGCHLD does nothing by default");
    assert_eq!(invariants(&judged(&task(4, 1, TaskState::RUNNABLE, ""))), ["INV-RUNNABLE"]);
    let fresh = Task { state_ns: Some(1000), ..task(4, 1, TaskState::RUNNABLE, "") };
    assert_eq!(invariants(&judged(&fresh)), [""; 0]);
    let event = |kind| FlightEvent { kind: Some(kind), tid: Some(4), ..FlightEvent::default() };
    let base = || {
        Maker::new().put(C, &nmi(None, b"swapper")).put(SectionKind::TASKS, &task(4, 1, TaskState::SLEEPING, "read"))
    };
    let slept = base().put(SectionKind::FLIGHT, &event(FlightKind::SLEEP));
    assert_eq!(invariants(&judge(slept.bytes())), [""; 0]);
    assert_eq!(invariants(&judge(slept.put(SectionKind::FLIGHT, &event(FlightKind::WAKE)).bytes())), ["INV-WOKEN"]);
}

#[test]
fn a_wake_up_whose_next_sleep_may_be_overwritten_breaks_no_invariant() {
    const SECOND: u64 = 1_000_000_000;
    let event = |cpu, number, ns, kind| FlightEvent {
        kind: Some(kind),
        tid: Some(4),
        stamp: Stamp { cpu: Some(cpu), seq: Some(number), ns: Some(ns), ..Stamp::default() },
        ..FlightEvent::default()
    };
    let judged = |stamp: Option<u64>, first_of_cpu_0: (u64, u64)| {
        let sleeper = Task {
            last_cpu: Some(0),
            state_ns: Some(20 * SECOND),
            stamp: Stamp { ns: stamp, ..Stamp::default() },
            ..task(4, 1, TaskState::SLEEPING, "wait4")
        };
        let (number, ns) = first_of_cpu_0;
        let maker = Maker::new()
            .put(C, &nmi(None, b"swapper"))
            .put(SectionKind::TASKS, &sleeper)
            .put(SectionKind::FLIGHT, &event(0, number, ns, FlightKind::IDLE_ENTER));
        invariants(&judge(maker.put(SectionKind::FLIGHT, &event(1, 0, SECOND, FlightKind::WAKE)).bytes()))
    };
    // It sleeps since second 2, and was woken in second 1.
    assert_eq!(judged(Some(22 * SECOND), (0, 0)), [""; 0]);
    // It sleeps since second 1: that sleep was to end.
    assert_eq!(judged(Some(21 * SECOND), (7000, 19 * SECOND)), ["INV-WOKEN"]);
    // Without a clock, the ring of the processor that it ran on last must reach back to the wake-up.
    assert_eq!(judged(None, (7000, 19 * SECOND)), [""; 0]);
    assert_eq!(judged(None, (7000, SECOND / 2)), ["INV-WOKEN"]);
    assert_eq!(judged(None, (0, 19 * SECOND)), ["INV-WOKEN"]);
}

#[test]
fn a_lock_of_a_thread_that_is_gone_breaks_an_invariant_unless_the_list_of_threads_is_damaged() {
    let lock = |tid| Lock { addr: Some(0xa0), holder_tid: Some(tid), name: Some(b"table"), ..Lock::default() };
    let maker = |tid| {
        let maker = Maker::new()
            .put(C, &nmi(None, b"swapper"))
            .put(SectionKind::TASKS, &task(4, 1, TaskState::SLEEPING, "read"));
        maker.put(SectionKind::LOCKS, &lock(tid))
    };
    assert_eq!(invariants(&judge(maker(9).bytes())), ["INV-OWNER"]);
    assert_eq!(invariants(&judge(maker(4).bytes())), [""; 0]);
    assert_eq!(invariants(&judge(maker(9).bytes_with_lost(&[SectionKind::TASKS]))), [""; 0]);
}

#[test]
fn a_return_address_that_is_no_code_breaks_an_invariant() {
    let (low, kernel) = (0xffff_c000_0000_4000_u64, 0xffff_ffff_8010_0000_u64);
    let values = regs(&[(RegId::RIP, kernel), (RegId::RSP, low), (RegId::RBP, low + 0x10)]);
    let set = Registers { role: Some(RegisterRole::FAULT), regs: Some(List::new(&values)), ..Registers::default() };
    let image =
        Image { kind: Some(ImageKind::KERNEL), start: Some(kernel), end: Some(kernel + 0x10_0000), ..Image::default() };
    let bounds =
        StackBounds { label: Some(b"task"), low: Some(low), high: Some(low + 0x4000), ..StackBounds::default() };
    let judged = |back: u64| {
        let bytes: Vec<u8> = [0, 0, 0, back].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let stack =
            Memory { kind: Some(MemoryKind::KERNEL_STACK), vaddr: Some(low), bytes: Some(&bytes), ..Memory::default() };
        let cause =
            Cause { kind: Some(CauseKind::PANIC), message: Some(b"no"), in_kernel: Some(true), ..Cause::default() };
        let maker = Maker::new().put(C, &cause).put(SectionKind::REGISTERS, &set).put(SectionKind::IMAGES, &image);
        judge(maker.put(SectionKind::STACKS, &bounds).put(SectionKind::STACKS, &stack).bytes())
    };
    assert_eq!(invariants(&judged(kernel + 0x40)), [""; 0]);
    assert_eq!(invariants(&judged(0x4141_4141_4141)), ["INV-RETURN"]);
}

#[test]
fn two_private_pages_on_one_frame_break_an_invariant_and_copy_on_write_does_not() {
    let page = |pid, rights| Pte { pid: Some(pid), ..pte(0x60_0000, 0x9000, rights) };
    let map = |pid| Vma { pid: Some(pid), file_offset: None, ..vma(0x60_0000, 0x60_1000, 3, "") };
    let judged = |rights| {
        let maker = Maker::new().put(C, &user_death(11, IP, Some(8))).put(SectionKind::MEMORY_MAP, &map(7));
        let maker = maker.put(SectionKind::MEMORY_MAP, &map(8)).put(SectionKind::PAGE_TABLE, &page(7, rights));
        judge(maker.put(SectionKind::PAGE_TABLE, &page(8, rights)).bytes())
    };
    assert_eq!(invariants(&judged("uw")), ["INV-FRAME"]);
    assert_eq!(invariants(&judged("uc")), [""; 0]);
}

#[test]
fn pages_are_not_compared_with_a_file_of_another_build() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/unwind/chain-fp.elf");
    let content = std::fs::read(path).unwrap();
    let backing = Backing::from_files(vec![("/bin/a".into(), content)]);
    let wrong = vec![0x5a_u8; 4096];
    let memory = Memory {
        kind: Some(MemoryKind::PAGE),
        vaddr: Some(0x40_0000),
        pid: Some(7),
        bytes: Some(&wrong),
        ..Memory::default()
    };
    let image =
        |id: &'static [u8]| Image { pid: Some(7), path: Some(b"/bin/a"), build_id: Some(id), ..Image::default() };
    let base = || {
        let maker = Maker::new().put(C, &user_death(11, IP, Some(8)));
        maker.put(SectionKind::MEMORY_MAP, &vma(0x40_0000, 0x40_6000, 5, "/bin/a")).put(SectionKind::MEMORY, &memory)
    };
    assert_eq!(first(&judge_with(base().bytes(), &backing)).0, "PAGE", "without build-ids the content decides");
    let other = judge_with(base().put(SectionKind::IMAGES, &image(&[1, 2, 3, 4])).bytes(), &backing);
    assert!(other.hypotheses.iter().all(|found| found.rule != "PAGE"), "{:#?}", other.hypotheses);
    assert!(other.lacking.iter().any(|lack| lack.contains("/bin/a with build-id 01020304")), "{:?}", other.lacking);
}

#[test]
fn what_names_nameless_frames_is_the_image_that_holds_them() {
    let image = |path: &'static [u8], start, id: &'static [u8]| Image {
        pid: Some(7),
        path: Some(path),
        start: Some(start),
        end: Some(start + 0x10_0000),
        build_id: Some(id),
        ..Image::default()
    };
    let values = regs(&[(RegId::RIP, 0x70_1000), (RegId::RSP, 0x7ffc_0000)]);
    let set = Registers {
        role: Some(RegisterRole::FAULT),
        pid: Some(7),
        regs: Some(List::new(&values)),
        ..Registers::default()
    };
    let identity = Identity { kernel_build_id: Some(&[9; 20]), ..Identity::default() };
    let maker = Maker::new()
        .put(SectionKind::IDENTITY, &identity)
        .put(C, &user_death(11, 0x70_1000, Some(8)))
        .put(SectionKind::REGISTERS, &set)
        .put(SectionKind::IMAGES, &image(b"/bin/prog", 0x40_0000, &[1; 4]))
        .put(SectionKind::IMAGES, &image(b"/lib/libc.so", 0x70_0000, &[2; 4]));
    let triage = judge(maker.bytes());
    let lack = triage.lacking.iter().find(|lack| lack.starts_with("names of functions")).cloned();
    assert_eq!(lack.as_deref(), Some("names of functions (give /lib/libc.so with build-id 02020202 with --symbols)"));
}

#[test]
fn counts_that_are_too_low_say_whether_an_address_space_ended_before() {
    let event = |kind| FlightEvent { kind: Some(kind), pid: Some(3), ..FlightEvent::default() };
    let judged = |kind| {
        let maker = Maker::new()
            .put(C, &user_death(11, IP, Some(8)))
            .put(SectionKind::PAGE_TABLE, &pte(0x40_0000, 0x9000, "xu"));
        let maker = maker.put(SectionKind::MEMORY_MAP, &vma(0x40_0000, 0x40_1000, 5, "/bin/prog"));
        let maker = maker
            .put(SectionKind::PAGE_TABLE, &pte(0x40_0000, 0x9000, "xu"))
            .put(SectionKind::PAGE_TABLE, &frame(0x9000, 1, 2));
        judge(maker.put(SectionKind::FLIGHT, &event(kind)).bytes())
    };
    let rows = |triage: &Triage| {
        let found = triage.hypotheses.iter().find(|found| found.about == Some("VM-COUNT-LOW")).cloned();
        found
            .unwrap_or_else(|| panic!("{:#?}", triage.hypotheses))
            .evidence
            .iter()
            .map(|fact| fact.text.clone())
            .collect::<String>()
    };
    assert!(rows(&judged(FlightKind::EXIT)).contains("process 3 exited before"));
    assert!(rows(&judged(FlightKind::FORK)).contains("never taken"));
}

#[test]
fn when_nothing_is_known_the_advice_follows_the_case() {
    let unknown = Cause {
        kind: Some(CauseKind::PANIC),
        message: Some(b"exception 18"),
        in_kernel: Some(true),
        ..Cause::default()
    };
    let advice =
        |triage: &Triage| triage.undecided.as_ref().map(|undecided| undecided.record.clone()).unwrap_or_default();
    assert!(advice(&judge(Maker::new().put(C, &unknown).bytes())).contains("debug=htrace"));
    let hang = judge(Maker::new().put(C, &nmi(None, b"swapper")).bytes());
    assert!(advice(&hang).contains("debug=syscall,signal,process hung_task=10"), "{hang:#?}");
    let death = judge(
        Maker::new()
            .put(C, &user_death(5, IP, None))
            .put(SectionKind::TASKS, &task(7, 1, TaskState::RUNNING, ""))
            .bytes(),
    );
    assert!(advice(&death).contains("debug=syscall,signal,unimplemented"), "{death:#?}");
    assert_eq!(death.undecided.unwrap().looked_at, ["1 frame", "1 task"]);
    let known = judge(Maker::new().put(C, &user_death(11, IP, Some(8))).bytes());
    assert_eq!(known.undecided, None);
}

#[test]
fn the_stack_of_a_listed_task_is_never_taken_for_that_of_the_death() {
    let k = 0xffff_ffff_8010_0000;
    let cause = Cause { kind: Some(CauseKind::SOFT_LOCKUP), ip: Some(k), in_kernel: Some(true), ..Cause::default() };
    let mut maker = Maker::new().put(C, &cause);
    for number in 0..6 {
        let frame =
            Frame { tid: Some(9), trace: Some(1), symbol: Some(b"sleeper_of_another_task"), ..printed(number, "") };
        maker = maker.put(SectionKind::TASKS, &frame);
    }
    let triage = judge(maker.bytes());
    assert!(triage.hypotheses.iter().all(|found| !found.claim.contains("sleeper")), "{:#?}", triage.hypotheses);
}

#[test]
fn what_a_check_of_the_kernel_found_is_its_own_class_whatever_address_it_printed() {
    for (message, what) in [
        (&b"KFENCE: use-after-free read in session_read"[..], "use after free"),
        (b"BUG kmalloc-64: Object already free in session_close", "double free"),
        (b"list_del corruption. prev->next should be ffff", "corrupted list"),
        (b"BUG: scheduling while atomic: prog/7/0x00000002", "sleep in atomic context"),
    ] {
        let cause = Cause {
            kind: Some(CauseKind::BUG),
            message: Some(message),
            vector: None,
            error_code: None,
            ..kernel_fault(0x2949_9c76, IP, 0)
        };
        let triage = judge(Maker::new().put(C, &cause).bytes());
        assert_eq!(first(&triage).0, "CHECK", "{:#?}", triage.hypotheses);
        assert!(first(&triage).1.starts_with(what), "{}", first(&triage).1);
        assert!(triage.hypotheses.iter().all(|found| !found.claim.contains("0x29499c76")), "{:#?}", triage.hypotheses);
    }
}

#[test]
fn a_stale_cr2_beside_an_error_code_is_no_address_unless_the_message_is_about_a_page_fault() {
    let k = 0xffff_ffff_8010_0000;
    let judged = |message: &'static [u8]| {
        let cause = Cause {
            kind: Some(CauseKind::OOPS),
            vector: None,
            fault_addr: None,
            message: Some(message),
            ..kernel_fault(0, k, 0)
        };
        let values = regs(&[(RegId::RIP, k), (RegId::RSP, k), (RegId::CR2, 0x55_9c5a)]);
        let set = Registers {
            role: Some(RegisterRole::FAULT),
            error_code: Some(0),
            regs: Some(List::new(&values)),
            ..Registers::default()
        };
        judge(Maker::new().put(C, &cause).put(SectionKind::REGISTERS, &set).bytes())
    };
    let rules = |triage: &Triage| triage.hypotheses.iter().map(|found| found.rule).collect::<Vec<_>>();
    assert!(!rules(&judged(b"kernel BUG at mm/slub.c:40")).contains(&"USER-PTR"));
    assert!(rules(&judged(b"BUG: unable to handle kernel paging request")).contains(&"USER-PTR"));
}

#[test]
fn the_function_printed_beside_the_instruction_is_the_innermost_of_a_printed_stack() {
    let cause =
        Cause { location: Some(b"session_read+0x12/0x40"), ..kernel_fault(0xffff_8000_1234_0000, 0x1234_5678, 0) };
    let maker = Maker::new().put(C, &cause);
    let names = ["proc_reg_write", "vfs_write"];
    let triage = judge(stack_of(maker, &names).bytes());
    let function = triage.hypotheses[0].function.as_ref().map(|function| function.name.as_str());
    assert_eq!(function, Some("session_read"), "{:#?}", triage.hypotheses[0]);
}

#[test]
fn an_init_that_a_signal_ended_did_not_exit() {
    for (code, how) in [
        ("0x0000000b", "init died of SIGSEGV,"),
        ("0x0000008b", "init died of SIGSEGV,"),
        ("0x00000100", "init exited,"),
    ] {
        let message = format!("Attempted to kill init! exitcode={code}");
        let cause = Cause { kind: Some(CauseKind::PANIC), message: Some(message.as_bytes()), ..Cause::default() };
        let triage = judge(Maker::new().put(SectionKind::CAUSE, &cause).bytes());
        let found = triage.hypotheses.iter().find(|found| found.rule == "INIT").unwrap();
        assert!(found.claim.starts_with(how), "{}", found.claim);
    }
}
