//! Two crashes side by side: which two, how they are chosen, and the lists of both as they arrive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::crash::Second;
use super::{App, Crash, Effect, MenuAction, Overlay};
use crate::load::{Job, Message};
use crate::theme::Tone;
use crate::view::{Slot, View};

/// Dumps that a menu offers to compare with; the list of dumps has all.
const OFFERED: usize = 8;

/// Lists that are about one dump by nature.
const fn alone(slot: Slot) -> bool {
    matches!(slot, Slot::Marks | Slot::Compare)
}

impl App {
    /// The action: chooses in the list of dumps, asks in a crash, ends a comparison.
    pub(super) fn compare(&mut self) -> Vec<Effect> {
        if !self.in_crash {
            return self.choose_in_catalogue();
        }
        let Some(crash) = self.crash.as_ref() else { return Vec::new() };
        if crash.second.is_some() {
            self.remember();
            self.end_comparison();
            self.say(Tone::Good, "one crash alone again; c compares");
            return Vec::new();
        }
        let path = crash.path.clone();
        let signature = crash.report.as_ref().map(|report| report.signature.clone());
        let others = self.catalogue.others(&path, signature.as_deref());
        if others.is_empty() {
            self.say(Tone::Care, "no other dump in the list to compare with");
            return Vec::new();
        }
        let more = others.len() > OFFERED;
        let offered = others.into_iter().take(OFFERED);
        let mut items: Vec<_> = offered.map(|(label, path)| (label, MenuAction::Beside(path))).collect();
        if more {
            items.push(("another: choose in the list of dumps".to_string(), MenuAction::Choose(path)));
        }
        self.overlay = Some(Overlay::Menu { title: "compare with".to_string(), items, selected: 0 });
        Vec::new()
    }

    fn choose_in_catalogue(&mut self) -> Vec<Effect> {
        let row = self.selected();
        let Some(path) = row.and_then(|row| self.catalogue.view().path(row).map(PathBuf::from)) else {
            self.say(Tone::Care, "this row has no dump");
            return Vec::new();
        };
        match self.chosen.take() {
            None => {
                self.chosen = Some(path);
                self.say(Tone::Good, "chosen; c at another dump puts the two side by side, esc forgets it");
                Vec::new()
            }
            Some(first) if first == path => {
                self.say(Tone::Dim, "no longer chosen");
                Vec::new()
            }
            Some(first) => {
                self.remember();
                self.show_beside(first, Some(path))
            }
        }
    }

    /// Chooses the crash that is looked at, and goes to the list for the other.
    pub(super) fn choose_other(&mut self, first: PathBuf) {
        self.chosen = Some(first);
        self.remember();
        self.in_crash = false;
        self.say(Tone::Good, "c at another dump puts the two side by side");
    }

    /// Compares the open crash with a dump.
    pub(super) fn compare_with(&mut self, path: PathBuf) -> Vec<Effect> {
        let Some(first) = self.crash.as_ref().map(|crash| crash.path.clone()) else { return Vec::new() };
        self.remember();
        self.show_beside(first, Some(path))
    }

    /// Shows a dump, alone or beside another; what is open already stays open.
    pub(super) fn show_beside(&mut self, first: PathBuf, second: Option<PathBuf>) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.crash.as_ref().is_none_or(|crash| crash.path != first) {
            effects = self.open(first);
        }
        self.in_crash = true;
        let now = self.crash.as_ref().and_then(|crash| Some(crash.second.as_ref()?.path.clone()));
        if now != second {
            self.end_comparison();
            if let (Some(path), Some(crash)) = (second, self.crash.as_mut()) {
                // Lines of two crashes are not the rows of one.
                crash.lists.values_mut().for_each(|list| *list = crate::list::ListState::default());
                effects.extend(self.open_beside(path));
            }
        }
        effects
    }

    /// Opens a dump beside the open crash.
    pub(super) fn open_beside(&mut self, path: PathBuf) -> Vec<Effect> {
        let Some(crash) = self.crash.as_mut() else { return Vec::new() };
        let generation = self.issued.next_generation();
        crash.compare_with(path.clone(), generation);
        vec![Effect::Job(Job::Open { generation, path, sources: self.sources.clone() })]
    }

    fn end_comparison(&mut self) {
        if let Some(crash) = self.crash.as_mut() {
            crash.end_comparison();
        }
    }

    /// Takes what the second crash of a comparison is made of.
    pub(super) fn loaded_of_second(&mut self, message: Message) -> Vec<Effect> {
        let first = self.issued.crash();
        let Some(crash) = self.crash.as_mut() else { return Vec::new() };
        let Some(second) = crash.second.as_mut() else { return Vec::new() };
        match message {
            Message::Head { generation, report } if generation == second.generation => {
                second.report = Some(report);
                return self.compare_heads();
            }
            Message::List { generation, slot, view } if generation == second.generation => {
                let pairing = crash.half_arrived(slot, view, true, first);
                return pairing.map(Effect::Job).into_iter().collect();
            }
            _ => {}
        }
        Vec::new()
    }

    /// The facts of both side by side, once both are known.
    pub(super) fn compare_heads(&mut self) -> Vec<Effect> {
        let facts = self.crash.as_ref().and_then(Crash::compared_heads);
        facts.map(|facts| self.arrived(Slot::Compare, facts)).unwrap_or_default()
    }
}

impl Crash {
    /// Begins a comparison with the crash of a dump, whose jobs carry `generation`.
    fn compare_with(&mut self, path: PathBuf, generation: u64) {
        let compared = Slot::ALL.iter().filter(|slot| !alone(**slot));
        let left: BTreeMap<_, _> = compared.filter_map(|slot| self.views.remove_entry(slot)).collect();
        self.second = Some(Second { path, generation, report: None, left, right: BTreeMap::new() });
        self.views.remove(&Slot::Compare);
        self.turn_to(Slot::Compare);
    }

    /// Ends a comparison: the first crash alone, each of its lists at the row where it was.
    fn end_comparison(&mut self) {
        let Some(second) = self.second.take() else { return };
        for (slot, list) in &mut self.lists {
            let view = self.views.get(slot);
            let row = view.and_then(|view| view.pair()?.sides(list.selected).0);
            if !alone(*slot) {
                *list =
                    crate::list::ListState { selected: row.unwrap_or(0), placed: row.is_some(), ..Default::default() };
            }
        }
        self.views.retain(|slot, _| alone(*slot) && *slot != Slot::Compare);
        for (slot, view) in second.left {
            self.install_placed(slot, view);
        }
        if self.extra == Some(Slot::Compare) {
            self.extra = None;
        }
    }

    /// Whether a list has to be put beside another before it is shown.
    pub(super) fn is_half(&self, slot: Slot, view: &dyn View) -> bool {
        self.second.is_some() && view.pair().is_none() && !alone(slot)
    }

    /// Takes a list of one of the two crashes; gives the job that puts both side by side when both are there.
    pub(super) fn half_arrived(
        &mut self,
        slot: Slot,
        view: Arc<dyn View>,
        is_second: bool,
        generation: u64,
    ) -> Option<Job> {
        let second = self.second.as_mut().filter(|_| !alone(slot))?;
        let side = if is_second { &mut second.right } else { &mut second.left };
        side.insert(slot, view);
        let (left, right) = (Arc::clone(second.left.get(&slot)?), Arc::clone(second.right.get(&slot)?));
        let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let names = (name(&self.path), name(&second.path));
        Some(Job::Beside { generation, slot, left, right, names })
    }

    /// What the two crashes are about, side by side; `None` until both are known.
    fn compared_heads(&self) -> Option<Arc<dyn View>> {
        let other = self.second.as_ref()?.report.as_ref()?;
        Some(Arc::new(crate::view::compare::comparison(self.report.as_ref()?, other)))
    }
}
