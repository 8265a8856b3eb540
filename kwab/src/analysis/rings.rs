//! What the rings of the flight recorder show about a thread that sleeps.
//!
//! Each processor has a ring of its own, and a busy one overwrites in a second what an idle one keeps for an hour. So
//! the last event that is *recorded* of a thread need not be its last event: it may have run and slept again on a
//! processor whose ring has lost that. [`of_this_sleep`] gives the last event only where it can tell that nothing
//! followed.

use kwab_format::SectionKind;
use kwab_format::record::{FlightEvent, FlightKind, Task};

use crate::model::{Case, Located};

/// The event with which a thread's present sleep began, or the wake-up that should have ended it; absent where the dump
/// cannot tell that it is about this sleep.
pub(super) fn of_this_sleep<'c, 'a>(case: &'c Case<'a>, task: &Task<'_>) -> Option<&'c Located<FlightEvent<'a>>> {
    if !case.weakness(&[SectionKind::FLIGHT]).is_empty() {
        return None;
    }
    let tid = task.tid.or(task.pid)?;
    let telling = |event: &&Located<FlightEvent<'_>>| {
        let kind = matches!(event.kind, Some(FlightKind::SLEEP | FlightKind::WAKE));
        kind && event.tid.or(event.pid) == Some(tid)
    };
    // Rings stand one behind the other; of one time the later in the file.
    let last = case.flight.iter().filter(telling).max_by_key(|event| (event.stamp.ns, event.at))?;
    let began = task.stamp.ns.zip(task.state_ns).map(|(now, slept)| now.saturating_sub(slept));
    let is_of_it = match (began, last.stamp.ns) {
        (Some(began), Some(at)) => at >= began,
        // It fell asleep on the processor that it ran on last: that ring must reach back to the event.
        (None, Some(at)) => reaches(case, task.last_cpu, at),
        (_, None) => is_one_ring(case),
    };
    is_of_it.then_some(last)
}

/// Whether the ring of a processor, or of each where it is not known, has everything since a time.
fn reaches(case: &Case<'_>, cpu: Option<u32>, at: u64) -> bool {
    let of = |cpu: Option<u32>| {
        let mut ring = case.flight.iter().filter(|event| event.stamp.cpu == cpu);
        // The first event of a recorder has the number 0.
        ring.any(|event| event.stamp.seq == Some(0) || event.stamp.ns.is_some_and(|ns| ns <= at))
    };
    match cpu {
        Some(_) => of(cpu) || of(None),
        None => case.flight.iter().all(|event| of(event.stamp.cpu)),
    }
}

fn is_one_ring(case: &Case<'_>) -> bool {
    case.flight.windows(2).all(|pair| pair[0].stamp.cpu == pair[1].stamp.cpu)
}
