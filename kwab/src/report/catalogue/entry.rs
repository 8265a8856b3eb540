//! What a catalogue holds of one dump.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::{LIKELY, Triage, triage, verify::Backing};
use crate::model::{Dump, is_of_library, is_text};
use crate::report::filter::{FieldValue, Fields};
use crate::report::inspect;
use crate::report::signature::task_name;
use crate::symbols::Symbols;

/// The best hypothesis of a dump, as the list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The rule of triage that says so.
    pub rule: String,
    /// What kind of bug it is.
    pub class: String,
    /// The claim as a sentence.
    pub claim: String,
    /// How well the dump supports it, from 0 to 1.
    pub score: f64,
    /// Whether evidence proves the mechanism.
    pub proven: bool,
    /// The function to look at first, when one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The rule of another analysis that the claim comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

impl Finding {
    /// Whether it is likelier than not, so that it names the dump better than its symptom does.
    #[must_use]
    pub fn is_likely(&self) -> bool {
        self.score >= LIKELY
    }
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
    /// Stable name of the symptom: kind of death and location.
    pub signature: String,
    /// The process that died or ran, `name[pid]`; empty when the dump does not say.
    pub process: String,
    /// What the dump was made from: `log` for text, `kernel` when the kernel wrote it.
    pub source: String,
    /// Name and version of the kernel; empty when the dump does not say.
    pub kernel: String,
    /// What triage concludes; absent when it concludes nothing or was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
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

impl CatalogueEntry {
    /// Whether the machine lived when the dump was taken, and triage finds no likely bug in it: no crash, and what may
    /// hang is a guess.
    #[must_use]
    pub fn is_quiet_live(&self) -> bool {
        let is_bug = |found: &Finding| found.is_likely() && found.rule != "DELIBERATE";
        self.kind == "live" && !self.finding.as_ref().is_some_and(is_bug)
    }
}

/// The fields that a filter over a catalogue can name.
pub const FIELDS: &[&str] = &[
    "file",
    "kind",
    "victim",
    "process",
    "cause",
    "rule",
    "score",
    "place",
    "signature",
    "source",
    "kernel",
    "pid",
    "cpu",
    "boot",
    "bytes",
    "defects",
    "sound",
];

impl Fields for CatalogueEntry {
    fn text(&self) -> Cow<'_, str> {
        let Self { file, kind, victim, process, cause, place, signature, .. } = self;
        let claim = self.finding.as_ref().map_or(String::new(), |found| format!("{} {}", found.rule, found.claim));
        format!("{file} {kind} {victim} {process} {cause} {claim} {place} {signature}").into()
    }

    fn field(&self, name: &str) -> Option<FieldValue<'_>> {
        let text = |text: &'_ str| Some(FieldValue::Text(Cow::Owned(text.to_string())));
        let number = |number: Option<u32>| number.map(|number| FieldValue::Number(u64::from(number)));
        match name {
            "file" => text(&self.file),
            "kind" => text(&self.kind),
            "victim" => text(&self.victim),
            "process" => text(&self.process),
            "cause" => text(&match &self.finding {
                Some(found) => format!("{} {} {} {} {}", self.kind, self.cause, found.rule, found.class, found.claim),
                None => format!("{} {}", self.kind, self.cause),
            }),
            "rule" => text(&self.finding.as_ref()?.rule),
            "score" => Some(FieldValue::Number((self.finding.as_ref()?.score * 100.0).round() as u64)),
            "source" => text(&self.source),
            "kernel" => text(&self.kernel),
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
    let location = cause.as_ref().and_then(|cause| {
        let own = cause.place.clone().filter(|place| !is_of_library(place));
        own.or_else(|| cause.ip.as_ref().map(|ip| format!("ip {ip}")))
    });
    // A program that died has one name in every column.
    let died = cause.as_ref().filter(|cause| cause.victim.ends_with(']') && cause.victim != "kernel");
    let died = died.map(|cause| String::from_utf8_lossy(task_name(cause.victim.as_bytes())).into_owned());
    let running = cause.as_ref().map_or_else(String::new, |cause| match (&cause.comm, cause.pid) {
        (Some(comm), Some(pid)) => format!("{comm}[{pid}]"),
        (Some(comm), None) => comm.clone(),
        (None, Some(pid)) => format!("[{pid}]"),
        (None, None) => String::new(),
    });
    let words = |bytes: Option<&[u8]>| bytes.map(crate::plain::bytes).unwrap_or_default();
    let kernel = [words(identity.kernel_name), words(identity.kernel_version)].join(" ").trim().to_string();
    let is_text = dump.source().is_some_and(|source| is_text(&source));
    CatalogueEntry {
        process: died.unwrap_or(running),
        source: if is_text { "log" } else { "kernel" }.to_string(),
        kernel,
        finding: None,
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

/// The entry of a dump with what triage concludes from it: of a dump that was loaded for the rules
/// ([`Depth::Rules`](crate::model::Depth::Rules)).
pub fn judge(dump: &Dump, file: &str) -> CatalogueEntry {
    concluded(dump, file, &triage(&dump.case(), &Symbols::new(), &Backing::none(), file))
}

/// The entry of a dump with what a triage of it has concluded. A finding that is less likely than not is kept too, so
/// that a list can show how little is known.
pub fn concluded(dump: &Dump, file: &str, triage: &Triage) -> CatalogueEntry {
    let finding = triage.hypotheses.first().map(|best| Finding {
        rule: best.rule.to_string(),
        class: best.class.to_string(),
        claim: best.claim.clone(),
        score: best.score,
        proven: best.proven,
        function: best.function.as_ref().map(|function| function.name.clone()),
        about: best.about.map(str::to_string),
    });
    CatalogueEntry { finding, ..entry(dump, file) }
}

/// The entry of a file that cannot be read.
pub fn unreadable(file: &str, why: &str) -> CatalogueEntry {
    CatalogueEntry {
        process: String::new(),
        source: String::new(),
        kernel: String::new(),
        finding: None,
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
