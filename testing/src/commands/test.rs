//! `cargo xtask test [STEP...]`: everything that must hold before a change lands, on a machine that has only Rust and
//! apt.
//!
//! The steps run in the order of the table below; a step that fails does not keep the later ones from running. What
//! failed is said again at the end, where a log that was cut still has it, and the last line counts tests and steps: `N
//! passed, N failed`. Naming steps runs only those (`cargo xtask test fmt clippy`). A step that needs packages which
//! cannot be fetched here (source packages of some suites, a kernel's headers) is SKIPPED: said aloud, counted apart,
//! never passed.

use std::io::{BufRead as _, BufReader};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use stage::Pulse;

use super::{
    bench, book, boot, browser, contracts, crashes, dist, events, exam, examples, fuzz_syscalls, hogs, hostile,
    house_rules, kernel_names, linux_crashes, lost, mutants, outside, package, parquet, perfetto, python, sarif,
    selftest, sizes, suite,
};
use crate::binary;
use crate::boot::Options;
use crate::debian::NoSource;
use crate::kernel::Which;
use crate::process::Call;
use crate::setup::{self, Consent};
use crate::suites::Suite;
use crate::{paths, readme};

/// TestArguments of `test`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// Only these steps.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(STEPS.iter().map(|step| step.name)))]
    steps: Vec<String>,
}

/// One step of `cargo xtask test`: its name and what it runs.
struct Step {
    name: &'static str,
    run: fn(Consent, &mut Tally) -> Result<()>,
}

/// Tests counted so far.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// All steps, the quick ones first.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: |_, _| cargo(&["fmt", "--all", "--check"]) },
    Step { name: "house-rules", run: |_, _| house_rules::run().map(drop) },
    Step {
        name: "clippy",
        run: |_, _| cargo(&[&["clippy", "--all-targets"], HOST, &["--", "-D", "warnings"]].concat()),
    },
    Step { name: "format-bare", run: |_, _| format_for_bare_machines() },
    Step {
        name: "clippy-kernel",
        run: |_, _| cargo(&[&["clippy", "--locked"], KERNEL, &["--", "-D", "warnings"]].concat()),
    },
    Step {
        name: "clippy-fortress",
        run: |_, _| cargo(&[&["clippy", "--locked"], FORTRESS, &["--", "-D", "warnings"]].concat()),
    },
    Step { name: "docs", run: |_, _| docs() },
    // The links of the pages as they lie, then the book made of them, with its reference and pictures.
    Step { name: "book", run: |consent, _| book::run(&book::BookArguments::default(), consent).map(drop) },
    Step { name: "tests", run: |_, tally| tests(tally) },
    Step { name: "python", run: |consent, _| python::run(&python::PythonArguments::default(), consent).map(drop) },
    Step { name: "kernel-names", run: |_, _| kernel_names::check() },
    Step { name: "hostile-slice", run: |_, _| hostile::slice() },
    Step { name: "browser", run: |consent, _| browser::run(&browser::BrowserArguments::default(), consent).map(drop) },
    Step { name: "perfetto", run: |_, _| perfetto_check() },
    Step { name: "parquet", run: |_, _| parquet::run(&parquet::ParquetArguments::default()).map(drop) },
    Step { name: "package", run: |_, _| package::run(false).map(drop) },
    Step { name: "dist", run: |consent, _| dist::run(&dist::DistArguments { quick: true }, consent).map(drop) },
    Step { name: "sarif", run: |_, _| sarif::run().map(drop) },
    Step {
        name: "selftest",
        run: |consent, _| selftest::run(&selftest::SelftestArguments::default(), consent).map(drop),
    },
    Step { name: "boot", run: |consent, _| boot(Which::Ours, consent) },
    Step { name: "memory-sizes", run: |consent, _| sizes::check(consent) },
    Step { name: "events", run: |consent, _| events::run(consent).map(drop) },
    Step { name: "crashes", run: |consent, _| crashes::run(&crashes::CrashesArguments::quick(), consent).map(drop) },
    Step { name: "exam", run: |consent, _| exam::run(&exam::ExamArguments::once(), consent).map(drop) },
    Step { name: "examples", run: |consent, _| example_kernels(consent) },
    Step { name: "readme", run: |_, _| readme_commands() },
    Step { name: "boot-linux", run: |consent, _| boot(Which::Linux, consent) },
    Step {
        name: "contracts",
        run: |consent, _| contracts::run(&contracts::ContractsArguments::recorded(), consent).map(drop),
    },
    Step { name: "oracle", run: |consent, _| contracts::oracle_check(consent) },
    Step {
        name: "fortress",
        run: |consent, _| contracts::run(&contracts::ContractsArguments::fortress(), consent).map(drop),
    },
    Step { name: "programs", run: |consent, _| suite(Suite::Programs, consent) },
    Step { name: "busybox-slice", run: |consent, _| suite(Suite::Busybox, consent) },
    Step { name: "posix-slice", run: |consent, _| suite(Suite::Posix, consent) },
    Step {
        name: "fuzz-syscalls",
        run: |consent, _| fuzz_syscalls::run(&fuzz_syscalls::FuzzSyscallsArguments::slice(), consent).map(drop),
    },
    Step { name: "hogs", run: |consent, _| hogs::run(&hogs::HogsArguments::all(), consent).map(drop) },
    Step {
        name: "linux-crashes",
        run: |consent, _| linux_crashes::run(&linux_crashes::LinuxCrashesArguments::slice(), consent).map(drop),
    },
    Step { name: "lost-machine", run: |consent, _| lost::check(consent) },
    Step { name: "outside", run: |consent, _| outside::check(consent) },
    Step { name: "mutants-slice", run: |consent, _| mutants::slice(consent) },
    Step { name: "bench-gate", run: |consent, _| bench::run(&bench::BenchArguments::gate(), consent).map(drop) },
];

/// Every crate that builds for the host.
const HOST: &[&str] = &["--locked", "--workspace", "--exclude", "kernel", "--exclude", "machine"];

/// The crates of the kernel, for the machine it runs on.
const KERNEL: &[&str] =
    &["-p", "kernel", "-p", "machine", "--features", "kernel/selftest", "--target", "x86_64-unknown-none"];

/// The kernel with every check. The one without any (`ludicrous`) is not tested, since it is not shipped.
const FORTRESS: &[&str] = &["-p", "kernel", "--features", "fortress", "--target", "x86_64-unknown-none"];

/// Runs the command.
pub fn run(arguments: &TestArguments, consent: Consent) -> Result<ExitCode> {
    setup::require_targets()?;
    let started = Instant::now();
    if let Some(free) = free_space().filter(|free| *free < NEEDED) {
        let (free, needed) = (gigabytes(free), gigabytes(NEEDED));
        eprintln!("WARNING: {free} are free below {}, and all steps need {needed}", paths::shown(paths::root()));
    }
    let mut tally = Tally::default();
    let mut lines = Vec::new();
    let mut ends = Vec::new();
    let chosen = |step: &&Step| arguments.steps.is_empty() || arguments.steps.iter().any(|name| name == step.name);
    for step in STEPS.iter().filter(chosen) {
        eprintln!("== {}", step.name);
        let (since, used) = (Instant::now(), processor_seconds());
        let pulse = Pulse::of(step.name);
        let result = (step.run)(consent, &mut tally);
        drop(pulse);
        let word = tally.step(&result);
        let seconds = since.elapsed().as_secs_f64();
        let busy = match (used, processor_seconds()) {
            (Some(before), Some(after)) => format!("  {:.1} processors", (after - before) / seconds.max(0.1)),
            _ => String::new(),
        };
        let free = free_space().map_or(String::new(), |free| format!("  {} free", gigabytes(free)));
        lines.push(format!("{:<16} {word:<7} {seconds:>7.1} s{busy}{free}", step.name));
        if let Err(error) = result {
            eprintln!("{}: {error:#}", if word == SKIPPED { "WARNING: nothing was tested" } else { "error" });
            ends.push(format!("{} {word}: {error:#}", step.name));
        }
    }
    lines.iter().for_each(|line| println!("{line}"));
    println!("{:<16} {:<7} {:>7.1} s", "in all", "", started.elapsed().as_secs_f64());
    let skipped = if tally.skipped > 0 { format!(", {} SKIPPED", tally.skipped) } else { String::new() };
    ends.iter().for_each(|end| println!("{end}"));
    println!("{} passed, {} failed{skipped}", tally.passed, tally.failed);
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Bytes of the disk that all steps need from a clean clone on: what they build, 6.3 GB, and temporary files.
const NEEDED: u64 = 9_000_000_000;

/// Bytes that are free where everything is built; a step that fails for want of them says so in many ways.
fn free_space() -> Option<u64> {
    let disk = rustix::fs::statvfs(paths::root()).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// Seconds of processors that this program and the programs it has waited for have used; the four counters of
/// `/proc/self/stat` (proc(5): 14 to 17) are in `USER_HZ`, a hundred to the second.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may have any characters; the third field follows it.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<u64> = fields.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum::<u64>() as f64 / 100.0)
}

/// The word for a step that could not run here.
const SKIPPED: &str = "SKIPPED";

impl Tally {
    /// Counts a step; gives the word for its line.
    fn step(&mut self, result: &Result<()>) -> &'static str {
        match result {
            Ok(()) => {
                self.passed += 1;
                "ok"
            }
            Err(error) if error.downcast_ref::<NoSource>().is_some() => {
                self.skipped += 1;
                SKIPPED
            }
            Err(_) => {
                self.failed += 1;
                "FAILED"
            }
        }
    }
}

fn suite(suite: Suite, consent: Consent) -> Result<()> {
    suite::run(&suite::SuiteArguments::slice(suite), consent).map(drop)
}

/// The example kernels are formatted, without a warning, and die as they should.
fn example_kernels(consent: Consent) -> Result<()> {
    let folder = paths::root().join("examples");
    let target = paths::target().join("examples");
    Call::cargo().args(["fmt", "--all", "--check"]).folder(&folder).show()?;
    let clippy = Call::cargo().args(["clippy", "--quiet", "--locked", "--release", "--target-dir"]).arg(target);
    clippy.args(["--", "-D", "warnings"]).folder(&folder).show()?;
    examples::run(&examples::ExamplesArguments::default(), consent).map(drop)
}

fn cargo(arguments: &[&str]) -> Result<()> {
    Ok(Call::cargo().args(arguments).folder(paths::root()).show()?)
}

/// The crate that the kernel embeds must build where there is no operating system, on both architectures.
fn format_for_bare_machines() -> Result<()> {
    setup::TARGETS.iter().try_for_each(|target| cargo(&["build", "--locked", "-p", "kwab-format", "--target", target]))
}

fn docs() -> Result<()> {
    let call = Call::cargo().args(["doc", "--no-deps"]).args(HOST).folder(paths::root());
    Ok(call.env("RUSTDOCFLAGS", "-D warnings").show()?)
}

/// Runs all tests, shows what cargo prints, and counts.
fn tests(tally: &mut Tally) -> Result<()> {
    // The Python module has no tests in Rust, and its libraries would have the others built with other features.
    let host = [HOST, &["--exclude", "kwab-python"]].concat();
    let call = Call::cargo().args(["test", "--no-fail-fast"]).args(host).folder(paths::root());
    let mut child = call.spawn()?;
    let output = child.stdout.take().context("cargo's output is not piped")?;
    let (mut passed, mut failed) = (0, 0);
    let mut told = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if let Some(counts) = summary(&line) {
            passed += counts.0;
            failed += counts.1;
        }
        if let Some(test) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            told.push(test.to_owned());
        }
    }
    let status = child.wait()?;
    tally.passed += passed;
    tally.failed += failed;
    ensure!(passed > 0, "no test ran");
    if !status.success() {
        bail!("`{call}` ended with {status}; {failed} tests failed: {}", told.join(", "));
    }
    Ok(())
}

/// Passed and failed of a `test result:` line.
fn summary(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let count = |word: &str| {
        let before = rest.split(word).next()?;
        before.split_whitespace().last()?.parse().ok()
    };
    Some((count(" passed")?, count(" failed")?))
}

fn readme_commands() -> Result<()> {
    binary::kwab()?;
    let count = readme::check(&paths::target().join("debug"))?;
    ensure!(count > 0, "no page shows a command");
    println!("{count} commands of the README and of docs/ print what is shown");
    Ok(())
}

fn perfetto_check() -> Result<()> {
    let code = perfetto::run(&perfetto::PerfettoArguments::default())?;
    ensure!(code == ExitCode::SUCCESS, "a judge of Perfetto traces found something wrong");
    Ok(())
}

/// The kernel, the image and the one-shot protocol work: a program's own status comes back.
fn boot(kernel: Which, consent: Consent) -> Result<()> {
    let arguments = Options::once(kernel, &["sh", "-c", "grep -c ^root: /etc/passwd && exit 7"]);
    let code = boot::run(&arguments, consent)?;
    ensure!(code == ExitCode::from(7), "the status of a command in the guest did not come back");
    boot::login(kernel, consent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_source_packages_skips_and_does_not_pass() {
        let mut tally = Tally::default();
        let unreachable = Err(anyhow::anyhow!("no route to host").context(NoSource::of("busybox")).context("a suite"));
        assert_eq!(tally.step(&unreachable), SKIPPED);
        assert_eq!(tally.step(&Err(anyhow::anyhow!("does not build"))), "FAILED");
        assert_eq!((tally.passed, tally.failed, tally.skipped), (0, 1, 1));
    }

    #[test]
    fn the_time_of_a_program_that_was_waited_for_is_counted() {
        let before = processor_seconds().expect("proc is mounted");
        let loop_of_shell = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", loop_of_shell]).status().expect("it runs").success());
        assert!(processor_seconds() > Some(before));
    }

    #[test]
    fn a_summary_line_gives_both_counts_and_other_lines_none() {
        let line = "test result: FAILED. 31 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.06s";
        assert_eq!(summary(line), Some((31, 2)));
        assert_eq!(summary("test house::budgets::tests::x ... ok"), None);
    }
}
