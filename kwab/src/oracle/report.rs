//! What a comparison of two runs found, in words and as the JSON that `kwab oracle --json` prints.
//!
//! The form is a contract: its schema is checked in, and [`SCHEMA`] rises when it changes.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::trace::Origin;

/// The version of the form.
pub const SCHEMA: u32 = 4;

/// What `kwab oracle --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OracleReport {
    /// Version of this form.
    pub schema: u32,
    /// The run that is taken for right.
    pub good: Side,
    /// The run that is judged.
    pub bad: Side,
    /// The program whose runs were compared; absent when no thread executes one.
    pub program: Option<String>,
    /// What was found.
    pub verdict: Verdict,
    /// The first difference.
    pub first: Option<Divergence>,
    /// Calls just before the first difference that were the same in both runs, as `bad` shows them.
    pub before: Vec<String>,
    /// Calls before it whose answer lies in memory, which the traces do not show, and signals that were handled,
    /// nearest first. Present when the program itself did something else, so that an earlier answer must have misled
    /// it.
    pub suspects: Vec<String>,
    /// Functions of the kernel that the first difference can come from, likeliest first. By the image alone: those that
    /// make the error, then those that had no part in calls with right answers, nearest to the call's handler first. By
    /// recorded paths: those in which the paths part, those that ran just before, then those that ran in few calls with
    /// right answers. Empty without the image of the kernel.
    pub behind: Vec<String>,
    /// Where the paths through the kernel part, of calls, and of threads that had none yet when the machine ended; in
    /// the order of time. Empty without recorded paths.
    pub partings: Vec<Parting>,
    /// How many differences follow the first.
    pub later_count: usize,
    /// The first of those that follow.
    pub later: Vec<Divergence>,
    /// How the program ended in either run.
    pub ends: Ends,
    /// How many calls were the same in both runs.
    pub calls_alike: usize,
    /// The names of those calls.
    #[serde(skip)]
    pub(super) alike: BTreeSet<String>,
    /// Which calls stand beside each other.
    #[serde(skip)]
    pub(super) aligned: Aligned,
}

/// Which call of the good run stands beside which of the bad one, each by how many calls of its machine began before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Aligned {
    /// Good and bad, by the bad ones.
    pub pairs: Vec<(u32, u32)>,
    /// The rows of the bad ones.
    pub rows: BTreeMap<u32, String>,
    /// The first difference, as far as it is a call.
    pub first: (Option<u32>, Option<u32>),
    /// The last call of its thread before it that was alike, in the bad run.
    pub last: Option<u32>,
    /// The calls of the bad run that [`OracleReport::suspects`] names, or during which those signals were handled.
    pub suspects: Vec<u32>,
}

/// A call whose path through the kernel is another in the bad run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Parting {
    /// The call, as `bad` shows it; of an exception of the program its vector and the call before it; `the boot`, or
    /// `the start of thread N`: what a thread ran before it was first in user mode.
    pub call: String,
    /// Whether this call was answered alike.
    pub alike: bool,
    /// The function in which the paths part first.
    pub function: String,
    /// File and line of the first code that only one of the runs came to, or that ran more often in one.
    pub place: String,
    /// Whether both runs came to the same code, and only how often it ran differs.
    pub times_only: bool,
    /// The function that ran last before the order of code differs, when one of the runs goes on in it: it decided.
    pub decided: Option<String>,
    /// The function that it had called last, when what that answered decided: no further line ran in between.
    pub asked: Option<String>,
    /// Functions that ran just before that, the last first.
    pub before: Vec<String>,
    /// Functions in parts of which only the good run was, in the order in which it came there, each with those lines.
    pub only_good: Vec<PathPart>,
    /// The same of the bad run.
    pub only_bad: Vec<PathPart>,
}

/// A part of a function that only one of two runs came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PathPart {
    /// The function with these lines, inlined or not.
    pub function: String,
    /// Its file, where known.
    pub file: Option<String>,
    /// The lines, ascending.
    pub lines: Vec<u32>,
    /// Whether the other run came to the function at all.
    pub in_both: bool,
}

/// One of the two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Side {
    /// Where the run was read from, as it was given.
    pub path: String,
    /// What the file is.
    pub origin: TraceOrigin,
    /// Threads in the trace.
    pub threads: usize,
    /// System calls of all threads in the trace.
    pub calls: usize,
    /// What the trace is known to lack.
    pub gaps: Vec<String>,
}

/// Where a trace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceOrigin {
    /// Events of system calls in a recording.
    Recording,
    /// Rings of recent calls in a dump: only the end of each thread's calls.
    Rings,
    /// Text of strace(1).
    Strace,
}

/// What the comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No call, signal or end that both traces show differs; whether they show all, [`Side::gaps`] says.
    Same,
    /// A call, a signal or an end differs; [`OracleReport::first`] says which.
    Differs,
    /// The program is not in both traces, or one of them has no calls of it.
    CannotTell,
}

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ends {
    /// In the good run; absent when the trace does not show it.
    pub good: Option<String>,
    /// In the bad run.
    pub bad: Option<String>,
}

/// A pair of rows that differs, or a row that one run lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Divergence {
    /// Which part of the row is another.
    pub kind: DivergenceKind,
    /// The thread, by the order in which threads were made: `1`, its second child `1.2`.
    pub thread: String,
    /// The system call, or the signal.
    pub name: String,
    /// The argument that differs, by its name in the manual page.
    pub argument: Option<String>,
    /// The row of the good run; absent when it has none.
    pub good: Option<String>,
    /// The row of the bad run; absent when it has none.
    pub bad: Option<String>,
}

/// What differs in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DivergenceKind {
    /// The same question was answered otherwise.
    Answer,
    /// The same question was answered alike, but other bytes were written to the program's memory.
    Memory,
    /// The call did not return.
    NotReturned,
    /// The program asked with another argument.
    Argument,
    /// The program did not make this call.
    Missing,
    /// It made a call that the good run has not.
    Extra,
    /// A signal that is in one run only.
    Signal,
    /// It ended in another way.
    End,
}

impl DivergenceKind {
    /// Whether the question is the same, and only what came of it differs.
    pub(super) fn is_of_answer(self) -> bool {
        matches!(self, Self::Answer | Self::NotReturned)
    }
}

impl From<Origin> for TraceOrigin {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Recording => Self::Recording,
            Origin::Rings => Self::Rings,
            Origin::Strace => Self::Strace,
        }
    }
}

impl OracleReport {
    /// Whether a trace is known to lack something, so that a difference may lie in it.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.good.gaps.is_empty() || !self.bad.gaps.is_empty()
    }
}

impl TraceOrigin {
    /// The word for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Rings => "recent calls of a dump",
            Self::Strace => "strace",
        }
    }
}

impl Divergence {
    /// The difference as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let (name, argument) = (&self.name, self.argument.as_deref().unwrap_or("an argument"));
        match self.kind {
            DivergenceKind::Answer => {
                let answer = |row: &Option<String>| row.as_deref().map_or("never that", answer_of).to_owned();
                format!("{name} returned {}; in the good run {}", answer(&self.bad), answer(&self.good))
            }
            DivergenceKind::Memory => format!("{name} wrote other bytes to {argument}"),
            DivergenceKind::NotReturned => format!("{name} did not return; in the good run it did"),
            DivergenceKind::Argument => format!("{name} was called with another {argument}"),
            DivergenceKind::Missing => format!("{name} was not called; in the good run it was"),
            DivergenceKind::Extra => format!("{name} was called; in the good run it was not"),
            DivergenceKind::Signal if self.bad.is_none() => {
                format!("{name} was not delivered; in the good run it was")
            }
            DivergenceKind::Signal => format!("{name} was delivered; in the good run it was not"),
            DivergenceKind::End => "the program ended in another way".to_owned(),
        }
    }

    /// Whether the kernel's answer differs, so that the call itself is the place to look at.
    #[must_use]
    pub fn is_of_kernel(&self) -> bool {
        matches!(
            self.kind,
            DivergenceKind::Answer | DivergenceKind::Memory | DivergenceKind::NotReturned | DivergenceKind::Signal
        )
    }
}

/// The answer at the end of a row.
fn answer_of(row: &str) -> &str {
    row.rfind(" = ").map_or(row, |at| &row[at + 3..])
}
