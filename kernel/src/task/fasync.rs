//! fasync: signals about readiness, O_ASYNC with F_SETOWN and F_SETSIG (fcntl(2)).
//!
//! A [`Fasync`] is a hook in the queues a description's `poll` names, for the kinds of file that send such signals
//! ([`FileOps::sends_sigio`](crate::fs::file::FileOps::sends_sigio)). A waker may hold locks of the file, so the
//! hook does not call `poll`: the signal says "input", which is what programs wait for this way.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering::Relaxed};

use kernel_logic::readiness::{IN, RDNORM};
use kernel_logic::signal::{Cause, SigInfo};
use linux_abi::Errno;
use linux_abi::numbers::SI_KERNEL;
use linux_abi::signals::{POLL_IN, Signal};

use crate::fs::{self, File};
use crate::sync::mutex::Mutex;
use crate::sync::wait::{HookId, Waiter, Wake};
use crate::task::signal;
use crate::task::signal::permit::Asker;
use crate::task::{Process, tree};

/// The owner and the signal of a description with O_ASYNC.
#[derive(Default)]
pub struct Fasync {
    /// A process, or a group if negative; 0 for none.
    owner: AtomicI32,
    /// Ids of the process that set the owner, as they were then: real user in the upper half, effective in the lower.
    asker: AtomicU64,
    /// The signal, 0 for SIGIO without details.
    signal: AtomicU8,
    /// The descriptor O_ASYNC was set through.
    fd: AtomicI32,
    /// Whether the hook is queued; held while that changes.
    hooked: Mutex<bool>,
    id: HookId,
}

impl Fasync {
    /// The process or, negative, the group that gets the signal; 0 for none.
    pub fn owner(&self) -> i32 {
        self.owner.load(Relaxed)
    }

    /// Sets the owner, on behalf of `asker`, whose ids decide at each signal: ESRCH if there is none.
    pub fn set_owner(&self, owner: i32, asker: Asker) -> Result<(), Errno> {
        if owner != 0 && !tree::is_used(owner.unsigned_abs()) {
            return Err(Errno::ESRCH);
        }
        let Asker { uid, euid } = asker;
        self.asker.store(u64::from(uid) << 32 | u64::from(euid), Relaxed);
        self.owner.store(owner, Relaxed);
        Ok(())
    }

    /// The signal that was chosen, 0 for the default.
    pub fn signal(&self) -> u8 {
        self.signal.load(Relaxed)
    }

    /// Chooses the signal: EINVAL for a number that is none.
    pub fn set_signal(&self, signal: u64) -> Result<(), Errno> {
        let signal = u8::try_from(signal).ok().filter(|&signal| signal <= 64).ok_or(Errno::EINVAL)?;
        self.signal.store(signal, Relaxed);
        Ok(())
    }

    /// Begins or ends telling, as O_ASYNC on descriptor `fd` of `file` says.
    pub fn set_active(self: &Arc<Self>, file: &File, fd: i32, on: bool) {
        let mut hooked = self.hooked.lock();
        self.fd.store(fd, Relaxed);
        if core::mem::replace(&mut *hooked, on) == on {
            return;
        }
        let mut waiter = if on { Waiter::adding(self.clone()) } else { Waiter::removing(self.clone()) };
        file.poll(Some(&mut waiter));
    }
}

impl fs::FasyncHook for Fasync {
    fn stop(self: &Arc<Self>, file: &File) {
        self.set_active(file, -1, false);
    }
}

impl Wake for Fasync {
    fn id(&self) -> HookId {
        self.id
    }

    fn wake(&self) {
        let chosen = self.signal();
        let info = if chosen == 0 {
            SigInfo { signal: Signal::SIGIO.number(), code: SI_KERNEL, errno: 0, cause: Cause::None }
        } else {
            let cause = Cause::Poll { band: u64::from(IN | RDNORM), fd: self.fd.load(Relaxed) };
            SigInfo { signal: chosen, code: POLL_IN, errno: 0, cause }
        };
        // An owner that is gone, or whose queue is full, is not told.
        let asker = self.asker.load(Relaxed);
        let asker = Asker { uid: (asker >> 32) as u32, euid: asker as u32 };
        let tell = |process: &Arc<Process>| {
            if asker.may_reach(process) {
                let _ = signal::send_process(process, info.clone());
            }
        };
        match self.owner() {
            0 => {}
            owner @ 1.. => tree::process(owner.unsigned_abs()).iter().for_each(tell),
            owner => tree::group_members(owner.unsigned_abs()).iter().for_each(tell),
        }
    }
}
