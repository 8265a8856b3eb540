//! Says which actions make sense where one is, with their keys.

use super::App;
use crate::action::{ACTIONS, Place};
use crate::keys::fits;
use crate::text::{Line, pad};
use crate::theme::Tone;

/// The lines of help: actions that make sense here, with their keys.
#[must_use]
pub fn help_lines(app: &App) -> Vec<Line> {
    let here = app.place();
    let mut lines = Vec::new();
    for row in ACTIONS.iter().filter(|row| fits(row.place, here)) {
        let keys = app.config.keys.keys_of(row.command).join(" ");
        lines.push(Line::of(Tone::Match, pad(&keys, 18, false)).and(Tone::Plain, format!(" {}", row.about)));
    }
    if here != Place::Catalogue {
        lines.push(Line::of(Tone::Dim, "a filter: words, name:value, name>number, -term turns round, \"two words\""));
    }
    lines
}
