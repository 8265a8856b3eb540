//! The battery clock: seconds since 1970, UTC.

use crate::x86_64::cpu::port::{in8, out8};

fn register(index: u8) -> u8 {
    // SAFETY: the CMOS index and data ports; reading a clock register has no effect.
    unsafe {
        out8(0x70, index);
        in8(0x71)
    }
}

/// Seconds, minutes, hours, day, month, year, century as the clock holds them.
fn raw() -> [u8; 7] {
    [0, 2, 4, 7, 8, 9, 0x32].map(register)
}

/// Seconds since 1970; 0 without a clock.
pub(crate) fn seconds() -> u64 {
    const UPDATING: u8 = 0x80;
    const BINARY: u8 = 4;
    const HOURS_24: u8 = 2;
    let mut last = raw();
    for _ in 0..1000 {
        let now = raw();
        if register(10) & UPDATING == 0 && now == last {
            break;
        }
        last = now;
    }
    let mode = register(11);
    let number = |v: u8| u64::from(if mode & BINARY != 0 { v } else { (v >> 4) * 10 + (v & 15) });
    let afternoon = mode & HOURS_24 == 0 && last[2] & 0x80 != 0;
    let hours = number(last[2] & 0x7f) % if mode & HOURS_24 == 0 { 12 } else { 24 } + if afternoon { 12 } else { 0 };
    let century = if last[6] == 0 || last[6] == 0xff { 20 } else { number(last[6]) };
    let (year, month, day) = (century * 100 + number(last[5]), number(last[4]), number(last[3]));
    if year < 1970 || !(1..=12).contains(&month) {
        return 0;
    }
    days(year, month, day) * 86_400 + hours * 3600 + number(last[1]) * 60 + number(last[0])
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counting years from March.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = y / 4 - y / 100 + y / 400;
    (365 * y + leap_days + (153 * m + 2) / 5 + day).saturating_sub(719_469)
}
