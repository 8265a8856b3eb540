//! fasync: signals about readiness, O_ASYNC with F_SETOWN, F_SETOWN_EX and F_SETSIG (fcntl(2)).
//!
//! A [`Fasync`] is a hook in the queues a description's `poll` names, for the kinds of file that send such signals
//! ([`FileOps::sends_sigio`](crate::fs::file::FileOps::sends_sigio)). A waker may hold locks of the file, so the
//! hook does not call `poll`: the signal says "input", which is what programs wait for this way.
//!
//! The owner is a process, thread or group as it was when it was named: one that gets its number later is told nothing.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, AtomicU8, Ordering::Relaxed};

use kernel_logic::readiness::{IN, RDNORM};
use kernel_logic::signal::{Cause, SigInfo};
use linux_abi::Errno;
use linux_abi::numbers::SI_KERNEL;
use linux_abi::signals::{POLL_IN, Signal};
use machine::sync::SpinLock;

use crate::fs::{self, File};
use crate::sync::mutex::Mutex;
use crate::sync::wait::{HookId, Waiter, Wake};
use crate::task::signal;
use crate::task::signal::permit::Asker;
use crate::task::tree::{self, Named};
use crate::task::{Pid, Process, ThreadRef};

/// Who of those that have the owner's number is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OwnerKind {
    /// One thread (`F_OWNER_TID`).
    Thread,
    /// The process as a whole (`F_OWNER_PID`).
    Process,
    /// Every process of the group (`F_OWNER_PGRP`).
    Group,
}

/// The owner and the signal of a description with O_ASYNC.
#[derive(Default)]
pub struct Fasync {
    /// Also locked by wakers, so nothing else is locked or freed with it.
    owner: SpinLock<Owner>,
    /// The signal, 0 for SIGIO without details.
    signal: AtomicU8,
    /// The descriptor O_ASYNC was set through.
    fd: AtomicI32,
    /// Whether the hook is queued; held while that changes.
    hooked: Mutex<bool>,
    id: HookId,
}

impl Fasync {
    /// The kind of the owner and its number, 0 for none or one that is gone.
    pub fn owner(&self) -> (OwnerKind, Pid) {
        let owner = self.owner.lock().clone();
        (owner.kind, if owner.is_there() { owner.number } else { 0 })
    }

    /// Sets the owner, none for 0, on behalf of `asker`, whose ids decide at each signal: ESRCH if the number is not in
    /// use.
    pub fn set_owner(&self, kind: OwnerKind, number: Pid, asker: Asker) -> Result<(), Errno> {
        let named = if number == 0 { None } else { Some(tree::named(number).ok_or(Errno::ESRCH)?) };
        let before = core::mem::replace(&mut *self.owner.lock(), Owner { kind, number, named, asker });
        drop(before);
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

/// Who is told, and on whose behalf. Ids and owner belong together: they change as one.
#[derive(Clone)]
struct Owner {
    kind: OwnerKind,
    number: Pid,
    named: Option<Named>,
    asker: Asker,
}

impl Default for Owner {
    /// None; `F_GETOWN_EX` calls that a thread, as on Linux.
    fn default() -> Self {
        Self { kind: OwnerKind::Thread, number: 0, named: None, asker: Asker::default() }
    }
}

impl Owner {
    /// The process with the number, or the process of the thread with it.
    fn process(&self) -> Option<Arc<Process>> {
        match self.named.as_ref()? {
            Named::Process(identity) => {
                tree::process(self.number).filter(|process| process.family.identity() == *identity)
            }
            Named::Thread(_) => self.thread().map(|thread| thread.process.clone()),
            Named::Session => None,
        }
    }

    /// The live thread with the number.
    fn thread(&self) -> Option<ThreadRef> {
        let thread = tree::thread(self.number)?;
        let is_named = match self.named.as_ref()? {
            Named::Process(identity) => thread.process.family.identity() == *identity,
            Named::Thread(named) => core::ptr::eq(named.as_ptr(), Arc::as_ptr(&thread)),
            Named::Session => false,
        };
        is_named.then_some(thread)
    }

    fn members(&self) -> Vec<Arc<Process>> {
        match self.named {
            Some(Named::Process(identity)) => tree::members_of(identity),
            _ => Vec::new(),
        }
    }

    /// Whether `F_GETOWN` names it.
    fn is_there(&self) -> bool {
        match self.kind {
            OwnerKind::Thread => self.thread().is_some() || self.process().is_some(),
            OwnerKind::Process => matches!(self.named, Some(Named::Process(_))) && self.process().is_some(),
            OwnerKind::Group => !self.members().is_empty(),
        }
    }

    /// Sends what `info` says to each that is told and that `asker` may reach.
    fn tell(&self, info: &SigInfo) {
        let tell = |process: &Arc<Process>| self.send(process, info, |info| signal::send_process(process, info));
        match self.kind {
            OwnerKind::Thread => {
                if let Some(thread) = self.thread() {
                    self.send(&thread.process, info, |info| signal::send_thread(&thread, info));
                }
            }
            OwnerKind::Process => self.process().iter().for_each(tell),
            OwnerKind::Group => self.members().iter().for_each(tell),
        }
    }

    /// A queue that has no room for a signal with details takes a plain SIGIO, which says that some were lost.
    fn send(&self, process: &Process, info: &SigInfo, send: impl Fn(SigInfo) -> Result<(), Errno>) {
        if self.asker.may_reach(process) && send(info.clone()).is_err() {
            // It never needs room.
            let _ = send(PLAIN);
        }
    }
}

/// `SIGIO` without details.
const PLAIN: SigInfo = SigInfo { signal: Signal::SIGIO.number(), code: SI_KERNEL, errno: 0, cause: Cause::None };

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
            PLAIN
        } else {
            let cause = Cause::Poll { band: u64::from(IN | RDNORM), fd: self.fd.load(Relaxed) };
            SigInfo { signal: chosen, code: POLL_IN, errno: 0, cause }
        };
        let owner = self.owner.lock().clone();
        owner.tell(&info);
    }
}
