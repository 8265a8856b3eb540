//! `kwab tui` on a real terminal: the real program behind a pseudo-terminal, its screen read back cell by cell.

use crate::common;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use crate::common::terminal::Session;
use crate::common::{folder, imported};

#[test]
fn from_the_list_of_crashes_to_a_register_and_out_again() {
    let folder = folder();
    imported(folder.path(), "kevlar-panic-socket");
    imported(folder.path(), "kevlar-segv-children");
    let mut session = Session::tui(folder.path(), ".", 24, 80);
    session.sees("kevlar-panic-socket");
    session.press("/socket\r");
    session.sees("1/1 of");
    session.press("\r");
    session.sees("1Triage");
    session.sees("page fault");
    session.press("3");
    session.sees("rip");
    session.press("9");
    session.sees("console");
    session.press("qQ");
    assert!(session.ends().success());
    session.is_given_back();
}

#[test]
fn a_terminal_that_shrinks_and_grows_is_drawn_anew() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let mut session = Session::tui(folder.path(), &dump, 24, 80);
    session.sees("what may have happened");
    session.resize(10, 40);
    session.until("the footer is on the last of ten lines", |session| {
        let screen = session.screen();
        screen.lines().count() == 10 && screen.lines().last().is_some_and(|line| line.contains('/'))
    });
    session.resize(50, 160);
    session.sees("0 Integrity");
    session.press("\u{3}");
    assert!(session.ends().success());
    session.is_given_back();
}

#[test]
fn a_stop_gives_the_terminal_to_the_shell_and_fg_takes_it_again() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let mut session = Session::start(folder.path(), &["bash", "--norc", "--noprofile", "-i"], 24, 80);
    session.press(&format!("PS1='shell> '; {} tui {dump}\r", env!("CARGO_BIN_EXE_kwab")));
    session.sees("what may have happened");
    session.press("\u{1a}");
    session.until("the shell has the terminal", |session| !session.is_taken() && session.screen().contains("Stopped"));
    session.press("echo still $((40+2))\r");
    session.sees("still 42");
    session.press("fg\r");
    session.until("it is back", |session| session.is_taken() && session.screen().contains("what may have happened"));
    session.press("3");
    session.sees("rip");
    session.press("Q");
    // Only at the prompt does no other program read keys.
    session.until("the shell has it again", |session| {
        !session.is_taken() && session.screen().trim_end().ends_with("shell>")
    });
    session.press("echo left with $?; exit\r");
    session.sees("left with 0");
    session.ends();
}

#[test]
fn signals_end_it_as_they_do_others_with_the_terminal_given_back() {
    for signal in ["TERM", "HUP", "INT"] {
        let folder = folder();
        let dump = imported(folder.path(), "kevlar-segv-children");
        let mut session = Session::tui(folder.path(), &dump, 24, 80);
        session.sees("what may have happened");
        session.signal(signal);
        let status = session.ends();
        assert!(!status.success(), "{signal}: {status:?}");
        session.is_given_back();
    }
}

#[test]
fn a_stop_from_outside_is_survived() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-segv-children");
    let mut session = Session::tui(folder.path(), &dump, 24, 80);
    session.sees("what may have happened");
    session.signal("STOP");
    session.signal("CONT");
    session.press("3");
    session.until("it answers", |session| session.screen().contains("register"));
    session.press("Q");
    assert!(session.ends().success());
    session.is_given_back();
}

#[test]
fn a_dump_that_arrives_while_it_runs_is_listed() {
    let folder = folder();
    let mut session = Session::tui(folder.path(), ".", 24, 80);
    session.sees("no dumps here");
    imported(folder.path(), "kevlar-segv-children");
    session.sees("crashme");
    session.press("q");
    assert!(session.ends().success());
}

/// How often the threads of the program have begun to run so far.
fn wakes(session: &Session) -> u64 {
    let pid = session.child.process_id().expect("a process");
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    let count = |thread: std::fs::DirEntry| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    threads.flatten().filter_map(count).sum()
}

#[test]
fn an_interface_in_which_nothing_happens_sleeps_and_a_dump_that_arrives_wakes_it() {
    let folder = folder();
    imported(folder.path(), "kevlar-panic-socket");
    let mut session = Session::tui(folder.path(), ".", 24, 80);
    session.sees("kevlar-panic-socket");
    // Whatever it begins with ends, on a slow machine later: then a while comes in which it runs at most twice.
    session.until("it sleeps for two seconds", |session| {
        let before = wakes(session);
        std::thread::sleep(Duration::from_secs(2));
        wakes(session).saturating_sub(before) <= 2
    });
    imported(folder.path(), "kevlar-segv-children");
    session.sees("segv-children");
    session.press("\u{3}");
    assert!(session.ends().success());
}

#[test]
fn a_dump_that_is_still_being_written_is_listed_when_it_is_whole() {
    let folder = folder();
    let dump = folder.path().join(imported(folder.path(), "kevlar-segv-children"));
    let bytes = std::fs::read(&dump).expect("read");
    std::fs::remove_file(&dump).expect("gone");
    let mut session = Session::tui(folder.path(), ".", 24, 80);
    // Said when the first look is over; what appears later is being written.
    session.sees("a serial log");
    let mut growing = std::fs::File::create(&dump).expect("created");
    for part in bytes.chunks(bytes.len() / 12 + 1) {
        growing.write_all(part).expect("written");
        std::thread::sleep(Duration::from_millis(400));
        assert!(!session.screen().contains("defect"), "half a dump is called damaged:\n{}", session.screen());
    }
    drop(growing);
    session.sees("crashme");
    assert!(!session.screen().contains("defect"), "{}", session.screen());
    session.press("q");
    assert!(session.ends().success());
}

#[test]
fn a_copied_row_reaches_the_clipboard_of_the_terminal_also_through_tmux() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let command = [env!("CARGO_BIN_EXE_kwab"), "tui", &dump];
    let mut session = Session::start_with(folder.path(), &command, 24, 80, &[("TMUX", "/tmp/tmux,1,0")]);
    session.sees("what may have happened");
    session.press("9");
    session.sees("line console");
    session.press("yy");
    session.sees("copied:");
    let written = session.written();
    let (_, rest) = written.split_once("\u{1b}]52;c;").expect("a text for the clipboard");
    let (encoded, _) = rest.split_once('\u{7}').expect("its end");
    assert!(encoded.len() > 8 && encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)));
    assert!(written.contains("\u{1b}Ptmux;\u{1b}\u{1b}]52;c;"), "tmux gets it in an envelope");
    session.press("Q");
    assert!(session.ends().success());
}

#[test]
fn without_colours_nothing_is_coloured_and_what_matters_is_still_seen() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let command = [env!("CARGO_BIN_EXE_kwab"), "tui", &dump];
    let mut session = Session::start_with(folder.path(), &command, 24, 80, &[("NO_COLOR", "1")]);
    session.sees("what may have happened");
    session.press("6");
    session.press("1");
    session.sees("what may have happened");
    let terminal = session.terminal.lock().expect("the screen");
    let screen = terminal.screen();
    let cells = (0..24).flat_map(|row| (0..80).filter_map(move |column| screen.cell(row, column)));
    let (mut coloured, mut marked) = (0, 0);
    for cell in cells {
        coloured += usize::from(cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default);
        marked += usize::from(cell.bold() || cell.inverse() || cell.dim());
    }
    drop(terminal);
    assert_eq!(coloured, 0);
    assert!(marked > 80, "the selected row and headings stand out by other means");
    session.press("Q");
    assert!(session.ends().success());
}

#[test]
fn two_crashes_are_chosen_in_the_list_and_shown_side_by_side() {
    let folder = folder();
    imported(folder.path(), "kevlar-panic-socket");
    imported(folder.path(), "kevlar-segv-children");
    let mut session = Session::tui(folder.path(), ".", 30, 120);
    session.sees("segv-children");
    session.sees("panic-socket");
    session.press("/socket\rc");
    session.sees("chosen");
    session.press("/");
    session.press("\u{15}children\r");
    session.sees("1/1 of");
    session.press("c");
    session.sees("≠");
    session.sees("facts");
    session.press("3");
    session.until("registers of both", |session| session.screen().matches("register ").count() == 2);
    session.resize(12, 60);
    session.until("one of them on a narrow screen", |session| session.screen().matches("register ").count() == 1);
    session.press("c");
    session.sees("comparison ended");
    session.press("Q");
    assert!(session.ends().success());
    session.is_given_back();
}

#[test]
fn what_cannot_be_opened_is_an_error_and_no_screen() {
    let folder = folder();
    let mut session = Session::tui(folder.path(), "nowhere.kwab", 24, 80);
    assert_eq!(session.ends().exit_code(), 2);
    session.sees("nowhere.kwab: no such file");
    let piped =
        Command::new(env!("CARGO_BIN_EXE_kwab")).args(["tui", "."]).current_dir(folder.path()).output().expect("runs");
    assert_eq!(piped.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&piped.stderr).contains("needs a terminal"), "{piped:?}");
}

/// Fails when what was written holds characters that are neither text nor a control sequence of the interface.
fn is_harmless(session: &Session, where_: &str) {
    let written = session.written();
    assert!(!written.contains("\u{1b}]0;owned"), "{where_}: the title was set");
    let hostile = |character: &char| {
        kwab::plain::is_hostile(*character) && !matches!(character, '\u{1b}' | '\n' | '\r' | '\u{8}')
    };
    if let Some(found) = written.chars().find(hostile) {
        panic!("{where_}: U+{:04X}", u32::from(found));
    }
}

#[test]
fn no_view_shows_what_a_hostile_dump_or_its_name_holds() {
    let folder = folder();
    for variant in 0..2 {
        let name = format!("x\u{1b}]0;owned\u{7}\u{202e}{variant}.kwab");
        std::fs::write(folder.path().join(name), common::hostile::hostile_dump(variant)).expect("written");
    }
    let mut session = Session::tui(folder.path(), ".", 40, 150);
    session.sees("\\x1b]0;owned\\x07");
    is_harmless(&session, "the list of dumps");
    session.press("\r");
    session.sees("Triage");
    for view in "123456789".chars() {
        session.press(&view.to_string());
        for key in ["j", "j", "\r", "\u{1b}", "G"] {
            session.press(key);
            std::thread::sleep(Duration::from_millis(30));
        }
        is_harmless(&session, &format!("view {view}"));
    }
    assert!(session.screen().contains("\\x1b") || session.screen().contains("\\u{"), "{}", session.screen());
    session.press("QQ");
}

#[test]
fn a_raw_log_is_escaped_on_a_terminal_and_raw_when_asked_for_or_piped() {
    let folder = folder();
    let log = "[    0.100000] a \u{1b}[31mred\u{1b}[0m line\u{7} and \u{202e}more\n".repeat(3);
    std::fs::write(folder.path().join("x.log"), log).expect("written");
    common::stdout_of(folder.path(), &["import", "x.log", "-o", "x.kwab"]);
    let kwab = env!("CARGO_BIN_EXE_kwab");
    let mut session = Session::start(folder.path(), &[kwab, "cat", "x.kwab", "log"], 24, 80);
    session.sees("a \\x1b[31mred\\x1b[0m line\\x07 and \\u{202e}more");
    assert!(session.ends().success());
    assert!(!session.written().contains('\u{1b}') && !session.written().contains('\u{7}'));
    let mut session = Session::start(folder.path(), &[kwab, "cat", "x.kwab", "log", "--raw"], 24, 80);
    session.until("raw bytes", |session| session.written().contains("a \u{1b}[31mred"));
    assert!(session.ends().success());
    assert!(common::stdout_of(folder.path(), &["cat", "x.kwab", "log"]).contains("a \u{1b}[31mred"));
}

#[test]
fn a_dump_that_is_followed_says_so_and_shows_what_its_file_then_holds() {
    let folder = folder();
    let at = folder.path();
    let (first, second) = (imported(at, "kevlar-panic-socket"), imported(at, "kevlar-segv-children"));
    let headline = |dump: &str| {
        let page = common::text(&common::run(at, &["triage", dump]).stdout);
        page.lines().next().expect("a headline").chars().take(24).collect::<String>()
    };
    let headlines = [headline(&first), headline(&second)];
    assert_ne!(headlines[0], headlines[1]);
    std::fs::copy(at.join(&first), at.join("live.kwab")).expect("copied");
    let mut session = Session::tui(at, "live.kwab", 30, 120);
    session.sees(&headlines[0]);
    session.sees("Triage");
    let says_so = |session: &Session| session.screen().lines().next().is_some_and(|line| line.contains("following  "));
    assert!(!says_so(&session));
    session.press("f");
    session.until("the first line says that it is followed", says_so);
    std::fs::copy(at.join(&second), at.join("new.kwab")).expect("copied");
    std::fs::rename(at.join("new.kwab"), at.join("live.kwab")).expect("renamed");
    session.sees(&headlines[1]);
    session.press("f");
    session.until("it is no longer followed", |session| !says_so(session));
    session.press("QQ");
}

#[test]
fn a_directory_alone_opens_the_interface_on_a_terminal() {
    let folder = folder();
    let _dump = imported(folder.path(), "kevlar-panic-socket");
    let mut session = Session::start(folder.path(), &[env!("CARGO_BIN_EXE_kwab"), "."], 24, 80);
    session.until("the list of dumps", |session| session.screen().contains("kevlar-panic-socket.kwab"));
    assert!(session.is_taken());
    session.press("q");
    session.ends();
}

/// The most memory that the program ever had, bytes.
fn peak(session: &Session) -> u64 {
    let pid = session.child.process_id().expect("a process");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map_or(0, |number: u64| number << 10)
}

#[test]
fn tasks_and_locks_beyond_the_memory_limit_are_left_out_and_said() {
    use kwab::format::record::{Lock, Task, TaskState};
    use kwab::format::{BootId, DumpId, FileHeader, SectionKind};
    use kwab::model::emit::DumpWriter;

    let folder = folder();
    let mut out = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
    for number in 1..30_000 {
        let (pid, comm, cmdline) = (Some(number), Some(&b"worker"[..]), Some(&b"/usr/bin/worker --many"[..]));
        let wait_object = Some(u64::from(number) << 6);
        let task = Task { pid, tid: pid, ppid: pid, comm, cmdline, wait_object, ..Task::default() };
        let (state, wait_reason) = (Some(TaskState::BLOCKED), Some(&b"mutex"[..]));
        out.put(SectionKind::TASKS, &Task { state, wait_reason, user_ip: Some(1), run_ns: Some(5), ..task });
        let lock = Lock { addr: wait_object, holder_tid: pid, location: Some(b"file.c:1"), ..Lock::default() };
        out.put(SectionKind::LOCKS, &lock);
    }
    let bytes = out.finish().expect("memory");
    std::fs::write(folder.path().join("crowd.kwab"), &bytes).expect("written");
    let mut session = Session::tui(folder.path(), "crowd.kwab", 24, 120);
    session.sees("1Triage");
    session.sees("the memory limit is reached");
    session.press("8");
    session.sees("worker");
    session.press("R");
    session.sees("the memory limit is reached");
    std::thread::sleep(Duration::from_secs(1));
    // The lists of events and of memory are made at the same time, within a limit of their own, and this build is a
    // large one: 48 MiB more than a command may take. Without a limit for the rows it is three times as much.
    let (peak, promised) = (peak(&session), (112 << 20) + 4 * bytes.len() as u64);
    println!("{} MiB of {}", peak >> 20, promised >> 20);
    assert!(peak > 0 && peak <= promised, "{} MiB of {}", peak >> 20, promised >> 20);
    session.press("Q");
    assert!(session.ends().success());
}
