//! Tasks and what they wait for; locks, who holds them and who waits for whom.

use std::collections::{BTreeMap, BTreeSet};

use kwab::analysis::text as of_bytes;
use kwab::analysis::threads::printed_frames;
use kwab::format::record::{Frame, Lock, LockKind, LockWait, Task, TaskState};
use kwab::model::call::{Call, arguments};
use kwab::model::memory::Budget;
use kwab::model::{Case, Located};
use kwab::symbols::{Probe, Symbols, short};

use super::table::{Table, TableRow, kept};
use super::timeline::dash;
use super::{Column, Key, Link, Row, Slot, Target, number, text};
use crate::text::{Line, address, duration};
use crate::theme::Tone;

const TASKS: &[Column] = &[
    Column::number("pid", 6, 0).incidental(),
    Column::number("tid", 6, 4).incidental(),
    Column::number("parent", 6, 5).incidental(),
    Column::new("name", 16, 0),
    Column::new("state", 10, 1),
    Column::number("cpu", 3, 3).incidental(),
    Column::rest("where it waits"),
];

/// Frames that are listed of a task.
const MOST_FRAMES: usize = 64;

/// Tasks as rows, with their frames; addresses that were printed without a name have the one that an image knows.
#[must_use]
pub fn tasks(case: &Case<'_>, symbols: &Symbols, budget: &Budget) -> Table {
    let frames = printed_frames(case);
    let cause = case.causes.first();
    // Idle threads share the number 0: the processor tells which of them it was.
    let is_dead = |task: &Task<'_>| {
        cause.is_some_and(|cause| {
            let on = cause.stamp.cpu.zip(task.last_cpu);
            cause.pid.is_some() && task.pid == cause.pid && (task.pid != Some(0) || on.is_none_or(|(a, b)| a == b))
        })
    };
    let rows = case.tasks.iter().map(|task| {
        let own = frames.get(&task.at);
        let own: &[&Located<Frame<'_>>] = own.map_or(&[], |frames| &frames[..frames.len().min(MOST_FRAMES)]);
        let state = task.state.and_then(TaskState::name).map_or_else(|| of_bytes(task.state_text), str::to_string);
        let names: Vec<String> = own.iter().map(|frame| name_of(frame, symbols)).collect();
        let waits = location(task.wait_reason, &names);
        let name = of_bytes(task.comm.or(task.cmdline));
        let current = task.current == Some(true) || task.state == Some(TaskState::RUNNING);
        let tone = match task.state {
            _ if is_dead(task) => Tone::Alarm,
            Some(TaskState::BLOCKED | TaskState::ZOMBIE) => Tone::Care,
            _ if current => Tone::Good,
            _ => Tone::Plain,
        };
        let mut detail = vec![Line::of(tone, format!("{name}[{}]", dash(task.pid)))];
        let mut fact = |name: &str, value: Option<String>| detail.extend(value.map(|value| Line::field(name, value)));
        fact("command", task.cmdline.map(|line| of_bytes(Some(line))));
        fact("state", task.state_ns.map(|ns| format!("{state} for {}", duration(ns))).or(Some(state.clone())));
        fact("waits for", task.wait_reason.map(|why| of_bytes(Some(why))));
        fact("object", task.wait_object.map(address));
        fact("has run", task.run_ns.map(duration));
        fact("kernel ip", task.kernel_ip.map(address));
        fact("user ip", task.user_ip.map(address));
        fact("call", task.syscall.map(call_name));
        for (frame, name) in own.iter().zip(names) {
            let line = Line::of(Tone::Dim, format!("  #{:<3}", frame.index.unwrap_or(0)));
            let addr = frame.addr.map(address).filter(|addr| *addr != name);
            detail.push(
                line.and(Tone::Code, name).and(Tone::Dim, addr.map_or_else(String::new, |addr| format!("  {addr}"))),
            );
        }
        let cells =
            [dash(task.pid), dash(task.tid), dash(task.ppid), name.clone(), state.clone(), dash(task.last_cpu), waits];
        let keys = [task.pid, task.tid, task.ppid]
            .map(|number| number.map_or(Key::Nothing, |number| Key::Number(number.into())));
        TableRow {
            row: Row::of(tone, cells).tone(1, Tone::Dim).tone(2, Tone::Dim).tone(5, Tone::Dim),
            detail,
            links: links(task),
            target: task.pid.or(task.tid).map(Target::Task),
            at: Some(task.at),
            values: vec![
                task.pid.and_then(number),
                task.ppid.and_then(number),
                text(name.clone()),
                text(state),
                task.last_cpu.and_then(number),
            ],
            keys: keys.to_vec(),
            alike: Some(name),
            ..TableRow::default()
        }
    });
    let (rows, left_out) = kept(rows, budget);
    Table {
        slot: Slot::Tasks,
        columns: TASKS,
        fields: &["pid", "parent", "name", "state", "cpu"],
        rows,
        command: "kwab inspect DUMP --section tasks",
        when_empty: "no tasks in this dump: kernels list them when they panic, or at SysRq t".to_string(),
        summary: None,
        flame: None,
        left_out,
    }
}

/// Where one can go from a task: what it waits for, and its parent.
fn links(task: &Task<'_>) -> Vec<Link> {
    let lock = task.wait_object.map(|lock| Link::new(format!("lock {lock:#x}"), Target::Lock(lock)));
    let other = task.wait_tid.map(|tid| Link::new(format!("waits for task {tid}"), Target::Task(tid)));
    let parent = task.ppid.filter(|ppid| *ppid > 0);
    let parent = parent.map(|ppid| Link::new(format!("parent {ppid}"), Target::Task(ppid)));
    [lock, other, parent].into_iter().flatten().collect()
}

/// The function and the offset of a frame: as printed, else by its image; its address where nothing names it.
fn name_of(frame: &Frame<'_>, symbols: &Symbols) -> String {
    let printed = of_bytes(frame.symbol);
    let named = match (printed.trim(), frame.symbol_offset) {
        ("", _) => frame.addr.and_then(|addr| short(&symbols.resolve(addr, None, Probe::Return))),
        (name, Some(offset)) => Some(format!("{name}+{offset:#x}")),
        (name, None) => Some(name.to_string()),
    };
    named.or_else(|| frame.addr.map(address)).unwrap_or_else(|| "?".to_string())
}

/// The name of a system call, or its number where Linux has none.
fn call_name(nr: i64) -> String {
    let name = arguments(&Call { nr: Some(nr), ..Call::default() });
    name.split('(').next().unwrap_or_default().to_string()
}

/// The reason in the kernel's words, else the innermost functions that are not the scheduler's.
fn location(reason: Option<&[u8]>, names: &[String]) -> String {
    if let Some(reason) = reason {
        return of_bytes(Some(reason));
    }
    let functions = names.iter().map(|name| name.split_once("+0x").map_or(name.as_str(), |(function, _)| function));
    let telling = functions
        .filter(|name| !name.starts_with("0x") && !name.contains("schedule") && !name.starts_with("context_switch"));
    telling.take(3).collect::<Vec<_>>().join(" < ")
}

const LOCKS: &[Column] = &[
    Column::new("lock", 18, 5),
    Column::new("name", 18, 0),
    Column::new("kind", 10, 4),
    Column::new("who", 8, 0),
    Column::number("tid", 6, 1).incidental(),
    Column::number("cpu", 3, 3).incidental(),
    Column::number("for", 10, 2).incidental(),
    Column::rest("where"),
];

/// Locks as rows: who holds each, and below it who waits for it.
#[must_use]
pub fn locks(case: &Case<'_>, budget: &Budget) -> Table {
    // Who waits for each lock; listed below its first record only.
    let mut waits: BTreeMap<u64, Vec<&Located<LockWait<'_>>>> = BTreeMap::new();
    for wait in &case.waits {
        waits.entry(wait.addr.unwrap_or(0)).or_default().push(wait);
    }
    let held: BTreeSet<u64> = case.locks.iter().map(|lock| lock.addr.unwrap_or(0)).collect();
    let known = case.locks.iter().flat_map(|lock| {
        let addr = lock.addr.unwrap_or(0);
        let kind = lock.kind.and_then(LockKind::name).unwrap_or("lock");
        let below = waits.remove(&addr).into_iter().flatten().map(move |wait| waiting(wait, kind));
        std::iter::once(holding(lock, addr, kind)).chain(below)
    });
    let unknown = case.waits.iter().filter(|wait| !held.contains(&wait.addr.unwrap_or(0)));
    let unknown = unknown.map(|wait| waiting(wait, wait.kind.and_then(LockKind::name).unwrap_or("lock")));
    let (rows, left_out) = kept(known.chain(unknown), budget);
    Table {
        slot: Slot::Locks,
        columns: LOCKS,
        fields: &["lock", "name", "tid", "cpu", "who"],
        rows,
        command: "kwab cat DUMP locks",
        when_empty: "no lock was held or awaited, or the kernel did not record any".to_string(),
        summary: (!case.locks.is_empty())
            .then(|| Line::of(Tone::Dim, format!("{} held, {} waiting", case.locks.len(), case.waits.len()))),
        flame: None,
        left_out,
    }
}

struct Who<'a> {
    word: &'static str,
    tid: Option<u32>,
    cpu: Option<u32>,
    ns: Option<u64>,
    location: Option<&'a [u8]>,
}

fn holding(lock: &Located<Lock<'_>>, addr: u64, kind: &str) -> TableRow {
    let who = Who {
        word: "held by",
        tid: lock.holder_tid.or(lock.holder_pid),
        cpu: lock.holder_cpu,
        ns: lock.held_ns,
        location: lock.location,
    };
    let mut held = row(addr, lock.name, kind, &who);
    held.target = Some(Target::Lock(addr));
    held.at = Some(lock.at);
    if lock.irqs_off == Some(true) {
        held.detail.push(Line::of(Tone::Care, "interrupts were off while it was taken"));
    }
    held
}

fn waiting(wait: &LockWait<'_>, kind: &str) -> TableRow {
    let who = Who {
        word: "awaited",
        tid: wait.waiter_tid.or(wait.waiter_pid),
        cpu: wait.waiter_cpu,
        ns: wait.waited_ns,
        location: wait.location,
    };
    row(wait.addr.unwrap_or(0), wait.name, kind, &who)
}

fn row(addr: u64, name: Option<&[u8]>, kind: &str, who: &Who<'_>) -> TableRow {
    let held = who.word == "held by";
    let tone = if held { Tone::Head } else { Tone::Care };
    let name = of_bytes(name);
    let location = of_bytes(who.location);
    let cells = [
        address(addr),
        if held { name.clone() } else { format!("└ {name}") },
        kind.to_string(),
        who.word.to_string(),
        dash(who.tid),
        dash(who.cpu),
        who.ns.map(duration).unwrap_or_default(),
        location.clone(),
    ];
    let detail = vec![
        Line::of(tone, format!("{kind} {name} at {}", address(addr))),
        Line::field(who.word, format!("task {} on cpu {}", dash(who.tid), dash(who.cpu))),
        Line::field("for", who.ns.map(duration).unwrap_or_default()),
        Line::field("taken at", location),
    ];
    let mut links: Vec<Link> =
        who.tid.map(|tid| Link::new(format!("task {tid}"), Target::Task(tid))).into_iter().collect();
    if !held {
        links.push(Link::new("holder", Target::Lock(addr)));
    }
    let values = vec![number(addr), text(name), who.tid.and_then(number), who.cpu.and_then(number), text(who.word)];
    TableRow {
        row: Row::of(Tone::Plain, cells).tone(1, tone).tone(3, tone),
        detail,
        links,
        source: who.location.map(|location| of_bytes(Some(location))),
        values,
        ..TableRow::default()
    }
}
