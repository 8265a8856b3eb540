//! Descriptors: duplicating, fcntl(2), flock(2), ioctl(2), and making pipes and event counters.

use alloc::sync::Arc;

use linux_abi::Errno;
use linux_abi::flags::file::{
    F_ADD_SEALS, F_DUPFD, F_DUPFD_CLOEXEC, F_GET_SEALS, F_GETFD, F_GETFL, F_GETLEASE, F_GETLK, F_GETOWN, F_GETOWN_EX,
    F_GETPIPE_SZ, F_GETSIG, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_SETFD, F_SETFL, F_SETLK, F_SETLKW, F_SETOWN,
    F_SETOWN_EX, F_SETPIPE_SZ, F_SETSIG, FD_CLOEXEC, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, O_ASYNC, O_CLOEXEC, O_DIRECT,
    O_NOATIME, O_NONBLOCK,
};
use linux_abi::flags::socket::{EFD_CLOEXEC, EFD_NONBLOCK, EFD_SEMAPHORE};
use linux_abi::flags::system::{FIOASYNC, FIOCLEX, FIONBIO, FIONCLEX, FIONREAD};
use linux_abi::numbers::{F_OWNER_PGRP, F_OWNER_PID, F_OWNER_TID, F_RDLCK, F_UNLCK, F_WRLCK};
use linux_abi::syscalls::nr;

use super::file_open::{fd_limit, install};
use super::lookup::{Walker, only};
use super::{Call, Calls, SysResult};
use crate::fs::attr::S_IFREG;
use crate::fs::file::File;
use crate::fs::filelock::{self, Family, Owner};
use crate::ipc::eventfd;
use crate::ipc::pipe::{self, PipeEnd};
use crate::task::creds::cap;
use crate::task::fasync::OwnerKind;
use crate::task::signal::permit::Asker;
use crate::user::{UserPtr, read_words, write_words};
use kernel_logic::filelock::{Kind, Lock, TO_END, range};

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::dup, |call| {
        let (fd, limit) = (call.int(0), fd_limit(call));
        call.task.files().duplicate(fd, limit)
    }),
    (nr::dup2, |call| {
        if call.int(0) == call.int(1) {
            return call.file(0).map(|_| call.int(1) as usize);
        }
        dup_to(call, false)
    }),
    (nr::dup3, |call| {
        call.flags(2, O_CLOEXEC)?;
        if call.int(0) == call.int(1) {
            return Err(Errno::EINVAL);
        }
        dup_to(call, call.arg(2) & O_CLOEXEC != 0)
    }),
    (nr::fcntl, fcntl),
    (nr::flock, flock),
    (nr::ioctl, ioctl),
    (nr::pipe, |call| make_pipe(call, 0)),
    (nr::pipe2, |call| {
        call.flags(1, O_CLOEXEC | O_NONBLOCK | O_DIRECT)?;
        make_pipe(call, call.arg(1))
    }),
    (nr::eventfd, |call| install(call, eventfd::create(call.word(0), false, 0)?, false)),
    (nr::eventfd2, |call| {
        let flags = call.word(1);
        only(flags, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK)?;
        let status = (flags & EFD_NONBLOCK) as u32;
        let file = eventfd::create(call.word(0), flags & EFD_SEMAPHORE != 0, status)?;
        install(call, file, flags & EFD_CLOEXEC != 0)
    }),
];

fn dup_to(call: &Call<'_>, close_on_exec: bool) -> SysResult {
    let (from, to) = (call.int(0), call.int(1));
    if to < 0 {
        return Err(Errno::EBADF);
    }
    call.task.files().replace(from, to, fd_limit(call), close_on_exec)?;
    Ok(to as usize)
}

fn make_pipe(call: &Call<'_>, flags: u64) -> SysResult {
    let (reader, writer) = pipe::create((flags & (O_NONBLOCK | O_DIRECT)) as u32)?;
    install_pair(call, call.arg(0), (reader, writer), flags & O_CLOEXEC != 0)
}

/// Gives two files numbers and stores those at `to`; on any failure neither stays open.
pub fn install_pair(call: &Call<'_>, to: u64, pair: (Arc<File>, Arc<File>), close_on_exec: bool) -> SysResult {
    let files = call.task.files();
    let first = files.install(pair.0, 0, fd_limit(call), close_on_exec)?;
    let second = files.install(pair.1, 0, fd_limit(call), close_on_exec);
    let stored = second.and_then(|second| {
        UserPtr::<i32>::new(to).write(first)?;
        UserPtr::<i32>::new(to).add(1).write(second)
    });
    if stored.is_err() {
        for fd in [Ok(first), second].into_iter().flatten() {
            // It was installed just now; another thread may have closed it already.
            let _ = files.close(fd);
        }
    }
    stored.map(|()| 0)
}

fn fcntl(call: &mut Call<'_>) -> SysResult {
    let file = call.file(0)?;
    let (fd, argument) = (call.int(0), call.arg(2));
    match call.word(1) {
        F_GETFL => Ok(file.flags() as usize),
        F_GETFD => call.task.files().is_close_on_exec(fd).map(|on| if on { FD_CLOEXEC as usize } else { 0 }),
        F_SETFD => call.task.files().set_close_on_exec(fd, argument & FD_CLOEXEC != 0).map(|()| 0),
        command @ (F_DUPFD | F_DUPFD_CLOEXEC) => {
            let limit = fd_limit(call);
            let least = u32::try_from(argument as i32).ok().filter(|&least| least < limit).ok_or(Errno::EINVAL)?;
            let fd = call.task.files().install(file, least, limit, command == F_DUPFD_CLOEXEC)?;
            Ok(fd as usize)
        }
        _ if file.is_path_only() => Err(Errno::EBADF),
        // Files here have no direct transfers; for pipes the flag asks for packets (pipe(2)).
        F_SETFL if argument & O_DIRECT != 0 && file.ops.downcast::<PipeEnd>().is_none() => Err(Errno::EINVAL),
        F_SETFL if argument & !u64::from(file.flags()) & O_NOATIME != 0 && !owns(call, &file) => Err(Errno::EPERM),
        F_SETFL => {
            let kept = if file.ops.sends_sigio() { argument } else { argument & !O_ASYNC };
            file.set_flags(kept as u32);
            set_async(&file, fd, argument & O_ASYNC != 0);
            Ok(0)
        }
        F_GETLK => get_lock(call, &file, process_owner(call)),
        F_SETLK => set_lock(call, &file, process_owner(call), false),
        F_SETLKW => set_lock(call, &file, process_owner(call), true),
        F_OFD_GETLK => get_lock(call, &file, filelock::description(&*file)),
        F_OFD_SETLK => set_lock(call, &file, filelock::description(&*file), false),
        F_OFD_SETLKW => set_lock(call, &file, filelock::description(&*file), true),
        F_GETOWN => Ok(match file.fasync_if_any().map(|fasync| fasync.owner()) {
            Some((OwnerKind::Group, pgid)) => (pgid as i32).wrapping_neg() as usize,
            owner => owner.map_or(0, |(_, id)| id as usize),
        }),
        F_SETOWN if argument as i32 == i32::MIN => Err(Errno::EINVAL),
        F_SETOWN => {
            let owner = argument as i32;
            let kind = if owner < 0 { OwnerKind::Group } else { OwnerKind::Process };
            file.fasync().set_owner(kind, owner.unsigned_abs(), Asker::of(&call.task)).map(|()| 0)
        }
        F_GETOWN_EX => get_owner_ex(call, &file),
        F_SETOWN_EX => set_owner_ex(call, &file),
        F_GETSIG => Ok(file.fasync_if_any().map_or(0, |fasync| fasync.signal()).into()),
        F_SETSIG => file.fasync().set_signal(argument).map(|()| 0),
        F_GETPIPE_SZ => file.ops.downcast::<PipeEnd>().map(PipeEnd::capacity).ok_or(Errno::EBADF),
        F_SETPIPE_SZ => {
            let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_RESOURCE));
            file.ops.downcast::<PipeEnd>().ok_or(Errno::EBADF)?.set_capacity(argument as u32 as usize, privileged)
        }
        F_GET_SEALS => file.inode().seals().map(|seals| seals.get() as usize).ok_or(Errno::EINVAL),
        F_ADD_SEALS => add_seals(&file, argument as u32),
        // F_UNLCK: there are no leases.
        F_GETLEASE if file.inode().attr().kind() == S_IFREG => Ok(2),
        _ => Err(Errno::EINVAL),
    }
}

/// Kinds of owner in `struct f_owner_ex`: `int type; pid_t pid`.
const OWNER_KINDS: [(u32, OwnerKind); 3] =
    [(F_OWNER_TID, OwnerKind::Thread), (F_OWNER_PID, OwnerKind::Process), (F_OWNER_PGRP, OwnerKind::Group)];

fn get_owner_ex(call: &Call<'_>, file: &File) -> SysResult {
    let (kind, id) = file.fasync_if_any().map_or((OwnerKind::Thread, 0), |fasync| fasync.owner());
    let number = OWNER_KINDS.iter().find(|(_, known)| *known == kind).map_or(F_OWNER_TID, |(number, _)| *number);
    call.pointer::<u64>(2).write(u64::from(id) << 32 | u64::from(number)).map(|()| 0)
}

fn set_owner_ex(call: &Call<'_>, file: &File) -> SysResult {
    let wanted = call.pointer::<u64>(2).read()?;
    let (number, id) = (wanted as u32, (wanted >> 32) as u32);
    let (_, kind) = *OWNER_KINDS.iter().find(|(known, _)| *known == number).ok_or(Errno::EINVAL)?;
    file.fasync().set_owner(kind, id, Asker::of(&call.task)).map(|()| 0)
}

/// Whether the caller owns the file, or may act as if.
fn owns(call: &Call<'_>, file: &File) -> bool {
    Walker::of(call).caller().owns(file.inode().attr().uid())
}

/// O_ASYNC begins or ends signals about readiness, if the file is of a kind that sends them.
fn set_async(file: &File, fd: i32, on: bool) {
    if file.ops.sends_sigio() && (on || file.fasync_if_any().is_some()) {
        file.fasync().set_active(file, fd, on);
    }
}

/// Seals only ever add up, and only through a writable description.
fn add_seals(file: &File, more: u32) -> SysResult {
    if file.inode().seals().is_none() {
        return Err(Errno::EINVAL);
    }
    if !file.is_writable() {
        return Err(Errno::EPERM);
    }
    file.inode().add_seals(more).map(|()| 0)
}

fn process_owner(call: &Call<'_>) -> Owner {
    Owner::Process(call.task.files().owner(), call.task.pid())
}

/// `struct flock` (asm-generic/fcntl.h), its start made absolute.
struct Wanted {
    kind: u16,
    pid: u32,
    first: u64,
    last: u64,
}

fn read_lock(call: &Call<'_>, file: &File) -> Result<Wanted, Errno> {
    let [head, start, length, pid] = read_words::<4>(call.arg(2))?;
    let base = match head >> 16 & 0xffff {
        0 => 0,
        1 if file.seeking().has_position() => file.position() as i64,
        1 => 0,
        2 => file.inode().size() as i64,
        _ => return Err(Errno::EINVAL),
    };
    let start = base.checked_add(start as i64).ok_or(Errno::EOVERFLOW)?;
    if start.checked_add((length as i64).saturating_sub(1).max(0)).is_none() {
        return Err(Errno::EOVERFLOW);
    }
    let (first, last) = range(start, length as i64).ok_or(Errno::EINVAL)?;
    Ok(Wanted { kind: head as u16, pid: pid as u32, first, last })
}

fn kind_of(kind: u16) -> Result<Kind, Errno> {
    match kind {
        F_RDLCK => Ok(Kind::Read),
        F_WRLCK => Ok(Kind::Write),
        _ => Err(Errno::EINVAL),
    }
}

fn get_lock(call: &Call<'_>, file: &File, owner: Owner) -> SysResult {
    let wanted = read_lock(call, file)?;
    if matches!(owner, Owner::Description(_)) && wanted.pid != 0 {
        return Err(Errno::EINVAL);
    }
    let lock = Lock { first: wanted.first, last: wanted.last, kind: kind_of(wanted.kind)?, owner };
    let Some(other) = filelock::conflict(file, &lock) else {
        call.pointer::<u16>(2).write(F_UNLCK)?;
        return Ok(0);
    };
    let kind = if other.kind == Kind::Read { F_RDLCK } else { F_WRLCK };
    let length = if other.last == TO_END { 0 } else { other.last - other.first + 1 };
    let pid = match other.owner {
        Owner::Process(_, pid) => u64::from(pid),
        Owner::Description(_) => u64::from(u32::MAX),
    };
    write_words(call.arg(2), &[u64::from(kind), other.first, length, pid]).map(|()| 0)
}

fn set_lock(call: &Call<'_>, file: &File, owner: Owner, wait: bool) -> SysResult {
    let wanted = read_lock(call, file)?;
    if matches!(owner, Owner::Description(_)) && wanted.pid != 0 {
        return Err(Errno::EINVAL);
    }
    if wanted.kind == F_UNLCK {
        return filelock::unlock(file, owner, wanted.first, wanted.last).map(|()| 0);
    }
    let kind = kind_of(wanted.kind)?;
    let open = if kind == Kind::Read { file.is_readable() } else { file.is_writable() };
    if !open {
        return Err(Errno::EBADF);
    }
    if matches!(owner, Owner::Process(..)) {
        call.task.files().locks();
    }
    let lock = Lock { first: wanted.first, last: wanted.last, kind, owner };
    filelock::set(file, Family::Record, lock, wait)?;
    // The end of the descriptor ends the process's locks. One that was closed meanwhile has done that before there was
    // a lock.
    let is_still_open = call.task.files().get(call.int(0)).is_ok_and(|now| core::ptr::eq(&*now, file));
    if let (false, Owner::Process(table, _)) = (is_still_open, owner) {
        if filelock::unlock(file, owner, wanted.first, wanted.last).is_err() {
            // As if it had been closed now.
            filelock::release_process(file, table);
        }
        return Err(Errno::EBADF);
    }
    Ok(0)
}

fn flock(call: &mut Call<'_>) -> SysResult {
    let file = call.open_file(0)?;
    let owner = filelock::description(&*file);
    let operation = call.word(1);
    // LOCK_MAND once asked for mandatory locks; since Linux 5.15 it is accepted and does nothing.
    if operation & 32 != 0 {
        return Ok(0);
    }
    let kind = match operation & !LOCK_NB {
        LOCK_UN => {
            filelock::release(&*file, Family::Whole, owner);
            return Ok(0);
        }
        LOCK_SH => Kind::Read,
        LOCK_EX => Kind::Write,
        _ => return Err(Errno::EINVAL),
    };
    filelock::set(&*file, Family::Whole, filelock::whole(kind, owner), operation & LOCK_NB == 0).map(|()| 0)
}

fn ioctl(call: &mut Call<'_>) -> SysResult {
    let file = call.open_file(0)?;
    let (request, argument) = (call.word(1), call.arg(2));
    match request {
        FIOCLEX | FIONCLEX => call.task.files().set_close_on_exec(call.int(0), request == FIOCLEX).map(|()| 0),
        FIONBIO => {
            file.set_nonblocking(UserPtr::<i32>::new(argument).read()? != 0);
            Ok(0)
        }
        FIOASYNC => {
            let on = UserPtr::<i32>::new(argument).read()? != 0;
            let bit = O_ASYNC as u32;
            if !file.ops.sends_sigio() && (file.flags() & bit != 0) != on {
                return Err(Errno::ENOTTY);
            }
            file.set_flags(if on { file.flags() | bit } else { file.flags() & !bit });
            set_async(&file, call.int(0), on);
            Ok(0)
        }
        FIONREAD if file.inode().attr().kind() == S_IFREG => {
            let rest = file.inode().size().saturating_sub(file.position());
            UserPtr::<i32>::new(argument).write(rest as i32).map(|()| 0)
        }
        _ => file.ops.ioctl(&file, request, argument),
    }
}
