//! Reads a run from dumps: the events of calls of a recording, or else the rings of recent calls.

use std::borrow::Cow;
use std::collections::HashMap;

use kwab_format::record::{AnyRecord, ProcessExit, SyscallExit, SyscallRecord};
use linux_abi::signals::Signal;
use linux_abi::syscalls;

use super::operand::{Answer, Operand};
use super::trace::{Called, Ended, Origin, Trace, What};
use crate::model::Dump;
use crate::model::call::{self, Call};

/// Losses that are named; of a log with many crashes each may have some.
const MOST_LOSSES: usize = 16;

/// The run in dumps that are loaded whole ([`crate::model::Depth::Export`]), in their order: a log in which programs
/// crash becomes several.
///
/// # Errors
/// The first of `dumps`.
pub fn of_dumps<E>(dumps: impl IntoIterator<Item = Result<Dump, E>>) -> Result<Trace, E> {
    let mut events =
        Events { trace: Trace::new(Origin::Recording), begun: HashMap::new(), at: 0, line: 0, calls: 0, died: false };
    let mut rings = Trace::new(Origin::Rings);
    rings
        .gaps
        .push("rings keep the last calls of each thread, and none of those without arguments (getpid)".to_owned());
    let mut losses = Vec::new();
    for dump in dumps {
        let dump = dump?;
        events.add(&dump);
        add_rings(&mut rings, &dump);
        losses.extend(dump.case().losses());
        losses.dedup();
        losses.truncate(MOST_LOSSES);
    }
    let died = events.died;
    let mut trace = events.finish();
    if trace.calls() == 0 {
        trace = rings;
    }
    trace.gaps.extend(died.then(|| "the kernel died in this run: kwab triage says of what".to_owned()));
    trace.gaps.extend(losses);
    Ok(trace)
}

/// The events of recordings.
struct Events {
    trace: Trace,
    /// Calls that have not returned yet, and where they began.
    begun: HashMap<u32, (usize, Begun)>,
    /// Records that were read.
    at: usize,
    /// Up to which line of a log the dumps before this one tell.
    line: u64,
    /// Calls that began.
    calls: u32,
    /// Whether the kernel panicked.
    died: bool,
}

/// A call that began.
struct Begun {
    nr: Option<i64>,
    name: Option<Vec<u8>>,
    args: [Option<u64>; 6],
    number: u32,
}

impl Begun {
    fn called(&self, texts: [Option<(&[u8], bool)>; 6], answer: Answer) -> Called {
        let result = answer.value();
        let call = Call { nr: self.nr, name: self.name.as_deref(), args: self.args, texts, result };
        Called { number: Some(self.number), ..called(&call, answer) }
    }
}

impl Events {
    fn add(&mut self, dump: &Dump) {
        let before = self.line;
        for record in dump.all_records() {
            // The dump of a crash has the events before it once more.
            let line = record.stamp().line.unwrap_or(u64::MAX);
            if line <= before {
                continue;
            }
            self.line = if line == u64::MAX { self.line } else { self.line.max(line) };
            self.at += 1;
            match record {
                AnyRecord::SyscallEntry(entry) => {
                    if let Some(tid) = entry.tid.or(entry.pid) {
                        let name = entry.name.map(<[u8]>::to_vec);
                        let begun = Begun { nr: entry.nr, name, args: entry.args(), number: self.calls };
                        self.begun.insert(tid, (self.at, begun));
                    }
                    self.calls = self.calls.saturating_add(1);
                }
                AnyRecord::SyscallExit(exit) => self.returned(&exit),
                AnyRecord::Signal(signal) => {
                    let Some(pid) = signal.pid else { continue };
                    let name = named(signal.signal, signal.signal_name);
                    let acts = signal.action.map(|action| !matches!(action, b"ignore" | b"stop"));
                    self.trace.push(pid, self.at, What::Signal { name, acts });
                }
                AnyRecord::ProcessExit(exit) => {
                    let Some(pid) = exit.pid else { continue };
                    let begun = self.begun.remove(&pid);
                    self.unreturned(pid, begun);
                    self.trace.push(pid, self.at, What::End(ended(&exit)));
                }
                AnyRecord::Panic(_) => self.died = true,
                _ => {}
            }
        }
    }

    /// Adds a call that returned. A child returns from one that its parent made; that is left out.
    fn returned(&mut self, exit: &SyscallExit<'_>) {
        let Some(tid) = exit.tid.or(exit.pid) else { return };
        if let Some((_, begun)) = self.begun.remove(&tid).filter(|(_, begun)| begun.nr == exit.nr) {
            let answer = exit.result.map_or(Answer::Unknown, Answer::of_register);
            self.trace.push(tid, self.at, What::Call(Box::new(begun.called(exit.texts(), answer))));
        }
    }

    /// Adds a call that has not returned, where it began.
    fn unreturned(&mut self, tid: u32, call: Option<(usize, Begun)>) {
        if let Some((at, begun)) = call {
            self.trace.push(tid, at, What::Call(Box::new(begun.called([None; 6], Answer::None))));
        }
    }

    fn finish(mut self) -> Trace {
        let mut left: Vec<_> = std::mem::take(&mut self.begun).into_iter().collect();
        left.sort_unstable_by_key(|(_, (at, _))| *at);
        for (tid, call) in left {
            self.unreturned(tid, Some(call));
        }
        self.trace
    }
}

/// The name of a signal; events call all real-time signals alike, so the number decides.
fn named(number: Option<i64>, printed: Option<&[u8]>) -> String {
    let known = number.and_then(|number| u64::try_from(number).ok()).and_then(Signal::new);
    match (known, printed) {
        (Some(signal), _) => signal.to_string(),
        (None, Some(name)) => String::from_utf8_lossy(name).into_owned(),
        (None, None) => "?".to_owned(),
    }
}

fn ended(exit: &ProcessExit<'_>) -> Ended {
    let status = exit.status.unwrap_or_default();
    if exit.by_signal != Some(true) {
        return Ended::Exit(status);
    }
    Ended::Signal(named(Some(status), None))
}

fn called(call: &Call<'_>, answer: Answer) -> Called {
    let known = call.nr.and_then(|nr| u64::try_from(nr).ok()).and_then(syscalls::by_number);
    let name = match (known, call.name) {
        (Some(known), _) => Cow::Borrowed(known.name),
        (None, Some(name)) => Cow::Owned(String::from_utf8_lossy(name).into_owned()),
        (None, None) => Cow::Borrowed("?"),
    };
    let count = known.map_or(6, |known| known.args.len());
    let args = (0..count).map(|at| match call::structure(call, at) {
        Some(written) => Operand::of_structure(call.args[at], written),
        None => Operand::of_register(call.args[at], call.texts[at]),
    });
    // A process that ends does not return; what its register held is not an answer.
    let answer = if matches!(&*name, "exit" | "exit_group" | "rt_sigreturn") { Answer::None } else { answer };
    Called { known, args: args.collect(), answer, text: call::arguments(call).into(), name, number: None }
}

/// Adds the rings of recent calls, oldest first as the dump has them.
fn add_rings(trace: &mut Trace, dump: &Dump) {
    for (at, record) in dump.records::<SyscallRecord<'_>>().enumerate() {
        let Some(tid) = record.tid.or(record.pid) else { continue };
        let answer = match (record.in_progress, record.result) {
            (Some(true), _) => Answer::None,
            (_, Some(result)) => Answer::of_register(result),
            (_, None) => Answer::Unknown,
        };
        let (args, texts) = (record.args(), record.texts());
        let call = Call { nr: record.nr, name: record.name, args, texts, result: record.result };
        trace.push(tid, at, What::Call(Box::new(called(&call, answer))));
    }
}
