//! POSIX message queues: mq_open(2), mq_unlink(2), mq_timedsend(2), mq_timedreceive(2), mq_notify(2), mq_getsetattr(2).

use alloc::sync::Arc;
use alloc::vec::Vec;

use kernel_logic::mqueue::PRIORITIES;
use kernel_logic::permission::{READ, WRITE};
use kernel_logic::signal::MAX_SIGNAL;
use linux_abi::Errno;
use linux_abi::flags::file::{O_CREAT, O_EXCL, O_NONBLOCK, O_PATH};
use linux_abi::syscalls::nr;

use super::file_open::install;
use super::lookup::Walker;
use super::{Call, Calls, SysResult};
use crate::fs::FileSlot;
use crate::fs::file::{File, O_ACCMODE};
use crate::ipc::mqueue::{self, Patience, Queue, Registration};
use crate::task::Creds;
use crate::task::account::Kind;
use crate::task::clock::Clock;
use crate::task::creds::cap;
use crate::task::limits::resource;
use crate::time;
use crate::user::{UserPtr, read_bytes, read_string, read_words, write_bytes, write_words};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::mq_open, mq_open),
    (nr::mq_unlink, mq_unlink),
    (nr::mq_timedsend, mq_timedsend),
    (nr::mq_timedreceive, mq_timedreceive),
    (nr::mq_notify, mq_notify),
    (nr::mq_getsetattr, mq_getsetattr),
];

/// `fs.mqueue.msg_max` and `msgsize_max`, which are also the defaults.
const USUAL: [u64; 2] = [10, 8192];
/// How far privilege reaches.
const MOST: [u64; 2] = [65_536, 16 << 20];

fn name(at: u64) -> Result<Vec<u8>, Errno> {
    let name = read_string(at, 256, Errno::ENAMETOOLONG)?;
    match &name[..] {
        [] => Err(Errno::ENOENT),
        name if name.contains(&b'/') || name == b"." || name == b".." => Err(Errno::EACCES),
        _ => Ok(name),
    }
}

fn mq_open(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(1);
    let name = name(call.arg(0))?;
    let create = flags & O_CREAT != 0;
    // Read whether or not the queue exists already, as Linux does.
    let attributes = if create && call.arg(3) != 0 { Some(read_words::<4>(call.arg(3))?) } else { None };
    let slot = FileSlot::take()?;
    let queue = loop {
        match mqueue::find(&name) {
            Some(_) if create && flags & O_EXCL != 0 => return Err(Errno::EEXIST),
            Some(queue) => {
                check_access(call, &queue, flags)?;
                break queue;
            }
            None if !create => return Err(Errno::ENOENT),
            None => match make(call, &name, attributes) {
                // Made by another thread meanwhile.
                Err(Errno::EEXIST) => {}
                outcome => break outcome?,
            },
        }
    };
    install(call, queue.open((flags as u32) & (O_ACCMODE | (O_NONBLOCK | O_PATH) as u32), slot), true)
}

fn check_access(call: &Call<'_>, queue: &Queue, flags: u64) -> Result<(), Errno> {
    let wish = match flags as u32 & O_ACCMODE {
        0 => READ,
        1 => WRITE,
        2 => READ | WRITE,
        _ => return Err(Errno::EINVAL),
    };
    let walker = Walker::of(call);
    queue.inode_attr().check(&walker.caller(), wish)
}

fn make(call: &Call<'_>, name: &[u8], attributes: Option<[u64; 4]>) -> Result<Arc<Queue>, Errno> {
    let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_RESOURCE));
    let [most, longest] = match attributes {
        None => USUAL,
        Some([_, most, longest, _]) => {
            let bound = if privileged { MOST } else { USUAL };
            if most == 0 || longest == 0 || most > bound[0] || longest > bound[1] {
                return Err(Errno::EINVAL);
            }
            [most, longest]
        }
    };
    let (most, longest) = (most as usize, longest as usize);
    let (bytes, limit) = (mqueue::footprint(most, longest), call.task.process.limit(resource::MSGQUEUE));
    let charge = |creds: &Creds| creds.account.charge(Kind::QueueBytes, bytes, limit);
    let charge = call.task.creds.with(charge).ok_or(Errno::EMFILE)?;
    let mode = call.uint(2) & 0o7777 & !call.task.fs().umask();
    let queue = Queue::new(mode, most, longest, charge);
    mqueue::enter(name, &queue, privileged)?;
    Ok(queue)
}

fn mq_unlink(call: &mut Call<'_>) -> SysResult {
    let name = name(call.arg(0))?;
    let walker = Walker::of(call);
    // The directory belongs to root and is sticky.
    mqueue::unlink(&name, |attr| if walker.caller().owns(attr.uid()) { Ok(()) } else { Err(Errno::EPERM) })?;
    Ok(0)
}

/// The description and queue behind argument 0.
fn queue(call: &Call<'_>) -> Result<(Arc<File>, Arc<Queue>), Errno> {
    let file = call.file(0)?;
    let queue = mqueue::of(&file).cloned().ok_or(Errno::EBADF)?;
    Ok((file, queue))
}

/// Until when a call may sleep: argument 4 is a moment of the wall clock, looked at before anything else.
fn patience(call: &Call<'_>) -> Result<Option<u64>, Errno> {
    match call.arg(4) {
        0 => Ok(None),
        at => Ok(Some(Clock::Real.to_monotonic(time::from_timespec(read_words(at)?)?))),
    }
}

fn until(file: &File, deadline: Option<u64>) -> Patience {
    if file.is_nonblocking() { Patience::None } else { Patience::Until(deadline) }
}

fn mq_timedsend(call: &mut Call<'_>) -> SysResult {
    let (len, priority) = (call.arg(2), call.uint(3));
    if priority >= PRIORITIES {
        return Err(Errno::EINVAL);
    }
    let deadline = patience(call)?;
    let (file, queue) = queue(call)?;
    if !file.is_writable() {
        return Err(Errno::EBADF);
    }
    let [_, longest, _] = queue.shape();
    if len > longest as u64 {
        return Err(Errno::EMSGSIZE);
    }
    let mut message = Vec::new();
    message.try_reserve_exact(len as usize).map_err(|_| Errno::ENOMEM)?;
    message.resize(len as usize, 0);
    read_bytes(call.arg(1), &mut message)?;
    queue.send(priority, message, until(&file, deadline))?;
    Ok(0)
}

fn mq_timedreceive(call: &mut Call<'_>) -> SysResult {
    let deadline = patience(call)?;
    let (file, queue) = queue(call)?;
    if !file.is_readable() {
        return Err(Errno::EBADF);
    }
    let [_, longest, _] = queue.shape();
    if call.arg(2) < longest as u64 {
        return Err(Errno::EMSGSIZE);
    }
    let (priority, message) = queue.receive(until(&file, deadline))?;
    write_bytes(call.arg(1), &message)?;
    call.pointer::<u32>(3).write_if_wanted(priority)?;
    Ok(message.len())
}

fn mq_notify(call: &mut Call<'_>) -> SysResult {
    const SIGEV_SIGNAL: i32 = 0;
    const SIGEV_NONE: i32 = 1;
    let event = match call.arg(1) {
        0 => None,
        at => {
            let words = UserPtr::<i32>::new(at);
            let value = UserPtr::<u64>::new(at).read()?;
            let signal = match (words.add(3).read()?, words.add(2).read()?) {
                (SIGEV_NONE, _) => None,
                (SIGEV_SIGNAL, signal) if (0..=i32::from(MAX_SIGNAL)).contains(&signal) => Some(signal as u8),
                // Threads are told through a netlink socket, which there is not.
                _ => return Err(Errno::EINVAL),
            };
            Some((signal, value))
        }
    };
    let (file, queue) = queue(call)?;
    let process = &call.task.process;
    match event {
        None => queue.unregister(process),
        Some((signal, value)) => {
            let executions = process.family.executions();
            let signal = signal.filter(|signal| *signal != 0);
            queue.register(Registration { process: Arc::downgrade(process), executions, signal, value })?;
            file.tell_of_closing();
        }
    }
    Ok(0)
}

fn mq_getsetattr(call: &mut Call<'_>) -> SysResult {
    let new_flags = match call.arg(1) {
        0 => None,
        at => Some(read_words::<4>(at)?[0]),
    };
    if new_flags.is_some_and(|flags| flags & !O_NONBLOCK != 0) {
        return Err(Errno::EINVAL);
    }
    let (file, queue) = queue(call)?;
    let old_flags = u64::from(file.is_nonblocking()) * O_NONBLOCK;
    let [most, longest, waiting] = queue.shape().map(|count| count as u64);
    if let Some(flags) = new_flags {
        file.set_nonblocking(flags & O_NONBLOCK != 0);
    }
    if call.arg(2) != 0 {
        write_words(call.arg(2), &[old_flags, most, longest, waiting, 0, 0, 0, 0])?;
    }
    Ok(0)
}
