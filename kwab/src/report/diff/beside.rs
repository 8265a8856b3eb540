//! Puts the facts of two dumps beside each other, by name or in their order.

use std::collections::{HashMap, VecDeque};

use schemars::JsonSchema;
use serde::Serialize;

use crate::report::align::{Beside, align, fingerprint};

/// Numbers that differ by less than this factor are counted as the same: how often something happened varies from run
/// to run.
const FACTOR: u64 = 2;
/// Numbers that differ by no more than this are counted as the same.
const FEW: u64 = 16;

/// A fact of one dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// What is compared with the other dump's of the same name.
    pub(super) name: String,
    /// How it reads.
    pub(super) value: String,
    /// What of it does not vary from run to run.
    pub(super) stable: String,
    /// The number that it is, if it is one that is about as large in each run.
    pub(super) measured: Option<i64>,
    /// The value that is described: the same one is the same, however much each dump knows about it.
    pub(super) described: Option<u64>,
}

impl Known {
    /// A fact that reads the same in each run.
    pub(super) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = value.into();
        Self { name: name.into(), stable: value.clone(), value, ..Self::default() }
    }

    /// A fact of which only a part is the same in each run.
    pub(super) fn varying(name: impl Into<String>, value: impl Into<String>, stable: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), stable: stable.into(), ..Self::default() }
    }

    /// A number that is about as large in each run.
    pub(super) fn measured(name: impl Into<String>, number: i64, value: String) -> Self {
        Self { name: name.into(), value, measured: Some(number), ..Self::default() }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.value == other.value || (self.described.is_some() && self.described == other.described)
    }

    /// Whether the other differs from it only by what varies from run to run.
    fn is_like(&self, other: &Self) -> bool {
        let near = match (self.measured, other.measured) {
            (Some(one), Some(two)) => is_near(one, two),
            (one, two) => one == two,
        };
        near && self.stable == other.stable
    }
}

/// Whether two counts may be of the same thing done twice. What never happened is told apart from what did.
fn is_near(one: i64, two: i64) -> bool {
    if one == two {
        return true;
    }
    let (small, large) = (one.unsigned_abs().min(two.unsigned_abs()), one.unsigned_abs().max(two.unsigned_abs()));
    small != 0 && one.signum() == two.signum() && (large - small <= FEW || large < small.saturating_mul(FACTOR))
}

/// What became of a fact from the first dump to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Only the second dump has it.
    New,
    /// Both have it and say different things.
    Changed,
    /// Only the first dump has it.
    Gone,
}

/// A fact that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// What became of it.
    pub fate: Fate,
    /// What it is called; empty for an item of a list.
    pub name: String,
    /// What the first dump says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// What the second dump says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<String>,
}

/// What a comparison of facts found.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Facts that differ, in the order of the second dump, then those that only the first one has.
    pub(super) changes: Vec<Change>,
    /// Facts that are the same.
    pub(super) equal: usize,
    /// Facts that differ by what varies from run to run.
    pub(super) noise: usize,
    /// Facts that only one dump records.
    pub(super) unpaired: usize,
}

impl Compared {
    /// As it is for facts that have the same names in all dumps: what only one has is not recorded in the other.
    pub(super) fn of_recorded(mut self) -> Self {
        let all = self.changes.len();
        self.changes.retain(|change| change.fate == Fate::Changed);
        self.unpaired = all - self.changes.len();
        self
    }

    fn pair(&mut self, left: Option<&Known>, right: Option<&Known>) {
        let fate = match (left, right) {
            (Some(one), Some(two)) if one.is_same(two) => {
                self.equal += 1;
                return;
            }
            (Some(one), Some(two)) if one.is_like(two) => {
                self.noise += 1;
                return;
            }
            (Some(_), Some(_)) => Fate::Changed,
            (None, Some(_)) => Fate::New,
            (Some(_), None) => Fate::Gone,
            (None, None) => return,
        };
        let name = right.or(left).map(|known| known.name.clone()).unwrap_or_default();
        let value = |known: Option<&Known>| known.map(|known| known.value.clone());
        self.changes.push(Change { fate, name, left: value(left), right: value(right) });
    }
}

/// Compares facts by their names; the first of a name with the first of that name, and so on.
pub(super) fn by_name(left: &[Known], right: &[Known]) -> Compared {
    let mut named: HashMap<&str, VecDeque<usize>> = HashMap::with_capacity(left.len());
    for (at, known) in left.iter().enumerate() {
        named.entry(&known.name).or_default().push_back(at);
    }
    let mut compared = Compared::default();
    let mut taken = vec![false; left.len()];
    for known in right {
        let other = named.get_mut(known.name.as_str()).and_then(VecDeque::pop_front);
        if let Some(at) = other {
            taken[at] = true;
        }
        compared.pair(other.map(|at| &left[at]), Some(known));
    }
    let rest = left.iter().zip(&taken).filter(|(_, taken)| !**taken);
    rest.for_each(|(known, _)| compared.pair(Some(known), None));
    compared
}

/// Compares facts in their order. With `tails`, lists are the ends of longer ones: what stands before the first common
/// fact may have been in the other's part that was not kept, and does not count.
pub(super) fn in_order(left: &[Known], right: &[Known], tails: bool) -> Compared {
    let prints = |facts: &[Known]| facts.iter().map(|known| fingerprint(&known.stable)).collect::<Vec<_>>();
    let rows = align(&prints(left), &prints(right), &mut || true).unwrap_or_default();
    let is_common = |row: &Beside| row.left.is_some() && row.right.is_some();
    let before = if tails { rows.iter().position(is_common).unwrap_or(0) } else { 0 };
    let mut compared = Compared { noise: before, ..Compared::default() };
    let at = |facts: &'_ [Known], index: Option<u32>| index.and_then(|index| facts.get(index as usize).cloned());
    for row in rows.iter().skip(before) {
        compared.pair(at(left, row.left).as_ref(), at(right, row.right).as_ref());
    }
    compared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(compared: &Compared) -> Vec<(Fate, &str, Option<&str>, Option<&str>)> {
        let row = |change: &'_ Change| (change.fate, change.name.clone(), change.left.clone(), change.right.clone());
        assert!(compared.changes.iter().map(row).all(|(fate, _, left, right)| match fate {
            Fate::New => left.is_none() && right.is_some(),
            Fate::Gone => left.is_some() && right.is_none(),
            Fate::Changed => left.is_some() && right.is_some(),
        }));
        let changes = compared.changes.iter();
        changes.map(|change| (change.fate, &*change.name, change.left.as_deref(), change.right.as_deref())).collect()
    }

    #[test]
    fn facts_of_one_name_are_paired_in_their_order_and_what_varies_is_noise() {
        let left = [Known::new("a", "1"), Known::new("b", "2"), Known::new("b", "3"), Known::new("c", "4")];
        let right = [Known::new("b", "2"), Known::new("d", "5"), Known::new("b", "9"), Known::new("a", "1")];
        let compared = by_name(&left, &right);
        assert_eq!(
            told(&compared),
            [
                (Fate::New, "d", None, Some("5")),
                (Fate::Changed, "b", Some("3"), Some("9")),
                (Fate::Gone, "c", Some("4"), None)
            ]
        );
        assert_eq!((compared.equal, compared.noise), (2, 0));
        let at = |addr: &str| [Known::varying("sp", addr, "in [stack]")];
        assert_eq!(by_name(&at("0x1000"), &at("0x2000")).noise, 1);
    }

    #[test]
    fn counts_are_near_each_other_unless_one_is_zero_or_twice_as_large() {
        assert!(is_near(100, 199) && is_near(3, 19) && is_near(-100, -150) && is_near(i64::MIN, i64::MIN));
        assert!(!is_near(100, 200) && !is_near(0, 1) && !is_near(-3, 3) && !is_near(i64::MAX, 1));
    }

    #[test]
    fn what_precedes_the_first_common_fact_of_two_tails_is_no_difference() {
        let list = |text: &str| text.chars().map(|letter| Known::new("", letter)).collect::<Vec<_>>();
        let compared = in_order(&list("xabcd"), &list("abzd"), true);
        assert_eq!(told(&compared), [(Fate::Gone, "", Some("c"), None), (Fate::New, "", None, Some("z"))]);
        assert_eq!((compared.equal, compared.noise), (3, 1));
        assert_eq!(in_order(&list("xabcd"), &list("abzd"), false).changes.len(), 3);
    }
}
