//! Moving bytes: read, write and their kin, lseek, sendfile, copy_file_range, sync, truncate.

use alloc::vec::Vec;

use linux_abi::Errno;
use linux_abi::flags::file::{
    FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE,
    FALLOC_FL_UNSHARE_RANGE, FALLOC_FL_ZERO_RANGE, RWF_APPEND, RWF_DSYNC, RWF_HIPRI, RWF_NOWAIT, RWF_SYNC, SEEK_CUR,
    SEEK_DATA, SEEK_END, SEEK_HOLE, SEEK_SET, SYNC_FILE_RANGE_WAIT_AFTER, SYNC_FILE_RANGE_WAIT_BEFORE,
    SYNC_FILE_RANGE_WRITE,
};
use linux_abi::syscalls::nr;
use machine::addr::{USER_END, UserAddr};

use super::lookup::{AT_FDCWD, PathName, Walker};
use super::{Call, Calls, SysResult};
use crate::fs::attr::{S_IFBLK, S_IFDIR, S_IFIFO, S_IFREG};
use crate::fs::file::{File, Seeking};
use crate::fs::io::{IoVec, MAX_RW_COUNT, Sink, Source};
use crate::sched::{Sleep, breathe_or_stop};
use crate::user::read_words;
use kernel_logic::permission::WRITE;

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::read, |call| {
        let file = call.file(0)?;
        file.read(&mut Sink::user(buffer(call)?, call.size(2)))
    }),
    (nr::write, |call| {
        let file = call.file(0)?;
        file.write(&mut Source::user(buffer(call)?, call.size(2)))
    }),
    (nr::pread64, |call| {
        let position = position(call.arg(3))?;
        let file = call.file(0)?;
        file.read_at(position, &mut Sink::user(buffer(call)?, call.size(2)))
    }),
    (nr::pwrite64, |call| {
        let position = position(call.arg(3))?;
        let file = call.file(0)?;
        file.write_at(position, &mut Source::user(buffer(call)?, call.size(2)))
    }),
    (nr::readv, |call| {
        let file = call.file(0)?;
        with_vectors(call, |buffers| file.read(&mut Sink::vector(buffers)))
    }),
    (nr::writev, |call| {
        let file = call.file(0)?;
        with_vectors(call, |buffers| file.write(&mut Source::vector(buffers)))
    }),
    (nr::preadv, |call| vectors_at(call, true, 0)),
    (nr::pwritev, |call| vectors_at(call, false, 0)),
    (nr::preadv2, |call| vectors_at(call, true, call.arg(5))),
    (nr::pwritev2, |call| vectors_at(call, false, call.arg(5))),
    (nr::lseek, lseek),
    (nr::sendfile, sendfile),
    (nr::copy_file_range, copy_file_range),
    (nr::truncate, truncate),
    (nr::ftruncate, ftruncate),
    (nr::fallocate, fallocate),
    (nr::fadvise64, |call| {
        let file = call.open_file(0)?;
        if matches!(file.seeking(), Seeking::Stream | Seeking::Nowhere) {
            return Err(Errno::ESPIPE);
        }
        if call.long(2) < 0 || call.word(3) > 5 { Err(Errno::EINVAL) } else { Ok(0) }
    }),
    (nr::readahead, |call| match call.file(0)? {
        file if !file.is_readable() => Err(Errno::EBADF),
        file if file.inode().attr().kind() != S_IFREG || call.long(2) < 0 => Err(Errno::EINVAL),
        _ => Ok(0),
    }),
    (nr::fsync, sync_one),
    (nr::fdatasync, sync_one),
    (nr::syncfs, |call| call.open_file(0).map(|_| 0)),
    (nr::sync, |_| Ok(0)),
    (nr::sync_file_range, sync_file_range),
];

impl Call<'_> {
    /// The open file of descriptor argument `index`.
    #[inline]
    pub fn file(&self, index: usize) -> Result<alloc::sync::Arc<File>, Errno> {
        let fd = self.int(index);
        // Which error it is, is said once no lock is held: until then the file is one register.
        self.task.files.with(|files| files.and_then(|files| files.find(fd))).ok_or(Errno::EBADF)
    }

    /// [`file`](Self::file), if its contents are open: EBADF where `O_PATH` opened the name alone (open(2)).
    pub fn open_file(&self, index: usize) -> Result<alloc::sync::Arc<File>, Errno> {
        self.file(index).and_then(|file| if file.is_path_only() { Err(Errno::EBADF) } else { Ok(file) })
    }
}

/// The buffer of arguments 1 and 2: EFAULT if it reaches out of the user half, even where nothing would be moved.
#[inline]
fn buffer(call: &Call<'_>) -> Result<UserAddr, Errno> {
    in_user_half(call.arg(1), call.arg(2))
}

#[inline]
fn in_user_half(addr: u64, len: u64) -> Result<UserAddr, Errno> {
    if len > USER_END || addr > USER_END - len { Err(Errno::EFAULT) } else { Ok(UserAddr(addr)) }
}

fn position(argument: u64) -> Result<u64, Errno> {
    if argument > i64::MAX as u64 { Err(Errno::EINVAL) } else { Ok(argument) }
}

/// Vectors this short need no heap.
const FEW: usize = 8;
/// The most buffers of one call (`UIO_MAXIOV`).
const MOST: usize = 1024;

/// Reads the `struct iovec` array of arguments 1 and 2 and hands it to `act`.
pub fn with_vectors(call: &Call<'_>, act: impl FnOnce(&[IoVec]) -> SysResult) -> SysResult {
    read_vectors(call.arg(1), call.size(2), act)
}

/// Reads a `struct iovec` array: EINVAL for too many or for a negative length.
pub fn read_vectors(array: u64, count: usize, act: impl FnOnce(&[IoVec]) -> SysResult) -> SysResult {
    if count > MOST {
        return Err(Errno::EINVAL);
    }
    let mut few = [IoVec::default(); FEW];
    let mut many = Vec::new();
    let buffers = if count <= FEW {
        &mut few[..count]
    } else {
        many.resize(count, IoVec::default());
        &mut many[..]
    };
    for (at, buffer) in buffers.iter_mut().enumerate() {
        let [addr, len] = read_words::<2>(array.wrapping_add(16 * at as u64))?;
        // Their sum may be anything: what is beyond the most one call moves is left out.
        if len > isize::MAX as u64 {
            return Err(Errno::EINVAL);
        }
        *buffer = IoVec { addr: in_user_half(addr, len)?, len: len as usize };
    }
    act(buffers)
}

fn vectors_at(call: &Call<'_>, reads: bool, flags: u64) -> SysResult {
    if flags & 0xffff_ffff & !(RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND) != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let file = call.file(0)?;
    let here = call.arg(3) == u64::MAX && matches!(call.frame.syscall_number(), nr::preadv2 | nr::pwritev2);
    let at = if here { 0 } else { position(call.arg(3))? };
    with_vectors(call, |buffers| match (reads, here) {
        (true, true) => file.read(&mut Sink::vector(buffers)),
        (true, false) => file.read_at(at, &mut Sink::vector(buffers)),
        (false, _) if flags & RWF_APPEND != 0 => file.append((!here).then_some(at), &mut Source::vector(buffers)),
        (false, true) => file.write(&mut Source::vector(buffers)),
        (false, false) => file.write_at(at, &mut Source::vector(buffers)),
    })
}

fn lseek(call: &mut Call<'_>) -> SysResult {
    let file = call.open_file(0)?;
    match file.seeking() {
        Seeking::Stream => return Err(Errno::ESPIPE),
        Seeking::Ignored | Seeking::Nowhere => return Ok(0),
        Seeking::Position | Seeking::Lines => {}
    }
    let offset = call.long(1);
    let base = match call.word(2) {
        SEEK_SET => 0,
        SEEK_CUR => file.position(),
        SEEK_END => file.inode().size(),
        whence @ (SEEK_DATA | SEEK_HOLE) => {
            let from = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
            let found = file.ops.seek_data(&file, from, whence == SEEK_HOLE)?;
            file.set_position(found);
            return Ok(found as usize);
        }
        _ => return Err(Errno::EINVAL),
    };
    let target = base.checked_add_signed(offset).filter(|&to| to <= i64::MAX as u64);
    let target = target.ok_or(Errno::EINVAL)?;
    file.set_position(target);
    Ok(target as usize)
}

/// Bytes moved through the kernel at a time.
const BOUNCE: usize = 64 << 10;

fn sendfile(call: &mut Call<'_>) -> SysResult {
    let (out, from) = (call.file(0)?, call.file(1)?);
    let offset = call.pointer::<u64>(2);
    if !from.is_readable() || !out.is_writable() {
        return Err(Errno::EBADF);
    }
    if out.is_appending() {
        return Err(Errno::EINVAL);
    }
    if matches!(from.seeking(), Seeking::Stream | Seeking::Nowhere) {
        return Err(if offset.is_null() { Errno::EINVAL } else { Errno::ESPIPE });
    }
    let start = if offset.is_null() { from.position() } else { position(offset.read()?)? };
    if call.long(3) < 0 {
        return Err(Errno::EINVAL);
    }
    let done = shovel(&from, start, &out, None, call.size(3))?;
    if offset.is_null() {
        from.set_position(start + done as u64);
    } else {
        offset.write(start + done as u64)?;
    }
    Ok(done)
}

/// Nothing waits to be written; the arguments are checked as on Linux.
fn sync_file_range(call: &mut Call<'_>) -> SysResult {
    let file = call.open_file(0)?;
    call.flags(3, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)?;
    let (start, length) = (call.long(1), call.long(2));
    if start < 0 || start.checked_add(length).is_none_or(|end| end < start) {
        return Err(Errno::EINVAL);
    }
    match file.inode().attr().kind() {
        S_IFREG | S_IFDIR | S_IFBLK => Ok(0),
        _ => Err(Errno::ESPIPE),
    }
}

fn copy_file_range(call: &mut Call<'_>) -> SysResult {
    call.flags(5, 0)?;
    let (from, out) = (call.open_file(0)?, call.open_file(2)?);
    let (from_at, out_at) = (call.pointer::<u64>(1), call.pointer::<u64>(3));
    for file in [&from, &out] {
        match file.inode().attr().kind() {
            S_IFREG => {}
            S_IFDIR => return Err(Errno::EISDIR),
            _ => return Err(Errno::EINVAL),
        }
    }
    if !from.is_readable() || !out.is_writable() || out.is_appending() {
        return Err(Errno::EBADF);
    }
    let read_at = if from_at.is_null() { from.position() } else { from_at.read()? };
    let write_at = if out_at.is_null() { out.position() } else { out_at.read()? };
    if [read_at, write_at].into_iter().any(|at| at.checked_add(call.arg(4)).is_none()) {
        return Err(Errno::EOVERFLOW);
    }
    let (read_at, write_at) = (position(read_at)?, position(write_at)?);
    // As on Linux the end of what there is to read cuts it first, then the farthest offset to write to.
    let length = call.arg(4).min(from.inode().size().saturating_sub(read_at)).min(MAX_RW_COUNT as u64);
    let room = (i64::MAX as u64).saturating_sub(write_at);
    if length > 0 && room == 0 {
        return Err(Errno::EFBIG);
    }
    let length = length.min(room) as usize;
    let attr = |file: &File| (file.inode().attr().dev, file.inode().attr().ino);
    let end = |at: u64| at.saturating_add(length as u64);
    if attr(&from) == attr(&out) && read_at < end(write_at) && write_at < end(read_at) && length > 0 {
        return Err(Errno::EINVAL);
    }
    let done = shovel(&from, read_at, &out, Some(write_at), length)?;
    for (file, pointer, at) in [(&from, from_at, read_at), (&out, out_at, write_at)] {
        if pointer.is_null() {
            file.set_position(at + done as u64);
        } else {
            pointer.write(at + done as u64)?;
        }
    }
    Ok(done)
}

/// Copies `length` bytes from `from` at `start` to `out`, at `to` or its position; what was written counts.
fn shovel(from: &File, start: u64, out: &File, to: Option<u64>, length: usize) -> SysResult {
    let length = length.min(MAX_RW_COUNT);
    let mut buffer = alloc::vec![0; length.min(BOUNCE)];
    let mut done = 0;
    while done < length {
        let most = buffer.len().min(length - done);
        let got = match from.read_at(start + done as u64, &mut Sink::kernel(&mut buffer[..most])) {
            Ok(0) => break,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
            Ok(got) => got,
        };
        let mut source = Source::kernel(&buffer[..got]);
        let put = match to {
            Some(to) => out.write_at(to + done as u64, &mut source),
            None => out.write(&mut source),
        };
        match put {
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
            Ok(put) => {
                done += put;
                // As on Linux any signal ends it with what is done.
                if put < got || breathe_or_stop(Sleep::Interruptible).is_err() {
                    break;
                }
            }
        }
    }
    Ok(done)
}

fn truncate(call: &mut Call<'_>) -> SysResult {
    let mut path = PathName::empty();
    path.read(call.arg(0))?;
    let size = position(call.arg(1))?;
    let walker = Walker::of(call);
    let location = walker.locate(call, AT_FDCWD, &path, 0)?;
    let attr = location.inode().attr();
    match attr.kind() {
        S_IFREG => {}
        S_IFDIR => return Err(Errno::EISDIR),
        _ => return Err(Errno::EINVAL),
    }
    location.check_writable()?;
    attr.check(&walker.caller(), WRITE)?;
    attr.begin_write()?;
    let result = location.inode().truncate(size);
    attr.drop_set_id();
    attr.end_write();
    result.map(|()| 0)
}

fn ftruncate(call: &mut Call<'_>) -> SysResult {
    let size = position(call.arg(1))?;
    let file = call.open_file(0)?;
    if !file.is_writable() || file.inode().attr().kind() != S_IFREG {
        return Err(Errno::EINVAL);
    }
    file.inode().truncate(size)?;
    file.inode().attr().drop_set_id();
    Ok(0)
}

fn fallocate(call: &mut Call<'_>) -> SysResult {
    let file = call.file(0)?;
    let (start, length) = (call.long(2), call.long(3));
    if start < 0 || length <= 0 {
        return Err(Errno::EINVAL);
    }
    let mode = mode_of_fallocate(call.word(1))?;
    if !file.is_writable() {
        return Err(Errno::EBADF);
    }
    match file.inode().attr().kind() {
        S_IFIFO => return Err(Errno::ESPIPE),
        S_IFDIR => return Err(Errno::EISDIR),
        S_IFREG | S_IFBLK => {}
        _ => return Err(Errno::ENODEV),
    }
    if start.checked_add(length).is_none() {
        return Err(Errno::EFBIG);
    }
    file.inode().allocate(mode, start as u64, length as u64)?;
    file.inode().attr().drop_set_id();
    Ok(0)
}

/// A mode that makes sense on some file system (fallocate(2), ERRORS): what is unknown is `EOPNOTSUPP`, modes that
/// exclude each other are `EINVAL`.
fn mode_of_fallocate(mode: u64) -> Result<u64, Errno> {
    let has = |flag: u64| mode & flag != 0;
    let known = FALLOC_FL_KEEP_SIZE
        | FALLOC_FL_PUNCH_HOLE
        | FALLOC_FL_COLLAPSE_RANGE
        | FALLOC_FL_ZERO_RANGE
        | FALLOC_FL_INSERT_RANGE
        | FALLOC_FL_UNSHARE_RANGE;
    let whole_hole = has(FALLOC_FL_KEEP_SIZE) && !has(FALLOC_FL_ZERO_RANGE);
    if mode & !known != 0 || has(FALLOC_FL_PUNCH_HOLE) && !whole_hole {
        return Err(Errno::EOPNOTSUPP);
    }
    let moves = [FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE];
    let moves_and_more = moves.into_iter().any(|flag| has(flag) && mode != flag);
    if moves_and_more || has(FALLOC_FL_UNSHARE_RANGE) && mode & !(FALLOC_FL_UNSHARE_RANGE | FALLOC_FL_KEEP_SIZE) != 0 {
        return Err(Errno::EINVAL);
    }
    Ok(mode)
}

fn sync_one(call: &mut Call<'_>) -> SysResult {
    let file = call.open_file(0)?;
    match file.inode().attr().kind() {
        S_IFREG | S_IFDIR => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}
