//! `kwab diff OLD NEW` of two builds: the function that was changed comes first, what only moved is not there.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{folder, run, text};
use serde_json::Value;

/// A program in which everything behind the first function moves when that grows.
fn source(padding: &str, bound: &str) -> String {
    format!(
        r#"
        use std::hint::black_box;
        #[inline(never)]
        fn grows(at: u64) -> u64 {{ {padding} black_box(at) }}
        #[inline(always)]
        fn is_inside(at: u64) -> bool {{ at {bound} 10 }}
        #[inline(never)]
        fn read_entry(table: &[u64], at: u64) -> u64 {{
            if is_inside(black_box(at)) {{ black_box(table)[at as usize] }} else {{ 7 }}
        }}
        #[inline(never)]
        fn stays(table: &[u64]) -> u64 {{ read_entry(table, 3) + read_entry(table, black_box(4)) }}
        fn main() {{ println!("{{}}", grows(1) + stays(&[1; 10])); }}
        "#
    )
}

/// Compiles a build; the line of a function does not tell builds apart, so that the source is always the same file.
fn build(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, program) = (folder.join("demo.rs"), folder.join(name).join("demo"));
    std::fs::create_dir_all(folder.join(name)).unwrap();
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition", "2024", "-O", "-g", "--crate-name", "demo", "-o"]).arg(&program).arg(&source);
    assert!(compiler.status().unwrap().success());
    program
}

/// `kwab diff` of two files, which must end with a status.
fn diff(folder: &Path, files: [&Path; 2], options: &[&str], status: i32) -> Output {
    let names = files.map(|file| file.to_str().unwrap());
    let output = run(folder, &[&["diff"], &names[..], options].concat());
    assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
    output
}

fn functions(found: &Value) -> Vec<&str> {
    let all = found["functions"].as_array().unwrap();
    let telling = all.iter().filter(|function| function["explains"].as_u64() > Some(0));
    telling.map(|function| function["name"].as_str().unwrap()).collect()
}

#[test]
fn a_changed_bound_is_found_behind_code_that_moved() {
    let folder = folder();
    let old = build(folder.path(), "old", &source("", "<"));
    let new = build(folder.path(), "new", &source("black_box(at * 3);", "<="));
    let found = diff(folder.path(), [&old, &new], &["--json"], 1);
    let found: Value = serde_json::from_str(&text(&found.stdout)).unwrap();
    let mut names = functions(&found);
    names.sort_unstable();
    assert_eq!(names, ["demo::grows", "demo::is_inside"], "{found:#}");
    let inside = found["functions"].as_array().unwrap().iter().find(|row| row["name"] == "demo::is_inside").unwrap();
    assert_eq!(inside["inside"].as_array().unwrap().as_slice(), [Value::from("demo::read_entry")]);
    assert!(inside["file"].as_str().unwrap().ends_with("demo.rs"), "{inside}");

    let page = text(&diff(folder.path(), [&old, &new], &[], 1).stdout);
    assert!(page.contains("demo::is_inside") && !page.contains("stays"), "{page}");
}

#[test]
fn the_same_code_at_another_address_does_not_differ() {
    let folder = folder();
    let old = build(folder.path(), "old", &source("", "<"));
    let again = build(folder.path(), "again", &source("", "<"));
    let page = text(&diff(folder.path(), [&old, &again], &[], 0).stdout);
    assert!(page.contains("the same; data was not compared"), "{page}");
}

#[test]
fn what_is_not_an_image_and_an_image_without_symbols_are_refused() {
    let folder = folder();
    let old = build(folder.path(), "old", &source("", "<"));
    let bare = folder.path().join("bare");
    std::fs::write(&bare, &std::fs::read(&old).unwrap()[..64]).unwrap();
    let refused = text(&diff(folder.path(), [&old, &bare], &[], 2).stderr);
    assert!(refused.contains("bare"), "{refused}");
}

#[test]
fn a_build_that_worked_is_named_to_every_command_that_judges_and_the_dumps_own_is_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let own = ["--good", "docs/first/symbols/kernel.debug"];
    for command in [&["triage"][..], &["inspect"], &["report", "-o", "-"]] {
        let output = run(root, &[command, &["docs/first/crash.kwab"], &own].concat());
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", text(&output.stderr));
        let said = text(&output.stderr);
        assert!(said.contains("kernel.debug: --good: is the build that the dump is of"), "{command:?}: {said}");
    }
    let output = run(root, &["inspect", "docs/first/crash.kwab", "--good", "nowhere"]);
    assert!(text(&output.stderr).contains("nowhere: --good: is neither a file nor a build-id"), "{output:?}");
}
