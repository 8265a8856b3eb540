//! Socket calls, for Unix sockets: other families are EAFNOSUPPORT.

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;
use linux_abi::flags::socket::{
    AF_UNIX, AF_UNSPEC, MSG_CMSG_CLOEXEC, MSG_DONTWAIT, MSG_EOR, MSG_MORE, MSG_NOSIGNAL, MSG_PEEK, MSG_TRUNC,
    MSG_WAITALL, MSG_WAITFORONE, SHUT_RD, SHUT_RDWR, SHUT_WR, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_RAW,
    SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET,
};
use linux_abi::syscalls::nr;
use machine::addr::UserAddr;

use super::fd_table::install_pair;
use super::file_open::{fd_limit, install};
use super::file_rw::read_vectors;
use super::lookup::{AT_FDCWD, Walker};
use super::{Call, Calls, SysResult, socket_control};
use crate::fs::FileSlot;
use crate::fs::file::File;
use crate::fs::io::{Sink, Source};
use crate::ipc::unix::{self, Address, Beside, Flags, Kind, Received, Socket};
use crate::user::{UserPtr, read_bytes, read_words, write_bytes, write_words};

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::socket, |call| {
        let kind = kind(call.arg(0), call.arg(1), call.arg(2))?;
        let flags = call.word(1);
        let file = unix::open(unix::create(kind), (flags & SOCK_NONBLOCK) as u32, FileSlot::take()?);
        install(call, file, flags & SOCK_CLOEXEC != 0)
    }),
    (nr::socketpair, |call| {
        let kind = kind(call.arg(0), call.arg(1), call.arg(2))?;
        let flags = call.word(1);
        let slots = (FileSlot::take()?, FileSlot::take()?);
        let (one, other) = unix::pair(kind);
        let open = |socket, slot| unix::open(socket, (flags & SOCK_NONBLOCK) as u32, slot);
        install_pair(call, call.arg(3), (open(one, slots.0), open(other, slots.1)), flags & SOCK_CLOEXEC != 0)
    }),
    (nr::bind, |call| {
        let (_file, socket) = socket(call)?;
        let name = read_address(call.arg(1), call.arg(2))?.ok_or(Errno::EINVAL)?;
        let walker = Walker::of(call);
        unix::bind(&walker.walk(call, AT_FDCWD, &name)?, &socket, &name).map(|()| 0)
    }),
    (nr::listen, |call| socket(call)?.1.listen(call.int(1)).map(|()| 0)),
    (nr::accept, |call| accept(call, 0)),
    (nr::accept4, |call| accept(call, call.flags(3, SOCK_CLOEXEC | SOCK_NONBLOCK)?)),
    (nr::connect, connect),
    (nr::shutdown, |call| {
        let how = call.word(1);
        if !matches!(how, SHUT_RD | SHUT_WR | SHUT_RDWR) {
            return Err(Errno::EINVAL);
        }
        socket(call)?.1.shutdown(how != SHUT_WR, how != SHUT_RD).map(|()| 0)
    }),
    (nr::getsockname, |call| {
        let address = socket(call)?.1.address();
        write_address(call.arg(1), call.arg(2), &address).map(|()| 0)
    }),
    (nr::getpeername, |call| {
        let address = socket(call)?.1.peer_address()?;
        write_address(call.arg(1), call.arg(2), &address).map(|()| 0)
    }),
    (nr::sendto, |call| {
        let (file, socket) = socket(call)?;
        let target = target(call, &socket, call.arg(4), call.arg(5))?;
        let flags = flags(&file, call.arg(3))?;
        let mut source = Source::user(UserAddr(call.arg(1)), call.size(2));
        send(&socket, &mut source, target, flags, Beside::default())
    }),
    (nr::recvfrom, |call| {
        let (file, socket) = socket(call)?;
        let flags = flags(&file, call.arg(3))?;
        let mut sink = Sink::user(UserAddr(call.arg(1)), call.size(2));
        let (count, received) = receive(&socket, &mut sink, flags, call.arg(3))?;
        if call.arg(4) != 0
            && let Some(from) = &received.from
        {
            write_sender(call.arg(4), call.arg(5), from)?;
        }
        Ok(count)
    }),
    (nr::sendmsg, |call| send_message(call, call.arg(1), call.arg(2))),
    (nr::recvmsg, |call| receive_message(call, call.arg(1), call.arg(2))),
    (nr::sendmmsg, |call| each_message(call, send_message)),
    (nr::recvmmsg, |call| each_message(call, receive_message)),
    (nr::getsockopt, getsockopt),
    (nr::setsockopt, setsockopt),
];

/// Longest `struct sockaddr_un`.
const SOCKADDR_UN: usize = 110;

fn kind(family: u64, kind: u64, protocol: u64) -> Result<Kind, Errno> {
    let modes = SOCK_CLOEXEC | SOCK_NONBLOCK;
    if kind & 0xffff_ffff & !(modes | 0xf) != 0 {
        return Err(Errno::EINVAL);
    }
    if family & 0xffff_ffff != AF_UNIX {
        return Err(Errno::EAFNOSUPPORT);
    }
    if !matches!(protocol & 0xffff_ffff, 0 | AF_UNIX) {
        return Err(Errno::EPROTONOSUPPORT);
    }
    match kind & 0xf {
        SOCK_STREAM => Ok(Kind::Stream),
        SOCK_DGRAM | SOCK_RAW => Ok(Kind::Datagram),
        SOCK_SEQPACKET => Ok(Kind::SeqPacket),
        _ => Err(Errno::ESOCKTNOSUPPORT),
    }
}

/// The socket of argument 0.
fn socket(call: &Call<'_>) -> Result<(Arc<File>, Arc<Socket>), Errno> {
    let file = call.file(0)?;
    let socket = unix::of(&file).cloned().ok_or(Errno::ENOTSOCK)?;
    Ok((file, socket))
}

/// Reads a `struct sockaddr_un`: its path, or `None` for `AF_UNSPEC`.
fn read_address(addr: u64, length: u64) -> Result<Option<Vec<u8>>, Errno> {
    let length = usize::try_from(length as i32).map_err(|_| Errno::EINVAL)?;
    if !(2..=SOCKADDR_UN).contains(&length) {
        return Err(Errno::EINVAL);
    }
    let mut bytes = alloc::vec![0; length];
    read_bytes(addr, &mut bytes)?;
    match u64::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
        AF_UNIX => Ok(Some(bytes.split_off(2))),
        AF_UNSPEC => Ok(None),
        _ => Err(Errno::EINVAL),
    }
}

/// Stores as much of an address as fits, and its whole length.
fn write_address(to: u64, length_at: u64, address: &Address) -> Result<(), Errno> {
    if to == 0 {
        return Ok(());
    }
    let length = UserPtr::<i32>::new(length_at);
    let room = usize::try_from(length.read()?).map_err(|_| Errno::EINVAL)?;
    let mut bytes = (AF_UNIX as u16).to_ne_bytes().to_vec();
    bytes.extend_from_slice(address.bytes());
    write_bytes(to, &bytes[..room.min(bytes.len())])?;
    length.write(bytes.len() as i32)
}

/// [`write_address`] of the sender of a message: nothing but a length of 0 for a socket without a name.
fn write_sender(to: u64, length_at: u64, address: &Address) -> Result<(), Errno> {
    match address.0 {
        Some(_) => write_address(to, length_at, address),
        None => UserPtr::<i32>::new(length_at).write(0),
    }
}

fn accept(call: &Call<'_>, modes: u64) -> SysResult {
    let (file, listener) = socket(call)?;
    // A connection that finds no number or no slot stays where it is.
    call.task.files().check_room(fd_limit(call))?;
    let slot = FileSlot::take()?;
    let accepted = listener.accept(file.is_nonblocking())?;
    let peer = accepted.peer_address().unwrap_or(Address(None));
    // From here on the client learns of its end, however the call ends.
    let connection = unix::open(accepted, (modes & SOCK_NONBLOCK) as u32, slot);
    if call.arg(1) != 0 {
        write_address(call.arg(1), call.arg(2), &peer)?;
    }
    install(call, connection, modes & SOCK_CLOEXEC != 0)
}

fn connect(call: &mut Call<'_>) -> SysResult {
    let (file, socket) = socket(call)?;
    let Some(name) = read_address(call.arg(1), call.arg(2))? else {
        return socket.disconnect().map(|()| 0);
    };
    let walker = Walker::of(call);
    let target = unix::resolve(&walker.walk(call, AT_FDCWD, &name)?, &name, socket.kind)?;
    socket.connect(&target, file.is_nonblocking()).map(|()| 0)
}

fn target(call: &Call<'_>, socket: &Socket, addr: u64, length: u64) -> Result<Option<Arc<Socket>>, Errno> {
    if addr == 0 || length == 0 {
        return Ok(None);
    }
    let name = read_address(addr, length)?.ok_or(Errno::EINVAL)?;
    if socket.kind != Kind::Datagram {
        return Err(if socket.peer_address().is_ok() { Errno::EISCONN } else { Errno::EOPNOTSUPP });
    }
    let walker = Walker::of(call);
    unix::resolve(&walker.walk(call, AT_FDCWD, &name)?, &name, socket.kind).map(Some)
}

fn flags(file: &File, bits: u64) -> Result<Flags, Errno> {
    let known =
        MSG_DONTWAIT | MSG_PEEK | MSG_WAITALL | MSG_NOSIGNAL | MSG_TRUNC | MSG_EOR | MSG_MORE | MSG_CMSG_CLOEXEC;
    if bits & 0xffff_ffff & !known != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok(Flags {
        nonblocking: file.is_nonblocking() || bits & MSG_DONTWAIT != 0,
        peek: bits & MSG_PEEK != 0,
        wait_all: bits & MSG_WAITALL != 0,
        no_signal: bits & MSG_NOSIGNAL != 0,
    })
}

fn send(
    socket: &Arc<Socket>,
    source: &mut Source<'_>,
    target: Option<Arc<Socket>>,
    flags: Flags,
    beside: Beside,
) -> SysResult {
    let result = socket.send(source, target, flags, beside);
    crate::fs::file::outcome(source.done(), result)
}

/// Receives; the count is what the call returns: with MSG_TRUNC the whole packet's length.
fn receive(socket: &Socket, sink: &mut Sink<'_>, flags: Flags, bits: u64) -> Result<(usize, Received), Errno> {
    let result = socket.receive(sink, flags);
    match result {
        Ok(received) => {
            let count = if bits & MSG_TRUNC != 0 && received.from.is_some() { received.length } else { sink.done() };
            Ok((count, received))
        }
        Err(_) if sink.done() > 0 => Ok((sink.done(), Received::bytes(sink.done()))),
        Err(error) => Err(error),
    }
}

/// Too many buffers of a message are EMSGSIZE, not readv's EINVAL.
fn check_count(count: u64) -> Result<(), Errno> {
    if count > 1024 { Err(Errno::EMSGSIZE) } else { Ok(()) }
}

/// `struct msghdr`: name, its length, vectors, their number, control, its length, flags.
fn send_message(call: &Call<'_>, header: u64, bits: u64) -> SysResult {
    let [name, name_length, vectors, count, control, control_length, _] = read_words::<7>(header)?;
    check_count(count)?;
    let (file, socket) = socket(call)?;
    let mut beside = socket_control::read(call, control, if control == 0 { 0 } else { control_length })?;
    let target = target(call, &socket, name, name_length & 0xffff_ffff)?;
    let flags = flags(&file, bits)?;
    read_vectors(vectors, count as usize, |buffers| {
        send(&socket, &mut Source::vector(buffers), target, flags, core::mem::take(&mut beside))
    })
}

fn receive_message(call: &Call<'_>, header: u64, bits: u64) -> SysResult {
    let [name, _, vectors, count, control, room, _] = read_words::<7>(header)?;
    check_count(count)?;
    let (file, socket) = socket(call)?;
    let wanted = flags(&file, bits)?;
    let mut received = None;
    let done = read_vectors(vectors, count as usize, |buffers| {
        let (count, what) = receive(&socket, &mut Sink::vector(buffers), wanted, bits)?;
        received = Some(what);
        Ok(count)
    })?;
    let Some(received) = received else { return Ok(done) };
    if name != 0 {
        match &received.from {
            Some(from) => write_sender(name, header + 8, from)?,
            None => UserPtr::<i32>::new(header + 8).write(0)?,
        }
    }
    let mut writer = socket_control::Writer::new(control, room);
    if let Some(sender) = received.sender.filter(|_| socket.passes_credentials()) {
        writer.credentials(&sender);
    }
    writer.rights(call, &received.rights, bits);
    let marks = if received.cut { MSG_TRUNC as i32 } else { 0 };
    write_words(header + 40, &[writer.used])?;
    UserPtr::<i32>::new(header + 48).write(marks | writer.marks)?;
    Ok(done)
}

/// Bytes of a `struct mmsghdr`: a message header and the length moved.
const MMSGHDR: u64 = 64;

fn each_message(call: &Call<'_>, one: fn(&Call<'_>, u64, u64) -> SysResult) -> SysResult {
    let (array, most) = (call.arg(1), (call.uint(2)).min(1024));
    let mut bits = call.word(3) & !MSG_WAITFORONE;
    let first_only = call.word(3) & MSG_WAITFORONE != 0;
    for at in 0..most {
        let header = array + u64::from(at) * MMSGHDR;
        match one(call, header, bits) {
            Ok(length) => UserPtr::<u32>::new(header + 56).write(length as u32)?,
            Err(error) if at == 0 => return Err(error),
            Err(_) => return Ok(at as usize),
        }
        if first_only {
            bits |= MSG_DONTWAIT;
        }
        crate::sched::breathe();
    }
    Ok(most as usize)
}

fn getsockopt(call: &mut Call<'_>) -> SysResult {
    let (_file, socket) = socket(call)?;
    if call.word(1) != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP);
    }
    let length = call.pointer::<i32>(4);
    let room = usize::try_from(length.read()?).map_err(|_| Errno::EINVAL)?;
    let (bytes, size) = unix::get_option(&socket, call.word(2))?;
    let count = size.min(room);
    write_bytes(call.arg(3), &bytes[..count])?;
    length.write(count as i32).map(|()| 0)
}

fn setsockopt(call: &mut Call<'_>) -> SysResult {
    let (_file, socket) = socket(call)?;
    if call.word(1) != SOL_SOCKET {
        return Err(Errno::EOPNOTSUPP);
    }
    let length = usize::try_from(call.int(4)).map_err(|_| Errno::EINVAL)?;
    let mut value = alloc::vec![0; length.min(64)];
    read_bytes(call.arg(3), &mut value)?;
    unix::set_option(&socket, call.word(2), &value).map(|()| 0)
}
