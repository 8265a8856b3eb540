//! Ends a command that `kwab follow` has started: it is asked to, and killed when it does not follow.

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long a command may take to end after SIGTERM: QEMU closes its disk images first.
const GRACE: Duration = Duration::from_secs(3);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Sends SIGTERM, and SIGKILL when the command is still there after [`GRACE`].
pub(super) fn end(mut child: Child) {
    // One that has been waited for has given its number back, perhaps to another process.
    if matches!(child.try_wait(), Ok(Some(_))) {
        return;
    }
    // A process that was not waited for keeps its number, so no other one gets the signal. It may have ended by itself.
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
    if !ends_within(&mut child, GRACE, || false) {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Whether the command ends in this time and before `given_up` holds.
pub(super) fn ends_within(child: &mut Child, time: Duration, given_up: impl Fn() -> bool) -> bool {
    let until = Instant::now() + time;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until && !given_up() => thread::sleep(LOOK_EVERY),
            Ok(None) => return false,
            // What cannot be waited for is not ours any more.
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}
