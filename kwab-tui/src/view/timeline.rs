//! All events of all processors by time: a lane per processor above, the events as rows below.
//!
//! Rows are read from the dump when they are drawn; what filters and lanes need is in the index.

use std::sync::Arc;

use kwab::format::record::FlightEvent;
use kwab::format::{RecordKind, RecordType as _};
use kwab::model::index::{Clock, Event, EventIndex, Mood};
use kwab::model::{line, payloads::Payloads};
use kwab::report::filter::FieldValue;

use super::partners::{Partner, Partners};
use super::{Column, Link, Look, Row, Target, View, number, text};
use crate::text::{Line, count, duration, grouped};
use crate::theme::Tone;

/// The events of a dump as rows and lanes.
pub struct TimelineView {
    payloads: Arc<Payloads>,
    index: Arc<EventIndex>,
    lanes: Vec<Lane>,
    partners: Partners,
}

impl TimelineView {
    /// Shows an index, with what caused what in it.
    #[must_use]
    pub fn new(payloads: Arc<Payloads>, index: Arc<EventIndex>, partners: Partners) -> Self {
        let lanes = lanes_of(&index);
        Self { payloads, index, lanes, partners }
    }

    /// Links to partners, each with what the two have to do with each other.
    fn linked(&self, partners: Vec<Partner>) -> Vec<Link> {
        let label = |one: &Partner| {
            let event = self.event(one.event).map(|event| summary(&self.payloads, event)).unwrap_or_default();
            format!("{}: {event}", one.words)
        };
        partners.into_iter().map(|one| Link::new(label(&one), Target::Event(one.event))).collect()
    }

    fn event(&self, index: usize) -> Option<&Event> {
        self.index.events.get(index)
    }
}

/// Calls `look` with the record of an event.
pub(super) fn summary(payloads: &Payloads, event: &Event) -> String {
    let told = payloads.record(event.section as usize, event.offset as usize, |raw| {
        raw.decode()
            .map(|record| line::summary(&record, raw))
            .unwrap_or_else(|error| format!("cannot be read: {error}"))
    });
    told.unwrap_or_else(|| "the section of this event cannot be read".to_string())
}

/// When an event was, relative to the first.
pub(super) fn time(index: &EventIndex, event: &Event) -> String {
    let first = index.events.first().map_or(0, |first| first.order);
    let span = event.order.saturating_sub(first);
    match (index.clock, index.clock.nanoseconds(span)) {
        (_, Some(ns)) => format!("+{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000),
        (Clock::Lines, _) => format!("line {}", event.order),
        (Clock::Ticks(_), _) => format!("+{span}"),
        _ => format!("{}", event.order),
    }
}

/// A span of the clock in words.
pub(super) fn span(clock: Clock, span: u64) -> String {
    match (clock, clock.nanoseconds(span)) {
        (_, Some(ns)) => duration(ns),
        (Clock::Lines, _) => count(usize::try_from(span).unwrap_or(usize::MAX), "line", "lines"),
        (Clock::Ticks(_), _) => format!("{} ticks", grouped(span)),
        _ => format!("{} events", grouped(span)),
    }
}

pub(super) fn tone(mood: Mood) -> Tone {
    match mood {
        Mood::Quiet => Tone::Plain,
        Mood::Failed => Tone::Care,
        Mood::Death => Tone::Alarm,
    }
}

pub(super) fn dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "–".to_string(), |value| value.to_string())
}

pub(super) fn pid(event: &Event) -> Option<u32> {
    Some(event.pid).filter(|pid| *pid != Event::NO_PROCESS)
}

pub(super) fn cpu(event: &Event) -> Option<u8> {
    Some(event.cpu).filter(|cpu| *cpu != Event::ANYWHERE)
}

/// The kind of a record, in the word that JSON has for it.
fn kind(kind: RecordKind) -> String {
    kwab::model::json::type_name(kind)
}

const COLUMNS: &[Column] = &[
    Column::number("time", 14, 1).incidental(),
    Column::number("cpu", 3, 3).incidental(),
    Column::number("pid", 6, 2).incidental(),
    Column::rest("event"),
];

impl View for TimelineView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    fn has_column(&self, column: usize) -> bool {
        column != 1 || !self.index.cpus.is_empty()
    }

    fn len(&self) -> usize {
        self.index.events.len()
    }

    fn row(&self, index: usize, _look: &Look) -> Row {
        let Some(event) = self.event(index) else { return Row::default() };
        let cells = [time(&self.index, event), dash(cpu(event)), dash(pid(event)), summary(&self.payloads, event)];
        Row::of(tone(event.mood), cells).tone(0, Tone::Dim).tone(1, Tone::Dim).tone(2, Tone::Dim)
    }

    fn detail(&self, index: usize, _look: &Look) -> Vec<Line> {
        let Some(event) = self.event(index) else { return Vec::new() };
        let mut lines = vec![Line::of(tone(event.mood), summary(&self.payloads, event))];
        lines.push(Line::field("kind", kind(event.kind)));
        lines.push(Line::field("time", time(&self.index, event)));
        if let Some(before) = index.checked_sub(1).and_then(|before| self.event(before)) {
            lines.push(Line::field("after", span(self.index.clock, event.order.saturating_sub(before.order))));
        }
        if let Some(pair) = self.event(event.pair as usize) {
            let apart = span(self.index.clock, pair.order.abs_diff(event.order));
            let way = if pair.order >= event.order { "until" } else { "since" };
            lines.push(Line::field(way, format!("{apart}: ")).and(Tone::Link, summary(&self.payloads, pair)));
        }
        for (label, partners) in [("cause", self.partners.causes(index)), ("effect", self.partners.effects(index))] {
            lines.extend(partners.into_iter().map(|one| Line::field(label, one.words)));
        }
        lines.extend(members(&self.payloads, event));
        lines
    }

    fn links(&self, index: usize, look: &Look) -> Vec<Link> {
        let Some(event) = self.event(index) else { return Vec::new() };
        let partners = [self.causes(index, look), self.effects(index, look)].concat();
        partners.into_iter().chain(links(&self.payloads, &self.index, event)).collect()
    }

    fn causes(&self, index: usize, _look: &Look) -> Vec<Link> {
        self.linked(self.partners.causes(index))
    }

    fn effects(&self, index: usize, _look: &Look) -> Vec<Link> {
        self.linked(self.partners.effects(index))
    }

    fn target(&self, index: usize, _look: &Look) -> Option<Target> {
        Some(Target::Event(index))
    }

    fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Event(index) => Some(*index).filter(|index| *index < self.len()),
            Target::Record(at) => self.index.at(&self.payloads, at.section, at.record),
            Target::Line(line) if self.index.clock == Clock::Lines => {
                let at = self.index.events.partition_point(|event| event.order < *line);
                Some(at.min(self.len().checked_sub(1)?))
            }
            _ => None,
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        &["cpu", "pid", "kind", "time", "call", "failed"]
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        field(&self.index, self.event(index)?, name)
    }

    fn text(&self, index: usize) -> String {
        self.event(index).map(|event| summary(&self.payloads, event)).unwrap_or_default()
    }

    fn command(&self, dump: &str) -> String {
        format!("kwab cat {dump} events")
    }

    fn when_empty(&self) -> String {
        "no events in this dump: boot with debug=syscall,fault,signal,process to record them".to_string()
    }

    /// A lane per processor, a ruler and a line of words.
    fn picture_height(&self, _width: u16) -> usize {
        self.lanes.len() + 2
    }

    fn picture(&self, selected: usize, look: &Look, width: u16, height: u16) -> Vec<Line> {
        self.draw_lanes(selected, look, usize::from(width), usize::from(height))
    }

    fn extent(&self, index: usize) -> Option<((u64, u64), u64)> {
        let (first, last) = (self.index.events.first()?, self.index.events.last()?);
        Some(((first.order, last.order), self.event(index)?.order))
    }
}

/// What a filter may ask of an event without reading it.
pub(super) fn field(index: &EventIndex, event: &Event, name: &str) -> Option<FieldValue<'static>> {
    match name {
        "cpu" => number(cpu(event)?),
        "pid" => number(pid(event)?),
        "kind" => text(kind(event.kind)),
        "time" => {
            let span = event.order.saturating_sub(index.events.first()?.order);
            number(index.clock.nanoseconds(span).unwrap_or(event.order))
        }
        "call" => number(Some(event.nr).filter(|nr| *nr != Event::NO_CALL)?),
        "failed" => text(if event.mood == Mood::Quiet { "no" } else { "yes" }),
        _ => None,
    }
}

/// The members of a record but those that the summary says in words or a column shows.
pub(super) fn members(payloads: &Payloads, event: &Event) -> Vec<Line> {
    let object = payloads.record(event.section as usize, event.offset as usize, kwab::model::json::object);
    let is_flight = event.kind == FlightEvent::KIND;
    let is_said = |name: &str| match name {
        "type" | "line" | "seq" | "offset" | "index" | "name" | "nr" | "args" | "texts" | "cpu" | "pid" | "kind" => {
            true
        }
        "a" | "b" | "c" | "d" | "detail" => is_flight,
        _ => false,
    };
    let lines = object.into_iter().flatten().filter(|(name, _)| !is_said(name)).map(|(name, value)| {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        Line::of(Tone::Dim, format!("  {name:<14} ")).and(Tone::Plain, shown)
    });
    lines.collect()
}

/// Where an event leads: its other half, its process, the addresses it names.
pub(super) fn links(payloads: &Payloads, index: &EventIndex, event: &Event) -> Vec<Link> {
    let mut links = Vec::new();
    if let Some(pair) = index.events.get(event.pair as usize) {
        links.push(Link::new(summary(payloads, pair), Target::Event(event.pair as usize)));
    }
    let object = payloads.record(event.section as usize, event.offset as usize, kwab::model::json::object);
    for name in ["vaddr", "fault_addr", "addr"] {
        let addr = object.as_ref().and_then(|object| kwab::report::filter::number(object.get(name)?.as_str()?));
        if let Some(addr) = addr.filter(|addr| *addr > 0) {
            links.push(Link::new(format!("page of {addr:#x}"), Target::Page(addr)));
            links.push(Link::new(format!("mapping of {addr:#x}"), Target::Mapping(addr)));
        }
    }
    links.extend(pid(event).map(|pid| Link::new(format!("task {pid}"), Target::Task(pid))));
    links
}

/// The events of one processor.
struct Lane {
    /// Which; absent for events that name none.
    cpu: Option<u8>,
    /// Its events, as numbers in the index.
    events: Vec<u32>,
    /// Those that went wrong.
    wrong: Vec<u32>,
}

fn lanes_of(index: &EventIndex) -> Vec<Lane> {
    let lane = |cpu| Lane { cpu, events: Vec::new(), wrong: Vec::new() };
    let mut lanes: Vec<Lane> = index.cpus.iter().map(|cpu| lane(Some(*cpu))).collect();
    // What names no processor has a lane of its own, below the others.
    let mut of = [lanes.len(); 256];
    for (at, cpu) in index.cpus.iter().enumerate() {
        of[usize::from(*cpu)] = at;
    }
    lanes.push(lane(None));
    for (number, event) in (0..).zip(&index.events) {
        if let Some(lane) = lanes.get_mut(of[usize::from(event.cpu)]) {
            lane.events.push(number);
            if event.mood > Mood::Quiet {
                lane.wrong.push(number);
            }
        }
    }
    lanes.retain(|lane| !lane.events.is_empty());
    lanes
}

impl TimelineView {
    /// A lane per processor: how many events fall into each column of the window, the worst deciding the tone.
    fn draw_lanes(&self, selected: usize, look: &Look, width: usize, height: usize) -> Vec<Line> {
        let (Some(first), Some(last)) = (self.index.events.first(), self.index.events.last()) else {
            return Vec::new();
        };
        let (from, to) = look.window.unwrap_or((first.order, last.order));
        let label = 7;
        let columns = width.saturating_sub(label);
        let room = height.saturating_sub(2);
        if columns < 8 || room == 0 {
            return Vec::new();
        }
        let extent = u128::from(to.saturating_sub(from)) + 1;
        // Where a column begins; the last one ends behind the window.
        let begin = |column: usize| {
            let offset = (extent * column as u128).div_ceil(columns as u128);
            from.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
        };
        let before =
            |list: &[u32], order: u64| list.partition_point(|number| self.index.events[*number as usize].order < order);
        let hidden = self.lanes.len().saturating_sub(room);
        let mut rows: Vec<(&Lane, Vec<(usize, Mood)>)> = Vec::new();
        for lane in self.lanes.iter().take(room) {
            let edges: Vec<(usize, usize)> = (0..=columns)
                .map(begin)
                .map(|order| (before(&lane.events, order), before(&lane.wrong, order)))
                .collect();
            let cells = edges.windows(2).map(|pair| {
                let worst = lane.wrong[pair[0].1..pair[1].1.max(pair[0].1)].iter().take(64);
                let worst = worst.map(|number| self.index.events[*number as usize].mood).max();
                (pair[1].0.saturating_sub(pair[0].0), worst.unwrap_or(Mood::Quiet))
            });
            rows.push((lane, cells.collect()));
        }
        let cells = rows.iter().flat_map(|(_, cells)| cells);
        let (shown, most) = cells.fold((0, 1), |(sum, most), cell| (sum + cell.0, most.max(cell.0)));
        let mut lines: Vec<Line> = rows.iter().map(|(lane, cells)| lane_line(lane, cells, most, label)).collect();
        lines.push(Line::of(Tone::Link, " ".repeat(label) + &self.ruler(selected, (from, to), columns)));
        let more = if hidden > 0 { format!(", {hidden} more lanes") } else { String::new() };
        let (part, all) =
            (span(self.index.clock, to.saturating_sub(from)), span(self.index.clock, last.order - first.order));
        let text = format!("{:label$}{part} of {all}, {}{more}", "", count(shown, "event", "events"));
        lines.push(Line::of(Tone::Dim, text));
        lines
    }
}

impl TimelineView {
    /// Marks the columns of the selected event, of its causes and of its effects.
    fn ruler(&self, selected: usize, (from, to): (u64, u64), columns: usize) -> String {
        let extent = u128::from(to.saturating_sub(from)) + 1;
        let column = |event: usize| {
            let order = self.event(event).map(|event| event.order).filter(|order| (from..=to).contains(order))?;
            let column = u128::from(order - from) * columns as u128 / extent;
            Some(usize::try_from(column).unwrap_or(0).min(columns - 1))
        };
        let mut marks = vec![' '; columns];
        let mut mark = |event: usize, sign: char| column(event).into_iter().for_each(|at| marks[at] = sign);
        self.partners.causes(selected).iter().for_each(|one| mark(one.event, '‹'));
        self.partners.effects(selected).iter().for_each(|one| mark(one.event, '›'));
        mark(selected, '▲');
        marks.iter().collect::<String>().trim_end().to_owned()
    }
}

fn lane_line(lane: &Lane, cells: &[(usize, Mood)], most: usize, label: usize) -> Line {
    let name = lane.cpu.map_or_else(|| "no cpu".to_string(), |cpu| format!("cpu {cpu}"));
    let mut line = Line::of(Tone::Dim, format!("{name:<label$}"));
    for (count, mood) in cells {
        line.pieces.push((tone(*mood), bar(*count, most).to_string()));
    }
    line
}

/// How much of a cell a count fills, in eighths, by logarithm: one event among thousands is still seen.
fn bar(count: usize, most: usize) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if count == 0 {
        return '·';
    }
    let share = (count as f64).ln_1p() / (most as f64).ln_1p();
    BARS[((share * 8.0).round() as usize).clamp(1, 8)]
}
