//! A disk for dumps: polled, and driven by one at a time, the crash path or the holder of the [`Turn`].

pub use crate::x86_64::devices::virtio::{Disk, MOST, SECTOR, Turn, find, find_in};
