//! How throughput grows with the processors: the same operations by one worker per processor, beside Linux, and which
//! spin locks our processors waited for meanwhile.
//!
//! The guest program is `testing/guest/scaling.c`. Of the repetitions of a row the best counts. Throughput is of the
//! host's clock under plain TCG with a host thread per processor, so it means something only on a quiet host with at
//! least as many cores; which locks were waited for, and how often, says where time goes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;

use super::compare::number;
use super::method::{self, Timing};
use crate::kernel::Which;
use crate::qemu::{self, Ending, Limits, run::Next};
use crate::setup::Consent;
use crate::{evidence, guest, image, paths};

/// The rows, in the order in which they run.
pub const ROWS: [&str; 7] = ["file", "exec", "fork", "thread", "pipe", "fault", "calls"];

/// How often a row is repeated.
const ROUNDS: u32 = 2;
/// Locks that the table shows of each row.
const SHOWN: usize = 4;

/// One kernel on one number of processors.
#[derive(Clone, Debug, Serialize)]
pub struct Scaling {
    /// Name of the kernel.
    pub kernel: String,
    /// Processors of the machine, and workers.
    pub processors: u32,
    /// Operations per second by row.
    pub per_second: BTreeMap<String, f64>,
    /// What the kernel counted during each row, the longest first; empty for a kernel that does not count.
    pub locks: BTreeMap<String, Vec<Waits>>,
}

/// The waits for the locks of one type at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// How long, in all.
    pub nanoseconds: u64,
    /// How often a processor spun.
    pub count: u64,
    /// The place that waited and the type behind the lock.
    pub lock: String,
}

/// Builds the image of a run.
pub fn image(rows: &[&str], milliseconds: u32, consent: Consent) -> Result<(PathBuf, u32)> {
    let mut image = image::base(consent)?;
    image.program("/sbin/scaling", &guest::program("scaling", consent)?)?;
    let list: String = rows.iter().map(|row| format!("{row}\n")).collect();
    image.text("/etc/kwab/scaling", &format!("{milliseconds}\n{ROUNDS}\n{list}"));
    let archive = image.archive();
    let file = paths::build("images")?.join("scaling.cpio");
    paths::write(&file, &archive)?;
    Ok((file, crc32fast::hash(&archive)))
}

/// Runs `rows` under one kernel.
pub fn measure(
    kernel: Which,
    boot: &Path,
    image: &(PathBuf, u32),
    (rows, milliseconds): (&[&str], u32),
    processors: u32,
) -> Result<Scaling> {
    let mut machine = method::machine_of(kernel, boot, image, Timing::Wall, "/sbin/scaling");
    machine.cpus = processors;
    let mut seen = Seen::default();
    let mut failure = None;
    let seconds = 120 + rows.len() as u64 * u64::from(ROUNDS) * u64::from(milliseconds) / 100;
    let outcome = qemu::run(&machine, Limits::seconds(seconds), |line| match seen.line(line) {
        Ok(()) => Next::Go,
        Err(error) => {
            failure = Some(error);
            Next::Stop
        }
    })?;
    let name = kernel.name();
    if let Some(error) = failure {
        return Err(error.context(format!("under {name} on {processors} processors")));
    }
    if outcome.ending != Ending::Exited(0) {
        let log = paths::build("results")?.join(format!("scaling-{name}.log"));
        paths::write(&log, &outcome.serial)?;
        let dumps = evidence::record(&log, &outcome.serial)?;
        bail!("{name} ended with {:?}; {}", outcome.ending, evidence::shown(&log, &dumps));
    }
    for row in rows {
        let workers = seen.workers.get(*row).with_context(|| format!("{row} gave no figure under {name}"))?;
        ensure!(*workers == processors, "{row}: {workers} workers on {processors} processors under {name}");
    }
    Ok(Scaling { kernel: name.to_owned(), processors, per_second: seen.per_second, locks: seen.locks })
}

/// What the console has said.
#[derive(Default)]
struct Seen {
    per_second: BTreeMap<String, f64>,
    workers: BTreeMap<String, u32>,
    locks: BTreeMap<String, Vec<Waits>>,
    /// Sums since boot.
    before: BTreeMap<String, (u64, u64)>,
}

impl Seen {
    fn line(&mut self, line: &str) -> Result<()> {
        if line.starts_with("SCALE-FAILED ") {
            bail!("{line}");
        }
        if let Some(rest) = line.strip_prefix("SCALE ") {
            self.throughput(rest).with_context(|| format!("not a line of a row: {line}"))?;
        } else if let Some(rest) = line.strip_prefix("LOCKS ") {
            self.waits(rest).with_context(|| format!("not a line of locks: {line}"))?;
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "52 bits of a figure are plenty")]
    fn throughput(&mut self, rest: &str) -> Result<()> {
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let [name, workers, operations, nanoseconds] = fields[..] else { bail!("four fields expected") };
        let (operations, nanoseconds): (u64, u64) = (operations.parse()?, nanoseconds.parse()?);
        ensure!(nanoseconds > 0, "no time");
        let rate = operations as f64 * 1e9 / nanoseconds as f64;
        let best = self.per_second.entry(name.to_owned()).or_insert(rate);
        *best = best.max(rate);
        self.workers.insert(name.to_owned(), workers.parse()?);
        Ok(())
    }

    /// The kernel counts from boot on; what a row added is the difference.
    fn waits(&mut self, rest: &str) -> Result<()> {
        let mut fields = rest.splitn(4, ' ');
        let mut field = || fields.next().context("four fields expected");
        let (row, nanoseconds, count, lock) = (field()?, field()?.parse()?, field()?.parse()?, field()?);
        let (ns_before, count_before): (u64, u64) =
            self.before.insert(lock.to_owned(), (nanoseconds, count)).unwrap_or_default();
        let added = Waits {
            nanoseconds: nanoseconds.saturating_sub(ns_before),
            count: count.saturating_sub(count_before),
            lock: lock.to_owned(),
        };
        if added.count > 0 {
            let waits = self.locks.entry(row.to_owned()).or_default();
            waits.push(added);
            waits.sort_by(|a, b| b.nanoseconds.cmp(&a.nanoseconds).then_with(|| a.lock.cmp(&b.lock)));
        }
        Ok(())
    }
}

/// The table: for each row throughput on the fewest processors, on more, and how it grew; then our locks.
pub fn table(runs: &[Scaling], rows: &[&str]) -> String {
    let mut text = String::new();
    for kernel in [Which::Ours.name(), Which::Linux.name()] {
        let of: Vec<&Scaling> = runs.iter().filter(|run| run.kernel == kernel).collect();
        let Some((first, more)) = of.split_first() else { continue };
        let _ = write!(text, "{kernel:<8} {:>14}", format!("{} cpu /s", first.processors));
        for run in more {
            let _ = write!(text, " {:>14} {:>7}", format!("{} cpus /s", run.processors), "growth");
        }
        text.push('\n');
        for row in rows {
            let _ = write!(text, "{row:<8} {:>14}", number(first.per_second.get(*row).copied().unwrap_or_default()));
            for run in more {
                let rate = run.per_second.get(*row).copied().unwrap_or_default();
                let _ = write!(text, " {:>14} {:>7.2}", number(rate), growth(first, run, row));
            }
            text.push('\n');
        }
        text.push('\n');
    }
    for run in runs.iter().filter(|run| run.processors > 1 && !run.locks.is_empty()) {
        let _ = writeln!(text, "locks that {} processors waited for ({}):", run.processors, run.kernel);
        for row in rows {
            for waits in run.locks.get(*row).into_iter().flatten().take(SHOWN) {
                let (ns, count) = (kwab::units::grouped(waits.nanoseconds), kwab::units::grouped(waits.count));
                let _ = writeln!(text, "{row:<8} {ns:>14} ns {count:>10} waits  {}", waits.lock);
            }
        }
    }
    text
}

/// Throughput of `more` as a multiple of that of `first`.
fn growth(first: &Scaling, more: &Scaling, row: &str) -> f64 {
    let rate = |run: &Scaling| run.per_second.get(row).copied().unwrap_or_default();
    rate(more) / rate(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str]) -> Seen {
        let mut seen = Seen::default();
        lines.iter().for_each(|line| seen.line(line).unwrap());
        seen
    }

    fn run(kernel: &str, processors: u32, lines: &[&str]) -> Scaling {
        let Seen { per_second, locks, .. } = seen(lines);
        Scaling { kernel: kernel.into(), processors, per_second, locks }
    }

    #[test]
    fn the_better_of_two_rounds_counts_and_growth_is_a_quotient_of_rates() {
        let one = run("ours", 1, &["SCALE file 1 1000 1000000000", "SCALE file 1 900 500000000"]);
        let two = run("ours", 2, &["SCALE file 2 4500 2000000000", "noise"]);
        assert!((one.per_second["file"] - 1800.0).abs() < 1e-6);
        assert!((growth(&one, &two, "file") - 1.25).abs() < 1e-9);
        let table = table(&[one, two], &["file"]);
        assert!(table.contains("1.25") && table.contains("2,250"), "{table}");
    }

    #[test]
    fn a_row_is_charged_with_what_locks_were_waited_for_during_it_alone() {
        let seen = seen(&[
            "LOCKS boot 500 5 a.rs:1:1 Tree",
            "LOCKS file 500 5 a.rs:1:1 Tree",
            "LOCKS file 40 2 b.rs:2:2 alloc::vec::Vec<A, B>",
            "LOCKS fork 900 9 a.rs:1:1 Tree",
            "LOCKS fork 2040 3 b.rs:2:2 alloc::vec::Vec<A, B>",
        ]);
        let waits = |nanoseconds, count, lock: &str| Waits { nanoseconds, count, lock: lock.into() };
        assert_eq!(seen.locks["file"], [waits(40, 2, "b.rs:2:2 alloc::vec::Vec<A, B>")]);
        let fork = [waits(2000, 1, "b.rs:2:2 alloc::vec::Vec<A, B>"), waits(400, 4, "a.rs:1:1 Tree")];
        assert_eq!(seen.locks["fork"], fork);
    }

    #[test]
    fn a_torn_line_and_a_failed_row_are_errors() {
        for line in ["SCALE file 1 1000", "SCALE file 1 1000 0", "LOCKS file x 1 a b", "SCALE-FAILED unlink: no"] {
            assert!(Seen::default().line(line).is_err(), "{line}");
        }
    }
}
