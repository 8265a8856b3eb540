//! The coordinator: every change begins here.

use super::layout::{layout, under_row};
use super::outcome::Outcome;
use super::overlays::Request;
use super::questions;
use super::session::Taken;
use super::{Action, App, Effect, MenuAction, Mouse, Overlay, PromptKind};
use crate::action::Command;
use crate::keys::Key;
use crate::load::{Job, ListId, Message};
use crate::theme::Tone;

impl App {
    /// Changes the interface by what happened, and says what has to be done outside.
    pub fn update(&mut self, action: Action) -> Vec<Effect> {
        let generation = self.workspace.session().generation();
        if matches!(action, Action::Key(_) | Action::Paste(_) | Action::Mouse(_)) {
            self.workspace.catalogue_mut().pace_mut().touch();
        }
        let effects = match action {
            Action::Key(event) => self.key(Key::of(&event)),
            Action::Paste(text) => {
                let request = self.overlays.paste(&text);
                self.carry_out(request)
            }
            Action::Mouse(mouse) => self.mouse(mouse),
            Action::Resize(columns, rows) => {
                self.screen.resize(columns, rows);
                Vec::new()
            }
            Action::Tick(now) => self.workspace.catalogue_mut().tick(now).map(Effect::Job).into_iter().collect(),
            Action::Changed => {
                self.workspace.catalogue_mut().pace_mut().change();
                Vec::new()
            }
            Action::Watched(watched) => {
                self.workspace.catalogue_mut().pace_mut().watch(watched);
                Vec::new()
            }
            Action::Command(command) => self.run(command),
            Action::Loaded(message) => self.loaded(message),
        };
        if self.workspace.session().generation() != generation {
            // Another crash has been opened: what was over the one before and what was loading for it is over.
            self.status.abandon();
            self.overlays.close();
        }
        effects
    }

    /// Brings what is drawn up to date: to be called once before drawing, however much has happened.
    pub fn settle(&mut self) -> Vec<Effect> {
        let catalogue = self.workspace.catalogue_mut();
        if catalogue.settle() && !catalogue.list().question().is_trivial() {
            return self.ask(ListId::Catalogue);
        }
        Vec::new()
    }

    fn key(&mut self, key: Key) -> Vec<Effect> {
        if self.overlays.shown().is_some() {
            let here = self.workspace.key_scope();
            let help = super::help::help_lines(&self.config.keys, here).len();
            let request = self.overlays.key(key, here, help);
            return self.carry_out(request);
        }
        self.status.clear();
        self.config.keys.command(key).map_or_else(Vec::new, |command| self.run(command))
    }

    fn mouse(&mut self, mouse: Mouse) -> Vec<Effect> {
        match (mouse, self.overlays.shown().is_some()) {
            (Mouse::Up, false) => self.run(Command::Up),
            (Mouse::Down, false) => self.run(Command::Down),
            (Mouse::Up, true) => self.key(Key::plain(crossterm::event::KeyCode::Up)),
            (Mouse::Down, true) => self.key(Key::plain(crossterm::event::KeyCode::Down)),
            (Mouse::Click(..), true) => {
                self.overlays.close();
                Vec::new()
            }
            (Mouse::Click(column, row), false) => self.click(column, row),
        }
    }

    /// A click selects the tab, the part of the picture or the row under it; on the selected row it follows the link.
    fn click(&mut self, column: u16, row: u16) -> Vec<Effect> {
        let layout = layout(self);
        if let Some(tab) = super::tab_line::tab_at(self, &layout, column, row) {
            return self.run(Command::Tab(u8::try_from(tab).unwrap_or(0)));
        }
        let (Some(view), selected) = (self.workspace.view(), self.workspace.selected()) else { return Vec::new() };
        let len = view.len();
        let list = self.workspace.list_mut();
        if let Some(area) = layout.picture.filter(|area| area.contains((column, row).into())) {
            let (at, size) = ((column - area.x, row - area.y), (area.width, area.height));
            let row = selected.and_then(|selected| view.row_at(at, selected, &list.look, size));
            row.into_iter().for_each(|row| list.select(row, len));
            return Vec::new();
        }
        let Some(line) = under_row(layout.rows, column, row) else { return Vec::new() };
        list.scroll(len, usize::from(layout.rows.height));
        let position = list.top + line;
        if position >= list.count(len) {
            return Vec::new();
        }
        if list.position(len) == position {
            return self.run(Command::Follow);
        }
        list.go(position, len);
        Vec::new()
    }

    /// Says and opens what an operation has left to be said and opened; gives its effects.
    pub(super) fn apply(&mut self, outcome: Outcome) -> Vec<Effect> {
        if let Some((tone, text)) = outcome.said {
            self.status.say(tone, text);
        }
        if let Some(overlay) = outcome.overlay {
            self.overlays.open(overlay);
        }
        outcome.effects
    }

    /// Does what a key in an overlay asks for.
    fn carry_out(&mut self, request: Request) -> Vec<Effect> {
        let outcome = match request {
            Request::Nothing => Outcome::default(),
            Request::Run(command) => return self.run(command),
            Request::Goto(input) => self.workspace.goto(&input).unwrap_or_else(|why| Outcome::say(Tone::Care, why)),
            Request::Filter(input) => return self.filter(&input),
            Request::NoFilter => {
                let effects = self.filter("");
                self.workspace.list_mut().show_all();
                return effects;
            }
            Request::Step(by) => {
                self.workspace.shown_list().step(by);
                Outcome::default()
            }
            Request::Complete(input) => Outcome::jobs([Job::Complete { input }]),
            Request::Accept(kind, input) => self.accept(kind, input),
            Request::Choose(MenuAction::Nothing) => Outcome::say(Tone::Dim, "nothing is changed"),
            Request::Choose(MenuAction::SortBy(column)) => return self.sort_by(column),
            Request::Choose(MenuAction::Travel(by)) => self.workspace.jump(by),
            Request::Choose(MenuAction::Tidy(how, files)) => self.workspace.tidy(how, files),
            Request::Choose(MenuAction::Copy(text)) => {
                Outcome::say(Tone::Good, format!("copied: {text}")).with(Effect::Copy(text))
            }
            Request::Choose(MenuAction::Go(target)) => self.workspace.go(&target),
            Request::Choose(MenuAction::Beside(path)) => self.workspace.compare_with(path),
            Request::Choose(MenuAction::Choose(path)) => self.workspace.choose_other(path),
        };
        self.apply(outcome)
    }

    /// Takes the input of a prompt.
    fn accept(&mut self, kind: PromptKind, input: String) -> Outcome {
        match kind {
            PromptKind::Filter => {
                self.workspace.list_mut().last_filter = input;
                Outcome::default()
            }
            PromptKind::Goto => self.workspace.goto(&input).unwrap_or_else(|why| {
                let overlay = Some(Overlay::Prompt { kind, input, problem: Some(why) });
                Outcome { overlay, ..Outcome::default() }
            }),
            PromptKind::Note => self.workspace.note(input),
            PromptKind::Symbols if input.trim().is_empty() => Outcome::default(),
            PromptKind::Symbols => Outcome::jobs([Job::Locate { input }]),
            PromptKind::Export => {
                let Some(view) = self.workspace.view().filter(|_| !input.is_empty()) else {
                    return Outcome::default();
                };
                let (list, inputs) = (Box::new(self.workspace.list().clone()), self.workspace.inputs());
                Outcome::say(Tone::Dim, format!("writing {input}")).with(Effect::Job(Job::Export {
                    path: input.into(),
                    view,
                    list,
                    inputs,
                }))
            }
        }
    }

    /// Filters the shown list by what is typed.
    pub(super) fn filter(&mut self, input: &str) -> Vec<Effect> {
        let list = self.workspace.list_mut();
        list.filter = input.to_string();
        if input.is_empty() {
            list.last_filter.clear();
        }
        self.ask(self.workspace.list_id())
    }

    /// Asks which rows of a list are to be shown: short lists at once, long ones in the background.
    pub(super) fn ask(&mut self, id: ListId) -> Vec<Effect> {
        let Some(view) = self.workspace.view_of(id) else { return Vec::new() };
        match self.questions.ask(id, view, self.workspace.list_of(id)) {
            Ok(Some(job)) => vec![Effect::Job(job)],
            answered => {
                self.judge(answered.err());
                Vec::new()
            }
        }
    }

    /// Says what a filter has that cannot be understood: at the prompt while it is typed, in the footer after that.
    fn judge(&mut self, wrong: Option<String>) {
        if let (false, Some(wrong)) = (self.overlays.judge(wrong.as_deref()), wrong) {
            self.status.say(Tone::Care, wrong);
        }
    }

    /// Takes what a job found out.
    fn loaded(&mut self, message: Message) -> Vec<Effect> {
        let workspace = &mut self.workspace;
        match message {
            Message::Found { generation, dumps, logs, done } if generation == workspace.catalogue().generation() => {
                let mut jobs = workspace.catalogue_mut().found(dumps, logs, done);
                // What is typed or chosen just now is not taken away by a dump that grows.
                if done && self.overlays.shown().is_none() {
                    jobs.extend(workspace.go_on());
                }
                return jobs.into_iter().map(Effect::Job).collect();
            }
            Message::Folders { generation, folders } if generation == workspace.catalogue().generation() => {
                return vec![Effect::Watch(folders)];
            }
            Message::Entries { generation, entries, judged } if generation == workspace.catalogue().generation() => {
                workspace.catalogue_mut().entries(entries, judged);
            }
            Message::Progress { generation, what, done, total } if workspace.session().is_current(generation) => {
                self.status.advance(what, done, total);
            }
            Message::Failed { generation, text } if workspace.session().is_current(generation) => {
                workspace.session_mut().fail(generation, &text);
                self.status.say(Tone::Alarm, text);
            }
            Message::Told { text } => self.status.say(Tone::Good, text),
            Message::Answer { list, number, rows } if number == self.questions.last() => {
                let len = workspace.view_of(list).map_or(0, |view| view.len());
                let answered = questions::take(rows, len, workspace.list_of(list));
                self.judge(answered.err());
            }
            Message::Sought { list, number, row } if number == self.questions.last() => {
                match (row, workspace.view_of(list)) {
                    (Some(row), Some(view)) => workspace.list_of(list).select(row, view.len()),
                    _ => self.status.say(Tone::Care, "no other row matches"),
                }
            }
            Message::Completed { input, to, others } => self.overlays.complete(&input, to, &others),
            Message::Located { path } => {
                self.status.say(Tone::Dim, format!("looking for symbols in {}", path.display()));
                return workspace.add_symbols(path).into_iter().map(Effect::Job).collect();
            }
            Message::Tidied { text, all } => {
                self.status.say(if all { Tone::Good } else { Tone::Care }, text);
                workspace.catalogue_mut().forget_picks();
                return vec![Effect::Job(workspace.catalogue_mut().look_again())];
            }
            Message::Imported { text, .. } => {
                self.status.say(Tone::Good, text);
                return vec![Effect::Job(workspace.catalogue_mut().reload())];
            }
            message => return self.loaded_of_crash(message),
        }
        Vec::new()
    }

    /// Takes what a job of the open crash found out; a list that has arrived may show the awaited target.
    fn loaded_of_crash(&mut self, message: Message) -> Vec<Effect> {
        match self.workspace.session_mut().take(message) {
            Taken::Job(job) => job.into_iter().map(Effect::Job).collect(),
            Taken::NoMarks(why) => {
                self.status.say(Tone::Care, format!("the marks of this dump cannot be read: {why}"));
                Vec::new()
            }
            Taken::List(slot) => {
                if let Some(outcome) = self.workspace.go_to_awaited() {
                    return self.apply(outcome);
                }
                let id = ListId::Crash(self.workspace.session().generation(), slot);
                if self.workspace.list_of(id).question().is_trivial() { Vec::new() } else { self.ask(id) }
            }
        }
    }
}
