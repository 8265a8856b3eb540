//! `kwab oracle` on real runs: Linux under strace beside our kernel's recorded calls.

use std::path::{Path, PathBuf};

use crate::common::{folder, run, text};
use serde_json::Value;

fn captured(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/oracle").join(name)
}

fn compared(more: &[&str]) -> (Option<i32>, String) {
    let (good, bad) = (captured("socket-families.strace"), captured("socket-families.log"));
    let program = "/contracts/sockets/socket_refuses_unknown_families";
    let paths = [good.to_str().expect("UTF-8"), bad.to_str().expect("UTF-8")];
    let words: Vec<&str> =
        ["oracle", "--program", program].into_iter().chain(paths).chain(more.iter().copied()).collect();
    let output = run(folder().path(), &words);
    (output.status.code(), text(&output.stdout))
}

#[test]
fn the_first_call_that_our_kernel_answers_otherwise_is_named_beside_linux() {
    let (status, said) = compared(&[]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("first difference: socket returned -1 EAFNOSUPPORT; in the good run -1 EPROTONOSUPPORT"),
        "{said}"
    );
    assert!(said.contains("socket(AF_INET, SOCK_STREAM, 99) = -1 EAFNOSUPPORT"), "{said}");
    assert!(said.contains("ends  good: exit status 0; bad: exit status 0"), "{said}");
    assert!(said.is_ascii(), "{said}");
}

#[test]
fn the_same_as_values_keeps_to_its_schema() {
    let (status, said) = compared(&["--json"]);
    assert_eq!(status, Some(1));
    let value: Value = serde_json::from_str(&said).expect("JSON");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/oracle.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).expect("there")).expect("JSON");
    let errors: Vec<_> = jsonschema::validator_for(&schema)
        .expect("a schema")
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!((&value["first"]["kind"], &value["good"]["origin"]), (&"answer".into(), &"strace".into()));
    assert_eq!(value["suspects"], Value::Array(Vec::new()));
}

#[test]
fn a_run_without_events_is_compared_by_its_paths_and_refused_without() {
    let folder = folder();
    let boot = "[    0.004834] Linux version 6.1.0-kwab (kwab) #1 SMP kwab on pc\nroot@kwab:~# ";
    for (name, text) in
        [("silent.log", ""), ("shell.log", boot), ("good.paths", "kwab-paths 1\n"), ("bad.paths", "kwab-paths 1\n")]
    {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let (good, kernel) = (captured("socket-families.log"), Path::new(env!("CARGO_BIN_EXE_kwab")));
    let [good, kernel] = [good.as_path(), kernel].map(|path| path.to_str().expect("UTF-8"));
    let compared = |bad: &str, more: &[&str]| {
        let words = ["oracle", good, bad, "--symbols", kernel].into_iter().chain(more.iter().copied());
        let output = run(folder.path(), &words.collect::<Vec<_>>());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    for (bad, why) in [("silent.log", "is empty"), ("shell.log", "is text, not a dump")] {
        let (status, said, _) = compared(bad, &["--good-paths", "good.paths", "--bad-paths", "bad.paths"]);
        assert_eq!(status, Some(3), "{said}");
        assert!(said.contains("incomplete: the machine printed no event in this run"), "{said}");
        let (status, _, error) = compared(bad, &[]);
        assert_eq!(status, Some(2), "{error}");
        assert!(error.contains(&format!("{bad}: {why}")), "{error}");
    }
}

#[test]
fn a_run_is_read_from_a_pipe_too_and_only_once() {
    let folder = folder();
    let fifo = folder.path().join("bad");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("runs").success());
    std::fs::write(folder.path().join("empty.paths"), "kwab-paths 1\n").expect("written");
    let good = captured("socket-families.log");
    let (good, kernel) = (good.to_str().expect("UTF-8"), env!("CARGO_BIN_EXE_kwab"));
    let paths = ["--symbols", kernel, "--good-paths", "empty.paths", "--bad-paths", "empty.paths"];
    let dump = folder.path().join("run.kwab");
    run(folder.path(), &["import", good, "-o", "run.kwab"]);
    for source in [captured("socket-families.log"), captured("socket-families.strace"), dump] {
        let bytes = std::fs::read(&source).expect("read");
        for more in [&paths[..], &[]] {
            let direct = source.to_str().expect("UTF-8");
            let known = run(folder.path(), &[&["oracle", good, direct][..], more].concat());
            let (to, bytes) = (fifo.clone(), bytes.clone());
            // Not waited for: it would be for ever if the FIFO were not opened.
            std::thread::spawn(move || std::fs::write(to, bytes));
            let piped = run(folder.path(), &[&["oracle", good, "bad"][..], more].concat());
            let told = |output: &std::process::Output| text(&output.stdout).replace(direct, "bad");
            assert_eq!((piped.status.code(), told(&piped)), (known.status.code(), told(&known)), "{direct} {more:?}");
        }
    }
}
