//! Directories of tmpfs: adding, removing and moving names.
//!
//! Each change is made under the directory's lock; a rename, which touches two directories, is also alone among
//! renames, so that no two of them can wait for each other or make a loop together.

use alloc::sync::Arc;
use core::sync::atomic::Ordering::Relaxed;

use kernel_logic::dirmap::DirMap;
use linux_abi::Errno;
use machine::sync::SpinGuard;

use super::Share;
use super::data::FileData;
use super::node::{Body, TmpNode, is_fifo, link_pages, node_of};
use crate::fs::attr::{Attr, S_IFDIR, S_IFMT, S_IFREG};
use crate::fs::dentry::{self, Dentry};
use crate::fs::inode::{Inode, NewNode, RenameMode, RenameTo};
use crate::sync::mutex::Mutex;

type Entries<'a> = SpinGuard<'a, DirMap<Arc<Dentry>>>;

/// One rename at a time. It looks at all directories above the two, of which there may be any number, so others sleep.
static RENAMING: Mutex<()> = Mutex::new(());

/// Most names of one file.
const LINK_MAX: u32 = i32::MAX as u32;

impl TmpNode {
    pub(super) fn add_new(
        &self,
        dir: &Arc<Dentry>,
        name: &[u8],
        new: NewNode,
        target: Option<&[u8]>,
    ) -> Result<Arc<Dentry>, Errno> {
        crate::mm::frames::spare()?;
        let share = Share::take(&self.pool)?;
        if self.pool.fixed.load(Relaxed) {
            return Err(if new.mode & S_IFMT == S_IFREG { Errno::EACCES } else { Errno::EPERM });
        }
        let node = self.make(share, new, target)?;
        let is_dir = node.attr.is_dir();
        let dentry = Dentry::new(name, Some(dir.clone()), node);
        let mut entries = self.open_entries(dir)?;
        check_room(&entries)?;
        entries.insert(name, dentry.clone()).map_err(|_| Errno::EEXIST)?;
        drop(entries);
        if is_dir {
            self.attr.add_links(1);
        }
        self.attr.touch_modified();
        Ok(dentry)
    }

    /// An entry for `name` that is in no directory yet.
    fn whiteout(&self, dir: &Arc<Dentry>, name: &[u8], new: NewNode) -> Result<Arc<Dentry>, Errno> {
        crate::mm::frames::spare()?;
        let share = Share::take(&self.pool)?;
        Ok(Dentry::new(name, Some(dir.clone()), self.make(share, new, None)?))
    }

    pub(super) fn unnamed(&self, dir: &Arc<Dentry>, new: NewNode) -> Result<Arc<Dentry>, Errno> {
        crate::mm::frames::spare()?;
        let share = Share::take(&self.pool)?;
        self.entries()?;
        let node = self.make(share, new, None)?;
        node.attr.set_nlink(0);
        let name = alloc::format!("#{}", node.attr.ino);
        let dentry = Dentry::new(name.as_bytes(), Some(dir.clone()), node);
        dentry.set_removed();
        Ok(dentry)
    }

    fn make(&self, share: Share, new: NewNode, target: Option<&[u8]>) -> Result<Arc<Self>, Errno> {
        let mut mode = new.mode;
        let mut gid = new.gid;
        if self.attr.mode() & 0o2000 != 0 {
            gid = self.attr.gid();
            if mode & S_IFMT == S_IFDIR {
                mode |= 0o2000;
            }
        }
        let attr = Attr::new(self.attr.dev, mode, new.uid, gid, new.rdev);
        let body = match target {
            Some(target) => {
                self.pool.charge(link_pages(target))?;
                Body::Symlink(target.into())
            }
            None => match mode & S_IFMT {
                S_IFDIR => {
                    attr.set_nlink(2);
                    Body::directory()
                }
                S_IFREG => Body::Regular(FileData::new()),
                _ if is_fifo(mode) => Body::Fifo(Default::default()),
                _ => Body::Special,
            },
        };
        Ok(Self::new(share, attr, body))
    }

    pub(super) fn add_link(&self, dir: &Arc<Dentry>, name: &[u8], target: &Arc<dyn Inode>) -> Result<(), Errno> {
        // Each name takes memory as an inode does, and counts as one.
        crate::mm::frames::spare()?;
        self.pool.take_node()?;
        let attr = target.attr();
        let before = match attr.claim_name(LINK_MAX) {
            Ok(before) => before,
            Err(error) => {
                self.pool.give_node();
                return Err(error);
            }
        };
        // A file without names is counted already.
        if before == 0 {
            self.pool.give_node();
        }
        match self.put_name(dir, name, target) {
            Ok(()) => attr.name_made(),
            Err(error) => {
                self.unclaim(attr);
                return Err(error);
            }
        }
        self.attr.touch_modified();
        Ok(())
    }

    /// Counts one name less of a file, never of a directory.
    fn unclaim(&self, attr: &Attr) {
        if attr.add_links(-1) > 1 {
            self.pool.give_node();
        }
    }

    /// Puts a name of `target` in.
    fn put_name(&self, dir: &Arc<Dentry>, name: &[u8], target: &Arc<dyn Inode>) -> Result<(), Errno> {
        let dentry = Dentry::new(name, Some(dir.clone()), target.clone());
        let mut entries = self.open_entries(dir)?;
        check_room(&entries)?;
        entries.insert(name, dentry).map_err(|_| Errno::EEXIST)
    }

    pub(super) fn remove_entry(&self, dir: &Arc<Dentry>, entry: &Arc<Dentry>, directory: bool) -> Result<(), Errno> {
        let name = entry.name();
        let mut entries = self.open_entries(dir)?;
        if !entries.get(&name).is_some_and(|found| Arc::ptr_eq(found, entry)) {
            return Err(Errno::ENOENT);
        }
        close_for_good(entry, directory)?;
        let gone = entries.remove(&name);
        drop(entries);
        self.forget(entry);
        drop(gone);
        self.attr.touch_modified();
        Ok(())
    }

    /// The name of `entry` is out of this directory: counts links.
    fn forget(&self, entry: &Arc<Dentry>) {
        entry.set_removed();
        let attr = entry.inode.attr();
        if attr.is_dir() {
            attr.set_nlink(0);
            self.attr.add_links(-1);
        } else {
            self.unclaim(attr);
        }
    }

    pub(super) fn move_entry(&self, entry: &Arc<Dentry>, to: &RenameTo<'_>, mode: RenameMode) -> Result<(), Errno> {
        let _alone = RENAMING.lock();
        let target_dir = node_of(&to.dir.inode).ok_or(Errno::EXDEV)?;
        let from = entry.parent().ok_or(Errno::EBUSY)?;
        if to.existing.is_some_and(|existing| Arc::ptr_eq(&existing.inode, &entry.inode)) {
            return Ok(());
        }
        if mode == RenameMode::Exchange && to.existing.is_none() {
            return Err(Errno::ENOENT);
        }
        if to.dir.is_within(entry) {
            return Err(Errno::EINVAL);
        }
        if node_of(&from.inode).is_none_or(|node| !core::ptr::eq(node, self)) {
            // Moved since the caller found it here.
            return Err(Errno::ESTALE);
        }
        let _passing = dentry::Moving::begin();
        match (mode, to.existing) {
            (RenameMode::Exchange, Some(other)) => self.exchange(target_dir, entry, other, &from, to),
            _ => self.replace(target_dir, entry, &from, to),
        }
    }

    fn replace(
        &self,
        target_dir: &Self,
        entry: &Arc<Dentry>,
        from: &Arc<Dentry>,
        to: &RenameTo<'_>,
    ) -> Result<(), Errno> {
        let is_dir = entry.inode.attr().is_dir();
        let old_name = entry.name();
        if to.existing.is_some_and(|existing| from.is_within(existing)) {
            return Err(Errno::ENOTEMPTY);
        }
        let whiteout = to.whiteout.map(|new| self.whiteout(from, &old_name, new)).transpose()?;
        let mut both = Both::lock(self, target_dir, from, to.dir)?;
        check_entry(both.source(), &old_name, Some(entry))?;
        check_entry(both.target(), to.name, to.existing)?;
        match to.existing {
            Some(existing) => close_for_good(existing, is_dir)?,
            None => check_room(both.target())?,
        }
        // The new name is there before the old one goes: a look-up finds the file at any time.
        let replaced = both.target().replace(to.name, entry.clone());
        if replaced.is_none() && both.target().insert(to.name, entry.clone()).is_err() {
            return Err(Errno::EEXIST);
        }
        let taken = match whiteout {
            Some(whiteout) => both.source().replace(&old_name, whiteout),
            None => both.source().remove(&old_name),
        };
        entry.relink(to.name, Some(to.dir.clone()));
        drop(both);
        drop((replaced, taken));
        if is_dir {
            self.attr.add_links(-1);
            target_dir.attr.add_links(1);
        }
        if let Some(existing) = to.existing {
            target_dir.forget(existing);
        }
        entry.inode.attr().touch_changed();
        self.attr.touch_modified();
        target_dir.attr.touch_modified();
        Ok(())
    }

    fn exchange(
        &self,
        target_dir: &Self,
        entry: &Arc<Dentry>,
        other: &Arc<Dentry>,
        from: &Arc<Dentry>,
        to: &RenameTo<'_>,
    ) -> Result<(), Errno> {
        if from.is_within(other) {
            return Err(Errno::EINVAL);
        }
        let name = entry.name();
        let mut both = Both::lock(self, target_dir, from, to.dir)?;
        check_entry(both.source(), &name, Some(entry))?;
        check_entry(both.target(), to.name, Some(other))?;
        both.source().replace(&name, other.clone());
        both.target().replace(to.name, entry.clone());
        entry.relink(to.name, Some(to.dir.clone()));
        other.relink(&name, Some(from.clone()));
        drop(both);
        let moved = i32::from(entry.inode.attr().is_dir()) - i32::from(other.inode.attr().is_dir());
        self.attr.add_links(-moved);
        target_dir.attr.add_links(moved);
        for attr in [entry.inode.attr(), other.inode.attr()] {
            attr.touch_changed();
        }
        self.attr.touch_modified();
        target_dir.attr.touch_modified();
        Ok(())
    }

    /// The entries of a directory that still has a name: a removed one takes no new entries.
    fn open_entries(&self, dir: &Arc<Dentry>) -> Result<Entries<'_>, Errno> {
        let entries = self.entries()?.lock();
        if dir.is_removed() { Err(Errno::ENOENT) } else { Ok(entries) }
    }
}

/// The entries of the two directories of a rename, locked together: names are compared and changed in one step.
struct Both<'a> {
    source: Entries<'a>,
    /// `None` if it is the same directory.
    target: Option<Entries<'a>>,
}

impl<'a> Both<'a> {
    /// Locks an ancestor before its descendant, as removals lock a directory before the one they remove from it. Only
    /// one rename runs at a time, so unrelated directories have no order. ENOENT if the target directory was removed.
    fn lock(source: &'a TmpNode, target: &'a TmpNode, from: &Arc<Dentry>, to: &Arc<Dentry>) -> Result<Self, Errno> {
        if core::ptr::eq(source, target) {
            return Ok(Self { source: source.open_entries(to)?, target: None });
        }
        let below = to.is_within(from);
        let first = if below { Some(source.entries()?.lock()) } else { None };
        let target = target.open_entries(to)?;
        let source = match first {
            Some(first) => first,
            None => source.entries()?.lock(),
        };
        Ok(Self { source, target: Some(target) })
    }

    fn source(&mut self) -> &mut Entries<'a> {
        &mut self.source
    }

    fn target(&mut self) -> &mut Entries<'a> {
        self.target.as_mut().unwrap_or(&mut self.source)
    }
}

/// ESTALE unless `name` refers to `entry`, or to nothing if that is `None`.
fn check_entry(entries: &Entries<'_>, name: &[u8], entry: Option<&Arc<Dentry>>) -> Result<(), Errno> {
    let same = match (entries.get(name), entry) {
        (None, None) => true,
        (Some(found), Some(entry)) => Arc::ptr_eq(found, entry),
        _ => false,
    };
    if same { Ok(()) } else { Err(Errno::ESTALE) }
}

/// ENOSPC in a directory with as many names as it can have.
fn check_room(entries: &Entries<'_>) -> Result<(), Errno> {
    if entries.is_full() { Err(Errno::ENOSPC) } else { Ok(()) }
}

/// Whether the file may lose its name as what the caller takes it for; an empty directory takes no entries from here
/// on.
fn close_for_good(entry: &Arc<Dentry>, directory: bool) -> Result<(), Errno> {
    if entry.is_mounted_on() {
        return Err(Errno::EBUSY);
    }
    match node_of(&entry.inode).map(|node| &node.body) {
        Some(Body::Directory(_)) if !directory => Err(Errno::EISDIR),
        Some(Body::Directory(entries)) => {
            let entries = entries.lock();
            if !entries.is_empty() {
                return Err(Errno::ENOTEMPTY);
            }
            entry.set_removed();
            Ok(())
        }
        _ if directory => Err(Errno::ENOTDIR),
        _ => Ok(()),
    }
}
