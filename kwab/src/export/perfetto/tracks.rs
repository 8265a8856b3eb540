//! Gives each processor, thread and counter its track, written when it is first needed.
//!
//! Tracks of processors lie below one of their own, each with lanes for spans; those of threads belong to
//! their processes. A number that Perfetto's processes cannot have (0, and what is above 31 bits) makes a plain track.
//! Tracks count in the memory budget of the dump: where there is no room for another, the one above all processors
//! takes its place.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use kwab_format::record::Task;

use super::packets::{Packets, shown};
use super::schema::{CounterDescriptor, EXPLICIT, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use crate::analysis::text;
use crate::causes::Moment;
use crate::model::Dump;
use crate::model::memory::Budget;

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TrackOf {
    /// The track above those of all processors.
    Processors,
    /// What a processor runs, and its events.
    Cpu(u32),
    /// Spans of a processor.
    Spans(u32),
    /// Waits of a processor for spin locks.
    Waits(u32),
    /// The track above those of a process's threads.
    Process(u32),
    /// Calls and events of a thread of a process.
    Thread(u32, u32),
    /// The track above those of all counters.
    Counters,
}

/// What a track takes of the dump's budget: its entry in the map, and what is open on it.
const PRICE: u64 = 192;

/// Where events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the track.
    pub(super) track: u64,
    /// Whether it is not the wanted one, for which there was no room: slices do not nest there.
    pub(super) is_shared: bool,
}

/// The tracks so far.
pub(super) struct Tracks {
    /// By row and lane.
    known: BTreeMap<(TrackOf, u32), u64>,
    next: u64,
    names: HashMap<u32, String>,
    /// What is said of the recording as a whole.
    about: String,
    budget: Arc<Budget>,
}

impl Tracks {
    pub(super) fn new(dump: &Dump, about: String) -> Self {
        let name = |task: Task<'_>| {
            let (tid, name) = (task.tid.or(task.pid)?, text(Some(task.comm?)));
            // The idle threads of all processors share a number: `swapper/1` is one of them.
            let name = if tid == 0 { name.split('/').next().unwrap_or_default().to_owned() } else { name };
            Some((tid, name))
        };
        let names = dump.records::<Task<'_>>().filter_map(name).collect();
        Self { known: BTreeMap::new(), next: 1, names, about, budget: Arc::clone(&dump.file.budget) }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.next - 1
    }

    /// A thread as slices name it.
    pub(super) fn thread(&self, pid: u32, tid: u32) -> String {
        let number = if pid == tid || pid == Moment::NONE { tid.to_string() } else { format!("{pid}/{tid}") };
        match self.names.get(&tid) {
            Some(name) => format!("{name} [{number}]"),
            None => format!("thread {number}"),
        }
    }

    /// The track of a row's lane, or the one that takes its place.
    pub(super) fn of(&mut self, row: TrackOf, lane: u32, packets: &mut Packets<'_>) -> io::Result<Place> {
        if let Some(known) = self.known.get(&(row, lane)) {
            return Ok(Place { track: *known, is_shared: false });
        }
        let is_single = matches!(row, TrackOf::Processors | TrackOf::Counters);
        if !is_single && !self.budget.take(PRICE) {
            return Ok(Place { is_shared: true, ..self.of(TrackOf::Processors, 0, packets)? });
        }
        let above = match row {
            TrackOf::Processors | TrackOf::Counters | TrackOf::Process(_) => None,
            TrackOf::Cpu(_) => Some(TrackOf::Processors),
            TrackOf::Spans(cpu) | TrackOf::Waits(cpu) => Some(TrackOf::Cpu(cpu)),
            TrackOf::Thread(pid, tid) if lane > 0 => Some(TrackOf::Thread(pid, tid)),
            TrackOf::Thread(pid, _) => Some(TrackOf::Process(pid)),
        };
        let parent = above.map(|above| self.of(above, 0, packets)).transpose()?;
        if let Some(shared) = parent.filter(|parent| parent.is_shared) {
            return Ok(shared);
        }
        let parent_uuid = parent.map(|parent| parent.track);
        let uuid = self.take();
        let mut track = TrackDescriptor { uuid: Some(uuid), parent_uuid, ..TrackDescriptor::default() };
        let number = |number: u32| i32::try_from(number).ok();
        let named = |cpu: u32, what: &str| {
            if cpu == Moment::NONE { format!("no CPU{what}") } else { format!("CPU {cpu}{what}") }
        };
        match row {
            TrackOf::Processors => {
                (track.name, track.child_ordering) = (Some("Processors".to_owned()), Some(EXPLICIT));
                track.description = Some(self.about.clone());
            }
            TrackOf::Counters => track.name = Some("Counters".to_owned()),
            TrackOf::Cpu(cpu) => (track.name, track.sibling_order_rank) = (Some(named(cpu, "")), number(cpu)),
            TrackOf::Spans(cpu) => track.name = Some(named(cpu, " spans")),
            TrackOf::Waits(cpu) => track.name = Some(named(cpu, " lock waits")),
            TrackOf::Process(pid) => match number(pid).filter(|pid| *pid > 0) {
                Some(number) => {
                    let process_name = self.names.get(&pid).map(|name| shown(name));
                    track.process = Some(ProcessDescriptor { pid: Some(number), process_name });
                }
                None => track.name = Some(format!("process {pid}")),
            },
            TrackOf::Thread(..) if lane > 0 => track.name = Some("overlapping".to_owned()),
            TrackOf::Thread(pid, tid) => match (number(pid).filter(|pid| *pid > 0), number(tid).filter(|tid| *tid > 0))
            {
                (Some(pid), Some(number)) => {
                    let thread_name = self.names.get(&tid).map(|name| shown(name));
                    track.thread = Some(ThreadDescriptor { pid: Some(pid), tid: Some(number.into()), thread_name });
                }
                _ => track.name = Some(format!("thread {tid}")),
            },
        }
        packets.track(track)?;
        self.known.insert((row, lane), uuid);
        Ok(Place { track: uuid, is_shared: false })
    }

    /// A new track for a counter.
    pub(super) fn counter(&mut self, name: &str, unit: Option<String>, packets: &mut Packets<'_>) -> io::Result<u64> {
        let parent_uuid = Some(self.of(TrackOf::Counters, 0, packets)?.track);
        let uuid = self.take();
        packets.track(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid,
            name: Some(shown(name)),
            counter: Some(CounterDescriptor { unit_name: unit }),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    fn take(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}
