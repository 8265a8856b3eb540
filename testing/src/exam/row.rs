//! A question's row in the tables of results: how often the first hypothesis was right, and what it said.

use std::fmt::Write as _;

use kwab::analysis::finding::Hypothesis;
use serde::{Deserialize, Serialize};

use super::Question;
use crate::results::junit::{Case, Outcome};

/// The results of all runs of one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExamRow {
    /// The planted bug, or `clean`.
    pub fault: String,
    /// How often it was asked.
    pub asked: u32,
    /// How often the first hypothesis was right.
    pub right: u32,
    /// Rule of the last first hypothesis, with the rule of the audit behind it; empty without one.
    pub rule: String,
    /// What the last first hypothesis said.
    pub first: String,
    /// The score of that hypothesis, 0 to 1; absent without a hypothesis.
    pub score: Option<f64>,
    /// How long all runs took.
    pub seconds: f64,
}

impl ExamRow {
    /// The row of a question that was not asked yet.
    #[must_use]
    pub fn of(question: &Question) -> Self {
        Self {
            fault: question.name().to_owned(),
            asked: 0,
            right: 0,
            rule: String::new(),
            first: String::new(),
            score: None,
            seconds: 0.0,
        }
    }

    /// Takes an answer.
    pub fn note(&mut self, is_right: bool, first: Option<&Hypothesis>) {
        self.right += u32::from(is_right);
        self.score = first.map(|first| first.score);
        self.rule = first.map(|first| first.about.unwrap_or(first.rule).to_owned()).unwrap_or_default();
        self.first = first.map_or("no hypothesis".to_owned(), |first| format!("{:.2} {}", first.score, first.claim));
    }

    /// The same for CI.
    #[must_use]
    pub fn case(&self) -> Case {
        let outcome = if self.right == self.asked {
            Outcome::Pass
        } else {
            Outcome::Failure(format!("right {} times of {}; last: {}", self.right, self.asked, self.first))
        };
        Case { class: "exam".to_owned(), name: self.fault.clone(), outcome }
    }
}

/// The rows as a table.
#[must_use]
pub fn table(rows: &[ExamRow]) -> String {
    let mut text = String::from("| planted bug | first hypothesis | right |\n|---|---|---:|\n");
    for row in rows {
        let (claim, rule) = (row.first.replace('|', "\\|"), &row.rule);
        let tag = format!(" [{rule}]");
        let claim = if rule.is_empty() || claim.contains(&tag) { claim } else { claim + &tag };
        let _ = writeln!(text, "| {} | {claim} | {} of {} |", row.fault, row.right, row.asked);
    }
    text
}

/// One sentence: bugs found, flakes, and what the run without a bug gave.
#[must_use]
pub fn summary(rows: &[ExamRow]) -> String {
    let bugs = || rows.iter().filter(|row| row.fault != "clean");
    let found = bugs().filter(|row| row.right == row.asked).count();
    let flakes = rows.iter().filter(|row| row.right > 0 && row.right < row.asked).count();
    let clean = match rows.iter().find(|row| row.fault == "clean") {
        Some(row) if row.right == row.asked => "the run without a bug gave no finding",
        Some(_) => "the run without a bug gave a finding",
        None => "there was no run without a bug",
    };
    let times = rows.iter().map(|row| row.asked).max().unwrap_or(0);
    format!(
        "{found} of {} bugs are named by the first hypothesis, in each of {times} boots; {flakes} flakes; {clean}.",
        bugs().count()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exam::QUESTIONS;

    #[test]
    fn a_bug_that_is_found_in_two_boots_of_three_is_a_flake_and_not_found() {
        let mut rows: Vec<ExamRow> = QUESTIONS.iter().take(2).map(ExamRow::of).collect();
        for row in &mut rows {
            row.asked = 3;
            (0..3).for_each(|time| row.note(time > 0 || row.fault == "clean", None));
        }
        assert_eq!(
            summary(&rows),
            "0 of 1 bugs are named by the first hypothesis, in each of 3 boots; 1 flakes; \
             the run without a bug gave no finding."
        );
        assert!(table(&rows).contains("| cache-freed | no hypothesis | 2 of 3 |"));
        assert!(matches!(rows[1].case().outcome, Outcome::Failure(_)));
    }
}
