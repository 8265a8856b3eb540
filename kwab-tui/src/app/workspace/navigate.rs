//! Navigation: following links, opening dumps, turning to tabs, and the way back.

use std::path::PathBuf;

use super::Workspace;
use crate::app::history::Location;
use crate::app::outcome::Outcome;
use crate::app::{MenuAction, TABS};
use crate::load::Job;
use crate::theme::Tone;
use crate::view::{Link, Look, Slot, Target};

impl Workspace {
    /// Opens a dump and shows it.
    pub(in crate::app) fn open(&mut self, path: PathBuf) -> Job {
        self.in_crash = true;
        self.session.open(path)
    }

    /// Shows the list of dumps.
    pub(in crate::app) fn leave_crash(&mut self) {
        self.remember();
        self.in_crash = false;
    }

    /// Follows the links of the selected row: the only one at once, several through a menu.
    pub(in crate::app) fn follow(&mut self) -> Outcome {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return Outcome::default() };
        self.offer(row, view.links(row, &self.list().look), "this row has no link")
    }

    /// Goes to what caused the selected row.
    pub(in crate::app) fn lead_to_cause(&mut self) -> Outcome {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return Outcome::default() };
        self.offer(row, view.causes(row, &self.list().look), "the dump names no cause of this row")
    }

    /// Goes to what the selected row caused.
    pub(in crate::app) fn lead_to_effect(&mut self) -> Outcome {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return Outcome::default() };
        self.offer(row, view.effects(row, &self.list().look), "the dump names no effect of this row")
    }

    /// Follows one of the links of a row; says what it lacks when there is none.
    fn offer(&mut self, row: usize, mut links: Vec<Link>, lacking: &'static str) -> Outcome {
        links.dedup_by(|a, b| a.target == b.target);
        // Links to what this dump does not hold are not offered, nor those to the selected row itself.
        let here = self.slot().map(|slot| (slot, row));
        let elsewhere = |link: &&Link| here.is_none() || self.locate(&link.target) != here;
        let reachable: Vec<Link> =
            links.iter().filter(|link| self.reaches(&link.target)).filter(elsewhere).cloned().collect();
        match (reachable.as_slice(), links.first()) {
            ([], None) => Outcome::say(Tone::Dim, lacking),
            ([], Some(link)) => Outcome::say(Tone::Care, format!("{} is not in this dump", link.label)),
            ([only], _) => self.go(&only.target),
            (_, _) => {
                let items = reachable.into_iter().map(|link| (link.label, MenuAction::Go(link.target)));
                Outcome::menu("follow", items.collect())
            }
        }
    }

    fn reaches(&self, target: &Target) -> bool {
        matches!(target, Target::Dump(_)) || self.locate(target).is_some()
    }

    fn locate(&self, target: &Target) -> Option<(Slot, usize)> {
        self.session.crash()?.locate(target)
    }

    /// Goes to a target; the location that is left is remembered.
    pub(in crate::app) fn go(&mut self, target: &Target) -> Outcome {
        if let Target::Dump(path) = target {
            let path = PathBuf::from(path);
            self.remember();
            if self.session.is_open(&path) {
                self.in_crash = true;
                return Outcome::default();
            }
            return Outcome::jobs([self.open(path)]);
        }
        let Some((slot, row)) = self.locate(target) else {
            return Outcome::say(Tone::Care, format!("{} is not in this dump", target.name()));
        };
        self.remember();
        self.in_crash = true;
        self.turn_to(slot, row, Some(target));
        Outcome::default()
    }

    /// Goes to the awaited target if it can be shown by now.
    pub(in crate::app) fn go_to_awaited(&mut self) -> Option<Outcome> {
        let target =
            self.awaited.take_if(|target| self.session.crash().is_some_and(|crash| crash.locate(target).is_some()))?;
        Some(self.go(&target))
    }

    fn turn_to(&mut self, slot: Slot, row: usize, target: Option<&Target>) {
        if let Some(crash) = self.session.crash_mut() {
            crash.show(slot, row, target);
        }
    }

    fn location(&self) -> Location {
        let list = self.list();
        let crash = self.shown_crash();
        let dump = crash.map(|crash| crash.path().to_path_buf());
        let second = crash.and_then(|crash| Some(crash.comparison()?.path().to_path_buf()));
        let row = self.selected().unwrap_or(list.selected);
        Location { dump, second, slot: self.slot().unwrap_or(Slot::Triage), row, byte: list.look.byte }
    }

    /// Remembers the location before another is gone to.
    pub(in crate::app) fn remember(&mut self) {
        let location = self.location();
        self.history.leave(location);
    }

    /// Back, or forward again.
    pub(in crate::app) fn travel(&mut self, back: bool) -> Outcome {
        let here = self.location();
        let location = if back { self.history.back(here.clone()) } else { self.history.forward(here.clone()) };
        let Some(location) = location else {
            // Back from the first location in a crash is the list of dumps.
            if back && self.in_crash {
                self.in_crash = false;
                self.history.back_to_start(here);
            }
            return Outcome::default();
        };
        self.arrive(location)
    }

    /// The locations that were looked at, to choose from.
    pub(in crate::app) fn jumps(&self) -> Outcome {
        let items = self.history.all().map(|(by, location)| {
            let arrow = if by < 0 { "⌫" } else { "→" };
            (format!("{arrow} {}", self.said(location)), MenuAction::Travel(by))
        });
        let items: Vec<_> = items.collect();
        if items.is_empty() {
            return Outcome::say(Tone::Dim, "nothing was looked at before");
        }
        Outcome::menu("jump to", items)
    }

    /// A location in words: dump, list, and its row as far as that is loaded.
    fn said(&self, location: &Location) -> String {
        let Some(dump) = &location.dump else { return format!("the list of dumps, row {}", location.row + 1) };
        let name = dump.file_name().unwrap_or(dump.as_os_str()).to_string_lossy();
        let open = self.session.crash().filter(|crash| crash.path() == dump && location.second.is_none());
        let view = open.and_then(|crash| crash.view(location.slot)).filter(|view| view.len() > location.row);
        let row = view.map(|view| view.row(location.row, &Look::default()).text());
        let row = row.unwrap_or_else(|| format!("row {}", location.row + 1));
        let second = if location.second.is_some() { " compared" } else { "" };
        format!("{name}{second}  {}  {}", location.slot.name(), crate::text::cut(&row, 48))
    }

    /// Goes back or forward by several locations.
    pub(in crate::app) fn jump(&mut self, by: isize) -> Outcome {
        let here = self.location();
        match self.history.jump(by, here) {
            Some(location) => self.arrive(location),
            None => Outcome::default(),
        }
    }

    fn arrive(&mut self, location: Location) -> Outcome {
        let Some(path) = location.dump else {
            self.in_crash = false;
            return Outcome::default();
        };
        let jobs = self.show(path, location.second);
        self.turn_to(location.slot, location.row, None);
        self.list_mut().look.byte = location.byte;
        jobs
    }

    /// Shows a dump, alone or beside another.
    pub(in crate::app) fn show(&mut self, first: PathBuf, second: Option<PathBuf>) -> Outcome {
        self.in_crash = true;
        Outcome::jobs(self.session.show(first, second))
    }

    /// Turns to a tab by its index in [`TABS`].
    pub(in crate::app) fn turn_to_tab(&mut self, tab: usize) {
        let Some(crash) = self.session.crash() else { return };
        if tab >= TABS.len() || (crash.tabs().is_at(tab) && self.in_crash) {
            return;
        }
        self.remember();
        self.in_crash = true;
        if let Some(crash) = self.session.crash_mut() {
            crash.tabs_mut().select(tab);
        }
    }

    /// Turns to the tab `by` tabs to the right, from the last to the first.
    pub(in crate::app) fn next_tab(&mut self, by: usize) {
        if let Some(crash) = self.shown_crash() {
            self.turn_to_tab((crash.tabs().current() + by) % TABS.len());
        }
    }

    /// Turns to the next list of the tab.
    pub(in crate::app) fn next_mode(&mut self) {
        if self.shown_crash().is_none_or(|crash| !crash.tabs().has_modes()) {
            return;
        }
        self.remember();
        if let Some(crash) = self.session.crash_mut() {
            crash.tabs_mut().next_mode();
        }
    }

    /// Shows the marks and notes of the crash.
    pub(in crate::app) fn show_marks(&mut self) {
        if self.shown_crash().is_none() {
            return;
        }
        self.remember();
        if let Some(crash) = self.session.crash_mut() {
            crash.list_marks();
            crash.tabs_mut().show(Slot::Marks);
        }
    }

    /// Goes to what was typed: an address, a line of the log, a row.
    ///
    /// # Errors
    /// Why there is nothing to go to.
    pub(in crate::app) fn goto(&mut self, input: &str) -> Result<Outcome, String> {
        let input = input.trim();
        if let Some(target) = Target::parse(input) {
            return Ok(self.go(&target));
        }
        let number = kwab::report::filter::number(input).or_else(|| u64::from_str_radix(input, 16).ok());
        let Some(number) = number else { return Err(format!("expected an address, line or row, got {input}")) };
        let looks_like_address = input.starts_with("0x") || number > 0xf_ffff;
        if looks_like_address { self.goto_address(number) } else { self.goto_number(number) }
    }

    fn goto_address(&mut self, number: u64) -> Result<Outcome, String> {
        let targets = [Target::Bytes(number), Target::Page(number), Target::Mapping(number)];
        // The shown list comes first: an address typed in the list of pages is a page.
        let own = self.slot().and_then(|slot| {
            let crash = self.session.crash()?;
            targets.iter().find(|target| crash.shows_best(slot, target))
        });
        match own.or_else(|| targets.iter().find(|target| self.locate(target).is_some())) {
            Some(target) => Ok(self.go(target)),
            None => Err(format!("{number:#x} is in no mapping, no page and no captured bytes of this dump")),
        }
    }

    fn goto_number(&mut self, number: u64) -> Result<Outcome, String> {
        let Some(slot) = self.slot() else { return Err("open a dump first".to_string()) };
        let target = match slot {
            Slot::Log | Slot::Timeline => Target::Line(number),
            slot => Target::Row(slot, usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1)),
        };
        let row = self.view().and_then(|view| {
            view.find(&target)
                .or_else(|| Some(usize::try_from(number).ok()?.checked_sub(1)?.min(view.len().checked_sub(1)?)))
        });
        let Some(row) = row else { return Err(format!("row {number} does not exist in this list")) };
        self.remember();
        self.turn_to(slot, row, None);
        Ok(Outcome::default())
    }
}
