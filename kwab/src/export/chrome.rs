//! Writes a Chrome trace (the JSON Object Format of the Trace Event Format): spans, system calls and flight events.
//!
//! Processors are threads of process 0, because that is where spans run; system calls are on the threads of their own
//! processes. Times are microseconds. Where the dump does not say how fast its counter ticks, a tick counts as a
//! nanosecond, and the trace says so.

use std::io::{self, Write};

use kwab_format::AnyRecord;
use serde_json::{Value, json};

use super::spans::{spans, ticks_per_us};
use crate::analysis::{Dump, text};

/// How much a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// Spans.
    pub spans: u64,
    /// System calls.
    pub calls: u64,
    /// Single events.
    pub instants: u64,
    /// Ends of spans whose begin was overwritten, and which are therefore not in the trace.
    pub without_begin: u64,
}

/// Writes the trace.
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
    for span in &spans {
        let name = span.path.last().map_or("", String::as_str);
        let mut event =
            json!({"ph": "X", "cat": "span", "name": name, "pid": 0, "tid": span.cpu, "ts": us(span.begin)});
        match span.end {
            Some(end) => event["dur"] = json!(us(end - span.begin)),
            None => event["ph"] = json!("B"),
        }
        if let Some(data) = span.data.filter(|data| *data != 0) {
            event["args"] = json!({"data": format!("{data:#x}")});
        }
        list.put(&event)?;
        traced.spans += 1;
    }
    for found in dump.records() {
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
                list.put(&json!({"ph": "X", "cat": "syscall", "name": name, "pid": call.pid.unwrap_or(0), "tid": tid, "ts": ts, "dur": duration, "args": args}))?;
                traced.calls += 1;
            }
            AnyRecord::FlightEvent(event) => {
                let time = event.stamp.tsc.map(us).or_else(|| event.stamp.ns.map(|ns| ns as f64 / 1e3));
                let Some(ts) = time.or_else(|| event.delta_ticks.map(us)) else { continue };
                let name = event
                    .kind
                    .and_then(kwab_format::record::FlightKind::name)
                    .map_or_else(|| text(event.name), str::to_owned);
                let args = json!({"pid": event.pid, "detail": text(event.detail)});
                list.put(&json!({"ph": "i", "s": "t", "cat": "flight", "name": name, "pid": 0, "tid": event.stamp.cpu.unwrap_or(0), "ts": ts, "args": args}))?;
                traced.instants += 1;
            }
            _ => {}
        }
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

struct List<'o> {
    out: &'o mut dyn Write,
    first: bool,
}

impl List<'_> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        serde_json::to_writer(&mut *self.out, event).map_err(io::Error::from)
    }
}
