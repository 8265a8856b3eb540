//! Replays the recorded calls of a process and finds the answers that cannot be right.
//!
//! A call's answer is wrong when the call itself does not allow it ([`results`], [`refused`]), or when it contradicts
//! what the kernel answered before: about the address space, by the kernel's own set of mappings, and at the end by the
//! map of the dump ([`map`]); about descriptors, by the kernel's own table ([`descriptors`]); about the thread pointer,
//! by the register at the death ([`thread_pointer`]). What the ring does not hold is not known and contradicts
//! nothing. A process whose threads share what is replayed is left out: calls of threads that ended are not in a dump.

mod descriptors;
mod map;
mod refused;
mod results;
mod thread_pointer;

use std::collections::{BTreeMap, BTreeSet};

use kwab_format::SectionKind;
use kwab_format::record::{CauseKind, SyscallRecord, Vma};
use linux_abi::Errno;
use linux_abi::syscalls::{self, Syscall};

use super::context::Context;
use crate::model::call::{self, Call};
use crate::model::{Located, RecordRef};

/// Contradictions that are kept.
const MOST: usize = 4;

/// An answer of the kernel that cannot be right.
#[derive(Clone, Debug)]
pub(super) struct WrongAnswer {
    /// The process that got it.
    pub(super) pid: u32,
    /// Number of the call.
    pub(super) nr: i64,
    /// The call with its answer, as strace writes it.
    pub(super) call: String,
    /// Why it is wrong.
    pub(super) why: String,
    /// The error that it answered, if it failed.
    pub(super) errno: Option<Errno>,
    /// The record of the call.
    pub(super) at: RecordRef,
}

/// A call that was answered, of a kind that is known.
struct Answered<'r> {
    call: &'static Syscall,
    args: [u64; 6],
    result: i64,
    record: &'r Located<SyscallRecord<'r>>,
}

impl Answered<'_> {
    /// `close(3) = 0`.
    fn said(&self) -> String {
        let SyscallRecord { nr, name, .. } = self.record.record;
        let call = Call { nr, name, args: self.record.args(), texts: self.record.texts(), result: self.record.result };
        format!("{} = {}", call::arguments(&call), call::result(nr, self.result))
    }

    fn errno(&self) -> Option<Errno> {
        Errno::from_result(self.result)
    }

    fn wrong(&self, why: String) -> WrongAnswer {
        let (nr, pid) = (i64::from(self.call.nr), self.record.pid.unwrap_or(0));
        WrongAnswer { pid, nr, call: self.said(), why, errno: self.errno(), at: self.record.at }
    }
}

/// The answers that cannot be right: of the process that died, or of all when the machine hangs.
pub(super) fn wrong_answers(ctx: &Context<'_, '_>) -> Vec<WrongAnswer> {
    // A log tells some calls, not all of them in their order, and a machine that runs goes on while it is dumped.
    let is_live = ctx.death.kind == Some(CauseKind::LIVE);
    if is_live || ctx.case.is_of_log() || !ctx.case.weakness(&[SectionKind::SYSCALLS]).is_empty() {
        return Vec::new();
    }
    let own = ctx.death.pid.filter(|_| !ctx.is_hang());
    let mut processes: BTreeMap<u32, Process<'_>> = BTreeMap::new();
    for record in &ctx.case.syscalls {
        if let Some(pid) = record.pid.filter(|pid| own.is_none_or(|own| own == *pid)) {
            processes.entry(pid).or_default().records.push(record);
        }
    }
    for task in &ctx.case.tasks {
        if let Some(process) = task.pid.and_then(|pid| processes.get_mut(&pid)) {
            process.threads.insert(task.tid);
        }
    }
    // A map that is damaged or did not fit decides nothing.
    let is_whole = ctx.case.weakness(&[SectionKind::MEMORY_MAP]).is_empty();
    for vma in ctx.case.vmas.iter().filter(|_| is_whole) {
        if let Some(process) = vma.pid.and_then(|pid| processes.get_mut(&pid)) {
            process.vmas.push(vma);
        }
    }
    let base = thread_pointer::wrong_answer(ctx);
    base.into_iter().chain(processes.into_values().flat_map(Process::wrong_answers)).take(MOST).collect()
}

/// What a dump has of a process.
#[derive(Default)]
struct Process<'c> {
    records: Vec<&'c Located<SyscallRecord<'c>>>,
    threads: BTreeSet<Option<u32>>,
    vmas: Vec<&'c Located<Vma<'c>>>,
}

impl Process<'_> {
    fn wrong_answers(mut self) -> Vec<WrongAnswer> {
        let records = self.records.split_off(self.records.len().saturating_sub(RECENT));
        let rows: Vec<Answered<'_>> = records.iter().filter_map(|record| row(record)).collect();
        let mut found: Vec<WrongAnswer> = rows.iter().filter_map(wrong_alone).take(MOST).collect();
        let callers: BTreeSet<_> = records.iter().map(|record| record.tid).collect();
        let is_alone = self.threads.len() <= 1 && callers.len() <= 1;
        // What a call that is not replayed did to the process is not known.
        let is_known = |record: &&Located<SyscallRecord<'_>>| row(record).is_some() || !has_answer(record);
        if is_alone && records.iter().all(is_known) && !rows.iter().any(shares) {
            // A call that did not return may have changed the map in part.
            if records.last().is_some_and(|last| last.result.is_none()) {
                self.vmas.clear();
            }
            self.vmas.sort_unstable_by_key(|vma| vma.start);
            found.extend(map::wrong_answers(&self.vmas, &rows));
            found.extend(descriptors::wrong_answers(&rows));
        }
        found
    }
}

/// An answer that is wrong whatever was called before.
fn wrong_alone(row: &Answered<'_>) -> Option<WrongAnswer> {
    let why = results::why(row).or_else(|| refused::why(row))?;
    Some(row.wrong(why))
}

/// Calls of a process that are replayed: more than a thread's ring holds.
const RECENT: usize = 256;

/// A record of a call that was answered.
fn row<'r>(record: &'r Located<SyscallRecord<'r>>) -> Option<Answered<'r>> {
    let call = syscalls::by_number(u64::try_from(record.nr?).ok()?)?;
    let all = record.args();
    // An argument that the call has and the record does not is not known.
    let known = all.iter().take(call.args.len()).all(Option::is_some);
    known.then_some(Answered { call, args: all.map(|arg| arg.unwrap_or(0)), result: record.result?, record })
}

/// Whether a call was answered, and its answer was recorded; that of getpid and its like is not.
fn has_answer(record: &SyscallRecord<'_>) -> bool {
    record.result.is_some() || record.arg0.is_some() && record.in_progress == Some(false)
}

/// Flags of clone(2).
const CLONE_VM: u64 = 0x100;
const CLONE_FILES: u64 = 0x400;
const CLONE_VFORK: u64 = 0x4000;

/// Whether a call makes a thread that changes what the calls of its process are about.
fn shares(row: &Answered<'_>) -> bool {
    let flags = row.args[0];
    match row.call.name {
        "clone3" => true,
        // A parent waits in vfork until its child has left the memory.
        "clone" => flags & CLONE_FILES != 0 || (flags & CLONE_VM != 0 && flags & CLONE_VFORK == 0),
        _ => false,
    }
}
