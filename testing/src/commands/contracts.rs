//! `cargo xtask contracts [FILTER] [--kernel ours|linux|both]`: runs the contracts and compares our kernel with Linux.
//!
//! FILTER keeps the contracts whose name contains it; a comma separates several. With `--kernel ours` Linux's
//! remembered answers serve where the programs have not changed; with `both` Linux runs again; with `linux` it runs
//! again and is compared with its own remembered answers, which finds programs that are not deterministic. `--show`
//! prints both outputs of every contract that differs. For each of those `kwab`'s oracle names the first system call
//! that differs, of the excused ones with `--show` too, and of all with `--calls`. What differs runs once more under
//! both kernels, for the sake of busy machines. `--record N` takes Linux's answers from the repository where the
//! programs have not changed and asks Linux for the rest and for N more, others with each commit: where one of these
//! contradicts, it is asked for all. `--write` renews that record: with `--kernel linux` Linux is asked for all of it,
//! with `ours` for what is missing. `--syscalls` runs nothing and prints, for every system call of Linux, whether our
//! kernel answers it and which contracts use it; with `--write` it renews `testing/SYSCALLS.md`, which has the flags
//! too. Results for machines are in `build/results/contracts.json` and `.xml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use kwab::oracle::report::{self as oracle_report, Divergence, OracleReport};

use crate::contracts::coverage;
use crate::contracts::expected::{self, Expected, LinuxRecord};
use crate::contracts::oracle;
use crate::contracts::parted;
use crate::contracts::program::{self, Contract};
use crate::contracts::results::{self, ContractRow};
use crate::contracts::verdict::{self, Difference, Verdict};
use crate::image::Image;
use crate::jobs::{self, End, Guest, Report};
use crate::kernel::{self, Safety, Selection, Which};
use crate::paths;
use crate::results::{self as judged, Circumstances};
use crate::setup::{self, Consent, Tool};

/// Contracts whose first differing call is looked for: each takes two boots.
const MOST_ORACLES: usize = 24;
/// A contract of which both kernels answer every call alike, with children, signals and paths.
const ALIKE: &str = "processes/waitid_peeks_and_tells_the_reason";

/// ContractsArguments of `contracts`.
#[derive(Debug, Args)]
pub struct ContractsArguments {
    /// Parts of names, separated by commas; without it everything runs.
    filter: Option<String>,
    /// Which kernels run.
    #[arg(long, value_enum, default_value_t)]
    kernel: Selection,
    /// Show both outputs where they differ.
    #[arg(long)]
    show: bool,
    /// Compare all of them call by call, also those that agree: what then differs is noise, or their output hides it.
    #[arg(long, conflicts_with_all = ["show", "syscalls"])]
    calls: bool,
    /// List the system calls: answered by our kernel or not, and used by which contracts.
    #[arg(long)]
    syscalls: bool,
    /// Take Linux's answers from the repository where the programs are the same, and ask it again for this many.
    #[arg(long, value_name = "N", conflicts_with_all = ["filter", "syscalls"])]
    record: Option<usize>,
    /// Renew the record of Linux's answers in the repository; with --syscalls the page of system calls.
    #[arg(long, conflicts_with_all = ["filter", "record"])]
    write: bool,
    /// Which safety profile of our kernel.
    #[arg(long, value_enum, default_value_t)]
    safety: Safety,
    /// Number of CPUs of the guest.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    smp: u32,
}

impl ContractsArguments {
    /// All contracts under both kernels.
    pub fn both() -> Self {
        Self {
            filter: None,
            kernel: Selection::Both,
            show: false,
            calls: false,
            syscalls: false,
            record: None,
            write: false,
            safety: Safety::Balanced,
            smp: 2,
        }
    }
}

impl ContractsArguments {
    /// All contracts beside what the repository remembers of Linux, a tenth of it asked again.
    pub fn recorded() -> Self {
        Self { record: Some(50), ..Self::both() }
    }

    /// What strains memory and processes, under the kernel that checks itself most, beside Linux's remembered answers.
    pub fn fortress() -> Self {
        let filter = Some("vm/,processes/,threading/".to_owned());
        Self { filter, kernel: Selection::Ours, safety: Safety::Fortress, ..Self::both() }
    }
}

/// The programs, built, with the keys under which Linux's answers are remembered.
struct Batch {
    contracts: Vec<Contract>,
    keys: Vec<u64>,
    image: Image,
    linux: PathBuf,
    cpus: u32,
}

/// Runs the command.
pub fn run(arguments: &ContractsArguments, consent: Consent) -> Result<ExitCode> {
    if arguments.syscalls && arguments.write {
        let page = coverage::page(&program::find(None)?)?;
        paths::write(&coverage::page_file(), page.as_bytes())?;
        println!("{}", paths::shown(&coverage::page_file()));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.syscalls {
        print!("{}", coverage::table(&program::find(arguments.filter.as_deref())?)?);
        return Ok(ExitCode::SUCCESS);
    }
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let began = Circumstances::now();
    let batch = batch(arguments, consent)?;
    let mut memory = Expected::load()?;
    let before = memory.clone();
    let record = LinuxRecord::load(began.linux_series())?;
    let rules = match arguments.record {
        Some(count) => recorded_answers(&batch, &mut memory, &record, &record.sample(&began.commit, count))?,
        None => linux_answers(&batch, &mut memory, &record, |_| arguments.kernel != Selection::Ours)?,
    };
    memory.store()?;
    let boot = match arguments.kernel {
        Selection::Linux => None,
        _ => Some(kernel::build_with(arguments.safety)?),
    };
    let rows = match &boot {
        None => rows(&batch, rules, &BTreeMap::new(), |contract, key| before.answer(contract, key).cloned())?,
        Some(boot) => {
            let ours = run_under(&batch, Which::Ours, boot, &batch.contracts)?;
            let excuses = verdict::known_differences()?;
            let first = rows(&batch, ours, &excuses, |contract, _| rules.get(&contract.name).cloned())?;
            second_look(&batch, boot, first, &excuses)?
        }
    };
    show(&rows, arguments.show);
    if arguments.write {
        // With the answers of the second look, where there was one.
        let linux_alone = boot.is_none();
        let answers = rows.iter().map(|row| if linux_alone { &row.ours } else { &row.linux });
        LinuxRecord::write(began.linux_series(), batch.keys.iter().copied().zip(answers))?;
        println!("{}", paths::shown(&expected::record_file()));
    }
    if let Some(boot) = &boot {
        first_calls(&batch, boot, &asked(&rows, arguments), consent);
    }
    if arguments.kernel != Selection::Linux {
        let complete = arguments.filter.is_none() && arguments.safety == Safety::Balanced;
        results::write(&rows, complete, began)?;
    }
    let failed = rows.iter().filter(|row| row.verdict.is_failure());
    let failures: Vec<String> =
        failed.map(|row| format!("{} {}: {}", row.verdict.word(), row.name, row.verdict)).collect();
    judged::verdict(&failures)
}

fn batch(arguments: &ContractsArguments, consent: Consent) -> Result<Batch> {
    let contracts = program::find(arguments.filter.as_deref())?;
    let files = program::build(&contracts, consent)?;
    let linux = Which::Linux.image(consent)?;
    let keys = files.iter().map(|file| expected::key(file, &linux)).collect::<Result<_>>()?;
    let image = program::image(&contracts, &files, consent)?;
    Ok(Batch { contracts, keys, image, linux, cpus: arguments.smp })
}

/// Runs every contract that differs, or that Linux did not end in time, once more under both kernels: on a busy
/// machine a program's margins may not have sufficed under either. One that agrees then is [`Verdict::Unsteady`], which
/// is shown and does not fail. A machine that stopped by itself is not asked again: no load excuses a panic.
fn second_look(
    batch: &Batch,
    boot: &Path,
    mut rows: Vec<ContractRow>,
    excuses: &BTreeMap<String, Difference>,
) -> Result<Vec<ContractRow>> {
    let differs = |name: &str| {
        let row = rows.iter().find(|row| row.name == name);
        row.is_some_and(|row| match row.verdict {
            Verdict::Differs(_) => !row.ours.end.is_death(),
            Verdict::NoRule(_) => matches!(row.linux.end, End::Timeout(_)),
            _ => false,
        })
    };
    let again: Vec<Contract> = batch.contracts.iter().filter(|contract| differs(&contract.name)).cloned().collect();
    if again.is_empty() {
        return Ok(rows);
    }
    let ours = run_under(batch, Which::Ours, boot, &again)?;
    let linux = run_under(batch, Which::Linux, &batch.linux, &again)?;
    for row in &mut rows {
        let (Some(ours), Some(linux)) = (ours.get(&row.name), linux.get(&row.name)) else { continue };
        // What it answered once counts when it has no time to say so again.
        let linux = if linux.end.is_answer() { linux } else { &row.linux };
        let verdict = match verdict::judge(ours, linux, excuses.get(&row.name), &judged::today()) {
            Verdict::Same => Verdict::Unsteady(format!("agrees when run again; first {}", row.verdict)),
            verdict => verdict,
        };
        *row = ContractRow { name: row.name.clone(), verdict, ours: ours.clone(), linux: linux.clone() };
    }
    Ok(rows)
}

/// What Linux says to each contract: what it answers now to those for which `is_asked`, and those of which neither
/// memory knows; else what the memory of this machine or the record has.
fn linux_answers(
    batch: &Batch,
    memory: &mut Expected,
    record: &LinuxRecord,
    is_asked: impl Fn(&Contract) -> bool,
) -> Result<BTreeMap<String, Report>> {
    let keyed: Vec<_> = batch.contracts.iter().zip(batch.keys.iter().copied()).collect();
    let known =
        |contract: &Contract, key| record.answer(contract, key).or_else(|| memory.answer(contract, key)).cloned();
    let mut answers: BTreeMap<String, Report> = BTreeMap::new();
    let mut asked = Vec::new();
    for (contract, key) in &keyed {
        match known(contract, *key).filter(|_| !is_asked(contract)) {
            Some(report) => drop(answers.insert(contract.name.clone(), report)),
            None => asked.push((*contract).clone()),
        }
    }
    if !asked.is_empty() {
        answers.extend(run_under(batch, Which::Linux, &batch.linux, &asked)?);
    }
    println!("Linux: {} asked now, {} remembered", asked.len(), keyed.len() - asked.len());
    for (contract, key) in keyed {
        if let Some(report) = answers.get(&contract.name) {
            memory.remember(key, report.clone());
        }
    }
    Ok(answers)
}

/// What Linux says to each contract by the record, of which `sample` is asked again; if it contradicts, all of it. A
/// Linux that has no time to answer does not contradict.
fn recorded_answers(
    batch: &Batch,
    memory: &mut Expected,
    record: &LinuxRecord,
    sample: &[&str],
) -> Result<BTreeMap<String, Report>> {
    let mut answers = linux_answers(batch, memory, record, |contract| sample.contains(&contract.name.as_str()))?;
    let contradicts = |contract: &Contract, key: u64, answers: &BTreeMap<String, Report>| {
        let now = answers.get(&contract.name).filter(|now| now.end.is_answer());
        let both = now.zip(record.answer(contract, key));
        both.is_some_and(|(now, then)| (&now.lines, &now.end) != (&then.lines, &then.end))
    };
    let keyed = || batch.contracts.iter().zip(batch.keys.iter().copied());
    for (contract, key) in keyed() {
        let silent = answers.get_mut(&contract.name).filter(|now| !now.end.is_answer());
        if let Some((silent, then)) = silent.zip(record.answer(contract, key)) {
            println!("Linux did not answer {} now: {}", contract.name, silent.end);
            *silent = then.clone();
        }
    }
    let doubtful: Vec<_> = keyed().filter(|(contract, key)| contradicts(contract, *key, &answers)).collect();
    if doubtful.is_empty() {
        return Ok(answers);
    }
    // On a busy machine Linux runs out of a program's margins too.
    let programs: Vec<Contract> = doubtful.iter().map(|(contract, _)| (*contract).clone()).collect();
    let again = run_under(batch, Which::Linux, &batch.linux, &programs)?;
    let still = doubtful.iter().find(|(contract, key)| contradicts(contract, *key, &again));
    let Some((still, _)) = still else {
        let recorded = doubtful.iter().filter_map(|(contract, key)| record.answer(contract, *key).cloned());
        answers.extend(recorded.map(|report| (report.name.clone(), report)));
        return Ok(answers);
    };
    println!(
        "Linux answers {} otherwise than {}: it is asked for all",
        still.name,
        paths::shown(&expected::record_file())
    );
    linux_answers(batch, memory, &LinuxRecord::default(), |_| true)
}

fn guest<'a>(batch: &'a Batch, kernel: Which, boot: &'a Path) -> Guest<'a> {
    Guest { kernel, boot, image: &batch.image, cpus: batch.cpus, append: "norandmaps", label: "contracts" }
}

fn run_under(batch: &Batch, kernel: Which, boot: &Path, wanted: &[Contract]) -> Result<BTreeMap<String, Report>> {
    let guest = guest(batch, kernel, boot);
    let all: Vec<_> = wanted.iter().map(program::job).collect();
    let mut done = 0;
    let reports = jobs::run(&guest, &all, |report| {
        done += 1;
        eprintln!("{} {done}/{}: {} {}", kernel.name(), all.len(), report.name, report.end);
    })?;
    Ok(jobs::by_name(reports))
}

/// Judges each contract against its rule. One that is asked for the first time has only itself to agree with.
fn rows(
    batch: &Batch,
    mut ours: BTreeMap<String, Report>,
    excuses: &BTreeMap<String, Difference>,
    rule: impl Fn(&Contract, u64) -> Option<Report>,
) -> Result<Vec<ContractRow>> {
    let today = judged::today();
    let row = |(contract, key): (&Contract, &u64)| {
        let name = contract.name.clone();
        let ours = ours.remove(&name).with_context(|| format!("{name} has no report"))?;
        let linux = rule(contract, *key).unwrap_or_else(|| ours.clone());
        let verdict = verdict::judge(&ours, &linux, excuses.get(&name), &today);
        Ok(ContractRow { name, verdict, ours, linux })
    };
    batch.contracts.iter().zip(&batch.keys).map(row).collect()
}

/// The contracts that are to be compared call by call: those that differ, with `--show` the excused ones too, with
/// `--calls` all. A machine that died is not asked again.
fn asked<'r>(rows: &'r [ContractRow], arguments: &ContractsArguments) -> Vec<&'r ContractRow> {
    let is_asked = |row: &&ContractRow| match row.verdict {
        _ if arguments.calls => true,
        Verdict::Differs(_) => true,
        Verdict::Known(_) => arguments.show,
        _ => false,
    };
    let most = if arguments.calls { usize::MAX } else { MOST_ORACLES };
    rows.iter().filter(is_asked).filter(|row| !row.ours.end.is_death()).take(most).collect()
}

/// Prints the first call of each contract that was answered otherwise than by Linux. What cannot be had is said and
/// changes no verdict.
fn first_calls(batch: &Batch, boot: &Path, rows: &[&ContractRow], consent: Consent) {
    let mut alike = 0;
    for row in rows {
        let Some(contract) = batch.contracts.iter().find(|contract| contract.name == row.name) else { continue };
        println!("\n{}: the runs under Linux (good) and ours (bad), call by call", row.name);
        match first_call(batch, boot, contract, consent) {
            Ok(report) => {
                alike += usize::from(report.verdict == oracle_report::Verdict::Same);
                println!("{}", kwab::oracle::text(&report));
            }
            Err(error) => println!("cannot compare them: {error:#}"),
        }
    }
    if !rows.is_empty() {
        println!("{} compared call by call, {alike} without a difference", rows.len());
    }
}

fn first_call(batch: &Batch, boot: &Path, contract: &Contract, consent: Consent) -> Result<OracleReport> {
    let job = program::job(contract);
    let good = oracle::strace(&guest(batch, Which::Linux, &batch.linux), &job, consent)?;
    let bad = oracle::record(&guest(batch, Which::Ours, boot), &job)?;
    oracle::differences(&good, &bad, &job.words[0])
}

/// Runs the oracle on two contracts: of the first known difference the first call that differs must be one that the
/// kernel answered otherwise, and one that is as under Linux must not differ at all.
pub fn oracle_check(consent: Consent) -> Result<()> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let known = verdict::known_differences()?;
    let known = known.keys().next().context("no known difference is left: the oracle needs another case")?;
    for (name, differs) in [(known.as_str(), true), (ALIKE, false)] {
        let arguments = ContractsArguments { filter: Some(name.to_owned()), ..ContractsArguments::both() };
        let batch = batch(&arguments, consent)?;
        let contract = batch.contracts.first().with_context(|| format!("no contract {name}"))?;
        let report = first_call(&batch, &kernel::build()?, contract, consent)?;
        println!("{}", kwab::oracle::text(&report));
        let names_the_kernel = report.first.as_ref().is_some_and(Divergence::is_of_kernel);
        let is_right = if differs { names_the_kernel } else { report.verdict == oracle_report::Verdict::Same };
        ensure!(is_right, "the oracle on {name}: {:?}", report.first);
    }
    parted::check(consent)
}

fn show(rows: &[ContractRow], with_output: bool) {
    for row in rows.iter().filter(|row| row.verdict != Verdict::Same) {
        println!("{:<8} {:<44} {}", row.verdict.word(), row.name, row.verdict);
        if with_output && row.verdict.is_failure() {
            row.ours.lines.iter().for_each(|line| println!("         ours  | {line}"));
            row.linux.lines.iter().for_each(|line| println!("         linux | {line}"));
        }
    }
    let count = |word: &str| rows.iter().filter(|row| row.verdict.word() == word).count();
    let failures = rows.iter().filter(|row| row.verdict.is_failure()).count();
    let (all, same, known) = (rows.len(), count("same"), count("known"));
    println!("{all} contracts: {same} as Linux, {known} known differences, {failures} failures");
}
