//! Gives damaged and lying dumps to everything that kwab does with a dump, as library calls in worker processes.
//!
//! A case is a dump of the corpus with a few mutations, most of them under right checksums
//! ([`crate::second::mutate`]), so that analyses and exports meet values that no kernel writes. A worker runs the
//! cases of a range, one command after the other, under a limit of address space; it survives a panic and goes on. Its
//! parent learns of the rest from what is missing: before each command the worker writes case and command into a file,
//! so a worker that was killed or ran out of memory has named its case.

use std::convert::Infallible;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kwab::analysis::verify::{Backing, verified, verify};
use kwab::analysis::{self, audit, triage};
use kwab::causes::Causes;
use kwab::export::{chrome_trace, core_stacks, elf_core, folded, perfetto_trace, span_tree};
use kwab::import::{Options, import, import_channel};
use kwab::memory::{Ram, Wanted};
use kwab::model::{Depth, Dump, DumpFile, json, line, stream};
use kwab::oracle::{self, CompareOptions, of_dumps};
use kwab::redact::{Policy, redact};
use kwab::report::address::search::{Pattern, search};
use kwab::report::address::translate::translate;
use kwab::report::address::whatis::Question;
use kwab::report::catalogue::{concluded, judge};
use kwab::report::ci::{self, Baseline, Seen};
use kwab::report::diff::{Subject, diff};
use kwab::report::html::{Contents, Held, html};
use kwab::report::markdown::markdown;
use kwab::report::{check, compare, inspect, salvage};
use kwab::symbols::{SourceLines, Symbols};

use crate::second::{Sample, mutate};

/// Bytes of address space of a worker.
pub const MOST_MEMORY: u64 = 1 << 30;
/// The longest that one command may take.
pub const MOST_TIME: Duration = Duration::from_secs(5);

/// A command of kwab: its name, and what it does with the bytes of a dump.
pub struct Command {
    /// Its name on kwab's command line.
    pub name: &'static str,
    run: fn(&[u8]),
}

/// Everything that reads a dump.
pub const COMMANDS: &[Command] = &[
    Command { name: "check", run: |bytes| with_file(bytes, |mut file| drop(check::check(&mut file, "x"))) },
    Command { name: "inspect", run: |bytes| with_file(bytes, |file| inspect_depth(file, Depth::Digest)) },
    Command { name: "inspect of everything", run: |bytes| with_file(bytes, |file| inspect_depth(file, Depth::All)) },
    Command { name: "list", run: |bytes| with_file(bytes, |file| drop(judge(&Dump::load(file, Depth::Rules), "x"))) },
    Command { name: "compare", run: |bytes| with_file(bytes, compare_with_itself) },
    Command { name: "diff", run: |bytes| with_file(bytes, diff_with_itself) },
    Command { name: "report", run: |bytes| with_file(bytes, pages) },
    Command { name: "ci", run: |bytes| with_file(bytes, beside_a_baseline) },
    Command { name: "oracle", run: |bytes| with_file(bytes, runs) },
    Command { name: "translate, search, whatis", run: |bytes| with_dump(bytes, addresses) },
    Command { name: "triage", run: |bytes| with_dump(bytes, analyse) },
    Command { name: "audit-vm", run: |bytes| with_dump(bytes, |dump| drop(audit::audit(&dump.case()))) },
    Command {
        name: "verify-pages",
        run: |bytes| {
            with_dump(bytes, |dump| {
                let (case, backing) = (dump.case(), Backing::none());
                drop((verify(&case, &backing), verified(&case, &backing)));
            });
        },
    },
    Command { name: "export of records", run: |bytes| with_file(bytes, |file| export_records(&file)) },
    Command { name: "export of other forms", run: |bytes| with_dump(bytes, export_forms) },
    Command {
        name: "salvage",
        run: |bytes| with_file(bytes, |file| drop(salvage::salvage(&file, "x", &mut Vec::new()))),
    },
    Command {
        name: "redact",
        run: |bytes| {
            with_file(bytes, |file| {
                for policy in [Policy::Kernel, Policy::Structure] {
                    drop(redact(&file, "x", policy, &mut Vec::new()));
                }
            });
        },
    },
    Command {
        name: "import",
        run: |bytes| {
            let options = Options { source: "x".into(), folder: None };
            drop(import(bytes, &options, &mut |_| {}));
            drop(import_channel(bytes, &options));
        },
    },
];

/// Something that must not happen.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Number of the case.
    pub case: u64,
    /// Name of the command.
    pub command: &'static str,
    /// What the command did wrong: the panic, the exit status or the memory it took.
    pub what: String,
}

/// Runs the cases `range` through `commands`; `file` is where the worker notes each case before it runs
/// it.
///
/// # Errors
/// When that file cannot be written.
pub fn work(
    samples: &[Sample],
    commands: &'static [Command],
    seed: u64,
    range: Range<u64>,
    file: &Path,
) -> Result<Vec<Finding>> {
    let progress = File::create(file).with_context(|| file.display().to_string())?;
    let quiet = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let mut findings = Vec::new();
    for case in range {
        let sample = mutate::resealed(samples, seed, case);
        for (number, command) in commands.iter().enumerate() {
            progress.write_all_at(format!("{case:020} {number:04}").as_bytes(), 0)?;
            let started = Instant::now();
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| (command.run)(&sample.bytes)));
            let took = started.elapsed();
            let finding = |what| Finding { case, command: command.name, what };
            if let Err(payload) = outcome {
                findings.push(finding(format!("panicked: {}", message(payload.as_ref()))));
            }
            if took > MOST_TIME {
                findings.push(finding(format!("took {} ms", took.as_millis())));
            }
        }
    }
    panic::set_hook(quiet);
    Ok(findings)
}

/// What a worker that did not come back was doing.
#[must_use]
pub fn last_words(file: &Path) -> Option<(u64, &'static str)> {
    let text = std::fs::read_to_string(file).ok()?;
    let (case, number) = text.split_once(' ')?;
    let command = COMMANDS.get(number.trim().parse::<usize>().ok()?)?;
    Some((case.parse().ok()?, command.name))
}

fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    text.unwrap_or("no message").to_owned()
}

fn with_file(bytes: &[u8], run: impl FnOnce(DumpFile)) {
    if let Ok(file) = DumpFile::from_bytes(bytes.to_vec()) {
        run(file);
    }
}

fn with_dump(bytes: &[u8], run: impl FnOnce(Dump)) {
    if let Ok(dump) = Dump::from_bytes(bytes.to_vec()) {
        run(dump);
    }
}

fn inspect_depth(file: DumpFile, depth: Depth) {
    let dump = Dump::load(file, depth);
    let report = inspect::inspect(&dump, "x", inspect::Options::default());
    drop(serde_json::to_string(&report));
}

fn compare_with_itself(file: DumpFile) {
    let dump = Dump::load(file, Depth::Digest);
    let report = inspect::inspect(&dump, "x", inspect::Options::default());
    drop(compare::compare(&report, &report));
}

fn diff_with_itself(file: DumpFile) {
    let dump = Dump::load(file, Depth::Digest);
    let report = inspect::inspect(&dump, "x", inspect::Options { rows: 2000, ..Default::default() });
    let (case, symbols) = (dump.case(), Symbols::default());
    let ctx = analysis::Context::new(&case, &symbols, &Backing::none());
    let triage = analysis::judge(&ctx, "x");
    let subject = || Subject::of(concluded(&dump, "x", &triage), &report, &ctx, &triage);
    assert!(diff(subject(), subject()).parts.iter().all(|part| part.changes.is_empty()), "a dump differs from itself");
}

fn pages(file: DumpFile) {
    let dump = Dump::load(file, Depth::Digest);
    let mut report = inspect::inspect(&dump, "x", inspect::Options { rows: 2000, mappings: 2000 });
    let (case, sources) = (dump.case(), &mut SourceLines::new(Vec::new()));
    let triage = &inspect::conclude(&mut report, &case, &Symbols::default(), sources, "x");
    let causes = Some(&Causes::of(&dump));
    let contents = Contents { report: &report, triage, causes, held: Held::of(&dump), rows: 2000 };
    drop((html(&contents), markdown(&contents)));
}

fn beside_a_baseline(file: DumpFile) {
    let dump = Dump::load(file, Depth::Rules);
    let (case, symbols) = (dump.case(), Symbols::default());
    let triage = triage(&case, &symbols, &Backing::none(), "x");
    let entry = concluded(&dump, "x", &triage);
    let seen = [Seen { entry, is_bug: true, location: None, log_line: Some(1) }];
    let report = ci::compare(&seen, &Baseline::default(), "x", Vec::new());
    drop((ci::junit(&report), ci::sarif(&report), ci::markdown(&report)));
    drop(report.accepted(Baseline::default()).to_toml());
}

fn runs(file: DumpFile) {
    let run = [Dump::load(file, Depth::Export)].map(Ok::<_, Infallible>);
    let Ok(trace) = of_dumps(run);
    let report = oracle::compare(("x", &trace), ("x", &trace), &CompareOptions::default());
    drop(oracle::text(&report));
}

/// Asks about the address of the failure, about one that a record holds, and about an end of the address space.
fn addresses(dump: Dump) {
    let (case, symbols, ram) = (dump.case(), Symbols::default(), Ram::of(&dump));
    let Ok(space) = Wanted::default().find(&case) else { return };
    let of_stack = case.stacks.first().and_then(|stack| stack.low);
    let fault = case.causes.first().and_then(|cause| cause.fault_addr.or(cause.sp));
    for addr in [fault, of_stack, Some(u64::MAX)].into_iter().flatten() {
        drop(translate(&case, &ram, &space, addr, "x"));
        let question = Question { case: &case, ram: &ram, symbols: &symbols, space: &space, addr };
        drop((question.answer(false, "x"), question.answer(true, "x")));
        if let Ok(pattern) = Pattern::new(addr.to_le_bytes().to_vec(), 8) {
            drop(search(&case, &ram, &symbols, &pattern, 100, "x"));
        }
    }
}

fn analyse(dump: Dump) {
    let case = dump.case();
    drop(triage(&case, &Symbols::default(), &Backing::none(), "x"));
    drop(case.losses());
}

fn export_records(file: &DumpFile) {
    let rows = stream::for_each(
        file,
        |_| true,
        |_, raw| {
            drop(serde_json::to_string(&json::object(raw)));
            drop(raw.decode().map(|record| line::summary(&record, raw)));
            Ok::<(), Infallible>(())
        },
    );
    drop(rows);
}

fn export_forms(dump: Dump) {
    let (case, symbols, mut out) = (dump.case(), Symbols::default(), Vec::new());
    drop(elf_core(&case, &Ram::of(&dump), &symbols, &mut out));
    drop(core_stacks(&case, &symbols));
    out.clear();
    drop(chrome_trace(&dump, &mut out));
    out.clear();
    drop(perfetto_trace(&dump, &Causes::of(&dump), &mut out));
    out.clear();
    drop(folded(&dump, &symbols, &mut out));
    drop(span_tree(&dump));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker that meets a panic names it and goes on; what it was doing last can be read from its file.
    #[test]
    fn a_panic_is_a_finding_and_the_cases_behind_it_run() {
        const BROKEN: &[Command] = &[
            Command { name: "sound", run: |_| {} },
            Command { name: "broken", run: |bytes| assert!(bytes.is_empty(), "a bug") },
        ];
        let samples = [Sample { name: "one".into(), bytes: vec![1, 2, 3] }];
        let file = tempfile::NamedTempFile::new().expect("a file");
        let findings = work(&samples, BROKEN, 1, 5..8, file.path()).expect("the file can be written");
        let told: Vec<_> = findings.iter().map(|f| (f.case, f.command, f.what.as_str())).collect();
        assert_eq!(told, [5, 6, 7].map(|case| (case, "broken", "panicked: a bug")));
        assert_eq!(last_words(file.path()), Some((7, COMMANDS[1].name)));
    }
}
