//! No byte that a command prints steers a terminal, whatever the dump, the log or the file name holds.

use crate::common;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::hostile::hostile_dump;
use crate::common::{folder, log, text};
use kwab::plain::is_hostile;

/// The control sequences that the program prints when it was asked for colours.
const OWN: &[&str] = &["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[1;31m", "\u{1b}[33m", "\u{1b}[2m", "\u{1b}[36m"];

/// Runs the binary with arguments that need not be UTF-8.
fn run(folder: &Path, arguments: &[&OsStr]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).env("TERM", "xterm").env_remove("NO_COLOR");
    command.output().expect("the binary runs")
}

/// Fails when the output holds what could steer a terminal.
fn judge(what: &str, bytes: &[u8], color: bool) {
    let mut text = String::from_utf8(bytes.to_vec()).unwrap_or_else(|error| panic!("{what}: not UTF-8: {error}"));
    if color {
        for own in OWN {
            text = text.replace(own, "");
        }
    }
    if let Some(at) = text.find(|character: char| character != '\n' && is_hostile(character)) {
        let from = text[..at].char_indices().rev().nth(40).map_or(0, |(at, _)| at);
        panic!("{what}: {:?}", text[from..].chars().take(80).collect::<String>());
    }
}

/// Commands on a dump called `D`; `kwab cat` gives a pipe the bytes as they are, and is tried on a terminal in
/// `tui.rs`.
const COMMANDS: &[&str] = &[
    "inspect D",
    "inspect D --wide --rows 100000",
    "--color always inspect D",
    "--color always inspect D \
     --section bt,code,regs,memory,vmas,checks,syscalls,events,trace,profile,tasks,log,meta,remarks",
    "inspect D --json",
    "triage D",
    "--color always triage D",
    "--color always triage D --explain",
    "triage D --json",
    "audit-vm D",
    "--color always audit-vm D",
    "audit-vm D --json",
    "verify-pages D",
    "--color always verify-pages D",
    "verify-pages D --json",
    "export D --to json",
    "export D --to jsonl",
    "export D --to csv",
    "export D --to chrome-trace",
    "export D --to folded",
    "check D",
    "check D --json",
    "list D",
    "--color always list D --wide",
    "list . --json",
    "diff D D",
    "--color always diff D D --wide -n 100000",
    "diff D D --json",
    "diff . .",
    "list D --filter cause:x",
    "report D -o -",
    "report D --md -o -",
    "cat D nonsense",
    "salvage D -o good.kwab",
    "salvage D -o good.kwab --force --json",
    "redact D -o shared.kwab --force --keep kernel",
    "redact D -o shared.kwab --force --keep kernel --json",
    "pack D -o pack.zip --force",
    "open pack.zip -o opened",
    "pack D -o pack.zip --force --json",
    "open pack.zip -o again --json",
    "import D",
    "export D --to elf-core -o core",
];

#[test]
fn no_command_prints_what_a_hostile_dump_holds() {
    let folder = folder();
    for variant in 0..4 {
        std::fs::write(folder.path().join("D"), hostile_dump(variant)).expect("written");
        for command in COMMANDS {
            let words: Vec<&OsStr> = command.split(' ').map(OsStr::new).collect();
            let output = run(folder.path(), &words);
            let color = command.contains("--color always");
            assert!(!text(&output.stderr).contains("panicked"), "{command}: {}", text(&output.stderr));
            judge(&format!("{command}, stdout"), &output.stdout, color);
            judge(&format!("{command}, stderr"), &output.stderr, false);
            let page = text(&output.stdout);
            assert!(
                !page.lines().any(|line| line == "kwab: all is well") || command.contains("log"),
                "{command}: a line of its own"
            );
        }
    }
}

#[test]
fn no_command_prints_what_a_hostile_file_name_holds() {
    let folder = folder();
    let name = OsStr::from_bytes(b"x\x1b[31m\xc2\x9b\xe2\x80\xaee\nvil\xff.kwab");
    std::fs::write(folder.path().join(name), hostile_dump(0)).expect("written");
    let absent = OsStr::from_bytes(b"absent\x1b[31m\xe2\x80\xae\n\xff");
    let log_name = OsStr::from_bytes(b"l\x1b[31m\xe2\x80\xae\nog\xff.log");
    std::fs::copy(log("kevlar-segv-children"), folder.path().join(log_name)).expect("copied");
    for command in COMMANDS {
        for file in [name, absent] {
            let words: Vec<&OsStr> =
                command.split(' ').map(|word| if word == "D" { file } else { OsStr::new(word) }).collect();
            let output = run(folder.path(), &words);
            judge(&format!("{command}, stdout"), &output.stdout, command.contains("--color always"));
            judge(&format!("{command}, stderr"), &output.stderr, false);
            let _ = std::fs::remove_file(folder.path().join("good.kwab"));
        }
    }
    let word = OsStr::new;
    for arguments in [
        vec![absent],
        vec![word("inspect"), word("--nonsense\u{1b}[31m\u{202e}")],
        vec![word("inspect"), absent, name],
        vec![word("--color"), absent, word("list")],
        vec![word("audit-vm"), word("--rule"), word("\u{1b}[31m\u{202e}x"), name],
        vec![word("tui"), word("--goto"), word("\u{1b}[31m\u{202e}x"), name],
        vec![word("inspect"), word("--symbols"), absent, name],
        vec![word("triage"), word("--backing"), absent, name],
        vec![word("bisect"), word("--param"), word("a\u{1b}[31m\u{202e}"), word("--"), word("true")],
        vec![word("import"), word("--json"), log_name],
        vec![word("import"), word("--dry-run"), log_name],
        vec![word("import"), log_name, word("-o"), absent],
    ] {
        let output = run(folder.path(), &arguments);
        judge(&format!("{arguments:?}, stderr"), &output.stderr, false);
        // Paths on a pipe are bytes for the next program.
        if arguments[0] != "import" || arguments.contains(&word("--json")) {
            judge(&format!("{arguments:?}, stdout"), &output.stdout, false);
        }
    }
}

#[test]
fn a_hostile_log_becomes_dumps_whose_pages_are_plain() {
    let folder = folder();
    let mut hostile = Vec::new();
    for name in common::LOGS {
        let bytes = std::fs::read(log(name)).expect("the log is there");
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if number % 3 == 0 {
                hostile.extend_from_slice(b"\x1b[31m\xe2\x80\xae\xc2\x9b");
            }
            let quoted = String::from_utf8_lossy(line).replace("\":\"", "\":\"\\u001b[31m\\u009b\\u202e");
            hostile.extend_from_slice(if number % 2 == 0 { quoted.as_bytes() } else { line });
            hostile.extend_from_slice(if number % 5 == 0 { b"\x07\xff\n" } else { b"\n" });
        }
    }
    std::fs::write(folder.path().join("h.log"), hostile).expect("written");
    let word = OsStr::new;
    let output = run(folder.path(), &[word("import"), word("h.log")]);
    judge("import", &output.stderr, false);
    let dumps: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert!(dumps.len() > 1, "{}", text(&output.stderr));
    for dump in &dumps {
        for command in
            ["inspect D", "--color always triage D", "list D", "check D", "export D --to csv", "export D --to jsonl"]
        {
            let words: Vec<&OsStr> =
                command.split(' ').map(|part| word(if part == "D" { dump } else { part })).collect();
            let output = run(folder.path(), &words);
            judge(&format!("{command} {dump}"), &output.stdout, command.contains("--color always"));
            judge(&format!("{command} {dump}"), &output.stderr, false);
        }
    }
}
