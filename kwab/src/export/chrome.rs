//! Writes a Chrome trace (the JSON Object Format of the Trace Event Format): spans, system calls, flight events, and as
//! flows what caused what.
//!
//! Processors are threads of process 0, because that is where spans run; system calls are on the threads of their own
//! processes. Times are microseconds, on one clock ([`crate::causes::clock`]). Where the dump does not say how fast its
//! counter ticks, a tick counts as a nanosecond, and the trace says so.

use std::collections::BTreeSet;
use std::io::{self, Write};

use kwab_format::AnyRecord;
use kwab_format::record::SyscallRecord;
use serde_json::{Map, Value, json};

use super::lanes::Lanes;
use super::spans::{Span, spans_by};
use crate::analysis::text;
use crate::causes::{Causes, Clock, FlowKind, Scale, What};
use crate::model::{Dump, flight};

/// How much a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// Spans written as pairs of begin and end.
    pub spans: u64,
    /// System calls written as complete events.
    pub calls: u64,
    /// Single events written as instants.
    pub instants: u64,
    /// Arrows from causes to effects.
    pub flows: u64,
    /// Ends of spans whose begin was overwritten, and which are therefore not in the trace.
    pub without_begin: u64,
    /// Events that the dump's memory limit left no room for.
    pub left_out: u64,
}

/// Writes the trace. Spans of one processor that overlap without being nested lie on further lanes of it; what finds no
/// room on sixty-four lanes is written as asynchronous events, which may overlap as they like.
///
/// # Errors
/// Those of the output.
pub fn chrome_trace(dump: &Dump, out: &mut dyn Write) -> io::Result<Traced> {
    let causes = Causes::of(dump);
    let clock = causes.clock;
    let (spans, without_begin) = spans_by(dump, |stamp| clock.at(stamp));
    let mut traced = Traced { without_begin, left_out: causes.left_out, ..Traced::default() };
    let mut list = List { out, first: true };
    list.out.write_all(b"{\"traceEvents\":[")?;
    list.put(&json!({"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "CPUs"}}))?;
    let (mut lanes, mut used) = (Lanes::default(), BTreeSet::new());
    for span in &spans {
        let lane = lanes.lane_of(span.cpu, span.begin, span.end);
        used.extend(lane.map(|lane| (span.cpu, lane)));
        list.span(span, lane, traced.spans)?;
        traced.spans += 1;
    }
    for found in dump.located_records() {
        if let AnyRecord::SyscallRecord(call) = found.record {
            traced.calls += u64::from(list.call(&call, &clock)?);
        }
    }
    for (number, moment) in (0..).zip(&causes.moments) {
        let Some(AnyRecord::FlightEvent(event)) = causes.record(dump, moment) else { continue };
        let cpu = event.stamp.cpu.unwrap_or(0);
        used.insert((cpu, 0));
        let name = event.kind.and_then(kwab_format::record::FlightKind::name);
        let name = name.map_or_else(|| text(event.name), str::to_owned);
        let caused: Vec<String> = causes.causes_of(number).map(|(_, flow)| causes.cause_words(flow)).collect();
        let mut args = json!({"pid": event.pid, "detail": flight::details(&event)});
        if !caused.is_empty() {
            args["cause"] = json!(caused.join("; "));
        }
        let ts = us(moment.ns);
        list.put(&json!({
            "ph": "i", "s": "t", "cat": "flight", "name": name, "pid": 0, "tid": cpu, "ts": ts, "args": args,
        }))?;
        traced.instants += 1;
        traced.flows += list.flows((dump, &causes), number, (cpu, ts))?;
    }
    list.waits(&causes)?;
    // Metadata may stand anywhere in the list.
    for (cpu, lane) in used {
        let name = if lane == 0 { format!("CPU {cpu}") } else { format!("CPU {cpu}, interleaved {lane}") };
        let args = json!({"name": name});
        list.put(&json!({"ph": "M", "name": "thread_name", "pid": 0, "tid": lane_tid(cpu, lane), "args": args}))?;
    }
    let scale = match clock.scale() {
        Scale::Time => clock.words(),
        Scale::Ticks => "one tick shown as one nanosecond",
    };
    let other = json!({"clock": scale, "ends without begin": without_begin, "without a partner": unpaired(&causes)});
    write!(list.out, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{other}}}\n")?;
    Ok(traced)
}

/// Nanoseconds as microseconds, the unit of the format.
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Events without a partner, by kind and reason.
fn unpaired(causes: &Causes) -> Value {
    let rows = causes.unpaired.iter();
    Value::Object(Map::from_iter(
        rows.map(|((kind, why), count)| (format!("{}: {}", kind.name(), why.words()), json!(count))),
    ))
}

/// The thread number of a lane; the first is that of the processor.
const fn lane_tid(cpu: u32, lane: u32) -> u32 {
    cpu.wrapping_add(lane.wrapping_mul(100_000))
}

struct List<'o> {
    out: &'o mut dyn Write,
    first: bool,
}

impl List<'_> {
    /// Writes a call of a ring, when it has a time.
    fn call(&mut self, call: &SyscallRecord<'_>, clock: &Clock) -> io::Result<bool> {
        let Some(begin) = clock.at(&call.stamp) else { return Ok(false) };
        let took = call.duration_ns.or_else(|| call.duration_ticks.map(|ticks| clock.span(ticks))).unwrap_or(0);
        let name = call.name.map_or_else(|| format!("syscall {}", call.nr.unwrap_or(-1)), |name| text(Some(name)));
        let (pid, tid) = (call.pid.unwrap_or(0), call.tid.or(call.pid).unwrap_or(0));
        self.put(&json!({
            "ph": "X", "cat": "syscall", "name": name, "pid": pid, "tid": tid, "ts": us(begin), "dur": us(took),
            "args": {"result": call.result},
        }))?;
        Ok(true)
    }

    /// Writes the ends of flows at an event of a processor; gives how many begin there.
    fn flows(&mut self, (dump, causes): (&Dump, &Causes), moment: u32, (cpu, ts): (u32, f64)) -> io::Result<u64> {
        let is_drawn = |other: u32| {
            // What a log tells of forks is not among the events of processors; an arrow needs both of its ends.
            let record = causes.record(dump, &causes.moments[other as usize]);
            matches!(record, Some(AnyRecord::FlightEvent(_)))
        };
        let end = |phase: &str, number: u32, name: &str| {
            let id = u64::from(number) + 1;
            json!({"ph": phase, "id": id, "cat": "flow", "name": name, "pid": 0, "tid": cpu, "ts": ts})
        };
        for (number, flow) in causes.causes_of(moment).filter(|(_, flow)| is_drawn(flow.from)) {
            let mut arrow = end("f", number, flow.kind.name());
            arrow["bp"] = json!("e");
            self.put(&arrow)?;
        }
        let mut begun = 0;
        for (number, flow) in causes.effects_of(moment).filter(|(_, flow)| is_drawn(flow.to)) {
            self.put(&end("s", number, flow.kind.name()))?;
            begun += 1;
        }
        Ok(begun)
    }

    /// Writes each wait for a spin lock as a pair of asynchronous events, which may overlap with spans.
    fn waits(&mut self, causes: &Causes) -> io::Result<()> {
        for (number, flow) in (0..).zip(&causes.flows).filter(|(_, flow)| flow.kind == FlowKind::WaitToLock) {
            let [from, to] = [flow.from, flow.to].map(|end| causes.moments[end as usize]);
            let What::Contended { lock, holder } = from.what else { continue };
            let (id, name) = (format!("wait {number:#x}"), format!("lock {lock:#x}"));
            for (phase, at) in [("b", from.ns), ("e", to.ns)] {
                self.put(&json!({
                    "ph": phase, "id": id, "cat": "lock wait", "name": name, "pid": 0, "tid": from.cpu, "ts": us(at),
                    "args": {"holder": format!("CPU {holder}")},
                }))?;
            }
        }
        Ok(())
    }

    /// Writes a span: on its lane, or as a pair of asynchronous events of this number.
    fn span(&mut self, span: &Span, lane: Option<u32>, number: u64) -> io::Result<()> {
        let name = &*span.path.name;
        let tid = lane.map_or(span.cpu, |lane| lane_tid(span.cpu, lane));
        let mut event = json!({"ph": "X", "cat": "span", "name": name, "pid": 0, "tid": tid, "ts": us(span.begin)});
        match (lane, span.end) {
            (Some(_), Some(end)) => event["dur"] = json!(us(end - span.begin)),
            (Some(_), None) => event["ph"] = json!("B"),
            (None, _) => (event["ph"], event["id"]) = (json!("b"), json!(format!("{number:#x}"))),
        }
        if let Some(data) = span.data.filter(|data| *data != 0) {
            event["args"] = json!({"data": format!("{data:#x}")});
        }
        self.put(&event)?;
        if let (None, Some(end)) = (lane, span.end) {
            (event["ph"], event["ts"]) = (json!("e"), json!(us(end)));
            self.put(&event)?;
        }
        Ok(())
    }

    fn put(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        serde_json::to_writer(&mut *self.out, event).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use kwab_format::record::{FlightEvent, FlightKind, ProcessExec, ProcessFork, Stamp};
    use kwab_format::{BootId, DumpId, FileHeader, SectionKind};

    use super::super::lanes::MOST_LANES;
    use super::*;
    use crate::model::emit::DumpWriter;

    #[test]
    fn spans_that_never_nest_fill_the_lanes_and_then_go_on_beside_them() {
        let count = 3 * MOST_LANES as u64;
        let (mut lanes, mut used, mut out) = (Lanes::default(), BTreeSet::new(), Vec::new());
        let mut list = List { out: &mut out, first: true };
        for number in 0..count {
            // Each begins inside the one before and ends after it.
            let span = Span {
                cpu: 1,
                path: super::super::spans::Path::inside(None, "fork".into()),
                begin: 10 + number,
                end: Some(10_000 + number),
                inside: 0,
                data: None,
            };
            let lane = lanes.lane_of(span.cpu, span.begin, span.end);
            used.extend(lane);
            list.span(&span, lane, number).unwrap();
        }
        assert_eq!(used.len(), MOST_LANES);
        let text = format!("[{}]", String::from_utf8(out).unwrap());
        let events: Vec<Value> = serde_json::from_str(&text).unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count() as u64;
        let most = MOST_LANES as u64;
        assert_eq!((of("X"), of("b"), of("e")), (most, count - most, count - most));
        let begin = events.iter().find(|event| event["ph"] == "b").unwrap();
        let ends = events.iter().filter(|event| event["ph"] == "e" && event["id"] == begin["id"]);
        assert_eq!(ends.map(|event| event["ts"].as_f64()).collect::<Vec<_>>(), [Some(us(10_000 + most))]);
    }

    #[test]
    fn a_wait_for_a_lock_is_as_long_as_it_took_in_both_forms() {
        let event = |ns, kind, b| FlightEvent {
            kind: Some(kind),
            pid: Some(4),
            tid: Some(4),
            a: Some(0xf0),
            b,
            stamp: Stamp { ns: Some(ns), cpu: Some(1), ..Stamp::default() },
            ..FlightEvent::default()
        };
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        writer.put(SectionKind::FLIGHT, &event(2_000, FlightKind::LOCK_CONTENDED, Some(0)));
        writer.put(SectionKind::FLIGHT, &event(7_000, FlightKind::LOCK_TAKEN, None));
        let dump = Dump::from_bytes(writer.finish().unwrap()).unwrap();
        let (mut chrome, mut perfetto) = (Vec::new(), Vec::new());
        chrome_trace(&dump, &mut chrome).unwrap();
        let trace: Value = serde_json::from_slice(&chrome).unwrap();
        let waits = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "lock wait");
        let ends: Vec<_> = waits.map(|event| (event["ph"].clone(), event["ts"].clone())).collect();
        assert_eq!(ends, [(json!("b"), json!(2.0)), (json!("e"), json!(7.0))]);
        let traced = super::super::perfetto_trace(&dump, &Causes::of(&dump), &mut perfetto).unwrap();
        assert_eq!((traced.waits, traced.flows, traced.instants), (1, 1, 2));
        assert!(perfetto.windows(9).any(|bytes| bytes == b"lock 0xf0"), "the wait is named by its lock");
    }

    #[test]
    fn an_arrow_between_a_record_of_a_log_and_an_event_of_a_recorder_has_no_end_in_the_trace() {
        let stamp = |ns| Stamp { ns: Some(ns), cpu: Some(0), ..Stamp::default() };
        let event = |ns, kind, tid, numbers: [u64; 2]| FlightEvent {
            kind: Some(kind),
            pid: Some(tid),
            tid: Some(tid),
            a: Some(numbers[0]),
            b: Some(numbers[1]),
            stamp: stamp(ns),
            ..FlightEvent::default()
        };
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        // A log tells of a fork whose child a recorder sees; a recorder of one whose child a log sees.
        for child in [9, 11] {
            let fork = ProcessFork { parent_pid: Some(1), child_pid: Some(child), stamp: stamp(5) };
            writer.put(SectionKind::EVENTS, &fork);
        }
        let exec = ProcessExec { pid: Some(11), stamp: stamp(8), ..ProcessExec::default() };
        writer.put(SectionKind::EVENTS, &exec);
        writer.put(SectionKind::FLIGHT, &event(6, FlightKind::CONTEXT_SWITCH, 9, [1, 9]));
        writer.put(SectionKind::FLIGHT, &event(7, FlightKind::FORK, 1, [0, 11]));
        writer.put(SectionKind::FLIGHT, &event(9, FlightKind::WAKE, 12, [0, 0]));
        writer.put(SectionKind::FLIGHT, &event(10, FlightKind::CONTEXT_SWITCH, 12, [9, 12]));
        let dump = Dump::from_bytes(writer.finish().unwrap()).unwrap();
        let causes = Causes::of(&dump);
        let is_flight = |moment: u32| {
            let record = causes.record(&dump, &causes.moments[moment as usize]);
            matches!(record, Some(AnyRecord::FlightEvent(_)))
        };
        let mut sorts: Vec<_> = causes.flows.iter().map(|flow| (is_flight(flow.from), is_flight(flow.to))).collect();
        sorts.sort_unstable();
        assert_eq!(sorts, [(false, true), (true, false), (true, true)]);
        let mut out = Vec::new();
        let traced = chrome_trace(&dump, &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let ids = |phase: &str| -> Vec<u64> {
            events.iter().filter(|event| event["ph"] == phase).filter_map(|event| event["id"].as_u64()).collect()
        };
        assert_eq!((traced.flows, ids("s").len()), (1, 1));
        assert_eq!(ids("s"), ids("f"));
    }
}
