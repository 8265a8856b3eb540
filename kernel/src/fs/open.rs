//! Opens files: open(2) and openat2(2), and the opening that execve does.

use alloc::sync::Arc;

use kernel_logic::permission::{EXECUTE, READ, WRITE};
use kernel_logic::readiness::NVAL;
use linux_abi::Errno;
use linux_abi::flags::file::{
    O_CREAT, O_DIRECTORY, O_EXCL, O_LARGEFILE, O_NOATIME, O_NOFOLLOW, O_PATH, O_TMPFILE, O_TRUNC,
};

use super::attr::{Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFLNK, S_IFREG, S_IFSOCK};
use super::file::{File, FileOps, Hold, O_ACCMODE};
use super::inode::{LinkTarget, NewNode, OpenRequest};
use super::mount::{MS_NODEV, MS_NOEXEC};
use super::path::Path;
use super::slots::FileSlot;
use super::walk::{Last, Parent, Walk};
use crate::sync::wait::Waiter;

/// How to open.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// `O_*` flags of open(2).
    pub flags: u32,
    /// Permission bits of a file that is made, the umask not yet applied.
    pub mode: u32,
}

impl How {
    #[inline]
    fn has(self, flag: u64) -> bool {
        self.flags & flag as u32 == flag as u32
    }

    /// The permissions that the access mode asks for.
    fn wish(self) -> u32 {
        let access = match self.flags & O_ACCMODE {
            0 => READ,
            1 => WRITE,
            _ => READ | WRITE,
        };
        if self.has(O_TRUNC) { access | WRITE } else { access }
    }
}

/// A file that is found and open, but for its description.
struct Opened {
    location: Path,
    ops: Arc<dyn FileOps>,
    flags: u32,
}

impl Opened {
    /// Only its path is open (O_PATH): the inode is not asked for operations.
    fn by_path(location: Path, flags: u32) -> Self {
        Self { location, ops: path_only(), flags: flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW) as u32 }
    }

    fn describe(self, slot: FileSlot) -> Arc<File> {
        File::new(self.location, self.ops, self.flags, slot)
    }
}

/// Opens what `path` names.
pub fn open(walk: &Walk<'_>, path: &[u8], how: How) -> Result<Arc<File>, Errno> {
    let slot = FileSlot::take()?;
    Ok(find_or_create(walk, path, how)?.describe(slot))
}

/// Opens only the path `location` (O_PATH).
pub fn open_only_path(location: Path, flags: u32) -> Result<Arc<File>, Errno> {
    let slot = FileSlot::take()?;
    Ok(Opened::by_path(location, flags).describe(slot))
}

/// The operations of a description that only holds a path (O_PATH).
pub fn path_only() -> Arc<dyn FileOps> {
    Arc::new(PathOnly)
}

fn find_or_create(walk: &Walk<'_>, path: &[u8], mut how: How) -> Result<Opened, Errno> {
    how.flags |= O_LARGEFILE as u32;
    if how.has(O_PATH) {
        return open_path_only(walk, path, how);
    }
    if how.has(O_TMPFILE) {
        return open_unnamed(walk, path, how);
    }
    if how.has(O_CREAT) {
        return open_or_create(walk, path, how);
    }
    let last = if how.has(O_NOFOLLOW) { Last::Keep } else { Last::Follow };
    let location = walk.find(path, last)?;
    open_found(walk, location, how)
}

/// Opens a path that exists, checking what its owner grants.
fn open_found(walk: &Walk<'_>, location: Path, how: How) -> Result<Opened, Errno> {
    check_kind(&location, how)?;
    let attr = location.inode().attr();
    attr.check(&walk.who, how.wish())?;
    if how.has(O_NOATIME) && !walk.who.owns(attr.uid()) {
        return Err(Errno::EPERM);
    }
    let regular = attr.kind() == S_IFREG;
    if how.wish() & WRITE != 0 && (regular || attr.is_dir()) {
        location.check_writable()?;
    }
    // O_TRUNC counts as writing, with O_RDONLY too.
    if regular && how.wish() & WRITE != 0 {
        attr.begin_write()?;
    }
    if regular && how.has(O_TRUNC) {
        let cut = if location.inode().size() > 0 { location.inode().truncate(0) } else { Ok(()) };
        if cut.is_err() || how.flags & O_ACCMODE == 0 {
            attr.end_write();
        }
        cut?;
        attr.drop_set_id();
    }
    finish(location, how)
}

/// Opens a file for execution: EACCES unless it is a regular file that may be executed. Writing to it is ETXTBSY while
/// the returned description lives.
pub fn open_exec(walk: &Walk<'_>, path: &[u8], last: Last) -> Result<Arc<File>, Errno> {
    exec_found(walk, walk.find(path, last)?)
}

/// [`open_exec`] for a path already resolved (execveat with AT_EMPTY_PATH).
pub fn exec_found(walk: &Walk<'_>, location: Path) -> Result<Arc<File>, Errno> {
    let attr = location.inode().attr();
    match attr.kind() {
        S_IFREG => {}
        S_IFLNK => return Err(Errno::ELOOP),
        _ => return Err(Errno::EACCES),
    }
    if location.mount.flags() & MS_NOEXEC != 0 {
        return Err(Errno::EACCES);
    }
    attr.check(&walk.who, EXECUTE)?;
    let slot = FileSlot::take()?;
    attr.begin_exec()?;
    let request = OpenRequest { flags: 0 };
    let opened = location.inode().clone().open(&request);
    if opened.is_err() {
        location.inode().attr().end_exec();
    }
    Ok(File::holding(location, opened?, O_LARGEFILE as u32, Hold::Execution, slot))
}

fn check_kind(location: &Path, how: How) -> Result<(), Errno> {
    match location.inode().attr().kind() {
        S_IFLNK if how.has(O_DIRECTORY) => Err(Errno::ENOTDIR),
        S_IFLNK => Err(Errno::ELOOP),
        S_IFDIR if how.flags & (O_ACCMODE | O_CREAT as u32 | O_TRUNC as u32) != 0 => Err(Errno::EISDIR),
        S_IFDIR => Ok(()),
        _ if how.has(O_DIRECTORY) => Err(Errno::ENOTDIR),
        S_IFSOCK => Err(Errno::ENXIO),
        S_IFCHR | S_IFBLK if location.mount.flags() & MS_NODEV != 0 => Err(Errno::EACCES),
        _ => Ok(()),
    }
}

/// The permissions are settled and a writer is counted: asks the inode for its operations.
fn finish(location: Path, how: How) -> Result<Opened, Errno> {
    let request = OpenRequest { flags: how.flags };
    match location.inode().clone().open(&request) {
        Ok(ops) => Ok(Opened { location, ops, flags: how.flags }),
        Err(error) => {
            let attr = location.inode().attr();
            if attr.kind() == S_IFREG && how.flags & O_ACCMODE != 0 {
                attr.end_write();
            }
            Err(error)
        }
    }
}

fn open_path_only(walk: &Walk<'_>, path: &[u8], how: How) -> Result<Opened, Errno> {
    let last = if how.has(O_NOFOLLOW) { Last::Keep } else { Last::Follow };
    let location = walk.find(path, last)?;
    if how.has(O_DIRECTORY) && !location.inode().attr().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    Ok(Opened::by_path(location, how.flags))
}

fn open_unnamed(walk: &Walk<'_>, path: &[u8], how: How) -> Result<Opened, Errno> {
    if how.flags & O_ACCMODE == 0 || how.has(O_CREAT) {
        return Err(Errno::EINVAL);
    }
    let dir = walk.find(path, Last::Follow)?;
    dir.inode().attr().check_search(&walk.who)?;
    dir.inode().attr().check(&walk.who, WRITE)?;
    dir.check_writable()?;
    let dentry = dir.inode().create_unnamed(&dir.dentry, new_file(walk, dir.inode().attr(), how))?;
    let location = Path { mount: dir.mount, dentry };
    if !how.has(O_EXCL) {
        location.inode().attr().set_linkable();
    }
    location.inode().attr().begin_write()?;
    finish(location, How { flags: how.flags & !(O_TMPFILE as u32), ..how })
}

fn open_or_create(walk: &Walk<'_>, path: &[u8], how: How) -> Result<Opened, Errno> {
    let mut links = 0;
    let mut found = create_at(walk, walk.parent(path)?, how)?;
    loop {
        let (dir, target) = match found {
            Found::File(opened) => return Ok(opened),
            Found::Link(dir, target) => (dir, target),
        };
        match target {
            LinkTarget::Jump(location) => {
                let location = walk.jump(&dir, location)?;
                return open_found(walk, location, without_create(how));
            }
            LinkTarget::Text(target) => {
                found = create_at(walk, walk.parent_of_target(dir, &target, &mut links)?, how)?;
            }
        }
    }
}

enum Found {
    File(Opened),
    Link(Path, LinkTarget),
}

fn create_at(walk: &Walk<'_>, parent: Parent<'_>, how: How) -> Result<Found, Errno> {
    let Some(name) = parent.name else { return Err(Errno::EISDIR) };
    if parent.wants_dir {
        return Err(Errno::EISDIR);
    }
    match walk.child(&parent.dir, name) {
        Ok(location) => {
            if how.has(O_EXCL) {
                return Err(Errno::EEXIST);
            }
            if location.inode().attr().kind() == S_IFLNK && !how.has(O_NOFOLLOW) {
                walk.count_link(&mut 0)?;
                walk.check_trailing(&parent.dir, location.inode().attr())?;
                let target = location.inode().link_target()?;
                return Ok(Found::Link(parent.dir, target));
            }
            open_found(walk, location, how).map(Found::File)
        }
        Err(Errno::ENOENT) => {
            parent.dir.inode().attr().check(&walk.who, WRITE)?;
            parent.dir.check_writable()?;
            let created =
                parent.dir.inode().create(&parent.dir.dentry, name, new_file(walk, parent.dir.inode().attr(), how));
            let dentry = match created {
                // Another thread was first.
                Err(Errno::EEXIST) if !how.has(O_EXCL) => return create_at(walk, parent, how),
                other => other?,
            };
            let location = Path { mount: parent.dir.mount, dentry };
            if how.flags & O_ACCMODE != 0 {
                location.inode().attr().begin_write()?;
            }
            finish(location, how).map(Found::File)
        }
        Err(error) => Err(error),
    }
}

fn without_create(how: How) -> How {
    How { flags: how.flags & !(O_CREAT as u32), ..how }
}

fn new_file(walk: &Walk<'_>, dir: &Attr, how: How) -> NewNode {
    let mode = walk.who.mode_in(dir, S_IFREG | how.mode & 0o7777) & !walk.context.umask();
    NewNode { mode, uid: walk.who.uid, gid: walk.who.gid, rdev: 0 }
}

/// A description that only holds a path (O_PATH).
struct PathOnly;

impl FileOps for PathOnly {
    fn poll<'q>(&'q self, _file: &'q File, _waiter: Option<&mut Waiter<'q>>) -> u32 {
        NVAL
    }
}
