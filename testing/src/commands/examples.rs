//! `cargo xtask examples`: builds the example kernels, lets them die in QEMU, and compares what `kwab` says with the
//! bug that is in them.
//!
//! `examples/` has a kernel in Rust and one in C, which share their first instructions and dump through kwab-format
//! over the serial port. The log of each is imported like any other; triage must name the rule, the function and the
//! file of the bug, and the dump must be complete. The header for C is made again and compared; `--write-header` keeps
//! the new one. Kernels, logs and dumps lie in `build/examples`; `docs/in-your-kernel.md` is the manual.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::Value;

use crate::process::Call;
use crate::qemu::{self, Ending, Limits, Machine, run::Next};
use crate::setup::{self, Consent, Tool};
use crate::{binary, paths};

/// ExamplesArguments of `examples`.
#[derive(Debug, Default, Args)]
pub struct ExamplesArguments {
    /// Write the header that cbindgen makes instead of comparing it.
    #[arg(long)]
    write_header: bool,
}

/// A kernel and the bug in it.
struct Example {
    name: &'static str,
    /// The rule of the first hypothesis.
    rule: &'static str,
    /// The function that has the bug, and the one that called it.
    function: &'static str,
    caller: &'static str,
    /// The end of its file's path.
    file: &'static str,
}

const EXAMPLES: [Example; 2] = [
    Example {
        name: "rust-kernel",
        rule: "NULL",
        function: "rust_kernel::machine::number_of",
        caller: "rust_kernel::start_driver",
        file: "examples/rust-kernel/src/machine.rs",
    },
    Example {
        name: "c-kernel",
        rule: "JUMP-ZERO",
        function: "start_device",
        caller: "start_bus",
        file: "examples/c-kernel/main.c",
    },
];

/// How the kernel in C is compiled: for the bare machine, with frame pointers and names for kwab.
const C_OPTIONS: &str = "-std=c17 -O2 -g -Wall -Wextra -Werror -ffreestanding -fno-omit-frame-pointer \
    -fno-optimize-sibling-calls -fno-pic -no-pie -mno-red-zone -mgeneral-regs-only -fno-stack-protector -nostdlib \
    -static -Wl,--build-id=sha1";
/// A boot takes a second; the host may be busy.
const LIMIT: u64 = 120;

/// Runs the command.
pub fn run(arguments: &ExamplesArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    setup::require_targets()?;
    let program = binary::kwab()?;
    header(arguments.write_header)?;
    let folder = paths::build("examples")?;
    let built = cargo("building the example kernels", &paths::root().join("examples"), &["build", "--release"])?;
    let built = built.join("x86_64-unknown-none/release");
    for example in &EXAMPLES {
        let kernel = folder.join(example.name);
        match example.name {
            "c-kernel" => compile(&built.join("libkwab_c.a"), &kernel)?,
            name => drop(fs::copy(built.join(name), &kernel).with_context(|| paths::shown(&kernel))?),
        }
        let said = judge(example, &kernel, &program).with_context(|| example.name)?;
        println!("{}: {said}", example.name);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs cargo in the workspace of the examples from `folder`, whose configuration decides the target; gives the folder
/// with what is built.
fn cargo(stage: &str, folder: &Path, words: &[&str]) -> Result<PathBuf> {
    let target = paths::target().join("examples");
    let call = Call::cargo().args(words).arg("--locked").arg("--target-dir").arg(&target);
    call.arg("--manifest-path").arg(paths::root().join("examples/Cargo.toml")).folder(folder).build(stage)?;
    Ok(target)
}

/// Makes the header, on the host, and compares or keeps it.
fn header(write: bool) -> Result<()> {
    let target = cargo("building cbindgen", paths::root(), &["build", "-p", "header"])?;
    let made = Call::new(target.join("debug/header")).capture()?.stdout;
    let kept = paths::root().join("examples/c-library/kwab.h");
    if write {
        return paths::write(&kept, made.as_bytes());
    }
    let stale = "is not what cbindgen makes of the library; `cargo xtask examples --write-header` writes it";
    ensure!(paths::read(&kept)? == made, "{} {stale}", paths::shown(&kept));
    Ok(())
}

fn compile(library: &Path, kernel: &Path) -> Result<()> {
    let examples = paths::root().join("examples");
    let call = Call::new("gcc").args(C_OPTIONS.split_whitespace()).arg("-I").arg(examples.join("c-library"));
    let call = call.arg("-T").arg(examples.join("boot/kernel.ld")).arg(examples.join("boot/start.S"));
    call.arg(examples.join("c-kernel/main.c")).arg(library).arg("-o").arg(kernel).capture()?;
    Ok(())
}

/// Boots a kernel, imports its log, and compares what triage says.
fn judge(example: &Example, kernel: &Path, program: &Path) -> Result<String> {
    let machine = Machine::bare(kernel.to_owned(), String::new());
    let outcome = qemu::run(&machine, Limits::seconds(LIMIT), |_| Next::Go)?;
    ensure!(matches!(outcome.ending, Ending::Stopped(_)), "it ended otherwise: {:?}", outcome.ending);
    let log = kernel.with_extension("log");
    paths::write(&log, &outcome.serial)?;
    let dump = kernel.with_extension("kwab");
    let kwab = |words: &[&str], files: &[&Path]| {
        Call::new(program).args(words).args(files).limit(Duration::from_secs(LIMIT)).capture_any()
    };
    let imported = kwab(&["import", "--force", "-o"], &[&dump, &log])?;
    ensure!(imported.status.success(), "kwab import: {}", imported.stderr);
    let judged = kwab(&["triage", "--json", "--symbols"], &[kernel, &dump])?;
    // Status 1 says that there is a finding, which is right.
    ensure!(judged.status.code() == Some(1), "kwab triage ended with {}: {}", judged.status, judged.stderr);
    let triage: Value = serde_json::from_str(&judged.stdout).context("triage's JSON")?;
    let first = triage.pointer("/hypotheses/0").context("no hypothesis")?;
    let word = |path: &str| first.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let told = (word("/rule"), word("/function/name"), word("/function/callers/0"));
    ensure!(told == (example.rule, example.function, example.caller), "the first hypothesis is {first:#}");
    ensure!(word("/function/file").ends_with(example.file), "the first hypothesis is {first:#}");
    let inspected = kwab(&["inspect", "--json", "--symbols"], &[kernel, &dump])?;
    let report: Value = serde_json::from_str(&inspected.stdout).context("inspect's JSON")?;
    let completeness = report.pointer("/completeness").context("no completeness")?;
    ensure!(completeness.pointer("/complete") == Some(&Value::Bool(true)), "the dump lacks {completeness}");
    Ok(format!("{} in {} ({})", told.0, told.1, word("/claim")))
}
