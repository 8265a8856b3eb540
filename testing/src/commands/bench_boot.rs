//! `cargo xtask bench-boot [--runs N] [--kernel ours|linux|both] [--machine pc|q35|microvm]`: from QEMU's start to the
//! first prompt of BusyBox's login shell, in wall time.
//!
//! Both kernels get the same initramfs and the same flags, runs of the two alternate, and what is quoted is the median
//! beside the fastest and the slowest. QEMU's own start and the firmware are part of every figure: they are what a run
//! of the bare machine's self test `boot` takes, which is shown for comparison. Linux is not run on microvm, where it
//! hangs at random under emulation.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use crate::kernel::{Selection, Which};
use crate::qemu::{self, Accel, Limits, Machine, Model};
use crate::setup::{self, Consent, Tool};
use crate::{boot, kernel};

/// BenchBootArguments of `bench-boot`.
#[derive(Debug, Args)]
pub struct BenchBootArguments {
    /// Boots of each kernel.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// The kernels to boot.
    #[arg(long, value_enum, default_value_t)]
    kernel: Selection,
    /// QEMU's machine type.
    #[arg(long, value_enum, default_value_t)]
    machine: Model,
    /// What runs the guests' instructions.
    #[arg(long, value_enum, default_value_t)]
    accel: Accel,
}

/// What the login shell of the image prints when it waits for its first command.
const PROMPT: &str = "# ";
/// A boot that takes longer failed.
const SECONDS: u64 = 60;

/// Runs the command.
pub fn run(arguments: &BenchBootArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    let accel = arguments.accel.resolve()?;
    let mut firmware = firmware(arguments.machine)?;
    firmware.accel = accel;
    let mut rows = vec![("firmware".to_owned(), firmware, Vec::new())];
    for which in arguments.kernel.kernels() {
        if *which == Which::Linux && arguments.machine == Model::Microvm {
            continue;
        }
        let mut options = boot::Options::once(*which, &[]);
        options.machine_model(arguments.machine);
        options.accelerated_by(accel);
        let mut machine = boot::machine(&options, consent)?;
        machine.serial = qemu::Serial::Captured;
        machine.append.push_str(" quiet loglevel=1");
        rows.push((which.name().to_owned(), machine, Vec::new()));
    }
    for _ in 0..arguments.runs {
        for (name, machine, times) in &mut rows {
            let wanted = if name == "firmware" { "passed boot" } else { PROMPT };
            match qemu::run::time_to(machine, wanted, Limits::seconds(SECONDS))? {
                Some(time) => times.push(time),
                None => bail!("{name} did not show {wanted:?} within {SECONDS} s"),
            }
        }
    }
    println!(
        "{:<10}{:>10}{:>10}{:>10}   {} boots each on {} by {}, milliseconds to the first prompt",
        "",
        "median",
        "fastest",
        "slowest",
        arguments.runs,
        arguments.machine,
        accel.name()
    );
    for (name, _, times) in &mut rows {
        let [median, fastest, slowest] = summary(times).map(|time| time.as_secs_f64() * 1000.0);
        println!("{name:<10}{median:>10.0}{fastest:>10.0}{slowest:>10.0}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine with next to no kernel: QEMU, firmware and loading.
fn firmware(model: Model) -> Result<Machine> {
    let mut machine = Machine::bare(kernel::build_selftest(kernel::Safety::Balanced)?, "test=boot".into());
    machine.model = model;
    Ok(machine)
}

/// Median (of an even number the mean of the two in the middle), smallest, largest.
fn summary(times: &mut [Duration]) -> [Duration; 3] {
    times.sort_unstable();
    let middle = times.len() / 2;
    let median = match (times.get(middle), times.len() % 2) {
        (Some(upper), 0) => (times[middle - 1] + *upper) / 2,
        (Some(only), _) => *only,
        (None, _) => Duration::ZERO,
    };
    [median, times.first().copied().unwrap_or_default(), times.last().copied().unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_boots_is_the_mean_of_the_middle_two() {
        let mut times = [9, 1, 4, 2].map(Duration::from_secs);
        assert_eq!(summary(&mut times), [3, 1, 9].map(Duration::from_secs));
        assert_eq!(summary(&mut [Duration::from_secs(7)]), [7, 7, 7].map(Duration::from_secs));
    }
}
