//! Tests the further dump channels: a raw disk, and `pvpanic`, which notifies the host.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use kwab_format::record::CauseKind;

use super::{Seen, attach_disk, dumps_in, guest, qmp};
use crate::paths;
use crate::qemu::{self, Limits, Model, run::Next};
use crate::setup::Consent;

/// Bytes of the disk.
const DISK: u64 = 64 << 20;

/// A program and then the kernel die, twice, with nothing but a disk to dump to: bytes of the dumps. Everything is
/// kept: the second boot writes beside what the first has left.
pub fn disk(model: Model, consent: Consent) -> Result<usize> {
    let file = paths::build("crashes")?.join(format!("{model}.disk"));
    File::create(&file)?.set_len(DISK)?;
    let mut sizes = 0;
    for boot in 1..=2 {
        let mut machine = guest("sh -c 'kill -11 $$'; echo c panic >/proc/sysrq-trigger; sleep 3600", 2, consent)?;
        machine.model = model;
        machine.append.push_str(" dumpdisk");
        attach_disk(&mut machine, &file);
        qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
        sizes = on_it(&file, boot).with_context(|| format!("boot {boot}, in {}", paths::shown(&file)))?;
    }
    Ok(sizes)
}

/// As many deaths of each kind as there were boots, all whole.
fn on_it(file: &Path, boots: usize) -> Result<usize> {
    let dumps = dumps_in(file)?;
    let seen: Vec<Seen> = dumps.iter().map(|bytes| Seen::of(bytes)).collect::<Result<_>>()?;
    for dump in &seen {
        ensure!(dump.defects.is_empty(), "{}: {:?}", dump.message, dump.defects);
        ensure!(dump.complete == Some(true), "{}: left out {:?}", dump.message, dump.dropped);
    }
    let count = |kind| seen.iter().filter(|dump| dump.kind == Some(kind)).count();
    let (kernels, programs) = (count(CauseKind::PANIC), count(CauseKind::FATAL_SIGNAL));
    ensure!((kernels, programs) == (boots, boots), "{kernels} dumps of the kernel, {programs} of programs");
    Ok(dumps.iter().map(Vec::len).sum())
}

/// The host hears of the death from QEMU, by the `pvpanic` device.
pub fn pvpanic(consent: Consent) -> Result<String> {
    let socket = paths::build("crashes")?.join("qmp");
    let mut machine = guest("echo t >/proc/sysrq-trigger; sleep 1; echo c panic >/proc/sysrq-trigger", 1, consent)?;
    machine.append = machine.append.replace("quiet loglevel=1", "loglevel=7");
    machine.extra.extend(["-device".into(), "pvpanic".into()]);
    machine.extra.extend(qmp::arguments(&socket));
    let mut session = None;
    qemu::run(&machine, Limits::seconds(120), |line| {
        if line.contains("sysrq: ") && session.is_none() {
            session = Some(qmp::Session::open(&socket));
        }
        Next::Go
    })?;
    let session = session.context("the guest did not run")??;
    ensure!(session.hears("GUEST_PANICKED"), "QEMU received no panic event");
    Ok("QEMU says GUEST_PANICKED".into())
}
