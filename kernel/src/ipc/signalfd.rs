//! Signal descriptors (signalfd(2)): a reader takes pending signals of the set from its thread and its process.
//!
//! Readers wait in a queue of their process, so a signal wakes only readers of the process that gets it. A hook (epoll,
//! fasync) is queued at the process that adds it, as on Linux, and found again when another process takes it out.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};

use kernel_logic::readiness::{IN, RDNORM};
use kernel_logic::signal::{Cause, SigInfo, SigSet};
use linux_abi::Errno;
use linux_abi::flags::file::O_RDWR;
use machine::sync::SpinLock;

use crate::fs::file::{File, FileOps};
use crate::fs::io::Sink;
use crate::fs::{FileSlot, anon};
use crate::sync::wait::{HookId, Mode, WaitQueue, Waiter};
use crate::task::current;
use crate::task::signal;

/// A set of signals to read.
pub struct SignalFd {
    set: SpinLock<SigSet>,
    /// Hooks, each with the queue it is in.
    hooks: SpinLock<BTreeMap<HookId, Weak<WaitQueue>>>,
}

/// Access mode of the description.
const READ_WRITE: u32 = O_RDWR as u32;
/// Bytes of a record (`sizeof(struct signalfd_siginfo)`).
const RECORD: usize = 128;

/// Makes a reader of `set`; `flags` are `O_NONBLOCK` or nothing.
pub fn create(set: SigSet, flags: u32) -> Result<Arc<File>, Errno> {
    let slot = FileSlot::take()?;
    let reader = SignalFd { set: SpinLock::new(readable(set)), hooks: SpinLock::new(BTreeMap::new()) };
    Ok(anon::open_shared("anon_inode:[signalfd]", Arc::new(reader), flags | READ_WRITE, slot))
}

fn readable(set: SigSet) -> SigSet {
    set.without(SigSet::UNBLOCKABLE)
}

impl SignalFd {
    /// Reads another set from now on.
    pub fn replace(&self, set: SigSet) {
        *self.set.lock() = readable(set);
        current().process.signals.readers().wake_all();
    }

    /// Does what `waiter` is for at the calling process's queue.
    fn queue(&self, waiter: &mut Waiter<'_>) {
        match waiter.mode() {
            Mode::Thread => waiter.add_shared(current().process.signals.readers().clone()),
            Mode::AddHook(hook) => {
                let process = &current().process;
                self.hooks.lock().insert(hook.id(), Arc::downgrade(process.signals.readers()));
                process.signals.readers().add_hook(hook.clone());
            }
            Mode::RemoveHook(hook) => {
                let queue = self.hooks.lock().remove(&hook.id());
                if let Some(queue) = queue.and_then(|queue| queue.upgrade()) {
                    queue.remove_hook(hook);
                }
            }
        }
    }

    fn take(&self) -> Option<SigInfo> {
        let set = *self.set.lock();
        signal::take(&current(), set)
    }
}

impl FileOps for SignalFd {
    fn seeking(&self) -> crate::fs::file::Seeking {
        crate::fs::file::Seeking::Nowhere
    }

    fn read(&self, file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        if sink.left() < RECORD {
            return Err(Errno::EINVAL);
        }
        let first = match self.take() {
            Some(info) => info,
            None if file.is_nonblocking() => return Err(Errno::EAGAIN),
            None => current().process.signals.readers().wait(|| self.take())?,
        };
        sink.put(&record(&first))?;
        while sink.left() >= RECORD
            && let Some(info) = self.take()
        {
            sink.put(&record(&info))?;
        }
        Ok(())
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            self.queue(waiter);
        }
        let set = *self.set.lock();
        if signal::pending_set(&current()).0 & set.0 != 0 { IN | RDNORM } else { 0 }
    }
}

/// A `struct signalfd_siginfo`.
fn record(info: &SigInfo) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &u32::from(info.signal).to_ne_bytes());
    put(4, &info.errno.to_ne_bytes());
    put(8, &info.code.to_ne_bytes());
    match &info.cause {
        Cause::None => {}
        Cause::Sender { pid, uid } => {
            put(12, &pid.to_ne_bytes());
            put(16, &uid.to_ne_bytes());
        }
        Cause::Value { pid, uid, value } => {
            put(12, &pid.to_ne_bytes());
            put(16, &uid.to_ne_bytes());
            put(44, &(*value as u32).to_ne_bytes());
            put(48, &value.to_ne_bytes());
        }
        Cause::Timer { id, overrun, value, .. } => {
            put(24, &id.to_ne_bytes());
            put(32, &overrun.to_ne_bytes());
            put(44, &(*value as u32).to_ne_bytes());
            put(48, &value.to_ne_bytes());
        }
        Cause::Fault { addr } => put(72, &addr.to_ne_bytes()),
        Cause::Child { pid, uid, status, utime, stime } => {
            put(12, &pid.to_ne_bytes());
            put(16, &uid.to_ne_bytes());
            put(40, &status.to_ne_bytes());
            put(56, &utime.to_ne_bytes());
            put(64, &stime.to_ne_bytes());
        }
        Cause::Poll { band, fd } => {
            put(20, &fd.to_ne_bytes());
            put(28, &(*band as u32).to_ne_bytes());
        }
        // What the sender filled in, read as `sigqueue` does: pid, uid, value.
        Cause::Raw(rest) => {
            put(12, &rest[0].to_ne_bytes());
            put(44, &(rest[1] as u32).to_ne_bytes());
            put(48, &rest[1].to_ne_bytes());
        }
    }
    record
}
