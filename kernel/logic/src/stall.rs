//! Decides, from periodic samples, when a system or a thread has stopped making progress.
//!
//! [`Quiet`] judges a system in which no program runs: asleep for good only if nothing is left that could wake a
//! thread. [`Repeating`] judges a thread that takes page faults and does nothing else. [`Holders`] judges a thread that
//! waits for a mutex by the thread that has it. All are fed by a timer interrupt, allocate nothing, and forget what
//! they saw as soon as something moves.

/// What a look at a system found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Now, in nanoseconds.
    pub now: u64,
    /// Every processor is idle and none has a thread queued.
    pub idle: bool,
    /// Switches of all processors since boot.
    pub switches: u64,
    /// Something outside the threads can wake one: an armed timer, a reader of the console, a terminal whose keys send
    /// signals; or it could not be found out.
    pub wakeable: bool,
}

/// How long a system may be quiet, in nanoseconds; `None` for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// If nothing can wake a thread.
    pub for_good: Option<u64>,
    /// Whatever might wake one.
    pub at_all: Option<u64>,
}

/// A system that is quiet for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// For so many nanoseconds, and nothing can wake a thread.
    ForGood(u64),
    /// For so many nanoseconds.
    Idle(u64),
}

/// Since when a system is quiet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet {
    switches: u64,
    /// 0 while something runs.
    since: u64,
    /// Since when nothing can wake a thread either; 0 while something can.
    hopeless: u64,
}

impl Quiet {
    /// Nothing was looked at.
    #[must_use]
    pub const fn new() -> Self {
        Self { switches: 0, since: 0, hopeless: 0 }
    }

    /// Takes a look.
    pub fn look(&mut self, look: Look, limits: Limits) -> Option<Stall> {
        if !look.idle || look.switches != self.switches || self.since == 0 {
            *self = Self { switches: look.switches, since: if look.idle { look.now } else { 0 }, hopeless: 0 };
        }
        if self.since == 0 {
            return None;
        }
        if look.wakeable {
            self.hopeless = 0;
        } else if self.hopeless == 0 {
            self.hopeless = look.now;
        }
        let hopeless = look.now.saturating_sub(self.hopeless);
        if self.hopeless != 0 && limits.for_good.is_some_and(|limit| hopeless > limit) {
            return Some(Stall::ForGood(hopeless));
        }
        let quiet = look.now.saturating_sub(self.since);
        limits.at_all.is_some_and(|limit| quiet > limit).then_some(Stall::Idle(quiet))
    }
}

/// What a look at the running thread found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Now, in nanoseconds.
    pub now: u64,
    /// Id of the thread that was running.
    pub tid: u32,
    /// Page faults it has taken.
    pub faults: u64,
    /// System calls it has made.
    pub calls: u64,
    /// How often rights were taken away in its address space, by others too.
    pub losses: u64,
}

/// A thread that may be repeating one page fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeating {
    tid: u32,
    faults: u64,
    calls: u64,
    losses: u64,
    since: u64,
    seen: u64,
}

/// Fewer faults from one look to the next are no loop.
const LEAST: u64 = 8;
/// A candidate that was not met for so long, in nanoseconds, is replaced.
const FORGET: u64 = 1_000_000_000;

impl Repeating {
    /// Watches no thread yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { tid: 0, faults: 0, calls: 0, losses: 0, since: 0, seen: 0 }
    }

    /// Takes a look at the thread that runs; for how long it has taken page faults without a system call and without
    /// losing a right, in nanoseconds. Threads that take turns with the candidate do not end that.
    pub fn look(&mut self, running: Running) -> Option<u64> {
        if running.tid != self.tid && running.now.saturating_sub(self.seen) < FORGET && self.since != 0 {
            return None;
        }
        let goes_on = running.tid == self.tid
            && running.calls == self.calls
            && running.losses == self.losses
            && running.faults.saturating_sub(self.faults) >= LEAST
            && self.since != 0;
        let since = if goes_on { self.since } else { running.now };
        let Running { now: seen, tid, faults, calls, losses } = running;
        *self = Self { tid, faults, calls, losses, since, seen };
        goes_on.then(|| running.now - since)
    }

    /// The candidate made progress: its time starts again.
    pub fn restart(&mut self) {
        self.since = self.seen;
    }
}

/// What a thread is found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Sleeps until the thread with this number lets go of a mutex.
    WaitsOn(u32),
    /// Sleeps for something else, for so many nanoseconds.
    Sleeps(u64),
    /// Runs, or waits for a processor; it has run for so many nanoseconds in all.
    Runs(u64),
    /// No thread has the number.
    Gone,
}

/// Why a thread that waits for a mutex will not go on: what the last thread of the chain does, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Waits on itself, over others or not.
    Circle(u32),
    /// The last thread of the chain sleeps.
    Sleeps(u32),
    /// Has run for longer than the limit and does not let go.
    Runs(u32),
    /// The last thread of the chain has ended.
    Gone(u32),
}

/// Judges threads that are blocked for too long by the threads on which they wait: a holder that a user keeps from a
/// processor, and all who wait on it, are not stuck. A holder that gets one and keeps the mutex is, once it has run
/// for longer than the limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holders {
    /// The running holder that is watched, 0 for none, and how long it had run when it was met first.
    runner: u32,
    ran: u64,
    met: bool,
}

impl Holders {
    /// Watches no holder yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { runner: 0, ran: 0, met: false }
    }

    /// Follows the chain of waits from the holder `first` on; `doing` says what a thread does.
    pub fn judge(&mut self, first: u32, limit: u64, mut doing: impl FnMut(u32) -> Doing) -> Option<Stuck> {
        // Brent's search for circles: a thread that was passed is met again within twice the circle's length.
        let (mut at, mut passed, mut steps, mut power) = (first, first, 0u32, 1u32);
        loop {
            match doing(at) {
                Doing::WaitsOn(next) if next == passed => return Some(Stuck::Circle(next)),
                Doing::WaitsOn(next) => at = next,
                Doing::Sleeps(slept) => return (slept > limit).then_some(Stuck::Sleeps(at)),
                Doing::Runs(ran) => return self.has_run_too_long(at, ran, limit).then_some(Stuck::Runs(at)),
                Doing::Gone => return Some(Stuck::Gone(at)),
            }
            steps += 1;
            if steps == power {
                (passed, steps, power) = (at, 0, power.saturating_mul(2));
            }
        }
    }

    fn has_run_too_long(&mut self, tid: u32, ran: u64, limit: u64) -> bool {
        if self.runner == 0 {
            *self = Self { runner: tid, ran, met: true };
        }
        self.met |= self.runner == tid;
        self.runner == tid && ran.saturating_sub(self.ran) > limit
    }

    /// All threads were looked at: a holder on which no thread waited for too long is not watched any more.
    pub fn end_look(&mut self) {
        *self = if self.met { Self { met: false, ..*self } } else { Self::new() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { for_good: Some(20), at_all: None };

    fn look(now: u64) -> Look {
        Look { now, idle: true, switches: 7, wakeable: false }
    }

    #[test]
    fn a_system_without_a_timer_or_a_reader_of_the_console_stalls() {
        let mut quiet = Quiet::new();
        assert_eq!(quiet.look(look(100), LIMITS), None);
        assert_eq!(quiet.look(look(120), LIMITS), None);
        assert_eq!(quiet.look(look(121), LIMITS), Some(Stall::ForGood(21)));
    }

    #[test]
    fn what_waits_for_the_console_or_a_timer_does_not_stall_unless_a_limit_is_given() {
        let mut quiet = Quiet::new();
        for now in (1..1000).step_by(10) {
            assert_eq!(quiet.look(Look { wakeable: true, ..look(now) }, LIMITS), None);
        }
        let given = Limits { at_all: Some(500), ..LIMITS };
        assert_eq!(quiet.look(Look { wakeable: true, ..look(1001) }, given), Some(Stall::Idle(1000)));
        // The last hope has just gone.
        assert_eq!(quiet.look(look(1010), LIMITS), None);
        assert_eq!(quiet.look(look(1031), LIMITS), Some(Stall::ForGood(21)));
    }

    #[test]
    fn a_switch_between_two_looks_is_progress() {
        let mut quiet = Quiet::new();
        for (turn, now) in (1..1000).step_by(10).enumerate() {
            assert_eq!(quiet.look(Look { switches: turn as u64, ..look(now) }, LIMITS), None);
        }
        assert_eq!(quiet.look(Look { idle: false, ..look(2000) }, LIMITS), None);
        assert_eq!(quiet.look(look(2010), LIMITS), None);
    }

    #[test]
    fn only_faults_without_calls_repeat() {
        let mut repeating = Repeating::new();
        let at = |turn: u64| Running { now: 10 + turn, tid: 3, faults: turn * LEAST, calls: 5, losses: 2 };
        assert_eq!(repeating.look(at(0)), None);
        assert_eq!(repeating.look(at(1)), Some(1));
        assert_eq!(repeating.look(Running { tid: 4, ..at(2) }), None);
        assert_eq!(repeating.look(at(3)), Some(3));
        repeating.restart();
        assert_eq!(repeating.look(at(5)), Some(2));
        assert_eq!(repeating.look(Running { calls: 6, ..at(6) }), None);
        assert_eq!(repeating.look(Running { calls: 6, ..at(7) }), Some(1));
        assert_eq!(repeating.look(Running { calls: 6, faults: 7 * LEAST + 1, ..at(8) }), None);
    }

    #[test]
    fn a_thread_whose_pages_are_taken_away_has_a_reason_to_fault() {
        let mut repeating = Repeating::new();
        for turn in 0..100 {
            let running = Running { now: 10 + turn, tid: 3, faults: turn * LEAST, calls: 5, losses: turn };
            assert_eq!(repeating.look(running), None);
        }
    }

    #[test]
    fn a_candidate_that_is_gone_makes_room() {
        let mut repeating = Repeating::new();
        let of =
            |tid: u32, turn: u64| Running { now: 10 + turn * FORGET, tid, faults: turn * LEAST, calls: 5, losses: 2 };
        assert_eq!(repeating.look(of(3, 0)), None);
        assert_eq!(repeating.look(of(4, 1)), None);
        assert_eq!(repeating.look(of(4, 2)), Some(FORGET));
    }

    #[test]
    fn a_chain_is_judged_by_its_last_thread() {
        let mut holders = Holders::new();
        let chain = |last: Doing| move |tid: u32| if tid < 9 { Doing::WaitsOn(tid + 1) } else { last };
        assert_eq!(holders.judge(2, 100, chain(Doing::Sleeps(101))), Some(Stuck::Sleeps(9)));
        assert_eq!(holders.judge(2, 100, chain(Doing::Sleeps(100))), None);
        assert_eq!(holders.judge(2, 100, chain(Doing::Gone)), Some(Stuck::Gone(9)));
        assert_eq!(holders.judge(2, 100, chain(Doing::Runs(5000))), None);
    }

    #[test]
    fn circles_of_every_length_are_found_from_every_distance() {
        for length in 1..40 {
            for before in 0..40 {
                let last = before + length;
                let doing = |tid: u32| Doing::WaitsOn(if tid == last { before + 1 } else { tid + 1 });
                let stuck = Holders::new().judge(1, 100, doing);
                assert!(matches!(stuck, Some(Stuck::Circle(tid)) if tid > before), "{length} {before}: {stuck:?}");
            }
        }
    }

    #[test]
    fn a_holder_that_runs_is_stuck_once_it_has_had_the_processor_for_the_limit() {
        let mut holders = Holders::new();
        let runs = |ran: u64| move |_| Doing::Runs(ran);
        assert_eq!(holders.judge(7, 100, runs(5000)), None);
        // Another one that is met too is watched after it.
        assert_eq!(holders.judge(8, 100, runs(9000)), None);
        holders.end_look();
        assert_eq!(holders.judge(8, 100, runs(9500)), None);
        assert_eq!(holders.judge(7, 100, runs(5100)), None);
        holders.end_look();
        assert_eq!(holders.judge(7, 100, runs(5101)), Some(Stuck::Runs(7)));
    }

    #[test]
    fn a_holder_that_let_go_is_forgotten() {
        let mut holders = Holders::new();
        assert_eq!(holders.judge(7, 100, |_| Doing::Runs(5000)), None);
        holders.end_look();
        // In this look no thread waits on it.
        holders.end_look();
        assert_eq!(holders.judge(7, 100, |_| Doing::Runs(6000)), None);
    }
}
