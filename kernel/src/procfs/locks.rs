//! `/proc/kwab-locks`: how long processors waited for spin locks since boot, the longest first.
//!
//! A line is nanoseconds, waits, the call site that waited, and the type that the lock protects. For root alone:
//! how long others wait tells what they do.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use linux_abi::Errno;
use machine::sync::{Waits, waits};
use machine::time::params;

use super::Target;

pub(super) fn contended(_: Target) -> Result<Vec<u8>, Errno> {
    let mut all: Vec<Waits> = Vec::new();
    waits(|waits| all.push(waits));
    all.sort_by_key(|waits| core::cmp::Reverse(waits.cycles));
    let hz = u128::from(params().hz.max(1));
    let mut out = String::new();
    for Waits { site, count, cycles } in all {
        let nanoseconds = u128::from(cycles) * 1_000_000_000 / hz;
        // A string takes every write.
        let _ = match site {
            Some((location, name)) => writeln!(out, "{nanoseconds} {count} {location} {name}"),
            None => writeln!(out, "{nanoseconds} {count} - further sites"),
        };
    }
    Ok(out.into_bytes())
}
