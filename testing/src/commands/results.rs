//! `cargo xtask results [--check]`: renders `testing/RESULTS.md`, and the README's figures, from what the
//! judges left in `build/results`.
//!
//! The page is nothing but those files in tables: contracts, suites, benchmarks, each with the day, the commit and the
//! versions it was measured with, and the rows of each that are furthest from Linux with what they would need
//! (`testing/needs.toml`). A judge that has not run completely here keeps the section that the page has, with the day
//! and the commit of its run; without one the page says so. `--check` fails in both cases. The hours of the fuzzer of
//! system calls add up over machines: `testing/data/fuzz/record.json` keeps them.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::fuzz::record::Record;
use crate::{page, paths};

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
    excerpt(&page.text)?;
    Record::commit()?;
    page.gaps.iter().for_each(|gap| eprintln!("missing: {gap}"));
    let failed = arguments.check && !page.gaps.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Puts the figures of the judges into the README.
fn excerpt(page: &str) -> Result<()> {
    let file = paths::root().join("README.md");
    let readme = page::figures::carried(&paths::read(&file)?, page)?;
    paths::write(&file, readme.as_bytes())?;
    println!("{}", paths::shown(&file));
    Ok(())
}
