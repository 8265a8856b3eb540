//! Writes a Perfetto trace (protobuf, TrackEvent): what processors ran, calls, spans, events, counters, and as flows
//! what caused what.
//!
//! Every processor has a track with the threads it ran as slices and the events of its recorder as instants; spans of
//! the function trace have tracks below it. System calls and events of a log are on the
//! tracks of their threads. A flow is an arrow from a cause to its effect, and the effect says in words what it was
//! caused by and how sure that is. Times are nanoseconds since boot, on one clock ([`crate::causes::clock`]).
//!
//! The packets are written one by one, so that the trace may be longer than memory; the trace processor sorts them.

mod packets;
mod schema;
mod tracks;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use kwab_format::record::{Cause, Counter, FlightEvent, Htrace};
use kwab_format::{AnyRecord, RawRecord, RecordKind, RecordType as _, Records, SectionKind};

use self::packets::{Event, Note, Packets};
use self::schema::EventType;
use self::tracks::{Place, TrackOf, Tracks};
use super::calls::CallSlices;
use super::lanes::Lanes;
use super::spans::spans_by;
use crate::analysis::text;
use crate::causes::{Causes, FlowKind, Moment, What};
use crate::model::{Dump, flight, json, line};

/// How much a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfettoTrace {
    /// Turns of threads on processors.
    pub runs: u64,
    /// System calls, as slices.
    pub calls: u64,
    /// Spans of the function trace.
    pub spans: u64,
    /// Waits for spin locks, as slices.
    pub waits: u64,
    /// Single events, as instants.
    pub instants: u64,
    /// Arrows from causes to effects.
    pub flows: u64,
    /// Values of counters.
    pub values: u64,
    /// Tracks of all sorts.
    pub tracks: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Ends of spans whose begin was overwritten, and which are therefore not in the trace.
    pub without_begin: u64,
    /// Events for which, or for whose tracks, the dump's memory limit left no room.
    pub left_out: u64,
}

/// Writes the trace of a dump, with the flows of `causes`, which were concluded from it.
///
/// # Errors
/// Those of the output.
pub fn perfetto_trace(dump: &Dump, causes: &Causes, out: &mut dyn Write) -> io::Result<PerfettoTrace> {
    let trace =
        PerfettoTrace { flows: causes.flows.len() as u64, left_out: causes.left_out, ..PerfettoTrace::default() };
    let tracks = Tracks::new(dump, about(causes));
    let mut writer = Writer { dump, causes, tracks, packets: Packets::new(out), trace };
    writer.moments()?;
    writer.spans()?;
    writer.waits()?;
    writer.calls()?;
    writer.events()?;
    writer.busy()?;
    writer.waiting()?;
    writer.counters()?;
    let mut trace = writer.trace;
    (trace.tracks, trace.bytes) = (writer.tracks.count(), writer.packets.bytes);
    Ok(trace)
}

/// What the recording is and what it cannot know, for the track above all processors.
fn about(causes: &Causes) -> String {
    let mut about = format!("Clock: {}.", causes.clock.words());
    for ((kind, evidence), count) in causes.counts() {
        let _ = write!(about, " {}: {count}, {}.", kind.name(), evidence.words());
    }
    for ((kind, why), count) in &causes.unpaired {
        let _ = write!(about, " {}: {count} {}.", kind.name(), why.words());
    }
    about
}

struct Writer<'d, 'o> {
    dump: &'d Dump,
    causes: &'d Causes,
    tracks: Tracks,
    packets: Packets<'o>,
    trace: PerfettoTrace,
}

impl Writer<'_, '_> {
    /// What processors ran, and the events of their recorders.
    fn moments(&mut self) -> io::Result<()> {
        let mut open: HashMap<u32, u64> = HashMap::new();
        for (number, moment) in (0..).zip(&self.causes.moments) {
            let row = match moment.what {
                What::First => TrackOf::Thread(moment.pid, moment.tid),
                _ if self.is_of_recorder(moment) => TrackOf::Cpu(moment.cpu),
                _ => TrackOf::Thread(moment.pid, moment.tid),
            };
            let Place { track, is_shared } = self.place(row, 0)?;
            if let What::Run { .. } = moment.what {
                if open.remove(&moment.cpu).is_some() {
                    self.packets.event(Event::end(track, moment.ns))?;
                }
                if moment.tid != 0 && is_shared {
                    let name = self.tracks.thread(moment.pid, moment.tid);
                    self.linked(number, Event::new(EventType::Instant, track, moment.ns, &name, "run"))?;
                    self.trace.instants += 1;
                } else if moment.tid != 0 {
                    let name = self.tracks.thread(moment.pid, moment.tid);
                    let event = Event::new(EventType::SliceBegin, track, moment.ns, &name, "run");
                    self.linked(number, event)?;
                    open.insert(moment.cpu, track);
                    self.trace.runs += 1;
                }
                continue;
            }
            let (name, detail) = match self.causes.record(self.dump, moment) {
                Some(AnyRecord::FlightEvent(event)) => {
                    let known = event.kind.and_then(kwab_format::record::FlightKind::name);
                    (known.map_or_else(|| text(event.name), str::to_owned), flight::details(&event))
                }
                Some(AnyRecord::ProcessFork(fork)) => {
                    ("fork".to_owned(), fork.child_pid.map(|child| format!("child {child}")))
                }
                _ => ("first event".to_owned(), None),
            };
            let event = Event::new(EventType::Instant, track, moment.ns, &name, "flight").note("detail", detail);
            let whom = (moment.tid != Moment::NONE).then(|| self.tracks.thread(moment.pid, moment.tid));
            self.linked(number, event.note("thread", whom.filter(|_| moment.tid != 0)))?;
            self.trace.instants += 1;
        }
        Ok(())
    }

    /// The track of a row's lane; counts an event that gets none of its own.
    fn place(&mut self, row: TrackOf, lane: u32) -> io::Result<Place> {
        let place = self.tracks.of(row, lane, &mut self.packets)?;
        self.trace.left_out += u64::from(place.is_shared);
        Ok(place)
    }

    fn is_of_recorder(&self, moment: &Moment) -> bool {
        self.dump.loaded.get(moment.section as usize).is_some_and(|section| {
            let record = section.payload.get(moment.offset as usize..).and_then(|rest| Records::new(rest).next());
            record.is_some_and(|record| record.kind == FlightEvent::KIND)
        })
    }

    /// Writes the event of a moment with its flows.
    fn linked(&mut self, number: u32, mut event: Event<'_>) -> io::Result<()> {
        let mut caused = Vec::new();
        for (flow, found) in self.causes.causes_of(number) {
            event.flows.1.push(u64::from(flow) + 1);
            caused.push(self.causes.cause_words(found));
        }
        event.flows.0.extend(self.causes.effects_of(number).map(|(flow, _)| u64::from(flow) + 1));
        self.packets.event(event.note("cause", caused.join("; ")))
    }

    /// Writes a slice on its lane, as an instant where there is no lane for it.
    fn slice<'n>(
        &mut self,
        (row, lane): (TrackOf, Option<u32>),
        (begin, end): (u64, Option<u64>),
        event: impl FnOnce(EventType, u64) -> Event<'n>,
    ) -> io::Result<()> {
        let Place { track, is_shared } = self.place(row, lane.unwrap_or(0))?;
        if lane.is_none() || is_shared {
            let took = end.map(|end| format!("{} ns", end.saturating_sub(begin)));
            return self.packets.event(event(EventType::Instant, track).note("duration", took));
        }
        self.packets.event(event(EventType::SliceBegin, track))?;
        end.map_or(Ok(()), |end| self.packets.event(Event::end(track, end)))
    }

    /// Spans of the function trace.
    fn spans(&mut self) -> io::Result<()> {
        let (spans, without_begin) = spans_by(self.dump, |stamp| self.causes.clock.at(stamp));
        self.trace.without_begin = without_begin;
        let mut lanes = Lanes::default();
        for span in &spans {
            let lane = lanes.lane_of(span.cpu, span.begin, span.end);
            self.slice((TrackOf::Spans(span.cpu), lane), (span.begin, span.end), |kind, track| {
                let data = span.data.filter(|data| *data != 0).map(|data| format!("{data:#x}"));
                Event::new(kind, track, span.begin, &span.path.name, "span").note("data", data)
            })?;
            self.trace.spans += 1;
        }
        Ok(())
    }

    /// Waits for spin locks, each as long as it took, on tracks below those of the processors.
    fn waits(&mut self) -> io::Result<()> {
        let causes = self.causes;
        let mut waits: Vec<_> = causes.flows.iter().filter(|flow| flow.kind == FlowKind::WaitToLock).collect();
        waits.sort_unstable_by_key(|flow| flow.from);
        let mut lanes = Lanes::default();
        for flow in waits {
            let [from, to] = [flow.from, flow.to].map(|end| causes.moments[end as usize]);
            let What::Contended { lock, holder } = from.what else { continue };
            let lane = lanes.lane_of(from.cpu, from.ns, Some(to.ns));
            let name = format!("lock {lock:#x}");
            self.slice((TrackOf::Waits(from.cpu), lane), (from.ns, Some(to.ns)), |kind, track| {
                let event = Event::new(kind, track, from.ns, &name, "lock wait");
                event.note("holder", Some(format!("CPU {holder}")))
            })?;
            self.trace.waits += 1;
        }
        Ok(())
    }

    /// System calls on the tracks of their threads.
    fn calls(&mut self) -> io::Result<()> {
        let slices = CallSlices::of(self.dump, &self.causes.clock);
        self.trace.left_out += slices.left_out;
        let (mut lanes, mut thread) = (Lanes::default(), None);
        for call in &slices.calls {
            // Calls are sorted by thread: the lanes of one at a time are held.
            if thread.replace((call.pid, call.tid)) != Some((call.pid, call.tid)) {
                lanes = Lanes::default();
            }
            let Some((name, words)) = call.words(self.dump) else { continue };
            let lane = lanes.lane_of((call.pid, call.tid), call.begin, call.end);
            self.slice((TrackOf::Thread(call.pid, call.tid), lane), (call.begin, call.end), |kind, track| {
                let mut event = Event::new(kind, track, call.begin, &name, "syscall").note("call", words);
                event.notes.extend(call.result.map(|result| ("result", Note::Number(result))));
                event
            })?;
            self.trace.calls += 1;
        }
        Ok(())
    }

    /// Events of a log or a recording, and the death.
    fn events(&mut self) -> io::Result<()> {
        for section in self.dump.loaded.iter() {
            if !matches!(section.kind, SectionKind::EVENTS | SectionKind::CAUSE) {
                continue;
            }
            for raw in Records::new(&section.payload).filter(|raw| is_single(raw.kind)) {
                let Ok(record) = raw.decode() else { continue };
                let stamp = record.stamp();
                let Some(ns) = self.causes.clock.at(&stamp) else { continue };
                let death = raw.kind == Cause::KIND;
                let row = match (death, stamp.cpu, line::pid(&record)) {
                    (true, Some(cpu), _) | (_, Some(cpu), None) => TrackOf::Cpu(cpu),
                    (_, _, Some(pid)) => TrackOf::Thread(pid, pid),
                    (_, None, None) => TrackOf::Processors,
                };
                let Place { track, .. } = self.place(row, 0)?;
                let name = if death { "death".to_owned() } else { json::type_name(raw.kind) };
                let category = if death { "death" } else { "event" };
                let event = Event::new(EventType::Instant, track, ns, &name, category);
                self.packets.event(event.note("detail", summary(&record, raw)))?;
                self.trace.instants += 1;
            }
        }
        Ok(())
    }

    /// How many processors ran a thread, as far as is known.
    fn busy(&mut self) -> io::Result<()> {
        let mut busy: HashMap<u32, bool> = HashMap::new();
        let mut values = Vec::new();
        let mut count = 0;
        for moment in &self.causes.moments {
            if let What::Run { .. } = moment.what {
                let is = moment.tid != 0;
                let was = busy.insert(moment.cpu, is).unwrap_or(false);
                count += i64::from(is) - i64::from(was);
                values.push((moment.ns, count));
            }
        }
        self.values("processors that run a thread", &values)
    }

    /// How many threads had been woken and did not run yet, of those whose run is known.
    fn waiting(&mut self) -> io::Result<()> {
        let ns = |number: u32| self.causes.moments[number as usize].ns;
        let runs = self.causes.flows.iter().filter(|flow| flow.kind == FlowKind::WakeToRun);
        let mut steps: Vec<(u64, i64)> = runs.flat_map(|flow| [(ns(flow.from), 1), (ns(flow.to), -1)]).collect();
        steps.sort_unstable_by_key(|(at, step)| (*at, -step));
        let mut count = 0;
        for step in &mut steps {
            count += step.1;
            step.1 = count;
        }
        self.values("woken threads that wait for a processor", &steps)
    }

    fn values(&mut self, name: &str, values: &[(u64, i64)]) -> io::Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let track = self.tracks.counter(name, None, &mut self.packets)?;
        let mut rest = values.iter().peekable();
        while let Some((ns, value)) = rest.next() {
            // Of several values of one moment the last.
            if rest.peek().is_none_or(|next| next.0 != *ns) {
                self.value(track, *ns, *value)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, track: u64, ns: u64, value: i64) -> io::Result<()> {
        self.trace.values += 1;
        self.packets.event(Event { value: Some(value), ..Event::new(EventType::Counter, track, ns, "", "") })
    }

    /// What the kernel counted until the death.
    fn counters(&mut self) -> io::Result<()> {
        let death = self.dump.records::<Cause<'_>>().find_map(|cause| self.causes.clock.at(&cause.stamp));
        let Some(death) = death else { return Ok(()) };
        for counter in self.dump.records::<Counter<'_>>() {
            let Some(value) = counter.value else { continue };
            let of = counter.pid.map_or(String::new(), |pid| format!(" of process {pid}"));
            let name = format!("{}: {}{of}", text(counter.group), text(counter.name));
            let unit = counter.unit.filter(|unit| !unit.is_empty()).map(|unit| packets::shown(&text(Some(unit))));
            let track = self.tracks.counter(&name, unit, &mut self.packets)?;
            self.value(track, death, value)?;
        }
        Ok(())
    }
}

/// Kinds of events that are instants of their own: not calls, spans, recorders, forks, nor summaries.
fn is_single(kind: RecordKind) -> bool {
    use kwab_format::record::{ProcessFork, SyscallEntry, SyscallExit, SyscallRecord};
    let shown_otherwise = [
        Htrace::KIND,
        FlightEvent::KIND,
        ProcessFork::KIND,
        SyscallEntry::KIND,
        SyscallExit::KIND,
        SyscallRecord::KIND,
    ];
    kind == Cause::KIND
        || ((10..=37).contains(&kind.0) && !matches!(kind.0, 27..=29 | 31) && !shown_otherwise.contains(&kind))
}

fn summary(record: &AnyRecord<'_>, raw: RawRecord<'_>) -> String {
    match record {
        AnyRecord::Cause(cause) => text(cause.message),
        other => line::summary(other, raw),
    }
}
