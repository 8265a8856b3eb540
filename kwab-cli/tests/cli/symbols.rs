//! The user's store of images, and debug files that lie apart from their image.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{folder, kwab, run, stdout_of, text};
use serde_json::Value;

const ID: &str = "d33f473559685f9e1b83c3019c581d0a6b06f136";

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/exchange").join(name)
}

/// A folder with the dump of the process, and the program in a folder where nothing looks by itself.
fn dump(at: &Path) {
    fs::create_dir(at.join("elsewhere")).expect("made");
    fs::copy(sample("process"), at.join("elsewhere/process")).expect("copied");
    stdout_of(at, &["import", &sample("process.core.gz").to_string_lossy(), "-o", "core.kwab"]);
}

fn backtrace(at: &Path, more: &[&str]) -> String {
    text(&run(at, &[&["inspect", "core.kwab", "--section", "bt"], more].concat()).stdout)
}

#[test]
fn an_image_that_was_added_is_found_without_a_flag_until_it_is_pruned() {
    let folder = folder();
    let at = folder.path();
    dump(at);
    let bare = backtrace(at, &[]);
    assert!(!bare.contains("process.c:"), "{bare}");
    let with_image = backtrace(at, &["--symbols", "elsewhere/process"]);
    let added: Value = serde_json::from_str(&stdout_of(at, &["symbols", "add", "elsewhere", "--json"])).expect("JSON");
    assert_eq!((&added["images"][0]["build_id"], &added["images"][0]["name"]), (&ID.into(), &"process".into()));
    fs::remove_dir_all(at.join("elsewhere")).expect("removed");
    assert_eq!(backtrace(at, &[]), with_image);
    let page = stdout_of(at, &["symbols", "list"]);
    assert!(page.contains("1 image ") && page.contains(ID), "{page}");
    // The last image stays, whatever its size.
    assert!(stdout_of(at, &["symbols", "prune", "--max-size", "1", "--yes"]).contains("0 images"));
    let kept = PathBuf::from(added["images"][0]["file"].as_str().expect("a path"));
    assert!(kept.ends_with(format!(".build-id/{}/{}.debug", &ID[..2], &ID[2..])), "{}", kept.display());
    // A file with the name of a build-id and another image in it answers for nothing.
    let mut other = fs::read(&kept).expect("there");
    let id: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&ID[at * 2..][..2], 16).expect("digits")).collect();
    let at_id = other.windows(20).position(|part| part == id).expect("the note");
    other[at_id] ^= 1;
    fs::write(&kept, other).expect("written");
    assert_eq!(backtrace(at, &[]), bare);
}

#[test]
fn what_cannot_be_kept_is_named_and_the_rest_is_kept() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("text"), "no image").expect("written");
    let output = run(at, &["symbols", "add", "text", &sample("process").to_string_lossy()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("text: no image with a build-id"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(ID), "{}", text(&output.stdout));
    assert_eq!(run(at, &["symbols", "add", "nowhere"]).status.code(), Some(2));
}

#[test]
fn a_stripped_image_has_the_lines_of_the_debug_file_that_it_names_if_the_checksum_is_right() {
    let folder = folder();
    let at = folder.path();
    dump(at);
    let objcopy = |arguments: &[&str]| {
        let done = Command::new("objcopy").args(arguments).current_dir(at.join("elsewhere")).status();
        assert!(done.expect("binutils are installed").success(), "{arguments:?}");
    };
    objcopy(&["--only-keep-debug", "process", "apart.dbg"]);
    objcopy(&["--strip-all", "--add-gnu-debuglink=apart.dbg", "process", "stripped"]);
    fs::remove_file(at.join("elsewhere/process")).expect("removed");
    fs::create_dir(at.join("elsewhere/.debug")).expect("made");
    let (beside, below) = (at.join("elsewhere/apart.dbg"), at.join("elsewhere/.debug/apart.dbg"));
    fs::rename(&beside, &below).expect("moved");
    let page = backtrace(at, &["--symbols", "elsewhere/stripped"]);
    assert!(page.contains("process.c:"), "{page}");
    let mut bytes = fs::read(&below).expect("there");
    bytes.push(0);
    fs::write(&below, bytes).expect("written");
    let page = backtrace(at, &["--symbols", "elsewhere/stripped"]);
    assert!(!page.contains("process.c:"), "{page}");
}

/// A program `debuginfod-find` in `at/bin`: elfutils' client is not on every machine, and what it is asked and answers
/// is its contract (debuginfod-find(1)).
fn client(at: &Path, answer: &str) {
    fs::create_dir_all(at.join("bin")).expect("made");
    let program = at.join("bin/debuginfod-find");
    let script = format!("#!/bin/sh\necho \"$* $DEBUGINFOD_MAXTIME\" >> {0}/asked\n{answer}\n", at.display());
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
}

#[test]
fn servers_are_asked_where_the_user_names_some_and_only_the_right_image_is_used() {
    let folder = folder();
    let at = folder.path();
    dump(at);
    let asks = |urls: &str| {
        let mut call = kwab(at);
        let path = std::env::join_paths([at.join("bin"), "/usr/bin".into(), "/bin".into()]).expect("paths");
        call.env("PATH", path).env("DEBUGINFOD_URLS", urls);
        text(&call.args(["inspect", "core.kwab", "--section", "bt"]).output().expect("runs").stdout)
    };
    let asked = || fs::read_to_string(at.join("asked")).unwrap_or_default();
    let times = || asked().lines().filter(|line| line.contains(ID)).count();
    client(at, &format!("echo {}/elsewhere/process", at.display()));
    let bare = asks("");
    assert!(!bare.contains("process.c:") && asked().is_empty(), "{bare}");
    let page = asks("http://127.0.0.1:1");
    assert!(page.contains("process.c:"), "{page}");
    assert_eq!(asked(), format!("debuginfo {ID} 60\n"));
    for wrong in ["exit 1", "echo elsewhere/process", "echo /bin/sh", "cat /dev/zero | head -c 1000000"] {
        client(at, wrong);
        let before = times();
        assert_eq!(asks("http://127.0.0.1:1"), bare, "{wrong}");
        assert_eq!(times(), before + 1, "asked for once: {wrong}");
    }
}

#[test]
fn a_slim_file_beside_a_dump_gives_its_stacks_the_names_and_lines_of_the_whole_image() {
    let folder = folder();
    let at = folder.path();
    dump(at);
    let wanted = backtrace(at, &["--symbols", "elsewhere/process"]);
    let page = stdout_of(at, &["symbols", "slim", "core.kwab", "--symbols", "elsewhere/process"]);
    assert!(page.contains("1 image ") && page.contains("written") && page.contains(ID), "{page}");
    fs::remove_dir_all(at.join("elsewhere")).expect("removed");
    let (slim, whole) = (at.join("symbols/process.debug"), sample("process"));
    let size = |path: &Path| fs::metadata(path).expect("there").len();
    assert!(size(&slim) < size(&whole), "{} bytes", size(&slim));
    let strip_source = |page: &str| page.replace("./process.c", "process.c");
    assert_eq!(strip_source(&backtrace(at, &[])), strip_source(&wanted));
    let again = run(at, &["symbols", "slim", "core.kwab", "--symbols", &slim.to_string_lossy()]);
    assert_eq!(again.status.code(), Some(2), "the file is there");
}

#[test]
fn a_dump_that_carries_its_images_needs_nothing_else_and_what_they_say_is_not_the_users_word() {
    let folder = folder();
    let at = folder.path();
    dump(at);
    let wanted = backtrace(at, &["--symbols", "elsewhere/process"]);
    for (more, name) in [(&[][..], "small.kwab"), (&["--whole"], "whole.kwab")] {
        let embed = ["symbols", "embed", "core.kwab", "-o", name, "--symbols", "elsewhere/process"];
        let page = stdout_of(at, &[&embed[..], more].concat());
        assert!(page.contains("1 image ") && page.contains("carried") && page.contains(ID), "{page}");
        assert_eq!(run(at, &["check", name]).status.code(), Some(0));
    }
    let again = ["symbols", "embed", "small.kwab", "-o", "again.kwab", "--whole", "--symbols", "elsewhere/process"];
    stdout_of(at, &again);
    // As with an image beside the dump, only sources of the current directory are shown.
    fs::remove_dir_all(at.join("elsewhere")).expect("removed");
    let strip_source = |page: &str| page.replace("./process.c", "process.c");
    for name in ["small.kwab", "whole.kwab", "again.kwab"] {
        let page = text(&run(at, &["inspect", name, "--section", "bt"]).stdout);
        assert_eq!(strip_source(&page), strip_source(&wanted), "{name}");
    }
    // Types are in whole images only; the one that replaced a small one is whole.
    let printed = |name: &str| run(at, &["print", name, "sum"]).status.code();
    assert_eq!(printed("again.kwab"), printed("whole.kwab"));
    let size = |name: &str| fs::metadata(at.join(name)).expect("there").len();
    assert!(size("core.kwab") < size("small.kwab") && size("small.kwab") < size("whole.kwab"));
    // One image, not two; the note of where it comes from is there twice.
    assert!(size("again.kwab").abs_diff(size("whole.kwab")) < 256);
    // Nothing of the file stays in a redacted copy.
    stdout_of(at, &["redact", "whole.kwab", "--keep", "kernel", "-o", "redacted.kwab"]);
    let bytes = fs::read(at.join("redacted.kwab")).expect("there");
    assert!(!bytes.windows(9).any(|bytes| bytes == b"process.c"));
    assert_eq!(run(at, &["symbols", "embed", "core.kwab", "-o", "none.kwab"]).status.code(), Some(2));
}

#[test]
fn a_dump_that_carries_a_part_of_an_image_says_so_and_does_without() {
    let folder = folder();
    let at = folder.path();
    dump(at);
    stdout_of(at, &["symbols", "embed", "core.kwab", "-o", "cut.kwab", "--symbols", "elsewhere/process"]);
    let mut bytes = fs::read(at.join("cut.kwab")).expect("there");
    // One bit of the section with the image, which is the last but the notes, the index and the end.
    let sections: Value = serde_json::from_str(&stdout_of(at, &["check", "cut.kwab", "--json"])).expect("JSON");
    let sections = sections["dumps"][0]["sections"].as_array().expect("a list").clone();
    let files = sections.iter().find(|section| section["kind"] == "image-files").expect("a section");
    let offset = usize::try_from(files["offset"].as_u64().expect("a number")).expect("small");
    bytes[offset + 60] ^= 1;
    fs::write(at.join("cut.kwab"), bytes).expect("written");
    let page = text(&run(at, &["inspect", "cut.kwab", "--section", "bt"]).stdout);
    assert!(page.contains("no names: give"), "{page}");
}

#[test]
fn images_that_unpack_to_far_more_than_the_dump_has_are_left_out_and_said() {
    let folder = folder();
    let at = folder.path();
    dump(at);
    let mut bytes = fs::read(sample("process")).expect("there");
    let carry = |bytes: Vec<u8>, name: &str| {
        let file = kwab::model::DumpFile::open(&at.join("core.kwab")).expect("a dump");
        let build_id = (0..20).map(|at| u8::from_str_radix(&ID[2 * at..2 * at + 2], 16).expect("digits")).collect();
        let image = kwab::pack::FileOfImage { name: "process".into(), build_id, bytes, has_lines: true };
        let mut out = Vec::new();
        kwab::pack::embed(&file, "core.kwab", &[image], &mut out).expect("written");
        fs::write(at.join(name), out).expect("written");
    };
    carry(bytes.clone(), "sound.kwab");
    bytes.resize(12 << 20, 0);
    carry(bytes, "bomb.kwab");
    let page = |name: &str| text(&run(at, &["inspect", name, "--section", "bt"]).stdout);
    assert!(page("sound.kwab").contains("process.c:24"), "{}", page("sound.kwab"));
    assert!(page("bomb.kwab").contains("no names: give"), "{}", page("bomb.kwab"));
    let said = text(&run(at, &["triage", "bomb.kwab", "--json"]).stdout);
    assert!(said.contains("the images in the dump unpack to "), "{said}");
}
