//! Job control: which session a terminal controls, and which of its process groups may use it now (credentials(7),
//! setsid(2), tcsetpgrp(3), "Job control" of POSIX 11.1).

use alloc::sync::Arc;

use kernel_logic::signal::{Cause, SIG_IGN, SigInfo, sig};
use linux_abi::Errno;
use linux_abi::flags::file::O_NOCTTY;
use linux_abi::numbers::SI_KERNEL;

use super::{Control, Tty};
use crate::fs::file::{File, O_ACCMODE};
use crate::task::creds::cap;
use crate::task::signal;
use crate::task::{self, Pid, Process, Task, tree};

/// Makes `tty`, opened with `flags`, the caller's controlling terminal if it leads a session without one and `tty` is
/// free. Not for one that may only write to it: it could read by opening `/dev/tty`, and type.
pub(super) fn adopt_if_free(tty: &Arc<Tty>, flags: u32) {
    let reads = matches!(flags & O_ACCMODE, 0 | 2);
    let process = &task::current().process;
    if reads && flags & O_NOCTTY as u32 == 0 && process.sid() == process.pid {
        // Taken already, by this session or another: opening it is fine all the same.
        let _ = adopt(tty, process, Claim::Free);
    }
}

/// TIOCSCTTY through `file`: EPERM unless the caller leads a session without terminal and the terminal is free, or the
/// caller may `steal` it; and for a caller that may only write to it.
pub(super) fn adopt_on_request(tty: &Arc<Tty>, file: &File, steal: bool) -> Result<(), Errno> {
    let task = task::current();
    let privileged = task.creds.with(|creds| creds.capable(cap::SYS_ADMIN));
    let claim = match (privileged, steal, file.is_readable()) {
        (true, true, _) => Claim::Any,
        (true, false, _) | (false, _, true) => Claim::Free,
        (false, _, false) => Claim::Own,
    };
    adopt(tty, &task.process, claim)
}

/// Which terminals may be adopted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// None but the one that the session has already.
    Own,
    /// One that controls no session.
    Free,
    /// Also that of another session, which loses it.
    Any,
}

fn adopt(tty: &Arc<Tty>, process: &Process, claim: Claim) -> Result<(), Errno> {
    let session = process.family.session();
    if session.id != process.pid {
        return Err(Errno::EPERM);
    }
    // Locked until the terminal is entered: of two that threads adopt at once, the one that lost would keep the number
    // of this session when it is another's.
    let mut own = session.terminal.lock();
    if let Some(own) = &*own {
        return if Arc::ptr_eq(own, tty) { Ok(()) } else { Err(Errno::EPERM) };
    }
    let mut control = tty.control.lock();
    if claim == Claim::Own || (control.session != 0 && claim != Claim::Any) {
        return Err(Errno::EPERM);
    }
    let robbed = control.session;
    *control = Control { session: session.id, foreground: process.pgid() };
    drop(control);
    *own = Some(tty.clone());
    drop(own);
    if robbed != 0 {
        take_from(tty, robbed);
    }
    Ok(())
}

/// TIOCNOTTY: the caller gives its terminal up; if it leads the session, all processes in it lose it.
pub(super) fn give_up(tty: &Arc<Tty>, process: &Process) -> Result<(), Errno> {
    let session = process.family.session();
    let own = session.terminal.lock().as_ref().is_some_and(|own| Arc::ptr_eq(own, tty));
    if !own {
        return Err(Errno::ENOTTY);
    }
    if session.id == process.pid {
        session.terminal.lock().take();
        let foreground = release(tty, session.id);
        send_group(foreground, session.id, sig::HUP);
        send_group(foreground, session.id, sig::CONT);
    }
    Ok(())
}

/// The session's leader is gone: its foreground group is told, and the terminal is free for the next. A pseudo-terminal
/// stays open, as on Linux: its master decides when it ends.
pub(super) fn disassociate(tty: &Arc<Tty>, session: Pid) {
    let foreground = release(tty, session);
    send_group(foreground, session, sig::HUP);
    send_group(foreground, session, sig::CONT);
    tty.discipline.lock().flush_input();
    tty.made_room();
    if tty.wire.is_none() {
        tty.hang_up();
    }
    tty.readable.wake_all();
}

/// Frees the terminal of `session`; answers its foreground group.
fn release(tty: &Tty, session: Pid) -> Pid {
    let mut control = tty.control.lock();
    if control.session != session {
        return 0;
    }
    core::mem::take(&mut *control).foreground
}

/// The other end of a pseudo-terminal is gone: its session loses it and is told.
pub(super) fn hang_up(tty: &Arc<Tty>) {
    let session = tty.control.lock().session;
    if session != 0 {
        take_from(tty, session);
        let foreground = release(tty, session);
        for group in [session, foreground] {
            send_group(group, session, sig::HUP);
            send_group(group, session, sig::CONT);
            if foreground == session {
                break;
            }
        }
    }
    tty.readable.wake_all();
}

/// The session loses `tty`, if that is its terminal.
fn take_from(tty: &Arc<Tty>, session: Pid) {
    for process in tree::all_processes() {
        if process.sid() == session {
            process.family.session().terminal.lock().take_if(|own| Arc::ptr_eq(own, tty));
        }
    }
}

/// A signal from the keyboard.
pub(super) fn signal_foreground(tty: &Tty, signal: u8) {
    let control = *tty.control.lock();
    send_group(control.foreground, control.session, signal);
}

/// Signals the members of a group in `session`. The group may be gone and its number another session's: none is told
/// then.
fn send_group(group: Pid, session: Pid, signal: u8) {
    for process in tree::group_members(group).iter().filter(|process| group != 0 && process.sid() == session) {
        // It may be ending.
        let _ = signal::send_process(process, SigInfo { signal, code: SI_KERNEL, errno: 0, cause: Cause::None });
    }
}

/// Stops a background group that reads (SIGTTIN) or writes or changes settings (SIGTTOU): the call is restarted when it
/// comes to the foreground. EIO where the signal could not help: it is blocked or ignored, or the group is orphaned.
pub(super) fn check_background(tty: &Arc<Tty>, signal: u8) -> Result<(), Errno> {
    let task = task::current();
    let process = &task.process;
    let own = process
        .family
        .with_session(|session| session.terminal.lock().as_ref().is_some_and(|own| Arc::ptr_eq(own, tty)));
    let control = *tty.control.lock();
    if !own || control.foreground == 0 || control.foreground == process.pgid() {
        return Ok(());
    }
    if is_ignored(&task, signal) {
        return if signal == sig::TTIN { Err(Errno::EIO) } else { Ok(()) };
    }
    if tree::is_orphaned(process.pgid()) {
        return Err(Errno::EIO);
    }
    send_group(process.pgid(), process.sid(), signal);
    Err(Errno::ERESTARTSYS)
}

fn is_ignored(task: &Task, signal: u8) -> bool {
    let handler = task.process.signals.action(signal).handler;
    task.signals.blocked().has(signal) || handler == SIG_IGN
}
