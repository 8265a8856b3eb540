//! What happens on a console that is followed.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::import::DumpSummary;

/// The version of [`FollowEvent`]'s JSON form.
pub const SCHEMA: u32 = 2;

/// An event as a line of JSON.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FollowLine<'a> {
    /// Version of this form.
    pub schema: u32,
    /// What happened on the console.
    #[serde(flatten)]
    pub event: &'a FollowEvent,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum FollowEvent {
    /// The first line of a crash has come; its dump grows.
    Begins {
        /// The line of the console, from 1.
        line: u64,
        /// The dump that grows.
        path: Option<PathBuf>,
    },
    /// The report of a crash has ended.
    Crash(CrashFound),
    /// More of a crash that had been announced has come: the panic behind an oops, a stack of another processor.
    Grew(CrashFound),
    /// What began was no crash: a program has printed what looks like one.
    Withdrawn,
    /// The console has been silent for long.
    Silent {
        /// For how long, in seconds.
        seconds: u64,
        /// Lines that came before.
        line: u64,
        /// A recording of the last lines, unless a crash's dump holds them.
        path: Option<PathBuf>,
    },
    /// The console speaks again.
    Resumed,
    /// Files of the console were renamed away or deleted before they could be read.
    Skipped {
        /// Number of files.
        files: u64,
    },
    /// The command that was started has ended, but a process that it left holds the console open.
    Orphaned,
    /// The console has ended.
    Ended {
        /// Lines that came.
        lines: u64,
        /// Bytes that came.
        bytes: u64,
    },
}

/// A crash and its dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CrashFound {
    /// Where its dump is.
    pub path: PathBuf,
    /// What died: `panic`, `process`.
    pub kind: String,
    /// Who and where: `/bin/grep[130]`, the panic's source location.
    pub subject: String,
    /// What happened, in a few words.
    pub cause: String,
    /// Stable name of cause and location.
    pub signature: String,
    /// Boot of the crash, from 1.
    pub boot: u32,
    /// Line of the console where it was first seen.
    pub line: Option<u64>,
    /// Lines of the console so far.
    pub lines: u64,
    /// Length of the dump in bytes.
    pub bytes: u64,
    /// What is missing, in a few words.
    pub missing: Vec<String>,
}

impl CrashFound {
    /// What an import says of the dump at `path`.
    pub(super) fn of(summary: DumpSummary, path: PathBuf, lines: u64) -> Self {
        let DumpSummary { kind, subject, cause, signature, boot, line, bytes, missing, .. } = summary;
        Self { path, kind, subject, cause, signature, boot, line, lines, bytes, missing }
    }
}
