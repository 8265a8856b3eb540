//! A guest of ours that hangs by a planted bug: what is read out of its memory from outside is what its own dump says.
//!
//! The guest is captured without an interrupt as soon as nothing in it moves, then goes on and is asked for a dump by
//! an NMI. Both must have the same tasks in the same states, waiting for the same objects, with the same saved
//! registers and frames, the same flight events and system calls, and the same first hypothesis; the core file that the
//! capture is exported to has the tasks as threads, and gdb finds the stacks that kwab walks. This also holds the
//! layouts that the kernel's table of itself states of the compiler's own types (`kernel/src/task/tree.rs`) against
//! those that the compiler chose.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kwab::capture::qmp::Session;
use kwab::capture::{Level, Options, Snapshot, capture};
use kwab::format::record::{Lock, LockWait, RegisterRole, Task, TaskState};
use kwab::model::{Case, Dump};

use super::first;
use super::rings::same_rings;
use crate::commands::exam::room;
use crate::commands::readers::in_gdb;
use crate::exam::{self, Question, Room};
use crate::paths;
use crate::qemu::run::{Next, OnSilence, run_asking};
use crate::qemu::{Limits, Machine};
use crate::setup::Consent;

/// The questions of the exam whose guests hang, and the words of the first hypothesis.
const HANGS: [(&str, &str); 2] = [("lost-wakeup", "a wake-up was lost"), ("lock-order", "deadlock: CPU 0 and CPU 1")];
/// Guest memory, MiB.
const MEMORY: u32 = 96;
/// How long a guest may take until nothing moves, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOKED_AT: Duration = Duration::from_millis(300);

/// Captures each guest and compares.
pub(super) fn check(consent: Consent) -> Result<String> {
    let mut said = Vec::new();
    for (fault, words) in HANGS {
        let question = exam::QUESTIONS.iter().find(|question| question.fault == fault).context("no such question")?;
        said.push(hung(question, &room(question, consent)?, words).with_context(|| fault.to_owned())?);
    }
    Ok(said.join("; "))
}

fn hung(question: &Question, room: &Room, words: &str) -> Result<String> {
    let (memory, socket) = (room.folder.join("hung.ram"), room.folder.join("hung.qmp"));
    let options = format!("{} quiet loglevel=4 rdinit=/sbin/oneshot inject={}", room.options, question.fault);
    // It must not notice by itself.
    let options = format!("{options} watchdog=0 hung_task=0 stall=0");
    let mut machine = Machine::new(room.kernel.clone(), room.initrd.clone(), options);
    (machine.cpus, machine.memory_mib) = (question.cpus, MEMORY);
    for file in [&memory, &socket] {
        fs::remove_file(file).ok();
    }
    machine.keep_dumps_in(&memory)?;
    machine.extra = vec!["-qmp".to_owned(), format!("unix:{},server=on,wait=off", socket.display())];
    let mut captured = None;
    let mut act = || captured = Some(taken(&socket, &room.folder));
    let on_silence = OnSilence { after: Duration::from_secs(1), act: &mut act };
    let outcome = run_asking(&machine, Limits::seconds(180), Some(on_silence), |line| {
        if line.contains("kwab: dump of ") { Next::Stop } else { Next::Go }
    })?;
    let captured = captured.with_context(|| format!("the guest was not silent: {:?}", outcome.ending))??;
    let region = fs::read(&memory)?;
    fs::remove_file(&memory).ok();
    let own = exam::best(&region).context("the guest left no dump of its own")?;
    let (captured_dump, own_dump) = (Dump::from_bytes(captured.clone())?, Dump::from_bytes(own.clone())?);
    ensure!(captured_dump.defects().is_empty(), "{:?}", captured_dump.defects());
    let said = same_tasks(&captured_dump.case(), &own_dump.case())?;
    same_locks(&captured_dump.case(), &own_dump.case())?;
    let rings = same_rings(&captured_dump.case(), &own_dump.case())?;
    let logged = same_log(&captured_dump, &own_dump)?;
    let judged = (exam::judge(&captured, room)?, exam::judge(&own, room)?);
    ensure!(
        first(&judged.0).is_some() && first(&judged.0) == first(&judged.1),
        "{:?}",
        (first(&judged.0), first(&judged.1))
    );
    let file = paths::build("outside")?.join("hung.kwab");
    fs::write(&file, &captured)?;
    let in_gdb = match in_gdb(&file, &room.kernel)? {
        // Without the zombie, which has no stack, but with each processor that idles.
        Some((threads, frames)) if threads >= own_dump.case().tasks.len() => format!("{frames} frames in gdb"),
        Some((threads, _)) => bail!("gdb shows {threads} threads"),
        None => "gdb is not installed".to_owned(),
    };
    let claim = first(&judged.0).map(|(_, claim, _)| claim).unwrap_or_default();
    ensure!(claim.starts_with(words), "{claim}");
    Ok(format!("{}: {said}, {rings}, {logged} bytes of log as in its own dump, {in_gdb}, {claim:?}", question.fault))
}

/// Captures the guest when two looks find the same, lets it go on, and sends the interrupt.
fn taken(socket: &Path, folder: &Path) -> Result<Vec<u8>> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_millis(250)))?;
    let mut session = Session::open(Box::new(stream.try_clone()?), Box::new(stream))?;
    let options = Options { nmi: false, wait: Duration::ZERO, level: Level::All(folder.to_owned()) };
    let until = Instant::now() + PATIENCE;
    let mut before: Option<Snapshot> = None;
    loop {
        let snapshot = capture(&mut session, &options)?.context("nothing was captured")?;
        if before.as_ref().is_some_and(|before| stands_still(before, &snapshot)) {
            let mut bytes = Vec::new();
            snapshot.write(1, 1, &mut bytes)?;
            session.execute("inject-nmi", None)?;
            return Ok(bytes);
        }
        ensure!(Instant::now() < until, "it does not stand still: {:?}", snapshot.ours);
        before = Some(snapshot);
        sleep(LOOKED_AT);
    }
}

fn stands_still(before: &Snapshot, now: &Snapshot) -> bool {
    let Some((before, now)) = before.ours.as_ref().zip(now.ours.as_ref()) else { return false };
    let is = |wanted: TaskState| now.threads.iter().any(|thread| thread.state == Some(wanted));
    let sleeps = is(TaskState::BLOCKED) && !is(TaskState::RUNNING) && !is(TaskState::RUNNABLE);
    let spins = now.awaited.len() > 1 && before.awaited == now.awaited && before.held == now.held;
    (sleeps || spins) && before.threads == now.threads
}

/// Compares who holds and who awaits which lock.
fn same_locks(captured: &Case<'_>, own: &Case<'_>) -> Result<()> {
    let told = |case: &Case<'_>| {
        let held = case.locks.iter().map(|lock| format!("{:x?}", Lock { held_ns: None, ..lock.record }));
        let awaited = case.waits.iter().map(|wait| format!("{:x?}", LockWait { waited_ns: None, ..wait.record }));
        held.chain(awaited).collect::<BTreeSet<String>>()
    };
    ensure!(told(captured) == told(own), "locks differ:\n{:#?}\n{:#?}", told(captured), told(own));
    Ok(())
}

/// Compares what both have of the log; how much.
fn same_log(captured: &Dump, own: &Dump) -> Result<usize> {
    let bytes = |dump: &Dump| -> BTreeMap<u64, u8> {
        let case = dump.case();
        let chunks = case.logs.iter().filter_map(|chunk| Some((chunk.log_offset?, chunk.bytes?.to_vec())));
        chunks.flat_map(|(at, bytes)| (at..).zip(bytes)).collect()
    };
    let (found, wanted) = (bytes(captured), bytes(own));
    let both: Vec<_> = found.iter().filter(|(at, _)| wanted.contains_key(at)).collect();
    ensure!(both.iter().all(|(at, byte)| wanted.get(at) == Some(byte)), "the log differs");
    ensure!(both.len() > 100, "only {} bytes of log are in both", both.len());
    Ok(both.len())
}

/// Compares tasks, saved registers and frames; how many there are.
fn same_tasks(captured: &Case<'_>, own: &Case<'_>) -> Result<String> {
    let listed = |case: &Case<'_>| -> BTreeMap<Option<u32>, String> {
        case.tasks.iter().map(|task| (task.tid, facts(task))).collect()
    };
    let (found, wanted) = (listed(captured), listed(own));
    ensure!(wanted.len() > 1, "its own dump has {} tasks", wanted.len());
    ensure!(found == wanted, "tasks differ:\n{found:#?}\n{wanted:#?}");
    for (found, wanted) in captured.tasks.iter().zip(&own.tasks) {
        let is_older = found.state_ns <= wanted.state_ns;
        ensure!(is_older, "task {:?} has its state for {:?}, later {:?}", found.tid, found.state_ns, wanted.state_ns);
    }
    let saved = |case: &Case<'_>| -> BTreeMap<Option<u32>, Vec<_>> {
        let sets = case.registers.iter().filter(|set| set.role == Some(RegisterRole::SWITCHED_OUT));
        let values = sets.map(|set| {
            let regs = set.regs.iter().flat_map(kwab::format::List::iter).map(|reg| (reg.id, reg.value));
            (set.tid, regs.collect())
        });
        values.collect()
    };
    ensure!(saved(captured) == saved(own), "saved registers differ:\n{:?}\n{:?}", saved(captured), saved(own));
    let frames = |case: &Case<'_>| -> BTreeMap<(Option<u32>, Option<u32>), Option<u64>> {
        let of_tasks = case.frames.iter().filter(|frame| frame.at.kind == kwab::format::SectionKind::TASKS);
        of_tasks.map(|frame| ((frame.tid, frame.index), frame.addr)).collect()
    };
    let (found, wanted) = (frames(captured), frames(own));
    if found.is_empty() || found != wanted {
        bail!("frames differ:\n{found:x?}\n{wanted:x?}");
    }
    Ok(format!("{} tasks and {} frames", own.tasks.len(), wanted.len()))
}

/// What both must say of a task. Times go on between the two, and the own dump is taken on a processor.
fn facts(task: &Task<'_>) -> String {
    let own = Task { state_ns: None, run_ns: None, current: None, stamp: Default::default(), ..*task };
    format!("{own:x?}")
}
