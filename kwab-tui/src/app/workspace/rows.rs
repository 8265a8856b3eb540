//! What is done about the rows of the shown list: marking, copying, typing, reading them again.

use std::path::PathBuf;

use super::Workspace;
use crate::app::outcome::Outcome;
use crate::app::{Effect, MenuAction, Overlay, PromptKind};
use crate::load::{Found, Job};
use crate::theme::Tone;
use crate::view::{Slot, Target};

/// Reading what is looked at again.
impl Workspace {
    /// Concludes again, from every section of a long recording.
    pub(in crate::app) fn conclude_whole(&self) -> Outcome {
        if self.shown_crash().is_none() {
            return Outcome::default();
        }
        match self.session.conclude_whole() {
            Some(job) => Outcome::say(Tone::Dim, "reading all sections; the lists change when this is done")
                .with(Effect::Job(job)),
            None => Outcome::say(Tone::Good, "the analysis covers all sections of this dump"),
        }
    }

    /// Reads the dumps again, and the open crash if it is shown.
    pub(in crate::app) fn reload(&mut self) -> Vec<Job> {
        let mut jobs = vec![self.catalogue.reload()];
        if self.in_crash {
            jobs.extend(self.session.reopen());
        }
        jobs
    }
}

/// Following a dump that grows.
impl Workspace {
    /// Begins to read the open dump again whenever its file changes, or ends that.
    pub(in crate::app) fn toggle_live(&mut self) -> Outcome {
        self.live = !self.live && self.in_crash;
        self.catalogue.pace_mut().follow(self.live);
        self.read = self.open_file();
        if !self.live {
            return Outcome::say(Tone::Good, "no longer following");
        }
        // What has come since it was opened is shown at once.
        let said = Outcome::say(Tone::Good, "following: the dump is read again when its file changes");
        self.session.go_on().into_iter().fold(said, |outcome, job| outcome.with(Effect::Job(job)))
    }

    /// Reads the open dump again if it is followed and its file has changed.
    pub(in crate::app) fn go_on(&mut self) -> Vec<Job> {
        // A dump that changes faster than it is read is read to its end all the same.
        let is_read = self.session.crash().is_some_and(|crash| !crash.is_loading());
        let now = self.open_file().filter(|_| self.live && self.in_crash && is_read);
        let Some(now) = now else { return Vec::new() };
        let before = self.read.replace(now.clone());
        // Another dump that was opened meanwhile is as new as its file.
        let has_changed = before.is_some_and(|before| before.path == now.path && before != now);
        if has_changed { self.session.go_on() } else { Vec::new() }
    }

    /// The file of the open dump, as the last look found it.
    fn open_file(&self) -> Option<Found> {
        let file = crate::dump_name::split(self.session.crash()?.path()).0;
        self.catalogue.found_as(&file).cloned()
    }
}

/// Marks and notes.
impl Workspace {
    /// Marks the selected row, or removes its mark.
    pub(in crate::app) fn mark(&mut self) -> Outcome {
        let of_this_dump = |(target, _): &(Target, String)| !matches!(target, Target::Other(_));
        let selected = self.selected_target().filter(of_this_dump).filter(|_| self.slot() != Some(Slot::Marks));
        let Some((target, text)) = selected else { return Outcome::default() };
        let Some(crash) = self.session.crash_mut().filter(|_| self.in_crash) else { return Outcome::default() };
        let fresh = crash.toggle_mark(target, text);
        Outcome::say(Tone::Good, if fresh { "marked; ' lists the marks" } else { "mark removed" })
            .with(crash.save_marks())
    }

    /// Puts a note on the selected row.
    pub(in crate::app) fn note(&mut self, note: String) -> Outcome {
        let Some((target, text)) = self.selected_target() else { return Outcome::default() };
        let Some(crash) = self.session.crash_mut() else { return Outcome::default() };
        crash.note(target, text, note);
        Outcome::say(Tone::Good, "noted; ' lists marks and notes").with(crash.save_marks())
    }

    /// Whether a row has a mark, or is the dump that was chosen to be compared.
    #[must_use]
    pub fn is_marked(&self, target: &Target) -> bool {
        match (self.shown_crash(), target) {
            (Some(crash), target) => crash.marks().get(target).is_some(),
            (None, Target::Dump(path)) => {
                let is_chosen = self.catalogue.chosen().is_some_and(|chosen| chosen.as_os_str() == path.as_str());
                is_chosen || self.catalogue.is_picked(path)
            }
            (None, _) => false,
        }
    }

    /// The target and the text of the selected row.
    fn selected_target(&self) -> Option<(Target, String)> {
        let (view, row, look) = (self.view()?, self.selected()?, self.list().look);
        Some((view.target(row, &look)?, view.row(row, &look).text()))
    }
}

/// What is typed and chosen about rows.
impl Workspace {
    /// Opens the prompt of a kind with its first input; none where it would have nothing to be about.
    pub(in crate::app) fn prompt(&self, kind: PromptKind) -> Outcome {
        let input = match kind {
            PromptKind::Filter => self.list().filter.clone(),
            PromptKind::Goto if self.shown_crash().is_none() => return Outcome::default(),
            PromptKind::Goto => String::new(),
            PromptKind::Note if self.selected().is_none() => return Outcome::default(),
            PromptKind::Note => self.selected_note().unwrap_or_default(),
            PromptKind::Export => self.file_name(),
            PromptKind::Symbols if self.shown_crash().is_none() => return Outcome::default(),
            PromptKind::Symbols => String::new(),
        };
        Outcome { overlay: Some(Overlay::Prompt { kind, input, problem: None }), ..Outcome::default() }
    }

    /// The columns that the shown list can be sorted by.
    pub(in crate::app) fn choose_column(&self) -> Outcome {
        let Some(view) = self.view().filter(|view| !view.is_empty()) else { return Outcome::default() };
        let columns = view.columns().iter().enumerate();
        let sortable = columns.filter(|(at, column)| !column.name.is_empty() && view.key(0, *at).is_some());
        let sorted = self.list().sort;
        let items = sortable.map(|(at, column)| {
            let now = match sorted {
                Some((by, largest_first)) if by == at => {
                    if largest_first {
                        " ↓"
                    } else {
                        " ↑"
                    }
                }
                _ => "",
            };
            (format!("{}{now}", column.name), MenuAction::SortBy(at))
        });
        let items: Vec<_> = items.collect();
        if items.is_empty() {
            return Outcome::say(Tone::Dim, "the order of this list is its meaning");
        }
        Outcome::menu("sort by", items)
    }

    /// Opens the source line of the selected row; in the triage that of the innermost frame that has one.
    pub(in crate::app) fn edit(&self) -> Outcome {
        let own = self.view().zip(self.selected()).and_then(|(view, row)| view.source(row));
        let innermost = || {
            let crash = self.shown_crash().filter(|crash| crash.tabs().slot() == Slot::Triage)?;
            let frames = crash.view(Slot::Backtrace)?;
            (0..frames.len()).find_map(|row| frames.source(row))
        };
        match own.or_else(innermost).as_deref().and_then(crate::editor::place_of) {
            Some((file, line)) => Outcome { effects: vec![Effect::Edit { file, line }], ..Outcome::default() },
            None => Outcome::say(Tone::Care, "this row has no source line; I loads symbols"),
        }
    }

    /// Reads the open dump again with the images of one path more.
    pub(in crate::app) fn add_symbols(&mut self, path: PathBuf) -> Vec<Job> {
        self.session.add_symbols(path)
    }

    /// The serial log that is selected in the list of dumps.
    pub(in crate::app) fn selected_log(&self) -> Option<PathBuf> {
        let row = self.selected().filter(|_| !self.in_crash)?;
        self.catalogue.view().log(row).map(PathBuf::from)
    }

    /// The note on the selected row.
    fn selected_note(&self) -> Option<String> {
        let (target, _) = self.selected_target()?;
        Some(self.shown_crash()?.marks().get(&target)?.note.clone())
    }

    /// The name of the file that the shown rows are exported to, unless another is typed.
    fn file_name(&self) -> String {
        match self.shown_crash() {
            Some(crash) => {
                let stem = crash.path().file_stem().unwrap_or_default().to_string_lossy();
                format!("{stem}-{}.txt", crash.tabs().slot().name())
            }
            None => "dumps.txt".to_string(),
        }
    }

    /// What of the shown list can be copied: the row, its address or path, and the command that prints the same.
    pub(in crate::app) fn copies(&self) -> Vec<(String, MenuAction)> {
        let Some(view) = self.view() else { return Vec::new() };
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
        let command = self.command(&*view);
        items.push((format!("command  {command}"), MenuAction::Copy(command)));
        items
    }
}
