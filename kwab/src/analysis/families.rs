//! The children of processes and the calls that threads are in, each found without a walk over all records.
//!
//! A dump of a megabyte can hold ten thousand threads that wait for children, or in calls. Rules that look at each of
//! them build one of these maps and ask it: a scan per thread is quadratic.

use std::collections::{BTreeMap, BTreeSet};

use kwab_format::record::{SyscallRecord, Task, TaskState};

use super::quote::waits_in_vfork;
use crate::model::{Case, Located, RecordRef};

/// The children of one process, as wait4(2) sees them.
#[derive(Debug, Default)]
pub(super) struct Children<'c, 'a> {
    /// Whether one of them has not ended.
    pub(super) any_lives: bool,
    /// The first that has ended.
    pub(super) ended: Option<&'c Located<Task<'a>>>,
}

/// Which processes are children of which.
#[derive(Debug, Default)]
pub(super) struct Families<'c, 'a> {
    children: BTreeMap<u32, Children<'c, 'a>>,
    /// The children that have ended, by their parent and their own process; of several the first.
    ended: BTreeMap<(u32, u32), &'c Located<Task<'a>>>,
}

impl<'c, 'a> Families<'c, 'a> {
    /// Looks at all tasks of a dump.
    pub(super) fn of(case: &'c Case<'a>) -> Self {
        let mut families = Self::default();
        for task in case.tasks.iter().filter(|task| task.pid == task.tid || task.tid.is_none()) {
            let parent = task.ppid.unwrap_or(0);
            let own = families.children.entry(parent).or_default();
            if task.state != Some(TaskState::ZOMBIE) {
                own.any_lives = true;
                continue;
            }
            own.ended.get_or_insert(task);
            if let Some(pid) = task.pid {
                families.ended.entry((parent, pid)).or_insert(task);
            }
        }
        families
    }

    /// The children of a process, if there are any.
    pub(super) fn children(&self, parent: u32) -> Option<&Children<'c, 'a>> {
        self.children.get(&parent)
    }

    /// A child that has ended, by its process.
    pub(super) fn ended(&self, parent: u32, child: u32) -> Option<&'c Located<Task<'a>>> {
        self.ended.get(&(parent, child)).copied()
    }
}

/// Whose memory the children of a process use: what a parent in vfork(2) waits for.
#[derive(Debug, Default)]
pub(super) struct Borrowers<'c, 'a> {
    /// The first task of another process that names a parent.
    first: BTreeMap<Option<u32>, &'c Located<Task<'a>>>,
    /// Parents with the page-table roots of the tasks of other processes that name them and have not ended.
    living: BTreeSet<(Option<u32>, Option<u64>)>,
}

impl<'c, 'a> Borrowers<'c, 'a> {
    /// Looks at all tasks of a dump.
    pub(super) fn of(case: &'c Case<'a>) -> Self {
        let mut all = Self::default();
        for task in case.tasks.iter().filter(|task| task.pid != task.ppid) {
            all.first.entry(task.ppid).or_insert(task);
            if task.state != Some(TaskState::ZOMBIE) {
                all.living.insert((task.ppid, task.page_table_root));
            }
        }
        all
    }

    /// What a parent in vfork waits for has happened: no child uses its memory any more.
    pub(super) fn let_go(&self, task: &Located<Task<'_>>) -> Option<(String, Option<RecordRef>)> {
        if !waits_in_vfork(task) || task.page_table_root.is_none() {
            return None;
        }
        // Of one that lives and whose memory is not told nothing is known.
        let lives_in = |root: Option<u64>| self.living.contains(&(task.pid, root));
        if lives_in(task.page_table_root) || lives_in(None) {
            return None;
        }
        Some(match self.first.get(&task.pid) {
            Some(child) => {
                let state = child.state.and_then(TaskState::name).unwrap_or("there");
                let row = format!("its child {} has released its address space: {state}", child.pid.unwrap_or(0));
                (row, Some(child.at))
            }
            None => ("its child no longer exists".to_owned(), None),
        })
    }
}

/// A process and a thread, as far as a call names them.
type Caller = (Option<u32>, Option<u32>);

/// The calls in progress by process and thread; of several of one the last.
#[derive(Debug)]
pub(super) struct OpenCalls<'c, 'a>(BTreeMap<Caller, (usize, &'c SyscallRecord<'a>)>);

impl<'c, 'a> OpenCalls<'c, 'a> {
    /// Looks at all recorded calls of a dump.
    pub(super) fn of(case: &'c Case<'a>) -> Self {
        let open = case.syscalls.iter().enumerate().filter(|(_, call)| call.in_progress == Some(true));
        Self(open.map(|(number, call)| ((call.pid, call.tid), (number, &call.record))).collect())
    }

    /// The arguments of the call that a thread is in. A call without a thread is one of any thread of its process.
    pub(super) fn of_task(&self, task: &Task<'_>) -> Option<[Option<u64>; 6]> {
        let of = |tid: Option<u32>| self.0.get(&(task.pid, tid));
        let (_, call) = of(None).into_iter().chain(of(task.tid)).max_by_key(|(number, _)| *number)?;
        Some(call.args())
    }
}
