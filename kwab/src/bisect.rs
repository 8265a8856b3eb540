//! Finds the value of a boot parameter from which on a crash happens: binary search over ordered values.
//!
//! [`Search`] only decides which value to try next and what the answers mean; booting is the caller's. The values are
//! those of a numeric range or a list ([`Values`]). Either end may be the bad one. A value that cannot be judged is
//! skipped as `git bisect` skips a commit: its neighbours are tried, and when only skipped ones are left, the answer is
//! a range.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub mod report;

/// The values of a parameter, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// The parameter's name.
    pub name: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Range(u64, u64),
    List(Vec<String>),
}

/// Why a description of values is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ValuesError {
    /// There is no `=`.
    #[error("{0:?} names no values; write NAME=LOW..HIGH or NAME=A,B,C")]
    NoValues(String),
    /// The range is empty or no range.
    #[error("expected a range with at least two numbers, got {0:?}")]
    NoRange(String),
    /// There is nothing to search among.
    #[error("{0:?} has fewer than two values")]
    TooFew(String),
}

impl Values {
    /// Reads `NAME=LOW..HIGH` (both included) or `NAME=A,B,C`.
    ///
    /// # Errors
    /// [`ValuesError`] when it is neither.
    pub fn parse(text: &str) -> Result<Self, ValuesError> {
        let (name, values) = text.split_once('=').ok_or_else(|| ValuesError::NoValues(text.to_owned()))?;
        if name.is_empty() || values.is_empty() {
            return Err(ValuesError::NoValues(text.to_owned()));
        }
        let kind = match values.split_once("..") {
            Some((low, high)) => {
                let (low, high) = (number(low), number(high.trim_start_matches('=')));
                match (low, high) {
                    (Some(low), Some(high)) if low < high => Kind::Range(low, high),
                    _ => return Err(ValuesError::NoRange(values.to_owned())),
                }
            }
            None => {
                let list: Vec<String> = values.split(',').map(str::to_owned).collect();
                if list.len() < 2 {
                    return Err(ValuesError::TooFew(values.to_owned()));
                }
                Kind::List(list)
            }
        };
        Ok(Self { name: name.to_owned(), kind })
    }

    /// The last index.
    #[must_use]
    pub fn last(&self) -> u64 {
        match &self.kind {
            Kind::Range(low, high) => high - low,
            Kind::List(list) => list.len() as u64 - 1,
        }
    }

    /// The parameter with the value of an index, as on a command line; the last one for an index beyond it.
    #[must_use]
    pub fn setting(&self, index: u64) -> String {
        let index = index.min(self.last());
        let value = match &self.kind {
            Kind::Range(low, _) => (low + index).to_string(),
            Kind::List(list) => usize::try_from(index).ok().and_then(|at| list.get(at)).cloned().unwrap_or_default(),
        };
        format!("{}={value}", self.name)
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// What a value did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The crash did not happen.
    Good,
    /// The crash happened.
    Bad,
    /// It cannot be said.
    Skip,
}

impl Verdict {
    /// Its name, as `git bisect` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Skip => "skip",
        }
    }

    /// The status by which `git bisect run` knows it.
    #[must_use]
    pub const fn status(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Skip => 125,
        }
    }

    /// What a command's status means to `git bisect run`; `None` is a signal, which ends a bisection there.
    #[must_use]
    pub const fn of_status(status: Option<i32>) -> Self {
        match status {
            Some(0) => Self::Good,
            Some(1..=124 | 126..=127) => Self::Bad,
            _ => Self::Skip,
        }
    }

    /// Of several runs with one value: a crash that happens at times happens.
    #[must_use]
    pub fn of_runs(runs: &[Self]) -> Self {
        if runs.contains(&Self::Bad) {
            Self::Bad
        } else if runs.contains(&Self::Good) {
            Self::Good
        } else {
            Self::Skip
        }
    }
}

/// Where a search stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Try this index next.
    Try(u64),
    /// The crash begins between two neighbours.
    Found {
        /// Where it does not happen.
        good: u64,
        /// Where it does.
        bad: u64,
    },
    /// It begins somewhere between; all in between were skipped.
    Between {
        /// Where it does not happen.
        good: u64,
        /// Where it does.
        bad: u64,
    },
    /// Both ends say the same: there is nothing to search.
    Same(Verdict),
    /// An end cannot be judged.
    EndSkipped(u64),
}

/// A binary search.
#[derive(Clone, Debug)]
pub struct Search {
    last: u64,
    verdicts: BTreeMap<u64, Verdict>,
}

impl Search {
    /// Over the indices 0 to `last`.
    #[must_use]
    pub const fn new(last: u64) -> Self {
        Self { last, verdicts: BTreeMap::new() }
    }

    /// Notes what an index did.
    pub fn record(&mut self, index: u64, verdict: Verdict) {
        self.verdicts.insert(index, verdict);
    }

    /// What is to be done now.
    #[must_use]
    pub fn step(&self) -> Step {
        let (Some(&first), Some(&last)) = (self.verdicts.get(&0), self.verdicts.get(&self.last)) else {
            return Step::Try(if self.verdicts.contains_key(&0) { self.last } else { 0 });
        };
        match (first, last) {
            (Verdict::Skip, _) => return Step::EndSkipped(0),
            (_, Verdict::Skip) => return Step::EndSkipped(self.last),
            (first, last) if first == last => return Step::Same(first),
            _ => {}
        }
        // The nearest pair of unlike verdicts, looking only at those that say something.
        let told: Vec<(u64, Verdict)> =
            self.verdicts.iter().map(|(at, verdict)| (*at, *verdict)).filter(|(_, v)| *v != Verdict::Skip).collect();
        let edge = told.windows(2).find(|pair| pair[0].1 != pair[1].1);
        let (low, high) = edge.map_or((0, self.last), |pair| (pair[0].0, pair[1].0));
        let (good, bad) = if self.verdicts.get(&low) == Some(&Verdict::Good) { (low, high) } else { (high, low) };
        if high - low == 1 {
            return Step::Found { good, bad };
        }
        match self.untried_near_middle(low, high) {
            Some(next) => Step::Try(next),
            None => Step::Between { good, bad },
        }
    }

    /// The untried index between two that is nearest to their middle.
    fn untried_near_middle(&self, low: u64, high: u64) -> Option<u64> {
        let middle = low + (high - low) / 2;
        let inside = |at: &u64| *at > low && *at < high && !self.verdicts.contains_key(at);
        // Each skipped value pushes the next try one further away, so this ends after as many steps as there were
        // tries.
        (0..=self.verdicts.len() as u64 + 1)
            .flat_map(|away| [middle.checked_sub(away), middle.checked_add(away)])
            .flatten()
            .find(inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(last: u64, judge: impl Fn(u64) -> Verdict) -> (Step, usize) {
        let mut search = Search::new(last);
        for tries in 0..2000 {
            match search.step() {
                Step::Try(index) => {
                    assert!(!search.verdicts.contains_key(&index), "{index} is tried twice");
                    search.record(index, judge(index));
                }
                end => return (end, tries),
            }
        }
        panic!("no end");
    }

    fn from(first_bad: u64) -> impl Fn(u64) -> Verdict {
        move |index| if index >= first_bad { Verdict::Bad } else { Verdict::Good }
    }

    #[test]
    fn every_boundary_of_a_range_is_found_in_a_logarithm_of_tries() {
        for bad in 1..=512 {
            let (end, tries) = search(512, from(bad));
            assert_eq!(end, Step::Found { good: bad - 1, bad });
            assert!(tries <= 12, "{tries} tries");
        }
    }

    #[test]
    fn a_crash_that_happens_only_with_small_values_is_found_too() {
        let (end, _) = search(100, |index| if index < 40 { Verdict::Bad } else { Verdict::Good });
        assert_eq!(end, Step::Found { good: 40, bad: 39 });
    }

    #[test]
    fn values_that_cannot_be_judged_leave_a_range_and_never_an_endless_search() {
        let judge = |index| if (30..60).contains(&index) { Verdict::Skip } else { from(45)(index) };
        assert_eq!(search(100, judge).0, Step::Between { good: 29, bad: 60 });
        assert_eq!(
            search(100, |index| if index == 50 { Verdict::Skip } else { from(70)(index) }).0,
            Step::Found { good: 69, bad: 70 }
        );
        assert_eq!(search(9, |_| Verdict::Skip).0, Step::EndSkipped(0));
    }

    #[test]
    fn equal_ends_are_nothing_to_search() {
        assert_eq!(search(9, |_| Verdict::Bad), (Step::Same(Verdict::Bad), 2));
        assert_eq!(search(1, from(1)).0, Step::Found { good: 0, bad: 1 });
    }

    #[test]
    fn a_crash_in_one_of_ten_runs_is_a_crash_and_unknown_runs_decide_nothing() {
        use Verdict::{Bad, Good, Skip};
        assert_eq!(Verdict::of_runs(&[Good, Skip, Bad, Good]), Bad);
        assert_eq!(Verdict::of_runs(&[Skip, Good]), Good);
        assert_eq!(Verdict::of_runs(&[Skip, Skip]), Skip);
        for verdict in [Good, Bad, Skip] {
            assert_eq!(Verdict::of_status(Some(i32::from(verdict.status()))), verdict);
        }
        assert_eq!(Verdict::of_status(Some(255)), Skip);
    }

    #[test]
    fn ranges_and_lists_are_read_and_nonsense_is_refused() {
        let range = Values::parse("prefault_max=0..512").unwrap();
        assert_eq!((range.last(), range.setting(256)), (512, "prefault_max=256".to_owned()));
        let list = Values::parse("inject=a,b,c").unwrap();
        assert_eq!((list.last(), list.setting(2)), (2, "inject=c".to_owned()));
        assert_eq!(Values::parse("x=5..5"), Err(ValuesError::NoRange("5..5".to_owned())));
        assert_eq!(Values::parse("x=alone"), Err(ValuesError::TooFew("alone".to_owned())));
        assert_eq!(Values::parse("x"), Err(ValuesError::NoValues("x".to_owned())));
        assert_eq!(Values::parse("x=0..18446744073709551615").unwrap().last(), u64::MAX);
    }
}
