//! What the commands say about each dump of the corpus, word for word: `testing/dumps/NAME.kwab` beside
//! `NAME/COMMAND.snap`.
//!
//! The dumps are those of the exam (`cargo xtask exam --keep`), each with one bug planted in our kernel. No images are
//! at hand here, so the transcripts hold what the dumps say by themselves. To change them on purpose, run the test with
//! `INSTA_UPDATE=always` and read the difference.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::common::{folder, kwab, text};

/// The commands, each with its arguments but the dump.
const COMMANDS: &[&[&str]] = &[&["inspect"], &["triage"], &["verify-pages"], &["audit-vm"], &["list"], &["check"]];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps")
}

fn dumps() -> Vec<String> {
    let files = std::fs::read_dir(corpus()).expect("the corpus is there").flatten().map(|entry| entry.path());
    let dumps = files.filter(|path| path.extension().is_some_and(|end| end == "kwab"));
    let mut names: Vec<_> = dumps.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn every_command_says_of_every_dump_of_the_corpus_what_it_said_before() {
    let names = dumps();
    assert!(names.len() >= 15, "the corpus has only {} dumps", names.len());
    let folder = folder();
    let mut changed = Vec::new();
    for name in &names {
        let file = format!("{name}.kwab");
        std::fs::copy(corpus().join(&file), folder.path().join(&file)).expect("copied");
        for command in COMMANDS {
            let mut call = kwab(folder.path());
            call.env("COLUMNS", "100").env("CARGO_TARGET_DIR", folder.path()).env("HOME", folder.path());
            call.env_remove("XDG_CACHE_HOME");
            let output = call.args(*command).arg(&file).output().expect("the binary runs");
            let status = output.status.code().expect("no signal");
            let said = format!("$ kwab {} {file}\n{}status {status}\n", command.join(" "), text(&output.stdout));
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path(corpus().join(name));
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            let compare = || settings.bind(|| insta::assert_snapshot!(command[0], said));
            // All transcripts are compared, so that one run shows every difference.
            if catch_unwind(AssertUnwindSafe(compare)).is_err() {
                changed.push(format!("{name}/{}", command[0]));
            }
        }
    }
    assert!(changed.is_empty(), "{} transcripts differ: {}", changed.len(), changed.join(", "));
}

#[test]
fn every_transcript_belongs_to_a_dump_and_a_command() {
    let names = dumps().into_iter();
    let wanted: BTreeSet<PathBuf> =
        names.flat_map(|name| COMMANDS.iter().map(move |command| corpus().join(&name).join(command[0]))).collect();
    let found: BTreeSet<PathBuf> = walkdir::WalkDir::new(corpus())
        .min_depth(2)
        .into_iter()
        .map(|entry| entry.expect("readable").into_path().with_extension(""))
        .collect();
    assert_eq!(found, wanted, "transcripts are missing or left over");
}
