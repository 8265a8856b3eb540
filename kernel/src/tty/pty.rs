//! Pseudo-terminals (pty(7)): a terminal whose screen and keyboard are another descriptor, the master.
//!
//! What programs write to the terminal, and what it echoes, waits in its [`Wire`] for the master to read; what the
//! master writes is typed. Opening `/dev/ptmx` makes a pair and its node in devpts; closing the master hangs the
//! terminal up.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use kernel_logic::readiness::{HUP, IN, OUT, RDNORM, WRNORM};
use kernel_logic::signal::sig;
use kernel_logic::tty::termios::Termios;
use linux_abi::Errno;
use linux_abi::flags::file::{O_CLOEXEC, O_PATH};
use linux_abi::flags::system::{TIOCGPTLCK, TIOCGPTN, TIOCGPTPEER, TIOCSIG, TIOCSPTLCK};
use machine::addr::PAGE_SIZE;
use machine::sync::{Once, SpinLock};

use super::{ReadTurn, Trust, Tty, TtyFile, ioctl, job};
use crate::fs::FileSlot;
use crate::fs::attr::S_IFCHR;
use crate::fs::dentry::Dentry;
use crate::fs::dev::{PTMX, number};
use crate::fs::file::{File, FileOps};
use crate::fs::inode::{DeviceNode, Inode, NewNode};
use crate::fs::io::{Sink, Source};
use crate::fs::mount::FileSystem as _;
use crate::fs::open::open_only_path;
use crate::fs::tmpfs::TmpFs;
use crate::sched::{Sleep, breathe, breathe_or_stop};
use crate::sync::WaitReason;
use crate::sync::wait::{WaitQueue, Waiter};
use crate::task;
use crate::user::UserPtr;

/// Major number of the terminals in devpts.
pub const MAJOR: u64 = 136;
/// Bytes of output that wait for the master before writers do; what is echoed beyond it is lost.
const ROOM: usize = 8192;
/// Most bytes that are typed at a time.
const TYPED: usize = 64;
/// Most pairs (`kernel.pty.max`).
const MOST: usize = 4096;

/// What lies between a terminal and its master.
pub struct Wire {
    number: u32,
    output: SpinLock<VecDeque<u8>>,
    /// The master sleeps here for output and for room to type.
    master: WaitQueue,
    turn: ReadTurn,
    master_open: AtomicBool,
    /// Open descriptions of the terminal, and whether there ever was one.
    slaves: AtomicU32,
    used: AtomicBool,
    /// Not to be opened yet (`TIOCSPTLCK`).
    locked: AtomicBool,
    /// `TIOCEXCL` of the master, which nothing can open again.
    pub(super) exclusive: AtomicBool,
    /// Its node in devpts, once it is made.
    node: Once<Arc<dyn Inode>>,
}

static PAIRS: SpinLock<BTreeMap<u32, Arc<Tty>>> = SpinLock::new(BTreeMap::new());

impl Wire {
    /// Output of the terminal. What finds no room is lost: programs wait before ([`Wire::has_room`]), echo does not.
    pub(super) fn put(&self, bytes: &[u8]) {
        let mut output = self.output.lock();
        // Twice the room: a write that began with room may expand.
        if output.len() < 2 * ROOM && output.try_reserve(bytes.len()).is_ok() {
            output.extend(bytes);
        }
    }

    /// Tells the master of what [`Wire::put`] left, once the terminal is unlocked.
    pub(super) fn was_shown(&self) {
        self.master.wake_all();
    }

    /// Whether a program may write.
    pub(super) fn has_room(&self) -> bool {
        self.output.lock().len() < ROOM
    }

    /// The master was closed.
    pub(super) fn is_cut(&self) -> bool {
        !self.master_open.load(Relaxed)
    }

    /// Input was read or dropped: there may be room to type.
    pub(super) fn was_read(&self) {
        self.master.wake_all();
    }

    pub(super) fn opened(&self) {
        self.slaves.fetch_add(1, Relaxed);
        self.used.store(true, Relaxed);
    }

    pub(super) fn closed(&self) {
        self.slaves.fetch_sub(1, Relaxed);
        self.master.wake_all();
    }

    fn is_left(&self) -> bool {
        self.used.load(Relaxed) && self.slaves.load(Relaxed) == 0
    }
}

/// devpts: one for all.
pub fn file_system() -> Result<Arc<TmpFs>, Errno> {
    static PTS: Once<Arc<TmpFs>> = Once::new();
    loop {
        if let Some(fs) = PTS.get() {
            return Ok(fs.clone());
        }
        let fs = TmpFs::new("devpts", 64, 0o755, b"");
        let root = fs.root();
        let node = NewNode { mode: S_IFCHR, uid: 0, gid: 0, rdev: PTMX };
        root.inode.create(&root, b"ptmx", node)?;
        // Of two that come here at once, one is used.
        let _ = PTS.set(fs);
    }
}

/// Opens `/dev/ptmx`: a new pair.
pub fn open_master() -> Result<Arc<dyn FileOps>, Errno> {
    let fs = file_system()?;
    let creds = task::current().creds();
    let mut pairs = PAIRS.lock();
    if pairs.len() >= MOST {
        return Err(Errno::ENOSPC);
    }
    let free = (0..).zip(pairs.keys()).find(|(wanted, taken)| wanted != *taken).map(|(free, _)| free);
    let index = free.unwrap_or(pairs.len() as u32);
    let wire = Wire {
        number: index,
        output: SpinLock::new(VecDeque::new()),
        master: WaitQueue::new(WaitReason::PtyMaster),
        turn: ReadTurn::new(),
        master_open: AtomicBool::new(true),
        slaves: AtomicU32::new(0),
        used: AtomicBool::new(false),
        locked: AtomicBool::new(true),
        exclusive: AtomicBool::new(false),
        node: Once::new(),
    };
    let tty = Tty::new(number(MAJOR, u64::from(index)), Termios::pseudo(), Some(wire));
    pairs.insert(index, tty.clone());
    drop(pairs);
    let root = fs.root();
    let node = NewNode { mode: S_IFCHR | 0o620, uid: creds.fsuid, gid: creds.fsgid, rdev: tty.rdev };
    match root.inode.create(&root, format!("{index}").as_bytes(), node) {
        Ok(entry) => {
            if let Some(wire) = &tty.wire {
                // Set here alone.
                let _ = wire.node.set(entry.inode.clone());
            }
            Ok(Arc::new(Master { tty, entry }))
        }
        Err(errno) => {
            PAIRS.lock().remove(&index);
            Err(errno)
        }
    }
}

/// Opens the terminal of a pair by its node: `EIO` while it is locked, when it is gone, even if its number is another
/// pair's now, and for a node that is not of devpts.
pub fn open_slave(index: u32, node: &DeviceNode<'_>, flags: u32) -> Result<Arc<dyn FileOps>, Errno> {
    let tty = PAIRS.lock().get(&index).cloned().ok_or(Errno::EIO)?;
    let own = tty.wire.as_ref().and_then(|wire| wire.node.get());
    if !own.is_some_and(|own| core::ptr::addr_eq(Arc::as_ptr(own), node.inode)) {
        return Err(Errno::EIO);
    }
    open_end(tty, flags)
}

fn open_end(tty: Arc<Tty>, flags: u32) -> Result<Arc<dyn FileOps>, Errno> {
    if tty.wire.as_ref().is_none_or(|wire| wire.locked.load(Relaxed)) {
        return Err(Errno::EIO);
    }
    tty.check_exclusive()?;
    job::adopt_if_free(&tty, flags);
    Ok(TtyFile::new(tty))
}

/// The master's end.
struct Master {
    tty: Arc<Tty>,
    /// The terminal's node.
    entry: Arc<Dentry>,
}

impl Master {
    fn wire(&self) -> Result<&Wire, Errno> {
        self.tty.wire.as_ref().ok_or(Errno::EIO)
    }

    /// Output of the terminal, or the error that says there will be none.
    fn try_read(&self, wire: &Wire, into: &mut [u8]) -> Option<Result<usize, Errno>> {
        let mut output = wire.output.lock();
        let count = into.len().min(output.len());
        if count == 0 {
            return wire.is_left().then_some(Err(Errno::EIO));
        }
        for (slot, byte) in into.iter_mut().zip(output.drain(..count)) {
            *slot = byte;
        }
        Some(Ok(count))
    }

    /// How many bytes may be typed before any is read.
    fn room(&self) -> usize {
        self.tty.discipline.lock().room()
    }

    fn open_peer(&self, flags: u64) -> Result<usize, Errno> {
        let fs = file_system()?;
        let path = crate::fs::Path { mount: mount_of(fs), dentry: self.entry.clone() };
        let file = if flags & O_PATH != 0 {
            open_only_path(path, flags as u32)?
        } else {
            let slot = FileSlot::take()?;
            let ops = open_end(self.tty.clone(), flags as u32)?;
            File::new(path, ops, flags as u32, slot)
        };
        let task = task::current();
        let limit = task.process.limit(task::limits::resource::NOFILE).min(1 << 18) as u32;
        task.files().install(file, 0, limit, flags & O_CLOEXEC != 0).map(|fd| fd as usize)
    }
}

/// A mount of devpts that stands nowhere, for descriptors that no path was walked to.
fn mount_of(fs: Arc<TmpFs>) -> Arc<crate::fs::mount::Mount> {
    let root = fs.root();
    crate::fs::mount::Mount::new(fs, root, b"devpts", 0)
}

impl FileOps for Master {
    fn read(&self, file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        let wire = self.wire()?;
        let mut buffer = alloc::vec![0; sink.left().min(4096)];
        let _turn = wire.turn.take(file.is_nonblocking())?;
        let count = match self.try_read(wire, &mut buffer) {
            Some(outcome) => outcome?,
            None if file.is_nonblocking() => return Err(Errno::EAGAIN),
            None => wire.master.wait(|| self.try_read(wire, &mut buffer))??,
        };
        self.tty.writable.wake_all();
        sink.put(&buffer[..count]).map(|_| ())
    }

    fn write(&self, file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        let wire = self.wire()?;
        let mut piece = [0; TYPED];
        while source.left() > 0 {
            let room = match self.room() {
                0 if file.is_nonblocking() => return Err(Errno::EAGAIN),
                0 => wire.master.wait(|| Some(self.room()).filter(|room| *room > 0))?,
                room => room,
            };
            let count = source.take(&mut piece[..room.min(TYPED)])?;
            for byte in &piece[..count] {
                self.tty.input(*byte, Trust::Full);
                // One byte may show a whole line.
                breathe();
            }
            if source.left() > 0 {
                breathe_or_stop(Sleep::Interruptible).map_err(|_| Errno::ERESTARTSYS)?;
            }
        }
        Ok(position)
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        let Ok(wire) = self.wire() else { return HUP };
        if let Some(waiter) = waiter {
            waiter.add(&wire.master);
        }
        let readable = if wire.output.lock().is_empty() { 0 } else { IN | RDNORM };
        let writable = if self.room() > 0 { OUT | WRNORM } else { 0 };
        let left = if wire.is_left() { HUP } else { 0 };
        readable | writable | left
    }

    fn sends_sigio(&self) -> bool {
        true
    }

    fn held_pages(&self) -> usize {
        let output = self.tty.wire.as_ref().and_then(|wire| Some(wire.output.try_lock()?.capacity()));
        let input = self.tty.discipline.try_lock().map(|discipline| discipline.held());
        (output.unwrap_or(0) + input.unwrap_or(0)) / PAGE_SIZE
    }

    fn ioctl(&self, _file: &File, request: u64, argument: u64) -> Result<usize, Errno> {
        let wire = self.wire()?;
        let int = UserPtr::<i32>::new(argument);
        match request {
            TIOCGPTN => int.write(wire.number as i32).map(|()| 0),
            TIOCSPTLCK => {
                wire.locked.store(int.read()? != 0, Relaxed);
                Ok(0)
            }
            TIOCGPTLCK => int.write(i32::from(wire.locked.load(Relaxed))).map(|()| 0),
            TIOCGPTPEER => self.open_peer(argument),
            // No other, for the group may run as another user.
            TIOCSIG => match [sig::INT, sig::QUIT, sig::TSTP].into_iter().find(|signal| u64::from(*signal) == argument)
            {
                Some(signal) => {
                    job::signal_foreground(&self.tty, signal);
                    Ok(0)
                }
                None => Err(Errno::EINVAL),
            },
            _ => {
                let waiting = wire.output.lock().len();
                ioctl::handle_master(&self.tty, request, argument, waiting)
            }
        }
    }

    fn release(&self, _file: &File) {
        let Ok(wire) = self.wire() else { return };
        wire.master_open.store(false, Relaxed);
        if let Ok(fs) = file_system() {
            let root = fs.root();
            // The node may have been removed by hand.
            let _ = root.inode.remove(&root, &self.entry, false);
        }
        // The number is free once its name is.
        PAIRS.lock().remove(&wire.number);
        job::hang_up(&self.tty);
        self.tty.writable.wake_all();
    }
}
