//! The overlay that is open, and what keys do in it.
//!
//! The overlay only edits itself; what a key asks of the rest of the interface is returned as a [`Request`].

use crossterm::event::{KeyCode, KeyModifiers};

use super::overlay::{MenuAction, Overlay, PromptKind, matching};
use crate::action::{Command, KeyScope};
use crate::keys::Key;

/// The longest text that is typed or pasted into a line.
const LONGEST: usize = 4096;

/// What a key does to a line of text.
enum Typed {
    Changed,
    Accepted,
    Ended,
    Moved(isize),
    Complete,
    Nothing,
}

fn type_into(input: &mut String, key: Key) -> Typed {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Enter => Typed::Accepted,
        KeyCode::Esc => Typed::Ended,
        KeyCode::Tab => Typed::Complete,
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

/// What a key in an overlay asks of the rest of the interface.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// The overlay has taken the key itself.
    Nothing,
    /// To run an action.
    Run(Command),
    /// To go to what was typed into the palette.
    Goto(String),
    /// To show the rows that a filter holds for, while it is typed.
    Filter(String),
    /// To show all rows: the prompt of the filter was left.
    NoFilter,
    /// To move the selection while a filter is typed.
    Step(isize),
    /// To complete the path that is typed.
    Complete(String),
    /// To take the input of a prompt.
    Accept(PromptKind, String),
    /// To do what was chosen from a menu.
    Choose(MenuAction),
}

/// The overlay that is open, if there is one.
#[derive(Debug, Default)]
pub(super) struct Overlays {
    open: Option<Overlay>,
}

impl Overlays {
    /// The overlay that is open.
    pub(super) const fn shown(&self) -> Option<&Overlay> {
        self.open.as_ref()
    }

    /// Opens an overlay in exchange for the one before.
    pub(super) fn open(&mut self, overlay: Overlay) {
        self.open = Some(overlay);
    }

    /// Closes the overlay.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Closes a prompt: what is typed was for the list that was shown then.
    pub(super) fn close_prompt(&mut self) {
        self.open.take_if(|overlay| matches!(overlay, Overlay::Prompt { .. }));
    }

    /// Shows beside the input of an open prompt what is wrong with it, or that nothing is; `false` without a prompt.
    pub(super) fn judge(&mut self, wrong: Option<&str>) -> bool {
        let Some(Overlay::Prompt { problem, .. }) = &mut self.open else { return false };
        *problem = wrong.map(str::to_string);
        true
    }

    /// Puts what a path was completed to into the prompt where `typed` is still typed.
    pub(super) fn complete(&mut self, typed: &str, to: String, others: &str) {
        if let Some(Overlay::Prompt { input, problem, .. }) = &mut self.open
            && *input == typed
        {
            *input = to;
            *problem = Some(others.to_string()).filter(|others| !others.is_empty());
        }
    }

    /// Takes a key where the keys of `here` hold and the help has `help` lines.
    pub(super) fn key(&mut self, key: Key, here: KeyScope, help: usize) -> Request {
        match self.open.take() {
            Some(Overlay::Help { top }) => self.help_key(top, help, key),
            Some(Overlay::Palette { input, selected }) => self.palette_key(input, selected, here, key),
            Some(Overlay::Prompt { kind, input, .. }) => self.prompt_key(kind, input, key),
            Some(Overlay::Menu { title, items, selected }) => self.menu_key(title, items, selected, key),
            None => Request::Nothing,
        }
    }

    fn help_key(&mut self, top: usize, lines: usize, key: Key) -> Request {
        let by = match key.code {
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::PageUp => -10,
            KeyCode::PageDown | KeyCode::Char(' ') => 10,
            _ => return Request::Nothing,
        };
        let top = top.saturating_add_signed(by).min(lines.saturating_sub(1));
        self.open(Overlay::Help { top });
        Request::Nothing
    }

    fn palette_key(&mut self, mut input: String, selected: usize, here: KeyScope, key: Key) -> Request {
        let typed = type_into(&mut input, key);
        let found = matching(&input, here);
        let last = found.len().saturating_sub(1);
        let selected = match typed {
            Typed::Ended => return Request::Nothing,
            Typed::Accepted => {
                return match found.get(selected.min(last)) {
                    Some(row) => Request::Run(row.command),
                    None => Request::Goto(input),
                };
            }
            Typed::Moved(by) => selected.saturating_add_signed(by).min(last),
            Typed::Changed => 0,
            Typed::Nothing | Typed::Complete => selected,
        };
        self.open(Overlay::Palette { input, selected });
        Request::Nothing
    }

    fn prompt_key(&mut self, kind: PromptKind, mut input: String, key: Key) -> Request {
        let is_filter = kind == PromptKind::Filter;
        let request = match type_into(&mut input, key) {
            Typed::Accepted => return Request::Accept(kind, input),
            Typed::Ended if is_filter => return Request::NoFilter,
            Typed::Ended => return Request::Nothing,
            Typed::Changed if is_filter => Request::Filter(input.clone()),
            // The rows can be looked through while the filter is typed.
            Typed::Moved(by) if is_filter => Request::Step(by),
            Typed::Complete if matches!(kind, PromptKind::Symbols | PromptKind::Export) => {
                Request::Complete(input.clone())
            }
            Typed::Changed | Typed::Moved(_) | Typed::Complete | Typed::Nothing => Request::Nothing,
        };
        self.open(Overlay::Prompt { kind, input, problem: None });
        request
    }

    fn menu_key(&mut self, title: String, items: Vec<(String, MenuAction)>, selected: usize, key: Key) -> Request {
        let last = items.len().saturating_sub(1);
        let choose = |number: usize, items: Vec<(String, MenuAction)>| {
            items.into_iter().nth(number).map_or(Request::Nothing, |(_, chosen)| Request::Choose(chosen))
        };
        // A question is a menu that begins with its no.
        let is_question = matches!(items.first(), Some((_, MenuAction::Nothing)));
        let selected = match key.code {
            KeyCode::Char('y' | 'Y') if is_question => return choose(last, items),
            KeyCode::Char('n' | 'N') if is_question => return choose(0, items),
            KeyCode::Up | KeyCode::Char('k') => selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (selected + 1).min(last),
            // The key that opened the menu takes its first choice: yy copies the row.
            KeyCode::Enter | KeyCode::Char('y') => return choose(selected, items),
            KeyCode::Char(digit @ '1'..='9') => {
                return choose(digit.to_digit(10).unwrap_or(1) as usize - 1, items);
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Char('q') => return Request::Nothing,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Request::Nothing,
            _ => selected,
        };
        self.open(Overlay::Menu { title, items, selected });
        Request::Nothing
    }

    /// Takes pasted text into the input of a prompt or the palette.
    pub(super) fn paste(&mut self, text: &str) -> Request {
        let clean: String = text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect();
        match &mut self.open {
            Some(Overlay::Prompt { kind, input, .. }) => {
                input.push_str(&clean);
                if *kind == PromptKind::Filter { Request::Filter(input.clone()) } else { Request::Nothing }
            }
            Some(Overlay::Palette { input, selected }) => {
                input.push_str(&clean);
                *selected = 0;
                Request::Nothing
            }
            _ => Request::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(overlays: &mut Overlays, keys: &[&str]) -> Request {
        let press = |name: &&str| overlays.key(Key::parse(name).expect(name), KeyScope::Crash, 5);
        keys.iter().map(press).last().expect("a key")
    }

    fn prompt(kind: PromptKind) -> Overlays {
        Overlays { open: Some(Overlay::Prompt { kind, input: String::new(), problem: None }) }
    }

    #[test]
    fn a_filter_is_asked_at_every_letter_and_left_without_one() {
        let mut overlays = prompt(PromptKind::Filter);
        assert_eq!(press(&mut overlays, &["a", "b"]), Request::Filter("ab".to_string()));
        assert_eq!(press(&mut overlays, &["down"]), Request::Step(1));
        assert!(overlays.judge(Some("no such field")));
        assert_eq!(press(&mut overlays, &["esc"]), Request::NoFilter);
        assert!(overlays.shown().is_none() && !overlays.judge(None));
    }

    #[test]
    fn a_prompt_gives_its_input_once_it_is_accepted() {
        let mut overlays = prompt(PromptKind::Note);
        assert_eq!(press(&mut overlays, &["x"]), Request::Nothing);
        assert_eq!(overlays.paste(" why\n"), Request::Nothing);
        assert_eq!(press(&mut overlays, &["enter"]), Request::Accept(PromptKind::Note, "x why".to_string()));
    }

    #[test]
    fn the_palette_runs_the_selected_action_or_goes_to_what_none_fits() {
        let mut overlays = Overlays::default();
        overlays.open(Overlay::Palette { input: String::new(), selected: 0 });
        overlays.paste("registers");
        assert_eq!(press(&mut overlays, &["enter"]), Request::Run(Command::Tab(2)));
        overlays.open(Overlay::Palette { input: "0x51c800".to_string(), selected: 0 });
        assert_eq!(press(&mut overlays, &["enter"]), Request::Goto("0x51c800".to_string()));
    }

    #[test]
    fn a_menu_is_chosen_from_by_number_and_by_the_selected_row() {
        let items: Vec<_> = ["a", "b"].map(|text| (text.to_string(), MenuAction::Copy(text.to_string()))).into();
        let menu =
            || Overlays { open: Some(Overlay::Menu { title: String::new(), items: items.clone(), selected: 0 }) };
        let copies = |text: &str| Request::Choose(MenuAction::Copy(text.to_string()));
        assert_eq!(press(&mut menu(), &["2"]), copies("b"));
        assert_eq!(press(&mut menu(), &["j", "j", "enter"]), copies("b"));
        assert_eq!(press(&mut menu(), &["9"]), Request::Nothing);
    }

    #[test]
    fn a_question_is_answered_by_its_first_letters_and_enter_alone_is_its_no() {
        let yes = MenuAction::Copy("yes".to_string());
        let items = vec![("no".to_string(), MenuAction::Nothing), ("yes: do it".to_string(), yes.clone())];
        let asked =
            || Overlays { open: Some(Overlay::Menu { title: String::new(), items: items.clone(), selected: 0 }) };
        assert_eq!(press(&mut asked(), &["y"]), Request::Choose(yes));
        for no in ["n", "enter"] {
            assert_eq!(press(&mut asked(), &[no]), Request::Choose(MenuAction::Nothing), "{no}");
        }
    }

    #[test]
    fn help_scrolls_to_its_last_line_and_any_other_key_closes_it() {
        let mut overlays = Overlays { open: Some(Overlay::Help { top: 0 }) };
        press(&mut overlays, &["pgdn"]);
        assert_eq!(overlays.shown(), Some(&Overlay::Help { top: 4 }));
        press(&mut overlays, &["x"]);
        assert_eq!(overlays.shown(), None);
    }
}
