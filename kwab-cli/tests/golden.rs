//! What the commands say about each dump of the corpus, word for word: `testing/dumps/NAME.kwab` beside `NAME/COMMAND.txt`.
//!
//! The dumps are those of the exam (`cargo xtask exam --keep`), each with one bug planted in our kernel. No images are at
//! hand here, so the transcripts hold what the dumps say by themselves. To change them on purpose, run the test with
//! `KWAB_UPDATE_GOLDEN=1` and read the difference.

mod common;

use std::path::{Path, PathBuf};

use common::{folder, kwab, text};

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
    let update = std::env::var_os("KWAB_UPDATE_GOLDEN").is_some();
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
            let kept = corpus().join(name).join(format!("{}.txt", command[0]));
            if update {
                std::fs::create_dir_all(corpus().join(name)).expect("made");
                std::fs::write(&kept, &said).expect("written");
            } else if std::fs::read_to_string(&kept).ok().as_deref() != Some(&said) {
                changed.push(format!("{}:\n{said}", kept.display()));
            }
        }
    }
    assert!(changed.is_empty(), "{} transcripts differ; the first now says\n{}", changed.len(), changed[0]);
}
