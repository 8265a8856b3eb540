//! What each action does.

use kwab::report::filter::FieldValue;

use super::outcome::Outcome;
use super::{App, Effect, Overlay, PromptKind, TABS};
use crate::action::Command;
use crate::load::{IMAGES, Job, Tidy};
use crate::theme::Tone;

impl App {
    /// Does what was asked for.
    pub(super) fn run(&mut self, command: Command) -> Vec<Effect> {
        self.overlays.close_prompt();
        let workspace = &mut self.workspace;
        match command {
            Command::Up => workspace.shown_list().step(-1),
            Command::Down => workspace.shown_list().step(1),
            Command::PageUp | Command::PageDown => {
                let rows = super::layout::page(self);
                self.workspace.shown_list().step(if command == Command::PageUp { -rows } else { rows });
            }
            Command::First => workspace.shown_list().step(isize::MIN / 2),
            Command::Last => workspace.shown_list().step(isize::MAX / 2),
            Command::Left => workspace.shown_list().sideways(-1),
            Command::Right => workspace.shown_list().sideways(1),
            Command::ZoomIn => workspace.shown_list().zoom(1, 2),
            Command::ZoomOut => workspace.shown_list().zoom(2, 1),
            Command::ZoomAll => workspace.list_mut().look.window = None,
            Command::WordSize => workspace.list_mut().look.next_word(),
            Command::Endian => {
                let look = &mut workspace.list_mut().look;
                look.big_endian = !look.big_endian;
            }
            Command::DetailDown => workspace.shown_list().scroll_detail(1),
            Command::DetailUp => workspace.shown_list().scroll_detail(-1),
            Command::Detail => self.screen.toggle_detail(),
            Command::DetailLarger => self.screen.give_detail(1),
            Command::DetailSmaller => self.screen.give_detail(-1),
            Command::Catalogue if workspace.shown_crash().is_some() => workspace.leave_crash(),
            Command::Tab(tab) => workspace.turn_to_tab(usize::from(tab)),
            Command::NextTab => workspace.next_tab(1),
            Command::PreviousTab => workspace.next_tab(TABS.len() - 1),
            Command::Mode => workspace.next_mode(),
            Command::Marks => workspace.show_marks(),
            Command::Group => workspace.catalogue_mut().toggle_groups(),
            Command::Fold => workspace.fold(),
            Command::FoldAll => workspace.catalogue_mut().fold_all(),
            Command::Sort => return self.sort(),
            Command::Reverse => return self.reverse(),
            Command::SameProcess => return self.same_process(),
            Command::Palette => self.overlays.open(Overlay::Palette { input: String::new(), selected: 0 }),
            Command::Help => self.overlays.open(Overlay::Help { top: 0 }),
            Command::Redraw => return vec![Effect::Redraw],
            Command::Suspend => return vec![Effect::Suspend],
            Command::Quit | Command::Catalogue => return vec![Effect::Quit],
            other => {
                let outcome = self.outcome_of(other);
                return self.apply(outcome);
            }
        }
        Vec::new()
    }

    /// Does what leaves a sentence, a menu, a prompt or jobs.
    fn outcome_of(&mut self, command: Command) -> Outcome {
        let workspace = &mut self.workspace;
        match command {
            Command::Follow => workspace.follow(),
            Command::Cause => workspace.lead_to_cause(),
            Command::Effect => workspace.lead_to_effect(),
            Command::Back => workspace.travel(true),
            Command::Forward => workspace.travel(false),
            Command::Next | Command::Previous => {
                let (id, view) = (workspace.list_id(), workspace.view());
                self.questions.seek(id, view, workspace.list_mut(), command == Command::Next)
            }
            Command::Escape => self.escape(),
            Command::Filter => workspace.prompt(PromptKind::Filter),
            Command::Goto => workspace.prompt(PromptKind::Goto),
            Command::Symbols => workspace.prompt(PromptKind::Symbols),
            Command::Jumps => workspace.jumps(),
            Command::Edit => workspace.edit(),
            Command::Columns => workspace.choose_column(),
            Command::Select => workspace.select_dump(),
            Command::Delete => workspace.ask_to_tidy(Tidy::Delete),
            Command::Archive => workspace.ask_to_tidy(Tidy::Archive),
            Command::Export => workspace.prompt(PromptKind::Export),
            Command::Note => workspace.prompt(PromptKind::Note),
            Command::Mark => workspace.mark(),
            Command::Compare => workspace.compare(),
            Command::Live => workspace.toggle_live(),
            Command::Whole => workspace.conclude_whole(),
            Command::Reload => Outcome::jobs(workspace.reload()),
            Command::Copy => {
                let items = workspace.copies();
                if items.is_empty() { Outcome::default() } else { Outcome::menu("copy", items) }
            }
            Command::Import => match workspace.selected_log() {
                Some(log) => Outcome::say(Tone::Dim, format!("importing {}", log.display()))
                    .with(Effect::Job(Job::Import { log })),
                None => Outcome::say(Tone::Dim, "this row has no serial log"),
            },
            _ => Outcome::default(),
        }
    }

    /// Filters for the process of the row; a second time takes that away.
    fn same_process(&mut self) -> Vec<Effect> {
        let (Some(view), Some(row)) = (self.workspace.view(), self.workspace.selected()) else { return Vec::new() };
        if self.workspace.list().filter.starts_with("pid=") {
            return self.run(Command::Escape);
        }
        let Some(FieldValue::Number(pid)) = view.field(row, "pid") else {
            self.status.say(Tone::Dim, "this row has no process");
            return Vec::new();
        };
        self.filter(&format!("pid={pid}"))
    }

    /// Takes away what was chosen, filtered or laid over the tabs last.
    fn escape(&mut self) -> Outcome {
        if self.status.is_doing(IMAGES)
            && let Some((path, jobs)) = self.workspace.session_mut().drop_symbols()
        {
            let said = Outcome::say(Tone::Dim, format!("the search for images in {} has ended", path.display()));
            return jobs.into_iter().fold(said, |outcome, job| outcome.with(Effect::Job(job)));
        }
        let in_catalogue = self.workspace.shown_crash().is_none();
        if in_catalogue && self.workspace.catalogue_mut().forget_choice() {
            return Outcome::say(Tone::Dim, "no longer chosen");
        }
        if in_catalogue && self.workspace.catalogue_mut().forget_picks() {
            return Outcome::say(Tone::Dim, "no longer selected");
        }
        if self.workspace.shown_list().unfilter() {
            self.questions.cancel();
        } else if let Some(crash) = self.workspace.session_mut().crash_mut() {
            crash.tabs_mut().uncover();
        }
        Outcome::default()
    }

    fn sort(&mut self) -> Vec<Effect> {
        let Some(view) = self.workspace.view() else { return Vec::new() };
        let sorted = self.workspace.list_mut().sort_by_next(view.as_ref());
        let text = match sorted {
            Some(column) => format!("sorted by {}; S reverses", view.columns()[column].name),
            None => "in the order of the dump".to_string(),
        };
        self.status.say(Tone::Dim, text);
        self.ask(self.workspace.list_id())
    }

    /// Sorts by a column, or the other way round if it is sorted by it.
    pub(super) fn sort_by(&mut self, column: usize) -> Vec<Effect> {
        let list = self.workspace.list_mut();
        list.sort = match list.sort {
            Some((sorted, largest_first)) if sorted == column => Some((column, !largest_first)),
            _ => Some((column, false)),
        };
        self.ask(self.workspace.list_id())
    }

    fn reverse(&mut self) -> Vec<Effect> {
        if !self.workspace.list_mut().reverse() {
            self.status.say(Tone::Dim, "not sorted; s sorts by a column");
            return Vec::new();
        }
        self.ask(self.workspace.list_id())
    }
}
