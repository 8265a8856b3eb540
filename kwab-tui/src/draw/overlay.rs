//! What lies over the screen: help, palette, menus.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::{line as paint_line, put};
use crate::app::help::help_lines;
use crate::app::{App, Overlay, matching};
use crate::text::{Line, pad};
use crate::theme::Tone;

/// Draws the overlay, if there is one.
pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) {
    match app.overlay() {
        Some(Overlay::Help { top }) => {
            let lines = help_lines(&app.config().keys, app.workspace().key_scope());
            window(app, "keys (esc closes, j/k scroll)", &lines, None, *top, area, buffer);
        }
        Some(Overlay::Palette { input, selected }) => palette(app, input, *selected, area, buffer),
        Some(Overlay::Menu { title, items, selected }) => {
            let items = items.iter().enumerate();
            let lines: Vec<Line> = items
                .map(|(number, (label, _))| {
                    Line::of(Tone::Match, format!("{} ", number + 1)).and(Tone::Plain, label.clone())
                })
                .collect();
            window(app, title, &lines, Some(*selected), 0, area, buffer);
        }
        Some(Overlay::Prompt { .. }) | None => {}
    }
}

fn palette(app: &App, input: &str, selected: usize, area: Rect, buffer: &mut Buffer) {
    let found = matching(input, app.workspace().key_scope());
    let mut lines: Vec<Line> = found
        .iter()
        .map(|row| {
            let keys = app.config().keys.keys_of(row.command).join(" ");
            let line = Line::of(Tone::Code, pad(row.name, 15, false)).and(Tone::Plain, format!(" {:<44}", row.about));
            line.and(Tone::Dim, format!(" {keys}"))
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::of(Tone::Dim, "no such action; ↵ goes to this address, line or row"));
    }
    window(app, &format!(":{input}▏"), &lines, Some(selected), 0, area, buffer);
}

/// A window in the middle, as large as it must be.
fn window(
    app: &App,
    title: &str,
    lines: &[Line],
    selected: Option<usize>,
    top: usize,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = &app.config().theme;
    let longest = lines.iter().map(|line| crate::text::width(&line.text())).max().unwrap_or(0);
    let width = (longest.max(crate::text::width(title)) + 4).clamp(20, 90).min(usize::from(area.width)) as u16;
    let height = (lines.len() + 2).min(usize::from(area.height.saturating_sub(2)).max(3)) as u16;
    let height = height.min(area.height);
    let frame = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 3, width, height };
    let edge = theme.style(Tone::Dim);
    let inner = usize::from(width.saturating_sub(2));
    for row in 0..height {
        for column in 0..width {
            if let Some(cell) = buffer.cell_mut((frame.x + column, frame.y + row)) {
                cell.reset();
            }
        }
        put(buffer, frame, 0, row, "│", edge);
        put(buffer, frame, width - 1, row, "│", edge);
    }
    put(buffer, frame, 0, 0, &format!("┌{}┐", "─".repeat(inner)), edge);
    put(buffer, frame, 0, height - 1, &format!("└{}┘", "─".repeat(inner)), edge);
    put(
        buffer,
        frame,
        2,
        0,
        &crate::text::cut(&format!(" {title} "), inner.saturating_sub(2)),
        theme.style(Tone::Head),
    );
    let body =
        Rect { x: frame.x + 2, y: frame.y + 1, width: width.saturating_sub(4), height: height.saturating_sub(2) };
    let rows = usize::from(body.height);
    let top = match selected {
        Some(selected) => selected.saturating_sub(rows.saturating_sub(1)),
        None => top.min(lines.len().saturating_sub(rows)),
    };
    for (row, (index, line)) in lines.iter().enumerate().skip(top).take(rows).enumerate() {
        if selected == Some(index) {
            let text = pad(&line.text(), usize::from(body.width), false);
            put(buffer, body, 0, row as u16, &text, theme.style(Tone::Selected));
        } else {
            paint_line(buffer, body, 0, row as u16, line, theme);
        }
    }
    if top + rows < lines.len() {
        put(buffer, frame, width.saturating_sub(4), height - 1, " ↓ ", edge);
    }
}
