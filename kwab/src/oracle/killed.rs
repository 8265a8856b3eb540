//! Who ended a process: a signal from outside comes at some time, one that the process sent to itself at a call.

use std::collections::HashSet;

use linux_abi::signals::Signal;
use linux_abi::syscalls::{ArgKind, Traits};

use super::calls::OWN_SIGNALS;
use super::operand::Answer;
use super::trace::{Called, Ended, TraceRow, What};

/// The last call of a thread that a signal ended.
pub(super) fn last_before_a_signal(rows: &[TraceRow]) -> Option<usize> {
    let last = rows.iter().rev().find(|row| !matches!(row.what, What::Signal { .. }))?;
    matches!(last.what, What::End(Ended::Signal(_))).then_some(())?;
    rows.iter().rev().find(|row| row.call().is_some()).map(|row| row.at)
}

/// The signal that ended a thread, unless it is one that a thread brings on itself or this one sent it to itself.
pub(super) fn killed_from_outside(tid: u32, rows: &[TraceRow]) -> Option<&str> {
    rows.iter().rev().find_map(|row| match &row.what {
        What::End(Ended::Signal(name)) if !OWN_SIGNALS.contains(&name.as_str()) && !sent_itself(tid, rows, name) => {
            Some(name.as_str())
        }
        _ => None,
    })
}

/// Whether a thread sent a signal to itself, its process or its process group that it did not survive: no delivery of
/// it lies between the call and a later one.
fn sent_itself(tid: u32, rows: &[TraceRow], signal: &str) -> bool {
    let own = Own::of(tid, rows);
    let Some(sent) = rows.iter().rposition(|row| row.call().is_some_and(|call| own.sends(call, signal))) else {
        return false;
    };
    let behind = &rows[sent + 1..];
    let delivered = behind.iter().position(|row| matches!(&row.what, What::Signal { name, .. } if name == signal));
    delivered.is_none_or(|at| behind[at..].iter().all(|row| row.call().is_none()))
}

/// The numbers by which a thread is known in its run.
struct Own {
    ids: HashSet<i64>,
    /// The processes it made. Without `-f`, strace says the number of no thread: another number may be its own.
    made: Option<HashSet<i64>>,
}

impl Own {
    fn of(tid: u32, rows: &[TraceRow]) -> Self {
        let calls = || rows.iter().filter_map(TraceRow::call);
        let named = |names: &'static [&str]| {
            calls().filter(|call| names.contains(&&*call.name)).filter_map(|call| call.answer.value())
        };
        let mut ids: HashSet<i64> = named(&["getpid", "gettid", "set_tid_address"]).collect();
        let is_nameless = tid == 0 && ids.is_empty();
        ids.extend((tid != 0).then_some(i64::from(tid)));
        let others = named(&["fork", "vfork", "clone", "clone3", "getppid"]);
        Self { ids, made: is_nameless.then(|| others.collect()) }
    }

    /// Whether a call sends this thread the signal.
    fn sends(&self, call: &Called, signal: &str) -> bool {
        if !call.has(Traits::SENDS_SIGNAL) || matches!(call.answer, Answer::Error(_)) {
            return false;
        }
        let words = |wanted: fn(&ArgKind) -> bool| {
            let kinds = call.known.map_or(&[][..], |known| known.args).iter();
            kinds.zip(&call.args).filter(move |(arg, _)| wanted(&arg.kind)).filter_map(|(_, operand)| operand.word)
        };
        let number = words(|kind| matches!(kind, ArgKind::Signal)).next();
        let is_signal = number.and_then(Signal::new).is_some_and(|sent| sent.to_string() == signal);
        // A process group of which it is a member: its own, everyone, or the one that it leads.
        let is_own = |id: i32| match id {
            0 | -1 => call.name == "kill",
            _ => {
                let id = i64::from(id).abs();
                self.ids.contains(&id) || self.made.as_ref().is_some_and(|made| !made.contains(&id))
            }
        };
        is_signal && words(|kind| matches!(kind, ArgKind::Pid)).any(|id| is_own(id as i32))
    }
}
