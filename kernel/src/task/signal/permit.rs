//! Permission to send a signal (kill(2), fcntl(2) F_SETOWN).

use kernel_logic::signal::{may_signal, sig};
use linux_abi::Errno;

use crate::task::creds::cap;
use crate::task::{Process, Task};

/// Whether `me` may send `signal` to `target`: EPERM unless the users match, it has CAP_KILL, or it is SIGCONT within
/// the session.
pub fn permit(me: &Task, target: &Process, signal: u8) -> Result<(), Errno> {
    if target.pid == me.pid() {
        return Ok(());
    }
    let mine = me.creds();
    let Some(theirs) = target.threads.creds() else { return Ok(()) };
    let continues = signal == sig::CONT && target.sid() == me.process.sid();
    if continues || may_signal((mine.uid, mine.euid), (theirs.uid, theirs.suid), mine.capable(cap::KILL)) {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

/// The user ids of a process that asked for signals to be sent later.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asker {
    /// Real user id then.
    pub uid: u32,
    /// Effective user id then.
    pub euid: u32,
}

impl Asker {
    /// `me` as it is now.
    pub fn of(me: &Task) -> Self {
        me.creds.with(|creds| Self { uid: creds.uid, euid: creds.euid })
    }

    /// Whether its signal may reach `target`, whose ids may have changed meanwhile.
    pub fn may_reach(self, target: &Process) -> bool {
        let Some(thread) = target.threads.first() else { return false };
        let ids = thread.creds.with(|creds| (creds.uid, creds.suid));
        may_signal((self.uid, self.euid), ids, self.euid == 0)
    }
}
