//! Benchmarks: what is measured, by which method, and what may be compared.
//!
//! A [`Figure`] is one line of the guest program `testing/guest/bench`. A [`Run`] is all figures of one kernel with the
//! [`Conditions`] under which they came about: QEMU's flags, the image's checksum, the clock. Two runs are compared
//! only when conditions and iteration counts agree ([`compare::compare`]). The names, their order and the reference
//! figures are `testing/bench/table.toml`; a test holds the guest's C tables against it.

pub mod baseline;
pub mod compare;
pub mod memory;
pub mod method;
pub mod profile;
pub mod scaling;
pub mod spans;
pub mod verdict;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

/// One benchmark's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the benchmark, as in the table.
    pub name: String,
    /// How many operations were made.
    pub iterations: u64,
    /// Guest time for all of them; under the instruction clock one nanosecond is one instruction.
    pub total_ns: u64,
}

impl Figure {
    /// Reads a `BENCH <name> <iterations> <total_ns> <ns_per_iteration>` line; `None` for any other line.
    pub fn parse(line: &str) -> Option<Result<Self>> {
        let rest = line.strip_prefix("BENCH ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let figure = || {
            let [name, iterations, total, _per_operation] = fields[..] else { bail!("four fields expected") };
            let figure = Self { name: name.to_owned(), iterations: iterations.parse()?, total_ns: total.parse()? };
            anyhow::ensure!(figure.iterations > 0, "no iterations");
            Ok(figure)
        };
        Some(figure().with_context(|| format!("not a benchmark line: {line}")))
    }

    /// Nanoseconds (instructions) per operation.
    #[expect(clippy::cast_precision_loss, reason = "52 bits of a figure are plenty")]
    pub fn per_operation(&self) -> f64 {
        self.total_ns as f64 / self.iterations as f64
    }
}

/// What must agree before two runs are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// QEMU's flags, without the kernel and its options.
    pub flags: Vec<String>,
    /// CRC-32 of the initramfs.
    pub image: u32,
}

/// All figures of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the kernel that ran.
    pub kernel: String,
    /// How they were measured.
    pub conditions: Conditions,
    /// In the order of the guest's output.
    pub figures: Vec<Figure>,
    /// How far a figure moves between memory layouts, in percent of its middle (half the distance of its extremes);
    /// empty when one layout was measured.
    #[serde(default)]
    pub spread: BTreeMap<String, f64>,
    /// Instructions of all operations of a benchmark in user mode; empty where they were not counted apart.
    #[serde(default)]
    pub user: BTreeMap<String, u64>,
}

impl Run {
    /// A figure by name.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// Instructions per operation in the kernel, if those in user mode were counted apart.
    #[expect(clippy::cast_precision_loss, reason = "52 bits of a figure are plenty")]
    pub fn in_kernel(&self, name: &str) -> Option<f64> {
        let (figure, user) = (self.figure(name)?, self.user.get(name)?);
        Some(figure.total_ns.saturating_sub(*user) as f64 / figure.iterations as f64)
    }

    /// Notes how far each figure moves between this run and others in other memory layouts.
    #[expect(clippy::cast_precision_loss, reason = "52 bits of a figure are plenty")]
    pub fn note_spread(&mut self, others: &[Self]) -> Result<()> {
        for figure in &self.figures {
            let (mut low, mut high) = (figure.total_ns, figure.total_ns);
            for other in others {
                let again =
                    other.figure(&figure.name).with_context(|| format!("{} is missing in a run", figure.name))?;
                anyhow::ensure!(again.iterations == figure.iterations, "{}: iteration counts differ", figure.name);
                (low, high) = (low.min(again.total_ns), high.max(again.total_ns));
            }
            let percent = (high - low) as f64 / (high + low) as f64 * 100.0;
            self.spread.insert(figure.name.clone(), percent);
        }
        Ok(())
    }

    /// Keeps of each figure the smaller total of two runs made under the same conditions.
    pub fn keep_minimum(&mut self, other: &Self) -> Result<()> {
        anyhow::ensure!(self.conditions == other.conditions, "the runs were made under different conditions");
        for figure in &mut self.figures {
            let again = other.figure(&figure.name).with_context(|| format!("{} is missing in one run", figure.name))?;
            anyhow::ensure!(again.iterations == figure.iterations, "{}: iteration counts differ", figure.name);
            figure.total_ns = figure.total_ns.min(again.total_ns);
        }
        Ok(())
    }
}

/// One row of the table of benchmarks.
#[derive(Clone, Debug, Deserialize)]
pub struct BenchRow {
    /// Name of the benchmark, unique in the table.
    pub name: String,
    /// How many operations one run makes.
    pub iterations: u64,
    /// Instructions per operation of Debian's Linux when the project began; workloads have none.
    pub linux: Option<f64>,
    /// The same of the kernel in the articles.
    pub kevlar: Option<f64>,
    /// Nanoseconds of Linux under plain TCG.
    pub linux_wall: Option<f64>,
    /// The same of the kernel in the articles.
    pub kevlar_wall: Option<f64>,
}

impl BenchRow {
    /// Instructions per operation of the kernel in the articles, and of the Linux beside it.
    pub fn of_articles(&self) -> Option<[f64; 2]> {
        Some([self.kevlar?, self.linux?])
    }

    /// The same in nanoseconds.
    pub fn of_articles_wall(&self) -> Option<[f64; 2]> {
        Some([self.kevlar_wall?, self.linux_wall?])
    }
}

/// `testing/bench/table.toml`.
#[derive(Deserialize)]
struct BenchTable {
    verdict: verdict::Bounds,
    bench: Vec<BenchRow>,
}

fn read_table() -> Result<BenchTable> {
    toml::from_str(include_str!("../../bench/table.toml")).context("testing/bench/table.toml")
}

/// The table of benchmarks, in the guest's order.
pub fn table() -> Result<Vec<BenchRow>> {
    Ok(read_table()?.bench)
}

/// The bounds of the verdicts on ratios to Linux.
pub fn bounds() -> Result<verdict::Bounds> {
    read_table()?.verdict.checked().context("testing/bench/table.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_tables_and_the_reference_table_name_the_same_benchmarks_with_the_same_counts() {
        let folder = crate::paths::root().join("testing/guest/bench");
        let mut in_guest = Vec::new();
        for file in ["calls", "memory", "files", "events", "processes", "busybox"] {
            let text = crate::paths::read(&folder.join(file).with_extension("c")).unwrap();
            for row in text.lines().filter_map(|line| line.strip_prefix("    {\"")) {
                let fields: Vec<&str> = row.split(", ").collect();
                in_guest.push((fields[0].trim_end_matches('"').to_owned(), fields[1].parse::<u64>().unwrap()));
            }
        }
        let in_table: Vec<_> = table().unwrap().into_iter().map(|row| (row.name, row.iterations)).collect();
        assert_eq!(in_guest, in_table);
        assert_eq!(in_table.iter().filter(|row| !row.0.starts_with("bb_")).count(), 50);
        assert_eq!(in_table.iter().filter(|row| row.0.starts_with("bb_")).count(), 22);
    }

    #[test]
    fn a_figure_between_90_and_110_moves_by_ten_percent() {
        let run = |total_ns| Run {
            user: BTreeMap::new(),
            kernel: "ours".into(),
            conditions: Conditions { flags: Vec::new(), image: 0 },
            figures: vec![Figure { name: "a".into(), iterations: 1, total_ns }],
            spread: BTreeMap::new(),
        };
        let mut first = run(100);
        first.note_spread(&[run(90), run(110)]).unwrap();
        assert!((first.spread["a"] - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_torn_benchmark_line_is_an_error_and_other_lines_are_none() {
        assert!(Figure::parse("hello").is_none());
        assert!(Figure::parse("BENCH getpid 1000").unwrap().is_err());
        assert!(Figure::parse("BENCH getpid 0 0 0").unwrap().is_err());
        let figure = Figure::parse("BENCH getpid 1000 312500 312").unwrap().unwrap();
        assert!((figure.per_operation() - 312.5).abs() < 1e-9);
    }
}
