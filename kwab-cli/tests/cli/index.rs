//! `kwab index`: the list of a directory is the same with and without an index, whatever happened to either.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{folder, kwab, run, stdout_of, text};

/// The committed dumps, two that are damaged and two that are none, in a folder of their own.
fn tree() -> tempfile::TempDir {
    let folder = folder();
    let deep = folder.path().join("dumps/deep");
    fs::create_dir_all(&deep).expect("made");
    let dumps = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/dumps");
    for found in fs::read_dir(dumps).expect("there").flatten().filter(|found| found.path().is_file()) {
        fs::copy(found.path(), folder.path().join("dumps").join(found.file_name())).expect("copied");
    }
    let mut bytes = fs::read(format!("{dumps}/leak.kwab")).expect("there");
    fs::write(deep.join("cut.kwab"), &bytes[..bytes.len() / 2]).expect("written");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(deep.join("flipped.kwab"), &bytes).expect("written");
    fs::write(deep.join("empty.kwab"), "").expect("written");
    fs::write(deep.join("\u{1b}[31mname.kwab"), "a log\n").expect("written");
    folder
}

/// Status and stdout of the list, and what it says on stderr.
fn list(at: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let arguments: Vec<&str> = ["list", "dumps", "--json"].into_iter().chain(more.iter().copied()).collect();
    let output = run(at, &arguments);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_list_is_the_same_with_and_without_an_index_and_reads_nothing_twice() {
    let folder = tree();
    let at = folder.path();
    let plain = list(at, &[]);
    assert_eq!(plain.0, Some(3), "{}", plain.2);
    assert!(stdout_of(at, &["index", "dumps"]).contains("20 files read, 0 unchanged, 0 removed"));
    assert_eq!(list(at, &[]), plain);
    assert!(stdout_of(at, &["index", "dumps"]).contains("0 files read, 20 unchanged, 0 removed"));
    let filter = ["--filter", "score>80", "--sort", "last"];
    let indexed = list(at, &filter);
    fs::remove_file(at.join("dumps/.kwab-index.db")).expect("removed");
    assert_eq!(list(at, &filter), indexed);
}

#[test]
fn a_list_of_an_index_that_is_out_of_date_reads_what_differs_and_says_so() {
    let folder = tree();
    let at = folder.path();
    stdout_of(at, &["index", "dumps", "--index", "kept.db"]);
    fs::remove_file(at.join("dumps/clean.kwab")).expect("removed");
    fs::rename(at.join("dumps/leak.kwab"), at.join("dumps/other.kwab")).expect("renamed");
    fs::copy(at.join("dumps/other.kwab"), at.join("dumps/deep/empty.kwab")).expect("copied");
    let (plain, indexed) = (list(at, &[]), list(at, &["--index", "kept.db"]));
    assert_eq!((indexed.0, &indexed.1), (plain.0, &plain.1));
    assert!(indexed.2.contains("4 files differ from the index"), "{}", indexed.2);
    let told = stdout_of(at, &["index", "dumps", "--index", "kept.db"]);
    assert!(told.contains("2 files read, 17 unchanged, 2 removed"), "{told}");
    assert_eq!(list(at, &["--index", "kept.db"]), plain);
}

#[test]
fn an_index_that_is_damaged_foreign_or_a_link_is_refused_and_never_changed_and_the_list_does_without() {
    let folder = tree();
    let at = folder.path();
    let plain = list(at, &[]);
    stdout_of(at, &["index", "dumps", "--index", "good.db"]);
    let good = fs::read(at.join("good.db")).expect("there");
    let mut damaged = good.clone();
    damaged[4096..].fill(0xa5);
    let foreign: Vec<u8> = {
        let mut bytes = good.clone();
        bytes[68..72].copy_from_slice(b"else");
        bytes
    };
    // A column that is computed when it is read, to a gigabyte.
    fs::write(at.join("computed.db"), &good).expect("written");
    let computed = rusqlite::Connection::open(at.join("computed.db")).expect("opened");
    computed.execute_batch("ALTER TABLE dump ADD COLUMN x TEXT AS (printf('%1000000000d', 1))").expect("added");
    drop(computed);
    fs::write(at.join("damaged.db"), &damaged).expect("written");
    fs::write(at.join("foreign.db"), &foreign).expect("written");
    fs::write(at.join("text.db"), "not a database, but long enough to be looked at\n".repeat(100)).expect("written");
    std::os::unix::fs::symlink("good.db", at.join("link.db")).expect("linked");
    for name in ["damaged.db", "foreign.db", "text.db", "link.db", "computed.db"] {
        let before = fs::read(at.join(name)).expect("there");
        let refused = run(at, &["index", "dumps", "--index", name]);
        assert_eq!(refused.status.code(), Some(2), "{name}: {}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(name), "{}", text(&refused.stderr));
        assert!(fs::read(at.join(name)).expect("there") == before, "{name} was changed");
        let listed = list(at, &["--index", name]);
        assert_eq!((listed.0, &listed.1), (plain.0, &plain.1), "{name}");
        assert!(listed.2.contains(name), "{name}: {}", listed.2);
    }
    let made = Command::new("mkfifo").arg(at.join("dumps/.kwab-index.db")).status().expect("runs");
    assert!(made.success(), "a FIFO");
    let listed = list(at, &[]);
    assert_eq!((listed.0, &listed.1), (plain.0, &plain.1), "a FIFO in the place of the index: {}", listed.2);
    assert_eq!(run(at, &["index", "dumps"]).status.code(), Some(2));
    assert_eq!(run(at, &["index", "absent"]).status.code(), Some(2));
    assert_eq!(run(at, &["index", "dumps/clean.kwab"]).status.code(), Some(2));
}

#[test]
fn two_that_index_at_once_and_one_that_is_killed_leave_a_valid_index() {
    let folder = tree();
    let at = folder.path();
    for number in 0..60 {
        fs::copy(at.join("dumps/clean.kwab"), at.join(format!("dumps/copy-{number}.kwab"))).expect("copied");
    }
    let plain = list(at, &[]);
    let start = || {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("kwab"));
        command.args(["index", "dumps"]).current_dir(at).stdout(Stdio::null()).spawn().expect("starts")
    };
    for wait in [5, 40, 150] {
        let mut killed = start();
        std::thread::sleep(Duration::from_millis(wait));
        killed.kill().expect("killed");
        killed.wait().expect("ended");
        let listed = list(at, &[]);
        assert_eq!((listed.0, &listed.1), (plain.0, &plain.1), "killed after {wait} ms");
    }
    let both = [start(), start()];
    for mut one in both {
        assert!(one.wait().expect("ended").success());
    }
    assert_eq!(list(at, &[]), plain);
}

#[test]
fn an_index_of_another_user_is_read_when_it_is_named_and_not_when_it_is_found() {
    let folder = tree();
    let at = folder.path();
    let plain = list(at, &[]);
    stdout_of(at, &["index", "dumps"]);
    let found = at.join("dumps/.kwab-index.db");
    if rustix::process::geteuid().as_raw() != 0 || std::os::unix::fs::chown(&found, Some(54_321), None).is_err() {
        return;
    }
    let listed = list(at, &[]);
    assert_eq!((listed.0, &listed.1), (plain.0, &plain.1));
    assert!(listed.2.contains("belongs to another user"), "{}", listed.2);
    assert_eq!(list(at, &["--index", "dumps/.kwab-index.db"]), plain, "named, it answers without a word");
}

#[test]
fn another_build_reads_every_dump_again() {
    let folder = tree();
    let at = folder.path();
    stdout_of(at, &["index", "dumps"]);
    let program = fs::read(assert_cmd::cargo::cargo_bin!("kwab")).expect("there");
    fs::write(at.join("other-kwab"), program).expect("written");
    let mut permissions = fs::metadata(at.join("other-kwab")).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o700);
    fs::set_permissions(at.join("other-kwab"), permissions).expect("executable");
    let other = Command::new(at.join("other-kwab")).args(["index", "dumps"]).current_dir(at).output().expect("runs");
    assert!(text(&other.stdout).contains("20 files read, 0 unchanged"), "{}", text(&other.stdout));
    let (_, _, said) = list(at, &[]);
    assert!(said.contains("made by another build of kwab and not used"), "{said}");
}

#[test]
fn a_journal_beside_an_index_is_read_only_when_it_is_a_file_of_the_user() {
    let folder = tree();
    let at = folder.path();
    let plain = list(at, &[]);
    stdout_of(at, &["index", "dumps"]);
    let indexed = fs::read(at.join("dumps/.kwab-index.db")).expect("there");
    for ending in ["-journal", "-wal", "-shm"] {
        let beside = at.join(format!("dumps/.kwab-index.db{ending}"));
        let made = Command::new("mkfifo").arg(&beside).status().expect("runs");
        assert!(made.success(), "a FIFO");
        // With a limit: SQLite would wait for the FIFO's writer for ever.
        let soon = |arguments: &[&str]| kwab(at).args(arguments).timeout(Duration::from_secs(60)).output();
        let refused = |what: &str| {
            let listed = soon(&["list", "dumps", "--json"]).expect("runs");
            let said = text(&listed.stderr);
            assert_eq!((listed.status.code(), &text(&listed.stdout)), (plain.0, &plain.1), "{ending}, {what}: {said}");
            assert!(said.contains("no journal of this user's"), "{ending}, {what}: {said}");
            assert_eq!(soon(&["index", "dumps"]).expect("runs").status.code(), Some(2), "{ending}, {what}");
        };
        refused("a FIFO");
        fs::remove_file(&beside).expect("removed");
        fs::write(&beside, "another user's").expect("written");
        if rustix::process::geteuid().as_raw() == 0 && std::os::unix::fs::chown(&beside, Some(54_321), None).is_ok() {
            refused("another user's");
        }
        fs::remove_file(&beside).expect("removed");
    }
    assert!(fs::read(at.join("dumps/.kwab-index.db")).expect("there") == indexed, "the index was changed");
}

#[test]
fn a_change_of_the_same_size_whose_time_was_set_back_is_seen() {
    let folder = tree();
    let at = folder.path();
    let file = at.join("dumps/deep/flipped.kwab");
    let written = fs::metadata(&file).and_then(|meta| meta.modified()).expect("there");
    stdout_of(at, &["index", "dumps"]);
    let sound = fs::read(at.join("dumps/leak.kwab")).expect("there");
    let open = fs::File::options().write(true).open(&file).expect("opened");
    std::os::unix::fs::FileExt::write_all_at(&open, &sound, 0).expect("written");
    open.set_modified(written).expect("set back");
    let (_, _, said) = list(at, &[]);
    assert!(said.contains("1 files differ from the index"), "{said}");
    assert!(stdout_of(at, &["index", "dumps"]).contains("1 files read, 19 unchanged, 0 removed"));
}

#[test]
fn a_list_by_directories_reads_no_file_says_so_and_tells_when_something_is_new() {
    let folder = tree();
    let at = folder.path();
    stdout_of(at, &["index", "dumps"]);
    let plain = list(at, &[]);
    let quick = list(at, &["--check", "folders"]);
    assert_eq!((quick.0, &quick.1), (plain.0, &plain.1));
    assert!(quick.2.contains("its 20 files were not looked at (--check files)"), "{}", quick.2);
    // In place: no directory tells of it.
    fs::write(at.join("dumps/deep/empty.kwab"), "no longer").expect("written");
    assert_eq!(list(at, &["--check", "folders"]), quick);
    assert!(list(at, &["--check", "files"]).2.contains("1 files differ from the index"));
    for new in ["dumps/new.kwab", "dumps/deep/new.kwab"] {
        let before = list(at, &["--check", "folders"]);
        fs::copy(at.join("dumps/clean.kwab"), at.join(new)).expect("copied");
        let partial = list(at, &["--check", "folders"]);
        assert_eq!((partial.0, &partial.1), (Some(3), &before.1));
        let told = "1 directory has changed since it was indexed, and what is new is not listed";
        assert!(partial.2.contains(told), "{new}: {}", partial.2);
        stdout_of(at, &["index", "dumps"]);
        assert_eq!(list(at, &["--check", "folders"]).1, list(at, &["--check", "files"]).1, "{new}");
        fs::remove_file(at.join(new)).expect("removed");
        stdout_of(at, &["index", "dumps"]);
    }
}

#[test]
fn text_is_the_same_with_and_without_an_index_in_every_order() {
    let folder = tree();
    let at = folder.path();
    for number in 0..12 {
        fs::copy(at.join("dumps/clean.kwab"), at.join(format!("dumps/copy-{number}.kwab"))).expect("copied");
    }
    let one = |more: &[&str]| text(&run(at, &[&["list", "dumps"], more].concat()).stdout);
    let plain = [one(&[]), one(&["--wide"])];
    stdout_of(at, &["index", "dumps"]);
    assert_eq!([one(&[]), one(&["--wide"])], plain);
    for order in ["count", "score", "first", "last", "finding", "place", "process", "completeness"] {
        // A filter that holds for all goes through the library's own grouping.
        assert_eq!(one(&["--sort", order]), one(&["--sort", order, "--filter", "bytes>=0"]), "{order}");
    }
}

/// A Linux that died like the dump `null-dereference` of testing/dumps: the same process, processor and time.
const TOLD: &str = "\
[    0.000000] Linux version 6.12.0-rc1-00042-gaaaaaaaaaaaa (kwab@example) (gcc 14.2.0) #1 SMP
[    0.100000] BUG: kernel NULL pointer dereference, address: 0000000000000008
[    0.100001] #PF: supervisor read access in kernel mode
[    0.100002] #PF: error_code(0x0000) - not-present page
[    0.100003] Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI
[    0.100004] CPU: 0 UID: 0 PID: 2 Comm: exam Not tainted 6.12.0-rc1-00042-gaaaaaaaaaaaa #1
[    0.100005] RIP: 0010:do_new+0x12/0x80
[    0.100010] ---[ end trace 0000000000000000 ]---
[    0.100011] Kernel panic - not syncing: Fatal exception
";

#[test]
fn a_log_and_a_dump_of_one_death_are_a_pair_in_an_index_until_one_of_them_goes() {
    let folder = tree();
    let at = folder.path();
    fs::write(at.join("told.log"), TOLD).expect("written");
    stdout_of(at, &["index", "dumps"]);
    let groups = |said: &str| said.lines().filter(|line| line.contains("\"count\"")).count();
    let same = |what: &str| {
        let indexed = list(at, &[]);
        assert!(!indexed.2.contains("differ"), "{what}: {}", indexed.2);
        fs::rename(at.join("dumps/.kwab-index.db"), at.join("kept.db")).expect("moved");
        assert_eq!(list(at, &[]), indexed, "{what}");
        fs::rename(at.join("kept.db"), at.join("dumps/.kwab-index.db")).expect("moved back");
        groups(&indexed.1)
    };
    let alone = same("the dump alone");
    stdout_of(at, &["import", "told.log", "-o", "dumps/told.kwab"]);
    stdout_of(at, &["index", "dumps"]);
    assert_eq!(same("both"), alone);
    fs::remove_file(at.join("dumps/told.kwab")).expect("removed");
    stdout_of(at, &["index", "dumps"]);
    assert_eq!(same("the log is gone"), alone);
    stdout_of(at, &["import", "told.log", "-o", "dumps/told.kwab"]);
    stdout_of(at, &["index", "dumps"]);
    assert_eq!(same("both again"), alone);
    fs::rename(at.join("dumps/null-dereference.kwab"), at.join("away.kwab")).expect("moved");
    stdout_of(at, &["index", "dumps"]);
    // Another dump of that process may be near enough now.
    same("the dump is gone");
}
