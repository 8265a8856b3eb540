//! The form of an answer: a report with its command, what is missing in it, and how its strings are to be taken.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::page::LeftOut;

/// What a tool answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Version of this form.
    pub schema: u32,
    /// The command line that prints the whole report.
    pub command: String,
    /// Exit status of that command: 0 clean, 1 findings, 2 some file cannot be read, 3 damaged or partial.
    pub status: u8,
    /// The status in a word.
    pub meaning: &'static str,
    /// How strings in `data` and `remarks` are to be taken.
    pub untrusted: &'static str,
    /// The report of that command, or the part of it that was asked for; the tool `schema` describes it. Characters
    /// that hide in a text or steer a terminal are spelled out, as \u{202e}.
    pub data: Value,
    /// What is missing in `data`: ask for it with `page.at` and `page.offset`.
    pub left_out: Vec<LeftOut>,
    /// Further places where something is missing.
    pub more_left_out: usize,
    /// What the command said beside its report.
    pub remarks: Vec<String>,
}
