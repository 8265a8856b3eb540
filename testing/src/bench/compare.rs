//! Compares two runs and says it in a table: ratio per benchmark, geometric mean, the slowest five.
//!
//! Runs made under different conditions, or with different iteration counts, are refused: such a ratio would be a
//! number without a meaning.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::verdict::Bounds;
use super::{BenchRow, Run};

/// One benchmark under two kernels.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Name of the benchmark.
    pub name: String,
    /// Per operation, under the kernel that is judged.
    pub ours: f64,
    /// Per operation, under the kernel it is compared with.
    pub theirs: f64,
    /// How far either moves between memory layouts, in percent; absent when one layout was measured.
    pub spread: Option<f64>,
    /// Of both, the part in the kernel; absent where it was not counted apart.
    pub kernel: Option<[f64; 2]>,
}

impl Pair {
    /// Below one we are faster.
    pub fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }

    /// The ratio of the parts in the kernel, if each is at least one instruction: what a program does without the
    /// kernel has none.
    pub fn kernel_ratio(&self) -> Option<f64> {
        let [ours, theirs] = self.kernel?;
        (ours >= 1.0 && theirs >= 1.0).then(|| ours / theirs)
    }
}

/// Pairs the figures of two runs.
pub fn compare(ours: &Run, theirs: &Run) -> Result<Vec<Pair>> {
    ensure!(ours.conditions.flags == theirs.conditions.flags, "not compared: QEMU's flags differ");
    ensure!(ours.conditions.image == theirs.conditions.image, "not compared: the images differ");
    let pair = |figure: &super::Figure| {
        let name = &figure.name;
        let other = theirs.figure(name).with_context(|| format!("not compared: {name} has one figure only"))?;
        let (one, two) = (figure.iterations, other.iterations);
        ensure!(one == two, "not compared: {name} has {one} iterations here and {two} there");
        let spread = |run: &Run| run.spread.get(name).copied();
        let spread = spread(ours).zip(spread(theirs)).map(|(one, two)| one.max(two));
        let kernel = ours.in_kernel(name).zip(theirs.in_kernel(name)).map(|(one, two)| [one, two]);
        Ok(Pair { name: name.clone(), ours: figure.per_operation(), theirs: other.per_operation(), spread, kernel })
    };
    ours.figures.iter().map(pair).collect()
}

/// The geometric mean of the ratios; one for no ratios.
pub fn geometric_mean(pairs: &[Pair]) -> f64 {
    mean(pairs.iter().map(Pair::ratio))
}

/// The geometric mean of the ratios of what the kernels alone did, and of how many benchmarks; `None` where that was
/// not counted apart.
pub fn kernel_mean(pairs: &[Pair]) -> Option<(f64, usize)> {
    let ratios: Vec<f64> = pairs.iter().filter_map(Pair::kernel_ratio).collect();
    (!ratios.is_empty()).then(|| (mean(ratios.iter().copied()), ratios.len()))
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^52 benchmarks")]
fn mean(ratios: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = ratios.len().max(1) as f64;
    (ratios.map(f64::ln).sum::<f64>() / count).exp()
}

/// The table of a comparison, with a verdict on each row.
pub fn table(pairs: &[Pair], bounds: &Bounds, unit: &str) -> String {
    let mut text = String::new();
    let apart = kernel_mean(pairs);
    let heads = ["ours", "linux", "ratio"];
    let kernel_heads =
        if apart.is_some() { format!(" {:>14} {:>14} {:>7}", "our kernel", "linux'", "ratio") } else { String::new() };
    let _ = writeln!(
        text,
        "{:<18} {:>14} {:>14} {:>7} {:<10}{kernel_heads}   ({unit})",
        "benchmark", heads[0], heads[1], heads[2], "verdict"
    );
    for pair in pairs {
        let (ours, theirs) = (number(pair.ours), number(pair.theirs));
        let spread = pair.spread.map_or_else(String::new, |percent| format!("  ±{percent:.2} %"));
        let kernel = pair.kernel.map_or_else(String::new, |[ours, theirs]| {
            let ratio = pair.kernel_ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
            format!(" {:>14} {:>14} {ratio:>7}", number(ours), number(theirs))
        });
        let ratio = pair.ratio();
        let standing = bounds.judge(ratio);
        let _ = writeln!(text, "{:<18} {ours:>14} {theirs:>14} {ratio:>7.3} {standing:<10}{kernel}{spread}", pair.name);
    }
    let slower = pairs.iter().filter(|pair| pair.ratio() > 1.0).count();
    let behind = pairs.iter().filter(|pair| pair.ratio() > 0.9).count();
    let mean = geometric_mean(pairs);
    let _ =
        writeln!(text, "\n{} benchmarks, geometric mean {mean:.3}, {slower} slower, {behind} above 0.90", pairs.len());
    let _ = writeln!(text, "{}", bounds.summary(pairs.iter().map(Pair::ratio)));
    if let Some((mean, count)) = apart {
        let _ = writeln!(text, "in the kernel alone: {count} benchmarks, geometric mean {mean:.3}");
    }
    let worst: Vec<String> =
        slowest(pairs).iter().take(5).map(|pair| format!("{} {:.2}", pair.name, pair.ratio())).collect();
    let _ = writeln!(text, "slowest five: {}", worst.join(", "));
    text
}

/// The pairs, the highest ratio first.
pub fn slowest(pairs: &[Pair]) -> Vec<&Pair> {
    let mut sorted: Vec<&Pair> = pairs.iter().collect();
    sorted.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    sorted
}

/// The same figures of several kernels side by side, each beside its ratio to the one called `base`.
pub fn side_by_side(runs: &[(&str, &Run)], base: &str) -> Result<String> {
    let reference = runs.iter().find(|(name, _)| *name == base).map(|(_, run)| *run);
    let reference = reference.with_context(|| format!("there is no run of {base} to compare with"))?;
    let mut text = format!("{:<18}", "benchmark");
    for (name, _) in runs {
        let _ = write!(text, " {name:>21}");
    }
    text.push('\n');
    let columns: Vec<Vec<Pair>> = runs.iter().map(|(_, run)| compare(run, reference)).collect::<Result<_>>()?;
    for (row, figure) in reference.figures.iter().enumerate() {
        let _ = write!(text, "{:<18}", figure.name);
        for column in &columns {
            let pair = &column[row];
            let _ = write!(text, " {:>14} {:>6.3}", number(pair.ours), pair.ratio());
        }
        text.push('\n');
    }
    let _ = write!(text, "{:<18}", "geometric mean");
    for column in &columns {
        let _ = write!(text, " {:>14} {:>6.3}", "", geometric_mean(column));
    }
    text.push('\n');
    Ok(text)
}

/// The table of one kernel alone, beside the reference figures of Linux where there are some.
pub fn single_table(run: &Run, rows: &[BenchRow], reference: impl Fn(&BenchRow) -> Option<f64>, unit: &str) -> String {
    let mut text = String::new();
    let _ =
        writeln!(text, "{:<18} {:>12} {:>14} {:>14}   ({unit})", "benchmark", "iterations", run.kernel, "was (Linux)");
    for figure in &run.figures {
        let reference = rows.iter().find(|row| row.name == figure.name).and_then(&reference);
        let reference = reference.map_or_else(|| "-".to_owned(), number);
        let value = number(figure.per_operation());
        let _ = writeln!(text, "{:<18} {:>12} {value:>14} {reference:>14}", figure.name, figure.iterations);
    }
    text
}

/// Thousands apart, one decimal below a thousand.
pub fn number(value: f64) -> String {
    if value < 1000.0 {
        return format!("{value:.1}");
    }
    kwab::units::grouped(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Conditions, Figure};

    fn bounds() -> Bounds {
        crate::bench::bounds().unwrap()
    }

    fn run(kernel: &str, image: u32, figures: &[(&str, u64, u64)]) -> Run {
        let figures = figures.iter().map(|(name, iterations, total_ns)| Figure {
            name: (*name).to_owned(),
            iterations: *iterations,
            total_ns: *total_ns,
        });
        let conditions = Conditions { flags: vec!["-smp 1".into()], image };
        Run {
            kernel: kernel.into(),
            conditions,
            figures: figures.collect(),
            spread: Default::default(),
            user: Default::default(),
        }
    }

    #[test]
    fn what_the_kernels_did_is_compared_without_the_program() {
        let (mut ours, mut linux) =
            (run("ours", 1, &[("a", 10, 1500), ("b", 1, 37)]), run("linux", 1, &[("a", 10, 3000), ("b", 1, 79)]));
        let plain = compare(&ours, &linux).unwrap();
        assert_eq!((kernel_mean(&plain), plain[0].kernel_ratio()), (None, None));
        assert!(!table(&plain, &bounds(), "instructions").contains("in the kernel"));
        ours.user = [("a".to_owned(), 1000), ("b".to_owned(), 37)].into();
        linux.user = [("a".to_owned(), 1000), ("b".to_owned(), 79)].into();
        let pairs = compare(&ours, &linux).unwrap();
        assert_eq!(pairs[0].kernel, Some([50.0, 200.0]));
        assert_eq!(kernel_mean(&pairs), Some((0.25, 1)), "a benchmark without calls has no part in the kernel");
        assert!(
            table(&pairs, &bounds(), "instructions")
                .contains("in the kernel alone: 1 benchmarks, geometric mean 0.250")
        );
    }

    #[test]
    fn a_comparison_of_different_iteration_counts_is_refused() {
        let error = compare(&run("ours", 1, &[("getpid", 10, 1)]), &run("linux", 1, &[("getpid", 20, 1)])).unwrap_err();
        assert_eq!(error.to_string(), "not compared: getpid has 10 iterations here and 20 there");
    }

    #[test]
    fn a_comparison_of_different_images_is_refused() {
        assert!(compare(&run("ours", 1, &[]), &run("linux", 2, &[])).is_err());
    }

    #[test]
    fn half_the_price_and_twice_the_price_make_a_mean_of_one() {
        let ours = run("ours", 1, &[("a", 1, 50), ("b", 1, 400)]);
        let pairs = compare(&ours, &run("linux", 1, &[("a", 1, 100), ("b", 1, 200)])).unwrap();
        assert!((geometric_mean(&pairs) - 1.0).abs() < 1e-9);
        let table = table(&pairs, &bounds(), "instructions");
        assert!(table.contains("1 slower") && table.contains("slowest five: b 2.00, a 0.50"), "{table}");
        assert!(table.contains("2.000 REGRESSION") && table.contains("0.500 faster"), "{table}");
        assert!(table.contains("1 faster, 0 even, 0 marginal, 1 REGRESSION"), "{table}");
    }

    #[test]
    fn kernels_side_by_side_are_measured_against_the_one_named() {
        let (fast, base) = (run("fast", 1, &[("a", 1, 50)]), run("base", 1, &[("a", 1, 100)]));
        let text = side_by_side(&[("fast", &fast), ("base", &base)], "base").unwrap();
        assert!(text.contains("50.0  0.500") && text.contains("100.0  1.000"), "{text}");
        assert!(side_by_side(&[("fast", &fast)], "base").is_err());
    }

    #[test]
    fn long_figures_are_grouped() {
        assert_eq!(number(1_234_567.4), "1,234,567");
        assert_eq!(number(312.04), "312.0");
    }
}
