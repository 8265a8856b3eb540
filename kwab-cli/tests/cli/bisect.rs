//! `kwab bisect` with a script in place of a boot: crashes that begin somewhere, crashes at times, other crashes.

use std::path::Path;

use crate::common::{folder, imported, kwab, text};
use tempfile::TempDir;

/// A folder with a boot script, `crash.kwab` (a crash) and `other.kwab` (another one).
fn prepared(script: &str) -> TempDir {
    let folder = folder();
    for (name, log) in [("crash.kwab", "kevlar-panic-socket"), ("other.kwab", "linux-6.1-sysrq-panic")] {
        let dump = imported(folder.path(), log);
        std::fs::rename(folder.path().join(dump), folder.path().join(name)).expect("renamed");
    }
    std::fs::write(folder.path().join("boot.sh"), script).expect("written");
    folder
}

fn bisect(folder: &Path, words: &[&str]) -> (i32, String) {
    let output = kwab(folder).arg("bisect").args(words).args(["--", "sh", "boot.sh", "{}"]).output().expect("it runs");
    (output.status.code().expect("no signal"), format!("{}{}", text(&output.stdout), text(&output.stderr)))
}

#[test]
fn the_value_from_which_on_the_machine_crashes_is_found_by_its_dumps() {
    let folder = prepared("n=${1#*=}; [ $n -lt 257 ] || cp crash.kwab dump.kwab");
    let (status, said) = bisect(folder.path(), &["--param", "prefault_max=0..512", "--dump", "dump.kwab"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("the crash begins at prefault_max=257 (prefault_max=256 is good)"), "{said}");
    assert!(said.lines().count() <= 13, "too many boots:\n{said}");
}

#[test]
fn another_crash_says_nothing_about_the_one_that_is_looked_for() {
    let script =
        "n=${1#*=}; if [ $n -ge 9 ]; then cp crash.kwab dump.kwab; elif [ $n -ge 4 ]; then cp other.kwab dump.kwab; fi";
    let folder = prepared(script);
    let (status, said) = bisect(folder.path(), &["--param", "n=0..12", "--dump", "dump.kwab"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("between n=3 (good) and n=9 (bad)"), "{said}");
}

#[test]
fn a_crash_that_happens_in_some_boots_only_is_counted() {
    let script = "n=${1#*=}; echo x >>runs; [ $n -lt 6 ] || [ $(($(wc -l <runs) % 3)) -ne 0 ]";
    let folder = prepared(script);
    let (status, said) = bisect(folder.path(), &["--param", "n=0..10", "--repeat", "3"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("the crash begins at n=6") && said.contains("1 of 3 runs"), "{said}");
}

#[test]
fn without_a_parameter_the_status_is_what_git_bisect_run_expects() {
    let folder = prepared("exit $(cat status)");
    for (own, expected) in [(0, 0), (1, 1), (77, 1), (125, 125)] {
        std::fs::write(folder.path().join("status"), own.to_string()).expect("written");
        assert_eq!(bisect(folder.path(), &[]).0, expected, "status {own}");
    }
}

#[test]
fn a_list_without_a_boundary_and_nonsense_are_told_apart() {
    let folder = prepared("true");
    assert_eq!(bisect(folder.path(), &["--param", "inject=a,b,c"]).0, 1);
    let (status, said) = bisect(folder.path(), &["--param", "inject=a"]);
    assert!(status == 2 && said.contains("fewer than two values"), "{said}");
}

#[test]
fn injected_faults_have_no_order_and_each_is_tried() {
    let folder = prepared("case $1 in inject=b|inject=d) exit 1;; esac");
    let (status, said) = bisect(folder.path(), &["--inject", "a,b,c,d"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("the crash happens with inject=b, inject=d"), "{said}");
    let (status, said) = bisect(folder.path(), &["--inject", "a,c"]);
    assert!(status == 1 && said.contains("does not happen"), "{said}");
}
