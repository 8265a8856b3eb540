//! A step of `cargo xtask test`: one program that takes its machine down must not take the other programs' results with
//! it.
//!
//! Three jobs run in one image, the middle one writes `c` to `/proc/sysrq-trigger`, which panics a kernel on purpose.
//! The neighbours must have passed, the middle job must be lost, and the dump that was recorded must name a panic. The
//! same runs under Linux and under our kernel.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use kwab::model::{Depth, Dump};
use kwab_format::record::{Cause, CauseKind};

use crate::image::Image;
use crate::jobs::{self, End, Guest, Job, Report};
use crate::kernel::Which;
use crate::setup::{self, Consent, Tool};
use crate::{guest, image, paths};

/// Runs the step under both kernels.
pub fn check(consent: Consent) -> Result<()> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let mut image = image::base(consent)?;
    image.program("/sbin/runner", &guest::program("runner", consent)?)?;
    for kernel in [Which::Linux, Which::Ours] {
        let dump = under(kernel, &image, consent).with_context(|| format!("under {}", kernel.name()))?;
        println!("{}: the machine died, its neighbours passed, {} names the panic", kernel.name(), paths::shown(&dump));
    }
    Ok(())
}

fn under(kernel: Which, image: &Image, consent: Consent) -> Result<PathBuf> {
    let shell = |name: &str, command: &str| Job {
        name: name.into(),
        seconds: 20,
        words: ["/bin/sh", "-c", command].map(String::from).to_vec(),
    };
    let crash = shell("crash", "echo c >/proc/sysrq-trigger; sleep 10");
    let jobs = [shell("before", "echo one"), crash, shell("after", "echo two")];
    let boot = kernel.image(consent)?;
    let guest = Guest { kernel, boot: &boot, image, cpus: 1, append: "", label: "lost" };
    let reports = jobs::run(&guest, &jobs, |_| {})?;
    let [before, crash, after] = &reports[..] else { bail!("three jobs gave {} reports", reports.len()) };
    for (report, line) in [(before, "one"), (after, "two")] {
        ensure!(passed(report, line), "the neighbour `{}` gave {:?}, {}", report.name, report.lines, report.end);
    }
    let End::Lost(reason) = &crash.end else { bail!("the kernel survived its panic: {}", crash.end) };
    let dump = reason.split([' ', ',']).find(|word| word.ends_with(".kwab"));
    let dump = paths::root().join(dump.with_context(|| format!("no dump was recorded: {reason}"))?);
    let opened = Dump::open(&dump, Depth::Catalogue).with_context(|| paths::shown(&dump))?;
    let cause =
        opened.records::<Cause<'_>>().next().with_context(|| format!("{} has no cause", paths::shown(&dump)))?;
    let gave_up = matches!(cause.kind, Some(CauseKind::PANIC | CauseKind::SYSRQ));
    ensure!(gave_up, "{} names no panic: {cause:?}", paths::shown(&dump));
    Ok(dump)
}

fn passed(report: &Report, line: &str) -> bool {
    report.end == End::Exit(0) && report.lines == [line]
}
