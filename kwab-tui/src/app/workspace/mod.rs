//! The list of dumps and the open crash: which of them is shown, and where in it the user is.
//!
//! The shown list is a view, which does not change, and a [`ListState`], which says how it is looked at. Navigation
//! between lists is in `navigate`, what is done to rows in `rows`, to files of dumps in `tidy`, comparing in `compare`.

mod compare;
mod navigate;
mod rows;
mod tidy;

use std::path::PathBuf;
use std::sync::Arc;

use super::catalogue::Catalogue;
use super::crash::Crash;
use super::history::History;
use super::session::Session;
use super::shown_list::ShownList;
use crate::action::KeyScope;
use crate::list::ListState;
use crate::load::{Found, ListId, Sources};
use crate::view::{Slot, Target, View};

/// The list of dumps, the open crash, and the locations that were looked at.
pub struct Workspace {
    catalogue: Catalogue,
    session: Session,
    in_crash: bool,
    history: History,
    /// A target to go to as soon as a list that shows it has arrived.
    awaited: Option<Target>,
    /// Whether the open dump is read again when its file changes.
    live: bool,
    /// The file of the open dump as it was when it was read, while it is followed.
    read: Option<Found>,
}

impl Workspace {
    /// The dumps of files and directories, none of them open.
    pub(super) fn new(paths: Vec<PathBuf>, sources: Sources, awaited: Option<Target>) -> Self {
        let (catalogue, session) = (Catalogue::new(paths), Session::new(sources));
        Self { catalogue, session, in_crash: false, history: History::default(), awaited, live: false, read: None }
    }

    /// The dumps and logs that were found.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The open crash and its jobs.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The dumps and logs that were found, to be changed.
    pub(super) const fn catalogue_mut(&mut self) -> &mut Catalogue {
        &mut self.catalogue
    }

    /// The open crash and its jobs, to be changed.
    pub(super) const fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Whether the crash that is shown is read again when its file changes.
    #[must_use]
    pub const fn is_followed(&self) -> bool {
        self.live && self.in_crash
    }

    /// The crash, if it is what is shown.
    #[must_use]
    pub fn shown_crash(&self) -> Option<&Crash> {
        self.session.crash().filter(|_| self.in_crash)
    }

    /// The list of the crash that is shown; `None` for the list of dumps.
    #[must_use]
    pub fn slot(&self) -> Option<Slot> {
        self.shown_crash().map(|crash| crash.tabs().slot())
    }

    /// The list that is shown; `None` until it is loaded.
    #[must_use]
    pub fn view(&self) -> Option<Arc<dyn View>> {
        self.view_of(self.list_id())
    }

    /// How the shown list is looked at.
    #[must_use]
    pub fn list(&self) -> &ListState {
        match self.shown_crash() {
            Some(crash) => crash.list(crash.tabs().slot()),
            None => self.catalogue.list(),
        }
    }

    /// The same, to be changed.
    pub(super) fn list_mut(&mut self) -> &mut ListState {
        self.list_of(self.list_id())
    }

    /// The shown list, for what moves in it.
    pub(super) fn shown_list(&mut self) -> ShownList<'_> {
        let (view, slot) = (self.view(), self.slot());
        ShownList::new(view, slot, self.list_mut())
    }

    /// The selected row of the shown list.
    #[must_use]
    pub fn selected(&self) -> Option<usize> {
        self.list().current(self.view()?.len())
    }

    /// The shown list as jobs name it.
    pub(super) fn list_id(&self) -> ListId {
        match self.slot() {
            Some(slot) => ListId::Crash(self.session.generation(), slot),
            None => ListId::Catalogue,
        }
    }

    /// A list, unless it is one of a crash that is no longer open.
    pub(super) fn view_of(&self, id: ListId) -> Option<Arc<dyn View>> {
        match id {
            ListId::Catalogue => Some(self.catalogue.view()),
            ListId::Crash(generation, slot) if generation == self.session.generation() => {
                self.session.crash()?.view(slot).cloned()
            }
            ListId::Crash(..) => None,
        }
    }

    /// How a list is looked at, to be changed.
    pub(super) fn list_of(&mut self, id: ListId) -> &mut ListState {
        match (id, self.session.crash_mut()) {
            (ListId::Crash(_, slot), Some(crash)) => crash.list_mut(slot),
            _ => self.catalogue.list_mut(),
        }
    }

    /// Where the user is, for the keys that make sense there.
    #[must_use]
    pub fn key_scope(&self) -> KeyScope {
        match self.slot() {
            None => KeyScope::Catalogue,
            Some(Slot::Timeline | Slot::Spans) => KeyScope::Zoom,
            Some(Slot::Mappings | Slot::Pages | Slot::Audit | Slot::Checks) => KeyScope::Memory,
            Some(Slot::Hex) => KeyScope::Hex,
            Some(_) => KeyScope::Crash,
        }
    }

    /// The dump as commands name it.
    #[must_use]
    pub fn dump_name(&self) -> String {
        match self.shown_crash() {
            Some(crash) => crate::dump_name::in_commands(crash.path()),
            None => self.catalogue.paths().first().map_or_else(|| ".".to_string(), |path| path.display().to_string()),
        }
    }

    /// The command that prints what a list shows, from the same images and files.
    #[must_use]
    pub fn command(&self, view: &dyn View) -> String {
        let command = view.command(&self.dump_name());
        let options = self.session.sources().options(&command);
        command + &options
    }

    /// Every file that is read: dumps, logs, images and the files behind pages.
    pub(super) fn inputs(&self) -> Vec<PathBuf> {
        self.catalogue.files().cloned().chain(self.session.inputs()).collect()
    }
}
