//! Which files the interface reads and writes: every dump of a file has its row, and nothing that is read is
//! overwritten.

mod common;

use std::path::{Path, PathBuf};

use common::{Driven, folder};
use kwab_tui::action::Command;
use kwab_tui::app::{Action, Overlay};
use kwab_tui::marks::Marks;
use kwab_tui::view::View as _;
use tempfile::TempDir;

/// A folder with one file that holds two dumps of different crashes.
fn two_in_one() -> (TempDir, PathBuf) {
    let crashes = folder().join("crashes");
    let read = |name: &str| std::fs::read(crashes.join(name)).expect("a dump");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("two.kwab");
    std::fs::write(&file, [read("rich.kwab"), read("null-dereference.kwab")].concat()).expect("written");
    (folder, file)
}

#[test]
fn each_dump_of_a_file_has_its_row_and_opens_as_itself() {
    let (folder, file) = two_in_one();
    let mut driven = Driven::new(folder.path(), (100, 30));
    let view = driven.app.workspace().catalogue().view();
    let named: Vec<&str> = (0..view.len()).filter_map(|row| view.path(row)).collect();
    let names = [format!("{}#1", file.display()), format!("{}#2", file.display())];
    assert!(names.iter().all(|name| named.contains(&name.as_str())), "{named:?}");
    let mut headlines = Vec::new();
    for name in &names {
        let row = (0..view.len()).find(|row| view.path(*row) == Some(name)).expect("a row");
        driven.keys(&["g"]).keys(&vec!["j"; row]);
        driven.act(Action::Command(Command::Follow));
        let crash = driven.app.workspace().session().crash().expect("it is open");
        assert_eq!((crash.failed(), crash.path().to_str()), (None, Some(name.as_str())));
        let report = crash.report().expect("it is read");
        headlines.push(report.headline.clone());
        let number = name.rsplit('#').next().expect("a number");
        assert_eq!(driven.app.workspace().dump_name(), format!("{} --dump {number}", file.display()));
        driven.act(Action::Command(Command::Catalogue));
    }
    assert_ne!(headlines[0], headlines[1]);
}

#[test]
fn a_file_that_changes_shows_the_dumps_that_it_then_holds() {
    let (folder, file) = two_in_one();
    let mut driven = Driven::new(folder.path(), (100, 30));
    assert_eq!(driven.app.workspace().catalogue().view().len(), 2);
    std::fs::copy(self::folder().join("crashes/rich.kwab"), &file).expect("copied");
    // A file is read when two looks found it the same: until then it may still be written.
    driven.act(Action::Command(Command::Reload));
    driven.act(Action::Command(Command::Reload));
    let view = driven.app.workspace().catalogue().view();
    assert_eq!((view.len(), view.path(0)), (1, file.to_str()));
}

#[test]
fn a_dump_that_is_followed_is_read_again_when_its_file_changes_and_its_log_stays_at_the_end() {
    let (of, folder) = (|name: &str| folder().join("crashes").join(name), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("live.kwab");
    std::fs::copy(of("rich.kwab"), &file).expect("copied");
    let mut driven = Driven::new(&file, (100, 30));
    let headline = |driven: &Driven| {
        let crash = driven.app.workspace().session().crash().expect("open");
        crash.report().expect("read").headline.clone()
    };
    let (before, mut now) = (headline(&driven), 0);
    let mut look = |driven: &mut Driven| {
        now += 5_000;
        driven.act(Action::Tick(now));
    };
    driven.keys(&["9", "G"]);
    let shorter = driven.app.workspace().view().expect("the log").len();
    std::fs::copy(of("null-dereference.kwab"), &file).expect("copied");
    look(&mut driven);
    assert_eq!(headline(&driven), before, "only what is followed is read again");
    std::fs::copy(of("rich.kwab"), &file).expect("copied");
    look(&mut driven);
    driven.keys(&["f"]);
    look(&mut driven);
    std::fs::copy(of("null-dereference.kwab"), &file).expect("copied");
    driven.keys(&[":"]);
    look(&mut driven);
    assert_eq!(headline(&driven), before, "not while something is typed");
    driven.keys(&["esc"]);
    look(&mut driven);
    assert_ne!(headline(&driven), before, "the file has changed");
    let view = driven.app.workspace().view().expect("the log");
    assert!(view.len() > shorter && driven.app.workspace().selected() == Some(view.len() - 1), "the end of the log");
    driven.keys(&["g", "f"]);
    std::fs::copy(of("rich.kwab"), &file).expect("copied");
    look(&mut driven);
    assert_ne!(headline(&driven), before, "no longer followed");
}

#[test]
fn a_dump_that_changes_faster_than_it_is_read_is_read_to_its_end() {
    let (of, folder) = (|name: &str| folder().join("crashes").join(name), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("live.kwab");
    std::fs::copy(of("null-dereference.kwab"), &file).expect("copied");
    let mut driven = Driven::new(&file, (100, 30));
    let unread = driven.app.update(Action::Command(Command::Live));
    assert!(!unread.is_empty(), "following reads it");
    let reading = driven.app.workspace().session().generation();
    std::fs::copy(of("rich.kwab"), &file).expect("copied");
    driven.act(Action::Tick(5_000));
    assert_eq!(driven.app.workspace().session().generation(), reading, "the read that has begun is not given up");
}

#[test]
fn what_is_looked_at_stays_until_the_dump_that_is_followed_has_been_read_again() {
    let (of, folder) = (|name: &str| folder().join("crashes").join(name), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("live.kwab");
    std::fs::copy(of("rich.kwab"), &file).expect("copied");
    let mut driven = Driven::new(&file, (100, 30));
    let look = |driven: &Driven| {
        let workspace = driven.app.workspace();
        let crash = workspace.session().crash().expect("open");
        let headline = crash.report().map(|report| report.headline.clone());
        (headline, workspace.view().map(|view| view.len()), workspace.selected(), workspace.session().generation())
    };
    assert!(!driven.screen().contains("following"));
    driven.keys(&["9", "g", "j", "j", "f"]);
    assert!(driven.screen().lines().next().expect("a header").contains("following  "), "{}", driven.screen());
    let before = look(&driven);
    std::fs::copy(of("null-dereference.kwab"), &file).expect("copied");
    // The jobs are not done yet: the dump is being read.
    let unread = driven.app.update(Action::Command(Command::Live)).len()
        + driven.app.update(Action::Command(Command::Live)).len();
    assert!(unread > 0, "it is read again");
    let meanwhile = look(&driven);
    assert!(meanwhile.3 > before.3, "another reading");
    assert_eq!((meanwhile.0, meanwhile.1, meanwhile.2), (before.0.clone(), before.1, before.2));
    assert!(driven.screen().contains("following"));
    driven.keys(&["f", "f"]);
    let after = look(&driven);
    assert!(after.0 != before.0 && after.1 != before.1 && after.2 == before.2, "{before:?}, {after:?}");
    // A file that cannot be read leaves what was read.
    std::fs::remove_file(&file).expect("removed");
    driven.keys(&["f", "f"]);
    let gone = look(&driven);
    assert_eq!((gone.0, gone.1, gone.2), (after.0, after.1, after.2));
    driven.keys(&["f"]);
    assert!(!driven.screen().lines().next().expect("a header").contains("following"), "{}", driven.screen());
}

/// Exports the list that is shown to `path`; what the interface then says.
fn export(driven: &mut Driven, path: &Path) -> String {
    driven.act(Action::Command(Command::Export));
    assert!(matches!(driven.app.overlay(), Some(Overlay::Prompt { .. })));
    // The proposed name goes first.
    driven.keys(&["ctrl-u"]).text(path.to_str().expect("a text")).keys(&["enter"]);
    driven.screen()
}

#[test]
fn an_export_never_replaces_a_dump_or_a_log_that_is_listed_or_open() {
    let (folder, file) = two_in_one();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("serial.log"), "a log\n").expect("written");
    std::os::unix::fs::symlink("two.kwab", at("link.txt")).expect("linked");
    std::fs::hard_link(&file, at("hard.txt")).expect("linked");
    let before = std::fs::read(&file).expect("readable");
    let mut driven = Driven::new(folder.path(), (160, 30));
    driven.act(Action::Command(Command::Follow));
    for name in ["two.kwab", "link.txt", "hard.txt", "serial.log"] {
        let said = export(&mut driven, &at(name));
        assert!(said.contains("never overwritten"), "{name}: {said}");
    }
    assert_eq!(std::fs::read(&file).expect("readable"), before);
    assert_eq!(std::fs::read(at("serial.log")).expect("readable"), b"a log\n");
    export(&mut driven, &at("free.txt"));
    assert!(at("free.txt").is_file());
}

#[test]
fn marks_are_read_from_a_regular_file_only() {
    let (folder, file) = two_in_one();
    assert!(Marks::beside(&file).is_none());
    let path = Marks::path(&file);
    std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
    assert!(matches!(Marks::beside(&file), Some(Err(_))), "{}", folder.path().display());
}
