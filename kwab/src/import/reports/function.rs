//! Chooses the guilty function: the innermost one that is neither part of reporting, nor a helper that only did what it
//! was told (allocators, copies, lists, locks), nor the way into a trap or an interrupt.
//!
//! The table is shared with the blame of triage ([`crate::symbols::is_skipped`]). When every candidate is skipped, the
//! location of the fault is used; a report that has only reporters in its stack names no function.

use super::report::{Frame, Report, Stack, StackKind};
pub use crate::symbols::{is_skipped, plain};

/// Interrupt entries: what stands before them in a stall's stack is the detector, what follows was interrupted.
const ENTRIES: &[&str] = &[
    "asm_sysvec_",
    "apic_timer_interrupt",
    "asm_common_interrupt",
    "common_interrupt",
    "el1_irq",
    "el1h_64_irq",
    "el0t_64_irq",
    "__irq_svc",
    "__irq_usr",
    "ret_from_intr",
    "reschedule_interrupt",
    "call_function_",
    "asm_call_irq_on_stack",
    "xen_hvm_callback_vector",
    "do_irq",
    "ret_from_exception",
    "nmi",
    "end_repeat_nmi",
    "asm_exc_nmi",
    "decrementer_common",
    "hardware_interrupt_common",
    "doorbell_super_common",
    "ext_int_handler",
    "io_int_handler",
    "handle_exception",
    "ret_from_irq",
    "rcu_dump_cpu_stacks",
    "smp_apic_timer_interrupt",
    "handle_riscv_irq",
];

/// Whether an interrupt enters the kernel by that function.
pub fn is_entry(symbol: &str) -> bool {
    ENTRIES.iter().any(|entry| symbol.starts_with(entry))
}

/// Functions by which the kernel dies of a trap: in a stack they stand above the entry of that trap.
const DEATHS: &[&str] =
    &["panic", "vpanic", "die", "__die", "oops_end", "die_kernel_fault", "page_fault_oops", "no_context"];

/// Entries of traps, by the beginnings of their names.
const TRAPS: &[&str] = &[
    "el1h_64_sync",
    "el1_sync",
    "el1_da",
    "el1_ia",
    "el1_undef",
    "el1_dbg",
    "__dabt_svc",
    "__pabt_svc",
    "__und_svc",
    "asm_exc_",
    "page_fault",
    "async_page_fault",
    "general_protection",
    "invalid_op",
    "divide_error",
    "double_fault",
    "error_entry",
    "error_code",
    "handle_exception",
    "ret_from_exception",
    "handle_page_fault",
    "data_access_common_virt",
    "program_check_common_virt",
    "pgm_check_handler",
];

/// The frame behind the entry of the trap of which the kernel dies in this stack: what stands above it only reports.
fn behind_trap(stack: &Stack) -> Option<usize> {
    let named = |frame: &Frame, names: &[&str], whole: bool| {
        let name = frame.symbol.as_deref().map(plain);
        !frame.guess
            && name.is_some_and(|name| names.iter().any(|known| name == *known || !whole && name.starts_with(known)))
    };
    let death = stack.frames.iter().rposition(|frame| named(frame, DEATHS, true))?;
    let behind = &stack.frames[death..];
    // Handlers of the trap have names like its entry: the last in a row counts.
    let entry = behind.iter().position(|frame| named(frame, TRAPS, false))?;
    let more = behind[entry..].iter().take_while(|frame| named(frame, TRAPS, false)).count();
    Some(death + entry + more).filter(|at| *at < stack.frames.len())
}

/// Whether a softirq begins with that frame: what stands behind it was only interrupted.
fn is_softirq(frame: &Frame) -> bool {
    const NAMES: [&str; 4] = ["__do_softirq", "handle_softirqs", "__softirqentry_text_start", "do_softirq"];
    frame.symbol.as_deref().is_some_and(|name| NAMES.contains(&plain(name)))
}

/// Whether RCU's own thread is meant: its stack shows what the grace period waits for, not what a processor ran.
pub fn is_of_rcu(comm: Option<&str>) -> bool {
    comm.is_some_and(|comm| matches!(comm, "rcu_preempt" | "rcu_sched" | "rcu_bh" | "rcu_tasks"))
}

/// The frames of a stack that may be guilty: named, not inlined, of a stall only those that were interrupted, of all
/// else none that were when the report names where it happened.
fn candidates(stack: &Stack, stall: bool, located: bool) -> impl Iterator<Item = &Frame> {
    let named = |frame: &&Frame| frame.symbol.is_some() && !frame.inline;
    let from = if stall {
        let last = stack.frames.iter().rposition(|frame| {
            // The entry from user mode ends a stack; nothing of the kernel was interrupted there.
            frame.symbol.as_deref().is_some_and(is_entry)
        });
        last.filter(|at| at + 1 < stack.frames.len()).map_or(0, |at| at + 1)
    } else {
        behind_trap(stack).unwrap_or(0)
    };
    let inner = move |frame: &&Frame| stall || !located || !is_softirq(frame);
    stack.frames[from..].iter().take_while(inner).filter(named)
}

/// Chooses the guilty function of a report; `head` is the one that its first line names.
///
/// `link` is the function in the link register: the caller, when the instruction pointer has no symbol.
pub fn guilty(report: &Report, head: Option<&str>, link: Option<&str>) -> Option<String> {
    let stall = report.class.is_stall() && report.class != super::class::Class::HungTask;
    let crash = report.stacks.iter().find(|stack| stack.kind == StackKind::Crash && !stack.frames.is_empty());
    let mut all: Vec<&str> = Vec::new();
    all.extend(head);
    // An instruction fetch that failed stands in data; its caller is guilty.
    let fetch = report.access.as_ref().is_some_and(|access| access.kind == Some(super::report::AccessKind::Execute));
    let location = report.location.as_ref().filter(|_| !fetch || crash.is_none());
    all.extend(location.and_then(|frame| frame.symbol.as_deref()));
    if report.location.is_none() {
        all.extend(link);
    }
    let located = location.is_some_and(|frame| frame.symbol.is_some());
    let sure_names = all.len();
    if let Some(stack) = crash {
        let sure = candidates(stack, stall, located).filter(|frame| !frame.guess);
        all.extend(sure.filter_map(|frame| frame.symbol.as_deref()));
        // Of a task that waits the sure frames are the whole way to where it waits.
        let waits = report.class.is_stall() && candidates(stack, stall, located).any(|frame| !frame.guess);
        // What is guessed above a sure frame is left over from calls that have returned.
        let last =
            candidates(stack, stall, located).enumerate().filter(|(_, frame)| !frame.guess).last().map(|(at, _)| at);
        let behind = candidates(stack, stall, located).skip(last.map_or(0, |at| at + 1));
        let doubtful = behind.filter(|frame| frame.guess && !waits);
        all.extend(doubtful.filter_map(|frame| frame.symbol.as_deref()));
    }
    // What disabled preemption is to blame when the code that slept is not shown.
    let lock = report.stacks.iter().find(|stack| stack.kind == StackKind::Lock);
    let disabled = lock.filter(|_| report.class == super::class::Class::Atomic);
    all.extend(disabled.into_iter().flat_map(|stack| &stack.frames).filter_map(|frame| frame.symbol.as_deref()));
    all.extend(work(report));
    let chosen = all.iter().find(|name| !is_skipped(name) && !is_address(name));
    // A reporter in a stack says nothing, but the position of the fault is worth a name.
    let fallback = || all[..sure_names].iter().find(|name| !is_address(name));
    chosen.or_else(fallback).map(|name| plain(name).to_string())
}

/// The function of the work item that ran: `Workqueue: events blkg_free_workfn [module]`.
fn work(report: &Report) -> Option<&str> {
    let told = report.notes.iter().find_map(|note| note.strip_prefix("Workqueue: "))?;
    told.split_whitespace().nth(1).map(|name| name.trim_matches(['(', ')']))
}

fn is_address(name: &str) -> bool {
    name.starts_with("0x") || name.bytes().all(|byte| byte.is_ascii_hexdigit()) && name.len() >= 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reporters_locks_and_traps_are_skipped() {
        for name in [
            "kasan_report",
            "__asan_load8",
            "dump_stack_lvl",
            "_raw_spin_lock_irqsave",
            "memcpy",
            "asm_exc_page_fault",
            "panic",
            "__list_del_entry_valid_or_report",
        ] {
            assert!(is_skipped(name), "{name}");
        }
        for name in ["ext4_lock_inode", "tcp_v4_rcv", "blk_mq_free_request", "locks_remove_posix", "mem_cgroup_charge"]
        {
            assert!(!is_skipped(name), "{name}");
        }
        assert_eq!(plain("foo.constprop.0.isra.0"), "foo");
        assert_eq!(plain("foo.123"), "foo");
        assert_eq!(plain("foo.cold"), "foo");
    }
}
