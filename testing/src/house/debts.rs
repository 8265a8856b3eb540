//! Keeps what the rules about language still tolerate: a number per folder and rule, which may only shrink.
//!
//! `testing/language.toml` has one entry per folder that owes something. [`settle`] drops the violations of a folder as
//! long as there are no more of them than it owes; one more, and all are printed. A debt that is paid must leave the
//! table. A file belongs to the entry with the longest matching folder, so that a crate inside a crate can have its
//! own.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{House, Violation};

/// Where the debts are written down.
const TABLE: &str = "testing/language.toml";

/// The content of the table file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// One entry per folder that owes something.
    #[serde(default)]
    debt: Vec<Debt>,
}

/// What one folder owes.
#[derive(Debug, Deserialize)]
struct Debt {
    /// The folder, or the file, relative to the workspace.
    root: String,
    /// The number of violations that are tolerated, by name of the rule.
    #[serde(flatten)]
    owed: BTreeMap<String, usize>,
}

impl Table {
    /// Reads the table; without the file nothing is owed.
    pub(super) fn read(house: &House) -> Result<Self> {
        house.text(TABLE).map_or_else(|_| Ok(Self::default()), Self::parse)
    }

    fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).with_context(|| format!("reading {TABLE}"))
    }

    /// The entry that a file belongs to.
    fn of(&self, path: &str) -> Option<usize> {
        let holds =
            |debt: &Debt| path.strip_prefix(debt.root.as_str()).is_some_and(|rest| rest.starts_with(['/', ':']));
        let entries = self.debt.iter().enumerate().filter(|(_, debt)| holds(debt));
        entries.max_by_key(|(_, debt)| debt.root.len()).map(|(at, _)| at)
    }

    /// The violations of `rule` that are not owed, and the debts that are paid.
    pub(super) fn settle(&self, rule: &str, found: Vec<Violation>) -> Vec<Violation> {
        let mut by_entry: BTreeMap<Option<usize>, Vec<Violation>> = BTreeMap::new();
        for violation in found {
            by_entry.entry(self.of(&violation.location)).or_default().push(violation);
        }
        let mut left = by_entry.remove(&None).unwrap_or_default();
        for (at, debt) in self.debt.iter().enumerate() {
            let owed = debt.owed.get(rule).copied().unwrap_or(0);
            let found = by_entry.remove(&Some(at)).unwrap_or_default();
            if found.is_empty() && owed > 0 {
                left.push(Violation::new(TABLE, format!("{} no longer owes {rule}: take the number out", debt.root)));
            } else if found.len() > owed {
                let text = format!("{} violations of `{rule}`, {owed} are owed", found.len());
                left.push(Violation::new(&debt.root, text));
                left.extend(found);
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWED: &str = "[[debt]]\nroot = \"a\"\nwords = 2\n\n[[debt]]\nroot = \"a/b\"\nwidth = 1\n";

    fn settled(rule: &str, locations: &[&str]) -> Vec<String> {
        let found = locations.iter().map(|location| Violation::new(*location, "it")).collect();
        let left = Table::parse(OWED).unwrap().settle(rule, found);
        left.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_debt_may_shrink_and_not_grow() {
        assert!(settled("words", &["a/x.rs:1"]).is_empty());
        assert!(settled("words", &["a/x.rs:1", "a/y.rs:2"]).is_empty());
        let grown = settled("words", &["a/x.rs:1", "a/y.rs:2", "a/y.rs:3"]);
        assert_eq!(grown[0], "a: 3 violations of `words`, 2 are owed");
        assert_eq!(grown.len(), 4);
    }

    #[test]
    fn a_paid_debt_leaves_the_table() {
        assert_eq!(settled("words", &[]), ["testing/language.toml: a no longer owes words: take the number out"]);
    }

    #[test]
    fn a_file_is_judged_by_the_innermost_folder() {
        assert_eq!(settled("width", &["a/b/x.rs:1", "a/b/x.rs:2"])[0], "a/b: 2 violations of `width`, 1 are owed");
        assert_eq!(
            settled("width", &["a/bc/x.rs:1", "a/b/x.rs:1"]),
            ["a: 1 violations of `width`, 0 are owed", "a/bc/x.rs:1: it"]
        );
    }

    #[test]
    fn a_file_outside_all_folders_owes_nothing() {
        assert_eq!(settled("words", &["c/x.rs:1", "a/x.rs:1"]), ["c/x.rs:1: it"]);
    }
}
