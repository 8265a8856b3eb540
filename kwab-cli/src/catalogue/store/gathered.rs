//! Groups what a filter leaves of a store, in one pass over its dumps.
//!
//! A dump by itself has the group that it has in the store: only a log and a dump of one death change each other's. In
//! a store without such pairs the groups of any part of it are therefore sums over its dumps, and what is held of each
//! group is what its lines in a list show. All dumps of a group are read again, in their order, when they are wanted.

use std::collections::BTreeMap;
use std::path::Path;

use kwab::analysis::LIKELY;
use kwab::report::catalogue::{CatalogueEntry, Group, Order};
use kwab::report::filter::Filter;

use super::builds::{Chosen, Wanted};
use super::read::{Groups, Head, Place};
use super::{Store, StoreError};
use crate::catalogue::row::Row;

/// Places of the first dumps that are held of each group.
const HELD: usize = 8;
/// Groups, and different signatures in them, that are held; of more the caller groups in another way.
const MOST: usize = 16 << 10;

/// The order of dumps in a group: as the store sorts them, equal ones as they come, by their paths.
type When = (bool, Option<i64>, Option<u32>, Option<i64>, u64);

/// What is summed up of a group.
#[derive(Debug, Default)]
struct Sums {
    dumps: usize,
    unsound: usize,
    /// The best supported likely conclusion; of equal ones that of the oldest dump.
    best: Option<(f64, When, Place)>,
    /// The oldest ones, in order.
    first: Vec<(When, Place)>,
    /// The last one with a wall clock, the last one without.
    last: [Option<(When, Place)>; 2],
    /// With the oldest dump that has each.
    signatures: BTreeMap<String, When>,
}

/// Sums by group, while the dumps of a store pass by in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    groups: BTreeMap<i64, Sums>,
    signatures: usize,
    passed: u64,
}

impl Gathering {
    /// Adds a dump; `false` when there are more groups than are held.
    pub(crate) fn add(&mut self, bug: i64, place: Place, row: &Row) -> bool {
        let entry = &row.entry;
        let ns = entry.mono_ns.map(u64::cast_signed);
        let when = (entry.wall_ns.is_none(), entry.wall_ns, entry.boot, ns, self.passed);
        self.passed += 1;
        let sums = self.groups.entry(bug).or_default();
        sums.dumps += 1;
        sums.unsound += usize::from(!entry.sound);
        let score = entry.finding.as_ref().map(|found| found.score).filter(|score| *score >= LIKELY);
        let is_better =
            |score: f64| sums.best.as_ref().is_none_or(|(best, of, _)| score > *best || (score >= *best && when < *of));
        if let Some(score) = score.filter(|score| is_better(*score)) {
            sums.best = Some((score, when, place));
        }
        if sums.first.len() < HELD || sums.first.last().is_some_and(|(last, _)| when < *last) {
            sums.first.insert(sums.first.partition_point(|(of, _)| *of < when), (when, place));
            sums.first.truncate(HELD);
        }
        let last = &mut sums.last[usize::from(when.0)];
        if last.is_none_or(|(of, _)| of < when) {
            *last = Some((when, place));
        }
        match sums.signatures.get_mut(&entry.signature) {
            Some(of) => *of = (*of).min(when),
            None => {
                sums.signatures.insert(entry.signature.clone(), when);
                self.signatures += 1;
            }
        }
        self.groups.len().max(self.signatures) <= MOST
    }
}

/// What a filter leaves of a store, as groups.
#[derive(Debug)]
pub(crate) struct Gathered<'s> {
    store: &'s Store,
    folder: &'s Path,
    wanted: &'s Wanted,
    filter: &'s Filter,
    chosen: Chosen,
    /// Groups in their order.
    groups: Vec<(i64, Sums)>,
}

impl<'s> Gathered<'s> {
    /// The groups of what was gathered of a store by these demands, in an order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) fn of(
        gathering: Gathering,
        (store, folder): (&'s Store, &'s Path),
        (wanted, filter): (&'s Wanted, &'s Filter),
        order: Order,
    ) -> Result<Self, StoreError> {
        // What is sorted when all dumps of a group are read lies in files without a name.
        store.ask(|at| at.pragma_update(None, "temp_store", "file"))?;
        let names: BTreeMap<i64, (i64, String)> = store.ask(|at| {
            let mut query = at.prepare("SELECT rank, key FROM bug WHERE id = ?1")?;
            let mut name = |id: &i64| query.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)));
            gathering.groups.keys().map(|id| Ok((*id, name(id)?))).collect()
        })?;
        let rank = |id: &i64| names.get(id).map(|(rank, _)| *rank);
        let mut groups: Vec<(i64, Sums)> = gathering.groups.into_iter().collect();
        groups.sort_by(|(a, one), (b, other)| {
            let keys = names.get(a).map(|(_, key)| key).cmp(&names.get(b).map(|(_, key)| key));
            rank(a).cmp(&rank(b)).then(other.dumps.cmp(&one.dumps)).then(keys)
        });
        let mut all = Self { store, folder, wanted, filter, chosen: store.chosen(wanted)?, groups };
        match order {
            Order::Count => {}
            Order::Completeness => all.groups.sort_by_key(|(id, sums)| (rank(id), std::cmp::Reverse(sums.unsound))),
            _ => {
                let heads: Vec<Group> =
                    (0..all.groups.len()).map(|at| Ok(all.group(at, 1)?.0)).collect::<Result<_, StoreError>>()?;
                let mut with: Vec<_> = all.groups.into_iter().zip(heads).collect();
                with.sort_by(|((a, _), one), ((b, _), other)| {
                    rank(a).cmp(&rank(b)).then_with(|| order.compare(one, other))
                });
                all.groups = with.into_iter().map(|(group, _)| group).collect();
            }
        }
        Ok(all)
    }

    /// Whether all dumps are sound.
    pub(crate) fn is_sound(&self) -> bool {
        self.groups.iter().all(|(_, sums)| sums.unsound == 0)
    }

    fn entry(&self, place: Place) -> Result<Option<CatalogueEntry>, StoreError> {
        Ok(self.store.dump_at(self.folder, place)?.map(|row| row.entry))
    }
}

impl Groups for Gathered<'_> {
    fn len(&self) -> usize {
        self.groups.len()
    }

    fn head(&self, at: usize) -> Result<Head, StoreError> {
        let none = || Head { finding: None, signatures: Vec::new(), count: 0, dumps: 0, last: None };
        let Some((_, sums)) = self.groups.get(at) else { return Ok(none()) };
        let finding = match sums.best {
            Some((_, _, place)) => self.entry(place)?.and_then(|entry| entry.finding),
            None => None,
        };
        let is_undated = sums.first.first().is_some_and(|((is_undated, ..), _)| *is_undated);
        let last = match sums.last[usize::from(is_undated)] {
            Some((_, place)) => self.entry(place)?,
            None => None,
        };
        let mut signatures: Vec<(&When, &String)> = sums.signatures.iter().map(|(name, when)| (when, name)).collect();
        signatures.sort();
        let signatures = signatures.into_iter().map(|(_, name)| name.clone()).collect();
        Ok(Head { finding, signatures, count: sums.dumps, dumps: sums.dumps, last })
    }

    fn dumps(&self, at: usize, most: usize, each: &mut dyn FnMut(CatalogueEntry) -> bool) -> Result<(), StoreError> {
        let Some((bug, sums)) = self.groups.get(at) else { return Ok(()) };
        if most <= sums.first.len() || sums.dumps == sums.first.len() {
            for (_, place) in sums.first.iter().take(most) {
                if self.entry(*place)?.is_some_and(|entry| !each(entry)) {
                    break;
                }
            }
            return Ok(());
        }
        let mut left = most;
        self.store.members(self.folder, *bug, usize::MAX, |row| {
            let is_wanted = self.chosen.is_wanted(self.wanted, &row) && self.filter.holds(&row.entry);
            if is_wanted {
                left -= 1;
            }
            (!is_wanted || each(row.entry)) && left > 0
        })
    }
}
