//! A catalogue of dumps: one entry each, those of the same crash together.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::filter::{FieldValue, Fields};
use super::inspect;
use crate::model::Dump;

/// The version of [`Catalogue`]'s JSON form.
pub const SCHEMA: u32 = 2;

/// Dumps, grouped by signature.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Catalogue {
    /// Version of this form.
    pub schema: u32,
    /// Groups of equal signature, the largest first.
    pub groups: Vec<Group>,
}

/// Dumps of the same crash.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Group {
    /// Their common signature.
    pub signature: String,
    /// The dumps, oldest first.
    pub dumps: Vec<CatalogueEntry>,
}

/// A dump in a catalogue: what it is about, and whether it is sound.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub struct CatalogueEntry {
    /// Path of the file that holds the dump.
    pub file: String,
    /// Which dump of the file it is, from 1, when the file holds several.
    pub dump: Option<usize>,
    /// What kind of death, `recording` when nothing died, `lost` when the cause is lost, `unreadable` when it is no
    /// dump.
    pub kind: String,
    /// What died: `kernel`, or the program and its pid; empty when nothing is known to have died.
    pub victim: String,
    /// What happened, in one line.
    pub cause: String,
    /// Source location, symbol or instruction of the death; empty when unknown.
    pub place: String,
    /// Stable name of cause and location.
    pub signature: String,
    /// Wall clock, nanoseconds since 1970, when the dump knows it.
    pub wall_ns: Option<i64>,
    /// Nanoseconds since boot, when the dump knows them.
    pub mono_ns: Option<u64>,
    /// Which boot of its log.
    pub boot: Option<u32>,
    /// Process that died, or that ran when the kernel did.
    pub pid: Option<u32>,
    /// Processor that died or ran the dead program.
    pub cpu: Option<u32>,
    /// Whether nothing is damaged.
    pub sound: bool,
    /// Defects that are known without checking every payload.
    pub defects: usize,
    /// Length of the dump in bytes.
    pub bytes: u64,
}

impl Catalogue {
    /// Groups entries: crashes by frequency, then recordings and what is not a dump.
    pub fn of(entries: Vec<CatalogueEntry>) -> Self {
        let mut by_signature: BTreeMap<(bool, String), Vec<CatalogueEntry>> = BTreeMap::new();
        for entry in entries {
            let died = !matches!(entry.kind.as_str(), "recording" | "lost" | "unreadable");
            let key = if died { entry.signature.clone() } else { entry.kind.clone() };
            by_signature.entry((!died, key)).or_default().push(entry);
        }
        let mut groups: Vec<(bool, Group)> = by_signature
            .into_iter()
            .map(|((quiet, signature), mut dumps)| {
                dumps.sort_by_key(|entry| (entry.wall_ns, entry.boot, entry.mono_ns, entry.file.clone()));
                (quiet, Group { signature, dumps })
            })
            .collect();
        groups.sort_by_key(|(quiet, group)| (*quiet, std::cmp::Reverse(group.dumps.len())));
        Self { schema: SCHEMA, groups: groups.into_iter().map(|(_, group)| group).collect() }
    }
}

/// The fields that a filter over a catalogue can name.
pub const FIELDS: &[&str] =
    &["file", "kind", "victim", "cause", "place", "signature", "pid", "cpu", "boot", "bytes", "defects", "sound"];

impl Fields for CatalogueEntry {
    fn text(&self) -> Cow<'_, str> {
        format!("{} {} {} {} {} {}", self.file, self.kind, self.victim, self.cause, self.place, self.signature).into()
    }

    fn field(&self, name: &str) -> Option<FieldValue<'_>> {
        let text = |text: &'_ str| Some(FieldValue::Text(Cow::Owned(text.to_string())));
        let number = |number: Option<u32>| number.map(|number| FieldValue::Number(u64::from(number)));
        match name {
            "file" => text(&self.file),
            "kind" => text(&self.kind),
            "victim" => text(&self.victim),
            "cause" => text(&format!("{} {}", self.kind, self.cause)),
            "place" => text(&self.place),
            "signature" => text(&self.signature),
            "pid" => number(self.pid),
            "cpu" => number(self.cpu),
            "boot" => number(self.boot),
            "bytes" => Some(FieldValue::Number(self.bytes)),
            "defects" => Some(FieldValue::Number(self.defects as u64)),
            "sound" => text(if self.sound { "yes" } else { "no" }),
            _ => None,
        }
    }
}

/// The entry of a dump.
pub fn entry(dump: &Dump, file: &str) -> CatalogueEntry {
    let identity = dump.identity().unwrap_or_default();
    let cause = inspect::cause_of(dump);
    let headline = inspect::headline_of(dump);
    let location =
        cause.as_ref().and_then(|cause| cause.place.clone().or_else(|| cause.ip.as_ref().map(|ip| format!("ip {ip}"))));
    CatalogueEntry {
        file: file.to_string(),
        dump: (dump.file.dumps > 1).then_some(dump.file.number),
        kind: match &cause {
            Some(cause) => cause.kind.clone(),
            None if inspect::is_cause_lost(dump) => "lost".to_string(),
            None => "recording".to_string(),
        },
        victim: cause.as_ref().map_or_else(String::new, |cause| cause.victim.clone()),
        cause: headline,
        place: location.unwrap_or_default(),
        signature: inspect::signature_of(dump),
        wall_ns: identity.wall_ns,
        mono_ns: identity.mono_ns,
        boot: identity.boot_number,
        pid: cause.as_ref().and_then(|cause| cause.pid),
        cpu: cause.as_ref().and_then(|cause| cause.cpu),
        sound: dump.file.defects.is_empty() && dump.file.ended,
        defects: dump.file.defects.len(),
        bytes: dump.file.len,
    }
}

/// The entry of a file that cannot be read.
pub fn unreadable(file: &str, why: &str) -> CatalogueEntry {
    CatalogueEntry {
        file: file.to_string(),
        dump: None,
        kind: "unreadable".to_string(),
        victim: String::new(),
        cause: why.to_string(),
        place: String::new(),
        signature: "00000000".to_string(),
        wall_ns: None,
        mono_ns: None,
        boot: None,
        pid: None,
        cpu: None,
        sound: false,
        defects: 0,
        bytes: 0,
    }
}
