//! Decides which events poll, select and epoll report.
//!
//! A file says what it is ready for (a mask of `POLL*` bits) and how often that changed (a sequence number that every
//! wake-up raises). Level-triggered interests report whenever wished bits are set; edge-triggered ones only if the
//! sequence moved since their last report; one-shot ones are disabled after one report until they are modified.
//! Sources: poll(2), select(2), epoll(7).

use linux_abi::flags::socket;

/// There is data to read.
pub const IN: u32 = socket::EPOLLIN as u32;
/// Exceptional condition, such as out-of-band data (`EPOLLPRI`).
pub const PRI: u32 = socket::EPOLLPRI as u32;
/// Writing will not block.
pub const OUT: u32 = socket::EPOLLOUT as u32;
/// Error; reported whether wished or not.
pub const ERR: u32 = socket::EPOLLERR as u32;
/// Hang-up; reported whether wished or not.
pub const HUP: u32 = socket::EPOLLHUP as u32;
/// Not an open descriptor (poll only).
pub const NVAL: u32 = socket::POLLNVAL as u32;
/// Same as `IN`.
pub const RDNORM: u32 = socket::EPOLLRDNORM as u32;
/// Same as `OUT`.
pub const WRNORM: u32 = socket::EPOLLWRNORM as u32;
/// The peer shut its writing side.
pub const RDHUP: u32 = socket::EPOLLRDHUP as u32;
/// Only one of several epolls is woken.
pub const EXCLUSIVE: u32 = socket::EPOLLEXCLUSIVE as u32;
/// Keeps the system awake; accepted and ignored.
pub const WAKEUP: u32 = socket::EPOLLWAKEUP as u32;
/// The registration is disabled after one event (`EPOLLONESHOT`).
pub const ONESHOT: u32 = socket::EPOLLONESHOT as u32;
/// Edge-triggered: reported when readiness changes, not while it lasts (`EPOLLET`).
pub const EDGE: u32 = socket::EPOLLET as u32;

/// What select(2) takes for readable.
pub const SELECT_IN: u32 = IN | RDNORM | HUP | ERR | NVAL;
/// What select(2) takes for writable.
pub const SELECT_OUT: u32 = OUT | WRNORM | ERR | NVAL;
/// What select(2) takes for exceptional.
pub const SELECT_EXCEPT: u32 = PRI | NVAL;

/// One descriptor an epoll watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    /// Wished events and the mode bits.
    pub events: u32,
    /// Returned to the program with each report.
    pub data: u64,
    seen: Option<u64>,
    silenced: bool,
}

impl Interest {
    /// A fresh interest; an edge-triggered one reports readiness that is there from the start.
    pub const fn new(events: u32, data: u64) -> Self {
        Self { events, data, seen: None, silenced: false }
    }

    /// The events to report for a file that is `ready` at `sequence`, if any.
    #[inline]
    pub const fn report(&self, ready: u32, sequence: u64) -> Option<u32> {
        let events = ready & (self.events | ERR | HUP) & !(EDGE | ONESHOT | EXCLUSIVE | WAKEUP);
        if events == 0 || self.silenced {
            return None;
        }
        match self.seen {
            Some(seen) if self.events & EDGE != 0 && seen == sequence => None,
            _ => Some(events),
        }
    }

    /// Notes that a report taken for delivered did not reach the program.
    pub const fn taken_back(&mut self) {
        self.seen = None;
        self.silenced = false;
    }

    /// Notes that a report was delivered.
    pub const fn delivered(&mut self, sequence: u64) {
        self.seen = Some(sequence);
        if self.events & ONESHOT != 0 {
            self.silenced = true;
        }
    }
}

/// The events poll(2) returns for a descriptor with these wishes.
pub const fn poll_result(wished: u32, ready: u32) -> u32 {
    ready & (wished | ERR | HUP | NVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_interest_reports_until_the_data_is_gone() {
        let mut interest = Interest::new(IN, 5);
        interest.delivered(1);
        assert_eq!(interest.report(IN | OUT, 1), Some(IN));
        assert_eq!(interest.report(OUT, 1), None);
    }

    #[test]
    fn an_edge_interest_reports_again_only_after_a_new_wake_up() {
        let mut interest = Interest::new(IN | EDGE, 5);
        assert_eq!(interest.report(IN, 7), Some(IN));
        interest.delivered(7);
        assert_eq!(interest.report(IN, 7), None);
        assert_eq!(interest.report(IN, 8), Some(IN));
    }

    #[test]
    fn a_oneshot_interest_is_silent_even_on_hang_up() {
        let mut interest = Interest::new(IN | ONESHOT, 5);
        interest.delivered(0);
        assert_eq!(interest.report(IN | HUP, 1), None);
    }

    #[test]
    fn a_report_that_did_not_arrive_is_made_again() {
        let mut interest = Interest::new(IN | EDGE | ONESHOT, 5);
        interest.delivered(3);
        interest.taken_back();
        assert_eq!(interest.report(IN, 3), Some(IN));
    }

    #[test]
    fn hang_up_is_reported_unwished() {
        assert_eq!(Interest::new(0, 0).report(HUP, 0), Some(HUP));
        assert_eq!(poll_result(IN, HUP | OUT), HUP);
    }
}
