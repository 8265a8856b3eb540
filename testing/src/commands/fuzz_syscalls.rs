//! `cargo xtask fuzz-syscalls [--seed S] [--count N | --minutes M] [--smp N] [--mem MIB]`: lets an unprivileged fuzzer
//! of system calls attack a kernel.
//!
//! Each seed is a boot. In the guest workers without privilege make random calls (`testing/guest/fuzz`), beside a heart
//! that must beat, processes of root and of another user that must not notice anything, and files that must not change.
//! A finding is also a panic, silence, a privileged call that succeeds, memory that does not come back. Its seed,
//! console, dump, triage and the smallest sequence of calls that still fails lie in `build/results/fuzz`. Without
//! `--smp` and `--mem` the seeds take turns on machines of 1, 2 and 4 CPUs and 128 MiB to 2 GiB. `--only NUMBER=STEPS`
//! runs what shrinking printed.
//!
//! Under `--kernel linux` a finding is a mistake of the fuzzer.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::contracts::coverage;
use crate::fuzz::record::{self, Record};
use crate::fuzz::{Bench, Case, shrink};
use crate::kernel::Which;
use crate::paths;
use crate::results::{self, Circumstances};
use crate::setup::{self, Consent, Tool};

/// FuzzSyscallsArguments of `fuzz-syscalls`.
#[derive(Debug, Args)]
pub struct FuzzSyscallsArguments {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 1, conflicts_with = "minutes")]
    count: u64,
    /// Seeds one after the other until so many minutes have passed.
    #[arg(long)]
    minutes: Option<u64>,
    /// Longest time of a seed, in seconds of the guest.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Most programs of a seed.
    #[arg(long, default_value_t = 100_000)]
    programs: u32,
    /// Programs at the same time.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=8))]
    workers: u32,
    /// Number of CPUs.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16))]
    smp: Option<u32>,
    /// Memory in MiB.
    #[arg(long, value_parser = clap::value_parser!(u32).range(96..=2048))]
    mem: Option<u32>,
    /// The kernel to test.
    #[arg(long, value_enum, default_value_t)]
    kernel: Which,
    /// No such call, so that what it leads to does not hide the rest; several times for several.
    #[arg(long)]
    without: Vec<String>,
    /// Only this program, or these of its steps (`17=0:3-9,1:0-4`); several times for several.
    #[arg(long)]
    only: Vec<String>,
    /// Leave findings as they are.
    #[arg(long)]
    no_shrink: bool,
    /// Begin the totals at zero, instead of adding to those that are kept.
    #[arg(long)]
    restart: bool,
    /// Whether this is the part of the test of everything, which counts for nothing.
    #[arg(skip)]
    slice: bool,
}

impl FuzzSyscallsArguments {
    /// Two seeds that always ask the same, on machines of 1 and 2 CPUs.
    pub fn slice() -> Self {
        Self {
            seed: 15,
            count: 2,
            minutes: None,
            seconds: 90,
            programs: 400,
            workers: 3,
            smp: None,
            mem: None,
            kernel: Which::Ours,
            without: Vec::new(),
            only: Vec::new(),
            no_shrink: false,
            restart: true,
            slice: true,
        }
    }

    fn case(&self, seed: u64) -> Case {
        let turn = usize::try_from(seed % 15).unwrap_or_default();
        Case {
            seed,
            seconds: self.seconds,
            programs: self.programs,
            workers: self.workers,
            cpus: self.smp.unwrap_or(CPUS[turn % CPUS.len()]),
            memory: self.mem.unwrap_or(MEMORY[turn % MEMORY.len()]),
            without: self.without.clone(),
            only: self.only.clone(),
        }
    }
}

/// The machines that take turns.
const CPUS: [u32; 3] = [1, 2, 4];
const MEMORY: [u32; 5] = [256, 512, 128, 1024, 2048];

/// Runs the command.
pub fn run(arguments: &FuzzSyscallsArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let began = Circumstances::now();
    let bench = Bench::new(arguments.kernel, consent)?;
    let name = match (arguments.kernel, arguments.slice) {
        (_, true) => "fuzz-slice",
        (Which::Ours, false) => record::NAME,
        _ => "fuzz-linux",
    };
    let mut record = if arguments.restart { Record::default() } else { Record::so_far(name)? };
    let started = Instant::now();
    let mut failures = Vec::new();
    let last = arguments.seed + if arguments.minutes.is_some() { u64::MAX / 2 } else { arguments.count };
    for seed in arguments.seed..last {
        if arguments.minutes.is_some_and(|most| started.elapsed() >= Duration::from_secs(most * 60)) {
            break;
        }
        failures.extend(one(&bench, &arguments.case(seed), (arguments, &began.commit), &mut record)?);
        results::keep(name, arguments.only.is_empty() && arguments.without.is_empty(), began.clone(), &record)?;
    }
    let answered = coverage::answered()?;
    println!("{}", record.table(&answered));
    results::verdict(&failures)
}

/// Runs one case; what it found, each as a line.
fn one(
    bench: &Bench,
    case: &Case,
    (arguments, commit): (&FuzzSyscallsArguments, &str),
    record: &mut Record,
) -> Result<Vec<String>> {
    let answer = bench.run(case)?;
    let mut findings = answer.report.findings.clone();
    findings.extend(record::forbidden(&answer));
    let machine = format!("seed {}, {} CPUs, {} MiB", case.seed, case.cpus, case.memory);
    let (programs, calls) = answer.report.done.map_or((0, 0), |done| (done.0, done.1));
    let word = if findings.is_empty() { "ok" } else { "FINDING" };
    println!("{word:<8} {machine}: {programs} programs, {calls} calls, {:.0} s", answer.seconds);
    record.note((case, commit), &answer, findings.clone());
    let Some(first) = findings.first() else { return Ok(Vec::new()) };
    findings.iter().for_each(|finding| println!("         {}: {}", finding.kind, finding.text));
    answer.triage.iter().for_each(|line| println!("         triage: {line}"));
    record::evidence(case, &answer, &findings, None)?;
    let shrunk = if arguments.no_shrink { None } else { Some(shrink::shrink(bench, case, first)?) };
    let stem = record::evidence(case, &answer, &findings, shrunk.as_ref())?;
    if let Some(shrunk) = shrunk {
        print!("{}", shrunk.text);
    }
    let line = |finding: &crate::fuzz::Finding| {
        format!("{machine}: {}: {}; evidence in {}.*", finding.kind, finding.text, paths::shown(&stem))
    };
    Ok(findings.iter().map(line).collect())
}
