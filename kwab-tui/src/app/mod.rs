//! Everything the interface knows, each subject in a type that owns its data.
//!
//! * [`Workspace`] is what is looked at: the [`Catalogue`] of dumps, the [`Session`] with the open [`Crash`], and the
//!   history of locations.
//! * `Overlays` is what takes the keys instead of the shown list: help, palette, prompt, menu.
//! * `Questions` filters, sorts and searches the shown list, at once or by a job.
//! * [`Status`] is the sentence in the footer and the progress of jobs, [`Screen`] the size of the terminal.
//!
//! [`App`] coordinates them. It is changed in one place, [`App::update`], which takes an [`Action`] and gives the
//! [`Effect`]s that a caller with a terminal and threads carries out. It reads no clock, no file and no terminal, so
//! tests drive all of it; drawing reads it through shared references.

mod catalogue;
mod comparison;
mod crash;
pub(crate) mod help;
mod history;
pub(crate) mod layout;
mod outcome;
mod overlay;
mod overlays;
mod pace;
mod questions;
mod run;
mod session;
mod shown_list;
mod slots;
mod status;
pub(crate) mod tab_line;
mod tabs;
mod update;
mod workspace;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossterm::event::KeyEvent;

pub use crate::changes::Watched;
pub use catalogue::Catalogue;
pub use comparison::Comparison;
pub use crash::Crash;
pub use layout::Screen;
pub use overlay::{MenuAction, Overlay, PromptKind, matching};
pub use session::Session;
pub use status::Status;
pub use tabs::{TABS, Tabs};
pub use workspace::Workspace;

use overlays::Overlays;
use questions::Questions;

use crate::action::Command;
use crate::config::Config;
use crate::load::{Generations, Job, Message, Sources};
use crate::remembered::Remembered;
use crate::theme::Tone;
use crate::view::Target;

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
    /// A directory of the catalogue has changed.
    Changed,
    /// What has come of watching directories.
    Watched(Watched),
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
    /// Tell when something in these directories changes.
    Watch(Vec<PathBuf>),
    /// A text for the clipboard.
    Copy(String),
    /// A file to be written.
    Write {
        /// Path of the file to write.
        path: PathBuf,
        /// What; absent removes the file.
        text: Option<String>,
    },
    /// Open a source file at a line in the user's editor.
    Edit {
        /// The file as an image or the kernel names it.
        file: String,
        /// The line, from 1.
        line: u32,
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
    config: Config,
    screen: Screen,
    workspace: Workspace,
    overlays: Overlays,
    questions: Questions,
    status: Status,
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
        let mut status = Status::default();
        if let Some(problem) = config.problems.first() {
            status.say(Tone::Care, problem.clone());
        }
        let mut workspace = Workspace::new(paths, sources, goto.map(Target::Bytes));
        let mut effects = vec![Effect::Job(workspace.catalogue_mut().scan())];
        effects.extend(single.map(|path| Effect::Job(workspace.open(path))));
        let (screen, overlays, questions) = (Screen::default(), Overlays::default(), Questions::default());
        (Self { config, screen, workspace, overlays, questions, status }, effects)
    }

    /// Continues where the user was in an earlier run.
    pub fn resume(&mut self, remembered: Remembered) {
        self.screen.share_as(remembered.panes);
        self.workspace.session_mut().remember(remembered);
    }

    /// Where the user is, for the next run.
    #[must_use]
    pub fn remembered(&self) -> Remembered {
        let mut all = self.workspace.session().remembered();
        all.panes = self.screen.panes();
        all
    }

    /// Keys and colours.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The size of the terminal, and whether details are shown.
    #[must_use]
    pub const fn screen(&self) -> &Screen {
        &self.screen
    }

    /// What is looked at.
    #[must_use]
    pub const fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// What is drawn over the screen and takes the keys.
    #[must_use]
    pub const fn overlay(&self) -> Option<&Overlay> {
        self.overlays.shown()
    }

    /// The sentence in the footer, and the progress of jobs.
    #[must_use]
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// The longest wait for something to happen, when `now` milliseconds have passed since the start.
    #[must_use]
    pub fn patience(&self, now: u64) -> Duration {
        Duration::from_millis(self.workspace.catalogue().patience(now))
    }

    /// Tells the threads what is looked at now, so that work for anything else is given up.
    pub fn publish(&self, current: &Generations) {
        let session = self.workspace.session();
        current.catalogue.store(self.workspace.catalogue().generation(), Ordering::Relaxed);
        current.crash.store(session.generation(), Ordering::Relaxed);
        current.second.store(session.second_generation(), Ordering::Relaxed);
        current.question.store(self.questions.last(), Ordering::Relaxed);
    }
}
