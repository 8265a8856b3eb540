//! The scratch checkout that mutants are built in: a copy of the workspace below `build/`, with a target folder of its
//! own.
//!
//! The working tree is only read. Files are written when their bytes differ, so that cargo builds again no more than
//! what changed. [`Tree::build`] puts all mutations in behind switches (`super::switch`) and takes those out again that
//! the compiler refuses, until it has no complaint: a mutation is blamed for an error in what was put in for it, else
//! in the expression or the function around it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::list::Mutant;
use super::switch::{self, Switched};
use crate::process::Call;
use crate::{paths, setup};

/// The cargo profile: incremental, without link-time optimisation.
const PROFILE: &str = "kernel-mutants";
const TARGET: &str = "x86_64-unknown-none";

/// What the copy needs: the workspace's own files and folders with sources.
const PARTS: &[&str] = &[
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "kernel",
    "kwab",
    "kwab-cli",
    "kwab-format",
    "kwab-python",
    "kwab-tui",
    "rust-toolchain.toml",
    "testing/Cargo.toml",
    "testing/src",
    "testing/stage",
];

/// Folders in them that no build of the kernel reads.
const SKIPPED: &[&str] = &["target", "fuzz"];

/// A build that takes longer never ends.
const LONGEST: Duration = Duration::from_secs(1800);

/// Times that the compiler is asked; each time it names most of what it refuses.
const ROUNDS: usize = 40;

/// The crate that gets the module with the switches, and the manifest of the one that has to be told of that crate.
const HOLDER: &str = "kernel/abi/src";
const TOLD: &str = "kernel/machine/Cargo.toml";

/// The scratch checkout and its target folder.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    target: PathBuf,
}

/// A kernel with mutations in it.
#[derive(Clone, Debug)]
pub struct Built {
    /// The ELF that cargo left.
    pub program: PathBuf,
    /// The mutations that are not in it, each with the reason.
    pub left_out: BTreeMap<u32, String>,
}

impl Tree {
    /// The checkout, made or brought up to date by [`Tree::build`].
    pub fn prepare() -> Result<Self> {
        setup::require_targets()?;
        let folder = paths::build("mutants")?;
        Ok(Self { root: folder.join("tree"), target: folder.join("target") })
    }

    /// Builds a kernel with these mutations in it, each with its index as its number. Those that are known not to build
    /// are left out from the start.
    pub fn build(&self, mutants: &[Mutant], known: &BTreeMap<u32, String>) -> Result<Built> {
        let mut left_out = known.clone();
        for round in 1..=ROUNDS {
            let files = self.write(mutants, &mut left_out)?;
            // Some errors, as an overflow that the compiler sees, come only with the code.
            let mut complaints = complaints(&self.cargo("check").capture_any()?)?;
            if complaints.is_empty() {
                complaints = self::complaints(&self.cargo("build").capture_any()?)?;
            }
            if complaints.is_empty() {
                let program = self.target.join(TARGET).join(PROFILE).join("kernel");
                return Ok(Built { program, left_out });
            }
            let before = left_out.len();
            for complaint in &complaints {
                let blamed = complaint.blamed(&files, mutants);
                ensure!(!blamed.is_empty(), "an error outside all mutations: {}", complaint.rendered);
                let reason = format!("does not build: {}", complaint.message);
                for number in blamed {
                    left_out.entry(number).or_insert_with(|| reason.clone());
                }
            }
            ensure!(left_out.len() > before, "the compiler still reports errors: {}", complaints[0].rendered);
            eprintln!("round {round}: {} mutations do not build", left_out.len());
        }
        anyhow::bail!("mutations are still refused after {ROUNDS} rounds")
    }

    /// Writes the checkout with all mutations that are not left out; what was put into which file.
    fn write(&self, mutants: &[Mutant], left_out: &mut BTreeMap<u32, String>) -> Result<BTreeMap<String, Switched>> {
        let mut by_file: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in (0..).zip(mutants).filter(|(number, _)| !left_out.contains_key(number)) {
            by_file.entry(&mutant.file).or_default().push((number, mutant));
        }
        let mut files = BTreeMap::new();
        for (file, mutants) in by_file {
            let text = paths::read(&paths::root().join(file))?;
            let switched = switch::switched(&text, &mutants).with_context(|| file.to_owned())?;
            left_out.extend(switched.left_out.iter().map(|(number, reason)| (*number, (*reason).to_owned())));
            files.insert(file.to_owned(), switched);
        }
        let mut wanted = BTreeSet::new();
        for part in PARTS {
            self.copy(Path::new(part), &files, &mut wanted)?;
        }
        let module = Path::new(HOLDER).join("mutant.rs");
        self.put(&module, switch::module(mutants.len()).as_bytes())?;
        wanted.insert(module);
        self.prune(&wanted)?;
        Ok(files)
    }

    fn copy(&self, part: &Path, files: &BTreeMap<String, Switched>, wanted: &mut BTreeSet<PathBuf>) -> Result<()> {
        let skipped = |name: &std::ffi::OsStr| SKIPPED.iter().any(|skipped| name == *skipped);
        let entries = walkdir::WalkDir::new(paths::root().join(part)).into_iter();
        for entry in entries.filter_entry(|entry| !skipped(entry.file_name())) {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let name = entry.path().strip_prefix(paths::root())?.to_path_buf();
            let mut bytes = match name.to_str().and_then(|name| files.get(name)) {
                Some(switched) => switched.text.clone().into_bytes(),
                None => fs::read(entry.path())?,
            };
            if name == Path::new(HOLDER).join("lib.rs") {
                bytes.extend(b"pub mod mutant;\n");
            } else if name == Path::new(TOLD) {
                bytes.extend(b"\n[dependencies.linux-abi]\nworkspace = true\n");
            }
            self.put(&name, &bytes)?;
            wanted.insert(name);
        }
        Ok(())
    }

    /// Writes a file unless it has these bytes.
    fn put(&self, name: &Path, bytes: &[u8]) -> Result<()> {
        let to = self.root.join(name);
        if fs::read(&to).is_ok_and(|is| is == bytes) {
            return Ok(());
        }
        fs::create_dir_all(to.parent().context("a file without a folder")?)?;
        fs::write(&to, bytes).with_context(|| format!("cannot write {}", paths::shown(&to)))
    }

    /// Removes what is not in the workspace any more: a module file may have become a folder.
    fn prune(&self, wanted: &BTreeSet<PathBuf>) -> Result<()> {
        for entry in walkdir::WalkDir::new(&self.root) {
            let entry = entry?;
            let name = entry.path().strip_prefix(&self.root)?;
            if entry.file_type().is_file() && !wanted.contains(name) {
                fs::remove_file(entry.path())
                    .with_context(|| format!("cannot remove {}", paths::shown(entry.path())))?;
            }
        }
        Ok(())
    }

    fn cargo(&self, command: &str) -> Call {
        Call::cargo()
            .args([command, "--message-format=json", "--offline", "-p", "kernel", "--profile", PROFILE])
            .args(["--target", TARGET, "--bin", "kernel"])
            .env("CARGO_TARGET_DIR", &self.target)
            .folder(&self.root)
            .limit(LONGEST)
    }
}

/// An error of the compiler.
#[derive(Clone, Debug, Default)]
struct Complaint {
    message: String,
    /// As the compiler prints it.
    rendered: String,
    /// Where it is: the file, its bytes, whether this is the error itself.
    spans: Vec<(String, Range<usize>, bool)>,
}

/// The errors in what cargo said; none when all is well.
fn complaints(said: &crate::process::Output) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    for line in said.stdout.lines().filter(|line| line.starts_with('{')) {
        let value: Value = serde_json::from_str(line).context("reading cargo's messages")?;
        let message = &value["message"];
        if value["reason"] != "compiler-message" || message["level"] != "error" {
            continue;
        }
        let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
        let mut spans = Vec::new();
        message["spans"].as_array().into_iter().flatten().for_each(|span| spans_of(span, &mut spans));
        if !spans.is_empty() {
            complaints.push(Complaint { message: text("message"), rendered: text("rendered"), spans });
        }
    }
    ensure!(said.status.success() || !complaints.is_empty(), "cargo fails: {}", said.stderr.trim_end());
    Ok(complaints)
}

/// A span and the calls of macros that it comes from.
fn spans_of(span: &Value, spans: &mut Vec<(String, Range<usize>, bool)>) {
    let byte = |key: &str| span[key].as_u64().and_then(|byte| usize::try_from(byte).ok());
    if let (Some(file), Some(start), Some(end)) = (span["file_name"].as_str(), byte("byte_start"), byte("byte_end")) {
        spans.push((file.to_owned(), start..end, span["is_primary"] == true));
    }
    if span["expansion"]["span"].is_object() {
        spans_of(&span["expansion"]["span"], spans);
    }
}

impl Complaint {
    /// The mutations to take out.
    fn blamed(&self, files: &BTreeMap<String, Switched>, mutants: &[Mutant]) -> BTreeSet<u32> {
        let here = |primary: bool| {
            let spans = self.spans.iter().filter(move |span| span.2 || !primary);
            spans.filter_map(|(file, bytes, _)| Some((files.get_key_value(file)?, bytes)))
        };
        for primary in [true, false] {
            let overlaps =
                |piece: &Range<usize>, bytes: &Range<usize>| piece.start <= bytes.start && bytes.start < piece.end;
            let pieces = here(primary).flat_map(|((_, switched), bytes)| {
                switched.pieces.iter().filter(move |(_, piece)| overlaps(piece, bytes)).map(|(number, _)| *number)
            });
            let pieces: BTreeSet<u32> = pieces.collect();
            if !pieces.is_empty() {
                return pieces;
            }
        }
        let inside = here(true).filter_map(|((_, switched), bytes)| {
            let around = switched.around.iter().filter(|(_, around)| around.contains(&bytes.start));
            let tightest = around.min_by_key(|(_, around)| around.len())?.1.clone();
            let same =
                move |(_, around): &&(u32, Range<usize>)| tightest.start <= around.start && around.end <= tightest.end;
            Some(switched.around.iter().filter(same).map(|(number, _)| *number).collect::<Vec<_>>())
        });
        let inside: BTreeSet<u32> = inside.flatten().collect();
        if !inside.is_empty() {
            return inside;
        }
        let lines = here(true).map(|((file, switched), bytes)| {
            (file, 1 + switched.text.as_bytes()[..bytes.start].iter().filter(|byte| **byte == b'\n').count())
        });
        let lines: Vec<_> = lines.collect();
        let is_there = |mutant: &Mutant| {
            let function = mutant.function.as_ref().map(|function| function.span);
            lines.iter().any(|(file, line)| {
                **file == mutant.file && function.is_some_and(|f| (f.start.line..=f.end.line).contains(line))
            })
        };
        (0..).zip(mutants).filter(|(_, mutant)| is_there(mutant)).map(|(number, _)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_holds_every_member_of_the_workspace() {
        let manifest: toml::Value = toml::from_str(&paths::read(&paths::root().join("Cargo.toml")).unwrap()).unwrap();
        let members = manifest["workspace"]["members"].as_array().unwrap();
        for member in members.iter().filter_map(toml::Value::as_str) {
            let holds = |part: &&str| Path::new(member).starts_with(part) || Path::new(part).starts_with(member);
            assert!(PARTS.iter().any(holds), "{member} is not copied");
        }
    }
}
