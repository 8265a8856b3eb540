//! Draws the interface: looks at [`App`] and at nothing else, changes nothing, and draws only what is seen.

mod header;
mod overlay;
mod paint;
mod pair;
mod table;

pub use crate::app::help::help_lines;
pub use crate::app::layout::{Layout, layout};
pub use crate::app::tab_line::tab_at;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::app::{App, Crash};
use crate::text::Line;
use crate::theme::Tone;
use crate::view::Look;
use paint::{line as paint_line, put};

/// Draws one frame of the whole interface; reads `app` and changes nothing.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let area = frame.area();
    render(app, area, frame.buffer_mut());
}

/// Draws everything into a buffer.
pub fn render(app: &App, area: Rect, buffer: &mut Buffer) {
    if area.width < 8 || area.height < 3 {
        put(buffer, area, 0, 0, "kwab", app.config().theme.style(Tone::Head));
        return;
    }
    let layout = crate::app::layout::of(app, area);
    header::draw(app, &layout, buffer);
    body(app, &layout, buffer);
    header::footer(app, &layout, buffer);
    overlay::draw(app, area, buffer);
}

/// The list and its detail, or why there is none.
fn body(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let theme = &app.config().theme;
    let Some(view) = app.workspace().view() else {
        let text = match app.workspace().shown_crash().and_then(|crash| crash.failed()) {
            Some(failed) => Line::of(Tone::Alarm, failed.to_string()),
            None => Line::of(Tone::Dim, "loading …"),
        };
        paragraph(app, &[text], layout.body, buffer);
        return;
    };
    if view.is_empty() {
        let linux = app.workspace().shown_crash().is_some_and(Crash::is_linux);
        let mut lines = vec![Line::of(Tone::Plain, why_empty(&view.when_empty(), linux))];
        lines.extend(view.summary());
        lines.push(Line::of(Tone::Dim, format!("$ {}", app.workspace().command(&*view))));
        paragraph(app, &lines, layout.body, buffer);
        return;
    }
    if let (Some(area), Some(summary)) = (layout.summary, view.summary()) {
        paint_line(buffer, area, 0, 0, &summary, theme);
    }
    rule(app, layout, buffer);
    if let Some(pair) = view.pair() {
        pair::draw(app, pair, layout, buffer);
        return;
    }
    let selected = app.workspace().selected();
    if let (Some(picture), Some(row)) = (layout.picture, selected) {
        let look = app.workspace().list().look;
        for (index, line) in view.picture(row, &look, picture.width, picture.height).iter().enumerate() {
            paint_line(buffer, picture, 0, index as u16, line, theme);
        }
    }
    table::draw(app, view.as_ref(), layout, buffer);
    if let (Some(area), Some(row)) = (layout.detail, selected) {
        let list = app.workspace().list();
        let lines = view.detail(row, &Look { pictured: layout.picture.is_some(), ..list.look });
        paragraph(app, lines.get(list.detail.min(lines.len().saturating_sub(1))..).unwrap_or_default(), area, buffer);
    }
}

/// Why a list is empty; what a Linux cannot be booted with is not advised.
fn why_empty(text: &str, linux: bool) -> &str {
    let fact = text.split_once(": ").filter(|(_, advice)| linux && advice.contains("debug="));
    fact.map_or(text, |(fact, _)| fact)
}

/// The line between list and detail.
fn rule(app: &App, layout: &Layout, buffer: &mut Buffer) {
    let Some(rule) = layout.rule else { return };
    let style = app.config().theme.style(Tone::Dim);
    if rule.width == 1 {
        for row in 0..rule.height {
            put(buffer, rule, 0, row, "│", style);
        }
    } else {
        put(buffer, rule, 0, 0, &"─".repeat(usize::from(rule.width)), style);
    }
}

/// Lines broken at the width of an area, as many as fit; where some do not, the last row says so.
fn paragraph(app: &App, lines: &[Line], area: Rect, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    let mut shown: Vec<Line> = Vec::new();
    for line in lines {
        if shown.len() > height {
            break;
        }
        shown.extend(line.wrapped(usize::from(area.width), 2));
    }
    let hidden = shown.len() > height;
    for (index, line) in shown.iter().take(height).enumerate() {
        paint_line(buffer, area, 0, index as u16, line, &app.config().theme);
    }
    if hidden && height > 1 && area.width > 4 {
        put(buffer, area, area.width - 3, area.height - 1, " ↓J", app.config().theme.style(Tone::Dim));
    }
}

#[cfg(test)]
mod tests {
    use super::why_empty;

    #[test]
    fn a_linux_is_not_advised_to_boot_with_options_of_another_kernel() {
        let text = "no system calls in this dump: boot with debug=syscall to record them";
        assert_eq!(why_empty(text, false), text);
        assert_eq!(why_empty(text, true), "no system calls in this dump");
        let tasks = "no tasks in this dump: kernels list them when they panic, or at SysRq t";
        assert_eq!(why_empty(tasks, true), tasks);
    }
}
