//! Outputs are whole or absent, never replace what is not a regular file, and never overwrite an input.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{folder, imported, log, run, stdout_of, text};

/// Names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs and expects status 2 and one line on stderr that holds `telling`.
fn refused(folder: &Path, arguments: &[&str], telling: &str) {
    let output = run(folder, arguments);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains(telling), "{arguments:?}: {stderr}");
}

/// A folder with a log and its dump under another name.
fn prepared() -> (tempfile::TempDir, String) {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-segv-children");
    fs::rename(folder.path().join("kevlar-segv-children.log"), folder.path().join("serial.log")).expect("renamed");
    fs::rename(folder.path().join(&dump), folder.path().join("d.kwab")).expect("renamed");
    (folder, "d.kwab".to_string())
}

#[test]
fn an_input_is_never_overwritten_by_any_of_its_names() {
    let (folder, dump) = prepared();
    let at = folder.path();
    for name in ["serial.log", dump.as_str()] {
        fs::hard_link(at.join(name), at.join(format!("hard-{name}"))).expect("linked");
        symlink(name, at.join(format!("soft-{name}"))).expect("linked");
    }
    let sound = (fs::read(at.join("serial.log")).expect("there"), fs::read(at.join(&dump)).expect("there"));
    for name in ["", "hard-", "soft-"] {
        let (log, target) = (format!("{name}serial.log"), format!("{name}{dump}"));
        refused(at, &["import", "-f", "serial.log", "-o", &log], "is an input of this command");
        refused(at, &["import", "-f", &log, "-o", "serial.log"], "is an input of this command");
        refused(at, &["export", "-f", &dump, "--to", "json", "-o", &target], "is an input of this command");
        refused(at, &["export", "-f", &dump, "--to", "folded", "--symbols", &log, "-o", "serial.log"], "is an input");
        refused(at, &["salvage", "-f", &dump, "-o", &target], "is an input of this command");
        refused(at, &["redact", "-f", &dump, "--keep", "kernel", "-o", &target], "is an input of this command");
        refused(at, &["pack", "-f", &dump, "-o", &target], "is an input of this command");
        refused(at, &["pack", "-f", &dump, "--input", &log, "-o", "serial.log"], "is an input of this command");
        refused(at, &["triage", &dump, "--json-out", &target], "is an input of this command");
    }
    let redirected = |arguments: &[&str], input: &str| {
        let input = fs::File::open(at.join(input)).expect("there");
        let output = command(at, arguments).stdin(input).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("is an input of this command"), "{}", text(&output.stderr));
    };
    redirected(&["import", "-f", "-", "-o", "hard-serial.log"], "serial.log");
    redirected(&["export", "-f", "-", "--to", "json", "-o", &dump], &dump);
    redirected(&["salvage", "-f", "-", "-o", &dump], &dump);
    let stdout = fs::File::options().append(true).open(at.join(&dump)).expect("there");
    let output = command(at, &["export", &dump, "--to", "json"]).stdout(stdout).output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let now = (fs::read(at.join("serial.log")).expect("there"), fs::read(at.join(&dump)).expect("there"));
    assert!(sound == now, "an input has changed");
}

#[test]
fn force_replaces_regular_files_only_and_a_link_stays_a_link() {
    let (folder, dump) = prepared();
    let at = folder.path();
    fs::create_dir(at.join("far")).expect("made");
    fs::write(at.join("far/target"), "old").expect("written");
    symlink("far/target", at.join("link")).expect("linked");
    let _socket = std::os::unix::net::UnixListener::bind(at.join("socket")).expect("bound");
    fs::create_dir(at.join("dir")).expect("made");
    for arguments in [
        &["import", "-f", "serial.log", "-o"][..],
        &["export", "-f", &dump, "--to", "json", "-o"],
        &["export", "-f", &dump, "--to", "chrome-trace", "-o"],
        &["salvage", "-f", &dump, "-o"],
    ] {
        let with =
            |target: &str| -> Vec<String> { arguments.iter().copied().chain([target]).map(str::to_owned).collect() };
        let run_with = |target: &str| {
            let arguments = with(target);
            run(at, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        };
        fs::write(at.join("far/target"), "old").expect("written");
        let output = run_with("link");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        assert!(fs::symlink_metadata(at.join("link")).expect("there").is_symlink(), "{arguments:?}");
        assert_ne!(fs::read(at.join("far/target")).expect("there"), b"old", "{arguments:?}");
        assert_eq!(run_with("socket").status.code(), Some(2), "{arguments:?}");
        assert!(fs::symlink_metadata(at.join("socket")).expect("there").file_type().is_socket(), "{arguments:?}");
        if !arguments.contains(&"import") {
            assert_eq!(run_with("dir").status.code(), Some(2), "{arguments:?}");
        }
        assert!(!names(at).iter().any(|name| name.starts_with(".kwab")), "{:?}", names(at));
        assert_eq!(names(&at.join("far")), ["target"]);
    }
    fs::remove_file(at.join("link")).expect("removed");
    symlink("absent", at.join("link")).expect("linked");
    refused(at, &["export", &dump, "--to", "json", "-o", "link"], "is a symbolic link to");
}

#[test]
fn a_device_and_a_fifo_are_written_into_and_stay_what_they_are() {
    let (folder, dump) = prepared();
    let at = folder.path();
    let made = |arguments: &[&str]| Command::new("mknod").current_dir(at).args(arguments).status();
    assert!(made(&["fifo", "p"]).expect("mknod runs").success());
    // Device nodes need privilege; without it the FIFO stands for both.
    let null = made(&["null", "c", "1", "3"]).is_ok_and(|status| status.success());
    for arguments in [
        &["import", "-f", "serial.log", "-o"][..],
        &["export", "-f", &dump, "--to", "csv", "-o"],
        &["export", "-f", &dump, "--to", "chrome-trace", "-o"],
        &["salvage", "-f", &dump, "-o"],
    ] {
        let mut child = command(at, arguments).arg("fifo").spawn().expect("started");
        let mut bytes = Vec::new();
        fs::File::open(at.join("fifo")).expect("opened").read_to_end(&mut bytes).expect("read");
        assert!(child.wait().expect("waited").success(), "{arguments:?}");
        assert!(!bytes.is_empty(), "{arguments:?}");
        assert!(fs::symlink_metadata(at.join("fifo")).expect("there").file_type().is_fifo(), "{arguments:?}");
        if null {
            let status = command(at, arguments).arg("null").status().expect("runs");
            assert!(status.success(), "{arguments:?}");
            let meta = fs::symlink_metadata(at.join("null")).expect("there");
            assert!(meta.file_type().is_char_device(), "{arguments:?}: replaced by a regular file");
        }
    }
    // A run of a bisection removes the dump of the run before it, and nothing else.
    refused(at, &["bisect", "--inject", "a", "--dump", "fifo", "--", "true"], "is not a regular file");
    assert!(fs::symlink_metadata(at.join("fifo")).is_ok(), "removed");
}

#[test]
fn a_writer_of_a_fifo_says_that_it_waits_for_a_reader() {
    let (folder, dump) = prepared();
    let at = folder.path();
    assert!(Command::new("mkfifo").arg(at.join("fifo")).status().expect("runs").success());
    stdout_of(at, &["ci", "serial.log", "--baseline", "known.toml", "--write-baseline"]);
    for arguments in [
        &["import", "serial.log", "-o", "fifo"][..],
        &["export", &dump, "--to", "json", "-o", "fifo"],
        &["export", &dump, "--to", "perfetto", "-o", "fifo"],
        &["report", &dump, "-o", "fifo"],
        &["salvage", &dump, "-o", "fifo"],
        &["redact", &dump, "--keep", "kernel", "-o", "fifo"],
        &["pack", &dump, "-o", "fifo"],
        &["ci", "serial.log", "--baseline", "known.toml", "--md", "fifo"],
        &["triage", &dump, "--json-out", "fifo"],
        &["follow", "serial.log", "--once", "-o", "crashes", "--json-out", "fifo"],
    ] {
        let mut child = command(at, arguments).stdout(Stdio::null()).spawn().expect("started");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        while !said.ends_with("waiting for one\n") {
            assert!(stderr.read_line(&mut said).expect("text") > 0, "{arguments:?}: {said}");
        }
        assert!(said.ends_with("kwab: fifo: a FIFO that no program reads; waiting for one\n"), "{arguments:?}: {said}");
        let mut bytes = Vec::new();
        fs::File::open(at.join("fifo")).expect("opened").read_to_end(&mut bytes).expect("read");
        let status = child.wait().expect("waited");
        assert!(status.code().is_some_and(|code| code != 2), "{arguments:?}: {status}");
        assert!(!bytes.is_empty(), "{arguments:?}");
        if arguments[0] == "follow" {
            assert!(text(&bytes).lines().last().is_some_and(|line| line.contains("\"ended\"")), "{}", text(&bytes));
        }
    }
    // The wait ends as any other.
    let mut child = command(at, &["salvage", &dump, "-o", "fifo"]).spawn().expect("started");
    let mut said = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut said).expect("text");
    assert!(Command::new("kill").arg(child.id().to_string()).status().expect("runs").success());
    assert!(child.wait().expect("waited").code().is_none(), "{said}");
}

#[test]
fn a_dash_and_the_device_of_stdout_stream_and_nothing_is_mixed_in() {
    let (folder, dump) = prepared();
    let at = folder.path();
    let json = stdout_of(at, &["export", &dump, "--to", "json"]);
    let sound = fs::read(at.join(&dump)).expect("there");
    for stdout in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        assert_eq!(stdout_of(at, &["export", &dump, "--to", "json", "-o", stdout]), json, "{stdout}");
        let output = run(at, &["salvage", &dump, "-o", stdout]);
        assert!(output.stdout.starts_with(b"\x89") || output.stdout.starts_with(&sound[..4]), "{stdout}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
        fs::write(at.join("out.kwab"), output.stdout).expect("written");
        assert_eq!(run(at, &["check", "out.kwab"]).status.code(), Some(0), "{stdout}");
        let output = run(at, &["import", "serial.log", "-o", stdout]);
        fs::write(at.join("out.kwab"), output.stdout).expect("written");
        assert_eq!(run(at, &["check", "out.kwab"]).status.code(), Some(0), "{stdout}");
    }
    refused(at, &["import", "--json", "serial.log", "-o", "-"], "would both go to stdout");
}

#[test]
fn an_existing_target_is_refused_before_a_byte_is_read() {
    let folder = folder();
    fs::write(folder.path().join("old.kwab"), "old").expect("written");
    fs::write(folder.path().join("stdin.kwab"), "old").expect("written");
    for arguments in [&["import", "-", "-o", "old.kwab"][..], &["import", "-"]] {
        let mut command = command(folder.path(), arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("started");
        let mut pipe = child.stdin.take().expect("a pipe");
        // The kind of the input is looked at first: 64 KiB of it.
        let line = b"[    0.000000] a line of a log that has no end at all\n";
        (0..2000).try_for_each(|_| pipe.write_all(line)).ok();
        let started = Instant::now();
        while child.try_wait().expect("waited").is_none() {
            assert!(started.elapsed() < Duration::from_secs(60), "{arguments:?} waits for the end of the log");
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("waited");
        assert!(text(&output.stderr).contains("exists; --force"), "{}", text(&output.stderr));
        drop(pipe);
    }
    assert_eq!(names(folder.path()), ["old.kwab", "stdin.kwab"]);
}

/// Starts an import that has much to write and no end, and waits until it has read a good part.
fn endless(folder: &Path) -> (std::process::Child, std::process::ChildStdin) {
    // A shell may have started this test in the background, where SIGINT is ignored.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT,TERM").arg(assert_cmd::cargo::cargo_bin("kwab"));
    command.args(["import", "-", "-o", "x.kwab"]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdin(Stdio::piped()).spawn().expect("started");
    let mut pipe = child.stdin.take().expect("a pipe");
    let log = fs::read(log("kevlar-segv-children")).expect("the log is there");
    for _ in 0..40 {
        pipe.write_all(&log).expect("read");
    }
    (child, pipe)
}

#[test]
fn a_signal_leaves_no_temporary_file() {
    for signal in ["INT", "TERM", "KILL"] {
        let folder = folder();
        let (mut child, pipe) = endless(folder.path());
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().expect("kill runs").success());
        assert!(!child.wait().expect("waited").success());
        drop(pipe);
        assert_eq!(names(folder.path()), Vec::<String>::new(), "SIG{signal}");
    }
}

#[test]
fn a_file_size_limit_is_named_and_nothing_is_left() {
    let (folder, dump) = prepared();
    let at = folder.path();
    for arguments in [
        "import serial.log -o x.kwab".to_string(),
        format!("export {dump} --to json -o x.json"),
        format!("salvage {dump} -o x.kwab"),
    ] {
        let kwab = assert_cmd::cargo::cargo_bin("kwab");
        let script = format!("ulimit -f 4; exec '{}' {arguments}", kwab.display());
        let output = Command::new("sh").current_dir(at).args(["-c", &script]).output().expect("sh runs");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {:?} {}", output.status, text(&output.stderr));
        assert!(text(&output.stderr).contains("larger than the limit for files"), "{}", text(&output.stderr));
        assert_eq!(names(at), ["d.kwab", "serial.log"], "{arguments}");
    }
}

#[test]
fn a_new_file_has_the_permissions_that_the_umask_leaves() {
    let (folder, dump) = prepared();
    for (mask, mode) in [("022", 0o644), ("027", 0o640), ("0", 0o666)] {
        let kwab = assert_cmd::cargo::cargo_bin("kwab");
        let script = format!("umask {mask}; exec '{}' export -f {dump} --to json -o x.json", kwab.display());
        let run = || Command::new("sh").current_dir(folder.path()).args(["-c", &script]).status().expect("runs");
        let path = folder.path().join("x.json");
        let seen = || fs::metadata(&path).map(|meta| (meta.permissions().mode() & 0o777, meta.nlink())).expect("there");
        let _ = fs::remove_file(&path);
        assert!(run().success());
        assert_eq!(seen(), (mode, 1), "umask {mask}");
        // What its owner keeps private stays so.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        assert!(run().success());
        assert_eq!(seen(), (0o600, 1), "umask {mask}, replaced");
    }
}

#[test]
fn five_hundred_crashes_need_few_descriptors_and_all_get_their_files() {
    let folder = folder();
    let mut log = String::new();
    for pid in 2..=500 {
        log.push_str(&format!("SIGSEGV: invalid address 0x10 (pid={pid}, ip=0x40116c)\n"));
        log.push_str(&format!(
            "DBG {{\"type\":\"signal\",\"pid\":{pid},\"signal\":11,\"signal_name\":\"SIGSEGV\",\
             \"action\":\"terminate\",\"ip\":0x0}}\n"
        ));
        log.push_str(&format!("DBG {{\"type\":\"process_exit\",\"pid\":{pid},\"status\":1,\"by_signal\":false}}\n"));
    }
    fs::write(folder.path().join("many.log"), log).expect("written");
    let kwab = assert_cmd::cargo::cargo_bin("kwab");
    let script = format!("ulimit -n 128; exec '{}' import many.log -o out/", kwab.display());
    let output = Command::new("sh").current_dir(folder.path()).args(["-c", &script]).output().expect("sh runs");
    let made = text(&output.stdout).lines().count();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!((names(&folder.path().join("out")).len(), made), (made, made));
    assert!(made > 128, "{made} dumps");
    for name in ["out/many-1.kwab", "out/many-70.kwab"] {
        assert_eq!(run(folder.path(), &["check", name]).status.code(), Some(0), "{name}");
    }
}

#[test]
fn manual_pages_go_through_the_same_door() {
    let folder = folder();
    let at = folder.path();
    fs::create_dir(at.join("man")).expect("made");
    fs::write(at.join("man/kwab-list.1"), "old").expect("written");
    refused(at, &["man", "-o", "man"], "kwab-list.1: exists");
    assert_eq!(names(&at.join("man")), ["kwab-list.1"]);
    let output = run(at, &["man", "-o", "man", "--force"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(at.join("man/kwab-list.1")).expect("there");
    assert!(page.contains(".TH kwab-list"), "{page}");
    assert!(at.join("man/kwab.1").exists() && at.join("man/kwab-import.1").exists());
}
