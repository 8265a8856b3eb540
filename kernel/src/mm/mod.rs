//! Address spaces: what a program has mapped, and the machine's page tables that follow.
//!
//! An [`AddressSpace`] pairs a VMA set (what *should* be where, [`kernel_logic::vma`]) with a [`UserSpace`] (what *is*
//! mapped now). The set is the truth; pages appear on demand ([`fault`]), and every change of the set takes rights away
//! from the tables before the call returns ([`map`]). One lock per space covers both; what would hold it for long is
//! done in [`parts`]. Nothing sleeps under it: files live in memory.
//!
//! Tags on leaves say what a resident page counts as: [`TAG_ANON`], [`TAG_FILE`], [`TAG_SHMEM`].

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use kernel_logic::vma::{self, PAGE, Prot, VmaFlags, VmaSet};
use linux_abi::Errno;
use machine::addr::PageRange;
use machine::frame::Frame;
use machine::space::{ForkMode, Removed, UserSpace};
use machine::sync::{SpinGuard, SpinLock};

use crate::sync::mutex::Mutex;
use crate::upper::Kwab;

pub mod ahead;
pub mod audit;
mod cut;
pub mod fault;
pub mod frames;
mod held;
pub mod huge;
pub mod image;
mod limits;
pub mod map;
mod parts;
pub mod pool;
mod pool_file;
pub mod prefault;
pub mod remap;
mod remote;
pub mod rmap;
mod shared;
pub mod template;

pub use limits::MemoryLimits;
pub use pool::Reservation;
pub use pool_file::PoolFile;
pub use rmap::ReverseMap;
pub use shared::SharedMemory;
pub use template::TemplateSlot;

/// Tag of frames of private memory.
pub const TAG_ANON: u8 = 0;
/// Tag of a file's own frames.
pub const TAG_FILE: u8 = 1;
/// Tag of frames of shared anonymous memory.
pub const TAG_SHMEM: u8 = 2;
/// Tag of private frames of the pool ([`pool`]): they are no part of the resident set.
pub const TAG_POOL: u8 = 3;

/// How a page of a file will be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageUse {
    /// Mapped read-only, or private and copied before a write.
    Read,
    /// Mapped shared and writable: what the program writes is in the file.
    Write,
}

/// A file as a mapping holds it.
pub trait Mapped: Clone + Send + Sync + 'static {
    /// Whether both hold one description.
    fn same(&self, other: &Self) -> bool;
    /// The frame that holds page `index` of the file: ENXIO past its end.
    fn page(&self, index: u64, usage: PageUse) -> Result<Frame, Errno>;
    /// Fills `to` with the frames of the pages from `first` on that are in memory, for reading; holes stay empty.
    fn cached(&self, first: u64, to: &mut [Option<Frame>]);
    /// Which file it is, and the pages of it that go with its last user, since it has no name.
    fn held(&self) -> (*const (), u64);
    /// A program is about to write to the file through the mapping.
    fn wrote(&self);
    /// Device and inode number, which no other file ever has.
    fn identity(&self) -> (u64, u64);
    /// The address spaces that map the file; `None` for one that is never truncated.
    fn mappers(&self) -> Option<&ReverseMap>;
    /// Whether the last component of its path is `name`.
    fn is_called(&self, name: &[u8]) -> bool;
    /// Makes `to` the frame of page `index` of what is still in the archive, unless something else than the file refers
    /// to the one it has: where the bytes came from.
    fn move_page(&self, index: u64, to: Frame) -> Option<image::Origin>;
    /// Where the template of its program is kept; `None` for one that has no pages.
    fn template(&self) -> Option<&TemplateSlot>;
}

/// What memory needs of the layers above.
pub trait Above {
    /// A mapped file.
    type Mapped: Mapped;
    /// An executed file.
    type Executable: Send + Sync + 'static;
}

/// What memory needs of a thread.
pub trait Owner {
    /// How large its memory may become.
    fn memory_limits(&self) -> MemoryLimits;
    /// Whether it may lock any amount of memory (`CAP_IPC_LOCK`).
    fn locks_any_memory(&self) -> bool;
    /// Whether it may take what is kept back from other programs (`CAP_SYS_RESOURCE`).
    fn exceeds_limits(&self) -> bool;
}

/// A range of a program's memory.
pub type Vma = vma::Vma<Backing>;

/// Where a range's pages come from.
#[derive(Clone)]
pub enum Backing {
    /// Zeros, private to the process that touches them.
    Anonymous,
    /// A file from a byte offset on.
    File {
        /// The open file; kept open by the mapping.
        file: <Kwab as Above>::Mapped,
        /// Page-aligned offset of the range's first byte.
        offset: u64,
    },
    /// Memory shared with each process that inherited the mapping.
    Shared {
        /// The pages, found by their number.
        memory: Arc<SharedMemory>,
        /// Offset of the range's first byte in it.
        offset: u64,
    },
    /// Zeros of the pool, 2 MiB at a time, private to the process that touches them.
    Pool {
        /// What it was promised.
        promise: Arc<Reservation>,
    },
    /// The vDSO's pages (the first is its data page).
    Vdso {
        /// Index of the range's first page.
        index: u64,
    },
}

impl Backing {
    /// Who else may have its pages mapped, if others can, and the offset of the range's first byte in it.
    fn mappers(&self) -> Option<(&ReverseMap, u64)> {
        match self {
            Backing::File { file, offset } => file.mappers().map(|mappers| (mappers, *offset)),
            Backing::Shared { memory, offset } => Some((memory.mappers(), *offset)),
            Backing::Anonymous | Backing::Pool { .. } | Backing::Vdso { .. } => None,
        }
    }

    /// What names the file or the shared memory among all there ever were, and the offset of the range's first byte in
    /// it; `None` for what has no pages that others map.
    pub fn identity(&self) -> Option<((u64, u64), u64)> {
        match self {
            Backing::File { file, offset } => Some((file.identity(), *offset)),
            Backing::Shared { memory, offset } => Some(((u64::MAX, memory.id()), *offset)),
            Backing::Anonymous | Backing::Pool { .. } | Backing::Vdso { .. } => None,
        }
    }
}

impl vma::Backing for Backing {
    fn advanced(&self, bytes: u64) -> Self {
        match self {
            Backing::Anonymous => Backing::Anonymous,
            Backing::Pool { promise } => Backing::Pool { promise: promise.clone() },
            Backing::File { file, offset } => Backing::File { file: file.clone(), offset: offset + bytes },
            Backing::Shared { memory, offset } => Backing::Shared { memory: memory.clone(), offset: offset + bytes },
            Backing::Vdso { index } => Backing::Vdso { index: index + bytes / PAGE },
        }
    }

    fn continues_as(&self, bytes: u64, next: &Self) -> bool {
        match (self, next) {
            (Backing::Anonymous, Backing::Anonymous) => true,
            (Backing::Pool { promise: a }, Backing::Pool { promise: b }) => Arc::ptr_eq(a, b),
            (Backing::File { file: a, offset: at }, Backing::File { file: b, offset: to }) => {
                a.same(b) && at + bytes == *to
            }
            (Backing::Shared { memory: a, offset: at }, Backing::Shared { memory: b, offset: to }) => {
                Arc::ptr_eq(a, b) && at + bytes == *to
            }
            _ => false,
        }
    }
}

/// A program's memory.
pub struct AddressSpace {
    /// The page tables.
    pub space: Arc<UserSpace>,
    map: SpinLock<Map>,
    /// Held while a change is made in parts ([`parts`]).
    alone: Mutex<()>,
    resident: [AtomicI64; 4],
    peak: AtomicU64,
    /// Registered for `MEMBARRIER_CMD_PRIVATE_EXPEDITED`.
    pub expedited: AtomicBool,
    /// `PR_SET_DUMPABLE`: a process with the same ids may look into one that uses it. Inherited by a fork, set by
    /// execution.
    pub dumpable: AtomicBool,
    /// Huge pages are off (`PR_SET_THP_DISABLE`). Inherited by a fork and kept by execution.
    pub no_huge: AtomicBool,
    /// Pages of the program's files were not mapped in advance: see [`template`].
    learns: AtomicBool,
    /// Where the program goes on if it touches its memory in order ([`fault`]).
    in_order: AtomicU64,
    /// If it is a sample ([`ahead`]), one more than the pages that exec made in advance for it.
    ahead: AtomicU32,
    /// Pages of the pool in it are its own, not those of a parent that it is being copied from.
    owns_pool_pages: AtomicBool,
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        // What the program used is read from the tables, so before they are emptied.
        if *self.ahead.get_mut() != 0 {
            self.tell_ahead();
        }
        if *self.learns.get_mut() {
            self.learn();
        }
        self.empty_in_parts();
        let touched = *self.resident[usize::from(TAG_POOL)].get_mut();
        self.put_pool_pages(touched.max(0) as usize);
    }
}

/// What is mapped, and where things are by convention.
pub struct Map {
    /// The mapped ranges (VMAs).
    pub vmas: VmaSet<Backing>,
    /// Where the program break began.
    pub brk_start: u64,
    /// Where it is.
    pub brk: u64,
    /// Mappings are placed below this.
    pub mmap_top: u64,
    /// Argument strings, for `/proc/<pid>/cmdline`.
    pub args: (u64, u64),
    /// Environment strings, for `/proc/<pid>/environ`.
    pub envs: (u64, u64),
    /// Text, as the ELF said.
    pub code: (u64, u64),
    /// The initial stack pointer.
    pub stack_start: u64,
    /// Where the vDSO was mapped, 0 if nowhere.
    pub vdso: u64,
    /// The auxiliary vector, for `/proc/<pid>/auxv`.
    pub aux: Vec<(u64, u64)>,
    /// The executed file.
    pub exe: Option<Arc<<Kwab as Above>::Executable>>,
    /// New mappings are locked (`mlockall(MCL_FUTURE)`).
    pub lock_future: bool,
    /// A change in parts is under way: no other one may begin.
    in_parts: bool,
    /// The files it was made from.
    images: template::Images,
    /// Pages that the first growth of the heap makes at once.
    heap_ahead: u32,
}

/// Pages in memory by kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resident {
    /// Private anonymous pages.
    pub anonymous: u64,
    /// Pages of files.
    pub file: u64,
    /// Pages of shared anonymous memory.
    pub shmem: u64,
}

impl Resident {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.anonymous + self.file + self.shmem
    }
}

impl AddressSpace {
    /// An empty one.
    pub fn new() -> Result<Arc<Self>, Errno> {
        let space = UserSpace::new().map_err(|_| Errno::ENOMEM)?;
        let map = Map {
            vmas: VmaSet::new(),
            brk_start: 0,
            brk: 0,
            mmap_top: vma::USER_END,
            args: (0, 0),
            envs: (0, 0),
            code: (0, 0),
            stack_start: 0,
            vdso: 0,
            aux: Vec::new(),
            exe: None,
            lock_future: false,
            in_parts: false,
            images: template::Images::default(),
            heap_ahead: 0,
        };
        Ok(Self::around(space, map))
    }

    fn around(space: Arc<UserSpace>, map: Map) -> Arc<Self> {
        let resident = [const { AtomicI64::new(0) }; 4];
        Arc::new(Self {
            space,
            map: SpinLock::new(map),
            alone: Mutex::new(()),
            resident,
            peak: AtomicU64::new(0),
            expedited: AtomicBool::new(false),
            dumpable: AtomicBool::new(true),
            no_huge: AtomicBool::new(false),
            learns: AtomicBool::new(false),
            in_order: AtomicU64::new(0),
            ahead: AtomicU32::new(0),
            owns_pool_pages: AtomicBool::new(true),
        })
    }

    /// Locks the map. Nothing that may fault on user memory or sleep happens under it.
    #[track_caller]
    pub fn lock(&self) -> SpinGuard<'_, Map> {
        self.map.lock()
    }

    /// The map if its lock is free: for the crash path.
    pub fn try_lock(&self) -> Option<SpinGuard<'_, Map>> {
        self.map.try_lock()
    }

    /// A copy for a fork: private pages are shared until one side writes.
    pub fn fork(&self) -> Result<Arc<Self>, Errno> {
        self.audit("the changes before a fork");
        let space = UserSpace::new().map_err(|_| Errno::ENOMEM)?;
        let map = self.lock_to_change();
        let child = if self.is_small(&map) {
            let child = self.fork_at_once(&map, space);
            drop(map);
            child?
        } else {
            drop(map);
            self.fork_in_parts(space)?
        };
        child.dumpable.store(self.dumpable.load(Ordering::Relaxed), Ordering::Relaxed);
        child.no_huge.store(self.no_huge.load(Ordering::Relaxed), Ordering::Relaxed);
        child.disown_pool_pages();
        child.audit("fork");
        Ok(child)
    }

    fn fork_at_once(&self, map: &Map, space: Arc<UserSpace>) -> Result<Arc<Self>, Errno> {
        let mut copy = map.try_clone()?;
        leave_out(&mut copy)?;
        let child = Self::around(space, copy);
        child.owns_pool_pages.store(false, Ordering::Relaxed);
        let copy = child.lock();
        child.enter_all(&copy)?;
        let mut counts = [0; 4];
        let outcome = copy_pages(map, &self.space, &child.space, &mut counts);
        for (count, resident) in counts.iter().zip(&child.resident) {
            resident.store(*count as i64, Ordering::Relaxed);
        }
        child.catch_up(&copy, 0, vma::USER_END);
        // Taking write access away from the parent is done whether or not the copy was completed.
        self.space.flush();
        drop(copy);
        outcome.map(|()| child)
    }

    /// Pages in memory.
    pub fn resident(&self) -> Resident {
        let of = |tag: u8| self.resident[usize::from(tag)].load(Ordering::Relaxed).max(0) as u64;
        Resident { anonymous: of(TAG_ANON), file: of(TAG_FILE), shmem: of(TAG_SHMEM) }
    }

    /// The most pages it ever had in memory.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed).max(self.resident().total())
    }

    fn count(&self, tag: u8, pages: i64) {
        self.resident[usize::from(tag)].fetch_add(pages, Ordering::Relaxed);
    }

    fn uncount(&self, removed: &Removed) {
        if removed.pages == 0 {
            return;
        }
        self.peak.fetch_max(self.resident().total(), Ordering::Relaxed);
        for (count, resident) in removed.by_tag.iter().zip(&self.resident) {
            if *count != 0 {
                resident.fetch_sub(*count as i64, Ordering::Relaxed);
            }
        }
        let touched = removed.by_tag[usize::from(TAG_POOL)];
        if touched != 0 {
            self.put_pool_pages(touched);
        }
    }

    /// Takes the pages of `start..end` out of the tables, whatever the map says.
    pub(crate) fn forget_pages(&self, start: u64, end: u64) {
        self.unmap_pages(start, end);
    }

    /// Takes the pages of `start..end` out of the tables.
    fn unmap_pages(&self, start: u64, end: u64) {
        if let Some(range) = PageRange::new(start, end) {
            // Only splitting a 2 MiB leaf can fail, and those at the borders were split before.
            let (Ok(removed) | Err((removed, _))) = self.space.unmap(range);
            self.uncount(&removed);
        }
    }
}

impl Map {
    /// Whether exec made a range of this backing: it is the program's or its interpreter's file.
    pub fn is_image(&self, backing: &Backing) -> bool {
        self.images.have(backing)
    }

    fn try_clone(&self) -> Result<Self, Errno> {
        let vmas = self.vmas.try_clone().map_err(vma_errno)?;
        Ok(Self { vmas, aux: self.aux.clone(), exe: self.exe.clone(), in_parts: false, ..*self })
    }
}

/// Copies the pages of every range a child inherits. Neighbouring ranges of one kind are copied in one go.
fn copy_pages(map: &Map, from: &UserSpace, to: &UserSpace, counts: &mut [usize; 4]) -> Result<(), Errno> {
    let mut run: Option<(u64, u64, ForkMode)> = None;
    let mut copy = |(start, end, mode): (u64, u64, ForkMode)| {
        let Some(range) = PageRange::new(start, end) else { return Ok(()) };
        let copied = from.fork_range(to, range, mode).map_err(|_| Errno::ENOMEM)?;
        for (count, more) in counts.iter_mut().zip(copied.by_tag) {
            *count += more;
        }
        Ok(())
    };
    for vma in map.vmas.iter() {
        let skipped = vma.flags.has(VmaFlags::DONT_FORK) || vma.flags.has(VmaFlags::WIPE_ON_FORK);
        let mode = if vma.flags.has(VmaFlags::SHARED) { ForkMode::Share } else { ForkMode::CopyOnWrite };
        run = match run {
            Some((start, _, same)) if same == mode && !skipped => Some((start, vma.end, mode)),
            before => {
                if let Some(run) = before {
                    copy(run)?;
                }
                (!skipped).then_some((vma.start, vma.end, mode))
            }
        };
    }
    run.map_or(Ok(()), copy)
}

/// Drops the ranges a child does not inherit from its copy of the map.
fn leave_out(map: &mut Map) -> Result<(), Errno> {
    map.lock_future = false;
    // What a mapping is promised is its maker's.
    if pool::is_in_use() && map.vmas.iter().any(pool::is_of_pool) {
        let promise = Reservation::none();
        let without = |vma: &mut Vma| {
            if let Backing::Pool { promise: own } = &mut vma.backing {
                *own = promise.clone();
            }
        };
        map.vmas.edit(0, vma::USER_END, without).map_err(vma_errno)?;
    }
    let left_out = |vma: &Vma| vma.flags.has(VmaFlags::DONT_FORK);
    let locked = |vma: &Vma| vma.flags.has(VmaFlags::LOCKED);
    if !map.vmas.iter().any(|vma| left_out(vma) || locked(vma)) {
        return Ok(());
    }
    // Locks are not inherited (mlock(2)).
    let unlock = |vma: &mut Vma| vma.flags = vma.flags.without(VmaFlags::LOCKED);
    map.vmas.edit(0, vma::USER_END, unlock).map_err(vma_errno)?;
    let ranges: Vec<(u64, u64)> = map.vmas.iter().filter(|vma| left_out(vma)).map(|v| (v.start, v.end)).collect();
    for (start, end) in ranges {
        map.vmas.remove(start, end, |_| ()).map_err(|_| Errno::ENOMEM)?;
    }
    Ok(())
}

/// The machine's rights for a range's protection.
fn rights(prot: Prot, writable: bool, tag: u8) -> machine::space::Prot {
    machine::space::Prot {
        read: prot != Prot::NONE,
        write: writable && prot.has(Prot::WRITE),
        exec: prot.has(Prot::EXEC),
        tag,
    }
}

/// The page of a backing that lies `bytes` into its range, and what a resident one counts as.
fn backing_page(backing: &Backing, bytes: u64, usage: PageUse) -> Result<(Frame, u8), Errno> {
    match backing {
        Backing::Anonymous | Backing::Pool { .. } => Err(Errno::EINVAL),
        Backing::File { file, offset } => Ok((file.page((offset + bytes) / PAGE, usage)?, TAG_FILE)),
        Backing::Shared { memory, offset } => Ok((memory.page((offset + bytes) / PAGE)?, TAG_SHMEM)),
        Backing::Vdso { index } => Ok((crate::time::vdso::page(index + bytes / PAGE)?, TAG_FILE)),
    }
}

/// What a refused edit of the set is to a program.
pub(crate) fn vma_errno(error: vma::VmaError) -> Errno {
    match error {
        vma::VmaError::NoMemory => Errno::ENOMEM,
        vma::VmaError::Access => Errno::EACCES,
    }
}

/// `addr` rounded up to a page; `None` past the end of the address space.
pub fn page_up(addr: u64) -> Option<u64> {
    Some(addr.checked_add(PAGE - 1)? & !(PAGE - 1))
}

/// `addr` rounded down to a page.
pub fn page_down(addr: u64) -> u64 {
    addr & !(PAGE - 1)
}
