//! A copy of a dump is no more certain than the dump: what was lost before it was made weakens what is concluded of it.

use std::fs;
use std::path::Path;

use crate::common::{folder, run, stdout_of};
use serde_json::Value;

const DUMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/dumps/null-dereference.kwab");

/// What is lost by the word of triage, and the first hypothesis' score.
fn doubts(at: &Path, name: &str) -> (Vec<Value>, Value) {
    let report = run(at, &["triage", name, "--json"]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    (report["losses"].as_array().expect("a list").clone(), report["hypotheses"][0]["score"].clone())
}

#[test]
fn copies_of_a_cut_dump_and_of_one_with_a_damaged_section_stay_as_doubtful_as_they_were() {
    let folder = folder();
    let at = folder.path();
    let bytes = fs::read(DUMP).expect("there");
    fs::write(at.join("cut.kwab"), &bytes[..bytes.len() * 2 / 3]).expect("written");
    let check: Value = serde_json::from_str(&stdout_of(at, &["check", DUMP, "--json"])).expect("JSON");
    let sections = check["dumps"][0]["sections"].as_array().expect("a list");
    let map = sections.iter().find(|section| section["kind"] == "memory-map").expect("a section");
    let offset = usize::try_from(map["offset"].as_u64().expect("a number")).expect("small");
    let mut damaged = bytes.clone();
    damaged[offset + 50] ^= 1;
    fs::write(at.join("damaged.kwab"), damaged).expect("written");
    for name in ["cut", "damaged"] {
        let wanted = doubts(at, &format!("{name}.kwab"));
        assert!(!wanted.0.is_empty(), "{name} is doubtful");
        let make = |copy: &str, arguments: &[&str]| {
            let output = format!("{name}-{copy}.kwab");
            run(at, &[arguments, &[&format!("{name}.kwab"), "-o", &output]].concat());
            doubts(at, &output)
        };
        let salvaged = make("salvaged", &["salvage"]);
        assert_eq!((salvaged.0.is_empty(), &salvaged.1), (false, &wanted.1), "{name}, salvaged");
        assert!(!make("redacted", &["redact", "--keep", "kernel"]).0.is_empty(), "{name}, redacted");
        // A copy of a copy too.
        run(at, &["salvage", &format!("{name}-salvaged.kwab"), "-o", &format!("{name}-again.kwab")]);
        let again = doubts(at, &format!("{name}-again.kwab"));
        assert_eq!((again.0.is_empty(), &again.1), (false, &wanted.1), "{name}, salvaged twice");
    }
}
