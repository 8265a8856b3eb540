//! The tabs of a crash, and which of its lists is shown.

use crate::view::Slot;

/// The tabs: their names, and the lists of each. The first ten are the keys 1 to 9 and 0.
pub const TABS: &[(&str, &[Slot])] = &[
    ("Triage", &[Slot::Triage]),
    ("Backtrace", &[Slot::Backtrace]),
    ("Registers", &[Slot::Registers]),
    ("Syscalls", &[Slot::Syscalls]),
    ("Timeline", &[Slot::Timeline]),
    ("Memory", &[Slot::Mappings, Slot::Pages, Slot::Audit, Slot::Checks]),
    ("Hex", &[Slot::Hex]),
    ("Tasks", &[Slot::Tasks]),
    ("Log", &[Slot::Log]),
    ("Integrity", &[Slot::Integrity]),
    ("Locks", &[Slot::Locks]),
    ("Profile", &[Slot::Profile, Slot::Spans]),
];

/// The current tab, the list shown in each, and a list that covers them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tabs {
    current: usize,
    modes: [usize; 12],
    cover: Option<Slot>,
}

impl Tabs {
    /// Index of the current tab in [`TABS`].
    #[must_use]
    pub const fn current(&self) -> usize {
        self.current
    }

    /// The list that covers the tabs: marks or facts of a comparison.
    #[must_use]
    pub const fn cover(&self) -> Option<Slot> {
        self.cover
    }

    /// Which list of a tab is shown, by its index among the tab's lists.
    #[must_use]
    pub const fn mode(&self, tab: usize) -> usize {
        self.modes[tab] % TABS[tab].1.len()
    }

    /// The list that is shown.
    #[must_use]
    pub const fn slot(&self) -> Slot {
        match self.cover {
            Some(slot) => slot,
            None => self.below(),
        }
    }

    /// The list of the current tab, whatever covers it.
    pub(super) const fn below(&self) -> Slot {
        TABS[self.current].1[self.mode(self.current)]
    }

    /// Whether a tab is current and not covered.
    pub(super) fn is_at(&self, tab: usize) -> bool {
        self.current == tab && self.cover.is_none()
    }

    /// Makes a tab current and uncovers it; an index beyond [`TABS`] changes nothing.
    pub(super) const fn select(&mut self, tab: usize) {
        if tab < TABS.len() {
            self.current = tab;
            self.cover = None;
        }
    }

    /// Shows a list: in its tab, or over all tabs if none has it.
    pub(super) fn show(&mut self, slot: Slot) {
        let of_tab = TABS
            .iter()
            .enumerate()
            .find_map(|(tab, (_, lists))| Some((tab, lists.iter().position(|list| *list == slot)?)));
        match of_tab {
            Some((tab, mode)) => {
                self.select(tab);
                self.modes[tab] = mode;
            }
            None => self.cover = Some(slot),
        }
    }

    /// Whether the current tab has another list to turn to.
    pub(super) const fn has_modes(&self) -> bool {
        self.cover.is_none() && TABS[self.current].1.len() > 1
    }

    /// Turns to the next list of the current tab, from the last to the first.
    pub(super) const fn next_mode(&mut self) {
        self.modes[self.current] = (self.modes[self.current] + 1) % TABS[self.current].1.len();
    }

    /// Removes the list that covers the tabs; says whether there was one.
    pub(super) const fn uncover(&mut self) -> bool {
        self.cover.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_shown_in_its_tab_or_over_all_of_them() {
        for slot in Slot::ALL {
            let mut tabs = Tabs::default();
            tabs.show(*slot);
            assert_eq!(tabs.slot(), *slot);
            assert_eq!(tabs.cover().is_some(), matches!(slot, Slot::Marks | Slot::Compare), "{slot:?}");
        }
    }

    #[test]
    fn a_tab_keeps_its_list_while_another_is_shown() {
        let mut tabs = Tabs::default();
        tabs.show(Slot::Audit);
        tabs.select(0);
        assert_eq!(tabs.slot(), Slot::Triage);
        tabs.select(5);
        assert_eq!(tabs.slot(), Slot::Audit);
        tabs.next_mode();
        tabs.next_mode();
        assert_eq!(tabs.slot(), Slot::Mappings, "after the last list comes the first");
        tabs.select(TABS.len());
        assert!(tabs.is_at(5), "a tab that does not exist is not selected");
    }

    #[test]
    fn a_cover_goes_when_a_tab_is_selected_or_it_is_removed() {
        let mut tabs = Tabs::default();
        tabs.show(Slot::Marks);
        assert!(!tabs.is_at(0) && !tabs.has_modes());
        tabs.select(0);
        assert!(tabs.is_at(0) && !tabs.uncover());
        tabs.show(Slot::Compare);
        assert!(tabs.uncover());
        assert_eq!(tabs.slot(), Slot::Triage);
    }
}
