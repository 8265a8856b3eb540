//! The house rules: what a test can check of `STYLE.md` and of the architecture, checked on every file.
//!
//! A [`Rule`] looks at the [`House`] (all sources, cargo's metadata) and returns [`Violation`]s. [`RULES`] lists them
//! all; `cargo xtask house-rules` prints what they find and `tests/house_rules.rs` fails on it. Exceptions are tables
//! inside the rules, each with its reason, and an exception that is no longer needed is itself a violation.

mod budgets;
mod dependencies;
mod excuses;
mod fence;
mod headers;
mod layers;
mod lints;
mod local_facts;
mod names;
mod numbers;
mod registers;
mod short_docs;
mod syscalls;
mod width;
mod words;

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::paths;

/// One rule: what it is called, what it demands, and how it looks.
#[derive(Clone, Copy)]
pub struct Rule {
    /// A word for messages.
    pub name: &'static str,
    /// The demand, in one sentence.
    pub demand: &'static str,
    /// Finds what breaks it.
    pub check: fn(&House) -> Result<Vec<Violation>>,
}

/// All rules, in the order in which violations are printed.
pub const RULES: &[Rule] = &[
    Rule {
        name: "dependencies",
        demand: "a crate depends only on the workspace crates that the architecture's table allows",
        check: dependencies::check,
    },
    Rule {
        name: "unsafe",
        demand: "unsafe code, assembly and exported symbols exist only in kernel/machine and the rooms of examples/",
        check: fence::check,
    },
    Rule {
        name: "layers",
        demand: "an import points downwards in the order of its crate's modules, and files form no circle",
        check: layers::check,
    },
    Rule { name: "header", demand: "every Rust file opens with `//!`", check: headers::check },
    Rule {
        name: "budget",
        demand: "a file has at most 700 lines and a function at most 80, or says why not",
        check: budgets::check,
    },
    Rule {
        name: "lints",
        demand: "every crate inherits the workspace's lints, and a lint turned off says why",
        check: lints::check,
    },
    Rule { name: "numbers", demand: "a number of Linux is declared once, in linux-abi", check: numbers::check },
    Rule {
        name: "registers",
        demand: "a handler of a system call asks for its arguments by type",
        check: registers::check,
    },
    Rule { name: "syscalls", demand: "the system call table is sorted by number", check: syscalls::check },
    Rule {
        name: "local-facts",
        demand: "nothing committed names a machine's own paths or a registry's host",
        check: local_facts::check,
    },
    Rule {
        name: "words",
        demand: "comments, messages and documents name the actor and say what a thing is not in plain words",
        check: words::check,
    },
    Rule {
        name: "short-docs",
        demand: "a doc has more than two words, or refers to its contract",
        check: short_docs::check,
    },
    Rule { name: "names", demand: "a crate declares a type name at most three times", check: names::check },
    Rule { name: "width", demand: "a line of Rust or C has at most 120 characters", check: width::check },
    Rule {
        name: "excuses",
        demand: "every known difference has a contract, a reason and a date that has not passed",
        check: excuses::check,
    },
];

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// File, relative to the workspace, and line where there is one.
    pub location: String,
    /// What is wrong there.
    pub text: String,
}

impl Violation {
    fn new(location: impl Into<String>, text: impl Into<String>) -> Self {
        Self { location: location.into(), text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.text)
    }
}

/// A file of ours.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its path, relative to the workspace, with slashes.
    pub path: String,
    /// Its text; files that are not UTF-8 are left out.
    pub text: String,
}

/// Everything that rules look at.
pub struct House {
    /// All text files of the workspace.
    pub files: Vec<Source>,
    /// What cargo knows about the workspace.
    pub metadata: cargo_metadata::Metadata,
}

impl House {
    /// Reads the workspace.
    pub fn read() -> Result<Self> {
        let root = paths::root();
        let metadata = cargo_metadata::MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("reading cargo's metadata")?;
        Ok(Self { files: sources(root)?, metadata })
    }

    /// The Rust files.
    fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The text of one file; a violation where it is missing.
    fn text(&self, path: &str) -> Result<&str, Violation> {
        let found = self.files.iter().find(|file| file.path == path);
        found.map(|file| file.text.as_str()).ok_or_else(|| Violation::new(path, "the file is missing"))
    }
}

/// Text files below `root` that are ours: nothing built, fetched or generated.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let ours = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        let generated = ["build", "target", ".git", "corpus", "artifacts", "coverage"].contains(&name.as_ref());
        !(entry.depth() > 0 && (generated || name.starts_with("target-")))
    };
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(ours) {
        let entry = entry?;
        if !entry.file_type().is_file() {
            continue;
        }
        let bytes = std::fs::read(entry.path()).with_context(|| paths::shown(entry.path()))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(Source { path: paths::shown(entry.path()), text });
        }
    }
    Ok(files)
}

/// Checks all rules; returns each broken one with its violations.
pub fn check(house: &House) -> Result<Vec<(&'static Rule, Vec<Violation>)>> {
    let mut broken = Vec::new();
    for rule in RULES {
        let violations = (rule.check)(house).with_context(|| format!("checking the rule `{}`", rule.name))?;
        if !violations.is_empty() {
            broken.push((rule, violations));
        }
    }
    Ok(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A house of one file, for trying a rule.
    pub(super) fn of(path: &str, text: &str) -> House {
        let mut house = House::read().unwrap();
        house.files = vec![Source { path: path.into(), text: text.into() }];
        house
    }

    #[test]
    fn generated_folders_are_not_judged() {
        let house = House::read().unwrap();
        assert!(house.files.iter().any(|file| file.path == "testing/src/house/mod.rs"));
        assert!(!house.files.iter().any(|file| file.path.starts_with("build/") || file.path.starts_with("target")));
    }
}
