//! An open crash: its lists as they arrive, how each is looked at, its marks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kwab::report::inspect::Report;

use super::Effect;
use super::comparison::{Comparison, is_single};
use super::slots::{fallback, slots_of};
use super::tabs::Tabs;
use crate::list::ListState;
use crate::load::Job;
use crate::marks::Marks;
use crate::remembered::Place;
use crate::view::{Slot, Target, View};

/// Lists to whose end a recording adds rows.
const GROWING: &[Slot] = &[Slot::Timeline, Slot::Syscalls, Slot::Log];

/// An open crash.
pub struct Crash {
    path: PathBuf,
    report: Option<Arc<Report>>,
    views: BTreeMap<Slot, Arc<dyn View>>,
    lists: BTreeMap<Slot, ListState>,
    tabs: Tabs,
    marks: Marks,
    failed: Option<String>,
    comparison: Option<Comparison>,
    skipped: Vec<String>,
    /// Lists that show their last row when they arrive.
    ends: Vec<Slot>,
    /// Lists of the reading before, which are shown until those of this one arrive.
    old: BTreeSet<Slot>,
    /// Whether this reading has said what the crash is about.
    is_told: bool,
}

/// What of a reading is shown until the next one has it.
pub(super) struct Kept {
    report: Option<Arc<Report>>,
    views: BTreeMap<Slot, Arc<dyn View>>,
    shown: BTreeMap<Slot, Option<Arc<Vec<u32>>>>,
    skipped: Vec<String>,
}

/// What drawing and tests read.
impl Crash {
    /// Path of the dump, or of one of the dumps in a file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is about, once that is known.
    #[must_use]
    pub const fn report(&self) -> Option<&Arc<Report>> {
        self.report.as_ref()
    }

    /// Whether the dump says that its kernel is a Linux.
    #[must_use]
    pub fn is_linux(&self) -> bool {
        let kernel = self.report.iter().flat_map(|report| &report.meta).find(|fact| fact.name == "kernel");
        kernel.is_some_and(|kernel| kernel.value.starts_with("Linux"))
    }

    /// A list, once it has arrived.
    #[must_use]
    pub fn view(&self, slot: Slot) -> Option<&Arc<dyn View>> {
        self.views.get(&slot)
    }

    /// How a list is looked at.
    #[must_use]
    pub fn list(&self, slot: Slot) -> &ListState {
        &self.lists[&slot]
    }

    /// The current tab and the list that each shows.
    #[must_use]
    pub const fn tabs(&self) -> &Tabs {
        &self.tabs
    }

    /// Marks and notes that are kept beside the dump.
    #[must_use]
    pub const fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Why it cannot be opened.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// The crash that it is compared with.
    #[must_use]
    pub const fn comparison(&self) -> Option<&Comparison> {
        self.comparison.as_ref()
    }

    /// What of a long recording conclusions do not rest on, in words; empty when they rest on everything.
    #[must_use]
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }
}

/// The lists of the crash, and how each is looked at.
impl Crash {
    /// A crash that is about to be loaded.
    pub(super) fn new(path: PathBuf) -> Self {
        let lists = Slot::ALL.iter().map(|slot| (*slot, ListState::default())).collect();
        Self {
            path,
            report: None,
            views: BTreeMap::new(),
            lists,
            tabs: Tabs::default(),
            marks: Marks::default(),
            failed: None,
            comparison: None,
            skipped: Vec::new(),
            ends: Vec::new(),
            old: BTreeSet::new(),
            is_told: false,
        }
    }

    /// What is to be shown until the dump has been read again; nothing of a comparison, whose lists are of two dumps.
    pub(super) fn kept(&self) -> Option<Kept> {
        let shown = self.lists.iter().map(|(slot, list)| (*slot, list.shown.clone())).collect();
        let (report, views, skipped) = (self.report.clone(), self.views.clone(), self.skipped.clone());
        self.comparison.is_none().then_some(Kept { report, views, shown, skipped })
    }

    /// Shows what the reading before had.
    pub(super) fn keep(&mut self, kept: Kept) {
        (self.report, self.skipped) = (kept.report, kept.skipped);
        for (slot, view) in kept.views {
            if self.views.contains_key(&slot) {
                continue;
            }
            self.list_mut(slot).shown = kept.shown.get(&slot).cloned().flatten();
            self.views.insert(slot, view);
            self.old.insert(slot);
        }
    }

    /// The lists of what happened whose last row is selected.
    pub(super) fn at_ends(&self) -> Vec<Slot> {
        let is_at_end = |slot: &Slot| {
            let last = self.views.get(slot).and_then(|view| view.len().checked_sub(1));
            last.is_some_and(|last| self.lists[slot].selected == last)
        };
        // A list that has not arrived since the last time stays where it was to be.
        let awaited = |slot: &Slot| !self.views.contains_key(slot) && self.ends.contains(slot);
        GROWING.iter().copied().filter(|slot| is_at_end(slot) || awaited(slot)).collect()
    }

    /// Whether what happened is still being read.
    pub(super) fn is_loading(&self) -> bool {
        let is_read = self.views.contains_key(&Slot::Log) && !self.old.contains(&Slot::Log);
        self.failed.is_none() && self.comparison.is_none() && !is_read
    }

    /// Lists that are to show their last row when they arrive.
    pub(super) fn stay_at(&mut self, ends: Vec<Slot>) {
        self.ends = ends;
    }

    /// Continues where `before` was: its tabs, selections and marks, without rows that a filter had left.
    pub(super) fn resume(&mut self, before: Self) {
        self.tabs = before.tabs;
        let lists = before.lists.into_iter().map(|(slot, list)| (slot, ListState { shown: None, ..list }));
        self.lists = lists.collect();
        self.marks = before.marks;
        self.list_marks();
    }

    /// Where the user is; `None` while two are compared, whose rows are of both.
    pub(super) fn place(&self) -> Option<Place> {
        let chosen = |(slot, list): (&Slot, &ListState)| {
            let row = list.current(self.views.get(slot)?.len())?;
            (row > 0 && !is_single(*slot)).then_some((*slot, row))
        };
        let rows = self.lists.iter().filter_map(chosen).collect();
        self.comparison.is_none().then(|| Place { slot: Some(self.tabs.below()), rows })
    }

    /// Shows the list and the rows of an earlier run; a row that is no longer there is the last one.
    pub(super) fn return_to(&mut self, place: &Place) {
        if let Some(slot) = place.slot.filter(|slot| !is_single(*slot)) {
            self.tabs.show(slot);
        }
        for (slot, row) in place.rows.iter().filter(|(slot, _)| !is_single(**slot)) {
            let list = self.list_mut(*slot);
            (list.selected, list.placed) = (*row, true);
        }
    }

    /// How a list is looked at, to be changed.
    pub(super) fn list_mut(&mut self, slot: Slot) -> &mut ListState {
        self.lists.entry(slot).or_default()
    }

    /// The tabs, to be changed.
    pub(super) const fn tabs_mut(&mut self) -> &mut Tabs {
        &mut self.tabs
    }

    /// Takes a list that is shown for the first time: without a chosen row, the last moments of a recording or
    /// what the list begins with are selected.
    pub(super) fn install(&mut self, slot: Slot, view: Arc<dyn View>) {
        let death = self.report.as_ref().and_then(|report| report.cause.as_ref()?.line);
        let list = self.lists.entry(slot).or_default();
        if self.old.remove(&slot) {
            // The rows that a filter left were those of the list before, and the selection may have moved in it.
            let before = self.views.get(&slot).map_or(0, |view| view.len());
            let is_at_end = GROWING.contains(&slot) && list.selected + 1 == before;
            list.shown = None;
            if is_at_end {
                list.selected = view.len().saturating_sub(1);
            }
        } else if self.ends.contains(&slot) {
            list.selected = view.len().saturating_sub(1);
        } else if !list.placed && list.selected == 0 && GROWING.contains(&slot) {
            let death = death.and_then(|line| view.find(&Target::Line(line)));
            list.selected = death.unwrap_or_else(|| view.len().saturating_sub(1));
        } else if !list.placed && list.selected == 0 {
            list.selected = view.first();
        }
        list.placed = true;
        self.replace(slot, view);
    }

    /// Takes a list in exchange for the one before.
    fn replace(&mut self, slot: Slot, view: Arc<dyn View>) {
        self.lists.entry(slot).or_default().clip(view.len());
        self.views.insert(slot, view);
    }

    /// Shows a row of a list, and in it the byte of `target`.
    pub(super) fn show(&mut self, slot: Slot, row: usize, target: Option<&Target>) {
        self.tabs.show(slot);
        let list = self.lists.entry(slot).or_default();
        let Some(view) = self.views.get(&slot) else {
            // The list is still being loaded: its length is not known yet.
            (list.selected, list.placed) = (row, true);
            return;
        };
        list.select(row, view.len());
        if let Some(byte) = target.and_then(|target| view.byte_of(target)) {
            list.look.byte = byte;
        }
    }

    /// The list and the row of it that shows a target.
    pub(super) fn locate(&self, target: &Target) -> Option<(Slot, usize)> {
        let here = slots_of(target).iter().find_map(|slot| Some((*slot, self.views.get(slot)?.find(target)?)));
        here.or_else(|| match target {
            Target::Record(at) => fallback(at).filter(|slot| self.views.contains_key(slot)).map(|slot| (slot, 0)),
            _ => None,
        })
    }

    /// Whether a list has a target and is the best to show it.
    pub(super) fn shows_best(&self, slot: Slot, target: &Target) -> bool {
        slots_of(target).first() == Some(&slot) && self.views.get(&slot).is_some_and(|view| view.find(target).is_some())
    }
}

/// What the loading threads found out.
impl Crash {
    /// Takes what the crash is about; gives the facts of both once those of a comparison are known.
    pub(super) fn take_report(&mut self, report: Arc<Report>) -> Option<Arc<dyn View>> {
        (self.report, self.is_told) = (Some(report), true);
        self.compared_reports()
    }

    /// Takes what conclusions do not rest on.
    pub(super) fn take_skipped(&mut self, skipped: Vec<String>) {
        self.skipped = skipped;
    }

    /// Takes the marks that were kept beside the dump.
    pub(super) fn take_marks(&mut self, marks: Marks) {
        self.marks = marks;
    }

    /// Takes why it cannot be opened; one whose report is known stays open.
    pub(super) fn fail(&mut self, text: &str) {
        if self.report.is_none() {
            self.failed = Some(text.to_string());
        } else if !self.is_told {
            // It cannot be read again now: what is shown is all that there is.
            self.old.clear();
        }
    }
}

/// Marks and notes about the crash.
impl Crash {
    /// Marks a target, or removes its mark; says whether it is marked now.
    pub(super) fn toggle_mark(&mut self, target: Target, row: String) -> bool {
        self.marks.toggle(target, row)
    }

    /// Puts a note on a target.
    pub(super) fn note(&mut self, target: Target, row: String, note: String) {
        self.marks.note(target, row, note);
    }

    /// Writes the marks beside the dump; without any, removes the file.
    pub(super) fn save_marks(&mut self) -> Effect {
        let text = (!self.marks.marks.is_empty()).then(|| self.marks.text());
        if self.views.contains_key(&Slot::Marks) {
            self.list_marks();
        }
        Effect::Write { path: Marks::path(&self.path), text }
    }

    /// Lists the marks.
    pub(super) fn list_marks(&mut self) {
        self.replace(Slot::Marks, Arc::new(crate::view::marks::marks(&self.marks)));
    }
}

/// Comparing with the crash of another dump.
impl Crash {
    /// Begins a comparison with the crash of a dump, whose jobs carry `generation`.
    pub(super) fn compare_with(&mut self, path: PathBuf, generation: u64) {
        let compared = Slot::ALL.iter().filter(|slot| !is_single(**slot));
        let left = compared.filter_map(|slot| self.views.remove_entry(slot)).collect();
        self.comparison = Some(Comparison::new(path, generation, left));
        self.views.remove(&Slot::Compare);
        self.tabs.show(Slot::Compare);
    }

    /// Forgets how the compared lists were looked at: lines of two crashes are not the rows of one.
    pub(super) fn reset_lists(&mut self) {
        self.lists.values_mut().for_each(|list| *list = ListState::default());
    }

    /// Ends a comparison: the first crash alone, each of its lists at the row where it was.
    pub(super) fn end_comparison(&mut self) {
        let Some(comparison) = self.comparison.take() else { return };
        for (slot, list) in &mut self.lists {
            let view = self.views.get(slot);
            let row = view.and_then(|view| view.pair()?.sides(list.selected).0);
            if !is_single(*slot) {
                *list = ListState { selected: row.unwrap_or(0), placed: row.is_some(), ..Default::default() };
            }
        }
        self.views.retain(|slot, _| is_single(*slot) && *slot != Slot::Compare);
        for (slot, view) in comparison.into_left() {
            self.install(slot, view);
        }
        if self.tabs.cover() == Some(Slot::Compare) {
            self.tabs.uncover();
        }
    }

    /// Whether a list has to be put beside another before it is shown.
    pub(super) fn is_half(&self, slot: Slot, view: &dyn View) -> bool {
        self.comparison.is_some() && view.pair().is_none() && !is_single(slot)
    }

    /// Takes a list of one of the two crashes; gives the job that pairs both once both are there.
    pub(super) fn take_half(
        &mut self,
        slot: Slot,
        view: Arc<dyn View>,
        is_second: bool,
        generation: u64,
    ) -> Option<Job> {
        self.comparison.as_mut()?.take(slot, view, is_second, &self.path, generation)
    }

    /// Takes what the second crash is about; gives the facts of both once both are known.
    pub(super) fn take_second_report(&mut self, report: Arc<Report>) -> Option<Arc<dyn View>> {
        self.comparison.as_mut()?.take_report(report);
        self.compared_reports()
    }

    /// The facts of both crashes side by side; `None` until both are known.
    fn compared_reports(&self) -> Option<Arc<dyn View>> {
        let second = self.comparison.as_ref()?.report()?;
        Some(Arc::new(crate::view::compare::comparison(self.report.as_ref()?, second)))
    }
}
