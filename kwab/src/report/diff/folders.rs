//! What tells two sets of dumps apart: the bugs that only one of them has.

use schemars::JsonSchema;
use serde::Serialize;

use super::SCHEMA;
use super::beside::Fate;
use crate::report::catalogue::{CatalogueEntry, Finding, Rank, arrange};

/// What tells two sets of dumps apart.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FolderDifference {
    /// Version of this form.
    pub schema: u32,
    /// Dumps of the first set.
    pub left: usize,
    /// Dumps of the second set, of which is said what is new.
    pub right: usize,
    /// Bugs, first those that only the second set has; damaged files and recordings are not among them.
    pub bugs: Vec<Count>,
}

/// A bug, and how often each set tells of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Count {
    /// Whether both sets have it; `changed` is that both do, whatever the counts.
    pub fate: Fate,
    /// What triage concludes, when that is likelier than not.
    pub finding: Option<Finding>,
    /// The dump to look at: the first one of the set that has it.
    pub example: CatalogueEntry,
    /// Dumps of the first set.
    pub left: usize,
    /// Dumps of the second set.
    pub right: usize,
}

impl FolderDifference {
    /// Whether one of the sets has a bug that the other has not.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.bugs.iter().any(|bug| bug.fate != Fate::Changed)
    }
}

/// Compares two sets of dumps by the bugs that they tell of.
#[must_use]
pub fn folders(left: &[CatalogueEntry], right: &[CatalogueEntry]) -> FolderDifference {
    let all: Vec<&CatalogueEntry> = left.iter().chain(right).collect();
    let crashes = arrange(&all).into_iter().filter(|group| group.rank == Rank::Crash);
    let bugs = crashes.filter_map(|group| {
        let (ones, twos): (Vec<usize>, Vec<usize>) = group.members.iter().partition(|member| **member < left.len());
        let fate = match (ones.is_empty(), twos.is_empty()) {
            (true, _) => Fate::New,
            (_, true) => Fate::Gone,
            (false, false) => Fate::Changed,
        };
        let example = all.get(*twos.first().or(ones.first())?).map(|entry| (*entry).clone())?;
        Some(Count { fate, finding: group.finding, example, left: ones.len(), right: twos.len() })
    });
    let mut bugs: Vec<Count> = bugs.collect();
    bugs.sort_by_key(|bug| (bug.fate, std::cmp::Reverse(bug.left + bug.right)));
    FolderDifference { schema: SCHEMA, left: left.len(), right: right.len(), bugs }
}
