//! Socket options (socket(7), unix(7)) and requests.

use alloc::sync::Arc;
use core::sync::atomic::Ordering::Relaxed;

use linux_abi::Errno;
use linux_abi::flags::socket::{
    SO_ACCEPTCONN, SO_DOMAIN, SO_ERROR, SO_LINGER, SO_PASSCRED, SO_PEERCRED, SO_PROTOCOL, SO_RCVBUF, SO_RCVBUFFORCE,
    SO_RCVTIMEO, SO_SNDBUF, SO_SNDBUFFORCE, SO_SNDTIMEO, SO_TYPE,
};
use linux_abi::flags::system::{FIONREAD, TIOCOUTQ};

use super::{DEFAULT_BUFFER, Kind, Role, Socket, waiting_bytes};
use crate::task::creds::cap;
use crate::task::current;
use crate::user::UserPtr;

/// The least buffers.
const LEAST_SEND: usize = 4608;
const LEAST_RECEIVE: usize = 2304;
/// Half the largest buffer an `int` can tell.
const LARGEST_FORCED: usize = i32::MAX as usize / 2;

/// Options that change nothing between processes of one machine, and are accepted: SO_REUSEADDR, SO_DONTROUTE,
/// SO_BROADCAST, SO_KEEPALIVE, SO_OOBINLINE, SO_PRIORITY, SO_LINGER, SO_REUSEPORT, SO_TIMESTAMP.
const INERT: &[u64] = &[2, 5, 6, 9, 10, 12, 13, 15, 29];

/// The value of an option of the socket level, as the bytes to store.
pub fn get_option(socket: &Arc<Socket>, option: u64) -> Result<([u8; 16], usize), Errno> {
    let int = |value: i32| Ok(pack(&[value]));
    match option {
        SO_TYPE => int(match socket.kind {
            Kind::Stream => 1,
            Kind::Datagram => 2,
            Kind::SeqPacket => 5,
        }),
        SO_DOMAIN => int(1),
        SO_PROTOCOL => int(0),
        SO_ERROR => int(socket.state.lock().error.take().map_or(0, |error| i32::from(error.number()))),
        SO_ACCEPTCONN => int(i32::from(matches!(socket.state.lock().role, Role::Listening { .. }))),
        SO_PASSCRED => int(i32::from(socket.pass_credentials.load(Relaxed))),
        SO_SNDBUF => int(socket.send_buffer.load(Relaxed) as i32),
        SO_RCVBUF => int(socket.receive_buffer.load(Relaxed) as i32),
        SO_PEERCRED => {
            let peer = socket.state.lock().peer_credentials;
            Ok(match peer {
                Some(peer) => pack(&[peer.pid as i32, peer.uid as i32, peer.gid as i32]),
                None => pack(&[0, -1, -1]),
            })
        }
        SO_RCVTIMEO | SO_SNDTIMEO => {
            let millis = socket.timeouts[usize::from(option == SO_SNDTIMEO)].load(Relaxed);
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&u64::from(millis / 1000).to_ne_bytes());
            bytes[8..].copy_from_slice(&u64::from(millis % 1000 * 1000).to_ne_bytes());
            Ok((bytes, 16))
        }
        // `struct linger`: on or off, and for how long.
        SO_LINGER => Ok(pack(&[0, 0])),
        _ if INERT.contains(&option) => int(0),
        _ => Err(Errno::ENOPROTOOPT),
    }
}

/// Sets an option of the socket level from the bytes passed.
pub fn set_option(socket: &Arc<Socket>, option: u64, value: &[u8]) -> Result<(), Errno> {
    let int = || value.first_chunk().copied().map(i32::from_ne_bytes).ok_or(Errno::EINVAL);
    match option {
        // A negative size is a large one, but not with privilege.
        SO_SNDBUF | SO_RCVBUF => {
            set_buffer(socket, option == SO_SNDBUF, (int()? as u32 as usize).min(DEFAULT_BUFFER));
            Ok(())
        }
        SO_SNDBUFFORCE | SO_RCVBUFFORCE => {
            if !current().creds.with(|creds| creds.capable(cap::NET_ADMIN)) {
                return Err(Errno::EPERM);
            }
            let wanted = usize::try_from(int()?).unwrap_or(0).min(LARGEST_FORCED);
            set_buffer(socket, option == SO_SNDBUFFORCE, wanted);
            Ok(())
        }
        SO_PASSCRED => {
            socket.pass_credentials.store(int()? != 0, Relaxed);
            Ok(())
        }
        SO_RCVTIMEO | SO_SNDTIMEO => {
            let tail = |at: usize| value.get(at..).and_then(<[u8]>::first_chunk).copied();
            let half = |at: usize| tail(at).map(i64::from_ne_bytes).ok_or(Errno::EINVAL);
            let (seconds, micros) = (half(0)?, half(8)?);
            if !(0..1_000_000).contains(&micros) {
                return Err(Errno::EDOM);
            }
            let millis = seconds.max(0).saturating_mul(1000).saturating_add((micros + 999) / 1000);
            let slot = &socket.timeouts[usize::from(option == SO_SNDTIMEO)];
            slot.store(u32::try_from(millis).unwrap_or(0), Relaxed);
            Ok(())
        }
        _ if INERT.contains(&option) => int().map(|_| ()),
        _ => Err(Errno::ENOPROTOOPT),
    }
}

/// Sets a buffer to twice the `wanted` bytes, as Linux does for its own bookkeeping (socket(7)), or to the least there
/// is.
fn set_buffer(socket: &Socket, sends: bool, wanted: usize) {
    if sends {
        socket.send_buffer.store((2 * wanted).max(LEAST_SEND), Relaxed);
        socket.writable.wake_all();
    } else {
        socket.receive_buffer.store((2 * wanted).max(LEAST_RECEIVE), Relaxed);
    }
}

pub(super) fn ioctl(socket: &Arc<Socket>, request: u64, argument: u64) -> Result<usize, Errno> {
    match request {
        FIONREAD => UserPtr::<i32>::new(argument).write(waiting_bytes(socket) as i32).map(|()| 0),
        TIOCOUTQ => {
            let unread = socket.peer().map_or(0, |peer| peer.inbox.lock().bytes.len());
            UserPtr::<i32>::new(argument).write(unread as i32).map(|()| 0)
        }
        _ => Err(Errno::ENOTTY),
    }
}

fn pack(values: &[i32]) -> ([u8; 16], usize) {
    let mut bytes = [0; 16];
    for (at, value) in values.iter().enumerate() {
        bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_ne_bytes());
    }
    (bytes, values.len() * 4)
}
