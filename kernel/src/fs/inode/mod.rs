//! What every file system provides: inodes; their names ([`dentry`]) and their open descriptions ([`mod@file`]) refer
//! to each other.
//!
//! An [`Inode`] is a file without a name. What all have in common (type, mode, owner, times, link count) sits in an
//! [`Attr`] that every implementation embeds, so that permission checks and stat need no call per field. Names belong
//! to dentries ([`dentry`]); what reading and writing does belongs to [`file::FileOps`].

use alloc::sync::Arc;
use core::any::Any;

use linux_abi::Errno;
use machine::addr::FrameNumber;
use machine::frame::Frame;

use super::attr::{Attr, Attributes};
use super::headers::HeaderSlot;
use super::mount::Path;
use super::seals::Seals;
pub use crate::mm::PageUse;
use crate::mm::image::Origin;
use crate::mm::{ReverseMap, TemplateSlot};

pub mod dentry;
pub mod file;
pub mod watchers;

use dentry::Dentry;
use file::FileOps;

/// What mmap makes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapping {
    /// Pages of the file: [`Inode::page`].
    Pages,
    /// The same, 2 MiB at a time, which are never cut ([`super::hugetlb`]).
    HugePages,
    /// Fresh zeros, as an anonymous mapping (`/dev/zero`).
    Zeros,
    /// Cannot be mapped (ENODEV).
    Refused,
}

/// Where a symbolic link leads.
pub enum LinkTarget {
    /// A path to walk.
    Text(Arc<[u8]>),
    /// A path reached directly, whatever its name is now (`/proc/PID/fd/N`, `exe`, `cwd`, `root`).
    Jump(Path),
}

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewNode {
    /// File type and permission bits, the umask already applied.
    pub mode: u32,
    /// Owner's user id.
    pub uid: u32,
    /// Group, before the set-group-ID rule of the directory.
    pub gid: u32,
    /// Device number, for device nodes.
    pub rdev: u64,
}

/// One entry of a listing: cookie of the next one, inode number, `st_mode`, name. Answers whether to go on.
pub type Emit<'a> = dyn FnMut(u64, u64, u32, &[u8]) -> bool + 'a;

/// What rename does when the new name exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RenameMode {
    /// The new name is replaced.
    Replace,
    /// The call fails with EEXIST (`RENAME_NOREPLACE`).
    KeepTarget,
    /// The two are exchanged (`RENAME_EXCHANGE`).
    Exchange,
}

/// Where rename puts an entry.
pub struct RenameTo<'a> {
    /// The target directory.
    pub dir: &'a Arc<Dentry>,
    /// The name in it.
    pub name: &'a [u8],
    /// What the caller found there, and checked.
    pub existing: Option<&'a Arc<Dentry>>,
    /// What takes the old name, if anything does.
    pub whiteout: Option<NewNode>,
}

/// A file. Directory methods answer ENOTDIR unless the implementation is a directory, and so on.
pub trait Inode: Any + Send + Sync {
    /// What all inodes have.
    fn attr(&self) -> &Attr;

    /// Length in bytes as stat reports it.
    fn size(&self) -> u64 {
        0
    }

    /// Blocks of 512 bytes in use.
    fn blocks(&self) -> u64 {
        0
    }

    /// The entry `name` of this directory, whose dentry is `dir`.
    fn lookup(&self, _dir: &Arc<Dentry>, _name: &[u8]) -> Result<Arc<Dentry>, Errno> {
        Err(Errno::ENOTDIR)
    }

    /// Makes a file, directory, FIFO, socket or device node.
    fn create(&self, _dir: &Arc<Dentry>, _name: &[u8], _new: NewNode) -> Result<Arc<Dentry>, Errno> {
        Err(Errno::EPERM)
    }

    /// Makes a regular file without a name (`O_TMPFILE`).
    fn create_unnamed(&self, _dir: &Arc<Dentry>, _new: NewNode) -> Result<Arc<Dentry>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Makes a symbolic link.
    fn symlink(&self, _dir: &Arc<Dentry>, _name: &[u8], _target: &[u8], _new: NewNode) -> Result<Arc<Dentry>, Errno> {
        Err(Errno::EPERM)
    }

    /// Gives `target` another name.
    fn link(&self, _dir: &Arc<Dentry>, _name: &[u8], _target: &Arc<dyn Inode>) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Takes the name of `entry` away; `directory` says which kind the caller wants to remove.
    fn remove(&self, _dir: &Arc<Dentry>, _entry: &Arc<Dentry>, _directory: bool) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Moves `entry` of this directory to `to`, in a directory of the same file system: ESTALE, and nothing
    /// changes, if something else has that name now than the caller saw there.
    fn rename(&self, _entry: &Arc<Dentry>, _to: &RenameTo<'_>, _mode: RenameMode) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Lists entries from cookie `from` (0 at the start; `.` and `..` are the caller's) until `emit` says stop.
    fn readdir(&self, _dir: &Arc<Dentry>, _from: u64, _emit: &mut Emit<'_>) -> Result<(), Errno> {
        Err(Errno::ENOTDIR)
    }

    /// Where this symbolic link leads.
    fn link_target(&self) -> Result<LinkTarget, Errno> {
        Err(Errno::EINVAL)
    }

    /// Sets the length; the part cut off is gone, a part added reads as zeros.
    fn truncate(&self, _size: u64) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// fallocate(2): `mode` 0 reserves, `FALLOC_FL_*` as Linux.
    fn allocate(&self, _mode: u64, _start: u64, _length: u64) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// What mmap makes of this file.
    fn mapping(&self) -> Mapping {
        Mapping::Refused
    }

    /// The frame that holds page `index` of the file, which mappings share with read and write. A page past the end of
    /// the file is ENXIO (the program gets SIGBUS). For [`PageUse::Read`] the caller maps it read-only.
    fn page(&self, _index: u64, _use: PageUse) -> Result<Frame, Errno> {
        Err(Errno::ENODEV)
    }

    /// Fills `to` with the frames of the pages from `first` on that are in memory, as [`Inode::page`] gives them for
    /// [`PageUse::Read`]; the others stay as they are.
    fn cached(&self, _first: u64, _to: &mut [Option<Frame>]) {}

    /// Makes `to` the frame of a page, for an image of a program: see [`crate::mm::image`].
    fn move_page(&self, _index: u64, _to: Frame) -> Option<Origin> {
        None
    }

    /// The address spaces that have mapped it; `None` for a file that is never cut.
    fn mappers(&self) -> Option<&ReverseMap> {
        None
    }

    /// The frame of page `index`, if there is one in memory and no stopped processor has the pages locked: for checks.
    fn present(&self, _index: u64) -> Option<FrameNumber> {
        None
    }

    /// Where the template of the program in this file is kept ([`crate::mm::template`]).
    fn template(&self) -> Option<&TemplateSlot> {
        None
    }

    /// Where the headers of the program in this file are kept.
    fn headers(&self) -> Option<&HeaderSlot> {
        None
    }

    /// The extended attributes, where the file system keeps any.
    fn attributes(&self) -> Option<&Attributes> {
        None
    }

    /// The seals of a file that can be sealed (`F_ADD_SEALS`).
    fn seals(&self) -> Option<&Seals> {
        None
    }

    /// Adds seals (`F_ADD_SEALS`), as [`Seals::add`] answers.
    fn add_seals(&self, _more: u32) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// Rises whenever contents change by other means than a shared mapping; what was derived from the pages of another
    /// generation is stale.
    fn generation(&self) -> u64 {
        0
    }

    /// Copies what the file held from byte `at` on when it was unpacked, for checks of its pages: how many bytes there
    /// are. `None` if it was not unpacked from an archive, was written since, or is locked by a stopped processor.
    fn original(&self, _at: u64, _to: &mut [u8]) -> Option<usize> {
        None
    }

    /// What an open description of this file does; `dentry` is the name it was opened by.
    fn open(self: Arc<Self>, request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno>;
}

/// What the opener wants.
pub struct OpenRequest {
    /// `O_*` flags of open(2).
    pub flags: u32,
}

/// A device node that is opened, as its driver sees it.
pub struct DeviceNode<'a> {
    /// The node, as distinct from others with its number.
    pub inode: &'a dyn Inode,
    /// Its device number.
    pub rdev: u64,
}
