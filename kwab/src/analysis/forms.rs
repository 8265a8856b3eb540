//! The JSON that `kwab triage`, `kwab audit-vm` and `kwab verify-pages` print: a versioned form around each analysis.
//!
//! The forms are contracts: their schemas are checked in, and [`SCHEMA`] rises when one changes. Addresses, offsets and
//! other words of 64 bits are strings of full width, `0x` and sixteen digits, because JSON readers round larger
//! numbers; counts are numbers.

use kwab_format::SectionKind;
use schemars::JsonSchema;
use serde::Serialize;

use super::audit::{self, Finding};
use super::triage::Triage;
use super::verify::{self, Backing, Verified, WrongPage};
use crate::model::Case;

/// The version of the three forms.
pub const SCHEMA: u32 = 5;

/// What `kwab triage --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TriageReport {
    /// Version of this form.
    pub schema: u32,
    /// The dump as the user named it.
    pub file: String,
    /// The conclusions of the triage.
    #[serde(flatten)]
    pub triage: Triage,
}

/// What `kwab audit-vm --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditReport {
    /// Version of this form.
    pub schema: u32,
    /// The dump as the user named it.
    pub file: String,
    /// Mappings in the dump.
    pub mappings: usize,
    /// Page-table entries in the dump.
    pub entries: usize,
    /// Frame records in the dump.
    pub frames: usize,
    /// Rules that are violated.
    pub findings: Vec<Finding>,
    /// What is damaged or lost.
    pub losses: Vec<String>,
    /// What of that the rules rest on, so that a violation may hide behind it.
    pub weakened: Vec<String>,
}

/// What `kwab verify-pages --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifyReport {
    /// Version of this form.
    pub schema: u32,
    /// The dump as the user named it.
    pub file: String,
    /// How many pages were compared.
    #[serde(flatten)]
    pub verified: Verified,
    /// Pages that are not what their files say.
    pub wrong: Vec<WrongPage>,
    /// What is damaged or lost.
    pub losses: Vec<String>,
    /// What of that the comparison rests on, so that a wrong page may hide behind it.
    pub weakened: Vec<String>,
}

impl TriageReport {
    /// The form of a triage.
    #[must_use]
    pub fn of(triage: Triage, file: &str) -> Self {
        Self { schema: SCHEMA, file: file.to_owned(), triage }
    }
}

impl AuditReport {
    /// Audits a case by the rules of these names, or by all when there are none.
    #[must_use]
    pub fn of(case: &Case<'_>, rules: &[String], file: &str) -> Self {
        let (mappings, entries, frames) = audit::scope(case);
        let wanted = |finding: &Finding| rules.is_empty() || rules.iter().any(|id| id == finding.rule);
        let findings = audit::audit(case).into_iter().filter(wanted).collect();
        let (losses, weakened) = (case.losses(), case.weakness(audit::RESTS_ON));
        Self { schema: SCHEMA, file: file.to_owned(), mappings, entries, frames, findings, losses, weakened }
    }
}

impl VerifyReport {
    /// Compares the pages of a case with the files behind them.
    #[must_use]
    pub fn of(case: &Case<'_>, backing: &Backing, file: &str) -> Self {
        let wrong = verify::verify(case, backing);
        // Captured bytes are compared only where there is a file to compare them with.
        let with_files = [SectionKind::PAGE_CHECKS, SectionKind::MEMORY_MAP, SectionKind::MEMORY];
        let rests_on = if backing.is_empty() { &with_files[..1] } else { &with_files };
        let losses = case.losses().into_iter().chain(backing.losses()).collect();
        let (verified, weakened) = (verify::verified(case, backing), case.weakness(rests_on));
        Self { schema: SCHEMA, file: file.to_owned(), verified, wrong, losses, weakened }
    }
}
