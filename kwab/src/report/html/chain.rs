//! What caused what: a list of its own, and the marks by which the script finds cause and effect of a row.
//!
//! A row of an event carries the number of its moment in `data-m` and, where something lasted, its nanoseconds in
//! `data-d`: a thread's turn on its processor, a wait for a lock, a call. A row of the list names the moments of its
//! two ends, so that the script draws an arrow between them and jumps from one to the other.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::{Cell, Keep, Page};
use crate::causes::{Causes, Flow, FlowKind, Moment, Scale, What};
use crate::report::inspect::{EventRow, Report};
use crate::units;

/// The events of a page that cause or are caused.
pub(super) struct Chain<'c> {
    causes: Option<&'c Causes>,
    /// Numbers of the moments that have a row, by the position of their record.
    shown: HashMap<(u32, u32), u32>,
    /// How long what began at a moment lasted.
    lasted: HashMap<u32, u64>,
}

impl<'c> Chain<'c> {
    /// Finds the moments of a report's rows.
    pub(super) fn of(causes: Option<&'c Causes>, report: &Report) -> Self {
        let mut chain = Self { causes, shown: HashMap::new(), lasted: HashMap::new() };
        let Some(causes) = causes else { return chain };
        let rows: HashSet<(u32, u32)> =
            report.events.iter().chain(&report.syscalls).chain(&report.trace).filter_map(|row| row.at).collect();
        let mut turns: HashMap<u32, u32> = HashMap::new();
        for (number, moment) in (0..).zip(&causes.moments) {
            if rows.contains(&(moment.section, moment.offset)) {
                chain.shown.insert((moment.section, moment.offset), number);
            }
            let What::Run { .. } = moment.what else { continue };
            if let Some(before) = turns.remove(&moment.cpu) {
                chain.lasts(before, moment.ns);
            }
            if moment.tid != 0 {
                turns.insert(moment.cpu, number);
            }
        }
        let waits = causes.flows.iter().filter(|flow| flow.kind == FlowKind::WaitToLock);
        waits.for_each(|flow| chain.lasts(flow.from, causes.moments[flow.to as usize].ns));
        chain
    }

    /// Notes the end of what began at a moment, when it has a row.
    fn lasts(&mut self, begin: u32, end: u64) {
        let Some(moment) = self.causes.and_then(|causes| causes.moments.get(begin as usize)) else { return };
        if self.shown.get(&(moment.section, moment.offset)) == Some(&begin) {
            self.lasted.insert(begin, end.saturating_sub(moment.ns));
        }
    }

    /// The attributes of a row for the script.
    pub(super) fn marks(&self, row: &EventRow) -> String {
        let number = row.at.and_then(|at| self.shown.get(&at));
        let mut marks = number.map_or(String::new(), |number| format!(" data-m={number}"));
        let took = number.and_then(|number| self.lasted.get(number)).copied().or(row.took_ns);
        if let Some(took) = took.filter(|took| *took > 0) {
            let _ = write!(marks, " data-d={took}");
        }
        marks
    }

    /// The list of flows, of which the last `rows` are written.
    pub(super) fn list(&self, rows: usize, page: &mut Page) {
        let Some(causes) = self.causes.filter(|causes| !causes.flows.is_empty()) else { return };
        let skipped = causes.flows.len().saturating_sub(rows);
        page.part_of("causes", "Causes", &causes.flows[skipped..], |page, flows| {
            super::unprinted(flows.len(), page);
            let heads = ["", "from, s", "CPU", "to, s", "CPU", "after", "what it did", "concluded from"];
            page.table(&heads, flows, (96_000, Keep::Last, "causes"), |page, index, flow| {
                row(causes, flow, &super::class(index, flows.len(), ""), page);
            });
            if skipped > 0 {
                page.note(&format!("the last {} of {} causes (-n shows more)", flows.len(), causes.flows.len()));
            }
            for ((kind, why), count) in &causes.unpaired {
                page.line("dim", kind.name(), &format!("{} {}", units::count(*count, "event", "events"), why.words()));
            }
        });
    }
}

fn row(causes: &Causes, flow: &Flow, class: &str, page: &mut Page) {
    let [from, to] = [flow.from, flow.to].map(|end| &causes.moments[end as usize]);
    let cpu = |moment: &Moment| if moment.cpu == Moment::NONE { String::new() } else { moment.cpu.to_string() };
    let after = to.ns.saturating_sub(from.ns);
    let after = match causes.clock.scale() {
        Scale::Time => units::duration(after),
        Scale::Ticks => units::count(after, "tick", "ticks"),
    };
    let words = causes.effect_words(flow);
    let [begin, end] = [from, to].map(|moment| super::seconds(moment.ns));
    let places = [from, to].map(cpu);
    let cells = [&begin, &places[0], &end, &places[1], &after].map(|cell| Cell::Mono(cell));
    let name = Cell::Text(flow.kind.name());
    page.row(
        &format!("{class} data-from={} data-to={}", flow.from, flow.to),
        &[
            name,
            cells[0],
            cells[1],
            cells[2],
            cells[3],
            cells[4],
            Cell::Text(&words),
            Cell::Text(flow.evidence.words()),
        ],
    );
}
