//! `/proc/PID/limits`: soft and hard resource limits (proc(5)).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use linux_abi::Errno;

use super::Target;
use crate::task::limits::INFINITY;

/// Names and units, in the order of the resource numbers.
const NAMES: [(&str, &str); 16] = [
    ("Max cpu time", "seconds"),
    ("Max file size", "bytes"),
    ("Max data size", "bytes"),
    ("Max stack size", "bytes"),
    ("Max core file size", "bytes"),
    ("Max resident set", "bytes"),
    ("Max processes", "processes"),
    ("Max open files", "files"),
    ("Max locked memory", "bytes"),
    ("Max address space", "bytes"),
    ("Max file locks", "locks"),
    ("Max pending signals", "signals"),
    ("Max msgqueue size", "bytes"),
    ("Max nice priority", ""),
    ("Max realtime priority", ""),
    ("Max realtime timeout", "us"),
];

pub(super) fn limits(target: Target) -> Result<Vec<u8>, Errno> {
    let limits = target.process()?.accounting.limits();
    let mut out = format!("{:<26}{:<21}{:<21}{:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    for ((name, unit), limit) in NAMES.iter().zip(limits.0) {
        out += &format!("{name:<26}{:<21}{:<21}{unit:<10}\n", show(limit.soft), show(limit.hard));
    }
    Ok(out.into_bytes())
}

fn show(value: u64) -> String {
    if value == INFINITY { "unlimited".into() } else { value.to_string() }
}
