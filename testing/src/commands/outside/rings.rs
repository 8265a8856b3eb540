//! The recorders' rings read from outside: entry for entry what the kernel's own dump has of them.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use kwab::format::record::{FlightEvent, FlightKind};
use kwab::model::Case;

/// Compares the events and calls that both have; how many.
pub(super) fn same_rings(captured: &Case<'_>, own: &Case<'_>) -> Result<String> {
    let (found, wanted) = (flight(captured), flight(own));
    let events = same(&found, &wanted)?;
    ensure!(events > 20, "only {events} flight events are in both, of {} and {}", found.len(), wanted.len());
    let (found, wanted) = (calls(captured), calls(own));
    let calls = same(&found, &wanted)?;
    ensure!(calls > 5, "only {calls} system calls are in both, of {} and {}", found.len(), wanted.len());
    ensure!(found.len() >= wanted.len(), "{} system calls of {}", found.len(), wanted.len());
    Ok(format!("{events} flight events and {calls} system calls"))
}

fn same<K: Ord + std::fmt::Debug>(found: &BTreeMap<K, String>, wanted: &BTreeMap<K, String>) -> Result<usize> {
    let mut both = 0;
    for (key, found) in found {
        if let Some(wanted) = wanted.get(key) {
            ensure!(found == wanted, "{key:?} differs:\n{found}\n{wanted}");
            both += 1;
        }
    }
    Ok(both)
}

/// An event's processor, number and kind: a switch with a sleep before it has one number.
type EventKey = (Option<u32>, Option<u64>, Option<FlightKind>);

/// The events of all processors.
fn flight(case: &Case<'_>) -> BTreeMap<EventKey, String> {
    let told = case.flight.iter().filter_map(|event| {
        let event = *event;
        let mut record: FlightEvent<'_> = event.record;
        match record.kind {
            // Repeats are counted in the newest event.
            Some(FlightKind::IRQ) => (record.b, record.c) = (None, None),
            // The oldest switch of a ring does not say what it leaves.
            Some(FlightKind::CONTEXT_SWITCH) if record.a.is_none() => return None,
            _ => {}
        }
        Some(((record.stamp.cpu, record.stamp.seq, record.kind), format!("{record:x?}")))
    });
    told.collect()
}

/// Calls by thread and position; those without slot have none.
fn calls(case: &Case<'_>) -> BTreeMap<(Option<u32>, u64), String> {
    let told = case.syscalls.iter().filter_map(|call| Some(((call.tid, call.index?), format!("{:x?}", call.record))));
    told.collect()
}
