//! Every captured log imports completely, and inspection names what happened in it.

mod common;

use std::collections::BTreeMap;

use common::{LOGS, folder, imported, log, run, stdout_of, text};
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
