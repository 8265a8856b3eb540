//! Keys while something lies over the screen.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyModifiers};

use super::overlay::matching;
use super::{App, Effect, MenuAction, Overlay, PromptKind};
use crate::keys::Key;
use crate::theme::Tone;

/// The longest text that is typed or pasted into a line.
const LONGEST: usize = 4096;

/// What a key does to a line of text.
enum Typed {
    Changed,
    Accepted,
    Ended,
    Moved(isize),
    Nothing,
}

fn type_into(input: &mut String, key: Key) -> Typed {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Enter => Typed::Accepted,
        KeyCode::Esc => Typed::Ended,
        KeyCode::Char('c' | 'g') if control => Typed::Ended,
        KeyCode::Up => Typed::Moved(-1),
        KeyCode::Down => Typed::Moved(1),
        KeyCode::Char('p') if control => Typed::Moved(-1),
        KeyCode::Char('n') if control => Typed::Moved(1),
        KeyCode::PageUp => Typed::Moved(-10),
        KeyCode::PageDown => Typed::Moved(10),
        KeyCode::Backspace => {
            if input.pop().is_some() {
                Typed::Changed
            } else {
                Typed::Ended
            }
        }
        KeyCode::Char('h') if control => {
            if input.pop().is_some() {
                Typed::Changed
            } else {
                Typed::Ended
            }
        }
        KeyCode::Char('u') if control => {
            input.clear();
            Typed::Changed
        }
        KeyCode::Char('w') if control => {
            let kept = input.trim_end().rfind(' ').map_or(0, |at| at + 1);
            input.truncate(kept);
            Typed::Changed
        }
        KeyCode::Char(letter) if !control && input.len() < LONGEST => {
            input.push(letter);
            Typed::Changed
        }
        _ => Typed::Nothing,
    }
}

impl App {
    pub(super) fn overlay_key(&mut self, key: Key) -> Vec<Effect> {
        match self.overlay.take() {
            Some(Overlay::Help { top }) => self.help_key(top, key),
            Some(Overlay::Palette { input, selected }) => self.palette_key(input, selected, key),
            Some(Overlay::Prompt { kind, input, .. }) => self.prompt_key(kind, input, key),
            Some(Overlay::Menu { title, items, selected }) => self.menu_key(title, items, selected, key),
            None => Vec::new(),
        }
    }

    fn help_key(&mut self, top: usize, key: Key) -> Vec<Effect> {
        let lines = super::help::help_lines(self).len();
        let by = match key.code {
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::PageUp => -10,
            KeyCode::PageDown | KeyCode::Char(' ') => 10,
            _ => return Vec::new(),
        };
        let top = top.saturating_add_signed(by).min(lines.saturating_sub(1));
        self.overlay = Some(Overlay::Help { top });
        Vec::new()
    }

    fn palette_key(&mut self, mut input: String, selected: usize, key: Key) -> Vec<Effect> {
        let typed = type_into(&mut input, key);
        let found = matching(&input, self.key_scope());
        match typed {
            Typed::Ended => return Vec::new(),
            Typed::Accepted => {
                if let Some(row) = found.get(selected.min(found.len().saturating_sub(1))) {
                    return self.run(row.command);
                }
                return match self.goto(&input) {
                    Ok(effects) => effects,
                    Err(why) => {
                        self.say(Tone::Care, why);
                        Vec::new()
                    }
                };
            }
            Typed::Moved(by) => {
                let selected = selected.saturating_add_signed(by).min(found.len().saturating_sub(1));
                self.overlay = Some(Overlay::Palette { input, selected });
            }
            Typed::Changed => self.overlay = Some(Overlay::Palette { input, selected: 0 }),
            Typed::Nothing => self.overlay = Some(Overlay::Palette { input, selected }),
        }
        Vec::new()
    }

    fn prompt_key(&mut self, kind: PromptKind, mut input: String, key: Key) -> Vec<Effect> {
        match type_into(&mut input, key) {
            Typed::Accepted => self.accept(kind, input),
            Typed::Ended if kind == PromptKind::Filter => {
                let effects = self.filter_typed("");
                self.list_mut().show_all();
                effects
            }
            Typed::Ended => Vec::new(),
            Typed::Changed => {
                self.overlay = Some(Overlay::Prompt { kind, input: input.clone(), problem: None });
                if kind == PromptKind::Filter { self.filter_typed(&input) } else { Vec::new() }
            }
            Typed::Moved(by) if kind == PromptKind::Filter => {
                // The rows can be looked through while the filter is typed.
                if let Some(view) = self.view() {
                    self.list_mut().step(by, view.len());
                }
                self.overlay = Some(Overlay::Prompt { kind, input, problem: None });
                Vec::new()
            }
            Typed::Moved(_) | Typed::Nothing => {
                self.overlay = Some(Overlay::Prompt { kind, input, problem: None });
                Vec::new()
            }
        }
    }

    fn accept(&mut self, kind: PromptKind, input: String) -> Vec<Effect> {
        match kind {
            PromptKind::Filter => {
                self.list_mut().last_filter.clone_from(&input);
                Vec::new()
            }
            PromptKind::Goto => match self.goto(&input) {
                Ok(effects) => effects,
                Err(why) => {
                    self.overlay = Some(Overlay::Prompt { kind, input, problem: Some(why) });
                    Vec::new()
                }
            },
            PromptKind::Note => self.note(input),
            PromptKind::Export => {
                let Some(view) = self.view().filter(|_| !input.is_empty()) else { return Vec::new() };
                let list = Box::new(self.list().clone());
                self.say(Tone::Dim, format!("writing {input}"));
                let inputs = self.inputs();
                vec![Effect::Job(crate::load::Job::Export { path: PathBuf::from(input), view, list, inputs })]
            }
        }
    }

    /// Every file that is read here: dumps, logs, images and the files behind pages.
    fn inputs(&self) -> Vec<PathBuf> {
        let sources = self.sources.symbols.iter().chain(&self.sources.backing);
        let crash = self.crash.iter().flat_map(|crash| {
            let second = crash.second.iter().map(|second| &second.path);
            std::iter::once(&crash.path).chain(second).map(|name| crate::dump_name::split(name).0)
        });
        self.catalogue.files().chain(sources).cloned().chain(crash).collect()
    }

    fn note(&mut self, note: String) -> Vec<Effect> {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return Vec::new() };
        let look = self.list().look;
        let Some(target) = view.target(row, &look) else { return Vec::new() };
        let text = view.row(row, &look).text();
        if let Some(crash) = self.crash.as_mut() {
            crash.marks.note(target, text, note);
        }
        self.say(Tone::Good, "noted; ' lists marks and notes");
        self.save_marks()
    }

    fn menu_key(&mut self, title: String, items: Vec<(String, MenuAction)>, selected: usize, key: Key) -> Vec<Effect> {
        let last = items.len().saturating_sub(1);
        let selected = match key.code {
            KeyCode::Up | KeyCode::Char('k') => selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (selected + 1).min(last),
            // The key that opened the menu takes its first choice: yy copies the row.
            KeyCode::Enter | KeyCode::Char('y') => {
                let Some((_, chosen)) = items.into_iter().nth(selected) else { return Vec::new() };
                return self.choose(chosen);
            }
            KeyCode::Char(digit @ '1'..='9') => {
                let number = digit.to_digit(10).unwrap_or(1) as usize - 1;
                let Some((_, chosen)) = items.into_iter().nth(number) else { return Vec::new() };
                return self.choose(chosen);
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Char('q') => return Vec::new(),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Vec::new(),
            _ => selected,
        };
        self.overlay = Some(Overlay::Menu { title, items, selected });
        Vec::new()
    }

    fn choose(&mut self, chosen: MenuAction) -> Vec<Effect> {
        match chosen {
            MenuAction::Copy(text) => {
                self.say(Tone::Good, format!("copied: {text}"));
                vec![Effect::Copy(text)]
            }
            MenuAction::Go(target) => self.go(&target),
            MenuAction::Beside(path) => self.compare_with(path),
            MenuAction::Choose(path) => {
                self.choose_other(path);
                Vec::new()
            }
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        let clean: String = text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect();
        match self.overlay.as_mut() {
            Some(Overlay::Prompt { kind, input, .. }) => {
                input.push_str(&clean);
                let (kind, input) = (*kind, input.clone());
                if kind == PromptKind::Filter { self.filter_typed(&input) } else { Vec::new() }
            }
            Some(Overlay::Palette { input, selected }) => {
                input.push_str(&clean);
                *selected = 0;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}
