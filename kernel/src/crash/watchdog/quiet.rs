//! Notices that no program runs and none will: every processor idles and nothing is left that could wake a thread.
//!
//! What can wake one is an armed timer, input on the console that a thread waits for, or a key on a terminal that
//! controls a session. An init that waits for input is therefore no stall. With `stall=` a limit for any silence is set
//! beside.

use core::sync::atomic::{AtomicU64, Ordering};

use kernel_logic::stall::{Limits, Look, Quiet, Stall};
use kwab_format::record::{CauseKind, Reason};
use machine::sync::SpinLock;
use machine::time::Nanos;

use super::panic;
use crate::patience;
use crate::sched::{self, HEARTBEAT, timer};
use crate::task::tree;
use crate::tty;

static QUIET: SpinLock<Quiet> = SpinLock::new(Quiet::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The timer of a processor expired. Interrupt context.
pub(super) fn look(now: Nanos) {
    if now < NEXT.load(Ordering::Relaxed) {
        return;
    }
    // Of two processors one looks.
    let Some(mut quiet) = QUIET.try_lock() else { return };
    NEXT.store(now + HEARTBEAT / 2, Ordering::Relaxed);
    let provable = patience::PROVABLE.load(Ordering::Relaxed);
    let limits = Limits { for_good: patience::PROCESSOR.limit().filter(|_| provable), at_all: patience::QUIET.limit() };
    let idle = sched::is_quiet();
    let look = Look {
        now,
        idle,
        switches: sched::all_switches(),
        wakeable: !idle || timer::any_armed() || tty::console_can_wake(),
    };
    let stall = quiet.look(look, limits);
    drop(quiet);
    let Some(stall) = stall else { return };
    let threads = tree::thread_count();
    let (quiet, why) = match stall {
        Stall::ForGood(ns) => (ns, "no timer is armed and nothing waits for the console"),
        Stall::Idle(ns) => (ns, "which is past the limit of stall="),
    };
    let seconds = quiet / 1_000_000_000;
    let message = format_args!("stall: no program has run for {seconds} s: {threads} threads sleep, {why}");
    panic::die(CauseKind::STALL, Reason::HANG, message);
}
