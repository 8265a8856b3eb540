//! Draws two crashes side by side: the same line of both, the same detail of both, and between them what differs.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::{line as paint_line, put};
use super::table::{Drawn, draw_row, headings, scrollbar, widths};
use crate::app::App;
use crate::app::layout::Layout;
use crate::text::{Line, cut};
use crate::theme::Tone;
use crate::view::pair::PairView;
use crate::view::{Look, Row, View};

/// Areas narrower than this show one side of a line only.
const BOTH: u16 = 72;
/// Columns between the sides.
const BETWEEN: u16 = 3;

/// The areas of the two sides; one alone where there is no room for both.
fn sides(area: Rect) -> (Rect, Option<Rect>) {
    if area.width < BOTH {
        return (area, None);
    }
    let width = (area.width - BETWEEN) / 2;
    let left = Rect { width, ..area };
    (left, Some(Rect { x: area.x + width + BETWEEN, width: area.width - width - BETWEEN, ..area }))
}

/// Pictures, rows and details of both.
pub(super) fn draw(app: &App, pair: &PairView, layout: &Layout, buffer: &mut Buffer) {
    let selected = app.workspace().selected();
    if let (Some(area), Some(selected)) = (layout.picture, selected) {
        pictures(app, pair, area, selected, buffer);
    }
    rows(app, pair, layout, buffer);
    let (Some(area), Some(selected)) = (layout.detail, selected) else { return };
    let (left, right) = sides(area);
    let Some(right) = right else {
        super::paragraph(app, &scrolled(app, pair.detail(selected, &app.workspace().list().look)), left, buffer);
        return;
    };
    let (of_left, of_right) = pair.sides(selected);
    let (here, there) = pair.views();
    for (view, row, area) in [(here, of_left, left), (there, of_right, right)] {
        let lines = match row {
            Some(row) => view.detail(row, &app.workspace().list().look),
            None => vec![Line::of(Tone::Care, "no such row in this crash")],
        };
        super::paragraph(app, &scrolled(app, lines), area, buffer);
    }
}

fn scrolled(app: &App, lines: Vec<Line>) -> Vec<Line> {
    let hidden = app.workspace().list().detail.min(lines.len().saturating_sub(1));
    lines.into_iter().skip(hidden).collect()
}

fn pictures(app: &App, pair: &PairView, area: Rect, selected: usize, buffer: &mut Buffer) {
    let (of_left, of_right) = pair.sides(selected);
    let (here, there) = pair.views();
    let (left, right) = sides(area);
    let halves = [(here, of_left, Some(left)), (there, of_right, right)];
    for (view, row, area) in halves.into_iter().filter_map(|(view, row, area)| Some((view, row, area?))) {
        if view.is_empty() {
            continue;
        }
        let lines = view.picture(row.unwrap_or(0), &Look::default(), area.width, area.height);
        for (line, number) in lines.iter().zip(0..) {
            paint_line(buffer, area, 0, number, line, &app.config().theme);
        }
    }
}

fn rows(app: &App, pair: &PairView, layout: &Layout, buffer: &mut Buffer) {
    let theme = &app.config().theme;
    let area = layout.rows;
    let mut state = app.workspace().list().clone();
    let len = pair.len();
    state.scroll(len, usize::from(area.height));
    let count = state.count(len);
    let selected = state.position(len);
    let scrolls = u16::from(count > usize::from(area.height) && area.width >= 20);
    // Where there is room for one side only, the mark stands before it.
    let (left, right) = match sides(Rect { width: area.width - scrolls, ..area }) {
        (all, None) => (Rect { x: all.x + 2, width: all.width.saturating_sub(2), ..all }, None),
        both => both,
    };
    let (here, there) = pair.views();
    let own = here.columns().len();
    let of_left = widths(here, here.columns(), left.width);
    let of_right = right.map(|right| widths(there, there.columns(), right.width));
    if let Some(heading) = layout.heading {
        headings(app, here.columns(), &of_left, Rect { y: heading.y, height: 1, ..left }, buffer);
        if let (Some(area), Some(widths)) = (right, &of_right) {
            headings(app, there.columns(), widths, Rect { y: heading.y, height: 1, ..area }, buffer);
        }
    }
    for line in 0..usize::from(area.height).min(count.saturating_sub(state.top)) {
        let position = state.top + line;
        let index = state.row_at(position);
        let row = pair.row(index, &state.look);
        let is_here = position == selected;
        let mut cells = row.cells.into_iter();
        let mark = cells.next().map(|(_, mark)| mark).unwrap_or_default();
        let mut first = Row { cells: cells.by_ref().take(own).collect() };
        let second = Row { cells: cells.collect() };
        let at = line as u16;
        if right.is_none() && pair.sides(index).0.is_none() {
            first = second.clone();
        }
        let half =
            |row, columns, widths| Drawn { row, columns, widths, here: is_here, marked: false, left: state.left };
        draw_row(app, &half(&first, here.columns(), &of_left), left, at, buffer);
        if let (Some(area), Some(widths)) = (right, &of_right) {
            draw_row(app, &half(&second, there.columns(), widths), area, at, buffer);
        }
        let (column, text) = match right {
            Some(_) => {
                (left.x + left.width - area.x, if mark == " " { " │ ".to_string() } else { format!(" {mark} ") })
            }
            None => (0, mark.clone()),
        };
        let tone = if mark == " " { Tone::Dim } else { Tone::Alarm };
        put(buffer, area, column, at, &text, theme.style(tone));
    }
    if count == 0 {
        put(buffer, area, 0, 0, &cut("no row matches", usize::from(area.width)), theme.style(Tone::Care));
    }
    scrollbar(app, count, state.top, area, buffer);
}
