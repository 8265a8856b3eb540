//! `kwab bisect --param NAME=LOW..HIGH|NAME=A,B,C [--dump FILE] [--signature S] [--repeat N] [--json] -- COMMAND…`
//!
//! Bisects a boot parameter to the first value that crashes. Each `{}` in the command becomes
//! `NAME=VALUE`. What a run did is read from the dump that it leaves in `--dump`: with the signature it is the crash,
//! with another one it says nothing, without a dump all is well. Without `--dump` the command's own status decides, as
//! for `git bisect run`.
//!
//! `--inject A,B,…` tries each of these faults (`inject=A`) instead: they have no order to search in.
//!
//! Without either the command runs with one setting only, and the status is the answer for `git bisect run`: 0 good, 1
//! bad, 125 cannot be judged. With one: 0 when the boundary was found, 1 when there is none to find, 2 when a run
//! failed.
//!
//! ```console
//! $ kwab bisect --param prefault_max=0..512 --dump crash.kwab -- cargo xtask boot --append {} -- /bin/test
//! prefault_max=0      good
//! prefault_max=512    bad   3f2c9a10
//! …
//! the crash begins at prefault_max=257 (prefault_max=256 is good)
//! ```

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use kwab::bisect::report::{BisectReport, Outcome, SCHEMA, Tried};
use kwab::bisect::{Search, Step, Values, Verdict};
use kwab::model::{Depth, Dump};
use kwab::report::inspect::{cause_of, signature_of};

use crate::cli::Bisect;
use crate::failure::{about, system};
use crate::output;

/// Runs the command.
pub(crate) fn run(arguments: &Bisect) -> Result<ExitCode> {
    let mut trial = Trial { arguments, signature: arguments.signature.clone(), tried: Vec::new() };
    let end = match &arguments.param {
        Some(param) => search(&mut trial, &Values::parse(param)?)?,
        None if arguments.inject.is_empty() => {
            trial.judge("")?;
            End { outcome: Outcome::Single, good: None, bad: None }
        }
        None => each(&mut trial)?,
    };
    let End { outcome, good, bad } = end;
    let status = match (outcome, trial.tried.last()) {
        (Outcome::Single, Some(tried)) => tried.verdict.status(),
        (Outcome::Found | Outcome::Between | Outcome::Some, _) => 0,
        _ => 1,
    };
    let report = BisectReport { schema: SCHEMA, signature: trial.signature, tried: trial.tried, outcome, good, bad };
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else if outcome != Outcome::Single {
        say(&report.sentence())?;
    }
    if let (Outcome::EndSkipped, Some(bad)) = (outcome, report.bad) {
        bail!("cannot judge {bad}, an endpoint of the range");
    }
    Ok(ExitCode::from(status))
}

/// How a search ended, and at which settings.
struct End {
    outcome: Outcome,
    good: Option<String>,
    bad: Option<String>,
}

/// The binary search.
fn search(trial: &mut Trial<'_>, values: &Values) -> Result<End> {
    let mut search = Search::new(values.last());
    if trial.arguments.dump.is_some() && trial.signature.is_none() {
        // The crash of the last value is the one that is looked for, so it is tried first.
        search.record(values.last(), trial.judge(&values.setting(values.last()))?);
    }
    loop {
        let at = |index| Some(values.setting(index));
        let (outcome, good, bad) = match search.step() {
            Step::Try(index) => {
                let verdict = trial.judge(&values.setting(index))?;
                search.record(index, verdict);
                continue;
            }
            Step::Found { good, bad } => (Outcome::Found, at(good), at(bad)),
            Step::Between { good, bad } => (Outcome::Between, at(good), at(bad)),
            Step::Same(Verdict::Bad) => (Outcome::Always, None, None),
            Step::Same(_) => (Outcome::Never, None, None),
            Step::EndSkipped(index) => (Outcome::EndSkipped, None, at(index)),
        };
        return Ok(End { outcome, good, bad });
    }
}

/// Every injected fault by itself.
fn each(trial: &mut Trial<'_>) -> Result<End> {
    let mut bad = None;
    for name in &trial.arguments.inject {
        let setting = format!("inject={name}");
        if trial.judge(&setting)? == Verdict::Bad {
            bad = bad.or(Some(setting));
        }
    }
    let outcome = if bad.is_some() { Outcome::Some } else { Outcome::Never };
    Ok(End { outcome, good: None, bad })
}

/// The command and what is looked for.
struct Trial<'a> {
    arguments: &'a Bisect,
    signature: Option<String>,
    tried: Vec<Tried>,
}

impl Trial<'_> {
    /// Runs the command as often as asked for, notes what the setting did, and prints it.
    fn judge(&mut self, setting: &str) -> Result<Verdict> {
        let (mut verdicts, mut signatures) = (Vec::new(), Vec::new());
        for _ in 0..self.arguments.repeat {
            let (verdict, signature) = self.once(setting)?;
            verdicts.push(verdict);
            signatures.extend(signature);
        }
        signatures.sort();
        signatures.dedup();
        let verdict = Verdict::of_runs(&verdicts);
        let bad_runs = verdicts.iter().filter(|run| **run == Verdict::Bad).count() as u32;
        let (setting, runs) = (setting.to_owned(), self.arguments.repeat);
        let tried = Tried { setting, verdict, runs, bad_runs, signatures };
        if !self.arguments.json {
            say(&tried.row())?;
        }
        self.tried.push(tried);
        Ok(verdict)
    }

    fn once(&mut self, setting: &str) -> Result<(Verdict, Option<String>)> {
        if let Some(dump) = &self.arguments.dump {
            remove_stale(dump)?;
        }
        let mut words = self.arguments.command.iter().map(|word| word.replace("{}", setting));
        let program = words.next().context("missing command")?;
        let mut command = Command::new(&program);
        command.args(words).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        let status = command.status().with_context(|| program.clone())?;
        match &self.arguments.dump {
            None => Ok((Verdict::of_status(status.code()), None)),
            Some(_) if status.code() == Some(125) => Ok((Verdict::Skip, None)),
            Some(dump) => self.of_dump(dump),
        }
    }

    /// What the dump of a run says; the first crash is the one that is looked for when none was named.
    fn of_dump(&mut self, path: &Path) -> Result<(Verdict, Option<String>)> {
        if !path.exists() {
            return Ok((Verdict::Good, None));
        }
        let dump = Dump::open(path, Depth::Catalogue).map_err(|error| about(path, error))?;
        if cause_of(&dump).is_none() {
            return Ok((Verdict::Good, None));
        }
        let signature = signature_of(&dump);
        let wanted = self.signature.get_or_insert_with(|| signature.clone());
        let verdict = if *wanted == signature { Verdict::Bad } else { Verdict::Skip };
        Ok((verdict, Some(signature)))
    }
}

/// Removes the dump of the run before, and refuses to remove what cannot be one.
fn remove_stale(dump: &Path) -> Result<()> {
    match std::fs::symlink_metadata(dump) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(about(dump, system(&error))),
        Ok(meta) if meta.is_file() => std::fs::remove_file(dump).map_err(|error| about(dump, system(&error))),
        Ok(_) => Err(about(dump, "--dump: is not a regular file; it is never removed, name another file")),
    }
}

fn say(line: &str) -> Result<()> {
    output::text(&format!("{line}\n"))
}
