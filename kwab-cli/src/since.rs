//! Reads a size and a moment as people write them: `64M`; a day, a moment in UTC, or an age.

use std::str::FromStr;
use std::time::SystemTime;

/// A number of bytes with an optional K, M or G.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) =
        match text.trim_end_matches("iB").trim_end_matches('B').split_at_checked(text.len().max(1) - 1) {
            _ if text.bytes().all(|byte| byte.is_ascii_digit()) => (text, 0),
            Some((digits, "K" | "k")) => (digits, 10),
            Some((digits, "M" | "m")) => (digits, 20),
            Some((digits, "G" | "g")) => (digits, 30),
            _ => return Err("expected a number of bytes, as 1048576, 64M or 2G".to_owned()),
        };
    let number: u64 = digits.parse().map_err(|_| "expected a number of bytes, as 1048576, 64M or 2G".to_owned())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(|| "out of range".to_owned())
}

/// A moment, nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since(i64);

impl Since {
    /// Nanoseconds since 1970.
    pub(crate) const fn ns(self) -> i64 {
        self.0
    }
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a day, a moment or an age, as 2026-11-25, 2026-11-25T14:30:00Z, 90m, 36h, 14d";
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let seconds = match age(text) {
            Some(seconds) => return Ok(Self(now.saturating_sub(seconds.saturating_mul(1_000_000_000)))),
            None => moment(text).ok_or(EXPECTED)?,
        };
        seconds.checked_mul(1_000_000_000).map(Self).ok_or_else(|| EXPECTED.to_string())
    }
}

/// `90m`: how many seconds ago.
fn age(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    number(&text[..text.len() - 1])?.checked_mul(unit)
}

/// `2026-11-25`, with `T14:30` or `T14:30:00` and perhaps `Z`, in UTC.
fn moment(text: &str) -> Option<i64> {
    let (day, time) = text.split_once(['T', ' ']).map_or((text, None), |(day, time)| (day, Some(time)));
    let mut parts = day.splitn(3, '-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=12).contains(&month) || !(1970..=2262).contains(&year) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let seconds = match time {
        None => 0,
        Some(time) => {
            let mut parts = time.trim_end_matches('Z').splitn(3, ':').map(number);
            let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
            if hour > 23 || minute > 59 || second > 60 {
                return None;
            }
            hour * 3600 + minute * 60 + second
        }
    };
    let days: i64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum::<i64>()
        + (1..month).map(|month| days_of(year, month)).sum::<i64>()
        + day
        - 1;
    Some(days * 86_400 + seconds)
}

fn number(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) { None } else { text.parse().ok() }
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + is_leap(year) as i64,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of a moment in UTC: `2026-11-25`.
pub(crate) fn day_of(ns: i64) -> String {
    let (mut days, mut year) = (ns.div_euclid(86_400_000_000_000), 1970);
    let length = |year| if is_leap(year) { 366 } else { 365 };
    while days < 0 {
        year -= 1;
        days += length(year);
    }
    while days >= length(year) {
        days -= length(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_a_moment_and_an_age_are_read_and_anything_else_is_refused() {
        let seconds = |text: &str| Since::from_str(text).map(|since| since.ns() / 1_000_000_000);
        assert_eq!(seconds("1970-01-02"), Ok(86_400));
        assert_eq!(seconds("2026-11-25T14:30:05Z"), Ok(1_795_617_005));
        assert_eq!(seconds("2024-02-29 00:01"), Ok(1_709_164_860));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
        assert!((now - 7200 - seconds("2h").unwrap()).abs() <= 2);
        for text in
            ["", "d", "2026-13-01", "2025-02-29", "2026-11", "yesterday", "-3d", "2026-11-25T25:00", "9999-01-01"]
        {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_day_of_a_moment_is_that_of_its_text() {
        for day in ["1970-01-01", "1972-02-29", "2000-12-31", "2026-11-25", "2100-03-01"] {
            assert_eq!(day_of(Since::from_str(day).unwrap().ns() + 86_399_999_999_999), day);
        }
        assert_eq!(day_of(-1), "1969-12-31");
    }
}
