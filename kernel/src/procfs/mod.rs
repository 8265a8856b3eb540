//! `/proc` (proc(5)): processes and the system as files.
//!
//! Nothing is stored: a directory is a table of [`ProcEntry`]s ([`tables`]) or a list made when asked (processes,
//! threads, descriptors), and a file's text is made when it is read from its start ([`text`]). A node of a process
//! holds only ids; the process is looked up at each use, so a node of one that ended answers ENOENT or ESRCH.

mod limits;
mod lines;
mod locks;
mod maps;
mod meminfo;
mod node;
mod process;
mod status;
mod system;
mod tables;
mod text;
mod watchdogs;

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;
use machine::sync::Once;

use crate::fs::dentry::Dentry;
use crate::fs::inode::LinkTarget;
use crate::fs::mount::{FileSystem, Statistics};
use crate::mm::AddressSpace;
use crate::task::access::{self, By};
use crate::task::process::family::Identity;
use crate::task::{Pid, Process, ThreadRef, Tid, current, tree};
use node::{Body, ProcNode};

/// What of the crash path is a file here.
pub trait Crash {
    /// Names this boot, in `/proc/sys/kernel/random/boot_id` and in every dump.
    fn boot_id() -> [u8; 16];
    /// A dump of the system as it is: `/proc/kwab`.
    fn live_dump() -> Vec<u8>;
    /// Does what was written to `/proc/sysrq-trigger`.
    fn request(text: &[u8]) -> Result<(), Errno>;
}

/// Whose files they are: a process, and of its threads the one asked about. A process that gets the number of one that
/// is gone is another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// `None` for files of the system.
    identity: Option<Identity>,
    tid: Tid,
}

impl Target {
    fn of(process: &Process, tid: Tid) -> Self {
        Self { identity: Some(process.family.identity()), tid }
    }

    /// The process's number, 0 for none.
    fn pid(self) -> Pid {
        self.identity.map_or(0, Identity::id)
    }

    fn is_of(self, process: &Process) -> bool {
        self.identity == Some(process.family.identity())
    }

    fn process(self) -> Result<Arc<Process>, Errno> {
        tree::process(self.pid()).filter(|process| self.is_of(process)).ok_or(Errno::ESRCH)
    }

    /// ESRCH if its process is gone.
    fn check_there(self) -> Result<(), Errno> {
        if self.identity.is_some() { self.process().map(drop) } else { Ok(()) }
    }

    fn thread(self) -> Result<ThreadRef, Errno> {
        if self.tid != self.pid() {
            return tree::thread(self.tid).filter(|thread| self.is_of(&thread.process)).ok_or(Errno::ESRCH);
        }
        self.process()?.threads.first().ok_or(Errno::ESRCH)
    }
}

impl Target {
    /// Whether the running thread may look into it: EACCES if not.
    fn check_access(self) -> Result<(), Errno> {
        access::check(&current(), &*self.thread()?, By::FileSystemIds).map_err(|_| Errno::EACCES)
    }

    /// What `look` finds in it, if the running thread may look into it before and still after: an execution in between
    /// does not show the new program.
    fn look<T>(self, look: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        self.check_access()?;
        let found = look()?;
        self.check_access()?;
        Ok(found)
    }
}

/// Makes the text of a file.
type Read = fn(Target) -> Result<Vec<u8>, Errno>;
/// Makes the text of a file about a process's memory.
type ReadMemory = fn(&AddressSpace) -> Result<Vec<u8>, Errno>;
/// Takes what was written to a file.
type Write = fn(Target, &[u8]) -> Result<(), Errno>;
/// Where a link leads.
type Follow = fn(Target) -> Result<LinkTarget, Errno>;

/// One name of a directory.
struct ProcEntry {
    name: &'static str,
    mode: u32,
    what: What,
}

/// What a write at another offset than 0 does to a control file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offset {
    /// The same as at 0.
    Unseen,
    /// Nothing, and all of it counts as written (a number; `kernel.sysctl_writes_strict` in Linux's admin guide).
    Ignored,
    /// It goes on behind so many bytes of the text, if that has as many (a name).
    Joined,
    /// It is refused with EINVAL.
    Refused,
    /// There is none: every write is the whole text, with what ends a line in it.
    Absent,
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum What {
    Directory(&'static [ProcEntry]),
    File(Read),
    /// One of `/proc/sys` that cannot be set.
    Constant(Read),
    Control(Read, Write, Offset),
    /// About the memory the process had when it was opened; the opener must be allowed to look into it.
    Memory(ReadMemory),
    /// A file about the memory that the process has when it is opened, with the text of that moment.
    AtOpen(ReadMemory),
    Link(Follow),
    Threads,
    Descriptors,
    DescriptorInfo,
}

/// The one proc file system.
struct ProcFs {
    dev: u64,
    root: Arc<Dentry>,
}

/// The file system, the same for every mount.
pub fn file_system() -> Arc<dyn FileSystem> {
    static FS: Once<Arc<ProcFs>> = Once::new();
    loop {
        if let Some(fs) = FS.get() {
            return fs.clone();
        }
        let dev = crate::fs::tmpfs::next_dev();
        let node = ProcNode::new(dev, 1, 0o040_555, Target::default(), Body::Root);
        let root = Dentry::new(b"", None, node);
        // Of two that come here at once, one is used.
        let _ = FS.set(Arc::new(ProcFs { dev, root }));
    }
}

impl FileSystem for ProcFs {
    fn kind(&self) -> &'static str {
        "proc"
    }

    fn dev(&self) -> u64 {
        self.dev
    }

    fn root(&self) -> Arc<Dentry> {
        self.root.clone()
    }

    fn statistics(&self) -> Statistics {
        Statistics { magic: 0x9fa0, ..Statistics::default() }
    }
}
