//! `cargo xtask bench [FILTER] [OPTIONS]`: the 44 benchmarks and 22 BusyBox workloads, beside Linux in the same emulator.
//!
//! Both kernels run the same program from the same image with the same QEMU flags. By default the figures are guest
//! instructions per operation, which repeat exactly; `--wall` measures the host's time instead, the minimum of ten
//! interleaved runs. FILTER keeps the benchmarks whose name contains it; a comma separates several. Results are also
//! written to `build/results/bench.json`.
//!
//! `--gate` runs the slice of ten under our kernel alone and fails when one needs more than 2 % over the stored baseline;
//! `--save-baseline` stores what it measures.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;

use super::kernel::Selection;
use super::kernel::Which;
use crate::bench::baseline::{ALLOWED, Baseline, SLICE};
use crate::bench::method::{self, Timing};
use crate::bench::{Row, Run, compare, table};
use crate::paths;
use crate::setup::{self, Consent, Tool};

/// Its arguments.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Parts of names, separated by commas; without it everything runs.
    filter: Option<String>,
    /// Measure host time under plain TCG: minimum of interleaved runs.
    #[arg(long)]
    wall: bool,
    /// How many interleaved runs `--wall` makes.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Which kernels.
    #[arg(long, value_enum, default_value_t)]
    kernel: Selection,
    /// Repeat with this many differently padded images and show how far each figure moves.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    layout: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure the slice of ten under our kernel and fail on a regression.
    #[arg(long, conflicts_with_all = ["wall", "filter", "kernel"])]
    gate: bool,
    /// Store our kernel's figures as the new baseline.
    #[arg(long, conflicts_with = "wall")]
    save_baseline: bool,
}

impl Arguments {
    /// The slice of ten against the stored baseline.
    pub fn gate() -> Self {
        let kernel = Selection::Ours;
        Self { filter: None, wall: false, runs: 1, kernel, layout: 1, json: false, gate: true, save_baseline: false }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    let rows = selected(arguments)?;
    if arguments.gate {
        return gate(&rows, arguments.save_baseline, consent);
    }
    let timing = if arguments.wall { Timing::Wall } else { Timing::Instructions };
    let runs = measure(arguments, &rows, timing, consent)?;
    paths::write(&paths::build("results")?.join("bench.json"), &serde_json::to_vec_pretty(&runs)?)?;
    if arguments.save_baseline {
        store(&runs)?;
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&runs)?);
        return Ok(ExitCode::SUCCESS);
    }
    let unit = if arguments.wall { "ns per operation, minimum" } else { "guest instructions per operation" };
    match &runs[..] {
        [ours, linux] => print!("{}", compare::table(&compare::compare(ours, linux)?, unit)),
        runs => {
            let reference = |row: &Row| if arguments.wall { row.linux_wall } else { row.linux };
            runs.iter().for_each(|run| print!("{}", compare::single_table(run, &rows, reference, unit)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Our run before Linux's, as far as each was asked for.
fn measure(arguments: &Arguments, rows: &[Row], timing: Timing, consent: Consent) -> Result<Vec<Run>> {
    let kernels = arguments.kernel.kernels();
    let boots: Vec<_> = kernels.iter().map(|kernel| kernel.image(consent)).collect::<Result<_>>()?;
    let mut kept: Vec<Run> = Vec::new();
    let rounds = if arguments.wall { arguments.runs } else { 1 };
    for layout in 0..arguments.layout {
        // Odd sizes, so that page and cache-line phases both move.
        let image = method::image(rows, layout as usize * 12_289, consent)?;
        let mut runs: Vec<Run> = Vec::new();
        for round in 0..rounds {
            for (index, kernel) in kernels.iter().enumerate() {
                eprintln!("{} layout {} round {} of {rounds}", kernel.name(), layout + 1, round + 1);
                let run = method::measure(*kernel, &boots[index], &image, rows, timing)?;
                match runs.get_mut(index) {
                    Some(best) => best.keep_minimum(&run)?,
                    None => runs.push(run),
                }
            }
        }
        if layout == 0 {
            kept = runs;
        } else {
            show_movement(&kept, &runs);
        }
    }
    Ok(kept)
}

/// Figures that another layout of memory moves by more than the gate's two percent deserve no trust in the third digit.
fn show_movement(first: &[Run], again: &[Run]) {
    for (first, again) in first.iter().zip(again) {
        for (one, two) in first.figures.iter().zip(&again.figures) {
            let moved = two.per_operation() / one.per_operation();
            if !(1.0 / ALLOWED..=ALLOWED).contains(&moved) {
                println!("{} {}: {:+.1} % in another layout", first.kernel, one.name, (moved - 1.0) * 100.0);
            }
        }
    }
}

fn gate(rows: &[Row], save: bool, consent: Consent) -> Result<ExitCode> {
    let image = method::image(rows, 0, consent)?;
    let run = method::measure(Which::Ours, &Which::Ours.image(consent)?, &image, rows, Timing::Instructions)?;
    let Some(baseline) = Baseline::load()?.filter(|_| !save) else {
        store(&[run])?;
        println!("baseline stored; nothing to compare with before");
        return Ok(ExitCode::SUCCESS);
    };
    let regressions = baseline.regressions(&run);
    for worse in &regressions {
        let percent = (worse.now / worse.before - 1.0) * 100.0;
        println!(
            "{}: {:.1} instructions, {percent:+.1} % over the baseline's {:.1}",
            worse.name, worse.now, worse.before
        );
    }
    println!("{} benchmarks against the baseline, {} regressions", run.figures.len(), regressions.len());
    Ok(if regressions.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn store(runs: &[Run]) -> Result<()> {
    let ours = runs.iter().find(|run| run.kernel == Which::Ours.name());
    let ours = ours.ok_or_else(|| anyhow::anyhow!("a baseline holds our kernel's figures, and it did not run"))?;
    let mut baseline = Baseline::load()?.unwrap_or_default();
    baseline.update(ours);
    baseline.store()
}

fn selected(arguments: &Arguments) -> Result<Vec<Row>> {
    let mut rows = table()?;
    if arguments.gate {
        rows.retain(|row| SLICE.contains(&row.name.as_str()));
    } else if let Some(filter) = &arguments.filter {
        rows.retain(|row| filter.split(',').any(|part| row.name.contains(part)));
        ensure!(!rows.is_empty(), "no benchmark's name contains {filter}");
    }
    Ok(rows)
}
