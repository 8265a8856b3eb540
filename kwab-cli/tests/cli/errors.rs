//! Whatever is wrong with the input or the output, it is one clear line, status 2, and no half-written file.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::common::{folder, imported, kwab, log, run, text};

/// Runs and expects one line on stderr that holds `telling`.
fn refused(folder: &Path, arguments: &[&str], telling: &str) {
    let output = run(folder, arguments);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("kwab: ") && stderr.contains(telling), "{arguments:?}: {stderr}");
}

#[test]
fn files_of_the_wrong_kind_are_named_and_told_what_they_are() {
    let folder = folder();
    let at = folder.path();
    std::fs::create_dir(at.join("dir")).expect("made");
    std::fs::write(at.join("empty.kwab"), b"").expect("written");
    std::fs::write(at.join("empty.log"), b"").expect("written");
    std::fs::write(at.join("text.kwab"), b"this is a log, not a dump\n").expect("written");
    std::fs::write(at.join("image.kwab"), [0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0].repeat(8))
        .expect("written");
    let dump = imported(at, "kevlar-pipe-profile");
    for command in ["inspect", "check"] {
        refused(at, &[command, "dir"], "dir: is a directory");
        refused(at, &[command, "empty.kwab"], "empty.kwab: is empty: 0 bytes");
        refused(at, &[command, "text.kwab"], "is text, not a dump; kwab import");
        refused(at, &[command, "image.kwab"], "is an ELF image, not a dump; --symbols takes it");
        refused(at, &[command, "absent.kwab"], "absent.kwab: no such file");
    }
    refused(at, &["export", "text.kwab", "--to", "json"], "is text");
    refused(at, &["cat", "text.kwab", "log"], "is text");
    refused(at, &["salvage", "text.kwab", "-o", "good.kwab"], "is text");
    refused(at, &["import", "dir"], "dir: is a directory");
    refused(at, &["import", "empty.log"], "empty.log: is empty: 0 bytes");
    refused(at, &["import", "absent.log"], "absent.log: no such file");
    refused(at, &["import", &dump], "is a kwab dump already, not a log; kwab inspect shows it");
    refused(at, &["cat", &dump, "nonsense"], "section nonsense does not exist; the dump holds");
    refused(at, &["export", &dump, "--to", "json", "--section", "nonsense"], "unknown kind of section nonsense");
    assert!(!at.join("good.kwab").exists());
}

#[test]
fn a_file_without_read_permission_is_refused_clearly() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("secret.kwab");
    std::fs::write(&path, b"x").expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).expect("set");
    if std::fs::File::open(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    refused(folder.path(), &["inspect", "secret.kwab"], "secret.kwab: permission denied");
}

#[test]
fn nothing_is_overwritten_without_force_and_the_old_file_stays() {
    let folder = folder();
    let at = folder.path();
    std::fs::copy(log("kevlar-pipe-profile"), at.join("serial.log")).expect("copied");
    std::fs::write(at.join("serial.kwab"), b"precious").expect("written");
    refused(at, &["import", "serial.log"], "serial.kwab: exists; --force overwrites it");
    assert_eq!(std::fs::read(at.join("serial.kwab")).expect("there"), b"precious");
    assert!(run(at, &["import", "serial.log", "--force"]).status.success());
    refused(at, &["export", "serial.kwab", "--to", "json", "-o", "serial.log"], "serial.log: exists");
    let left: Vec<_> = std::fs::read_dir(at).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_full_disk_is_one_line_and_leaves_nothing_behind() {
    let folder = folder();
    let dump = imported(folder.path(), "linux-6.1-sysrq-panic");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else {
        eprintln!("skipped: no /dev/full here");
        return;
    };
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("kwab"));
    let output = command.current_dir(folder.path()).args(["export", &dump, "--to", "json"]).stdout(Stdio::from(full));
    let output = output.stderr(Stdio::piped()).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "kwab: stdout: no space left on the device; nothing was kept\n");
}

#[test]
fn a_folder_that_is_not_there_is_named_before_anything_is_read() {
    let folder = folder();
    std::fs::copy(log("kevlar-pipe-profile"), folder.path().join("serial.log")).expect("copied");
    refused(folder.path(), &["import", "serial.log", "-o", "nowhere/x.kwab"], "there is no directory nowhere");
    assert!(run(folder.path(), &["import", "serial.log", "-o", "made/"]).status.success());
    assert!(folder.path().join("made/serial.kwab").exists());
}

#[test]
fn a_log_comes_from_stdin_and_a_dump_too() {
    let folder = folder();
    let bytes = std::fs::read(log("kevlar-segv-children")).expect("the log is there");
    let output = kwab(folder.path()).args(["import", "-", "-o", "x.kwab"]).write_stdin(bytes).output().expect("runs");
    assert_eq!(text(&output.stdout), "x.kwab\n");
    let dump = std::fs::read(folder.path().join("x.kwab")).expect("written");
    let output = kwab(folder.path()).args(["inspect", "-"]).write_stdin(dump).output().expect("runs");
    assert!(text(&output.stdout).contains("SIGSEGV"), "{}", text(&output.stderr));
    let output = kwab(folder.path()).args(["import", "-"]).write_stdin("").output().expect("runs");
    assert_eq!(
        text(&output.stderr),
        "kwab: stdin: is empty: 0 bytes; nothing was written to it (is the guest's console connected?)\n"
    );
    let _ = std::io::stdout().flush();
}

#[test]
fn a_stream_is_read_up_to_the_limit_for_memory_and_devices_are_no_images() {
    let folder = folder();
    let at = folder.path();
    let dump = imported(at, "kevlar-panic-socket");
    for command in ["check", "triage", "inspect"] {
        // Without the limit it would be read until the machine has no memory.
        let zeros = std::fs::File::open("/dev/zero").expect("opened");
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kwab"))
            .args([command, "--max-mem", "64M", "-"])
            .stdin(zeros)
            .output()
            .expect("runs");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {stderr}");
        assert!(stderr.contains("a stream of more than") && stderr.contains("--max-mem"), "{command}: {stderr}");
    }
    for option in ["--symbols", "--backing"] {
        let command = if option == "--symbols" { "inspect" } else { "verify-pages" };
        refused(at, &[command, &dump, option, "/dev/zero"], "is neither a file nor a directory");
    }
    refused(at, &["import", "kevlar-panic-socket.log", "-f", "--dialects", "/dev/zero"], "is longer than 16 MiB");
    let pack = ["pack", &dump, "-o", "pack.zip", "--symbols", "/dev/zero"];
    refused(at, &pack, "is neither a file nor a directory");
}

#[test]
fn a_device_without_an_end_is_no_dump_for_any_command() {
    let folder = folder();
    let at = folder.path();
    let dump = imported(at, "kevlar-panic-socket");
    let commands: [&[&str]; 9] = [
        &["inspect", "/dev/zero"],
        &["triage", "/dev/zero"],
        &["check", "/dev/zero"],
        &["export", "/dev/zero", "--to", "json"],
        &["salvage", "/dev/zero", "-o", "good.kwab"],
        &["redact", "/dev/zero", "-o", "shared.kwab", "--keep", "kernel"],
        &["report", "/dev/zero", "-o", "page.html"],
        &["diff", &dump, "/dev/zero"],
        &["oracle", &dump, "/dev/zero"],
    ];
    for command in commands {
        refused(at, command, "a device that gives more than 16.8 MB");
    }
    // The null device has an end, and typing too.
    refused(at, &["inspect", "/dev/null"], "is empty");
}

#[test]
fn counts_of_a_log_that_overflow_in_a_sum_are_no_panic() {
    let folder = folder();
    let at = folder.path();
    let event = |seq: u32| {
        format!(
            "DBG {{\"type\":\"page_verify_ok\",\"seq\":{seq},\"cpu\":0,\"ns\":1,\"pid\":1,\"verified\":{}}}\n",
            u64::MAX
        )
    };
    std::fs::write(at.join("sum.log"), event(1) + &event(2)).expect("written");
    let output = run(at, &["verify-pages", "sum.log"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    assert!(stdout.contains("18,446,744,073,709,551,615 pages compared by the kernel"), "{stdout}");
}

#[test]
fn an_archive_that_unpacks_to_too_much_is_refused_and_not_read_in_part() {
    let folder = folder();
    let at = folder.path();
    let dump = imported(at, "kevlar-panic-socket");
    let file = std::fs::File::create(at.join("bomb.cpio.gz")).expect("made");
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    for _ in 0..100 {
        gzip.write_all(&vec![0; 1 << 20]).expect("written");
    }
    gzip.finish().expect("written");
    refused(at, &["verify-pages", &dump, "--backing", "bomb.cpio.gz"], "unpacks to more than");
}
