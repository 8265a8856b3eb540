//! What a contract run leaves for machines: every report with its verdict as JSON, and JUnit's XML for CI.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::verdict::Verdict;
use crate::jobs::Report;
use crate::results::junit::{Case, Outcome};
use crate::results::{self, Circumstances};

/// The result of one contract under both kernels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContractRow {
    /// `<area>/<behaviour>` of the contract.
    pub name: String,
    /// What the judge says.
    pub verdict: Verdict,
    /// What our kernel did.
    pub ours: Report,
    /// What Linux did.
    pub linux: Report,
}

/// Writes `build/results/contracts.json` and `build/results/contracts.xml`, or the partial ones.
pub fn write(rows: &[ContractRow], complete: bool, began: Circumstances) -> Result<()> {
    results::keep("contracts", complete, began, rows)?;
    results::keep_junit("contracts", complete, &rows.iter().map(case).collect::<Vec<_>>())
}

fn case(row: &ContractRow) -> Case {
    let (area, name) = row.name.split_once('/').unwrap_or(("", &row.name));
    let text = row.verdict.to_string();
    let outcome = match &row.verdict {
        Verdict::Same | Verdict::Unsteady(_) => Outcome::Pass,
        Verdict::Known(_) => Outcome::Skipped(text),
        _ => Outcome::Failure(text),
    };
    Case { class: area.to_owned(), name: name.to_owned(), outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::End;

    #[test]
    fn a_known_difference_is_left_out_and_an_unknown_one_fails() {
        let report = Report { name: "a/b".into(), lines: Vec::new(), end: End::Exit(0) };
        let row = |verdict| ContractRow { name: "a/b".into(), verdict, ours: report.clone(), linux: report.clone() };
        assert_eq!(case(&row(Verdict::Known("x".into()))).outcome, Outcome::Skipped("x".into()));
        assert_eq!(case(&row(Verdict::Differs("y".into()))).outcome, Outcome::Failure("y".into()));
        assert_eq!(case(&row(Verdict::Same)).class, "a");
    }
}
