//! The places that were looked at: the way back, and the way forward again.

use std::path::PathBuf;

use crate::view::Slot;

/// Places that are remembered.
const LONGEST: usize = 256;

/// A place that a person looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    /// The open dump, when a crash was looked at.
    pub(super) dump: Option<PathBuf>,
    /// The dump that it was compared with.
    pub(super) second: Option<PathBuf>,
    /// The list that was shown.
    pub(super) slot: Slot,
    /// The selected row.
    pub(super) row: usize,
    /// The byte in it.
    pub(super) byte: u8,
}

/// The places before the present one and those that were left by going back.
#[derive(Debug, Default)]
pub(super) struct Trail {
    behind: Vec<Spot>,
    ahead: Vec<Spot>,
}

impl Trail {
    /// Remembers a place that is left for a new one: the way forward ends there. The oldest places are forgotten.
    pub(super) fn leave(&mut self, spot: Spot) {
        if self.behind.last() != Some(&spot) {
            self.behind.push(spot);
        }
        if self.behind.len() > LONGEST {
            self.behind.remove(0);
        }
        self.ahead.clear();
    }

    /// The place before, leaving `here`; `None` at the beginning, which changes nothing.
    pub(super) fn back(&mut self, here: Spot) -> Option<Spot> {
        let spot = self.behind.pop()?;
        self.ahead.push(here);
        Some(spot)
    }

    /// The place that was left by going back, leaving `here`; `None` at the end, which changes nothing.
    pub(super) fn forward(&mut self, here: Spot) -> Option<Spot> {
        let spot = self.ahead.pop()?;
        self.behind.push(here);
        Some(spot)
    }

    /// Leaves `here` backwards for a place that is not on the trail.
    pub(super) fn back_to_start(&mut self, here: Spot) {
        self.ahead.push(here);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(row: usize) -> Spot {
        Spot { dump: None, second: None, slot: Slot::Log, row, byte: 0 }
    }

    #[test]
    fn back_and_forward_walk_the_same_places() {
        let mut trail = Trail::default();
        trail.leave(spot(1));
        trail.leave(spot(2));
        assert_eq!(trail.back(spot(3)), Some(spot(2)));
        assert_eq!(trail.back(spot(2)), Some(spot(1)));
        assert_eq!(trail.back(spot(1)), None);
        assert_eq!(trail.forward(spot(1)), Some(spot(2)));
        assert_eq!(trail.forward(spot(2)), Some(spot(3)));
        assert_eq!(trail.forward(spot(3)), None);
    }

    #[test]
    fn a_new_way_ends_the_old_one_forward() {
        let mut trail = Trail::default();
        trail.leave(spot(1));
        assert_eq!(trail.back(spot(2)), Some(spot(1)));
        trail.leave(spot(1));
        assert_eq!(trail.forward(spot(5)), None);
        assert_eq!(trail.back(spot(5)), Some(spot(1)));
    }

    #[test]
    fn the_oldest_places_are_forgotten() {
        let mut trail = Trail::default();
        (0..LONGEST + 3).for_each(|row| trail.leave(spot(row)));
        let mut walked = 0;
        let mut here = spot(LONGEST + 3);
        while let Some(before) = trail.back(here.clone()) {
            here = before;
            walked += 1;
        }
        assert_eq!((walked, here.row), (LONGEST, 3));
    }
}
