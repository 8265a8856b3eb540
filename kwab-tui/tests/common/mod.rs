//! Drives the interface without a terminal: keys in, screens out, jobs done where they are asked for.

#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod dumps;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crossterm::event::{KeyEvent, KeyModifiers};
use kwab_tui::app::{Action, App, Effect};
use kwab_tui::config::Config;
use kwab_tui::draw;
use kwab_tui::keys::Key;
use kwab_tui::load::{Generations, Job, Sources, perform};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// An interface and what it asked the outside to do.
pub(crate) struct Driven {
    pub(crate) app: App,
    pub(crate) copied: Vec<String>,
    pub(crate) written: Vec<(PathBuf, Option<String>)>,
    pub(crate) edited: Vec<(String, u32)>,
    pub(crate) tidied: usize,
    pub(crate) quit: bool,
    pub(crate) suspended: usize,
    pub(crate) redrawn: usize,
    current: Generations,
}

impl Driven {
    /// An interface over a path, with everything loaded.
    pub(crate) fn new(path: impl AsRef<Path>, size: (u16, u16)) -> Self {
        let path = path.as_ref().to_path_buf();
        let single = path.is_file().then(|| path.clone());
        let (app, first) = App::new(vec![path], single, Config::new(true), Sources::default(), None);
        let mut driven = Self {
            app,
            copied: Vec::new(),
            written: Vec::new(),
            edited: Vec::new(),
            tidied: 0,
            quit: false,
            suspended: 0,
            redrawn: 0,
            current: Generations::default(),
        };
        driven.act(Action::Resize(size.0, size.1));
        driven.carry_out(first);
        driven.settle();
        driven
    }

    pub(crate) fn act(&mut self, action: Action) {
        let effects = self.app.update(action);
        self.carry_out(effects);
        self.settle();
    }

    fn settle(&mut self) {
        let effects = self.app.settle();
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.app.publish(&self.current);
            match effect {
                // Random keys delete no file, and look for no images in all directories of the machine.
                Effect::Job(Job::Tidy { .. }) => self.tidied += 1,
                Effect::Job(Job::Locate { input }) if input.len() < 3 => {}
                Effect::Job(job) => {
                    let mut jobs = vec![job];
                    while let Some(job) = jobs.pop() {
                        let mut messages = Vec::new();
                        jobs.extend(perform(job, &self.current, &mut |message| messages.push(message)));
                        for message in messages {
                            let more = self.app.update(Action::Loaded(message));
                            self.carry_out(more);
                        }
                    }
                }
                Effect::Watch(_) => {}
                Effect::Copy(text) => self.copied.push(text),
                Effect::Write { path, text } => self.written.push((path, text)),
                Effect::Edit { file, line } => self.edited.push((file, line)),
                Effect::Redraw => self.redrawn += 1,
                Effect::Suspend => self.suspended += 1,
                Effect::Quit => self.quit = true,
            }
        }
    }

    /// Presses keys by name.
    pub(crate) fn keys(&mut self, names: &[&str]) -> &mut Self {
        for name in names {
            let key = Key::parse(name).unwrap_or_else(|| panic!("{name} is not a key"));
            self.act(Action::Key(KeyEvent::new(key.code, key.modifiers)));
        }
        self
    }

    /// Types a text, letter by letter.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            let code = crossterm::event::KeyCode::Char(letter);
            self.act(Action::Key(KeyEvent::new(code, KeyModifiers::NONE)));
        }
        self
    }

    /// The screen as text, line by line.
    pub(crate) fn screen(&self) -> String {
        text_of(&self.buffer())
    }

    pub(crate) fn buffer(&self) -> Buffer {
        let (columns, rows) = self.app.screen().size();
        let area = Rect::new(0, 0, columns, rows);
        let mut buffer = Buffer::empty(area);
        draw::render(&self.app, area, &mut buffer);
        buffer
    }

    /// The selected row as it would be copied.
    pub(crate) fn row(&self) -> String {
        let (Some(view), Some(row)) = (self.app.workspace().view(), self.app.workspace().selected()) else {
            return String::new();
        };
        view.row(row, &self.app.workspace().list().look).text()
    }
}

/// The cells of a buffer as lines without trailing spaces.
pub(crate) fn text_of(buffer: &Buffer) -> String {
    let area = *buffer.area();
    let mut lines = Vec::new();
    for row in 0..area.height {
        let mut line = String::new();
        let mut column = 0;
        while column < area.width {
            let symbol = buffer[(column, row)].symbol();
            line.push_str(symbol);
            column += (kwab_tui::text::width(symbol) as u16).max(1);
        }
        lines.push(line.trim_end().to_string());
    }
    lines.join("\n")
}

/// A folder with the dumps of all real logs and made ones, which is also the current directory, so that paths on
/// screens are the same everywhere.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // One folder per test program, made afresh: what a static holds is never removed.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(folder.join("crashes")).expect("a folder");
        std::env::set_current_dir(&folder).expect("entered");
        dumps::import_logs(Path::new("crashes"));
        dumps::of_our_kernel(Path::new("crashes"));
        dumps::make(Path::new("crashes"));
        folder
    })
}
