//! A fact from a dump with its record, as every analysis quotes it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::RecordRef;

/// A fact that a claim rests on, or that speaks against it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// The fact as a sentence.
    pub text: String,
    /// The record that says so; absent for what follows from the absence of records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<RecordRef>,
    /// How much it counts, from 0 (context) to 1.
    pub weight: f64,
}

impl Evidence {
    /// A fact that adds nothing to a score and is worth knowing.
    #[must_use]
    pub const fn context(text: String) -> Self {
        Self { text, at: None, weight: 0.0 }
    }
}
