//! Owns what `kwab doctor` says of a machine.

use schemars::JsonSchema;
use serde::Serialize;

/// The version of [`Health`]'s JSON form.
pub(crate) const SCHEMA: u32 = 1;

/// What this machine has and lacks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// Version of this form.
    pub schema: u32,
    /// Version of this program.
    pub version: String,
    /// Version of the dump format that it reads.
    pub format: String,
    /// What was looked at.
    pub checks: Vec<Checked>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    /// What was looked at.
    pub name: String,
    /// The state that it was found in.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What it is for.
    pub purpose: String,
    /// The command that mends it, if something is lacking.
    pub mend: Option<String>,
}

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// It is there.
    Good,
    /// It is lacking.
    Lacking,
    /// It does not matter here.
    Unused,
}
