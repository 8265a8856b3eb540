//! Long pages: handed to the pager on a terminal, in columns where the terminal is wide, never wider than it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{LOGS, folder, kwab, log, text};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use unicode_width::UnicodeWidthStr as _;

/// The longest wait for a program; a loaded machine takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

fn dump(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps").join(format!("{name}.kwab"));
    path.canonicalize().expect("the dump is there").display().to_string()
}

/// Runs the program on a terminal of 40 rows; what it wrote, and its status.
fn on_terminal(folder: &Path, width: u16, arguments: &[&str], env: &[(&str, &str)], keys: &str) -> (String, u32) {
    let size = PtySize { rows: 40, cols: width, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
    let mut builder = CommandBuilder::new(env!("CARGO_BIN_EXE_kwab"));
    builder.args(arguments);
    builder.cwd(folder);
    builder.env("TERM", "xterm-256color");
    for name in ["PAGER", "KWAB_PAGER", "LESS", "NO_COLOR", "COLUMNS"] {
        builder.env_remove(name);
    }
    for (name, value) in env {
        builder.env(name, value);
    }
    let mut child = pair.slave.spawn_command(builder).expect("started");
    drop(pair.slave);
    let mut output = pair.master.try_clone_reader().expect("its output");
    let mut keyboard = pair.master.take_writer().expect("its input");
    let keys = keys.to_owned();
    if !keys.is_empty() {
        // Typed until the program has ended: a key that comes before its pager may be lost.
        std::thread::spawn(move || {
            while keyboard.write_all(keys.as_bytes()).is_ok() {
                std::thread::sleep(Duration::from_millis(200));
            }
        });
    }
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // The terminal ends with an error when its program has gone.
        let _ = output.read_to_end(&mut all);
        let _ = send.send(all);
    });
    let written = receive.recv_timeout(PATIENCE).expect("the program ends");
    (text(&written), child.wait().expect("waited").exit_code())
}

/// A pager that stores what it gets, or leaves after its first line.
fn pager(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path.display().to_string()
}

#[test]
fn a_page_longer_than_the_terminal_goes_to_the_pager_that_is_named() {
    let folder = folder();
    let at = folder.path();
    let (first, second) = (pager(at, "first", "cat > first.txt"), pager(at, "second", "echo $1; cat > second.txt"));
    let dump = dump("null-dereference");
    let arguments = ["inspect", &dump];
    let (written, status) = on_terminal(at, 80, &arguments, &[("PAGER", &first)], "");
    assert_eq!((written.as_str(), status), ("", 0));
    let page = fs::read_to_string(at.join("first.txt")).expect("the pager was run");
    assert!(page.contains("\u{1b}[1mregisters") && page.contains("completeness"), "{page}");
    let named = format!("{second} 'a word'");
    let (written, _) = on_terminal(at, 80, &arguments, &[("PAGER", &first), ("KWAB_PAGER", &named)], "");
    assert_eq!(written, "a word\r\n");
    assert_eq!(fs::read_to_string(at.join("second.txt")).expect("the other pager was run"), page);
    let absent = [("PAGER", "/absent/pager")];
    let (written, status) = on_terminal(at, 80, &arguments, &absent, "");
    assert!(written.contains("kwab: pager /absent/pager: no such file") && written.contains("completeness"));
    assert_eq!(status, 0);
}

#[test]
fn without_need_or_wish_there_is_no_pager() {
    let folder = folder();
    let at = folder.path();
    let never = pager(at, "never", "touch was-run");
    let dump = dump("null-dereference");
    let short = ["inspect", &dump, "--section", "bt"];
    for (arguments, env) in [
        (&short[..], &[("PAGER", never.as_str())][..]),
        (&["--no-pager", "inspect", &dump], &[("PAGER", &never)]),
        (&["inspect", "--no-pager", &dump], &[("PAGER", &never)]),
        (&["inspect", &dump], &[("PAGER", &never), ("TERM", "dumb")]),
        (&["inspect", &dump], &[("PAGER", &never), ("KWAB_PAGER", "")]),
        (&["inspect", &dump], &[("PAGER", "cat")]),
    ] {
        let (written, status) = on_terminal(at, 80, arguments, env, "");
        assert!(written.contains("backtrace") && status == 0, "{arguments:?} {env:?}: {written}");
    }
    // A pipe has no pager.
    let piped = kwab(at).env("PAGER", &never).args(["inspect", &dump]).output().expect("the binary runs");
    assert!(text(&piped.stdout).contains("completeness"));
    assert!(!at.join("was-run").exists());
}

#[test]
fn a_pager_that_is_left_early_is_quiet_and_the_status_is_that_of_the_command() {
    let folder = folder();
    let at = folder.path();
    let leaves = pager(at, "leaves", "read line; exit 7");
    let bytes = fs::read(dump("stack-overflow")).expect("the dump");
    fs::write(at.join("cut.kwab"), &bytes[..bytes.len() / 2]).expect("written");
    for (file, wanted) in [(dump("stack-overflow").as_str(), 0), ("cut.kwab", 3)] {
        let (written, status) = on_terminal(at, 80, &["inspect", file, "-n", "400"], &[("PAGER", &leaves)], "");
        assert_eq!((written.as_str(), status), ("", wanted), "{file}");
    }
    // The real one, left by its key.
    let (written, status) = on_terminal(at, 80, &["inspect", &dump("stack-overflow")], &[("PAGER", "less -R")], "q");
    assert!(written.contains("what may have happened") && !written.contains("kwab:"), "{written}");
    assert_eq!(status, 0);
}

#[test]
fn a_page_is_never_wider_than_the_terminal_and_uses_what_it_has() {
    let folder = folder();
    let at = folder.path();
    fs::create_dir(at.join("a-directory-with-a-long-name")).expect("made");
    let mut files = Vec::new();
    for name in ["null-dereference", "lock-order", "clean", "stack-overflow", "nx-tables"] {
        files.push(format!("a-directory-with-a-long-name/{name}.kwab"));
        fs::copy(dump(name), at.join(files.last().expect("a name"))).expect("copied");
    }
    files.extend(LOGS.iter().map(|name| log(name).display().to_string()));
    for file in &files {
        let mut lines = Vec::new();
        for width in [80, 120, 200] {
            for command in ["inspect", "triage"] {
                let output = kwab(at).env("COLUMNS", width.to_string()).args([command, file]).output().expect("runs");
                let page = text(&output.stdout);
                // A word of a command is never broken.
                let is_long = |line: &&str| line.width() > width && !line.trim_start_matches(' ').starts_with('/');
                let long: Vec<&str> = page.lines().filter(is_long).collect();
                assert!(long.is_empty(), "{command} {file} at {width}: {}", long.join("\n"));
                if command == "inspect" {
                    lines.push(page.lines().count());
                }
            }
        }
        assert!(lines[1] * 10 <= lines[0] * 8, "{file} at 80, 120, 200: {lines:?} lines");
        assert!(lines[2] <= lines[1], "{file} at 80, 120, 200: {lines:?} lines");
    }
}
