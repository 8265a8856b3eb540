//! What doctor prints: a line for each thing it looked at, and under what is lacking the command that mends it.

use std::fmt::Write as _;

use kwab::plain;

use super::{Tone, count, cut, paint};
use crate::health::{Health, State};
use crate::output::Style;

/// The page of `kwab doctor`.
pub(crate) fn page(health: &Health, style: Style) -> String {
    let mut out = format!("kwab {}, dump format {}\n", health.version, health.format);
    for check in &health.checks {
        let (mark, tone) = match check.state {
            State::Good => ("ok", Tone::Dim),
            State::Lacking => ("lacks", Tone::Care),
            State::Unused => ("–", Tone::Dim),
        };
        let head = format!("{} {:<16}", paint(style, tone, &format!("{mark:<6}")), check.name);
        let _ = writeln!(out, "{head} {}", cut(&check.found, style.width.saturating_sub(24)));
        let _ = writeln!(out, "       {}", paint(style, Tone::Dim, &plain::line(&check.purpose)));
        if let Some(mend) = &check.mend {
            let _ = writeln!(out, "       {}", paint(style, Tone::Code, &plain::line(mend)));
        }
    }
    let lacking = health.checks.iter().filter(|check| check.state == State::Lacking).count() as u64;
    if lacking > 0 {
        let _ = writeln!(out, "{} lacking", count(lacking, "thing is", "things are"));
    }
    out
}
