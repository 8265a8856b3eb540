//! `kwab redact DUMP -o FILE|- --keep kernel|structure [--force] [--json]`, `kwab redact --rules`
//!
//! Makes a dump that may leave the machine: users' memory, registers, arguments, paths, names and log text are removed,
//! by a list of what may stay. The dump is written again with its own checksums and says itself what was removed, which
//! `kwab inspect` shows. `--rules` lists the fate of every field of the format. Status 0: written; 2: usage or I/O; 3:
//! written, but the dump that was read is damaged.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use kwab::redact::{Policy, redact};

use super::open_file;
use crate::cli::Redact;
use crate::failure::{DAMAGED, about, shown, system};
use crate::output::{self, Output};
use crate::render;
use crate::sharing::Keep;

/// Runs the command.
pub(crate) fn run(arguments: &Redact) -> Result<ExitCode> {
    if arguments.rules {
        output::text(&render::redact::rules())?;
        return Ok(ExitCode::SUCCESS);
    }
    let dump = arguments.dump.as_deref().context("give a dump")?;
    let policy = policy(arguments.keep.context("say with --keep what stays: kernel or structure")?);
    let output = Output::of(arguments.output.as_deref(), arguments.force, [dump])?.of_binary()?;
    if output.is_stdout() && arguments.json {
        bail!("--json and the dump would both go to stdout; name a file with -o");
    }
    let mut file = open_file(dump, arguments.which.number)?;
    file.verify_all();
    let mut outcome = None;
    output.write(|out| {
        outcome = Some(redact(&file, &shown(dump), policy, out)?);
        Ok(())
    })?;
    let mut report = outcome.ok_or_else(|| about(output.path(), system(&std::io::ErrorKind::Other.into())))?;
    report.output = if output.is_stdout() { "stdout".to_owned() } else { output.path().display().to_string() };
    output::beside(&report)?;
    let text = render::redact::redacted(&report);
    match (arguments.json, output.is_stdout()) {
        (true, _) => output::json(&report)?,
        (false, true) => output::remark(&text),
        (false, false) => output::text(&text)?,
    }
    Ok(ExitCode::from(if report.lost.is_empty() { 0 } else { DAMAGED }))
}

/// The library's name of a policy.
pub(crate) const fn policy(keep: Keep) -> Policy {
    match keep {
        Keep::Kernel => Policy::Kernel,
        Keep::Structure => Policy::Structure,
    }
}
