//! Lines of a Linux report that say whose stack comes next, and lockdep's lines, which name tasks, locks and stacks.

use super::super::build::{Builder, ReportedTask, Took};
use super::super::class::Class;
use super::super::frame;
use super::super::function::{is_of_rcu, is_skipped};
use super::super::report::{LogPosition, StackKind};
use super::super::words::{after, dec, dec_after, has, task, text};

/// Reads such a line.
pub fn learn(builder: &mut Builder, line: &[u8], position: LogPosition) -> Took {
    if trace_head(line) {
        builder.trace();
        // `Call Trace: [<ffffffff81000010>] foo+0x1c/0x40 [<…`: the frames stand on the same line.
        let rest = memchr::memchr(b':', line).map_or(&b""[..], |colon| line[colon + 1..].trim_ascii());
        if rest.starts_with(b"[") || has(rest, b"+0x") {
            frame::frames(rest, true).into_iter().for_each(|frame| builder.frame(frame, position));
        }
        return Took::Yes;
    }
    if matches!(
        line,
        b"<TASK>"
            | b"</TASK>"
            | b"<IRQ>"
            | b"</IRQ>"
            | b"<NMI>"
            | b"</NMI>"
            | b"<#DF>"
            | b"<EOI>"
            | b"<SOFTIRQ>"
            | b"</SOFTIRQ>"
            | b"<UNK>"
    ) {
        return Took::Yes;
    }
    if titled(builder, line, position) || others(builder, line) || lockdep(builder, line, position) {
        return Took::Yes;
    }
    Took::No
}

fn trace_head(line: &[u8]) -> bool {
    let heads: [&[u8]; 9] = [
        b"Call Trace:",
        b"Call trace:",
        b"Call Trace (",
        b"Backtrace:",
        b"Stack backtrace",
        b"Trace:",
        b"backtrace:",
        b"backtrace (crc",
        b"Call Backtrace:",
    ];
    heads.iter().any(|head| line.starts_with(head)) && !has(line, b"[<c")
}

/// Titles of the stacks of sanitizers and of the slab allocator.
fn titled(builder: &mut Builder, line: &[u8], position: LogPosition) -> bool {
    const TITLES: &[(&[u8], StackKind)] = &[
        (b"Allocated by", StackKind::Allocated),
        (b"allocated by", StackKind::Allocated),
        (b"Allocated:", StackKind::Allocated),
        (b"Allocated in ", StackKind::Allocated),
        (b"INFO: Allocated in ", StackKind::Allocated),
        (b"Freed by", StackKind::Freed),
        (b"freed by", StackKind::Freed),
        (b"Freed:", StackKind::Freed),
        (b"Freed in ", StackKind::Freed),
        (b"INFO: Freed in ", StackKind::Freed),
        (b"Last potentially related work creation:", StackKind::Origin),
        (b"Second to last potentially related work creation:", StackKind::Origin),
        (b"Last call_rcu", StackKind::Origin),
        (b"Second to last call_rcu", StackKind::Origin),
        (b"Last creation of this", StackKind::Origin),
        (b"Uninit was created at:", StackKind::Origin),
        (b"Uninit was stored to memory at:", StackKind::Origin),
        (b"Local variable ", StackKind::Origin),
        (b"page last allocated via", StackKind::Allocated),
        (b"page_owner", StackKind::Allocated),
        (b"page last free", StackKind::Freed),
        (b"page allocated via", StackKind::Allocated),
        (b"stack backtrace:", StackKind::Crash),
        (b"Hardirqs last enabled", StackKind::Lock),
        (b"Preemption disabled at:", StackKind::Lock),
        (b"value changed:", StackKind::OtherAccess),
    ];
    let Some((_, kind)) = TITLES.iter().find(|(head, _)| line.starts_with(head)) else { return false };
    if *kind == StackKind::Origin && line.starts_with(b"Local variable ") && !has(line, b"created at") {
        return false;
    }
    if line.starts_with(b"value changed") {
        return false;
    }
    if line.starts_with(b"stack backtrace:") {
        // What stands above the stack of the failure is the chain of a report that lost its first lines.
        builder.report.stacks.iter_mut().filter(|stack| stack.kind == StackKind::Crash).for_each(|stack| {
            stack.kind = StackKind::Lock;
        });
    }
    let title = text(line);
    builder.begin(*kind, Some(title));
    // Older kernels print the function behind the words.
    if let Some(place) = line.strip_prefix(b"Preemption disabled at:").filter(|place| !place.is_empty()) {
        frame::frames(place, true).into_iter().for_each(|frame| builder.frame(frame, position));
    }
    // `Allocated in foo+0x1/0x2 age=1 cpu=0 pid=12`: the first frame stands in the title.
    if line.starts_with(b"Allocated by task ") || line.starts_with(b"Freed by task ") {
        let pid = dec_after(line, b"by task ");
        builder.other = builder.other.take().filter(|_| builder.report.class.is_stall());
        let _ = pid;
    }
    true
}

/// Stacks of other processors and tasks: NMI backtraces, task lists, RCU's lists of stalled processors.
fn others(builder: &mut Builder, line: &[u8]) -> bool {
    let cpu = [
        &b"NMI backtrace for cpu "[..],
        b"Backtrace for cpu ",
        b"Task dump for CPU ",
        b"Stack dump where RCU GP kthread",
        b"CPU backtrace for cpu ",
        b"Stopping CPU",
    ]
    .iter()
    .find_map(|head| line.strip_prefix(*head));
    if let Some(rest) = cpu {
        builder.in_stack = false;
        let number = dec(rest.trim_ascii_start()).and_then(|(cpu, _)| u32::try_from(cpu).ok());
        if has(line, b" skipped: ") {
            return true;
        }
        if builder.report.class == Class::RcuStall && !builder.has_stack() {
            builder.report.cpu = builder.report.cpu.or(number);
        }
        let own = number.is_some() && number == builder.report.cpu;
        builder.other = if own { None } else { Some(ReportedTask { cpu: number, pid: None, comm: None }) };
        let kind = match own {
            true if builder.report.stacks.iter().any(|stack| stack.kind == StackKind::Crash) => StackKind::Repeated,
            true => StackKind::Crash,
            false => StackKind::OtherCpu,
        };
        builder.begin(kind, Some(text(line)));
        builder.in_stack = false;
        return true;
    }
    if let Some(found) = task_state(line) {
        builder.in_stack = false;
        let hung = builder.report.class == Class::HungTask && !builder.has_stack();
        let stall = builder.report.class == Class::RcuStall;
        let stalled =
            stall && !builder.has_stack() && builder.report.pid.is_none() && !is_of_rcu(found.comm.as_deref());
        if hung || stalled {
            builder.report.pid = builder.report.pid.or(found.pid);
            builder.report.comm = builder.report.comm.take().or(found.comm);
        } else if builder.other.as_ref().is_none_or(|other| other.pid.is_some() || other.cpu.is_none()) {
            builder.other = Some(found);
            builder.begin(StackKind::OtherTask, Some(text(line)));
            builder.in_stack = false;
        } else if let Some(other) = &mut builder.other {
            (other.pid, other.comm) = (found.pid, found.comm);
        }
        return true;
    }
    if builder.report.class == Class::RcuStall {
        return rcu(builder, line);
    }
    line.starts_with(b"Sending NMI from CPU ")
        || line.starts_with(b"sending NMI to")
        || line.starts_with(b"INFO: lockdep is turned off")
}

/// `1-...!: (2 ticks this GP) idle=…`, `(detected by 0, t=…)`, `Tasks blocked on level-0 …`.
fn rcu(builder: &mut Builder, line: &[u8]) -> bool {
    if let Some((cpu, rest)) = dec(line) {
        let dashed = rest.starts_with(b"-") || rest.starts_with(b":");
        if dashed && (has(rest, b" GP") || has(rest, b"ticks") || has(rest, b"idle=")) {
            builder.report.cpu = builder.report.cpu.or(u32::try_from(cpu).ok());
            return true;
        }
    }
    let marks: [&[u8]; 10] = [
        b"(detected by",
        b"(t=",
        b"Tasks blocked on",
        b"Possible timer",
        b"rcu_",
        b"kthread starved",
        b"blocking rcu_node",
        b"Unless ",
        b"RCU grace-period",
        b"Stack dump",
    ];
    if let Some(cpu) = dec_after(line, b"(detected by ").filter(|_| builder.value("detector").is_none()) {
        builder.say("detector", cpu.to_string());
    }
    let fits = marks.iter().any(|mark| line.starts_with(mark)) || has(line, b"kthread starved for");
    if fits && line.starts_with(b"rcu_") && has(line, b"starved for") {
        builder.note(text(line));
    }
    fits
}

/// `task:init state:D stack:0 pid:1 ppid:0`, `init            D28016  7553   7513 0x00000004`.
fn task_state(line: &[u8]) -> Option<ReportedTask> {
    if let Some(rest) = line.strip_prefix(b"task:") {
        let at = super::super::words::find(rest, b" state:")?;
        return Some(ReportedTask {
            cpu: None,
            pid: dec_after(rest, b" pid:"),
            comm: Some(text(rest[..at].trim_ascii())),
        });
    }
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let name = words.next()?;
    let state = words.next()?;
    let letter = matches!(state.first(), Some(b'D' | b'S' | b'R' | b'T' | b'Z' | b'I'));
    if !letter || !state[1..].iter().all(u8::is_ascii_digit) || line.len() > 120 {
        return None;
    }
    let numbers: Vec<u64> =
        words.clone().filter_map(|word| dec(word).filter(|(_, rest)| rest.is_empty()).map(|found| found.0)).collect();
    let flags = words.clone().next_back().is_some_and(|word| word.starts_with(b"0x"));
    let at = numbers.len().checked_sub(2)?;
    flags.then(|| ReportedTask {
        cpu: None,
        pid: numbers.get(at).and_then(|pid| u32::try_from(*pid).ok()),
        comm: Some(text(name)),
    })
}

/// Words that the function below looks for.
const SECTIONS: &[&[u8]] = &[
    b"-> #",
    b"INITIAL USE",
    b"IN-",
    b"HARDIRQ-",
    b"SOFTIRQ-",
    b"... key",
    b"... acquired at:",
    b"the shortest dependencies",
    b"the dependencies between",
];

/// Words that the function below looks for.
const WORDS_OF_LINES: &[&[u8]] = &[
    b"but task is already holding",
    b"but there are no more locks",
    b"which lock already depends",
    b"other info that might",
    b"the existing dependency",
    b"Possible unsafe locking",
    b"Possible interrupt unsafe",
    b"*** DEADLOCK",
    b"May be due to",
    b"CPU0",
    b"----",
    b"lock(",
    b"<Interrupt>",
    b"the code is fine",
    b"you didn't initialize",
    b"turning off the locking",
    b"and this task is already holding",
    b"which would create",
    b"but this lock",
    b"to a ",
    b"and interrupts could",
    b"Chain exists of",
    b"lock_class_key",
    b"Showing all locks",
    b"other info",
    b"rcu_scheduler_active",
    b"context-{",
    b"hardirqs ",
    b"softirqs ",
    b"irq event",
    b"suspicious rcu",
    b"no locks held",
    b"Possible",
];

/// Reads the chains and the lists of locks that lockdep prints.
fn lockdep(builder: &mut Builder, line: &[u8], position: LogPosition) -> bool {
    let class = builder.report.class;
    if line.ends_with(b", at:") {
        // The function stands on the next line, where the line was wrapped.
        builder.wants_lock = true;
        return true;
    }
    if std::mem::take(&mut builder.wants_lock) {
        let found = frame::frames(line, true).into_iter().next();
        lock_taken(builder, found.and_then(|frame| frame.symbol));
        return true;
    }
    // Behind `(&lock){+.+.}-{3:3},`, where the line was wrapped.
    let wrapped = line.strip_prefix(b"at: ").map(|_| 0);
    if let Some(at) = super::super::words::find(line, b", at: ").map(|at| at + 2).or(wrapped) {
        // `ffff8880 (&lock){+.+.}-{3:3}, at: foo+0x1/0x2`: the first one is where the failure is.
        let found = frame::frames(&line[at + 4..], true).into_iter().next().filter(|frame| !frame.inline);
        lock_taken(builder, found.and_then(|frame| frame.symbol));
        return true;
    }
    if has(line, b" at:")
        && (has(line, b"trying to release lock") || has(line, b"takes:") || has(line, b"is exiting with locks"))
    {
        who(builder, line);
        builder.begin(StackKind::Lock, Some(text(line)));
        builder.say("release", "1");
        return true;
    }
    if line.ends_with(b"state was registered at:")
        || line.ends_with(b" at:") && class == Class::Deadlock
        || SECTIONS.iter().any(|mark| line.starts_with(mark)) && line.ends_with(b":")
    {
        builder.begin(StackKind::Lock, Some(text(line)));
        return true;
    }
    let acts = [
        &b" is trying to acquire"[..],
        b" takes:",
        b" just changed the state",
        b" is trying to release",
        b" is trying to contend",
        b" is freeing memory",
        b" is leaving the kernel",
        b" held by ",
        b" is returning",
    ];
    if acts.iter().any(|act| has(line, act)) && line.len() < 200 {
        who(builder, line);
        return true;
    }
    if WORDS_OF_LINES.iter().any(|mark| line.starts_with(mark)) && (class.is_warning() || class.is_stall()) {
        if line.starts_with(b"but task is already") || line.starts_with(b"and this task") {
            builder.say("held", "1");
        }
        if line.starts_with(b"suspicious rcu") || has(line, b"suspicious rcu_") {
            builder.note(text(line));
        }
        return true;
    }
    if has(line, b"suspicious rcu_") && class == Class::RcuUsage {
        let first = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        if let Some(source) = super::super::words::source(first) {
            builder.report.source.get_or_insert(source);
        }
        return true;
    }
    // The line behind `is trying to release lock (…) at:` is where it happened.
    if builder.value("release") == Some("1") && builder.head_function.is_none() {
        let found = frame::frames(line, true).into_iter().next();
        name_function(builder, found.and_then(|frame| frame.symbol));
        let _ = position;
        return builder.head_function.is_some();
    }
    class == Class::Deadlock && has(line, b"){") && has(line, b"ops: ")
}

/// A lock was taken in that function: the one that is wanted, or one that is held already, which is told when the first
/// was taken by a function that only serves others.
fn lock_taken(builder: &mut Builder, symbol: Option<String>) {
    if builder.value("held").is_none() {
        name_function(builder, symbol);
    } else if let Some(symbol) = symbol.filter(|name| !is_skipped(name)) {
        builder.say("holder", symbol);
    }
}

/// The failure is where the lock was taken, unless that function belongs to the locks themselves.
fn name_function(builder: &mut Builder, symbol: Option<String>) {
    let fits = matches!(builder.report.class, Class::Deadlock | Class::LockState | Class::LockUse);
    if let Some(symbol) = symbol.filter(|name| fits && builder.head_function.is_none() && !is_skipped(name)) {
        builder.head_function = Some(symbol);
    }
}

/// `syz.0.17/6515 is trying to acquire lock:`, `swapper/0/0 [HC1[1]:SC0[0]:HE0:SE1] takes:`.
fn who(builder: &mut Builder, line: &[u8]) {
    if let Some(rest) = after(line, b" held by ") {
        let _ = rest;
        return;
    }
    let end = [&b" ["[..], b" is ", b" takes", b" just "]
        .iter()
        .filter_map(|mark| super::super::words::find(line, mark))
        .min();
    let Some((comm, pid)) = end.and_then(|end| task(&line[..end], b'/')) else { return };
    if builder.report.pid.is_none() {
        builder.report.pid = Some(pid);
        builder.report.comm.get_or_insert(comm);
    }
}
