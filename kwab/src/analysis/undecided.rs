//! What to say when no hypothesis is likelier than not: what was looked at, what would decide it, how to record it.
//!
//! The advice follows the case. Page tables decide nothing about a sleeper, and calls nothing about a wild pointer.

use kwab_format::record::CauseKind;
use schemars::JsonSchema;
use serde::Serialize;

use super::context::Context;

/// An honest "don't know".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Undecided {
    /// What the rules had to look at, with its amount.
    pub looked_at: Vec<String>,
    /// What would decide it.
    pub decides: String,
    /// How to record that.
    pub record: String,
    /// How to find the function by a build that works, where the recorder knows the kernel.
    pub compare: Option<String>,
}

impl Undecided {
    /// What would decide it and how to come by that, each behind its label.
    #[must_use]
    pub fn advice(&self) -> Vec<(&'static str, &str)> {
        let mut lines = vec![("would decide", self.decides.as_str()), ("record it", &self.record)];
        lines.extend(self.compare.as_deref().map(|compare| ("with a build that works", compare)));
        lines
    }
}

/// How to find where two builds of our kernel part.
const COMPARE: &str = "cargo xtask boot --paths FILE -- COMMAND of both builds, then kwab oracle GOOD.log BAD.log \
                       --good-paths FILE --bad-paths FILE: the function in which their paths part (docs/oracle.md)";

/// What a kind of case needs.
struct Advice {
    decides: &'static str,
    /// Options of the kernel's command line.
    options: &'static str,
}

const HANG: Advice = Advice {
    decides: "which wake-up did not come: the calls and signals of all threads up to the hang",
    options: "debug=syscall,signal,process hung_task=10 watchdog=5",
};
const ASSERTION: Advice = Advice {
    decides: "which call produced the state that the check refused: the functions and calls before it",
    options: "debug=htrace,syscall,process",
};
const KERNEL_MEMORY: Advice = Advice {
    decides: "who wrote the bad pointer: mappings, page tables and copies before the fault",
    options: "debug=audit,memory,usercopy,trace",
};
const PROGRAM_MEMORY: Advice = Advice {
    decides: "whether the program's pages match its files, and its mappings the calls that made them",
    options: "debug=verify,audit,fault,memory",
};
const PROGRAM: Advice = Advice {
    decides: "what the kernel answered the program before it died",
    options: "debug=syscall,signal,unimplemented,canary",
};

/// The words for a death whose best hypothesis is not likely.
#[must_use]
pub fn undecided(ctx: &Context<'_, '_>) -> Undecided {
    let faulted = ctx.death.fault_addr.is_some() || matches!(ctx.death.vector, Some(8 | 13 | 14));
    let advice = match (ctx.is_hang(), ctx.death.kind, faulted) {
        (true, ..) => &HANG,
        (false, Some(CauseKind::FATAL_SIGNAL), true) => &PROGRAM_MEMORY,
        (false, Some(CauseKind::FATAL_SIGNAL), false) => &PROGRAM,
        (false, _, true) => &KERNEL_MEMORY,
        (false, _, false) => &ASSERTION,
    };
    if ctx.is_foreign_kernel() {
        let record = if ctx.is_linux() {
            format!("boot with {}", linux_options(ctx))
        } else {
            "the whole log, the kernel's image with symbols (--symbols), and its own crash dump".to_owned()
        };
        return Undecided { looked_at: looked_at(ctx), decides: advice.decides.to_owned(), record, compare: None };
    }
    let record = format!("cargo xtask boot --append '{}' -- COMMAND", advice.options);
    let compare = Some(COMPARE.to_owned());
    Undecided { looked_at: looked_at(ctx), decides: advice.decides.to_owned(), record, compare }
}

/// Options of Linux (Documentation/admin-guide/kernel-parameters.txt) that record what the case needs.
fn linux_options(ctx: &Context<'_, '_>) -> &'static str {
    if ctx.is_hang() {
        "hung_task_panic=1 softlockup_all_cpu_backtrace=1, and send SysRq-w and SysRq-l while it hangs"
    } else {
        "slub_debug=FZPU page_poison=1 ftrace_dump_on_oops, or a kernel with KASAN"
    }
}

fn looked_at(ctx: &Context<'_, '_>) -> Vec<String> {
    let case = ctx.case;
    let named = ctx.trace.iter().filter(|frame| frame.name.is_some()).count();
    let amounts = [
        (ctx.trace.len(), "frame", "frames"),
        (named, "of them with a name", "of them with names"),
        (ctx.death.registers.len(), "register", "registers"),
        (case.tasks.len(), "task", "tasks"),
        (case.syscalls.len(), "system call", "system calls"),
        (case.vmas.len(), "mapping", "mappings"),
        (case.ptes.len(), "page-table entry", "page-table entries"),
        (case.checks.len(), "page check", "page checks"),
        (case.locks.len() + case.waits.len(), "lock or waiter", "locks and waiters"),
        (case.flight.len(), "recorded event", "recorded events"),
    ];
    let some = amounts.iter().filter(|(amount, ..)| *amount > 0);
    some.map(|(amount, one, many)| format!("{amount} {}", if *amount == 1 { one } else { many })).collect()
}
