//! Runs the steps of the workflow in `docs/`, with a `cargo` that prints a captured log.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::common::{folder, log, text};

/// Name and script of each step that runs one, in order.
fn steps(workflow: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut lines = workflow.lines().peekable();
    let mut name = String::new();
    while let Some(line) = lines.next() {
        let text = line.trim_start().trim_start_matches("- ");
        if let Some(found) = text.strip_prefix("name: ") {
            name = found.to_string();
        }
        match text.strip_prefix("run: ") {
            Some("|") => {
                let indent = line.len() - line.trim_start().len();
                let mut script = String::new();
                let is_inside = |line: &&str| line.trim().is_empty() || line.len() - line.trim_start().len() > indent;
                while let Some(line) = lines.next_if(is_inside) {
                    script.push_str(line.trim_start());
                    script.push('\n');
                }
                steps.push((name.clone(), script));
            }
            Some(script) => steps.push((name.clone(), script.to_string())),
            None => {}
        }
    }
    steps
}

/// Runs the steps as a runner does: a step that fails ends the job, except for the summary.
fn job(folder: &Path, workflow: &str) -> (Option<i32>, String) {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("there is one"));
    let (mut failed, mut printed) = (None, String::new());
    for (name, script) in steps(workflow) {
        if failed.is_some() && name != "Summary" {
            continue;
        }
        let mut command = Command::new("bash");
        command.current_dir(folder).args(["-e", "-o", "pipefail", "-c", &script]).env("PATH", &path);
        let output = command.env("GITHUB_STEP_SUMMARY", folder.join("summary")).output().expect("bash runs");
        printed.push_str(&text(&output.stdout));
        if !output.status.success() {
            failed = output.status.code();
        }
    }
    (failed, printed)
}

#[test]
fn the_workflow_fails_for_a_new_crash_annotates_it_and_passes_when_it_is_known() {
    let workflow = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/kwab-ci.yml");
    let workflow = fs::read_to_string(workflow).expect("checked in");
    assert_eq!(steps(&workflow).len(), 4, "{workflow}");
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::copy(log("kevlar-panic-socket"), at("captured")).expect("copied");
    // The build puts the real program where it belongs, the boot prints the captured log and fails as a panic does.
    let kwab = assert_cmd::cargo::cargo_bin("kwab");
    let script = format!(
        "#!/bin/sh\ncase $1 in\nbuild) mkdir -p target/release; ln -sf '{}' target/release/kwab;;\n\
         xtask) cat captured; exit 125;;\nesac\n",
        kwab.display()
    );
    fs::write(at("cargo"), script).expect("written");
    fs::set_permissions(at("cargo"), fs::Permissions::from_mode(0o755)).expect("set");
    fs::write(at("known-crashes.toml"), "schema = 1\nsignature_version = 1\n").expect("written");

    let (failed, printed) = job(folder.path(), &workflow);
    assert_eq!(failed, Some(1), "{printed}");
    assert!(printed.contains("::error file=platform/x64/interrupt.rs,line=350,"), "{printed}");
    let summary = fs::read_to_string(at("summary")).expect("written");
    assert!(summary.starts_with("### kwab: 1 new crash, 0 known"), "{summary}");
    assert!(at("kwab.sarif").is_file() && at("kwab.xml").is_file());

    let accept = ["ci", "serial.log", "--baseline", "known-crashes.toml", "--write-baseline"];
    assert!(Command::new(kwab).current_dir(folder.path()).args(accept).status().expect("it runs").success());
    let (failed, printed) = job(folder.path(), &workflow);
    assert_eq!(failed, None, "{printed}");
    assert!(printed.contains("no new crash, 1 known"), "{printed}");
}
