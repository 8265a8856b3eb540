//! Every captured log imports completely, and inspection names what happened in it.

use std::collections::BTreeMap;

use crate::common::{LOGS, folder, imported, log, run, stdout_of, text};
use serde_json::Value;

/// Counts events as grep would: every `DBG {"type":"…"`, also several on one line.
fn grep_counts(name: &str) -> BTreeMap<String, u64> {
    let bytes = std::fs::read(log(name)).expect("the log is there");
    let mut counts = BTreeMap::new();
    let log = text(&bytes);
    for piece in log.split("DBG {\"type\":\"").skip(1) {
        let kind = piece.split('"').next().unwrap_or_default().to_string();
        *counts.entry(kind).or_insert(0) += 1;
    }
    counts
}

#[test]
fn every_event_of_every_log_is_accounted_for_by_type() {
    for name in LOGS {
        let folder = folder();
        std::fs::copy(log(name), folder.path().join("serial.log")).expect("copied");
        let report = stdout_of(folder.path(), &["import", "--strict", "--json", "serial.log"]);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        let counted: BTreeMap<String, u64> =
            serde_json::from_value(report["events_by_type"].clone()).expect("numbers by type");
        assert_eq!(counted, grep_counts(name), "{name}");
        assert_eq!(report["not_understood"]["count"], 0, "{name}");
        // The dump itself holds them all too.
        let exported = stdout_of(folder.path(), &["export", "serial.kwab", "--to", "jsonl"]);
        let mut in_dump = BTreeMap::new();
        for line in exported.lines() {
            let record: Value = serde_json::from_str(line).expect("JSON");
            let kind = record["type"].as_str().unwrap_or_default().to_string();
            if counted.contains_key(&kind) {
                *in_dump.entry(kind).or_insert(0) += 1;
            }
        }
        assert_eq!(in_dump, counted, "{name}");
    }
}

#[test]
fn every_line_of_the_console_is_in_the_dump_as_it_stood() {
    for name in LOGS {
        let folder = folder();
        let dump = imported(folder.path(), name);
        let output = run(folder.path(), &["cat", &dump, "log"]);
        let original = std::fs::read(log(name)).expect("the log is there");
        let kept = text(&output.stdout);
        for line in text(&original).lines().filter(|line| !line.contains("DBG {") && !line.trim().is_empty()) {
            for piece in line.split("\u{1b}c").filter(|piece| !piece.trim().is_empty()) {
                assert!(kept.contains(piece.trim_end_matches('\r')), "{name}: {piece:?}");
            }
        }
    }
}

#[test]
fn an_export_can_be_imported_again_and_gives_the_same_events() {
    for name in LOGS {
        let folder = folder();
        let dump = imported(folder.path(), name);
        let first = stdout_of(folder.path(), &["export", &dump, "--to", "jsonl"]);
        let events = |export: &str| -> Vec<Value> {
            let all = export.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            let known = grep_counts(name);
            all.filter(|record| known.contains_key(record["type"].as_str().unwrap_or_default()))
                .map(|mut record| {
                    record.as_object_mut().expect("an object").remove("line");
                    record
                })
                .collect()
        };
        let again: String = events(&first).iter().map(|event| format!("DBG {event}\n")).collect();
        std::fs::write(folder.path().join("again.log"), &again).expect("written");
        if again.is_empty() {
            continue;
        }
        stdout_of(folder.path(), &["import", "--strict", "again.log"]);
        let second = stdout_of(folder.path(), &["export", "again.kwab", "--to", "jsonl"]);
        assert_eq!(events(&second), events(&first), "{name}");
    }
}

#[test]
fn the_socket_log_says_that_the_kernel_jumped_to_zero() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let page = stdout_of(folder.path(), &["inspect", &dump]);
    for telling in [
        "kernel page fault on CPU 0: page fault occurred in the kernel: rip=0",
        "platform/x64/interrupt.rs:350",
        "instruction fetch, supervisor mode",
        "core::panicking::panic_fmt+0x2b",
        "accept4(3, NULL, NULL, SOCK_NONBLOCK)",
        "unlink(0x407000) = -1 ENOENT (No such file or directory)",
    ] {
        assert!(page.contains(telling), "{telling} is not in\n{page}");
    }
}

#[test]
fn the_children_log_names_both_signals_and_the_missing_system_call() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-segv-children");
    let page = stdout_of(folder.path(), &["inspect", &dump]);
    for telling in [
        "/bin/crashme[2] died of SIGSEGV: accessed 0x10, near NULL, at ip 0x40116c",
        "unimplemented system call 9999",
        "pid 3 was ended by SIGTERM",
        "close(77) = -1 EBADF (Bad file descriptor)",
    ] {
        assert!(page.contains(telling), "{telling} is not in\n{page}");
    }
}

#[test]
fn the_linux_log_has_the_panic_with_processor_command_and_call_trace() {
    let folder = folder();
    let dump = imported(folder.path(), "linux-6.1-sysrq-panic");
    let page = stdout_of(folder.path(), &["inspect", &dump]);
    for telling in [
        "kernel panic (sysrq) on CPU 0, running init[1]: sysrq triggered crash",
        "Linux 6.1.0-56-cloud-amd64",
        "sysrq_handle_crash+0x16/0x20",
        "entry_SYSCALL_64_after_hwframe+0x6e/0xd8",
        "user code was in write(1, 0x20bab910, 2)",
        "0xffffffff",
    ] {
        assert!(telling == "0xffffffff" || page.contains(telling), "{telling} is not in\n{page}");
    }
    let tasks = stdout_of(folder.path(), &["inspect", &dump, "--section", "tasks"]);
    assert!(tasks.contains("kthreadd"), "{tasks}");
}

#[test]
fn a_log_without_a_crash_is_a_recording_and_says_so() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-pipe-profile");
    let page = stdout_of(folder.path(), &["inspect", &dump]);
    assert!(page.starts_with("no crash in this recording"), "{page}");
    assert!(page.contains("profile: system calls"), "{page}");
}

/// Words of healthy machines that stand in reports too: settings, self-tests, a journal whose programs died, prose.
const FRIGHTENING: &str = "\
[    0.000000] Linux version 6.12.0 (build@host) #1 SMP
[    0.000000] Kernel command line: panic=10 oops=panic panic_on_warn=1 kasan.fault=panic ftrace_dump_on_oops
[    0.100000] kasan: KernelAddressSanitizer initialized (generic)
[    0.200004]                      A-A deadlock:  ok  |  ok  |  ok  |  ok  |  ok  |  ok  |  ok  |
[    0.300000] FAULT_INJECTION: forcing a failure.
[    0.300001] name failslab, interval 1, probability 0, space 0, times 0
[    0.300002] CPU: 0 PID: 1 Comm: demo Not tainted 6.12.0 #1
[    0.300003] Call Trace:
[    0.300004]  dump_stack_lvl+0x10/0x20
[    0.300005]  should_fail_ex+0x10/0x20
[    0.300006]  should_failslab+0x10/0x20
[    0.500000] watchdog: Delayed init of the lockup detector failed: -19
[    0.500001] NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.
[    0.500002] hung_task: hung_task_panic set
[    0.500003] pvpanic-mmio: registered panic notifier
[    0.600000] ACPI BIOS Error (bug): Could not resolve symbol [PCI0], AE_NOT_FOUND
[    0.600003] pci 0000:00:1f.2: [Firmware Bug]: reg 0x10: invalid BAR
[    0.600008] BERT: [Hardware Error]: event severity: fatal
[    0.800000] KUnit: 12 tests: panic handler test, oops test, BUG test
[    0.800002]     ok 3 kernel_panic_not_syncing_test
[    0.900000] BUG_module: loading out-of-tree module taints kernel.
Nov 27 03:10:11 host systemd[1]: Started Kernel panic collector (kdump).
Nov 27 03:10:12 host test-runner[221]: running \"BUG: KASAN: use-after-free in demo\" against the corpus
Nov 27 03:10:12 host abrtd[33]: Looking for kernel oopses in dmesg: 0 found
Nov 27 03:10:13 host dockerd[94]: fatal error: all goroutines are asleep - deadlock!
Nov 27 03:10:13 host gnome-shell[96]: *** stack smashing detected ***: terminated
Nov 27 03:10:13 host demo[97]: thread 'main' panicked at src/main.rs:3:5:
Nov 27 03:10:13 host demo[97]: boom
Nov 27 03:10:14 host sudo: root : COMMAND=/bin/grep -r 'Oops: 0002 [#1]' /var/log
test panic_on_double_fault ... ok
[INFO] Exception 14 (#PF) gate at 0xffffffff80001000
[INFO] pagefault: lazily mapped 0x7fff0000
[OK] testing double fault stack (IST1)
";

#[test]
fn a_healthy_log_of_frightening_words_is_a_recording() {
    let folder = folder();
    // Each line alone, too: what stands behind it may be what keeps it quiet.
    let logs = FRIGHTENING.lines().map(|line| format!("{line}\n")).chain([FRIGHTENING.to_owned()]);
    for log in logs {
        std::fs::write(folder.path().join("healthy.log"), &log).expect("written");
        let output = run(folder.path(), &["import", "healthy.log", "--dry-run", "--json"]);
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(output.status.code(), Some(0), "{log}{said}");
        let kinds: Vec<_> = said["dumps"].as_array().expect("a list").iter().map(|dump| &dump["kind"]).collect();
        assert!(kinds.iter().all(|kind| **kind == "recording"), "{log}{kinds:?}");
    }
}

#[test]
fn nothing_on_a_page_is_wider_than_eighty_columns() {
    for name in LOGS {
        let folder = folder();
        let dump = imported(folder.path(), name);
        // A command that is to be copied is never cut.
        let page = stdout_of(folder.path(), &["inspect", &dump]);
        for line in page.lines().filter(|line| !line.trim_start().starts_with("next: kwab ")) {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
    }
}

#[test]
fn the_pages_of_the_real_logs_stay_as_they_were_read_and_approved() {
    for name in LOGS {
        let folder = folder();
        let dump = imported(folder.path(), name);
        let page = stdout_of(folder.path(), &["inspect", &dump]);
        let page = page.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(*name, page);
    }
}
