//! Distributes slices that overlap over lanes, so that on each lane they lie beside or inside each other, which is what
//! trace formats want of one thread. A task that sleeps inside a span leaves it open while the next one begins its own:
//! such a slice gets a lane further down.

use std::collections::BTreeMap;

/// Lanes of a row: more than a viewer shows, and few enough to search.
pub(super) const MOST_LANES: usize = 64;

/// The lanes of rows that `K` names.
#[derive(Debug, Default)]
pub(super) struct Lanes<K> {
    /// Ends of the slices that are open on each lane, outermost first.
    open: BTreeMap<K, Vec<Vec<u64>>>,
}

impl<K: Ord> Lanes<K> {
    /// The lane for a slice, while there are lanes; slices of a row come in the order of their begin.
    pub(super) fn lane_of(&mut self, row: K, begin: u64, end: Option<u64>) -> Option<u32> {
        let end = end.unwrap_or(u64::MAX);
        let lanes = self.open.entry(row).or_default();
        for lane in lanes.iter_mut() {
            while lane.last().is_some_and(|last| *last <= begin) {
                lane.pop();
            }
        }
        let fits = |lane: &Vec<u64>| lane.last().is_none_or(|outer| end <= *outer);
        let at = lanes.iter().position(fits).unwrap_or(lanes.len());
        if at == MOST_LANES {
            return None;
        }
        if at == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[at].push(end);
        u32::try_from(at).ok()
    }
}
