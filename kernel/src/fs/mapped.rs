//! File mappings: a mapping keeps its file open, and counts as a writer while it may write.

use alloc::sync::Arc;
use core::ops::Deref;

use kernel_logic::vma::{PAGE, Prot, VmaFlags};
use linux_abi::Errno;
use machine::frame::Frame;

use super::attr::S_IFREG;
use super::mount::MS_NOEXEC;
use super::{File, Inode, Mapping};
use crate::mm::{Backing, Mapped, PageUse, ReverseMap, TemplateSlot, image};

/// The file behind a range. Pieces of one mapping share its count, which ends with the last of them.
#[derive(Clone)]
pub struct MappedFile {
    file: Arc<File>,
    _writer: Option<Arc<Writer>>,
}

impl MappedFile {
    /// For a mapping whose stores do not reach the file.
    pub fn read_only(file: Arc<File>) -> Self {
        Self { file, _writer: None }
    }

    /// For a shared mapping that is or may become writable: EPERM if the file is sealed against that (fcntl(2),
    /// `F_SEAL_WRITE`).
    pub fn writable(file: Arc<File>) -> Result<Self, Errno> {
        let writer = match file.inode().seals() {
            None => None,
            Some(seals) => {
                seals.begin_mapping()?;
                Some(Arc::new(Writer(file.clone())))
            }
        };
        Ok(Self { file, _writer: writer })
    }
}

impl Mapped for MappedFile {
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }

    #[inline]
    fn page(&self, index: u64, usage: PageUse) -> Result<Frame, Errno> {
        self.file.inode().page(index, usage)
    }

    fn cached(&self, first: u64, to: &mut [Option<Frame>]) {
        self.file.inode().cached(first, to);
    }

    fn held(&self) -> (*const (), u64) {
        (Arc::as_ptr(self.file.inode()).cast(), nameless_pages(self.file.inode()))
    }

    fn wrote(&self) {
        self.file.inode().attr().touch_modified();
    }

    fn identity(&self) -> (u64, u64) {
        let attr = self.file.inode().attr();
        (attr.dev, attr.ino)
    }

    fn mappers(&self) -> Option<&ReverseMap> {
        self.file.inode().mappers()
    }

    fn is_called(&self, name: &[u8]) -> bool {
        *self.file.path.dentry.name() == *name
    }

    fn move_page(&self, index: u64, to: Frame) -> Option<image::Origin> {
        self.file.inode().move_page(index, to)
    }

    fn template(&self) -> Option<&TemplateSlot> {
        self.file.inode().template()
    }
}

/// Pages of a regular file that goes with its last user, since it has no name; else 0.
pub fn nameless_pages(inode: &Arc<dyn Inode>) -> u64 {
    let attr = inode.attr();
    if attr.nlink() == 0 && attr.kind() == S_IFREG { inode.blocks() / (PAGE / 512) } else { 0 }
}

impl Deref for MappedFile {
    type Target = Arc<File>;

    fn deref(&self) -> &Arc<File> {
        &self.file
    }
}

struct Writer(Arc<File>);

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(seals) = self.0.inode().seals() {
            seals.end_mapping();
        }
    }
}

/// What mapping `file` means: its pages, or fresh zeros; with the flags that follow from how it was opened.
pub fn backing(file: Arc<File>, offset: u64, prot: Prot, shared: bool) -> Result<(Backing, VmaFlags), Errno> {
    if !file.is_readable() || (shared && prot.has(Prot::WRITE) && !file.is_writable()) {
        return Err(Errno::EACCES);
    }
    let mut flags = VmaFlags::default();
    if file.path.mount.flags() & MS_NOEXEC != 0 {
        if prot.has(Prot::EXEC) {
            return Err(Errno::EPERM);
        }
        flags = flags.with(VmaFlags::NO_EXEC);
    }
    if shared {
        flags = flags.with(VmaFlags::SHARED);
        if !file.is_writable() {
            flags = flags.with(VmaFlags::NO_WRITE);
        }
    }
    match file.inode().mapping() {
        Mapping::Refused => Err(Errno::ENODEV),
        Mapping::Zeros => Ok((Backing::Anonymous, flags)),
        kind @ (Mapping::Pages | Mapping::HugePages) => {
            if kind == Mapping::HugePages {
                flags = flags.with(VmaFlags::POOL);
            }
            // Mapping a file counts as reading it (mmap(2)).
            if !file.is_noatime() {
                file.inode().attr().touch_accessed();
            }
            if !shared || !file.is_writable() {
                return Ok((Backing::File { file: MappedFile::read_only(file), offset }, flags));
            }
            match MappedFile::writable(file.clone()) {
                Ok(file) => Ok((Backing::File { file, offset }, flags)),
                Err(sealed) if prot.has(Prot::WRITE) => Err(sealed),
                Err(_) => {
                    let file = MappedFile::read_only(file);
                    Ok((Backing::File { file, offset }, flags.with(VmaFlags::NO_WRITE)))
                }
            }
        }
    }
}
