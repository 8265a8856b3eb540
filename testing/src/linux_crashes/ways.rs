//! Reads `testing/linux-crashes/ways.toml`: the ways to die, the truth about each, and the healthy boots.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::kit::Architecture;
use crate::paths;

/// One comparison with the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The log holds a death.
    Recognised,
    /// What kind of death it is.
    Class,
    /// The function to blame.
    Function,
    /// The processor it happened on.
    Cpu,
    /// The task that ran.
    Comm,
    /// The source line in that function, by the module's debugging information.
    Line,
}

impl Check {
    /// All of them, in the order of the table's columns.
    pub const ALL: [Self; 6] = [Self::Recognised, Self::Class, Self::Function, Self::Cpu, Self::Comm, Self::Line];

    /// The column's title.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recognised => "recognised",
            Self::Class => "class",
            Self::Function => "function",
            Self::Cpu => "cpu",
            Self::Comm => "comm",
            Self::Line => "line",
        }
    }
}

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// By class, words of which a report of that class has at least one.
    pub classes: BTreeMap<String, Vec<String>>,
    /// The ways to die.
    #[serde(rename = "way")]
    pub ways: Vec<Way>,
    /// Boots in which nothing dies.
    pub healthy: Vec<Healthy>,
}

/// A way to die.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The name on the command line and in results.
    pub name: String,
    /// What the guest is asked for, where that is not the name.
    asks: Option<String>,
    /// Whether the machine has no initramfs.
    #[serde(default)]
    pub bare: bool,
    /// The class of the report.
    class: String,
    /// The class on arm64, where it is another.
    arm64_class: Option<String>,
    function: Option<String>,
    comm: Option<String>,
    cpu: Option<i64>,
    /// Further words of the kernel's command line.
    #[serde(default)]
    pub options: String,
    /// Seconds that the guest waits for the report.
    #[serde(default = "usual_wait")]
    pub wait: u32,
    /// An option of the kernel's configuration without which it does not happen.
    pub needs: Option<String>,
    amd64: Option<String>,
    arm64: Option<String>,
    #[serde(default)]
    open: Vec<Check>,
    #[serde(default)]
    amd64_open: Vec<Check>,
    #[serde(default)]
    arm64_open: Vec<Check>,
}

/// A boot in which nothing dies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Healthy {
    /// The name on the command line and in results.
    pub name: String,
    /// Further words of the kernel's command line.
    #[serde(default)]
    pub options: String,
    /// Number of processors.
    #[serde(default = "usual_cpus")]
    pub cpus: u32,
    /// Memory in MiB.
    #[serde(default = "usual_memory")]
    pub memory: u32,
}

fn usual_wait() -> u32 {
    5
}

fn usual_cpus() -> u32 {
    2
}

fn usual_memory() -> u32 {
    super::MEMORY_MIB
}

impl Way {
    /// What the guest is asked for.
    pub fn asked(&self) -> &str {
        self.asks.as_deref().unwrap_or(&self.name)
    }

    /// What Linux prints when it happened; `None` when it cannot happen on that machine.
    pub fn says(&self, on: Architecture) -> Option<&str> {
        match on {
            Architecture::Amd64 => self.amd64.as_deref(),
            Architecture::Arm64 => self.arm64.as_deref(),
        }
    }

    /// The class of the report.
    pub fn class(&self, on: Architecture) -> &str {
        match (on, &self.arm64_class) {
            (Architecture::Arm64, Some(class)) => class,
            _ => &self.class,
        }
    }

    /// The function that is to blame.
    pub fn function(&self) -> Option<String> {
        match &self.function {
            Some(name) => Some(name.clone()).filter(|name| !name.is_empty()),
            None => Some(format!("crashme_{}", self.name.replace('-', "_"))),
        }
    }

    /// The task that runs; a name that ends with a colon is the beginning of it.
    pub fn comm(&self) -> Option<&str> {
        Some(self.comm.as_deref().unwrap_or("crash-me")).filter(|comm| !comm.is_empty())
    }

    /// Whether `kwab` is known not to pass a check.
    pub fn is_open(&self, on: Architecture, check: Check) -> bool {
        let there = match on {
            Architecture::Amd64 => &self.amd64_open,
            Architecture::Arm64 => &self.arm64_open,
        };
        self.open.contains(&check) || there.contains(&check)
    }

    /// The processor that the report must name, 1 unless the table says otherwise; `None` for a negative number
    /// there.
    pub fn cpu(&self) -> Option<i64> {
        Some(self.cpu.unwrap_or(1)).filter(|cpu| *cpu >= 0)
    }
}

/// The file of the module that defines a function, and the lines of its definition; `None` for one of Linux.
pub fn definition(function: &str) -> Result<Option<(String, RangeInclusive<usize>)>> {
    for entry in std::fs::read_dir(paths::root().join("testing/linux-crashes"))? {
        let file = entry?.path();
        if file.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let text = paths::read(&file)?;
        let lines: Vec<&str> = text.lines().collect();
        let heads = |line: &&str| line.contains(&format!("{function}(")) && !line.ends_with(';');
        let begins = |line: &str| !line.starts_with([' ', '\t']) && heads(&line);
        let Some(first) = lines.iter().position(|line| begins(line)) else { continue };
        let last = first + lines[first..].iter().position(|line| line.starts_with('}')).unwrap_or(0);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(Some((name, first + 1..=last + 1)));
    }
    Ok(None)
}

/// Reads the table and checks that each class has its words.
pub fn table() -> Result<Table> {
    let file = paths::root().join("testing/linux-crashes/ways.toml");
    let table: Table = toml::from_str(&paths::read(&file)?).with_context(|| paths::shown(&file))?;
    for way in &table.ways {
        for class in [Architecture::Amd64, Architecture::Arm64].map(|on| way.class(on)) {
            ensure!(table.classes.contains_key(class), "{}: no words for the class {class}", way.name);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_can_be_read_and_names_each_way_once() {
        let table = table().unwrap();
        let names: BTreeSet<_> = table.ways.iter().map(|way| &way.name).collect();
        assert_eq!(names.len(), table.ways.len());
        assert!(table.healthy.len() >= 10);
    }

    #[test]
    fn a_function_of_the_module_stands_for_each_way_that_needs_one() {
        let folder = paths::root().join("testing/linux-crashes");
        let files = ["memory.c", "checks.c", "stalls.c"].map(|name| paths::read(&folder.join(name)).unwrap());
        let source = files.concat();
        for way in table().unwrap().ways {
            let Some(function) = way.function() else { continue };
            assert!(source.contains(&format!("{function}(")), "{}: {function} is not in the module", way.name);
            let entry = format!("{{ \"{}\", crashme_{} }}", way.asked(), way.asked().replace('-', "_"));
            assert!(source.contains(&entry), "{}: the module has no row {entry}", way.name);
        }
    }
}
