//! Exit of threads and processes: releases what they hold and notifies the parent.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use kernel_logic::signal::{Cause, SIG_IGN, SigInfo, code, sa, sig};

use super::process::{Ended, Process};
use super::{Above, Pid, Task, clock, current, tree};
use crate::log;
use crate::sched::{self, Schedulable as _};
use crate::task::signal;
use crate::time;
use crate::trace;
use crate::trace::span::{Id, span};
use crate::upper::Kwab;

/// `exit_group`: ends the whole process with this code.
pub fn exit_process(code: u8) -> ! {
    let me = current();
    me.process.begin_end(Ended::Exited(code));
    exit_thread(code)
}

/// Ends the running thread; the last one ends the process with `code`, unless the process already has a verdict.
pub fn exit_thread(code: u8) -> ! {
    let me = current();
    let whole = span(Id::Exit);
    // Else the stacks of threads that ended before stay until the next one begins, which may be never.
    machine::thread::trim_stacks();
    // Before its memory is let go: from here on other processors need not tell this one what they unmap.
    let alone = me.process.threads.count() == 1;
    trace::flight::exit(i32::from(code) << 8, alone);
    release_memory(&me);
    let files = span(Id::ExitFiles);
    // Files before the family learns of it: a parent that waited may count on them being closed.
    drop(me.files.set(None));
    drop(me.fs.set(None));
    drop(files);
    leave(&me, code);
    drop(whole);
    sched::exit()
}

/// Clears the thread id, wakes robust futex waiters, lets go of the memory.
fn release_memory(me: &super::Thread) {
    let _span = span(Id::ExitMemory);
    if me.mm().is_some() {
        <Kwab as Above>::release_futexes(me, false);
    }
    me.rseq.addr.store(0, Ordering::Relaxed);
    let mm = me.mm.set(None);
    if let Some(mm) = &mm {
        mm.audit("exit");
        me.process.accounting.note_resident(mm);
    }
    me.set_space(None);
    drop(mm);
    me.finish_vfork();
}

fn leave(me: &Task, code: u8) {
    let _span = span(Id::ExitFamily);
    let process = me.process.clone();
    let counted = me.counted.lock().take();
    me.signals.pending.clear();
    // Threads that live for less than a tick are looked at too.
    me.ticked();
    for child in tree::remove_thread(&process, me.tid()) {
        announce_parents_death(&child);
    }
    if process.threads.remove(me, || process.accounting.add_thread(&clock::thread_usage(me))) == 0 {
        process.accounting.keep_charge(counted);
        end(&process, me, code);
    }
}

/// The last thread has left: becomes a zombie, or nothing at all if the parent does not care.
fn end(process: &Arc<Process>, me: &Task, code: u8) {
    let ended = process.life.end_with(code);
    if process.is_init() {
        panic!("Attempted to kill init! exitcode={:#010x}", ended.wait_status());
    }
    let (status, by_signal) = match ended {
        Ended::Exited(code) => (i32::from(code), false),
        Ended::Killed { signal, .. } => (i32::from(signal), true),
    };
    trace::event::exit(process.pid, status, by_signal);
    process.itimers.clear();
    process.timers.clear();
    leave_session(process);
    orphan_children(process);
    notify_parent(process, me, ended);
}

/// A dying session leader hangs up its terminal's foreground group.
fn leave_session(process: &Arc<Process>) {
    let session = process.family.session();
    if session.id == process.pid {
        let terminal = session.terminal.lock().take();
        if let Some(terminal) = terminal {
            <Kwab as Above>::leader_ended(&terminal, &session);
        }
    }
}

fn orphan_children(process: &Arc<Process>) {
    while let Some((heir, orphans)) = tree::reparent_children(process) {
        for orphan in &orphans {
            announce_parents_death(orphan);
            sched::breathe();
        }
        hang_up_orphaned(&orphans.iter().map(|orphan| orphan.pgid()).collect(), 0);
        if orphans.iter().any(|orphan| orphan.is_zombie()) {
            tell_of_child(&heir, SigInfo::kernel(sig::CHLD));
        }
    }
    if let Some(parent) = tree::process(process.ppid())
        && parent.pgid() != process.pgid()
        && parent.sid() == process.sid()
    {
        hang_up_orphaned(&BTreeSet::from([process.pgid()]), process.pid);
    }
}

/// Sends the signals that threads of `child` asked for when the thread that made it ends (`PR_SET_PDEATHSIG`).
fn announce_parents_death(child: &Arc<Process>) {
    let me = current();
    for thread in child.threads.list() {
        let wanted = thread.parent_death_signal.load(Ordering::Relaxed) as u8;
        if wanted != 0 && signal::permit::permit(&me, child, wanted).is_ok() {
            // The child may be ending itself.
            let _ = signal::send_process(child, SigInfo::kernel(wanted));
        }
    }
}

/// Of these groups, those that have just become orphaned and have stopped members get `SIGHUP` and `SIGCONT`
/// (setpgid(2)).
fn hang_up_orphaned(groups: &BTreeSet<Pid>, without: Pid) {
    let members = tree::left_stopped(groups, without);
    for signal in [sig::HUP, sig::CONT] {
        for member in &members {
            // It may end meanwhile.
            let _ = signal::send_process(member, SigInfo::kernel(signal));
            sched::breathe();
        }
    }
}

fn notify_parent(process: &Arc<Process>, me: &Task, ended: Ended) {
    let parent = tree::process(process.ppid());
    let exit_signal = process.family.signal_at_end(parent.as_deref());
    let disposition = parent.as_ref().map(|parent| parent.signals.action(sig::CHLD));
    let careless =
        exit_signal == sig::CHLD && disposition.is_some_and(|d| d.handler == SIG_IGN || d.flags & sa::NOCLDWAIT != 0);
    if careless || parent.is_none() {
        // Out of the tree before it becomes a zombie, so that it cannot be waited for.
        super::wait::reap(process);
    }
    process.life.become_zombie(ended);
    let Some(parent) = parent else {
        log::warn!("process {} ended without a parent", process.pid);
        return;
    };
    if (1..=64).contains(&exit_signal) {
        let info = child_info(process, me, ended, exit_signal);
        tell_of_child(&parent, info);
    } else {
        parent.life.child_changed().wake_all();
    }
}

fn child_info(process: &Process, me: &Task, ended: Ended, signal: u8) -> SigInfo {
    let (code, status) = match ended {
        Ended::Exited(code) => (code::CLD_EXITED, i32::from(code)),
        Ended::Killed { signal, core: false } => (code::CLD_KILLED, i32::from(signal)),
        Ended::Killed { signal, core: true } => (code::CLD_DUMPED, i32::from(signal)),
    };
    let usage = process.accounting.ended_threads();
    let cause = Cause::Child {
        pid: process.pid,
        uid: me.creds.with(|creds| creds.uid),
        status,
        utime: time::to_ticks(usage.user),
        stime: time::to_ticks(usage.system),
    };
    SigInfo { signal, code, errno: 0, cause }
}

fn tell_of_child(parent: &Arc<Process>, info: SigInfo) {
    // A full queue loses only the detail: the signal itself stays pending.
    let _ = signal::send_process(parent, info);
    parent.life.child_changed().wake_all();
}
