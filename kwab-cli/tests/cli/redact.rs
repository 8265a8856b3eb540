//! `kwab redact` on the committed dumps: what each policy costs triage, and that nothing of users is in the file.

use std::path::{Path, PathBuf};

use crate::common::{folder, run, stdout_of, text};
use serde_json::Value;

/// The page with the table of costs.
const PAGE: &str = include_str!("../../../docs/sharing.md");

fn dumps() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps");
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let mut dumps: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "kwab")).collect();
    dumps.sort();
    dumps
}

/// The first hypothesis of a dump: its score and rule, of an audit the violated one.
fn first(at: &Path, dump: &str) -> String {
    let output = run(at, &["triage", dump, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let Some(first) = report["hypotheses"].get(0) else { return "none".to_owned() };
    let claim = first["claim"].as_str().expect("a claim");
    let rule = match first["rule"].as_str().expect("a rule") {
        "AUDIT" => claim.strip_suffix(']').and_then(|claim| claim.rsplit_once('[')).expect("its rule").1,
        rule => rule,
    };
    format!("{:.2} {rule}", first["score"].as_f64().expect("a score"))
}

#[test]
fn the_table_of_the_page_says_what_each_policy_costs_triage() {
    let folder = folder();
    let mut table = String::from("| dump | whole | `kernel` | `structure` |\n|---|---|---|---|\n");
    let mut same = [0, 0];
    let dumps = dumps();
    for path in &dumps {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let path = path.to_string_lossy();
        let mut row = vec![name, first(folder.path(), &path)];
        for (at, policy) in ["kernel", "structure"].into_iter().enumerate() {
            let output = run(folder.path(), &["redact", &path, "-o", "shared.kwab", "--keep", policy, "--force"]);
            assert_eq!(output.status.code(), Some(0), "{path}: {}", text(&output.stderr));
            stdout_of(folder.path(), &["check", "shared.kwab"]);
            row.push(first(folder.path(), "shared.kwab"));
            let rule = |cell: &str| cell.rsplit(' ').next().unwrap_or_default().to_owned();
            same[at] += usize::from(rule(&row[1]) == rule(&row[2 + at]));
        }
        table.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    table.push_str(&format!("\nThe same rule comes first in {} and {} of {} dumps.\n", same[0], same[1], dumps.len()));
    assert!(PAGE.contains(&table), "docs/sharing.md has another table than:\n{table}");
}

#[test]
fn nothing_that_programs_were_told_is_in_a_redacted_dump() {
    let folder = folder();
    for path in dumps() {
        let whole = std::fs::read(&path).expect("a dump");
        let has = |bytes: &[u8], part: &str| bytes.windows(part.len()).any(|window| window == part.as_bytes());
        // What the boots of the exam have in environment, arguments, paths and log.
        let parts = ["/bin/", "exam", "PATH=", "Linux version", "console=", "oneshot", "/sbin"];
        assert!(parts.into_iter().filter(|part| has(&whole, part)).count() >= 3, "{path:?}");
        for policy in ["kernel", "structure"] {
            let path = path.to_string_lossy();
            run(folder.path(), &["redact", &path, "-o", "shared.kwab", "--keep", policy, "--force"]);
            let shared = std::fs::read(folder.path().join("shared.kwab")).expect("written");
            for part in parts {
                assert!(!has(&shared, part), "{path}, {policy}: {part}");
            }
        }
    }
}

#[test]
fn inspect_shows_what_was_removed() {
    let folder = folder();
    let dump = dumps().into_iter().find(|path| path.ends_with("null-dereference.kwab")).expect("there");
    let arguments =
        ["redact", &dump.to_string_lossy(), "-o", "shared.kwab", "--keep", "kernel", "--json-out", "r.json"];
    let said = stdout_of(folder.path(), &arguments);
    assert!(said.contains("records stay, policy kernel") && said.contains("Memory.bytes"), "{said}");
    let report = std::fs::read_to_string(folder.path().join("r.json")).expect("written beside the text");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let removed = report["removed"].as_array().expect("a list");
    let page = text(&run(folder.path(), &["inspect", "shared.kwab"]).stdout);
    assert!(page.contains("redacted by kwab") && page.contains("policy kernel"), "{page}");
    let lines = text(&run(folder.path(), &["cat", "shared.kwab", "counters"]).stdout);
    for field in removed {
        let name = field["field"].as_str().expect("a name");
        assert!(lines.contains(&format!("\"{name}\"")), "{name}: {lines}");
    }
}

#[test]
fn the_rules_name_every_field_and_json_out_never_replaces_what_is_read() {
    let folder = folder();
    let rules = stdout_of(folder.path(), &["redact", "--rules"]);
    for row in ["Task.cmdline", "Registers.regs.value", "CrashReport.vmas.file", "(any record).extra"] {
        assert!(rules.lines().any(|line| line.starts_with(row)), "{row}: {rules}");
    }
    let dump = folder.path().join("d.kwab");
    std::fs::copy(dumps().first().expect("one"), &dump).expect("copied");
    std::fs::hard_link(&dump, folder.path().join("hard.kwab")).expect("linked");
    let whole = std::fs::read(&dump).expect("there");
    for line in [
        "inspect d.kwab --json-out hard.kwab",
        "list . --json-out d.kwab",
        "check d.kwab --json-out=d.kwab",
        "triage d.kwab --json-out /dev/full",
        "inspect d.kwab --json-out -",
    ] {
        let output = run(folder.path(), &line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
    }
    assert_eq!(std::fs::read(&dump).expect("there"), whole);
    let text = stdout_of(folder.path(), &["inspect", "d.kwab", "--json-out", "r.json"]);
    assert!(text.contains("cause"), "{text}");
    let beside = std::fs::read_to_string(folder.path().join("r.json")).expect("written");
    assert_eq!(beside, stdout_of(folder.path(), &["inspect", "d.kwab", "--json"]), "the same report");
}
