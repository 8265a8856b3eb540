//! The JSON of every command is a contract: the schema is checked in, and real output keeps to it.
//!
//! To change a schema on purpose, raise its version in the library and run the test with `KWAB_UPDATE_SCHEMAS=1`.

use crate::common;
use std::path::Path;

use crate::common::{LOGS, folder, imported, run, stdout_of};
use serde_json::Value;

fn stored(command: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(format!("{command}.json"))
}

#[test]
fn the_checked_in_schemas_are_those_that_the_program_prints() {
    let folder = folder();
    for command in [
        "import",
        "inspect",
        "check",
        "index",
        "list",
        "trends",
        "prune",
        "symbols",
        "diff",
        "diff-of-directories",
        "diff-of-builds",
        "salvage",
        "redact",
        "pack",
        "doctor",
        "triage",
        "audit-vm",
        "verify-pages",
        "bisect",
        "capture",
        "oracle",
        "translate",
        "search",
        "whatis",
        "print",
        "ci",
        "follow",
        "mcp",
    ] {
        let printed = stdout_of(folder.path(), &["schema", command]);
        if std::env::var_os("KWAB_UPDATE_SCHEMAS").is_some() {
            std::fs::write(stored(command), &printed).expect("written");
        }
        let kept = std::fs::read_to_string(stored(command)).expect("checked in");
        assert_eq!(printed, kept, "the schema of {command} has changed");
    }
}

#[test]
fn what_the_commands_print_keeps_to_their_schemas() {
    let validator = |command: &str| {
        let schema: Value =
            serde_json::from_str(&std::fs::read_to_string(stored(command)).expect("there")).expect("JSON");
        jsonschema::validator_for(&schema).expect("a schema")
    };
    let keeps = |command: &str, version: u32, output: &[u8]| {
        let value: Value = serde_json::from_slice(output).expect("JSON");
        let errors: Vec<_> = validator(command).iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{command}: {errors:?}");
        assert_eq!(value["schema"], version, "{command}");
    };
    for name in LOGS {
        let folder = folder();
        let dump = imported(folder.path(), name);
        keeps("import", 2, &run(folder.path(), &["import", &format!("{name}.log"), "--json", "--force"]).stdout);
        keeps("inspect", 5, &run(folder.path(), &["inspect", &dump, "--json"]).stdout);
        keeps("check", 1, &run(folder.path(), &["check", &dump, "--json"]).stdout);
        keeps("list", 3, &run(folder.path(), &["list", ".", "--json"]).stdout);
        let other = format!("{}/../testing/dumps/leak.kwab", env!("CARGO_MANIFEST_DIR"));
        keeps("diff", 1, &run(folder.path(), &["diff", &dump, &other, "--json"]).stdout);
        keeps("diff-of-directories", 1, &run(folder.path(), &["diff", ".", ".", "--json"]).stdout);
        keeps("salvage", 1, &run(folder.path(), &["salvage", &dump, "-o", "good.kwab", "--json"]).stdout);
        let redact = ["redact", &dump, "-o", "shared.kwab", "--keep", "kernel", "--json", "--force"];
        keeps("redact", 1, &run(folder.path(), &redact).stdout);
        let pack = ["pack", &dump, "-o", "pack.zip", "--redact", "kernel", "--json", "--force"];
        keeps("pack", 1, &run(folder.path(), &pack).stdout);
        keeps("pack", 1, &run(folder.path(), &["open", "pack.zip", "--json"]).stdout);
        for analysis in ["triage", "audit-vm", "verify-pages"] {
            keeps(analysis, 5, &run(folder.path(), &[analysis, &dump, "--json"]).stdout);
        }
    }
    let folder = folder();
    std::fs::copy(common::log(LOGS[0]), folder.path().join("a.log")).expect("copied");
    std::fs::write(folder.path().join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    keeps("doctor", 1, &run(folder.path(), &["doctor", "--json"]).stdout);
    keeps("index", 1, &run(folder.path(), &["index", ".", "--json"]).stdout);
    keeps("ci", 1, &run(folder.path(), &["ci", "a.log", "--baseline", "known.toml", "--json"]).stdout);
    let told = run(folder.path(), &["follow", "--exec", "cat a.log", "--json"]).stdout;
    let lines: Vec<_> = told.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 3, "begins, crash, ended");
    lines.into_iter().for_each(|line| keeps("follow", 2, line));
    let bisect = ["bisect", "--param", "n=0..9", "--json", "--", "sh", "-c", "test $(echo {} | cut -c3-) -lt 4"];
    let printed = run(folder.path(), &bisect);
    keeps("bisect", 1, &printed.stdout);
    let report: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    assert_eq!((&report["outcome"], &report["good"], &report["bad"]), (&"found".into(), &"n=3".into(), &"n=4".into()));
}
