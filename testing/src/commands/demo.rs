//! `cargo xtask demo`: a crash, from the running program to the page that explains it, with the commands one would type.
//!
//! Our kernel boots in QEMU with its debug events on and runs `/bin/crasher`, a program with an ordinary mistake. What the
//! serial console says is kept, `kwab import` cuts it into a dump, and `kwab inspect` shows it. Every command is shown
//! before it runs, so that the same can be done by hand with any other log.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use super::boot;
use super::kernel::Which;
use crate::paths;
use crate::process::Call;
use crate::qemu::{self, Limits, run::Next};
use crate::setup::{self, Consent, Tool};

/// Runs the command.
pub fn run(consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    Call::cargo().args(["build", "--quiet", "--locked", "-p", "kwab-cli"]).folder(paths::root()).show()?;
    println!("$ cargo xtask boot --debug all -- /bin/crasher >build/demo/serial.log");
    let arguments = boot::Arguments::once(Which::Ours, &["/bin/crasher"]).debugging("all");
    let outcome = qemu::run(&boot::machine(&arguments, consent)?, Limits::seconds(120), |_| Next::Go)?;
    let log = paths::build("demo")?.join("serial.log");
    paths::write(&log, &outcome.serial)?;
    ensure!(!outcome.serial.is_empty(), "the kernel said nothing ({:?})", outcome.ending);
    let dump = paths::shown(&log.with_file_name("crash.kwab"));
    kwab(&["import", "--force", &paths::shown(&log), "-o", &dump])?;
    println!();
    kwab(&["inspect", &dump])?;
    Ok(ExitCode::SUCCESS)
}

fn kwab(words: &[&str]) -> Result<()> {
    println!("$ kwab {}", words.join(" "));
    Ok(Call::new(paths::target().join("debug/kwab")).args(words).folder(paths::root()).show()?)
}
