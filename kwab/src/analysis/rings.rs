//! What the rings of the flight recorder show about a thread that sleeps.
//!
//! Each processor has a ring of its own, and a busy one overwrites in a second what an idle one keeps for an hour. So
//! the last event that is *recorded* of a thread need not be its last event: it may have run and slept again on a
//! processor whose ring has lost that. [`Rings::of_this_sleep`] gives the last event only where it can tell that
//! nothing followed.

use std::collections::{BTreeMap, HashMap};

use kwab_format::SectionKind;
use kwab_format::record::{FlightEvent, FlightKind, Task};

use crate::model::{Case, Located};

/// The rings of a dump.
pub(super) struct Rings<'c, 'a> {
    /// The last sleep or wake-up of each thread.
    last: HashMap<u32, &'c Located<FlightEvent<'a>>>,
    /// Since when each ring has everything, by processor.
    since: BTreeMap<Option<u32>, u64>,
    /// Whether no event is known to be damaged.
    sound: bool,
}

impl<'c, 'a> Rings<'c, 'a> {
    /// Of a dump.
    pub(super) fn of(case: &'c Case<'a>) -> Self {
        let sound = case.weakness(&[SectionKind::FLIGHT]).is_empty();
        let mut rings = Self { last: HashMap::new(), since: BTreeMap::new(), sound };
        for event in &case.flight {
            // The first event of a recorder has the number 0.
            let first = if event.stamp.seq == Some(0) { 0 } else { event.stamp.ns.unwrap_or(u64::MAX) };
            let since = rings.since.entry(event.stamp.cpu).or_insert(first);
            *since = first.min(*since);
            let telling = matches!(event.kind, Some(FlightKind::SLEEP | FlightKind::WAKE));
            if let Some(tid) = event.tid.or(event.pid).filter(|_| telling) {
                // Rings stand one behind the other; of one time the later in the file.
                let last = rings.last.entry(tid).or_insert(event);
                if (event.stamp.ns, event.at) >= (last.stamp.ns, last.at) {
                    *last = event;
                }
            }
        }
        rings
    }

    /// The event with which a thread's present sleep began, or the wake-up that should have ended it; absent where the
    /// dump cannot tell that it is about this sleep.
    pub(super) fn of_this_sleep(&self, task: &Task<'_>) -> Option<&'c Located<FlightEvent<'a>>> {
        let last = *self.last.get(&task.tid.or(task.pid)?).filter(|_| self.sound)?;
        let began = task.stamp.ns.zip(task.state_ns).map(|(now, slept)| now.saturating_sub(slept));
        let is_of_it = match (began, last.stamp.ns) {
            (Some(began), Some(at)) => at >= began,
            // It fell asleep on the processor that it ran on last: that ring must reach back to the event.
            (None, Some(at)) => self.reaches(task.last_cpu, at),
            (_, None) => self.since.len() == 1,
        };
        is_of_it.then_some(last)
    }

    /// Whether the ring of a processor, or of each where it is not known, has everything since a time.
    fn reaches(&self, cpu: Option<u32>, at: u64) -> bool {
        let of = |cpu: &Option<u32>| self.since.get(cpu).is_some_and(|since| *since <= at);
        match cpu {
            Some(_) => of(&cpu) || of(&None),
            None => self.since.values().all(|since| *since <= at),
        }
    }
}
