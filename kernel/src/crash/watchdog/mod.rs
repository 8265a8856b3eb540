//! Notices that nothing moves any more: a processor that is stuck in the kernel, a thread that is never woken, a system
//! in which nothing runs ([`quiet`]), a page fault that is never resolved ([`faults`]).
//!
//! Every processor's timer expires at least once per [`HEARTBEAT`], also when it is idle. The interrupt only leaves a
//! mark, which the processor acts upon when it idles, goes back to user mode or, in long work, at a scheduling point
//! ([`crate::sched::breathe`]): a call of any length that comes to those makes progress. A mark that stays for too long
//! is a *soft lockup*. A processor that does not even take its interrupt, a *hard lockup*, is noticed by its neighbour
//! or, where there is none that runs, by a timer of the machine ([`hardware`]). A thread that sleeps where no signal
//! can wake it for too long is *hung* ([`blocked`]). All end in a dump; [`patience`] has the limits. A program that
//! loops in user mode is not a hang: a dump that is asked for
//! shows where it is.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use kwab_format::record::{CauseKind, Reason};
use machine::cpu::{self, CpuId, MAX_CPUS, PerCpu};
use machine::describe::Entry;
use machine::time::{Nanos, now};

use super::panic;
use crate::patience;
use crate::sched::HEARTBEAT;

mod blocked;
mod faults;
pub(super) mod hardware;
mod quiet;

/// How much longer than its own mark a processor's interrupt may stay away: its neighbour is not in a hurry.
const GRACE: Nanos = 5 * HEARTBEAT;
/// How often threads are looked at.
const TASKS_EVERY: Nanos = 10 * HEARTBEAT;

/// What a processor noted.
struct Seen {
    /// When the mark was left that is there now; 0 before the first.
    pending_since: AtomicU64,
    /// When its timer expired last; 0 before it began.
    ticked: AtomicU64,
}

static SEEN: PerCpu<Seen> =
    PerCpu::new([const { Seen { pending_since: AtomicU64::new(0), ticked: AtomicU64::new(0) } }; MAX_CPUS]);
/// When each processor's timer expired last, in [`machine::describe`].
pub(super) static FIELDS: [Entry; 3] = [
    Entry::address("ticks", &SEEN),
    Entry::number("ticks.stride", PerCpu::<Seen>::STRIDE),
    Entry::number("ticks.at", offset_of!(Seen, ticked)),
];
static NEXT_TASKS: AtomicU64 = AtomicU64::new(TASKS_EVERY);

/// The timer expired; `marked` says whether the mark it leaves was there already. Interrupt context.
pub fn tick(marked: bool) {
    let now = now();
    let seen = SEEN.here();
    seen.ticked.store(now, Ordering::Relaxed);
    let since = seen.pending_since.load(Ordering::Relaxed);
    if !marked || since == 0 {
        seen.pending_since.store(now, Ordering::Relaxed);
    } else {
        look_at_myself(now.saturating_sub(since));
    }
    hardware::set_again(now);
    look_at_neighbour(now);
    faults::look(now);
    quiet::look(now);
    let due = NEXT_TASKS.load(Ordering::Relaxed);
    let mine = || NEXT_TASKS.compare_exchange(due, now + TASKS_EVERY, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if now >= due && mine() {
        blocked::look(now);
    }
}

fn look_at_myself(stuck: Nanos) {
    if patience::PROCESSOR.limit().is_some_and(|limit| stuck > limit) {
        let (cpu, seconds) = (cpu::id().0, stuck / 1_000_000_000);
        let message = format_args!("soft lockup: CPU {cpu} has been in the kernel for {seconds} s");
        panic::die(CauseKind::SOFT_LOCKUP, Reason::HANG, message);
    }
}

/// The next processor in line that runs.
fn look_at_neighbour(now: Nanos) {
    let me = cpu::id().0;
    let online = cpu::online();
    let Some(next) = (1..64).map(|step| (me + step) % 64).find(|other| online >> other & 1 != 0) else { return };
    let ticked = SEEN.of(CpuId(next)).ticked.load(Ordering::Relaxed);
    let silent = now.saturating_sub(ticked);
    if next != me
        && ticked != 0
        && patience::PROCESSOR.limit().is_some_and(|limit| silent > limit.saturating_add(GRACE))
    {
        let seconds = silent / 1_000_000_000;
        let message = format_args!("hard lockup: CPU {next} has taken no interrupt for {seconds} s");
        panic::die(CauseKind::SOFT_LOCKUP, Reason::HANG, message);
    }
}
