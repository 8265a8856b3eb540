//! What an import reports: all counts of the input and of the dumps written. The JSON form is a contract.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The version of [`ImportReport`]'s JSON form.
pub const SCHEMA: u32 = 2;

/// The whole import.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct ImportReport {
    /// Version of this form.
    pub schema: u32,
    /// The log as the user named it.
    pub source: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Lines of the log that the dump covers.
    pub lines: u64,
    /// Why a compressed log ended before its input did; absent when all of it was read.
    pub cut: Option<String>,
    /// Boots it holds.
    pub boots: u32,
    /// Events that were understood.
    pub events: u64,
    /// The same, by type.
    pub events_by_type: BTreeMap<String, u64>,
    /// Events of types that this version does not know; kept whole.
    pub unknown_events: u64,
    /// Events that were torn and could be put together again.
    pub rejoined: u64,
    /// Lines of console text.
    pub text_lines: u64,
    /// What was not understood; kept, and readable with `kwab cat DUMP kept`.
    pub not_understood: Losses,
    /// The first line that announces a kernel's death, of which nothing else was understood; its text is the problem.
    pub unexplained: Option<Loss>,
    /// What was written, in the order of the log.
    pub dumps: Vec<DumpSummary>,
}

/// What was not understood.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Losses {
    /// How many pieces.
    pub count: u64,
    /// The same, by kind.
    pub by_kind: BTreeMap<String, u64>,
    /// The first few, with their positions.
    pub first: Vec<Loss>,
}

impl Losses {
    /// Takes pieces of a kind back that turned out to cost nothing.
    pub(super) fn take_back(&mut self, kind: &str, pieces: u64) {
        let Some(of_kind) = self.by_kind.get_mut(kind) else { return };
        let pieces = pieces.min(*of_kind);
        *of_kind -= pieces;
        self.count -= pieces;
        if *of_kind == 0 {
            self.by_kind.remove(kind);
            self.first.retain(|loss| loss.kind != kind);
        }
    }
}

/// One piece that was not understood.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Loss {
    /// What it looks like.
    pub kind: String,
    /// Its line in the log, from 1.
    pub line: u64,
    /// Its offset in the log, bytes.
    pub offset: u64,
    /// Why it was not understood.
    pub problem: String,
}

/// One dump of an import.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DumpSummary {
    /// Which crash of the log it is, from 1; 0 for a recording without a crash.
    pub number: u32,
    /// Where it was written; absent before that and in a dry run.
    pub path: Option<String>,
    /// Boot of the crash, from 1.
    pub boot: u32,
    /// What died: `panic`, `process`, `recording`.
    pub kind: String,
    /// Who and where: `/bin/grep[130]`, the panic's source location.
    pub subject: String,
    /// What happened, in a few words.
    pub cause: String,
    /// Line of the log where it was first seen.
    pub line: Option<u64>,
    /// Stable name of cause and location; equal for crashes that look alike.
    pub signature: String,
    /// Number of an earlier dump of this import with the same signature.
    pub same_as: Option<u32>,
    /// Events recorded in it.
    pub events: u64,
    /// Length of the dump in bytes.
    pub bytes: u64,
    /// What is missing, in a few words; empty when it has everything that such a log can give.
    pub missing: Vec<String>,
    /// What came of the dump that the kernel printed in armoured lines; absent when it printed none.
    pub printed: Option<PrintedDump>,
}

/// What came of a dump in armoured lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrintedDump {
    /// Sound lines, those of parity among them.
    pub lines: u64,
    /// Full lines that were lost or damaged and are mended by parity lines.
    pub mended_lines: u64,
    /// Bytes that are there.
    pub bytes: u64,
    /// Bytes that are missing before the last one that is there.
    pub missing_bytes: u64,
    /// Damaged lines that cost nothing, because parity lines gave all of the dump.
    #[serde(skip)]
    pub damaged_lines: u64,
}
