//! The terminal interface, a library that `kwab tui` runs: from the list of crashes to the instruction, the page, the
//! event before it.
//!
//! ```text
//!  keys, mouse, signals ─▶ terminal ─▶ App::update ─▶ effects ─▶ load (threads) ─▶ messages ─▶ App::update
//!                             ▲                          │
//!                             └──────────── draw ◀───────┘
//! ```
//!
//! * [`app`] is the state, changed in one place by [`app::App::update`], which knows neither terminal nor clock nor
//!   file.
//! * [`action`] is the one table of what a person can do; keys, help, palette and manual are read from it.
//! * [`view`] is what every list has in common; each list is a value made once from a dump and looked at row by row.
//!   [`list`] filters, sorts, searches and selects over any of them.
//! * [`load`] opens dumps and concludes, in threads, with progress and cancelling; conclusions are the library's.
//! * [`draw`] looks at the state and fills cells, only those that are seen.

pub mod action;
pub mod app;
mod changes;
pub mod config;
pub mod draw;
pub mod dump_name;
pub mod editor;
pub mod export;
pub mod keys;
pub mod list;
pub mod load;
pub mod marks;
pub mod remembered;
pub mod target;
mod terminal;
pub mod text;
pub mod theme;
pub mod view;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use app::App;
use config::Config;
use load::Sources;

/// What `kwab tui` was asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Dumps, and directories that hold some.
    pub paths: Vec<PathBuf>,
    /// Where images and files come from.
    pub sources: Sources,
    /// An address to begin at.
    pub goto: Option<u64>,
    /// Whether the mouse is used.
    pub mouse: bool,
    /// Whether colours are used.
    pub colours: bool,
}

/// Why `kwab tui` did not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Standard input or output is not a terminal.
    #[error("kwab tui needs a terminal; kwab inspect and kwab list write to a file or pipe")]
    NoTerminal,
    /// A path that is not there.
    #[error("{}: {error}", path.display())]
    Path {
        /// Path as given on the command line.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The terminal failed.
    #[error("terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Runs the interface until the user quits.
///
/// # Errors
/// [`Error`]; the terminal is as it was before.
pub fn run(options: Options) -> Result<(), Error> {
    for path in &options.paths {
        std::fs::metadata(path).map_err(|error| Error::Path { path: path.clone(), error })?;
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Error::NoTerminal);
    }
    let single = match options.paths.as_slice() {
        [path] if !path.is_dir() && !holds_several(path) => Some(path.clone()),
        _ => None,
    };
    let config = Config::of_user(options.colours);
    let (mut app, first) = App::new(options.paths, single, config, options.sources, options.goto);
    app.resume(remembered::load());
    run_app(app, first, options.mouse)
}

/// Runs an interface that the caller has built, and keeps where the user was at its end; `effects` come first.
///
/// # Errors
/// [`Error::Terminal`]; the terminal is as it was before.
pub fn run_app(app: App, first: Vec<app::Effect>, mouse: bool) -> Result<(), Error> {
    Ok(terminal::run(app, first, mouse)?)
}

/// Whether a file holds several dumps: then they are listed, and none is chosen for the user.
fn holds_several(path: &Path) -> bool {
    kwab::model::DumpsOf::open(path).is_ok_and(|dumps| dumps.count_all() > 1)
}
