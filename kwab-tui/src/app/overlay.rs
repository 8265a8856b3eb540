//! What lies over the screen: help, the palette of actions, a line to type into, a menu.

use std::path::PathBuf;

use crate::action::{ACTIONS, ActionRow, Command, KeyScope};
use crate::keys::fits;
use crate::load::{Found, Tidy};
use crate::view::Target;

/// Something over the screen that takes the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// The keys that work where the user is.
    Help {
        /// Lines that are scrolled off.
        top: usize,
    },
    /// All actions, narrowed by what is typed.
    Palette {
        /// What is typed.
        input: String,
        /// Which of the actions that fit.
        selected: usize,
    },
    /// A line to type into.
    Prompt {
        /// What the input is used for.
        kind: PromptKind,
        /// What is typed.
        input: String,
        /// What is wrong with it.
        problem: Option<String>,
    },
    /// Things to choose from.
    Menu {
        /// What is chosen.
        title: String,
        /// Choices: label and action.
        items: Vec<(String, MenuAction)>,
        /// Index of the selected choice.
        selected: usize,
    },
}

/// What a line is typed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// Filter expression for the shown list.
    Filter,
    /// Address, line or row to go to.
    Goto,
    /// Note for the mark of the selected row.
    Note,
    /// Where the rows are written.
    Export,
    /// Where images with symbols are.
    Symbols,
}

/// What a choice does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MenuAction {
    /// Copies a text.
    Copy(String),
    /// Goes to a target.
    Go(Target),
    /// Puts the open crash beside a dump.
    Beside(PathBuf),
    /// Chooses a dump, for the one beside it to be chosen in the list.
    Choose(PathBuf),
    /// Goes back by so many locations, or forward.
    Travel(isize),
    /// Sorts by a column; by the one that it is sorted by already, the other way round.
    SortBy(usize),
    /// Deletes or archives the files of dumps.
    Tidy(Tidy, Vec<Found>),
    /// Leaves everything as it is.
    Nothing,
}

/// The actions that fit what is typed, best first: by name before by description.
#[must_use]
pub fn matching(input: &str, here: KeyScope) -> Vec<&'static ActionRow> {
    let moves =
        |row: &ActionRow| matches!(row.command, Command::Up | Command::Down | Command::Palette | Command::Escape);
    let mut found: Vec<(i32, &ActionRow)> = ACTIONS
        .iter()
        .filter(|row| fits(row.scope, here) && !moves(row))
        .filter_map(|row| {
            let by_name = fuzzy(input, row.name);
            let by_words = fuzzy(input, row.about).map(|score| score - 20);
            by_name.max(by_words).map(|score| (score, row))
        })
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, row)| row).collect()
}

/// How well `text` has the letters of `input` in their order: runs and beginnings of words count more.
#[must_use]
fn fuzzy(input: &str, text: &str) -> Option<i32> {
    let mut score = 0;
    let mut letters = text.char_indices().peekable();
    let mut before = ' ';
    let mut run = 0;
    for wanted in input.chars().filter(|letter| !letter.is_whitespace()).flat_map(char::to_lowercase) {
        loop {
            let (_, letter) = letters.next()?;
            let begins = !before.is_alphanumeric();
            before = letter;
            if letter.to_lowercase().eq(std::iter::once(wanted)) {
                run += 1;
                score += run + if begins { 6 } else { 0 };
                break;
            }
            run = 0;
            score -= 1;
        }
    }
    Some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_palette_finds_actions_by_some_of_their_letters() {
        let first = |input| matching(input, KeyScope::Zoom).first().map(|row| row.name);
        assert_eq!(first("zi"), Some("zoom-in"));
        assert_eq!(first("back"), Some("back"));
        assert_eq!(first("regis"), Some("registers"));
        assert_eq!(first("xyzzy"), None);
        assert!(matching("", KeyScope::Catalogue).iter().all(|row| row.scope != KeyScope::Hex));
    }
}
