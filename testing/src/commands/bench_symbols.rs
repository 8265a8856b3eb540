//! `cargo xtask bench-symbols [--elf PATH] [--count N] [--runs N]`: how fast addresses become functions and lines.
//!
//! The same random addresses of one large Rust ELF file go to kwab's index, the addr2line crate, llvm-symbolizer and
//! binutils' addr2line, each a process of its own that reads them from stdin and prints every inline frame. Wall time
//! is the smallest of the runs; kwab is measured with an empty cache (it builds its index), with a warm one, and for 20
//! addresses.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::paths;

/// BenchSymbolsArguments of `bench-symbols`.
#[derive(Debug, Args)]
pub struct BenchSymbolsArguments {
    /// The ELF file; without it, the kwab binary with full debug information is built.
    #[arg(long, value_name = "PATH")]
    elf: Option<PathBuf>,
    /// Number of addresses to resolve.
    #[arg(long, default_value_t = 100_000)]
    count: u32,
    /// Runs of each tool; the fastest counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

/// Measures and prints the table.
pub fn run(arguments: &BenchSymbolsArguments) -> Result<ExitCode> {
    let folder = paths::build("bench-symbols")?;
    let example =
        build(&["--release", "-p", "kwab", "--example", "symbolize"], &[], "release/examples/symbolize", None)?;
    let elf = match &arguments.elf {
        Some(path) => path.clone(),
        None => large_elf(&folder)?,
    };
    let elf_text = elf.to_str().context("the path of the ELF file is not UTF-8")?;
    let all = make_addresses(&example, elf_text, arguments.count, &folder.join("addresses.txt"))?;
    let few = make_addresses(&example, elf_text, 20, &folder.join("20.txt"))?;
    let cache = folder.join("cache");
    println!(
        "{} ({:.1} MB), {} addresses",
        paths::shown(&elf),
        std::fs::metadata(&elf)?.len() as f64 / 1e6,
        arguments.count
    );
    println!("{:<44}{:>12}{:>14}", "", "seconds", "addresses/s");

    let ours = [example.to_str().context("path")?, "kwab", elf_text];
    let mut cold = f64::MAX;
    for _ in 0..arguments.runs.min(3) {
        if cache.exists() {
            std::fs::remove_dir_all(&cache)?;
        }
        cold = cold.min(once(&ours, &all, &cache)?);
    }
    row("kwab, first open (builds its index)", cold, arguments.count);
    row("kwab, index in the cache", best(arguments.runs, &ours, &all, &cache)?, arguments.count);
    row("kwab, index in the cache, 20 addresses", best(arguments.runs, &ours, &few, &cache)?, 20);
    let theirs = [example.to_str().context("path")?, "addr2line", elf_text];
    row("addr2line crate", best(arguments.runs, &theirs, &all, &cache)?, arguments.count);
    row("addr2line crate, 20 addresses", best(arguments.runs, &theirs, &few, &cache)?, 20);
    let object = format!("--obj={elf_text}");
    optional("llvm-symbolizer", "llvm", &["llvm-symbolizer", "--inlines", &object], &all, &cache, arguments);
    optional(
        "binutils addr2line",
        "binutils",
        &["addr2line", "-f", "-i", "-C", "-e", elf_text],
        &all,
        &cache,
        arguments,
    );
    Ok(ExitCode::SUCCESS)
}

/// The kwab binary with everything that a compiler can say about it.
fn large_elf(folder: &Path) -> Result<PathBuf> {
    let settings = [("CARGO_PROFILE_RELEASE_DEBUG", "full"), ("CARGO_PROFILE_RELEASE_LTO", "off")];
    build(&["--release", "-p", "kwab-cli"], &settings, "release/kwab", Some(&folder.join("target")))
}

fn build(what: &[&str], settings: &[(&str, &str)], result: &str, target: Option<&Path>) -> Result<PathBuf> {
    let mut command = Command::new(env!("CARGO"));
    command.arg("build").args(what).envs(settings.iter().copied()).current_dir(paths::root());
    if let Some(target) = target {
        command.env("CARGO_TARGET_DIR", target);
    }
    ensure!(command.status()?.success(), "cargo build {} failed", what.join(" "));
    Ok(target.map_or_else(paths::target, Path::to_path_buf).join(result))
}

fn make_addresses(example: &Path, elf: &str, count: u32, to: &Path) -> Result<PathBuf> {
    let status =
        Command::new(example).args(["addresses", elf, &count.to_string()]).stdout(File::create(to)?).status()?;
    ensure!(status.success(), "no addresses of {elf}");
    Ok(to.to_path_buf())
}

/// Seconds of one run.
fn once(command: &[&str], addresses: &Path, cache: &Path) -> Result<f64> {
    let input = File::open(addresses)?;
    let started = Instant::now();
    let status = Command::new(command[0])
        .args(&command[1..])
        .env("XDG_CACHE_HOME", cache)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", command[0]))?;
    ensure!(status.success(), "{} failed", command[0]);
    Ok(started.elapsed().as_secs_f64())
}

fn best(runs: u32, command: &[&str], addresses: &Path, cache: &Path) -> Result<f64> {
    (0..runs).try_fold(f64::MAX, |fastest, _| Ok(fastest.min(once(command, addresses, cache)?)))
}

fn row(name: &str, seconds: f64, count: u32) {
    println!("{name:<44}{seconds:>12.4}{:>14.0}", f64::from(count) / seconds);
}

/// A tool that may not be installed; slow ones run once.
fn optional(
    name: &str,
    package: &str,
    command: &[&str],
    addresses: &Path,
    cache: &Path,
    arguments: &BenchSymbolsArguments,
) {
    match best(arguments.runs.min(2), command, addresses, cache) {
        Ok(seconds) => row(name, seconds, arguments.count),
        Err(error) => println!("{name:<44} not measured: {error:#} (Debian package {package})"),
    }
}
