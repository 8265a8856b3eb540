//! `kwab capture` against a socket where a script answers as QEMU does.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::JoinHandle;

use crate::common::{folder, kwab, run, text};
use serde_json::{Value, json};

/// A processor that loops in the kernel with interrupts off.
const REGISTERS: &str = "CPU#0\r\nRAX=0000000000000001 RBP=ffffc90000003f00 RSP=ffffc90000003e80\r\n\
    R8 =0000000000000006\r\nRIP=ffffffff80101010 RFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n\
    CS =0010 0000000000000000 ffffffff 00a09b00 DPL=0 CS64 [-RA]\r\nCR3=0000000001000000\r\n";

/// Serves one session; `panics` says whether the NMI ends the guest.
fn guest(folder: &Path, panics: bool) -> JoinHandle<Vec<String>> {
    guest_with(folder, panics, REGISTERS.to_owned())
}

fn guest_with(folder: &Path, panics: bool, registers: String) -> JoinHandle<Vec<String>> {
    let _ = std::fs::remove_file(folder.join("qmp"));
    let listener = UnixListener::bind(folder.join("qmp")).expect("a socket");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let version = json!({ "QMP": { "version": { "qemu": { "major": 9, "minor": 1, "micro": 0 } } } });
        writeln!(stream, "{version}").expect("it listens");
        let mut heard = Vec::new();
        for line in BufReader::new(stream.try_clone().expect("one more")).lines().map_while(Result::ok) {
            let command: Value = serde_json::from_str(&line).expect("JSON");
            let name = command["execute"].as_str().expect("a name").to_owned();
            let asked = command["arguments"]["command-line"].as_str().unwrap_or_default();
            let answer = match (name.as_str(), asked.split(' ').next()) {
                ("query-status", _) => json!({ "running": true }),
                (_, Some("info")) => json!(registers),
                (_, Some("x")) if asked.contains("0xffffc90000004") => json!("Cannot access memory\r\n"),
                (_, Some("x")) => {
                    let words: usize =
                        asked.split(['/', 'x', ' ']).find_map(|word| word.parse().ok()).expect("a count");
                    json!("0: 0x0000000000000001\r\n".repeat(words))
                }
                _ => json!({}),
            };
            writeln!(stream, "{}", json!({ "return": answer })).expect("it listens");
            heard.push(name.clone());
            if name == "inject-nmi" && panics {
                writeln!(stream, "{}", json!({ "event": "GUEST_PANICKED" })).expect("it listens");
            }
        }
        heard
    })
}

#[test]
fn a_guest_that_does_not_answer_an_nmi_is_captured_and_inspected() {
    let folder = folder();
    let served = guest(folder.path(), false);
    let output = run(folder.path(), &["capture", "--qmp", "qmp", "--wait", "0", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["nmi"], &report["output"]), (&"ignored".into(), &"capture.kwab".into()));
    let heard = served.join().expect("it ran");
    assert!(heard.ends_with(&["cont".to_owned()]), "{heard:?}");
    let inspected = run(folder.path(), &["inspect", "capture.kwab"]);
    let page = text(&inspected.stdout);
    assert!(page.contains("ffffffff80101010") && page.contains("captured from outside"), "{page}");
    assert!(!page.contains("kernel died"), "{page}");
    let again = kwab(folder.path()).args(["capture", "--qmp", "qmp"]).output().expect("runs");
    assert_eq!(again.status.code(), Some(2), "the file is there");
}

#[test]
fn two_live_captures_are_not_two_bugs_and_every_page_says_that_nothing_died() {
    let folder = folder();
    let elsewhere = REGISTERS.replace("ffffffff80101010", "ffffffff80203040").replace("=00000002 [", "=00000246 [");
    for (name, registers) in [("a.kwab", REGISTERS.to_owned()), ("b.kwab", elsewhere)] {
        let served = guest_with(folder.path(), false, registers);
        let output = run(folder.path(), &["capture", "--qmp", "qmp", "--wait", "0", "-o", name]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        served.join().expect("it ran");
    }
    let differ = text(&run(folder.path(), &["diff", "a.kwab", "b.kwab"]).stdout);
    assert!(differ.starts_with("nothing died in A or B: both are live dumps\n"), "{differ}");
    let found = run(folder.path(), &["diff", "--json", "a.kwab", "b.kwab"]).stdout;
    let found: Value = serde_json::from_slice(&found).expect("JSON");
    assert_eq!(found["same_bug"], Value::Null);
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps/leak.kwab");
    let beside = text(&run(folder.path(), &["diff", "a.kwab", dump.to_str().expect("UTF-8")]).stdout);
    assert!(beside.starts_with("only B tells of a crash"), "{beside}");
    for command in ["triage", "inspect"] {
        let page = text(&run(folder.path(), &[command, "a.kwab"]).stdout);
        assert!(page.contains("nothing died (live dump): captured from outside"), "{command}: {page}");
    }
}

#[test]
fn a_capture_of_a_machine_that_lives_fails_no_run_of_ci_and_is_said() {
    let folder = folder();
    let served = guest(folder.path(), false);
    let output = run(folder.path(), &["capture", "--qmp", "qmp", "--wait", "0", "-o", "a.kwab"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    served.join().expect("it ran");
    std::fs::write(folder.path().join("known.toml"), "schema = 1\nsignature_version = 1\n").expect("written");
    let output = run(folder.path(), &["ci", "a.kwab", "--baseline", "known.toml", "--md", "summary.md"]);
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{page}");
    let said = "quiet    1 dump of a living machine without a likely bug, which fails no run\n";
    assert!(page.starts_with("no new crash, 0 known") && page.ends_with(said), "{page}");
    let summary = std::fs::read_to_string(folder.path().join("summary.md")).expect("written");
    assert!(summary.contains("Not counted: 1 dump of a living machine without a likely bug.\n"), "{summary}");
}

#[test]
fn a_guest_that_dumps_by_itself_leaves_no_file() {
    let folder = folder();
    let served = guest(folder.path(), true);
    let output = run(folder.path(), &["capture", "--qmp", "qmp", "--wait", "60"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("writes its own dump"), "{}", text(&output.stdout));
    assert!(!folder.path().join("capture.kwab").exists());
    assert!(!served.join().expect("it ran").contains(&"stop".to_owned()));
}

#[test]
fn a_monitor_that_does_not_greet_is_an_error() {
    let folder = folder();
    let listener = UnixListener::bind(folder.path().join("qmp")).expect("a socket");
    // As QEMU does with a second client: the connection waits in the backlog.
    let output = run(folder.path(), &["capture", "--qmp", "qmp", "--wait", "2"]);
    drop(listener);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("qmp: not QEMU's machine protocol: no greeting within 5 s"), "{said}");
    assert!(!folder.path().join("capture.kwab").exists());
}

#[test]
fn what_is_no_stub_for_gdb_is_refused_and_leaves_no_file() {
    let folder = folder();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let name = listener.local_addr().expect("bound").to_string();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it listens");
        stream.shutdown(Shutdown::Write).expect("half closed");
        // To the end, so that nothing of the client is left unread, which would reset the connection.
        let mut heard = String::new();
        stream.read_to_string(&mut heard).expect("text");
        heard
    });
    let output = run(folder.path(), &["capture", "--gdb", &name]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("not a GDB stub of a machine: the connection was closed"), "{said}");
    assert!(!folder.path().join("capture.kwab").exists());
    assert!(served.join().expect("it ran").starts_with("$qSupported:"));
    // Nothing listens there any more.
    let refused = run(folder.path(), &["capture", "--gdb", &name]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("refused"), "{}", text(&refused.stderr));
}
