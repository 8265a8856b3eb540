//! Says what a report is about that lost its first lines: by the functions in its stack that only reports of one kind
//! have, and by the code of the fault.

use super::super::build::Builder;
use super::super::class::Class;
use super::super::frame;
use super::super::function::plain;
use super::super::report::{AccessKind, Arch, Frame, Report};
use super::super::words::has;
use super::{NULL, PAGING};

/// Functions that report a failure, by the beginnings of their names, with its class and the headline of a report whose
/// own is lost. The first row counts of which the stack has a function: a panic is what another failure led to.
/// Sources: mm/kasan, mm/kfence, mm/kmsan, lib/ubsan.c, kernel/sched, kernel/locking, kernel/rcu, kernel/watchdog.c,
/// arch/*/mm/fault.c, arch/*/kernel/traps.c in Linux 3.10 to 6.17.
const REPORTERS: &[(&[&str], Class, &str)] = &[
    (&["kasan_report", "kasan_end_report", "__kasan_report"], Class::Kasan, "KASAN in {function}"),
    (&["kfence_report_error", "kfence_handle_page_fault"], Class::Kfence, "KFENCE in {function}"),
    (&["kmsan_report", "__msan_warning"], Class::Kmsan, "KMSAN in {function}"),
    (&["kcsan_report"], Class::Kcsan, "KCSAN in {function}"),
    (&["ubsan_epilogue", "__ubsan_handle_"], Class::Ubsan, "UBSAN in {function}"),
    (&["__schedule_bug"], Class::Atomic, "BUG: scheduling while atomic in {function}"),
    (
        &["___might_sleep", "__might_resched"],
        Class::InvalidContext,
        "BUG: sleeping function called from invalid context in {function}",
    ),
    (
        &["check_preemption_disabled"],
        Class::Preemptible,
        "BUG: using smp_processor_id() in preemptible code in {function}",
    ),
    (&["lockdep_rcu_suspicious"], Class::RcuUsage, "WARNING: suspicious RCU usage in {function}"),
    (&["print_circular_bug", "print_deadlock_bug"], Class::Deadlock, "possible deadlock in {function}"),
    (&["print_usage_bug"], Class::LockState, "inconsistent lock state in {function}"),
    (&["bad_page"], Class::BadPage, "BUG: Bad page state in {function}"),
    (&["print_bad_pte"], Class::BadPage, "BUG: Bad page map in {function}"),
    (&["oom_kill_process"], Class::OomKill, "out of memory in {function}"),
    (&["print_cpu_stall", "rcu_dump_cpu_stacks"], Class::RcuStall, "INFO: rcu detected stall in {function}"),
    (&["watchdog_timer_fn"], Class::SoftLockup, "BUG: soft lockup in {function}"),
    (&["watchdog_overflow_callback", "watchdog_hardlockup_check"], Class::HardLockup, "BUG: hard lockup in {function}"),
    (&["__stack_chk_fail"], Class::StackCorrupted, "kernel panic: stack is corrupted in {function}"),
    (&["do_double_fault", "exc_double_fault", "df_debug"], Class::DoubleFault, "PANIC: double fault in {function}"),
    (&["do_divide_error", "exc_divide_error"], Class::Divide, "divide error in {function}"),
    (
        &["do_general_protection", "exc_general_protection"],
        Class::GeneralProtection,
        "general protection fault in {function}",
    ),
    (&["page_fault_oops", "no_context", "die_kernel_fault", "__do_kernel_fault"], Class::PageFault, PAGING),
    (
        &[
            "refcount_warn_saturate",
            "refcount_inc_checked",
            "refcount_add_checked",
            "refcount_dec_checked",
            "refcount_sub_and_test_checked",
            "refcount_inc_not_zero_checked",
            "refcount_add_not_zero_checked",
        ],
        Class::Refcount,
        "refcount_t warning in {function}",
    ),
    (&["__warn", "warn_slowpath_"], Class::Warning, "WARNING in {function}"),
    (&["panic", "vpanic"], Class::Panic, "kernel panic in {function}"),
];

/// Whether nothing but a task line, registers or the count of an oops tells what the report is about.
fn is_untold(builder: &Builder) -> bool {
    matches!(builder.report.class, Class::Warning | Class::Oops)
        && matches!(builder.title.as_str(), "stack dump in {function}" | "Oops in {function}")
}

/// Gives a report of which the first lines are lost the class that the rest tells.
pub fn tell(builder: &mut Builder) {
    // Power's count of an oops that is always an access.
    if builder.report.class == Class::Oops && builder.title == "Oops: kernel access of bad area in {function}" {
        builder.report.class = Class::PageFault;
    }
    // The line of the kill alone: nothing tells who asked for memory.
    if builder.report.class == Class::OomKill && builder.report.comm.is_none() {
        builder.report.comm = builder.value("victim").map(str::to_owned);
    }
    // A grace period that waits for its own thread alone names no stalled processor.
    if builder.report.class == Class::RcuStall {
        let detector = builder.value("detector").and_then(|cpu| cpu.parse().ok());
        builder.report.cpu = builder.report.cpu.or(detector);
    }
    if !is_untold(builder) {
        return;
    }
    if let Some((class, title)) = reporter(builder).or_else(|| fault(builder)) {
        builder.report.class = class;
        builder.title = title.to_string();
    }
}

/// What the stack of the failure says.
fn reporter(builder: &Builder) -> Option<(Class, &'static str)> {
    let frames = || builder.report.stacks.iter().flat_map(|stack| &stack.frames);
    // What is guessed counts where the kernel guesses every frame.
    let sure = frames().any(|frame| !frame.guess);
    let names: Vec<&str> = frames()
        .filter(|frame| !frame.guess || !sure)
        .filter_map(|frame: &Frame| frame.symbol.as_deref())
        .map(plain)
        .collect();
    let row = REPORTERS.iter().find(|(rows, ..)| names.iter().any(|name| rows.iter().any(|row| is_row(name, row))));
    row.map(|(_, class, title)| (*class, *title))
}

/// A whole name, or a beginning that ends as a word does.
fn is_row(name: &str, row: &str) -> bool {
    name == row || row.len() > 6 && name.starts_with(row)
}

/// Whether registers show an instruction of a 32-bit kernel, or of a module of it, that has no symbol.
pub fn is_in_module(report: &Report) -> bool {
    report.ip.is_some_and(|ip| (0xbf00_0000..1 << 32).contains(&ip)) && !report.registers.is_empty()
}

/// Whether registers of arm64 are those of a program, as the kernel prints them of a system call that it does not have.
pub fn is_of_program(report: &Report) -> bool {
    let registers = report.registers.iter().flat_map(|set| &set.registers);
    let mode = registers.filter(|(name, _)| name.eq_ignore_ascii_case("pstate")).map(|(_, value)| value & 0xf).max();
    report.arch == Some(Arch::Arm64) && mode == Some(0)
}

/// Bytes of a line that may be a frame.
const LONGEST_FRAME: usize = 300;

/// Whether a line is the frame of a function that only reports have in their stacks.
pub fn is_of_report(line: &[u8]) -> bool {
    if line.len() > LONGEST_FRAME || !has(line, OFFSET) {
        return false;
    }
    // A kernel that guesses every frame guesses that of its panic.
    let panics = |frame: &Frame| frame.symbol.as_deref() == Some("panic");
    let found = frame::frames(line, false).into_iter().next().filter(|frame| !frame.guess || panics(frame));
    found
        .and_then(|frame| frame.symbol)
        .is_some_and(|name| REPORTERS.iter().any(|(rows, ..)| rows.iter().any(|row| is_row(plain(&name), row))))
}

/// What stands between the name of a function and the offset in it.
const OFFSET: &[u8] = b"+0x";
/// What stands between the offset and the size of a function.
const SIZE: &[u8] = b"/0x";

/// Whether a line may be in the middle of a report of which everything before is lost: a frame, or the line above one.
pub fn is_of_stack(line: &[u8]) -> bool {
    if CALL_TRACE.contains(&line) {
        return true;
    }
    let may_be = line.len() <= LONGEST_FRAME && has(line, OFFSET) && has(line, SIZE);
    may_be && frame::frames(line, false).first().is_some_and(|frame| frame.symbol.is_some() && frame.size.is_some())
}

/// The line above a stack.
const CALL_TRACE: [&[u8]; 2] = [b"Call Trace:", b"Call trace:"];

/// Whether the line tells which task the next stack is of, where all are listed and none has failed.
pub fn is_listed_task(line: &[u8]) -> bool {
    line.starts_with(b"task:") || has(line, b" 0x") && has(line, b" running task ")
}

/// Whether a stack that nothing announced is that of a failure: a few frames, or fewer with registers, and not where a
/// task waits, as lists of tasks show it.
pub fn is_of_failure(report: &Report) -> bool {
    const FEWEST: usize = 3;
    let frames = || report.stacks.iter().flat_map(|stack| &stack.frames).filter(|frame| frame.symbol.is_some());
    let sure = frames().filter(|frame| !frame.guess).count();
    let registers: usize = report.registers.iter().map(|set| set.registers.len()).sum();
    let innermost = frames().find(|frame| !frame.guess).or_else(|| frames().next());
    let waits = innermost.and_then(|frame| frame.symbol.as_deref()).is_some_and(|name| {
        ["__schedule", "schedule", "__switch_to", "context_switch"].iter().any(|known| plain(name) == *known)
    });
    !waits && frames().count() >= FEWEST && (sure >= FEWEST || registers >= FEWEST)
}

/// For each of these functions the texts that a line of a stack with it holds.
pub fn needles() -> impl Iterator<Item = Vec<Vec<u8>>> {
    let names = REPORTERS.iter().flat_map(|(rows, ..)| rows.iter());
    names.map(|name| vec![name.as_bytes().to_vec(), OFFSET.to_vec()])
}

/// The texts that a line holds which [`is_of_stack`] knows.
pub fn needles_of_stack() -> impl Iterator<Item = Vec<Vec<u8>>> {
    CALL_TRACE.map(|line| vec![line.to_vec()]).into_iter().chain([vec![OFFSET.to_vec(), SIZE.to_vec()]])
}

/// What the code of a fault says: only an access that failed has one with an oops on these architectures.
fn fault(builder: &Builder) -> Option<(Class, &'static str)> {
    /// Below it an address counts as null plus an offset.
    const NEAR_NULL: u64 = 4096;
    let report = &builder.report;
    let code = report.error_code;
    let told = report.error_text.as_deref().unwrap_or_default();
    let abort =
        ["data abort", "instruction abort", "page fault", "access fault"].iter().any(|word| told.starts_with(word));
    let failed = match report.arch {
        // `Oops: 0002 [#1]`: the error code of a page fault, whatever else the processor can raise has a name there.
        Some(Arch::X86_64 | Arch::I386) => {
            code.is_some_and(|code| code < 0x1_0000) && builder.register("CR2").is_some()
        }
        // The exception class of the syndrome.
        Some(Arch::Arm64) => code.is_some_and(|code| matches!(code >> 26 & 0x3f, 0x20 | 0x21 | 0x24 | 0x25)),
        _ => abort,
    };
    let failed = failed || abort || report.access.as_ref().is_some_and(|access| access.kind != Some(AccessKind::Free));
    let names = ["CR2", "FAR", "badaddr", "BadVA", "DAR"];
    let address = report.fault_address.or_else(|| names.iter().find_map(|name| builder.register(name)));
    let null = address.is_some_and(|address| address < NEAR_NULL);
    failed.then_some(if null { (Class::NullDeref, NULL) } else { (Class::PageFault, PAGING) })
}
