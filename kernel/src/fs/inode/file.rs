//! Open file descriptions: what a descriptor stands for.
//!
//! A [`File`] owns the path it was opened at, the status flags and the position; what its bytes are is up to its
//! [`FileOps`]. Operations move bytes into a [`Sink`] or out of a [`Source`], which count: an error after the first
//! byte is not an error of the call (read(2), write(2)).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use linux_abi::Errno;
use linux_abi::flags::file as abi;
pub use linux_abi::numbers::O_ACCMODE;
use machine::sync::{Once, SpinLock};

use super::watchers::Watchers;
use super::{Emit, Inode};
use crate::fs::attr;
use crate::fs::filelock::{self, Lockable};
use crate::fs::io::{Sink, Source};
use crate::fs::mount::{self, Path};
use crate::fs::slots::FileSlot;
use crate::sync::Mutex;
use crate::sync::wait::Waiter;
use crate::upper::Kwab;

/// Flags fcntl F_SETFL may change.
const SETTABLE: u32 = (abi::O_APPEND | abi::O_NONBLOCK | abi::O_DIRECT | abi::O_NOATIME | abi::O_ASYNC) as u32;
/// Flags that are for open alone and not kept.
const OPEN_ONLY: u32 = (abi::O_CREAT | abi::O_EXCL | abi::O_NOCTTY | abi::O_TRUNC | abi::O_CLOEXEC) as u32;

/// Whether a file has a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seeking {
    /// Bytes have offsets: regular files, most of `/proc`.
    Position,
    /// Bytes are read at offsets; a write begins at none and pwrite is ESPIPE: names in `/proc`.
    Lines,
    /// lseek succeeds and does nothing: `/dev/null`, terminals in Linux's sense are not among these.
    Ignored,
    /// lseek succeeds and does nothing, pread is ESPIPE: event descriptors.
    Nowhere,
    /// lseek and pread are ESPIPE: pipes, sockets, terminals.
    Stream,
}

impl Seeking {
    /// Whether reads move the position.
    #[inline]
    pub fn has_position(self) -> bool {
        matches!(self, Self::Position | Self::Lines)
    }
}

/// The position that stands for the end of the file, whichever that is when the write begins.
pub const END: u64 = u64::MAX;

/// What an open file does. Defaults refuse as Linux refuses.
pub trait FileOps: Any + Send + Sync {
    /// Moves bytes from `position` on into `sink`. Nothing moved and no error is end of file.
    fn read(&self, _file: &File, _position: u64, _sink: &mut Sink<'_>) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// Moves bytes out of `source` to `position` on, or to the end for [`END`]. Answers where the bytes began:
    /// `position` unless the file appends, or has no end.
    fn write(&self, _file: &File, _position: u64, _source: &mut Source<'_>) -> Result<u64, Errno> {
        Err(Errno::EINVAL)
    }

    /// Whether there is a position.
    fn seeking(&self) -> Seeking {
        Seeking::Stream
    }

    /// What the file is ready for (`POLL*`); adds every queue whose waking may change that to `waiter`.
    fn poll<'q>(&'q self, _file: &'q File, _waiter: Option<&mut Waiter<'q>>) -> u32 {
        use kernel_logic::readiness::{IN, OUT, RDNORM, WRNORM};
        IN | OUT | RDNORM | WRNORM
    }

    /// Whether `O_ASYNC` can be set and makes readiness send a signal: pipes, sockets and terminals (fcntl(2)).
    fn sends_sigio(&self) -> bool {
        false
    }

    /// A device request.
    fn ioctl(&self, _file: &File, _request: u64, _argument: u64) -> Result<usize, Errno> {
        Err(Errno::ENOTTY)
    }

    /// Lists a directory, see [`Inode::readdir`].
    fn readdir(&self, _file: &File, _from: u64, _emit: &mut Emit<'_>) -> Result<(), Errno> {
        Err(Errno::ENOTDIR)
    }

    /// The next data (`hole` false) or hole at or behind `from` (SEEK_DATA, SEEK_HOLE): ENXIO behind the end.
    fn seek_data(&self, file: &File, from: u64, hole: bool) -> Result<u64, Errno> {
        let size = file.inode().size();
        match (from >= size, hole) {
            (true, _) => Err(Errno::ENXIO),
            (false, true) => Ok(size),
            (false, false) => Ok(from),
        }
    }

    /// The epoll that it stands for, if it is one: asked more often than a downcast is cheap.
    fn epoll(&self) -> Option<&Arc<<Kwab as Observers>::Epoll>> {
        None
    }

    /// Pages of kernel memory that what is behind it holds, as far as that is known without waiting: for the choice of
    /// a victim when memory is short.
    fn held_pages(&self) -> usize {
        0
    }

    /// The last descriptor was closed.
    fn release(&self, _file: &File) {}

    /// A descriptor was closed by the running process, if [`File::tell_of_closing`] asked for that.
    fn closed(&self) {}
}

impl dyn FileOps {
    /// These operations as those of the type `T`, if they are.
    #[inline]
    pub fn downcast<T: FileOps>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// The types of the layers above that observe descriptions.
pub trait Observers {
    /// Sends signals about readiness (`O_ASYNC`).
    type Fasync: FasyncHook;
    /// Watches files for readiness.
    type Epoll: Watcher;
}

/// Sends a signal when a description is ready.
pub trait FasyncHook: Default + Send + Sync + 'static {
    /// Leaves the queues of `file`, which is closed for good.
    fn stop(self: &Arc<Self>, file: &File);
}

/// Is told when a description is closed for good.
pub trait Watcher: Send + Sync + 'static {
    /// `file` is closed for good.
    fn forget(&self, file: &File);
}

/// What a description keeps counted at its inode while it lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Nothing is counted.
    None,
    /// A writer: the file cannot be executed.
    Writer,
    /// An execution: the file cannot be written.
    Execution,
}

/// An open file description.
pub struct File {
    /// Where it was opened.
    pub path: Path,
    /// What it does.
    pub ops: Arc<dyn FileOps>,
    flags: AtomicU32,
    seeking: Seeking,
    position: AtomicU64,
    /// Orders reads and writes that move the position (read(2): atomic with respect to threads). The position is beside
    /// it because fdinfo and `lseek` look at it while a read sleeps.
    position_lock: Mutex<()>,
    /// Owns record locks or a flock that close must give up, or has asked for [`FileOps::closed`].
    pub has_locks: AtomicBool,
    /// The signal that readiness sends; there once it was asked for.
    fasync: Once<Arc<<Kwab as Observers>::Fasync>>,
    watched: AtomicBool,
    /// Behind a pointer, as most have none.
    watchers: SpinLock<Option<Box<Watchers<<Kwab as Observers>::Epoll>>>>,
    hold: Hold,
    _slot: FileSlot,
}

impl File {
    /// Opens `path` with `ops`. The caller has checked permissions and, for a writer of a regular file, called
    /// [`attr::Attr::begin_write`].
    pub fn new(path: Path, ops: Arc<dyn FileOps>, flags: u32, slot: FileSlot) -> Arc<Self> {
        let writing = flags & O_ACCMODE != 0 && flags & abi::O_PATH as u32 == 0;
        let hold = if writing && path.inode().attr().kind() == attr::S_IFREG { Hold::Writer } else { Hold::None };
        Self::holding(path, ops, flags, hold, slot)
    }

    /// The same with what the caller counted at the inode.
    pub fn holding(path: Path, ops: Arc<dyn FileOps>, flags: u32, hold: Hold, slot: FileSlot) -> Arc<Self> {
        let seeking = ops.seeking();
        Arc::new(Self {
            path,
            ops,
            flags: AtomicU32::new(flags & !OPEN_ONLY),
            seeking,
            position: AtomicU64::new(0),
            position_lock: Mutex::new(()),
            has_locks: AtomicBool::new(false),
            fasync: Once::new(),
            watched: AtomicBool::new(false),
            watchers: SpinLock::new(None),
            hold,
            _slot: slot,
        })
    }

    /// The inode that was opened.
    #[inline]
    pub fn inode(&self) -> &Arc<dyn Inode> {
        self.path.inode()
    }

    /// Status flags and access mode (F_GETFL).
    #[inline]
    pub fn flags(&self) -> u32 {
        self.flags.load(Relaxed)
    }

    /// Sets the status flags that may change (F_SETFL).
    pub fn set_flags(&self, flags: u32) {
        self.flags.store(self.flags() & !SETTABLE | flags & SETTABLE, Relaxed);
    }

    /// Sets or clears O_NONBLOCK (FIONBIO).
    pub fn set_nonblocking(&self, on: bool) {
        let bit = abi::O_NONBLOCK as u32;
        self.set_flags(if on { self.flags() | bit } else { self.flags() & !bit });
    }

    /// Whether calls must not block.
    #[inline]
    pub fn is_nonblocking(&self) -> bool {
        self.flags() & abi::O_NONBLOCK as u32 != 0
    }

    /// Whether writes go to the end.
    pub fn is_appending(&self) -> bool {
        self.flags() & abi::O_APPEND as u32 != 0
    }

    /// Whether reads leave the access time alone.
    pub fn is_noatime(&self) -> bool {
        self.flags() & abi::O_NOATIME as u32 != 0
            || self.path.mount.flags() & (mount::MS_NOATIME | mount::MS_RDONLY) != 0
    }

    /// Whether only the path is open, not the contents.
    #[inline]
    pub fn is_path_only(&self) -> bool {
        self.flags() & abi::O_PATH as u32 != 0
    }

    #[cold]
    fn has_no_positions(&self) -> Errno {
        if self.is_path_only() { Errno::EBADF } else { Errno::ESPIPE }
    }

    /// Whether it is open for reading.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.flags() & (O_ACCMODE | abi::O_PATH as u32) & !2 == 0
    }

    /// Whether it is open for writing.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.flags() & abi::O_PATH as u32 == 0 && matches!(self.flags() & O_ACCMODE, 1 | 2)
    }

    /// Whether there is a position.
    pub fn seeking(&self) -> Seeking {
        self.seeking
    }

    /// Reads at the position and moves it.
    #[inline(always)]
    pub fn read(&self, sink: &mut Sink<'_>) -> Result<usize, Errno> {
        if !self.is_readable() {
            return Err(Errno::EBADF);
        }
        if !self.seeking.has_position() {
            let result = self.ops.read(self, 0, sink);
            return outcome(sink.done(), result);
        }
        self.read_on(sink)
    }

    /// Reads at the position of a file that has one and moves it; apart from [`File::read`], which is inlined.
    fn read_on(&self, sink: &mut Sink<'_>) -> Result<usize, Errno> {
        let turn = self.position_lock.lock();
        let position = self.position.load(Relaxed);
        check_end(position, sink.left())?;
        let result = self.ops.read(self, position, sink);
        self.position.store(position + sink.done() as u64, Relaxed);
        drop(turn);
        outcome(sink.done(), result)
    }

    /// Writes at the position, or at the end with O_APPEND, and moves the position behind the bytes.
    #[inline]
    pub fn write(&self, source: &mut Source<'_>) -> Result<usize, Errno> {
        if !self.is_writable() {
            return Err(Errno::EBADF);
        }
        if self.seeking != Seeking::Position {
            let result = self.ops.write(self, 0, source).map(|_| ());
            return outcome(source.done(), result);
        }
        let turn = self.position_lock.lock();
        let position = self.position.load(Relaxed);
        check_end(position, source.left())?;
        let before = source.done();
        let result = self.ops.write(self, position, source);
        let start = result.unwrap_or(position);
        self.position.store(start + (source.done() - before) as u64, Relaxed);
        drop(turn);
        outcome(source.done(), result.map(|_| ()))
    }

    /// pread: reads at `position`; the file's own does not move.
    pub fn read_at(&self, position: u64, sink: &mut Sink<'_>) -> Result<usize, Errno> {
        if matches!(self.seeking, Seeking::Stream | Seeking::Nowhere) {
            return Err(self.has_no_positions());
        }
        if !self.is_readable() {
            return Err(Errno::EBADF);
        }
        check_end(position, sink.left())?;
        let result = self.ops.read(self, position, sink);
        outcome(sink.done(), result)
    }

    /// pwrite: writes at `position`; the file's own does not move.
    pub fn write_at(&self, position: u64, source: &mut Source<'_>) -> Result<usize, Errno> {
        if matches!(self.seeking, Seeking::Stream | Seeking::Nowhere | Seeking::Lines) {
            return Err(self.has_no_positions());
        }
        if !self.is_writable() {
            return Err(Errno::EBADF);
        }
        check_end(position, source.left())?;
        let result = self.ops.write(self, position, source).map(|_| ());
        outcome(source.done(), result)
    }

    /// pwritev2 with RWF_APPEND: writes at the end. The file's own position moves behind the bytes if none is given,
    /// else it stays.
    pub fn append(&self, position: Option<u64>, source: &mut Source<'_>) -> Result<usize, Errno> {
        if self.seeking != Seeking::Position {
            return match position {
                Some(position) => self.write_at(position, source),
                None => self.write(source),
            };
        }
        if !self.is_writable() {
            return Err(Errno::EBADF);
        }
        let turn = position.is_none().then(|| self.position_lock.lock());
        check_end(position.unwrap_or_else(|| self.position()), source.left())?;
        let result = self.ops.write(self, END, source);
        if let (None, Ok(start)) = (position, result)
            && start != END
        {
            self.position.store(start + source.done() as u64, Relaxed);
        }
        drop(turn);
        outcome(source.done(), result.map(|_| ()))
    }

    /// The position in bytes.
    pub fn position(&self) -> u64 {
        self.position.load(Relaxed)
    }

    /// Moves the position.
    pub fn set_position(&self, position: u64) {
        self.position.store(position, Relaxed);
    }

    /// What the file is ready for (`POLL*`).
    #[inline]
    pub fn poll<'q>(&'q self, waiter: Option<&mut Waiter<'q>>) -> u32 {
        self.ops.poll(self, waiter)
    }

    /// The signal that readiness sends, if it was ever asked for.
    pub fn fasync_if_any(&self) -> Option<&Arc<<Kwab as Observers>::Fasync>> {
        self.fasync.get()
    }

    /// The signal that readiness sends, made at the first call.
    pub fn fasync(&self) -> &Arc<<Kwab as Observers>::Fasync> {
        loop {
            if let Some(fasync) = self.fasync.get() {
                return fasync;
            }
            // Of two that come here at once, one is used.
            let _ = self.fasync.set(Arc::default());
        }
    }

    /// Notes that `epoll` watches this description, so that it is told of the last close.
    pub fn add_watcher(&self, epoll: &Arc<<Kwab as Observers>::Epoll>) {
        let mut guard = self.watchers.lock();
        let watchers = guard.get_or_insert_default();
        if !watchers.has(Arc::as_ptr(epoll)) {
            watchers.add(epoll);
        }
        self.watched.store(true, Relaxed);
    }

    /// One descriptor of the table `owner` was closed: POSIX locks go (fcntl(2)), also those that another description
    /// of the file was locked through, which there may be if `has_locked`.
    #[inline]
    pub fn closed_by(&self, owner: u64, has_locked: bool) {
        if has_locked && !self.is_path_only() {
            filelock::release_process(self, owner);
        }
        if self.has_locks.load(Relaxed) {
            self.ops.closed();
        }
    }

    /// Forgets that `epoll` watches this description.
    pub fn remove_watcher(&self, epoll: &<Kwab as Observers>::Epoll) {
        let gone = self.watchers.lock().as_mut().and_then(|watchers| watchers.remove(epoll));
        drop(gone);
    }

    /// The epolls that watch this description.
    pub fn watchers(&self) -> Vec<Arc<<Kwab as Observers>::Epoll>> {
        if !self.watched.load(Relaxed) {
            return Vec::new();
        }
        self.watchers.lock().as_ref().map_or(Vec::new(), |watchers| watchers.alive())
    }

    /// Has [`FileOps::closed`] called for every descriptor that is closed from now on.
    pub fn tell_of_closing(&self) {
        self.has_locks.store(true, Relaxed);
    }
}

/// EINVAL if the transfer would end beyond the largest offset (read(2)).
#[inline]
fn check_end(position: u64, count: usize) -> Result<(), Errno> {
    if position.saturating_add(count as u64) > i64::MAX as u64 { Err(Errno::EINVAL) } else { Ok(()) }
}

/// What a call returns that moved `done` bytes before it ended with `result`.
#[inline]
pub fn outcome(done: usize, result: Result<(), Errno>) -> Result<usize, Errno> {
    match result {
        Ok(()) => Ok(done),
        Err(error) => broken_off(done, error),
    }
}

/// [`outcome`] of a call that ended with an error.
#[cold]
#[inline(never)]
fn broken_off(done: usize, error: Errno) -> Result<usize, Errno> {
    if done == 0 { Err(error) } else { Ok(done) }
}

impl Lockable for File {
    fn identity(&self) -> (u64, u64) {
        let attr = self.inode().attr();
        (attr.dev, attr.ino)
    }

    fn locked(&self) {
        self.has_locks.store(true, Relaxed);
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.watched.load(Relaxed) {
            let watchers = self.watchers.lock().take();
            for epoll in watchers.iter().flat_map(|watchers| watchers.alive()) {
                epoll.forget(self);
            }
        }
        if let Some(fasync) = self.fasync.get() {
            fasync.stop(self);
        }
        if self.has_locks.load(Relaxed) {
            filelock::release_description(self);
        }
        let attr = self.path.dentry.inode.attr();
        match self.hold {
            Hold::None => {}
            Hold::Writer => attr.end_write(),
            Hold::Execution => attr.end_exec(),
        }
        self.ops.release(self);
    }
}
