//! Holds SIGINT and SIGTERM back while a temporary name exists, and makes a file size limit an error instead of a
//! death.
//!
//! Nothing is installed unless a program asks for it with [`prepare`]: an interface that handles signals itself must
//! not. A signal that the process was started with ignored stays ignored.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};

/// Whether signals end the process at once, and which one came while they did not.
struct State {
    free: Arc<AtomicBool>,
    pending: Arc<AtomicUsize>,
}

static STATE: OnceLock<State> = OnceLock::new();

/// Installs the handlers, once per process. A handler that the system refuses only costs what it is there for.
pub fn prepare() {
    STATE.get_or_init(|| {
        let state = State { free: Arc::new(AtomicBool::new(true)), pending: Arc::default() };
        let ignored = ignored();
        for signal in [SIGINT, SIGTERM] {
            if ignored & (1 << (signal - 1)) == 0 {
                let _ = flag::register_conditional_default(signal, Arc::clone(&state.free));
                let _ = flag::register_usize(signal, Arc::clone(&state.pending), signal as usize);
            }
        }
        // With a handler, a write past RLIMIT_FSIZE fails with EFBIG (setrlimit(2)).
        let _ = flag::register(SIGXFSZ, Arc::default());
        state
    });
}

/// Instead of [`prepare`], for a program that ends by itself when it is asked to: SIGINT and SIGTERM set the flag, and
/// the second one ends the process. A handler that the system refuses leaves the signal what it was.
#[must_use]
pub fn requests() -> Arc<AtomicBool> {
    let asked = Arc::new(AtomicBool::new(false));
    let ignored = ignored();
    for signal in [SIGINT, SIGTERM] {
        if ignored & (1 << (signal - 1)) == 0 {
            let _ = flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked));
            let _ = flag::register(signal, Arc::clone(&asked));
        }
    }
    let _ = flag::register(SIGXFSZ, Arc::default());
    asked
}

/// The mask of ignored signals, from `/proc/self/status`; none where that is missing.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Signals wait as long as this lives.
pub(super) struct Held;

impl Held {
    /// From now on.
    pub(super) fn now() -> Self {
        if let Some(state) = STATE.get() {
            state.free.store(false, Ordering::SeqCst);
        }
        Self
    }

    /// Whether one waits.
    #[expect(clippy::unused_self, reason = "asking makes sense only while signals are held")]
    pub(super) fn is_pending(&self) -> bool {
        STATE.get().is_some_and(|state| state.pending.load(Ordering::SeqCst) != 0)
    }
}

/// While this lives, the keyboard is another program's: SIGINT is not for this process, SIGTERM waits.
pub struct Lent {
    _held: Held,
}

impl Lent {
    /// From now on.
    #[must_use]
    pub fn now() -> Self {
        Self { _held: Held::now() }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(state) = STATE.get() {
            // What the other program was asked to stop is not this one.
            let _ = state.pending.compare_exchange(SIGINT as usize, 0, Ordering::SeqCst, Ordering::SeqCst);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(state) = STATE.get() else { return };
        state.free.store(true, Ordering::SeqCst);
        let signal = state.pending.load(Ordering::SeqCst);
        if signal != 0 {
            // Ends the process as the signal would have; if that fails, the process goes on without it.
            let _ = low_level::emulate_default_handler(signal as i32);
        }
    }
}
