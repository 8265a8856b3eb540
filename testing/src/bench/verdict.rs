//! The verdict on a ratio to Linux, faster, even, marginal or REGRESSION, by bounds in `testing/bench/table.toml`.

use std::fmt;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Up to which ratio, that ratio among it, each verdict but the last reaches.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    faster: f64,
    even: f64,
    marginal: f64,
}

/// How a row stands beside Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Clearly less than Linux needs, which every row is to be.
    Faster,
    /// As much as Linux, within what layouts and versions move.
    Even,
    /// A little more.
    Marginal,
    /// More than may be.
    Regression,
}

impl Bounds {
    /// The same; an error unless each bound is above the one before.
    pub fn checked(self) -> Result<Self> {
        let Self { faster, even, marginal } = self;
        ensure!(0.0 < faster && faster < even && even < marginal, "the bounds of verdicts do not rise");
        Ok(self)
    }

    /// The verdict on a ratio; NaN is a regression.
    pub fn judge(&self, ratio: f64) -> Standing {
        let bounds =
            [(self.faster, Standing::Faster), (self.even, Standing::Even), (self.marginal, Standing::Marginal)];
        bounds.into_iter().find(|(bound, _)| ratio <= *bound).map_or(Standing::Regression, |(_, standing)| standing)
    }

    /// How many of the ratios have each verdict, in one line.
    pub fn summary(&self, ratios: impl Iterator<Item = f64>) -> String {
        let mut counts = [0; 4];
        ratios.for_each(|ratio| counts[self.judge(ratio) as usize] += 1);
        let [faster, even, marginal, worse] = counts;
        format!("{faster} faster, {even} even, {marginal} marginal, {worse} REGRESSION")
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Faster => "faster",
            Self::Even => "even",
            Self::Marginal => "marginal",
            Self::Regression => "REGRESSION",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { faster: 0.9, even: 1.05, marginal: 1.2 };

    #[test]
    fn a_bound_belongs_to_the_better_verdict_and_no_number_is_a_regression() {
        let judged = [0.1, 0.9, 0.91, 1.05, 1.06, 1.2, 1.21, f64::NAN].map(|ratio| BOUNDS.judge(ratio).to_string());
        let wanted =
            ["faster", "faster", "even", "even", "marginal", "marginal", "REGRESSION", "REGRESSION"].map(String::from);
        assert_eq!(judged, wanted);
        let summary = BOUNDS.summary([0.5, 0.6, 1.0, 3.0].into_iter());
        assert_eq!(summary, "2 faster, 1 even, 0 marginal, 1 REGRESSION");
    }

    #[test]
    fn bounds_that_do_not_rise_are_refused_and_those_of_the_table_do() {
        assert!(Bounds { even: 0.9, ..BOUNDS }.checked().is_err());
        assert!(Bounds { faster: f64::NAN, ..BOUNDS }.checked().is_err());
        let bounds = crate::bench::bounds().unwrap();
        assert_eq!(bounds.judge(0.9), Standing::Faster, "the goal of every row");
    }
}
