//! A timer of the machine that interrupts by NMI when no processor has taken its own timer's interrupt for too long.
//!
//! Every timer interrupt of any processor sets it again, at most once a second. It expires later than a neighbour
//! notices, so it has the word only where no processor is left that runs. A machine without such a timer (microvm) is
//! not watched; the host can ask for a dump by an NMI there.

use core::sync::atomic::{AtomicU64, Ordering};

use machine::time::Nanos;

use super::GRACE;
use crate::patience;
use crate::sched::HEARTBEAT;

/// When it was set last, 0 for never or no longer.
static SET: AtomicU64 = AtomicU64::new(0);
/// When it expires, 0 for never.
static EXPIRES: AtomicU64 = AtomicU64::new(0);

/// The timer of a processor expired. Interrupt context.
pub(super) fn set_again(now: Nanos) {
    let set = SET.load(Ordering::Relaxed);
    if now < set.saturating_add(HEARTBEAT) && set != 0 {
        return;
    }
    let wanted = patience::PROCESSOR.limit().filter(|_| patience::NMI.load(Ordering::Relaxed));
    let after = wanted.map(|limit| limit.saturating_add(2 * GRACE));
    match after {
        Some(after) if machine::watchdog::arm(after) => {
            EXPIRES.store(now.saturating_add(after), Ordering::Relaxed);
            SET.store(now.max(1), Ordering::Relaxed);
        }
        None if set != 0 => {
            machine::watchdog::disarm();
            EXPIRES.store(0, Ordering::Relaxed);
            SET.store(0, Ordering::Relaxed);
        }
        _ => {}
    }
}

/// An NMI came: how long no processor has taken an interrupt, if it is this timer's.
pub fn expired(now: Nanos) -> Option<Nanos> {
    let expires = EXPIRES.load(Ordering::Relaxed);
    // The clocks of timer and processors may drift apart a little.
    let slack = HEARTBEAT / 2;
    (expires != 0 && now.saturating_add(slack) >= expires).then(|| now.saturating_sub(SET.load(Ordering::Relaxed)))
}
