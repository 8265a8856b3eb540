//! What system calls, page faults and spans cost: bars, and spans inside spans as a tree with its flame.

use kwab::export::SpanNode;
use kwab::report::inspect::Report;

use super::flame::Flame;
use super::table::{Table, TableRow};
use super::{Column, Key, Row, Slot, number, text};
use crate::text::{Line, duration, grouped};
use crate::theme::Tone;

const PROFILE: &[Column] = &[
    Column::new("what", 24, 0),
    Column::number("calls", 9, 2),
    Column::number("total", 11, 0),
    Column::number("mean", 11, 3),
    Column::number("longest", 11, 4),
    Column::rest("share"),
];

/// Cells of the longest bar.
const BAR: f64 = 40.0;

/// Costs as rows, the dearest first.
#[must_use]
pub fn profile(report: &Report) -> Table {
    let mut rows = Vec::new();
    for profile in &report.profiles {
        let all = profile.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.total_ns));
        let most = profile.rows.iter().map(|row| row.total_ns).max().unwrap_or(0).max(1);
        let sum = format!("{} in all", duration(all));
        rows.push(TableRow {
            row: Row::of(Tone::Head, [profile.title.clone(), String::new(), duration(all)]),
            detail: vec![Line::of(Tone::Head, profile.title.clone()), Line::plain(sum)],
            values: vec![text(profile.title.clone()), None, number(all), None],
            ..TableRow::default()
        });
        for row in &profile.rows {
            let bar = "█".repeat((row.total_ns as f64 / most as f64 * BAR).ceil() as usize);
            let share = row.total_ns as f64 / all.max(1) as f64 * 100.0;
            let longest = row.max_ns.map(duration).unwrap_or_default();
            let cells = [
                format!("  {}", row.name),
                grouped(row.calls),
                duration(row.total_ns),
                duration(row.avg_ns),
                longest.clone(),
                format!("{share:>5.1} % {bar}"),
            ];
            let mut detail = vec![
                Line::of(Tone::Head, row.name.clone()),
                Line::field("calls", grouped(row.calls)),
                Line::field("total", format!("{} ({share:.1} % of {})", duration(row.total_ns), profile.title)),
                Line::field("mean", duration(row.avg_ns)),
            ];
            detail.extend(row.min_ns.map(|ns| Line::field("shortest", duration(ns))));
            detail.extend(row.max_ns.map(|ns| Line::field("longest", duration(ns))));
            rows.push(TableRow {
                row: Row::of(Tone::Plain, cells).tone(5, Tone::Code),
                detail,
                values: vec![text(row.name.clone()), number(row.calls), number(row.total_ns), number(row.avg_ns)],
                alike: Some(format!("{} {}", profile.title, row.name)),
                keys: vec![
                    Key::Text(row.name.clone()),
                    Key::Number(row.calls),
                    Key::Number(row.total_ns),
                    Key::Number(row.avg_ns),
                    Key::Number(row.max_ns.unwrap_or(0)),
                    Key::Number(row.total_ns),
                ],
                ..TableRow::default()
            });
        }
    }
    Table {
        slot: Slot::Profile,
        columns: PROFILE,
        fields: &["name", "calls", "total", "mean"],
        rows,
        command: "kwab inspect DUMP --section profile",
        when_empty: "no profile in this dump: boot with debug=profile to record one".to_string(),
        summary: None,
        flame: None,
        left_out: 0,
    }
}

const SPANS: &[Column] = &[
    Column::rest("span"),
    Column::number("times", 8, 2),
    Column::number("total", 11, 0),
    Column::number("itself", 11, 1),
    Column::number("share", 7, 3),
];

/// Spans as a tree of what ran inside what, with the flame that it makes.
#[must_use]
pub fn spans(nodes: &[SpanNode], ticks_per_us: Option<f64>) -> Table {
    let time = move |ticks: u64| match ticks_per_us {
        Some(rate) => duration((ticks as f64 * 1000.0 / rate) as u64),
        None => format!("{} ticks", grouped(ticks)),
    };
    let all: u64 = nodes.iter().map(|node| node.own).fold(0, u64::saturating_add);
    let share = |ticks: u64| ticks as f64 / all.max(1) as f64 * 100.0;
    let rows = nodes.iter().map(|node| {
        let depth = node.path.len().saturating_sub(1);
        let name = node.path.last().map_or("", String::as_str);
        let cells = [
            format!("{}{name}", "  ".repeat(depth)),
            grouped(node.times),
            time(node.total),
            time(node.own),
            format!("{:.1} %", share(node.total)),
        ];
        let detail = vec![
            Line::of(Tone::Head, node.path.join(" › ")),
            Line::field("times", grouped(node.times)),
            Line::field("total", format!("{} ({:.1} % of all)", time(node.total), share(node.total))),
            Line::field("itself", format!("{} ({:.1} % of all)", time(node.own), share(node.own))),
            Line::field("mean", time(node.total / node.times.max(1))),
        ];
        TableRow {
            row: Row::of(Tone::Plain, cells).tone(0, Tone::Code).tone(4, Tone::Dim),
            detail,
            values: vec![text(name), number(node.times), number(node.total), number(depth as u64)],
            keys: vec![
                Key::Text(node.path.join("/")),
                Key::Number(node.times),
                Key::Number(node.total),
                Key::Number(node.own),
                Key::Number(node.total),
            ],
            alike: Some(node.path.join("/")),
            ..TableRow::default()
        }
    });
    Table {
        slot: Slot::Spans,
        columns: SPANS,
        fields: &["name", "times", "total", "depth"],
        rows: rows.collect(),
        command: "kwab export DUMP --to folded",
        when_empty: "no function trace in this dump: boot with debug=htrace to record one".to_string(),
        summary: None,
        flame: (!nodes.is_empty()).then(|| Flame::new(nodes, Box::new(time))),
        left_out: 0,
    }
}
