//! Comparing two crashes: which two, and how they are chosen.

use std::path::PathBuf;

use super::Workspace;
use crate::app::MenuAction;
use crate::app::catalogue::Choice;
use crate::app::outcome::Outcome;
use crate::theme::Tone;

/// Dumps that a menu offers to compare with; the list of dumps has all.
const OFFERED: usize = 8;

impl Workspace {
    /// The action: chooses in the list of dumps, asks in a crash, ends a comparison.
    pub(in crate::app) fn compare(&mut self) -> Outcome {
        if !self.in_crash {
            return self.choose_in_catalogue();
        }
        let Some(crash) = self.session.crash() else { return Outcome::default() };
        if crash.comparison().is_some() {
            self.remember();
            if let Some(crash) = self.session.crash_mut() {
                crash.end_comparison();
            }
            return Outcome::say(Tone::Good, "comparison ended; c compares again");
        }
        let path = crash.path().to_path_buf();
        let signature = crash.report().map(|report| report.signature.clone());
        let others = self.catalogue.others(&path, signature.as_deref());
        if others.is_empty() {
            return Outcome::say(Tone::Care, "no other dump in the list to compare with");
        }
        let more = others.len() > OFFERED;
        let offered = others.into_iter().take(OFFERED);
        let mut items: Vec<_> = offered.map(|(label, path)| (label, MenuAction::Beside(path))).collect();
        if more {
            items.push(("another: choose in the list of dumps".to_string(), MenuAction::Choose(path)));
        }
        Outcome::menu("compare with", items)
    }

    fn choose_in_catalogue(&mut self) -> Outcome {
        let row = self.selected();
        let Some(path) = row.and_then(|row| self.catalogue.view().path(row).map(PathBuf::from)) else {
            return Outcome::say(Tone::Care, "this row has no dump");
        };
        match self.catalogue.choose(path) {
            Choice::First => Outcome::say(Tone::Good, "chosen; c on another dump compares the two, esc cancels"),
            Choice::Forgotten => Outcome::say(Tone::Dim, "no longer chosen"),
            Choice::Pair(first, second) => {
                self.remember();
                self.show(first, Some(second))
            }
        }
    }

    /// Chooses the open crash, and goes to the list for the other.
    pub(in crate::app) fn choose_other(&mut self, first: PathBuf) -> Outcome {
        self.catalogue.choose_first(first);
        self.leave_crash();
        Outcome::say(Tone::Good, "c on another dump compares the two")
    }

    /// Compares the open crash with a dump.
    pub(in crate::app) fn compare_with(&mut self, path: PathBuf) -> Outcome {
        let Some(first) = self.session.crash().map(|crash| crash.path().to_path_buf()) else {
            return Outcome::default();
        };
        self.remember();
        self.show(first, Some(path))
    }
}
