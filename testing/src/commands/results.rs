//! `cargo xtask results [--check]`: renders `testing/RESULTS.md`, and the README's table of the exam, from what the
//! judges left in `build/results`.
//!
//! The page is nothing but those files in tables: contracts, suites, benchmarks, each with the day, the commit and the
//! versions it was measured with, and the rows of each that are furthest from Linux with what they would need
//! (`testing/needs.toml`). A judge that has not run completely here keeps the section that the page has, with the day
//! and the commit of its run; without one the page says so. `--check` fails in both cases. The hours of the fuzzer of
//! system calls add up over machines: `testing/data/fuzz/record.json` keeps them.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::exam::row;
use crate::fuzz::record::Record;
use crate::paths;
use crate::{page, results};

/// ResultsArguments of `results`.
#[derive(Debug, Args)]
pub struct ResultsArguments {
    /// Fail when a judge has not run, or a worst row has no word on what it would need.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(arguments: &ResultsArguments) -> Result<ExitCode> {
    let page = page::render()?;
    let file = paths::root().join("testing/RESULTS.md");
    paths::write(&file, page.text.as_bytes())?;
    println!("{}", paths::shown(&file));
    excerpt()?;
    Record::commit()?;
    page.gaps.iter().for_each(|gap| eprintln!("missing: {gap}"));
    let failed = arguments.check && !page.gaps.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Puts the table of the exam between its marks in the README.
fn excerpt() -> Result<()> {
    let Some(exam) = results::kept::<Vec<row::ExamRow>>("exam")? else { return Ok(()) };
    let file = paths::root().join("README.md");
    let readme = paths::read(&file)?;
    let (Some((before, rest)), Some((_, after))) = (readme.split_once(BEGIN), readme.split_once(END)) else {
        bail!("README.md has no section for the exam between {BEGIN} and {END}");
    };
    ensure!(rest.contains(END), "the marks of the exam in README.md are in the wrong order");
    let (when, summary, table) = (exam.circumstances.date, row::summary(&exam.results), row::table(&exam.results));
    let text = format!("{before}{BEGIN}\n`cargo xtask exam --repeat 3`, {when}:\n{summary}\n\n{table}{END}{after}");
    paths::write(&file, text.as_bytes())?;
    println!("{}", paths::shown(&file));
    Ok(())
}

/// The marks around the table in the README.
const BEGIN: &str = "<!-- exam: rendered by cargo xtask results -->";
const END: &str = "<!-- end of exam -->";
