//! Says which actions make sense where the user is, with their keys.

use crate::action::{ACTIONS, KeyScope};
use crate::keys::{KeyMap, fits};
use crate::text::{Line, pad};
use crate::theme::Tone;

/// The lines of help: actions that make sense in `here`, with their keys.
#[must_use]
pub fn help_lines(keys: &KeyMap, here: KeyScope) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in ACTIONS.iter().filter(|row| fits(row.scope, here)) {
        let keys = keys.keys_of(row.command).join(" ");
        lines.push(Line::of(Tone::Match, pad(&keys, 18, false)).and(Tone::Plain, format!(" {}", row.about)));
    }
    if here != KeyScope::Catalogue {
        lines.push(Line::of(Tone::Dim, "a filter: words, name:value, name>number, -term excludes, \"two words\""));
    }
    lines
}
