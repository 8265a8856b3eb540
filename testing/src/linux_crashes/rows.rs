//! The rows of a run: per way to die what `kwab` got right, and what all of them come to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::score::Answer;
use super::ways::Check;
use crate::results::junit::{Case, Outcome};

/// The class of a boot in which nothing dies.
pub const HEALTHY: &str = "healthy";

/// A row of the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WayRow {
    /// The way to die, or the healthy boot.
    pub name: String,
    /// The true class; [`HEALTHY`] of a healthy boot.
    pub class: String,
    /// Whether Linux printed what was asked for.
    pub provoked: bool,
    /// The checks for which the way has a truth.
    pub checks: BTreeMap<Check, Cell>,
    /// What `kwab` said.
    pub answer: Answer,
}

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// Passed, and not listed as open.
    Ok,
    /// Passed, although it is listed as not passed yet.
    Stale,
    /// Not passed, as it is listed.
    Open,
    /// Not passed, and not listed as open.
    Wrong,
}

impl Cell {
    /// The cell of a check that passed or not, and is listed as open or not.
    pub fn of(passed: bool, open: bool) -> Self {
        match (passed, open) {
            (true, false) => Self::Ok,
            (true, true) => Self::Stale,
            (false, true) => Self::Open,
            (false, false) => Self::Wrong,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Stale => "ok (open)",
            Self::Open => "open",
            Self::Wrong => "WRONG",
        }
    }
}

impl WayRow {
    /// The words of the columns behind the class.
    pub fn cells(&self) -> [&'static str; 7] {
        let provoked = if self.provoked { "ok" } else { "WRONG" };
        let cell = |check| self.checks.get(&check).map_or("-", |cell| cell.word());
        let [recognised, class, function, cpu, comm, line] = Check::ALL.map(cell);
        [provoked, recognised, class, function, cpu, comm, line]
    }

    /// The row as a test case of a judge.
    pub fn case(&self, judge: &str) -> Case {
        let wrong = self.checks.iter().filter(|(_, cell)| **cell == Cell::Wrong).map(|(check, _)| check.name());
        let unprovoked = (!self.provoked).then_some("not provoked");
        let wrong: Vec<&str> = unprovoked.into_iter().chain(wrong).collect();
        let outcome = match wrong.as_slice() {
            [] => Outcome::Pass,
            _ => Outcome::Failure(format!("{} ({})", wrong.join(", "), self.answer.headline)),
        };
        Case { class: judge.to_owned(), name: self.name.clone(), outcome }
    }
}

/// The titles of the columns behind the class.
pub fn columns() -> [&'static str; 7] {
    let [recognised, class, function, cpu, comm, line] = Check::ALL.map(Check::name);
    ["provoked", recognised, class, function, cpu, comm, line]
}

/// How many rows pass each check, of those that have a truth for it.
fn counts(rows: &[WayRow]) -> [String; 7] {
    let died = || rows.iter().filter(|row| row.class != HEALTHY);
    let provoked = format!("{}/{}", died().filter(|row| row.provoked).count(), died().count());
    let of = |check: Check| {
        let cells: Vec<Cell> = died().filter_map(|row| row.checks.get(&check).copied()).collect();
        let right = cells.iter().filter(|cell| matches!(cell, Cell::Ok | Cell::Stale)).count();
        format!("{right}/{}", cells.len())
    };
    let [recognised, class, function, cpu, comm, line] = Check::ALL.map(of);
    [provoked, recognised, class, function, cpu, comm, line]
}

/// What the healthy boots come to.
fn healthy(rows: &[WayRow]) -> String {
    let lived: Vec<&WayRow> = rows.iter().filter(|row| row.class == HEALTHY).collect();
    let misread = lived.iter().filter(|row| row.answer.died).count();
    format!("{} healthy boots, {misread} misread as deaths", lived.len())
}

/// The last lines of a table on a terminal.
pub fn total(rows: &[WayRow]) -> String {
    let cells = counts(rows).map(|count| format!("{count:<11}")).concat();
    format!("{:<20} {:<24} {}\n{}", "in all", "", cells.trim_end(), healthy(rows))
}

/// The table in Markdown, with what each line of it comes to.
pub fn markdown(rows: &[WayRow]) -> String {
    let mut text = format!("| way | class | {} |\n|---|---{}|\n", columns().join(" | "), "|---".repeat(7));
    for row in rows.iter().filter(|row| row.class != HEALTHY) {
        let _ = writeln!(text, "| {} | {} | {} |", row.name, row.class, row.cells().join(" | "));
    }
    let _ = write!(text, "| **in all** | | {} |\n\n{}.\n", counts(rows).join(" | "), healthy(rows));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, class: &str, checks: &[(Check, Cell)], died: bool) -> WayRow {
        let answer = Answer { died, ..Answer::default() };
        let (name, class) = (name.to_owned(), class.to_owned());
        WayRow { name, class, provoked: true, checks: checks.iter().copied().collect(), answer }
    }

    #[test]
    fn a_wrong_cell_counts_against_its_column_and_a_missing_one_not() {
        let rows = [
            row("a", "oops", &[(Check::Recognised, Cell::Ok), (Check::Cpu, Cell::Wrong)], true),
            row("b", "hang", &[(Check::Recognised, Cell::Stale)], true),
            row("boot", HEALTHY, &[(Check::Recognised, Cell::Wrong)], true),
        ];
        let text = markdown(&rows);
        assert!(text.contains("| a | oops | ok | ok | - | - | WRONG | - | - |\n"), "{text}");
        assert!(text.contains("| **in all** | | 2/2 | 2/2 | 0/0 | 0/0 | 0/1 | 0/0 | 0/0 |\n"), "{text}");
        assert!(text.ends_with("1 healthy boots, 1 misread as deaths.\n"), "{text}");
    }
}
