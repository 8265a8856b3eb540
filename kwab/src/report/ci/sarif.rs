//! The report as SARIF 2.1.0: a result per crash, with its state against the baseline.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Bug, CiReport, Known};
use crate::plain;
use crate::report::signature;

/// The rule of a crash about which nothing is concluded.
const SYMPTOM: &str = "CRASH";

/// The document. New crashes are errors, known ones notes that the baseline's comment justifies; gone ones are
/// absent.
#[must_use]
pub fn sarif(report: &CiReport) -> Value {
    let mut rules: BTreeMap<&str, &str> = BTreeMap::new();
    for bug in report.new.iter().chain(&report.known) {
        rules.insert(rule_of(bug), bug.finding.as_ref().map_or("a crash without a conclusion", |found| &found.class));
    }
    for known in &report.gone {
        rules.entry(rule_of_key(&known.key)).or_insert("a crash of the baseline");
    }
    let index = |rule: &str| rules.keys().position(|known| *known == rule);
    let mut results: Vec<Value> = Vec::new();
    results.extend(report.new.iter().map(|bug| result(bug, "new", index(rule_of(bug)))));
    results.extend(report.known.iter().map(|bug| result(bug, "unchanged", index(rule_of(bug)))));
    results.extend(report.gone.iter().map(|known| absent(known, index(rule_of_key(&known.key)))));
    let rules: Vec<Value> =
        rules.iter().map(|(id, class)| json!({"id": text(id), "shortDescription": {"text": text(class)}})).collect();
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kwab",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule_of(bug: &Bug) -> &str {
    bug.finding.as_ref().map_or(SYMPTOM, |found| &found.rule)
}

/// The rule that a key begins with.
fn rule_of_key(key: &str) -> &str {
    if key.starts_with('~') { SYMPTOM } else { key.split([' ', ':']).next().unwrap_or(SYMPTOM) }
}

fn result(bug: &Bug, state: &str, rule_index: Option<usize>) -> Value {
    let (file, line) = match &bug.location {
        Some(location) => (&location.file, Some(u64::from(location.line))),
        // A result without a place is dropped by some readers: the dump or the line of the log is the place then.
        None => (&bug.example.file, bug.log_line),
    };
    let mut place = json!({"artifactLocation": {"uri": uri(file)}});
    if let (Some(line), Some(place)) = (line, place.as_object_mut()) {
        place.insert("region".to_string(), json!({"startLine": line}));
    }
    let mut message = format!("{} ({}", bug.title, bug.example.cause);
    message.push_str(&format!(") in {}", bug.example.file));
    let mut result = json!({
        "ruleId": text(rule_of(bug)),
        "level": if state == "new" { "error" } else { "note" },
        "message": {"text": text(&message)},
        "locations": [{"physicalLocation": place}],
        "occurrenceCount": bug.count.max(1),
        "baselineState": state,
        "partialFingerprints": fingerprints(&bug.key, Some(bug.signature())),
    });
    if let Some(result) = result.as_object_mut() {
        if let Some(index) = rule_index {
            result.insert("ruleIndex".to_string(), json!(index));
        }
        if state != "new" {
            let why = if bug.comment.is_empty() { "in the baseline" } else { &bug.comment };
            let suppression = json!({"kind": "external", "justification": text(why)});
            result.insert("suppressions".to_string(), json!([suppression]));
        }
    }
    result
}

fn absent(known: &Known, rule_index: Option<usize>) -> Value {
    json!({
        "ruleId": text(rule_of_key(&known.key)),
        "ruleIndex": rule_index,
        "level": "note",
        "message": {"text": text(if known.title.is_empty() { &known.key } else { &known.title })},
        "baselineState": "absent",
        "partialFingerprints": fingerprints(&known.key, known.signatures.first().map(String::as_str)),
    })
}

fn fingerprints(key: &str, symptom: Option<&str>) -> Value {
    let mut prints = json!({"kwabKey/v1": text(key)});
    if let (Some(symptom), Some(prints)) = (symptom, prints.as_object_mut()) {
        prints.insert(format!("kwabSignature/v{}", signature::VERSION), json!(text(symptom)));
    }
    prints
}

fn text(text: &str) -> String {
    plain::line(text).into_owned()
}

/// A path as a URI reference (RFC 3986): every byte but unreserved ones and `/` is percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::new();
    if path.starts_with('/') {
        out.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
