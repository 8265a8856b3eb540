//! Unix sockets (unix(7)): stream, datagram and sequenced packets, between processes of one machine.
//!
//! A [`Socket`] owns what others have sent it (its *inbox*); sending is putting into the peer's inbox. Connected
//! sockets know each other weakly, so that either can go; what was sent before stays readable. Addresses are in
//! [`names`], the moving of bytes and packets in [`transfer`].

mod garbage;
mod names;
mod options;
mod postage;
mod rights;
mod transfer;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use kernel_logic::readiness::{ERR, HUP, IN, OUT, RDHUP, RDNORM, WRNORM};
use linux_abi::Errno;
use linux_abi::flags::file::O_NONBLOCK;
use machine::addr::PAGE_SIZE;
use machine::sync::SpinLock;

use super::buffer::FrameRing;
use crate::fs::anon::{self, AnonInode};
use crate::fs::attr::S_IFSOCK;
use crate::fs::file::{File, FileOps};
use crate::fs::io::{Sink, Source};
use crate::fs::{FileSlot, slots};
use crate::sync::WaitReason;
use crate::sync::wait::{WaitQueue, Waiter};
use crate::task::account::{self, Charge};
use crate::task::creds::cap;

pub use names::{Address, bind, resolve};
pub use options::{get_option, set_option};
pub use rights::{MOST as MOST_RIGHTS, Rights, pages_in_flight};
pub use transfer::{Beside, Flags, Received};

/// How messages keep together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes in order, connected.
    Stream,
    /// Packets, each on its own.
    Datagram,
    /// Packets in order, connected.
    SeqPacket,
}

/// Credentials of the other end (`struct ucred`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Process of the thread, 0 if it is not known.
    pub pid: u32,
    /// Effective or real user id.
    pub uid: u32,
    /// Effective or real group id.
    pub gid: u32,
}

impl Credentials {
    /// Of a message whose sender is not known: neither side asked for it when it was sent.
    pub const UNKNOWN: Self = Self { pid: 0, uid: OVERFLOW_ID, gid: OVERFLOW_ID };

    /// Of one that connects or listens, for `SO_PEERCRED`: the effective ids.
    fn of_caller() -> Self {
        let task = crate::task::current();
        task.creds.with(|creds| Self { pid: task.pid(), uid: creds.euid, gid: creds.egid })
    }

    /// Of one that sends, for `SCM_CREDENTIALS`: the real ids, so that a set-user-ID program whose output is a socket
    /// does not speak for its owner.
    fn of_sender() -> Self {
        let task = crate::task::current();
        task.creds.with(|creds| Self { pid: task.pid(), uid: creds.uid, gid: creds.gid })
    }
}

/// What stands for an id that cannot be told (`/proc/sys/kernel/overflowuid`).
const OVERFLOW_ID: u32 = 65534;

/// A UNIX domain socket.
pub struct Socket {
    /// Stream, datagram, packets.
    pub kind: Kind,
    state: SpinLock<SocketState>,
    inbox: SpinLock<Inbox>,
    /// Something to read, or to accept, or the end of it.
    readable: WaitQueue,
    /// This socket may send again, or never more: all its senders are woken, as on Linux. Those that wait for room in
    /// its inbox for a datagram, or in its backlog for a connection, wait here exclusively.
    writable: WaitQueue,
    /// What its packets that are on their way count ([`postage`]).
    on_the_way: AtomicUsize,
    /// `SO_SNDBUF`: how much of what it sent may wait to be taken.
    send_buffer: AtomicUsize,
    /// `SO_RCVBUF`, which binds no local socket (socket(7)).
    receive_buffer: AtomicUsize,
    pass_credentials: AtomicBool,
    /// Receive and send timeouts in milliseconds, 0 for none.
    timeouts: [AtomicU32; 2],
}

struct SocketState {
    role: Role,
    address: Option<Arc<[u8]>>,
    node: Option<names::Node>,
    shut_send: bool,
    error: Option<Errno>,
    peer_credentials: Option<Credentials>,
    own_credentials: Option<Credentials>,
    /// Of a connection that was not accepted yet.
    queued: Option<Charge>,
}

enum Role {
    Idle,
    Listening { waiting: VecDeque<Arc<Socket>>, most: usize },
    Connected { peer: Weak<Socket>, peer_address: Option<Arc<[u8]>> },
}

struct Inbox {
    bytes: FrameRing,
    packets: VecDeque<transfer::Packet>,
    /// Files that hang in the stream, and the senders of its parts.
    track: rights::Track,
    /// Nothing more will come: the peer shut its sending side or is gone.
    ended: bool,
    /// This side does not want more (SHUT_RD).
    shut: bool,
    /// Woken once there is room for their packets.
    refused: Refused,
}

impl Inbox {
    /// What waits in a stream, as its buffer counts it.
    fn held(&self) -> usize {
        self.bytes.len() + self.track.cost()
    }

    /// Whether as many packets wait as those of strangers may.
    fn is_full(&self) -> bool {
        self.packets.len() > transfer::MOST_PACKETS
    }
}

/// Senders that were told that there is no room, by address; a pointer where there are none, as nearly always.
type Refused = Option<Box<BTreeMap<usize, Weak<Socket>>>>;

/// Size of the buffers until one is set (`net.core.wmem_default`), and the largest that can be asked for without
/// privilege (`net.core.wmem_max`), which is then doubled.
const DEFAULT_BUFFER: usize = 208 << 10;

impl Socket {
    fn new(kind: Kind) -> Arc<Self> {
        let state = SocketState {
            role: Role::Idle,
            address: None,
            node: None,
            shut_send: false,
            error: None,
            peer_credentials: None,
            own_credentials: None,
            queued: None,
        };
        let inbox = Inbox {
            bytes: FrameRing::new(),
            packets: VecDeque::new(),
            track: rights::Track::default(),
            ended: false,
            shut: false,
            refused: None,
        };
        Arc::new(Self {
            kind,
            state: SpinLock::new(state),
            inbox: SpinLock::new(inbox),
            readable: WaitQueue::new(WaitReason::SocketData),
            writable: WaitQueue::new(WaitReason::SocketRoom),
            on_the_way: AtomicUsize::new(0),
            send_buffer: AtomicUsize::new(DEFAULT_BUFFER),
            receive_buffer: AtomicUsize::new(DEFAULT_BUFFER),
            pass_credentials: AtomicBool::new(false),
            timeouts: [const { AtomicU32::new(0) }; 2],
        })
    }

    fn peer(&self) -> Option<Arc<Socket>> {
        match &self.state.lock().role {
            Role::Connected { peer, .. } => peer.upgrade(),
            _ => None,
        }
    }

    fn is_connected(&self) -> bool {
        matches!(self.state.lock().role, Role::Connected { .. })
    }

    /// A datagram socket leaves its peer, which need not tell it of room any more.
    #[cold]
    fn forget_refusal(&self) {
        if let Some(peer) = self.peer()
            && let Some(refused) = &mut peer.inbox.lock().refused
        {
            refused.remove(&core::ptr::from_ref(self).addr());
        }
    }

    fn connect_to(&self, peer: &Arc<Socket>) {
        let peer_address = peer.state.lock().address.clone();
        self.state.lock().role = Role::Connected { peer: Arc::downgrade(peer), peer_address };
    }

    fn connect_to_process(&self, peer: &Arc<Socket>, credentials: Credentials) {
        self.connect_to(peer);
        self.state.lock().peer_credentials = Some(credentials);
    }

    /// Whether `other` may send to this datagram socket: a connected one hears only its peer.
    fn hears(&self, other: &Arc<Socket>) -> bool {
        match &self.state.lock().role {
            Role::Connected { peer, .. } => core::ptr::eq(peer.as_ptr(), Arc::as_ptr(other)),
            _ => true,
        }
    }

    /// Whether every message carries its sender's credentials (SO_PASSCRED).
    pub fn passes_credentials(&self) -> bool {
        self.pass_credentials.load(Relaxed)
    }

    /// Waits for connections, at most `most` at a time.
    pub fn listen(&self, most: i32) -> Result<(), Errno> {
        let mut state = self.state.lock();
        if self.kind == Kind::Datagram {
            return Err(Errno::EOPNOTSUPP);
        }
        if state.address.is_none() {
            return Err(Errno::EINVAL);
        }
        let limit = usize::try_from(most).unwrap_or(4096).min(4096);
        match &mut state.role {
            Role::Listening { most, .. } => {
                *most = limit;
                self.writable.wake_all();
            }
            Role::Connected { .. } => return Err(Errno::EINVAL),
            Role::Idle => state.role = Role::Listening { waiting: VecDeque::new(), most: limit },
        }
        state.own_credentials = Some(Credentials::of_caller());
        Ok(())
    }

    /// Takes the oldest waiting connection.
    pub fn accept(&self, nonblocking: bool) -> Result<Arc<Socket>, Errno> {
        let take = || match &mut self.state.lock().role {
            Role::Listening { waiting, .. } => match waiting.pop_front() {
                None if self.inbox.lock().shut => Err(Errno::EINVAL),
                next => Ok(next),
            },
            _ if self.kind == Kind::Datagram => Err(Errno::EOPNOTSUPP),
            _ => Err(Errno::EINVAL),
        };
        let accepted = match take()? {
            Some(socket) => socket,
            None if nonblocking => return Err(Errno::EAGAIN),
            None => self.readable.wait_exclusive(None, || take().transpose())??,
        };
        self.writable.wake_one();
        accepted.pass_credentials.store(self.passes_credentials(), Relaxed);
        let queued = accepted.state.lock().queued.take();
        drop(queued);
        Ok(accepted)
    }

    /// Connects to `target`, which was found by its address. A datagram socket only remembers it. ENFILE if too many
    /// connections of the caller's user wait to be accepted.
    pub fn connect(self: &Arc<Self>, target: &Arc<Socket>, nonblocking: bool) -> Result<(), Errno> {
        if target.kind != self.kind {
            return Err(Errno::EPROTOTYPE);
        }
        if self.kind == Kind::Datagram {
            if !target.hears(self) {
                return Err(Errno::EPERM);
            }
            self.forget_refusal();
            self.connect_to(target);
            // The new peer may have room.
            self.writable.wake_all();
            return Ok(());
        }
        check_idle(&self.state.lock())?;
        let queued = charge_connection()?;
        let server = Socket::new(self.kind);
        server.state.lock().queued = Some(queued);
        server.state.lock().address = target.state.lock().address.clone();
        server.connect_to_process(self, Credentials::of_caller());
        // The program that accepts it may ask for the senders of what came before.
        server.pass_credentials.store(true, Relaxed);
        match self.try_connect(target, &server)? {
            Some(()) => {}
            None if nonblocking => return Err(Errno::EAGAIN),
            None => {
                let attempt = || self.try_connect(target, &server).transpose();
                let outcome = target.writable.wait_exclusive(None, attempt).map_err(Errno::from).flatten();
                // The room that it was woken for is another's.
                outcome.inspect_err(|_| target.writable.wake_one())?;
            }
        }
        target.readable.wake_one();
        Ok(())
    }

    /// Queues `server` at `target` and makes it this socket's peer, in one step: another thread may connect this socket
    /// to something else. `None` if the queue is full.
    fn try_connect(self: &Arc<Self>, target: &Arc<Socket>, server: &Arc<Socket>) -> Result<Option<()>, Errno> {
        if Arc::ptr_eq(self, target) {
            // It does not listen, or does since it was found.
            return check_idle(&self.state.lock()).and(Err(Errno::ECONNREFUSED));
        }
        let peer_address = server.state.lock().address.clone();
        // Two locks of one kind: by address.
        let (mut own, mut theirs);
        if Arc::as_ptr(self) < Arc::as_ptr(target) {
            own = self.state.lock();
            theirs = target.state.lock();
        } else {
            theirs = target.state.lock();
            own = self.state.lock();
        }
        check_idle(&own)?;
        let credentials = theirs.own_credentials.unwrap_or(Credentials { pid: 0, uid: 0, gid: 0 });
        match &mut theirs.role {
            Role::Listening { .. } if target.inbox.lock().shut => return Err(Errno::ECONNREFUSED),
            Role::Listening { waiting, most } if waiting.len() <= *most => waiting.push_back(server.clone()),
            Role::Listening { .. } => return Ok(None),
            _ => return Err(Errno::ECONNREFUSED),
        }
        own.role = Role::Connected { peer: Arc::downgrade(server), peer_address };
        own.peer_credentials = Some(credentials);
        Ok(Some(()))
    }

    /// A datagram socket forgets its peer (`AF_UNSPEC`). EINVAL for other kinds: their peer is to see the end.
    pub fn disconnect(&self) -> Result<(), Errno> {
        if self.kind != Kind::Datagram {
            return Err(Errno::EINVAL);
        }
        self.forget_refusal();
        self.state.lock().role = Role::Idle;
        self.writable.wake_all();
        Ok(())
    }

    /// Shuts the receiving side, the sending side or both (shutdown(2)).
    pub fn shutdown(&self, receive: bool, send: bool) -> Result<(), Errno> {
        // A datagram socket shuts only itself: its peer hears others too.
        let peer = self.peer().filter(|_| self.kind != Kind::Datagram);
        if send {
            self.state.lock().shut_send = true;
            if let Some(peer) = &peer {
                peer.inbox.lock().ended = true;
                peer.readable.wake_all();
            }
        }
        if receive {
            self.inbox.lock().shut = true;
            if let Some(peer) = &peer {
                peer.writable.wake_all();
            }
        }
        self.readable.wake_all();
        self.writable.wake_all();
        Ok(())
    }

    /// Its own address.
    pub fn address(&self) -> Address {
        Address(self.state.lock().address.clone())
    }

    /// The address of the other end: ENOTCONN without one.
    pub fn peer_address(&self) -> Result<Address, Errno> {
        match &self.state.lock().role {
            Role::Connected { peer, peer_address } => {
                let now = peer.upgrade().and_then(|peer| peer.state.try_lock().and_then(|state| state.address.clone()));
                Ok(Address(now.or_else(|| peer_address.clone())))
            }
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// The last description is closed.
    fn close(&self) {
        if self.kind == Kind::Datagram {
            self.forget_refusal();
        }
        let role = core::mem::replace(&mut self.state.lock().role, Role::Idle);
        names::forget(self);
        // Files that cannot be received any more are closed, and not under the lock: they may be sockets themselves.
        let abandoned = {
            let mut inbox = self.inbox.lock();
            inbox.shut = true;
            (inbox.track.abandon(), core::mem::take(&mut inbox.packets), inbox.refused.take())
        };
        if let Some(refused) = &abandoned.2 {
            transfer::tell_of_room(refused);
        }
        if self.kind == Kind::Datagram || matches!(role, Role::Listening { .. }) {
            self.writable.wake_all();
        }
        match role {
            Role::Connected { peer, .. } if self.kind != Kind::Datagram => {
                let unread = !self.inbox.lock().bytes.is_empty() || !abandoned.1.is_empty();
                if let Some(peer) = peer.upgrade() {
                    peer.hang_up(unread);
                }
            }
            Role::Listening { waiting, .. } => {
                // What these were sent is never read: that is a reset, not an end.
                for server in waiting {
                    let client = server.peer();
                    server.close();
                    if let Some(client) = client {
                        client.hang_up(true);
                    }
                }
            }
            _ => {}
        }
    }

    /// The other end is gone; if it had not read everything, that is an error to notice.
    fn hang_up(&self, unread: bool) {
        let mut state = self.state.lock();
        state.shut_send = true;
        if unread {
            state.error = Some(Errno::ECONNRESET);
        }
        drop(state);
        self.inbox.lock().ended = true;
        self.readable.wake_all();
        self.writable.wake_all();
    }

    /// Pages of what waits to be received, 0 if that cannot be told now.
    fn waiting_pages(&self) -> usize {
        self.inbox.try_lock().map_or(0, |inbox| {
            let packets: usize = inbox.packets.iter().map(transfer::Packet::memory).sum();
            inbox.bytes.pages() + packets.div_ceil(PAGE_SIZE)
        })
    }

    /// The user who connected to it, if one did and the locks are free.
    fn connected_by(&self) -> Option<u32> {
        self.state.try_lock()?.peer_credentials.map(|peer| peer.uid)
    }

    fn ready(self: &Arc<Self>) -> u32 {
        let state = self.state.lock();
        if let Role::Listening { waiting, .. } = &state.role {
            return if waiting.is_empty() { 0 } else { IN | RDNORM };
        }
        let peer = match &state.role {
            Role::Connected { peer, .. } => peer.upgrade(),
            _ => None,
        };
        let (shut_send, error) = (state.shut_send, state.error.is_some());
        let idle_stream = self.kind != Kind::Datagram && matches!(state.role, Role::Idle);
        drop(state);
        let inbox = self.inbox.lock();
        let mut ready = if error { ERR } else { 0 };
        let done = inbox.ended || inbox.shut;
        if !inbox.bytes.is_empty() || !inbox.packets.is_empty() || done {
            ready |= IN | RDNORM;
        }
        if done {
            ready |= RDHUP;
        }
        if idle_stream || (done && shut_send) {
            ready |= HUP;
        }
        drop(inbox);
        if self.has_room(peer.as_ref()) {
            ready |= OUT | WRNORM;
        }
        ready
    }
}

/// Opens a description of a socket; `flags` are `O_NONBLOCK` or nothing.
pub fn open(socket: Arc<Socket>, flags: u32, slot: FileSlot) -> Arc<File> {
    let mount = anon::sockets();
    let inode = AnonInode::new(mount, S_IFSOCK | 0o777);
    anon::open(mount, "socket:", inode, Arc::new(SocketFile(socket)), flags & O_NONBLOCK as u32 | 2, slot)
}

/// A fresh socket.
pub fn create(kind: Kind) -> Arc<Socket> {
    Socket::new(kind)
}

/// Two connected sockets (socketpair(2)).
pub fn pair(kind: Kind) -> (Arc<Socket>, Arc<Socket>) {
    let (one, other) = (Socket::new(kind), Socket::new(kind));
    let credentials = Credentials::of_caller();
    one.connect_to_process(&other, credentials);
    other.connect_to_process(&one, credentials);
    (one, other)
}

/// The right of the caller's user to one more connection that waits: there may be half as many of each user as
/// descriptions in all, unless the caller has `CAP_SYS_RESOURCE` (Linux: twice as many sockets of all users).
fn charge_connection() -> Result<Charge, Errno> {
    crate::task::current().creds.with(|creds| {
        let limit = if creds.capable(cap::SYS_RESOURCE) { u64::MAX } else { slots::limit() / 2 };
        creds.account.charge(account::Kind::Connections, 1, limit).ok_or(Errno::ENFILE)
    })
}

/// What a descriptor of a socket stands for.
struct SocketFile(Arc<Socket>);

/// Whether a stream may be connected yet.
fn check_idle(state: &SocketState) -> Result<(), Errno> {
    match state.role {
        Role::Connected { .. } => Err(Errno::EISCONN),
        Role::Listening { .. } => Err(Errno::EINVAL),
        Role::Idle => Ok(()),
    }
}

impl FileOps for SocketFile {
    fn read(&self, file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        // A read of no bytes is over at once, a receive of none is not (net/socket.c).
        if sink.left() == 0 {
            return Ok(());
        }
        self.0.receive(sink, Flags::of(file)).map(|_| ())
    }

    fn write(&self, file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        self.0.send(source, None, Flags::of(file), Beside::default()).map(|()| position)
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            waiter.add(&self.0.readable);
            waiter.add(&self.0.writable);
        }
        self.0.ready()
    }

    fn sends_sigio(&self) -> bool {
        true
    }

    fn ioctl(&self, _file: &File, request: u64, argument: u64) -> Result<usize, Errno> {
        options::ioctl(&self.0, request, argument)
    }

    fn release(&self, _file: &File) {
        self.0.close();
        garbage::collect();
    }

    /// What it sent counts, until it is taken; what came from a peer that is gone; and the connections that its own
    /// user left for it to accept. Those of other users are not held against it: there are as many as it asked for.
    fn held_pages(&self) -> usize {
        let Some(state) = self.0.state.try_lock() else { return 0 };
        let peer = match &state.role {
            Role::Connected { peer, .. } if self.0.kind != Kind::Datagram => peer.clone(),
            Role::Listening { waiting, .. } => {
                let own = state.own_credentials.map(|own| own.uid);
                let is_own = |server: &&Arc<Socket>| server.connected_by() == own;
                let own = waiting.iter().filter(is_own);
                let (count, pages) = own.fold((0, 0), |sum, server| (sum.0 + 1, sum.1 + server.waiting_pages()));
                return pages + count * size_of::<Socket>() / PAGE_SIZE;
            }
            _ => Weak::new(),
        };
        drop(state);
        peer.upgrade().map_or_else(|| self.0.waiting_pages(), |peer| peer.waiting_pages())
    }
}

/// What is waiting, for tests of emptiness (FIONREAD): bytes of the stream, or of the first packet.
fn waiting_bytes(socket: &Socket) -> usize {
    let inbox = socket.inbox.lock();
    inbox.packets.front().map_or(inbox.bytes.len(), |packet| packet.bytes.len())
}

/// The socket that `file` stands for, if it is one.
pub fn of(file: &File) -> Option<&Arc<Socket>> {
    file.ops.downcast::<SocketFile>().map(|file| &file.0)
}
