//! The first line, the tabs, and the last line.

use ratatui::buffer::Buffer;
use ratatui::style::Modifier;

use super::paint::{line as paint_line, put};
use crate::action::{Command, KeyScope};
use crate::app::layout::Layout;
use crate::app::tab_line::tabs;
use crate::app::{App, Overlay, PromptKind};
use crate::text::{Line, cut, width};
use crate::theme::Tone;
use crate::view::Slot;

/// Where one is, and the tabs.
pub(super) fn draw(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let theme = &app.config().theme;
    let right = state(app);
    let room = usize::from(layout.header.width).saturating_sub(width(&right.text()) + 1);
    let mut left = Line::of(Tone::Head, "kwab  ");
    match app.workspace().shown_crash() {
        Some(crash) => {
            let name = crash.path().file_name().unwrap_or(crash.path().as_os_str()).to_string_lossy();
            left = left.and(Tone::Code, format!("{name}  "));
            if let Some(second) = crash.comparison() {
                let name = second.path().file_name().unwrap_or(second.path().as_os_str()).to_string_lossy();
                left = left.and(Tone::Alarm, "≠  ").and(Tone::Code, name.into_owned());
            } else if let Some(report) = crash.report() {
                left = left.and(Tone::Plain, report.headline.replace('\n', " "));
            }
        }
        None => {
            let names: Vec<String> =
                app.workspace().catalogue().paths().iter().map(|path| path.display().to_string()).collect();
            left = left.and(Tone::Code, names.join(" "));
        }
    }
    let cropped = ratatui::layout::Rect {
        width: u16::try_from(room).unwrap_or(u16::MAX).min(layout.header.width),
        ..layout.header
    };
    paint_line(buffer, cropped, 0, 0, &left, theme);
    let at = layout.header.width.saturating_sub(width(&right.text()) as u16);
    paint_line(buffer, layout.header, at, 0, &right, theme);
    if let Some(area) = layout.tabs {
        for tab in tabs(app, area.width) {
            let mut style = theme.style(if tab.current { Tone::Selected } else { Tone::Plain });
            if tab.current {
                style = style.add_modifier(Modifier::BOLD);
            }
            put(buffer, area, tab.at, 0, &tab.text, style);
            if !tab.current {
                put(buffer, area, tab.at, 0, crate::text::take(&tab.text, 1), theme.style(Tone::Match));
            }
        }
    }
}

/// What is being done, or how the dump stands, and whether it is followed.
fn state(app: &App) -> Line {
    let state = standing(app);
    if !app.workspace().is_followed() {
        return state;
    }
    state.pieces.into_iter().fold(Line::of(Tone::Good, "following  "), |line, (tone, text)| line.and(tone, text))
}

/// What is being done, or how the dump stands.
fn standing(app: &App) -> Line {
    if let Some((what, percent)) = app.status().progress() {
        return Line::of(Tone::Care, format!("{what} {percent} %"));
    }
    let Some(crash) = app.workspace().shown_crash() else {
        let unread = if app.workspace().catalogue().is_complete() { "" } else { "reading …" };
        return Line::of(Tone::Dim, unread);
    };
    match crash.report() {
        None if crash.failed().is_some() => Line::of(Tone::Alarm, "⚠ not opened"),
        None => Line::of(Tone::Dim, "loading …"),
        Some(report) if !report.completeness.defects.is_empty() => {
            Line::of(Tone::Alarm, format!("⚠ {} damaged", report.completeness.defects.len()))
        }
        Some(_) if !crash.skipped().is_empty() => Line::of(Tone::Care, "part analysed · W: all"),
        Some(report) if report.completeness.complete => Line::of(Tone::Good, "complete"),
        Some(report) => Line::of(Tone::Care, format!("{} missing", report.completeness.missing.len())),
    }
}

/// What is typed, what was said, or the keys that matter here; at the right the position in the list.
pub(super) fn footer(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let theme = &app.config().theme;
    let area = layout.footer;
    if let Some(Overlay::Prompt { kind, input, problem }) = app.overlay() {
        let label = match kind {
            PromptKind::Filter => "/",
            PromptKind::Goto => "go to: ",
            PromptKind::Note => "note: ",
            PromptKind::Export => "write to: ",
            PromptKind::Symbols => "symbols in: ",
        };
        let mut line = Line::of(Tone::Match, label).and(Tone::Plain, input.clone()).and(Tone::Selected, " ");
        let pending = app.workspace().list().pending;
        line = match problem {
            Some(problem) => line.and(Tone::Care, format!("  {problem}")),
            None if pending => line.and(Tone::Dim, "  searching …"),
            None => line.and(Tone::Dim, format!("  {}", prompt_help(app, *kind))),
        };
        paint_line(buffer, area, 0, 0, &line, theme);
        return;
    }
    let position = position(app);
    let columns = width(&position);
    let room = usize::from(area.width).saturating_sub(columns + 1);
    let line = match app.status().said() {
        Some((tone, text)) => Line::of(*tone, cut(text, room)),
        None => keys(app, room),
    };
    paint_line(buffer, area, 0, 0, &line, theme);
    put(buffer, area, area.width.saturating_sub(columns as u16), 0, &position, theme.style(Tone::Dim));
}

fn prompt_help(app: &App, kind: PromptKind) -> String {
    match kind {
        PromptKind::Filter => {
            let fields = app.workspace().view().map_or_else(Vec::new, |view| view.all_fields());
            if fields.is_empty() { String::new() } else { format!("words, and {}", fields.join(": ") + ":") }
        }
        PromptKind::Goto => "an address (0x…), a line or a row".to_string(),
        PromptKind::Symbols => "an image, a directory or an initramfs; tab completes".to_string(),
        PromptKind::Note | PromptKind::Export => String::new(),
    }
}

/// `312/1,204 of 9,000  filter: pid:3`.
fn position(app: &App) -> String {
    let Some(view) = app.workspace().view() else { return String::new() };
    let list = app.workspace().list();
    let len = view.len();
    let count = list.count(len);
    let grouped = |number: usize| crate::text::grouped(number as u64);
    let at = if count == 0 { 0 } else { list.position(len) + 1 };
    let mut text = format!("{}/{}", grouped(at), grouped(count));
    if count != len {
        text = format!("{text} of {}", grouped(len));
    }
    if list.pending {
        text = format!("searching …  {text}");
    } else if !list.filter.is_empty() {
        text = format!("/{}  {text}", cut(&list.filter, 24));
    }
    let picked = app.workspace().catalogue().picked();
    if picked > 0 && app.workspace().shown_crash().is_none() {
        text = format!("{} selected  {text}", grouped(picked));
    }
    text
}

/// Whether the list is a timeline, of one crash: spans and comparisons know no causes.
fn has_causes(app: &App) -> bool {
    let workspace = app.workspace();
    let is_compared = workspace.session().crash().is_some_and(|crash| crash.comparison().is_some());
    workspace.slot() == Some(Slot::Timeline) && !is_compared
}

/// The keys that matter most where one is, as many as fit.
fn keys(app: &App, room: usize) -> Line {
    let wanted: &[(Command, &str)] = match app.workspace().key_scope() {
        KeyScope::Catalogue => &[
            (Command::Follow, "open"),
            (Command::Filter, "filter"),
            (Command::Help, "keys"),
            (Command::Palette, "actions"),
            (Command::Group, "group"),
            (Command::Sort, "sort"),
            (Command::Compare, "compare"),
            (Command::Catalogue, "quit"),
        ],
        KeyScope::Zoom => &[
            (Command::Follow, "follow"),
            (Command::Back, "back"),
            (Command::ZoomIn, "zoom in"),
            (Command::ZoomOut, "out"),
            (Command::Help, "keys"),
            (Command::Filter, "filter"),
            (Command::Palette, "actions"),
            (Command::Copy, "copy"),
            (Command::Cause, "cause"),
            (Command::Effect, "effect"),
        ],
        KeyScope::Hex => &[
            (Command::Follow, "follow"),
            (Command::Back, "back"),
            (Command::Goto, "address"),
            (Command::WordSize, "word"),
            (Command::Endian, "order"),
            (Command::Help, "keys"),
            (Command::Filter, "search"),
        ],
        KeyScope::Memory => &[
            (Command::Follow, "follow"),
            (Command::Back, "back"),
            (Command::Mode, "next list"),
            (Command::Help, "keys"),
            (Command::Filter, "filter"),
            (Command::Goto, "address"),
            (Command::Palette, "actions"),
            (Command::Copy, "copy"),
        ],
        _ => &[
            (Command::Follow, "follow"),
            (Command::Back, "back"),
            (Command::Filter, "filter"),
            (Command::Help, "keys"),
            (Command::Palette, "actions"),
            (Command::Copy, "copy"),
            (Command::Mark, "mark"),
            (Command::Catalogue, "dumps"),
        ],
    };
    let mut line = Line::default();
    let mut used = 0;
    for (command, word) in wanted {
        if matches!(command, Command::Cause | Command::Effect) && !has_causes(app) {
            continue;
        }
        let keys = app.config().keys.keys_of(*command);
        let Some(key) = keys.first() else { continue };
        let key = match *key {
            "enter" => "↵",
            "backspace" => "⌫",
            key => key,
        };
        let columns = width(key) + width(word) + 3;
        if used + columns > room {
            break;
        }
        used += columns;
        line = line.and(Tone::Match, key).and(Tone::Dim, format!(" {word}  "));
    }
    line
}
