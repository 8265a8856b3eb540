//! `kwab FILE|LOG|DIR` does what fits, and every command that reads a dump takes a serial log in its place.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::common::{LOGS, folder, imported, kwab, log, run, stdout_of, text};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

/// Two deaths of programs and a panic in one log.
fn three_crashes() -> String {
    let mut log = String::from("SeaBIOS (version 1)\n");
    for (pid, program) in [(7, "/bin/grep"), (9, "/bin/sh")] {
        log += &format!("DBG {{\"type\":\"process_exec\",\"pid\":{pid},\"argv0\":\"{program}\",\"entry\":0x401000}}\n");
        log += &format!(
            "DBG {{\"type\":\"signal\",\"pid\":{pid},\"signal\":11,\"signal_name\":\"SIGSEGV\",\
             \"action\":\"terminate\",\"ip\":0x401234}}\n"
        );
        log += &format!("DBG {{\"type\":\"process_exit\",\"pid\":{pid},\"status\":139,\"by_signal\":true}}\n");
    }
    log + "[PANIC] CPU=1 at mm/frame.rs:12\n\
        DBG {\"type\":\"panic\",\"message\":\"double free of frame 0x1234\",\"backtrace\":[]}\n"
}

/// The output of a command on a file, with the file's name taken out.
fn of(folder: &Path, arguments: &[&str], name: &str) -> (Option<i32>, String) {
    let words: Vec<&str> = arguments.iter().copied().chain([name]).collect();
    let output = run(folder, &words);
    let printed = text(&output.stdout).replace(name, "FILE");
    // A dump names the log that it was made of.
    (output.status.code(), printed.replace("serial.log", "FILE"))
}

#[test]
fn a_log_is_judged_as_the_dump_that_import_makes_of_it() {
    for name in LOGS {
        let folder = folder();
        let at = folder.path();
        fs::copy(log(name), at.join("serial.log")).expect("the log is there");
        let dumps = stdout_of(at, &["import", "serial.log"]);
        let dump = dumps.lines().next().expect("a dump").to_string();
        let files = || fs::read_dir(at).expect("a folder").count();
        let before = files();
        for arguments in
            [&["triage"][..], &["triage", "--json"], &["inspect", "--json"], &["audit-vm"], &["verify-pages"]]
        {
            assert_eq!(of(at, arguments, "serial.log"), of(at, arguments, &dump), "{name}: {arguments:?}");
        }
        let export = ["export", "--to", "jsonl"];
        assert_eq!(of(at, &export, "serial.log"), of(at, &export, &dump), "{name}");
        assert_eq!(files(), before, "{name}: a log that is only read leaves nothing behind");
    }
}

#[test]
fn a_file_alone_is_judged() {
    let folder = folder();
    let at = folder.path();
    let dump = imported(at, "kevlar-panic-socket");
    for name in [dump.as_str(), "kevlar-panic-socket.log"] {
        assert_eq!(of(at, &[], name), of(at, &["triage"], name), "{name}");
        assert_eq!(of(at, &[], name).0, Some(1), "{name}");
    }
    let output = run(at, &["kevlar-panic-socket.log"]);
    assert_eq!(text(&output.stderr), "", "the only crash of a log needs no word beside its report");
}

#[test]
fn several_logs_are_a_list_of_the_crashes_in_them() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("three.log"), three_crashes()).expect("written");
    fs::write(at.join("quiet.log"), "Linux version 6.1.0\nall is well\n").expect("written");
    let dump = imported(at, "kevlar-panic-socket");
    let names = ["three.log", "quiet.log", "kevlar-panic-socket.log", dump.as_str()];
    let output = run(at, &names);
    assert_eq!(text(&output.stderr), "kwab: quiet.log: no crash in this log\n");
    assert_eq!(output.status.code(), Some(0));
    let listed = run(at, &[&["list", "--json"], &names[..]].concat());
    let catalogue: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let dumps = catalogue["groups"].as_array().expect("groups").iter().flat_map(|group| {
        group["dumps"].as_array().expect("dumps").iter().map(|dump| dump["file"].as_str().expect("a name").to_owned())
    });
    let mut dumps: Vec<String> = dumps.collect();
    dumps.sort();
    let mut wanted = vec!["kevlar-panic-socket.log".to_owned(), dump, "three.log".to_owned()];
    wanted.extend(["three.log".to_owned(), "three.log".to_owned()]);
    wanted.sort();
    assert_eq!(dumps, wanted);
    let missing = run(at, &["three.log", "absent.log"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stderr));
    assert!(text(&missing.stdout).contains("double free of frame"), "the others are listed all the same");
}

#[test]
fn crashes_of_a_log_are_chosen_by_number() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("serial.log"), three_crashes()).expect("written");
    let first = run(at, &["serial.log"]);
    assert!(
        text(&first.stderr).contains("holds 3 dumps; this is dump 1 (--dump N chooses)"),
        "{}",
        text(&first.stderr)
    );
    assert!(text(&first.stdout).contains("/bin/grep"), "{}", text(&first.stdout));
    let second = run(at, &["triage", "serial.log", "--dump", "2"]);
    assert!(text(&second.stdout).contains("/bin/sh"), "{}", text(&second.stdout));
    let third = run(at, &["inspect", "serial.log", "--dump", "3"]);
    assert!(text(&third.stdout).contains("double free of frame 0x1234"), "{}", text(&third.stdout));
    let fourth = run(at, &["triage", "serial.log", "--dump", "4"]);
    assert_eq!(fourth.status.code(), Some(2));
    assert!(text(&fourth.stderr).contains("serial.log: holds 3 dumps; there is no dump 4"), "{}", text(&fourth.stderr));
}

#[test]
fn the_next_commands_of_a_later_crash_are_about_that_crash() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("my serial.log"), three_crashes()).expect("written");
    for command in ["triage", "inspect"] {
        let report = run(at, &[command, "my serial.log", "--dump", "2", "--json"]);
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        let hypotheses = report["hypotheses"].as_array().or_else(|| report["triage"]["hypotheses"].as_array());
        let next = hypotheses.expect("a list").iter().flat_map(|found| found["next"].as_array().expect("a list"));
        let next: Vec<&str> = next.filter_map(Value::as_str).filter(|next| next.starts_with("kwab ")).collect();
        assert!(!next.is_empty(), "{command}");
        for next in next {
            let words = shlex::split(next).expect("words of a shell");
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = run(at, &words[1..]);
            assert!(text(&output.stderr).contains("this is dump 2"), "{next}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn stdin_and_compressed_logs_are_taken_too() {
    let folder = folder();
    let at = folder.path();
    let plain = fs::read(log("kevlar-segv-children")).expect("the log is there");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&plain).expect("a vector takes everything");
    let packed = packed.finish().expect("a vector takes everything");
    fs::write(at.join("serial.log"), &plain).expect("written");
    fs::write(at.join("serial.log.gz"), &packed).expect("written");
    let wanted = of(at, &["triage"], "serial.log");
    assert_eq!(of(at, &["triage"], "serial.log.gz"), wanted);
    for bytes in [plain, packed] {
        let output = kwab(at).arg("-").write_stdin(bytes).output().expect("the binary runs");
        assert_eq!(
            (output.status.code(), text(&output.stdout).replace("stdin", "FILE").replace(" - ", " FILE ")),
            wanted
        );
    }
}

#[test]
fn directories_and_several_files_are_listed_where_there_is_no_terminal() {
    let folder = folder();
    let at = folder.path();
    let first = imported(at, "kevlar-panic-socket");
    let second = imported(at, "linux-6.1-sysrq-panic");
    assert_eq!(stdout_of(at, &["."]), stdout_of(at, &["list", "."]));
    assert_eq!(stdout_of(at, &[&first, &second]), stdout_of(at, &["list", &first, &second]));
}

#[test]
fn a_directory_of_logs_says_which_command_reads_them() {
    let folder = folder();
    let output = run(folder.path(), &["list", "."]);
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("no dumps here\n", ""));
    fs::create_dir(folder.path().join("logs")).expect("made");
    for name in ["b.log", "a b.log"] {
        fs::write(folder.path().join("logs").join(name), three_crashes()).expect("written");
    }
    let output = run(folder.path(), &["logs"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "no dumps here\n"));
    let said = "kwab: logs holds 2 logs: kwab 'logs/a b.log' judges the first, kwab import makes dumps of it\n";
    assert_eq!(text(&output.stderr), said);
    let output = run(folder.path(), &["list", ".", "--filter", "cause:null"]);
    assert_eq!(text(&output.stdout), "no dump matches\n");
}

#[test]
fn a_word_that_is_neither_a_file_nor_a_command_is_refused_with_the_nearest_command() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("notes.txt"), "a shopping list\nwithout a crash\n").expect("written");
    fs::write(at.join("inspect"), three_crashes()).expect("written");
    for (arguments, said) in [
        (&["inspekt"][..], "kwab: inspekt: no such file or command; did you mean kwab inspect?\n"),
        (&["frobnicate"], "kwab: frobnicate: no such file or command; kwab --help lists the commands\n"),
        (&["serial.log"], "kwab: serial.log: no such file or directory\n"),
        (&["inspekt", "notes.txt"], "kwab: inspekt: no such file or command; did you mean kwab inspect?\n"),
    ] {
        let output = run(at, arguments);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), said), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    // A text without a crash is a log like any other.
    for arguments in [&["notes.txt"][..], &["triage", "notes.txt"]] {
        let output = run(at, arguments);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(said.starts_with("no crash in this log\nlooked at 2 lines for reports of Linux and of "), "{said}");
    }
    // A file of a command's name is reached by its path.
    assert_eq!(run(at, &["./inspect"]).status.code(), Some(1));
}
