//! A crash from a stranger with a folder `symbols` beside it: what the image there says is its maker's choice.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{folder, kwab, text};
use tempfile::{Builder, NamedTempFile};

/// A place in the image's line table, as long as the path of [`secret`].
const PLACE: &[u8] = b"kernel/src/inject.rs";
/// What the user's file says at the line that the image names.
const LINE: &str = "a line that stays here";

/// A file of the user whose path is as long as [`PLACE`].
fn secret() -> NamedTempFile {
    let file = Builder::new().prefix("kwab-").rand_bytes(7).suffix(".rs").tempfile_in("/tmp").expect("a file");
    fs::write(file.path(), format!("{LINE}\n").repeat(400)).expect("written");
    assert_eq!(file.path().as_os_str().len(), PLACE.len());
    file
}

/// Copies `docs/first` into a folder, with an image that says another path for one source file.
fn crash_in(folder: &Path, path: &Path) {
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/first");
    fs::create_dir_all(folder.join("symbols")).expect("made");
    fs::copy(first.join("crash.kwab"), folder.join("crash.kwab")).expect("copied");
    let mut image = fs::read(first.join("symbols/kernel.debug")).expect("there");
    let at = image.windows(PLACE.len()).position(|part| part == PLACE).expect("the line table has it");
    image[at..at + PLACE.len()].copy_from_slice(path.as_os_str().as_encoded_bytes());
    fs::write(folder.join("symbols/kernel.debug"), image).expect("written");
}

fn shown(folder: &Path, words: &[&str]) -> String {
    let output = kwab(folder).env("XDG_CACHE_HOME", folder.join("cache")).args(words).output().expect("runs");
    assert!(output.status.code().is_some_and(|code| code < 2), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn no_report_takes_lines_of_the_users_files_along_for_an_image_that_came_with_a_dump() {
    let (folder, secret) = (folder(), secret());
    crash_in(folder.path(), secret.path());
    for words in [
        ["inspect", "crash.kwab", "--section", "bt"].as_slice(),
        &["inspect", "crash.kwab", "--json"],
        &["report", "crash.kwab", "-o", "-"],
        &["report", "crash.kwab", "--md", "-o", "-"],
    ] {
        let page = shown(folder.path(), words);
        assert!(page.contains("end_session") && !page.contains(LINE), "{words:?}: {page}");
    }
    // An image that the user names is the user's word.
    let named = shown(folder.path(), &["inspect", "crash.kwab", "--section", "bt", "--symbols", "symbols"]);
    assert!(named.contains(LINE), "{named}");
}

#[test]
fn an_image_that_came_with_a_dump_does_not_answer_for_another_of_its_build_id_and_size() {
    let (folder, secret) = (folder(), secret());
    let names: [PathBuf; 2] = ["stranger", "own"].map(|name| folder.path().join(name));
    crash_in(&names[0], secret.path());
    crash_in(&names[1], Path::new("kernel/src/inject.rs"));
    let places = ["stranger", "own"].map(|name| {
        let page = shown(folder.path(), &["inspect", &format!("{name}/crash.kwab"), "--section", "bt"]);
        page.contains(&*secret.path().to_string_lossy())
    });
    assert_eq!(places, [true, false], "the stranger's path is in its own dump only");
}
