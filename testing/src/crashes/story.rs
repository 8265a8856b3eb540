//! Compares the model of a run's serial log with the models of the dumps of the same run.
//!
//! A program dies of a fault, then the kernel, with memory to dump to and events on the console. The log is imported
//! alone, as if there were nothing else. Every fact of its model must be in the dump's with the same value: message,
//! location, registers, backtrace, mappings, system calls, processes. A serial line carries no stack, page table, task
//! or lock; those the dump alone must have.

use std::collections::BTreeMap;
use std::io::Cursor;

use anyhow::{Context as _, Result, ensure};
use kwab::model::{Case, Dump, Located};

use kwab::import::{Options, PendingFile, import};
use kwab_format::record::{Arch, Cause, FlightKind, RegisterRole, SyscallRecord};

use super::{dumps_in, fresh_memory, guest};
use crate::paths;
use crate::qemu::{self, Limits, run::Next};
use crate::setup::Consent;

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoryComparison {
    /// Facts that both tell, and that agree.
    pub facts: usize,
    /// System calls among them.
    pub calls: usize,
}

/// A fact's name and value, in words.
type Facts = BTreeMap<String, String>;

/// A program dies, then the kernel.
const SCRIPT: &str = "/bin/crasher; echo c fault >/proc/sysrq-trigger; sleep 3600";

/// Runs the comparison.
pub fn compare(cpus: u32, consent: Consent) -> Result<StoryComparison> {
    let file = fresh_memory("story")?;
    let mut machine = guest(SCRIPT, cpus, consent)?;
    machine.append.push_str(" debug=syscall,process,signal,fault,panic");
    machine.keep_dumps_in(&file)?;
    let outcome = qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    let log = paths::build("crashes")?.join("story.log");
    paths::write(&log, &outcome.serial)?;
    let told = opened(&of_log(&outcome.serial)?)?;
    let dumped = opened(&dumps_in(&file)?)?;
    let about = || format!("{} against {}", paths::shown(&log), paths::shown(&file));
    ensure!(dumped.len() == 2, "{} dumps in the memory", dumped.len());
    let mut compared = StoryComparison::default();
    for in_kernel in [false, true] {
        let one = |dumps: &[Dump]| dumps.iter().position(|dump| died_in_kernel(&dump.case()) == Some(in_kernel));
        let whose = if in_kernel { "the kernel" } else { "the program" };
        let (told_at, dumped_at) = (one(&told), one(&dumped));
        let told = &told[told_at.with_context(|| format!("the log reports no death of {whose}"))?];
        let dumped = &dumped[dumped_at.with_context(|| format!("no dump of {whose}"))?];
        same_story(&told.case(), &dumped.case(), in_kernel, &mut compared)
            .with_context(|| format!("the death of {whose}"))
            .with_context(about)?;
    }
    Ok(compared)
}

fn of_log(serial: &[u8]) -> Result<Vec<Vec<u8>>> {
    let options = Options { source: "console".into(), folder: Some(paths::build("crashes")?) };
    let (_, dumps) = import(Cursor::new(serial), &options, &mut |_| {})?;
    let files = dumps.into_iter().filter_map(|dump| dump.file);
    let bytes = |mut file: PendingFile| {
        let mut bytes = Vec::new();
        file.copy_to(&mut bytes).context("cannot read a dump just written")?;
        Ok(bytes)
    };
    files.map(bytes).collect()
}

fn opened(dumps: &[Vec<u8>]) -> Result<Vec<Dump>> {
    dumps.iter().map(|bytes| Dump::from_bytes(bytes.clone()).context("not a dump")).collect()
}

/// Whether the kernel itself died rather than a program; `None` if the case has no death.
fn died_in_kernel(case: &Case<'_>) -> Option<bool> {
    let cause = case.causes.first()?;
    Some(cause.signal.is_none())
}

fn same_story(told: &Case<'_>, dumped: &Case<'_>, in_kernel: bool, compared: &mut StoryComparison) -> Result<()> {
    let (says, has) = (facts(told), facts(dumped));
    for (name, value) in &says {
        let other =
            has.get(name).with_context(|| format!("the log says {name} = {value}, the dump does not record it"))?;
        ensure!(value == other, "{name}: the log says {value}, the dump {other}");
        compared.facts += 1;
    }
    let wanted: &[&str] = if in_kernel {
        &["message", "register rip", "register r15", "frame 0", "frame 1", "fault address"]
    } else {
        &["signal", "pid", "register rip", "register r15", "fault address"]
    };
    for name in wanted {
        ensure!(says.contains_key(*name), "the log says no {name}, the dump {:?}", has.get(*name));
    }
    let mappings = |facts: &Facts| facts.keys().filter(|name| name.starts_with("mapping ")).count();
    ensure!(in_kernel || mappings(&says) == mappings(&has), "mappings: {} and {}", mappings(&says), mappings(&has));
    let pid = dumped.causes.first().and_then(|cause| cause.pid).context("the dump does not name the dead process")?;
    compared.calls += same_calls(told, dumped, pid)?;
    same_processes(told, dumped)?;
    let more = [
        ("stacks", dumped.stacks.len() + dumped.memory.len()),
        ("page-table entries", dumped.ptes.len()),
        ("tasks", dumped.tasks.len()),
        ("images", dumped.images.len()),
        ("counters", dumped.counters.len()),
    ];
    for (what, count) in more {
        ensure!(count > 0, "the dump has no {what}, which no serial line could carry");
    }
    Ok(())
}

/// What a model says of the death itself.
fn facts(case: &Case<'_>) -> Facts {
    let mut facts = Facts::new();
    if let Some(cause) = case.causes.first() {
        of_cause(&mut facts, cause);
    }
    let fault = case.registers.iter().find(|set| set.role == Some(RegisterRole::FAULT)).or(case.registers.first());
    let reported = case.crash_reports.iter().filter_map(|report| report.regs.as_ref()).take(1);
    let regs = fault.iter().filter_map(|set| set.regs.as_ref()).chain(reported);
    for reg in regs.flat_map(kwab_format::List::iter) {
        if let (Some(name), Some(value)) = (reg.id.and_then(|id| id.name_on(Arch::X86_64)), reg.value) {
            facts.insert(format!("register {name}"), format!("{value:#x}"));
        }
    }
    for frame in case.frames.iter().filter(|frame| frame.trace == Some(0)) {
        if let (Some(index), Some(addr)) = (frame.index, frame.addr) {
            facts.insert(format!("frame {index}"), format!("{addr:#x}"));
        }
    }
    for vma in &case.vmas {
        let (start, end, prot) = (vma.start.unwrap_or(0), vma.end.unwrap_or(0), vma.prot);
        facts.insert(format!("mapping {start:#x}"), format!("to {end:#x}, rights {prot:?}"));
    }
    facts
}

fn of_cause(facts: &mut Facts, cause: &Cause<'_>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value);
        }
    };
    fact("message", cause.message.filter(|_| cause.signal.is_none()).map(text));
    fact("file", cause.file.map(text));
    fact("line", cause.source_line.map(|line| line.to_string()));
    fact("pid", cause.pid.map(|pid| pid.to_string()));
    fact("signal", cause.signal.map(|signal| signal.to_string()));
    fact("fault address", cause.fault_addr.map(|addr| format!("{addr:#x}")));
    fact("ip", cause.ip.map(|ip| format!("{ip:#x}")));
    fact("cpu", cause.stamp.cpu.map(|cpu| cpu.to_string()));
}

/// Number and result of each call that was over, oldest first.
type Calls = Vec<(i64, i64)>;

/// The end of the dump's ring is the end of what the log says of a process's calls; the log was cut at an earlier
/// death. While calls are watched, each has a slot in the ring.
fn same_calls(told: &Case<'_>, dumped: &Case<'_>, pid: u32) -> Result<usize> {
    let over = |call: &Located<SyscallRecord<'_>>| call.nr.zip(call.result).filter(|_| call.pid == Some(pid));
    let ring: Calls = dumped.syscalls.iter().filter_map(over).collect();
    let exits = told.exits.iter().filter(|exit| exit.pid == Some(pid));
    let log: Calls = exits.filter_map(|exit| exit.nr.zip(exit.result)).collect();
    let both = ring.len().min(log.len());
    ensure!(both >= LEAST_CALLS, "{} calls in the log, {} in the dump", log.len(), ring.len());
    let (ring, log) = (&ring[ring.len() - both..], &log[log.len() - both..]);
    let differs = ring.iter().zip(log).position(|(ours, theirs)| ours != theirs);
    ensure!(differs.is_none(), "call {differs:?} of {both}: the log ends with {log:?}, the dump with {ring:?}");
    Ok(both)
}

/// Fewer calls than this prove nothing.
const LEAST_CALLS: usize = 10;

/// Every fork and exit that the flight recorder still knows is in the log.
fn same_processes(told: &Case<'_>, dumped: &Case<'_>) -> Result<()> {
    let mut known = 0;
    for event in &dumped.flight {
        let (a, b) = (event.a, event.b);
        let found = match event.kind {
            Some(FlightKind::FORK) => {
                told.forks.iter().any(|fork| fork.parent_pid.map(u64::from) == a && fork.child_pid.map(u64::from) == b)
            }
            Some(FlightKind::EXEC) => told.execs.iter().any(|exec| exec.pid == event.pid && exec.entry == a),
            _ => continue,
        };
        ensure!(found, "the dump has {event:?}, the log does not");
        known += 1;
    }
    ensure!(known > 0, "the flight recorder names no process");
    Ok(())
}
