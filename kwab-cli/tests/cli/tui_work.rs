//! Work in `kwab tui` on a real terminal: what is kept across runs, the user's editor, symbols, deleting, archiving.

use crate::common;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::terminal::Session;
use crate::common::{folder, imported, run};

const KWAB: &str = env!("CARGO_BIN_EXE_kwab");

#[test]
fn the_last_tab_its_row_and_the_panes_are_there_in_the_next_run() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let mut session = Session::tui(folder.path(), &dump, 24, 80);
    session.sees("what may have happened");
    session.press("3jjj{");
    session.sees("4/");
    let rows = |session: &Session| session.screen().lines().position(|line| line.starts_with("───"));
    let shared = rows(&session);
    session.press("Q");
    assert!(session.ends().success());
    let mut again = Session::tui(folder.path(), &dump, 24, 80);
    again.sees("register ");
    again.sees(" 4/");
    assert_eq!(rows(&again), shared, "the detail has the room that it was given:\n{}", again.screen());
    again.press("9");
    again.sees("console");
    again.signal("TERM");
    again.ends();
    let third = Session::tui(folder.path(), &dump, 24, 80);
    third.sees("console");
    let state = folder.path().join(".local/state/kwab/tui-state.toml");
    assert!(fs::read_to_string(state).expect("kept").contains("tab = \"log\""));
}

#[test]
fn what_is_kept_is_never_written_through_a_link_and_damage_in_it_costs_nothing() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-segv-children");
    let at = folder.path();
    fs::write(at.join("victim"), "[[dump]]\npath = 3\n").expect("written");
    std::os::unix::fs::symlink("victim", at.join("state")).expect("linked");
    for state in ["state", "victim"] {
        let env = [("KWAB_TUI_STATE", state)];
        let mut session = Session::start_with(at, &[KWAB, "tui", &dump], 24, 80, &env);
        session.sees("what may have happened");
        session.press("3Q");
        assert!(session.ends().success());
        let kept = fs::read_to_string(at.join("victim")).expect("there");
        assert_eq!(kept.contains("registers"), state == "victim", "{state}: {kept}");
    }
}

/// An editor that writes its arguments to `seen` and then a line that is typed into `typed`.
fn editor(folder: &Path) -> String {
    let path = folder.join("my ed");
    let script = "#!/bin/sh\nprintf '%s|' \"$@\" > seen\necho EDITING\nread line\nprintf %s \"$line\" > typed\n";
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    format!("'{}' -w --wait", path.display())
}

fn sample(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/exchange").join(name)
}

#[test]
fn symbols_are_loaded_from_inside_and_the_editor_opens_the_line_they_name() {
    let folder = folder();
    let at = folder.path();
    for name in ["process.core.gz", "process"] {
        fs::copy(sample(name), at.join(name)).expect("the sample is there");
    }
    assert!(run(at, &["import", "process.core.gz", "-o", "core.kwab"]).status.success());
    fs::create_dir(at.join("images")).expect("made");
    fs::rename(at.join("process"), at.join("images/process")).expect("moved");
    fs::write(at.join("process.c"), "int x;\n").expect("written");
    let ed = editor(at);
    let env = [("EDITOR", ed.as_str()), ("VISUAL", "")];
    let mut session = Session::start_with(at, &[KWAB, "tui", "core.kwab"], 30, 120, &env);
    session.sees("what may have happened");
    session.press("V");
    session.sees("no source line");
    session.press("2Inowhere\r");
    session.sees("nowhere: No such file");
    session.press("Iimag\t");
    session.sees("symbols in: images/");
    session.press("proc\t");
    session.sees("symbols in: images/process");
    session.press("\r");
    session.sees("symbols of 1 image loaded");
    session.sees("sum+0x");
    session.press("y");
    session.sees("kwab inspect core.kwab --section bt,tasks --symbols images/process");
    session.press("\u{1b}");
    session.until("the menu is gone", |session| !session.screen().contains("copy ─"));
    session.press("gjV");
    session.sees("EDITING");
    assert!(!session.is_taken(), "the editor has the first screen");
    session.press("3typed here\r");
    session.until("it is back", |session| session.is_taken() && session.screen().contains("sum+0x"));
    let seen = fs::read_to_string(at.join("seen")).expect("run");
    let path = at.canonicalize().expect("there").join("process.c");
    assert_eq!(seen, format!("-w|--wait|{}|", path.display()));
    assert_eq!(fs::read_to_string(at.join("typed")).expect("typed"), "3typed here", "its keys are its own");
    assert!(session.screen().contains("found by"), "no key went to the interface:\n{}", session.screen());
    session.press("Q");
    assert!(session.ends().success());
    session.is_given_back();
}

#[test]
fn the_name_of_a_source_file_in_a_hostile_dump_is_no_command() {
    let folder = folder();
    let at = folder.path();
    let name = "x;touch owned;$(touch owned).rs";
    for (dump, text) in [("there.kwab", name), ("absent.kwab", "-c !touch owned"), ("up.kwab", "../../x.rs")] {
        let bytes = common::hostile::dump_of(format!("{text}:3").as_bytes(), 0);
        fs::write(at.join(dump), bytes).expect("written");
    }
    fs::write(at.join(name), "fn main() {}\n").expect("written");
    let ed = editor(at);
    let env = [("EDITOR", ed.as_str()), ("VISUAL", "")];
    for (dump, is_there) in [("there.kwab", true), ("absent.kwab", false), ("up.kwab", false)] {
        let mut session = Session::start_with(at, &[KWAB, "tui", dump], 30, 120, &env);
        session.sees("Triage");
        session.press("L");
        session.sees("held by");
        session.press("V");
        if is_there {
            session.sees("EDITING");
            session.press("\r");
            session.until("it is back", Session::is_taken);
            let seen = fs::read_to_string(at.join("seen")).expect("run");
            assert!(seen.ends_with(&format!("/{name}|")), "{seen}");
            fs::remove_file(at.join("seen")).expect("removed");
        } else {
            session.until("it says why not", |session| {
                let screen = session.screen();
                screen.contains("is not here") || screen.contains("no source line")
            });
            assert!(!at.join("seen").exists());
        }
        session.press("Q");
        session.ends();
    }
    assert!(!at.join("owned").exists());
}

#[test]
fn an_editor_that_is_not_there_is_said_and_the_screen_comes_back() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("x.kwab"), common::hostile::dump_of(b"a.rs:3", 0)).expect("written");
    fs::write(at.join("a.rs"), "\n").expect("written");
    let env = [("EDITOR", "no-such-editor -x"), ("VISUAL", "")];
    let mut session = Session::start_with(at, &[KWAB, "tui", "x.kwab"], 30, 120, &env);
    session.sees("Triage");
    session.press("L");
    session.sees("held by");
    session.press("V");
    session.sees("no-such-editor: No such file");
    assert!(session.is_taken());
    session.press("Q");
    assert!(session.ends().success());
    session.is_given_back();
}

#[test]
fn selected_dumps_are_deleted_and_archived_after_a_question_and_nothing_else() {
    let folder = folder();
    let at = folder.path();
    fs::create_dir(at.join("crashes")).expect("made");
    let logs = ["kevlar-panic-socket", "kevlar-segv-children", "linux-6.1-sysrq-panic"];
    for log in logs {
        imported(&at.join("crashes"), log);
    }
    fs::copy(at.join("crashes/kevlar-panic-socket.kwab"), at.join("outside.kwab")).expect("copied");
    std::os::unix::fs::symlink("../outside.kwab", at.join("crashes/link.kwab")).expect("linked");
    let there = |name: &str| at.join("crashes").join(name).exists();
    let mut session = Session::tui(at, "crashes", 30, 120);
    logs.iter().for_each(|log| session.sees(&log[..18]));
    session.until("all are judged", |session| !session.screen().contains("reading"));
    session.press("/file:socket\rD");
    session.sees("delete for good?");
    session.sees("with marks");
    session.press("\r");
    session.sees("nothing is changed");
    assert!(there("kevlar-panic-socket.kwab"));
    session.press("D2");
    session.sees("deleted 1 dump");
    assert!(!there("kevlar-panic-socket.kwab") && there("kevlar-panic-socket.log") && at.join("outside.kwab").exists());
    session.press("\u{1b}");
    session.until("all rows", |session| !session.screen().contains("/file:socket"));
    session.press("gtt");
    session.sees("2 selected");
    session.press("A");
    session.sees("2 files");
    session.press("2");
    session.sees("archived 2 dumps");
    session.sees("0 dumps");
    let kept = |log: &str| at.join(format!("crashes/archive/{log}.kwab.archived")).is_file();
    assert!(kept(logs[1]) && kept(logs[2]) && !there("kevlar-segv-children.kwab") && there("link.kwab"));
    session.press("q");
    assert!(session.ends().success());
    let listed = common::text(&run(at, &["list", "crashes"]).stdout);
    assert!(!listed.contains("archived"), "{listed}");
    let read = run(&at.join("crashes/archive"), &["check", "kevlar-segv-children.kwab.archived"]);
    assert_eq!(read.status.code(), Some(0), "{}", common::text(&read.stderr));
}

#[test]
fn a_dumb_terminal_gets_no_colour() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let mut session = Session::start_with(folder.path(), &[KWAB, "tui", &dump], 24, 80, &[("TERM", "dumb")]);
    session.sees("what may have happened");
    session.press("2");
    session.sees("found by");
    let written = session.written();
    let colours = written.split("\u{1b}[").skip(1).filter_map(|rest| rest.split_once('m').map(|(codes, _)| codes));
    let coloured =
        colours.flat_map(|codes| codes.split(';')).any(|code| matches!(code, "31" | "32" | "33" | "36" | "38" | "48"));
    assert!(!coloured, "colours on a dumb terminal");
    session.press("Q");
    assert!(session.ends().success());
}
