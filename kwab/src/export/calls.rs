//! Collects the system calls of a dump as slices: from the rings of threads, and from entries and returns that a log or
//! a recording tells of.

use std::collections::HashMap;

use kwab_format::{AnyRecord, Records};

use crate::analysis::text;
use crate::causes::Clock;
use crate::model::{Dump, line};

/// A system call on the clock of the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallSlice {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) begin: u64,
    /// Absent while it is in progress.
    pub(super) end: Option<u64>,
    /// Index of the loaded section, and where its record begins there.
    at: (u32, u32),
    pub(super) result: Option<i64>,
}

/// The calls, by thread and begin, and how many were left out for memory.
#[derive(Debug, Default)]
pub(super) struct CallSlices {
    pub(super) calls: Vec<CallSlice>,
    pub(super) left_out: u64,
}

/// What a call takes of the dump's budget: itself, room to grow, and its place among those that have not returned.
const PRICE: u64 = 3 * size_of::<CallSlice>() as u64;

impl CallSlices {
    /// All calls that are loaded.
    pub(super) fn of(dump: &Dump, clock: &Clock) -> Self {
        let mut slices = Self::default();
        let mut open: HashMap<u32, usize> = HashMap::new();
        for (section, loaded) in (0..).zip(&dump.loaded) {
            let mut records = Records::new(&loaded.payload);
            let mut next = 0;
            while let Some(raw) = records.next() {
                let offset = next;
                next = loaded.payload.len() - records.rest().len();
                let Ok(record) = raw.decode() else { continue };
                let Ok(offset) = u32::try_from(offset) else { continue };
                slices.take(&record, (section, offset), clock, &mut open, dump);
            }
        }
        slices.calls.sort_unstable_by_key(|call| (call.pid, call.tid, call.begin, call.at));
        slices
    }

    fn take(
        &mut self,
        record: &AnyRecord<'_>,
        at: (u32, u32),
        clock: &Clock,
        open: &mut HashMap<u32, usize>,
        dump: &Dump,
    ) {
        let Some(begin) = clock.at(&record.stamp()) else { return };
        let pid = line::pid(record).unwrap_or(0);
        let mut put = |tid: u32, end: Option<u64>, result: Option<i64>| {
            let room = dump.file.budget.take(PRICE);
            if room {
                self.calls.push(CallSlice { pid, tid, begin, end, at, result });
            } else {
                self.left_out += 1;
            }
            room
        };
        match record {
            AnyRecord::SyscallRecord(call) => {
                let took = call.duration_ns.or_else(|| call.duration_ticks.map(|ticks| clock.span(ticks)));
                let end = took.map(|took| begin.saturating_add(took).min(crate::causes::clock::LATEST));
                // A call that is over and whose length was not recorded is a moment.
                let end = end.or((call.in_progress == Some(false)).then_some(begin));
                put(call.tid.unwrap_or(pid), end, call.result);
            }
            AnyRecord::SyscallEntry(entry) => {
                let tid = entry.tid.unwrap_or(pid);
                // The return of this entry is not that of an older one, even where there is no room for it.
                let has_room = put(tid, None, None);
                let before = if has_room { open.insert(tid, self.calls.len() - 1) } else { open.remove(&tid) };
                // Its return is lost: it ended before the thread made another.
                if let Some(before) = before.and_then(|before| self.calls.get_mut(before)) {
                    before.end = Some(begin.max(before.begin));
                }
            }
            AnyRecord::SyscallExit(exit) => {
                let entry = open.remove(&exit.tid.unwrap_or(pid)).and_then(|entry| self.calls.get_mut(entry));
                if let Some(call) = entry {
                    (call.end, call.result) = (Some(begin.max(call.begin)), exit.result);
                }
            }
            _ => {}
        }
    }
}

impl CallSlice {
    /// The call's name, and the call as strace would print it.
    pub(super) fn words(&self, dump: &Dump) -> Option<(String, String)> {
        let payload: &[u8] = &dump.loaded.get(self.at.0 as usize)?.payload;
        let raw = Records::new(payload.get(self.at.1 as usize..)?).next()?;
        let record = raw.decode().ok()?;
        let (nr, name) = match &record {
            AnyRecord::SyscallRecord(call) => (call.nr, call.name),
            AnyRecord::SyscallEntry(call) => (call.nr, call.name),
            _ => return None,
        };
        let name = name.map_or_else(|| format!("syscall {}", nr.unwrap_or(-1)), |name| text(Some(name)));
        Some((name, line::summary(&record, raw)))
    }
}

#[cfg(test)]
mod tests {
    use kwab_format::record::{Stamp, SyscallEntry, SyscallExit};
    use kwab_format::{BootId, DumpId, FileHeader, SectionKind};

    use super::*;
    use crate::model::emit::DumpWriter;

    #[test]
    fn the_return_of_a_call_without_room_is_not_given_to_the_one_before() {
        let stamp = |ns| Stamp { ns: Some(ns), ..Stamp::default() };
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        for (ns, nr) in [(10, 1), (20, 2)] {
            let entry =
                SyscallEntry { pid: Some(5), tid: Some(5), nr: Some(nr), stamp: stamp(ns), ..Default::default() };
            writer.put(SectionKind::EVENTS, &entry);
        }
        let exit = SyscallExit { pid: Some(5), tid: Some(5), result: Some(-7), stamp: stamp(30), ..Default::default() };
        writer.put(SectionKind::EVENTS, &exit);
        let dump = Dump::from_bytes(writer.finish().unwrap()).unwrap();
        let clock = Clock::of(&dump);
        let told = |slices: &CallSlices| -> Vec<_> {
            slices.calls.iter().map(|call| (call.begin, call.end, call.result)).collect()
        };
        let before = dump.file.budget.left();
        let slices = CallSlices::of(&dump, &clock);
        assert_eq!(told(&slices), [(10, Some(20), None), (20, Some(30), Some(-7))]);
        assert!(dump.file.budget.take(dump.file.budget.left() - PRICE), "room for one call");
        let slices = CallSlices::of(&dump, &clock);
        assert_eq!((told(&slices), slices.left_out), (vec![(10, Some(20), None)], 1));
        assert!(before > 3 * PRICE);
    }
}
