//! Draws the rows of a list that are seen, and no others.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::paint::put;
use crate::app::App;
use crate::app::layout::Layout;
use crate::text::{cut_cell, pad, width};
use crate::theme::Tone;
use crate::view::{Column, Slot, View};

/// Columns narrower than this are not worth having.
const LEAST_REST: u16 = 16;

/// Names of columns and rows.
pub(super) fn draw(app: &App, view: &dyn View, layout: &Layout, buffer: &mut Buffer) {
    let list = app.workspace().list();
    let len = view.len();
    let area = layout.rows;
    // Where there is a scrollbar, it has a column of its own.
    let scrolls = list.count(len) > usize::from(area.height) && area.width >= 20;
    let room = area.width - u16::from(scrolls);
    let columns = view.columns_in(room);
    let widths = widths(view, columns, room);
    if let Some(heading) = layout.heading {
        headings(app, columns, &widths, heading, buffer);
    }
    let mut state = list.clone();
    state.look.room = room;
    state.scroll(len, usize::from(area.height));
    let count = state.count(len);
    let selected = state.position(len);
    for line in 0..usize::from(area.height).min(count.saturating_sub(state.top)) {
        let position = state.top + line;
        let here = position == selected;
        let row = view.row(state.row_at(position), &state.look);
        let marked = is_marked(app, view, state.row_at(position));
        draw_row(
            app,
            &Drawn { row: &row, columns, widths: &widths, here, marked, left: state.left },
            area,
            line as u16,
            buffer,
        );
    }
    if app.workspace().slot() == Some(Slot::Hex) && count > 0 {
        byte_cursor(app, &state.look, selected - state.top.min(selected), &widths, area, buffer);
    }
    if count == 0 {
        put(buffer, area, 0, 0, "no row matches", app.config().theme.style(Tone::Care));
    }
    scrollbar(app, count, state.top, area, buffer);
}

/// The names of columns, with the one that is sorted by.
pub(super) fn headings(app: &App, columns: &[Column], widths: &[u16], area: Rect, buffer: &mut Buffer) {
    let mut at = 0;
    for (index, (column, wide)) in columns.iter().zip(widths).enumerate().filter(|(_, (_, wide))| **wide > 0) {
        let arrow = match app.workspace().list().sort {
            Some((sorted, true)) if sorted == index => "↓",
            Some((sorted, false)) if sorted == index => "↑",
            _ => "",
        };
        let name = pad(&format!("{}{arrow}", column.name), usize::from(*wide), column.right);
        put(buffer, area, at, 0, &name, app.config().theme.style(Tone::Dim));
        at += wide + 1;
    }
}

fn is_marked(app: &App, view: &dyn View, row: usize) -> bool {
    let target = view.target(row, &crate::view::Look::default());
    target.is_some_and(|target| app.workspace().is_marked(&target))
}

/// A row to be drawn.
pub(super) struct Drawn<'d> {
    pub(super) row: &'d crate::view::Row,
    pub(super) columns: &'d [Column],
    pub(super) widths: &'d [u16],
    pub(super) here: bool,
    pub(super) marked: bool,
    pub(super) left: usize,
}

/// Draws a row on a line of an area.
pub(super) fn draw_row(app: &App, drawn: &Drawn<'_>, area: Rect, line: u16, buffer: &mut Buffer) {
    let theme = &app.config().theme;
    let base = theme.style(Tone::Selected);
    if drawn.here {
        put(buffer, area, 0, line, &" ".repeat(usize::from(area.width)), base);
    }
    let mut at = 0;
    for (index, (column, wide)) in
        drawn.columns.iter().zip(drawn.widths).enumerate().filter(|(_, (_, wide))| **wide > 0)
    {
        if let Some((tone, text)) = drawn.row.cells.get(index) {
            let style = theme.style(*tone);
            // Dim letters on the bar of the selected row can hardly be read.
            let style = if drawn.here { style.remove_modifier(Modifier::DIM).patch(base) } else { style };
            // Only the column that takes the rest can be wider than its cells.
            let text = if column.width == 0 && drawn.left > 0 { skip(text, drawn.left) } else { text.as_str() };
            let wide = usize::from(*wide);
            let shown = if column.right { pad(text, wide, true) } else { cut_cell(text, wide) };
            put(buffer, area, at, line, &shown, style);
        }
        at += wide + 1;
    }
    if drawn.marked {
        put(buffer, area, area.width.saturating_sub(2), line, "◆", theme.style(Tone::Match));
    }
}

fn skip(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, letter) in text.char_indices() {
        if used >= columns {
            return &text[at..];
        }
        used += width(letter.encode_utf8(&mut [0; 4]));
    }
    ""
}

/// The widths of the columns: empty ones are left out, and those that matter least until the rest has room.
pub(super) fn widths(view: &dyn View, columns: &[Column], room: u16) -> Vec<u16> {
    let mut widths: Vec<u16> = columns.iter().map(|column| column.width).collect();
    let has = |(index, column): (usize, &Column)| column.width == 0 || view.has_column(index);
    let mut shown: Vec<bool> = columns.iter().enumerate().map(has).collect();
    let least = match columns.iter().find(|column| column.width == 0) {
        Some(rest) if rest.name.is_empty() => 1,
        Some(_) => LEAST_REST.max(room * 2 / 5).min(60),
        None => 0,
    };
    let used = |shown: &[bool]| -> u16 {
        columns
            .iter()
            .zip(shown)
            .filter(|(column, shown)| **shown && column.width > 0)
            .map(|(column, _)| column.width + 1)
            .sum()
    };
    while used(&shown) + least > room {
        let worst = (0..columns.len())
            .filter(|index| shown[*index] && columns[*index].rank > 0)
            .max_by_key(|index| columns[*index].rank);
        let Some(worst) = worst else { break };
        shown[worst] = false;
    }
    let rest = room.saturating_sub(used(&shown));
    for (index, wide) in widths.iter_mut().enumerate() {
        *wide = match (columns[index].width, shown[index]) {
            (_, false) => 0,
            (0, true) => rest.max(1),
            (fixed, true) => fixed.min(room),
        };
    }
    widths
}

/// The byte under the cursor, in the bytes and in the text.
fn byte_cursor(app: &App, look: &crate::view::Look, line: usize, widths: &[u16], area: Rect, buffer: &mut Buffer) {
    let column = widths[0] + 1 + crate::view::hex::cursor_column(look) as u16;
    let row = area.y + line as u16;
    let style = app.config().theme.style(Tone::Match);
    let text = widths[0] + widths[1] + 2 + u16::from(look.byte);
    let columns = [Some(column), Some(column + 1), (widths[2] > 0).then_some(text)];
    for column in columns.into_iter().flatten().filter(|column| *column < area.width) {
        if let Some(cell) = buffer.cell_mut((area.x + column, row)) {
            cell.set_style(style.remove_modifier(Modifier::REVERSED).add_modifier(Modifier::BOLD));
        }
    }
}

/// Where in the list the rows are, at the right edge.
pub(super) fn scrollbar(app: &App, count: usize, top: usize, area: Rect, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    if count <= height || height < 3 || area.width < 20 {
        return;
    }
    let size = (height * height / count).max(1);
    let at = top * (height - size) / (count - height).max(1);
    let style = app.config().theme.style(Tone::Dim);
    for line in at..(at + size).min(height) {
        put(buffer, area, area.width - 1, line as u16, "▐", style);
    }
}
