//! Puts text into cells, cut at the edges of an area. Everything the interface shows passes here, so here it is made
//! safe.

use kwab::plain;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::text::{Line, width};
use crate::theme::Theme;

/// Puts `text` at a cell of an area, hostile characters escaped; gives the columns that it took.
pub(super) fn put(buffer: &mut Buffer, area: Rect, column: u16, row: u16, text: &str, style: Style) -> u16 {
    let area = area.intersection(*buffer.area());
    if row >= area.height || column >= area.width {
        return 0;
    }
    let room = usize::from(area.width - column);
    let (end, _) = buffer.set_stringn(area.x + column, area.y + row, plain::line(text), room, style);
    end.saturating_sub(area.x + column)
}

/// Puts a line at a cell of an area, with an ellipsis when it does not fit.
pub(super) fn line(buffer: &mut Buffer, area: Rect, column: u16, row: u16, line: &Line, theme: &Theme) {
    let mut at = column;
    for (tone, text) in &line.pieces {
        if at >= area.width {
            break;
        }
        let room = usize::from(area.width - at);
        let style = theme.style(*tone);
        let text = &*plain::line(text);
        if width(text) > room {
            put(buffer, area, at, row, &crate::text::cut(text, room), style);
            return;
        }
        at += put(buffer, area, at, row, text, style);
    }
}
