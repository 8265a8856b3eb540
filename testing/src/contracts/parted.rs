//! Checks that recorded paths name the function of a fault that is planted in our kernel, where no call is refused.
//!
//! `fork-shares` lets a child run in its parent's memory: every call is answered as it should be, and the program sees
//! other memory. The same program runs with the fault and without, and the paths through the kernel must part in the
//! function that decides whose memory a child gets. It runs without once more by a slower clock, as users are told to
//! do: a tick of the timer that falls into an exception of one run alone does not part them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use kwab::oracle::{Paths, Recorded, text};
use kwab::symbols::{Image, IndexCache};

use super::oracle;
use crate::boot::{self, Options};
use crate::kernel::{self, Which};
use crate::paths;
use crate::qemu::run::Next;
use crate::qemu::{self, Clock, Limits};
use crate::setup::Consent;
use crate::ways::{self, Recorder};

const COMMAND: [&str; 3] = ["/bin/exam", "--live", "children"];
const FAULT: &str = "inject=fork-shares";
/// Where the fault is.
const GUILTY: &str = "kernel::task::clone::child_memory";
/// Among how many it has to be named: the switch of the fault itself and what was not called come first.
const AMONG: usize = 5;

/// Runs the check.
pub fn check(consent: Consent) -> Result<()> {
    let kernel = kernel::build()?;
    let recorder = Recorder::of(&kernel, consent)?;
    let good = record("good", ("", Clock::Instructions), &recorder, consent)?;
    let again = record("again", ("", Clock::SlowInstructions), &recorder, consent)?;
    let bad = record("bad", (FAULT, Clock::Instructions), &recorder, consent)?;
    let mut report = oracle::differences(&good.0, &bad.0, COMMAND[0])?;
    let image = Image::open(&kernel, &IndexCache::in_dir(paths::build("symbols")?)).context("the kernel's symbols")?;
    let of = |run: &(PathBuf, PathBuf)| -> Result<Paths> { Ok(Paths::of(&fs::read(&run.1)?)?) };
    let (of_good, of_again, of_bad) = (of(&good)?, of(&again)?, of(&bad)?);
    let recorded = |paths| Recorded { paths, image: &image };
    report.follow_paths(recorded(&of_good), recorded(&of_bad), &[of_again]);
    println!("{}", text(&report));
    let named = report.behind.iter().take(AMONG).any(|function| function == GUILTY);
    ensure!(named, "with {FAULT} the paths name {:?}, not {GUILTY}", report.behind);
    Ok(())
}

/// The log and the paths of a run.
fn record(
    name: &str,
    (fault, clock): (&str, Clock),
    recorder: &Recorder,
    consent: Consent,
) -> Result<(PathBuf, PathBuf)> {
    let folder = paths::build("results")?;
    let (log, file) = (folder.join(format!("parted-{name}.log")), folder.join(format!("parted-{name}.paths")));
    let mut machine = boot::machine(&Options::once(Which::Ours, &COMMAND), consent)?;
    machine.append = format!("{} {} {fault}", machine.append, ways::OPTIONS);
    machine.clock = clock;
    recorder.put(&mut machine, &file);
    let outcome = qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    paths::write(&log, &outcome.serial)?;
    Ok((log, file))
}
