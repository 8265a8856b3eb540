//! Which mutants there are: what `cargo-mutants` lists for the kernel's crates, without what this judge leaves out.
//!
//! Left out is what lies outside `PLACES`, and in the machine crate every function whose text has the word `unsafe`: a
//! wrong value there is undefined behaviour, whose consequences are not the function's.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::paths;
use crate::process::Call;

/// The version of `cargo-mutants` that is installed when it is missing.
const VERSION: &str = "27.1.0";

/// The packages that are mutated, and the folder of each.
const PLACES: &[(&str, &str)] =
    &[("kernel", "kernel/src/"), ("kernel-logic", "kernel/logic/src/"), ("machine", "kernel/machine/src/")];

/// The package whose functions with `unsafe` code are left out.
const MACHINE: &str = "machine";

/// A line and a column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Line in the file, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
}

/// A piece of a file, without the character at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

/// The function around a mutation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name with its type's.
    #[serde(rename = "function_name")]
    pub name: String,
    /// The whole function.
    pub span: Span,
}

/// A mutant, as `cargo mutants --list --json --diff` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutant {
    /// File, place and change in one line.
    pub name: String,
    /// Name of the cargo package.
    pub package: String,
    /// The file, relative to the workspace.
    pub file: String,
    /// The function around it; none for a constant.
    pub function: Option<Function>,
    /// What is replaced.
    pub span: Span,
    /// The source text that takes its place; empty for a deletion.
    pub replacement: String,
    /// The kind of change.
    pub genre: String,
    /// The change as a unified diff.
    pub diff: String,
}

impl Mutant {
    /// Eight hexadecimal digits that name it as long as the code around it stays the same.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{:08x}", crc32fast::hash(format!("{}\n{}", self.name, self.diff).as_bytes()))
    }
}

/// The byte that a position is at; `None` when the text has no such position.
pub(super) fn offset(text: &str, at: Position) -> Option<usize> {
    let line = text.split_inclusive('\n').take(at.line.checked_sub(1)?).map(str::len).sum::<usize>();
    let rest = text.get(line..)?;
    let mut characters = rest.char_indices().map(|(index, _)| index).chain([rest.len()]);
    Some(line + characters.nth(at.column.checked_sub(1)?)?)
}

/// All mutants of the kernel's sources, sorted by name. The list is kept as long as the sources are the same.
pub fn list() -> Result<Vec<Mutant>> {
    let tree = paths::root();
    let file = paths::build("mutants")?.join("list.json");
    let sources = fingerprint(tree)?;
    let known = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<(u32, Vec<Mutant>)>(&bytes).ok());
    if let Some((_, mutants)) = known.filter(|(of, _)| *of == sources) {
        return Ok(mutants);
    }
    let mutants = listed(tree)?;
    paths::write(&file, &serde_json::to_vec(&(sources, &mutants))?)?;
    Ok(mutants)
}

/// A checksum of the names and texts of all files that are mutated, and of the program's version.
fn fingerprint(tree: &Path) -> Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(VERSION.as_bytes());
    for (_, folder) in PLACES {
        for entry in walkdir::WalkDir::new(tree.join(folder)).sort_by_file_name() {
            let entry = entry?;
            if entry.file_type().is_file() {
                hasher.update(entry.path().as_os_str().as_encoded_bytes());
                hasher.update(&fs::read(entry.path())?);
            }
        }
    }
    Ok(hasher.finalize())
}

fn listed(tree: &Path) -> Result<Vec<Mutant>> {
    let mut call =
        Call::new(tool()?).args(["mutants", "--list", "--json", "--diff", "--no-config", "--colors", "never"]);
    for (package, _) in PLACES {
        call = call.args(["--package", package]);
    }
    let said = call.folder(tree).capture()?.stdout;
    let mut mutants: Vec<Mutant> = serde_json::from_str(&said).context("the list of mutants")?;
    let listed = mutants.len();
    mutants.retain(|mutant| PLACES.iter().any(|(_, folder)| mutant.file.starts_with(folder)));
    let mut safe = Vec::new();
    for mutant in mutants {
        if mutant.package != MACHINE || !is_unsafe(&mutant, &paths::read(&tree.join(&mutant.file))?) {
            safe.push(mutant);
        }
    }
    ensure!(!safe.is_empty(), "cargo-mutants lists {listed} mutants and none of them counts");
    safe.sort_by(|a, b| a.name.cmp(&b.name));
    safe.dedup_by(|a, b| a.name == b.name && a.replacement == b.replacement);
    Ok(safe)
}

/// Whether the function around a mutation, or the mutated constant, has `unsafe` code.
fn is_unsafe(mutant: &Mutant, text: &str) -> bool {
    let span = mutant.function.as_ref().map_or(mutant.span, |function| function.span);
    let lines = text.lines().skip(span.start.line.saturating_sub(1)).take(span.end.line + 1 - span.start.line);
    lines.into_iter().any(|line| line.split("//").next().unwrap_or_default().contains("unsafe"))
}

/// The program, installed when it is missing: as a debug build, which lists as quickly and compiles in half the time.
fn tool() -> Result<PathBuf> {
    let folder = paths::cache(&format!("cargo-mutants-{VERSION}"))?;
    let program = folder.join("bin/cargo-mutants");
    if !program.is_file() {
        eprintln!("installing cargo-mutants {VERSION}");
        let target = paths::build("mutants")?.join("tool");
        Call::cargo()
            .args(["install", "--quiet", "--locked", "--debug", "--version", &format!("={VERSION}"), "--root"])
            .arg(&folder)
            .arg("cargo-mutants")
            .env("CARGO_TARGET_DIR", &target)
            .show()
            .context("installing cargo-mutants")?;
        fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", paths::shown(&target)))?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(span: [usize; 4], replacement: &str) -> Mutant {
        let [line, column, end_line, end_column] = span;
        let start = Position { line, column };
        let span = Span { start, end: Position { line: end_line, column: end_column } };
        Mutant {
            name: "x.rs:1:1: replace f".into(),
            package: MACHINE.into(),
            file: "x.rs".into(),
            function: None,
            span,
            replacement: replacement.into(),
            genre: "BinaryOperator".into(),
            diff: String::new(),
        }
    }

    #[test]
    fn columns_count_characters() {
        let text = "fn f() {\n    \"é\" < b\n}\n";
        let byte = |line, column| offset(text, Position { line, column });
        assert_eq!(byte(2, 9).map(|at| &text[at..=at]), Some("<"));
        assert_eq!(byte(3, 2), Some(text.len() - 1));
        assert_eq!((byte(9, 2), byte(1, 90)), (None, None));
    }

    #[test]
    fn a_function_with_unsafe_code_is_left_out_and_one_that_speaks_of_it_is_not() {
        let inside = |text: &str| is_unsafe(&mutant([1, 1, 3, 2], ""), text);
        assert!(inside("fn f() {\n    unsafe { g() }\n}\n"));
        assert!(!inside("fn f() {\n    // not unsafe\n}\nunsafe fn g() {}\n"));
    }

    #[test]
    fn the_id_changes_with_the_change() {
        let (one, mut other) = (mutant([1, 1, 1, 2], "a"), mutant([1, 1, 1, 2], "a"));
        assert_eq!(one.id(), other.id());
        other.diff.push('x');
        assert_ne!(one.id(), other.id());
    }
}
