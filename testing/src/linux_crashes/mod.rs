//! Lets Debian's Linux die in known ways and asks `kwab` what the serial log says: a judge whose logs no author of ours
//! wrote.
//!
//! `testing/linux-crashes` holds the guest's side: a kernel module with a function per way to die, the init that
//! provokes one, and `ways.toml`, the table of ways with the truth about each. [`kit`] fetches the kernel with its
//! headers and builds the module, [`ways`] reads the table, [`provoke`] boots one way and keeps the log, [`score`]
//! compares what `kwab` says with the truth, [`rows`] is the table of it.
//!
//! Each way gets a machine of its own, so that a log holds one death. Healthy boots, those of the table and those that
//! [`variety`] draws, must give no death at all.

pub mod kit;
pub mod rows;
pub mod score;
pub mod variety;
pub mod ways;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::paths;
use crate::qemu::{self, Limits, Machine, Model, run::Next};
use kit::{Architecture, Kit};
use variety::Varied;
use ways::{Healthy, Way};

/// Seconds that one boot may take: an idle machine needs 10, a busy one several times as many.
const LIMIT: u64 = 240;

/// How often a way is booted until it happens: several emulated processors sometimes run code that Linux just patched,
/// and die of that instead.
const ATTEMPTS: u32 = 3;

/// A log and whether what was asked for happened in it.
#[derive(Debug)]
pub struct Log {
    /// Path of the log.
    pub file: PathBuf,
    /// Whether Linux printed what shows that it happened.
    pub provoked: bool,
}

/// Boots one way to die and keeps the serial log in `folder`.
pub fn provoke(kit: &Kit, way: &Way, folder: &Path) -> Result<Log> {
    let options = format!("{} crashme.way={} crashme.wait={}", way.options, way.asked(), way.wait);
    let mut machine = machine(kit, &options, 2, MEMORY_MIB);
    if way.bare {
        machine.initrd = None;
    }
    let file = file_of(way, folder);
    for _ in 0..ATTEMPTS {
        captured(&machine, &file)?;
        if kept(kit.architecture, way, folder)?.is_some_and(|log| log.provoked) {
            break;
        }
    }
    kept(kit.architecture, way, folder)?.with_context(|| format!("no {}", paths::shown(&file)))
}

/// The log of a way that lies in `folder`, if there is one.
pub fn kept(on: Architecture, way: &Way, folder: &Path) -> Result<Option<Log>> {
    read(file_of(way, folder), way.says(on))
}

/// The log of a healthy boot that lies in `folder`, if there is one.
pub fn kept_healthy(healthy: &Healthy, folder: &Path) -> Result<Option<Log>> {
    read(file_of_healthy(healthy, folder), Some(ALIVE))
}

fn read(file: PathBuf, says: Option<&str>) -> Result<Option<Log>> {
    if !file.is_file() {
        return Ok(None);
    }
    let bytes = fs::read(&file).with_context(|| format!("cannot read {}", paths::shown(&file)))?;
    let provoked = says.is_some_and(|says| String::from_utf8_lossy(&bytes).contains(says));
    Ok(Some(Log { file, provoked }))
}

fn file_of(way: &Way, folder: &Path) -> PathBuf {
    folder.join(format!("{}.log", way.name))
}

fn file_of_healthy(healthy: &Healthy, folder: &Path) -> PathBuf {
    folder.join(format!("healthy-{}.log", healthy.name))
}

/// What the init says in a healthy boot.
const ALIVE: &str = "way none";

/// Boots a machine in which nothing dies; [`Log::provoked`] says whether it reached its end.
pub fn healthy(kit: &Kit, healthy: &Healthy, folder: &Path) -> Result<Log> {
    let machine = machine(kit, &format!("{} crashme.way=none", healthy.options), healthy.cpus, healthy.memory);
    let file = file_of_healthy(healthy, folder);
    captured(&machine, &file)?;
    kept_healthy(healthy, folder)?.with_context(|| format!("no {}", paths::shown(&file)))
}

/// As [`healthy`], of a boot that was drawn; a log that lies there and reached its end is not made again.
pub fn varied(kit: &Kit, varied: &Varied, folder: &Path) -> Result<Log> {
    let kept = kept_varied(varied, folder)?;
    if let Some(log) = kept.filter(|log| log.provoked) {
        return Ok(log);
    }
    let mut machine = machine(kit, &format!("{} crashme.way=none", varied.options), varied.cpus, varied.memory);
    machine.model = varied.model;
    machine.cpu = varied.cpu;
    machine.extra = varied.devices.iter().flat_map(|device| ["-device".to_owned(), (*device).to_owned()]).collect();
    let file = file_of_varied(varied, folder);
    captured(&machine, &file)?;
    kept_varied(varied, folder)?.with_context(|| format!("no {}", paths::shown(&file)))
}

/// The log of a drawn boot that lies in `folder`, if there is one.
pub fn kept_varied(varied: &Varied, folder: &Path) -> Result<Option<Log>> {
    read(file_of_varied(varied, folder), Some(ALIVE))
}

fn file_of_varied(varied: &Varied, folder: &Path) -> PathBuf {
    folder.join(format!("{}.log", varied.name))
}

/// Memory of a machine, where a way or a healthy boot says nothing else.
const MEMORY_MIB: u32 = 256;

fn machine(kit: &Kit, options: &str, cpus: u32, memory: u32) -> Machine {
    let (console, extra) = match kit.architecture {
        // On a busy host Linux would otherwise distrust an emulated timer that comes late.
        Architecture::Amd64 => ("ttyS0", "tsc=reliable no_timer_check"),
        Architecture::Arm64 => ("ttyAMA0", ""),
    };
    let append = format!("console={console} panic=-1 {extra} {options}");
    let words: Vec<&str> = append.split_whitespace().collect();
    let mut machine = Machine::new(kit.kernel.clone(), kit.initramfs.clone(), words.join(" "));
    if kit.architecture == Architecture::Arm64 {
        machine.model = Model::Virt;
        machine.cpu = "max,pauth-impdef=on";
    }
    machine.cpus = cpus;
    machine.memory_mib = memory;
    machine
}

/// Runs a machine and keeps what its console said, without the last word of the init, which is the harness's.
fn captured(machine: &Machine, file: &Path) -> Result<()> {
    let serial = qemu::run(machine, Limits::seconds(LIMIT), |_| Next::Go)?.serial;
    let end = memchr::memmem::find(&serial, b"KWAB-EXIT").unwrap_or(serial.len());
    fs::write(file, &serial[..end]).with_context(|| format!("cannot write {}", paths::shown(file)))
}
