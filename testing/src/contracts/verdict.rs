//! Compares what our kernel's run of a contract printed with what Linux's did, and knows the excuses.
//!
//! A known difference (`testing/contracts/known-differences.toml`) has a reason and a date. It turns a failure into
//! [`Verdict::Known`]; once the outputs agree it is itself the failure, and past its date it no longer excuses.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::program;
use crate::jobs::{End, Report};
use crate::paths;

/// What the judge says about one contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Same lines, same end.
    Same,
    /// A difference that is listed with a reason.
    Known(String),
    /// A difference that was gone when the program ran again under both kernels.
    Unsteady(String),
    /// A difference; the first lines that show it.
    Differs(String),
    /// A listed difference that is not there any more, or whose date has passed.
    StaleExcuse(String),
    /// Linux itself has no answer: the program is at fault.
    NoRule(String),
}

impl Verdict {
    /// Whether this fails the run.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Same | Self::Known(_) | Self::Unsteady(_))
    }

    /// The word for tables.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Known(_) => "known",
            Self::Unsteady(_) => "unsteady",
            Self::Differs(_) => "DIFFERS",
            Self::StaleExcuse(_) => "STALE",
            Self::NoRule(_) => "NO RULE",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => Ok(()),
            Self::Known(text)
            | Self::Unsteady(text)
            | Self::Differs(text)
            | Self::StaleExcuse(text)
            | Self::NoRule(text) => f.write_str(text),
        }
    }
}

/// One known difference from Linux.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// `<area>/<behaviour>` of the contract that differs.
    pub contract: String,
    /// Why, and what would end it.
    pub reason: String,
    /// The last day on which it counts, `YYYY-MM-DD`.
    pub expires: String,
}

/// The list of excuses, by contract.
pub fn known_differences() -> Result<BTreeMap<String, Difference>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        difference: Vec<Difference>,
    }
    let path = program::folder().join("known-differences.toml");
    let file: File = toml::from_str(&paths::read(&path)?).with_context(|| paths::shown(&path))?;
    let mut map = BTreeMap::new();
    for difference in file.difference {
        let name = difference.contract.clone();
        ensure!(is_date(&difference.expires), "{name}: `{}` is not a date like 2027-01-31", difference.expires);
        ensure!(!difference.reason.trim().is_empty(), "{name}: a known difference needs a reason");
        ensure!(map.insert(name.clone(), difference).is_none(), "{name} is listed twice");
    }
    Ok(map)
}

/// Judges one contract. `today` is `YYYY-MM-DD`.
pub fn judge(ours: &Report, linux: &Report, excuse: Option<&Difference>, today: &str) -> Verdict {
    if let End::Timeout(_) | End::Lost(_) = linux.end {
        return Verdict::NoRule(format!("under Linux: {}", linux.end));
    }
    if linux.end == End::Exit(99) {
        return Verdict::NoRule(format!("its set-up fails under Linux: {}", linux.lines.join(" / ")));
    }
    match (difference(ours, linux), excuse) {
        (None, None) => Verdict::Same,
        (None, Some(_)) => Verdict::StaleExcuse("listed as a known difference, but it is the same as Linux".into()),
        (Some(text), None) => Verdict::Differs(text),
        (Some(_), Some(excuse)) if excuse.expires.as_str() >= today => Verdict::Known(excuse.reason.clone()),
        (Some(text), Some(excuse)) => {
            Verdict::StaleExcuse(format!("its exception expired on {}: {text}", excuse.expires))
        }
    }
}

/// The first line in which two reports differ, or none.
fn difference(ours: &Report, linux: &Report) -> Option<String> {
    let longest = ours.lines.len().max(linux.lines.len());
    let line = |report: &Report, at: usize| report.lines.get(at).map_or("(nothing)", String::as_str).to_owned();
    let at = (0..longest).find(|at| ours.lines.get(*at) != linux.lines.get(*at));
    let lost = matches!(ours.end, End::Lost(_)).then(|| format!("; {}", ours.end)).unwrap_or_default();
    if let Some(at) = at {
        return Some(format!("line {}: `{}`, Linux `{}`{lost}", at + 1, line(ours, at), line(linux, at)));
    }
    (ours.end != linux.end).then(|| format!("ends with {}, Linux with {}", ours.end, linux.end))
}

fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.char_indices().all(|(at, c)| if at == 4 || at == 7 { c == '-' } else { c.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lines: &[&str], end: End) -> Report {
        Report { name: "a/b".into(), lines: lines.iter().map(|line| (*line).to_owned()).collect(), end }
    }

    fn excuse(expires: &str) -> Difference {
        Difference { contract: "a/b".into(), reason: "not built yet".into(), expires: expires.into() }
    }

    #[test]
    fn the_same_exit_status_with_another_output_is_a_difference() {
        let verdict = judge(&report(&["x", "y"], End::Exit(0)), &report(&["x", "z"], End::Exit(0)), None, "2026-01-01");
        assert_eq!(verdict, Verdict::Differs("line 2: `y`, Linux `z`".into()));
    }

    #[test]
    fn an_output_cut_short_by_a_crash_is_a_difference_that_says_so() {
        let ours = report(&["x"], End::Lost("the machine hung".into()));
        let verdict = judge(&ours, &report(&["x", "z"], End::Exit(0)), None, "2026-01-01");
        assert_eq!(verdict, Verdict::Differs("line 2: `(nothing)`, Linux `z`; lost: the machine hung".into()));
    }

    #[test]
    fn an_unexpected_pass_fails() {
        let same = report(&["x"], End::Exit(0));
        let verdict = judge(&same, &same, Some(&excuse("2030-01-01")), "2026-01-01");
        assert!(matches!(verdict, Verdict::StaleExcuse(_)) && verdict.is_failure());
    }

    #[test]
    fn an_excuse_counts_on_its_last_day_and_not_on_the_next() {
        let (ours, linux) = (report(&["x"], End::Exit(0)), report(&["y"], End::Exit(0)));
        assert!(!judge(&ours, &linux, Some(&excuse("2026-11-20")), "2026-11-20").is_failure());
        assert!(judge(&ours, &linux, Some(&excuse("2026-11-20")), "2026-11-21").is_failure());
    }

    #[test]
    fn a_program_that_fails_its_own_set_up_under_linux_proves_nothing() {
        let broken = report(&["set-up failed at line 3"], End::Exit(99));
        assert!(matches!(judge(&broken, &broken, None, "2026-01-01"), Verdict::NoRule(_)));
    }

    #[test]
    fn the_list_in_the_repository_can_be_read() {
        known_differences().unwrap();
    }
}
