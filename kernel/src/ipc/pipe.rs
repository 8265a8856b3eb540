//! Pipes and FIFOs (pipe(7), fifo(7)).
//!
//! Writes of at most [`PIPE_BUF`] bytes arrive in one piece. Bytes are copied under the pipe's lock, where a program's
//! page that is not present counts as a fault: the copy then makes it present outside the lock and tries again.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};

use kernel_logic::readiness::{ERR, HUP, IN, OUT, RDNORM, WRNORM};
use kernel_logic::signal::{Cause, SigInfo, sig};
use linux_abi::Errno;
use linux_abi::flags::file::{O_DIRECT, O_NONBLOCK, O_RDONLY, O_WRONLY};
use linux_abi::flags::system::FIONREAD;
use machine::addr::PAGE_SIZE;
use machine::sync::SpinLock;

use super::buffer::FrameRing;
use super::charge::Charge;
use crate::fs::attr::{Attr, S_IFIFO};
use crate::fs::file::{File, FileOps, O_ACCMODE};
use crate::fs::inode::{Inode, OpenRequest};
use crate::fs::io::{Sink, Source};
use crate::fs::{self, FileSlot, anon};
use crate::inject;
use crate::sync::WaitReason;
use crate::sync::wait::{WaitQueue, Waiter};
use crate::user::UserPtr;

/// Writes up to this long are atomic.
pub const PIPE_BUF: usize = 4096;
/// Bytes a pipe holds unless told otherwise.
const DEFAULT_CAPACITY: usize = 16 * PAGE_SIZE;
/// The most F_SETPIPE_SZ grants without privilege (`/proc/sys/fs/pipe-max-size`).
pub const MAX_CAPACITY: usize = 1 << 20;

/// What both ends share.
pub struct Pipe {
    state: SpinLock<PipeState>,
    readable: WaitQueue,
    writable: WaitQueue,
}

struct PipeState {
    ring: FrameRing,
    packets: Packets,
    capacity: usize,
    charge: Charge,
    readers: u32,
    writers: u32,
    /// How often an end was opened, so that a FIFO's opener sees one that is closed again already.
    reader_opens: u32,
    writer_opens: u32,
}

/// What a writer with O_DIRECT made, in order.
struct Packet {
    /// Bytes between the packet before and this one, which belong to neither.
    before: usize,
    length: usize,
}

/// Where packets lie among the bytes of a ring.
struct Packets {
    list: VecDeque<Packet>,
    /// Bytes from the front of the ring to the end of the last packet.
    end: usize,
}

impl Packets {
    const fn new() -> Self {
        Self { list: VecDeque::new(), end: 0 }
    }

    /// The last `length` bytes of a ring of `held` are a packet.
    fn push(&mut self, held: usize, length: usize) {
        self.list.push_back(Packet { before: held - length - self.end, length });
        self.end = held;
    }

    /// Takes from the ring what one read takes: bytes, and the packet behind them if there is room left.
    fn drain(&mut self, ring: &mut FrameRing, sink: &mut Sink<'_>) -> Result<(), Errno> {
        let Some(first) = self.list.front_mut() else { return ring.drain(sink, usize::MAX, false) };
        let mut take = |ring: &mut FrameRing, bytes: &mut usize| {
            let held = ring.len();
            let result = ring.drain(sink, *bytes, false);
            *bytes -= held - ring.len();
            self.end -= held - ring.len();
            (result, sink.left())
        };
        let (result, room) = take(ring, &mut first.before);
        if result.is_err() || room == 0 {
            return result;
        }
        let (result, _) = take(ring, &mut first.length);
        if result != Err(Errno::EFAULT) {
            // What does not fit is lost (pipe(2), O_DIRECT).
            ring.discard(first.length);
            self.end -= first.length;
            self.list.pop_front();
        }
        result
    }
}

impl Pipe {
    /// ENFILE beyond what the user's pipes may hold.
    fn new() -> Result<Arc<Self>, Errno> {
        let charge = Charge::new(DEFAULT_CAPACITY / PAGE_SIZE)?;
        let state = PipeState {
            ring: FrameRing::new(),
            packets: Packets::new(),
            capacity: charge.pages() * PAGE_SIZE,
            charge,
            readers: 0,
            writers: 0,
            reader_opens: 0,
            writer_opens: 0,
        };
        Ok(Arc::new(Self {
            state: SpinLock::new(state),
            readable: WaitQueue::new(WaitReason::PipeData),
            writable: WaitQueue::new(WaitReason::PipeRoom),
        }))
    }

    /// Wakes a writer, now that there are `room` bytes: `PIPE_BUF` serve any, fewer may not serve the first.
    fn wake_writers(&self, room: usize) {
        if room < PIPE_BUF { self.writable.wake_all() } else { self.writable.wake_one() }
    }

    fn is_open(&self) -> bool {
        let state = self.state.lock();
        state.readers + state.writers > 0
    }

    fn end(self: &Arc<Self>, reads: bool, writes: bool) -> Arc<PipeEnd> {
        let mut state = self.state.lock();
        state.readers += u32::from(reads);
        state.reader_opens += u32::from(reads);
        state.writers += u32::from(writes);
        state.writer_opens += u32::from(writes);
        let seen_writers = state.writer_opens;
        drop(state);
        Arc::new(PipeEnd { pipe: self.clone(), reads, writes, seen_writers })
    }
}

/// One open end.
pub struct PipeEnd {
    pipe: Arc<Pipe>,
    reads: bool,
    writes: bool,
    /// Writers that had ever opened when this end was: until another does, the end has not hung up.
    seen_writers: u32,
}

/// Makes a pipe: its reading and its writing end. ENFILE beyond what may be open, or be in the user's pipes.
pub fn create(flags: u32) -> Result<(Arc<File>, Arc<File>), Errno> {
    let slots = (FileSlot::take()?, FileSlot::take()?);
    let (pipe, mount) = (Pipe::new()?, anon::pipes());
    inject::pipe_made();
    let inode = Arc::new(PipeNode { attr: anon::attr(mount, S_IFIFO | 0o600), pipe: pipe.clone() });
    let reader = pipe.end(true, false);
    let writer = pipe.end(false, true);
    let read = anon::open(mount, "pipe:", inode.clone(), reader, flags | O_RDONLY as u32, slots.0);
    let write = anon::open(mount, "pipe:", inode, writer, flags | O_WRONLY as u32, slots.1);
    Ok((read, write))
}

/// The inode of a pipe; opening it (`/proc/self/fd/N`) gives another end.
struct PipeNode {
    attr: Attr,
    pipe: Arc<Pipe>,
}

impl Inode for PipeNode {
    fn attr(&self) -> &Attr {
        &self.attr
    }

    fn open(self: Arc<Self>, request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
        let (reads, writes) = access(request.flags);
        Ok(self.pipe.end(reads, writes))
    }
}

fn access(flags: u32) -> (bool, bool) {
    (flags & O_ACCMODE != O_WRONLY as u32, flags & O_ACCMODE != O_RDONLY as u32)
}

/// The pipe behind a FIFO's name; there while the FIFO is open, and then it counts for the user who opened it first.
pub struct Fifo(SpinLock<Weak<Pipe>>);

impl Fifo {
    /// A FIFO that was never opened.
    pub const fn new() -> Self {
        Self(SpinLock::new(Weak::new()))
    }

    /// Opens an end of the pipe that is open, or else of a new one. With it, how many readers and writers had opened
    /// before.
    fn enter(&self, reads: bool, writes: bool, nonblocking: bool) -> Result<(Arc<PipeEnd>, u32, u32), Errno> {
        let mut made = None;
        loop {
            let mut known = self.0.lock();
            // Of one that was left its last file may not be gone yet. Dropped behind the lock, as what is not used.
            let before = known.upgrade();
            let pipe = match before.as_ref().filter(|pipe| pipe.is_open()).or(made.as_ref()) {
                Some(pipe) => pipe.clone(),
                None => {
                    drop(known);
                    made = Some(Pipe::new()?);
                    continue;
                }
            };
            let (readers, opens) = {
                let state = pipe.state.lock();
                (state.readers, (state.reader_opens, state.writer_opens))
            };
            if writes && !reads && nonblocking && readers == 0 {
                drop(known);
                return Err(Errno::ENXIO);
            }
            *known = Arc::downgrade(&pipe);
            let end = pipe.end(reads, writes);
            drop(known);
            return Ok((end, opens.0, opens.1));
        }
    }

    fn open_end(&self, flags: u32) -> Result<Arc<dyn FileOps>, Errno> {
        let (reads, writes) = access(flags);
        let nonblocking = flags & O_NONBLOCK as u32 != 0;
        let (end, seen_readers, seen_writers) = self.enter(reads, writes, nonblocking)?;
        let pipe = &end.pipe;
        pipe.readable.wake_all();
        pipe.writable.wake_all();
        let waited = if nonblocking || (reads && writes) {
            Ok(())
        } else if reads {
            pipe.readable.wait(|| {
                let state = pipe.state.lock();
                (state.writers > 0 || state.writer_opens != seen_writers).then_some(())
            })
        } else {
            pipe.writable.wait(|| {
                let state = pipe.state.lock();
                (state.readers > 0 || state.reader_opens != seen_readers).then_some(())
            })
        };
        match waited {
            Ok(()) => Ok(end),
            Err(error) => {
                end.close();
                Err(error.into())
            }
        }
    }
}

impl fs::Fifo for Fifo {
    fn open(&self, flags: u32) -> Result<Arc<dyn FileOps>, Errno> {
        self.open_end(flags)
    }
}

impl Default for Fifo {
    fn default() -> Self {
        Self::new()
    }
}

impl PipeEnd {
    fn close(&self) {
        let mut state = self.pipe.state.lock();
        state.readers -= u32::from(self.reads);
        state.writers -= u32::from(self.writes);
        if state.readers == 0 && state.writers == 0 {
            state.ring.clear();
            state.packets = Packets::new();
        }
        drop(state);
        self.pipe.readable.wake_all();
        self.pipe.writable.wake_all();
    }

    /// Bytes the pipe holds at most (F_GETPIPE_SZ).
    pub fn capacity(&self) -> usize {
        self.pipe.state.lock().capacity
    }

    /// Changes what the pipe holds at most (F_SETPIPE_SZ): rounded up to a power of two of pages; EBUSY if more is in
    /// it.
    pub fn set_capacity(&self, bytes: usize, privileged: bool) -> Result<usize, Errno> {
        if bytes > 1 << 31 {
            return Err(Errno::EINVAL);
        }
        let capacity = bytes.max(PAGE_SIZE).next_power_of_two();
        let mut state = self.pipe.state.lock();
        if capacity > MAX_CAPACITY && capacity > state.capacity && !privileged {
            return Err(Errno::EPERM);
        }
        if state.ring.len() > capacity {
            return Err(Errno::EBUSY);
        }
        state.charge.change(capacity / PAGE_SIZE)?;
        state.capacity = capacity;
        drop(state);
        self.pipe.writable.wake_all();
        Ok(capacity)
    }

    /// One attempt; `None` if the caller has to wait for bytes.
    fn try_read(&self, sink: &mut Sink<'_>) -> Result<Option<()>, Errno> {
        loop {
            let mut state = self.pipe.state.lock();
            if state.ring.is_empty() {
                return if state.writers == 0 { Ok(Some(())) } else { Ok(None) };
            }
            let PipeState { ring, packets, .. } = &mut *state;
            let result = packets.drain(ring, sink);
            let (rest, room) = (!state.ring.is_empty(), state.capacity - state.ring.len());
            let pipe = &self.pipe;
            let writer = pipe.writable.has_waiters_locked(&state);
            let reader = rest && pipe.readable.has_waiters_locked(&state);
            drop(state);
            if writer {
                pipe.wake_writers(room);
            }
            if reader {
                pipe.readable.wake_next();
            }
            match result {
                Err(Errno::EFAULT) => sink.fault_in()?,
                other => return other.map(Some),
            }
        }
    }

    /// One attempt; `None` if the caller has to wait for room.
    fn try_write(&self, source: &mut Source<'_>, atomic: bool, packets: bool) -> Result<Option<()>, Errno> {
        loop {
            let mut state = self.pipe.state.lock();
            if state.readers == 0 {
                return Err(Errno::EPIPE);
            }
            let room = state.capacity - state.ring.len();
            if room == 0 || (atomic && room < source.left()) {
                return Ok(None);
            }
            let capacity = state.capacity;
            let most = if packets { PIPE_BUF } else { usize::MAX };
            // Each packet counts as a page of the pipe, however short it is.
            if packets && (room < most.min(source.left()) || state.packets.list.len() >= state.capacity / PAGE_SIZE) {
                return Ok(None);
            }
            let before = source.done();
            let result = state.ring.fill(capacity, source, most);
            if packets && source.done() > before {
                let held = state.ring.len();
                state.packets.push(held, source.done() - before);
            }
            let reader = self.pipe.readable.has_waiters_locked(&state);
            drop(state);
            if reader {
                self.pipe.readable.wake_one();
            }
            match result {
                Err(Errno::EFAULT) => source.fault_in()?,
                Err(error) => return Err(error),
                Ok(()) if source.left() == 0 => return Ok(Some(())),
                Ok(()) if packets => {}
                Ok(()) => return Ok(None),
            }
        }
    }
}

impl PipeEnd {
    /// Sleeps until all is written. Writers wait exclusively: one that is served passes on the room it leaves.
    fn wait_to_write(&self, source: &mut Source<'_>, atomic: bool, packets: bool) -> Result<(), Errno> {
        let attempt = || self.try_write(source, atomic, packets).transpose();
        let written = self.pipe.writable.wait_exclusive(None, attempt).map_err(Errno::from).flatten();
        let state = self.pipe.state.lock();
        let room = state.capacity - state.ring.len();
        drop(state);
        match room {
            0 => {}
            1..PIPE_BUF => self.pipe.writable.wake_all(),
            _ => self.pipe.writable.wake_next(),
        }
        written
    }
}

impl FileOps for PipeEnd {
    fn read(&self, file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        if sink.left() == 0 {
            return Ok(());
        }
        if let Some(()) = self.try_read(sink)? {
            return Ok(());
        }
        if file.is_nonblocking() {
            return Err(Errno::EAGAIN);
        }
        self.pipe.readable.wait_exclusive(None, || self.try_read(sink).transpose())?
    }

    fn write(&self, file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        if source.left() == 0 {
            return Ok(position);
        }
        let atomic = source.left() <= PIPE_BUF;
        let packets = file.flags() & O_DIRECT as u32 != 0;
        let result = match self.try_write(source, atomic, packets) {
            Ok(None) if file.is_nonblocking() => Err(Errno::EAGAIN),
            Ok(None) => self.wait_to_write(source, atomic, packets),
            other => other.map(|_| ()),
        };
        if result == Err(Errno::EPIPE) {
            raise_sigpipe();
        }
        result.map(|()| position)
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            if self.reads {
                waiter.add(&self.pipe.readable);
            }
            if self.writes {
                waiter.add(&self.pipe.writable);
            }
        }
        let state = self.pipe.state.lock();
        let mut ready = 0;
        if self.reads {
            if !state.ring.is_empty() {
                ready |= IN | RDNORM;
            }
            // A FIFO that no writer has opened since has not hung up.
            let had_writer = state.writer_opens != self.seen_writers || self.seen_writers > 0;
            if state.writers == 0 && had_writer {
                ready |= HUP;
            }
        }
        if self.writes {
            if state.ring.len() + PIPE_BUF <= state.capacity {
                ready |= OUT | WRNORM;
            }
            if state.readers == 0 {
                ready |= ERR;
            }
        }
        ready
    }

    fn sends_sigio(&self) -> bool {
        true
    }

    fn ioctl(&self, _file: &File, request: u64, argument: u64) -> Result<usize, Errno> {
        match request {
            FIONREAD => {
                let held = self.pipe.state.lock().ring.len();
                UserPtr::<i32>::new(argument).write(held as i32).map(|()| 0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn release(&self, _file: &File) {
        self.close();
    }

    fn held_pages(&self) -> usize {
        self.pipe.state.try_lock().map_or(0, |state| state.ring.pages())
    }
}

/// SIGPIPE to the running thread, which wrote without a reader.
pub fn raise_sigpipe() {
    let task = crate::task::current();
    let uid = task.creds.with(|creds| creds.uid);
    let info = SigInfo { signal: sig::PIPE, code: 0, errno: 0, cause: Cause::Sender { pid: task.pid(), uid } };
    // A full queue loses only the detail: the signal itself stays pending.
    let _ = crate::task::signal::send_thread(&task.to_arc(), info);
}
