//! `cargo xtask events`: the event lines of our kernel, everything switched on, two processors, read back by `kwab
//! import`.
//!
//! A BusyBox script forks, pipes, crashes a program and switches categories at run time. The importer must understand
//! every line, count as many events of each type as a plain search of the log finds, and find the numbers without a
//! gap. The log stays in `build/events/serial.log`.
//!
//! Then two boots of a program that makes thousands of unknown calls and crashes hundreds of times: what is on without
//! being asked for, and what is left out of the console, is counted to the last line.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::binary;
use crate::boot;
use crate::kernel::Which;
use crate::process::Call;
use crate::qemu::{self, Ending, Limits, run::Next};
use crate::setup::{self, Consent, Tool};
use crate::{guest, image, paths};

/// What the guest runs. Switching everything off makes the kernel write its profiles and traces.
const SCRIPT: &str = "\
cat /proc/sys/kernel/debug; \
for word in pear apple; do echo $word; done | sort | head -n 1; \
trap 'echo caught' USR1; kill -USR1 $$; \
/bin/crasher & /bin/true & wait; \
echo nonsense >/proc/sys/kernel/debug 2>/dev/null || echo refused; \
echo none >/proc/sys/kernel/debug; cat /proc/sys/kernel/debug; \
echo process,audit >/proc/sys/kernel/debug; /bin/true; cat /proc/sys/kernel/debug";

/// Lines that the script prints, in this order.
const PRINTED: &[&str] = &["apple", "caught", "refused", "none", "audit,process"];

/// Types of which the run must have some.
const EXPECTED: &[&str] = &[
    "canary_check",
    "crash_report",
    "exec_prefault",
    "htrace",
    "htrace_summary",
    "page_fault",
    "page_faults",
    "page_verify_ok",
    "process_exec",
    "process_exit",
    "process_fork",
    "signal",
    "signal_stack_write",
    "span_profile",
    "syscall_entry",
    "syscall_exit",
    "syscall_profile",
    "user_fault",
    "usercopy",
    "vm_audit",
];

/// Types that say something went wrong.
const FORBIDDEN: &[&str] = &["dropped", "page_verify_fail", "panic"];

/// Runs the command.
pub fn run(consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let kwab = binary::kwab()?;
    let arguments = boot::Options::once(Which::Ours, &["sh", "-c", SCRIPT]).debugging("all").processors(2);
    let outcome = qemu::run(&boot::machine(&arguments, consent)?, Limits::seconds(240), |_| Next::Go)?;
    let log = paths::build("events")?.join("serial.log");
    paths::write(&log, &outcome.serial)?;
    ensure!(
        outcome.ending == Ending::Exited(0),
        "the script ended with {:?}; see {}",
        outcome.ending,
        paths::shown(&log)
    );
    let text = String::from_utf8_lossy(&outcome.serial);
    check_output(&text)?;
    let found = search(&text);
    let report = Call::new(kwab)
        .args(["import", "--dry-run", "--strict", "--json"])
        .args([log.as_os_str()])
        .capture()
        .context("kwab does not account for every line")?;
    let report: Value = serde_json::from_str(&report.stdout)?;
    compare(&found, &report)?;
    let events = check_numbers(&text)?;
    for name in EXPECTED {
        ensure!(found.contains_key(*name), "no {name} among {events} events");
    }
    for name in FORBIDDEN {
        ensure!(!found.contains_key(*name), "{} {name}", found[*name]);
    }
    for (name, count) in &found {
        println!("{name:<20} {count:>7}");
    }
    println!("{events} events of {} types, all accounted for", found.len());
    verify_maps_nothing(consent)?;
    clamour(None, 0, consent)?;
    clamour(Some("unimplemented"), CALLS, consent)?;
    Ok(ExitCode::SUCCESS)
}

/// A program that `debug=verify` looks at has as many pages of its file mapped as without it. The first run brings its
/// pages into memory.
fn verify_maps_nothing(consent: Consent) -> Result<()> {
    let script = "echo 0 >/proc/sys/vm/prefault; for kind in none none verify; do \
        echo $kind >/proc/sys/kernel/debug; grep RssFile /proc/self/status; done";
    let arguments = boot::Options::once(Which::Ours, &["sh", "-c", script]);
    let outcome = qemu::run(&boot::machine(&arguments, consent)?, Limits::seconds(120), |_| Next::Go)?;
    let text = String::from_utf8_lossy(&outcome.serial);
    let mapped: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("RssFile:")).collect();
    let [_, without, verified] = mapped[..] else { bail!("three counts expected:\n{text}") };
    ensure!(without == verified, "verify mapped pages: {without} without it, {verified} with it");
    ensure!(search(&text).contains_key("page_verify_ok"), "nothing was verified:\n{text}");
    println!("verify maps nothing: {} in both", verified.trim());
    Ok(())
}

/// What `clamour` does: unknown calls, and crashes.
const CALLS: u64 = 5000;
const CRASHES: u64 = 200;

/// Runs `clamour` under these categories: of each kind of line some are written and the others are counted, and there
/// are lines about unknown calls only if they were asked for.
fn clamour(categories: Option<&str>, calls: u64, consent: Consent) -> Result<()> {
    let words = ["/bin/clamour".to_owned(), CALLS.to_string(), CRASHES.to_string()];
    let mut image = image::base(consent)?;
    image.program("/bin/clamour", &guest::program("clamour", consent)?)?;
    boot::put_command(&mut image, &words);
    let file = paths::build("images")?.join("events.cpio");
    paths::write(&file, &image.archive())?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut arguments = boot::Options::once(Which::Ours, &words).from_initramfs(file);
    if let Some(list) = categories {
        arguments = arguments.debugging(list);
    }
    let outcome = qemu::run(&boot::machine(&arguments, consent)?, Limits::seconds(120), |_| Next::Go)?;
    let text = String::from_utf8_lossy(&outcome.serial);
    ensure!(text.contains("clamour is over"), "clamour ended with {:?}:\n{text}", outcome.ending);
    for (kind, made) in [("unimplemented_syscall", calls), ("crash_report", CRASHES)] {
        let (written, left_out) = (search(&text).get(kind).copied().unwrap_or(0), left_out(&text, kind)?);
        ensure!(written + left_out == made, "{made} {kind}: {written} written, {left_out} said to be left out");
        ensure!(made == 0 || (written > 0 && left_out > written), "{written} of {made} {kind} were written");
        println!("{kind:<24} {made:>5} made, {written:>3} written");
    }
    Ok(())
}

/// How many events of a kind the kernel says it left out.
fn left_out(text: &str, kind: &str) -> Result<u64> {
    let mut sum = 0;
    for line in text.lines() {
        let Some(at) = line.find("DBG {\"type\":\"suppressed\"") else { continue };
        let event: Value = serde_json::from_str(line[at + 4..].trim_end())?;
        if event["of"].as_str() == Some(kind) {
            sum += event["count"].as_u64().context("a suppressed event without a count")?;
        }
    }
    Ok(sum)
}

/// The lines of the script, between events, in their order.
fn check_output(text: &str) -> Result<()> {
    let mut lines = text.lines().map(str::trim_end);
    for wanted in PRINTED {
        ensure!(lines.any(|line| line == *wanted), "the script did not print `{wanted}` in the expected order");
    }
    Ok(())
}

const START: &str = "DBG {\"type\":\"";

/// Events by type, by nothing but their first letters.
fn search(text: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (at, _) in text.match_indices(START) {
        let name = text[at + START.len()..].split('"').next().unwrap_or("");
        *found.entry(name.to_owned()).or_insert(0) += 1;
    }
    found
}

fn compare(found: &BTreeMap<String, u64>, report: &Value) -> Result<()> {
    let counted = report["events_by_type"].as_object().context("the report has no events by type")?;
    for (name, count) in found {
        let known = counted.get(name).and_then(Value::as_u64).unwrap_or(0);
        ensure!(known == *count, "{count} {name} in the log, {known} in kwab's report");
    }
    let lost = &report["not_understood"]["count"];
    ensure!(lost.as_u64() == Some(0), "{lost} pieces were not understood");
    Ok(())
}

/// Every event is strict JSON with processor and time, and no number is missing or there twice.
fn check_numbers(text: &str) -> Result<usize> {
    let mut numbers = Vec::new();
    for line in text.lines() {
        let Some(at) = line.find(START) else { continue };
        let event: Value =
            serde_json::from_str(line[at + 4..].trim_end()).with_context(|| format!("not JSON: {line}"))?;
        ensure!(event["cpu"].is_u64() && event["ns"].is_u64(), "no processor or time: {line}");
        numbers.push(event["seq"].as_u64().with_context(|| format!("no number: {line}"))?);
    }
    numbers.sort_unstable();
    let first_gap = numbers.iter().enumerate().find(|(index, number)| **number != *index as u64);
    ensure!(first_gap.is_none(), "the sequence numbers have a gap or a repetition at (index, number) {first_gap:?}");
    Ok(numbers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glued_events_are_counted_and_a_missing_number_is_noticed() {
        let text =
            "x DBG {\"type\":\"a\",\"seq\":0,\"cpu\":0,\"ns\":1}\nDBG {\"type\":\"a\",\"seq\":2,\"cpu\":1,\"ns\":2}\n";
        assert_eq!(search(text), BTreeMap::from([("a".to_owned(), 2)]));
        assert!(check_numbers(text).is_err());
        assert_eq!(check_numbers(&text.replace("\"seq\":2", "\"seq\":1")).expect("whole"), 2);
    }
}
