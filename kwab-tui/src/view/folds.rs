//! Decides which groups of the list of dumps show only their heading.

use std::collections::BTreeSet;

/// Groups with more dumps than this are folded until the user wants to see them, as `kwab list` does.
const SHOWN: usize = 8;

/// Which groups show only their heading.
#[derive(Debug, Clone, Default)]
pub struct Folds {
    /// Whether all are folded, or none; absent: the long ones.
    all: Option<bool>,
    /// Groups of which the user wanted the other.
    other: BTreeSet<String>,
}

impl Folds {
    /// Folds a group, or shows its dumps.
    pub fn toggle(&mut self, group: String) {
        if !self.other.remove(&group) {
            self.other.insert(group);
        }
    }

    /// Folds all groups, or none.
    pub fn toggle_all(&mut self) {
        self.all = Some(self.all != Some(true));
        self.other.clear();
    }

    /// Whether a group with so many dumps shows only its heading.
    #[must_use]
    pub(super) fn is_folded(&self, group: &str, dumps: usize) -> bool {
        self.all.unwrap_or(dumps > SHOWN) != self.other.contains(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_groups_are_folded_until_the_user_says_otherwise() {
        let mut folds = Folds::default();
        let both = |folds: &Folds| (folds.is_folded("short", SHOWN), folds.is_folded("long", SHOWN + 1));
        assert_eq!(both(&folds), (false, true));
        folds.toggle("long".to_string());
        folds.toggle("short".to_string());
        assert_eq!(both(&folds), (true, false));
        folds.toggle("short".to_string());
        assert_eq!(both(&folds), (false, false));
        folds.toggle_all();
        assert_eq!(both(&folds), (true, true), "all, whatever was chosen before");
        folds.toggle_all();
        assert_eq!(both(&folds), (false, false));
    }
}
