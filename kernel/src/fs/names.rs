//! Makes, removes and moves names: the checks that are the same in every file system (mkdir(2), unlink(2), rename(2),
//! …).

use alloc::sync::Arc;

use kernel_logic::path::Step;
use kernel_logic::permission::{self, EXECUTE, READ, WRITE};
use linux_abi::{Errno, capabilities as cap};

use super::attr::{Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};
use super::dentry::Dentry;
use super::inode::{NewNode, RenameMode, RenameTo};
use super::path::Path;
use super::walk::{Last, Parent, Walk};
use crate::sched::{Sleep, breathe_or_stop};

/// Makes a directory.
pub fn make_directory(walk: &Walk<'_>, path: &[u8], mode: u32) -> Result<(), Errno> {
    let (dir, name) = parent_for_new(walk, path, true)?;
    let mode = S_IFDIR | mode & 0o1777 & !walk.context.umask();
    dir.inode().create(&dir.dentry, name, new_node(walk, mode, 0)).map(|_| ())
}

/// Makes a regular file, FIFO, socket or device node (mknod(2)).
pub fn make_node(walk: &Walk<'_>, path: &[u8], mode: u32, rdev: u64) -> Result<Path, Errno> {
    let kind = match mode & S_IFMT {
        0 => S_IFREG,
        S_IFDIR => return Err(Errno::EPERM),
        kind @ (S_IFREG | S_IFCHR | S_IFBLK | S_IFIFO | S_IFSOCK) => kind,
        _ => return Err(Errno::EINVAL),
    };
    let device = matches!(kind, S_IFCHR | S_IFBLK);
    // No driver has this number: it marks what an overlay hides.
    let is_whiteout = kind == S_IFCHR && rdev == 0;
    let (dir, name) = parent_for_new(walk, path, false)?;
    if device && !is_whiteout && !walk.who.has(cap::MKNOD) {
        return Err(Errno::EPERM);
    }
    let mode = walk.who.mode_in(dir.inode().attr(), kind | mode & 0o7777) & !walk.context.umask();
    let dentry = dir.inode().create(&dir.dentry, name, new_node(walk, mode, if device { rdev } else { 0 }))?;
    Ok(Path { mount: dir.mount, dentry })
}

/// Makes a symbolic link at `path` to `target`.
pub fn make_symlink(walk: &Walk<'_>, path: &[u8], target: &[u8]) -> Result<(), Errno> {
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    let (dir, name) = parent_for_new(walk, path, false)?;
    dir.inode().symlink(&dir.dentry, name, target, new_node(walk, S_IFLNK | 0o777, 0)).map(|_| ())
}

/// Gives the file at `from` another name.
pub fn make_link(walk: &Walk<'_>, from: &Path, path: &[u8]) -> Result<(), Errno> {
    let (dir, name) = parent_for_new(walk, path, false)?;
    if !Arc::ptr_eq(&from.mount, &dir.mount) {
        return Err(Errno::EXDEV);
    }
    let attr = from.inode().attr();
    if attr.is_dir() {
        return Err(Errno::EPERM);
    }
    check_link_source(walk, attr)?;
    dir.inode().link(&dir.dentry, name, from.inode())
}

/// `fs.protected_hardlinks`, on: a user who does not own a file makes names only for a harmless one: regular, without
/// set-id bits, and his to read and write.
fn check_link_source(walk: &Walk<'_>, attr: &Attr) -> Result<(), Errno> {
    let mode = attr.mode();
    let harmless = attr.kind() == S_IFREG && mode & 0o4000 == 0 && mode & 0o2010 != 0o2010;
    let safe = walk.who.owns(attr.uid()) || (harmless && attr.check(&walk.who, READ | WRITE).is_ok());
    if safe { Ok(()) } else { Err(Errno::EPERM) }
}

/// Removes a name that is not a directory's.
pub fn unlink(walk: &Walk<'_>, path: &[u8]) -> Result<(), Errno> {
    let parent = walk.parent(path)?;
    let Some(name) = parent.name else { return Err(Errno::EISDIR) };
    let entry = walk.child_here(&parent.dir, name)?;
    if parent.wants_dir {
        return Err(if entry.inode.attr().is_dir() { Errno::EISDIR } else { Errno::ENOTDIR });
    }
    check_removal(walk, &parent.dir, &entry)?;
    parent.dir.inode().remove(&parent.dir.dentry, &entry, false)
}

/// Removes an empty directory.
pub fn remove_directory(walk: &Walk<'_>, path: &[u8]) -> Result<(), Errno> {
    let parent = walk.parent(path)?;
    let Some(name) = parent.name else {
        return Err(match parent.ending {
            Step::Up => Errno::ENOTEMPTY,
            Step::Here if path.iter().all(|&byte| byte == b'/') => Errno::EBUSY,
            _ => Errno::EINVAL,
        });
    };
    let entry = walk.child_here(&parent.dir, name)?;
    check_removal(walk, &parent.dir, &entry)?;
    parent.dir.inode().remove(&parent.dir.dentry, &entry, true)
}

/// Moves `old` to `new`, each seen from its own walk. With `whiteout` a device node without a driver takes the old
/// name, which marks what an overlay hides (`RENAME_WHITEOUT`).
pub fn rename(from: (&Walk<'_>, &[u8]), to: (&Walk<'_>, &[u8]), mode: RenameMode, whiteout: bool) -> Result<(), Errno> {
    let (walk, old) = from;
    let source = walk.parent(old)?;
    let target = to.0.parent(to.1)?;
    if source.name.is_none() || target.name.is_none() {
        return Err(Errno::EBUSY);
    }
    if !Arc::ptr_eq(&source.dir.mount, &target.dir.mount) {
        return Err(Errno::EXDEV);
    }
    loop {
        // One of the names changed between the check and the move: check again.
        match rename_found(walk, &source, &target, mode, whiteout) {
            Err(Errno::ESTALE) => breathe_or_stop(Sleep::Killable)?,
            outcome => return outcome,
        }
    }
}

fn rename_found(
    walk: &Walk<'_>,
    source: &Parent<'_>,
    target: &Parent<'_>,
    mode: RenameMode,
    whiteout: bool,
) -> Result<(), Errno> {
    let (Some(old_name), Some(new_name)) = (source.name, target.name) else { return Err(Errno::EBUSY) };
    let entry = walk.child_here(&source.dir, old_name)?;
    let existing = match walk.child_here(&target.dir, new_name) {
        Ok(existing) => Some(existing),
        Err(Errno::ENOENT) => None,
        Err(error) => return Err(error),
    };
    if mode == RenameMode::KeepTarget && existing.is_some() {
        return Err(Errno::EEXIST);
    }
    let is_dir = entry.inode.attr().is_dir();
    if (source.wants_dir || target.wants_dir) && !is_dir {
        return Err(Errno::ENOTDIR);
    }
    check_removal(walk, &source.dir, &entry)?;
    if entry.is_mounted_on() {
        return Err(Errno::EBUSY);
    }
    match &existing {
        Some(existing) => {
            if existing.is_mounted_on() {
                return Err(Errno::EBUSY);
            }
            if mode == RenameMode::Replace && !Arc::ptr_eq(&existing.inode, &entry.inode) {
                match (is_dir, existing.inode.attr().is_dir()) {
                    (true, false) => return Err(Errno::ENOTDIR),
                    (false, true) => return Err(Errno::EISDIR),
                    _ => {}
                }
            }
            check_removal(walk, &target.dir, existing)?;
            if source.dir.dentry.is_within(existing) && mode == RenameMode::Replace {
                return Err(Errno::ENOTEMPTY);
            }
        }
        None => check_change(walk, &target.dir)?,
    }
    // A directory that moves must have its `..` changed, also one that is exchanged for the entry.
    if !Arc::ptr_eq(&source.dir.dentry, &target.dir.dentry) {
        let exchanged = existing.iter().filter(|_| mode == RenameMode::Exchange);
        for moved in exchanged.chain([&entry]).filter(|moved| moved.inode.attr().is_dir()) {
            moved.inode.attr().check(&walk.who, WRITE)?;
        }
    }
    let whiteout = whiteout.then(|| new_node(walk, S_IFCHR, 0));
    let to = RenameTo { dir: &target.dir.dentry, name: new_name, existing: existing.as_ref(), whiteout };
    source.dir.inode().rename(&entry, &to, mode)
}

impl Walk<'_> {
    /// The entry `name` of `dir` itself, not what may be mounted on it.
    fn child_here(&self, dir: &Path, name: &[u8]) -> Result<Arc<Dentry>, Errno> {
        dir.inode().lookup(&dir.dentry, name)
    }
}

/// The directory and name for something new: EEXIST if it is there already.
fn parent_for_new<'p>(walk: &Walk<'_>, path: &'p [u8], directory: bool) -> Result<(Path, &'p [u8]), Errno> {
    let Parent { dir, name, wants_dir, .. } = walk.parent(path)?;
    let Some(name) = name else { return Err(Errno::EEXIST) };
    match walk.child_here(&dir, name) {
        Ok(_) => return Err(Errno::EEXIST),
        Err(Errno::ENOENT) => {}
        Err(error) => return Err(error),
    }
    if wants_dir && !directory {
        return Err(Errno::ENOENT);
    }
    check_change(walk, &dir)?;
    Ok((dir, name))
}

/// Whether names may be added to or taken from `dir`.
fn check_change(walk: &Walk<'_>, dir: &Path) -> Result<(), Errno> {
    dir.check_writable()?;
    dir.inode().attr().check(&walk.who, WRITE | EXECUTE)
}

fn check_removal(walk: &Walk<'_>, dir: &Path, entry: &Arc<Dentry>) -> Result<(), Errno> {
    check_change(walk, dir)?;
    let (attr, owner) = (dir.inode().attr(), entry.inode.attr().uid());
    let may = permission::may_remove(
        attr.mode(),
        walk.who.uid == attr.uid(),
        walk.who.uid == owner,
        walk.who.has(cap::FOWNER),
    );
    if may { Ok(()) } else { Err(Errno::EPERM) }
}

fn new_node(walk: &Walk<'_>, mode: u32, rdev: u64) -> NewNode {
    NewNode { mode, uid: walk.who.uid, gid: walk.who.gid, rdev }
}

/// The directory at `path`, to stand in (chdir, chroot).
pub fn find_directory(walk: &Walk<'_>, path: &[u8]) -> Result<Path, Errno> {
    let location = walk.find(path, Last::Follow)?;
    location.inode().attr().check_search(&walk.who)?;
    Ok(location)
}
