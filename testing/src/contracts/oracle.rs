//! Shows where a contract that differs from Linux differs first: both kernels run it once more, ours with events of
//! every call, Linux under strace from Debian's package, and `kwab`'s oracle compares the two.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use kwab::model::{Depth, Dump};
use kwab::oracle::report::OracleReport;
use kwab::oracle::{CompareOptions, Trace, compare, of_dumps, of_strace};

use crate::debian;
use crate::evidence;
use crate::image::Image;
use crate::jobs::{self, Guest, Job, Scribe};
use crate::paths;
use crate::qemu::run::Next;
use crate::qemu::{self, Limits};
use crate::setup::Consent;

/// What our kernel records of the run.
const EVENTS: &str = "debug=syscall,process,signal";
/// Programs and libraries that strace needs, by Debian's names for them.
const PACKAGES: &[&str] = &["strace", "libc6", "libunwind8", "liblzma5", "libgcc-s1"];
/// Where the package puts it.
const STRACE: &str = "/usr/bin/strace";
/// Where it writes, out of the way of what the contracts use.
const WRITTEN: &str = "/root/strace.txt";
/// How much longer a program may take when every call of it is printed.
const SLOWER: u32 = 6;

/// Runs one contract on our kernel and gives the log with its events.
pub fn record(guest: &Guest<'_>, job: &Job) -> Result<PathBuf> {
    let append = format!("{} {EVENTS}", guest.append);
    let job = Job { seconds: job.seconds.saturating_mul(SLOWER), ..job.clone() };
    let guest = Guest { append: &append, ..guest.clone() };
    let machine = jobs::machine(&guest, std::slice::from_ref(&job))?;
    let limits = Limits { silence: Duration::from_secs(60), total: Duration::from_secs(120 + u64::from(job.seconds)) };
    let mut scribe = Scribe::default();
    let outcome = qemu::run(&machine, limits, |line| {
        scribe.line(line);
        if scribe.reports.is_empty() { Next::Go } else { Next::Stop }
    })?;
    let log = file(guest.label, &job.name, "ours.log")?;
    paths::write(&log, &outcome.serial)?;
    Ok(log)
}

/// Runs one contract under Linux's strace and gives what that wrote.
pub fn strace(guest: &Guest<'_>, job: &Job, consent: Consent) -> Result<PathBuf> {
    let mut image: Image = guest.image.clone();
    let tree = debian::unpacked_set("strace-with-libraries", PACKAGES, consent, trimmed)?;
    image.tree("/", &tree)?;
    // By the loader's own path, whichever folders of the guest are links.
    let (loader, libc) = (within(&tree, "ld-linux-x86-64.so.2")?, within(&tree, "libc.so.6")?);
    let libraries = libc.rsplit_once('/').map_or("/lib", |(folder, _)| folder);
    // The tracer is not the parent (-DD), so that the program is its group's leader as under the runner alone.
    let words =
        [&loader, "--library-path", libraries, STRACE, "-DD", "-f", "-v", "-s", "64", "-o", WRITTEN].map(str::to_owned);
    let seconds = job.seconds.saturating_mul(SLOWER);
    let traced = Job { name: job.name.clone(), seconds, words: words.into_iter().chain(job.words.clone()).collect() };
    // It ends a moment after the program.
    let cat = ["/bin/sh", "-c", &format!("sleep 2; cat {WRITTEN}")].map(str::to_owned);
    let shown = Job { name: "strace.txt".into(), seconds: 60, words: cat.into() };
    let reports = jobs::run(&Guest { image: &image, ..guest.clone() }, &[traced, shown], |_| ())?;
    let text = reports.last().map(|report| report.lines.join("\n")).unwrap_or_default();
    let file = file(guest.label, &job.name, "linux.strace")?;
    paths::write(&file, text.as_bytes())?;
    Ok(file)
}

/// Compares what [`strace`] or [`record`] left of a good run with what [`record`] left of another.
pub fn differences(good: &Path, bad: &Path, program: &str) -> Result<OracleReport> {
    let (of_good, of_bad) = (trace(good)?, trace(bad)?);
    let options = CompareOptions { program: Some(program.to_owned()), from_init: false };
    Ok(compare((&paths::shown(good), &of_good), (&paths::shown(bad), &of_bad), &options))
}

fn trace(path: &Path) -> Result<Trace> {
    let bytes = fs::read(path).with_context(|| paths::shown(path))?;
    if path.extension().is_some_and(|extension| extension == "strace") {
        return Ok(of_strace(&bytes));
    }
    // A program that crashes cuts the log into dumps.
    let dumps = evidence::record(path, &bytes)?;
    of_dumps(dumps.iter().map(|dump| Dump::open(dump, Depth::Export).with_context(|| paths::shown(dump))))
}

fn file(label: &str, job: &str, end: &str) -> Result<PathBuf> {
    Ok(paths::build("results")?.join(format!("{label}-{}-{end}", job.replace('/', "."))))
}

/// Keeps the program and the libraries: an initramfs lies in the guest's memory.
fn trimmed(tree: &Path) -> Result<()> {
    for folder in ["usr/share", "etc", "usr/sbin", "sbin"].map(|folder| tree.join(folder)) {
        if folder.is_dir() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", paths::shown(&folder)))?;
        }
    }
    Ok(())
}

/// Where a file of a tree lies in the guest.
fn within(tree: &Path, name: &str) -> Result<String> {
    let entries = walkdir::WalkDir::new(tree).sort_by_file_name().into_iter().flatten();
    let found =
        entries.map(walkdir::DirEntry::into_path).find(|path| path.file_name().is_some_and(|file| file == name));
    let found = found.with_context(|| format!("{} has no {name}", paths::shown(tree)))?;
    Ok(format!("/{}", found.strip_prefix(tree)?.display()))
}
