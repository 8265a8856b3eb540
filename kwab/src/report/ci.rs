//! Crashes of a run beside those that are known: what a CI system needs to pass or to fail.
//!
//! [`compare`] groups the crashes as lists do ([`super::catalogue`]) and looks each group up in a committed
//! [`Baseline`]: it is new, known, or of the baseline and gone. [`Location`] is where the source is, when a report or
//! an image says it. The forms that CI systems read are [`sarif`], [`junit`], [`github`] and [`markdown`]; a log is
//! hostile input, so each escapes every string of it.

mod baseline;
pub mod github;
mod junit;
mod location;
mod markdown;
mod sarif;

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use self::baseline::Index;
pub use self::baseline::{Baseline, BaselineError, Known};
pub use self::junit::junit;
pub use self::location::Location;
pub use self::markdown::markdown;
pub use self::sarif::sarif;
use super::catalogue::{CatalogueEntry, Finding, Rank, arrange};
use super::signature;
use crate::units::count;

/// The version of [`CiReport`]'s JSON form.
pub const SCHEMA: u32 = 1;

/// A dump of the run.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What it is about.
    pub entry: CatalogueEntry,
    /// Whether it tells of a bug, or of a death that no rule explains; not of one that was asked for.
    pub is_bug: bool,
    /// Where the source is.
    pub location: Option<Location>,
    /// Line of the log where the death was first seen.
    pub log_line: Option<u64>,
}

/// The crashes of a run, compared with a baseline.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CiReport {
    /// Version of this form.
    pub schema: u32,
    /// Version of the way signatures are made.
    pub signature_version: u32,
    /// The baseline as the user named it.
    pub baseline: String,
    /// Files that were read.
    pub files: Vec<String>,
    /// Crashes that the baseline does not know: they fail the run.
    pub new: Vec<Bug>,
    /// Crashes that the baseline knows.
    pub known: Vec<Bug>,
    /// Crashes of the baseline that did not happen in this run.
    pub gone: Vec<Known>,
    /// Dumps that were asked for or that tell of no crash.
    pub quiet: usize,
    /// Those of them that were asked for.
    #[serde(skip)]
    pub asked: usize,
    /// Those that were taken of a living machine, without a likely bug.
    #[serde(skip)]
    pub live: usize,
    /// Dumps and logs that are damaged, cut or have lost their cause, and how.
    pub damaged: Vec<String>,
}

/// Crashes of one bug.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Bug {
    /// What its dumps have in common: the baseline knows it by this.
    pub key: String,
    /// What it is, in one line.
    pub title: String,
    /// What triage concludes, when that is likelier than not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// The names of its symptoms.
    pub signatures: Vec<String>,
    /// How many deaths the run tells of.
    pub count: usize,
    /// The dump to look at first.
    pub example: CatalogueEntry,
    /// Where the source is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Line of the log where the death was first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_line: Option<u64>,
    /// What the baseline says about it; empty when it says nothing or does not know it.
    pub comment: String,
}

impl Bug {
    /// The signature of the dump to look at first.
    #[must_use]
    pub fn signature(&self) -> &str {
        &self.example.signature
    }

    /// The place to show: file and line, else what the dump says.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.location {
            Some(location) => location.to_string(),
            None => self.example.place.clone(),
        }
    }
}

impl CiReport {
    /// The baseline with the new crashes of this run added; comments and what is gone stay.
    #[must_use]
    pub fn accepted(&self, mut baseline: Baseline) -> Baseline {
        let index = Index::of(&baseline.known);
        let mut met: BTreeMap<usize, Vec<&String>> = BTreeMap::new();
        for bug in &self.known {
            if let Some(place) = index.position(&bug.key, &bug.signatures) {
                met.entry(place).or_default().extend(&bug.signatures);
            }
        }
        for (place, signatures) in met {
            let Some(known) = baseline.known.get_mut(place) else { continue };
            let mut had: HashSet<&String> = known.signatures.iter().collect();
            let fresh: Vec<String> = signatures.into_iter().filter(|one| had.insert(one)).cloned().collect();
            known.signatures.extend(fresh);
        }
        baseline.known.extend(self.new.iter().map(Known::of));
        baseline.known.sort_by(|a, b| a.key.cmp(&b.key));
        baseline
    }
}

/// Compares the crashes of a run with a baseline. `name` is the baseline's name, `files` are those that were read.
#[must_use]
pub fn compare(seen: &[Seen], baseline: &Baseline, name: &str, files: Vec<String>) -> CiReport {
    let entries: Vec<&CatalogueEntry> = seen.iter().map(|one| &one.entry).collect();
    let mut report = CiReport {
        schema: SCHEMA,
        signature_version: signature::VERSION,
        baseline: name.to_string(),
        files,
        new: Vec::new(),
        known: Vec::new(),
        gone: Vec::new(),
        quiet: 0,
        asked: 0,
        live: 0,
        damaged: seen.iter().filter_map(|one| damage(&one.entry)).collect(),
    };
    let mut met = vec![false; baseline.known.len()];
    let index = Index::of(&baseline.known);
    for group in arrange(&entries) {
        let members: Vec<&Seen> = group.members.iter().filter_map(|index| seen.get(*index)).collect();
        let Some(first) = members.iter().find(|one| one.is_bug).filter(|_| group.rank == Rank::Crash) else {
            let is_asked = |one: &&Seen| one.entry.finding.as_ref().is_some_and(|found| found.rule == "DELIBERATE");
            report.quiet += if group.rank == Rank::Unreadable { 0 } else { members.len() };
            let (asked, others): (Vec<_>, Vec<_>) = members.into_iter().partition(is_asked);
            report.asked += asked.len();
            report.live += others.iter().filter(|one| one.entry.is_quiet_live()).count();
            continue;
        };
        let mut signatures: Vec<String> = members.iter().map(|one| one.entry.signature.clone()).collect();
        signatures.sort();
        signatures.dedup();
        let title = group.finding.as_ref().map_or(&first.entry.cause, |found| &found.claim);
        let mut bug = Bug {
            key: crate::plain::line(&group.key).into_owned(),
            title: crate::plain::line(title).into_owned(),
            finding: group.finding,
            signatures,
            count: group.count,
            example: first.entry.clone(),
            location: members.iter().find_map(|one| one.location.clone()),
            log_line: first.log_line,
            comment: String::new(),
        };
        match index.position(&bug.key, &bug.signatures) {
            Some(index) => {
                if let (Some(known), Some(met)) = (baseline.known.get(index), met.get_mut(index)) {
                    bug.comment.clone_from(&known.comment);
                    *met = true;
                }
                report.known.push(bug);
            }
            None => report.new.push(bug),
        }
    }
    let missed = baseline.known.iter().zip(met).filter(|(_, met)| !met);
    report.gone = missed.map(|(known, _)| known.clone()).collect();
    report
}

/// What is damaged of a dump, with its name.
fn damage(entry: &CatalogueEntry) -> Option<String> {
    let number = entry.dump.map_or(String::new(), |number| format!(", dump {number}"));
    let name = format!("{}{number}", entry.file);
    match entry.kind.as_str() {
        "unreadable" => Some(format!("{name}: {}", entry.cause)),
        "lost" => Some(format!("{name}: the cause is lost")),
        _ if entry.sound => None,
        _ => Some(format!("{name}: {} defects", entry.defects.max(1))),
    }
}

/// The dumps that fail no run, in words: requested ones, those of machines that lived.
#[must_use]
pub fn quiet(report: &CiReport) -> Vec<String> {
    let asked = count(report.asked as u64, "requested dump", "requested dumps");
    let live = count(report.live as u64, "dump of a living machine", "dumps of living machines");
    let rows = [(report.asked, asked), (report.live, format!("{live} without a likely bug"))];
    rows.into_iter().filter(|(dumps, _)| *dumps > 0).map(|(_, words)| words).collect()
}

/// The counts in words: `2 new crashes, 1 known, 3 of the baseline gone`.
#[must_use]
pub fn verdict(report: &CiReport) -> String {
    let new = report.new.len();
    let head = match new {
        0 => "no new crash".to_string(),
        1 => "1 new crash".to_string(),
        more => format!("{more} new crashes"),
    };
    let gone = match report.gone.len() {
        0 => String::new(),
        gone => format!(", {gone} of the baseline gone"),
    };
    format!("{head}, {} known{gone}", report.known.len())
}

#[cfg(test)]
mod tests;
