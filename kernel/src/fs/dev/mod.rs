//! Devices by number: what opening a character device node gives (Documentation/admin-guide/devices.txt).

pub mod kmsg;
mod memory;

use alloc::sync::Arc;

use linux_abi::Errno;
use linux_abi::flags::file::O_WRONLY;
use machine::sync::Once;

use super::Above;
use super::attr::{S_IFCHR, S_IFMT};
use super::file::{FileOps, O_ACCMODE};
use super::inode::{DeviceNode, Mapping, OpenRequest};
use super::tmpfs::TmpFs;
use super::{inode::NewNode, mount::FileSystem};
use crate::upper::Kwab;
use memory::Memory;
pub use memory::fill_random;

/// A device number as `st_rdev` encodes it (gnu_dev_makedev).
pub const fn number(major: u64, minor: u64) -> u64 {
    (major & 0xfff) << 8 | minor & 0xff | (minor & !0xff) << 12 | (major & !0xfff) << 32
}

/// The major and minor parts of a device number.
pub const fn split(dev: u64) -> (u64, u64) {
    (dev >> 8 & 0xfff | dev >> 32 & !0xfff, dev & 0xff | dev >> 12 & 0xffff_ff00)
}

const NULL: u64 = number(1, 3);
const ZERO: u64 = number(1, 5);
const FULL: u64 = number(1, 7);
const RANDOM: u64 = number(1, 8);
const URANDOM: u64 = number(1, 9);
const KMSG: u64 = number(1, 11);
const TTY: u64 = number(5, 0);
/// Device number of `/dev/console`.
pub const CONSOLE: u64 = number(5, 1);
/// Device number of `/dev/ttyS0`.
pub const TTY_S0: u64 = number(4, 64);

/// Device number of `/dev/ptmx`.
pub const PTMX: u64 = number(5, 2);

/// Every device node of a fresh `/dev`: name, number, permission bits.
const NODES: &[(&str, u64, u32)] = &[
    ("null", NULL, 0o666),
    ("zero", ZERO, 0o666),
    ("full", FULL, 0o666),
    ("random", RANDOM, 0o666),
    ("urandom", URANDOM, 0o666),
    ("kmsg", KMSG, 0o644),
    ("tty", TTY, 0o666),
    ("console", CONSOLE, 0o600),
    ("ttyS0", TTY_S0, 0o600),
    ("ptmx", PTMX, 0o666),
];

/// The one description object of each memory device: they have no state.
static MEMORY: [Once<Arc<Memory>>; 4] = [const { Once::new() }; 4];

/// What opening the device gives: ENXIO without a driver for it.
pub fn open(node: &DeviceNode<'_>, request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
    if node.inode.attr().kind() != S_IFCHR {
        return Err(Errno::ENXIO);
    }
    match node.rdev {
        NULL => Ok(memory(0, Memory::Null)),
        ZERO => Ok(memory(1, Memory::Zero)),
        FULL => Ok(memory(2, Memory::Full)),
        RANDOM | URANDOM => Ok(memory(3, Memory::Random)),
        KMSG => {
            if kmsg::Writing::get() == kmsg::Writing::Off {
                return Err(Errno::EPERM);
            }
            if request.flags & O_ACCMODE != O_WRONLY as u32 {
                kmsg::check_reader()?;
            }
            Ok(Arc::new(kmsg::Reader::new()))
        }
        _ => <Kwab as Above>::open_terminal(node, request.flags),
    }
}

fn memory(slot: usize, device: Memory) -> Arc<Memory> {
    if let Some(device) = MEMORY[slot].get() {
        return device.clone();
    }
    let device = Arc::new(device);
    // Another thread may have been first; either object does.
    let _ = MEMORY[slot].set(device.clone());
    device
}

/// What mmap makes of a device node.
pub fn mapping(mode: u32, rdev: u64) -> Mapping {
    if mode & S_IFMT == S_IFCHR && rdev == ZERO { Mapping::Zeros } else { Mapping::Refused }
}

/// A fresh `/dev` (devtmpfs).
pub fn new_devtmpfs() -> Result<Arc<TmpFs>, Errno> {
    let fs = TmpFs::new("devtmpfs", super::tmpfs::half_of_memory(), 0o755, b"");
    let root = fs.root();
    for &(name, rdev, mode) in NODES {
        let new = NewNode { mode: S_IFCHR | mode, uid: 0, gid: 0, rdev };
        root.inode.create(&root, name.as_bytes(), new)?;
    }
    Ok(fs)
}
