//! BusyBox's own testsuite, with a BusyBox built from the same source: static musl, the default configuration.
//!
//! One job per applet, so that a hang costs one applet. Left out: `bc`, which does not finish under emulation, and
//! `all_sourcecode`, which judges BusyBox's sources and no kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result};

use super::Results;
use crate::image::{self, Image};
use crate::jobs::{End, Job, Report};
use crate::process::Call;
use crate::setup::{self, Consent, Tool};
use crate::{debian, guest, paths};

const LEFT_OUT: &[&str] = &["bc", "all_sourcecode"];

/// The Debian source package.
pub(super) const SOURCE: &str = "busybox";
/// Where the suite lies in the guest.
const PLACE: &str = "/suite/busybox";

/// The slowest applet's tests take a third of this on an idle machine.
const SECONDS: u32 = 150;

pub(super) fn prepare(consent: Consent) -> Result<(Image, Vec<Job>)> {
    let source = debian::source(SOURCE, consent)?;
    let program = build(&source, consent)?;
    let mut image = image::base(consent)?;
    image.program("/sbin/runner", &guest::program("runner", consent)?)?;
    image.program(&format!("{PLACE}/busybox"), &program)?;
    image.text(&format!("{PLACE}/.config"), &paths::read(&source.join(".config"))?);
    image.tree(&format!("{PLACE}/testsuite"), &source.join("testsuite"))?;
    let jobs = applets(&source.join("testsuite"))?.into_iter().map(|applet| Job {
        words: vec!["/bin/sh".into(), "-c".into(), format!("cd {PLACE}/testsuite && exec ./runtest {applet}")],
        name: applet,
        seconds: SECONDS,
    });
    Ok((image, jobs.collect()))
}

/// Builds BusyBox in its own tree, unless it is there.
fn build(source: &Path, consent: Consent) -> Result<PathBuf> {
    let program = source.join("busybox");
    if program.is_file() && source.join(".config").is_file() {
        return Ok(program);
    }
    setup::require(&[Tool::MuslGcc, Tool::Make], consent)?;
    let make = |arguments: &[&str]| {
        Call::new("make").args(arguments).folder(source).stage("building BusyBox").context("building BusyBox")
    };
    make(&["defconfig"])?;
    let config = source.join(".config");
    let text = paths::read(&config)?.replace("# CONFIG_STATIC is not set", "CONFIG_STATIC=y").replace(
        "CONFIG_EXTRA_CFLAGS=\"\"",
        "CONFIG_EXTRA_CFLAGS=\"-idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu\"",
    );
    paths::write(&config, text.as_bytes())?;
    let jobs = format!("-j{}", thread::available_parallelism().map_or(1, usize::from));
    // Without input, `oldconfig` takes the default for what the edit above opened.
    make(&["silentoldconfig"])?;
    make(&[&jobs, "CC=musl-gcc", "busybox"])?;
    Ok(program)
}

/// Applets that have tests of the new style (`x.tests`) or the old one (a folder).
fn applets(testsuite: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(testsuite).context("BusyBox's testsuite")? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_suffix(".tests") {
            Some(applet) => names.insert(applet.to_owned()),
            None => entry.file_type()?.is_dir() && !name.contains('.') && names.insert(name),
        };
    }
    names.retain(|name| !LEFT_OUT.contains(&name.as_str()));
    Ok(names)
}

/// `PASS: name` and its kin, one result each; a job that did not end by itself adds a result of its own.
pub(super) fn results(reports: &[Report]) -> Results {
    let mut results = BTreeMap::new();
    for report in reports {
        for line in &report.lines {
            let Some((word, test)) = verdict(line) else { continue };
            let name = format!("{}: {test}", report.name);
            let mut unique = name.clone();
            let mut number = 2;
            while results.contains_key(&unique) {
                unique = format!("{name} ({number})");
                number += 1;
            }
            results.insert(unique, word.to_owned());
        }
        if !matches!(report.end, End::Exit(_)) {
            results.insert(format!("{}: (the whole run)", report.name), report.end.to_string());
        }
    }
    results
}

/// The result and the name of the test that a line of the testsuite tells.
pub(super) fn verdict(line: &str) -> Option<(&'static str, &str)> {
    let (word, test) = line.split_once(": ")?;
    let word = match word {
        "PASS" => "pass",
        "FAIL" => "fail",
        "SKIPPED" => "skipped",
        "UNTESTED" => "untested",
        _ => return None,
    };
    Some((word, test))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_one_name_do_not_hide_each_other_and_a_hang_is_a_result() {
        let lines = ["PASS: sort", "FAIL: sort", "junk", "SKIPPED: sort -h"].map(str::to_owned).to_vec();
        let results = results(&[Report { name: "sort".into(), lines, end: End::Timeout(150) }]);
        let expected = [
            ("sort: (the whole run)", "timeout 150"),
            ("sort: sort", "pass"),
            ("sort: sort (2)", "fail"),
            ("sort: sort -h", "skipped"),
        ];
        assert_eq!(results, expected.map(|(name, word)| (name.to_owned(), word.to_owned())).into());
    }
}
