//! What tells two dumps apart: findings, death, backtrace, registers, mappings, page tables, tasks, system calls,
//! counters, log, kernel and boot.
//!
//! What varies from run to run is folded: addresses under randomisation, process ids, times, counts of the same
//! magnitude. What only one dump records does not count as a difference; it is said that it was not compared.

mod beside;
mod facts;
mod folders;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::beside::{Change, Fate};
use self::beside::{Compared, by_name, in_order};
pub use self::facts::Subject;
use self::facts::{Order, PARTS};
pub use self::folders::{Count, FolderDifference, folders};
use super::catalogue::{CatalogueEntry, Rank, arrange};

/// The version of [`Difference`]'s and [`FolderDifference`]'s JSON form.
pub const SCHEMA: u32 = 1;

/// What tells two dumps apart.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Difference {
    /// Version of this form.
    pub schema: u32,
    /// The first dump.
    pub left: CatalogueEntry,
    /// The second dump, of which is said what is new.
    pub right: CatalogueEntry,
    /// Whether both tell of the same bug, as lists group them; absent when one of them tells of no crash.
    pub same_bug: Option<bool>,
    /// What was compared, in the order in which it matters.
    pub parts: Vec<Part>,
}

/// Facts of one kind.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Part {
    /// The kind: `finding`, `cause`, `backtrace`, `registers`, ….
    pub name: String,
    /// Facts that differ.
    pub changes: Vec<Change>,
    /// Facts that are the same.
    pub equal: usize,
    /// Facts that differ only by what varies from run to run.
    pub noise: usize,
    /// Facts of a kind that dumps have or do not record, which only one of the two has.
    pub unpaired: usize,
    /// Facts of both dumps that were not compared because there are too many.
    pub left_out: usize,
    /// The only dump that records such facts, `left` or `right`, so that nothing was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Which>,
}

/// One of the two dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// The dump that is compared with.
    Left,
    /// The dump of which is said what is new.
    Right,
}

impl Difference {
    /// Whether everything that both dumps record was compared.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.parts.iter().all(|part| part.left_out == 0)
    }

    /// Whether anything differs that does not vary from run to run.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.same_bug == Some(false) || self.parts.iter().any(|part| !part.changes.is_empty())
    }
}

/// Compares two dumps.
#[must_use]
pub fn diff(left: Subject, right: Subject) -> Difference {
    let parts = PARTS.iter().zip(left.facts.iter().zip(&right.facts)).filter_map(|(part, (one, two))| {
        let only = match (one.known.is_empty(), two.known.is_empty()) {
            (true, true) => return None,
            (false, true) if !part.may_be_empty => Some(Which::Left),
            (true, false) if !part.may_be_empty => Some(Which::Right),
            _ => None,
        };
        let left_out = one.left_out + two.left_out;
        let (one, two) = (&one.known, &two.known);
        let Compared { changes, equal, noise, unpaired } = match (only, part.order) {
            (Some(_), _) => Compared::default(),
            (None, Order::ByName) => by_name(one, two),
            (None, Order::Recorded) => by_name(one, two).of_recorded(),
            (None, Order::AsTheyStand) => in_order(one, two, false),
            (None, Order::Tail) => in_order(one, two, true),
        };
        Some(Part { name: part.name.to_string(), changes, equal, noise, unpaired, left_out, only })
    });
    let parts = parts.collect();
    let groups = arrange(&[&left.entry, &right.entry]);
    let crashes = groups.iter().all(|group| group.rank == Rank::Crash)
        && !left.entry.is_quiet_live()
        && !right.entry.is_quiet_live();
    let same_bug = crashes.then_some(groups.len() == 1);
    Difference { schema: SCHEMA, left: left.entry, right: right.entry, same_bug, parts }
}
