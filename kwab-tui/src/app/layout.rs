//! Decides what goes where on a terminal of any size: the list always, the rest as there is room.

use ratatui::layout::Rect;

use super::App;
use crate::remembered::Panes;
use crate::view::Slot;

/// Terminals at least this wide have the detail beside the list; narrower ones below it.
const BESIDE: u16 = 110;
/// The same for lists of sentences.
const BESIDE_SENTENCES: u16 = 180;
/// Terminals at least this high have a detail below the list.
const BELOW: u16 = 16;
/// Terminals at least this high have a picture.
const PICTURE: u16 = 18;
/// The same for the overview above triage, whose list is read as a whole.
const OVERVIEW: u16 = 30;
/// Lines that the overview leaves to the detail of a row, below the list,
const DETAIL: u16 = 6;
/// and to list and detail beside each other.
const LIST: u16 = 14;

/// Where everything goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The first line: where one is.
    pub header: Rect,
    /// The tabs of a crash.
    pub tabs: Option<Rect>,
    /// Everything between tabs and footer.
    pub body: Rect,
    /// The picture of the list.
    pub picture: Option<Rect>,
    /// The line of totals.
    pub summary: Option<Rect>,
    /// The names of the columns.
    pub heading: Option<Rect>,
    /// Area of the list's rows.
    pub rows: Rect,
    /// The line between list and detail.
    pub rule: Option<Rect>,
    /// The detail of the row.
    pub detail: Option<Rect>,
    /// The last line: what was said, what is typed, which keys there are.
    pub footer: Rect,
}

/// The size of the terminal, and whether the detail of the selected row is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    size: (u16, u16),
    detail: bool,
    /// Tenths of the room that the detail has more, or less, than it is given by itself.
    share: i16,
}

impl Default for Screen {
    fn default() -> Self {
        Self { size: (80, 24), detail: true, share: 0 }
    }
}

impl Screen {
    /// Columns and rows of the terminal.
    #[must_use]
    pub const fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Takes another size of the terminal: columns, rows.
    pub(super) const fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
    }

    /// Gives the detail more room, or the list; a detail that is hidden is shown.
    pub(super) fn give_detail(&mut self, tenths: i16) {
        self.share = if self.detail { (self.share + tenths).clamp(-3, 4) } else { self.share };
        self.detail = true;
    }

    /// How the room is shared.
    pub(super) const fn panes(&self) -> Panes {
        Panes { detail: self.detail, share: self.share }
    }

    /// Shares the room as it was before.
    pub(super) fn share_as(&mut self, panes: Panes) {
        (self.detail, self.share) = (panes.detail, panes.share.clamp(-3, 4));
    }

    /// A part of `room` as it is by itself, changed by what was asked for; the list keeps a fifth.
    fn shared(&self, part: u16, room: u16) -> u16 {
        let change = i32::from(room) * i32::from(self.share) / 10;
        let wanted = (i32::from(part) + change).clamp(3, (i32::from(room) * 4 / 5).max(3));
        u16::try_from(wanted).unwrap_or(part)
    }

    /// Shows the detail, or hides it.
    pub(super) const fn toggle_detail(&mut self) {
        self.detail = !self.detail;
    }
}

/// The layout of the terminal that the interface believes to have.
#[must_use]
pub fn layout(app: &App) -> Layout {
    let (columns, rows) = app.screen().size();
    of(app, Rect::new(0, 0, columns, rows))
}

/// Rows that a page has: all that are seen but one, and at least one.
pub(super) fn page(app: &App) -> isize {
    let rows = layout(app).rows.height;
    isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(1)
}

/// The line of an area under a cell.
pub(super) fn under_row(area: Rect, column: u16, row: u16) -> Option<usize> {
    area.contains((column, row).into()).then(|| usize::from(row - area.y))
}

/// The layout of an area.
pub(crate) fn of(app: &App, area: Rect) -> Layout {
    let mut rest = area;
    let header = take_top(&mut rest, 1);
    let footer = take_bottom(&mut rest, 1);
    let tabs = app.workspace().shown_crash().is_some().then(|| take_top(&mut rest, 1));
    let body = rest;
    let picture = picture_height(app, area, body.height).map(|height| take_top(&mut rest, height));
    let summarised = area.height >= BELOW && app.workspace().view().is_some_and(|view| view.summary().is_some());
    let summary = summarised.then(|| take_top(&mut rest, 1));
    let mut rule = None;
    let mut detail = None;
    let paired = app.workspace().view().is_some_and(|view| view.pair().is_some());
    if app.screen().detail && area.width >= beside(app.workspace().slot()) && !paired {
        let wide = match app.workspace().slot() {
            Some(Slot::Hex) => rest.width.saturating_sub(90).clamp(20, 60),
            _ => rest.width * 2 / 5,
        };
        let wide = app.screen().shared(wide, rest.width);
        detail = Some(take_right(&mut rest, wide));
        rule = Some(take_right(&mut rest, 1));
        // Air between the line and the rows.
        take_right(&mut rest, 1);
        detail = detail.map(|detail| Rect { x: detail.x + 1, width: detail.width.saturating_sub(1), ..detail });
    } else if app.screen().detail && area.height >= BELOW {
        // A list that is seen as a whole leaves the rest to the detail.
        let left = picture.and_then(|_| rest.height.checked_sub(list_height(app)? + 1));
        let high = (rest.height / 3).max(left.unwrap_or(0)).clamp(3, 14);
        let high = app.screen().shared(high, rest.height);
        detail = Some(take_bottom(&mut rest, high));
        rule = Some(take_bottom(&mut rest, 1));
    }
    let heading = (rest.height >= 4).then(|| take_top(&mut rest, 1));
    Layout { header, tabs, body, picture, summary, heading, rows: rest, rule, detail, footer }
}

/// From which width on the detail is beside the list: long sentences need the whole width longer.
const fn beside(slot: Option<Slot>) -> u16 {
    match slot {
        // Every column of the list of dumps says something.
        None => u16::MAX,
        Some(Slot::Triage | Slot::Log | Slot::Integrity | Slot::Compare | Slot::Marks) => BESIDE_SENTENCES,
        Some(_) => BESIDE,
    }
}

/// As many lines as the picture would like, a third of the terminal at most; the overview what the list leaves.
fn picture_height(app: &App, area: Rect, body: u16) -> Option<u16> {
    let (slot, height) = (app.workspace().slot()?, area.height);
    let least = if slot == Slot::Triage { OVERVIEW } else { PICTURE };
    let view = app.workspace().view().filter(|view| height >= least && !view.is_empty())?;
    let lines = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    // A flame is the list itself, seen at once.
    let most = if slot == Slot::Spans { height * 9 / 20 } else { height / 3 };
    let wanted = lines(view.picture_height(area.width)).min(most);
    let left = list_height(app).map_or(0, |list| match area.width {
        BESIDE_SENTENCES.. => body.saturating_sub(list.max(LIST)),
        _ => body.saturating_sub(list.saturating_add(1 + DETAIL)),
    });
    (wanted > 0).then(|| wanted.max(left.min(lines(view.most_picture_height(area.width)))))
}

/// Lines of the list of triage with its heading, which is read as a whole.
fn list_height(app: &App) -> Option<u16> {
    let view = app.workspace().view().filter(|_| app.workspace().slot() == Some(Slot::Triage))?;
    u16::try_from(view.len()).ok()?.checked_add(1)
}

fn take_top(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let top = Rect { height, ..*rest };
    rest.y += height;
    rest.height -= height;
    top
}

fn take_bottom(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    rest.height -= height;
    Rect { y: rest.y + rest.height, height, ..*rest }
}

fn take_right(rest: &mut Rect, width: u16) -> Rect {
    let width = width.min(rest.width);
    rest.width -= width;
    Rect { x: rest.x + rest.width, width, ..*rest }
}
