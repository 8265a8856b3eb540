//! Signal delivery: acts on pending signals before a thread returns to user mode.

use core::sync::atomic::Ordering;

use kernel_logic::signal::{self as rule, Delivery, Disposition, Interrupted, Resume, SigInfo, SigSet, sa, sig};
use kernel_logic::vma::PAGE;
use linux_abi::Errno;
use linux_abi::syscalls::nr;
use machine::arch::UserFrame;

use super::{frame, jobs, pending_set, restore_mask, set_blocked, take};
use crate::task::limits::resource;
use crate::task::process::Ended;
use crate::task::{Observer, Task, Thread, current, exit, tree};
use crate::trace;
use crate::upper::Kwab;

/// Acts on everything pending for the running thread. Returns when it may go on in user mode, with `frame` saying
/// where.
pub fn deliver(user: &mut UserFrame) {
    let me = current();
    loop {
        if me.process.life.is_ending() || me.must_exit.load(Ordering::Acquire) {
            if me.process.life.claim_dump_of_kill() {
                <Kwab as Observer>::process_dies(&me, user, &SigInfo::kernel(sig::KILL));
            }
            exit::exit_thread(0);
        }
        if me.process.life.is_stopping() {
            jobs::park(&me);
            continue;
        }
        let wanted = SigSet(!me.signals.blocked().0);
        if pending_set(&me).0 & wanted.0 == 0 {
            break;
        }
        // Not moved out of what it was taken into.
        let taken = take(&me, wanted);
        let Some(info) = &taken else { break };
        act(&me, user, info);
    }
    settle_restart(&me, user, None);
    restore_mask(&me);
}

fn act(me: &Thread, user: &mut UserFrame, info: &SigInfo) {
    let disposition = take_disposition(me, info.signal);
    let verdict = rule::deliver(info.signal, &disposition, me.process.is_protected());
    let handler = if let Delivery::Handle(disposition) = &verdict { disposition.handler } else { 0 };
    trace::flight::signal_delivered(info.signal, handler);
    trace::event::signal(me, info, &verdict, user.ip());
    match verdict {
        Delivery::Drop => {}
        Delivery::Kill { core } => {
            <Kwab as Observer>::process_dies(me, user, info);
            let core = core && may_dump(me);
            me.process.begin_end(Ended::Killed { signal: info.signal, core });
            exit::exit_thread(0);
        }
        Delivery::Stop => {
            if info.signal == sig::STOP || !tree::is_orphaned(me.process.pgid()) {
                jobs::stop(me, info.signal);
            }
        }
        Delivery::Handle(disposition) => handle(me, user, info, &disposition),
    }
}

/// Whether a core dump of the process would be written (core(5)): its limit permits a page, and it is dumpable.
fn may_dump(me: &Thread) -> bool {
    let dumpable = || me.mm.with(|mm| mm.is_some_and(|mm| mm.dumpable.load(Ordering::Relaxed)));
    me.process.limit(resource::CORE) >= PAGE && dumpable()
}

/// Enters the handler: restart rule, frame, mask. A frame that cannot be written ends the process with `SIGSEGV`.
fn handle(me: &Task, user: &mut UserFrame, info: &SigInfo, disposition: &Disposition) {
    settle_restart(me, user, Some(disposition.flags));
    let old_mask = if me.signals.has_saved_mask.swap(false, Ordering::Relaxed) {
        SigSet(me.signals.saved_mask.load(Ordering::Relaxed))
    } else {
        me.signals.blocked()
    };
    if frame::push(me, user, info, disposition, old_mask).is_err() {
        let fault = SigInfo::kernel(sig::SEGV);
        if info.signal == sig::SEGV {
            reset(me, sig::SEGV);
        }
        super::force(fault);
        return;
    }
    let mut mask = me.signals.blocked().with(disposition.mask);
    if disposition.flags & sa::NODEFER == 0 {
        mask = mask.with(SigSet::only(info.signal));
    }
    set_blocked(me, mask);
}

/// The disposition of `signal`, put back to its default when it asked for that (`SA_RESETHAND`).
fn take_disposition(me: &Task, signal: u8) -> Disposition {
    me.process.signals.edit_action(signal, |entry| {
        let disposition = *entry;
        if disposition.flags & sa::RESETHAND != 0 && disposition.handler > rule::SIG_IGN {
            entry.handler = rule::SIG_DFL;
        }
        disposition
    })
}

fn reset(me: &Task, signal: u8) {
    me.process.signals.edit_action(signal, |entry| *entry = Disposition::default());
}

/// Decides how an interrupted call goes on; `handler` has the flags of the handler about to run.
fn settle_restart(_me: &Task, user: &mut UserFrame, handler: Option<u64>) {
    if user.syscall().is_none() {
        return;
    }
    let kind = match Errno::from_result(user.result() as i64) {
        Some(Errno::ERESTARTSYS) => Interrupted::Restart,
        Some(Errno::ERESTARTNOINTR) => Interrupted::Always,
        Some(Errno::ERESTARTNOHAND) => Interrupted::UnlessHandled,
        Some(Errno::ERESTART_RESTARTBLOCK) => Interrupted::Block,
        _ => return,
    };
    match rule::resume(kind, handler) {
        Resume::Fail => user.set_result(Errno::EINTR.to_result() as u64),
        Resume::Again => user.restart_syscall(),
        Resume::RestartBlock => {
            user.restart_syscall();
            user.set_result(nr::restart_syscall);
        }
    }
    user.forget_syscall();
}
