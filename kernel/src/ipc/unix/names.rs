//! Addresses: sockets bound to a file's name or to an abstract one.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use linux_abi::Errno;
use machine::sync::SpinLock;

use super::{Kind, Role, Socket};
use crate::fs::attr::S_IFSOCK;
use crate::fs::names::{make_node, unlink};
use crate::fs::walk::{Last, Walk};
use crate::sched::{Sleep, breathe_or_stop};
use kernel_logic::permission::WRITE;

/// `sun_path`: empty for an unbound socket, beginning with a zero for an abstract name, else a path.
#[derive(Clone, Debug)]
pub struct Address(pub Option<Arc<[u8]>>);

impl Address {
    /// The bytes behind `sun_family`; a path ends in a zero.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }
}

/// Where a socket is bound.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Node {
    Abstract(Arc<[u8]>),
    /// Device and inode number of the file.
    File(u64, u64),
}

static BOUND: SpinLock<BTreeMap<Node, Weak<Socket>>> = SpinLock::new(BTreeMap::new());

/// Most bytes of `sun_path`.
const LONGEST: usize = 108;

/// Binds `socket` to `name` (`sun_path` as passed): a file of type socket is made, or an abstract name taken.
pub fn bind(walk: &Walk<'_>, socket: &Arc<Socket>, name: &[u8]) -> Result<(), Errno> {
    if name.len() > LONGEST {
        return Err(Errno::EINVAL);
    }
    let is_bound = || socket.state.lock().address.is_some();
    let (node, address) = match name {
        [] if is_bound() => return Ok(()),
        [] => autobind(socket)?,
        [0, ..] if is_bound() => return Err(Errno::EINVAL),
        [0, ..] => (claimed(socket, Node::Abstract(name.into()))?, Arc::from(name)),
        _ => {
            let path = path_of(name);
            let made = make_node(walk, path, S_IFSOCK | 0o777, 0);
            let made = made.map_err(|error| if error == Errno::EEXIST { Errno::EADDRINUSE } else { error })?;
            // As on Linux the file is made before anything else is looked at, and taken away again.
            if is_bound() {
                unlink(walk, path)?;
                return Err(Errno::EINVAL);
            }
            let attr = made.inode().attr();
            let mut address = path.to_vec();
            address.push(0);
            (claimed(socket, Node::File(attr.dev, attr.ino))?, Arc::from(address))
        }
    };
    let mut state = socket.state.lock();
    if state.address.is_some() {
        // Another thread has bound the socket meanwhile.
        drop(state);
        BOUND.lock().remove(&node);
        return Err(Errno::EINVAL);
    }
    state.address = Some(address);
    state.node = Some(node);
    Ok(())
}

/// Gives `socket` the name `node`: EADDRINUSE if a socket has it.
fn claimed(socket: &Arc<Socket>, node: Node) -> Result<Node, Errno> {
    let mut bound = BOUND.lock();
    if bound.get(&node).is_some_and(|other| other.strong_count() > 0) {
        return Err(Errno::EADDRINUSE);
    }
    bound.insert(node.clone(), Arc::downgrade(socket));
    Ok(node)
}

/// The socket that is bound to `name`: ECONNREFUSED if there is none.
pub fn resolve(walk: &Walk<'_>, name: &[u8], kind: Kind) -> Result<Arc<Socket>, Errno> {
    let node = match name {
        [] => return Err(Errno::EINVAL),
        _ if name.len() > LONGEST => return Err(Errno::EINVAL),
        [0, ..] => Node::Abstract(name.into()),
        _ => {
            let location = walk.find(path_of(name), Last::Follow)?;
            let attr = location.inode().attr();
            attr.check(&walk.who, WRITE)?;
            if attr.kind() != S_IFSOCK {
                return Err(Errno::ECONNREFUSED);
            }
            Node::File(attr.dev, attr.ino)
        }
    };
    let socket = BOUND.lock().get(&node).and_then(Weak::upgrade).ok_or(Errno::ECONNREFUSED)?;
    if socket.kind != kind {
        return Err(Errno::EPROTOTYPE);
    }
    let listening = matches!(socket.state.lock().role, Role::Listening { .. });
    if kind != Kind::Datagram && !listening { Err(Errno::ECONNREFUSED) } else { Ok(socket) }
}

/// The socket is closed: its name leads nowhere.
pub(super) fn forget(socket: &Socket) {
    let node = socket.state.lock().node.take();
    if let Some(node) = node {
        BOUND.lock().remove(&node);
    }
}

fn path_of(name: &[u8]) -> &[u8] {
    name.iter().position(|&byte| byte == 0).map_or(name, |end| &name[..end])
}

/// Gives `socket` an abstract name that no other has: a zero and five hexadecimal digits (unix(7), "Autobind feature").
/// Goes on from the name given last and holds the table for one name at a time. ENOSPC if all are taken.
fn autobind(socket: &Arc<Socket>) -> Result<(Node, Arc<[u8]>), Errno> {
    const NAMES: u32 = 1 << 20;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..NAMES {
        let number = NEXT.fetch_add(1, Relaxed) % NAMES;
        let name: Arc<[u8]> = alloc::format!("\0{number:05x}").as_bytes().into();
        if let Ok(node) = claimed(socket, Node::Abstract(name.clone())) {
            return Ok((node, name));
        }
        breathe_or_stop(Sleep::Killable)?;
    }
    Err(Errno::ENOSPC)
}
