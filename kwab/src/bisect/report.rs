//! What a bisection found, in words and as the JSON that `kwab bisect --json` prints.
//!
//! The form is a contract: its schema is checked in, and [`SCHEMA`] rises when it changes.

use schemars::JsonSchema;
use serde::Serialize;

use super::Verdict;

/// The version of the form.
pub const SCHEMA: u32 = 1;

/// What `kwab bisect --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BisectReport {
    /// Version of this form.
    pub schema: u32,
    /// The signature of the crash that was looked for; absent when the command's status decided, or nothing crashed.
    pub signature: Option<String>,
    /// Every setting that was tried, in order.
    pub tried: Vec<Tried>,
    /// How the search ended.
    pub outcome: Outcome,
    /// The setting on the good side of the boundary.
    pub good: Option<String>,
    /// The setting on the bad side of it, from which on the crash happens; without an order, the first that crashes.
    pub bad: Option<String>,
}

/// A setting, and what its runs did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tried {
    /// `NAME=VALUE`; empty when the command has no parameter.
    pub setting: String,
    /// What it did.
    pub verdict: Verdict,
    /// Runs with it.
    pub runs: u32,
    /// How many of them crashed as looked for: of several, the rate of a flake.
    pub bad_runs: u32,
    /// Signatures of all crashes that were seen.
    pub signatures: Vec<String>,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The crash begins between two neighbours, `good` and `bad`.
    Found,
    /// It begins somewhere between `good` and `bad`; none of those between could be judged.
    Between,
    /// It happens at both ends: there is no boundary.
    Always,
    /// It happens at neither end, or with no setting.
    Never,
    /// An end cannot be judged, so nothing can be searched.
    EndSkipped,
    /// Settings without an order were tried, and some crash.
    Some,
    /// There was one setting; its verdict is the answer.
    Single,
}

impl BisectReport {
    /// The conclusion as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let (good, bad) = (self.good.as_deref().unwrap_or("?"), self.bad.as_deref().unwrap_or("?"));
        match self.outcome {
            Outcome::Found => format!("the crash begins at {bad} ({good} is good)"),
            Outcome::Between => {
                format!(
                    "the crash begins between {good} (good) and {bad} (bad); the values between them cannot be judged"
                )
            }
            Outcome::Always => "the crash happens at both endpoints: there is no boundary between them".to_owned(),
            Outcome::Never => "the crash does not happen with any setting that was tried".to_owned(),
            Outcome::EndSkipped => "an endpoint of the range cannot be judged".to_owned(),
            Outcome::Some => {
                let bad = self.tried.iter().filter(|tried| tried.verdict == Verdict::Bad);
                format!(
                    "the crash happens with {}",
                    bad.map(|tried| tried.setting.as_str()).collect::<Vec<_>>().join(", ")
                )
            }
            Outcome::Single => String::new(),
        }
    }
}

impl Tried {
    /// One row: the setting, what it did, how often, and as which crash.
    #[must_use]
    pub fn row(&self) -> String {
        let rate = if self.runs > 1 { format!("  {} of {} runs", self.bad_runs, self.runs) } else { String::new() };
        let row = format!("{:<24} {:<5}{rate}  {}", self.setting, self.verdict.name(), self.signatures.join(" "));
        row.trim_end().to_owned()
    }
}
