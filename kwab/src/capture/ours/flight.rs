//! Reads the flight recorder of each processor (`kernel/src/trace/flight.rs`) out of captured memory: the events that
//! the kernel's own dump has, decoded alike.

use kernel_logic::runqueue::ThreadState;
use kwab_format::record::{FlightEvent, FlightKind, Stamp};

use super::super::registers::Processor;
use super::super::space::Space;
use super::clock::Clock;
use super::table::Table;

/// Slots of a ring, and bytes of one.
const MOST_SLOTS: u64 = 1 << 14;
const MOST_SLOT: u64 = 256;
/// Words of a slot that have a meaning: time, whose doing, three numbers.
const WORDS: usize = 5;
/// In a tag: the time is a cycle count, not nanoseconds.
const IN_CYCLES: u16 = 1 << 5;
/// Bits of a thread's number, below that of its process.
const LOW: u64 = 0xffff_ffff;

/// What a ring has recorded and how much of that there is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Entries since boot, or since the ring has its owner.
    pub total: u64,
    /// Those that newer ones have replaced.
    pub overwritten: u64,
    /// Those that should be there and are not whole.
    pub torn: u64,
    /// Entries that it holds at most.
    pub capacity: u64,
}

/// A processor's flight recorder.
#[derive(Debug)]
pub struct FlightRing {
    /// Number of the processor.
    pub cpu: u32,
    /// What it has seen.
    pub counts: Counts,
    /// Its events, oldest first.
    pub events: Vec<FlightEvent<'static>>,
}

/// An entry of a ring.
struct Slot {
    number: u64,
    tag: u16,
    words: [u64; WORDS],
}

/// Where the parts of a ring lie.
struct Layout {
    rings: u64,
    stride: u64,
    next: u64,
    slots: u64,
    slot: u64,
    count: u64,
    seal: usize,
    words: usize,
    tag_bits: u32,
}

impl Layout {
    /// `None` where the kernel says nothing, or nothing possible.
    fn of(table: &Table) -> Option<Self> {
        let of_slot = |name: &str, bytes: u64| {
            let at = table.get(name).filter(|at| at.checked_add(bytes).is_some_and(|end| end <= MOST_SLOT))?;
            usize::try_from(at).ok()
        };
        let layout = Self {
            rings: table.get("flight")?,
            stride: table.get("flight.stride")?,
            next: table.get("flight.next")?,
            slots: table.get("flight.slots")?,
            slot: table.get("flight.slot").filter(|slot| *slot <= MOST_SLOT)?,
            count: table.get("flight.count").filter(|count| *count <= MOST_SLOTS)?,
            seal: of_slot("flight.seal", 8)?,
            words: of_slot("flight.words", 8 * WORDS as u64)?,
            tag_bits: table.get("flight.tag_bits").and_then(|bits| u32::try_from(bits).ok())?,
        };
        let ends = [layout.seal + 8, layout.words + 8 * WORDS];
        let fits = ends.iter().all(|end| *end as u64 <= layout.slot);
        (fits && layout.count.is_power_of_two() && (1..=15).contains(&layout.tag_bits)).then_some(layout)
    }
}

/// The rings of all processors; `None` when the kernel does not say where they are, or has none.
pub(super) fn read(
    space: &Space<'_>,
    table: &Table,
    clock: Option<&Clock>,
    processors: &[Processor],
) -> Option<Vec<FlightRing>> {
    let layout = Layout::of(table)?;
    // Rings that lie in each other would be more than the memory that they are read from.
    let size = layout.slot * layout.count;
    if layout.stride < size || size.checked_mul(processors.len() as u64)? > space.held() {
        return None;
    }
    processors.iter().map(|processor| of_cpu(space, &layout, clock, processor.number)).collect()
}

fn of_cpu(space: &Space<'_>, layout: &Layout, clock: Option<&Clock>, cpu: u32) -> Option<FlightRing> {
    let ring = layout.rings.checked_add(layout.stride.checked_mul(u64::from(cpu))?)?;
    let total = space.word(ring.checked_add(layout.next)?)? >> layout.tag_bits;
    let bytes = space.bytes(ring.checked_add(layout.slots)?, (layout.slot * layout.count) as usize)?;
    let mut counts = Counts { total, overwritten: total.saturating_sub(layout.count), torn: 0, capacity: layout.count };
    let (mut events, mut running) = (Vec::new(), None);
    for number in counts.overwritten..total {
        let at = (number % layout.count * layout.slot) as usize;
        let Some(slot) = slot(layout, number, bytes.get(at..)?) else {
            counts.torn += 1;
            continue;
        };
        events.extend(sleep_before(&slot, running, cpu));
        events.push(decode(&slot, running, cpu, clock));
        if slot.tag == FlightKind::CONTEXT_SWITCH.0 {
            running = Some(slot.words[1]);
        }
    }
    Some(FlightRing { cpu, counts, events })
}

/// The entry of this number, if it is whole.
fn slot(layout: &Layout, number: u64, bytes: &[u8]) -> Option<Slot> {
    let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let seal = word(layout.seal)?;
    let tag = (seal & ((1 << layout.tag_bits) - 1)) as u16;
    let mut words = [0; WORDS];
    for (index, to) in words.iter_mut().enumerate() {
        *to = word(layout.words + 8 * index)?;
    }
    (seal >> layout.tag_bits == number && tag != 0).then_some(Slot { number, tag, words })
}

/// A switch does not name the thread that leaves the processor: the switch before it does.
fn decode(slot: &Slot, running: Option<u64>, cpu: u32, clock: Option<&Clock>) -> FlightEvent<'static> {
    let [at, who, a, b, c] = slot.words;
    let kind = FlightKind(slot.tag & !IN_CYCLES);
    let nanos = |cycles: u64| clock.and_then(|clock| clock.at(cycles));
    let ns = if slot.tag & IN_CYCLES == 0 { Some(at) } else { nanos(at) };
    let [a, b, c, d] = match kind {
        FlightKind::CONTEXT_SWITCH => {
            [running.map(|from| from >> 32), Some(who >> 32), running.map(|from| from & LOW), Some(a)]
        }
        FlightKind::WAKE | FlightKind::IDLE_ENTER | FlightKind::IDLE_EXIT => [None; 4],
        FlightKind::IRQ if b != 0 => [Some(a), Some(b), nanos(c), None],
        FlightKind::IRQ | FlightKind::LOCK_TAKEN => [Some(a), None, None, None],
        FlightKind::PAGE_FAULT | FlightKind::MMAP | FlightKind::MPROTECT => [Some(a), Some(b), Some(c), None],
        _ => [Some(a), Some(b), None, None],
    };
    let (pid, tid) = (Some((who >> 32) as u32), Some(who as u32));
    FlightEvent { kind: Some(kind), pid, tid, a, b, c, d, stamp: stamp(slot, cpu, ns), ..FlightEvent::default() }
}

/// A switch away from a thread that went to sleep reads as two events, the sleep first.
fn sleep_before(slot: &Slot, running: Option<u64>, cpu: u32) -> Option<FlightEvent<'static>> {
    let [at, _, left_in, ..] = slot.words;
    let from = running.filter(|_| slot.tag == FlightKind::CONTEXT_SWITCH.0)?;
    ThreadState::from_number(left_in as u8).is_asleep().then(|| FlightEvent {
        kind: Some(FlightKind::SLEEP),
        pid: Some((from >> 32) as u32),
        tid: Some(from as u32),
        a: Some(left_in),
        stamp: stamp(slot, cpu, Some(at)),
        ..FlightEvent::default()
    })
}

fn stamp(slot: &Slot, cpu: u32, ns: Option<u64>) -> Stamp<'static> {
    Stamp { seq: Some(slot.number), cpu: Some(cpu), ns, ..Stamp::default() }
}
