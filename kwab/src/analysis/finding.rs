//! What an analysis concludes: claims with scores, the evidence they rest on, what speaks against them, what to run next.
//!
//! A score is one minus the product of what each piece of evidence leaves open, times what each counter-argument leaves:
//! two independent pieces of weight 0.5 make 0.75. Every weight can be shown, so every score can be explained.

use kwab_format::SectionKind;
use schemars::JsonSchema;
use serde::Serialize;

use super::dump::{Case, RecordRef};
pub use super::evidence::Evidence;

/// What may have happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Hypothesis {
    /// The rule that says so.
    pub rule: &'static str,
    /// What kind of bug it is.
    pub class: &'static str,
    /// The rule of another analysis that the claim comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<&'static str>,
    /// The claim.
    pub claim: String,
    /// How well the dump supports it, from 0 to 1.
    pub score: f64,
    /// What it rests on, strongest first.
    pub evidence: Vec<Evidence>,
    /// What speaks against it.
    pub against: Vec<Evidence>,
    /// What to run next.
    pub next: Vec<String>,
    /// What is lost or damaged that it rests on; its score is lowered for each.
    pub weakened: Vec<String>,
}

/// What each lost kind of section leaves of a score.
pub const WEAKENED: f64 = 0.8;
/// No claim is certain: the best score.
pub const BEST: f64 = 0.99;

/// What a rule brings into each of its hypotheses.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name.
    pub id: &'static str,
    /// The kind of bug.
    pub class: &'static str,
    /// The kinds of section its conclusion rests on.
    pub rests_on: &'static [SectionKind],
    /// What to run next; `RULE` stands for what the claim is about.
    pub next: &'static [&'static str],
}

/// A hypothesis in the making, as rules build it.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    text: String,
    evidence: Vec<Evidence>,
    against: Vec<Evidence>,
    about: Option<&'static str>,
}

impl Claim {
    /// Begins with what is claimed.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Adds a fact that supports it.
    #[must_use]
    pub fn because(mut self, weight: f64, text: impl Into<String>, at: Option<RecordRef>) -> Self {
        self.evidence.push(Evidence { text: text.into(), at, weight });
        self
    }

    /// Adds a supporting fact when there is one.
    #[must_use]
    pub fn because_if(self, weight: f64, fact: Option<(String, Option<RecordRef>)>) -> Self {
        match fact {
            Some((text, at)) => self.because(weight, text, at),
            None => self,
        }
    }

    /// Adds a fact that speaks against it.
    #[must_use]
    pub fn but(mut self, weight: f64, text: impl Into<String>, at: Option<RecordRef>) -> Self {
        self.against.push(Evidence { text: text.into(), at, weight });
        self
    }

    /// Names the rule of another analysis that the claim comes from.
    #[must_use]
    pub const fn about(mut self, rule: &'static str) -> Self {
        self.about = Some(rule);
        self
    }

    /// The hypothesis, its score lowered by what is lost of the sections it rests on.
    #[must_use]
    pub fn finish(mut self, rule: Named, case: &Case<'_>) -> Hypothesis {
        let open: f64 = self.evidence.iter().map(|fact| 1.0 - fact.weight.clamp(0.0, 1.0)).product();
        let left: f64 = self.against.iter().map(|fact| 1.0 - fact.weight.clamp(0.0, 1.0)).product();
        let weakened = case.weakness(rule.rests_on);
        let damage = if weakened.is_empty() { 1.0 } else { WEAKENED };
        let score = ((1.0 - open).min(BEST) * left * damage * 100.0).round() / 100.0;
        self.evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let Self { text, evidence, against, about } = self;
        let next = rule.next.iter().map(|command| command.replace("RULE", about.unwrap_or_default())).collect();
        Hypothesis { rule: rule.id, class: rule.class, about, claim: text, score, evidence, against, next, weakened }
    }
}

impl Hypothesis {
    /// How the score comes about, one line per factor.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let row = |sign: char, fact: &Evidence| {
            let at = fact.at.map(|at| format!("  ({at})")).unwrap_or_default();
            format!("{sign}{:.2}  {}{at}", fact.weight, fact.text)
        };
        let mut lines: Vec<String> = self.evidence.iter().map(|fact| row('+', fact)).collect();
        lines.extend(self.against.iter().map(|fact| row('-', fact)));
        lines.extend(self.weakened.iter().map(|why| format!("×{WEAKENED:.2}  {why}")));
        lines.push(format!("={:.2}  1 − the product of what each + leaves open, times what each - leaves", self.score));
        lines
    }
}
