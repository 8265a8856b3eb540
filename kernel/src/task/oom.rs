//! The OOM killer: chooses the process whose end frees most memory.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use kernel_logic::signal::sig;
use kwab_format::record::{CauseKind, Reason};
use machine::addr::PAGE_SIZE;

use super::Above;
use crate::log;
use crate::mm::frames;
use crate::sched;
use crate::sync::wait::sleep_until;
use crate::task::process::{Comm, Ended, OomScore};
use crate::task::{Process, ThreadRef, current, tree};
use crate::trace::{self, limit};
use crate::upper::Kwab;

/// Makes room or gives up: `true` if the caller is to try again, `false` if it is the victim itself. `refusals` counts
/// how often the caller was told to. If no process is left to end, the kernel cannot go on. Thread context, no lock
/// held.
pub fn out_of_memory(refusals: u32) -> bool {
    machine::frame::drain_magazines();
    let me = current();
    if me.process.life.is_ending() {
        return false;
    }
    let Some(choice) = Choice::begin() else { return wait() };
    match is_helped(refusals) {
        Some(Help::Free) => return true,
        Some(Help::OnTheWay) => return wait(),
        None => {}
    }
    let chosen = choose();
    // That took its time: processes may have ended meanwhile, those that are chosen first before all.
    match is_helped(refusals) {
        Some(Help::Free) => return true,
        Some(Help::OnTheWay) => return wait(),
        None => {}
    }
    let Some(victim) = chosen else {
        let free = frames::free();
        let message = format_args!("Out of memory and no killable processes: {free} free pages");
        trace::die(CauseKind::OUT_OF_MEMORY, Reason::KERNEL_CRASH, message)
    };
    if limit::OUT_OF_MEMORY.admits() {
        let size = resident(&victim) * 4;
        log::warn!("Out of memory: killed process {} ({}), {size} KiB resident", victim.pid, Comm(&victim));
    }
    victim.begin_end(Ended::Killed { signal: sig::KILL, core: false });
    drop(choice);
    if victim.pid == me.pid() {
        return false;
    }
    wait()
}

fn wait() -> bool {
    sleep_until(machine::time::now() + PATIENCE, sched::Sleep::Uninterruptible).ok();
    true
}

/// The right to choose: one thread at a time has it, since one victim is enough for all that were refused.
struct Choice;

static IS_CHOOSING: AtomicBool = AtomicBool::new(false);

impl Choice {
    fn begin() -> Option<Self> {
        (!IS_CHOOSING.swap(true, Ordering::Acquire)).then_some(Self)
    }
}

impl Drop for Choice {
    fn drop(&mut self) {
        IS_CHOOSING.store(false, Ordering::Release);
    }
}

/// Why no process needs to be ended.
enum Help {
    /// There is memory again.
    Free,
    /// A process that ends gives its memory back.
    OnTheWay,
}

/// Whether memory has come, or comes, without a choice.
fn is_helped(refusals: u32) -> Option<Help> {
    if tree::find_process(|p| (p.life.is_ending() && !p.is_zombie()).then_some(())).is_some() {
        return Some(Help::OnTheWay);
    }
    // A process may have ended and given its memory back since the caller was refused: then no other needs to.
    (refusals < MOST_REFUSALS && frames::can_resolve_a_fault()).then_some(Help::Free)
}

/// Refusals that free memory is believed against: what is missing may be a block of several frames.
const MOST_REFUSALS: u32 = 8;

/// How long to wait for a victim's memory before looking again, in nanoseconds.
const PATIENCE: u64 = 10_000_000;

/// The process whose end frees most, adjusted by its `oom_score_adj`; never init.
fn choose() -> Option<Arc<Process>> {
    let total = frames::total() as i64;
    let badness = |process: &Arc<Process>| {
        let adjust = process.oom_score.adjustment();
        (adjust != OomScore::NEVER).then(|| footprint(process) as i64 + i64::from(adjust) * total / 1000)
    };
    // Without a list: there may be no memory for one. Nor is the tree locked: what is looked at (an address space, a
    // file in flight) may lose its other references meanwhile, and is dropped here then.
    let mut worst: Option<(i64, Arc<Process>)> = None;
    let mut from = 0;
    while let Some(process) = tree::next_process(from) {
        from = process.pid.saturating_add(1);
        if !process.is_init()
            && !process.is_zombie()
            && let Some(score) = badness(&process)
            && worst.as_ref().is_none_or(|(most, _)| score > *most)
        {
            worst = Some((score, process));
        }
        sched::breathe();
    }
    worst.map(|(_, process)| process)
}

/// How likely [`choose`] takes it, as `/proc/PID/oom_score` says it: 667 for none of the memory, 1333 for all of it, 0
/// for never.
pub fn score(process: &Process) -> u64 {
    let total = (frames::total() as i64).max(1);
    let adjust = process.oom_score.adjustment();
    if adjust == OomScore::NEVER {
        return 0;
    }
    let badness = footprint(process) as i64 * 1000 / total + i64::from(adjust);
    ((1000 + badness) * 2 / 3).max(0) as u64
}

/// Pages that its end gives back, the kernel's own for it included: its memory with the page tables and ranges, its
/// descriptors and files without a name behind them, what waits in its pipes and sockets, its threads' stacks and what
/// their calls keep. Pages of files with a name stay where they are. Every process of a user besides root also answers
/// for what that user has in flight through sockets, which no descriptor leads to.
fn footprint(process: &Process) -> u64 {
    let Some(thread) = process.threads.first() else { return 0 };
    let (mut pages, mut contents, mut nameless) = (0, 0, 0);
    if let Some(mm) = thread.mm() {
        let resident = mm.resident();
        let held = mm.held();
        contents = resident.shmem;
        nameless = held.contents;
        pages += resident.anonymous + mm.space.table_frames() as u64 + held.ranges;
    }
    if let Some(files) = thread.files.get() {
        let held = files.held();
        pages += held.buffers;
        nameless += held.contents;
    }
    let uid = thread.creds.with(|creds| creds.uid);
    if uid != 0 {
        pages += <Kwab as Above>::pages_in_flight(uid);
    }
    let of_thread = |thread: &ThreadRef| PER_THREAD + thread.kept.pages();
    pages + contents.max(nameless) + process.threads.with(|threads| threads.iter().map(of_thread).sum::<u64>())
}

/// Pages of a thread: its kernel stack and what is kept about it.
const PER_THREAD: u64 = (machine::thread::KERNEL_STACK_SIZE / PAGE_SIZE) as u64 + 2;

fn resident(process: &Process) -> u64 {
    let mm = process.threads.first().and_then(|thread| thread.mm());
    mm.map_or(0, |mm| mm.resident().total())
}
