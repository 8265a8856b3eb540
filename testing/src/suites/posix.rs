//! The Open POSIX Test Suite: one small program per assertion of the standard, built statically with musl.
//!
//! A program's name is `<interface>.<assertion>`, its verdict its exit status (0 pass, 1 fail, 2 unresolved, 4
//! unsupported, 5 untested). Programs that do not build with musl are listed in the cache beside the others and left
//! out under every kernel.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result, bail};

use super::{Chosen, Results};
use crate::image::{self, Image};
use crate::jobs::{End, Job, Report};
use crate::process::Call;
use crate::setup::{self, Consent, Tool};
use crate::{debian, guest, paths};

/// The Debian source package.
pub(super) const SOURCE: &str = "posixtestsuite";
/// Most programs need milliseconds; some sleep for several seconds by design.
const SECONDS: u32 = 40;

pub(super) fn prepare(chosen: &Chosen, consent: Consent) -> Result<(Image, Vec<Job>)> {
    let source = debian::source(SOURCE, consent)?;
    let programs = build(&source, chosen, consent)?;
    let mut image = image::base(consent)?;
    image.program("/sbin/runner", &guest::program("runner", consent)?)?;
    let mut jobs = Vec::new();
    for (name, file) in programs {
        let path = format!("/suite/posix/{name}");
        image.program(&path, &file)?;
        jobs.push(Job { name, seconds: SECONDS, words: vec![path] });
    }
    Ok((image, jobs))
}

/// Builds the chosen programs that are not there yet; returns all that exist, by name.
fn build(source: &Path, chosen: &Chosen, consent: Consent) -> Result<Vec<(String, PathBuf)>> {
    let folder = paths::cache("posix")?;
    let refused_list = folder.join("does-not-build.txt");
    let known = fs::read_to_string(&refused_list).unwrap_or_default();
    let known: BTreeSet<&str> = known.lines().collect();
    let all: Vec<_> =
        sources(source)?.into_iter().filter(|(name, _)| chosen.has(name) && !known.contains(&name[..])).collect();
    let missing: Vec<_> = all.iter().filter(|(name, _)| !folder.join(name).is_file()).cloned().collect();
    if !missing.is_empty() {
        setup::require(&[Tool::MuslGcc], consent)?;
        eprintln!("building {} programs of the Open POSIX Test Suite", missing.len());
    }
    let refused = compile_all(source, &folder, missing)?;
    if !refused.is_empty() {
        let list: BTreeSet<&str> = known.into_iter().chain(refused.iter().map(String::as_str)).collect();
        let text: String = list.into_iter().map(|name| format!("{name}\n")).collect();
        paths::write(&refused_list, text.as_bytes())?;
    }
    let built = all.into_iter().map(|(name, _)| (folder.join(&name), name)).filter(|(file, _)| file.is_file());
    Ok(built.map(|(file, name)| (name, file)).collect())
}

/// The test programs: `conformance/interfaces/<interface>/<assertion>.c`. Parts that other programs start
/// (`*-buildonly.c`) and helpers without a number are none.
fn sources(source: &Path) -> Result<Vec<(String, PathBuf)>> {
    let interfaces = source.join("conformance/interfaces");
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(&interfaces).min_depth(2).sort_by_file_name() {
        let file = entry.context("the Open POSIX Test Suite")?.into_path();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_test = file.extension().is_some_and(|extension| extension == "c")
            && stem.starts_with(|c: char| c.is_ascii_digit())
            && stem.contains('-')
            && !stem.ends_with("-buildonly");
        if is_test {
            let interface = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            found.push((format!("{interface}.{stem}"), file.clone()));
        }
    }
    Ok(found)
}

/// Compiles on all CPUs; returns the names that the compiler refused.
fn compile_all(source: &Path, folder: &Path, programs: Vec<(String, PathBuf)>) -> Result<Vec<String>> {
    let queue = Mutex::new(programs);
    let refused = Mutex::new(Vec::new());
    let take = || queue.lock().ok().and_then(|mut queue| queue.pop());
    let worker = || -> Result<()> {
        while let Some((name, file)) = take() {
            if !compile(source, &file, &folder.join(&name))?
                && let Ok(mut refused) = refused.lock()
            {
                refused.push(name);
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a build thread panicked")))
    })?;
    Ok(refused.into_inner().unwrap_or_default())
}

fn compile(source: &Path, file: &Path, result: &Path) -> Result<bool> {
    let part = paths::part(result);
    let call = Call::new("musl-gcc")
        .args(["-std=gnu99", "-O1", "-s", "-w", "-static", "-D_GNU_SOURCE", "-I"])
        .arg(source.join("include"))
        .args(["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"])
        .arg(file)
        .arg("-o")
        .arg(&part)
        .arg("-lm")
        .folder(file.parent().unwrap_or(source));
    if !call.capture_any()?.status.success() {
        return Ok(false);
    }
    fs::rename(&part, result).with_context(|| format!("cannot keep {}", paths::shown(result)))?;
    Ok(true)
}

pub(super) fn results(reports: &[Report]) -> Results {
    let word = |end: &End| match end {
        End::Exit(0) => "pass".to_owned(),
        End::Exit(1) => "fail".to_owned(),
        End::Exit(2) => "unresolved".to_owned(),
        End::Exit(4) => "unsupported".to_owned(),
        End::Exit(5) => "untested".to_owned(),
        other => other.to_string(),
    };
    reports.iter().map(|report| (report.name.clone(), word(&report.end))).collect()
}
