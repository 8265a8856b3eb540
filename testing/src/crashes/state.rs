//! Tests what a dump says of threads that do not run: for what they wait, until when, and where they were switched out.

use anyhow::{Context as _, Result, bail, ensure};
use kwab::model::Dump;
use kwab_format::record::{MemoryKind, RegId, RegisterRole};

use super::{dumps_in, fresh_memory, guest};
use crate::qemu::{self, Limits, run::Next};
use crate::setup::Consent;

/// One thread waits for bytes of a pipe that has a writer, another for an hour to pass.
const SCRIPT: &str = "mkfifo /fifo; cat /fifo & exec 9>/fifo; sleep 3600 & sleep 1; echo c >/proc/sysrq-trigger";
/// What the sleeper has left at least, in nanoseconds.
const LEFT: u64 = 3_000_000_000_000;

/// Lets the kernel die while two threads sleep; answers how many threads have saved registers.
pub fn sleepers(cpus: u32, consent: Consent) -> Result<usize> {
    let file = fresh_memory("sleepers")?;
    let mut machine = guest(SCRIPT, cpus, consent)?;
    machine.keep_dumps_in(&file)?;
    qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    let mut dumps = dumps_in(&file)?;
    let (Some(bytes), true) = (dumps.pop(), dumps.is_empty()) else { bail!("not one dump") };
    let dump = Dump::from_bytes(bytes)?;
    let case = dump.case();
    let now = case.identities.first().and_then(|identity| identity.mono_ns).context("the dump has no time")?;
    let reader = case.tasks.iter().find(|task| task.wait_object_name == Some(b"data in a pipe"));
    let reader = reader.context("no thread waits for data in a pipe")?;
    ensure!(reader.deadline_ns.is_none(), "a read has no timeout");
    ensure!(reader.wait_object.is_some(), "the reader's queue has no address");
    let sleeper =
        case.tasks.iter().filter(|task| task.comm == Some(b"sleep")).filter_map(|task| task.deadline_ns).max();
    let until = sleeper.context("no sleeper has a deadline")?;
    ensure!(until.saturating_sub(now) > LEFT, "the sleeper wakes at {until}, it is {now}");
    let parked: Vec<_> = case.registers.iter().filter(|set| set.role == Some(RegisterRole::SWITCHED_OUT)).collect();
    let own = parked.iter().find(|set| set.tid == reader.tid).context("the reader has no saved registers")?;
    let value = |wanted| own.regs.iter().flat_map(kwab_format::List::iter).find(|reg| reg.id == Some(wanted))?.value;
    ensure!(value(RegId::RIP) == reader.kernel_ip, "its saved instruction pointer is another than its record's");
    let sp = value(RegId::RSP).context("the reader has no saved stack pointer")?;
    let stacks =
        case.memory.iter().filter(|piece| piece.kind == Some(MemoryKind::KERNEL_STACK) && piece.tid == reader.tid);
    let bytes: usize =
        stacks.filter(|piece| piece.vaddr == Some(sp)).filter_map(|piece| piece.bytes).map(<[u8]>::len).sum();
    ensure!(bytes >= 256, "{bytes} bytes of the reader's stack");
    Ok(parked.len())
}
