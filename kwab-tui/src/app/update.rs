//! The one place where the interface changes.

use std::sync::Arc;

use super::{Action, App, Effect, Mouse, Overlay};
use crate::keys::Key;
use crate::list::Question;
use crate::load::{Job, ListId, Message};
use crate::theme::Tone;
use crate::view::Slot;

impl App {
    /// Changes the interface by what happened, and says what has to be done outside.
    pub fn update(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Key(event) => {
                let key = Key::of(&event);
                if self.overlay.is_some() {
                    return self.overlay_key(key);
                }
                self.status = None;
                match self.config.keys.command(key) {
                    Some(command) => self.run(command),
                    None => Vec::new(),
                }
            }
            Action::Paste(text) => self.paste(&text),
            Action::Mouse(mouse) => self.mouse(mouse),
            Action::Resize(columns, rows) => {
                self.size = (columns, rows);
                Vec::new()
            }
            Action::Tick(now) => {
                self.now = now;
                self.catalogue.tick(now).map(Effect::Job).into_iter().collect()
            }
            Action::Command(command) => self.run(command),
            Action::Loaded(message) => self.loaded(message),
        }
    }

    /// Brings what is drawn up to date: to be called once before drawing, however much has happened.
    pub fn settle(&mut self) -> Vec<Effect> {
        if self.catalogue.settle() {
            let Question { filter, sort } = question(&self.catalogue.list);
            if !filter.is_empty() || sort.is_some() {
                return self.ask(ListId::Catalogue);
            }
        }
        Vec::new()
    }

    fn mouse(&mut self, mouse: Mouse) -> Vec<Effect> {
        match (mouse, &self.overlay) {
            (Mouse::Up, None) => self.run(crate::action::Command::Up),
            (Mouse::Down, None) => self.run(crate::action::Command::Down),
            (Mouse::Up | Mouse::Down, Some(_)) => {
                let code =
                    if mouse == Mouse::Up { crossterm::event::KeyCode::Up } else { crossterm::event::KeyCode::Down };
                self.overlay_key(Key { code, modifiers: crossterm::event::KeyModifiers::NONE })
            }
            (Mouse::Click(..), Some(_)) => {
                self.overlay = None;
                Vec::new()
            }
            (Mouse::Click(column, row), None) => self.click(column, row),
        }
    }

    fn click(&mut self, column: u16, row: u16) -> Vec<Effect> {
        let layout = super::layout::layout(self);
        if let Some(tab) = super::tabs::tab_at(self, &layout, column, row) {
            return self.run(crate::action::Command::Tab(u8::try_from(tab).unwrap_or(0)));
        }
        if let Some(picture) = layout.picture.filter(|area| area.contains((column, row).into())) {
            return self.click_picture(picture, column, row);
        }
        let rows = layout.rows;
        if !(rows.y..rows.y + rows.height).contains(&row) || !(rows.x..rows.x + rows.width).contains(&column) {
            return Vec::new();
        }
        let Some(view) = self.view() else { return Vec::new() };
        let len = view.len();
        let list = self.list_mut();
        list.scroll(len, usize::from(rows.height));
        let position = list.top + usize::from(row - rows.y);
        if position >= list.count(len) {
            return Vec::new();
        }
        // A click on the row that is selected already follows it.
        if list.position(len) == position {
            return self.follow();
        }
        list.go(position, len);
        Vec::new()
    }

    /// A click into the picture selects the row that it stands for.
    fn click_picture(&mut self, area: ratatui::layout::Rect, column: u16, row: u16) -> Vec<Effect> {
        let (Some(view), Some(selected)) = (self.view(), self.selected()) else { return Vec::new() };
        let (at, size) = ((column - area.x, row - area.y), (area.width, area.height));
        let look = self.list().look;
        if let Some(row) = view.row_at(at, selected, &look, size) {
            self.list_mut().select(row, view.len());
        }
        Vec::new()
    }

    /// Asks which rows of a list are to be shown: short lists at once, long ones in the background.
    pub(super) fn ask(&mut self, id: ListId) -> Vec<Effect> {
        let Some(view) = self.view_of(id) else { return Vec::new() };
        let question = question(self.list_of(id));
        let number = self.issued.next_question();
        if view.len() > crate::list::AT_ONCE && (!question.filter.is_empty() || question.sort.is_some()) {
            self.list_of(id).pending = true;
            return vec![Effect::Job(Job::Answer { list: id, number, view, question })];
        }
        let rows = crate::list::answer(view.as_ref(), &question, &mut |_| true);
        self.answered(id, rows.map_err(|error| error.to_string()));
        Vec::new()
    }

    fn answered(&mut self, id: ListId, rows: Result<Option<Vec<u32>>, String>) {
        let wrong = rows.as_ref().err().cloned();
        match rows {
            Ok(rows) => {
                let len = self.view_of(id).map_or(0, |view| view.len());
                let list = self.list_of(id);
                list.show(rows);
                list.clip(len);
            }
            Err(_) => self.list_of(id).pending = false,
        }
        match (&mut self.overlay, wrong) {
            (Some(Overlay::Prompt { problem, .. }), wrong) => *problem = wrong,
            (_, Some(wrong)) => self.say(Tone::Care, wrong),
            _ => {}
        }
    }

    fn view_of(&self, id: ListId) -> Option<Arc<dyn crate::view::View>> {
        match id {
            ListId::Catalogue => Some(self.catalogue.view()),
            ListId::Crash(generation, slot) if generation == self.issued.crash() => {
                self.crash.as_ref()?.views.get(&slot).cloned()
            }
            ListId::Crash(..) => None,
        }
    }

    fn list_of(&mut self, id: ListId) -> &mut crate::list::ListState {
        match (id, self.crash.as_mut()) {
            (ListId::Crash(_, slot), Some(crash)) => crash.lists.entry(slot).or_default(),
            _ => &mut self.catalogue.list,
        }
    }

    /// Takes what a job found out.
    fn loaded(&mut self, message: Message) -> Vec<Effect> {
        match message {
            Message::Found { generation, dumps, logs, done } if generation == self.catalogue.generation() => {
                let jobs = self.catalogue.found(dumps, logs, done, self.now);
                return jobs.into_iter().map(Effect::Job).collect();
            }
            Message::Entries { generation, entries } if generation == self.catalogue.generation() => {
                self.catalogue.entries(entries);
            }
            Message::Progress { generation, what, done, total } if self.is_current(generation) => {
                if done >= total {
                    self.progress.remove(what);
                } else {
                    self.progress.insert(what, (done, total));
                }
            }
            Message::Failed { generation, text } if self.is_current(generation) => {
                let generation = if generation == self.issued.crash() { generation } else { 0 };
                if let Some(crash) = self.crash.as_mut().filter(|crash| generation > 0 && crash.report.is_none()) {
                    crash.failed = Some(text.clone());
                }
                self.say(Tone::Alarm, text);
            }
            Message::Told { text } => self.say(Tone::Good, text),
            Message::Answer { list, number, rows } if number == self.issued.question() => self.answered(list, rows),
            Message::Sought { list, number, row } if number == self.issued.question() => {
                match (row, self.view_of(list)) {
                    (Some(row), Some(view)) => self.list_of(list).select(row, view.len()),
                    _ => self.say(Tone::Care, "no other row holds"),
                }
            }
            Message::Imported { text, .. } => {
                self.say(Tone::Good, text);
                return vec![Effect::Job(self.catalogue.reload())];
            }
            message => return self.loaded_of_crash(message),
        }
        Vec::new()
    }

    fn loaded_of_crash(&mut self, message: Message) -> Vec<Effect> {
        let generation = self.issued.crash();
        let Some(crash) = self.crash.as_mut() else { return Vec::new() };
        match message {
            Message::Head { generation: of, report } if of == generation => {
                crash.report = Some(report);
                return self.compare_heads();
            }
            Message::Skipped { generation: of, skipped } if of == generation => crash.skipped = skipped,
            Message::Marks { generation: of, marks } if of == generation => match marks {
                Ok(marks) => crash.marks = marks,
                Err(why) => self.say(Tone::Care, format!("the marks of this dump cannot be read: {why}")),
            },
            Message::List { generation: of, slot, view } if of == generation => return self.arrived(slot, view),
            message => return self.loaded_of_second(message),
        }
        Vec::new()
    }

    /// A list of the crash has arrived: the selection of a place that waited for it is made.
    pub(super) fn arrived(&mut self, slot: Slot, view: Arc<dyn crate::view::View>) -> Vec<Effect> {
        let generation = self.issued.crash();
        let Some(crash) = self.crash.as_mut() else { return Vec::new() };
        if crash.is_half(slot, view.as_ref()) {
            return crash.half_arrived(slot, view, false, generation).map(Effect::Job).into_iter().collect();
        }
        crash.install_placed(slot, view);
        let waiting = self.goto.clone().filter(|target| self.place_of(target).is_some());
        if let Some(target) = waiting {
            self.goto = None;
            return self.go(&target);
        }
        let list = self.list_of(ListId::Crash(generation, slot));
        if !list.filter.is_empty() || list.sort.is_some() {
            return self.ask(ListId::Crash(generation, slot));
        }
        Vec::new()
    }
}

fn question(list: &crate::list::ListState) -> Question {
    Question { filter: list.filter.clone(), sort: list.sort }
}
