//! `cargo xtask soak [SECONDS] [--seed N] [--copies N]`: lets the stress program run on a kernel and believes only its
//! summary.
//!
//! The program (`testing/guest/stress`) starts workers of seven kinds (forks, pipes, threads, signals, mappings, files,
//! events), each of which checks a model of what must hold. The run fails when an invariant is broken, when a worker
//! stands still, when the kernel gives up, when nothing comes within the time and a half, or when more than `LOST_KIB`
//! of the memory that was available before is not after. The same seed starts the same choices, though two CPUs
//! interleave them differently. The console is kept in `build/results/soak-<kernel>.log`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::boot;
use crate::kernel::Which;
use crate::qemu::{self, Ending, Limits, Machine, run::Next};
use crate::setup::{self, Consent, Tool};
use crate::{guest, image, paths};

/// SoakArguments of `soak`.
#[derive(Debug, Args)]
pub struct SoakArguments {
    /// How long the workers run, in seconds of the guest.
    #[arg(default_value_t = 300)]
    seconds: u64,
    /// What the choices start from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Workers of each kind.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    copies: u32,
    /// Number of CPUs.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    smp: u32,
    /// Memory in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..))]
    mem: u32,
    /// The kernel to load.
    #[arg(long, value_enum, default_value_t)]
    kernel: Which,
}

/// What may be gone at the end: processors hold some frames each, and tables for the kernel's own addresses stay.
const LOST_KIB: i64 = 512;

/// Runs the command.
pub fn run(arguments: &SoakArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let machine = machine(arguments, consent)?;
    let mut summary = None;
    // The workers' own patience is half a minute at the end; a busy host slows the guest's clock and the host's alike.
    let limits = Limits::seconds(arguments.seconds * 3 / 2 + 120);
    let outcome = qemu::run(&machine, limits, |line| {
        if line.starts_with("stress: ") {
            summary = Some(line.to_owned());
        }
        println!("{line}");
        Next::Go
    })?;
    let log = paths::build("results")?.join(format!("soak-{}.log", arguments.kernel.name()));
    paths::write(&log, &outcome.serial)?;
    let lost = summary.as_deref().and_then(lost_kib);
    if let Some(lost) = lost
        && lost > LOST_KIB
    {
        eprintln!("{lost} KiB of memory were not freed; the console is in {}", paths::shown(&log));
        return Ok(ExitCode::FAILURE);
    }
    if outcome.ending == Ending::Exited(0) && lost.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("the soak ended with {:?}; its console is in {}", outcome.ending, paths::shown(&log));
    Ok(ExitCode::FAILURE)
}

fn machine(arguments: &SoakArguments, consent: Consent) -> Result<Machine> {
    let mut image = image::base(consent)?;
    image.program("/bin/stress", &guest::program("stress", consent)?)?;
    let (seconds, seed, copies) = (arguments.seconds, arguments.seed, arguments.copies);
    let words = ["/bin/stress".to_owned(), seconds.to_string(), seed.to_string(), copies.to_string()];
    boot::put_command(&mut image, &words);
    let file = paths::build("images")?.join(format!("soak-{}.cpio", arguments.kernel.name()));
    paths::write(&file, &image.archive())?;
    let options = format!("{} quiet loglevel=1 rdinit=/sbin/oneshot", arguments.kernel.options());
    let mut machine = Machine::new(arguments.kernel.image(consent)?, file, options);
    machine.cpus = arguments.smp;
    machine.memory_mib = arguments.mem;
    Ok(machine)
}

/// The memory that was available before and is not after, from the program's summary.
fn lost_kib(summary: &str) -> Option<i64> {
    let (_, rest) = summary.split_once("free memory ")?;
    rest.split_once(" KiB")?.0.parse::<i64>().ok().map(|change| -change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_is_read_off_the_summary() {
        let summary =
            |change: &str| format!("stress: 10 s, seed 1, 7 workers: forks 3, free memory {change} KiB, broken 0");
        assert_eq!(lost_kib(&summary("-700")), Some(700));
        assert_eq!(lost_kib(&summary("+12")), Some(-12));
        assert_eq!(lost_kib("stress: ended"), None);
    }
}
