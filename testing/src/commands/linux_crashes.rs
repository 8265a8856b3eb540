//! `cargo xtask linux-crashes [--arch ARCH] [--only NAME,…] [--healthy N] [--out DIR] [--kept] [--json]`: lets Debian's
//! Linux die in known ways and compares what `kwab` says of each serial log with the truth.
//!
//! A row per way of `testing/linux-crashes/ways.toml`: whether the log shows what was asked for, and whether `kwab`
//! recognises a death, names its class, its function, its processor and its task, and gives a line of that function
//! when it has the module as `--symbols`. A cell is `ok`, `WRONG`, `open` (listed in the table as not passed yet),
//! `ok (open)` (to be taken off that list) or `-` (the way has no truth for it). Healthy boots must be recordings
//! without a death. Any `WRONG` fails the command.
//!
//! The logs, `truth.json`, `table.json` and the module with its debugging information lie in `--out`, by default
//! `build/linux-crashes/ARCH`. `--kept` asks again about the logs that lie there and boots nothing. `--healthy N` boots
//! N machines that differ in processor, memory, devices and command line, and nothing else; a log that lies there is
//! not made again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::binary;
use crate::linux_crashes::kit::{Architecture, Kit};
use crate::linux_crashes::rows::{self, Cell, WayRow};
use crate::linux_crashes::score;
use crate::linux_crashes::variety::{self, Varied};
use crate::linux_crashes::ways::{self, Check, Healthy, Table, Way};
use crate::linux_crashes::{Log, healthy, kept, kept_healthy, kept_varied, provoke, varied};
use crate::paths;
use crate::results::junit::Case;
use crate::results::{self, Circumstances};
use crate::setup::Consent;

/// LinuxCrashesArguments of `linux-crashes`.
#[derive(Debug, Args)]
pub struct LinuxCrashesArguments {
    /// The machine whose kernel dies.
    #[arg(long, value_enum, default_value_t)]
    arch: Architecture,
    /// Only these ways and healthy boots.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Boot nothing but so many different machines in which nothing dies.
    #[arg(long, value_name = "N", conflicts_with = "only")]
    healthy: Option<u32>,
    /// Where logs and tables go.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Boot nothing: ask again about the logs that lie there.
    #[arg(long)]
    kept: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

impl LinuxCrashesArguments {
    /// Three boots, for the test of everything.
    pub fn slice() -> Self {
        let only = ["null-read", "kfence-uaf", "plain"].map(str::to_owned).to_vec();
        Self { arch: Architecture::Amd64, only, healthy: None, out: None, kept: false, json: false }
    }
}

/// Runs the command.
pub fn run(arguments: &LinuxCrashesArguments, consent: Consent) -> Result<ExitCode> {
    let mut began = Circumstances::now();
    let table = ways::table()?;
    let kwab = binary::kwab()?;
    let out = match &arguments.out {
        Some(folder) => folder.clone(),
        None => paths::build("linux-crashes")?.join(arguments.arch.name()).join("logs"),
    };
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", paths::shown(&out)))?;
    let kit = if arguments.kept { None } else { Some(Kit::prepare(arguments.arch, consent)?) };
    if let Some(kit) = &kit {
        fs::copy(&kit.module, out.join("crashme.ko")).context("cannot keep the module")?;
        paths::write(&out.join("release"), kit.release.as_bytes())?;
        began.linux.clone_from(&kit.release);
    }
    let session = Session { arguments, table: &table, kwab: &kwab, out: &out, kit: kit.as_ref() };
    let rows = session.rows()?;
    ensure!(!rows.is_empty(), "no crash method of that name");
    paths::write(&out.join("truth.json"), &serde_json::to_vec_pretty(&truths(&table, arguments.arch))?)?;
    paths::write(&out.join("table.json"), &serde_json::to_vec_pretty(&rows)?)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        println!("{}", rows::total(&rows));
    }
    let name = format!("linux-crashes-{}", arguments.arch.name());
    let complete = arguments.only.is_empty() && arguments.healthy.is_none() && !arguments.kept;
    let cases: Vec<Case> = rows.iter().map(|row| row.case(&name)).collect();
    results::keep_junit(&name, complete, &cases)?;
    results::keep(&name, complete, began, &rows)?;
    results::verdict(&cases.iter().filter_map(Case::failure).collect::<Vec<_>>())
}

/// What one run of the command works with.
struct Session<'a> {
    arguments: &'a LinuxCrashesArguments,
    table: &'a Table,
    kwab: &'a Path,
    out: &'a Path,
    /// Absent when nothing is booted.
    kit: Option<&'a Kit>,
}

impl Session<'_> {
    fn rows(&self) -> Result<Vec<WayRow>> {
        if !self.arguments.json {
            println!("{:<20} {:<24} {}", "way", "class", rows::columns().map(|name| format!("{name:<11}")).concat());
        }
        let mut rows = Vec::new();
        if let Some(last) = self.arguments.healthy {
            for number in 1..=last {
                rows.extend(self.lived_varied(&variety::boot(number, self.arguments.arch))?);
            }
            return Ok(rows);
        }
        for way in self.table.ways.iter().filter(|way| self.wants(&way.name) && self.can(way)) {
            rows.extend(self.died(way)?);
        }
        for boot in self.table.healthy.iter().filter(|boot| self.wants(&boot.name)) {
            rows.extend(self.lived(boot)?);
        }
        Ok(rows)
    }

    fn wants(&self, name: &str) -> bool {
        self.arguments.only.is_empty() || self.arguments.only.iter().any(|only| only == name)
    }

    /// Whether the kernel can die so.
    fn can(&self, way: &Way) -> bool {
        let configured = |kit: &Kit| way.needs.as_deref().is_none_or(|option| kit.has(option));
        way.says(self.arguments.arch).is_some() && self.kit.is_none_or(configured)
    }

    fn died(&self, way: &Way) -> Result<Option<WayRow>> {
        let log = match self.kit {
            Some(kit) => Some(provoke(kit, way, self.out)?),
            None => kept(self.arguments.arch, way, self.out)?,
        };
        let Some(log) = log else { return Ok(None) };
        let answer = score::ask(self.kwab, &log.file, self.out)?;
        let passed = score::compare(way, self.arguments.arch, &self.table.classes, &answer);
        let open = |check| way.is_open(self.arguments.arch, check);
        let checks = passed.into_iter().map(|(check, passed)| (check, Cell::of(passed, open(check))));
        let class = way.class(self.arguments.arch).to_owned();
        let row = WayRow { name: way.name.clone(), class, provoked: log.provoked, checks: checks.collect(), answer };
        self.show(&row);
        Ok(Some(row))
    }

    fn lived(&self, boot: &Healthy) -> Result<Option<WayRow>> {
        let log = match self.kit {
            Some(kit) => Some(healthy(kit, boot, self.out)?),
            None => kept_healthy(boot, self.out)?,
        };
        log.map(|log| self.lived_row(&boot.name, &log)).transpose()
    }

    fn lived_varied(&self, boot: &Varied) -> Result<Option<WayRow>> {
        let log = match self.kit {
            Some(kit) => Some(varied(kit, boot, self.out)?),
            None => kept_varied(boot, self.out)?,
        };
        log.map(|log| self.lived_row(&boot.name, &log)).transpose()
    }

    fn lived_row(&self, name: &str, log: &Log) -> Result<WayRow> {
        let answer = score::ask(self.kwab, &log.file, self.out)?;
        let checks = BTreeMap::from([(Check::Recognised, Cell::of(!answer.died, false))]);
        let row =
            WayRow { name: name.to_owned(), class: rows::HEALTHY.to_owned(), provoked: log.provoked, checks, answer };
        self.show(&row);
        Ok(row)
    }

    fn show(&self, row: &WayRow) {
        if !self.arguments.json {
            let cells: String = row.cells().map(|word| format!("{word:<11}")).concat();
            println!("{:<20} {:<24} {}", row.name, row.class, cells.trim_end());
        }
    }
}

/// The truth about every log, for programs that read the logs without this command.
fn truths(table: &Table, on: Architecture) -> Vec<Value> {
    let truth = |way: &Way| {
        json!({
            "name": way.name,
            "class": way.class(on),
            "function": way.function(),
            "cpu": way.cpu(),
            "comm": way.comm(),
        })
    };
    table.ways.iter().filter(|way| way.says(on).is_some()).map(truth).collect()
}
