//! The table of triage rules: which kinds of bug are known, what each looks at, and the function that judges it.
//!
//! A rule returns claims with weighed evidence; it never looks at another rule's result. A symptom (a null dereference)
//! ends at 0.69: only evidence that proves the mechanism ([`Claim::proven`]) makes more of it, so that a rule that
//! proves a cause (a page that is not what its file says) comes first. What an audit did not find adds nothing: it may
//! not have been able to see it.

mod answers;
mod before;
mod damage;
mod deaths;
mod deliberate;
mod eager;
mod fault_loop;
mod hang;
mod hardware;
mod holders;
mod invariants;
pub(super) mod memory;
mod panic;
mod pointer;
mod program;
mod stack;
mod stuck;
mod tasks;
mod triple;

use kwab_format::SectionKind;

use super::audit;
use super::context::Context;
use super::finding::{Claim, Named};

/// A rule of the triage.
///
/// [`judge_by`](super::judge_by) takes any list of rules, so a program can add its own to [`RULES`]:
///
/// ```
/// use kwab::analysis::finding::Claim;
/// use kwab::analysis::rules::{RULES, Rule};
/// use kwab::analysis::verify::Backing;
/// use kwab::analysis::{Context, judge_by};
/// use kwab::format::SectionKind;
/// use kwab::model::{Depth, Dump};
/// use kwab::symbols::Symbols;
///
/// /// Blames the driver that the task at the death belongs to.
/// fn driver(ctx: &Context<'_, '_>) -> Vec<Claim> {
///     if !ctx.kernel_died() || ctx.death.program != "exam" {
///         return Vec::new();
///     }
///     let claim = Claim::new("the exam's driver died in the kernel");
///     vec![claim.proven(0.9, format!("the task is {}", ctx.death.program), ctx.death.at)]
/// }
///
/// let rule = Rule {
///     id: "DRIVER",
///     class: "broken driver",
///     looks_at: "the task at the death",
///     rests_on: &[SectionKind::CAUSE],
///     next: &["kwab inspect FILE --section tasks"],
///     is_bug: true,
///     judge: driver,
/// };
/// let rules = [RULES, &[rule]].concat();
/// let dump = Dump::open("../testing/dumps/null-dereference.kwab".as_ref(), Depth::Rules)?;
/// let (case, symbols) = (dump.case(), Symbols::new());
/// let triage = judge_by(&rules, &Context::new(&case, &symbols, &Backing::none()), "crash.kwab");
/// assert_eq!(triage.hypotheses[0].rule, "DRIVER");
/// assert_eq!(triage.hypotheses[1].rule, "NULL");
/// # Ok::<(), kwab::model::OpenError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Name of the rule, as the report prints it.
    pub id: &'static str,
    /// The kind of bug.
    pub class: &'static str,
    /// What it looks at.
    pub looks_at: &'static str,
    /// The kinds of section its conclusion rests on.
    pub rests_on: &'static [SectionKind],
    /// What to run next; `FILE` stands for the dump, `RULE` for what the claim is about.
    pub next: &'static [&'static str],
    /// Whether it tells of a bug, or of something done on purpose.
    pub is_bug: bool,
    /// Judges a case.
    pub judge: fn(&Context<'_, '_>) -> Vec<Claim>,
}

impl Rule {
    /// What it brings into each of its hypotheses.
    #[must_use]
    pub const fn named(&self) -> Named {
        Named { id: self.id, class: self.class, rests_on: self.rests_on, next: self.next, is_bug: self.is_bug }
    }
}

const CAUSE: SectionKind = SectionKind::CAUSE;
const REGS: SectionKind = SectionKind::REGISTERS;
const STACKS: SectionKind = SectionKind::STACKS;
const MAP: SectionKind = SectionKind::MEMORY_MAP;
const PTES: SectionKind = SectionKind::PAGE_TABLE;
const CALLS: SectionKind = SectionKind::SYSCALLS;
const TASKS: SectionKind = SectionKind::TASKS;
const LOCKS: SectionKind = SectionKind::LOCKS;
const EVENTS: SectionKind = SectionKind::EVENTS;
const FLIGHT: SectionKind = SectionKind::FLIGHT;
const CHECKS: SectionKind = SectionKind::PAGE_CHECKS;

/// All rules. Between equal scores the earlier one comes first.
pub const RULES: &[Rule] = &[
    rule(
        "PAGE",
        "wrong page content",
        "page checks, captured pages, backing files",
        &[CHECKS],
        &["kwab verify-pages FILE --backing INITRAMFS"],
        memory::wrong_pages,
    ),
    rule(
        "AUDIT",
        "page tables against mappings",
        "mappings, page-table entries, frame counts, tasks",
        audit::RESTS_ON,
        &["kwab audit-vm FILE --rule RULE"],
        memory::audit,
    ),
    rule(
        "INVARIANT",
        "broken invariant",
        "tasks, calls, locks, stacks, page tables, flight recorder",
        &[TASKS, CALLS, LOCKS, FLIGHT, PTES, MAP, REGS, STACKS],
        &["kwab inspect FILE --section tasks,bt,syscalls"],
        invariants::violated,
    ),
    rule(
        "ANSWER",
        "wrong answer of the kernel",
        "system calls, their answers, mappings",
        &[CALLS],
        &["kwab inspect FILE --section syscalls,vmas"],
        answers::wrong,
    ),
    rule(
        "TLB",
        "missing TLB shootdown",
        "flight recorder: unmap and protect events, running CPUs",
        &[FLIGHT],
        &["kwab inspect FILE --section trace,bt"],
        memory::tlb,
    ),
    rule(
        "OOM",
        "out of memory",
        "cause, memory counters",
        &[CAUSE, SectionKind::COUNTERS],
        &["kwab inspect FILE --section log,tasks", "kwab audit-vm FILE --rule VM-LEAK"],
        memory::out_of_memory,
    ),
    rule(
        "LEAK",
        "leaked memory",
        "memory counters: pages in use, and their owners",
        &[SectionKind::COUNTERS],
        &["kwab inspect FILE --section profile,tasks", "kwab audit-vm FILE --rule VM-LEAK"],
        memory::lost_pages,
    ),
    rule(
        "PIECES",
        "free memory not joined",
        "memory counters: free blocks, and those apart from their buddies",
        &[SectionKind::COUNTERS],
        &["kwab inspect FILE --section profile"],
        memory::not_joined,
    ),
    rule(
        "EAGER",
        "memory made in advance for nothing",
        "counters of executions: pages made in advance, and those never accessed; times of spans",
        &[SectionKind::COUNTERS],
        &["kwab inspect FILE --section profile"],
        eager::prefault,
    ),
    rule(
        "DEADLOCK",
        "deadlock",
        "locks held and awaited",
        &[LOCKS],
        &["kwab inspect FILE --section tasks,bt"],
        tasks::deadlock,
    ),
    rule(
        "LOCK-SLEEP",
        "lock held across sleep",
        "locks, task states",
        &[LOCKS, TASKS],
        &["kwab inspect FILE --section tasks,bt"],
        tasks::lock_across_sleep,
    ),
    rule(
        "LOST-WAKE",
        "lost wake-up",
        "cause, tasks, locks, flight recorder",
        &[CAUSE, TASKS, LOCKS, FLIGHT],
        &["kwab inspect FILE --section tasks,trace"],
        hang::lost_wakeup,
    ),
    rule(
        "HANG",
        "hang",
        "cause, tasks and what they wait for, calls before, locks, stacks of processors",
        &[CAUSE, TASKS, LOCKS, REGS, STACKS],
        &["kwab inspect FILE --section tasks,bt,syscalls"],
        hang::hang,
    ),
    rule(
        "TRIPLE",
        "triple fault",
        "the chain of exceptions before a triple fault",
        &[CAUSE, REGS],
        &["kwab inspect FILE --section regs,trace"],
        triple::fault,
    ),
    rule(
        "STACK",
        "stack overflow",
        "stack pointer, stack bounds, fault address",
        &[REGS, STACKS],
        &["kwab inspect FILE --section bt,regs"],
        stack::overflow,
    ),
    rule(
        "POISON",
        "use after free",
        "registers and addresses with poison patterns",
        &[REGS, STACKS],
        &["kwab inspect FILE --section code,memory,regs,bt"],
        pointer::poison,
    ),
    rule(
        "USER-PTR",
        "user pointer used unchecked",
        "kernel faults at user addresses",
        &[REGS, CALLS, EVENTS, STACKS],
        &["kwab inspect FILE --section code,syscalls,bt"],
        pointer::user_pointer,
    ),
    rule(
        "JUMP-ZERO",
        "jump to zero",
        "instruction pointer, top of the stack",
        &[REGS, STACKS, EVENTS, FLIGHT],
        &["kwab inspect FILE --section bt,regs"],
        pointer::jump_to_zero,
    ),
    rule(
        "JUMP-DATA",
        "jump to data",
        "instruction pointer, mappings",
        &[REGS, MAP],
        &["kwab inspect FILE --section bt,vmas", "kwab audit-vm FILE"],
        pointer::jump_to_data,
    ),
    rule(
        "NULL",
        "null or near-null dereference",
        "fault address, instruction, registers",
        &[REGS, STACKS],
        &["kwab inspect FILE --section bt,code,regs"],
        pointer::null,
    ),
    rule(
        "WILD",
        "wild pointer or non-canonical address",
        "fault address, instruction, mappings",
        &[REGS, MAP, STACKS],
        &["kwab inspect FILE --section bt,code,vmas"],
        pointer::wild,
    ),
    rule(
        "DOUBLE",
        "double fault",
        "cause, stack pointer",
        &[CAUSE, REGS],
        &["kwab inspect FILE --section regs,bt"],
        stack::double_fault,
    ),
    rule(
        "HARDWARE",
        "error of the hardware",
        "message, exception",
        &[CAUSE],
        &["kwab inspect FILE --section log,bt"],
        hardware::error,
    ),
    rule(
        "CHECK",
        "found by a check of the kernel",
        "message, backtrace",
        &[CAUSE],
        &["kwab inspect FILE --section bt,log"],
        panic::check,
    ),
    rule(
        "PANIC",
        "Rust panic or failed assertion",
        "panic message and location",
        &[CAUSE],
        &["kwab inspect FILE --section bt,log"],
        panic::rust,
    ),
    rule(
        "SMASHED",
        "stack smashed",
        "backtrace of the crash",
        &[CAUSE, STACKS],
        &["kwab inspect FILE --section bt,code"],
        deaths::smashed,
    ),
    rule(
        "HEAP",
        "heap corrupted",
        "backtrace of the crash, signal",
        &[CAUSE, STACKS],
        &["kwab inspect FILE --section bt,code,regs"],
        deaths::heap,
    ),
    rule(
        "DIVIDE",
        "division error",
        "exception or signal, instruction",
        &[CAUSE, REGS, STACKS],
        &["kwab inspect FILE --section code,regs,bt"],
        deaths::division,
    ),
    rule(
        "ILLEGAL",
        "illegal instruction",
        "exception or signal, instruction",
        &[CAUSE, REGS, STACKS],
        &["kwab inspect FILE --section code,bt"],
        deaths::illegal,
    ),
    rule(
        "BUS",
        "access beyond the end of a file",
        "signal, fault address, mappings",
        &[CAUSE, MAP],
        &["kwab inspect FILE --section vmas,code,bt"],
        deaths::bus,
    ),
    rule(
        "READ-ONLY",
        "write to read-only memory",
        "signal, fault address, mappings",
        &[CAUSE, MAP, REGS, STACKS],
        &["kwab inspect FILE --section code,vmas,bt"],
        deaths::read_only,
    ),
    rule(
        "REFUSED",
        "signal for an allowed access",
        "signal, fault address, mappings",
        &[CAUSE, MAP, REGS, STACKS],
        &["kwab inspect FILE --section vmas,code,events", "kwab audit-vm FILE"],
        deaths::refused,
    ),
    rule(
        "OOM-KILL",
        "killed for lack of memory",
        "signal, log",
        &[CAUSE, SectionKind::LOG],
        &["kwab inspect FILE --section log,tasks"],
        deaths::killed_for_memory,
    ),
    rule(
        "THREADS",
        "deadlock of threads",
        "tasks and what they wait for, user stacks, words of mutexes",
        &[CAUSE, TASKS, STACKS],
        &["kwab inspect FILE --section tasks,bt"],
        stuck::threads,
    ),
    rule(
        "LOOP",
        "endless loop of a program",
        "registers of processors, user stacks, code, run times",
        &[CAUSE, TASKS, REGS, STACKS],
        &["kwab inspect FILE --section bt,code,tasks"],
        stuck::endless_loop,
    ),
    rule(
        "CANARY",
        "stack smashed",
        "canary checks",
        &[EVENTS],
        &["kwab inspect FILE --section events,syscalls"],
        program::canary,
    ),
    rule(
        "UNIMPL",
        "unimplemented system call",
        "system calls before the failure",
        &[CALLS, EVENTS, CAUSE],
        &["kwab inspect FILE --section syscalls"],
        program::unimplemented,
    ),
    rule(
        "ABORT",
        "the program aborted itself",
        "signal",
        &[CAUSE, CALLS, EVENTS],
        &["kwab inspect FILE --section syscalls,bt"],
        program::abort,
    ),
    rule(
        "PROGRAM",
        "the program's own fault",
        "signal, mappings, system calls",
        &[CAUSE, MAP, PTES, CHECKS, CALLS, EVENTS],
        &["kwab inspect FILE --section bt,code,syscalls"],
        program::own_fault,
    ),
    rule(
        "INIT",
        "init ended",
        "panic message, exit of pid 1",
        &[CAUSE],
        &["kwab inspect FILE --section syscalls,log"],
        program::init_ended,
    ),
    Rule { is_bug: false, ..rule("DELIBERATE", "deliberate", "cause, message", &[CAUSE], &[], deliberate::asked_for) },
    rule(
        "DAMAGED",
        "damaged dump",
        "sections, end section",
        &[],
        &["kwab check FILE", "kwab salvage FILE -o GOOD"],
        damage::cause_lost,
    ),
];

const fn rule(
    id: &'static str,
    class: &'static str,
    looks_at: &'static str,
    rests_on: &'static [SectionKind],
    next: &'static [&'static str],
    judge: fn(&Context<'_, '_>) -> Vec<Claim>,
) -> Rule {
    Rule { id, class, looks_at, rests_on, next, is_bug: true, judge }
}
