//! The commands that draw conclusions, run as a person runs them on dumps of real logs.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

/// The dump of a log of `testing/data/logs`, in a folder of its own.
fn imported(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/logs").join(name);
    let dump = folder.path().join("crash.kwab");
    kwab().arg("import").arg(log).arg("-o").arg(&dump).assert().success();
    (folder, dump)
}

fn kwab() -> Command {
    let mut command = Command::cargo_bin("kwab").unwrap();
    // The tests do not use the index cache of the user.
    command.env_remove("XDG_CACHE_HOME").env_remove("HOME").env("NO_COLOR", "1");
    command
}

fn text(command: &mut Command, status: i32) -> String {
    let output = command.assert().code(status).get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

#[test]
fn triage_of_a_kernel_crash_names_evidence_and_next_command_and_ends_with_1() {
    let (_folder, dump) = imported("kevlar-panic-socket.log");
    let shown = text(kwab().arg("triage").arg(&dump), 1);
    for part in
        ["zeroed stack", "[JUMP-ZERO]", "from_pid=2 to_pid=1", "next: kwab inspect", "ruled out", "not in this log"]
    {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let explained = text(kwab().arg("triage").arg(&dump).arg("--explain"), 1);
    assert!(explained.contains("+0.60") && explained.contains("=0.9"), "{explained}");
    let report: Value = serde_json::from_str(&text(kwab().arg("triage").arg(&dump).arg("--json"), 1)).unwrap();
    assert_eq!((&report["schema"], &report["hypotheses"][0]["rule"]), (&Value::from(5), &Value::from("JUMP-ZERO")));
    assert!(report["hypotheses"][0]["evidence"][0]["at"].is_string());
}

#[test]
fn triage_of_a_deliberate_crash_finds_no_bug_and_ends_with_0() {
    let (_folder, dump) = imported("linux-6.1-sysrq-panic.log");
    let shown = text(kwab().arg("triage").arg(&dump), 0);
    assert!(shown.contains("deliberate: sysrq by init[1]"), "{shown}");
}

#[test]
fn triage_of_a_recording_says_that_there_is_no_hypothesis() {
    let (_folder, dump) = imported("kevlar-pipe-profile.log");
    assert!(text(kwab().arg("triage").arg(&dump), 0).contains("no hypothesis"));
}

#[test]
fn an_analysis_that_finds_nothing_in_what_is_left_of_a_dump_ends_with_3() {
    let (_folder, dump) = imported("kevlar-pipe-profile.log");
    for command in ["triage", "audit-vm", "verify-pages"] {
        text(kwab().arg(command).arg(&dump), 0);
    }
    let bytes = std::fs::read(&dump).unwrap();
    std::fs::write(&dump, &bytes[..bytes.len() / 2]).unwrap();
    for command in ["triage", "audit-vm", "verify-pages"] {
        let shown = text(kwab().arg(command).arg(&dump), 3);
        assert!(shown.contains("the dump is cut"), "{command}: {shown}");
    }
}

#[test]
fn inspection_begins_with_the_hypotheses_and_shows_the_call_that_led_nowhere() {
    let (_folder, dump) = imported("kevlar-panic-socket.log");
    let page = text(kwab().arg("inspect").arg(&dump).env("COLUMNS", "100"), 0);
    let place = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part} is not in\n{page}"));
    assert!(place("[JUMP-ZERO]") < place("\ncause\n"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "a line is too wide:\n{page}");
    let only = text(kwab().arg("inspect").arg(&dump).args(["--section", "triage,code"]), 0);
    assert!(only.contains("next: kwab inspect") && !only.contains("registers"), "{only}");
}

#[test]
fn a_dump_is_judged_from_stdin_too() {
    let (_folder, dump) = imported("kevlar-panic-socket.log");
    let shown = text(kwab().args(["triage", "-"]).write_stdin(std::fs::read(dump).unwrap()), 1);
    assert!(shown.contains("[JUMP-ZERO]"), "{shown}");
}

#[test]
fn the_audit_lists_its_rules_and_refuses_unknown_ones() {
    let rules = text(kwab().args(["audit-vm", "--rules"]), 0);
    assert!(rules.contains("VM-SPAN-2") && rules.lines().count() >= 18, "{rules}");
    let (_folder, dump) = imported("linux-6.1-sysrq-panic.log");
    assert!(text(kwab().arg("audit-vm").arg(&dump), 0).contains("no page-table entries in this dump"));
    kwab().arg("audit-vm").arg(&dump).args(["--rule", "VM-NONSENSE"]).assert().code(2);
}

#[test]
fn pages_cannot_be_verified_against_something_that_is_no_archive() {
    let (folder, dump) = imported("kevlar-panic-socket.log");
    text(kwab().arg("verify-pages").arg(&dump), 0);
    let wrong = folder.path().join("notes.txt");
    std::fs::write(&wrong, "hello").unwrap();
    let output =
        kwab().arg("verify-pages").arg(&dump).arg("--backing").arg(&wrong).assert().code(2).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a cpio archive"));
}

#[test]
fn exports_for_other_tools_are_written_whole_or_refused_with_a_reason() {
    let (folder, dump) = imported("kevlar-panic-socket.log");
    let core = folder.path().join("core");
    kwab().arg("export").arg(&dump).args(["--to", "elf-core", "-o"]).arg(&core).assert().success();
    assert!(std::fs::read(&core).unwrap().starts_with(b"\x7fELF"));
    let trace = text(kwab().arg("export").arg(&dump).args(["--to", "chrome-trace"]), 0);
    assert!(serde_json::from_str::<Value>(&trace).unwrap()["traceEvents"].as_array().unwrap().len() > 10);
    assert!(text(kwab().arg("export").arg(&dump).args(["--to", "folded"]), 0).lines().all(|line| line.contains(' ')));
    let (_other, recording) = imported("kevlar-pipe-profile.log");
    let output = kwab().arg("export").arg(recording).args(["--to", "elf-core"]).assert().code(2).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stderr).contains("no registers"));
}

#[test]
fn numbers_of_pages_that_no_machine_has_are_told_and_do_not_overflow() {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let many =
        "DBG {\"type\":\"page_verify_ok\",\"seq\":1,\"ns\":1,\"pid\":1,\"verified\":18446744073709551615}\n".repeat(2);
    let oops = include_str!("../../../kwab/src/follow/oops.txt");
    std::fs::write(folder.path().join("a.log"), many + oops).expect("written");
    for form in [&["verify-pages", "a.log"][..], &["verify-pages", "a.log", "--json"]] {
        let output = kwab().current_dir(folder.path()).args(form).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{form:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("18,446,744,073,709,551,615") || said.contains("18446744073709551615"), "{said}");
    }
}
