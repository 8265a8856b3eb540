//! Writes the threads and locks of our kernel as the records that its own dump has of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use kwab_format::record::{
    Arch, Frame, FrameTrust, Lock, LockKind, LockWait, Memory, MemoryKind, Reg, RegId, RegisterRole, Registers, Stamp,
    Task, TaskState,
};
use kwab_format::{List, SectionKind};
use linux_abi::syscalls;

use super::Ours;
use super::tasks::{Saved, Thread};
use crate::model::emit::DumpWriter;

/// Writes the threads, each with its saved registers and stack.
pub(in crate::capture) fn put_threads<W: Write>(writer: &mut DumpWriter<W>, ours: &Ours) {
    let mut trace = 1;
    for thread in &ours.threads {
        writer.put(SectionKind::TASKS, &record(thread, ours.now));
        let Some(saved) = &thread.saved else { continue };
        for (index, addr) in thread.frames.iter().enumerate() {
            let record = Frame {
                trace: Some(trace),
                index: Some(index as u32),
                addr: Some(*addr),
                trust: Some(FrameTrust::FRAME_POINTER),
                pid: Some(thread.pid),
                tid: Some(thread.tid),
                ..Frame::default()
            };
            writer.put(SectionKind::TASKS, &record);
        }
        trace += 1;
        switched_out(writer, thread, saved);
    }
}

/// Writes spin locks with their holders and waiters, then the mutexes for which threads sleep.
pub(in crate::capture) fn put_locks<W: Write>(writer: &mut DumpWriter<W>, ours: &Ours) {
    for held in &ours.held {
        let record = Lock {
            addr: held.addr,
            name: held.name.as_deref().map(str::as_bytes),
            kind: Some(LockKind::SPIN),
            holder_cpu: Some(held.cpu),
            location: held.taken.as_deref().map(str::as_bytes),
            ..Lock::default()
        };
        writer.put(SectionKind::LOCKS, &record);
    }
    for awaited in &ours.awaited {
        let record = LockWait {
            addr: Some(awaited.addr),
            waiter_cpu: Some(awaited.cpu),
            location: awaited.place.as_deref().map(str::as_bytes),
            kind: Some(LockKind::SPIN),
            ..LockWait::default()
        };
        writer.put(SectionKind::LOCKS, &record);
    }
    let threads: BTreeMap<u32, &Thread> = ours.threads.iter().map(|thread| (thread.tid, thread)).collect();
    let mut told = BTreeSet::new();
    for thread in &ours.threads {
        let Some((on, addr)) = thread.waits_on.zip(thread.object) else { continue };
        if told.insert(addr)
            && let Some(owner) = threads.get(&on)
        {
            let (holder_pid, holder_tid) = (Some(owner.pid), Some(owner.tid));
            let kind = Some(LockKind::MUTEX);
            writer.put(SectionKind::LOCKS, &Lock { addr: Some(addr), kind, holder_pid, holder_tid, ..Lock::default() });
        }
        let record = LockWait {
            addr: Some(addr),
            waiter_pid: Some(thread.pid),
            waiter_tid: Some(thread.tid),
            waited_ns: since(thread, ours.now),
            kind: Some(LockKind::MUTEX),
            ..LockWait::default()
        };
        writer.put(SectionKind::LOCKS, &record);
    }
}

/// How long a thread has been in its state.
fn since(thread: &Thread, now: Option<u64>) -> Option<u64> {
    now.zip(thread.since).map(|(now, since)| now.saturating_sub(since))
}

fn switched_out<W: Write>(writer: &mut DumpWriter<W>, thread: &Thread, saved: &Saved) {
    const IDS: [RegId; 8] =
        [RegId::RIP, RegId::RSP, RegId::RBP, RegId::RBX, RegId::R12, RegId::R13, RegId::R14, RegId::R15];
    let values = saved.pointers.into_iter().chain(saved.others);
    let regs: Vec<Reg<'_>> = IDS.into_iter().zip(values).map(|(id, value)| Reg::new(id, value)).collect();
    let record = Registers {
        role: Some(RegisterRole::SWITCHED_OUT),
        pid: Some(thread.pid),
        tid: Some(thread.tid),
        arch: Some(Arch::X86_64),
        regs: Some(List::new(&regs)),
        ..Registers::default()
    };
    writer.put(SectionKind::TASKS, &record);
    if !thread.stack.is_empty() {
        let record = Memory {
            kind: Some(MemoryKind::KERNEL_STACK),
            vaddr: Some(saved.pointers[1]),
            tid: Some(thread.tid),
            bytes: Some(&thread.stack),
            label: Some(b"task"),
            ..Memory::default()
        };
        writer.put(SectionKind::TASKS, &record);
    }
}

fn record(thread: &Thread, now: Option<u64>) -> Task<'_> {
    let state = thread.state;
    let is_asleep = matches!(state, Some(TaskState::SLEEPING | TaskState::BLOCKED | TaskState::STOPPED));
    let call = thread.user.and_then(|(.., call)| call);
    let name = call.and_then(syscalls::by_number).map(|call| call.name.as_bytes());
    Task {
        pid: Some(thread.pid),
        tid: Some(thread.tid),
        ppid: thread.parent,
        comm: thread.name.as_deref(),
        state,
        wait_reason: name.filter(|_| is_asleep),
        wait_object: thread.object,
        wait_tid: thread.waits_on,
        wait_object_name: thread.reason.as_deref().map(str::as_bytes),
        deadline_ns: thread.deadline,
        state_ns: since(thread, now),
        last_cpu: thread.cpu,
        kernel_sp: thread.saved.map(|saved| saved.pointers[1]),
        kernel_ip: thread.saved.map(|saved| saved.pointers[0]),
        user_sp: thread.user.map(|(_, sp, _)| sp),
        user_ip: thread.user.map(|(ip, ..)| ip),
        syscall: call.map(u64::cast_signed),
        run_ns: thread.ran,
        priority: thread.nice.map(i64::from),
        page_table_root: thread.root,
        pending: thread.signals.map(|(pending, _)| pending),
        blocked: thread.signals.map(|(_, blocked)| blocked),
        stamp: Stamp { ns: now, ..Stamp::default() },
        ..Task::default()
    }
}
