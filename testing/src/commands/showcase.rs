//! `cargo xtask showcase`: makes the crash that the README begins with, and the symbols that lie beside it.
//!
//! The kernel boots with the bug `use-after-free` planted, as the exam has it, and what it leaves is kept as
//! `docs/first/crash.kwab`. `docs/first/symbols/kernel.debug` has the kernel's names and the source lines of every
//! function that a stack of that dump can pass (`kwab symbols slim`), so that a clone shows both without a build.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};

use crate::exam::{self, QUESTIONS};
use crate::process::Call;
use crate::setup::{self, Consent, Tool};
use crate::{binary, paths};

/// The planted bug.
const BUG: &str = "use-after-free";
/// The most bytes that the dump and its symbols may have together.
const MOST_BYTES: u64 = 1 << 20;

/// Runs the command.
pub fn run(consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let question = QUESTIONS.iter().find(|question| question.name() == BUG).context(BUG)?;
    let room = super::exam::room(question, consent)?;
    let (answer, _) = exam::sit(question, &room)?;
    let answer = answer.context("the guest left no dump")?;
    ensure!(question.is_answered(&answer.triage), "the first hypothesis is not the bug; run it again");
    let folder = paths::root().join("docs/first");
    fs::create_dir_all(folder.join("symbols"))?;
    let (dump, symbols) = (folder.join("crash.kwab"), folder.join("symbols/kernel.debug"));
    paths::write(&dump, &answer.dump)?;
    let kwab = Call::new(binary::kwab()?).folder(paths::root()).env("COLUMNS", "120");
    let slim = kwab.clone().args(["symbols", "slim", "--force", "--symbols"]).arg(&room.kernel);
    slim.arg("--source").arg(paths::root()).arg(&dump).capture().context("the small symbol file")?;
    let bytes = answer.dump.len() as u64 + fs::metadata(&symbols)?.len();
    ensure!(bytes < MOST_BYTES, "dump and symbols have {bytes} bytes, {MOST_BYTES} are allowed");
    let section = ["inspect", "--section", "triage,bt,code"];
    print!("{}", kwab.args(section).arg(&dump).capture_any()?.stdout);
    println!("{}: {bytes} bytes with the symbols", paths::shown(&dump));
    Ok(ExitCode::SUCCESS)
}
