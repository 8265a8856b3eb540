//! Marks and notes of a dump as rows.

use super::table::{Table, TableRow};
use super::{Column, Link, Row, Slot, text};
use crate::marks::Marks;
use crate::text::Line;
use crate::theme::Tone;

const COLUMNS: &[Column] = &[Column::new("target", 28, 1), Column::rest("row"), Column::new("note", 30, 2)];

/// The marks as links.
#[must_use]
pub fn marks(marks: &Marks) -> Table {
    let rows = marks.marks.iter().map(|mark| {
        let name = mark.target.name();
        let cells = [name.clone(), mark.row.clone(), mark.note.clone()];
        let mut detail = vec![Line::of(Tone::Head, name.clone()), Line::plain(mark.row.clone())];
        if !mark.note.is_empty() {
            detail.push(Line::of(Tone::Care, mark.note.clone()));
        }
        TableRow {
            row: Row::of(Tone::Plain, cells).tone(0, Tone::Link).tone(2, Tone::Care),
            detail,
            links: vec![Link::new(name.clone(), mark.target.clone())],
            values: vec![text(name), text(mark.note.clone())],
            ..TableRow::default()
        }
    });
    Table {
        slot: Slot::Marks,
        columns: COLUMNS,
        fields: &["target", "note"],
        rows: rows.collect(),
        command: "kwab tui DUMP",
        when_empty: "no marks: m marks the row under the cursor, M writes a note there".to_string(),
        summary: None,
        flame: None,
        left_out: 0,
    }
}
