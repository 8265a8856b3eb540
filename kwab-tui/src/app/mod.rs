//! Everything the interface knows: what is found, which crash is open, what is selected, what lies over it.
//!
//! [`App`] is changed in one place, [`App::update`], which takes an [`Action`] and gives the [`Effect`]s that a
//! caller with a terminal and threads carries out. It reads no clock, no file and no terminal, so tests drive all of
//! it.

mod beside;
mod crash;
mod found;
pub(crate) mod help;
mod issued;
mod jump;
pub(crate) mod layout;
mod look;
mod overlay;
mod prompt;
mod run;
pub(crate) mod tabs;
mod trail;
mod update;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossterm::event::KeyEvent;

pub use crash::{Crash, Second, TABS};
pub use found::Catalogue;
pub use overlay::{MenuAction, Overlay, PromptKind, matching};

use issued::Issued;
use trail::Trail;

use crate::action::{Command, KeyScope};
use crate::config::Config;
use crate::list::ListState;
use crate::load::{Generations, Job, ListId, Message, Sources};
use crate::theme::Tone;
use crate::view::{Slot, Target, View};

/// Something that happened.
pub enum Action {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The mouse did something.
    Mouse(Mouse),
    /// The terminal has another size: columns, rows.
    Resize(u16, u16),
    /// Time has passed: milliseconds since the start.
    Tick(u64),
    /// Something was asked for by name.
    Command(Command),
    /// A job has a result.
    Loaded(Message),
}

/// What the mouse did, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    /// Left button at column, row.
    Click(u16, u16),
    /// The wheel, up.
    Up,
    /// The wheel, down.
    Down,
}

/// Something to be done outside.
pub enum Effect {
    /// A job for the threads.
    Job(Job),
    /// A text for the clipboard.
    Copy(String),
    /// A file to be written.
    Write {
        /// Path of the file to write.
        path: PathBuf,
        /// What; absent removes the file.
        text: Option<String>,
    },
    /// Draw everything again.
    Redraw,
    /// To the shell.
    Suspend,
    /// Ends the program.
    Quit,
}

/// The state of the interface.
pub struct App {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Keys and colours.
    pub config: Config,
    /// The dumps and logs that were found.
    pub catalogue: Catalogue,
    /// The open crash.
    pub crash: Option<Crash>,
    /// Whether the crash is looked at, rather than the catalogue.
    pub in_crash: bool,
    /// What lies over the screen.
    pub overlay: Option<Overlay>,
    /// The last thing to be said.
    pub status: Option<(Tone, String)>,
    /// Whether the detail of the row is shown.
    pub detail: bool,
    /// What is being done: done, of how much.
    pub progress: BTreeMap<&'static str, (usize, usize)>,
    /// Milliseconds since the start.
    pub now: u64,
    trail: Trail,
    issued: Issued,
    sources: Sources,
    goto: Option<Target>,
    /// The first of two dumps to compare, chosen in the list.
    pub chosen: Option<PathBuf>,
}

impl App {
    /// An interface over files and directories, with `single` of them open, and the first things to do.
    #[must_use]
    pub fn new(
        paths: Vec<PathBuf>,
        single: Option<PathBuf>,
        config: Config,
        sources: Sources,
        goto: Option<u64>,
    ) -> (Self, Vec<Effect>) {
        let status = config.problems.first().map(|problem| (Tone::Care, problem.clone()));
        let mut app = Self {
            size: (80, 24),
            config,
            catalogue: Catalogue::new(paths),
            crash: None,
            in_crash: false,
            overlay: None,
            status,
            detail: true,
            progress: BTreeMap::new(),
            now: 0,
            trail: Trail::default(),
            issued: Issued::default(),
            sources,
            goto: goto.map(Target::Bytes),
            chosen: None,
        };
        let mut effects = vec![Effect::Job(app.catalogue.scan())];
        if let Some(path) = single {
            effects.extend(app.open(path));
        }
        (app, effects)
    }

    /// Where the interface is, for the keys that make sense there.
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

    /// The crash, when it is looked at.
    #[must_use]
    pub fn shown_crash(&self) -> Option<&Crash> {
        self.crash.as_ref().filter(|_| self.in_crash)
    }

    /// The list of the crash that is shown.
    #[must_use]
    pub fn slot(&self) -> Option<Slot> {
        self.shown_crash().map(Crash::slot)
    }

    /// The list that is shown; absent until it is loaded.
    #[must_use]
    pub fn view(&self) -> Option<Arc<dyn View>> {
        match self.shown_crash() {
            Some(crash) => crash.views.get(&crash.slot()).cloned(),
            None => Some(self.catalogue.view()),
        }
    }

    /// How the shown list is looked at.
    #[must_use]
    pub fn list(&self) -> &ListState {
        match self.shown_crash() {
            Some(crash) => crash.list(),
            None => &self.catalogue.list,
        }
    }

    /// The same, to be changed.
    pub fn list_mut(&mut self) -> &mut ListState {
        match self.crash.as_mut().filter(|_| self.in_crash) {
            Some(crash) => crash.list_mut(),
            None => &mut self.catalogue.list,
        }
    }

    /// The selected row of the shown list.
    #[must_use]
    pub fn selected(&self) -> Option<usize> {
        self.list().current(self.view()?.len())
    }

    /// The generation of the crash that is looked at.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.issued.crash()
    }

    /// Tells the threads what is looked at now, so that work for anything else is given up.
    pub fn publish(&self, current: &Generations) {
        current.catalogue.store(self.catalogue.generation(), Ordering::Relaxed);
        current.crash.store(self.issued.crash(), Ordering::Relaxed);
        let second = self.crash.as_ref().and_then(|crash| crash.second.as_ref());
        current.second.store(second.map_or(0, |second| second.generation), Ordering::Relaxed);
        current.question.store(self.issued.question(), Ordering::Relaxed);
    }

    /// The dump as commands name it.
    #[must_use]
    pub fn dump_name(&self) -> String {
        match self.shown_crash() {
            Some(crash) => crate::dump_name::in_commands(&crash.path),
            None => self.catalogue.paths.first().map_or_else(|| ".".to_string(), |path| path.display().to_string()),
        }
    }

    /// Whether a generation is that of what is looked at: the crash, the one beside it, or no crash at all.
    fn is_current(&self, generation: u64) -> bool {
        let second = self.crash.as_ref().and_then(|crash| crash.second.as_ref());
        generation == self.issued.crash()
            || generation == 0
            || second.is_some_and(|second| second.generation == generation)
    }

    fn list_id(&self) -> ListId {
        match self.slot() {
            Some(slot) => ListId::Crash(self.issued.crash(), slot),
            None => ListId::Catalogue,
        }
    }

    fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.status = Some((tone, text.into()));
    }
}
