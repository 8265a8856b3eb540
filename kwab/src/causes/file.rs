//! Concludes what caused what in a file whose sections are read one at a time.

use std::ops::Deref;

use kwab_format::record::{Cpu, Identity, SpanProfile, Stamp, SyscallProfile};
use kwab_format::{Fields as _, RawRecord, RecordType as _, Records, SectionKind};

use super::{Causes, Clock, Moments, clock};
use crate::model::DumpFile;
use crate::model::payloads::Payloads;

impl Causes {
    /// Reads the events of a file and pairs them. The moments name sections by their index in [`DumpFile::sections`].
    #[must_use]
    pub fn of_file<F: Deref<Target = DumpFile>>(payloads: &Payloads<F>) -> Self {
        let file = payloads.file();
        let kind = |index: usize| file.sections[index].header.kind;
        let timed: Vec<usize> = (0..file.sections.len()).filter(|index| clock::is_timed(kind(*index))).collect();
        let telling = (0..file.sections.len()).filter(|index| kind(*index) == SectionKind::IDENTITY);
        let (mut facts, mut lost) = (Facts::default(), false);
        for index in telling.chain(timed.iter().copied()) {
            match payloads.get(index) {
                Ok(payload) => Records::new(&payload).for_each(|raw| facts.read(raw, clock::is_timed(kind(index)))),
                Err(_) => lost |= kind(index) == SectionKind::FLIGHT,
            }
        }
        let stamps = [facts.both, facts.time, facts.earliest];
        let mut moments = Moments::new(Clock::of_stamps(facts.hertz, stamps.into_iter().flatten()), &file.budget);
        for index in timed {
            if let (Ok(number), Ok(payload)) = (u32::try_from(index), payloads.get(index)) {
                moments.read(number, kind(index), &payload);
            }
        }
        if lost || facts.processors.iter().any(|number| !moments.has_processor(*number)) {
            moments.lose_all();
        }
        Self::paired(moments)
    }
}

/// What decides the clock, and which processors the machine has.
#[derive(Default)]
struct Facts {
    hertz: Option<u64>,
    /// The first stamp in nanoseconds and ticks.
    both: Option<Stamp<'static>>,
    /// A stamp in nanoseconds.
    time: Option<Stamp<'static>>,
    /// The earliest stamp in ticks.
    earliest: Option<Stamp<'static>>,
    processors: Vec<u32>,
}

impl Facts {
    fn read(&mut self, raw: RawRecord<'_>, is_event: bool) {
        let told = match raw.kind {
            Identity::KIND => Identity::decode(raw.body).ok().and_then(|(one, _)| one.tsc_hz),
            SpanProfile::KIND => SpanProfile::decode(raw.body).ok().and_then(|(one, _)| one.tsc_freq_hz),
            SyscallProfile::KIND => SyscallProfile::decode(raw.body).ok().and_then(|(one, _)| one.tsc_freq_hz),
            _ => None,
        };
        self.hertz = self.hertz.or(told.filter(|hertz| *hertz > 0));
        if raw.kind == Cpu::KIND {
            self.processors.extend(Cpu::decode(raw.body).ok().and_then(|(cpu, _)| cpu.number));
        }
        let Some(stamp) = is_event.then(|| raw.decode().ok()).flatten().map(|record| clock::stamp_of(&record)) else {
            return;
        };
        let plain = Stamp { ns: stamp.ns, tsc: stamp.tsc, ..Stamp::default() };
        let slot = match (stamp.ns, stamp.tsc) {
            (Some(_), Some(_)) => &mut self.both,
            (Some(_), None) => &mut self.time,
            (None, Some(tsc)) if self.earliest.is_none_or(|before| before.tsc > Some(tsc)) => {
                self.earliest = Some(plain);
                return;
            }
            _ => return,
        };
        slot.get_or_insert(plain);
    }
}
