//! What an analysis concludes: claims with scores, the evidence they rest on, what speaks against them, what to run
//! next.
//!
//! A score is one minus the product of what each piece of evidence leaves open, times what each counter-argument
//! leaves: two independent pieces of weight 0.5 make 0.75. Every weight can be shown, so every score can be explained.
//!
//! Symptoms do not add up to a cause: without evidence that proves the mechanism ([`Claim::proven`]) a score ends at
//! [`SYMPTOM`]. A score is an estimate of how often a first hypothesis with that score is right.

use kwab_format::SectionKind;
use schemars::JsonSchema;
use serde::Serialize;

use super::blame::Guilty;
pub use super::evidence::{Evidence, ListedFunction, Statement};
use crate::model::{Case, RecordRef};

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
    /// The claim as a sentence.
    pub claim: String,
    /// How well the dump supports it, from 0 to 1.
    pub score: f64,
    /// Whether evidence proves the mechanism; without it the claim is about a symptom, and the score ends at 0.69.
    pub proven: bool,
    /// The function to look at first, when one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<Guilty>,
    /// What it rests on, strongest first.
    pub evidence: Vec<Evidence>,
    /// What speaks against it.
    pub against: Vec<Evidence>,
    /// What to run next.
    pub next: Vec<String>,
    /// What is lost or damaged that it rests on; its score is lowered for each.
    pub weakened: Vec<String>,
    /// Whether it tells of a bug, or of something done on purpose.
    #[serde(skip)]
    pub is_bug: bool,
}

/// What each lost kind of section leaves of a score.
pub const WEAKENED: f64 = 0.8;
/// No claim is certain: the best score.
pub const BEST: f64 = 0.99;
/// The best score of a claim whose mechanism nothing proves.
pub const SYMPTOM: f64 = 0.69;

/// What a rule brings into each of its hypotheses.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Name of the rule, as the report prints it.
    pub id: &'static str,
    /// The kind of bug.
    pub class: &'static str,
    /// The kinds of section its conclusion rests on.
    pub rests_on: &'static [SectionKind],
    /// What to run next; `RULE` stands for what the claim is about.
    pub next: &'static [&'static str],
    /// Whether it tells of a bug, or of something done on purpose.
    pub is_bug: bool,
}

/// A hypothesis in the making, as rules build it.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    text: String,
    evidence: Vec<Evidence>,
    against: Vec<Evidence>,
    about: Option<&'static str>,
    proven: bool,
    function: Option<Guilty>,
}

impl Claim {
    /// Begins with what is claimed.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Adds a fact that supports it.
    #[must_use]
    pub fn because(mut self, weight: f64, fact: impl Into<Statement>, at: Option<RecordRef>) -> Self {
        self.evidence.push(Evidence::of(fact, at, weight));
        self
    }

    /// Adds a supporting fact when there is one.
    #[must_use]
    pub fn because_if(self, weight: f64, fact: Option<(impl Into<Statement>, Option<RecordRef>)>) -> Self {
        match fact {
            Some((fact, at)) => self.because(weight, fact, at),
            None => self,
        }
    }

    /// Adds a fact that proves how it came about, so that the claim is more than a symptom.
    #[must_use]
    pub fn proven(mut self, weight: f64, fact: impl Into<Statement>, at: Option<RecordRef>) -> Self {
        self.proven = true;
        self.because(weight, fact, at)
    }

    /// Names the function to look at first, when one is known.
    #[must_use]
    pub fn blames(mut self, function: Option<Guilty>) -> Self {
        self.function = function.or(self.function);
        self
    }

    /// Adds a fact that speaks against it.
    #[must_use]
    pub fn but(mut self, weight: f64, fact: impl Into<Statement>, at: Option<RecordRef>) -> Self {
        self.against.push(Evidence::of(fact, at, weight));
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
        self.evidence.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let Self { text, evidence, against, about, proven, function } = self;
        let next = rule.next.iter().map(|command| command.replace("RULE", about.unwrap_or_default())).collect();
        let mut found = Hypothesis {
            rule: rule.id,
            class: rule.class,
            about,
            claim: text,
            score: 0.0,
            proven,
            function,
            evidence,
            against,
            next,
            weakened: case.weakness(rule.rests_on),
            is_bug: rule.is_bug,
        };
        found.weigh();
        found
    }
}

impl Hypothesis {
    /// Computes the score from what speaks for and against the claim.
    fn weigh(&mut self) {
        let left_by =
            |facts: &[Evidence]| -> f64 { facts.iter().map(|fact| 1.0 - fact.weight.clamp(0.0, 1.0)).product() };
        let damage = if self.weakened.is_empty() { 1.0 } else { WEAKENED };
        let best = if self.proven { BEST } else { SYMPTOM };
        let score = (1.0 - left_by(&self.evidence)).min(best) * left_by(&self.against) * damage;
        self.score = (score * 100.0).round() / 100.0;
    }

    /// Shows on whose behalf the function to look at was called, out to the system call if it was one.
    pub(super) fn show_stack(&mut self, call: Option<&str>) {
        let Some(guilty) = &self.function else { return };
        if guilty.callers.is_empty() && guilty.called.is_empty() {
            return;
        }
        let call = call.map(|call| format!("the system call {call}"));
        let own = guilty.in_words();
        let path: Vec<&str> =
            guilty.called.iter().chain([&own]).chain(&guilty.callers).chain(&call).map(String::as_str).collect();
        self.evidence.push(Evidence::context(format!("called: {}", path.join(" ← "))));
    }

    /// How the score comes about, one line per factor.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let row = |sign: char, fact: &Evidence| {
            let at = fact.at.map(|at| format!("  ({at})")).unwrap_or_default();
            format!("{sign}{:.2}  {}{at}", fact.weight, fact.head())
        };
        let mut lines = Vec::new();
        for fact in &self.evidence {
            lines.push(row('+', fact));
            lines.extend(fact.functions.iter().map(|function| format!("         {}", function.in_words())));
        }
        lines.extend(self.against.iter().map(|fact| row('-', fact)));
        lines.extend(self.weakened.iter().map(|why| format!("×{WEAKENED:.2}  {why}")));
        lines.push(format!("={:.2}  (1 − the product of (1 − each +)) × the product of (1 − each -)", self.score));
        if self.proven {
            lines.push(
                "       a + above proves the mechanism: of hypotheses with this score, about that share is right"
                    .to_owned(),
            );
        } else {
            lines.push(format!("≤{SYMPTOM:.2}  no + proves the mechanism: a symptom alone is not scored higher"));
        }
        lines
    }
}
