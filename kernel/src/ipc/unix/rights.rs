//! Files in flight through a socket (`SCM_RIGHTS`, unix(7)).
//!
//! In a stream they hang at the position of the first byte they were sent with; a receive that begins there gets them,
//! and no receive crosses such a position. With `SO_PASSCRED` none crosses from one sender's bytes to another's either.
//! A user's files in flight are bounded as Linux bounds them; circles of sockets sent through each other are
//! [`garbage`]'s.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use linux_abi::Errno;
use machine::sync::SpinLock;

use super::{Credentials, garbage};
use crate::fs::closing;
use crate::fs::file::File;
use crate::fs::mapped::nameless_pages;
use crate::mm::frames;
use crate::task::creds::cap;
use crate::task::{current, limits::resource};

/// What a change of the sender counts as in a stream's buffer: what a message costs on Linux beside its bytes.
const CHANGE: usize = 768;

/// Most files of one message (`SCM_MAX_FD`).
pub const MOST: usize = 253;

/// What a user has in flight.
#[derive(Default)]
struct Flight {
    /// Descriptors, as the limit counts them.
    count: u64,
    /// The descriptions, by address, and in how many messages each is.
    files: BTreeMap<usize, (Weak<File>, u64)>,
}

static IN_FLIGHT: SpinLock<BTreeMap<u32, Flight>> = SpinLock::new(BTreeMap::new());

/// Pages of memory behind what a user has in flight: for the choice of a victim when memory is short. No lock held.
pub fn pages_in_flight(uid: u32) -> u64 {
    let mut pages = 0;
    let mut from = 0;
    loop {
        let next = IN_FLIGHT
            .lock()
            .get(&uid)
            .and_then(|flight| flight.files.range(from..).find_map(|(&at, (file, _))| Some((at, file.upgrade()?))));
        // The last reference is dropped here, without the lock, if the message has come to its end meanwhile.
        let Some((at, file)) = next else { return pages };
        pages += file.ops.held_pages() as u64 + nameless_pages(file.inode());
        from = at + 1;
    }
}

/// The files of one message, if there are any.
#[derive(Default)]
pub struct Rights(Option<Box<Sent>>);

struct Sent {
    files: Vec<Arc<File>>,
    /// Whose they count as; `None` for a copy made to look at, which is not in flight.
    uid: Option<u32>,
}

impl Rights {
    /// Sends `files` on their way. `ETOOMANYREFS` when the caller's user has as many under way as descriptors are
    /// permitted.
    pub fn new(files: Vec<Arc<File>>) -> Result<Self, Errno> {
        if files.is_empty() {
            return Ok(Self::default());
        }
        frames::spare()?;
        let me = current();
        let uid = me.creds.with(|creds| creds.uid);
        let privileged = me.creds.with(|creds| creds.capable(cap::SYS_RESOURCE));
        let most = if privileged { u64::MAX } else { me.process.limit(resource::NOFILE) };
        if IN_FLIGHT.lock().get(&uid).is_some_and(|flight| flight.count > most) {
            // Some may be in circles that no socket's end has shown yet.
            garbage::collect();
        }
        let mut in_flight = IN_FLIGHT.lock();
        let flight = in_flight.entry(uid).or_default();
        if flight.count > most {
            return Err(Errno::ETOOMANYREFS);
        }
        flight.count += files.len() as u64;
        for file in &files {
            flight.files.entry(Arc::as_ptr(file).addr()).or_insert_with(|| (Arc::downgrade(file), 0)).1 += 1;
        }
        drop(in_flight);
        garbage::sent(&files);
        Ok(Self(Some(Box::new(Sent { files, uid: Some(uid) }))))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The files, which have arrived.
    pub fn files(&self) -> &[Arc<File>] {
        self.0.as_deref().map_or(&[], |sent| &sent.files)
    }

    /// The same files once more, for a look that leaves them in place.
    pub(super) fn peek(&self) -> Self {
        let Some(sent) = &self.0 else { return Self::default() };
        Self(Some(Box::new(Sent { files: sent.files.clone(), uid: None })))
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(uid) = self.uid {
            garbage::arrived(&self.files);
            let mut in_flight = IN_FLIGHT.lock();
            if let Some(flight) = in_flight.get_mut(&uid) {
                flight.arrived(&self.files);
                if flight.count == 0 {
                    in_flight.remove(&uid);
                }
            }
        }
        closing::drop_files(core::mem::take(&mut self.files));
    }
}

impl Flight {
    /// `files` are not in flight any more; the caller holds them still.
    fn arrived(&mut self, files: &[Arc<File>]) {
        self.count = self.count.saturating_sub(files.len() as u64);
        for file in files {
            let at = Arc::as_ptr(file).addr();
            if let Some((_, messages)) = self.files.get_mut(&at) {
                *messages -= 1;
                if *messages == 0 {
                    self.files.remove(&at);
                }
            }
        }
    }
}

/// Where in a stream files hang, and who sent its parts.
#[derive(Default)]
pub(super) struct Track {
    /// Bytes ever put in and taken out.
    put: u64,
    taken: u64,
    waiting: VecDeque<(u64, Rights)>,
    /// Sender of the next byte to take, if a side asked for it when it was sent.
    sender: Option<Credentials>,
    /// At which bytes another sender's begin.
    changes: VecDeque<(u64, Option<Credentials>)>,
}

impl Track {
    /// `count` bytes of `sender` were put in, the first of them with `rights`. [`Track::make_room`] was called before.
    pub(super) fn put(&mut self, count: usize, rights: &mut Rights, sender: Option<Credentials>) {
        if count == 0 {
            return;
        }
        if !rights.is_empty() {
            self.waiting.push_back((self.put, core::mem::take(rights)));
        }
        if self.is_another(sender) {
            self.changes.push_back((self.put, sender));
            self.follow();
        }
        self.put += count as u64;
    }

    /// Makes room for the change if `sender` is not the last one; ENOMEM without memory for it.
    #[inline]
    pub(super) fn make_room(&mut self, sender: Option<Credentials>) -> Result<(), Errno> {
        if self.is_another(sender) { self.changes.try_reserve(1).map_err(|_| Errno::ENOMEM) } else { Ok(()) }
    }

    /// Whether `sender` did not send the last byte that was put in.
    fn is_another(&self, sender: Option<Credentials>) -> bool {
        sender != self.changes.back().map_or(self.sender, |(_, last)| *last)
    }

    /// What the changes of the sender count as, so that the buffer bounds their number too.
    pub(super) fn cost(&self) -> usize {
        self.changes.len() * CHANGE
    }

    /// Sender of the next byte to take, if it is known.
    pub(super) fn sender(&self) -> Option<Credentials> {
        self.sender
    }

    /// Takes note of the sender of the byte that is next now.
    fn follow(&mut self) {
        while let Some(&(at, sender)) = self.changes.front()
            && at <= self.taken
        {
            self.sender = sender;
            self.changes.pop_front();
        }
    }

    /// How many bytes a receive may take, which takes those of one sender only if `apart`.
    pub(super) fn reach(&self, apart: bool) -> usize {
        if self.waiting.is_empty() && self.changes.is_empty() {
            return usize::MAX;
        }
        let change = self.changes.front().filter(|_| apart).map(|(at, _)| *at);
        let files = self.waiting.iter().map(|(at, _)| *at).find(|at| *at > self.taken);
        let next = change.into_iter().chain(files).min();
        next.map_or(usize::MAX, |at| (at - self.taken) as usize)
    }

    /// `count` bytes were taken out, or looked at if `peek`: the files that came with the first.
    pub(super) fn take(&mut self, count: usize, reached: bool, peek: bool) -> Rights {
        if self.waiting.is_empty() {
            self.taken += if peek { 0 } else { count as u64 };
            self.follow();
            return Rights::default();
        }
        let here = reached && self.waiting.front().is_some_and(|(at, _)| *at <= self.taken);
        if peek {
            return self.waiting.front().filter(|_| here).map_or_else(Rights::default, |(_, rights)| rights.peek());
        }
        self.taken += count as u64;
        self.follow();
        let first = if here { self.waiting.pop_front() } else { None };
        first.map_or_else(Rights::default, |(_, rights)| rights)
    }

    /// The files that wait.
    pub(super) fn files(&self) -> impl Iterator<Item = &Arc<File>> {
        self.waiting.iter().flat_map(|(_, rights)| rights.files())
    }

    /// All that waits, for a socket that will not be read any more.
    pub(super) fn abandon(&mut self) -> VecDeque<(u64, Rights)> {
        core::mem::take(&mut self.waiting)
    }
}
