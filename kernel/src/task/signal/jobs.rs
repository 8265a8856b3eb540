//! Job control: stops and continues whole processes, and notifies their parents.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use kernel_logic::signal::{Cause, SigInfo, code, sa, sig};

use super::{send_process, unstop};
use crate::sched::{self, Sleep};
use crate::sync::WaitReason;
use crate::task::{Process, Task, tree};

/// Stops the process of the running thread, which is delivering stop signal `signal`: marks it, gets every thread to
/// stop and tells the parent. The caller then [`park`]s.
pub fn stop(me: &Task, signal: u8) {
    if !me.process.life.stop(signal) {
        return;
    }
    for thread in me.process.threads.list() {
        if thread.tid() != me.tid() {
            sched::notify(&thread, false);
        }
    }
    tell_parent(&me.process, code::CLD_STOPPED, i32::from(signal));
}

/// Sleeps while the running thread's process is stopped.
pub fn park(me: &Task) {
    while me.process.life.is_stopping() && !me.must_exit.load(Ordering::Acquire) {
        sched::prepare_to_sleep(Sleep::Stopped);
        if !me.process.life.is_stopping() {
            sched::cancel_sleep();
            return;
        }
        sched::sleep_for(WaitReason::Stopped.number(), 0, None);
    }
}

/// Continues a stopped process (`SIGCONT` was sent).
pub fn resume(process: &Arc<Process>) {
    if !process.life.resume() {
        return;
    }
    for thread in process.threads.list() {
        unstop(&thread);
    }
    tell_parent(process, code::CLD_CONTINUED, i32::from(sig::CONT));
}

/// Wakes the parent's waiters and sends it `SIGCHLD` unless it asked not to hear of stops.
fn tell_parent(process: &Arc<Process>, code: i32, status: i32) {
    let Some(parent) = tree::process(process.ppid()) else { return };
    let disposition = parent.signals.action(sig::CHLD);
    if disposition.flags & sa::NOCLDSTOP == 0 {
        let uid = process.threads.first().map_or(0, |thread| thread.creds.with(|creds| creds.uid));
        let cause = Cause::Child { pid: process.pid, uid, status, utime: 0, stime: 0 };
        // A full queue loses only the detail: the signal itself stays pending.
        let _ = send_process(&parent, SigInfo { signal: sig::CHLD, code, errno: 0, cause });
    }
    parent.life.child_changed().wake_all();
}
