//! Lays the parts of a page beside each other on wide terminals.
//!
//! A part is text for a given width. On a terminal of 110 columns there are two parts beside each other, from 180 on
//! three; each part goes below the shortest column. A part that does not fit its column, or that would be broken into
//! half as many lines again, has the whole width: above the columns when it comes first, else below them.

use crate::output::{Style, columns};
use crate::paint::self_contained;

/// Blanks between two columns.
const GAP: usize = 2;

/// How many columns a page of this style has.
pub(crate) fn count(style: Style) -> usize {
    match style.width {
        usize::MAX => 1,
        180.. => 3,
        110.. => 2,
        _ => 1,
    }
}

/// Writes the parts, which `render` makes for a style; empty parts take no room.
pub(crate) fn parts<P: Copy>(parts: &[P], style: Style, render: impl Fn(P, Style) -> String, out: &mut String) {
    let count = count(style).min(parts.len());
    if count <= 1 {
        parts.iter().for_each(|part| out.push_str(&render(*part, style)));
        return;
    }
    let narrow = Style { width: (style.width - GAP * (count - 1)) / count, ..style };
    let mut stacks: Vec<Vec<String>> = vec![Vec::new(); count];
    let mut below = String::new();
    for part in parts {
        let (lines, whole) = (self_contained(&render(*part, narrow)), render(*part, style));
        let is_broken = lines.len() * 2 > whole.lines().count() * 3;
        if is_broken || lines.iter().any(|line| columns(line) > narrow.width) {
            let is_first = stacks.iter().all(Vec::is_empty);
            let place = if is_first { &mut *out } else { &mut below };
            place.push_str(&whole);
        } else if let Some(shortest) = stacks.iter_mut().min_by_key(|stack| stack.len()) {
            shortest.extend(lines);
        }
    }
    let longest = stacks.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..longest {
        let mut line = String::new();
        for (at, stack) in stacks.iter().enumerate() {
            let Some(cell) = stack.get(row).filter(|cell| !cell.is_empty()) else { continue };
            let room = at * (narrow.width + GAP);
            line.push_str(&" ".repeat(room.saturating_sub(columns(&line))));
            line.push_str(cell);
        }
        out.push_str(&line);
        out.push('\n');
    }
    out.push_str(&below);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize) -> String {
        let style = Style { width, color: false };
        let part = |name: &'static str, style: Style| match name {
            "wide" => format!("\nwide\n{}\n", "x".repeat(style.width.min(90))),
            name => format!("\n{name}\n  text\n"),
        };
        let mut out = String::new();
        parts(&["a", "b", "wide", "c"], style, part, &mut out);
        out
    }

    #[test]
    fn parts_stand_beside_each_other_where_there_is_room() {
        assert_eq!(page(80).lines().count(), 12);
        let two = page(120);
        assert!(two.contains(&format!("a{}b\n", " ".repeat(60))), "{two}");
        let three = page(200);
        assert!(three.lines().any(|line| line.starts_with('a') && line.ends_with('w') || line.contains("wide")));
        assert!(three.lines().all(|line| line.len() <= 200), "{three}");
    }

    #[test]
    fn a_part_that_does_not_fit_its_column_has_the_whole_width() {
        let style = Style { width: 120, color: false };
        let part = |name: &'static str, _: Style| format!("\n{name}\n{}\n", "y".repeat(name.len() * 20));
        let (long, short) = (format!("\nlong\n{}\n", "y".repeat(80)), format!("\na\n{}\n", "y".repeat(20)));
        let (mut above, mut below) = (String::new(), String::new());
        parts(&["long", "a"], style, part, &mut above);
        parts(&["a", "long"], style, part, &mut below);
        assert_eq!(above, format!("{long}{short}"));
        assert_eq!(below, format!("{short}{long}"));
    }
}
