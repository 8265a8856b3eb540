//! The method: one image, one set of flags, one kernel after the other.
//!
//! [`Timing::Instructions`] is the headline: one CPU, one nanosecond per guest instruction, bit-identical when
//! repeated. [`Timing::Wall`] is plain TCG, where only the minimum of several interleaved runs means something. Linux
//! boots with what makes it fastest (no mitigations, no randomisation), since a comparison should flatter the other
//! side.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::{BenchRow, Conditions, Figure, Run};
use crate::image::{self, Node};
use crate::kernel::Which;
use crate::qemu::{self, Clock, Ending, Limits, Machine, run::Next};
use crate::setup::Consent;
use crate::{evidence, guest, paths};

/// Whose time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// The guest's instructions.
    Instructions,
    /// The host's clock.
    Wall,
}

/// Longer than the slowest complete run under the instruction clock on a busy machine.
const LIMITS: u64 = 1200;

/// With half of this, Linux's page allocator already looks for reserves in `mmap_fault`, which would flatter us.
const MEMORY_MIB: u32 = 1024;

/// How the names of benchmarks begin that execute the program with 5 MiB of code.
const LARGE: &str = "exec_large_";

/// Builds the image that every run of one comparison starts from: the chosen benchmarks, and `padding` bytes that move
/// everything else in memory.
pub fn image(rows: &[BenchRow], padding: usize, consent: Consent) -> Result<(PathBuf, u32)> {
    let mut image = image::base(consent)?;
    image.program("/sbin/bench", &guest::program("bench", consent)?)?;
    if rows.iter().any(|row| row.name.starts_with(LARGE)) {
        image.program("/sbin/large", &guest::linked("large", guest::Link::StaticHuge, consent)?)?;
    }
    let names: String = rows.iter().map(|row| format!("{}\n", row.name)).collect();
    image.text("/etc/kwab/bench", &names);
    if padding > 0 {
        image.put("/etc/kwab/padding", 0o644, Node::File(vec![b'x'; padding]));
    }
    let archive = image.archive();
    let file = paths::build("images")?.join("bench.cpio");
    paths::write(&file, &archive)?;
    Ok((file, crc32fast::hash(&archive)))
}

/// The machine on which one kernel runs the image's benchmarks.
pub fn machine(kernel: Which, boot: &Path, image: &(PathBuf, u32), timing: Timing) -> Machine {
    machine_of(kernel, boot, image, timing, "/sbin/bench")
}

/// The same with another program as init.
pub fn machine_of(kernel: Which, boot: &Path, image: &(PathBuf, u32), timing: Timing, init: &str) -> Machine {
    let mut append = format!("{} quiet loglevel=1 rdinit={init} norandmaps nokaslr", kernel.options());
    if kernel == Which::Linux {
        append.push_str(" mitigations=off");
    }
    let mut machine = Machine::new(boot.to_owned(), image.0.clone(), append);
    machine.cpu = "max,-erms";
    machine.memory_mib = MEMORY_MIB;
    if timing == Timing::Instructions {
        machine.clock = Clock::Instructions;
    }
    machine
}

/// Runs the image's benchmarks under one kernel; a benchmark without a figure is an error.
pub fn measure(kernel: Which, boot: &Path, image: &(PathBuf, u32), rows: &[BenchRow], timing: Timing) -> Result<Run> {
    let (run, _) = measure_on(&machine(kernel, boot, image, timing), kernel.name(), image.1, rows)?;
    Ok(run)
}

/// The same on any machine; also returns what its console said.
pub fn measure_on(machine: &Machine, name: &str, image: u32, rows: &[BenchRow]) -> Result<(Run, Vec<u8>)> {
    let mut figures = Vec::new();
    let mut failure = None;
    let outcome = qemu::run(machine, Limits::seconds(LIMITS), |line| {
        match Figure::parse(line) {
            Some(Ok(figure)) => figures.push(figure),
            Some(Err(error)) => failure = Some(error),
            None if line.starts_with("BENCH-FAILED ") => failure = Some(anyhow::anyhow!("{line}")),
            None => return Next::Go,
        }
        if failure.is_none() { Next::Go } else { Next::Stop }
    })?;
    if let Some(error) = failure {
        return Err(error.context(format!("under {name}")));
    }
    if outcome.ending != Ending::Exited(0) {
        let log = paths::build("results")?.join(format!("bench-{name}.log"));
        paths::write(&log, &outcome.serial)?;
        let dumps = evidence::record(&log, &outcome.serial)?;
        bail!("{name} ended with {:?}; {}", outcome.ending, evidence::shown(&log, &dumps));
    }
    complete(&figures, rows).with_context(|| format!("under {name}"))?;
    let conditions = Conditions { flags: machine.flags(), image };
    let (spread, user) = (BTreeMap::new(), BTreeMap::new());
    Ok((Run { kernel: name.to_owned(), conditions, figures, spread, user }, outcome.serial))
}

fn complete(figures: &[Figure], rows: &[BenchRow]) -> Result<()> {
    for row in rows {
        let figure = figures.iter().find(|figure| figure.name == row.name);
        let figure = figure.with_context(|| format!("{} gave no figure", row.name))?;
        let (got, wanted) = (figure.iterations, row.iterations);
        ensure!(got == wanted, "{}: {got} iterations, the table says {wanted}", row.name);
    }
    Ok(())
}
