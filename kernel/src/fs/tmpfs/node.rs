//! Inodes of tmpfs: attributes and a body by file type.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use kernel_logic::dirmap::DirMap;
use linux_abi::Errno;
use machine::addr::FrameNumber;
use machine::frame::Frame;
use machine::sync::{Once, SpinLock};

use super::Share;
use super::data::{FileData, PAGE};
use crate::fs::attr::{Attr, Attributes, S_IFBLK, S_IFCHR, S_IFIFO};
use crate::fs::dentry::Dentry;
use crate::fs::dev;
use crate::fs::file::{END, File, FileOps, Seeking};
use crate::fs::headers::HeaderSlot;
use crate::fs::inode::{
    DeviceNode, Emit, Inode, LinkTarget, Mapping, NewNode, OpenRequest, PageUse, RenameMode, RenameTo,
};
use crate::fs::io::{Sink, Source};
use crate::fs::seals::Seals;
use crate::fs::{Above, Fifo as _};
use crate::mm::image::Origin;
use crate::mm::{ReverseMap, TemplateSlot};
use crate::upper::Kwab;
use crate::{options, random};

/// What a node is.
pub enum Body {
    /// A directory and its entries.
    Directory(SpinLock<DirMap<Arc<Dentry>>>),
    /// A regular file.
    Regular(FileData),
    /// A symbolic link.
    Symlink(Arc<[u8]>),
    /// A FIFO and its pipe.
    Fifo(<Kwab as Above>::Fifo),
    /// A socket or device node: only its numbers.
    Special,
}

impl Body {
    /// An empty directory.
    pub fn directory() -> Self {
        Self::Directory(SpinLock::new(DirMap::new(name_key())))
    }
}

/// What the hashes of names depend on: chosen at boot, 0 under `norandmaps`, which makes boots alike.
fn name_key() -> u64 {
    static KEY: Once<u64> = Once::new();
    loop {
        if let Some(key) = KEY.get() {
            return *key;
        }
        let mut key = [0; 8];
        if !options::get().norandmaps {
            random::fill(&mut key);
        }
        // Of two that come here at once, one is used.
        let _ = KEY.set(u64::from_le_bytes(key));
    }
}

/// A file of a tmpfs.
pub struct TmpNode {
    pub(super) attr: Attr,
    pub(super) body: Body,
    pub(super) pool: Share,
    attributes: Attributes,
}

impl TmpNode {
    /// A node of the file system of `pool`.
    pub fn new(pool: Share, attr: Attr, body: Body) -> Arc<Self> {
        Arc::new(Self { attr, body, pool, attributes: SpinLock::new(BTreeMap::new()) })
    }

    pub(super) fn entries(&self) -> Result<&SpinLock<DirMap<Arc<Dentry>>>, Errno> {
        match &self.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn data(&self) -> Result<&FileData, Errno> {
        match &self.body {
            Body::Regular(data) => Ok(data),
            Body::Directory(_) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// The node behind an inode, if it is of this kind of file system.
pub(super) fn node_of(inode: &Arc<dyn Inode>) -> Option<&TmpNode> {
    let any: &dyn Any = &**inode;
    any.downcast_ref()
}

/// Takes the entries out of the directory at `dentry`, if it is one.
pub(super) fn take_entries(dentry: &Arc<Dentry>) -> Vec<Arc<Dentry>> {
    match node_of(&dentry.inode).map(|node| &node.body) {
        Some(Body::Directory(entries)) => entries.lock().drain().collect(),
        _ => Vec::new(),
    }
}

impl Drop for TmpNode {
    fn drop(&mut self) {
        match &self.body {
            Body::Regular(data) => self.pool.release(data.held_pages()),
            Body::Symlink(target) => self.pool.release(link_pages(target)),
            _ => {}
        }
    }
}

impl Inode for TmpNode {
    #[inline]
    fn attr(&self) -> &Attr {
        &self.attr
    }

    fn size(&self) -> u64 {
        match &self.body {
            Body::Regular(data) => data.size(),
            Body::Symlink(target) => target.len() as u64,
            Body::Directory(entries) => 40 + entries.lock().len() as u64 * 20,
            _ => 0,
        }
    }

    fn blocks(&self) -> u64 {
        match &self.body {
            Body::Regular(data) => data.blocks(),
            _ => 0,
        }
    }

    fn lookup(&self, _dir: &Arc<Dentry>, name: &[u8]) -> Result<Arc<Dentry>, Errno> {
        self.entries()?.lock().get(name).cloned().ok_or(Errno::ENOENT)
    }

    fn create(&self, dir: &Arc<Dentry>, name: &[u8], new: NewNode) -> Result<Arc<Dentry>, Errno> {
        self.add_new(dir, name, new, None)
    }

    fn create_unnamed(&self, dir: &Arc<Dentry>, new: NewNode) -> Result<Arc<Dentry>, Errno> {
        self.unnamed(dir, new)
    }

    fn symlink(&self, dir: &Arc<Dentry>, name: &[u8], target: &[u8], new: NewNode) -> Result<Arc<Dentry>, Errno> {
        self.add_new(dir, name, new, Some(target))
    }

    fn link(&self, dir: &Arc<Dentry>, name: &[u8], target: &Arc<dyn Inode>) -> Result<(), Errno> {
        self.add_link(dir, name, target)
    }

    fn remove(&self, dir: &Arc<Dentry>, entry: &Arc<Dentry>, directory: bool) -> Result<(), Errno> {
        self.remove_entry(dir, entry, directory)
    }

    fn rename(&self, entry: &Arc<Dentry>, to: &RenameTo<'_>, mode: RenameMode) -> Result<(), Errno> {
        self.move_entry(entry, to, mode)
    }

    fn readdir(&self, _dir: &Arc<Dentry>, from: u64, emit: &mut Emit<'_>) -> Result<(), Errno> {
        let entries = self.entries()?.lock();
        for (next, name, dentry) in entries.entries_from(from) {
            let attr = dentry.inode.attr();
            if !emit(next, attr.ino, attr.mode(), name) {
                break;
            }
        }
        Ok(())
    }

    fn link_target(&self) -> Result<LinkTarget, Errno> {
        match &self.body {
            Body::Symlink(target) => Ok(LinkTarget::Text(target.clone())),
            _ => Err(Errno::EINVAL),
        }
    }

    fn truncate(&self, size: u64) -> Result<(), Errno> {
        let data = self.data()?;
        let freed = data.truncate(size)?;
        self.pool.release(freed);
        if freed != 0 && data.was_mapped() {
            data.mappers().cut(size);
        }
        self.attr.touch_modified();
        Ok(())
    }

    fn allocate(&self, mode: u64, start: u64, length: u64) -> Result<(), Errno> {
        let data = self.data().map_err(|_| Errno::ENODEV)?;
        let outcome = data.allocate(&self.pool, mode, start, length);
        if FileData::is_hole(mode) && data.was_mapped() {
            data.mappers().punch(start.div_ceil(PAGE), start.saturating_add(length) / PAGE);
        }
        outcome?;
        self.attr.touch_modified();
        Ok(())
    }

    fn mapping(&self) -> Mapping {
        match &self.body {
            Body::Regular(_) => Mapping::Pages,
            Body::Special => dev::mapping(self.attr.mode(), self.attr.rdev),
            _ => Mapping::Refused,
        }
    }

    fn page(&self, index: u64, usage: PageUse) -> Result<Frame, Errno> {
        self.data()?.page(&self.pool, index, usage)
    }

    fn cached(&self, first: u64, to: &mut [Option<Frame>]) {
        if let Ok(data) = self.data() {
            data.cached(first, to);
        }
    }

    fn move_page(&self, index: u64, to: Frame) -> Option<Origin> {
        self.data().ok()?.move_page(&self.pool, index, to)
    }

    fn mappers(&self) -> Option<&ReverseMap> {
        self.data().ok().map(FileData::mappers)
    }

    fn present(&self, index: u64) -> Option<FrameNumber> {
        self.data().ok()?.present(index)
    }

    fn template(&self) -> Option<&TemplateSlot> {
        self.data().ok().map(FileData::template)
    }

    fn headers(&self) -> Option<&HeaderSlot> {
        self.data().ok().map(FileData::headers)
    }

    fn attributes(&self) -> Option<&Attributes> {
        Some(&self.attributes)
    }

    fn seals(&self) -> Option<&Seals> {
        self.data().ok().map(FileData::seals)
    }

    fn add_seals(&self, more: u32) -> Result<(), Errno> {
        self.data().map_err(|_| Errno::EINVAL)?.add_seals(more)
    }

    fn generation(&self) -> u64 {
        self.data().map_or(0, FileData::generation)
    }

    fn original(&self, at: u64, to: &mut [u8]) -> Option<usize> {
        self.data().ok().filter(|_| self.generation() == 0)?.original(at, to)
    }

    fn open(self: Arc<Self>, request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
        match &self.body {
            Body::Regular(_) | Body::Directory(_) => Ok(self),
            Body::Fifo(fifo) => fifo.open(request.flags),
            Body::Special if matches!(self.attr.kind(), S_IFCHR | S_IFBLK) => {
                dev::open(&DeviceNode { inode: &*self, rdev: self.attr.rdev }, request)
            }
            Body::Special | Body::Symlink(_) => Err(Errno::ENXIO),
        }
    }
}

impl FileOps for TmpNode {
    #[inline]
    fn seeking(&self) -> Seeking {
        Seeking::Position
    }

    fn read(&self, file: &File, position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        self.data()?.read(position, sink)?;
        if !file.is_noatime() {
            self.attr.touch_accessed();
        }
        Ok(())
    }

    fn write(&self, file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        let appends = file.is_appending() || position == END;
        let start = self.data()?.write(&self.pool, (!appends).then_some(position), source);
        if source.done() > 0 {
            self.attr.touch_modified();
            self.attr.drop_set_id();
        }
        start
    }

    fn readdir(&self, file: &File, from: u64, emit: &mut Emit<'_>) -> Result<(), Errno> {
        Inode::readdir(self, &file.path.dentry, from, emit)
    }

    fn seek_data(&self, _file: &File, from: u64, hole: bool) -> Result<u64, Errno> {
        self.data()?.seek(from, hole)
    }
}

/// Whether a mode is a FIFO's.
pub(super) fn is_fifo(mode: u32) -> bool {
    mode & crate::fs::attr::S_IFMT == S_IFIFO
}

/// Pages that a symbolic link counts as: a long target takes one, as on Linux.
pub(super) fn link_pages(target: &[u8]) -> u64 {
    const SHORT: usize = 128;
    u64::from(target.len() >= SHORT)
}
