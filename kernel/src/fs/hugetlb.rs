//! Files of the pool's pages (`memfd_create` with `MFD_HUGETLB`), as Linux has them on hugetlbfs: mappings show 2 MiB
//! pages, read(2) reads, write(2) does not (EINVAL), and the length is a multiple of a page.

use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

use kernel_logic::huge::HUGE;
use kernel_logic::vma::PAGE;
use linux_abi::Errno;
use linux_abi::flags::file::{FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE};
use machine::addr::{FrameNumber, HUGE_PAGES};
use machine::frame::Frame;
use machine::sync::Once;

use super::attr::{Attr, S_IFDIR, S_IFREG};
use super::dentry::Dentry;
use super::file::{File, FileOps, Seeking};
use super::inode::{Inode, Mapping, NewNode, OpenRequest, PageUse};
use super::io::Sink;
use super::limit::{self, LARGEST};
use super::mount::{FileSystem, Mount, Statistics};
use super::seals::{SEAL_FUTURE_WRITE, SEAL_GROW, SEAL_SHRINK, SEAL_WRITE, Seals};
use super::tmpfs::next_dev;
use crate::mm::{PoolFile, ReverseMap};
use crate::sched::{Sleep, breathe_or_stop};
use crate::sync::Mutex;

/// `f_type` of statfs(2) (`HUGETLBFS_MAGIC`).
const HUGETLBFS: u64 = 0x9584_58f6;

/// A file of pages of the pool.
pub struct HugeFile {
    attr: Attr,
    data: PoolFile,
    size: AtomicU64,
    seals: Seals,
    /// Orders changes of size, contents and seals.
    changes: Mutex<()>,
}

impl HugeFile {
    /// An empty one without a name.
    pub fn unnamed(new: NewNode) -> Arc<Self> {
        let mut attr = Attr::new(mount().fs.dev(), new.mode | S_IFREG, new.uid, new.gid, 0);
        attr.block_pages = HUGE_PAGES as u16;
        attr.set_nlink(0);
        let (data, seals) = (PoolFile::empty(), Seals::closed());
        Arc::new(Self { attr, data, size: AtomicU64::new(0), seals, changes: Mutex::new(()) })
    }

    /// The file behind an inode, if it is one of these.
    pub fn of(inode: &Arc<dyn Inode>) -> Option<&Self> {
        let any: &dyn Any = &**inode;
        any.downcast_ref()
    }

    /// Prepares a mapping of `len` bytes from `offset` on, both whole pages: ENOMEM if it `reserves` and the pool has
    /// not enough. One that is written may be longer than the file, which grows (as on Linux, whatever the seals say).
    pub fn prepare(&self, offset: u64, len: u64, reserves: bool, writes: bool) -> Result<(), Errno> {
        let _turn = self.changes.lock();
        let end = offset + len;
        if reserves {
            self.data.reserve(offset / HUGE, end / HUGE)?;
        }
        if writes && end > self.size() {
            self.size.store(end, Release);
        }
        Ok(())
    }

    fn check_seals(&self, seals: u32) -> Result<(), Errno> {
        if self.seals.get() & seals != 0 { Err(Errno::EPERM) } else { Ok(()) }
    }

    fn frame(&self, index: u64) -> Result<Frame, Errno> {
        self.data.page(index, || index * PAGE / HUGE < self.size() / HUGE)
    }

    /// Takes the whole pages of `start..end` out, and zeros what is left of touched ones.
    fn punch(&self, start: u64, end: u64) -> Result<(), Errno> {
        let (first, last) = (start.div_ceil(HUGE), end / HUGE);
        let (head, tail) = if first <= last { (start..first * HUGE, last * HUGE..end) } else { (start..end, end..end) };
        for part in [head, tail] {
            let mut at = part.start;
            while at < part.end {
                let next = (at - at % PAGE + PAGE).min(part.end);
                if let Some(frame) = self.data.touched(at / PAGE) {
                    frame.zero((at % PAGE) as usize, (next - at) as usize);
                }
                at = next;
                breathe_or_stop(Sleep::Killable)?;
            }
        }
        if first < last {
            let small = HUGE / PAGE;
            self.data.cut(first, last, |mappers| mappers.punch(first * small, last * small));
        }
        Ok(())
    }

    /// Takes the pages of `start..end` from the pool: ENOSPC where it has none.
    fn fill(&self, start: u64, end: u64) -> Result<(), Errno> {
        for number in start / HUGE..end.div_ceil(HUGE) {
            let lacking = |error| if error == Errno::ENXIO { Errno::ENOSPC } else { error };
            self.data.page(number * (HUGE / PAGE), || true).map_err(lacking)?;
            breathe_or_stop(Sleep::Killable)?;
        }
        Ok(())
    }
}

impl Inode for HugeFile {
    fn attr(&self) -> &Attr {
        &self.attr
    }

    fn size(&self) -> u64 {
        self.size.load(Acquire)
    }

    fn blocks(&self) -> u64 {
        self.data.held() * (HUGE / 512)
    }

    fn truncate(&self, size: u64) -> Result<(), Errno> {
        let _turn = self.changes.lock();
        let old = self.size();
        if size > LARGEST {
            return Err(Errno::EFBIG);
        }
        if size > old {
            limit::room(size - 1, 1)?;
        }
        if !size.is_multiple_of(HUGE) {
            return Err(Errno::EINVAL);
        }
        self.check_seals(if size < old { SEAL_SHRINK } else { 0 } | if size > old { SEAL_GROW } else { 0 })?;
        self.size.store(size, Release);
        if size < old {
            self.data.cut(size / HUGE, u64::MAX, |mappers| mappers.cut(size));
        }
        self.attr.touch_modified();
        Ok(())
    }

    fn allocate(&self, mode: u64, start: u64, length: u64) -> Result<(), Errno> {
        let end = start.checked_add(length).filter(|&end| end <= LARGEST).ok_or(Errno::EFBIG)?;
        let _turn = self.changes.lock();
        match mode {
            0 | FALLOC_FL_KEEP_SIZE => {
                if end > self.size() {
                    limit::room(end - 1, 1)?;
                    self.check_seals(SEAL_GROW)?;
                }
                self.fill(start, end)?;
                if mode == 0 && end > self.size() {
                    self.size.store(end, Release);
                }
                self.attr.touch_modified();
                Ok(())
            }
            _ if mode == FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE => {
                self.check_seals(SEAL_WRITE | SEAL_FUTURE_WRITE)?;
                self.punch(start, end)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn mapping(&self) -> Mapping {
        Mapping::HugePages
    }

    fn page(&self, index: u64, _usage: PageUse) -> Result<Frame, Errno> {
        self.frame(index)
    }

    fn mappers(&self) -> Option<&ReverseMap> {
        Some(self.data.mappers())
    }

    fn present(&self, index: u64) -> Option<FrameNumber> {
        self.data.present(index)
    }

    fn seals(&self) -> Option<&Seals> {
        Some(&self.seals)
    }

    fn add_seals(&self, more: u32) -> Result<(), Errno> {
        let _turn = self.changes.lock();
        self.seals.add(more)
    }

    fn open(self: Arc<Self>, _request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
        Ok(self)
    }
}

impl FileOps for HugeFile {
    fn read(&self, _file: &File, mut position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        while sink.left() > 0 {
            let rest = self.size().saturating_sub(position);
            if rest == 0 {
                break;
            }
            let offset = position % PAGE;
            let count = (PAGE - offset).min(rest) as usize;
            position += match self.data.touched(position / PAGE) {
                Some(frame) => sink.put_frame(&frame, offset as usize, count)?,
                None => sink.put_zeros(count)?,
            } as u64;
            if sink.left() > 0 {
                breathe_or_stop(Sleep::Killable)?;
            }
        }
        Ok(())
    }

    fn seeking(&self) -> Seeking {
        Seeking::Position
    }
}

/// The file system that these files are on, which has no names.
struct HugeFs {
    dev: u64,
    root: Arc<Dentry>,
}

/// Where it is mounted.
pub fn mount() -> &'static Arc<Mount> {
    static MOUNT: Once<Arc<Mount>> = Once::new();
    loop {
        if let Some(mount) = MOUNT.get() {
            return mount;
        }
        let dev = next_dev();
        let attr = Attr::new(dev, S_IFDIR | 0o755, 0, 0, 0);
        let root = Dentry::new(b"", None, Arc::new(Root { attr }));
        let fs = Arc::new(HugeFs { dev, root: root.clone() });
        // Of two that come here at once, one is used.
        let _ = MOUNT.set(Mount::new(fs, root, b"hugetlbfs", 0));
    }
}

struct Root {
    attr: Attr,
}

impl Inode for Root {
    fn attr(&self) -> &Attr {
        &self.attr
    }

    fn open(self: Arc<Self>, _request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
        Err(Errno::ENXIO)
    }
}

impl FileSystem for HugeFs {
    fn kind(&self) -> &'static str {
        "hugetlbfs"
    }

    fn dev(&self) -> u64 {
        self.dev
    }

    fn root(&self) -> Arc<Dentry> {
        self.root.clone()
    }

    fn block(&self) -> u64 {
        HUGE
    }

    fn statistics(&self) -> Statistics {
        Statistics { magic: HUGETLBFS, ..Statistics::default() }
    }
}
