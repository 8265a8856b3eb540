//! Writes a Chrome trace (the JSON Object Format of the Trace Event Format): spans, system calls and flight events.
//!
//! Processors are threads of process 0, because that is where spans run; system calls are on the threads of their own
//! processes. Times are microseconds. Where the dump does not say how fast its counter ticks, a tick counts as a
//! nanosecond, and the trace says so.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use kwab_format::AnyRecord;
use serde_json::{Value, json};

use super::spans::{Span, spans, ticks_per_us};
use crate::analysis::text;
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
    /// Ends of spans whose begin was overwritten, and which are therefore not in the trace.
    pub without_begin: u64,
}

/// Writes the trace. Spans of one processor that overlap without being nested lie on further lanes of it; what finds no
/// room on sixty-four lanes is written as asynchronous events, which may overlap as they like.
///
/// # Errors
/// Those of the output.
pub fn chrome_trace(dump: &Dump, out: &mut dyn Write) -> io::Result<Traced> {
    let (spans, without_begin) = spans(dump);
    let known = ticks_per_us(dump);
    let per_us = known.unwrap_or(1000.0);
    let us = |ticks: u64| ticks as f64 / per_us;
    let mut traced = Traced { without_begin, ..Traced::default() };
    let mut list = List { out, first: true };
    list.out.write_all(b"{\"traceEvents\":[")?;
    list.put(&json!({"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "CPUs"}}))?;
    let mut lanes = Lanes::default();
    for span in &spans {
        let lane = lanes.lane_of(span);
        list.span(span, lane, traced.spans, &us)?;
        traced.spans += 1;
    }
    for found in dump.located_records() {
        match found.record {
            AnyRecord::SyscallRecord(call) => {
                let Some(ts) = call.stamp.ns.map(|ns| ns as f64 / 1e3).or_else(|| call.stamp.tsc.map(us)) else {
                    continue;
                };
                let ns = call.duration_ns.map(|ns| ns as f64 / 1e3);
                let duration = ns.or_else(|| call.duration_ticks.map(us)).unwrap_or(0.0);
                let name =
                    call.name.map_or_else(|| format!("syscall {}", call.nr.unwrap_or(-1)), |name| text(Some(name)));
                let tid = call.tid.or(call.pid).unwrap_or(0);
                let args = json!({"result": call.result});
                let pid = call.pid.unwrap_or(0);
                list.put(&json!({
                    "ph": "X", "cat": "syscall", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": duration,
                    "args": args,
                }))?;
                traced.calls += 1;
            }
            AnyRecord::FlightEvent(event) => {
                let time = event.stamp.tsc.map(us).or_else(|| event.stamp.ns.map(|ns| ns as f64 / 1e3));
                let Some(ts) = time.or_else(|| event.delta_ticks.map(us)) else { continue };
                let name = event
                    .kind
                    .and_then(kwab_format::record::FlightKind::name)
                    .map_or_else(|| text(event.name), str::to_owned);
                let args = json!({"pid": event.pid, "detail": flight::details(&event)});
                let cpu = event.stamp.cpu.unwrap_or(0);
                lanes.used.insert((cpu, 0));
                list.put(&json!({
                    "ph": "i", "s": "t", "cat": "flight", "name": name, "pid": 0, "tid": cpu, "ts": ts, "args": args,
                }))?;
                traced.instants += 1;
            }
            _ => {}
        }
    }
    // Metadata may stand anywhere in the list.
    for (cpu, lane) in lanes.used {
        let name = if lane == 0 { format!("CPU {cpu}") } else { format!("CPU {cpu}, interleaved {lane}") };
        let args = json!({"name": name});
        list.put(&json!({"ph": "M", "name": "thread_name", "pid": 0, "tid": lane_tid(cpu, lane), "args": args}))?;
    }
    let clock = if known.is_some() {
        "time-stamp counter at the frequency the dump says"
    } else {
        "one tick shown as one nanosecond"
    };
    let other = json!({"clock": clock, "ends without begin": without_begin});
    write!(list.out, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{other}}}\n")?;
    Ok(traced)
}

/// Lanes of a processor: more than a viewer shows, and few enough to search.
const MOST_LANES: usize = 64;

/// Which lane of its processor a span is drawn on. The format wants slices of one thread beside or inside each other,
/// but a task that sleeps inside a span leaves it open while the next one begins its own: such a span gets a lane
/// further down.
#[derive(Debug, Default)]
struct Lanes {
    /// Ends of the spans that are open on each lane of a processor, outermost first.
    open: BTreeMap<u32, Vec<Vec<u64>>>,
    used: BTreeSet<(u32, u32)>,
}

impl Lanes {
    /// The thread number for a span, while there are lanes; they come in the order of their begin.
    fn lane_of(&mut self, span: &Span) -> Option<u32> {
        let end = span.end.unwrap_or(u64::MAX);
        let lanes = self.open.entry(span.cpu).or_default();
        for lane in lanes.iter_mut() {
            while lane.last().is_some_and(|last| *last <= span.begin) {
                lane.pop();
            }
        }
        let fits = |lane: &Vec<u64>| lane.last().is_none_or(|outer| end <= *outer);
        let at = lanes.iter().position(fits).unwrap_or(lanes.len());
        if at == MOST_LANES {
            return None;
        }
        if at == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[at].push(end);
        let lane = at as u32;
        self.used.insert((span.cpu, lane));
        Some(lane_tid(span.cpu, lane))
    }
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
    /// Writes a span: on its lane, or as a pair of asynchronous events of this number.
    fn span(&mut self, span: &Span, lane: Option<u32>, number: u64, us: &impl Fn(u64) -> f64) -> io::Result<()> {
        let name = &*span.path.name;
        let tid = lane.unwrap_or(span.cpu);
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
    use super::*;

    #[test]
    fn spans_that_never_nest_fill_the_lanes_and_then_go_on_beside_them() {
        let count = 3 * MOST_LANES as u64;
        let (mut lanes, mut out) = (Lanes::default(), Vec::new());
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
            let lane = lanes.lane_of(&span);
            list.span(&span, lane, number, &|ticks| ticks as f64).unwrap();
        }
        assert_eq!(lanes.used.len(), MOST_LANES);
        let text = format!("[{}]", String::from_utf8(out).unwrap());
        let events: Vec<Value> = serde_json::from_str(&text).unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count() as u64;
        let most = MOST_LANES as u64;
        assert_eq!((of("X"), of("b"), of("e")), (most, count - most, count - most));
        let begin = events.iter().find(|event| event["ph"] == "b").unwrap();
        let ends = events.iter().filter(|event| event["ph"] == "e" && event["id"] == begin["id"]);
        assert_eq!(ends.map(|event| event["ts"].as_f64()).collect::<Vec<_>>(), [Some(10_000.0 + most as f64)]);
    }
}
