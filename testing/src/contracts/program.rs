//! Finds the contract programs and builds them into one image.
//!
//! A program's options stand in a `contract: key=value` line of its first comment, so that a program and the way it
//! must be built and run cannot drift apart. An option that is not known is an error, not a guess.

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};

use crate::guest::{self, Link};
use crate::image::{self, Image};
use crate::jobs::Job;
use crate::paths;
use crate::setup::Consent;

/// One contract: a C program that states a behaviour and tests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// `<area>/<behaviour>`, the path of its file without `.c`.
    pub name: String,
    /// Its C file.
    pub source: PathBuf,
    /// How it is linked.
    pub link: Link,
    /// Its time limit in seconds.
    pub seconds: u32,
}

/// The folder of all contracts.
pub fn folder() -> PathBuf {
    paths::root().join("testing/contracts")
}

/// All contracts whose name contains one of the filter's comma-separated parts, sorted by name.
pub fn find(filter: Option<&str>) -> Result<Vec<Contract>> {
    let mut contracts = Vec::new();
    for entry in walkdir::WalkDir::new(folder()).min_depth(2).sort_by_file_name() {
        let source = entry?.into_path();
        if source.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let name = source.strip_prefix(folder())?.with_extension("").display().to_string();
        if filter.is_none_or(|filter| filter.split(',').any(|part| name.contains(part))) {
            contracts.push(read(name, source)?);
        }
    }
    ensure!(!contracts.is_empty(), "no contract's name contains {}", filter.unwrap_or_default());
    Ok(contracts)
}

fn read(name: String, source: PathBuf) -> Result<Contract> {
    let text = paths::read(&source)?;
    let (link, seconds) = options(&text).with_context(|| paths::shown(&source))?;
    Ok(Contract { name, source, link, seconds })
}

/// The options in the first ten lines.
fn options(text: &str) -> Result<(Link, u32)> {
    let (mut link, mut seconds) = (Link::Static, 10);
    let marked = text.lines().take(10).filter_map(|line| line.split_once("contract: "));
    // A sentence may say "contract:" too; options are words with an equals sign.
    let words = marked.flat_map(|(_, rest)| rest.split_whitespace()).filter(|word| word.contains('='));
    for word in words {
        match word.split_once('=') {
            Some(("timeout", value)) => {
                seconds =
                    value.parse().ok().filter(|seconds| (1..=60).contains(seconds)).context("timeout: 1 to 60")?;
            }
            Some(("link", "static")) => link = Link::Static,
            Some(("link", "static-pie")) => link = Link::StaticPie,
            Some(("link", "dynamic")) => link = Link::Dynamic,
            _ => bail!("not an option of a contract: {word}"),
        }
    }
    Ok((link, seconds))
}

/// Builds the programs, on all CPUs, and returns each one's file in the same order.
pub fn build(contracts: &[Contract], consent: Consent) -> Result<Vec<PathBuf>> {
    let folder = paths::build("contracts")?;
    let workers = thread::available_parallelism().map_or(1, usize::from).min(contracts.len()).max(1);
    let files: Vec<PathBuf> = contracts.iter().map(|contract| folder.join(contract.name.replace('/', "."))).collect();
    thread::scope(|scope| {
        let (contracts, files) = (&contracts, &files);
        let worker = |first: usize| {
            move || -> Result<()> {
                for index in (first..contracts.len()).step_by(workers) {
                    build_one(&contracts[index], &files[index], consent)?;
                }
                Ok(())
            }
        };
        let threads: Vec<_> = (0..workers).map(|first| scope.spawn(worker(first))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a build thread panicked")))
    })?;
    Ok(files)
}

fn build_one(contract: &Contract, result: &Path, consent: Consent) -> Result<()> {
    let sources = [contract.source.clone()];
    guest::compile(&sources, &[&folder()], "-O1", contract.link, result, consent).with_context(|| contract.name.clone())
}

/// The image with the runner, the programs under `/contracts`, and musl's loader.
pub fn image(contracts: &[Contract], files: &[PathBuf], consent: Consent) -> Result<Image> {
    let mut image = image::base(consent)?;
    image.program("/sbin/runner", &guest::program("runner", consent)?)?;
    image.program(guest::LOADER, Path::new(guest::LOADER))?;
    for (contract, file) in contracts.iter().zip(files) {
        image.program(&format!("/contracts/{}", contract.name), file)?;
    }
    Ok(image)
}

/// What the runner is told about a contract.
pub fn job(contract: &Contract) -> Job {
    let words = vec![format!("/contracts/{}", contract.name)];
    Job { name: contract.name.clone(), seconds: contract.seconds, words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_the_first_comment_and_a_misspelt_one_is_an_error() {
        assert_eq!(options("/* says x\n * contract: timeout=30 link=static-pie\n */").unwrap(), (Link::StaticPie, 30));
        assert_eq!(options("/* the contract: no pid is ever reused */").unwrap(), (Link::Static, 10));
        assert!(options("/* contract: timout=30 */").is_err());
        assert!(options("/* contract: timeout=600 */").is_err());
    }
}
