//! Rate limits of console lines that programs can cause.
//!
//! Each kind of line has a [`Limit`]: [`BURST`] lines in [`INTERVAL`], as Linux's `printk_ratelimit`; the others are
//! counted. The count is written as a `suppressed` event before the next line that passes, and by [`report`] when
//! categories are switched and before the machine goes off.

use machine::sync::SpinLock;
use machine::time::{Nanos, now};

use super::event;

/// Lines that pass in one interval.
const BURST: u32 = 10;
const INTERVAL: Nanos = 5_000_000_000;

/// The limit of one kind of line.
pub struct Limit {
    /// What is counted, as the `suppressed` event names it.
    what: &'static str,
    state: SpinLock<LimitState>,
}

struct LimitState {
    since: Nanos,
    passed: u32,
    suppressed: u64,
}

/// Limits `unimplemented_syscall` events.
pub static UNIMPLEMENTED: Limit = Limit::new("unimplemented_syscall");
/// Limits `crash_report` events.
pub static CRASHES: Limit = Limit::new("crash_report");
/// Messages about programs that were dumped.
pub static DUMPED: Limit = Limit::new("program_dumped");
/// Messages about processes ended for want of memory.
pub static OUT_OF_MEMORY: Limit = Limit::new("out_of_memory");

impl Limit {
    const fn new(what: &'static str) -> Self {
        Self { what, state: SpinLock::new(LimitState { since: 0, passed: 0, suppressed: 0 }) }
    }

    /// Whether a line may be written now; one that may not is counted.
    pub fn admits(&self) -> bool {
        let now = now();
        let mut state = self.state.lock();
        if now.saturating_sub(state.since) >= INTERVAL {
            *state = LimitState { since: now, passed: 0, suppressed: state.suppressed };
        }
        if state.passed >= BURST {
            state.suppressed += 1;
            return false;
        }
        state.passed += 1;
        drop(state);
        self.tell();
        true
    }

    /// Writes and forgets how many lines were left out.
    fn tell(&self) {
        let count = core::mem::take(&mut self.state.lock().suppressed);
        if count > 0 {
            event::suppressed(self.what, count);
        }
    }
}

/// Writes what was counted since the last line of each kind.
pub fn report() {
    for limit in [&UNIMPLEMENTED, &CRASHES, &DUMPED, &OUT_OF_MEMORY] {
        limit.tell();
    }
}
