//! Makes our kernel die in every way in which it should still write a dump, and checks the dump.
//!
//! The dumps are read with `kwab`'s reader, and every claim is checked against something else: the text on the console
//! ([`deaths`]), the serial log read as a dump of its own ([`story`]), the moment at which the machine was killed
//! ([`kills`]), QEMU's own dump of the memory ([`memory`]), what the guest was made to do ([`programs`],
//! [`mistakes`], [`state`]),
//! the channel ([`channels`]), a line that damages what goes over it ([`noise`]), how much memory was asked for
//! ([`levels`]).

pub mod channels;
pub mod deaths;
pub mod elfcore;
pub mod kills;
pub mod levels;
pub mod memory;
pub mod mistakes;
pub mod noise;
pub mod programs;
pub mod qmp;
pub mod seen;
pub mod state;
pub mod story;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kwab::import::{Options, PendingFile, import_channel};

use crate::boot;
use crate::kernel::Which;
use crate::paths;
use crate::qemu::Machine;
use crate::setup::Consent;

pub use seen::Seen;

/// A machine that dies as `way` says ([`deaths::Death::way`]).
pub fn machine(way: &str, cpus: u32, consent: Consent) -> Result<Machine> {
    guest(&format!("echo {way} >/proc/sysrq-trigger; sleep 3600"), cpus, consent)
}

/// A machine whose shell runs `script`.
pub fn guest(script: &str, cpus: u32, consent: Consent) -> Result<Machine> {
    let mut machine = boot::machine(&boot::Options::once(Which::Ours, &["sh", "-c", script]), consent)?;
    machine.cpus = cpus;
    Ok(machine)
}

/// Gives a machine an empty disk of `size` bytes to dump to, which is `file`.
pub fn add_disk(machine: &mut Machine, file: &Path, size: u64) -> Result<()> {
    File::create(file)?.set_len(size)?;
    machine.append.push_str(" dumpdisk");
    attach_disk(machine, file);
    Ok(())
}

/// Gives a machine the disk that is `file`.
pub fn attach_disk(machine: &mut Machine, file: &Path) {
    machine.extra.extend([
        "-drive".into(),
        format!("file={},if=none,id=dumps,format=raw", file.display()),
        "-device".into(),
        "virtio-blk-pci,drive=dumps".into(),
    ]);
}

/// An empty file for the memory that dumps go to.
pub fn fresh_memory(name: &str) -> Result<PathBuf> {
    let file = paths::build("crashes")?.join(format!("{name}.mem"));
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", paths::shown(&file)))?;
    }
    Ok(file)
}

/// The dumps in the memory of a machine that ran, as bytes.
pub fn dumps_in(file: &Path) -> Result<Vec<Vec<u8>>> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", paths::shown(file)))?;
    let options = Options { source: paths::shown(file), folder: Some(paths::build("crashes")?) };
    let (_, dumps) = import_channel(&bytes, &options)?;
    let read = |mut file: PendingFile| {
        let mut bytes = Vec::new();
        file.copy_to(&mut bytes).context("cannot read a dump just written")?;
        Ok(bytes)
    };
    dumps.into_iter().filter_map(|dump| dump.file).map(read).collect()
}
