//! The ways to die, and what the dump and the console must say of each.

use std::io::Cursor;

use anyhow::{Context as _, Result, bail, ensure};
use kwab::analysis::images;
use kwab::import::{Options, import};
use kwab::model::Dump;
use kwab::report::inspect::{self, conclude, inspect};
use kwab::symbols::{Finder, IndexCache, SourceLines};
use kwab_format::record::{CauseKind, CheckResult, CpuState, RegId, RegisterRole};
use kwab_format::{DropReason, SectionKind};

use super::{Seen, dumps_in, fresh_memory, guest, machine, qmp};
use crate::qemu::{self, Limits, Outcome, run::Next};
use crate::setup::Consent;
use crate::{kernel, paths};

/// A way to die.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// What is written to `/proc/sysrq-trigger`.
    pub way: &'static str,
    /// What the shell runs instead.
    pub script: Option<&'static str>,
    /// More words for the command line.
    pub options: &'static str,
    /// The kind of death the dump must state.
    pub kind: CauseKind,
    /// What its message must contain.
    pub says: &'static str,
    /// The part of the dump that faults.
    pub faults: Option<SectionKind>,
    /// The host sends a non-maskable interrupt.
    pub nmi: bool,
    /// Wants several processors.
    pub several: bool,
    /// What the dump must say of pages and their files.
    pub pages: Pages,
}

/// What a comparison of pages with their files has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// None was made.
    Unchecked,
    /// All are right.
    Right,
    /// Some are wrong.
    Wrong,
}

const fn death(name: &'static str, way: &'static str, kind: CauseKind, says: &'static str) -> Death {
    let (script, faults, pages) = (None, None, Pages::Unchecked);
    Death { name, way, script, options: "", kind, says, faults, nmi: false, several: false, pages }
}

/// Programs that are always in the midst of a call and wait for a processor: any of them might hold a mutex.
macro_rules! load {
    () => {
        "for i in 1 2 3 4 5; do dd if=/dev/zero of=/dev/null bs=4M & done; "
    };
}

/// All ways to die, in the order in which the command runs them.
pub const DEATHS: &[Death] = &[
    death("panic", "c panic", CauseKind::PANIC, "asked to panic"),
    death("fault", "c fault", CauseKind::EXCEPTION, "kernel page fault: Read of 0x"),
    death("sysrq", "c", CauseKind::SYSRQ, "sysrq triggered crash"),
    death("overflow", "c overflow", CauseKind::STACK_OVERFLOW, "guard page hit"),
    death("low-stack", "c low-stack", CauseKind::PANIC, "little stack left"),
    death("console", "c console", CauseKind::PANIC, "with the console locked"),
    Death {
        faults: Some(SectionKind::TASKS),
        ..death("dump", "c dump", CauseKind::PANIC, "asked to panic, and to fault in the dump")
    },
    Death {
        faults: Some(SectionKind::CAUSE),
        ..death("dump-cause", "c dump-cause", CauseKind::PANIC, "asked to panic, and to fault in the dump")
    },
    Death { nmi: true, ..death("nmi", "t", CauseKind::NMI, "non-maskable interrupt") },
    Death { several: true, ..death("spin", "c spin", CauseKind::PANIC, "with the others spinning") },
    Death { options: "watchdog=2", ..death("lockup", "c lockup", CauseKind::SOFT_LOCKUP, "has been in the kernel") },
    Death { options: "hung_task=1", ..death("block", "c block", CauseKind::HUNG_TASK, "has been blocked") },
    Death {
        script: Some(concat!(
            load!(),
            "echo c keep >/proc/sysrq-trigger & ",
            "sleep 1; echo c keep >/proc/sysrq-trigger"
        )),
        options: "hung_task=3",
        ..death("kept-mutex", "", CauseKind::HUNG_TASK, "s: it waits on thread ")
    },
    Death {
        script: Some(concat!(load!(), "echo c circle >/proc/sysrq-trigger & echo c circle >/proc/sysrq-trigger")),
        options: "hung_task=3",
        ..death("mutex-circle", "", CauseKind::HUNG_TASK, ", which waits on itself")
    },
    Death {
        options: "watchdog=2",
        ..death("irqs-off", "c irqs-off", CauseKind::SOFT_LOCKUP, "has taken no interrupt")
    },
    Death {
        // An init without a terminal that waits for the other end of a pipe.
        options: "watchdog=2 rdinit=/bin/sh -c \"mkfifo /end; read line </end\"",
        ..death("stall", "", CauseKind::STALL, "no timer is armed and nothing waits for the console")
    },
    Death {
        script: Some("sleep 3600"),
        options: "watchdog=2 stall=3",
        ..death("idle", "", CauseKind::STALL, "past the limit of stall=")
    },
    Death {
        // The first program that forks repeats a fault for ever.
        script: Some("true"),
        options: "inject=stale-leaf watchdog=2",
        ..death("fault-loop", "", CauseKind::FAULT_LOOP, "page fault loop: thread ")
    },
    death("double", "c double", CauseKind::DOUBLE_FAULT, "double fault"),
    Death {
        // A program that must not be ended wants more memory than there is.
        script: Some(
            "echo -1000 >/proc/self/oom_score_adj; dd if=/dev/zero of=/dev/null bs=300M & \
             exec dd if=/dev/zero of=/dev/null bs=300M",
        ),
        ..death("out-of-memory", "", CauseKind::OUT_OF_MEMORY, "no killable processes")
    },
    Death {
        options: "debug=verify",
        pages: Pages::Right,
        ..death("verify", "c panic", CauseKind::PANIC, "asked to panic")
    },
    Death {
        // Checking earlier would read each page in before it is written, which the planted bug needs.
        options: "inject=cache-writable",
        script: Some("echo verify >/proc/sys/kernel/debug; echo c panic >/proc/sysrq-trigger"),
        pages: Pages::Wrong,
        ..death("wrong-page", "", CauseKind::PANIC, "asked to panic")
    },
];

/// Lets the kernel die in one way, with memory to dump to, and checks everything; bytes and microseconds of the dump.
///
/// The parts of a dump have budgets of time, and a busy host may take the emulated processor away for longer than that.
/// The dump says so then, and tells nothing about the kernel: such a run is repeated.
pub fn check(death: &Death, cpus: u32, consent: Consent) -> Result<(usize, u64)> {
    for _ in 0..PATIENCE {
        if let Some(figures) = attempt(death, cpus, consent)? {
            return Ok(figures);
        }
    }
    bail!("parts of the dump were out of time in {PATIENCE} runs");
}

/// Runs that may be spoilt by a busy host.
const PATIENCE: u32 = 4;

/// One run; `None` when a part of the dump was out of time.
fn attempt(death: &Death, cpus: u32, consent: Consent) -> Result<Option<(usize, u64)>> {
    let file = fresh_memory(&format!("{}-{cpus}", death.name))?;
    let mut machine = machine_of(death, cpus, consent)?;
    machine.keep_dumps_in(&file)?;
    let outcome = die(death, machine)?;
    let mut dumps = dumps_in(&file)?;
    ensure!(dumps.len() == 1, "{} dumps instead of one; {}", dumps.len(), tail(&outcome));
    let bytes = dumps.remove(0);
    let seen = Seen::of(&bytes)?;
    if seen.dropped.iter().any(|(_, why)| *why == DropReason::TIME_BUDGET) {
        return Ok(None);
    }
    let about = || format!("{}, in {}", paths::shown(&file), tail(&outcome));
    tells(&seen, death, cpus).with_context(about)?;
    complete(&seen, death).with_context(about)?;
    pages_are(&seen, death.pages).with_context(about)?;
    same_as_the_console(&seen, &outcome).with_context(about)?;
    let in_kernel = seen.fault().and_then(|fault| fault.get(&RegId::RIP)).is_some_and(|ip| ip >> 63 == 1);
    if in_kernel {
        names(bytes.clone(), death).with_context(about)?;
    }
    Ok(Some((bytes.len(), microseconds(&outcome))))
}

/// The same without memory: the dump comes over the serial line.
pub fn check_serial(death: &Death, cpus: u32, consent: Consent) -> Result<usize> {
    let outcome = die(death, machine_of(death, cpus, consent)?)?;
    let bytes = from_log(&outcome)?;
    let seen = Seen::of(&bytes)?;
    tells(&seen, death, cpus).with_context(|| tail(&outcome))?;
    same_as_the_console(&seen, &outcome).with_context(|| tail(&outcome))?;
    Ok(bytes.len())
}

fn machine_of(death: &Death, cpus: u32, consent: Consent) -> Result<qemu::Machine> {
    let mut machine = match death.script {
        Some(script) => guest(script, cpus, consent)?,
        None => machine(death.way, cpus, consent)?,
    };
    machine.append = format!("{} {}", machine.append, death.options);
    Ok(machine)
}

fn die(death: &Death, mut machine: qemu::Machine) -> Result<Outcome> {
    let socket = paths::build("crashes")?.join("qmp");
    if death.nmi {
        machine.extra.extend(qmp::arguments(&socket));
        // The mark that the guest runs: `t` writes it.
        machine.append = machine.append.replace("quiet loglevel=1", "loglevel=7");
    }
    let mut sent = Ok(());
    let outcome = qemu::run(&machine, Limits::seconds(60), |line| {
        if death.nmi && line.contains("sysrq: ") && line.contains(" threads") {
            sent = qmp::Session::open(&socket).and_then(|mut session| session.execute("inject-nmi", ""));
        }
        Next::Go
    })?;
    sent?;
    Ok(outcome)
}

/// Kind, message, registers of every processor.
fn tells(seen: &Seen, death: &Death, cpus: u32) -> Result<()> {
    ensure!(seen.kind == Some(death.kind), "kind of death {:?}", seen.kind);
    ensure!(seen.message.contains(death.says), "message `{}`", seen.message);
    let fault = seen.fault().context("no registers at the fault")?;
    ensure!(fault.get(&RegId::RIP).is_some_and(|rip| *rip != 0), "no instruction pointer");
    ensure!(seen.cpus.len() == cpus as usize, "the dump describes {} processors, {cpus} run", seen.cpus.len());
    for (cpu, state) in &seen.cpus {
        let stopped = seen.registers.contains_key(&(RegisterRole::STOPPED, *cpu));
        ensure!(stopped || *state == CpuState::DUMPING, "no registers of CPU {cpu}, {:?}", state.name());
    }
    Ok(())
}

/// The end section says exactly what is missing.
fn complete(seen: &Seen, death: &Death) -> Result<()> {
    ensure!(seen.defects.is_empty(), "defects: {:?}", seen.defects);
    let expected: Vec<_> = death.faults.map(|kind| (kind, DropReason::FAULT)).into_iter().collect();
    // Who dies with a lock held keeps what it protects, and of a long list a dump takes only so much.
    let usual = [DropReason::LOCKED, DropReason::SKIPPED];
    let told: Vec<_> = seen.dropped.iter().copied().filter(|(_, why)| !usual.contains(why)).collect();
    ensure!(told == expected, "left out: {told:?}, expected {expected:?}");
    ensure!(seen.complete == Some(seen.dropped.is_empty()), "said to be complete: {:?}", seen.complete);
    Ok(())
}

/// The pages of the program that was running, against their files.
fn pages_are(seen: &Seen, expected: Pages) -> Result<()> {
    let count = |result| seen.checks.get(&result).copied().unwrap_or(0);
    let (equal, different) = (count(CheckResult::EQUAL), count(CheckResult::DIFFERENT));
    let all: usize = seen.checks.values().sum();
    let holds = match expected {
        Pages::Unchecked => all == 0,
        Pages::Right => equal > 20 && different == 0 && count(CheckResult::UNREADABLE) == 0,
        Pages::Wrong => equal > 20 && different > 0,
    };
    ensure!(holds, "{all} pages were compared, {equal} equal, {different} different; expected {expected:?}");
    Ok(())
}

/// The text on the console, imported alone, tells the same: message, location, registers, backtrace.
fn same_as_the_console(seen: &Seen, outcome: &Outcome) -> Result<()> {
    let text: Vec<u8> = outcome
        .serial
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|l| !l.starts_with(b"KW1:") && !l.starts_with(b"KP1:"))
        .flatten()
        .copied()
        .collect();
    let log = Seen::of(&imported(&text)?)?;
    ensure!(log.message == seen.message, "the console says `{}`, the dump `{}`", log.message, seen.message);
    ensure!(log.location == seen.location, "the console says {:?}, the dump {:?}", log.location, seen.location);
    // A dump whose cause faulted has the short form of it, without frames.
    let (said, dumped) = (&log.frames, &seen.frames);
    let agree = said.iter().zip(dumped).all(|(said, dumped)| said == dumped);
    ensure!(!said.is_empty() && agree, "the console has the backtrace {said:x?}, the dump {dumped:x?}");
    if HANGS.contains(&seen.kind.unwrap_or_default()) {
        ensure!(!log.sleepers.is_empty(), "the console lists no thread that sleeps");
        for (tid, way) in &log.sleepers {
            let dumped = seen.sleepers.get(tid);
            ensure!(dumped == Some(way), "the console has {way:x?} of thread {tid}, the dump {dumped:x?}");
        }
    }
    let fault = seen.fault().context("no registers at the fault")?;
    let printed = String::from_utf8_lossy(&outcome.serial).into_owned();
    for (id, name) in
        [(RegId::RIP, "RIP"), (RegId::RSP, "RSP"), (RegId::RBP, "RBP"), (RegId::RAX, "RAX"), (RegId::R15, "R15")]
    {
        let value = fault.get(&id).with_context(|| format!("no {name} in the dump"))?;
        let words = format!("{name}={value:016x}");
        ensure!(printed.contains(&words), "the console does not say {words}");
    }
    Ok(())
}

/// With the kernel's image every frame of the death has a name on the page of `kwab inspect`.
fn names(bytes: Vec<u8>, death: &Death) -> Result<()> {
    let dump = Dump::from_bytes(bytes).context("not a dump")?;
    let case = dump.case();
    let mut finder = Finder::new(vec![kernel::build()?], false);
    let images = images::load(&case, &mut finder, &IndexCache::none());
    let mut report = inspect(&dump, death.name, inspect::Options::default());
    conclude(&mut report, &case, &images.symbols, &mut SourceLines::new(Vec::new()), death.name);
    let first = report.backtraces.first().context("no backtrace")?;
    let nameless = first.frames.iter().filter(|frame| frame.symbol.is_empty()).count();
    ensure!(nameless == 0, "{nameless} of {} frames have no name", first.frames.len());
    Ok(())
}

/// Deaths of which the console lists the threads.
const HANGS: &[CauseKind] = &[CauseKind::HUNG_TASK, CauseKind::STALL, CauseKind::NMI];

/// The one kernel death that the whole console tells of, as a dump.
fn from_log(outcome: &Outcome) -> Result<Vec<u8>> {
    imported(&outcome.serial)
}

/// The death of the kernel that a console tells of, as a dump.
pub fn imported(log: &[u8]) -> Result<Vec<u8>> {
    let options = Options { source: "console".into(), folder: Some(paths::build("crashes")?) };
    let (report, dumps) = import(Cursor::new(log.to_vec()), &options, &mut |_| {})?;
    let Some(dump) = dumps.into_iter().find(|dump| dump.summary.kind == "panic") else {
        bail!("the console reports no death: {} dumps", report.dumps.len());
    };
    let mut file = dump.file.context("a dump without a file")?;
    let mut bytes = Vec::new();
    file.copy_to(&mut bytes).context("cannot read a dump just written")?;
    Ok(bytes)
}

/// How long the kernel says that its dump took; 0 if it does not.
pub fn microseconds(outcome: &Outcome) -> u64 {
    let text = String::from_utf8_lossy(&outcome.serial).into_owned();
    let line = text.lines().find(|line| line.starts_with("kwab: dump of ")).unwrap_or_default().to_owned();
    line.split_whitespace().rev().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The end of the console's text, for an error.
fn tail(outcome: &Outcome) -> String {
    let text = String::from_utf8_lossy(&outcome.serial).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("KW1:")).collect();
    format!("{:?}, the console ends with\n{}", outcome.ending, lines[lines.len().saturating_sub(12)..].join("\n"))
}
