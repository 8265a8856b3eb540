//! How much memory the kernels need for what programs have of them: per process, thread, open file and so on, and for
//! a system at rest.
//!
//! The guest program is `testing/guest/memory.c`. Each row has a boot of its own under the instruction clock, so that
//! no row is served from what another gave back, and a repetition gives the same figures. A figure is the loss of
//! `MemFree` behind the first of four steps divided by the objects made since: it counts all that objects cost, their
//! share of tables and of half-empty slabs among it, and for those with memory of their own the pages of the program
//! too, which are the same for both kernels. The row `page` is a known quantity, a touched page with its share of page
//! tables.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::compare::number;
use super::method::{self, Timing};
use crate::kernel::Which;
use crate::qemu::{self, Ending, Limits, run::Next};
use crate::setup::Consent;
use crate::{evidence, guest, image, paths};

/// The rows in the order in which they run, and what one object of each is.
pub const ROWS: [(&str, &str); 12] = [
    ("idle", "the machine's memory that is not free when init alone rests, the initramfs among it"),
    ("page", "a touched page of anonymous memory: 4096 bytes and a share of page tables"),
    ("mapping", "an untouched anonymous mapping that is joined to no other"),
    ("process", "fork of a static program, at rest"),
    ("program", "vfork and exec of a static program, at rest"),
    ("thread", "a thread at rest, the one touched page of its stack among it"),
    ("open_file", "open of a file that is open already"),
    ("descriptor", "dup"),
    ("eventfd", "eventfd"),
    ("pipe", "a pipe that nothing was written to"),
    ("socketpair", "a pair of local stream sockets"),
    ("tmpfs_file", "an empty file in a tmpfs, with its name"),
];

/// The row whose one object is the system itself.
const IDLE: &str = "idle";

/// Longer than the slowest row on a busy machine.
const LIMIT: u64 = 600;

/// The rows of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryRun {
    /// Name of the kernel.
    pub kernel: String,
    /// The machine's memory, MiB.
    pub machine_mib: u32,
    /// In the order in which they ran.
    pub rows: Vec<MemoryRow>,
}

/// What one kind of objects needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryRow {
    /// Name of the row.
    pub name: String,
    /// How many objects were made.
    pub objects: u64,
    /// Bytes per object behind the first step, as `MemFree` shows them.
    pub bytes: f64,
    /// The same as `MemAvailable` shows them, which counts what a kernel keeps but could give back as available.
    pub unavailable: f64,
    /// The least and the most bytes per object among the steps behind the first.
    pub steps: [f64; 2],
    /// Bytes per object that were not free again after all objects had ended.
    pub kept: f64,
    /// The same as `MemAvailable` shows them.
    pub kept_unavailable: f64,
}

/// Runs one row under one kernel.
pub fn measure(kernel: Which, boot: &Path, row: &str, consent: Consent) -> Result<(u32, MemoryRow)> {
    let mut image = image::base(consent)?;
    image.program("/sbin/memory", &guest::program("memory", consent)?)?;
    image.text("/etc/kwab/memory", &format!("{row}\n"));
    let archive = image.archive();
    let file = paths::build("images")?.join("memory.cpio");
    paths::write(&file, &archive)?;
    let image = (file, crc32fast::hash(&archive));
    let machine = method::machine_of(kernel, boot, &image, Timing::Instructions, "/sbin/memory");
    let mut seen = Seen::default();
    let mut failure = None;
    let outcome = qemu::run(&machine, Limits::seconds(LIMIT), |line| match seen.line(line) {
        Ok(()) => Next::Go,
        Err(error) => {
            failure = Some(error);
            Next::Stop
        }
    })?;
    let name = kernel.name();
    if let Some(error) = failure {
        return Err(error.context(format!("{row} under {name}")));
    }
    if outcome.ending != Ending::Exited(0) {
        let log = paths::build("results")?.join(format!("memory-{name}.log"));
        paths::write(&log, &outcome.serial)?;
        let dumps = evidence::record(&log, &outcome.serial)?;
        bail!("{row} under {name} ended with {:?}; {}", outcome.ending, evidence::shown(&log, &dumps));
    }
    let measured = seen.row(row, machine.memory_mib).with_context(|| format!("{row} under {name}"))?;
    Ok((machine.memory_mib, measured))
}

/// What the console has said.
#[derive(Default)]
struct Seen {
    /// Objects, `MemFree` and `MemAvailable` (KiB) of each reading.
    readings: Vec<[u64; 3]>,
    /// `MemFree` and `MemAvailable` behind their end.
    after: Option<[u64; 2]>,
}

impl Seen {
    fn line(&mut self, line: &str) -> Result<()> {
        let numbers = |rest: &str| -> Result<Vec<u64>> {
            let fields = rest.split_whitespace().skip(1).map(|field| -> Result<u64> { Ok(field.parse()?) });
            fields.collect::<Result<Vec<_>>>().with_context(|| format!("not a line of a row: {line}"))
        };
        if line.starts_with("MEM-FAILED ") {
            bail!("{line}");
        }
        if let Some(rest) = line.strip_prefix("MEM ") {
            let Ok(reading) = numbers(rest)?.try_into() else { bail!("not a line of a row: {line}") };
            self.readings.push(reading);
        } else if let Some(rest) = line.strip_prefix("MEM-END ") {
            let Ok(after) = numbers(rest)?.try_into() else { bail!("not the end of a row: {line}") };
            self.after = Some(after);
        }
        Ok(())
    }

    fn row(&self, name: &str, machine_mib: u32) -> Result<MemoryRow> {
        let (first, last) = self.readings.first().zip(self.readings.last()).context("no reading")?;
        if name == IDLE {
            let used = |free: u64| per_object(u64::from(machine_mib) * 1024, free, 1);
            let [_, free, available] = *first;
            let (bytes, unavailable) = (used(free), used(available));
            return Ok(MemoryRow {
                name: name.into(),
                objects: 1,
                bytes,
                unavailable,
                steps: [bytes, bytes],
                kept: 0.0,
                kept_unavailable: 0.0,
            });
        }
        let after = self.after.context("its objects did not end")?;
        // The first step uses up what MemFree does not count: on Linux, free pages on lists of a processor.
        let grown = self.readings.get(1..).filter(|grown| grown.len() > 1).context("too few readings")?;
        let between = |from: &[u64; 3], to: &[u64; 3], which: usize| {
            let made = to[0].checked_sub(from[0]).filter(|made| *made > 0);
            made.map(|made| per_object(from[which], to[which], made)).context("no objects between two readings")
        };
        let steps = grown.windows(2).map(|pair| between(&pair[0], &pair[1], 1)).collect::<Result<Vec<_>>>()?;
        Ok(MemoryRow {
            name: name.into(),
            objects: last[0],
            bytes: between(&grown[0], last, 1)?,
            unavailable: between(&grown[0], last, 2)?,
            steps: [steps.iter().copied().fold(f64::MAX, f64::min), steps.iter().copied().fold(f64::MIN, f64::max)],
            kept: per_object(first[1], after[0], last[0]),
            kept_unavailable: per_object(first[2], after[1], last[0]),
        })
    }
}

/// Bytes by which KiB became fewer, per object.
#[expect(clippy::cast_precision_loss, reason = "52 bits of a figure are plenty")]
fn per_object(before: u64, after: u64, objects: u64) -> f64 {
    (before as f64 - after as f64) * 1024.0 / objects as f64
}

/// The rows of two kernels beside each other, ours first; a row that one of them lacks is left out.
pub fn pairs<'r>(ours: &'r MemoryRun, linux: &'r MemoryRun) -> Vec<(&'r MemoryRow, &'r MemoryRow)> {
    let other = |row: &MemoryRow| linux.rows.iter().find(|other| other.name == row.name);
    ours.rows.iter().filter_map(|row| Some((row, other(row)?))).collect()
}

/// What one object of a row is.
pub fn meaning(name: &str) -> &'static str {
    ROWS.iter().find(|(row, _)| *row == name).map_or("", |(_, meaning)| meaning)
}

/// The table: bytes per object of each kernel, how far its steps lie apart, what it kept.
pub fn table(runs: &[MemoryRun]) -> String {
    let mut text = String::new();
    for run in runs {
        let _ = writeln!(text, "{:<12} {:>14} {:>21} {:>10}", run.kernel, "bytes each", "steps", "kept");
        for row in &run.rows {
            let steps = format!("{}-{}", number(row.steps[0]), number(row.steps[1]));
            let (bytes, kept) = (number(row.bytes), signed(row.kept));
            let _ = writeln!(text, "{:<12} {bytes:>14} {steps:>21} {kept:>10}", row.name);
        }
        text.push('\n');
    }
    if let [ours, linux] = runs {
        let _ = writeln!(text, "{:<12} {:>14} {:>14} {:>7}", "of Linux", ours.kernel, linux.kernel, "ratio");
        for (row, other) in pairs(ours, linux) {
            let (here, there) = (number(row.bytes), number(other.bytes));
            let _ = writeln!(text, "{:<12} {here:>14} {there:>14} {:>7.3}", row.name, row.bytes / other.bytes);
        }
    }
    text
}

/// A figure that may be below zero.
pub fn signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", number(-value)) } else { number(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str]) -> Seen {
        let mut seen = Seen::default();
        lines.iter().for_each(|line| seen.line(line).unwrap());
        seen
    }

    #[test]
    fn a_figure_is_what_objects_behind_the_first_step_took_and_the_steps_say_how_even_they_were() {
        let lines = [
            "MEM pipe 0 9900 9900",
            "MEM pipe 100 9000 9500",
            "noise",
            "MEM pipe 200 8800 9400",
            "MEM pipe 300 8400 9300",
            "MEM-END pipe 9870 9885",
        ];
        let row = seen(&lines).row("pipe", 16).unwrap();
        let figures = [row.bytes, row.unavailable, row.steps[0], row.steps[1], row.kept, row.kept_unavailable];
        assert_eq!((row.objects, figures.map(|figure| figure as u64)), (300, [3072, 1024, 2048, 4096, 102, 51]));
    }

    #[test]
    fn a_system_at_rest_has_what_of_the_machine_is_not_free() {
        let row = seen(&["MEM idle 15000 12288 13312"]).row("idle", 16).unwrap();
        assert_eq!((row.objects, row.bytes as u64, row.unavailable as u64), (1, 4_194_304, 3_145_728));
    }

    #[test]
    fn a_torn_line_a_failed_row_and_objects_that_stay_are_errors() {
        for line in ["MEM pipe 0 9000", "MEM pipe 0 x 1", "MEM-END pipe", "MEM-FAILED open: no"] {
            assert!(Seen::default().line(line).is_err(), "{line}");
        }
        let stays = seen(&["MEM pipe 0 9000 9500", "MEM pipe 1 1 1", "MEM pipe 2 1 1"]);
        assert!(stays.row("pipe", 16).is_err());
        let none = seen(&["MEM pipe 0 9 9", "MEM pipe 1 1 1", "MEM pipe 1 1 1", "MEM-END pipe 9 9"]);
        assert!(none.row("pipe", 16).is_err());
        assert!(seen(&[]).row("idle", 16).is_err());
    }

    #[test]
    fn the_guests_rows_are_those_of_the_table() {
        let text = paths::read(&paths::root().join("testing/guest/memory.c")).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("    {\"")?.split('"').next());
        assert_eq!(names.collect::<Vec<_>>(), ROWS.map(|(name, _)| name));
    }
}
