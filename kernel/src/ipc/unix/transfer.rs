//! Sending and receiving: bytes for streams, packets otherwise.
//!
//! Bytes are copied under the receiving inbox's lock, where a page that is not present counts as a fault; the copy then
//! makes it present outside and tries again, as pipes do.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use linux_abi::Errno;
use machine::addr::PAGE_SIZE;
use machine::time::now;

use super::postage::Postage;
use super::rights::Rights;
use super::{Address, Credentials, Kind, Role, Socket};
use crate::fs::file::File;
use crate::fs::io::{Sink, Source};
use crate::ipc::pipe;
use crate::mm::frames;
use crate::sched::Sleep;
use crate::sync::wait::{WaitError, WaitQueue};
use crate::task::kept::Keeping;

/// A message that stays whole.
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    from: Option<Arc<[u8]>>,
    sender: Option<Credentials>,
    pub(super) rights: Rights,
    _postage: Option<Postage>,
}

/// Bytes of the smallest piece of memory.
const LEAST: usize = 16;

/// Why a packet cannot be sent now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Full {
    /// The sender has as much on its way as it may.
    Sender,
    /// The receiver has as many packets waiting as strangers may send it.
    Receiver,
}

impl Packet {
    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity().max(LEAST)
    }

    /// A copy for MSG_PEEK; ENOBUFS without memory for one.
    fn look(&self) -> Result<Self, Errno> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.bytes.len()).map_err(|_| Errno::ENOBUFS)?;
        bytes.extend_from_slice(&self.bytes);
        Ok(Self { bytes, from: self.from.clone(), sender: self.sender, rights: self.rights.peek(), _postage: None })
    }
}

/// How to send or receive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    /// Do not wait.
    pub nonblocking: bool,
    /// Leave what was received in place.
    pub peek: bool,
    /// Wait for the whole buffer.
    pub wait_all: bool,
    /// Do not send SIGPIPE (`MSG_NOSIGNAL`).
    pub no_signal: bool,
}

impl Flags {
    /// Those of read(2) and write(2).
    pub fn of(file: &File) -> Self {
        Self { nonblocking: file.is_nonblocking(), ..Self::default() }
    }
}

/// What is sent along with the bytes of a message.
#[derive(Default)]
pub struct Beside {
    /// The files (`SCM_RIGHTS`).
    pub rights: Rights,
    /// Credentials that the sender named (`SCM_CREDENTIALS`).
    pub sender: Option<Credentials>,
}

/// What came with the bytes.
pub struct Received {
    /// Address of the sender, for packets.
    pub from: Option<Address>,
    /// Length of the packet, which may be more than fitted.
    pub length: usize,
    /// The packet was cut.
    pub cut: bool,
    /// Credentials of the sender.
    pub sender: Option<Credentials>,
    /// Files that came along.
    pub rights: Rights,
}

impl Received {
    /// Bytes of a stream, without a sender.
    pub fn bytes(length: usize) -> Self {
        Self { from: None, length, cut: false, sender: None, rights: Rights::default() }
    }
}

impl Socket {
    /// Receives into `sink`.
    pub fn receive(&self, sink: &mut Sink<'_>, flags: Flags) -> Result<Received, Errno> {
        if self.kind == Kind::Stream && !self.is_connected() {
            return Err(Errno::EINVAL);
        }
        if self.kind == Kind::SeqPacket && !self.is_connected() {
            return Err(Errno::ENOTCONN);
        }
        let mut sender = None;
        loop {
            let found = match self.try_receive(sink, flags, sender)? {
                Some(found) => found,
                None if flags.nonblocking => return Err(Errno::EAGAIN),
                None => self.wait_to_receive(sink, flags, sender)?,
            };
            sender = found.sender;
            let more = flags.wait_all
                && self.kind == Kind::Stream
                && sink.left() > 0
                && !flags.peek
                && found.rights.is_empty();
            if !more || found.length == 0 || self.is_drained() {
                return Ok(found);
            }
        }
    }

    /// Sleeps until there is something to receive. One packet serves one receiver, so those of packets wait
    /// exclusively; bytes of a stream wake all, as on Linux.
    fn wait_to_receive(
        &self,
        sink: &mut Sink<'_>,
        flags: Flags,
        sender: Option<Credentials>,
    ) -> Result<Received, Errno> {
        let exclusive = self.kind != Kind::Stream;
        let attempt = || self.try_receive(sink, flags, sender).transpose();
        let received = self.sleep(&self.readable, exclusive, 0, attempt).flatten();
        if exclusive && (flags.peek || received.is_err()) && !self.inbox.lock().packets.is_empty() {
            // The packet that it was woken for is still there.
            self.readable.wake_next();
        }
        received
    }

    /// No byte is left and none can come: the writer ended, or a side was shut down.
    fn is_drained(&self) -> bool {
        let inbox = self.inbox.lock();
        (inbox.ended || inbox.shut) && inbox.bytes.is_empty()
    }

    /// Receives what is there; of a stream, after bytes of `sender`, only more of the same.
    fn try_receive(
        &self,
        sink: &mut Sink<'_>,
        flags: Flags,
        sender: Option<Credentials>,
    ) -> Result<Option<Received>, Errno> {
        if self.kind != Kind::Stream {
            return self.try_receive_packet(sink, flags);
        }
        let found = self.try_receive_bytes(sink, flags, sender);
        if matches!(found, Ok(Some(_)))
            && !flags.peek
            && let Some(peer) = self.peer()
        {
            peer.writable.wake_all();
        }
        found
    }

    fn try_receive_bytes(
        &self,
        sink: &mut Sink<'_>,
        flags: Flags,
        before_them: Option<Credentials>,
    ) -> Result<Option<Received>, Errno> {
        let mut rights = Rights::default();
        let before = sink.done();
        let passes = self.passes_credentials();
        loop {
            let (begun, wants_none) = (sink.done(), sink.left() == 0);
            let mut inbox = self.inbox.lock();
            if inbox.bytes.is_empty() {
                let over = inbox.ended || inbox.shut;
                drop(inbox);
                let error = self.state.lock().error.take();
                return match error {
                    Some(error) => Err(error),
                    None if over => Ok(Some(Received::bytes(0))),
                    None => Ok(None),
                };
            }
            let sender = passes.then(|| inbox.track.sender().unwrap_or(Credentials::UNKNOWN));
            if before_them.is_some() && sender != before_them {
                return Ok(Some(Received { sender: before_them, ..Received::bytes(0) }));
            }
            let reach = inbox.track.reach(passes);
            let result = inbox.bytes.drain(sink, reach, flags.peek);
            let moved = sink.done() - begun;
            let came = inbox.track.take(moved, moved > 0 || wants_none, flags.peek);
            drop(inbox);
            if !came.is_empty() {
                rights = came;
            }
            match result {
                Err(Errno::EFAULT) => sink.fault_in()?,
                Err(error) => return Err(error),
                Ok(()) => return Ok(Some(Received { sender, rights, ..Received::bytes(sink.done() - before) })),
            }
        }
    }

    fn try_receive_packet(&self, sink: &mut Sink<'_>, flags: Flags) -> Result<Option<Received>, Errno> {
        let mut inbox = self.inbox.lock();
        let packet =
            if flags.peek { inbox.packets.front().map(Packet::look).transpose()? } else { inbox.packets.pop_front() };
        let Some(packet) = packet else {
            let over = inbox.ended || inbox.shut;
            drop(inbox);
            let error = self.state.lock().error.take();
            return match error {
                Some(error) => Err(error),
                None if over => Ok(Some(Received::bytes(0))),
                None => Ok(None),
            };
        };
        let has_room = !flags.peek && !inbox.is_full();
        let refused = if has_room { inbox.refused.take() } else { None };
        drop(inbox);
        if let Some(refused) = refused {
            tell_of_room(&refused);
        }
        if !flags.peek {
            // Even if the copy fails: the packet is gone. Its sender's own queue is woken with the postage.
            self.writable.wake_one();
        }
        let fits = sink.put(&packet.bytes)?;
        Ok(Some(Received {
            from: Some(Address(packet.from)),
            length: packet.bytes.len(),
            cut: fits < packet.bytes.len(),
            sender: Some(packet.sender.unwrap_or(Credentials::UNKNOWN)),
            rights: packet.rights,
        }))
    }

    /// Sends what is in `source` to `target`, or to the peer, with what is `beside` it at its first byte.
    pub fn send(
        self: &Arc<Self>,
        source: &mut Source<'_>,
        target: Option<Arc<Socket>>,
        flags: Flags,
        beside: Beside,
    ) -> Result<(), Errno> {
        let result = match self.kind {
            Kind::Stream if target.is_some() => {
                return Err(if self.is_connected() { Errno::EISCONN } else { Errno::EOPNOTSUPP });
            }
            Kind::Stream => self.send_bytes(source, flags, beside),
            _ => self.send_packet(source, target, flags, beside),
        };
        if result == Err(Errno::EPIPE) && !flags.no_signal && self.kind != Kind::Datagram {
            pipe::raise_sigpipe();
        }
        result
    }

    fn receiver(&self, target: Option<Arc<Socket>>) -> Result<Arc<Socket>, Errno> {
        let state = self.state.lock();
        if let Some(target) = target {
            return if state.shut_send { Err(Errno::EPIPE) } else { Ok(target) };
        }
        match &state.role {
            Role::Connected { .. } if state.shut_send => Err(Errno::EPIPE),
            Role::Connected { peer, .. } => peer.upgrade().ok_or(match self.kind {
                Kind::Datagram => Errno::ECONNREFUSED,
                _ => Errno::EPIPE,
            }),
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// The credentials that go along to `receiver`: those that were named, else the caller's if a side asks for them.
    fn credentials_for(&self, receiver: &Socket, named: Option<Credentials>) -> Option<Credentials> {
        let asked = || self.passes_credentials() || receiver.passes_credentials();
        named.or_else(|| asked().then(Credentials::of_sender))
    }

    fn send_bytes(&self, source: &mut Source<'_>, flags: Flags, mut beside: Beside) -> Result<(), Errno> {
        let peer = self.receiver(None)?;
        match self.try_send_bytes(&peer, source, &mut beside)? {
            Some(()) => Ok(()),
            None if flags.nonblocking => Err(Errno::EAGAIN),
            None => {
                self.sleep(&self.writable, false, 1, || self.try_send_bytes(&peer, source, &mut beside).transpose())?
            }
        }
    }

    fn try_send_bytes(
        &self,
        peer: &Arc<Socket>,
        source: &mut Source<'_>,
        beside: &mut Beside,
    ) -> Result<Option<()>, Errno> {
        let limit = self.send_buffer.load(Relaxed);
        let sender = self.credentials_for(peer, beside.sender);
        loop {
            if self.state.lock().shut_send {
                return Err(Errno::EPIPE);
            }
            let mut inbox = peer.inbox.lock();
            if inbox.shut {
                return Err(Errno::EPIPE);
            }
            let held = inbox.held();
            if held >= limit {
                return Ok(None);
            }
            inbox.track.make_room(sender)?;
            let before = source.done();
            let result = inbox.bytes.fill(limit.next_multiple_of(PAGE_SIZE), source, limit - held);
            inbox.track.put(source.done() - before, &mut beside.rights, sender);
            drop(inbox);
            peer.readable.wake_all();
            match result {
                Err(Errno::EFAULT) => source.fault_in()?,
                Err(error) => return Err(error),
                Ok(()) if source.left() == 0 => return Ok(Some(())),
                // Full, or just emptied by a reader that is as fast: the caller waits, which lets others run.
                Ok(()) => return Ok(None),
            }
        }
    }

    fn send_packet(
        self: &Arc<Self>,
        source: &mut Source<'_>,
        target: Option<Arc<Socket>>,
        flags: Flags,
        beside: Beside,
    ) -> Result<(), Errno> {
        frames::spare().map_err(|_| Errno::ENOBUFS)?;
        let receiver = self.receiver(target)?;
        if source.left() > self.send_buffer.load(Relaxed) - EMSGSIZE_MARGIN {
            return Err(Errno::EMSGSIZE);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(source.left()).map_err(|_| Errno::ENOBUFS)?;
        bytes.resize(source.left(), 0);
        source.take(&mut bytes)?;
        let length = bytes.len();
        let packet = Packet {
            bytes,
            from: self.state.lock().address.clone(),
            sender: self.credentials_for(&receiver, beside.sender),
            rights: beside.rights,
            _postage: None,
        };
        let sent = self.deliver(&receiver, packet, flags);
        if sent.is_err() {
            source.untake(length);
        }
        sent?;
        receiver.readable.wake_one();
        Ok(())
    }

    /// Puts `packet` into the inbox of `receiver`, sleeping for room if need be.
    fn deliver(self: &Arc<Self>, receiver: &Arc<Socket>, packet: Packet, flags: Flags) -> Result<(), Errno> {
        let length = packet.bytes.len();
        let mut packet = Some(packet);
        let mut attempt = || {
            let (is_sender_full, is_stranger) = (self.is_full(), !self.is_peer_of(receiver));
            let heard = self.kind != Kind::Datagram || receiver.hears(self);
            let mut inbox = receiver.inbox.lock();
            if inbox.shut || inbox.ended {
                return Ok(Err(if self.kind == Kind::Datagram { Errno::ECONNREFUSED } else { Errno::EPIPE }));
            }
            if !heard {
                return Ok(Err(Errno::EPERM));
            }
            if is_sender_full {
                return Err(Full::Sender);
            }
            // With the inbox locked: two senders must not share what room is left.
            if is_stranger && inbox.is_full() {
                return Err(Full::Receiver);
            }
            if let Some(packet) = packet.take() {
                let postage = Postage::new(self, packet.bytes.len());
                inbox.packets.push_back(Packet { _postage: Some(postage), ..packet });
            }
            Ok(Ok(()))
        };
        let mut outcome = attempt();
        let _kept = (outcome.is_err() && !flags.nonblocking).then(|| Keeping::new(length));
        loop {
            let (full, queue) = match outcome {
                Ok(sent) => return sent,
                Err(_) if flags.nonblocking => return Err(Errno::EAGAIN),
                Err(Full::Sender) => (Full::Sender, &self.writable),
                Err(Full::Receiver) => (Full::Receiver, &receiver.writable),
            };
            let shared = full == Full::Receiver;
            outcome = self.sleep(queue, shared, 1, || {
                let again = attempt();
                (again != Err(full)).then_some(again)
            })?;
            if shared && outcome != Ok(Ok(())) {
                // It leaves the room that it was woken for.
                receiver.writable.wake_next();
            }
        }
    }

    /// Whether it has as much on the way as its buffer holds.
    fn is_full(&self) -> bool {
        self.on_the_way.load(Relaxed) >= self.send_buffer.load(Relaxed)
    }

    /// Whether `receiver` is connected to it, which has room for all that it may send.
    fn is_peer_of(&self, receiver: &Arc<Socket>) -> bool {
        receiver.peer().is_some_and(|peer| core::ptr::eq(Arc::as_ptr(&peer), self))
    }

    /// Whether there is enough room to send for `POLLOUT`: at most a quarter of the buffer is on its way to `peer`. A
    /// peer that is full of the packets of strangers wakes this socket when it no longer is.
    pub(super) fn has_room(self: &Arc<Self>, peer: Option<&Arc<Socket>>) -> bool {
        let buffer = self.send_buffer.load(Relaxed);
        let on_the_way = match (self.kind, peer) {
            (Kind::Stream, None) => 0,
            (Kind::Stream, Some(peer)) => {
                let inbox = peer.inbox.lock();
                if inbox.shut { 0 } else { inbox.held() }
            }
            (_, Some(peer)) if self.is_refused_by(peer) => return false,
            _ => self.on_the_way.load(Relaxed),
        };
        on_the_way.saturating_mul(4) <= buffer
    }

    /// Whether `receiver` has no room for packets of this socket now; it remembers to tell of room then.
    fn is_refused_by(self: &Arc<Self>, receiver: &Arc<Socket>) -> bool {
        if self.is_full() || self.is_peer_of(receiver) {
            return false;
        }
        let mut inbox = receiver.inbox.lock();
        let is_full = inbox.is_full();
        if is_full {
            inbox.refused.get_or_insert_default().insert(Arc::as_ptr(self).addr(), Arc::downgrade(self));
        }
        is_full
    }

    /// Waits at `queue`, exclusively or not, no longer than the receive (0) or send (1) timeout.
    fn sleep<T>(
        &self,
        queue: &WaitQueue,
        exclusive: bool,
        which: usize,
        condition: impl FnMut() -> Option<T>,
    ) -> Result<T, Errno> {
        let timeout = u64::from(self.timeouts[which].load(Relaxed)) * 1_000_000;
        let deadline = (timeout > 0).then(|| now() + timeout);
        let waited = if exclusive {
            queue.wait_exclusive(deadline, condition)
        } else {
            queue.wait_until(deadline, Sleep::Interruptible, condition)
        };
        waited.map_err(|error| match error {
            WaitError::TimedOut => Errno::EAGAIN,
            // With a timeout a call is not restarted: it would begin again (signal(7)).
            WaitError::Interrupted if timeout > 0 => Errno::EINTR,
            WaitError::Interrupted => Errno::ERESTARTSYS,
        })
    }
}

/// Wakes senders that were refused: each may poll, or wait for a peer that is gone.
#[cold]
pub(super) fn tell_of_room(refused: &BTreeMap<usize, Weak<Socket>>) {
    for sender in refused.values().filter_map(Weak::upgrade) {
        sender.writable.wake_all();
    }
}

/// Packets from strangers that may wait at a receiver before another (`net.unix.max_dgram_qlen`).
pub(super) const MOST_PACKETS: usize = 10;
/// Bytes of the buffer that no packet may fill.
const EMSGSIZE_MARGIN: usize = 32;
