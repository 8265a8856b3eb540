//! Reads a run from a dump: the events of calls of a recording, or else the rings of recent calls.

use std::collections::HashMap;

use kwab_format::record::{AnyRecord, ProcessExit, SyscallEntry, SyscallExit, SyscallRecord};
use linux_abi::signals::Signal;
use linux_abi::syscalls;

use super::operand::{Answer, Operand};
use super::trace::{Called, Ended, Origin, Trace, What};
use crate::model::Dump;
use crate::model::call::{self, Call};

/// The run in a dump that was loaded whole ([`crate::model::Depth::Export`]).
#[must_use]
pub fn of_dump(dump: &Dump) -> Trace {
    let mut trace = events(dump);
    if trace.calls() == 0 {
        trace = rings(dump);
    }
    trace.gaps.extend(dump.case().losses());
    trace
}

/// The events of a recording.
fn events(dump: &Dump) -> Trace {
    let mut trace = Trace::new(Origin::Recording);
    let mut begun: HashMap<u32, (usize, SyscallEntry<'_>)> = HashMap::new();
    for (at, record) in dump.all_records().enumerate() {
        match record {
            AnyRecord::SyscallEntry(entry) => {
                if let Some(tid) = entry.tid.or(entry.pid) {
                    begun.insert(tid, (at, entry));
                }
            }
            // A child returns from a call that its parent made.
            AnyRecord::SyscallExit(exit) => {
                let Some(tid) = exit.tid.or(exit.pid) else { continue };
                if let Some((_, entry)) = begun.remove(&tid).filter(|(_, entry)| entry.nr == exit.nr) {
                    trace.push(tid, at, What::Call(Box::new(returned(&entry, &exit))));
                }
            }
            AnyRecord::Signal(signal) => {
                let Some(pid) = signal.pid else { continue };
                let name =
                    signal.signal_name.map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default();
                let acts = signal.action.map(|action| !matches!(action, b"ignore" | b"stop"));
                trace.push(pid, at, What::Signal { name, acts });
            }
            AnyRecord::ProcessExit(exit) => {
                let Some(pid) = exit.pid else { continue };
                unreturned(&mut trace, pid, begun.remove(&pid));
                trace.push(pid, at, What::End(ended(&exit)));
            }
            _ => {}
        }
    }
    let mut left: Vec<_> = begun.into_iter().collect();
    left.sort_unstable_by_key(|(_, (at, _))| *at);
    for (tid, call) in left {
        unreturned(&mut trace, tid, Some(call));
    }
    trace
}

/// Adds a call that has not returned, where it began.
fn unreturned(trace: &mut Trace, tid: u32, call: Option<(usize, SyscallEntry<'_>)>) {
    if let Some((at, entry)) = call {
        let called = called(&recorded(&entry, [None; 6]), Answer::None);
        trace.push(tid, at, What::Call(Box::new(called)));
    }
}

fn recorded<'a>(entry: &SyscallEntry<'a>, texts: [Option<(&'a [u8], bool)>; 6]) -> Call<'a> {
    Call { nr: entry.nr, name: entry.name, args: entry.args(), texts }
}

fn returned(entry: &SyscallEntry<'_>, exit: &SyscallExit<'_>) -> Called {
    let answer = exit.result.map_or(Answer::Unknown, Answer::of_register);
    called(&Call { nr: entry.nr, name: entry.name, args: entry.args(), texts: exit.texts() }, answer)
}

fn ended(exit: &ProcessExit<'_>) -> Ended {
    let status = exit.status.unwrap_or_default();
    if exit.by_signal != Some(true) {
        return Ended::Exit(status);
    }
    let name = u64::try_from(status).ok().and_then(Signal::new).and_then(Signal::name);
    Ended::Signal(name.map_or_else(|| format!("signal {status}"), str::to_owned))
}

fn called(call: &Call<'_>, answer: Answer) -> Called {
    let known = call.nr.and_then(|nr| u64::try_from(nr).ok()).and_then(syscalls::by_number);
    let name = match (known, call.name) {
        (Some(known), _) => known.name.to_owned(),
        (None, Some(name)) => String::from_utf8_lossy(name).into_owned(),
        (None, None) => "?".to_owned(),
    };
    let count = known.map_or(6, |known| known.args.len());
    let args = call.args.iter().zip(call.texts).take(count).map(|(word, text)| Operand::of_register(*word, text));
    // A process that ends does not return; what its register held is not an answer.
    let answer = if matches!(name.as_str(), "exit" | "exit_group" | "rt_sigreturn") { Answer::None } else { answer };
    Called { known, args: args.collect(), answer, text: call::arguments(call), name }
}

/// The rings of recent calls, oldest first as the dump has them.
fn rings(dump: &Dump) -> Trace {
    let mut trace = Trace::new(Origin::Rings);
    for (at, record) in dump.records::<SyscallRecord<'_>>().enumerate() {
        let Some(tid) = record.tid.or(record.pid) else { continue };
        let answer = match (record.in_progress, record.result) {
            (Some(true), _) => Answer::None,
            (_, Some(result)) => Answer::of_register(result),
            (_, None) => Answer::Unknown,
        };
        let call = Call { nr: record.nr, name: record.name, args: record.args(), texts: record.texts() };
        trace.push(tid, at, What::Call(Box::new(called(&call, answer))));
    }
    trace
}
