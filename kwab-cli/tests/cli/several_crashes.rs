//! Logs with several boots and crashes: one dump each, every event in exactly one of them.

use crate::common::{folder, kwab, log, run, stdout_of, text};
use serde_json::Value;

/// Two boots: two programs die in the first, the kernel in the second; a quiet third boot follows.
fn busy_log() -> String {
    let mut log = String::from("SeaBIOS (version 1)\nBooting Kevlar...\n");
    for (pid, program) in [(7, "/bin/grep"), (9, "/bin/sh")] {
        log += &format!("DBG {{\"type\":\"process_fork\",\"parent_pid\":1,\"child_pid\":{pid}}}\n");
        log += &format!("DBG {{\"type\":\"process_exec\",\"pid\":{pid},\"argv0\":\"{program}\",\"entry\":0x401000}}\n");
        log += &format!(
            "DBG {{\"type\":\"signal\",\"pid\":{pid},\"signal\":11,\"signal_name\":\"SIGSEGV\",\
             \"action\":\"terminate\",\"ip\":0x401234}}\n"
        );
        log += &format!("DBG {{\"type\":\"process_exit\",\"pid\":{pid},\"status\":139,\"by_signal\":true}}\n");
        log += "DBG {\"type\":\"syscall_exit\",\"pid\":1,\"name\":\"wait4\",\"nr\":61,\"result\":7}\n";
    }
    log += "SeaBIOS (version 1)\nBooting Kevlar...\n";
    log += "[PANIC] CPU=1 at mm/frame.rs:12\n\
        DBG {\"type\":\"panic\",\"message\":\"double free of frame 0x1234\",\"backtrace\":[]}\n";
    log += "SeaBIOS (version 1)\nBooting Kevlar...\nDBG {\"type\":\"process_fork\",\"parent_pid\":1,\"child_pid\":2}\n";
    log
}

#[test]
fn every_crash_has_its_dump_and_the_quiet_boot_goes_with_the_last() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("serial.log"), busy_log()).expect("written");
    let output = run(at, &["import", "serial.log", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let dumps = report["dumps"].as_array().expect("a list");
    let told: Vec<_> = dumps
        .iter()
        .map(|dump| {
            format!(
                "{} {} {}",
                dump["boot"],
                dump["kind"].as_str().unwrap_or("?"),
                dump["subject"].as_str().unwrap_or("?")
            )
        })
        .collect();
    assert_eq!(told, ["1 process /bin/grep[7]", "1 process /bin/sh[9]", "2 panic mm/frame.rs:12"]);
    let events: u64 = dumps.iter().filter_map(|dump| dump["events"].as_u64()).sum();
    assert_eq!(Some(events), report["events"].as_u64());
    assert_eq!(report["boots"], 3);
    for (number, program) in
        [(1, "/bin/grep[7] died of SIGSEGV"), (2, "/bin/sh[9] died of SIGSEGV"), (3, "double free")]
    {
        let page = stdout_of(at, &["inspect", &format!("serial-{number}.kwab")]);
        assert!(page.lines().take(3).any(|line| line.contains(program)), "{page}");
    }
    let list = stdout_of(at, &["list", "."]);
    assert!(list.contains("serial-1.kwab") && list.contains("double free"), "{list}");
}

#[test]
fn one_file_for_several_crashes_is_refused_with_the_remedy() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("serial.log"), busy_log()).expect("written");
    let output = run(at, &["import", "serial.log", "-o", "one.kwab"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("holds 3 crashes and -o names one file; use -o DIR/ or --crash N"), "{stderr}");
    assert!(!at.join("one.kwab").exists());
    assert_eq!(stdout_of(at, &["import", "serial.log", "-o", "one.kwab", "--crash", "3"]), "one.kwab\n");
    assert!(stdout_of(at, &["inspect", "one.kwab"]).contains("double free"));
    let output = run(at, &["import", "serial.log", "--crash", "4"]);
    assert!(
        text(&output.stderr).contains("crash 4 does not exist; the log holds 3 crashes"),
        "{}",
        text(&output.stderr)
    );
    let output = run(at, &["import", "serial.log", "--dry-run"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(std::fs::read_dir(at).expect("a folder").count(), 2, "a dry run writes nothing");
}

#[test]
fn the_same_log_gives_the_same_bytes_again() {
    let folder = folder();
    let at = folder.path();
    std::fs::copy(log("kevlar-panic-socket"), at.join("serial.log")).expect("copied");
    stdout_of(at, &["import", "serial.log"]);
    let first = std::fs::read(at.join("serial.kwab")).expect("written");
    stdout_of(at, &["import", "serial.log", "--force"]);
    assert_eq!(std::fs::read(at.join("serial.kwab")).expect("written"), first);
}

#[test]
fn a_loss_is_counted_located_kept_and_under_strict_status_3() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("serial.log"), "hello\nDBG {\"type\":\"signal\",\"pid\":1,\"sig\nbye\n").expect("written");
    let output = run(at, &["import", "serial.log", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lost = &report["not_understood"];
    assert_eq!(
        (lost["count"].as_u64(), lost["first"][0]["line"].as_u64(), lost["first"][0]["offset"].as_u64()),
        (Some(1), Some(2), Some(6))
    );
    let kept = run(at, &["cat", "serial.kwab", "kept"]);
    assert_eq!(text(&kept.stdout), "DBG {\"type\":\"signal\",\"pid\":1,\"sig\n");
    let output = run(at, &["import", "serial.log", "--strict", "--force"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(at.join("serial.kwab").exists(), "strictness tells, it does not take away");
}

/// A dump as a kernel of this workspace prints it on a shared console.
fn armoured_dump() -> String {
    use kwab::format::armour::ArmourSink;
    use kwab::format::record::{Cause, CauseKind, Identity};
    use kwab::format::{BootId, DumpId, FileHeader, SectionKind, Writer};
    let mut lines = String::new();
    let mut buffer = [0; 4096];
    let id = DumpId(0x1234_5678_9abc_def0);
    let sink = ArmourSink::new(id, |line: &[u8]| {
        lines.push_str(&String::from_utf8_lossy(line));
        true
    });
    let mut writer = Writer::new(sink, &mut buffer, FileHeader::new(id, BootId([0; 16])));
    writer.begin(SectionKind::IDENTITY).expect("begun");
    writer.put(&Identity { kernel_name: Some(b"testkernel"), ..Identity::default() }).expect("put");
    writer.begin(SectionKind::CAUSE).expect("begun");
    let message = Some(&b"the frame allocator met itself"[..]);
    let kind = Some(CauseKind::PANIC);
    writer.put(&Cause { kind, message, in_kernel: Some(true), ..Cause::default() }).expect("put");
    writer.finish().1.expect("finished");
    lines
}

#[test]
fn a_dump_printed_in_armour_becomes_the_dump_with_the_log_around_it() {
    let folder = folder();
    let at = folder.path();
    let armour = armoured_dump();
    let mut log =
        String::from("Booting Testkernel...\nDBG {\"type\":\"process_fork\",\"parent_pid\":1,\"child_pid\":2}\n");
    // Other output between the lines, one of them twice.
    for line in armour.lines() {
        log += &format!("noise {line}\n{line}\nDBG {{\"type\":\"process_fork\",\"parent_pid\":1,\"child_pid\":3}}\n");
    }
    std::fs::write(at.join("serial.log"), &log).expect("written");
    stdout_of(at, &["import", "serial.log", "--strict"]);
    let page = stdout_of(at, &["inspect", "serial.kwab"]);
    assert!(page.contains("kernel panic: the frame allocator met itself") && page.contains("testkernel"), "{page}");
    assert!(page.contains("fork: child 3"), "{page}");
    // Without its second half the rest still stands, and the page says what is lacking.
    let half: String = log.lines().take(log.lines().count() / 2).map(|line| format!("{line}\n")).collect();
    std::fs::write(at.join("half.log"), half).expect("written");
    stdout_of(at, &["import", "half.log"]);
    let half = run(at, &["inspect", "half.kwab"]);
    assert_eq!(half.status.code(), Some(3));
    let page = text(&half.stdout);
    assert!(page.contains("damaged: in the dump the kernel printed"), "{page}");
}

#[test]
fn a_go_program_that_dies_before_the_kernel_does_is_not_the_crash() {
    let folder = folder();
    let program = "panic: assignment to entry in nil map\n\ngoroutine 1 [running]:\n\
                   main.fill(0xc000010000)\n\t/src/demo/main.go:12 +0x1d\nmain.main()\n\t/src/demo/main.go:5 +0x20\n";
    let kernel = "[   12.5] BUG: kernel NULL pointer dereference, address: 0000000000000018\n\
                  [   12.5] #PF: supervisor read access in kernel mode\n\
                  [   12.5] CPU: 1 PID: 77 Comm: demo Not tainted 6.1.0 #1\n\
                  [   12.5] RIP: 0010:demo_read+0x1c/0x40 [demo]\n\
                  [   12.5] Call Trace:\n[   12.5]  vfs_read+0x9f/0x1a0\n[   12.5] ---[ end trace 0 ]---\n";
    std::fs::write(folder.path().join("both.log"), format!("{program}service exited\n{kernel}")).expect("written");
    std::fs::write(folder.path().join("program.log"), format!("[    1.0] service starts\n{program}")).expect("written");
    let judged = text(&kwab(folder.path()).args(["both.log"]).output().expect("runs").stdout).to_string();
    assert!(judged.contains("demo_read") && !judged.contains("nil map"), "{judged}");
    let out = kwab(folder.path()).args(["import", "program.log", "-o", "p.kwab"]).output().expect("runs");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(stdout_of(folder.path(), &["inspect", "p.kwab"]).contains("no crash in this recording"));
}

#[test]
fn a_go_program_that_dies_while_the_kernel_reports_takes_nothing_from_the_report() {
    let folder = folder();
    let mixed = "panic: assignment to entry in nil map\n\ngoroutine 1 [running]:\n\
                 main.fill(0xc000010000)\n\t/src/demo/main.go:12 +0x1d\n\
                 [   12.500000][   T77] BUG: kernel NULL pointer dereference, address: 0000000000000018\n\
                 [   12.500001][   T77] #PF: supervisor read access in kernel mode\n\
                 [   12.500002][   T77] CPU: 1 PID: 77 Comm: demo Not tainted 6.1.0 #1\n\
                 [   12.500003][   T77] RIP: 0010:demo_read+0x1c/0x40 [demo]\n\
                 [   12.500004][   T77] Call Trace:\n[   12.500005][   T77]  vfs_read+0x9f/0x1a0\n\
                 [   12.500006][   T77] ---[ end trace 0000000000000000 ]---\n";
    let tail = "[   13.0][   T1] systemd: quiet\n".repeat(200);
    std::fs::write(folder.path().join("mixed.log"), format!("{mixed}{tail}")).expect("written");
    let judged = text(&kwab(folder.path()).args(["mixed.log"]).output().expect("runs").stdout).to_string();
    assert!(judged.contains("demo_read") && !judged.contains("nil map"), "{judged}");
}
