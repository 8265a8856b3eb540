//! Decides which tabs fit into the line of tabs, and which of them is under a cell.

use super::layout::Layout;
use super::{App, TABS};
use crate::text::width;

/// A tab as it is drawn.
pub(crate) struct Tab {
    /// Its number; `usize::MAX` for a list that lies over the tabs.
    pub(crate) number: usize,
    /// Its first column.
    pub(crate) at: u16,
    /// What it says.
    pub(crate) text: String,
    /// Whether it is shown.
    pub(crate) current: bool,
}

/// The tabs' names where there is little room.
const SHORT: [&str; 12] =
    ["Triage", "Trace", "Regs", "Calls", "Time", "Mem", "Hex", "Tasks", "Log", "Check", "ocks", "rofile"];

/// The tabs that fit: full names, then short ones, then the keys alone around the current one.
pub(crate) fn tabs(app: &App, room: u16) -> Vec<Tab> {
    let Some(crash) = app.workspace().shown_crash() else { return Vec::new() };
    let current = if crash.tabs().cover().is_some() { usize::MAX } else { crash.tabs().current() };
    let named = |name: &'static str, number: usize, gap: &str| {
        let key = match number {
            0..9 => char::from(b'1' + number as u8),
            9 => '0',
            10 => 'L',
            _ => 'P',
        };
        let lists = TABS[number].1.len();
        let mode = match number == current && lists > 1 {
            true => format!(" {}/{lists}", crash.tabs().mode(number) + 1),
            false => String::new(),
        };
        format!("{key}{gap}{name}{mode}")
    };
    let long: Vec<String> = TABS.iter().enumerate().map(|(at, (name, _))| named(name, at, " ")).collect();
    let short: Vec<String> = SHORT.iter().enumerate().map(|(at, name)| named(name, at, "")).collect();
    let keys = TABS
        .iter()
        .enumerate()
        .map(|(at, (name, _))| named(if at == current { name } else { "" }, at, if at == current { " " } else { "" }));
    let wide = |names: &[String], gap: usize| names.iter().map(|name| width(name) + gap).sum::<usize>();
    let room = usize::from(room);
    let (shown, gap) = match () {
        () if wide(&long, 2) <= room => (long, 2),
        () if wide(&short, 1) <= room + 1 => (short, 1),
        () => (keys.collect(), 1),
    };
    let mut first = 0;
    // What does not fit at the left is scrolled off so that the current tab is seen.
    while current < shown.len() && wide(&shown[first..=current], gap) > room + gap && first < current {
        first += 1;
    }
    let mut at = 0;
    let mut tabs = Vec::new();
    for (number, text) in shown.into_iter().enumerate().skip(first) {
        let columns = width(&text);
        tabs.push(Tab { number, at: at as u16, text, current: number == current });
        at += columns + gap;
        if at >= room {
            break;
        }
    }
    if let Some(slot) = crash.tabs().cover() {
        let text = format!(" {} ", slot.name());
        let at = room.saturating_sub(width(&text));
        tabs.push(Tab { number: usize::MAX, at: at as u16, text, current: true });
    }
    tabs
}

/// The tab at a cell.
#[must_use]
pub fn tab_at(app: &App, layout: &Layout, column: u16, row: u16) -> Option<usize> {
    let area = layout.tabs.filter(|area| area.y == row)?;
    let under = |tab: &Tab| (tab.at..tab.at + width(&tab.text) as u16).contains(&column);
    tabs(app, area.width).iter().find(|tab| under(tab)).map(|tab| tab.number).filter(|number| *number < TABS.len())
}
