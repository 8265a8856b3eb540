//! Gives each processor, thread and counter its track, written when it is first needed.
//!
//! Tracks of processors lie below one of their own, each with lanes for spans; those of threads belong to
//! their processes. A number that Perfetto's processes cannot have (0, and what is above 31 bits) makes a plain track.

use std::collections::{BTreeMap, HashMap};
use std::io;

use kwab_format::record::Task;

use super::packets::{Packets, shown};
use super::schema::{CounterDescriptor, EXPLICIT, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use crate::analysis::text;
use crate::causes::Moment;
use crate::model::Dump;

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TrackOf {
    /// The track above those of all processors.
    Processors,
    /// What a processor runs, and its events.
    Cpu(u32),
    /// Spans of a processor.
    Spans(u32),
    /// The track above those of a process's threads.
    Process(u32),
    /// Calls and events of a thread of a process.
    Thread(u32, u32),
    /// The track above those of all counters.
    Counters,
}

/// The tracks so far.
pub(super) struct Tracks {
    /// By row and lane.
    known: BTreeMap<(TrackOf, u32), u64>,
    next: u64,
    names: HashMap<u32, String>,
    /// What is said of the recording as a whole.
    about: String,
}

impl Tracks {
    pub(super) fn new(dump: &Dump, about: String) -> Self {
        let name = |task: Task<'_>| Some((task.tid.or(task.pid)?, text(Some(task.comm?))));
        Self { known: BTreeMap::new(), next: 1, names: dump.records::<Task<'_>>().filter_map(name).collect(), about }
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

    /// The track of a row's lane.
    pub(super) fn of(&mut self, row: TrackOf, lane: u32, packets: &mut Packets<'_>) -> io::Result<u64> {
        if let Some(known) = self.known.get(&(row, lane)) {
            return Ok(*known);
        }
        let above = match row {
            TrackOf::Processors | TrackOf::Counters | TrackOf::Process(_) => None,
            TrackOf::Cpu(_) => Some(TrackOf::Processors),
            TrackOf::Spans(cpu) => Some(TrackOf::Cpu(cpu)),
            TrackOf::Thread(pid, tid) if lane > 0 => Some(TrackOf::Thread(pid, tid)),
            TrackOf::Thread(pid, _) => Some(TrackOf::Process(pid)),
        };
        let parent_uuid = above.map(|above| self.of(above, 0, packets)).transpose()?;
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
        Ok(uuid)
    }

    /// A new track for a counter.
    pub(super) fn counter(&mut self, name: &str, unit: Option<String>, packets: &mut Packets<'_>) -> io::Result<u64> {
        let parent_uuid = Some(self.of(TrackOf::Counters, 0, packets)?);
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
