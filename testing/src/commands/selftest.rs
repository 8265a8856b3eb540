//! `cargo xtask selftest [NAME...] [--machine pc|q35|microvm]`: boots the machine crate's own tests, one boot each.
//!
//! They are a second kernel (`kernel/selftest`) that runs the one test named on its command line. What it prints must
//! contain the text of every line of `kernel/selftest/expected/NAME.txt` (where `{machine}` is the machine type), in
//! that order, and QEMU must end with the status that `LIST.txt` gives for it beside the number of processors it wants
//! (and further words for the command line). Four kinds of words are not on the command line: `cpu=MODEL` is for QEMU
//! and `safety=fortress` for the build; with `differs=WORD` the test is booted four times, and the lines that begin
//! with the word must not be the same in all of them; with `repeats=WORD` it is booted twice, and they must.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::kernel::{self, Safety};
use crate::paths;
use crate::qemu::{self, Ending, Limits, Machine, Model, run::Next};
use crate::results;
use crate::setup::{self, Consent, Tool};

/// SelftestArguments of `selftest`.
#[derive(Debug, Default, Args)]
pub struct SelftestArguments {
    /// Names of tests; without any, all run.
    names: Vec<String>,
    /// QEMU's machine type.
    #[arg(long, value_enum, default_value_t)]
    machine: Model,
}

/// One line of `LIST.txt`.
#[derive(Debug, PartialEq, Eq)]
struct Test {
    name: String,
    cpus: u32,
    status: i32,
    /// QEMU's CPU model, unless it is the usual one.
    cpu: Option<&'static str>,
    /// The profile it needs.
    safety: Safety,
    /// What is compared between boots.
    compared: Option<LineComparison>,
    /// Further words for the command line.
    options: String,
}

/// Which lines of several boots are compared: those that begin with the word.
#[derive(Debug, PartialEq, Eq)]
enum LineComparison {
    /// The lines that begin with this word must differ from boot to boot.
    Differ(String),
    /// The lines that begin with this word must be the same in every boot.
    Repeat(String),
}

/// The slowest takes a second on an idle machine.
const SECONDS: u64 = 60;

/// Runs the command.
pub fn run(arguments: &SelftestArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    let folder = paths::root().join("kernel/selftest/expected");
    let mut tests = list(&paths::read(&folder.join("LIST.txt"))?)?;
    tests.retain(|test| arguments.names.is_empty() || arguments.names.contains(&test.name));
    ensure!(!tests.is_empty(), "no self test of that name");
    let mut programs: Vec<(Safety, PathBuf)> = Vec::new();
    let mut failures = Vec::new();
    for test in &tests {
        let expected = paths::read(&folder.join(&test.name).with_extension("txt"))?;
        let expected = expected.replace("{machine}", &arguments.machine.to_string());
        let program = match programs.iter().find(|(safety, _)| *safety == test.safety) {
            Some((_, program)) => program.clone(),
            None => {
                let program = kernel::build_selftest(test.safety)?;
                programs.push((test.safety, program.clone()));
                program
            }
        };
        match check(test, &program, arguments.machine, &expected)? {
            None => println!("ok      {}{}", test.name, test.cpu.map(|cpu| format!(" ({cpu})")).unwrap_or_default()),
            Some(text) => {
                println!("FAILED  {}: {text}", test.name);
                failures.push(format!("{}: {text}", test.name));
            }
        }
    }
    println!("{} self tests on {}, {} failed", tests.len(), arguments.machine, failures.len());
    results::verdict(&failures)
}

/// What is wrong with a test, or nothing.
fn check(test: &Test, program: &Path, model: Model, expected: &str) -> Result<Option<String>> {
    let (boots, word) = match &test.compared {
        None => (1, None),
        Some(LineComparison::Differ(word)) => (4, Some(word)),
        Some(LineComparison::Repeat(word)) => (2, Some(word)),
    };
    let mut variants = BTreeSet::new();
    for _ in 0..boots {
        match boot(test, program, model, expected)? {
            Ok(lines) => {
                variants.insert(lines.into_iter().find(|line| word.is_some_and(|word| line.starts_with(word))))
            }
            Err(text) => return Ok(Some(text)),
        };
    }
    let good = match &test.compared {
        None => true,
        Some(_) if variants.contains(&None) => false,
        Some(LineComparison::Differ(_)) => variants.len() > 1,
        Some(LineComparison::Repeat(_)) => variants.len() == 1,
    };
    Ok((!good).then(|| format!("{boots} boots printed {variants:?}")))
}

/// Boots once; the lines printed, or what is wrong.
fn boot(test: &Test, program: &Path, model: Model, expected: &str) -> Result<Result<Vec<String>, String>> {
    let mut machine =
        Machine::bare(program.to_owned(), format!("test={} {}", test.name, test.options).trim_end().to_owned());
    machine.model = model;
    machine.cpus = test.cpus;
    machine.cpu = test.cpu.unwrap_or(machine.cpu);
    let mut lines = Vec::new();
    let outcome = qemu::run(&machine, Limits::seconds(SECONDS), |line| {
        lines.push(line.to_owned());
        Next::Go
    })?;
    if let Some(missing) = first_missing(expected, &lines) {
        return Ok(Err(format!("`{missing}` was not printed in the expected order; it printed\n{}", lines.join("\n"))));
    }
    if outcome.ending != Ending::Stopped(Some(test.status)) {
        return Ok(Err(format!("ended with {:?}, not with QEMU's status {}", outcome.ending, test.status)));
    }
    Ok(Ok(lines))
}

/// The first expected line that does not come after those before it.
fn first_missing<'a>(expected: &'a str, printed: &[String]) -> Option<&'a str> {
    let mut rest = printed.iter();
    expected.lines().find(|line| !rest.any(|printed| printed.contains(line.trim_end())))
}

fn list(text: &str) -> Result<Vec<Test>> {
    let test = |line: &str| {
        let mut fields = line.split_whitespace();
        let mut next = || fields.next().with_context(|| format!("kernel/selftest/expected/LIST.txt: `{line}`"));
        let (name, cpus, status) = (next()?.to_owned(), next()?.parse()?, next()?.parse()?);
        let (mut cpu, mut safety, mut compared, mut options) = (None, Safety::Balanced, None, Vec::new());
        for word in fields {
            match word.split_once('=') {
                Some(("cpu", name)) => cpu = Some(model(name)?),
                Some(("safety", name)) => safety = profile(name)?,
                Some(("differs", word)) => compared = Some(LineComparison::Differ(word.to_owned())),
                Some(("repeats", word)) => compared = Some(LineComparison::Repeat(word.to_owned())),
                _ => options.push(word),
            }
        }
        Ok(Test { name, cpus, status, cpu, safety, compared, options: options.join(" ") })
    };
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(test).collect()
}

/// The CPU models a test may want.
fn model(name: &str) -> Result<&'static str> {
    const MODELS: &[&str] = &["max", "qemu64"];
    MODELS
        .iter()
        .find(|known| **known == name)
        .copied()
        .with_context(|| format!("no CPU model `{name}` for self tests"))
}

fn profile(name: &str) -> Result<Safety> {
    Safety::ALL.into_iter().find(|safety| safety.name() == name).with_context(|| format!("no safety profile `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_lines_may_have_others_between_them_but_not_another_order() {
        let printed = ["a", "x", "b"].map(String::from);
        assert_eq!(first_missing("a\nb\n", &printed), None);
        assert_eq!(first_missing("b\na\n", &printed), Some("a"));
    }

    #[test]
    fn the_list_names_processors_and_status() {
        let tests = list("boot 1 1\nstop 2 1\n").unwrap();
        let stop = Test {
            name: "stop".into(),
            cpus: 2,
            status: 1,
            cpu: None,
            safety: Safety::Balanced,
            compared: None,
            options: String::new(),
        };
        assert_eq!(tests[1], stop);
        let old = &list("boot 1 1 dumpmem=1M cpu=qemu64 safety=fortress\n").unwrap()[0];
        assert_eq!((old.cpu, old.safety, old.options.as_str()), (Some("qemu64"), Safety::Fortress, "dumpmem=1M"));
        let several = &list("places 1 1 nokaslr repeats=image\n").unwrap()[0];
        assert_eq!(several.compared, Some(LineComparison::Repeat("image".into())));
        assert_eq!(several.options, "nokaslr");
        assert!(list("boot 1 1 cpu=none\n").is_err() && list("boot 1 1 safety=none\n").is_err());
        assert!(list("boot 1\n").is_err());
    }
}
