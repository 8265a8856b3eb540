//! POSIX message queues (mq_overview(7)): bounded queues of prioritised messages, found by name.
//!
//! A queue is an inode in one flat table of names; descriptors are open files over it, so poll, fstat and close work as
//! ever. A process may ask to be signalled once when a message arrives at an empty queue without receivers.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use kernel_logic::mqueue::{Messages, Refused};
use kernel_logic::readiness::{IN, OUT, RDNORM, WRNORM};
use kernel_logic::signal::{Cause, SigInfo};
use linux_abi::Errno;
use linux_abi::flags::file::O_PATH;
use linux_abi::numbers::SI_MESGQ;
use machine::sync::SpinLock;
use machine::time::Nanos;

use crate::fs::attr::{Attr, S_IFREG};
use crate::fs::file::{File, FileOps};
use crate::fs::inode::{Inode, OpenRequest};
use crate::fs::io::Sink;
use crate::fs::open::path_only;
use crate::fs::{FileSlot, anon};
use crate::mm::frames;
use crate::sync::WaitReason;
use crate::sync::wait::{WaitQueue, Waiter};
use crate::task::account::Charge;
use crate::task::signal;
use crate::task::{Process, current};

/// A message queue, with or without a name.
pub struct Queue {
    attr: Attr,
    messages: SpinLock<Messages>,
    /// Receivers sleep here.
    arrived: WaitQueue,
    /// Senders sleep here.
    room: WaitQueue,
    /// Threads in [`Queue::receive`] that found nothing yet: a message for one of them sends no notification.
    receivers: AtomicUsize,
    notify: SpinLock<Option<Registration>>,
    /// What it counts for the user who made it ([`footprint`]), also without a name.
    _bytes: Charge,
}

/// The process that is signalled once at the next message.
pub struct Registration {
    /// The process to signal.
    pub process: Weak<Process>,
    /// Programs it had executed then: a later one is not told.
    pub executions: u64,
    /// With which signal; `None` registers without (`SIGEV_NONE`).
    pub signal: Option<u8>,
    /// `sigev_value` of the program.
    pub value: u64,
}

/// Whether a call may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Return `EAGAIN` in place of sleep.
    None,
    /// At most until a moment of the monotonic clock.
    Until(Option<Nanos>),
}

static NAMES: SpinLock<BTreeMap<Vec<u8>, Arc<Queue>>> = SpinLock::new(BTreeMap::new());

/// Most queues that a user without privilege may bring the number to (`fs.mqueue.queues_max`), open ones without a name
/// included.
pub const MAX_QUEUES: usize = 256;

/// Queues there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The queue of that name.
pub fn find(name: &[u8]) -> Option<Arc<Queue>> {
    NAMES.lock().get(name).cloned()
}

/// Enters a new queue: `EEXIST` when the name was taken meanwhile, `ENOSPC` when there are too many.
pub fn enter(name: &[u8], queue: &Arc<Queue>, privileged: bool) -> Result<(), Errno> {
    let mut names = NAMES.lock();
    if names.contains_key(name) {
        return Err(Errno::EEXIST);
    }
    // The new one is counted already.
    if COUNT.load(Relaxed) > MAX_QUEUES && !privileged {
        return Err(Errno::ENOSPC);
    }
    names.insert(name.to_vec(), queue.clone());
    Ok(())
}

/// Bytes a queue of `most` messages of up to `longest` bytes counts as: the messages and what keeps them in order.
pub fn footprint(most: usize, longest: usize) -> u64 {
    const NODE: u64 = 48;
    const MESSAGE: u64 = 48;
    let (most, longest) = (most as u64, longest as u64);
    most.saturating_mul(MESSAGE + longest).saturating_add(most.min(32_768) * NODE)
}

/// Takes a name away; the queue lives on while it is open. `allowed` decides for the queue that has it.
pub fn unlink(name: &[u8], allowed: impl FnOnce(&Attr) -> Result<(), Errno>) -> Result<(), Errno> {
    let mut names = NAMES.lock();
    // In one step with the removal: another user's queue may have the name by then.
    allowed(&names.get(name).ok_or(Errno::ENOENT)?.attr)?;
    let gone = names.remove(name).ok_or(Errno::ENOENT)?;
    drop(names);
    gone.attr.add_links(-1);
    Ok(())
}

impl Queue {
    /// An empty one, owned by the running thread, that counts as `bytes`.
    pub fn new(mode: u32, most: usize, longest: usize, bytes: Charge) -> Arc<Self> {
        COUNT.fetch_add(1, Relaxed);
        Arc::new(Self {
            attr: anon::attr(anon::queues(), S_IFREG | mode),
            messages: SpinLock::new(Messages::new(most, longest)),
            arrived: WaitQueue::new(WaitReason::Message),
            room: WaitQueue::new(WaitReason::MessageRoom),
            receivers: AtomicUsize::new(0),
            notify: SpinLock::new(None),
            _bytes: bytes,
        })
    }

    /// A description of it; with O_PATH one that names it and can do no more.
    pub fn open(self: &Arc<Self>, flags: u32, slot: FileSlot) -> Arc<File> {
        let ops = if flags & O_PATH as u32 != 0 { path_only() } else { Arc::new(QueueFile(self.clone())) };
        anon::open(anon::queues(), "mqueue", self.clone(), ops, flags, slot)
    }

    /// Its attributes as an inode.
    pub fn inode_attr(&self) -> &Attr {
        &self.attr
    }

    /// Most messages, their longest length, and how many wait.
    pub fn shape(&self) -> [usize; 3] {
        let messages = self.messages.lock();
        [messages.most(), messages.longest(), messages.len()]
    }

    /// Puts a message in, sleeping for room if need be.
    pub fn send(&self, priority: u32, message: Vec<u8>, patience: Patience) -> Result<(), Errno> {
        frames::spare()?;
        let mut message = Some(message);
        let mut attempt = || {
            let (was_empty, outcome) = {
                let mut messages = self.messages.lock();
                (messages.is_empty(), messages.push(priority, message.take().unwrap_or_default()))
            };
            match outcome {
                Ok(()) => Some(Ok(was_empty)),
                Err((Refused::Full, back)) => {
                    message = Some(back);
                    None
                }
                Err((Refused::TooLong, _)) => Some(Err(Errno::EMSGSIZE)),
                Err((Refused::NoMemory, _)) => Some(Err(Errno::ENOMEM)),
            }
        };
        let was_empty = match (attempt(), patience) {
            (Some(outcome), _) => outcome?,
            (None, Patience::None) => return Err(Errno::EAGAIN),
            (None, Patience::Until(deadline)) => {
                // A sender that fails for another reason leaves the room it was woken for.
                self.room.wait_exclusive(deadline, attempt)?.inspect_err(|_| self.room.wake_next())?
            }
        };
        if was_empty && self.receivers.load(Relaxed) == 0 {
            self.notify_once();
        }
        self.arrived.wake_one();
        Ok(())
    }

    /// Takes the next message, sleeping for one if need be; with its priority.
    pub fn receive(&self, patience: Patience) -> Result<(u32, Vec<u8>), Errno> {
        let attempt = || self.messages.lock().pop();
        let taken = match (attempt(), patience) {
            (Some(message), _) => message,
            (None, Patience::None) => return Err(Errno::EAGAIN),
            (None, Patience::Until(deadline)) => {
                self.receivers.fetch_add(1, Relaxed);
                let waited = self.arrived.wait_exclusive(deadline, attempt);
                self.receivers.fetch_sub(1, Relaxed);
                waited?
            }
        };
        self.room.wake_one();
        Ok(taken)
    }

    /// Registers for the next message: `EBUSY` if a live process is registered.
    pub fn register(&self, registration: Registration) -> Result<(), Errno> {
        let mut notify = self.notify.lock();
        if notify.as_ref().is_some_and(|other| other.process.strong_count() > 0) {
            return Err(Errno::EBUSY);
        }
        *notify = Some(registration);
        Ok(())
    }

    /// Takes `process`'s registration back, if it has one.
    pub fn unregister(&self, process: &Process) {
        let mut notify = self.notify.lock();
        if notify.as_ref().is_some_and(|other| core::ptr::eq(other.process.as_ptr(), process)) {
            *notify = None;
        }
    }

    fn notify_once(&self) {
        let Some(registration) = self.notify.lock().take() else { return };
        let (Some(process), Some(signal)) = (registration.process.upgrade(), registration.signal) else { return };
        if process.family.executions() != registration.executions {
            return;
        }
        let me = current();
        let uid = me.creds.with(|creds| creds.uid);
        let cause = Cause::Value { pid: me.pid(), uid, value: registration.value };
        // A full queue loses the signal, as on Linux; the message is there all the same.
        let _ = signal::send_process(&process, SigInfo { signal, code: SI_MESGQ, errno: 0, cause });
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Relaxed);
    }
}

impl Inode for Queue {
    fn attr(&self) -> &Attr {
        &self.attr
    }

    fn open(self: Arc<Self>, _request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
        Ok(Arc::new(QueueFile(self)))
    }
}

struct QueueFile(Arc<Queue>);

impl FileOps for QueueFile {
    fn read(&self, _file: &File, position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        let (signal, pid) = match &*self.0.notify.lock() {
            Some(asked) => (asked.signal.unwrap_or(0), asked.process.upgrade().map_or(0, |process| process.pid)),
            None => (0, 0),
        };
        let bytes = self.0.messages.lock().bytes();
        let text = format!("QSIZE:{bytes:<10} NOTIFY:{:<5} SIGNO:{signal:<5} NOTIFY_PID:{pid:<6}\n", 0);
        let rest = text.as_bytes().get(position as usize..).unwrap_or(&[]);
        sink.put(rest).map(|_| ())
    }

    fn seeking(&self) -> crate::fs::file::Seeking {
        crate::fs::file::Seeking::Position
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            waiter.add(&self.0.arrived);
            waiter.add(&self.0.room);
        }
        let messages = self.0.messages.lock();
        let readable = if messages.is_empty() { 0 } else { IN | RDNORM };
        let writable = if messages.is_full() { 0 } else { OUT | WRNORM };
        readable | writable
    }

    fn closed(&self) {
        self.0.unregister(&current().process);
    }
}

/// The queue that `file` stands for, if it is one.
pub fn of(file: &File) -> Option<&Arc<Queue>> {
    file.ops.downcast::<QueueFile>().map(|file| &file.0)
}
