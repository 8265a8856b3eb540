//! `kwab trends DIR [--since WHEN] [--index FILE] [--check WHAT] [--json] [--wide]`
//!
//! How often each signature came in which build, oldest build first: what is new in the newest build, what came again
//! after builds without it, what is gone. A build is named by its build-id, else by the commit or the version of its
//! kernel, and is as old as its first dump; dumps that name no build are left out.
//! Status 0: all dumps were looked at; 3: dumps that are there are not in the index; 2: the directory cannot be read.

use std::process::ExitCode;

use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalogue::store::{Build, Course};
use crate::cli::Color;
use crate::failure::{DAMAGED, about_folder};
use crate::fleet::Trends;
use crate::output::{self, Style};
use crate::render;
use crate::render::trends::{ShownBuild, ShownCourse};
use crate::since::day_of;

/// The version of [`Trend`]'s JSON form.
const SCHEMA: u32 = 1;

/// How often each signature came in which build.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Trend {
    /// Version of this form.
    pub schema: u32,
    /// Version of the way signatures are made.
    pub signature_version: u32,
    /// The builds, oldest first.
    pub builds: Vec<TrendBuild>,
    /// The signatures, the most frequent first.
    pub signatures: Vec<TrendSignature>,
}

/// A build of a kernel that dumps are of.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TrendBuild {
    /// Its build-id, else its commit, else the name and version of its kernel.
    pub build: String,
    /// The commit that its version names; empty when it names none.
    pub commit: String,
    /// Name and version of its kernel.
    pub kernel: String,
    /// When its first dump happened, nanoseconds since 1970.
    pub first_ns: i64,
    /// When its last dump happened.
    pub last_ns: i64,
    /// How many dumps are of it.
    pub dumps: u64,
}

/// A signature with its course over the builds.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TrendSignature {
    /// The name of the symptom.
    pub signature: String,
    /// How it stands in the newest build.
    pub state: TrendState,
    /// What happened, as its newest dump says.
    pub cause: String,
    /// Where it happened.
    pub place: String,
    /// The rule of triage that explains it; absent when none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How many dumps have it.
    pub dumps: u64,
    /// When the first one happened, nanoseconds since 1970.
    pub first_ns: i64,
    /// When the last one happened.
    pub last_ns: i64,
    /// The builds that have it, oldest first.
    pub builds: Vec<TrendCount>,
}

/// Dumps of a build.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TrendCount {
    /// The build: its position in `builds`, from 0.
    pub build: usize,
    /// How many of its dumps have the signature.
    pub dumps: u64,
}

/// How a signature stands in the newest build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TrendState {
    /// In the newest build, and in no other.
    New,
    /// In the newest build again, and not in the one before.
    Back,
    /// In the newest build and the one before.
    Known,
    /// Not in the newest build.
    Gone,
}

/// Runs the command.
pub(crate) fn run(arguments: &Trends, color: Color) -> Result<ExitCode> {
    let folder = &arguments.folder;
    std::fs::read_dir(folder).map_err(|error| about_folder(folder, &error))?;
    let opened = super::list::opened(folder, arguments.index.as_deref(), arguments.check)?;
    let builds = opened.store.builds()?;
    let names: Vec<String> = builds.iter().map(|build| build.name.clone()).collect();
    let courses = opened.store.courses(folder, &names, arguments.since.map(crate::since::Since::ns))?;
    let trend = Trend {
        schema: SCHEMA,
        signature_version: kwab::report::signature::VERSION,
        signatures: courses.into_iter().map(|course| signature(course, builds.len())).collect(),
        builds: builds.into_iter().map(build).collect(),
    };
    output::beside(&trend)?;
    if arguments.json {
        output::json(&trend)?;
    } else {
        output::text(&page(&trend, Style::of_stdout(color, arguments.wide)))?;
    }
    Ok(ExitCode::from(if opened.is_partial { DAMAGED } else { 0 }))
}

fn page(trend: &Trend, style: Style) -> String {
    let builds = trend.builds.iter().map(|build| ShownBuild {
        name: if build.commit.is_empty() { &build.build } else { &build.commit },
        day: day_of(build.first_ns),
        dumps: build.dumps,
    });
    let courses = trend.signatures.iter().map(|one| ShownCourse {
        state: match one.state {
            TrendState::New => "new",
            TrendState::Back => "back",
            TrendState::Known => "known",
            TrendState::Gone => "gone",
        },
        signature: &one.signature,
        cause: &one.cause,
        dumps: one.dumps,
        builds: one.builds.iter().map(|of| (of.build, of.dumps)).collect(),
    });
    render::trends::page(&builds.collect::<Vec<_>>(), &courses.collect::<Vec<_>>(), style)
}

fn build(build: Build) -> TrendBuild {
    let Build { name, commit, kernel, first_ns, last_ns, dumps } = build;
    TrendBuild { build: name, commit, kernel, first_ns, last_ns, dumps }
}

fn signature(course: Course, builds: usize) -> TrendSignature {
    let Course { newest, first_ns, last_ns, builds: counts } = course;
    let has = |back: usize| builds.checked_sub(back).is_some_and(|index| counts.contains_key(&index));
    let state = match (has(1), has(2), counts.len()) {
        (false, ..) => TrendState::Gone,
        (true, _, 1) => TrendState::New,
        (true, true, _) => TrendState::Known,
        (true, false, _) => TrendState::Back,
    };
    let entry = newest.entry;
    TrendSignature {
        signature: entry.signature,
        state,
        cause: entry.cause,
        place: entry.place,
        rule: entry.finding.filter(kwab::report::catalogue::Finding::is_likely).map(|found| found.rule),
        dumps: counts.values().sum(),
        first_ns,
        last_ns,
        builds: counts.into_iter().map(|(build, dumps)| TrendCount { build, dumps }).collect(),
    }
}
