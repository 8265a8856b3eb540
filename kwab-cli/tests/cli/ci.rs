//! `kwab ci`: a run beside the crashes that are known, in every form, from logs that try to speak for it.

use std::fs;
use std::path::Path;

use crate::common::{folder, log, run, stdout_of, text};
use serde_json::Value;

/// A folder with two captured logs, one of which crashed on its own.
fn prepared() -> tempfile::TempDir {
    let folder = folder();
    for name in ["kevlar-panic-socket", "kevlar-pipe-profile", "kevlar-segv-children"] {
        fs::copy(log(name), folder.path().join(format!("{name}.log"))).expect("copied");
    }
    folder
}

fn status(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = run(folder, &arguments);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_new_crash_fails_a_known_one_passes_and_a_gone_one_is_said() {
    let folder = prepared();
    let at = folder.path();
    let (code, _, stderr) = status(at, "ci . --baseline known.toml");
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--write-baseline"), "{stderr}");
    let first = "ci kevlar-panic-socket.log --baseline known.toml --write-baseline";
    assert_eq!(status(at, first).0, Some(0));
    let kept = fs::read_to_string(at.join("known.toml")).expect("written");
    fs::write(at.join("known.toml"), kept.replace("comment = \"\"", "comment = \"issue 7\"")).expect("written");

    let (code, page, _) = status(at, "ci kevlar-panic-socket.log kevlar-pipe-profile.log --baseline known.toml");
    assert_eq!(code, Some(0), "{page}");
    assert!(page.starts_with("no new crash, 1 known  ("), "{page}");
    assert!(page.contains("issue 7") && page.lines().all(|line| line.chars().count() <= 80), "{page}");

    let (code, page, _) = status(at, "ci . --baseline known.toml");
    assert_eq!(code, Some(1), "{page}");
    assert!(page.contains("1 new crash, 1 known") && page.contains("kwab triage ./kevlar-segv-children.log"), "{page}");

    let (code, page, _) = status(at, "ci kevlar-pipe-profile.log --baseline known.toml");
    assert_eq!(code, Some(0));
    assert!(page.contains("1 of the baseline gone") && page.contains("gone     "), "{page}");

    assert_eq!(status(at, "ci . --baseline known.toml --write-baseline").0, Some(0));
    let merged = fs::read_to_string(at.join("known.toml")).expect("written");
    assert_eq!((merged.matches("[[known]]").count(), merged.matches("issue 7").count()), (2, 1), "{merged}");
    assert_eq!(status(at, "ci . --baseline known.toml").0, Some(0));
}

#[test]
fn an_image_that_every_dump_of_a_run_lacks_is_told_once() {
    let folder = folder();
    let at = folder.path();
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps");
    for name in ["leak", "null-dereference", "user-pointer"] {
        fs::copy(dumps.join(format!("{name}.kwab")), at.join(format!("{name}.kwab"))).expect("copied");
    }
    fs::write(at.join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    let (code, _, stderr) = status(at, "ci . --baseline known.toml --symbols .");
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(stderr.matches("no image for kernel, build-id 65220f0e").count(), 1, "{stderr}");
}

#[test]
fn a_dump_that_was_asked_for_fails_no_run_and_is_said() {
    let folder = folder();
    let at = folder.path();
    fs::copy(log("linux-6.1-sysrq-panic"), at.join("serial.log")).expect("copied");
    fs::write(at.join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    let (code, page, _) = status(at, "ci serial.log --baseline known.toml");
    let said = "no new crash, 0 known  (1 file, baseline known.toml)\n\
                quiet    1 requested dump, which fails no run\n";
    assert_eq!((code, page.as_str()), (Some(0), said));
}

#[test]
fn the_json_lists_all_and_names_log_line_and_source() {
    let folder = prepared();
    fs::write(folder.path().join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    let output = run(folder.path(), &["ci", "kevlar-panic-socket.log", "--baseline", "known.toml", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let bug = &report["new"][0];
    assert_eq!(
        (&bug["location"]["file"], &bug["location"]["line"]),
        (&"platform/x64/interrupt.rs".into(), &350.into())
    );
    assert_eq!((&bug["log_line"], &bug["count"]), (&101.into(), &1.into()), "{bug}");
}

#[test]
fn forms_for_ci_systems_are_written_and_say_the_same() {
    let folder = prepared();
    let at = folder.path();
    fs::write(at.join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    let line = "ci . --baseline known.toml --github --junit j.xml --sarif s.sarif --md m.md";
    let (code, page, stderr) = status(at, line);
    assert_eq!(code, Some(1), "{stderr}");
    let annotations: Vec<&str> = page.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(annotations.len(), 2, "{page}");
    assert!(
        annotations
            .iter()
            .any(|line| line.starts_with("::error file=platform/x64/interrupt.rs,line=350,title=new crash")),
        "{annotations:#?}"
    );
    let read = |name: &str| fs::read_to_string(at.join(name)).expect("written");
    let sarif: Value = serde_json::from_str(&read("s.sarif")).expect("JSON");
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(2));
    assert!(read("j.xml").contains("tests=\"2\"") && read("j.xml").contains("failures=\"2\""), "{}", read("j.xml"));
    assert!(read("m.md").starts_with("### kwab: 2 new crashes, 0 known\n"), "{}", read("m.md"));
    assert!(read("m.md").lines().count() <= 24, "one screen: {}", read("m.md"));
}

/// A log whose every line tries to be a command of a runner.
const HOSTILE: &str = "\
::error file=a.c,line=1::owned
##[error]owned
::add-mask::secret
[    1.000000] Kernel panic - not syncing: ::set-output name=x::y ##[command]z ::stop-commands::t %0A::error::owned
##vso[task.complete result=Succeeded]
";

#[test]
fn no_line_of_a_log_becomes_a_command_of_a_runner() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("serial.log"), HOSTILE).expect("written");
    fs::write(at.join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    for form in ["", " --github", " --json", " --md -", " --junit -", " --sarif -", " --wide"] {
        let (code, stdout, stderr) = status(at, &format!("ci serial.log --baseline known.toml{form}"));
        assert_eq!(code, Some(1), "{form}: {stderr}");
        assert!(stdout.contains("set-output"), "{form}: the panic is there: {stdout}");
        for line in stdout.lines().chain(stderr.lines()) {
            let is_ours = form == " --github" && line.starts_with("::error title=new crash ");
            assert!(is_ours || !line.trim_start().starts_with("::"), "{form}: {line}");
            assert!(!line.contains("##[") && !line.contains("##vso"), "{form}: {line}");
        }
    }
    let annotated = status(at, "ci serial.log --baseline known.toml --github").1;
    assert!(annotated.contains("%250A::error") && !annotated.contains("%0A"), "{annotated}");
}

#[test]
fn a_death_that_was_not_understood_is_new_and_an_empty_log_is_refused() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("foreign.log"), "KERNEL PANIC: cannot go on\nrax=0\n").expect("written");
    fs::write(at.join("empty.log"), "").expect("written");
    fs::write(at.join("clean.log"), "all is well\n").expect("written");
    fs::write(at.join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    assert_eq!(status(at, "ci clean.log --baseline known.toml").0, Some(0));
    let (code, page, _) = status(at, "ci foreign.log --baseline known.toml");
    assert_eq!(code, Some(1), "{page}");
    assert!(page.contains("cannot go on"), "{page}");
    assert_eq!(status(at, "ci foreign.log --baseline known.toml --write-baseline").0, Some(0));
    assert_eq!(status(at, "ci foreign.log --baseline known.toml").0, Some(0));
    let (code, _, stderr) = status(at, "ci empty.log clean.log --baseline known.toml");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("empty.log: is empty"), "{stderr}");
}

#[test]
fn outputs_never_replace_what_is_read_and_damage_is_its_own_status() {
    let folder = prepared();
    let at = folder.path();
    let log = fs::read(at.join("kevlar-pipe-profile.log")).expect("there");
    stdout_of(at, &["import", "kevlar-pipe-profile.log"]);
    let dump = fs::read(at.join("kevlar-pipe-profile.kwab")).expect("imported");
    fs::write(at.join("cut.kwab"), &dump[..dump.len() / 2]).expect("written");
    fs::write(at.join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    let (code, page, _) = status(at, "ci cut.kwab --baseline known.toml");
    assert_eq!(code, Some(3), "{page}");
    assert!(page.contains("damaged  cut.kwab"), "{page}");
    for target in ["kevlar-pipe-profile.log", "known.toml"] {
        let (code, _, stderr) = status(at, &format!("ci kevlar-pipe-profile.log --baseline known.toml --md {target}"));
        assert_eq!(code, Some(2), "{stderr}");
    }
    assert_eq!(fs::read(at.join("kevlar-pipe-profile.log")).expect("there"), log);
    fs::write(at.join("old.toml"), "schema = 1\nsignature_version = 0\n").expect("written");
    assert_eq!(status(at, "ci cut.kwab --baseline old.toml").0, Some(2));
    fs::create_dir(at.join("nothing")).expect("made");
    let (code, _, stderr) = status(at, "ci nothing --baseline known.toml");
    assert_eq!(code, Some(2), "{stderr}");
}

#[test]
fn no_report_replaces_a_log_or_dump_that_was_found_in_a_directory() {
    let folder = folder();
    let at = folder.path();
    fs::create_dir(at.join("run")).expect("made");
    fs::copy(log("kevlar-panic-socket"), at.join("run/a.log")).expect("copied");
    fs::copy(at.join("run/a.log"), at.join("run/b.kwab")).expect("copied");
    fs::write(at.join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    let before = fs::read(at.join("run/a.log")).expect("there");
    for report in ["--junit run/a.log", "--md run/b.kwab", "--sarif ./run/../run/a.log"] {
        let (code, _, stderr) = status(at, &format!("ci run --baseline known.toml {report}"));
        assert_eq!(code, Some(2), "{report}: {stderr}");
        assert!(stderr.contains("is an input of this command"), "{report}: {stderr}");
        assert_eq!(fs::read(at.join("run/a.log")).expect("there"), before, "{report}");
    }
    let (code, _, stderr) = status(at, "ci run/a.log --baseline known.toml --md same --sarif same");
    assert_eq!(code, Some(2));
    assert!(stderr.contains("two reports would go to one file"), "{stderr}");
}

#[test]
fn a_symbol_of_the_linker_is_not_the_function_of_a_crash() {
    let folder = folder();
    let at = folder.path();
    fs::copy(log("kevlar-panic-socket"), at.join("a.log")).expect("copied");
    assert!(fs::read_to_string(at.join("a.log")).expect("text").contains("__executable_start"));
    let (code, stdout, stderr) = status(at, "ci a.log --baseline known.toml --write-baseline --json");
    assert_eq!(code, Some(0), "{stderr}");
    let known = fs::read_to_string(at.join("known.toml")).expect("written");
    let key = known.lines().find(|line| line.starts_with("key = ")).expect("a key");
    assert!(key.contains("JUMP-ZERO") && !key.contains("executable_start") && !key.contains("page_fault"), "{key}");
    assert!(stdout.contains("JUMP-ZERO"), "{stdout}");
}
