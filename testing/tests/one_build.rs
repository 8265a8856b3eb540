//! The library is built with the same features whichever crates of the workspace are chosen, so that `cargo xtask`, the
//! tests and the program share one build of it.

use std::collections::BTreeSet;

use testing::paths;
use testing::process::Call;

/// A dependency with its version and its features.
type Row = String;

/// The dependencies of a choice of crates, each as often as it is built with other features.
fn dependencies(edges: &str, chosen: &[&str]) -> BTreeSet<Row> {
    let call = Call::cargo().args(["tree", "--locked", "--prefix", "none", "--format", "{p} [{f}]", "--edges", edges]);
    let rows = call.args(chosen).folder(paths::root()).capture().expect("cargo tree").stdout;
    rows.lines().map(|row| row.trim_end_matches(" (*)").to_owned()).collect()
}

fn name(row: &str) -> &str {
    row.split(" [").next().unwrap_or(row)
}

#[test]
fn the_library_has_the_same_features_in_each_choice_of_crates() {
    let library = dependencies("normal,build", &["--package", "kwab"]);
    let library: BTreeSet<&str> = library.iter().map(|row| name(row)).collect();
    assert!(library.len() > 30, "{library:?}");
    let of_library = |edges, chosen: &[&str]| -> BTreeSet<Row> {
        dependencies(edges, chosen).into_iter().filter(|row| library.contains(name(row))).collect()
    };
    let of_xtask = of_library("normal,build", &["--package", "testing"]);
    let of_program = of_library("normal,build", &["--package", "testing", "--package", "kwab-cli"]);
    let workspace = ["--workspace", "--exclude", "kernel", "--exclude", "machine", "--exclude", "kwab-python"];
    let of_tests = of_library("normal,build,dev", &workspace);
    for (other, what) in [(of_program, "the program"), (of_tests, "the tests")] {
        let differs: Vec<_> = of_xtask.symmetric_difference(&other).collect();
        assert!(differs.is_empty(), "built otherwise for {what} than for `cargo xtask`: {differs:#?}");
    }
}
