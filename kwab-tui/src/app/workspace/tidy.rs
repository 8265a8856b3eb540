//! What is done to files of the list of dumps: groups folded, dumps selected, deleted, archived.

use super::Workspace;
use crate::app::MenuAction;
use crate::app::outcome::Outcome;
use crate::load::{Found, Job, Tidy};
use crate::text::{bytes, count};
use crate::theme::Tone;

impl Workspace {
    /// Folds the group of the selected row, or shows its dumps.
    pub(in crate::app) fn fold(&mut self) {
        if let Some(row) = self.selected().filter(|_| !self.in_crash) {
            self.catalogue.fold(row);
        }
    }

    /// Selects the dumps of the selected row, or ends that; the next row is then selected.
    pub(in crate::app) fn select_dump(&mut self) -> Outcome {
        let row = self.selected().filter(|_| !self.in_crash);
        let picked = row.and_then(|row| self.catalogue.pick(row));
        match picked {
            None => Outcome::say(Tone::Care, "this row has no dump"),
            Some(0) => {
                self.shown_list().step(1);
                Outcome::say(Tone::Dim, "no dump is selected")
            }
            Some(all) => {
                self.shown_list().step(1);
                let text = format!("{} selected; D deletes, A archives, esc ends it", count(all, "dump", "dumps"));
                Outcome::say(Tone::Good, text)
            }
        }
    }

    /// Asks whether the selected dumps, else those of the selected row, are to be deleted or archived.
    pub(in crate::app) fn ask_to_tidy(&self, how: Tidy) -> Outcome {
        if self.in_crash {
            return Outcome::default();
        }
        let row = self.selected();
        let files = self.catalogue.to_tidy(row);
        if files.is_empty() {
            return Outcome::say(Tone::Care, "this row has no dump");
        }
        let size = bytes(files.iter().map(|file| file.len).sum());
        let files_in_words = match files.as_slice() {
            [only] => only.path.display().to_string(),
            files => count(files.len(), "file", "files"),
        };
        let (title, yes) = match how {
            Tidy::Delete => ("delete for good?", format!("yes: delete {files_in_words}, {size}, with marks")),
            Tidy::Archive => ("archive?", format!("yes: move {files_in_words}, {size}, into the folder archive")),
        };
        Outcome::menu(title, vec![("no".to_string(), MenuAction::Nothing), (yes, MenuAction::Tidy(how, files))])
    }

    /// Deletes or archives files that the user was asked about.
    pub(in crate::app) fn tidy(&self, how: Tidy, files: Vec<Found>) -> Outcome {
        let roots = self.catalogue.paths().to_vec();
        let sources = self.session.sources();
        let inputs = roots.iter().chain(&sources.symbols).chain(&sources.backing).cloned().collect();
        Outcome::jobs([Job::Tidy { how, files, roots, inputs }])
    }
}
