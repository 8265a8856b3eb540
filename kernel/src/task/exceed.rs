//! What happens to a process that reaches a limit (setrlimit(2)): of processor time (`RLIMIT_CPU`), of a file's size
//! (`RLIMIT_FSIZE`).

use alloc::sync::Arc;

use kernel_logic::signal::{Cause, SigInfo, sig};

use super::clock::process_time;
use super::limits::resource;
use super::{Process, Task, current, signal};
use crate::time::SECOND;

/// Timers of its processor time go off; `SIGKILL` at the hard limit, `SIGXCPU` at the soft one and every second after
/// (setrlimit(2)).
#[cold]
pub(super) fn processor_time(me: &Task) {
    let process: &Arc<Process> = &me.process;
    let used = process_time(process);
    if used >= process.parked_timers.first() {
        process.parked_timers.run(used);
    }
    if used < process.accounting.cpu_deadline() {
        return;
    }
    let signal = process.accounting.change_limits(|limits| {
        let cpu = &mut limits.0[resource::CPU];
        let hard_passed = used >= cpu.hard.max(1).saturating_mul(SECOND);
        if !hard_passed {
            cpu.soft = (used / SECOND + 1).max(cpu.soft.saturating_add(1));
        }
        if hard_passed { sig::KILL } else { sig::XCPU }
    });
    // A full queue loses only the detail: the signal itself stays pending.
    let _ = signal::send_process(process, SigInfo::kernel(signal));
}

/// SIGXFSZ to the running thread, which tried to write past its limit.
pub fn file_too_large() {
    let info = SigInfo { signal: sig::XFSZ, code: 0x80, errno: 0, cause: Cause::None };
    // A full queue loses only the detail: the signal itself stays pending.
    let _ = signal::send_thread(&current().to_arc(), info);
}
