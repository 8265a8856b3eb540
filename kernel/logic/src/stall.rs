//! Decides, from periodic samples, when a system or a thread has stopped making progress.
//!
//! [`Quiet`] judges a system in which no program runs: asleep for good only if nothing is left that could wake a
//! thread. [`Repeating`] judges a thread that takes page faults and does nothing else. Both are fed by a timer
//! interrupt, allocate nothing, and forget what they saw as soon as something moves.

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
}
