//! `cargo xtask setup`: installs everything that any command needs, and fetches crates, Debian's Linux and BusyBox.
//!
//! Other commands do the part they need by themselves; this one is for doing it all at once, before a train ride. Each
//! step is named as it begins; a summary says what is there and how long it took.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::process::Call;
use crate::setup::{self, Consent};
use crate::{debian, guest, paths};

/// One step: its name, and what it puts where.
type SetupStep = (&'static str, fn(Consent) -> Result<String>);

const STEPS: &[SetupStep] = &[
    ("packages", |consent| setup::require(&setup::all(), consent).map(|()| setup::present())),
    ("Rust targets", |_| setup::require_targets().map(|()| setup::TARGETS.join(", "))),
    ("crates", |_| crates()),
    ("Linux", |consent| shown(debian::linux(consent))),
    ("BusyBox", |consent| shown(debian::busybox(consent))),
    ("guest programs", |consent| shown(guest::program("oneshot", consent))),
];

/// Runs the command.
pub fn run(consent: Consent) -> Result<ExitCode> {
    let started = Instant::now();
    let mut lines = Vec::new();
    for (name, step) in STEPS {
        eprintln!("== {name}");
        let since = Instant::now();
        let there = step(consent)?;
        lines.push(format!("{name:<14} {:>6.1} s  {there}", since.elapsed().as_secs_f64()));
    }
    lines.iter().for_each(|line| println!("{line}"));
    println!("{:<14} {:>6.1} s", "in all", started.elapsed().as_secs_f64());
    println!("next: cargo xtask demo");
    Ok(ExitCode::SUCCESS)
}

fn shown(path: Result<PathBuf>) -> Result<String> {
    path.map(|path| paths::shown(&path))
}

/// Fetches the sources of all crates, so that what is built later needs no network.
fn crates() -> Result<String> {
    Call::cargo().args(["fetch", "--locked"]).folder(paths::root()).stage("fetching crates")?;
    Ok("all sources of Cargo.lock".to_owned())
}
