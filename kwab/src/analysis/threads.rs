//! Finds the task of a number, and the frames that its kernel printed for it.
//!
//! A number names a thread, with one exception: Linux has an idle thread of number 0 for each processor. Of those the
//! processor tells which is meant, and the frames of a task stand behind its record.

use std::collections::BTreeMap;

use kwab_format::SectionKind;
use kwab_format::record::{Frame, Task};

use crate::model::{Case, Located, RecordRef};

/// What names one thread: its number, and of an idle thread the processor that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadKey {
    tid: u32,
    cpu: Option<u32>,
}

impl ThreadKey {
    /// The thread with a number, as it was seen on a processor.
    #[must_use]
    pub const fn on(tid: u32, cpu: Option<u32>) -> Self {
        Self { tid, cpu: if tid == 0 { cpu } else { None } }
    }

    /// The thread that a task is.
    #[must_use]
    pub fn of(task: &Task<'_>) -> Option<Self> {
        Some(Self::on(task.tid.or(task.pid)?, task.last_cpu))
    }

    /// The number, which for an idle thread of Linux is 0 on every processor.
    #[must_use]
    pub const fn tid(self) -> u32 {
        self.tid
    }
}

/// The tasks of a dump by their thread; of several with the same the first.
#[derive(Clone, Debug)]
pub struct Tasks<'c, 'a>(BTreeMap<ThreadKey, &'c Located<Task<'a>>>);

impl<'c, 'a> Tasks<'c, 'a> {
    /// Looks at all tasks of a dump.
    #[must_use]
    pub fn of(case: &'c Case<'a>) -> Self {
        let mut tasks = BTreeMap::new();
        for task in &case.tasks {
            if let Some(thread) = ThreadKey::of(task) {
                tasks.entry(thread).or_insert(task);
            }
        }
        Self(tasks)
    }

    /// The task of a thread. One that is idle is found without its processor only where there is one of them.
    #[must_use]
    pub fn get(&self, thread: ThreadKey) -> Option<&'c Located<Task<'a>>> {
        let idle = || self.0.iter().take_while(|(other, _)| other.tid == 0);
        let alone = || idle().next().filter(|_| thread.tid == 0 && idle().count() == 1);
        let unknown = |(other, task): (&ThreadKey, &&'c Located<Task<'a>>)| {
            (thread.cpu.is_none() || other.cpu.is_none()).then_some(*task)
        };
        self.0.get(&thread).copied().or_else(|| alone().and_then(unknown))
    }
}

/// The frames that the kernel printed of its tasks, by the record of the task: the one that they stand behind when it
/// has their number, else the first with it.
#[must_use]
pub fn printed_frames<'c, 'a>(case: &'c Case<'a>) -> BTreeMap<RecordRef, Vec<&'c Located<Frame<'a>>>> {
    let mut first: BTreeMap<u32, RecordRef> = BTreeMap::new();
    for task in &case.tasks {
        if let Some(tid) = task.tid.or(task.pid) {
            first.entry(tid).or_insert(task.at);
        }
    }
    let mut frames: BTreeMap<RecordRef, Vec<&Located<Frame<'_>>>> = BTreeMap::new();
    for frame in case.frames.iter().filter(|frame| frame.at.kind == SectionKind::TASKS) {
        let owner = owner(case, frame).map(|task| task.at);
        let owner = owner.or_else(|| first.get(&frame.tid.or(frame.pid)?).copied());
        if let Some(owner) = owner {
            frames.entry(owner).or_default().push(frame);
        }
    }
    frames
}

/// The task that a printed frame stands behind, when it has the frame's number.
pub(super) fn owner<'c, 'a>(case: &'c Case<'a>, frame: &Located<Frame<'_>>) -> Option<&'c Located<Task<'a>>> {
    let before = case.tasks.partition_point(|task| task.at < frame.at).checked_sub(1)?;
    let is_its = |task: &&Located<Task<'_>>| match frame.tid {
        Some(tid) => task.tid.or(task.pid) == Some(tid),
        None => frame.pid.is_some() && task.pid == frame.pid,
    };
    case.tasks.get(before).filter(is_its)
}

#[cfg(test)]
mod tests {
    use kwab_format::{BootId, DumpId, FileHeader};

    use super::*;
    use crate::analysis::{Postmortem, stacks, text};
    use crate::model::Dump;
    use crate::model::emit::DumpWriter;
    use crate::symbols::Symbols;

    /// Two processors that idle, each with frames of its own, and a thread that sleeps.
    fn machine() -> Dump {
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(9), BootId([1; 16])));
        let threads: [(u32, u32, &[u8]); 3] = [(0, 0, b"swapper/0"), (0, 1, b"swapper/1"), (7, 1, b"sh")];
        for (number, (tid, cpu, comm)) in (0u32..).zip(threads) {
            let task =
                Task { pid: Some(tid), tid: Some(tid), comm: Some(comm), last_cpu: Some(cpu), ..Task::default() };
            writer.put(SectionKind::TASKS, &task);
            for index in 0..=number {
                let addr = Some(0xffff_8000_0000_0000 + u64::from(0x100 * number + index));
                let frame = Frame { trace: Some(number), index: Some(index), addr, ..Frame::default() };
                writer.put(SectionKind::TASKS, &Frame { pid: Some(tid), tid: Some(tid), ..frame });
            }
        }
        Dump::from_bytes(writer.finish().expect("memory")).expect("a dump")
    }

    #[test]
    fn idle_threads_of_one_number_keep_their_frames_apart() {
        let dump = machine();
        let case = dump.case();
        let frames = printed_frames(&case);
        let counts: Vec<_> = case.tasks.iter().map(|task| frames.get(&task.at).map_or(0, Vec::len)).collect();
        assert_eq!(counts, [1, 2, 3]);
        let all = stacks::all(&case, &Symbols::new(), &Postmortem::of(&case));
        let shown: Vec<_> = all.iter().map(|stack| (stack.owners.join("; "), stack.frames.len())).collect();
        let expected = [("task swapper/0[0]", 1), ("task swapper/1[0]", 2), ("task sh[7]", 3)];
        assert_eq!(shown, expected.map(|(owner, count)| (owner.to_owned(), count)));
        let one = stacks::of_task(&case, &Symbols::new(), &Postmortem::of(&case), 0);
        assert_eq!(one.len(), 1, "the frames of one thread, not of all with its number");
    }

    #[test]
    fn a_processor_says_which_idle_thread_is_meant() {
        let dump = machine();
        let case = dump.case();
        let tasks = Tasks::of(&case);
        let name = |tid, cpu| tasks.get(ThreadKey::on(tid, cpu)).map(|task| text(task.comm));
        assert_eq!(name(0, Some(1)).as_deref(), Some("swapper/1"));
        assert_eq!(name(7, Some(0)).as_deref(), Some("sh"), "a thread that has moved");
        assert_eq!((name(0, Some(2)), name(0, None)), (None, None));
    }
}
