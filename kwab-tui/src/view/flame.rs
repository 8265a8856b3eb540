//! Spans as a flame: a line per depth, each span as wide as its time, what ran inside it below it.
//!
//! Spans are laid out once, in ticks: those inside a span stand beside each other from its begin on. A picture shows a
//! window of the ticks, and finds in each line only what is seen of it.

use kwab::export::SpanNode;

use super::Look;
use crate::text::{Line, pad, width as columns_of};
use crate::theme::Tone;

/// The shares of a whole, in percent, from which on the time that a span spent itself stands out.
const HOT: (u64, u64) = (10, 30);

/// How many ticks are, in words.
pub type Time = Box<dyn Fn(u64) -> String + Send + Sync>;

/// The layout of spans.
pub struct Flame {
    /// The spans, in the order of the rows.
    blocks: Vec<Block>,
    /// The spans of each depth, by their begin.
    lines: Vec<Vec<u32>>,
    extent: u64,
    time: Time,
}

struct Block {
    name: String,
    from: u64,
    to: u64,
    own: u64,
    depth: usize,
    around: Option<usize>,
}

impl Flame {
    /// Lays spans out that follow the ones they are inside of.
    #[must_use]
    pub fn new(nodes: &[SpanNode], time: Time) -> Self {
        let mut flame = Self { blocks: Vec::with_capacity(nodes.len()), lines: Vec::new(), extent: 0, time };
        // The spans around the next one, outermost first, and where in each the next one begins.
        let mut open: Vec<(usize, u64)> = Vec::new();
        for (row, node) in nodes.iter().enumerate() {
            while open.last().is_some_and(|(around, _)| !node.path.starts_with(&nodes[*around].path)) {
                open.pop();
            }
            let around = open.last().map(|(around, _)| *around);
            let (from, most) = match open.last_mut() {
                Some((around, next)) => (*next, flame.blocks[*around].to),
                None => (flame.extent, u64::MAX),
            };
            let to = from.saturating_add(node.total).min(most);
            match open.last_mut() {
                Some((_, next)) => *next = to,
                None => flame.extent = to,
            }
            let depth = open.len();
            if flame.lines.len() <= depth {
                flame.lines.push(Vec::new());
            }
            flame.lines[depth].extend(u32::try_from(row));
            let name = node.path.last().cloned().unwrap_or_default();
            flame.blocks.push(Block { name, from, to, own: node.own, depth, around });
            open.push((row, from));
        }
        flame
    }

    /// The lines of the whole picture, with the one of words.
    #[must_use]
    pub fn height(&self) -> usize {
        self.lines.len() + 1
    }

    /// The part of the whole that a span takes.
    #[must_use]
    pub fn focus(&self, row: usize) -> Option<(u64, u64)> {
        self.blocks.get(row).map(|block| (block.from, block.to)).filter(|(from, to)| from < to)
    }

    /// The span around a window.
    #[must_use]
    pub fn around(&self, window: (u64, u64)) -> Option<(u64, u64)> {
        let wider = |block: &&Block| block.from <= window.0 && block.to >= window.1 && (block.from, block.to) != window;
        let found = self.blocks.iter().filter(wider).min_by_key(|block| block.to - block.from)?;
        Some((found.from, found.to))
    }

    /// The span around a span, or the first one inside it.
    #[must_use]
    pub fn neighbour(&self, row: usize, inside: bool) -> Option<usize> {
        if inside {
            let next = self.blocks.get(row + 1)?;
            return (next.around == Some(row)).then_some(row + 1);
        }
        self.blocks.get(row)?.around
    }

    /// The first depth that a picture of so many lines shows: the selected span and one inside it are always seen.
    fn first_line(&self, selected: usize, height: usize) -> usize {
        let depth = self.blocks.get(selected).map_or(0, |block| block.depth);
        let most = self.lines.len().saturating_sub(height);
        (depth + 2).saturating_sub(height).min(most)
    }

    /// The span at a cell of a picture.
    #[must_use]
    pub fn row_at(&self, at: (u16, u16), selected: usize, look: &Look, size: (u16, u16)) -> Option<usize> {
        let height = usize::from(size.1).checked_sub(1)?;
        let line = usize::from(at.1).checked_sub(1).filter(|line| *line < height)?;
        let line = self.lines.get(self.first_line(selected, height) + line)?;
        let (from, to) = look.window.unwrap_or((0, self.extent));
        let wide = u128::from(to.saturating_sub(from).max(1));
        let tick = from + u64::try_from(wide * u128::from(at.0) / u128::from(size.0.max(1))).unwrap_or(0);
        let after = line.partition_point(|row| self.blocks[*row as usize].from <= tick);
        let row = *line.get(after.checked_sub(1)?)? as usize;
        (self.blocks[row].to > tick).then_some(row)
    }

    /// The picture: a line of words, then a line per depth.
    #[must_use]
    pub fn draw(&self, selected: usize, look: &Look, width: u16, height: u16) -> Vec<Line> {
        let (width, height) = (usize::from(width), usize::from(height).saturating_sub(1));
        if width < 8 || height == 0 {
            return Vec::new();
        }
        let window = look.window.unwrap_or((0, self.extent));
        let part = window.1.saturating_sub(window.0);
        let zoomed = if look.window.is_some() { format!("{} of ", (self.time)(part)) } else { String::new() };
        let words = format!("flame: {zoomed}{}  + into the span, - out, h around, l inside", (self.time)(self.extent));
        let mut lines = vec![Line::of(Tone::Dim, words)];
        let first = self.first_line(selected, height);
        lines.extend(self.lines.iter().skip(first).take(height).map(|line| self.line(line, window, selected, width)));
        lines
    }

    fn line(&self, rows: &[u32], window: (u64, u64), selected: usize, width: usize) -> Line {
        let extent = u128::from(window.1.saturating_sub(window.0).max(1));
        let column = |tick: u64| {
            let within = u128::from(tick.clamp(window.0, window.1) - window.0);
            usize::try_from(within * width as u128 / extent).unwrap_or(width).min(width)
        };
        let block = |at: usize| rows.get(at).map(|row| &self.blocks[*row as usize]);
        let mut line = Line::default();
        let mut used = 0;
        let mut at = rows.partition_point(|row| self.blocks[*row as usize].to <= window.0);
        while let Some(here) = block(at).filter(|block| block.from < window.1 && used < width) {
            let (from, to) = (column(here.from).max(used), column(here.to));
            if from > used {
                line.pieces.push((Tone::Dim, " ".repeat(from - used)));
                used = from;
            }
            let is_selected = rows[at] as usize == selected;
            if to > from {
                let tone = if is_selected { Tone::Selected } else { self.tone(here) };
                line.pieces.push((tone, block_text(&here.name, to - from)));
                used = to;
                at += 1;
                continue;
            }
            // Spans narrower than a column share one; the next that is looked at begins behind it.
            let next = rows.partition_point(|row| column(self.blocks[*row as usize].to) <= used).max(at + 1);
            let holds = rows[at..next].iter().any(|row| *row as usize == selected);
            if used < width {
                line.pieces.push((if holds { Tone::Selected } else { Tone::Dim }, "┆".to_string()));
                used += 1;
            }
            at = next;
        }
        line
    }

    fn tone(&self, block: &Block) -> Tone {
        let percent = u128::from(block.own) * 100 / u128::from(self.extent.max(1));
        match u64::try_from(percent).unwrap_or(u64::MAX) {
            share if share >= HOT.1 => Tone::Alarm,
            share if share >= HOT.0 => Tone::Care,
            _ => Tone::Code,
        }
    }
}

/// A name in as many columns: `├name─────`.
fn block_text(name: &str, width: usize) -> String {
    match width {
        0 => String::new(),
        1 => "│".to_string(),
        2 => "├─".to_string(),
        _ => {
            let room = width - 1;
            let shown = if columns_of(name) <= room { name.to_string() } else { pad(name, room, false) };
            let rest = "─".repeat(room.saturating_sub(columns_of(&shown)));
            format!("├{shown}{rest}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flame() -> Flame {
        let node = |path: &str, total, own| SpanNode {
            path: path.split('/').map(str::to_string).collect(),
            times: 1,
            total,
            own,
        };
        let nodes =
            [node("a", 60, 10), node("a/b", 30, 30), node("a/c", 20, 0), node("a/c/d", 20, 20), node("e", 40, 40)];
        Flame::new(&nodes, Box::new(|ticks| format!("{ticks}")))
    }

    fn text(flame: &Flame, selected: usize, window: Option<(u64, u64)>, height: u16) -> Vec<String> {
        let look = Look { window, ..Look::default() };
        flame.draw(selected, &look, 20, height).iter().skip(1).map(|line| line.text().trim_end().to_string()).collect()
    }

    #[test]
    fn spans_stand_below_the_one_they_ran_in_as_wide_as_their_time() {
        let flame = flame();
        assert_eq!(text(&flame, 0, None, 9), ["├a──────────├e──────", "├b────├c──", "      ├d──"]);
        assert_eq!(
            text(&flame, 0, flame.focus(2), 9),
            ["├a──────────────────", "├c──────────────────", "├d──────────────────"]
        );
        assert_eq!(text(&flame, 3, None, 3), ["├b────├c──", "      ├d──"], "a low picture follows the selection");
    }

    #[test]
    fn a_look_from_farther_away_shows_the_span_around() {
        let flame = flame();
        let inner = flame.focus(3).unwrap();
        assert_eq!(flame.around(inner), flame.focus(0), "the span that fills its outer one is not a step");
        assert_eq!(flame.around(flame.focus(0).unwrap()), None);
        assert_eq!(
            (flame.neighbour(2, true), flame.neighbour(2, false), flame.neighbour(3, true)),
            (Some(3), Some(0), None)
        );
    }

    #[test]
    fn a_click_finds_the_span_under_it() {
        let flame = flame();
        let at = |column, line| flame.row_at((column, line), 0, &Look::default(), (20, 9));
        assert_eq!((at(0, 1), at(12, 1), at(0, 2), at(7, 3)), (Some(0), Some(4), Some(1), Some(3)));
        assert_eq!((at(0, 0), at(0, 3), at(19, 2)), (None, None, None));
    }
}
