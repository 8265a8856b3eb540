//! Writes the threads and locks of our kernel as the records that its own dump has of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use kwab_format::record::{
    Arch, Cause, Drops, Frame, FrameTrust, Lock, LockKind, LockWait, Memory, MemoryKind, Reg, RegId, RegisterRole,
    Registers, StackBounds, Stamp, Task, TaskState,
};
use kwab_format::{List, SectionKind};
use linux_abi::syscalls;

use super::Ours;
use super::death::{Death, Set, Trap};
use super::flight::Counts;
use super::tasks::{Saved, Thread};
use crate::decode::exception_name;
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

/// Writes the last system calls of each thread.
pub(in crate::capture) fn put_calls<W: Write>(writer: &mut DumpWriter<W>, ours: &Ours) {
    for thread in &ours.threads {
        // A thread of the kernel makes none.
        let Some(calls) = thread.calls.as_ref().filter(|calls| !calls.calls.is_empty()) else { continue };
        for call in &calls.calls {
            writer.put(SectionKind::SYSCALLS, &call.record((thread.pid, thread.tid), ours.clock.as_ref()));
        }
        let pid = Some(thread.pid);
        writer.put(SectionKind::SYSCALLS, &Drops { pid, ..drops(b"system calls", calls.counts) });
    }
}

/// Writes the flight recorder of each processor.
pub(in crate::capture) fn put_flight<W: Write>(writer: &mut DumpWriter<W>, ours: &Ours) {
    for ring in &ours.flight {
        ring.events.iter().for_each(|event| writer.put(SectionKind::FLIGHT, event));
        let name = format!("flight of cpu {}", ring.cpu);
        writer.put(SectionKind::FLIGHT, &drops(name.as_bytes(), ring.counts));
    }
}

fn drops(recorder: &[u8], counts: Counts) -> Drops<'_> {
    Drops {
        recorder: Some(recorder),
        total: Some(counts.total),
        overwritten: Some(counts.overwritten),
        dropped: Some(counts.torn),
        capacity: Some(counts.capacity),
        ..Drops::default()
    }
}

/// Writes what the kernel died of.
pub(in crate::capture) fn put_death<W: Write>(writer: &mut DumpWriter<W>, ours: &Ours, death: &Death) {
    let thread = running_on(ours, death.cpu);
    let program = thread.filter(|thread| thread.user.is_some());
    let (pid, tid) = (program.map(|thread| thread.pid), program.map(|thread| thread.tid));
    let (file, line, column) = &death.place;
    let record = Cause {
        kind: Some(death.kind),
        message: Some(death.message.trim_ascii_end()).filter(|text| !text.is_empty()),
        file: Some(file.as_slice()).filter(|file| !file.is_empty()),
        source_line: Some(*line).filter(|line| *line != 0),
        column: Some(*column).filter(|column| *column != 0),
        pid,
        tid,
        comm: thread.and_then(|thread| thread.name.as_deref()),
        fault_addr: death.fault_addr(),
        ip: Some(death.register(RegId::RIP)),
        sp: Some(death.register(RegId::RSP)),
        vector: death.trap.map(|trap| u32::from(trap.vector)),
        exception: death.trap.and_then(|trap| exception_name(trap.vector.into())).map(|(_, name)| name.as_bytes()),
        error_code: death.trap.map(|trap| trap.error),
        syscall: program.and_then(|thread| thread.user?.2).map(u64::cast_signed),
        in_kernel: Some(death.in_kernel()),
        stamp: Stamp { cpu: Some(death.cpu), ns: ours.now, ..Stamp::default() },
        ..Cause::default()
    };
    writer.put(SectionKind::CAUSE, &record);
    for (index, addr) in death.frames.iter().enumerate() {
        let trust = if index == 0 { FrameTrust::EXACT } else { FrameTrust::FRAME_POINTER };
        let (trace, index) = (Some(0), Some(index as u32));
        let record = Frame { trace, index, addr: Some(*addr), trust: Some(trust), ..Frame::default() };
        writer.put(SectionKind::CAUSE, &record);
    }
    set(writer, RegisterRole::FAULT, (pid, tid), death.cpu, &death.registers, death.trap);
    for (cpu, registers) in ours.stopped.iter().filter(|(cpu, _)| *cpu != death.cpu) {
        let thread = running_on(ours, *cpu).filter(|thread| thread.user.is_some());
        let whose = (thread.map(|thread| thread.pid), thread.map(|thread| thread.tid));
        set(writer, RegisterRole::STOPPED, whose, *cpu, registers, None);
    }
    pieces(writer, death, thread.map(|thread| thread.tid));
    if let Some(thread) = thread
        && let Some((low, high)) = thread.bounds
    {
        let (label, tid) = (Some(&b"thread"[..]), Some(thread.tid).filter(|tid| *tid != 0));
        let (low, high, guard) = (Some(low), Some(high), ours.guard);
        let record = StackBounds { label, low, high, guard, tid, ..StackBounds::default() };
        writer.put(SectionKind::STACKS, &record);
    }
}

/// Writes the code and the stack at the registers of a death.
fn pieces<W: Write>(writer: &mut DumpWriter<W>, death: &Death, tid: Option<u32>) {
    let ip = death.register(RegId::RIP);
    let of = |kind, (start, bytes): &(u64, Vec<u8>)| (!bytes.is_empty()).then_some((kind, *start, bytes.clone()));
    let (code, stack) = (of(MemoryKind::CODE, &death.code), of(MemoryKind::KERNEL_STACK, &death.stack));
    for (kind, start, bytes) in code.into_iter().chain(stack) {
        let is_code = kind == MemoryKind::CODE;
        let record = Memory {
            kind: Some(kind),
            vaddr: Some(start),
            tid: tid.filter(|tid| *tid != 0 && !is_code),
            bytes: Some(&bytes),
            marked: is_code.then(|| ip.saturating_sub(start)),
            label: Some(&b"thread"[..]).filter(|_| !is_code),
            ..Memory::default()
        };
        writer.put(SectionKind::STACKS, &record);
    }
}

/// The thread on a processor.
pub(in crate::capture) fn running_on(ours: &Ours, cpu: u32) -> Option<&Thread> {
    ours.threads.iter().find(|thread| thread.runs && thread.cpu == Some(cpu))
}

fn set<W: Write>(
    writer: &mut DumpWriter<W>,
    role: RegisterRole,
    (pid, tid): (Option<u32>, Option<u32>),
    cpu: u32,
    registers: &Set,
    trap: Option<Trap>,
) {
    let regs: Vec<Reg<'_>> = registers.iter().map(|(id, value)| Reg::new(*id, *value)).collect();
    let record = Registers {
        role: Some(role),
        pid,
        tid,
        arch: Some(Arch::X86_64),
        vector: trap.map(|trap| u32::from(trap.vector)),
        error_code: trap.map(|trap| trap.error),
        regs: Some(List::new(&regs)),
        stamp: Stamp { cpu: Some(cpu), ..Stamp::default() },
        ..Registers::default()
    };
    writer.put(SectionKind::REGISTERS, &record);
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
