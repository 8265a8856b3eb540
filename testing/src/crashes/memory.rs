//! Compares dumps with QEMU's own of the same moment: every captured byte, every register.
//!
//! Bytes: the kernel waits after its dump (`panic=`); meanwhile QEMU stops the machine and writes its memory as an ELF
//! core. What the kernel captured is looked up there through the page tables that its registers name.
//!
//! Registers: by then those of the dump are gone. So QEMU stops a machine that runs, writes a core, and has a
//! non-maskable interrupt wait for every processor before it lets the machine go on: what the kernel finds interrupted
//! is what the core has.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use kwab_format::record::{RegId, RegisterRole};

use super::elfcore::Core;
use super::{Seen, dumps_in, fresh_memory, guest, machine, qmp};
use crate::paths;
use crate::qemu::{self, Limits, Machine, run::Next};
use crate::setup::Consent;

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryComparison {
    /// Pieces of captured memory.
    pub pieces: usize,
    /// Bytes in them.
    pub bytes: usize,
    /// Registers of all processors.
    pub registers: usize,
}

/// Runs the comparison.
pub fn compare(cpus: u32, consent: Consent) -> Result<MemoryComparison> {
    let mut compared = MemoryComparison::default();
    bytes(cpus, consent, &mut compared).context("the bytes")?;
    registers(cpus, consent, &mut compared).context("the registers")?;
    Ok(compared)
}

/// A machine with the protocol's socket, and where the core goes.
fn with_socket(mut machine: Machine, file: &Path) -> Result<(Machine, PathBuf, PathBuf)> {
    let folder = paths::build("crashes")?;
    let (socket, core) = (folder.join("qmp"), folder.join("guest.core"));
    machine.keep_dumps_in(file)?;
    machine.extra.extend(qmp::arguments(&socket));
    Ok((machine, socket, core))
}

fn bytes(cpus: u32, consent: Consent, compared: &mut MemoryComparison) -> Result<()> {
    let file = fresh_memory("guest")?;
    let mut machine = machine("c fault", cpus, consent)?;
    machine.append.push_str(" panic=60");
    let (machine, socket, core) = with_socket(machine, &file)?;
    let mut dumped = Ok(());
    qemu::run(&machine, Limits::seconds(120), |line| {
        if !line.starts_with("Rebooting in") {
            return Next::Go;
        }
        dumped = qmp::Session::open(&socket).and_then(|mut session| dump_guest(&mut session, &core));
        Next::Stop
    })?;
    dumped?;
    let dump = dumps_in(&file)?.pop().context("no dump")?;
    let image = taken(&core)?;
    same_bytes(&Seen::of(&dump)?, &Core::new(&image)?, compared)
}

fn registers(cpus: u32, consent: Consent, compared: &mut MemoryComparison) -> Result<()> {
    let file = fresh_memory("guest-registers")?;
    // One processor runs a program, the others are idle.
    let mut machine = guest("echo t >/proc/sysrq-trigger; while :; do :; done", cpus, consent)?;
    machine.append = machine.append.replace("quiet loglevel=1", "loglevel=7");
    let (machine, socket, core) = with_socket(machine, &file)?;
    let mut dumped = None;
    qemu::run(&machine, Limits::seconds(120), |line| {
        if line.contains("sysrq: ") && dumped.is_none() {
            dumped = Some(qmp::Session::open(&socket).and_then(|mut session| {
                dump_guest(&mut session, &core)?;
                session.execute("inject-nmi", "")?;
                session.execute("cont", "")
            }));
        }
        Next::Go
    })?;
    dumped.context("the guest did not run")??;
    let dump = dumps_in(&file)?.pop().context("no dump")?;
    let image = taken(&core)?;
    same_registers(&Seen::of(&dump)?, &Core::new(&image)?, cpus, compared)
}

fn dump_guest(session: &mut qmp::Session, core: &Path) -> Result<()> {
    session.execute("stop", "")?;
    session.execute("dump-guest-memory", &format!("{{\"paging\":false,\"protocol\":\"file:{}\"}}", core.display()))
}

fn taken(core: &Path) -> Result<Vec<u8>> {
    let image = fs::read(core).context("cannot read QEMU's core")?;
    fs::remove_file(core)?;
    Ok(image)
}

fn same_bytes(seen: &Seen, core: &Core<'_>, compared: &mut MemoryComparison) -> Result<()> {
    let root = *seen.fault().and_then(|set| set.get(&RegId::CR3)).context("no page-table root in the dump")?;
    for (at, bytes) in &seen.memory {
        let there =
            core.read(root, *at, bytes.len()).with_context(|| format!("{at:#x} is not mapped in QEMU's core"))?;
        if let Some(offset) = there.iter().zip(bytes).position(|(a, b)| a != b) {
            let (at, theirs, ours) = (at + offset as u64, there[offset], bytes[offset]);
            anyhow::bail!("{at:#x}: QEMU has {theirs:#04x}, the dump {ours:#04x}");
        }
        compared.pieces += 1;
        compared.bytes += bytes.len();
    }
    ensure!(compared.bytes > 4096, "only {} bytes were captured", compared.bytes);
    Ok(())
}

/// Every register of every processor that both have.
fn same_registers(seen: &Seen, core: &Core<'_>, cpus: u32, compared: &mut MemoryComparison) -> Result<()> {
    ensure!(core.cpus.len() == cpus as usize, "QEMU reports {} processors", core.cpus.len());
    for (number, theirs) in (0..).zip(&core.cpus) {
        let roles = [RegisterRole::FAULT, RegisterRole::STOPPED];
        let ours = roles.iter().find_map(|role| seen.registers.get(&(*role, number)));
        let ours = ours.with_context(|| format!("no registers of CPU {number}"))?;
        let mut both = 0;
        for (id, value) in ours {
            let Some(there) = theirs.get(id) else { continue };
            let name = id.name().unwrap_or("?");
            ensure!(value == there, "{name} of CPU {number}: QEMU has {there:#x}, the dump {value:#x}");
            both += 1;
        }
        ensure!(both >= 20, "only {both} registers of CPU {number}");
        compared.registers += both;
    }
    Ok(())
}
