//! `kwab pack` and `kwab open`: what was packed works elsewhere without a flag, and an archive that is refused leaves
//! nothing behind.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{folder, kwab, run, stdout_of, text};
use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing").join(name)
}

/// A folder with the dump of a process and, in a folder of its own, the program that it ran.
fn prepared() -> tempfile::TempDir {
    let folder = folder();
    let at = folder.path();
    fs::create_dir(at.join("images")).expect("made");
    fs::copy(data("data/exchange/process"), at.join("images/process")).expect("copied");
    let core = data("data/exchange/process.core.gz");
    stdout_of(at, &["import", &core.to_string_lossy(), "-o", "process.kwab"]);
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_restored_pack_has_names_without_a_flag() {
    let folder = prepared();
    let at = folder.path();
    fs::write(at.join("guest cpio"), "070701").expect("written");
    let bare = text(&run(at, &["inspect", "process.kwab", "--section", "bt"]).stdout);
    assert!(!bare.contains("process.c:"), "{bare}");
    let packed = ["pack", "process.kwab", "-o", "repro.zip", "--symbols", "images", "--input", "guest cpio"];
    let page = stdout_of(at, &[&packed[..], &["--qemu", "qemu-system-x86_64 -m 1G"]].concat());
    assert!(page.contains("-process\n") && page.contains("inputs/guest_cpio\n"), "{page}");
    // Elsewhere, with what was packed gone.
    let elsewhere = common::folder();
    let to = elsewhere.path();
    fs::rename(at.join("repro.zip"), to.join("repro.zip")).expect("moved");
    let dump = fs::read(at.join("process.kwab")).expect("there");
    drop(folder);
    let page = stdout_of(to, &["open", "repro.zip"]);
    assert!(page.contains("repro: 4 files, all digests are right\n"), "{page}");
    assert!(page.ends_with("next: kwab repro/dump.kwab\n"), "{page}");
    assert_eq!(fs::read(to.join("repro/dump.kwab")).expect("there"), dump);
    assert_eq!(fs::read(to.join("repro/inputs/guest_cpio")).expect("there"), b"070701");
    let note = fs::read_to_string(to.join("repro/notes/qemu-command.txt")).expect("there");
    assert_eq!(note, "qemu-system-x86_64 -m 1G\n");
    let page = text(&run(to, &["inspect", "repro/dump.kwab", "--section", "bt"]).stdout);
    assert!(page.contains("sum+0xa  ./process.c:24"), "{page}");
    let page = text(&run(&to.join("repro"), &["triage", "dump.kwab"]).stdout);
    assert!(page.contains("process.c:24"), "{page}");
    let list: Value = serde_json::from_slice(&fs::read(to.join("repro/kwab-pack.json")).expect("there")).expect("JSON");
    assert_eq!((&list["redacted"], &list["missing"]), (&Value::Null, &Value::Array(Vec::new())));
    assert_eq!(list["files"].as_array().map(Vec::len), Some(4));
    let again = run(to, &["open", "repro.zip"]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(text(&again.stderr), "kwab: repro: exists; name another directory with -o\n");
}

#[test]
fn an_image_that_is_not_found_is_said_and_a_pack_is_the_same_twice() {
    let folder = prepared();
    let at = folder.path();
    let output = run(at, &["pack", "process.kwab", "-o", "bare.zip"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("not found: the image with build-id "), "{}", text(&output.stdout));
    for name in ["a.zip", "b.zip"] {
        stdout_of(at, &["pack", "process.kwab", "-o", name, "--symbols", "images"]);
    }
    assert_eq!(fs::read(at.join("a.zip")).expect("there"), fs::read(at.join("b.zip")).expect("there"));
    let there = run(at, &["pack", "process.kwab", "-o", "a.zip", "--symbols", "images"]);
    assert_eq!(there.status.code(), Some(2), "the file is there");
}

#[test]
fn a_redacted_pack_has_neither_the_command_line_nor_the_program() {
    let folder = folder();
    let at = folder.path();
    let dump = data("dumps/null-dereference.kwab");
    let dump = dump.to_string_lossy();
    run(at, &["pack", &dump, "-o", "whole.zip"]);
    run(at, &["pack", &dump, "-o", "shared.zip", "--redact", "structure"]);
    stdout_of(at, &["open", "whole.zip"]);
    let page = stdout_of(at, &["open", "shared.zip", "--json"]);
    let line = fs::read_to_string(at.join("whole/notes/kernel-command-line.txt")).expect("there");
    assert!(line.trim().len() > 10, "{line}");
    let list: Value = serde_json::from_str(&page).expect("JSON");
    assert_eq!(list["redacted"], "structure");
    assert_eq!(names(&at.join("shared")), ["dump.kwab", "kwab-pack.json"]);
    let shared = fs::read(at.join("shared/dump.kwab")).expect("there");
    let secret = line.trim().as_bytes();
    assert!(!shared.windows(secret.len()).any(|window| window == secret));
    stdout_of(at, &["check", "shared/dump.kwab"]);
}

#[test]
fn a_redacted_pack_says_what_of_it_is_not_redacted() {
    let folder = folder();
    let at = folder.path();
    let dump = data("dumps/null-dereference.kwab");
    let dump = dump.to_string_lossy();
    fs::write(at.join("serial.log"), "token=7f3a\n").expect("written");
    let given = ["--input", "serial.log", "--qemu", "qemu -append token=7f3a"];
    // Its images are not found, which is a status of its own.
    let page = |output: &str, more: &[&str]| {
        text(&run(at, &[&["pack", &dump, "-o", output][..], more, &given].concat()).stdout)
    };
    let said = "  not redacted, as given: inputs/serial.log, notes/qemu-command.txt\n";
    let redacted = page("shared.zip", &["--redact", "structure"]);
    assert!(redacted.contains(said), "{redacted}");
    let whole = page("whole.zip", &[]);
    assert!(!whole.contains("not redacted"), "{whole}");
}

/// An image that has the build-id of the kernel of a committed dump, under a name that its user chose.
#[test]
fn the_image_of_a_redacted_pack_has_no_name_of_its_user_and_is_said_to_be_whole() {
    let folder = folder();
    let at = folder.path();
    let digits = "65220f0ead8c4f51d7fcb2f46a33c4214c6c7794";
    let id: Vec<u8> = (0..20).map(|byte| u8::from_str_radix(&digits[2 * byte..][..2], 16).expect("digits")).collect();
    let mut image = fs::read(data("data/exchange/process")).expect("there");
    let its = [0xd3, 0x3f, 0x47, 0x35];
    let note = image.windows(4).position(|part| part == its).expect("its build-id");
    image[note..][..20].copy_from_slice(&id);
    fs::create_dir(at.join("images")).expect("made");
    fs::write(at.join("images/vmlinux-for-acme"), image).expect("written");
    let dump = data("dumps/null-dereference.kwab");
    let pack = |output: &str, policy: &str| {
        let dump = dump.to_string_lossy();
        text(&run(at, &["pack", &dump, "-o", output, "--symbols", "images", "--redact", policy]).stdout)
    };
    let page = pack("kernel.zip", "kernel");
    assert!(page.contains(&format!("  not redacted, as given: images/{digits}-kernel\n")), "{page}");
    let archive = fs::read(at.join("kernel.zip")).expect("written");
    assert!(!archive.windows(4).any(|part| part == b"acme"));
    assert!(!pack("structure.zip", "structure").contains("images/"));
}

#[test]
fn an_archive_that_was_changed_or_is_none_leaves_nothing() {
    let folder = prepared();
    let at = folder.path();
    stdout_of(at, &["pack", "process.kwab", "-o", "a.zip", "--symbols", "images"]);
    let sound = fs::read(at.join("a.zip")).expect("there");
    let before = names(at);
    for at_byte in (0..sound.len()).step_by(sound.len() / 40) {
        let mut bytes = sound.clone();
        bytes[at_byte] ^= 0x55;
        fs::write(at.join("a.zip"), &bytes).expect("written");
        let output = run(at, &["open", "a.zip", "-o", "out"]);
        let stderr = text(&output.stderr);
        // What the checked list does not depend on, such as a time, can differ.
        match output.status.code() {
            Some(0) => fs::remove_dir_all(at.join("out")).expect("made"),
            status => assert!(status == Some(2) && stderr.lines().count() == 1, "{at_byte}: {status:?} {stderr}"),
        }
        assert_eq!(names(at), before, "{at_byte}");
    }
    for (arguments, telling) in [
        (&["open", "process.kwab", "-o", "out"][..], "is not a pack"),
        (&["open", "images", "-o", "out"], "is not a regular file"),
        (&["open", "absent", "-o", "out"], "no such file"),
        (&["open", "a.zip", "-o", "images"], "exists"),
        (&["open", "a.zip", "-o", "absent/out"], "no such file"),
    ] {
        fs::write(at.join("a.zip"), &sound).expect("written");
        let output = run(at, arguments);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(telling), "{arguments:?}: {stderr}");
        assert_eq!(names(at), before, "{arguments:?}");
    }
}

#[test]
fn an_image_that_was_found_in_a_directory_is_an_input_and_stays() {
    let folder = prepared();
    let at = folder.path();
    let image = fs::read(at.join("images/process")).expect("there");
    for line in [
        "pack process.kwab --symbols images -o images/process --force",
        "report process.kwab --symbols images -o images/process --force",
        "report process.kwab --symbols images/process -o images/process --force",
        "report process.kwab --symbols . --md -o images/process --force",
        "export process.kwab --to folded --symbols images -o images/process --force",
    ] {
        let output = run(at, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("is an input of this command"), "{line}: {}", text(&output.stderr));
        assert!(fs::read(at.join("images/process")).expect("there") == image, "{line}");
    }
    stdout_of(at, &["report", "process.kwab", "--symbols", ".", "-o", "page.html"]);
    stdout_of(at, &["report", "process.kwab", "--symbols", ".", "-o", "page.html", "--force"]);
}

#[test]
fn an_output_and_its_report_are_two_files() {
    let folder = prepared();
    let at = folder.path();
    std::os::unix::fs::symlink("made", at.join("link")).expect("linked");
    let redact = "redact process.kwab --keep kernel --force -o made --json-out";
    for line in [
        format!("{redact} made"),
        format!("{redact} ./made"),
        format!("{redact} link"),
        "pack process.kwab --symbols images -o made --json-out made".to_owned(),
        "import process.kwab.log -o made --json-out made --force".to_owned(),
    ] {
        let _ = fs::remove_file(at.join("made"));
        fs::copy(data("data/exchange/process.strace"), at.join("process.kwab.log")).expect("copied");
        let output = run(at, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
        let made = fs::read(at.join("made")).expect("one of the two");
        assert!(!made.starts_with(b"{"), "{line}: the report has replaced it");
    }
}

#[test]
fn the_command_that_comes_next_is_one_for_any_name() {
    let folder = prepared();
    let at = folder.path();
    stdout_of(at, &["pack", "process.kwab", "-o", "p.zip", "--symbols", "images"]);
    for (name, next) in [("it is", "'it is/dump.kwab'"), ("-f", "./-f/dump.kwab"), ("a;b", "'a;b/dump.kwab'")] {
        let page = stdout_of(at, &["open", "p.zip", &format!("--output={name}")]);
        assert!(page.ends_with(&format!("next: kwab {next}\n")), "{page}");
    }
    let core = data("data/exchange/process.core.gz");
    let output = run(at, &["import", &core.to_string_lossy(), "-o", "my dump.kwab"]);
    assert!(text(&output.stderr).contains("next: kwab inspect 'my dump.kwab'\n"), "{}", text(&output.stderr));
}

#[test]
fn images_behind_a_link_are_not_those_of_a_pack() {
    let folder = prepared();
    let at = folder.path();
    stdout_of(at, &["pack", "process.kwab", "-o", "p.zip", "--symbols", "images"]);
    stdout_of(at, &["open", "p.zip"]);
    let named = || text(&run(at, &["inspect", "p/dump.kwab", "--section", "bt"]).stdout).contains("process.c:24");
    assert!(named());
    fs::rename(at.join("p/images"), at.join("elsewhere")).expect("moved");
    std::os::unix::fs::symlink("../elsewhere", at.join("p/images")).expect("linked");
    assert!(!named());
}

#[test]
fn a_clone_names_functions_and_lines_of_its_first_crash() {
    let folder = folder();
    let at = folder.path();
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/first");
    let dump = first.join("crash.kwab").display().to_string();
    let trace = |dump: &str| {
        let mut call = kwab(at);
        // What is built here may be the kernel of this very dump.
        call.env("CARGO_TARGET_DIR", at).env("COLUMNS", "120").args(["inspect", dump, "--section", "bt"]);
        text(&call.output().expect("the binary runs").stdout)
    };
    let named = trace(&dump);
    for wanted in ["kernel::inject::end_session+0x17e  kernel/src/inject.rs:259", "└ machine::inject::load (inlined)"]
    {
        assert!(named.contains(wanted), "{wanted} is not in\n{named}");
    }
    // Without its symbols it has none, nor with those of another build, nor with symbols behind a link.
    fs::copy(&dump, at.join("alone.kwab")).expect("copied");
    assert!(trace("alone.kwab").contains("no names"));
    fs::create_dir(at.join("symbols")).expect("made");
    fs::copy(at.join("alone.kwab"), at.join("symbols/kernel.debug")).expect("copied");
    fs::copy(env!("CARGO_BIN_EXE_kwab"), at.join("symbols/other")).expect("copied");
    assert!(trace("alone.kwab").contains("no names"));
    fs::remove_dir_all(at.join("symbols")).expect("removed");
    std::os::unix::fs::symlink(first.join("symbols"), at.join("symbols")).expect("linked");
    assert!(trace("alone.kwab").contains("no names"));
    fs::remove_file(at.join("symbols")).expect("removed");
    fs::create_dir(at.join("symbols")).expect("made");
    fs::copy(first.join("symbols/kernel.debug"), at.join("symbols/any-name")).expect("copied");
    assert_eq!(trace("alone.kwab"), named);
}
