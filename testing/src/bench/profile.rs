//! Where a benchmark's instructions go, function by function: exact counts from QEMU itself.
//!
//! The split of a figure into user and kernel mode, for either kernel, comes from the same counts ([`measure_apart`]).
//!
//! A TCG plugin (`testing/plugin/profile.c`) counts how often each translated block runs between the marks that the
//! guest program sets around its operations. Blocks of the kernel are looked up in its ELF file with kwab's symbols and
//! summed by function, and by the source file of the innermost inlined frame that is the kernel's own; what runs in
//! user mode is one row. A block counts whole for the function in which it starts. Nothing in the guest changes, and
//! the sums agree with the figure but for the two clock readings.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use kwab::symbols::{Image, IndexCache, Location, Probe};
use serde::Serialize;

use super::compare::number;
use super::method::{self, Timing};
use super::{BenchRow, Figure, Run};
use crate::kernel::Which;
use crate::setup::Consent;
use crate::{paths, plugin};

/// One benchmark's instructions.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// The figure of the profiled run itself.
    pub figure: Figure,
    /// Instructions of all operations in user mode.
    pub user: u64,
    /// Those in the kernel, by function.
    pub functions: BTreeMap<String, u64>,
    /// The same, by source file.
    pub files: BTreeMap<String, u64>,
}

/// A translated block: its address, how many instructions it has, how often it ran.
type Block = (u64, u64, u64);

/// The lower half of the address space is the programs'.
const USER_END: u64 = 1 << 47;

/// Runs the benchmarks under our kernel with every block counted.
pub fn profile(boot: &Path, image: &(PathBuf, u32), rows: &[BenchRow], consent: Consent) -> Result<Vec<Profile>> {
    let (run, sections) = counted(Which::Ours, boot, image, rows, consent)?;
    let symbols = Image::open(boot, &IndexCache::in_dir(paths::build("symbols")?)).context("the kernel's symbols")?;
    run.figures.into_iter().zip(sections).map(|(figure, blocks)| attribute(figure, &blocks, &symbols)).collect()
}

/// Measures the image's benchmarks under either kernel, the instructions in user mode counted apart.
pub fn measure_apart(
    kernel: Which,
    boot: &Path,
    image: &(PathBuf, u32),
    rows: &[BenchRow],
    consent: Consent,
) -> Result<Run> {
    let (mut run, sections) = counted(kernel, boot, image, rows, consent)?;
    let user = |blocks: &[Block]| blocks.iter().filter(|block| block.0 < USER_END).map(|block| block.1 * block.2).sum();
    run.user = run.figures.iter().zip(&sections).map(|(figure, blocks)| (figure.name.clone(), user(blocks))).collect();
    Ok(run)
}

/// The figures of a run with the plugin, and the blocks of each benchmark.
fn counted(
    kernel: Which,
    boot: &Path,
    image: &(PathBuf, u32),
    rows: &[BenchRow],
    consent: Consent,
) -> Result<(Run, Vec<Vec<Block>>)> {
    let output = paths::build("results")?.join("profile-blocks.txt");
    let mut machine = method::machine(kernel, boot, image, Timing::Instructions);
    // The plugin does not run in the guest, so it does not belong to the conditions; its path is one of this machine.
    let flags = machine.flags();
    let plugin = plugin::build("profile", consent)?;
    machine.extra = vec!["-plugin".into(), format!("{},output={}", plugin.display(), output.display())];
    let (mut run, _) = method::measure_on(&machine, kernel.name(), image.1, rows)?;
    run.conditions.flags = flags;
    let sections = sections(&paths::read(&output)?)?;
    let (found, wanted) = (sections.len(), run.figures.len());
    ensure!(found == wanted, "the plugin saw {found} benchmarks end, the console {wanted}");
    Ok((run, sections))
}

/// The blocks of each section of the plugin's output.
fn sections(text: &str) -> Result<Vec<Vec<Block>>> {
    let mut sections: Vec<Vec<Block>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("SECTION ") {
            sections.push(Vec::new());
            continue;
        }
        let block = || {
            let mut fields = line.split(' ');
            let address = u64::from_str_radix(fields.next()?, 16).ok()?;
            Some((address, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        };
        let block = block().with_context(|| format!("not a line of the profiler: `{line}`"))?;
        sections.last_mut().context("the profiler's first line opens no section")?.push(block);
    }
    Ok(sections)
}

fn attribute(figure: Figure, blocks: &[Block], symbols: &Image) -> Result<Profile> {
    let mut profile = Profile { figure, user: 0, functions: BTreeMap::new(), files: BTreeMap::new() };
    for &(address, length, runs) in blocks {
        let instructions = length * runs;
        if address < USER_END {
            profile.user += instructions;
            continue;
        }
        let location = symbols.locate(address, Probe::Exact).context("the kernel's symbols")?;
        let function = location.function().map_or_else(|| format!("{address:#x}"), ToString::to_string);
        *profile.functions.entry(function).or_default() += instructions;
        *profile.files.entry(file_of(&location)).or_default() += instructions;
    }
    Ok(profile)
}

/// The source file of the innermost frame that is not the standard library's.
fn file_of(location: &Location) -> String {
    let files = location.frames.iter().filter_map(|frame| frame.file.as_deref());
    let mut ours = files.filter_map(|file| file.find("kernel/").map(|at| file[at..].to_owned()));
    ours.next().unwrap_or_else(|| "(assembly and libraries)".to_owned())
}

impl Profile {
    /// Instructions of the run, in user mode and in all functions of the kernel.
    pub fn total(&self) -> u64 {
        self.user + self.functions.values().sum::<u64>()
    }

    /// The table for a reader: the dearest functions and files, the rest in one line each.
    #[expect(clippy::cast_precision_loss, reason = "52 bits of a count are plenty")]
    pub fn table(&self, rows: usize) -> String {
        let (total, operations) = (self.total(), self.figure.iterations as f64);
        let share = |count: u64| count as f64 / total.max(1) as f64 * 100.0;
        let line = |text: &mut String, name: &str, count: u64| {
            let each = number(count as f64 / operations);
            let _ = writeln!(text, "  {each:>12} {:>6.2} %  {name}", share(count));
        };
        let mut text = String::new();
        let figure = number(self.figure.per_operation());
        let _ = writeln!(text, "{}: {figure} instructions per operation", self.figure.name);
        line(&mut text, "in user mode", self.user);
        line(&mut text, "in the kernel, by function:", total - self.user);
        for (title, counts) in
            [("", &self.functions), ("by source file (inlined code where it was written):", &self.files)]
        {
            if !title.is_empty() {
                let _ = writeln!(text, "  {:>12} {:>8}  {title}", "", "");
            }
            let mut sorted: Vec<(&String, &u64)> = counts.iter().collect();
            sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
            sorted.iter().take(rows).for_each(|(name, count)| line(&mut text, &format!("  {name}"), **count));
            let rest: u64 = sorted.iter().skip(rows).map(|(_, count)| **count).sum();
            if rest > 0 {
                line(&mut text, &format!("  {} others", sorted.len() - rows), rest);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_without_blocks_still_counts_and_a_torn_line_is_an_error() {
        let found = sections("SECTION 0\nffffffff80000000 3 100\n401000 2 7\nSECTION 1\n").unwrap();
        assert_eq!(found, [vec![(0xffff_ffff_8000_0000, 3, 100), (0x40_1000, 2, 7)], vec![]]);
        assert!(sections("SECTION 0\nffff 3\n").is_err());
        assert!(sections("ffff 3 4\n").is_err());
    }

    #[test]
    fn rows_beyond_the_table_are_summed_and_not_dropped() {
        let figure = Figure { name: "getpid".into(), iterations: 10, total_ns: 1000 };
        let functions = BTreeMap::from([("a".to_owned(), 600), ("b".to_owned(), 200), ("c".to_owned(), 100)]);
        let profile = Profile { figure, user: 100, functions, files: BTreeMap::new() };
        assert_eq!(profile.total(), 1000);
        let table = profile.table(1);
        assert!(table.contains("60.0  60.00 %    a") && table.contains("30.0  30.00 %    2 others"), "{table}");
    }
}
