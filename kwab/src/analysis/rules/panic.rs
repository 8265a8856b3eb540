//! Panics that Rust code raises: which kind, from the words of the message.

use kwab_format::record::CauseKind;

use super::hardware;
use super::memory::{asked_for_memory, killed_and_went_on, says_none_left};
use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::keepers::{self, Promise};

/// Words of a message, the claim they support, and how far they decide it.
const KINDS: &[(&str, &str, f64)] = &[
    ("called `Option::unwrap()` on a `None` value", "unwrap of None", 0.8),
    ("called `Result::unwrap()` on an `Err` value", "unwrap of an error", 0.8),
    ("index out of bounds", "index out of bounds", 0.8),
    ("out of range for slice", "slice range out of bounds", 0.8),
    ("slice index starts at", "slice range out of bounds", 0.8),
    ("is not a char boundary", "string cut inside a character", 0.8),
    ("attempt to divide by zero", "division by zero", 0.8),
    ("divide error", "division by zero", 0.8),
    ("attempt to calculate the remainder with a divisor of zero", "division by zero", 0.8),
    ("with overflow", "arithmetic overflow", 0.8),
    ("already mutably borrowed", "a cell is borrowed twice", 0.8),
    ("already borrowed", "a cell is borrowed twice", 0.8),
    ("assertion `left == right` failed", "failed assertion", 0.8),
    ("assertion `left != right` failed", "failed assertion", 0.8),
    ("assertion failed", "failed assertion", 0.8),
    ("entered unreachable code", "unreachable code was reached", 0.8),
    ("not yet implemented", "unfinished code was reached", 0.8),
    ("not implemented", "unfinished code was reached", 0.8),
    ("kernel BUG at", "failed assertion", 0.8),
    ("Xen BUG at", "failed assertion", 0.8),
];

/// Words by which a check of a kernel says what it found, and what that is.
const CHECKS: &[(&str, &str)] = &[
    ("kasan: slab-use-after-free", "use after free"),
    ("kasan: use-after-free", "use after free"),
    ("kasan: double-free", "double free"),
    ("kasan: invalid-free", "free of memory that was never allocated"),
    ("kasan:", "invalid memory access"),
    ("kfence: use-after-free", "use after free"),
    ("kfence: out-of-bounds", "access out of bounds"),
    ("kfence: memory corruption", "write out of bounds"),
    ("kfence: invalid free", "double free, or free of memory that was never allocated"),
    ("kfence:", "invalid memory access"),
    ("kmsan:", "use of uninitialised memory"),
    ("kcsan:", "data race"),
    ("ubsan:", "undefined behaviour"),
    ("list_add corruption", "corrupted list"),
    ("list_del corruption", "corrupted list"),
    ("bug: corrupted list", "corrupted list"),
    ("object already free", "double free"),
    ("redzone overwritten", "write out of bounds of a slab object"),
    ("poison overwritten", "write to a freed slab object"),
    ("object corrupt", "corrupted slab object"),
    ("refcount_t: underflow", "reference count dropped too often"),
    ("refcount bug", "reference count out of its range"),
    ("scheduling while atomic", "sleep in atomic context"),
    ("sleeping function called from invalid context", "sleep in atomic context"),
    ("bad page state", "page freed with state that it must not have"),
    ("corrupted stack end", "kernel stack overflow"),
    ("kernel memory exposure attempt", "copy beyond an object to a program"),
    ("kernel memory overwrite attempt", "copy beyond an object from a program"),
    ("detected buffer overflow", "copy beyond an object"),
    ("possible deadlock", "locks taken in an order that can deadlock"),
    ("inconsistent lock state", "lock taken with interrupts on that an interrupt takes too"),
    ("bad unlock balance", "release of a lock that is not held"),
    ("held lock freed", "free of memory with a lock that is held"),
    ("lock held at task exit", "lock that was never released"),
    ("lock held when returning to user space", "lock that was never released"),
    ("invalid wait context", "lock that sleeps taken where sleeping is forbidden"),
    ("suspicious rcu usage", "use of RCU data without its read lock"),
    ("page allocation failure", "memory could not be allocated"),
    ("page allocation stalls", "memory could not be allocated in time"),
];

/// What a check of the kernel says that it found.
pub(super) fn check_of(message: &str) -> Option<&'static str> {
    let lower = message.to_lowercase();
    CHECKS.iter().find(|(words, _)| lower.contains(words)).map(|(_, what)| *what)
}

/// A check of the kernel found a bug where it happened, and said which.
pub(super) fn check(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let Some(what) = check_of(&ctx.death.message).filter(|_| ctx.kernel_died()) else { return Vec::new() };
    let message = words(&ctx.death.message);
    let claim = Claim::new(format!("{what}{}: {message}", ctx.in_culprit()));
    let claim = claim.proven(0.75, "a check of the kernel found and reported it", ctx.death.at);
    vec![claim]
}

/// Messages that only report what another rule judges.
const REPORTS: &[&str] = &[
    "page fault",
    "general protection",
    "double fault",
    "sysrq",
    "attempted to kill init",
    "stack overflow",
    "guard page",
    "exception",
    "lockup",
    "hung task",
    "blocked for more than",
    "unable to handle",
    "null pointer dereference",
];

/// A panic, by its kind.
pub(super) fn rust(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    let told =
        matches!(death.kind, Some(CauseKind::PANIC | CauseKind::BUG | CauseKind::OOPS | CauseKind::RECURSIVE_PANIC));
    // An exception of which the log has neither number nor address is known by its words alone.
    let bare = death.kind == Some(CauseKind::EXCEPTION) && death.vector.is_none() && death.fault_addr.is_none();
    if !told && !bare || death.message.is_empty() || killed_and_went_on(ctx) {
        return Vec::new();
    }
    let lower = death.message.to_lowercase();
    let place =
        death.source().or_else(|| place_in(&death.message)).map(|place| format!(" at {place}")).unwrap_or_default();
    let message = words(&death.message);
    let known = KINDS.iter().find(|(text, ..)| lower.contains(&text.to_lowercase()));
    let (what, weight) = match known {
        Some((_, what, weight)) => ((*what).to_owned(), *weight),
        None if check_of(&death.message).is_some() => return Vec::new(),
        None if REPORTS.iter().any(|text| lower.contains(text)) || !hardware::error(ctx).is_empty() => {
            return Vec::new();
        }
        // An oops, a lockup or a fault is not raised by a `panic!` in the source.
        // A warning lets the kernel go on.
        None if death.kind == Some(CauseKind::BUG) => (format!("the kernel reported: {message}"), 0.4),
        None if death.kind != Some(CauseKind::PANIC) || death.vector.is_some() => {
            (format!("the kernel died: {message}"), 0.4)
        }
        None => (format!("explicit panic: {message}"), 0.6),
    };
    // Many messages end with the function already.
    let named = ctx.guilty.as_ref().is_some_and(|guilty| what.ends_with(&format!(" in {}", guilty.name)));
    let culprit = if named { String::new() } else { ctx.in_culprit() };
    let claim = Claim::new(format!("{what}{place}{culprit}")).because(weight, message, death.at).because_if(
        0.2,
        ctx.culprit().map(|frame| (format!("innermost frame of interest: {}", frame.of_interest()), frame.at)),
    );
    // Counters say whether there was any; a log has none, and only its words tell that none was left.
    let refused = known.is_none() && ctx.case.counters.is_empty() && asked_for_memory(ctx) && !says_none_left(ctx);
    let keepers = keepers::in_words(ctx, Promise::Frames).filter(|_| refused);
    vec![claim.because_if(0.0, keepers.map(|row| (row.behind("it asked for memory; "), None)))]
}

/// `file:line:column` of `panicked at file:line:column:`.
fn place_in(message: &str) -> Option<String> {
    let rest = message.split("panicked at ").nth(1)?;
    let place = rest.lines().next()?.trim_end_matches(':');
    (!place.is_empty()).then(|| place.to_owned())
}

/// The message without the line that only says where.
fn words(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("panicked at "));
    lines.next().unwrap_or_else(|| message.trim()).to_owned()
}
