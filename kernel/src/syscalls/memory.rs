//! Calls about memory: mmap(2) and its family.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use kernel_logic::huge::HUGE;
use kernel_logic::vma::{PAGE, Prot, USER_END, VmaFlags};
use linux_abi::Errno;
use linux_abi::flags::memory as abi;
use linux_abi::numbers::{MAP_HUGE_MASK, MAP_HUGE_SHIFT, MAP_TYPE};
use linux_abi::syscalls::nr;

use super::{Call, Calls, SysResult};
use crate::fs::hugetlb::HugeFile;
use crate::fs::mapped;
use crate::mm::fault::Unresolved;
use crate::mm::map::{Placement, Request, pool_memory, shared_memory};
use crate::mm::{AddressSpace, Backing, MemoryLimits, Owner as _, page_up, pool};
use crate::sched::{Sleep, breathe_or_stop};
use crate::task::access::{self, By};
use crate::task::tree;
use crate::user;

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::mmap, mmap),
    (nr::mprotect, mprotect),
    (nr::munmap, munmap),
    (nr::brk, brk),
    (nr::mremap, mremap),
    (nr::msync, msync),
    (nr::mincore, mincore),
    (nr::mlock, mlock),
    (nr::mlock2, mlock),
    (nr::munlock, munlock),
    (nr::mlockall, mlockall),
    (nr::munlockall, munlockall),
    (nr::membarrier, membarrier),
    (nr::process_vm_readv, |call| process_vm(call, Direction::Read)),
    (nr::process_vm_writev, |call| process_vm(call, Direction::Write)),
];

impl Call<'_> {
    #[inline(always)]
    pub(super) fn mm(&self) -> Result<alloc::sync::Arc<AddressSpace>, Errno> {
        self.task.mm().ok_or(Errno::ENOMEM)
    }

    /// A page-aligned start and a length, as a range of whole pages. `misfit` when the end does not exist.
    pub(super) fn range(&self, misfit: Errno) -> Result<(u64, u64), Errno> {
        let start = self.arg(0);
        if !start.is_multiple_of(PAGE) {
            return Err(Errno::EINVAL);
        }
        let end = start.checked_add(self.arg(1)).and_then(page_up).filter(|end| *end <= USER_END);
        Ok((start, end.ok_or(misfit)?))
    }
}

/// The protection a call asks for.
fn protection(bits: u64) -> Result<Prot, Errno> {
    if bits & !(7 | abi::PROT_GROWSDOWN | abi::PROT_GROWSUP | abi::PROT_SEM) != 0 {
        return Err(Errno::EINVAL);
    }
    Ok(Prot((bits & 7) as u8))
}

fn mmap(call: &mut Call<'_>) -> SysResult {
    let (addr, len, flags, offset) = (call.arg(0), call.arg(1), call.arg(3), call.arg(5));
    let prot = Prot((call.arg(2) & 7) as u8);
    if !offset.is_multiple_of(PAGE) || len == 0 {
        return Err(Errno::EINVAL);
    }
    let len = whole_pages(len, flags)?;
    if offset.checked_add(len).is_none() {
        return Err(Errno::EOVERFLOW);
    }
    let shared = match flags & MAP_TYPE {
        abi::MAP_SHARED => true,
        // Only a file can be asked which flags it knows (mmap(2)).
        abi::MAP_SHARED_VALIDATE if flags & abi::MAP_ANONYMOUS != 0 => return Err(Errno::EINVAL),
        abi::MAP_SHARED_VALIDATE => true,
        abi::MAP_PRIVATE => false,
        _ => return Err(Errno::EINVAL),
    };
    let (backing, mut vma_flags) = contents(call, len, prot, shared)?;
    let len = if vma_flags.has(VmaFlags::POOL) { huge_file(&backing, call, len, prot)? } else { len };
    if flags & abi::MAP_GROWSDOWN != 0 {
        // Growth would move the beginning of what is mapped, not only that of the range.
        if shared || flags & abi::MAP_ANONYMOUS == 0 || vma_flags.has(VmaFlags::POOL) {
            return Err(Errno::EINVAL);
        }
        vma_flags = vma_flags.with(VmaFlags::GROWS_DOWN);
    }
    if flags & abi::MAP_STACK != 0 {
        // A thread touches the top of its stack and little more (Linux since 6.7).
        vma_flags = vma_flags.with(VmaFlags::NO_HUGE);
    }
    if flags & abi::MAP_LOCKED != 0 {
        vma_flags = vma_flags.with(VmaFlags::LOCKED);
    }
    let placement = if flags & abi::MAP_FIXED_NOREPLACE != 0 {
        Placement::FixedIfFree(addr)
    } else if flags & abi::MAP_FIXED != 0 {
        Placement::Fixed(addr)
    } else {
        Placement::Hint(addr)
    };
    if !matches!(placement, Placement::Hint(_)) && !addr.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    let ceiling = (flags & abi::MAP_32BIT != 0).then_some(1 << 31);
    let limits = call.task.memory_limits();
    let no_reserve = flags & abi::MAP_NORESERVE != 0;
    if flags & abi::MAP_LOCKED != 0 {
        check_may_lock(call, &limits)?;
    }
    let mm = call.mm()?;
    let at = mm.mmap(Request { placement, len, prot, flags: vma_flags, backing, ceiling, limits, no_reserve })?;
    if flags & (abi::MAP_POPULATE | abi::MAP_LOCKED) != 0 && flags & abi::MAP_NONBLOCK == 0 {
        // Populating is best effort: the mapping exists.
        let _ = mm.populate(at, at + len);
    }
    Ok(at as usize)
}

/// What a mapping is of, and the flags that come of that.
#[inline(always)]
fn contents(call: &Call<'_>, len: u64, prot: Prot, shared: bool) -> Result<(Backing, VmaFlags), Errno> {
    let (flags, offset) = (call.arg(3), call.arg(5));
    let pooled = flags & abi::MAP_HUGETLB != 0;
    if flags & abi::MAP_ANONYMOUS != 0 {
        return match (pooled, shared) {
            (true, _) => pool_contents(len, shared, flags & abi::MAP_NORESERVE != 0),
            (false, true) => Ok((shared_memory(len), VmaFlags::SHARED)),
            (false, false) => Ok((Backing::Anonymous, VmaFlags::default())),
        };
    }
    let file = call.task.files().get(call.int(4))?;
    if file.is_path_only() {
        return Err(Errno::EBADF);
    }
    if pooled && HugeFile::of(file.inode()).is_none() {
        return Err(Errno::EINVAL);
    }
    if flags & MAP_TYPE == abi::MAP_SHARED_VALIDATE && flags & !KNOWN_TO_FILES != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    // No file reaches further. Nor can a mapping grow by enough for the number of a page to wrap.
    if offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
        return Err(Errno::EOVERFLOW);
    }
    match mapped::backing(file, offset, prot, shared)? {
        (Backing::Anonymous, flags) if shared => Ok((shared_memory(len), flags)),
        other => Ok(other),
    }
}

#[cold]
fn pool_contents(len: u64, shared: bool, no_reserve: bool) -> Result<(Backing, VmaFlags), Errno> {
    let sharing = if shared { VmaFlags::SHARED } else { VmaFlags::default() };
    Ok((pool_memory(len, shared, no_reserve)?, VmaFlags::POOL.with(sharing)))
}

/// Prepares a mapping of `len` bytes of the pool, whose file has what it shows promised, if it is one of a file; how
/// long it is in huge pages.
#[cold]
fn huge_file(backing: &Backing, call: &Call<'_>, len: u64, prot: Prot) -> Result<u64, Errno> {
    let Backing::File { file, offset } = backing else { return Ok(len) };
    let Some(data) = HugeFile::of(file.inode()) else { return Err(Errno::EINVAL) };
    let len = len.checked_next_multiple_of(HUGE).filter(|len| *len <= USER_END).ok_or(Errno::ENOMEM)?;
    let (at, flags) = (call.arg(0), call.arg(3));
    let fixed = flags & (abi::MAP_FIXED | abi::MAP_FIXED_NOREPLACE) != 0;
    if !offset.is_multiple_of(HUGE) || fixed && !at.is_multiple_of(HUGE) {
        return Err(Errno::EINVAL);
    }
    if offset.checked_add(len).is_none_or(|end| end > i64::MAX as u64) {
        return Err(Errno::EOVERFLOW);
    }
    let shared = flags & MAP_TYPE != abi::MAP_PRIVATE;
    data.prepare(*offset, len, shared && flags & abi::MAP_NORESERVE == 0, prot.has(Prot::WRITE))?;
    Ok(len)
}

/// `len` in whole pages of the kind that `flags` ask for.
#[inline(always)]
fn whole_pages(len: u64, flags: u64) -> Result<u64, Errno> {
    let rounded = if flags & abi::MAP_HUGETLB == 0 {
        page_up(len)
    } else if matches!(flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK, 0 | HUGE_SIZE) {
        len.checked_next_multiple_of(HUGE)
    } else {
        return Err(Errno::EINVAL);
    };
    rounded.filter(|len| *len <= USER_END).ok_or(Errno::ENOMEM)
}

/// The logarithm of the only size of a page of the pool; 0 names it too.
pub(super) const HUGE_SIZE: u64 = HUGE.ilog2() as u64;

/// Flags that every file's mapping knows (`LEGACY_MAP_MASK`): MAP_SHARED_VALIDATE refuses others, MAP_SYNC among them.
const KNOWN_TO_FILES: u64 = 0x7c07_f973;

/// `EPERM` for a caller that may lock no memory at all.
fn check_may_lock(call: &Call<'_>, limits: &MemoryLimits) -> Result<(), Errno> {
    if limits.locked == 0 && !call.task.locks_any_memory() { Err(Errno::EPERM) } else { Ok(()) }
}

fn mprotect(call: &mut Call<'_>) -> SysResult {
    let prot = protection(call.arg(2))?;
    let (mut start, end) = call.range(Errno::ENOMEM)?;
    let (down, up) = (call.arg(2) & abi::PROT_GROWSDOWN != 0, call.arg(2) & abi::PROT_GROWSUP != 0);
    if down && up {
        return Err(Errno::EINVAL);
    }
    if start == end {
        return Ok(0);
    }
    if down || up {
        // No mapping grows upwards here; one that grows down is changed from its beginning on.
        let grows = VmaFlags::GROWS_DOWN;
        let found = call.mm()?.lock().vmas.find_at_or_above(start).map(|vma| (vma.start, vma.flags.has(grows)));
        let reached = found.filter(|(from, _)| *from < end).ok_or(Errno::ENOMEM)?;
        start = Some(reached).filter(|(_, grows)| down && *grows).ok_or(Errno::EINVAL)?.0;
    }
    call.mm()?.mprotect(start, end, prot, &**call.task)?;
    Ok(0)
}

fn munmap(call: &mut Call<'_>) -> SysResult {
    let (start, end) = call.range(Errno::EINVAL)?;
    if start == end {
        return Err(Errno::EINVAL);
    }
    call.mm()?.munmap(start, end)?;
    Ok(0)
}

fn brk(call: &mut Call<'_>) -> SysResult {
    Ok(call.mm()?.set_brk(call.arg(0), &**call.task) as usize)
}

fn mremap(call: &mut Call<'_>) -> SysResult {
    let (old, flags, fixed) = (call.arg(0), call.arg(3), call.arg(4));
    let known = abi::MREMAP_MAYMOVE | abi::MREMAP_FIXED | abi::MREMAP_DONTUNMAP;
    let needs_move = flags & (abi::MREMAP_FIXED | abi::MREMAP_DONTUNMAP) != 0;
    // As on Linux a length that rounds up to 2^64 is one of 0.
    let mut old_len = pages_around(0, call.arg(1));
    let mut new_len = page_up(call.arg(2)).filter(|len| *len != 0).ok_or(Errno::EINVAL)?;
    if flags & !known != 0
        || !old.is_multiple_of(PAGE)
        || (needs_move && flags & abi::MREMAP_MAYMOVE == 0)
        || (flags & abi::MREMAP_DONTUNMAP != 0 && old_len != new_len)
    {
        return Err(Errno::EINVAL);
    }
    let mm = call.mm()?;
    // What there is comes before where it goes.
    let of_pool = mm.lock().vmas.find(old).map(pool::is_of_pool).ok_or(Errno::EFAULT)?;
    if of_pool {
        let whole = |len: u64| len.checked_next_multiple_of(HUGE).ok_or(Errno::EINVAL);
        (old_len, new_len) = (whole(old_len)?, whole(new_len)?);
        // They move and shrink, whole, and are never joined by more.
        let aligned = old.is_multiple_of(HUGE) && fixed.is_multiple_of(HUGE);
        if !aligned || new_len > old_len || flags & abi::MREMAP_DONTUNMAP != 0 {
            return Err(Errno::EINVAL);
        }
    }
    if flags & abi::MREMAP_FIXED != 0 && !fixed.is_multiple_of(PAGE) {
        return Err(Errno::EINVAL);
    }
    if new_len > USER_END && flags & abi::MREMAP_FIXED == 0 {
        return Err(Errno::ENOMEM);
    }
    if flags & abi::MREMAP_FIXED != 0 && fixed < old.saturating_add(old_len) && old < fixed.saturating_add(new_len) {
        return Err(Errno::EINVAL);
    }
    if new_len > USER_END || old.checked_add(old_len).is_none_or(|end| end > USER_END) {
        return Err(Errno::EINVAL);
    }
    if flags & abi::MREMAP_FIXED != 0 && fixed.checked_add(new_len).is_none_or(|end| end > USER_END) {
        return Err(Errno::EINVAL);
    }
    Ok(mm.mremap(old, old_len, new_len, flags, fixed, &call.task.memory_limits())? as usize)
}

fn msync(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(2);
    let known = abi::MS_ASYNC | abi::MS_INVALIDATE | abi::MS_SYNC;
    if flags & !known != 0
        || flags & abi::MS_ASYNC != 0 && flags & abi::MS_SYNC != 0
        || !call.arg(0).is_multiple_of(PAGE)
    {
        return Err(Errno::EINVAL);
    }
    // As on Linux a length that rounds up to 2^64 is one of 0.
    if pages_around(0, call.arg(1)) == 0 {
        return Ok(0);
    }
    let (start, end) = call.range(Errno::ENOMEM)?;
    let mm = call.mm()?;
    let map = mm.lock();
    if !map.vmas.is_covered(start, end) {
        return Err(Errno::ENOMEM);
    }
    let locked = map.vmas.overlapping(start, end).any(|vma| vma.flags.has(VmaFlags::LOCKED));
    // Every mapping of a file shares its frames: there is nothing to write back.
    if flags & abi::MS_INVALIDATE != 0 && locked { Err(Errno::EBUSY) } else { Ok(0) }
}

fn mincore(call: &mut Call<'_>) -> SysResult {
    let (start, end) = call.range(Errno::ENOMEM)?;
    /// Pages answered at a time, whatever the range.
    const CHUNK: u64 = 512;
    let mm = call.mm()?;
    let mut present = [0u8; CHUNK as usize];
    let mut at = start;
    while at < end {
        let stop = end.min(at + CHUNK * PAGE);
        mm.in_core(at, stop, |index, is| present[index] = u8::from(is))?;
        let answered = &present[..((stop - at) / PAGE) as usize];
        user::write_bytes(call.arg(2).wrapping_add((at - start) / PAGE), answered)?;
        at = stop;
        breathe_or_stop(Sleep::Killable)?;
    }
    Ok(0)
}

/// Bytes of the whole pages around a range, 0 if that is 2^64.
fn pages_around(slack: u64, len: u64) -> u64 {
    len.wrapping_add(slack).wrapping_add(PAGE - 1) & !(PAGE - 1)
}

fn mlock(call: &mut Call<'_>) -> SysResult {
    let on_fault = call.frame.syscall() == Some(nr::mlock2) && call.word(2) & 1 != 0;
    if call.frame.syscall() == Some(nr::mlock2) && call.word(2) & !1 != 0 {
        return Err(Errno::EINVAL);
    }
    let limits = call.task.memory_limits();
    check_may_lock(call, &limits)?;
    let slack = call.arg(0) % PAGE;
    let start = call.arg(0) - slack;
    let end = start.checked_add(pages_around(slack, call.arg(1))).ok_or(Errno::EINVAL)?;
    if start == end {
        return Ok(0);
    }
    let mm = call.mm()?;
    mm.lock_range(start, end, &limits)?;
    if !on_fault {
        mm.populate(start, end).map_err(|error| match error {
            Unresolved::OutOfMemory => Errno::EAGAIN,
            // They are locked, and stay absent (mlock(2)).
            _ => Errno::ENOMEM,
        })?;
    }
    Ok(0)
}

fn munlock(call: &mut Call<'_>) -> SysResult {
    let slack = call.arg(0) % PAGE;
    let start = call.arg(0) - slack;
    let end = start.checked_add(pages_around(slack, call.arg(1))).ok_or(Errno::EINVAL)?;
    if start == end {
        return Ok(0);
    }
    call.mm()?.set_flags(start, end, VmaFlags::default(), VmaFlags::LOCKED)?;
    Ok(0)
}

fn mlockall(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(0);
    let known = abi::MCL_CURRENT | abi::MCL_FUTURE | abi::MCL_ONFAULT;
    // How pages are locked says nothing alone.
    if flags == 0 || flags & !known != 0 || flags == abi::MCL_ONFAULT {
        return Err(Errno::EINVAL);
    }
    let limits = call.task.memory_limits();
    check_may_lock(call, &limits)?;
    let mm = call.mm()?;
    mm.lock_all(flags & abi::MCL_CURRENT != 0, flags & abi::MCL_FUTURE != 0, &limits)?;
    if flags & (abi::MCL_CURRENT | abi::MCL_ONFAULT) == abi::MCL_CURRENT {
        let ranges: Vec<(u64, u64)> = mm.lock().vmas.iter().map(|vma| (vma.start, vma.end)).collect();
        for (start, end) in ranges {
            // Ranges without access cannot be populated and need not be.
            let _ = mm.populate(start, end);
        }
    }
    Ok(0)
}

fn munlockall(call: &mut Call<'_>) -> SysResult {
    call.mm()?.lock_all(false, false, &call.task.memory_limits())?;
    Ok(0)
}

fn membarrier(call: &mut Call<'_>) -> SysResult {
    call.flags(1, 0)?;
    match call.word(0) {
        abi::MEMBARRIER_CMD_QUERY => Ok((abi::MEMBARRIER_CMD_GLOBAL
            | abi::MEMBARRIER_CMD_PRIVATE_EXPEDITED
            | abi::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) as usize),
        abi::MEMBARRIER_CMD_PRIVATE_EXPEDITED if !call.mm()?.expedited.load(Ordering::Relaxed) => Err(Errno::EPERM),
        abi::MEMBARRIER_CMD_GLOBAL | abi::MEMBARRIER_CMD_PRIVATE_EXPEDITED => {
            machine::cpu::call(machine::cpu::online(), &|| {
                core::sync::atomic::fence(Ordering::SeqCst);
            });
            Ok(0)
        }
        abi::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED => {
            call.mm()?.expedited.store(true, Ordering::Relaxed);
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Which way `process_vm_readv` and `process_vm_writev` copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// A `struct iovec` array of a process_vm call: EINVAL for a length that is negative as a number with a sign.
fn pieces(at: u64, count: u64) -> Result<Vec<(u64, u64)>, Errno> {
    const MAX_PIECES: u64 = 1024;
    if count > MAX_PIECES {
        return Err(Errno::EINVAL);
    }
    let piece = |n: u64| {
        let [base, len] = user::read_words::<2>(at.wrapping_add(16 * n))?;
        if i64::try_from(len).is_ok() { Ok((base, len)) } else { Err(Errno::EINVAL) }
    };
    (0..count).map(piece).collect()
}

fn process_vm(call: &mut Call<'_>, direction: Direction) -> SysResult {
    if call.arg(5) != 0 {
        return Err(Errno::EINVAL);
    }
    let mut local = pieces(call.arg(1), call.arg(2))?;
    let remote = pieces(call.arg(3), call.arg(4))?;
    let process = tree::process(call.int(0) as u32).ok_or(Errno::ESRCH)?;
    let thread = process.threads.first().ok_or(Errno::ESRCH)?;
    let mm = access::memory(&call.task, &thread, By::RealIds)?.ok_or(Errno::ESRCH)?;
    let mut buffer = alloc::vec![0; PAGE as usize];
    let mut done = 0;
    local.reverse();
    for (base, len) in remote {
        let mut at = 0;
        while at < len {
            let Some(piece) = local.last_mut() else { return Ok(done) };
            let part = (len - at).min(piece.1).min(PAGE) as usize;
            let chunk = &mut buffer[..part];
            let moved = match direction {
                Direction::Read => {
                    let got = mm.read_remote(base.wrapping_add(at), chunk);
                    user::write_bytes(piece.0, &chunk[..got]).map(|()| got)
                }
                Direction::Write => {
                    user::read_bytes(piece.0, chunk).map(|()| mm.write_remote(base.wrapping_add(at), chunk))
                }
            };
            let moved = moved.unwrap_or(0);
            done += moved;
            at += moved as u64;
            piece.0 += moved as u64;
            piece.1 -= moved as u64;
            if moved < part {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
            }
            if piece.1 == 0 {
                local.pop();
            }
            if breathe_or_stop(Sleep::Killable).is_err() {
                return Ok(done);
            }
        }
    }
    Ok(done)
}
