//! The exit status of every command on sound, telling, damaged, foreign and absent input: the table that `--help`
//! prints.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{folder, imported, run, text};

/// Dumps and files that the table names.
fn prepared() -> tempfile::TempDir {
    let folder = folder();
    let at = folder.path();
    let quiet = imported(at, "kevlar-pipe-profile");
    let crash = imported(at, "kevlar-panic-socket");
    fs::rename(at.join(quiet), at.join("quiet")).expect("renamed");
    fs::rename(at.join(crash), at.join("crash")).expect("renamed");
    let mut bytes = fs::read(at.join("quiet")).expect("there");
    fs::write(at.join("cut"), &bytes[..bytes.len() * 3 / 4]).expect("written");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(at.join("flipped"), bytes).expect("written");
    fs::write(at.join("text"), "a log\n").expect("written");
    fs::write(at.join("garbage.log"), "DBG {\"type\":\n").expect("written");
    fs::write(
        at.join("foreign.log"),
        "DBG {\"type\":\"process_fork\",\"parent_pid\":1,\"child_pid\":2}\nKERNEL PANIC: cannot go on\nrax=0\n",
    )
    .expect("written");
    let run = "1 execve(\"/bin/p\", [\"p\"], NULL) = 0\n1 dup(0) = 3\n";
    fs::write(at.join("run.strace"), run).expect("written");
    fs::write(at.join("unread.strace"), format!("{run}what is this\n")).expect("written");
    fs::write(at.join("other.strace"), run.replace("= 3", "= -1 EMFILE")).expect("written");
    fs::write(at.join("none.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    fs::create_dir(at.join("sources")).expect("made");
    fs::create_dir(at.join("dumps")).expect("made");
    fs::copy(at.join("quiet"), at.join("dumps/a.kwab")).expect("copied");
    fs::create_dir(at.join("mixed")).expect("made");
    fs::copy(at.join("quiet"), at.join("mixed/a.kwab")).expect("copied");
    fs::write(at.join("mixed/b.kwab"), "a log\n").expect("written");
    folder
}

/// Status and command line; every dump's state is in its name.
const TABLE: &[(i32, &str)] = &[
    (0, "index dumps"),
    (0, "index mixed"),
    (2, "index absent"),
    (2, "index quiet"),
    (0, "inspect quiet"),
    (0, "inspect crash"),
    (3, "inspect flipped"),
    (3, "inspect cut"),
    (2, "inspect text"),
    (2, "inspect absent"),
    (2, "inspect quiet --symbols absent"),
    (2, "inspect quiet --source absent"),
    (2, "inspect quiet --source text"),
    (0, "inspect quiet --source sources"),
    (0, "triage quiet"),
    (1, "triage crash"),
    (3, "triage flipped"),
    (3, "triage cut"),
    (0, "triage text"),
    (2, "triage crash --symbols absent"),
    (2, "triage crash --backing absent"),
    (2, "triage crash --source absent"),
    (0, "audit-vm quiet"),
    (3, "audit-vm flipped"),
    (3, "audit-vm cut"),
    (2, "audit-vm absent"),
    (2, "audit-vm quiet --rule NONSENSE"),
    (0, "audit-vm --rules"),
    (0, "verify-pages quiet"),
    (3, "verify-pages flipped"),
    (3, "verify-pages cut"),
    (2, "verify-pages text"),
    (2, "verify-pages quiet --backing absent"),
    (0, "check quiet crash"),
    (3, "check quiet flipped"),
    (3, "check cut"),
    (2, "check quiet absent crash"),
    (2, "check flipped text"),
    (0, "list quiet crash"),
    (0, "list dumps"),
    (3, "list quiet flipped"),
    (3, "list mixed"),
    (2, "list quiet absent crash"),
    (0, "list text"),
    (2, "list quiet --filter pdi:2"),
    (0, "diff quiet quiet"),
    (1, "diff quiet crash"),
    (3, "diff flipped flipped"),
    (2, "diff quiet absent"),
    (2, "diff quiet dumps"),
    (0, "diff dumps dumps"),
    (3, "diff mixed mixed"),
    (2, "diff - -"),
    (2, "diff quiet"),
    (1, "ci crash --baseline none.toml"),
    (0, "ci quiet --baseline none.toml"),
    (3, "ci flipped --baseline none.toml"),
    (2, "ci crash absent --baseline none.toml"),
    (2, "ci crash --baseline absent"),
    (2, "ci crash --baseline text"),
    (2, "ci crash"),
    (2, "follow absent"),
    (2, "follow dumps"),
    (2, "follow tcp:192.0.2.1:9"),
    (0, "report quiet -o r.html"),
    (2, "report quiet -o r.html"),
    (3, "report flipped -o -"),
    (2, "report absent"),
    (2, "report quiet -o quiet --force"),
    (0, "export quiet --to json"),
    (3, "export flipped --to json"),
    (3, "export cut --to csv"),
    (2, "export text --to json"),
    (2, "export absent --to json"),
    (2, "export quiet --to nonsense"),
    (2, "export crash --to folded --symbols absent"),
    (2, "export crash --to json -o crash"),
    (0, "salvage quiet -o new"),
    (2, "salvage quiet -o new"),
    (3, "salvage flipped -o new --force"),
    (2, "salvage text -o new --force"),
    (0, "redact quiet -o shared --keep kernel"),
    (2, "redact quiet -o shared --keep kernel"),
    (0, "redact crash -o shared --keep structure --force"),
    (3, "redact flipped -o shared --keep kernel --force"),
    (3, "redact cut -o shared --keep kernel --force"),
    (2, "redact text -o shared --keep kernel --force"),
    (2, "redact crash -o crash --keep kernel --force"),
    (2, "redact crash -o shared --force"),
    (2, "redact crash --keep kernel"),
    (0, "redact --rules"),
    (0, "pack quiet -o pack.zip"),
    (2, "pack quiet -o pack.zip"),
    (0, "pack crash -o pack.zip --redact kernel --force"),
    (0, "open pack.zip"),
    (2, "open pack.zip"),
    (2, "open quiet"),
    (2, "open text -o none"),
    (2, "open absent -o none"),
    (2, "open dumps -o none"),
    (3, "pack flipped -o pack.zip --force"),
    (3, "pack cut -o pack.zip --force"),
    (2, "pack text -o pack.zip --force"),
    (2, "pack crash -o crash --force"),
    (2, "pack crash -o new.zip --input absent"),
    (2, "pack crash -o new.zip --input sources"),
    (2, "pack crash"),
    (2, "open"),
    (0, "inspect quiet --json-out report.json"),
    (2, "inspect quiet --json-out quiet"),
    (2, "inspect quiet --json-out sources"),
    (2, "cat quiet events --json-out report.json"),
    (2, "list dumps --json-out dumps/a.kwab"),
    (0, "cat quiet events"),
    (2, "cat quiet nonsense"),
    (3, "cat flipped identity"),
    (0, "import text --dry-run"),
    (0, "import garbage.log --dry-run"),
    (3, "import garbage.log --dry-run --strict"),
    (1, "import foreign.log --dry-run"),
    (2, "import absent"),
    (2, "import sources"),
    (2, "import quiet"),
    (0, "schema check"),
    (0, "completions bash"),
    (0, "man"),
    (0, "--version"),
    (0, "help"),
    (2, "nonsense"),
    (2, "inspect"),
    (1, "bisect --inject a -- true"),
    (0, "bisect --inject a -- false"),
    (2, "bisect --inject a -- ./absent"),
    (0, "oracle run.strace run.strace"),
    (1, "oracle run.strace other.strace"),
    (3, "oracle run.strace other.strace --program absent"),
    (3, "oracle run.strace unread.strace"),
    (2, "oracle run.strace text"),
    (2, "oracle run.strace absent"),
    (2, "oracle - -"),
    (2, "oracle run.strace"),
    (2, "capture --qmp absent"),
    (2, "capture --qmp text -o quiet"),
];

#[test]
fn every_command_ends_with_the_status_of_the_table() {
    let folder = prepared();
    let mut wrong = Vec::new();
    for (wanted, line) in TABLE {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = run(folder.path(), &arguments);
        if output.status.code() != Some(*wanted) {
            wrong.push(format!("{line}: {:?} instead of {wanted}: {}", output.status.code(), text(&output.stderr)));
        }
        if *wanted == 2 {
            assert!(!output.stderr.is_empty(), "{line}: no word about it");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_that_is_absent_costs_only_itself() {
    let folder = prepared();
    let output = run(folder.path(), &["check", "quiet", "absent", "crash"]);
    let page = text(&output.stdout);
    assert!(page.contains("quiet: sound") && page.contains("crash: sound"), "{page}");
    assert_eq!(text(&output.stderr), "kwab: absent: no such file\n");
    let output = run(folder.path(), &["check", "--json", "quiet", "absent", "flipped"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["dumps"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["unreadable"], serde_json::json!(["absent: no such file"]));
    let output = run(folder.path(), &["list", "quiet", "absent", "crash"]);
    let page = text(&output.stdout);
    assert!(page.contains("quiet") && page.contains("crash"), "{page}");
    assert_eq!(text(&output.stderr), "kwab: absent: no such file\n");
}

/// Runs a command whose reader is gone before it begins.
fn unread(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    // A program that another test starts just now may hold the reader for a moment.
    while writer.write(b"x").is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    command.current_dir(folder).args(arguments).stdout(writer).stderr(Stdio::piped());
    let output = command.spawn().expect("the binary runs").wait_with_output().expect("it ends");
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_reader_that_goes_away_is_no_error_worth_a_word() {
    let folder = prepared();
    for line in [
        "inspect crash",
        "inspect flipped",
        "triage crash",
        "audit-vm quiet",
        "diff quiet crash",
        "verify-pages quiet",
        "export crash --to json",
        "export crash --to csv",
        "export flipped --to jsonl",
        "check quiet flipped",
        "list quiet crash --json",
        "cat quiet events",
        "schema inspect",
        "salvage quiet -o -",
        "redact quiet -o - --keep kernel",
        "redact --rules",
        "pack quiet -o -",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let (status, stderr) = unread(folder.path(), &arguments);
        assert_eq!(status, Some(141), "{line}: {stderr}");
        assert!(!stderr.contains("pipe") && !stderr.contains("panicked"), "{line}: {stderr}");
    }
}

#[test]
fn the_help_says_what_the_table_tests() {
    let folder = folder();
    let help = text(&run(folder.path(), &["--help"]).stdout);
    for words in ["Exit status:", "findings", "usage or I/O", "damaged, partial", "141"] {
        assert!(help.contains(words), "{words}: {help}");
    }
}
