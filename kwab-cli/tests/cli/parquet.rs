//! `kwab export --to parquet`: whole files, no input replaced, directories that are new, and what is refused.
//!
//! What the tables hold is judged by `cargo xtask parquet`, which reads them with other engines.

use std::fs;
use std::path::Path;

use crate::common::{folder, run, text};

/// A directory with three dumps of the repository.
fn fleet() -> tempfile::TempDir {
    let folder = folder();
    let at = folder.path().join("fleet");
    fs::create_dir(&at).expect("made");
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps");
    for (from, to) in [("clean", "a"), ("null-dereference", "b"), ("lost-wakeup", "c")] {
        fs::copy(dumps.join(from).with_extension("kwab"), at.join(to).with_extension("kwab")).expect("copied");
    }
    folder
}

/// Runs and expects a status, and on stderr that text; nothing else is said for an empty one.
fn ends(at: &Path, words: &[&str], status: i32, telling: &str) {
    let output = run(at, words);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{words:?}: {stderr}");
    assert!(stderr.contains(telling) && stderr.is_empty() == telling.is_empty(), "{words:?}: {stderr}");
}

/// Whether a file begins and ends as a Parquet file.
fn is_whole(path: &Path) -> bool {
    let bytes = fs::read(path).expect("there");
    bytes.len() > 100 && bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")
}

#[test]
fn a_table_is_written_whole_and_only_a_table_is_replaced() {
    let folder = fleet();
    let at = folder.path();
    let export = ["export", "fleet", "--to", "parquet", "-o"];
    ends(at, &[&export[..], &["c.parquet"]].concat(), 0, "");
    assert!(is_whole(&at.join("c.parquet")));
    ends(at, &[&export[..], &["c.parquet"]].concat(), 2, "exists; --force overwrites it");
    ends(at, &[&export[..], &["c.parquet", "-f"]].concat(), 0, "");
    // A dump of the directory, by its name and by another, its index, and a file that is none of these.
    fs::hard_link(at.join("fleet/a.kwab"), at.join("hard")).expect("linked");
    ends(at, &["index", "fleet"], 0, "");
    fs::write(at.join("notes"), "PA").expect("written");
    for name in ["fleet/a.kwab", "hard", "notes"] {
        let before = fs::read(at.join(name)).expect("there");
        ends(at, &[&export[..], &[name, "-f"]].concat(), 2, "exists and is not a Parquet file; it is not replaced");
        ends(at, &[&export[..], &[name, "-f", "--table", "tasks"]].concat(), 2, "exists and is not a Parquet file");
        assert_eq!(fs::read(at.join(name)).expect("there"), before);
    }
    ends(at, &[&export[..], &["fleet/.kwab-index.db", "-f"]].concat(), 2, "is an input of this command");
    let dump = ["export", "fleet/b.kwab", "--to", "parquet", "--table", "tasks", "-f", "-o"];
    ends(at, &[&dump[..], &["fleet/b.kwab"]].concat(), 2, "is an input of this command");
    ends(at, &[&dump[..], &["c.parquet"]].concat(), 0, "");
    assert!(is_whole(&at.join("c.parquet")));
}

#[test]
fn a_partitioned_catalogue_is_a_new_directory_or_nothing() {
    let folder = fleet();
    let at = folder.path();
    let export = ["export", "fleet", "--to", "parquet", "--partition", "signature"];
    ends(at, &export, 2, "--partition writes a directory: name it with -o");
    ends(at, &[&export[..], &["-o", "fleet"]].concat(), 2, "exists; --partition makes a new directory");
    ends(at, &[&export[..], &["-o", "parts"]].concat(), 0, "");
    let names = |path: &Path| -> Vec<String> {
        let entries = fs::read_dir(path).expect("a directory").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let parts = names(&at.join("parts"));
    assert!(parts.len() == 3 && parts.iter().all(|name| name.starts_with("signature=")), "{parts:?}");
    for part in &parts {
        let files = names(&at.join("parts").join(part));
        assert!(files.len() == 1 && is_whole(&at.join("parts").join(part).join(&files[0])), "{files:?}");
    }
    assert_eq!(names(at), ["fleet", "parts"], "nothing else stays");
    ends(at, &[&export[..], &["-o", "parts"]].concat(), 2, "exists; --partition makes a new directory");
}

#[test]
fn damaged_dumps_are_told_and_what_is_sound_is_written() {
    let folder = fleet();
    let at = folder.path();
    let tasks = ["export", "fleet", "--to", "parquet", "--table", "tasks", "-f", "-o", "t.parquet"];
    fs::write(at.join("fleet/d.kwab"), "no dump").expect("written");
    ends(at, &tasks, 3, "fleet: 1 file is not readable; what is sound was exported");
    assert!(is_whole(&at.join("t.parquet")));
    let bytes = fs::read(at.join("fleet/b.kwab")).expect("there");
    fs::write(at.join("fleet/b.kwab"), &bytes[..bytes.len() / 2]).expect("cut");
    ends(at, &tasks, 3, "fleet: 1 file is not readable, 2 defects; what is sound was exported");
    // A catalogue has a row for a file that is not a dump.
    ends(at, &["export", "fleet", "--to", "parquet", "-o", "c.parquet"], 0, "");
}

#[test]
fn what_does_not_belong_together_is_refused_with_a_reason() {
    let folder = fleet();
    let at = folder.path();
    let dump = ["export", "fleet/a.kwab", "--to", "parquet"];
    ends(at, &dump, 2, "--table: name one of events, calls, mappings, tasks");
    ends(at, &[&dump[..], &["--table", "nonsense"]].concat(), 2, "unknown table nonsense; expected one of events");
    ends(at, &[&dump[..], &["--table", "catalogue"]].concat(), 2, "for the catalogue of a directory");
    ends(at, &[&dump[..], &["--table", "tasks", "--partition", "day"]].concat(), 2, "for the catalogue of a directory");
    ends(at, &[&dump[..], &["--table", "tasks", "--section", "log"]].concat(), 2, "do not apply to parquet");
    ends(at, &["export", "fleet/a.kwab", "--to", "json", "--table", "tasks"], 2, "apply to the form parquet only");
}
