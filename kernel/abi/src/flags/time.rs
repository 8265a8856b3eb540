//! Clocks, timers and their flags.

use super::{Field, FlagSet, flag_set, optional_name};

flag_set! {
    /// Clocks that clock_gettime(2) and timer_create(2) accept.
    CLOCK from "linux/time.h, clock_gettime(2)" {
        field 0xffff_ffff {
            CLOCK_REALTIME = 0,
            CLOCK_MONOTONIC = 1,
            CLOCK_PROCESS_CPUTIME_ID = 2,
            CLOCK_THREAD_CPUTIME_ID = 3,
            CLOCK_MONOTONIC_RAW = 4,
            CLOCK_REALTIME_COARSE = 5,
            CLOCK_MONOTONIC_COARSE = 6,
            CLOCK_BOOTTIME = 7,
            CLOCK_REALTIME_ALARM = 8,
            CLOCK_BOOTTIME_ALARM = 9,
            CLOCK_TAI = 11,
        }
        bits {
        }
        also {}
    }
}

flag_set! {
    /// Flags of `clock_nanosleep` and `timer_settime`.
    TIMER from "linux/time.h, timer_settime(2)" {
        bits {
            TIMER_ABSTIME = 0x1,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `timerfd_create`.
    TIMERFD_CREATE from "linux/timerfd.h, timerfd_create(2)" {
        bits {
            TFD_NONBLOCK = 0x800,
            TFD_CLOEXEC = 0x8_0000,
        }
        also {}
    }
}

flag_set! {
    /// Flags of `timerfd_settime`.
    TIMERFD_SET from "linux/timerfd.h, timerfd_create(2)" {
        bits {
            TFD_TIMER_ABSTIME = 0x1,
            TFD_TIMER_CANCEL_ON_SET = 0x2,
        }
        also {}
    }
}

flag_set! {
    /// The three interval timers of setitimer(2).
    ITIMER from "linux/time.h, getitimer(2)" {
        field 0xffff_ffff {
            ITIMER_REAL = 0,
            ITIMER_VIRTUAL = 1,
            ITIMER_PROF = 2,
        }
        bits {
        }
        also {}
    }
}

/// Every set of this file, for lookups by name and for the test against the headers.
pub static ALL: &[&FlagSet] = &[&CLOCK, &TIMER, &TIMERFD_CREATE, &TIMERFD_SET, &ITIMER];
