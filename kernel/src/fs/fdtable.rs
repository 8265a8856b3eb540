//! A process's descriptors, shared by tasks with `CLONE_FILES`.
//!
//! The table's identity ([`FdTable::owner`]) is what POSIX record locks belong to: closing any descriptor of a file
//! gives up all the process's locks on it (fcntl(2)).
//!
//! Tasks use a table ([`Usage`]); others, as listings of `/proc`, only refer to it: with its last user all its
//! descriptors are closed, and a table with one user is that task's own, however many look at it.

use alloc::sync::Arc;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

use kernel_logic::fdtable::{FdTable as Slots, NoDescriptor};
use linux_abi::Errno;
use machine::addr::PAGE_SIZE;
use machine::sync::SpinLock;

use super::file::File;
use super::mapped::nameless_pages;
use crate::mm::frames;
use crate::sched;

/// Descriptors of a process.
pub struct FdTable {
    slots: SpinLock<Slots<Arc<File>>>,
    owner: u64,
    /// A POSIX lock was set through it: what is closed from then on may be locked.
    has_locked: AtomicBool,
    users: AtomicUsize,
}

/// A task's use of a table, which ends with this.
pub struct Usage(Arc<FdTable>);

impl Usage {
    /// Of a further task, which shares the table.
    pub fn share(&self) -> Self {
        Self::of(self.0.clone())
    }

    fn of(table: Arc<FdTable>) -> Self {
        table.users.fetch_add(1, Relaxed);
        Self(table)
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, AcqRel) == 1 {
            self.0.close_range(0, u32::MAX);
        }
    }
}

/// Where a task keeps its use of a table, until it ends.
pub struct TableSlot(SpinLock<Option<Usage>>);

impl TableSlot {
    /// A slot with this use, or none.
    pub const fn new(usage: Option<Usage>) -> Self {
        Self(SpinLock::new(usage))
    }

    /// The table of the slot, if it has one.
    #[inline(always)]
    pub fn get(&self) -> Option<Arc<FdTable>> {
        self.0.lock().as_ref().map(|usage| usage.0.clone())
    }

    /// Looks at the table, without taking a reference. `look` must not sleep.
    pub fn with<R>(&self, look: impl FnOnce(Option<&FdTable>) -> R) -> R {
        look(self.0.lock().as_ref().map(|usage| &*usage.0))
    }

    /// A further task's use of the table.
    pub fn share(&self) -> Option<Usage> {
        self.0.lock().as_ref().map(Usage::share)
    }

    /// Puts another use there; what was there is returned so that it ends outside the lock.
    pub fn set(&self, usage: Option<Usage>) -> Option<Usage> {
        core::mem::replace(&mut *self.0.lock(), usage)
    }

    /// Makes the table the task's own: one that other tasks use is copied. `ENOMEM` without room for the copy.
    pub fn own(&self) -> Result<Option<Arc<FdTable>>, Errno> {
        let Some(table) = self.get() else { return Ok(None) };
        if table.users.load(Acquire) <= 1 {
            return Ok(Some(table));
        }
        let copy = table.fork()?;
        let table = copy.0.clone();
        drop(self.set(Some(copy)));
        Ok(Some(table))
    }
}

/// Pages of memory behind a table's descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// The kernel's own: the table, descriptions, and what they say of themselves
    /// ([`FileOps::held_pages`](super::file::FileOps::held_pages)).
    pub buffers: u64,
    /// Of files without a name.
    pub contents: u64,
}

/// Bytes of a description with the object and the inode behind it, about.
const DESCRIPTION: usize = size_of::<File>() + 768;

static NEXT_OWNER: AtomicU64 = AtomicU64::new(1);

impl Default for FdTable {
    fn default() -> Self {
        Self::new()
    }
}

impl FdTable {
    /// A table without descriptors.
    pub fn new() -> Self {
        Self::with(Slots::new())
    }

    /// A table without descriptors, for its first task.
    pub fn first() -> Usage {
        Usage::of(Arc::new(Self::new()))
    }

    /// The copy that fork makes, for the new task. `ENOMEM` without room for it.
    pub fn fork(&self) -> Result<Usage, Errno> {
        let copy = self.slots.lock().try_clone().map_err(errno)?;
        Ok(Usage::of(Arc::new(Self::with(copy))))
    }

    fn with(slots: Slots<Arc<File>>) -> Self {
        let owner = NEXT_OWNER.fetch_add(1, Relaxed);
        Self { slots: SpinLock::new(slots), owner, has_locked: AtomicBool::new(false), users: AtomicUsize::new(0) }
    }

    /// A POSIX lock is about to be set through it.
    pub fn locks(&self) {
        self.has_locked.store(true, Relaxed);
    }

    #[inline]
    fn closed(&self, file: &File) {
        file.closed_by(self.owner, self.has_locked.load(Relaxed));
    }

    /// The owner of POSIX locks taken through this table.
    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// The open file behind `fd`.
    #[inline]
    pub fn get(&self, fd: i32) -> Result<Arc<File>, Errno> {
        self.find(fd).ok_or(Errno::EBADF)
    }

    /// [`get`](Self::get), with `None` for a descriptor that is not open.
    #[inline]
    pub fn find(&self, fd: i32) -> Option<Arc<File>> {
        self.slots.lock().get(fd as u32).cloned()
    }

    /// Gives `file` the lowest number from `least` on, below `limit` (RLIMIT_NOFILE).
    pub fn install(&self, file: Arc<File>, least: u32, limit: u32, close_on_exec: bool) -> Result<i32, Errno> {
        frames::spare()?;
        let mut slots = self.slots.lock();
        match slots.find_room(least, limit) {
            Ok(fd) => {
                slots.put(fd, file, close_on_exec);
                Ok(fd as i32)
            }
            Err(why) => {
                // A file that is refused ends outside the lock.
                drop(slots);
                Err(errno(why))
            }
        }
    }

    /// dup: gives the file of `from` the lowest free number below `limit` (RLIMIT_NOFILE) too, in one step.
    #[inline]
    pub fn duplicate(&self, from: i32, limit: u32) -> Result<usize, Errno> {
        let mut slots = self.slots.lock();
        let Some(file) = slots.get(from as u32).cloned() else { return Err(Errno::EBADF) };
        match frames::spare().and_then(|()| slots.find_room(0, limit).map_err(errno)) {
            Ok(fd) => {
                slots.put(fd, file, false);
                Ok(fd as usize)
            }
            Err(why) => {
                // A file that another thread has closed meanwhile ends outside the lock.
                drop(slots);
                drop(file);
                Err(why)
            }
        }
    }

    /// `EMFILE` when no number below `limit` is free: for calls that take something before they install it.
    pub fn check_room(&self, limit: u32) -> Result<(), Errno> {
        if self.slots.lock().has_room(limit) { Ok(()) } else { Err(Errno::EMFILE) }
    }

    /// dup2 and dup3: makes `to` the same as `from`, closing what was there.
    pub fn replace(&self, from: i32, to: i32, limit: u32, close_on_exec: bool) -> Result<(), Errno> {
        frames::spare()?;
        let mut slots = self.slots.lock();
        let file = slots.get(from as u32).cloned().ok_or(Errno::EBADF)?;
        let old = slots.replace(to as u32, file, limit, close_on_exec).map_err(|why| match why {
            NoDescriptor::NoMemory => Errno::ENOMEM,
            NoDescriptor::Full | NoDescriptor::BeyondLimit => Errno::EBADF,
        })?;
        drop(slots);
        if let Some(old) = old {
            self.closed(&old);
        }
        Ok(())
    }

    /// Closes `fd`; the file is returned so that its last reference is dropped outside every lock.
    #[inline]
    pub fn close(&self, fd: i32) -> Result<Arc<File>, Errno> {
        let file = self.slots.lock().remove(fd as u32).ok_or(Errno::EBADF)?;
        self.closed(&file);
        Ok(file)
    }

    /// Closes what exec closes.
    pub fn close_on_exec(&self) {
        let files = self.slots.lock().take_close_on_exec();
        for file in files {
            self.closed(&file);
            drop(file);
            sched::breathe();
        }
    }

    /// Closes every descriptor of `first..=last`.
    pub fn close_range(&self, first: u32, last: u32) {
        let files = self.slots.lock().take_range(first, last);
        for file in files {
            self.closed(&file);
            drop(file);
            sched::breathe();
        }
    }

    /// Marks every descriptor of `first..=last` for exec.
    pub fn mark_range(&self, first: u32, last: u32) {
        let mut slots = self.slots.lock();
        let mut from = first;
        while let Some(fd) = { slots.numbers_from(from).next() }.filter(|&fd| fd <= last) {
            slots.set_close_on_exec(fd, true);
            let Some(next) = fd.checked_add(1) else { break };
            from = next;
        }
    }

    /// The close-on-exec flag of `fd`.
    pub fn is_close_on_exec(&self, fd: i32) -> Result<bool, Errno> {
        self.slots.lock().close_on_exec(fd as u32).ok_or(Errno::EBADF)
    }

    /// Sets the close-on-exec flag of `fd`.
    pub fn set_close_on_exec(&self, fd: i32, on: bool) -> Result<(), Errno> {
        self.slots.lock().set_close_on_exec(fd as u32, on).ok_or(Errno::EBADF)
    }

    /// The first open number at or behind `from`, with its file (listings of `/proc/PID/fd`).
    pub fn next_open(&self, from: u32) -> Option<(u32, Arc<File>)> {
        let slots = self.slots.lock();
        let fd = slots.numbers_from(from).next()?;
        Some((fd, slots.get(fd)?.clone()))
    }

    /// What is behind its descriptors, as far as that is known without waiting.
    pub fn held(&self) -> Held {
        let Some(slots) = self.slots.try_lock() else { return Held::default() };
        let mut bytes = slots.capacity() * size_of::<Option<Arc<File>>>();
        let mut held = Held::default();
        for (_, file) in slots.iter() {
            // Further descriptors of one description, those of other processes included, have a share each.
            bytes += DESCRIPTION / Arc::strong_count(file);
            held.buffers += file.ops.held_pages() as u64;
            held.contents += nameless_pages(file.inode());
        }
        held.buffers += (bytes / PAGE_SIZE) as u64;
        held
    }

    /// Numbers the table has room for (`FDSize`).
    pub fn capacity(&self) -> usize {
        self.slots.lock().capacity()
    }
}

impl Drop for FdTable {
    fn drop(&mut self) {
        let files = self.slots.get_mut().take_range(0, u32::MAX);
        for file in files {
            self.closed(&file);
            drop(file);
            sched::breathe();
        }
    }
}

/// Why no descriptor was given, of calls that ask for the lowest free one.
fn errno(why: NoDescriptor) -> Errno {
    match why {
        NoDescriptor::Full => Errno::EMFILE,
        NoDescriptor::BeyondLimit => Errno::EINVAL,
        NoDescriptor::NoMemory => Errno::ENOMEM,
    }
}
