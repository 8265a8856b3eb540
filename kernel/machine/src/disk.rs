//! A disk for dumps: polled, and driven by one at a time, the crash path or whoever has the turn.

pub use crate::x86_64::devices::virtio::{Disk, MOST, SECTOR, Turn, find, find_in};
