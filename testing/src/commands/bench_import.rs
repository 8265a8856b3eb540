//! `cargo xtask bench-import [--size MB] [--runs N]`: how fast `kwab import` is, beside other readers of the same file.
//!
//! Two seeded logs with damage are made: one in both dialects, for kwab alone, and one in strict JSON, which the others
//! can read too. kwab is the release binary on one thread and writes a finished dump; serde_json reads the whole JSON
//! log into typed events and keeps nothing; jq and Python's json read its first megabytes. Wall time is the smallest of
//! the runs; processor time and peak memory are the system's own (getrusage).

use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde::Deserialize;

use crate::genlog::{Dialect, Options, generate};
use crate::paths;

/// Bytes that the slow readers get.
const SLICE: usize = 20_000_000;

/// Runs a program and prints wall seconds, processor seconds and peak KiB of it, and the meter's own peak KiB: a child
/// starts as a copy of the meter, so that no peak below that can be seen.
const METER: &str = "import resource,subprocess,sys,time\n\
t=time.monotonic()\n\
c=subprocess.call(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL)\n\
w=time.monotonic()-t\n\
u=resource.getrusage(resource.RUSAGE_CHILDREN)\n\
m=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n\
print(c,w,u.ru_utime+u.ru_stime,u.ru_maxrss,m)";

/// Reads events with Python's json.
const PYTHON: &str = concat!(
    "import json,sys\n",
    "n=0\n",
    "for line in open(sys.argv[1],'rb'):\n",
    "    if line.startswith(b'DBG {'):\n",
    "        try: json.loads(line[4:]); n+=1\n",
    "        except ValueError: pass\n",
);

/// BenchImportArguments of `bench-import`.
#[derive(Debug, Args)]
pub struct BenchImportArguments {
    /// Megabytes (of 1,000,000 bytes) of each log.
    #[arg(long, default_value_t = 500)]
    size: u64,
    /// Runs of each reader; the fastest counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Measure this binary instead of building one.
    #[arg(long, value_name = "PATH")]
    kwab: Option<PathBuf>,
}

/// What one reader needed.
struct Measured {
    wall: f64,
    cpu: f64,
    peak_kib: u64,
    floor_kib: u64,
}

/// Measures and prints the table.
pub fn run(arguments: &BenchImportArguments) -> Result<ExitCode> {
    let kwab = match &arguments.kwab {
        Some(path) => path.clone(),
        None => build_kwab()?,
    };
    let folder = paths::build("bench-import")?;
    let mixed = make(&folder, "mixed.log", Dialect::Mixed, arguments.size)?;
    let json = make(&folder, "json.log", Dialect::Json, arguments.size)?;
    let slice = cut(&json, &folder.join("slice.jsonl"))?;
    let dump = folder.join("out.kwab");
    let import = |log: &Path| {
        let mut command =
            vec![kwab.as_os_str().to_owned(), "import".into(), log.into(), "-o".into(), dump.as_os_str().into()];
        command.push("--force".into());
        command
    };
    println!("{:<34}{:>9}{:>9}{:>9}{:>10}", "", "MB", "MB/s", "MB/s cpu", "peak MiB");
    row("kwab import, both dialects", &mixed, &best(arguments.runs, &import(&mixed))?)?;
    row("kwab import, strict JSON", &json, &best(arguments.runs, &import(&json))?)?;
    serde_row(&json, arguments.runs)?;
    let python = ["python3".into(), "-c".into(), PYTHON.into(), slice.as_os_str().to_owned()];
    row("Python json (slice)", &slice, &best(arguments.runs.min(2), &python)?)?;
    let jq = [
        "jq".into(),
        "-R".into(),
        "-c".into(),
        "ltrimstr(\"DBG \") | fromjson? | .type".into(),
        slice.as_os_str().to_owned(),
    ];
    match best(arguments.runs.min(2), &jq) {
        Ok(measured) => row("jq (slice)", &slice, &measured)?,
        Err(error) => println!("jq (slice)                        not measured: {error}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn build_kwab() -> Result<PathBuf> {
    let status = Command::new(env!("CARGO")).args(["build", "--release", "-p", "kwab-cli"]).status()?;
    ensure!(status.success(), "kwab does not build");
    Ok(paths::target().join("release/kwab"))
}

fn make(folder: &Path, name: &str, dialect: Dialect, megabytes: u64) -> Result<PathBuf> {
    let path = folder.join(name);
    let options = Options { size: megabytes * 1_000_000, seed: 1, dialect, damage: 100, crashes: 0 };
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    generate(&mut out, &options)?;
    out.flush()?;
    Ok(path)
}

/// The first whole lines of a log.
fn cut(log: &Path, to: &Path) -> Result<PathBuf> {
    let mut bytes = Vec::new();
    File::open(log)?.take(SLICE as u64).read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    std::fs::write(to, &bytes[..end])?;
    Ok(to.to_path_buf())
}

/// The fastest of several runs of a program.
fn best(runs: u32, command: &[std::ffi::OsString]) -> Result<Measured> {
    let mut best: Option<Measured> = None;
    for _ in 0..runs {
        let output = Command::new("python3").arg("-c").arg(METER).args(command).stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let words: Vec<&str> = text.split_whitespace().collect();
        ensure!(words.len() == 5 && words[0] == "0", "{} failed: {text}", command[0].display());
        let measured = Measured {
            wall: words[1].parse()?,
            cpu: words[2].parse()?,
            peak_kib: words[3].parse()?,
            floor_kib: words[4].parse()?,
        };
        if best.as_ref().is_none_or(|best| measured.wall < best.wall) {
            best = Some(measured);
        }
    }
    best.context("no run")
}

fn row(name: &str, file: &Path, measured: &Measured) -> Result<()> {
    let megabytes = std::fs::metadata(file)?.len() as f64 / 1e6;
    // Within a tenth of the meter's own peak the figure is the meter's.
    let below = if measured.peak_kib <= measured.floor_kib + measured.floor_kib / 10 { "<" } else { "" };
    let peak = format!("{below}{:.1}", measured.peak_kib.max(measured.floor_kib) as f64 / 1024.0);
    println!(
        "{name:<34}{megabytes:>9.1}{:>9.0}{:>9.0}{peak:>10}",
        megabytes / measured.wall,
        megabytes / measured.cpu.max(1e-9)
    );
    Ok(())
}

/// The events that make up most of a log, as a typed reader would declare them.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "the fields are what reading them costs")]
enum Event<'a> {
    SyscallEntry {
        pid: u32,
        #[serde(borrow)]
        name: &'a str,
        nr: i64,
        args: [&'a str; 6],
    },
    SyscallExit {
        pid: u32,
        name: &'a str,
        nr: i64,
        result: i64,
        errno: Option<&'a str>,
    },
    CanaryCheck {
        pid: u32,
        fsbase: &'a str,
        expected: &'a str,
        found: &'a str,
        corrupted: bool,
        when: &'a str,
        syscall: &'a str,
    },
    PageFault {
        pid: u32,
        vaddr: &'a str,
        ip: &'a str,
        reason: &'a str,
        resolved: bool,
    },
    Htrace {
        id: u32,
        name: &'a str,
        depth: u32,
        dir: &'a str,
        data: u64,
    },
    #[serde(other)]
    Other,
}

/// serde_json in this process: lines, typed events, nothing kept.
fn serde_row(log: &Path, runs: u32) -> Result<()> {
    let bytes = std::fs::read(log)?;
    let mut fastest = f64::MAX;
    let mut read = 0u64;
    for _ in 0..runs {
        let started = Instant::now();
        read = 0;
        let mut rest = &bytes[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if let Some(object) = line.strip_prefix(b"DBG ") {
                read += u64::from(serde_json::from_slice::<Event<'_>>(object).is_ok());
            }
        }
        fastest = fastest.min(started.elapsed().as_secs_f64());
    }
    let megabytes = bytes.len() as f64 / 1e6;
    println!("{:<34}{megabytes:>9.1}{:>9.0}{:>9}{:>10}", "serde_json typed, reading only", megabytes / fastest, "", "");
    ensure!(read > 0, "serde_json read nothing");
    Ok(())
}
