//! Every command on every dump, sound and damaged: a status that says the truth, and never a panic.

use crate::common::{LOGS, folder, imported, kwab, run, stdout_of, text};
use serde_json::Value;

/// Every command with the arguments that make it work on `DUMP`.
const COMMANDS: &[&[&str]] = &[
    &["inspect", "DUMP"],
    &["inspect", "DUMP", "--json"],
    &["inspect", "DUMP", "--wide", "--rows", "1000"],
    &["inspect", "DUMP", "--section", "regs,bt,syscalls,vmas,events,log,profile,meta,tasks,trace,completeness"],
    &["export", "DUMP", "--to", "json"],
    &["export", "DUMP", "--to", "jsonl"],
    &["export", "DUMP", "--to", "csv"],
    &["check", "DUMP"],
    &["check", "DUMP", "--json"],
    &["list", "DUMP"],
    &["list", "DUMP", "--json"],
    &["cat", "DUMP", "log"],
    &["cat", "DUMP", "0", "--payload"],
];

fn with_dump<'a>(command: &[&'a str], dump: &'a str) -> Vec<&'a str> {
    command.iter().map(|word| if *word == "DUMP" { dump } else { word }).collect()
}

#[test]
fn every_command_works_on_every_real_dump() {
    for name in LOGS {
        let folder = folder();
        let dump = imported(folder.path(), name);
        for command in COMMANDS {
            let output = stdout_of(folder.path(), &with_dump(command, &dump));
            assert!(!output.is_empty(), "{name}: {command:?}");
            if command.contains(&"--json") || command.ends_with(&["json"]) {
                assert!(serde_json::from_str::<Value>(&output).is_ok(), "{name}: {command:?}");
            }
            if command.ends_with(&["jsonl"]) {
                assert!(output.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{name}");
            }
        }
    }
}

#[test]
fn no_command_panics_on_a_dump_with_a_flipped_byte_or_a_cut() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let sound = std::fs::read(folder.path().join(&dump)).expect("there");
    let mut damaged: Vec<Vec<u8>> = (0..12).map(|piece| sound[..sound.len() * piece / 12].to_vec()).collect();
    for step in 0..24 {
        let mut copy = sound.clone();
        let at = step * sound.len() / 24;
        copy[at] ^= 1 << (step % 8);
        damaged.push(copy);
    }
    let path = folder.path().join("bad.kwab");
    for bytes in damaged {
        std::fs::write(&path, &bytes).expect("written");
        for command in COMMANDS {
            let output = run(folder.path(), &with_dump(command, "bad.kwab"));
            let stderr = text(&output.stderr);
            assert!(matches!(output.status.code(), Some(0..=3)), "{command:?}: {stderr}");
            assert!(!stderr.contains("panicked"), "{command:?}: {stderr}");
        }
        let check = run(folder.path(), &["check", "bad.kwab"]);
        assert_ne!(check.status.code(), Some(0), "damage goes unnoticed in {} bytes", bytes.len());
    }
}

#[test]
fn salvage_makes_a_sound_dump_that_still_names_the_cause() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-panic-socket");
    let path = folder.path().join(&dump);
    let mut bytes = std::fs::read(&path).expect("there");
    // Somewhere in the events: the cause lies in another section.
    let at = bytes.len() * 2 / 3;
    bytes[at] ^= 0x10;
    std::fs::write(&path, &bytes).expect("written");
    let check = run(folder.path(), &["check", &dump]);
    assert_eq!(check.status.code(), Some(3));
    assert!(text(&check.stdout).contains("DAMAGED"), "{}", text(&check.stdout));
    let inspected = run(folder.path(), &["inspect", &dump]);
    assert_eq!(inspected.status.code(), Some(3));
    assert!(text(&inspected.stdout).contains("kernel page fault on CPU 0"), "{}", text(&inspected.stdout));
    let output = run(folder.path(), &["salvage", &dump, "-o", "good.kwab"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(run(folder.path(), &["check", "good.kwab"]).status.code(), Some(0));
    // The file is sound; what it tells is not the whole story.
    let salvaged = run(folder.path(), &["inspect", "good.kwab"]);
    assert_eq!(salvaged.status.code(), Some(3));
    let page = text(&salvaged.stdout);
    assert!(page.contains("kernel page fault on CPU 0") && page.contains("lost before salvage"), "{page}");
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let folder = folder();
    let dump = imported(folder.path(), "kevlar-segv-children");
    assert!(!stdout_of(folder.path(), &["inspect", &dump]).contains('\u{1b}'));
    assert!(stdout_of(folder.path(), &["--color", "always", "inspect", &dump]).contains('\u{1b}'));
    let plain = kwab(folder.path()).env("NO_COLOR", "1").args(["inspect", &dump]).output().expect("runs");
    assert!(!text(&plain.stdout).contains('\u{1b}'));
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout_of(folder.path(), &["completions", shell]);
        assert!(script.contains("salvage"), "{shell}");
        assert!(script.contains("--version") || script.contains("-l version"), "{shell}");
        assert!(!script.contains("mcp-call") && !script.contains("mcp__call"), "{shell} offers a hidden command");
    }
    assert!(stdout_of(folder.path(), &["man"]).contains(".TH kwab"));
    stdout_of(folder.path(), &["man", "-o", "man"]);
    assert!(folder.path().join("man/kwab-import.1").exists());
}

#[test]
fn a_catalogue_is_narrowed_by_the_filter_that_the_interface_has() {
    let folder = folder();
    imported(folder.path(), "kevlar-panic-socket");
    imported(folder.path(), "kevlar-segv-children");
    let listed = stdout_of(folder.path(), &["list", ".", "--filter", "cause:sigsegv pid:2 -socket"]);
    assert!(listed.contains("segv-children.kwab") && !listed.contains("panic-socket.kwab"), "{listed}");
    let refused = run(folder.path(), &["list", ".", "--filter", "pdi:2"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no field pdi here; there are file"), "{}", text(&refused.stderr));
}
