//! `kwab follow`: real files, pipes, sockets and commands; dumps that survive `kill -9`.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{folder, log, run, stdout_of, text};
use serde_json::Value;

/// The longest wait for anything; on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

const BANNER: &str = "[    0.000000] Linux version 6.1.0-44-amd64 (debian-kernel@lists.debian.org) (gcc-12)\n";
const OOPS: &str = include_str!("../../../kwab/src/follow/oops.txt");

/// A running `kwab follow --json`; killed when a test fails.
struct Following {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Following {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        // A shell may have started this test in the background, where SIGINT is ignored.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(assert_cmd::cargo::cargo_bin("kwab"));
        command.current_dir(folder).arg("follow").args(arguments).args(["--json", "-o", "dumps"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, lines }
    }

    fn write(&mut self, text: &str) {
        let pipe = self.child.stdin.as_mut().expect("a pipe");
        pipe.write_all(text.as_bytes()).and_then(|()| pipe.flush()).expect("it reads");
    }

    /// Waits until it has this file open.
    fn has_opened(&self, path: &Path) {
        let folder = format!("/proc/{}/fd", self.child.id());
        for _ in 0..2000 {
            let files = fs::read_dir(&folder).expect("it runs");
            if files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|to| to == path)) {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("{} is not opened", path.display());
    }

    /// The next event, which must be of this kind.
    fn event(&mut self, kind: &str) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("UTF-8");
        let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!((&event["event"], &event["schema"]), (&kind.into(), &2.into()), "{event}");
        event
    }

    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut stderr = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("UTF-8");
        (self.child.wait().expect("it ends").code(), stderr)
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the crash that was announced is closed: what comes later is not of it, however busy the machine is,
/// since the follower goes by when it read the lines.
fn is_closed() {
    sleep(Duration::from_millis(900));
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(5));
    }
}

/// The console's lines in a dump that is whole.
fn log_of(folder: &Path, dump: &str) -> String {
    stdout_of(folder, &["check", dump]);
    stdout_of(folder, &["cat", dump, "log"])
}

#[test]
fn a_crash_on_a_pipe_is_announced_by_its_own_end_and_every_crash_has_its_dump() {
    let folder = folder();
    let mut following = Following::start(folder.path(), &["-"]);
    following.write(BANNER);
    let begun = Instant::now();
    following.write(OOPS);
    assert_eq!(following.event("begins")["line"], 2);
    let crash = following.event("crash");
    println!("announced {} ms after its last line", begun.elapsed().as_millis());
    assert_eq!((&crash["kind"], &crash["path"]), (&"panic".into(), &"dumps/stdin-1.kwab".into()));
    is_closed();
    following.write("[    7.0] between\n");
    following.write(OOPS);
    following.event("begins");
    assert_eq!(following.event("crash")["path"], "dumps/stdin-2.kwab");
    drop(following.child.stdin.take());
    following.event("ended");
    let (code, stderr) = following.end();
    assert_eq!((code, stderr.as_str()), (Some(1), ""));
    assert!(log_of(folder.path(), "dumps/stdin-2.kwab").contains("between"));
    assert!(log_of(folder.path(), "dumps/stdin-1.kwab").contains("crashme_read"));
}

#[test]
fn kill_9_in_the_middle_of_a_crash_leaves_a_valid_dump_of_what_came() {
    let folder = folder();
    let mut following = Following::start(folder.path(), &["-"]);
    following.write(BANNER);
    let first: String = OOPS.split_inclusive('\n').take(10).collect();
    following.write(&first);
    following.event("begins");
    sleep(Duration::from_millis(1000));
    following.signal("-KILL");
    assert_eq!(following.child.wait().expect("it ends").code(), None);
    let log = log_of(folder.path(), "dumps/stdin-1.kwab");
    for words in ["NULL pointer dereference", "crashme_read", "Call Trace"] {
        assert!(log.contains(words), "{words}: {log}");
    }
    let triage = run(folder.path(), &["triage", "dumps/stdin-1.kwab"]);
    assert_eq!(triage.status.code(), Some(1), "{}", text(&triage.stderr));
}

#[test]
fn a_file_is_followed_through_growth_rotation_and_truncation() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("serial.log"), BANNER).expect("written");
    let mut following = Following::start(folder.path(), &["serial.log"]);
    let append = |text: &str| {
        let mut file = File::options().append(true).open(at("serial.log")).expect("there");
        file.write_all(text.as_bytes()).expect("written");
    };
    append(OOPS);
    following.event("begins");
    assert_eq!(following.event("crash")["path"], "dumps/serial-1.kwab");
    is_closed();
    fs::rename(at("serial.log"), at("serial.log.1")).expect("renamed");
    fs::write(at("serial.log"), OOPS).expect("written");
    following.event("begins");
    assert_eq!(following.event("crash")["path"], "dumps/serial-2.kwab");
    is_closed();
    File::options().write(true).truncate(true).open(at("serial.log")).expect("truncated");
    sleep(Duration::from_millis(200));
    append(OOPS);
    following.event("begins");
    assert_eq!(following.event("crash")["path"], "dumps/serial-3.kwab");
    following.signal("-TERM");
    following.event("ended");
    assert_eq!(following.end(), (Some(1), String::new()));
}

#[test]
fn what_a_writer_adds_to_a_file_after_its_rotation_is_read() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let mut writer = File::create(at("serial.log")).expect("made");
    writer.write_all(BANNER.as_bytes()).expect("written");
    let mut following = Following::start(folder.path(), &["serial.log"]);
    following.has_opened(&at("serial.log"));
    // The new file is read once its crash is announced: the old one has been left by then.
    fs::rename(at("serial.log"), at("serial.log.1")).expect("renamed");
    fs::write(at("serial.log"), OOPS).expect("written");
    following.event("begins");
    following.event("crash");
    is_closed();
    let (first, second) = OOPS.split_at(OOPS.len() / 2);
    writer.write_all(first.as_bytes()).expect("written");
    sleep(Duration::from_millis(100));
    writer.write_all(second.as_bytes()).expect("written");
    following.event("begins");
    assert_eq!(following.event("crash")["path"], "dumps/serial-2.kwab");
    following.signal("-TERM");
    following.event("ended");
    assert_eq!(following.end(), (Some(1), String::new()));
    let log = log_of(folder.path(), "dumps/serial-2.kwab");
    for line in OOPS.lines().filter(|line| !line.is_empty()) {
        assert!(log.contains(line.trim_end()), "{line}");
    }
}

#[test]
fn sockets_and_commands_are_consoles_too() {
    let folder = folder();
    let unix = UnixListener::bind(folder.path().join("console.sock")).expect("bound");
    let mut following = Following::start(folder.path(), &["console.sock"]);
    let (mut socket, _) = unix.accept().expect("connected");
    socket.write_all(format!("{BANNER}{OOPS}").as_bytes()).expect("written");
    drop(socket);
    following.event("begins");
    following.event("crash");
    following.event("ended");
    assert_eq!(following.end().0, Some(1));

    let tcp = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = format!("tcp:{}", tcp.local_addr().expect("an address"));
    let mut following = Following::start(folder.path(), &[&address]);
    let (mut socket, _) = tcp.accept().expect("connected");
    socket.write_all(OOPS.as_bytes()).expect("written");
    drop(socket);
    following.event("begins");
    following.event("crash");
    assert_eq!(following.end().0, Some(1));
    let far = run(folder.path(), &["follow", "tcp:192.0.2.1:9"]);
    assert_eq!(far.status.code(), Some(2));
    assert!(text(&far.stderr).contains("only this machine's own addresses"), "{}", text(&far.stderr));

    fs::copy(log("kevlar-panic-socket"), folder.path().join("it's a log")).expect("copied");
    let output = run(folder.path(), &["follow", "--exec", "cat \"it's a log\"", "-o", "dumps"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("crash: panic  platform/x64/interrupt.rs:350"), "{said}");
    assert!(said.contains("next: kwab triage dumps/cat-1.kwab"), "{said}");
}

#[test]
fn a_socket_that_is_not_there_is_an_error_or_waited_for() {
    let folder = folder();
    let at = folder.path();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let tcp = format!("tcp:127.0.0.1:{port}");
    // A socket that nothing listens on is left in its folder.
    drop(UnixListener::bind(at.join("left.sock")).expect("bound"));
    for (source, telling) in
        [("absent.sock", "no such file"), ("left.sock", "connection refused"), (&*tcp, "connection refused")]
    {
        let refused = run(at, &["follow", source, "-o", "dumps"]);
        assert_eq!(refused.status.code(), Some(2), "{source}");
        assert_eq!(text(&refused.stderr), format!("kwab: {source}: {telling}\n"));
    }
    fs::write(at.join("serial.log"), BANNER).expect("written");
    let refused = run(at, &["follow", "serial.log", "--reconnect", "-o", "dumps"]);
    assert!(refused.status.code() == Some(2) && text(&refused.stderr).contains("is not a socket"));

    let mut following = Following::start(at, &["absent.sock", "--reconnect"]);
    let mut stderr = BufReader::new(following.child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    stderr.read_line(&mut said).expect("a line");
    assert_eq!(said, "kwab: absent.sock: no such file; waiting for it\n");
    // Three boots of a machine, each with a socket of its own; the second dies within a line of its report.
    let (half, _) = OOPS.split_at(OOPS.len() / 2);
    for (boot, printed) in [OOPS, half, OOPS].into_iter().enumerate() {
        let listener = UnixListener::bind(at.join("absent.sock")).expect("bound");
        let (mut socket, _) = listener.accept().expect("connected");
        fs::remove_file(at.join("absent.sock")).expect("removed");
        socket.write_all(format!("{BANNER}{printed}").as_bytes()).expect("written");
        drop((socket, listener));
        following.event("begins");
        assert_eq!(following.event("crash")["path"], format!("dumps/absent-{}.kwab", boot + 1));
        said.clear();
        stderr.read_line(&mut said).expect("a line");
        assert_eq!(said, "kwab: absent.sock: closed; waiting for the next connection\n");
        is_closed();
    }
    following.signal("-TERM");
    following.event("ended");
    assert_eq!(following.child.wait().expect("it ends").code(), Some(1));
    let last = log_of(at, "dumps/absent-3.kwab");
    assert!(OOPS.lines().filter(|line| !line.is_empty()).all(|line| last.contains(line.trim_end())), "{last}");
}

/// A connection that lives on is read on both kinds of socket, byte by byte as a serial line gives it; `kill -9` in the
/// middle of the second crash leaves both dumps.
#[test]
fn a_slow_connection_has_one_dump_per_crash_and_kill_9_leaves_them() {
    let folder = folder();
    let at = folder.path();
    let unix = UnixListener::bind(at.join("console.sock")).expect("bound");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = format!("tcp:{}", tcp.local_addr().expect("an address"));
    for (source, stem) in [("console.sock", "console"), (&*address, "tcp")] {
        let mut following = Following::start(at, &[source]);
        let mut socket: Box<dyn Write> = match stem {
            "tcp" => Box::new(tcp.accept().expect("connected").0),
            _ => Box::new(unix.accept().expect("connected").0),
        };
        let mut slowly = |printed: &str| {
            for piece in printed.as_bytes().chunks(7) {
                socket.write_all(piece).and_then(|()| socket.flush()).expect("written");
                sleep(Duration::from_millis(1));
            }
        };
        slowly(BANNER);
        slowly(OOPS);
        following.event("begins");
        assert_eq!(following.event("crash")["path"], format!("dumps/{stem}-1.kwab"));
        is_closed();
        slowly(&OOPS.split_inclusive('\n').take(10).collect::<String>());
        following.event("begins");
        sleep(Duration::from_millis(1000));
        following.signal("-KILL");
        assert_eq!(following.child.wait().expect("it ends").code(), None);
        for (number, words) in [(1, "crashme_read"), (2, "NULL pointer dereference")] {
            let log = log_of(at, &format!("dumps/{stem}-{number}.kwab"));
            assert!(log.contains(words), "{stem} {number}: {log}");
        }
    }
}

#[test]
fn a_command_may_end_in_order_and_one_that_will_not_is_killed() {
    for (trap, ends_in_order) in [("echo asked > told; exit 0", true), ("", false)] {
        let folder = folder();
        fs::write(folder.path().join("oops"), OOPS).expect("written");
        let script = format!("trap '{trap}' TERM\necho $$ > pid\ncat oops\nwhile :; do sleep 0.1; done\n");
        fs::write(folder.path().join("machine"), script).expect("written");
        let mut following = Following::start(folder.path(), &["--exec", "sh machine", "--once"]);
        following.event("begins");
        following.event("crash");
        let begun = Instant::now();
        assert_eq!(following.end().0, Some(1));
        assert_eq!(folder.path().join("told").exists(), ends_in_order);
        assert!(begun.elapsed() < PATIENCE / 2);
        let pid = fs::read_to_string(folder.path().join("pid")).expect("it began");
        let process = format!("/proc/{}/cmdline", pid.trim());
        let is_there = fs::read(process).is_ok_and(|line| line.windows(7).any(|word| word == b"machine"));
        assert!(!is_there, "{pid} is gone");
    }
}

#[test]
fn a_hook_that_does_not_end_is_ended_when_the_user_asks() {
    let folder = folder();
    let hook = "sh -c 'echo $$ > pid; exec sleep 300'";
    let mut following = Following::start(folder.path(), &["-", "--on-crash", hook]);
    following.write(OOPS);
    following.event("begins");
    following.event("crash");
    until("the hook runs", || folder.path().join("pid").exists());
    following.signal("-TERM");
    let (code, stderr) = following.end();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("--on-crash: ended while it ran"), "{stderr}");
}

#[test]
fn a_hook_gets_the_dump_and_no_word_of_the_console() {
    let folder = folder();
    let script = "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" \"$KWAB_EVENT\" \"$KWAB_DUMP\" >> told\n";
    fs::write(folder.path().join("hook"), script).expect("written");
    assert!(Command::new("chmod").arg("+x").arg(folder.path().join("hook")).status().expect("runs").success());
    let hostile = OOPS.replace("Comm: cat", "Comm: $(touch owned);`touch owned`");
    let mut following =
        Following::start(folder.path(), &["-", "--on-crash", "./hook 'a word' $HOME", "--silence", "1", "--once"]);
    following.write(&hostile);
    following.event("begins");
    following.event("crash");
    following.event("ended");
    assert_eq!(following.end(), (Some(1), String::new()));
    let told = fs::read_to_string(folder.path().join("told")).expect("the hook ran");
    assert_eq!(told, "3\na word\n$HOME\ndumps/stdin-1.kwab\ncrash\ndumps/stdin-1.kwab\n");
    assert!(!folder.path().join("owned").exists());
}

#[test]
fn silence_is_said_once_keeps_the_last_lines_and_is_a_status() {
    let folder = folder();
    let mut following = Following::start(folder.path(), &["-", "--silence", "1", "--once"]);
    following.write(BANNER);
    following.write("[    1.0] the last words");
    let silent = following.event("silent");
    assert_eq!(silent["path"], "dumps/stdin-silent-1.kwab");
    following.event("ended");
    assert_eq!(following.end(), (Some(3), String::new()));
    assert!(log_of(folder.path(), "dumps/stdin-silent-1.kwab").contains("the last words"));
}

#[test]
fn an_interrupt_finishes_the_crash_that_is_coming_in() {
    let folder = folder();
    let mut following = Following::start(folder.path(), &["-", "--quiet-after", "600000"]);
    let first: String = OOPS.split_inclusive('\n').take(9).collect();
    following.write(&first);
    following.event("begins");
    following.write("[    5.2] one more line\n[    5.3] and half");
    // Nothing says that bytes have been read: the dump on disk does.
    until("the bytes are in the dump", || {
        text(&run(folder.path(), &["cat", "dumps/stdin-1.kwab", "log"]).stdout).contains("and half")
    });
    following.signal("-INT");
    following.event("crash");
    assert_eq!(following.event("ended")["lines"], 11);
    assert_eq!(following.end(), (Some(1), String::new()));
    assert!(log_of(folder.path(), "dumps/stdin-1.kwab").contains("and half"));
}

#[test]
fn a_run_without_a_crash_is_clean_and_later_runs_overwrite_nothing() {
    let folder = folder();
    let clean = run(folder.path(), &["follow", "--exec", "echo hello", "-o", "dumps"]);
    assert_eq!((clean.status.code(), fs::read_dir(folder.path().join("dumps")).expect("made").count()), (Some(0), 0));
    fs::write(folder.path().join("oops.log"), OOPS).expect("written");
    for number in 1..=3 {
        let output = run(folder.path(), &["follow", "oops.log", "-o", "dumps", "--once"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert_eq!(fs::read_dir(folder.path().join("dumps")).expect("there").count(), number);
    }
    for (line, words) in [
        ("follow absent", "absent: no such file"),
        ("follow .", "is a directory"),
        ("follow", "required"),
        ("follow --exec ./absent", "no such file"),
        ("follow oops.log --on-crash 'x", "quotes do not match"),
        ("follow tcp:example.com:1", "expected tcp:127.0.0.1:PORT"),
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(text(&output.stderr).contains(words), "{line}: {}", text(&output.stderr));
    }
}

#[test]
fn files_that_are_renamed_faster_than_they_are_looked_at_are_all_read() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("serial.log"), BANNER).expect("written");
    let mut following = Following::start(folder.path(), &["serial.log"]);
    // Reading has begun.
    until("the file is open", || {
        let fds = fs::read_dir(format!("/proc/{}/fd", following.child.id())).expect("it runs");
        fds.flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == at("serial.log")))
    });
    let markers: Vec<String> = (0..6).map(|number| format!("marker-of-file-{number}")).collect();
    for marker in &markers {
        for number in (1..8).rev() {
            // Most of them are not there yet.
            let _ = fs::rename(at(&format!("serial.log.{number}")), at(&format!("serial.log.{}", number + 1)));
        }
        fs::rename(at("serial.log"), at("serial.log.1")).expect("renamed");
        fs::write(at("serial.log"), format!("{BANNER}[    1.0] {marker}\n{OOPS}")).expect("written");
    }
    let found = || {
        let all = fs::read_dir(at("dumps")).into_iter().flatten().flatten();
        let all = all.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "kwab"));
        let logs: String = all.map(|dump| log_of(folder.path(), &format!("dumps/{}", name_of(&dump)))).collect();
        markers.iter().filter(|marker| logs.contains(marker.as_str())).count()
    };
    until("a dump has the last file's lines", || found() == markers.len());
    following.signal("-TERM");
    let mut events = String::new();
    following.lines.read_to_string(&mut events).expect("UTF-8");
    assert!(!events.contains("skipped"), "{events}");
    assert_eq!(following.end().0, Some(1));
}

fn name_of(entry: &fs::DirEntry) -> String {
    entry.file_name().into_string().expect("a name in UTF-8")
}

#[test]
fn a_file_that_was_deleted_before_it_could_be_read_is_told() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("serial.log"), BANNER).expect("written");
    let mut following = Following::start(folder.path(), &["serial.log"]);
    until("the file is open", || {
        let fds = fs::read_dir(format!("/proc/{}/fd", following.child.id())).expect("it runs");
        fds.flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == at("serial.log")))
    });
    following.signal("-STOP");
    for _ in 0..3 {
        fs::remove_file(at("serial.log")).expect("removed");
        fs::write(at("serial.log"), "[    2.0] later\n").expect("written");
    }
    following.signal("-CONT");
    assert_eq!(following.event("skipped")["files"], 2);
    sleep(Duration::from_millis(200));
    following.signal("-TERM");
    assert_eq!(following.event("ended")["lines"], 2);
    assert_eq!(following.end().0, Some(3));
}

#[test]
fn a_command_that_leaves_a_process_behind_ends_with_its_own_end() {
    let folder = folder();
    fs::write(folder.path().join("leaves.sh"), "echo begun\nsleep 100 2>/dev/null &\necho $! >left\n")
        .expect("written");
    let started = Instant::now();
    let following = Following::start(folder.path(), &["--exec", "sh leaves.sh"]);
    let mut following = following;
    following.event("orphaned");
    assert_eq!(following.event("ended")["lines"], 1);
    assert_eq!(following.end().0, Some(0));
    assert!(started.elapsed() < Duration::from_secs(20), "it waited for what the command left");
    let left = fs::read_to_string(folder.path().join("left")).expect("written");
    assert!(Command::new("kill").arg(left.trim()).status().expect("kill runs").success());
}

/// `--nocapture` shows how soon; a release build on an idle machine is what the page `docs/follow.md` states.
#[test]
fn twelve_crashes_are_each_announced_soon_after_their_last_line() {
    let folder = folder();
    let mut following = Following::start(folder.path(), &["-"]);
    following.write(BANNER);
    let mut took = Vec::new();
    for number in 1..=12 {
        following.write(OOPS);
        let written = Instant::now();
        following.event("begins");
        assert_eq!(following.event("crash")["path"], format!("dumps/stdin-{number}.kwab"));
        took.push(written.elapsed().as_millis());
        is_closed();
    }
    took.sort_unstable();
    println!("ms from the last line to the announcement: {took:?}");
    following.signal("-TERM");
    following.event("ended");
    assert_eq!(following.end().0, Some(1));
}

/// On a pipe, a file and a socket. The one time that a test of `follow` bounds; as far as this test itself was kept
/// from running, the follower may have been too.
#[test]
fn kill_9_keeps_every_line_up_to_the_last_second_without_a_hole() {
    for console in ["-", "serial.log", "console.sock"] {
        let folder = folder();
        let at = folder.path().join(console);
        let socket = (console == "console.sock").then(|| UnixListener::bind(&at).expect("bound"));
        let mut file = (console == "serial.log").then(|| File::create(&at).expect("made"));
        let mut following = Following::start(folder.path(), &[console]);
        let mut connection = socket.map(|socket| socket.accept().expect("connected").0);
        let mut write = |following: &mut Following, text: &str| match (&mut file, &mut connection) {
            (Some(file), _) => file.write_all(text.as_bytes()).expect("written"),
            (_, Some(connection)) => connection.write_all(text.as_bytes()).expect("it reads"),
            _ => following.write(text),
        };
        let report: String = OOPS.split_inclusive('\n').take(10).collect();
        write(&mut following, &format!("{BANNER}{report}"));
        following.event("begins");
        let mut written = vec![Instant::now()];
        for number in 0..230 {
            write(&mut following, &format!("[    5.{:06}]  note_{number}+0x63/0xe0\n", 100_020 + number));
            written.push(Instant::now());
            sleep(Duration::from_millis(10));
        }
        following.signal("-KILL");
        let killed = Instant::now();
        following.child.wait().expect("it ends");
        let stem = console.split('.').next().filter(|stem| *stem != "-").unwrap_or("stdin");
        let log = log_of(folder.path(), &format!("dumps/{stem}-1.kwab"));
        let beginning = format!("{BANNER}{report}");
        for line in beginning.lines().filter(|line| !line.is_empty()) {
            assert!(log.contains(line.trim_end()), "{console}: {line}");
        }
        let number = |line: &str| line.split("note_").nth(1)?.split('+').next()?.parse::<usize>().ok();
        let kept: Vec<usize> = log.lines().filter_map(number).collect();
        assert!(!kept.is_empty() && kept == (0..kept.len()).collect::<Vec<_>>(), "{console}: {kept:?}");
        let lost = written.get(kept.len() + 1).map_or(Duration::ZERO, |first| killed.duration_since(*first));
        let held_up = written.windows(2).map(|pair| pair[1].duration_since(pair[0])).max().expect("lines");
        println!("{console}: {} of {} lines are kept, the oldest lost one {lost:?} old", kept.len(), written.len() - 1);
        assert!(lost <= Duration::from_secs(1) + held_up, "{console}: {lost:?} lost, {held_up:?} held up");
    }
}

#[test]
fn kill_9_before_any_crash_leaves_the_last_lines_if_that_was_asked_for() {
    let folder = folder();
    let mut following = Following::start(folder.path(), &["-", "--live"]);
    following.write(BANNER);
    following.write("[    1.0] the last words\n");
    until("the lines are in the dump", || {
        text(&run(folder.path(), &["cat", "dumps/stdin-live.kwab", "log"]).stdout).contains("the last words")
    });
    following.signal("-KILL");
    following.child.wait().expect("it ends");
    assert!(log_of(folder.path(), "dumps/stdin-live.kwab").contains("Linux version"));
    assert_eq!(fs::read_dir(folder.path().join("dumps")).expect("there").count(), 1);
    let judged = run(folder.path(), &["triage", "dumps/stdin-live.kwab"]);
    assert_eq!(judged.status.code(), Some(0), "{}", text(&judged.stdout));
}

#[test]
fn the_events_are_in_the_file_of_json_out_beside_the_text() {
    let folder = folder();
    fs::write(folder.path().join("serial.log"), format!("{BANNER}{OOPS}")).expect("written");
    let output = run(folder.path(), &["follow", "serial.log", "--once", "-o", "dumps", "--json-out", "events.jsonl"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("a crash begins"), "{}", text(&output.stdout));
    let lines = fs::read_to_string(folder.path().join("events.jsonl")).expect("written");
    let kinds: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["event"].clone()).collect();
    assert_eq!(kinds, ["begins", "crash", "ended"]);
}

#[test]
fn a_signal_ends_the_wait_for_the_writer_of_a_fifo() {
    let folder = folder();
    let fifo = folder.path().join("console");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("runs").success());
    let mut following = Following::start(folder.path(), &["console"]);
    let mut stderr = BufReader::new(following.child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    stderr.read_line(&mut said).expect("a line");
    assert_eq!(said, "kwab: console: a FIFO that no program writes; waiting for one\n");
    let pid = following.child.id().to_string();
    assert!(Command::new("kill").arg(pid).status().expect("runs").success());
    assert_eq!(following.child.wait().expect("it ends").code(), Some(0));
}
