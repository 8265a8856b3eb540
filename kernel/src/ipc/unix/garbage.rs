//! Garbage collection of sockets in flight: cycles of sockets that were sent through one another and closed.
//!
//! Every socket description on its way is in [`IN_FLIGHT`] with the number of messages that carry it. One all of whose
//! references are in messages is a *candidate*. Messages found in the inboxes of candidates are subtracted; a candidate
//! with messages left is held by an inbox that a program can still read, and so is everything below it. What remains is
//! garbage, and loses the files in its inboxes.
//!
//! No set of sockets becomes reachable again while this is found out: sending a socket takes the table's lock, which is
//! held from the first look to the last, and receiving can only take messages away from inboxes, which makes fewer of
//! the subtractions above. The inboxes are read once. No recursion: circles may be as long as descriptors permit.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kernel_logic::meter::Share;
use machine::sync::SpinLock;
use machine::time::now;

use super::{Role, Socket, of};
use crate::fs::file::File;

/// A socket description in messages.
struct Sent {
    file: Weak<File>,
    socket: Arc<Socket>,
    messages: usize,
}

/// By the description's address. Taken before a socket's locks, never with one held.
static IN_FLIGHT: SpinLock<BTreeMap<usize, Sent>> = SpinLock::new(BTreeMap::new());
/// Entries of it.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// How much time goes into looking: a sixteenth of one processor's.
static SHARE: Share = Share::new(16);
/// A collection runs; a further one was asked for meanwhile.
static RUNNING: AtomicBool = AtomicBool::new(false);
static AGAIN: AtomicBool = AtomicBool::new(false);

/// Notes that a message carries `files`, before it is in an inbox.
pub(super) fn sent(files: &[Arc<File>]) {
    for file in files {
        let Some(socket) = of(file) else { continue };
        let mut table = IN_FLIGHT.lock();
        let entry = table.entry(address(file)).or_insert_with(|| Sent {
            file: Arc::downgrade(file),
            socket: socket.clone(),
            messages: 0,
        });
        entry.messages += 1;
        COUNT.store(table.len(), Ordering::Relaxed);
    }
}

/// Notes that a message with `files` was received or dropped; it still holds them.
pub(super) fn arrived(files: &[Arc<File>]) {
    for file in files {
        if of(file).is_none() {
            continue;
        }
        let mut table = IN_FLIGHT.lock();
        let Some(entry) = table.get_mut(&address(file)) else { continue };
        entry.messages -= 1;
        if entry.messages == 0 {
            let gone = table.remove(&address(file));
            COUNT.store(table.len(), Ordering::Relaxed);
            drop(table);
            // It may be the last reference to the socket.
            drop(gone);
        }
    }
}

/// Looks for circles and ends them: after a socket was closed. No lock held.
///
/// A look costs as much as there is in flight, so the time spent on looking is bounded ([`Share`]): while the last look
/// is too recent, this does nothing, and a later call finds what there is to find.
pub(super) fn collect() {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    AGAIN.store(true, Ordering::SeqCst);
    // Files that are dropped below may be sockets, whose closing comes here again: the first does the work of all.
    if RUNNING.load(Ordering::SeqCst) || !SHARE.admits(now()) {
        return;
    }
    let mut found = true;
    while found && AGAIN.load(Ordering::SeqCst) && !RUNNING.swap(true, Ordering::SeqCst) {
        AGAIN.store(false, Ordering::SeqCst);
        let begun = now();
        let garbage = unreachable();
        SHARE.spent(begun, now());
        found = !garbage.is_empty();
        let mut rights = Vec::new();
        for socket in &garbage {
            for inbox_of in with_waiting(socket) {
                let mut inbox = inbox_of.inbox.lock();
                rights.extend(inbox.track.abandon().into_iter().map(|(_, rights)| rights));
                rights.extend(inbox.packets.iter_mut().map(|packet| core::mem::take(&mut packet.rights)));
            }
        }
        drop(rights);
        RUNNING.store(false, Ordering::SeqCst);
    }
}

/// A socket in flight that may be unreachable.
struct Candidate {
    socket: Arc<Socket>,
    /// Messages that are in no candidate's inbox.
    messages: usize,
    /// Descriptions in its inboxes.
    holds: Vec<usize>,
    reached: bool,
}

/// Sockets in flight that no program can come to have.
fn unreachable() -> Vec<Arc<Socket>> {
    let table = IN_FLIGHT.lock();
    let closed = table.iter().filter(|(_, sent)| sent.file.strong_count() == sent.messages);
    let mut candidates: BTreeMap<usize, Candidate> = closed
        .map(|(&at, sent)| {
            let holds = held_by(&sent.socket);
            (at, Candidate { socket: sent.socket.clone(), messages: sent.messages, holds, reached: false })
        })
        .collect();
    let held: Vec<usize> = candidates.values().flat_map(|candidate| candidate.holds.iter().copied()).collect();
    for at in held {
        if let Some(candidate) = candidates.get_mut(&at) {
            candidate.messages = candidate.messages.saturating_sub(1);
        }
    }
    let mut open: Vec<usize> = candidates.iter().filter(|(_, one)| one.messages > 0).map(|(&at, _)| at).collect();
    while let Some(at) = open.pop() {
        if let Some(candidate) = candidates.get_mut(&at)
            && !core::mem::replace(&mut candidate.reached, true)
        {
            open.append(&mut candidate.holds);
        }
    }
    drop(table);
    candidates.into_values().filter(|candidate| !candidate.reached).map(|candidate| candidate.socket).collect()
}

/// The socket, and those of connections that wait to be accepted from it.
fn with_waiting(socket: &Arc<Socket>) -> Vec<Arc<Socket>> {
    let mut sockets = alloc::vec![socket.clone()];
    if let Role::Listening { waiting, .. } = &socket.state.lock().role {
        sockets.extend(waiting.iter().cloned());
    }
    sockets
}

/// Socket descriptions in the inboxes of a socket.
fn held_by(socket: &Arc<Socket>) -> Vec<usize> {
    let mut held = Vec::new();
    for inbox_of in with_waiting(socket) {
        let inbox = inbox_of.inbox.lock();
        let in_packets = inbox.packets.iter().flat_map(|packet| packet.rights.files());
        held.extend(inbox.track.files().chain(in_packets).filter(|file| of(file).is_some()).map(address));
    }
    held
}

fn address(file: &Arc<File>) -> usize {
    Arc::as_ptr(file).addr()
}
