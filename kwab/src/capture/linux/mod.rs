//! Finds out of a machine's memory what its Linux would have said: log, threads, and where each stands.
//!
//! Nothing but the memory is needed. A page in it (`VMCOREINFO`, kept for readers of kexec's cores) says where the log
//! and the kernel's own symbols are (`printk`, `kallsyms`); these name the types that it carries for BPF (`btf`) and
//! the tables that it unwinds by (`orc`); with them its threads can be read ([`tasks`]). A log that ends in a report
//! says what the machine died of ([`Death`]). Each step says what it lacks and leaves the others what they have; an
//! image with debug information adds lines and inlined functions later.

mod btf;
mod death;
mod kallsyms;
mod orc;
mod printk;
pub mod tasks;
mod write;

pub(super) use write::{put_log, put_threads};

use btf::Btf;
pub use death::Death;
use kallsyms::Kallsyms;
use orc::Orc;
use tasks::{Thread, ThreadReader};

use super::image;
use super::registers::Processor;
use super::space::Space;
use super::vmcore::Vmcore;

/// Bytes of types that are read: a kernel of Debian has 5 MB.
const MOST_TYPES: u64 = 64 << 20;

/// A frame with a name.
#[derive(Debug)]
pub struct NamedFrame {
    /// Address of code.
    pub address: u64,
    /// The function around it, without a name where none is known.
    pub name: Vec<u8>,
    /// The distance from its begin, and its length.
    pub offset: u64,
    /// Bytes of the function.
    pub size: u64,
}

/// What a Linux says in its memory.
#[derive(Debug, Default)]
pub struct Linux {
    /// Its log: lines with level and time.
    pub log: Vec<u8>,
    /// Its threads, each with the names of its frames.
    pub threads: Vec<(Thread, Vec<NamedFrame>)>,
    /// What it died of, when its log says so.
    pub death: Option<Death>,
    /// What could not be read, and why.
    pub missing: Vec<String>,
}

/// Reads a Linux that describes itself; `None` for another kernel.
pub(super) fn read(core: &Vmcore, processors: &[Processor]) -> Option<Linux> {
    core.told("OSRELEASE").filter(|_| core.told("KERNEL").is_none())?;
    let space = Space::new(core, image::told_tables(core)?);
    let told = |name: &str| {
        let text = core.told(name)?;
        let is_address = name.starts_with("SYMBOL");
        if is_address { u64::from_str_radix(text, 16).ok() } else { text.parse().ok() }
    };
    let mut linux = Linux::default();
    match printk::read(&space, told) {
        Some(log) => {
            linux.death = death::of_log(&log);
            linux.log = log;
        }
        None => linux.missing.push("the log: VMCOREINFO does not say where it is, or it is not whole".to_owned()),
    }
    if let Err(missing) = threads(&mut linux, core, &space, processors, told) {
        linux.missing.push(format!("the threads: {missing}"));
    }
    Some(linux)
}

fn threads(
    linux: &mut Linux,
    core: &Vmcore,
    space: &Space<'_>,
    processors: &[Processor],
    told: impl Fn(&str) -> Option<u64>,
) -> Result<(), String> {
    let symbols = Kallsyms::read(space, told).ok_or("the kernel's symbols (kallsyms, in VMCOREINFO since 6.0)")?;
    let start = symbols.find("__start_BTF").ok_or("the kernel has no types (CONFIG_DEBUG_INFO_BTF)")?;
    let length = symbols
        .find("__stop_BTF")
        .and_then(|stop| stop.checked_sub(start))
        .filter(|size| *size <= MOST_TYPES.min(space.held()));
    let types = length.and_then(|length| space.bytes(start, length as usize)).and_then(Btf::parse);
    let btf = types.ok_or("the kernel's types cannot be read")?;
    let orc = Orc::find(&symbols, core.told("OSRELEASE").unwrap_or_default());
    let reader = ThreadReader::new(space, &symbols, &btf, orc.as_ref(), processors);
    let (threads, problem) = reader.all();
    linux.missing.extend(problem);
    let all = threads.into_iter().map(|thread| {
        let frames = thread.frames.iter().map(|(address, returns)| named(&symbols, *address, *returns)).collect();
        (thread, frames)
    });
    linux.threads = all.collect();
    Ok(())
}

fn named(symbols: &Kallsyms, address: u64, returns: bool) -> NamedFrame {
    // The call before a return address may be the last instruction of its function.
    let back = u64::from(returns);
    let found = symbols.at(address.wrapping_sub(back));
    let (name, offset, size) = found.map_or((Vec::new(), 0, 0), |(name, offset, size)| (name.to_vec(), offset, size));
    NamedFrame { address, name, offset: offset + back, size }
}

#[cfg(test)]
mod tests;
