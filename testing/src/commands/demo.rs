//! `cargo xtask demo`: a program dies, then the kernel, and what `kwab` makes of it, with the commands one would type.
//!
//! Our kernel boots in QEMU with memory set aside for dumps. In it a BusyBox shell runs out of stack, then the kernel
//! is made to read where nothing is. What the serial console says is kept as well. `kwab import` takes the dumps out of
//! the memory and out of the log; `kwab triage` and `kwab inspect` explain them. Every command is shown before it runs,
//! so that the same can be done by hand with any other machine.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};

use crate::binary;
use crate::boot;
use crate::kernel::{self, Which};
use crate::paths;
use crate::process::Call;
use crate::qemu::{self, Limits, run::Next};
use crate::setup::{self, Consent, Tool};

/// The program that dies, and then the kernel: a shell function that calls itself for ever, a wild read.
const SCRIPT: &str = "sh -c 'f() { f; }; f'; echo c fault >/proc/sysrq-trigger";

/// Runs the command.
pub fn run(consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    heading(1, "build kwab and the kernel");
    binary::kwab()?;
    kernel::build()?;
    heading(2, "a program dies in the guest, then the kernel");
    let folder = paths::build("demo")?;
    let (memory, log) = (folder.join("crash.mem"), folder.join("serial.log"));
    for entry in fs::read_dir(&folder)?.flatten() {
        // What the README's commands make stands here too, a directory of dumps among it.
        let path = entry.path();
        let removed = if entry.file_type()?.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("cannot remove {}", paths::shown(&path)))?;
    }
    let shown = (paths::shown(&memory), paths::shown(&log));
    println!(
        "$ cargo xtask boot --debug process,signal,panic --dumpmem {} -- sh -c \"{SCRIPT}\" >{}",
        shown.0, shown.1
    );
    let arguments = boot::Options::once(Which::Ours, &["sh", "-c", SCRIPT]).debugging("process,signal,panic");
    let mut machine = boot::machine(&arguments, consent)?;
    machine.keep_dumps_in(&memory)?;
    let outcome = qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    paths::write(&log, &outcome.serial)?;
    ensure!(!outcome.serial.is_empty(), "the kernel printed nothing ({:?})", outcome.ending);
    print!("{}", last_words(&outcome.serial));
    heading(3, "take the dumps out of the guest's memory and of its serial log");
    let (kernel, program, told) =
        (folder.join("crash-1.kwab"), folder.join("crash-2.kwab"), folder.join("serial-1.kwab"));
    kwab(&["import", "--force", &shown.0, "-o", &format!("{}/", paths::shown(&folder))])?;
    kwab(&["import", "--force", &shown.1, "-o", &format!("{}/", paths::shown(&folder))])?;
    heading(4, "why the program died, then why the kernel died, by their dumps");
    let image = paths::target().join("x86_64-unknown-none/kernel/kernel");
    explain(&program, "cause,vmas,completeness", &image)?;
    explain(&kernel, "cause,bt,tasks,completeness", &image)?;
    heading(5, "the same, by the serial log alone");
    show(&["triage", &paths::shown(&told)], true)?;
    println!("\nnext, for instance:");
    println!("  kwab inspect {}", paths::shown(&kernel));
    println!("  kwab tui {}", paths::shown(&kernel));
    println!("  cargo xtask boot --dumpmem FILE -- COMMAND, then kwab import FILE");
    Ok(ExitCode::SUCCESS)
}

/// Names what follows, on standard error as all progress is.
fn heading(number: u32, text: &str) {
    eprintln!("== {number} of 5: {text}");
}

/// Triage and some sections of a dump. Triage ends with status 1 when it found a bug, which is what it is for.
fn explain(dump: &Path, sections: &str, image: &Path) -> Result<()> {
    let (dump, image) = (paths::shown(dump), paths::shown(image));
    println!();
    show(&["triage", &dump, "--symbols", &image], true)?;
    println!();
    show(&["inspect", &dump, "--section", sections], false)
}

/// What the console said when the kernel died, without what is for machines.
fn last_words(serial: &[u8]) -> String {
    let text = String::from_utf8_lossy(serial).into_owned();
    let lines = text.lines().skip_while(|line| !line.starts_with("[PANIC]"));
    lines.filter(|line| !line.starts_with("DBG ")).take(40).fold(String::new(), |all, line| all + "  | " + line + "\n")
}

fn kwab(words: &[&str]) -> Result<()> {
    show(words, false)
}

fn show(words: &[&str], may_find: bool) -> Result<()> {
    println!("$ kwab {}", words.join(" "));
    let status = Call::new(binary::path()).args(words).folder(paths::root()).show_status()?;
    ensure!(status.success() || may_find && status.code() == Some(1), "kwab {} ended with {status}", words[0]);
    Ok(())
}
