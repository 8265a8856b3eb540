//! What each action does.

use std::path::PathBuf;
use std::sync::Arc;

use kwab::report::filter::FieldValue;

use super::{App, Effect, MenuAction, Overlay, PromptKind, TABS};
use crate::action::Command;
use crate::list::ListState;
use crate::load::Job;
use crate::marks::Marks;
use crate::theme::Tone;
use crate::view::{Slot, Target};

impl App {
    /// Does what was asked for.
    pub(super) fn run(&mut self, command: Command) -> Vec<Effect> {
        // What was being typed was for the list that was shown then.
        self.overlay.take_if(|overlay| matches!(overlay, Overlay::Prompt { .. }));
        match command {
            Command::Up => self.step(-1),
            Command::Down => self.step(1),
            Command::PageUp => self.step(-self.page()),
            Command::PageDown => self.step(self.page()),
            Command::First => self.step(isize::MIN / 2),
            Command::Last => self.step(isize::MAX / 2),
            Command::Left => self.sideways(-1),
            Command::Right => self.sideways(1),
            Command::Follow => return self.follow(),
            Command::Back => return self.travel(true),
            Command::Forward => return self.travel(false),
            Command::Catalogue if !self.in_crash => return vec![Effect::Quit],
            Command::Catalogue => {
                self.remember();
                self.in_crash = false;
            }
            Command::Tab(tab) => self.turn_to_tab(usize::from(tab)),
            Command::NextTab => self.next_tab(1),
            Command::PreviousTab => self.next_tab(TABS.len() - 1),
            Command::Mode => self.next_mode(),
            Command::Filter => self.prompt(PromptKind::Filter),
            Command::Goto => self.prompt(PromptKind::Goto),
            Command::SameProcess => return self.same_process(),
            Command::Next => return self.seek(true),
            Command::Previous => return self.seek(false),
            Command::Escape => return self.escape(),
            Command::Sort => return self.sort(),
            Command::Reverse => return self.reverse(),
            Command::Group => {
                self.catalogue.grouped = !self.catalogue.grouped;
                self.catalogue.regroup();
            }
            Command::Detail => self.detail = !self.detail,
            Command::DetailDown => self.scroll_detail(1),
            Command::DetailUp => self.scroll_detail(-1),
            Command::ZoomIn => self.zoom(1, 2),
            Command::ZoomOut => self.zoom(2, 1),
            Command::ZoomAll => self.list_mut().look.window = None,
            Command::WordSize => {
                let look = &mut self.list_mut().look;
                look.word = if look.word >= 8 { 1 } else { look.word * 2 };
            }
            Command::Endian => {
                let look = &mut self.list_mut().look;
                look.big_endian = !look.big_endian;
            }
            Command::Palette => self.overlay = Some(Overlay::Palette { input: String::new(), selected: 0 }),
            Command::Help => self.overlay = Some(Overlay::Help { top: 0 }),
            Command::Reload => return self.reload(),
            Command::Redraw => return vec![Effect::Redraw],
            Command::Suspend => return vec![Effect::Suspend],
            Command::Quit => return vec![Effect::Quit],
            other => return self.act_on_row(other),
        }
        Vec::new()
    }

    /// Actions about the row under the cursor.
    fn act_on_row(&mut self, command: Command) -> Vec<Effect> {
        match command {
            Command::Copy => self.offer_copies(),
            Command::Export => self.prompt(PromptKind::Export),
            Command::Mark => return self.mark(),
            Command::Note if self.selected().is_some() => self.prompt(PromptKind::Note),
            Command::Marks => self.show_marks(),
            Command::Compare => return self.compare(),
            Command::Whole => return self.conclude_from_all(),
            Command::Import => {
                let row = self.selected().filter(|_| !self.in_crash);
                let log = row.and_then(|row| self.catalogue.view().log(row).map(PathBuf::from));
                match log {
                    Some(log) => {
                        self.say(Tone::Dim, format!("importing {}", log.display()));
                        return vec![Effect::Job(Job::Import { log })];
                    }
                    None => self.say(Tone::Dim, "this row has no serial log"),
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// Concludes again, from every section of a long recording.
    fn conclude_from_all(&mut self) -> Vec<Effect> {
        let (generation, sources) = (self.issued.crash(), self.sources.clone());
        let Some(crash) = self.crash.as_ref().filter(|_| self.in_crash) else { return Vec::new() };
        if crash.skipped.is_empty() {
            self.say(Tone::Good, "conclusions rest on everything that is in this dump");
            return Vec::new();
        }
        let path = crash.path.clone();
        self.say(Tone::Dim, "everything is being read again; the lists change when that is done");
        vec![Effect::Job(Job::Conclude { generation, path, sources, whole: true })]
    }

    fn page(&self) -> isize {
        let rows = super::layout::layout(self).rows.height;
        isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
    }

    fn step(&mut self, by: isize) {
        let Some(view) = self.view() else { return };
        let len = view.len();
        self.list_mut().step(by, len);
    }

    fn turn_to_tab(&mut self, tab: usize) {
        let Some(crash) = self.crash.as_ref() else { return };
        if tab >= TABS.len() || (crash.tab == tab && crash.extra.is_none() && self.in_crash) {
            return;
        }
        self.remember();
        self.in_crash = true;
        if let Some(crash) = self.crash.as_mut() {
            crash.tab = tab;
            crash.extra = None;
        }
    }

    fn next_tab(&mut self, by: usize) {
        let Some(crash) = self.shown_crash() else { return };
        let tab = (crash.tab + by) % TABS.len();
        self.turn_to_tab(tab);
    }

    fn next_mode(&mut self) {
        if self.shown_crash().is_none_or(|crash| crash.extra.is_some() || TABS[crash.tab].1.len() < 2) {
            return;
        }
        self.remember();
        if let Some(crash) = self.crash.as_mut() {
            let lists = TABS[crash.tab].1.len();
            crash.modes[crash.tab] = (crash.modes[crash.tab] + 1) % lists;
        }
    }

    pub(super) fn prompt(&mut self, kind: PromptKind) {
        if kind == PromptKind::Goto && self.shown_crash().is_none() {
            return;
        }
        let input = match kind {
            PromptKind::Filter => self.list().filter.clone(),
            PromptKind::Goto => String::new(),
            PromptKind::Note => self.note_here().unwrap_or_default(),
            PromptKind::Export => self.name_of_export(),
        };
        self.overlay = Some(Overlay::Prompt { kind, input, problem: None });
    }

    fn name_of_export(&self) -> String {
        match self.shown_crash() {
            Some(crash) => {
                let stem = crash.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                format!("{stem}-{}.txt", crash.slot().name())
            }
            None => "dumps.txt".to_string(),
        }
    }

    fn note_here(&self) -> Option<String> {
        let (view, row) = (self.view()?, self.selected()?);
        let target = view.target(row, &self.list().look)?;
        Some(self.shown_crash()?.marks.get(&target)?.note.clone())
    }

    /// Filters for the process of the row; a second time takes that away.
    fn same_process(&mut self) -> Vec<Effect> {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return Vec::new() };
        if self.list().filter.starts_with("pid=") {
            return self.escape();
        }
        let Some(FieldValue::Number(pid)) = view.field(row, "pid") else {
            self.say(Tone::Dim, "this row is of no process");
            return Vec::new();
        };
        self.filter_typed(&format!("pid={pid}"))
    }

    /// The next row that the filter, or the last one, holds for.
    fn seek(&mut self, forward: bool) -> Vec<Effect> {
        let list = self.list();
        // Among filtered rows every row holds.
        if list.shown.is_some() && list.sort.is_none() {
            self.step(if forward { 1 } else { -1 });
            return Vec::new();
        }
        let mut filter = if list.filter.is_empty() { list.last_filter.clone() } else { list.filter.clone() };
        if filter.is_empty() && self.view().is_some_and(|view| view.pair().is_some()) {
            filter = "same:no".to_string();
        }
        if filter.is_empty() {
            self.say(Tone::Dim, "nothing has been filtered for yet: / does");
            return Vec::new();
        }
        let (Some(view), Some(from)) = (self.view(), self.selected()) else { return Vec::new() };
        let id = self.list_id();
        if view.len() > crate::list::AT_ONCE {
            let number = self.issued.next_question();
            return vec![Effect::Job(Job::Seek { list: id, number, view, filter, from, forward })];
        }
        match crate::list::search(view.as_ref(), &filter, from, forward, &mut |_| true) {
            Ok(Some(row)) => self.list_mut().select(row, view.len()),
            Ok(None) => self.say(Tone::Care, "no row holds"),
            Err(error) => self.say(Tone::Care, error.to_string()),
        }
        Vec::new()
    }

    fn escape(&mut self) -> Vec<Effect> {
        if !self.in_crash && self.chosen.take().is_some() {
            self.say(Tone::Dim, "no longer chosen");
            return Vec::new();
        }
        let list = self.list_mut();
        if list.shown.is_some() || list.pending {
            let row = self.selected();
            let list = self.list_mut();
            list.show_all();
            list.selected = row.unwrap_or(list.selected);
            self.issued.next_question();
        } else if let Some(crash) = self.crash.as_mut().filter(|crash| crash.extra.is_some()) {
            crash.extra = None;
        }
        Vec::new()
    }

    fn sort(&mut self) -> Vec<Effect> {
        let Some(view) = self.view() else { return Vec::new() };
        let columns = view.columns();
        let now = self.list().sort.map_or(0, |(column, _)| column + 1);
        let sortable = |column: &usize| !view.is_empty() && view.key(0, *column).is_some();
        let next = (now..columns.len()).find(|column| sortable(column) && !columns[*column].name.is_empty());
        self.list_mut().sort = next.map(|column| (column, false));
        if !self.in_crash && next.is_some() && self.catalogue.grouped {
            // Groups have an order of their own.
            self.catalogue.grouped = false;
            self.catalogue.regroup();
        }
        match next {
            Some(column) => self.say(Tone::Dim, format!("sorted by {}; S turns it round", columns[column].name)),
            None => self.say(Tone::Dim, "in the order of the dump"),
        }
        self.ask(self.list_id())
    }

    fn reverse(&mut self) -> Vec<Effect> {
        let list = self.list_mut();
        match list.sort {
            Some((column, way)) => list.sort = Some((column, !way)),
            None => {
                self.say(Tone::Dim, "s sorts by a column first");
                return Vec::new();
            }
        }
        self.ask(self.list_id())
    }

    fn scroll_detail(&mut self, by: isize) {
        let most = match (self.view(), self.selected()) {
            (Some(view), Some(row)) => view.detail(row, &self.list().look).len().saturating_sub(1),
            _ => 0,
        };
        let list = self.list_mut();
        list.detail = list.detail.saturating_add_signed(by).min(most);
    }

    fn reload(&mut self) -> Vec<Effect> {
        let mut effects = vec![Effect::Job(self.catalogue.reload())];
        if self.in_crash
            && let Some(path) = self.crash.as_ref().map(|crash| crash.path.clone())
        {
            let before = self.crash.take();
            let extra = before.as_ref().and_then(|crash| crash.extra);
            effects.extend(self.open(path));
            if let (Some(crash), Some(before)) = (self.crash.as_mut(), before) {
                (crash.tab, crash.modes) = (before.tab, before.modes);
                let lists = before.lists.into_iter().map(|(slot, list)| (slot, ListState { shown: None, ..list }));
                crash.lists = lists.collect();
                crash.marks = before.marks;
                if let Some(path) = before.second.map(|second| second.path) {
                    effects.extend(self.open_beside(path));
                }
            }
            if let Some(crash) = self.crash.as_mut() {
                crash.extra = extra;
                crash.install(Slot::Marks, Arc::new(crate::view::marks::marks(&crash.marks)));
            }
        }
        effects
    }

    /// The row, its address and the command that says the same, to choose from.
    fn offer_copies(&mut self) {
        let Some(view) = self.view() else { return };
        let look = self.list().look;
        let mut items = Vec::new();
        if let Some(row) = self.selected() {
            let text = view.row(row, &look).text();
            items.push((format!("row      {text}"), MenuAction::Copy(text)));
            let target = view.target(row, &look);
            if let Some(addr) = target.as_ref().and_then(Target::address) {
                let addr = crate::text::address(addr);
                items.push((format!("address  {addr}"), MenuAction::Copy(addr)));
            }
            if let Some(Target::Dump(path)) = target {
                items.push((format!("path     {path}"), MenuAction::Copy(path)));
            }
        }
        let command = view.command(&self.dump_name());
        items.push((format!("command  {command}"), MenuAction::Copy(command)));
        self.overlay = Some(Overlay::Menu { title: "copy".to_string(), items, selected: 0 });
    }

    fn mark(&mut self) -> Vec<Effect> {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return Vec::new() };
        let look = self.list().look;
        let own = |target: &Target| !matches!(target, Target::Other(_));
        let Some(target) = view.target(row, &look).filter(own).filter(|_| self.slot() != Some(Slot::Marks)) else {
            return Vec::new();
        };
        let text = view.row(row, &look).text();
        let Some(crash) = self.crash.as_mut().filter(|_| self.in_crash) else { return Vec::new() };
        let fresh = crash.marks.toggle(target, text);
        self.say(Tone::Good, if fresh { "marked; ' lists the marks" } else { "the mark is gone" });
        self.save_marks()
    }

    /// Writes the marks beside the dump; without any, the file goes.
    pub(super) fn save_marks(&mut self) -> Vec<Effect> {
        let Some(crash) = self.crash.as_mut() else { return Vec::new() };
        let text = (!crash.marks.marks.is_empty()).then(|| crash.marks.text());
        if crash.views.contains_key(&Slot::Marks) {
            crash.install(Slot::Marks, Arc::new(crate::view::marks::marks(&crash.marks)));
        }
        vec![Effect::Write { path: Marks::path(&crash.path), text }]
    }

    fn show_marks(&mut self) {
        if self.shown_crash().is_none() {
            return;
        }
        self.remember();
        if let Some(crash) = self.crash.as_mut() {
            crash.install(Slot::Marks, Arc::new(crate::view::marks::marks(&crash.marks)));
            crash.turn_to(Slot::Marks);
        }
    }

    /// The question that a list is asked changes with what is typed.
    pub(super) fn filter_typed(&mut self, input: &str) -> Vec<Effect> {
        let id = self.list_id();
        self.list_mut().filter = input.to_string();
        if input.is_empty() {
            self.list_mut().last_filter = String::new();
        }
        self.ask(id)
    }
}
