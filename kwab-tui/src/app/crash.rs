//! An open crash: its lists as they arrive, and which of them is looked at.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kwab::report::inspect::Report;

use crate::list::ListState;
use crate::marks::Marks;
use crate::view::{Slot, View};

/// The tabs: their names, short and long, and the lists each has. The first ten are the keys 1 to 9 and 0.
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

/// The other crash of a comparison, and what has arrived of both.
pub struct Second {
    /// Path of the dump, or of one of the dumps in a file.
    pub path: PathBuf,
    /// The generation that its jobs carry.
    pub generation: u64,
    /// What it is about, once that is known.
    pub report: Option<Arc<Report>>,
    /// Lists of the first that have arrived.
    pub(super) left: BTreeMap<Slot, Arc<dyn View>>,
    /// Lists of the second that have arrived.
    pub(super) right: BTreeMap<Slot, Arc<dyn View>>,
}

/// An open crash.
pub struct Crash {
    /// Path of the dump, or of one of the dumps in a file.
    pub path: PathBuf,
    /// What it is about, once that is known.
    pub report: Option<Arc<Report>>,
    /// The lists that have arrived.
    pub views: BTreeMap<Slot, Arc<dyn View>>,
    /// How each is looked at.
    pub lists: BTreeMap<Slot, ListState>,
    /// Index of the shown tab in [`TABS`].
    pub tab: usize,
    /// Which list of each tab.
    pub modes: [usize; 12],
    /// A list that lies over the tabs: marks, comparison.
    pub extra: Option<Slot>,
    /// Marks and notes that are kept beside the dump.
    pub marks: Marks,
    /// Why it cannot be opened.
    pub failed: Option<String>,
    /// The crash that it is compared with.
    pub second: Option<Second>,
    /// What of a long recording conclusions do not rest on, in words; empty when they rest on everything.
    pub skipped: Vec<String>,
}

impl Crash {
    /// A crash that is about to be loaded.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let lists = Slot::ALL.iter().map(|slot| (*slot, ListState::default())).collect();
        let views = BTreeMap::new();
        let marks = Marks::default();
        Self {
            path,
            report: None,
            views,
            lists,
            tab: 0,
            modes: [0; 12],
            extra: None,
            marks,
            failed: None,
            second: None,
            skipped: Vec::new(),
        }
    }

    /// The list that is shown.
    #[must_use]
    pub fn slot(&self) -> Slot {
        self.extra.unwrap_or_else(|| {
            let lists = TABS[self.tab.min(TABS.len() - 1)].1;
            lists[self.modes[self.tab.min(TABS.len() - 1)] % lists.len()]
        })
    }

    /// How it is looked at.
    #[must_use]
    pub fn list(&self) -> &ListState {
        &self.lists[&self.slot()]
    }

    /// The same, to be changed.
    pub fn list_mut(&mut self) -> &mut ListState {
        let slot = self.slot();
        self.lists.entry(slot).or_default()
    }

    /// Takes a list, in place of the one before.
    pub fn install(&mut self, slot: Slot, view: Arc<dyn View>) {
        self.lists.entry(slot).or_default().clip(view.len());
        self.views.insert(slot, view);
    }

    /// Takes a list that is shown for the first time: without a chosen row, the last moments of a recording are
    /// selected.
    pub fn install_placed(&mut self, slot: Slot, view: Arc<dyn View>) {
        let death = self.report.as_ref().and_then(|report| report.cause.as_ref()?.line);
        let list = self.lists.entry(slot).or_default();
        if !list.placed && list.selected == 0 && matches!(slot, Slot::Timeline | Slot::Syscalls | Slot::Log) {
            let death = death.and_then(|line| view.find(&crate::view::Target::Line(line)));
            list.selected = death.unwrap_or_else(|| view.len().saturating_sub(1));
        }
        list.placed = true;
        self.install(slot, view);
    }

    /// Turns to a list.
    pub fn turn_to(&mut self, slot: Slot) {
        let of_tab = TABS
            .iter()
            .enumerate()
            .find_map(|(tab, (_, lists))| Some((tab, lists.iter().position(|list| *list == slot)?)));
        match of_tab {
            Some((tab, mode)) => {
                self.tab = tab;
                self.modes[tab] = mode;
                self.extra = None;
            }
            None => self.extra = Some(slot),
        }
    }
}
