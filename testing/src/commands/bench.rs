//! `cargo xtask bench [FILTER] [OPTIONS]`: the 50 benchmarks and 22 BusyBox workloads, beside Linux in the same
//! emulator.
//!
//! Both kernels run the same program from the same image with the same QEMU flags. By default the figures are guest
//! instructions per operation, which repeat exactly; `--wall` measures the host's time instead, the minimum of ten
//! interleaved runs. Instructions are split into those of the program and those of the kernel, for which alone a second
//! mean is printed. FILTER keeps the benchmarks whose name contains it; a comma separates several. Results are also
//! written to `build/results/bench.json`.
//!
//! `--layout N` repeats everything with N differently padded images and shows how far each figure moves (`±`, half the
//! distance of its extremes).
//!
//! `--profile` shows where the instructions of the chosen benchmarks go under our kernel: exact counts by function and
//! source file from a QEMU plugin, then the kernel's own profile of calls, spans and page faults
//! (`debug=profile,trace`) as kwab imports it. `--safety all` (or a list) builds our kernel in its safety profiles and
//! prints them side by side.
//!
//! `--recorders` measures our kernel with and without its always-on recorders and fails when one of the four rows of
//! [`RECORDED`] needs more than 3 % for them.
//!
//! `--scaling` measures how the throughput of seven operations grows with the processors (`--processors`, one worker
//! on each), by the host's clock, and shows for which spin locks our processors waited; FILTER chooses among the
//! operations.
//!
//! `--memory` measures the bytes that a process, a thread, an open file and so on need, and a system at rest, beside
//! Linux; FILTER chooses among the rows.
//!
//! `--gate` runs the slice of fifteen under our kernel alone and fails when one needs more than 1 % over the stored
//! baseline; `--save-baseline` stores what it measures.

use std::process::ExitCode;

use anyhow::{Result, anyhow, ensure};
use clap::{Args, ValueEnum as _};

use crate::bench::baseline::{Baseline, Regression, SLICE};
use crate::bench::memory::MemoryRun;
use crate::bench::method::{self, Timing};
use crate::bench::{self, BenchRow, Run, compare, memory, profile, scaling, spans, table};
use crate::kernel::{self, Safety, Selection, Which};
use crate::qemu::Accel;
use crate::results::Circumstances;
use crate::results::junit::{Case, Outcome};
use crate::setup::{self, Consent, Tool};
use crate::{paths, results};

/// BenchArguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// Parts of names, separated by commas; without it everything runs.
    filter: Option<String>,
    /// Measure host time under plain TCG: minimum of interleaved runs.
    #[arg(long)]
    wall: bool,
    /// How many interleaved runs `--wall` makes.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// What runs the guest's instructions, for `--wall`.
    #[arg(long, value_enum, default_value_t, requires = "wall")]
    accel: Accel,
    /// The kernels to measure.
    #[arg(long, value_enum, default_value_t)]
    kernel: Selection,
    /// Repeat with this many differently padded images and show how far each figure moves.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    layout: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Show where the instructions go under our kernel, function by function and as the kernel itself accounts for
    /// them.
    #[arg(long, conflicts_with_all = ["wall", "kernel", "layout", "json"])]
    profile: bool,
    /// Functions and files that `--profile` shows of each benchmark.
    #[arg(long, default_value_t = 16, value_name = "N")]
    top: usize,
    /// Compare our kernel's safety profiles: `all`, or names separated by commas.
    #[arg(long, value_name = "LIST", value_parser = safety_list)]
    #[arg(conflicts_with_all = ["wall", "kernel", "profile", "layout"])]
    safety: Option<SafetyList>,
    /// Measure the slice of fifteen under our kernel and fail on a regression.
    #[arg(long, conflicts_with_all = ["wall", "filter", "kernel", "profile", "safety"])]
    gate: bool,
    /// Measure what our kernel's always-on recorders cost, and fail above three percent.
    #[arg(long, conflicts_with_all = ["wall", "kernel", "gate"])]
    recorders: bool,
    /// Measure how throughput grows with the processors, and for which locks they wait.
    #[arg(long, conflicts_with_all = ["wall", "profile", "layout", "safety", "gate", "recorders", "save_baseline"])]
    scaling: bool,
    /// Numbers of processors for `--scaling`, the first of which the others are compared with.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [1, 2])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=16))]
    processors: Vec<u32>,
    /// How long `--scaling` counts each operation.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(10..=60_000))]
    milliseconds: u32,
    /// Measure the bytes of memory that each kind of object needs, and a system at rest.
    #[arg(long, conflicts_with_all = ["wall", "profile", "layout", "safety", "gate", "recorders", "scaling"])]
    memory: bool,
    /// Store our kernel's figures as the new baseline.
    #[arg(long, conflicts_with = "wall")]
    save_baseline: bool,
}

/// What `--safety` names.
#[derive(Clone, Debug)]
struct SafetyList(Vec<Safety>);

fn safety_list(text: &str) -> Result<SafetyList> {
    if text == "all" {
        return Ok(SafetyList(Safety::ALL.to_vec()));
    }
    let one = |name: &str| Safety::from_str(name, true).map_err(|_| anyhow!("no safety profile is named `{name}`"));
    let mut list: Vec<Safety> = text.split(',').map(one).collect::<Result<_>>()?;
    if !list.contains(&Safety::Balanced) {
        list.push(Safety::Balanced);
    }
    Ok(SafetyList(list))
}

impl BenchArguments {
    /// The slice of fifteen against the stored baseline.
    pub fn gate() -> Self {
        Self {
            filter: None,
            wall: false,
            runs: 1,
            accel: Accel::Tcg,
            kernel: Selection::Ours,
            layout: 1,
            json: false,
            profile: false,
            top: 0,
            safety: None,
            gate: true,
            recorders: false,
            scaling: false,
            processors: Vec::new(),
            milliseconds: 0,
            memory: false,
            save_baseline: false,
        }
    }
}

/// Runs the command.
pub fn run(arguments: &BenchArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    if arguments.scaling {
        return show_scaling(arguments, consent);
    }
    if arguments.memory {
        return show_memory(arguments, consent);
    }
    let rows = selected(arguments)?;
    if arguments.gate {
        return gate(&rows, arguments.save_baseline, consent);
    }
    if arguments.recorders {
        return recorders(&rows, consent);
    }
    if arguments.profile {
        return show_profiles(&rows, arguments.top, consent);
    }
    if let Some(SafetyList(list)) = &arguments.safety {
        return compare_safety(arguments, &rows, list, consent);
    }
    let began = Circumstances::now();
    let timing = if arguments.wall { Timing::Wall } else { Timing::Instructions };
    let runs = measure(arguments, &rows, timing, consent)?;
    let complete = arguments.filter.is_none() && arguments.kernel == Selection::Both;
    let name = if arguments.wall { "bench-wall" } else { "bench" };
    results::keep(name, complete, began, &runs)?;
    if arguments.save_baseline {
        store(&runs)?;
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&runs)?);
        return Ok(ExitCode::SUCCESS);
    }
    let unit = if arguments.wall { "ns per operation, minimum" } else { "guest instructions per operation" };
    match &runs[..] {
        [ours, linux] => {
            let pairs = compare::compare(ours, linux)?;
            results::keep_junit(name, complete, &pairs.iter().map(case).collect::<Vec<_>>())?;
            print!("{}", compare::table(&pairs, &bench::bounds()?, unit));
        }
        runs => {
            let reference = |row: &BenchRow| if arguments.wall { row.linux_wall } else { row.linux };
            runs.iter().for_each(|run| print!("{}", compare::single_table(run, &rows, reference, unit)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// For CI a benchmark fails above nine tenths of Linux, the goal of every row.
fn case(pair: &compare::Pair) -> Case {
    let ratio = pair.ratio();
    let outcome = match ratio > 0.9 {
        false => Outcome::Pass,
        true => Outcome::Failure(format!("{ratio:.3} of Linux ({:.1} to {:.1})", pair.ours, pair.theirs)),
    };
    Case { class: "bench".into(), name: pair.name.clone(), outcome }
}

/// The instruction profile of all rows from one boot, then the kernel's own account of each.
fn show_profiles(rows: &[BenchRow], top: usize, consent: Consent) -> Result<ExitCode> {
    let began = Circumstances::now();
    let boot = Which::Ours.image(consent)?;
    let image = method::image(rows, 0, consent)?;
    let profiles = profile::profile(&boot, &image, rows, consent)?;
    results::keep("profile", false, began, &profiles)?;
    for (row, profile) in rows.iter().zip(&profiles) {
        print!("{}", profile.table(top));
        let image = method::image(std::slice::from_ref(row), 0, consent)?;
        let (figure, accounts, dump) = spans::accounts(&boot, &image, row)?;
        print!("{}", spans::table(&figure, &accounts));
        println!("  recorded in {}\n", paths::shown(&dump));
    }
    Ok(ExitCode::SUCCESS)
}

/// Every kernel on every number of processors, from one image.
fn show_scaling(arguments: &BenchArguments, consent: Consent) -> Result<ExitCode> {
    let began = Circumstances::now();
    let wanted =
        |row: &&str| arguments.filter.as_ref().is_none_or(|filter| filter.split(',').any(|part| row.contains(part)));
    let rows: Vec<&str> = scaling::ROWS.into_iter().filter(wanted).collect();
    ensure!(!rows.is_empty(), "no operation's name contains {}", arguments.filter.as_deref().unwrap_or_default());
    let image = scaling::image(&rows, arguments.milliseconds, consent)?;
    let mut runs = Vec::new();
    for kernel in arguments.kernel.kernels() {
        let boot = kernel.image(consent)?;
        for processors in &arguments.processors {
            eprintln!("{} on {processors}", kernel.name());
            runs.push(scaling::measure(*kernel, &boot, &image, (&rows, arguments.milliseconds), *processors)?);
        }
    }
    let complete = arguments.filter.is_none() && arguments.kernel == Selection::Both;
    results::keep("bench-scaling", complete, began, &runs)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&runs)?);
    } else {
        print!("{}", scaling::table(&runs, &rows));
    }
    Ok(ExitCode::SUCCESS)
}

/// Every row under every kernel, each in a boot of its own.
fn show_memory(arguments: &BenchArguments, consent: Consent) -> Result<ExitCode> {
    let began = Circumstances::now();
    let wanted =
        |row: &&str| arguments.filter.as_ref().is_none_or(|filter| filter.split(',').any(|part| row.contains(part)));
    let rows: Vec<&str> = memory::ROWS.into_iter().map(|(row, _)| row).filter(wanted).collect();
    ensure!(!rows.is_empty(), "no row's name contains {}", arguments.filter.as_deref().unwrap_or_default());
    let mut runs = Vec::new();
    for kernel in arguments.kernel.kernels() {
        let boot = kernel.image(consent)?;
        let mut run = MemoryRun { kernel: kernel.name().into(), machine_mib: 0, rows: Vec::new() };
        for row in &rows {
            eprintln!("{} {row}", kernel.name());
            let (machine_mib, row) = memory::measure(*kernel, &boot, row, consent)?;
            run.machine_mib = machine_mib;
            run.rows.push(row);
        }
        runs.push(run);
    }
    let complete = arguments.filter.is_none() && arguments.kernel == Selection::Both;
    results::keep("bench-memory", complete, began, &runs)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&runs)?);
    } else {
        print!("{}", memory::table(&runs));
    }
    Ok(ExitCode::SUCCESS)
}

/// The same image under the kernel of each profile.
fn compare_safety(
    arguments: &BenchArguments,
    rows: &[BenchRow],
    list: &[Safety],
    consent: Consent,
) -> Result<ExitCode> {
    let began = Circumstances::now();
    let boots: Vec<_> = list.iter().map(|safety| kernel::build_with(*safety)).collect::<Result<_>>()?;
    let image = method::image(rows, 0, consent)?;
    let mut runs = Vec::new();
    for (safety, boot) in list.iter().zip(&boots) {
        eprintln!("{}", safety.name());
        let machine = method::machine(Which::Ours, boot, &image, Timing::Instructions);
        runs.push(method::measure_on(&machine, safety.name(), image.1, rows)?.0);
    }
    results::keep("bench-safety", arguments.filter.is_none() && list == Safety::ALL, began, &runs)?;
    let named: Vec<(&str, &Run)> = list.iter().map(|safety| safety.name()).zip(&runs).collect();
    print!("{}", compare::side_by_side(&named, Safety::Balanced.name())?);
    Ok(ExitCode::SUCCESS)
}

/// Our run before Linux's, as far as each was asked for.
fn measure(arguments: &BenchArguments, rows: &[BenchRow], timing: Timing, consent: Consent) -> Result<Vec<Run>> {
    let kernels = arguments.kernel.kernels();
    let boots: Vec<_> = kernels.iter().map(|kernel| kernel.image(consent)).collect::<Result<_>>()?;
    let mut layouts: Vec<Vec<Run>> = Vec::new();
    let accel = arguments.accel.resolve()?;
    let rounds = if arguments.wall { arguments.runs } else { 1 };
    for layout in 0..arguments.layout {
        // Odd sizes, so that page and cache-line phases both move.
        let image = method::image(rows, layout as usize * 12_289, consent)?;
        let mut runs: Vec<Run> = Vec::new();
        for round in 0..rounds {
            for (index, kernel) in kernels.iter().enumerate() {
                eprintln!("{} layout {} round {} of {rounds}", kernel.name(), layout + 1, round + 1);
                let run = match timing {
                    Timing::Instructions => profile::measure_apart(*kernel, &boots[index], &image, rows, consent)?,
                    Timing::Wall => {
                        let mut machine = method::machine(*kernel, &boots[index], &image, timing);
                        machine.accel = accel;
                        method::measure_on(&machine, kernel.name(), image.1, rows)?.0
                    }
                };
                match runs.get_mut(index) {
                    Some(best) => best.keep_minimum(&run)?,
                    None => runs.push(run),
                }
            }
        }
        layouts.push(runs);
    }
    let mut first = layouts.remove(0);
    if !layouts.is_empty() {
        for (index, run) in first.iter_mut().enumerate() {
            let others: Vec<Run> = layouts.iter().map(|runs| runs[index].clone()).collect();
            run.note_spread(&others)?;
        }
    }
    Ok(first)
}

fn gate(rows: &[BenchRow], save: bool, consent: Consent) -> Result<ExitCode> {
    let image = method::image(rows, 0, consent)?;
    let run = method::measure(Which::Ours, &Which::Ours.image(consent)?, &image, rows, Timing::Instructions)?;
    let Some(baseline) = Baseline::load()?.filter(|_| !save) else {
        store(&[run])?;
        println!("baseline stored; nothing to compare with before");
        return Ok(ExitCode::SUCCESS);
    };
    let regressions = baseline.regressions(&run);
    let cases: Vec<Case> = run.figures.iter().map(|figure| gate_case(&figure.name, &regressions)).collect();
    results::keep_junit("bench-gate", true, &cases)?;
    println!("{} benchmarks against the baseline, {} regressions", run.figures.len(), regressions.len());
    results::verdict(&cases.iter().filter_map(Case::failure).collect::<Vec<_>>())
}

/// The rows for which the cost of the recorders is promised, and the most they may cost.
pub const RECORDED: [&str; 4] = ["getpid", "pipe_pingpong", "fork_exit", "exec_true"];
const MOST_FOR_RECORDERS: f64 = 1.03;

fn recorders(rows: &[BenchRow], consent: Consent) -> Result<ExitCode> {
    let image = method::image(rows, 0, consent)?;
    let measure = |boot: &std::path::Path| method::measure(Which::Ours, boot, &image, rows, Timing::Instructions);
    let without = measure(&kernel::build_without_recorders()?)?;
    let with = measure(&Which::Ours.image(consent)?)?;
    let mut dear = Vec::new();
    for (with, without) in with.figures.iter().zip(&without.figures) {
        let ratio = with.per_operation() / without.per_operation();
        let promised = RECORDED.contains(&with.name.as_str());
        let (percent, with_one, without_one) = ((ratio - 1.0) * 100.0, with.per_operation(), without.per_operation());
        println!("{:<20} {with_one:>14.1} {without_one:>14.1} {percent:>+7.2} %", with.name);
        if promised && ratio > MOST_FOR_RECORDERS {
            dear.push(format!("{}: the recorders cost {percent:+.2} %, more than promised", with.name));
        }
    }
    results::verdict(&dear)
}

fn gate_case(name: &str, regressions: &[Regression]) -> Case {
    let worse = regressions.iter().find(|worse| worse.name == name);
    let text = |worse: &Regression| {
        let percent = (worse.now / worse.before - 1.0) * 100.0;
        format!("{:.1} instructions, {percent:+.1} % over the baseline's {:.1}", worse.now, worse.before)
    };
    let outcome = worse.map_or(Outcome::Pass, |worse| Outcome::Failure(text(worse)));
    Case { class: "bench-gate".into(), name: name.to_owned(), outcome }
}

fn store(runs: &[Run]) -> Result<()> {
    let ours = runs.iter().find(|run| run.kernel == Which::Ours.name());
    let ours = ours.ok_or_else(|| anyhow::anyhow!("a baseline holds our kernel's figures, and it did not run"))?;
    let mut baseline = Baseline::load()?.unwrap_or_default();
    baseline.update(ours);
    baseline.store()
}

fn selected(arguments: &BenchArguments) -> Result<Vec<BenchRow>> {
    let mut rows = table()?;
    if arguments.recorders && arguments.filter.is_none() {
        rows.retain(|row| RECORDED.contains(&row.name.as_str()));
    } else if arguments.gate {
        rows.retain(|row| SLICE.contains(&row.name.as_str()));
    } else if let Some(filter) = &arguments.filter {
        rows.retain(|row| filter.split(',').any(|part| row.name.contains(part)));
        ensure!(!rows.is_empty(), "no benchmark's name contains {filter}");
    }
    Ok(rows)
}
