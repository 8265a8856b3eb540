//! Reads what our kernel knows out of its memory, when it hangs so that it cannot dump.
//!
//! The kernel's image has a table that says where its threads, locks and times lie (`table`); no debug information is
//! needed. What is read becomes the records that the kernel's own dump has, so that every analysis treats both alike;
//! the step `outside` of the tests compares the two.

pub mod calls;
mod clock;
pub mod death;
pub mod flight;
pub mod locks;
mod log;
mod map;
mod table;
pub mod tasks;
mod write;

pub(super) use write::{put_calls, put_death, put_flight, put_locks, put_threads, running_on};

use clock::Clock;
use death::{Death, Set};
use flight::FlightRing;
use locks::{AwaitedLock, HeldLock};
use table::Table;
use tasks::{Thread, ThreadReader};

use super::image::Kernel;
use super::registers::Processor;
use super::space::Space;
use super::vmcore::Vmcore;
use crate::memory::Tables;

/// What our kernel says in its memory.
#[derive(Debug, Default)]
pub struct Ours {
    /// Its release and version, as uname(2) gives them.
    pub release: Option<String>,
    /// How far its image was moved at boot.
    pub offset: Option<u64>,
    /// Where it sees physical address 0.
    pub direct_map: Option<u64>,
    /// The latest time that it noted, nanoseconds since boot: less than a second ago while its timers expire.
    pub now: Option<u64>,
    /// Its threads and zombies.
    pub threads: Vec<Thread>,
    /// Spin locks that are held.
    pub held: Vec<HeldLock>,
    /// Spin locks that processors wait for.
    pub awaited: Vec<AwaitedLock>,
    /// Its log: lines with level and time, and how many bytes of it were there before.
    pub log: (u64, Vec<u8>),
    /// The flight recorder of each processor.
    pub flight: Vec<FlightRing>,
    /// What it died of, if it has.
    pub death: Option<Death>,
    /// The registers of processors that were stopped for that, by the number of the processor.
    pub stopped: Vec<(u32, Set)>,
    /// Bytes below a kernel stack that are never mapped.
    pub guard: Option<u64>,
    clock: Option<Clock>,
    /// What could not be read, and why.
    pub missing: Vec<String>,
}

/// Reads our kernel; `None` when the memory has none that describes itself.
pub(super) fn read(core: &Vmcore, tables: Tables, kernel: &Kernel, processors: &[Processor]) -> Option<Ours> {
    let space = Space::new(core, tables);
    let table = match Table::find(&space, kernel)? {
        Ok(table) => table,
        Err(why) => return Some(Ours { missing: vec![format!("the kernel's tasks: {why}")], ..Ours::default() }),
    };
    let release = table.text(&space, "release").zip(table.text(&space, "version"));
    let mut ours = Ours {
        release: release.map(|(release, version)| format!("{release} (kwab) {version}")),
        offset: table.get("image").zip(table.get("image.linked")).map(|(at, linked)| at.wrapping_sub(linked)),
        direct_map: member(&space, &table, "bases", "bases.direct"),
        ..Ours::default()
    };
    (ours.held, ours.awaited) = locks::read(&space, &table, processors);
    let log = log::read(&space, &table);
    if log.is_none() {
        ours.missing.push("the log: the kernel's table does not say where it is, or it is not whole".to_owned());
    }
    ours.log = log.unwrap_or_default();
    ours.clock = Clock::read(&space, &table);
    let flight = flight::read(&space, &table, ours.clock.as_ref(), processors);
    if flight.is_none() {
        ours.missing.push("the flight recorder: the kernel has none, or its table does not say where it is".to_owned());
    }
    ours.flight = flight.unwrap_or_default();
    ours.guard = table.get("thread.stack_guard");
    ours.death = death::read(&space, &table);
    if ours.death.is_some() {
        ours.stopped = death::stopped(&space, &table, processors);
    }
    let (threads, problem) = ThreadReader::new(&space, &table).all();
    ours.missing.extend(problem);
    ours.now = latest(&space, &table, processors, &threads);
    ours.threads = threads;
    Some(ours)
}

fn member(space: &Space<'_>, table: &Table, base: &str, offset: &str) -> Option<u64> {
    space.word(table.get(base)?.checked_add(table.get(offset)?)?)
}

/// The latest time in the memory: a processor's timer expires at least each second, and every switch is noted.
fn latest(space: &Space<'_>, table: &Table, processors: &[Processor], threads: &[Thread]) -> Option<u64> {
    let tick = |cpu: u32| {
        let at = table.get("ticks")?.checked_add(table.get("ticks.stride")?.checked_mul(u64::from(cpu))?)?;
        space.word(at.checked_add(table.get("ticks.at")?)?)
    };
    let ticks = processors.iter().filter_map(|processor| tick(processor.number));
    ticks.chain(threads.iter().filter_map(|thread| thread.since)).max()
}

#[cfg(test)]
mod tests;
