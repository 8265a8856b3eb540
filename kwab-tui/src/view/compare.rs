//! Two crashes side by side: the same fact of each on one row, those that differ standing out.

use std::collections::BTreeMap;

use kwab::report::compare::compare;
use kwab::report::filter;
use kwab::report::inspect::Report;

use super::table::{Table, TableRow};
use super::{Column, Link, Row, Slot, Target, text};
use crate::text::{Line, count};
use crate::theme::Tone;

const COLUMNS: &[Column] = &[
    Column::new("part", 11, 3),
    Column::new("fact", 14, 1),
    Column::new("", 1, 0),
    Column::new("this one", 28, 0),
    Column::rest("the other"),
];

/// Two reports as rows.
#[must_use]
pub fn comparison(left: &Report, right: &Report) -> Table {
    let pairs = compare(left, right);
    let differ = pairs.iter().filter(|row| !row.is_equal()).count();
    let mut rows_of: BTreeMap<&str, usize> = BTreeMap::new();
    let rows = pairs.iter().map(|row| {
        let row_number = rows_of.entry(row.part).or_default();
        *row_number += 1;
        let link = match row.part {
            "cause" => Some((Slot::Triage, 0)),
            "backtrace" => Some((Slot::Backtrace, *row_number - 1)),
            // Several sets have a heading each.
            "registers" => Some((Slot::Registers, *row_number - usize::from(left.registers.len() < 2))),
            _ => None,
        };
        let link = link.map(|(slot, row)| Link::new(slot.name(), Target::Row(slot, row)));
        let mapping = Some(&row.name).filter(|_| row.part == "memory map").and_then(|start| filter::number(start));
        let link = link.or_else(|| mapping.map(|start| Link::new("mapping", Target::Mapping(start))));
        let equal = row.is_equal();
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_string()).replace('\n', " ");
        let (tone, mark) = if equal { (Tone::Dim, " ") } else { (Tone::Plain, "≠") };
        let cells = [row.part.to_string(), row.name.clone(), mark.to_string(), side(&row.left), side(&row.right)];
        let detail = vec![
            Line::of(Tone::Head, format!("{}, {}", row.part, row.name)),
            Line::of(Tone::Dim, "this  ").and(tone, side(&row.left)),
            Line::of(Tone::Dim, "other ").and(tone, side(&row.right)),
            Line::plain(if equal { "the same in both" } else { "they differ" }),
        ];
        TableRow {
            row: Row::of(tone, cells).tone(0, Tone::Dim).tone(1, Tone::Code).tone(2, Tone::Alarm),
            detail,
            links: link.into_iter().collect(),
            values: vec![text(row.part), text(row.name.clone()), text(if equal { "yes" } else { "no" })],
            ..TableRow::default()
        }
    });
    let summary = format!(
        "{} differ of {}; the tabs show both   {}  |  {}",
        differ,
        count(pairs.len(), "fact", "facts"),
        left.file,
        right.file
    );
    Table {
        slot: Slot::Compare,
        columns: COLUMNS,
        fields: &["part", "fact", "same"],
        rows: rows.collect(),
        command: "kwab inspect DUMP --json",
        when_empty: "no facts are recorded for either crash".to_string(),
        summary: Some(Line::of(Tone::Dim, summary)),
        flame: None,
        left_out: 0,
    }
}
