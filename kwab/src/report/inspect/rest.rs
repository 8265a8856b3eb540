//! Everything around the death: kernel and boot, remarks, profiles, tasks, the log, and what the dump lacks.

use std::collections::BTreeSet;

use kwab_format::record::{
    Arch, Counter, Frame, Memory, Note, NoteKind, PageFaults, Reason, SpanProfile, StackBounds, SyscallProfile, Task,
    TaskState, TextKind,
};
use kwab_format::{AnyRecord, Records, SectionKind};

use super::{Completeness, Fact, Gap, Profile, ProfileRow, Remark, Report, TaskRow, text};
use crate::model::Dump;
use crate::units::memory;

/// Kernel, boot and log.
pub(super) fn meta(dump: &Dump) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.push(Fact { name: name.to_string(), value });
        }
    };
    let identity = dump.identity().unwrap_or_default();
    let version = identity.kernel_version.map(text);
    let kernel = match (identity.kernel_name.map(text), version) {
        (Some(name), Some(version)) => Some(format!("{name} {version}")),
        (name, version) => name.or(version),
    };
    fact("kernel", kernel);
    fact("build-id", identity.kernel_build_id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()));
    fact("arch", identity.arch.and_then(Arch::name).map(str::to_string));
    fact("cpus", identity.cpus.map(|cpus| cpus.to_string()));
    fact("memory", identity.ram_bytes.map(|bytes| format!("{} MiB", bytes >> 20)));
    fact("captured", captured(dump));
    fact("load offset", identity.kernel_offset.map(super::address));
    fact("clock", identity.tsc_hz.map(|hz| format!("{} MHz", hz / 1_000_000)));
    fact("machine", identity.hardware.map(text));
    fact("command line", identity.command_line.map(text));
    fact("debug", identity.debug.map(text));
    fact("reason", identity.reason.and_then(Reason::name).map(str::to_string));
    fact("boot", identity.boot_number.map(|number| number.to_string()));
    fact("written by", identity.producer.map(text));
    if let Some(source) = dump.source() {
        let (start, end) = (source.start.unwrap_or(0), source.end.unwrap_or(0));
        let first = source.stamp.line.unwrap_or(1);
        let lines = source.lines.unwrap_or(0);
        let range = format!("lines {first}-{}, bytes {start}-{end}", first.saturating_add(lines.saturating_sub(1)));
        fact("made from", source.name.map(|name| format!("{}, {range}", text(name))));
    }
    facts
}

/// The level of memory that the kernel wrote, how much that is, and what of it is missing.
fn captured(dump: &Dump) -> Option<String> {
    /// Of each group a kernel writes a counter per tier, of which it has four.
    const MOST: usize = 64;
    let of_group = |wanted: &'static [u8]| {
        dump.records::<Counter<'_>>().filter(move |counter| counter.group == Some(wanted)).take(MOST)
    };
    let level = of_group(b"dump level").find_map(|counter| counter.name.map(text))?;
    let value = |counter: &Counter<'_>| counter.value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
    let sum = |group| of_group(group).fold(0u64, |sum, counter| sum.saturating_add(value(&counter)));
    let (stored, zeros) = (sum(b"memory stored"), sum(b"memory of zeros"));
    let mut told = format!("level {level}: {} of memory", memory(stored.saturating_add(zeros)));
    if zeros > 0 {
        told.push_str(&format!(", {} of it zeros", memory(zeros)));
    }
    for wanted in of_group(b"memory wanted") {
        let of_tier = |group| {
            of_group(group)
                .filter(|counter| counter.name == wanted.name)
                .fold(0u64, |sum, counter| sum.saturating_add(value(&counter)))
        };
        let missing =
            value(&wanted).saturating_sub(of_tier(b"memory stored")).saturating_sub(of_tier(b"memory of zeros"));
        if missing > 0 {
            told.push_str(&format!("; {} of {} left out", memory(missing), wanted.name.map(text).unwrap_or_default()));
        }
    }
    Some(told)
}

/// Remarks of the writer or importer.
pub(super) fn remarks(dump: &Dump) -> Vec<Remark> {
    let notes = dump.records::<Note<'_>>().filter_map(|note| {
        let kind = note.kind.and_then(NoteKind::name).unwrap_or("remark").to_string();
        Some(Remark { kind, text: text(note.text?), line: note.stamp.line })
    });
    notes.take(256).collect()
}

/// Rows of a profile that are sorted; a kernel has some hundred calls and spans.
const MOST_ROWS: usize = 1 << 12;

/// Profiles, the most expensive rows first, and counters.
pub(super) fn profiles(dump: &Dump) -> Vec<Profile> {
    let mut profiles = Vec::new();
    if let Some(profile) = dump.records::<SyscallProfile<'_>>().last() {
        let rows = profile.entries.iter().flat_map(kwab_format::List::iter).take(MOST_ROWS).map(|entry| ProfileRow {
            name: entry.name.map_or_else(|| entry.nr.unwrap_or(-1).to_string(), text),
            calls: entry.calls.unwrap_or(0),
            total_ns: entry.total_ns.unwrap_or(0),
            avg_ns: entry.avg_ns.unwrap_or(0),
            min_ns: entry.min_ns,
            max_ns: entry.max_ns,
        });
        profiles.push(Profile { title: "system calls".to_string(), rows: sorted(rows.collect()) });
    }
    if let Some(profile) = dump.records::<SpanProfile<'_>>().last() {
        let rows = profile.entries.iter().flat_map(kwab_format::List::iter).take(MOST_ROWS).map(|entry| ProfileRow {
            name: entry.name.map_or_else(|| entry.id.unwrap_or(0).to_string(), text),
            calls: entry.calls.unwrap_or(0),
            total_ns: entry.total_ns.unwrap_or(0),
            avg_ns: entry.avg_ns.unwrap_or(0),
            min_ns: entry.min_ns,
            max_ns: entry.max_ns,
        });
        profiles.push(Profile { title: "spans".to_string(), rows: sorted(rows.collect()) });
    }
    if let Some(faults) = dump.records::<PageFaults<'_>>().last() {
        let row = ProfileRow {
            name: "page fault".to_string(),
            calls: faults.count.unwrap_or(0),
            total_ns: faults.total_ns.unwrap_or(0),
            avg_ns: faults.avg_ns.unwrap_or(0),
            min_ns: None,
            max_ns: None,
        };
        profiles.push(Profile { title: "page faults".to_string(), rows: vec![row] });
    }
    profiles
}

fn sorted(mut rows: Vec<ProfileRow>) -> Vec<ProfileRow> {
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

/// Tasks with their innermost frames.
pub(super) fn tasks(dump: &Dump) -> Vec<TaskRow> {
    let mut rows: Vec<TaskRow> = Vec::new();
    for record in dump.section_records(SectionKind::TASKS) {
        match record {
            AnyRecord::Task(task) => rows.push(task_row(&task)),
            AnyRecord::Frame(frame) => {
                if let Some(row) = rows.last_mut().filter(|row| row.pid == frame.pid) {
                    add_frame(row, &frame);
                }
            }
            _ => {}
        }
    }
    rows
}

fn task_row(task: &Task<'_>) -> TaskRow {
    let state = task.state.and_then(TaskState::name).map(str::to_string);
    TaskRow {
        pid: task.pid,
        ppid: task.ppid,
        comm: task.comm.map(text).unwrap_or_default(),
        state: state.or_else(|| task.state_text.map(text)).unwrap_or_default(),
        place: [task.wait_reason, task.wait_object_name].into_iter().flatten().map(text).collect::<Vec<_>>().join(": "),
    }
}

/// Scheduler frames tell nothing about where a task waits.
fn add_frame(row: &mut TaskRow, frame: &Frame<'_>) {
    let Some(symbol) = frame.symbol.map(text) else { return };
    let scheduler = symbol.starts_with("__schedule") || symbol == "schedule" || symbol.starts_with("context_switch");
    let scanned = frame.trust == Some(kwab_format::record::FrameTrust::SCAN);
    let shown = row.place.split(" < ").filter(|part| !part.is_empty()).count();
    // What a thread waits in may be told before its stack.
    let told = row.place == symbol;
    if !scheduler && !scanned && !told && shown < 3 {
        if !row.place.is_empty() {
            row.place.push_str(" < ");
        }
        row.place.push_str(&symbol);
    }
}

/// Whether a captured piece of a stack ends where the stack does: a short stack that is there as a whole.
fn reaches_the_top(dump: &Dump) -> bool {
    let ends = |memory: Memory<'_>| Some(memory.vaddr?.wrapping_add(memory.bytes?.len() as u64));
    let captured: BTreeSet<u64> = dump.records::<Memory<'_>>().take(1024).filter_map(ends).collect();
    dump.records::<StackBounds<'_>>().take(1024).any(|stack| stack.high.is_some_and(|high| captured.contains(&high)))
}

/// What is missing or damaged, and what that weakens.
pub(super) fn completeness(dump: &Dump, report: &Report) -> Completeness {
    let mut missing = Vec::new();
    let mut gap = |there: bool, what: &str, weakens: &str| {
        if !there {
            missing.push(Gap { what: what.to_string(), weakens: weakens.to_string() });
        }
    };
    if let Some(cause) = &report.cause {
        gap(!report.registers.is_empty(), "registers", "the state at the fault is known only by its message");
        gap(!report.backtraces.is_empty(), "backtrace", "the caller is unknown");
        if cause.victim == "kernel" {
            let stack =
                report.memory.iter().filter(|memory| memory.label.contains("stack")).map(|memory| memory.length);
            let weakens = "the backtrace cannot be checked or extended";
            match stack.max() {
                None => gap(false, "stack bytes", weakens),
                Some(bytes) => {
                    let whole = bytes >= 512 || reaches_the_top(dump);
                    gap(whole, &format!("stack beyond {bytes} bytes"), weakens);
                }
            }
        } else {
            gap(!report.vmas.is_empty(), "memory map", "the mapping of the faulting address is unknown");
        }
        gap(!report.events.is_empty() || !report.log.is_empty(), "history", "the events before the crash are unknown");
        let ns = |name: &[u8]| {
            dump.records::<Counter<'_>>().find(|counter| counter.name == Some(name)).and_then(|c| c.value)
        };
        let shared = ns(b"context_events").unwrap_or(0);
        if shared > 0 {
            let what = format!("events before the last {shared}: they are in the dump of the previous crash");
            gap(false, &what, "older history of this boot");
        }
    }
    let file = &dump.file;
    let mut defects: Vec<String> = file.defects.iter().map(ToString::to_string).collect();
    if !file.ended && !defects.iter().any(|defect| defect.contains("end")) {
        defects.push("there is no end section: the dump is cut".to_string());
    }
    defects.extend(report.remarks.iter().filter(|remark| remark.kind == "defect").map(|remark| remark.text.clone()));
    let kept = dump.loaded.iter().filter(|section| section.kind == SectionKind::KEPT);
    let kept = kept.flat_map(|section| Records::new(&section.payload)).filter_map(|record| record.decode().ok());
    let kept =
        kept.filter(|record| matches!(record, AnyRecord::Text(text) if text.kind != Some(TextKind::LOG_DUMP))).count();
    let (sections, verified) = (file.sections.len(), file.verified());
    let mut completeness = Completeness { complete: false, sections, verified, defects, missing, kept };
    completeness.judge();
    completeness
}
