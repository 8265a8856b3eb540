//! The page of results: one table per judge, from what [`keep`](crate::results::keep) wrote.
//!
//! Every figure comes from a complete run. What the worst rows need cannot be computed: it is written by hand in
//! `testing/needs.toml`, by the beginning of a row's name, and a worst row without a word is one of the page's gaps.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::bench::compare::{self, Pair, number};
use crate::bench::memory::{self, MemoryRun};
use crate::bench::{self, BenchRow, Run};
use crate::contracts::coverage;
use crate::contracts::results::ContractRow;
use crate::contracts::verdict::Verdict;
use crate::exam::row as exam;
use crate::fuzz::record::Record;
use crate::kernel::Safety;
use crate::linux_crashes::kit::Architecture;
use crate::linux_crashes::rows::{self, WayRow};
use crate::mutants::{report, seeds};
use crate::paths;
use crate::results::{Circumstances, Kept, kept};
use crate::suites::{Suite, SuiteComparison};

pub mod figures;

/// The rendered page.
#[derive(Debug)]
pub struct Page {
    /// The page in Markdown.
    pub text: String,
    /// What is missing in it.
    pub gaps: Vec<String>,
}

/// What rows would need, by judge and the beginning of a row's name.
#[derive(Debug, Deserialize)]
struct Needs(BTreeMap<String, BTreeMap<String, String>>);

/// Rows of each judge that are named as the worst.
const WORST: usize = 10;

/// The section of a page that has this title, from the empty line before it.
fn section<'p>(page: &'p str, title: &str) -> Option<&'p str> {
    let from = page.find(&format!("\n## {title}\n"))?;
    let len = page[from + 1..].find("\n## ").map_or(page.len() - from, |next| next + 1);
    Some(&page[from..from + len])
}

/// Renders the page.
pub fn render() -> Result<Page> {
    let needs =
        toml::from_str(&paths::read(&paths::root().join("testing/needs.toml"))?).context("testing/needs.toml")?;
    let before = paths::read(&paths::root().join("testing/RESULTS.md")).unwrap_or_default();
    let mut writer = Writer { text: HEAD.to_owned(), gaps: Vec::new(), needs, before };
    writer.contracts()?;
    for suite in [Suite::Busybox, Suite::Posix, Suite::Programs] {
        writer.suite(suite)?;
    }
    writer.bench("bench", "Benchmarks in guest instructions", "cargo xtask bench")?;
    writer.bench("bench-wall", "Benchmarks in wall time, nanoseconds", "cargo xtask bench --wall")?;
    writer.memory()?;
    writer.safety()?;
    writer.exam()?;
    writer.mutants()?;
    writer.fuzz()?;
    for on in [Architecture::Amd64, Architecture::Arm64] {
        writer.linux_crashes(on)?;
    }
    Ok(Page { text: writer.text, gaps: writer.gaps })
}

const HEAD: &str = "# Results

Rendered by `cargo xtask results` from what the judges wrote; nothing here is typed by hand but the notes on what a row
would need (`testing/needs.toml`). Every comparison is with Debian's Linux in the same QEMU (TCG), from the same image.
No row is left out.
";

struct Writer {
    text: String,
    gaps: Vec<String>,
    needs: Needs,
    /// The page as it was.
    before: String,
}

impl Writer {
    fn contracts(&mut self) -> Result<()> {
        let command = "cargo xtask contracts";
        let Some(Kept { circumstances, results }) = self.load::<Vec<ContractRow>>("contracts", "Contracts", command)?
        else {
            return Ok(());
        };
        let mut areas: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        for row in &results {
            let area = areas.entry(row.name.split('/').next().unwrap_or_default()).or_default();
            area[0] += 1;
            area[1] += usize::from(matches!(row.verdict, Verdict::Same | Verdict::Unsteady(_)));
            area[2] += usize::from(matches!(row.verdict, Verdict::Known(_)));
        }
        self.heading("Contracts", command, &circumstances);
        self.line("| area | contracts | as Linux | known differences | failures |\n|---|---:|---:|---:|---:|");
        let mut all = [0; 3];
        for (area, counts) in &areas {
            self.counts(area, *counts);
            (0..3).for_each(|at| all[at] += counts[at]);
        }
        self.counts("all", all);
        let differing: Vec<&ContractRow> = results.iter().filter(|row| row.verdict != Verdict::Same).collect();
        let _ = writeln!(self.text, "\nThe {} that differ:\n", differing.len());
        self.line("| contract | verdict | why |\n|---|---|---|");
        for row in differing {
            let why = cell(&row.verdict.to_string());
            let _ = writeln!(self.text, "| `{}` | {} | {why} |", row.name, row.verdict.word());
        }
        Ok(())
    }

    fn counts(&mut self, name: &str, [count, same, known]: [usize; 3]) {
        let failures = count - same - known;
        let _ = writeln!(self.text, "| {name} | {count} | {same} | {known} | {failures} |");
    }

    fn suite(&mut self, suite: Suite) -> Result<()> {
        let (title, name) = match suite {
            Suite::Busybox => ("BusyBox's testsuite", "suite-busybox"),
            Suite::Posix => ("Open POSIX Test Suite", "suite-posix"),
            Suite::Programs => ("Debian's dynamic programs", "suite-programs"),
        };
        let command = format!("cargo xtask suite {}", suite.name());
        let Some(Kept { circumstances, results }) = self.load::<SuiteComparison>(name, title, &command)? else {
            return Ok(());
        };
        self.heading(title, &command, &circumstances);
        let rows = results.rows();
        let count = |wanted: &dyn Fn(&str, &str) -> bool| rows.iter().filter(|row| wanted(row.1, row.2)).count();
        let (here, there) = (count(&|here, _| here == "pass"), count(&|_, there| there == "pass"));
        let (only_there, only_here) = (
            count(&|here, there| here != "pass" && there == "pass"),
            count(&|here, there| here == "pass" && there != "pass"),
        );
        self.line("| tests | pass here | pass on Linux | only on Linux | only here |\n|---:|---:|---:|---:|---:|");
        let _ = writeln!(self.text, "| {} | {here} | {there} | {only_there} | {only_here} |", rows.len());
        if !results.unsteady.is_empty() {
            let _ = writeln!(self.text, "\nWorse only in the first of two runs: {}.", results.unsteady.join(", "));
        }
        let mut groups: BTreeMap<&str, Vec<&(&str, &str, &str)>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.1 != row.2) {
            groups.entry(row.0.split(['.', ':']).next().unwrap_or_default()).or_default().push(row);
        }
        let lost = |rows: &[&(&str, &str, &str)]| rows.iter().filter(|row| row.2 == "pass").count();
        let mut sorted: Vec<_> = groups.into_iter().collect();
        sorted.sort_by(|a, b| lost(&b.1).cmp(&lost(&a.1)).then(a.0.cmp(b.0)));
        if sorted.is_empty() {
            self.line("\nNone differs.");
            return Ok(());
        }
        self.line("\n| group | only on Linux | tests that differ (here, on Linux) | would need |\n|---|---:|---|---|");
        for (index, (group, rows)) in sorted.into_iter().enumerate() {
            let tests: Vec<String> =
                rows.iter().map(|(test, here, there)| difference(group, test, here, there)).collect();
            let lost = lost(&rows);
            let need = self.need(suite.name(), group, index < WORST && lost > 0);
            let _ = writeln!(self.text, "| {group} | {lost} | {} | {need} |", tests.join("; "));
        }
        Ok(())
    }

    fn bench(&mut self, name: &str, title: &str, command: &str) -> Result<()> {
        let Some(Kept { circumstances, results }) = self.load::<Vec<Run>>(name, title, command)? else { return Ok(()) };
        let [ours, linux] = &results[..] else { anyhow::bail!("{name}: two runs expected, {} found", results.len()) };
        let pairs = compare::compare(ours, linux)?;
        self.heading(title, command, &circumstances);
        let above = |limit: f64| pairs.iter().filter(|pair| pair.ratio() > limit).count();
        let mean = compare::geometric_mean(&pairs);
        let (slower, behind) = (above(1.0), above(0.9));
        let _ = writeln!(
            self.text,
            "{} benchmarks: geometric mean {mean:.3} of Linux, {slower} slower than Linux, {behind} above 0.90.\n",
            pairs.len()
        );
        if let Some((mean, count)) = compare::kernel_mean(&pairs) {
            let _ = writeln!(
                self.text,
                "Without what the programs do in user mode: geometric mean {mean:.3} of Linux, of the {count} \
                 benchmarks that enter the kernel.\n"
            );
            return self.bench_apart(name, &pairs);
        }
        self.line("| benchmark | here | Linux | ratio | ± |\n|---|---:|---:|---:|---:|");
        for pair in &pairs {
            let spread = pair.spread.map_or_else(String::new, |percent| format!("{percent:.2} %"));
            let (here, there) = (number(pair.ours), number(pair.theirs));
            let _ = writeln!(self.text, "| {} | {here} | {there} | {:.3} | {spread} |", pair.name, pair.ratio());
        }
        self.bench_worst(name, &pairs)
    }

    /// The table with the part of each figure that is the kernels' own.
    fn bench_apart(&mut self, name: &str, pairs: &[Pair]) -> Result<()> {
        self.line("| benchmark | here | Linux | ratio | kernel here | kernel Linux | ratio | ± |");
        self.line("|---|---:|---:|---:|---:|---:|---:|---:|");
        for pair in pairs {
            let spread = pair.spread.map_or_else(String::new, |percent| format!("{percent:.2} %"));
            let (here, there) = (number(pair.ours), number(pair.theirs));
            let [kernel_here, kernel_there] = pair.kernel.unwrap_or_default().map(number);
            let apart = pair.kernel_ratio().map_or_else(String::new, |ratio| format!("{ratio:.3}"));
            let whole = format!("{} | {here} | {there} | {:.3}", pair.name, pair.ratio());
            let _ = writeln!(self.text, "| {whole} | {kernel_here} | {kernel_there} | {apart} | {spread} |");
        }
        self.bench_worst(name, pairs)
    }

    fn bench_worst(&mut self, name: &str, pairs: &[Pair]) -> Result<()> {
        let _ = writeln!(self.text, "\nThe {WORST} furthest behind:\n");
        self.line("| benchmark | ratio | would need |\n|---|---:|---|");
        let worst: Vec<Pair> = compare::slowest(pairs).into_iter().take(WORST).cloned().collect();
        for pair in worst {
            let need = self.need("bench", &pair.name, true);
            let _ = writeln!(self.text, "| {} | {:.3} | {need} |", pair.name, pair.ratio());
        }
        self.articles(pairs, if name == "bench" { BenchRow::of_articles } else { BenchRow::of_articles_wall })
    }

    /// The rows that cost more than they did under the kernel of the articles, which was measured beside a Linux of its
    /// day.
    fn articles(&mut self, pairs: &[Pair], of: fn(&BenchRow) -> Option<[f64; 2]>) -> Result<()> {
        let table = bench::table()?;
        let known = |pair: &Pair| table.iter().find(|row| row.name == pair.name).and_then(of);
        let beside: Vec<(&Pair, [f64; 2])> = pairs.iter().filter_map(|pair| Some((pair, known(pair)?))).collect();
        let behind: Vec<_> = beside.iter().filter(|(pair, [theirs, _])| pair.ours > *theirs).collect();
        let (behind_count, all) = (behind.len(), beside.len());
        let _ =
            writeln!(self.text, "\n{behind_count} of {all} rows cost more than under the kernel of the articles.\n");
        if behind.is_empty() {
            return Ok(());
        }
        self.line("| benchmark | here | there | here/Linux | there/Linux | because |\n|---|---:|---:|---:|---:|---|");
        for (pair, [theirs, linux]) in behind {
            let because = self.need("articles", &pair.name, true);
            let (here, there) = (number(pair.ours), number(*theirs));
            let ratios = format!("{:.3} | {:.3}", pair.ratio(), theirs / linux);
            let _ = writeln!(self.text, "| {} | {here} | {there} | {ratios} | {because} |", pair.name);
        }
        Ok(())
    }

    fn memory(&mut self) -> Result<()> {
        let (title, command) = ("Memory", "cargo xtask bench --memory");
        let Some(Kept { circumstances, results }) = self.load::<Vec<MemoryRun>>("bench-memory", title, command)? else {
            return Ok(());
        };
        let [ours, linux] = &results[..] else { anyhow::bail!("{title}: two runs expected, {} found", results.len()) };
        self.heading(title, command, &circumstances);
        let _ = writeln!(
            self.text,
            "Bytes per object on a machine of {} MiB: by how much `MemFree` became less behind the first of four \
             steps, divided by the objects made since; kept is what was not free again a second after all had ended. \
             Each row has a boot of its own.\n",
            ours.machine_mib
        );
        self.line("| row | what one is | objects | here | Linux | ratio | kept here | kept Linux | because |");
        self.line("|---|---|---:|---:|---:|---:|---:|---:|---|");
        for (row, other) in memory::pairs(ours, linux) {
            let ratio = row.bytes / other.bytes;
            let because = self.need("memory", &row.name, ratio > 1.01);
            let what = format!("{} | {} | {}", row.name, memory::meaning(&row.name), row.objects);
            let figures = format!("{} | {} | {ratio:.3}", number(row.bytes), number(other.bytes));
            let kept = format!("{} | {}", memory::signed(row.kept), memory::signed(other.kept));
            let _ = writeln!(self.text, "| {what} | {figures} | {kept} | {because} |");
        }
        Ok(())
    }

    fn exam(&mut self) -> Result<()> {
        let (title, command) = ("Exam of the toolchain", "cargo xtask exam --repeat 3");
        let Some(Kept { circumstances, results }) = self.load::<Vec<exam::ExamRow>>("exam", title, command)? else {
            return Ok(());
        };
        self.heading(title, command, &circumstances);
        self.line(&format!("{}\n\n{}", exam::summary(&results), exam::table(&results).trim_end()));
        Ok(())
    }

    fn mutants(&mut self) -> Result<()> {
        self.line(
            "\n## Diagnosis of mutants\n\n`cargo xtask mutants --seed S --count N --write`, with every mutant in",
        );
        self.line("`testing/mutants/`. Each seed was judged before anything was changed for it.\n");
        self.line(report::tables(&seeds::all()?).trim_end());
        Ok(())
    }

    fn fuzz(&mut self) -> Result<()> {
        let (title, command) = ("Fuzzing of system calls", "cargo xtask fuzz-syscalls");
        let Some(Kept { circumstances, results }) = self.load::<Record>("fuzz", title, command)? else {
            return Ok(());
        };
        self.heading(title, command, &circumstances);
        self.line(results.table(&coverage::answered()?).trim_end());
        Ok(())
    }

    fn linux_crashes(&mut self, on: Architecture) -> Result<()> {
        let title = format!("Deaths of Debian's Linux, {}", on.name());
        let command = format!("cargo xtask linux-crashes --arch {}", on.name());
        let name = format!("linux-crashes-{}", on.name());
        let Some(Kept { circumstances, results }) = self.load::<Vec<WayRow>>(&name, &title, &command)? else {
            return Ok(());
        };
        let Circumstances { date, commit, linux, qemu } = circumstances;
        let _ = writeln!(
            self.text,
            "\n## {title}\n\n`{command}`, {date}, `kwab` at commit {commit}, Linux {linux}, QEMU {qemu}.\n\nWhat \
             `kwab` says of the serial log of each death, against what is known about it.\n"
        );
        self.line(rows::markdown(&results).trim_end());
        Ok(())
    }

    fn safety(&mut self) -> Result<()> {
        let (title, command) = ("Safety profiles", "cargo xtask bench --safety all");
        let Some(Kept { circumstances, results }) = self.load::<Vec<Run>>("bench-safety", title, command)? else {
            return Ok(());
        };
        self.heading(title, command, &circumstances);
        self.line(
            "Guest instructions per operation, and their ratio to the balanced profile, which is what is shipped.\n",
        );
        let base = results.iter().find(|run| run.kernel == Safety::Balanced.name()).context("no balanced run")?.clone();
        let columns: Vec<Vec<Pair>> = results.iter().map(|run| compare::compare(run, &base)).collect::<Result<_>>()?;
        let names: Vec<&str> = results.iter().map(|run| run.kernel.as_str()).collect();
        let _ = writeln!(self.text, "| benchmark | {} |\n|---{} |", names.join(" | "), "|---:".repeat(names.len()));
        for (at, figure) in base.figures.iter().enumerate() {
            let cells: Vec<String> =
                columns.iter().map(|pairs| format!("{} ({:.3})", number(pairs[at].ours), pairs[at].ratio())).collect();
            let _ = writeln!(self.text, "| {} | {} |", figure.name, cells.join(" | "));
        }
        let means: Vec<String> = columns.iter().map(|pairs| format!("{:.3}", compare::geometric_mean(pairs))).collect();
        let _ = writeln!(self.text, "| geometric mean | {} |", means.join(" | "));
        Ok(())
    }

    /// The results of a judge; when there are none, its section stays as it was, with its day and commit, and without
    /// one the page says so.
    fn load<T: serde::de::DeserializeOwned>(
        &mut self,
        name: &str,
        title: &str,
        command: &str,
    ) -> Result<Option<Kept<T>>> {
        let found = kept(name)?;
        if found.is_none() {
            match section(&self.before, title) {
                Some(old) => self.text.push_str(old),
                None => {
                    let _ = writeln!(self.text, "\n## {title}\n\nNot run here: `{command}`.");
                }
            }
            self.gaps.push(format!("{title}: `{command}` has not run completely"));
        }
        Ok(found)
    }

    fn heading(&mut self, title: &str, command: &str, circumstances: &Circumstances) {
        let Circumstances { date, commit, linux, qemu } = circumstances;
        // A judge of our kernel alone runs where there is no Linux.
        let linux = if linux.is_empty() { String::new() } else { format!(", {linux}") };
        let _ = writeln!(
            self.text,
            "\n## {title}\n\n`{command}`, {date}, kernel at commit {commit}{linux}, QEMU {qemu}.\n"
        );
    }

    /// What a row would need; its absence is a gap when the row is one of the worst.
    fn need(&mut self, judge: &str, name: &str, is_worst: bool) -> String {
        let notes = self.needs.0.get(judge);
        let longest = notes.and_then(|notes| {
            let fitting = notes.iter().filter(|(start, _)| name.starts_with(start.as_str()));
            fitting.max_by_key(|(start, _)| start.len()).map(|(_, note)| cell(note))
        });
        if longest.is_none() && is_worst {
            self.gaps.push(format!("testing/needs.toml: a word on `{name}` under [{judge}]"));
        }
        longest.unwrap_or_default()
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// One test of a group: its own name, our kernel's word, Linux's.
fn difference(group: &str, test: &str, here: &str, there: &str) -> String {
    let own = test.strip_prefix(group).unwrap_or(test).trim_start_matches(['.', ':', ' ']);
    format!("{} ({}, {})", cell(own), cell(here), cell(there))
}

/// Text for a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(needs: &str) -> Writer {
        let needs = toml::from_str(needs).unwrap();
        Writer { text: String::new(), gaps: Vec::new(), needs, before: String::new() }
    }

    #[test]
    fn a_section_reaches_to_the_next_title_or_to_the_end() {
        let page = "# Results\n\n## One\n\n### Part\n\na\n\n## Two\n\nb\n";
        assert_eq!(section(page, "One"), Some("\n## One\n\n### Part\n\na\n"));
        assert_eq!(section(page, "Two"), Some("\n## Two\n\nb\n"));
        assert_eq!((section(page, "Part"), section(page, "Three")), (None, None));
    }

    #[test]
    fn the_longest_beginning_of_a_name_has_the_word_and_a_worst_row_without_one_is_a_gap() {
        let mut writer = writer("[posix]\nmq = \"queues\"\nmq_notify = \"queues | signals\"\n");
        assert_eq!(writer.need("posix", "mq_send", true), "queues");
        assert_eq!(writer.need("posix", "mq_notify", true), "queues \\| signals");
        assert_eq!(writer.need("posix", "mmap", false), "");
        assert!(writer.gaps.is_empty());
        writer.need("posix", "mmap", true);
        assert_eq!(writer.gaps.len(), 1);
    }

    #[test]
    fn the_notes_in_the_repository_can_be_read() {
        let _: Needs = toml::from_str(&paths::read(&paths::root().join("testing/needs.toml")).unwrap()).unwrap();
    }
}
