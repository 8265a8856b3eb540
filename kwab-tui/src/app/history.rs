//! The locations that were looked at, for going back and forward.

use std::path::PathBuf;

use crate::view::Slot;

/// Locations that are kept.
const LONGEST: usize = 256;

/// A row of a list that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
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

/// The locations before the present one, and those that were left by going back.
#[derive(Debug, Default)]
pub(super) struct History {
    behind: Vec<Location>,
    ahead: Vec<Location>,
}

impl History {
    /// Records a location that is left for a new one, and drops those ahead; beyond 256 the oldest is dropped.
    pub(super) fn leave(&mut self, location: Location) {
        if self.behind.last() != Some(&location) {
            self.behind.push(location);
        }
        if self.behind.len() > LONGEST {
            self.behind.remove(0);
        }
        self.ahead.clear();
    }

    /// The location before `here`; `None` at the beginning, which changes nothing.
    pub(super) fn back(&mut self, here: Location) -> Option<Location> {
        let location = self.behind.pop()?;
        self.ahead.push(here);
        Some(location)
    }

    /// The location that was left by going back to `here`; `None` at the end, which changes nothing.
    pub(super) fn forward(&mut self, here: Location) -> Option<Location> {
        let location = self.ahead.pop()?;
        self.behind.push(here);
        Some(location)
    }

    /// The location `by` locations back (negative) or forward; those between are walked too.
    pub(super) fn jump(&mut self, by: isize, here: Location) -> Option<Location> {
        let mut at = here;
        for _ in 0..by.unsigned_abs() {
            at = if by < 0 { self.back(at) } else { self.forward(at) }?;
        }
        Some(at)
    }

    /// The locations and how far each is: the one left last first, then those ahead.
    pub(super) fn all(&self) -> impl Iterator<Item = (isize, &Location)> {
        let behind = self.behind.iter().rev().zip(1..).map(|(location, by): (_, isize)| (-by, location));
        behind.chain(self.ahead.iter().rev().zip(1..).map(|(location, by)| (by, location)))
    }

    /// Records that `here` was left backwards, for the list of dumps.
    pub(super) fn back_to_start(&mut self, here: Location) {
        self.ahead.push(here);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(row: usize) -> Location {
        Location { dump: None, second: None, slot: Slot::Log, row, byte: 0 }
    }

    #[test]
    fn back_and_forward_walk_the_same_locations() {
        let mut history = History::default();
        history.leave(location(1));
        history.leave(location(2));
        assert_eq!(history.back(location(3)), Some(location(2)));
        assert_eq!(history.back(location(2)), Some(location(1)));
        assert_eq!(history.back(location(1)), None);
        assert_eq!(history.forward(location(1)), Some(location(2)));
        assert_eq!(history.forward(location(2)), Some(location(3)));
        assert_eq!(history.forward(location(3)), None);
    }

    #[test]
    fn a_new_way_ends_the_old_one_forward() {
        let mut history = History::default();
        history.leave(location(1));
        assert_eq!(history.back(location(2)), Some(location(1)));
        history.leave(location(1));
        assert_eq!(history.forward(location(5)), None);
        assert_eq!(history.back(location(5)), Some(location(1)));
    }

    #[test]
    fn the_oldest_locations_are_forgotten() {
        let mut history = History::default();
        (0..LONGEST + 3).for_each(|row| history.leave(location(row)));
        let mut walked = 0;
        let mut here = location(LONGEST + 3);
        while let Some(before) = history.back(here.clone()) {
            here = before;
            walked += 1;
        }
        assert_eq!((walked, here.row), (LONGEST, 3));
    }
}
