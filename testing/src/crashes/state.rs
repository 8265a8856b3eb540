//! Tests what a dump says of threads that do not run: for what they wait, until when, and where they were switched out;
//! and what it still knows of the time before an hour in which nothing ran.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use kwab::model::Dump;
use kwab_format::record::{FlightKind, MemoryKind, RegId, RegisterRole};

use super::{dumps_in, fresh_memory, guest};
use crate::qemu::{self, Clock, Limits, Machine, run::Next};
use crate::setup::Consent;

/// Runs a machine that keeps its dumps in `file`; answers the one dump that it leaves.
fn only_dump(machine: &Machine, file: &Path) -> Result<Dump> {
    qemu::run(machine, Limits::seconds(120), |_| Next::Go)?;
    let mut dumps = dumps_in(file)?;
    let count = dumps.len();
    let (Some(bytes), true) = (dumps.pop(), dumps.is_empty()) else { bail!("expected one dump, found {count}") };
    Ok(Dump::from_bytes(bytes)?)
}

/// One thread waits for bytes of a pipe that has a writer, another for an hour to pass.
const SCRIPT: &str = "mkfifo /fifo; cat /fifo & exec 9>/fifo; sleep 3600 & sleep 1; echo c >/proc/sysrq-trigger";
/// What the sleeper has left at least, in nanoseconds.
const LEFT: u64 = 3_000_000_000_000;

/// Lets the kernel die while two threads sleep; answers how many threads have saved registers.
pub fn sleepers(cpus: u32, consent: Consent) -> Result<usize> {
    let file = fresh_memory("sleepers")?;
    let mut machine = guest(SCRIPT, cpus, consent)?;
    machine.keep_dumps_in(&file)?;
    let dump = only_dump(&machine, &file)?;
    let case = dump.case();
    let now = case.identities.first().and_then(|identity| identity.mono_ns).context("the dump has no time")?;
    let reader = case.tasks.iter().find(|task| task.wait_object_name == Some(b"data in a pipe"));
    let reader = reader.context("no thread waits for data in a pipe")?;
    ensure!(reader.deadline_ns.is_none(), "a read has no timeout");
    ensure!(reader.wait_object.is_some(), "the reader's queue has no address");
    let sleeper =
        case.tasks.iter().filter(|task| task.comm == Some(b"sleep")).filter_map(|task| task.deadline_ns).max();
    let until = sleeper.context("no sleeper has a deadline")?;
    ensure!(until.saturating_sub(now) > LEFT, "the sleeper's deadline is {until}, the time is {now}");
    let parked: Vec<_> = case.registers.iter().filter(|set| set.role == Some(RegisterRole::SWITCHED_OUT)).collect();
    let own = parked.iter().find(|set| set.tid == reader.tid).context("the reader has no saved registers")?;
    let value = |wanted| own.regs.iter().flat_map(kwab_format::List::iter).find(|reg| reg.id == Some(wanted))?.value;
    ensure!(value(RegId::RIP) == reader.kernel_ip, "its saved instruction pointer differs from its task record's");
    let sp = value(RegId::RSP).context("the reader has no saved stack pointer")?;
    let stacks =
        case.memory.iter().filter(|piece| piece.kind == Some(MemoryKind::KERNEL_STACK) && piece.tid == reader.tid);
    let bytes: usize =
        stacks.filter(|piece| piece.vaddr == Some(sp)).filter_map(|piece| piece.bytes).map(<[u8]>::len).sum();
    ensure!(bytes >= 256, "{bytes} bytes of the reader's stack");
    Ok(parked.len())
}

/// The machine idles for an hour; what it executed before is recorded no longer than that ago.
const IDLE: &str = "cat /proc/version; sleep 3600; echo c >/proc/sysrq-trigger";
/// An hour less than a heartbeat or two, in nanoseconds, and in heartbeats.
const HOUR: u64 = 3_590_000_000_000;
const BEATS: u64 = 3_500;

/// Lets the kernel die after an hour in which it idled; answers how many events from before the dump still has.
pub fn idle_hour(consent: Consent) -> Result<usize> {
    let file = fresh_memory("idle-hour")?;
    let mut machine = guest(IDLE, 1, consent)?;
    machine.clock = Clock::Instructions;
    machine.keep_dumps_in(&file)?;
    let dump = only_dump(&machine, &file)?;
    let case = dump.case();
    let now = case.identities.first().and_then(|identity| identity.mono_ns).context("the dump has no time")?;
    let before = |ns: Option<u64>| ns.is_some_and(|ns| now.saturating_sub(ns) > HOUR);
    let old: Vec<_> = case.flight.iter().filter(|event| before(event.stamp.ns)).collect();
    ensure!(
        old.iter().any(|event| event.kind == Some(FlightKind::EXEC)),
        "no exec event from before the idle hour: {} events",
        old.len()
    );
    let mut timers = case.flight.iter().filter(|event| event.kind == Some(FlightKind::IRQ) && event.a == Some(0));
    let repeated = timers.rfind(|event| event.b >= Some(BEATS)).context("no event counts the idle timer")?;
    let (first, last) = repeated.stamp.ns.zip(repeated.c).context("the repeats have no time")?;
    ensure!(last.saturating_sub(first) > HOUR / 2, "the repeats end {last}, they begin {first}");
    ensure!(case.flight.iter().any(|event| event.kind == Some(FlightKind::IDLE_EXIT)), "the idle loop was never left");
    Ok(old.len())
}

/// A shell asks for what is not there and then waits for ever; other programs run, and then none for an hour.
const STUCK: &str = "mkfifo /fifo; sh -c 'cd /no/such/place; read line </fifo' & sleep 1; \
                     for i in 1 2 3 4 5 6 7 8; do cat /proc/version; done; sleep 100000";
/// `ENOENT`.
const MISSING: i64 = -2;

/// Lets the stall detector end a machine that idles; answers how many processes the dump has calls of.
pub fn calls_of_sleepers(consent: Consent) -> Result<usize> {
    let file = fresh_memory("sleepers-calls")?;
    let mut machine = guest(STUCK, 1, consent)?;
    machine.clock = Clock::Instructions;
    machine.append.push_str(" stall=3600");
    machine.keep_dumps_in(&file)?;
    let dump = only_dump(&machine, &file)?;
    let case = dump.case();
    let named = |name: &'static [u8]| case.syscalls.iter().filter(move |call| call.name == Some(name));
    let refused = named(b"chdir").find(|call| call.result == Some(MISSING)).context("no call failed with ENOENT")?;
    ensure!(refused.arg0.is_some_and(|addr| addr != 0), "the failed call has no argument");
    ensure!(refused.text0 == Some(b"/no/such/place"), "the failed call has the path {:?}", refused.text0);
    let started = named(b"execve").any(|call| call.text1 == Some(b"sleep\x00100000\x00"));
    ensure!(started, "no call has the arguments of the program it started");
    let stuck = case.syscalls.iter().find(|call| call.pid == refused.pid && call.in_progress == Some(true));
    let stuck = stuck.context("the process whose call failed is in no call")?;
    ensure!(stuck.index > refused.index, "the call in progress is not the later one");
    let task = case.tasks.iter().find(|task| task.pid == refused.pid).context("the sleeper is not listed")?;
    ensure!(task.syscall == stuck.nr, "the task sleeps in {:?}, its last call is {:?}", task.syscall, stuck.nr);
    let callers: std::collections::BTreeSet<_> = case.syscalls.iter().filter_map(|call| call.pid).collect();
    Ok(callers.len())
}
