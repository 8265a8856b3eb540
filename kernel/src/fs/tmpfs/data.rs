//! The bytes of a regular file: frames by page number, shared with mappings.
//!
//! The map's lock is held only to look a frame up or put one in, never while bytes are copied: a copy may fault, and
//! the fault may want a page of this very file. Writers lock a mutex, so that appends do not overwrite each other.

use alloc::sync::Arc;
use core::cmp::Ordering;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use kernel_logic::filemap::FileMap;
use linux_abi::Errno;
use linux_abi::flags::file::{FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE};
use machine::addr::{FrameNumber, PAGE_SIZE};
use machine::frame::Frame;
use machine::sync::{SpinGuard, SpinLock};

use super::Pool;
use crate::fs::headers::HeaderSlot;
use crate::fs::inode::PageUse;
use crate::fs::io::{Sink, Source};
use crate::fs::limit::LARGEST;
use crate::fs::seals::{SEAL_FUTURE_WRITE, SEAL_GROW, SEAL_SHRINK, SEAL_WRITE, Seals};
use crate::mm::image::Origin;
use crate::mm::{ReverseMap, TemplateSlot};
use crate::sched::{Sleep, breathe_or_stop};
use crate::sync::Mutex;

/// Contents that still lie in the initramfs archive.
pub trait Archive: Send + Sync {
    /// Length of the contents in bytes.
    fn len(&self) -> usize;
    /// The contents from `at` on that lie in one piece; empty at the end.
    fn piece(&self, at: usize) -> &[u8];
}

pub(super) const PAGE: u64 = PAGE_SIZE as u64;
/// How often the crash path asks for a file's lock: a holder that runs drops it sooner, a stopped one never does.
const ATTEMPTS: u32 = 10_000;

/// The contents of a regular file.
pub struct FileData {
    pages: SpinLock<Pages>,
    size: AtomicU64,
    generation: AtomicU64,
    seals: Seals,
    /// Orders changes of size, contents and seals. Faults and readers look at all of them meanwhile.
    writers: Mutex<()>,
    /// A mapping asked for a page of it.
    mapped: AtomicBool,
    mappers: ReverseMap,
    /// Told of every page that comes or goes.
    template: TemplateSlot,
    headers: HeaderSlot,
}

/// Where a page may be made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Before the file's end as it is when the page comes: for callers that do not keep the size from changing.
    InFile,
    /// Also behind the end, by who holds `writers`.
    Anywhere,
    /// The same, by who has counted the page already: it is used up or given back.
    Paid,
}

struct Pages {
    map: FileMap<Frame>,
    archive: Option<Arc<dyn Archive>>,
    /// Bytes of the archive that are still part of the file.
    archived: u64,
}

impl FileData {
    /// An empty file.
    pub const fn new() -> Self {
        Self {
            pages: SpinLock::new(Pages { map: FileMap::new(), archive: None, archived: 0 }),
            size: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            mapped: AtomicBool::new(false),
            mappers: ReverseMap::new(),
            template: TemplateSlot::new(),
            headers: HeaderSlot::new(),
            seals: Seals::closed(),
            writers: Mutex::new(()),
        }
    }

    /// Makes an archive's bytes the contents of this file, which was empty.
    pub fn set_archive(&self, archive: Arc<dyn Archive>) {
        let length = archive.len() as u64;
        let mut pages = self.pages.lock();
        pages.archived = length;
        pages.archive = Some(archive);
        self.size.store(length, Release);
    }

    /// Length in bytes.
    #[inline]
    pub fn size(&self) -> u64 {
        self.size.load(Acquire)
    }

    /// Blocks of 512 bytes in use, what is still in the archive included.
    pub fn blocks(&self) -> u64 {
        let pages = self.pages.lock();
        pages.map.held().max(pages.archived.div_ceil(PAGE)) * (PAGE / 512)
    }

    /// Frames the file holds.
    pub fn held_pages(&self) -> u64 {
        self.pages.lock().map.held()
    }

    /// See [`crate::fs::Inode::original`]; the caller knows that the file was not written.
    pub fn original(&self, at: u64, to: &mut [u8]) -> Option<usize> {
        let pages = self.locked_soon()?;
        let archive = pages.archive.clone()?;
        drop(pages);
        let mut done = 0;
        while done < to.len() {
            let piece = archive.piece(at as usize + done);
            if piece.is_empty() {
                break;
            }
            let len = piece.len().min(to.len() - done);
            to[done..done + len].copy_from_slice(&piece[..len]);
            done += len;
        }
        Some(done)
    }

    /// See [`crate::fs::Inode::present`].
    pub fn present(&self, index: u64) -> Option<FrameNumber> {
        self.locked_soon()?.map.get(index).map(Frame::number)
    }

    /// The pages, if their lock is free or a running processor drops it.
    fn locked_soon(&self) -> Option<SpinGuard<'_, Pages>> {
        (0..ATTEMPTS).find_map(|_| {
            self.pages.try_lock().or_else(|| {
                machine::cpu::relax();
                None
            })
        })
    }

    /// Count of changes: see [`crate::fs::Inode::generation`].
    pub fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// What is forbidden for good (fcntl(2), "File Sealing").
    pub fn seals(&self) -> &Seals {
        &self.seals
    }

    /// Adds seals, between two writes: none is under way when this returns.
    pub fn add_seals(&self, more: u32) -> Result<(), Errno> {
        let _turn = self.writers.lock();
        self.seals.add(more)
    }

    /// EPERM if one of `seals` forbids it.
    fn check_seals(&self, seals: u32) -> Result<(), Errno> {
        if self.seals.get() & seals != 0 { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Copies from `position` on until the sink is full or the file ends.
    pub fn read(&self, mut position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        while sink.left() > 0 {
            let rest = self.size().saturating_sub(position);
            if rest == 0 {
                break;
            }
            let offset = (position % PAGE) as usize;
            let count = (PAGE_SIZE - offset).min(usize::try_from(rest).unwrap_or(PAGE_SIZE));
            let pages = self.pages.lock();
            let frame = pages.map.get(position / PAGE).cloned();
            let archive = if frame.is_none() && position < pages.archived { pages.archive.clone() } else { None };
            let archived = pages.archived;
            drop(pages);
            position += match (frame, archive) {
                (Some(frame), _) => sink.put_frame(&frame, offset, count)?,
                (None, Some(archive)) => {
                    let piece = archive.piece(position as usize);
                    let most = count.min((archived - position) as usize).min(piece.len());
                    sink.put(&piece[..most])?
                }
                (None, None) => sink.put_zeros(count)?,
            } as u64;
            if sink.left() > 0 {
                breathe_or_stop(Sleep::Killable)?;
            }
        }
        Ok(())
    }

    /// Copies to `position`, or to the end without one, until the source is empty. Answers where the bytes began.
    pub fn write(&self, pool: &Pool, position: Option<u64>, source: &mut Source<'_>) -> Result<u64, Errno> {
        let _turn = self.writers.lock();
        let start = position.unwrap_or_else(|| self.size());
        let mut at = start;
        self.check_seals(SEAL_WRITE | SEAL_FUTURE_WRITE)?;
        if start.saturating_add(source.left() as u64) > self.size() {
            self.check_seals(SEAL_GROW)?;
        }
        self.generation.fetch_add(1, Relaxed);
        let result = loop {
            if source.left() == 0 {
                break Ok(());
            }
            let most = crate::fs::limit::room(at, source.left());
            let most = match most {
                Ok(most) => most,
                Err(error) => break Err(error),
            };
            let offset = (at % PAGE) as usize;
            let count = (PAGE_SIZE - offset).min(most);
            let before = source.done();
            let result = self.write_piece(pool, at / PAGE, offset, count, source);
            at += (source.done() - before) as u64;
            if at > self.size() {
                self.size.store(at, Release);
            }
            if result.is_err() {
                break result;
            }
            if source.left() > 0
                && let Err(ending) = breathe_or_stop(Sleep::Killable)
            {
                break Err(ending);
            }
        };
        match result {
            Err(error) if at == start => Err(error),
            _ => Ok(start),
        }
    }

    fn write_piece(
        &self,
        pool: &Pool,
        index: u64,
        offset: usize,
        count: usize,
        source: &mut Source<'_>,
    ) -> Result<(), Errno> {
        let held = self.pages.lock().map.get(index).cloned();
        if let Some(frame) = held {
            return source.take_frame(&frame, offset, count).map(|_| ());
        }
        if count < PAGE_SIZE {
            let frame = self.page_to_write(pool, index, Reach::Anywhere)?;
            return source.take_frame(&frame, offset, count).map(|_| ());
        }
        // The whole page is overwritten: its old contents need not be made first.
        pool.charge(1)?;
        let frame = Frame::alloc().map_err(|_| Errno::ENOSPC);
        let frame = frame.inspect_err(|_| pool.release(1))?;
        let before = source.done();
        let result = source.take_frame(&frame, 0, PAGE_SIZE);
        let taken = source.done() - before;
        if taken < PAGE_SIZE {
            let mut pages = self.pages.lock();
            fill_archived(&mut pages, index, taken, &frame);
        }
        let mut pages = self.pages.lock();
        match pages.map.get(index).cloned() {
            // A mapping made the page meanwhile (the source may map this very page): that frame stays the file's.
            Some(other) => {
                drop(pages);
                copy(&frame, &other, taken);
                pool.release(1);
            }
            None => {
                drop(pages.map.insert(index, frame));
                self.template.page_came();
            }
        }
        result.map(|_| ())
    }

    /// The frame of page `index`, made if it is a hole or in the archive. ENXIO out of `reach`; without
    /// a free frame ENOMEM for a mapping, ENOSPC for a writer.
    fn page_to_write(&self, pool: &Pool, index: u64, reach: Reach) -> Result<Frame, Errno> {
        let pages = self.pages.lock();
        if let Some(frame) = pages.map.get(index) {
            pool.release(u64::from(reach == Reach::Paid));
            return Ok(frame.clone());
        }
        let archived = index * PAGE < pages.archived;
        drop(pages);
        // What is in the archive is the file's already: it is there for who maps it, however full the file system is.
        if archived && reach == Reach::InFile {
            pool.charge_own(1);
        } else if reach != Reach::Paid {
            pool.charge(1)?;
        }
        let lacking = if reach == Reach::InFile { Errno::ENOMEM } else { Errno::ENOSPC };
        let frame = Frame::alloc().map_err(|_| lacking);
        let frame = frame.inspect_err(|_| pool.release(1))?;
        let mut pages = self.pages.lock();
        if let Some(other) = pages.map.get(index) {
            let other = other.clone();
            drop(pages);
            pool.release(1);
            return Ok(other);
        }
        // A truncation sets the size before it takes pages out: none comes behind its back.
        if reach == Reach::InFile && index >= self.size().div_ceil(PAGE) {
            drop(pages);
            pool.release(1);
            return Err(Errno::ENXIO);
        }
        fill_archived(&mut pages, index, 0, &frame);
        pages.map.insert(index, frame.clone());
        self.template.page_came();
        Ok(frame)
    }

    /// The frame for a mapping: see [`crate::fs::Inode::page`].
    pub fn page(&self, pool: &Pool, index: u64, usage: PageUse) -> Result<Frame, Errno> {
        self.mapped.store(true, Relaxed);
        if index >= self.size().div_ceil(PAGE) {
            return Err(Errno::ENXIO);
        }
        if usage == PageUse::Write {
            self.generation.fetch_add(1, Relaxed);
        }
        self.page_to_write(pool, index, Reach::InFile)
    }

    /// The frames of the pages in memory from `first` on: see [`crate::fs::Inode::cached`].
    pub fn cached(&self, first: u64, to: &mut [Option<Frame>]) {
        self.mapped.store(true, Relaxed);
        let left = usize::try_from(self.size().div_ceil(PAGE).saturating_sub(first)).unwrap_or(usize::MAX);
        let pages = self.pages.lock();
        for (index, slot) in (first..).zip(to.iter_mut().take(left)) {
            *slot = pages.map.get(index).cloned();
        }
    }

    /// Makes `to` the frame of a page that the archive has: see [`crate::mm::image`].
    #[cold]
    pub fn move_page(&self, pool: &Pool, index: u64, to: Frame) -> Option<Origin> {
        self.mapped.store(true, Relaxed);
        let mut pages = self.pages.lock();
        if index * PAGE >= pages.archived {
            return None;
        }
        let origin = match pages.map.get(index) {
            // Under the lock who has no reference gets none: nothing reads or writes the frame meanwhile.
            Some(frame) if frame.references() == 1 => {
                to.copy_page_from(frame);
                Origin::Cache
            }
            Some(_) => return None,
            None => {
                pool.charge_own(1);
                fill_archived(&mut pages, index, 0, &to);
                Origin::Archive
            }
        };
        let before = pages.map.insert(index, to);
        drop(pages);
        drop(before);
        self.template.page_came();
        Some(origin)
    }

    /// The address spaces that have mapped it.
    pub fn mappers(&self) -> &ReverseMap {
        &self.mappers
    }

    /// Where the template of the program in it is kept.
    pub fn template(&self) -> &TemplateSlot {
        &self.template
    }

    /// Where the headers of the program in it are kept.
    pub fn headers(&self) -> &HeaderSlot {
        &self.headers
    }

    /// Whether a mapping ever asked for a page.
    pub fn was_mapped(&self) -> bool {
        self.mapped.load(Relaxed)
    }

    /// Sets the length; answers how many frames were given up.
    pub fn truncate(&self, size: u64) -> Result<u64, Errno> {
        if size > LARGEST {
            return Err(Errno::EFBIG);
        }
        let _turn = self.writers.lock();
        let old = self.size();
        self.check_seals(match size.cmp(&old) {
            Ordering::Less => SEAL_SHRINK,
            Ordering::Equal => 0,
            Ordering::Greater => SEAL_GROW,
        })?;
        self.generation.fetch_add(1, Relaxed);
        if size >= old {
            // Who leaves a file as large as it is does not meet the limit.
            if size > old {
                crate::fs::limit::room(size - 1, 1)?;
            }
            self.size.store(size, Release);
            return Ok(0);
        }
        self.size.store(size, Release);
        let mut pages = self.pages.lock();
        let before = pages.map.held();
        pages.archived = pages.archived.min(size);
        if pages.archived == 0 {
            pages.archive = None;
        }
        pages.map.truncate(size.div_ceil(PAGE));
        let tail = (size % PAGE) as usize;
        if tail != 0
            && let Some(frame) = pages.map.get(size / PAGE)
        {
            frame.zero(tail, PAGE_SIZE - tail);
        }
        let gone = before - pages.map.held();
        drop(pages);
        if gone != 0 {
            self.template.pages_went();
        }
        Ok(gone)
    }

    /// fallocate: reserves, or punches a hole.
    pub fn allocate(&self, pool: &Pool, mode: u64, start: u64, length: u64) -> Result<(), Errno> {
        let end = start.checked_add(length).filter(|&end| end <= LARGEST).ok_or(Errno::EFBIG)?;
        // Seals are checked under the gate that F_ADD_SEALS takes.
        let _turn = self.writers.lock();
        match mode {
            0 | FALLOC_FL_KEEP_SIZE => {
                if mode == 0 && end > self.size() {
                    self.check_seals(SEAL_GROW)?;
                }
                if end > self.size() {
                    crate::fs::limit::room(end - 1, 1)?;
                }
                self.fill(pool, start / PAGE, end.div_ceil(PAGE))?;
                if mode == 0 && end > self.size() {
                    self.size.store(end, Release);
                }
                Ok(())
            }
            _ if Self::is_hole(mode) => {
                self.check_seals(SEAL_WRITE | SEAL_FUTURE_WRITE)?;
                self.punch(pool, start, end)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// Makes the pages of `first..end` that are missing: all of them fit, or none is made.
    fn fill(&self, pool: &Pool, first: u64, end: u64) -> Result<(), Errno> {
        let mut left = self.missing(pool, first, end)?;
        pool.charge(left)?;
        let mut at = first;
        let result = loop {
            // Only mappings make pages meanwhile, and none goes.
            let hole = self.pages.lock().map.next(at, true, end).filter(|hole| *hole < end && left > 0);
            let Some(hole) = hole else { break Ok(()) };
            left -= 1;
            if let Err(error) = self.page_to_write(pool, hole, Reach::Paid) {
                break Err(error);
            }
            at = hole + 1;
            if let Err(error) = breathe_or_stop(Sleep::Killable) {
                break Err(error);
            }
        };
        pool.release(left);
        result
    }

    /// Pages of `first..end` that are holes or still in the archive. ENOSPC for more than could ever be there.
    fn missing(&self, pool: &Pool, first: u64, end: u64) -> Result<u64, Errno> {
        if end - first > pool.most_pages.saturating_add(self.held_pages()) {
            return Err(Errno::ENOSPC);
        }
        let (mut at, mut missing) = (first, 0);
        while at < end {
            let pages = self.pages.lock();
            let held = pages.map.next(at, false, end).unwrap_or(end);
            missing += held - at;
            at = pages.map.next(held, true, end).unwrap_or(end);
            drop(pages);
            breathe_or_stop(Sleep::Killable)?;
        }
        Ok(missing)
    }

    /// Whether a mode of fallocate(2) makes a hole.
    pub const fn is_hole(mode: u64) -> bool {
        mode == FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
    }

    fn punch(&self, pool: &Pool, start: u64, end: u64) -> Result<(), Errno> {
        let end = end.min(self.size().next_multiple_of(PAGE));
        let mut at = start;
        while at < end {
            breathe_or_stop(Sleep::Killable)?;
            let offset = (at % PAGE) as usize;
            let count = (PAGE - at % PAGE).min(end - at) as usize;
            if offset == 0 && at >= self.pages.lock().archived {
                // Holes of any length are skipped.
                let held = self.pages.lock().map.next(at / PAGE, false, end.div_ceil(PAGE));
                let Some(held) = held.filter(|held| held * PAGE < end) else { break };
                if held > at / PAGE {
                    at = held * PAGE;
                    continue;
                }
            }
            let archived = at < self.pages.lock().archived;
            if count < PAGE_SIZE || archived {
                let held = self.pages.lock().map.get(at / PAGE).is_some();
                if held || archived {
                    self.page_to_write(pool, at / PAGE, Reach::Anywhere)?.zero(offset, count);
                }
            } else if self.pages.lock().map.remove(at / PAGE).is_some() {
                self.template.pages_went();
                pool.release(1);
            }
            at += count as u64;
        }
        self.generation.fetch_add(1, Relaxed);
        Ok(())
    }

    /// SEEK_DATA and SEEK_HOLE.
    pub fn seek(&self, from: u64, hole: bool) -> Result<u64, Errno> {
        let size = self.size();
        if from >= size {
            return Err(Errno::ENXIO);
        }
        let pages = self.pages.lock();
        if from < pages.archived {
            return Ok(if hole { pages.archived } else { from });
        }
        let found = pages.map.next(from / PAGE, hole, size.div_ceil(PAGE)).ok_or(Errno::ENXIO)?;
        Ok((found * PAGE).clamp(from, size))
    }
}

impl Default for FileData {
    fn default() -> Self {
        Self::new()
    }
}

/// Copies the first `count` bytes of a frame.
fn copy(from: &Frame, to: &Frame, count: usize) {
    let mut piece = [0; 256];
    for at in (0..count).step_by(piece.len()) {
        let piece = &mut piece[..256.min(count - at)];
        from.read(at, piece);
        to.write(at, piece);
    }
}

/// Gives `frame[from..]` what page `index` holds in the archive, zeros behind that.
fn fill_archived(pages: &mut Pages, index: u64, from: usize, frame: &Frame) {
    let base = index * PAGE;
    let mut at = from;
    if let Some(archive) = &pages.archive {
        while at < PAGE_SIZE && base + (at as u64) < pages.archived {
            let rest = (pages.archived - base) as usize - at;
            let piece = archive.piece((base as usize) + at);
            let count = piece.len().min(PAGE_SIZE - at).min(rest);
            if count == 0 {
                break;
            }
            frame.write(at, &piece[..count]);
            at += count;
        }
    }
    frame.zero(at, PAGE_SIZE - at);
}
