//! Kernel death: from its detection to the last instruction.
//!
//! A death is dealt with in [`STEPS`], on the machine's stage ([`machine::crash::enter`]): stacks of its own, one
//! processor, for good. Which step is at work is written down first; a fault or panic inside a step comes back here,
//! one level deeper, gives that step up (of the dump: that part of it), says so, and goes on behind it. So a second
//! death costs what it happened in, and still shows its message and registers. Nothing here allocates or waits for a
//! lock.

use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

use kwab_format::record::{CauseKind, Reason};
use kwab_format::{Compression, FileHeader, Progress, Writer};
use machine::crash::{self, Committed, Memory, Stage};
use machine::describe::Entry;
use machine::trap::{FatalKind, FatalTrap, TrapCode};

use super::channel::{self, Target};
use super::parts::{COLLECTORS, Death, Dump, Scope, Subject, amount_on, boot_id, brief, new_dump_id};
use super::tasks;
use super::watchdog::hardware;
use crate::log::{self, Line};
use crate::options;
use crate::task::try_current;
use crate::trace::event::Event;

/// How long the other processors get to stop, in nanoseconds.
const STOP_BUDGET: u64 = 500_000_000;
/// Most frames printed.
const MAX_FRAMES: usize = 24;
/// More entries than this are no progress any more: stop without a word.
const DEEPEST: u32 = 64;

/// What is done about a death, in this order.
const STEPS: &[fn(Stage, &Death, &mut Memory)] = &[stop_others, tell, tell_event, dump, tell_tasks, tell_dump, notify];
/// Which of [`STEPS`] the dump is.
const DUMP: usize = 3;

/// The step at work, plus 1.
static STEP: AtomicUsize = AtomicUsize::new(0);
/// The part of the dump at work, plus 1.
static PART: AtomicUsize = AtomicUsize::new(0);
/// What died first.
static DEATH: Committed<Death> = Committed::new();
/// Where it lies, in [`machine::describe`].
pub(super) static FIELDS: [Entry; 4] = [
    Entry::address("death", &DEATH),
    Entry::number("death.valid", Committed::<Death>::LAYOUT[0]),
    Entry::number("death.slots", Committed::<Death>::LAYOUT[1]),
    Entry::number("death.slot", Committed::<Death>::LAYOUT[2]),
];
/// What it consists of.
pub(super) static PARTS: [Entry; 15] = Death::FIELDS;
/// Where the dump goes, and how far it has come.
static SAVED: Committed<(Target, Progress)> = Committed::new();
/// Bytes of the whole dump, and the microseconds that it took.
static WRITTEN: Committed<(usize, u64)> = Committed::new();

/// A Rust panic.
pub fn on_panic(info: &PanicInfo<'_>) -> ! {
    let regs = crash::registers_here();
    crash::enter(&(info, regs), |(info, regs), stage, memory| {
        let mut death = Death::new(CauseKind::PANIC, Reason::KERNEL_CRASH, *regs, crash::control_here());
        // What does not fit is cut.
        let _ = write!(death.message, "{}", info.message());
        if let Some(location) = info.location() {
            let _ = death.file.write_str(location.file());
            death.line_column = (location.line(), location.column());
        }
        begin(stage, memory, death)
    })
}

/// A death that code of the kernel found out about: a watchdog, a request.
pub fn die(kind: CauseKind, reason: Reason, message: core::fmt::Arguments<'_>) -> ! {
    let regs = crash::registers_here();
    crash::enter(&(kind, reason, message, regs), |(kind, reason, message, regs), stage, memory| {
        let mut death = Death::new(*kind, *reason, *regs, crash::control_here());
        // What does not fit is cut.
        let _ = death.message.write_fmt(*message);
        begin(stage, memory, death)
    })
}

/// A kernel-mode exception, an NMI, a machine check.
pub fn on_fatal(trap: &FatalTrap) -> ! {
    crash::enter(trap, |trap, stage, memory| {
        let (kind, vector, addr) = match trap.kind {
            FatalKind::PageFault { addr, .. } => (CauseKind::EXCEPTION, 14, addr),
            FatalKind::StackOverflow { addr } => (CauseKind::STACK_OVERFLOW, 8, addr),
            FatalKind::DoubleFault => (CauseKind::DOUBLE_FAULT, 8, trap.control.cr2),
            FatalKind::MachineCheck => (CauseKind::EXCEPTION, 18, 0),
            FatalKind::Nmi if hard_lockup(trap).is_some() => (CauseKind::SOFT_LOCKUP, 2, 0),
            FatalKind::Nmi => (CauseKind::NMI, 2, 0),
            FatalKind::Exception { vector } => (CauseKind::EXCEPTION, vector, 0),
        };
        let hang = matches!(kind, CauseKind::NMI | CauseKind::SOFT_LOCKUP);
        let reason = if hang { Reason::HANG } else { Reason::KERNEL_CRASH };
        let mut death = Death::new(kind, reason, trap.registers, trap.control);
        death.set_trap(TrapCode { vector, error: trap.code, addr });
        describe(&mut death, trap);
        begin(stage, memory, death)
    })
}

/// An NMI of the watchdog's timer: how many seconds no processor has taken an interrupt for. One that runs a program
/// takes them.
fn hard_lockup(trap: &FatalTrap) -> Option<u64> {
    let expired = hardware::expired(machine::time::now())?;
    (!trap.in_user).then_some(expired / 1_000_000_000)
}

/// The message of an exception, or of what an NMI found.
fn describe(death: &mut Death, trap: &FatalTrap) {
    let lockup = if trap.kind == FatalKind::Nmi { hard_lockup(trap) } else { None };
    // What does not fit is cut.
    let _ = match lockup {
        Some(seconds) => {
            let cpu = machine::cpu::id().0;
            write!(death.message, "hard lockup: CPU {cpu} has taken no interrupt for {seconds} s")
        }
        None => write!(death.message, "{trap}"),
    };
}

/// Deals with a death, or with one inside of that.
fn begin(stage: Stage, memory: &'static mut Memory, death: Death) -> ! {
    if stage.depth > DEEPEST {
        machine::power::halt();
    }
    let first = DEATH.get(&stage);
    let at_work = STEP.load(Ordering::Relaxed);
    let next = match &first {
        None => 0,
        // The dump gives up a part at a time.
        Some(_) if at_work == DUMP + 1 && PART.load(Ordering::Relaxed) <= COLLECTORS.len() => DUMP,
        Some(_) => at_work,
    };
    let first = match first {
        None => {
            DEATH.set(&stage, death);
            death
        }
        Some(first) => {
            // Before anything is said: saying it may be what fails.
            STEP.store(next.max(at_work), Ordering::Relaxed);
            if stage.depth < DEEPEST / 2 {
                tell_again(&death, at_work);
            }
            first
        }
    };
    for (number, step) in STEPS.iter().enumerate().skip(next) {
        STEP.store(number + 1, Ordering::Relaxed);
        step(stage, &first, memory);
    }
    STEP.store(STEPS.len() + 1, Ordering::Relaxed);
    end()
}

fn stop_others(_stage: Stage, _death: &Death, _memory: &mut Memory) {
    crash::stop_others(STOP_BUDGET);
}

/// The text on the console.
fn tell(_stage: Stage, death: &Death, _memory: &mut Memory) {
    let cpu = machine::cpu::id().0;
    match core::str::from_utf8(death.file.bytes()) {
        Ok(file) if !file.is_empty() => say(format_args!("\n[PANIC] CPU={cpu} at {file}:{}", death.line_column.0)),
        _ => say(format_args!("\n[PANIC] CPU={cpu}")),
    }
    say(format_args!("{}", text(death.message.bytes())));
    if let Some(task) = try_current() {
        let comm = task.name.try_lock().map_or([0; 16], |name| *name);
        let len = comm.iter().position(|b| *b == 0).unwrap_or(16);
        say(format_args!("PID={} TID={} comm={}", task.pid(), task.tid(), log::Escaped(&comm[..len])));
    }
    say(format_args!("{}", death.registers));
    say(format_args!("{}", machine::boot::Image));
    if let Some(addr) = death.fault_addr() {
        say(format_args!("CR2 (fault vaddr) = {addr:016x}"));
    }
    for (index, addr) in crash::backtrace(death.registers.rip, death.registers.rbp).take(MAX_FRAMES).enumerate() {
        say(format_args!("{index}: {addr:016x}"));
    }
}

/// The text about a death inside of dealing with one.
fn tell_again(death: &Death, at_work: usize) {
    let part = PART.load(Ordering::Relaxed).checked_sub(1).and_then(|part| COLLECTORS.get(part));
    let during = match (at_work.checked_sub(1), part) {
        (Some(DUMP), Some(part)) => part.kind.name().unwrap_or("the dump"),
        (Some(DUMP), None) => "the end of the dump",
        _ => "the report",
    };
    say(format_args!("kwab: second death during {during}, which is abandoned: {}", text(death.message.bytes())));
    let file = text(death.file.bytes());
    say(format_args!("kwab: at {file}:{} RIP={:016x}", death.line_column.0, death.registers.rip));
    say(format_args!("{}", death.registers));
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or("(not text)")
}

fn tell_event(_stage: Stage, death: &Death, _memory: &mut Memory) {
    let mut event = Event::new("panic");
    event.string("message", death.message.bytes());
    event.array("backtrace", |event| {
        for addr in crash::backtrace(death.registers.rip, death.registers.rbp).take(MAX_FRAMES) {
            event.item(|event| {
                event.address("addr", addr);
            });
        }
    });
    event.emit_unlocked();
}

/// Writes the dump, or what is left to write of it.
fn dump(stage: Stage, death: &Death, memory: &mut Memory) {
    let part = PART.load(Ordering::Relaxed);
    let saved = SAVED.get(&stage);
    let Memory { bytes, packed, table } = memory;
    let (target, writer) = match &saved {
        Some((target, progress)) => {
            (*target, Writer::resume(target.sink(progress.position(), Some(stage)), bytes, progress))
        }
        None => {
            let id = new_dump_id();
            let target = channel::for_kernel(id, stage);
            (target, Writer::new(target.sink(0, Some(stage)), bytes, FileHeader::new(id, boot_id())))
        }
    };
    let amount = amount_on(target);
    let writer = writer.with_compression(Compression { table, scratch: packed });
    let save = |progress: &Progress| SAVED.set(&stage, (target, *progress));
    let mut dump = Dump::new(writer, amount, &save);
    let thread = try_current();
    let subject = Subject { death, thread: thread.as_deref(), scope: Scope::Kernel, amount, stage: Some(stage) };
    let begun = machine::time::now();
    if let Some(failed) = part.checked_sub(1).and_then(|part| COLLECTORS.get(part)) {
        dump.give_up(failed, |dump| brief(dump, death));
    }
    for (number, part) in COLLECTORS.iter().enumerate().skip(part) {
        PART.store(number + 1, Ordering::Relaxed);
        if part.is_in(Scope::Kernel, amount) {
            dump.part(part, &subject);
        }
    }
    PART.store(COLLECTORS.len() + 1, Ordering::Relaxed);
    let bytes = dump.finish().written();
    WRITTEN.set(&stage, (bytes, machine::time::now().saturating_sub(begun) / 1000));
}

/// The threads of a machine that hangs, unless the dump is on the console too and has them.
fn tell_tasks(stage: Stage, death: &Death, _memory: &mut Memory) {
    let is_told = matches!(SAVED.get(&stage), Some((Target::Serial(_), _)));
    if death.reason == Reason::HANG && !is_told {
        tasks::tell(say);
    }
}

/// The last line: what waits for the end of a death may stop the machine at it.
fn tell_dump(stage: Stage, _death: &Death, _memory: &mut Memory) {
    if let (Some((target, _)), Some((bytes, micros))) = (SAVED.get(&stage), WRITTEN.get(&stage)) {
        say(format_args!("kwab: dump of {bytes} bytes on the {} in {micros} us", target.name()));
    }
}

fn notify(_stage: Stage, _death: &Death, _memory: &mut Memory) {
    machine::power::notify_panic();
}

/// What `panic=` asks for: wait so many seconds, then reboot; negative means at once, 0 never. An emulator that offers
/// an exit is left instead of rebooted.
fn end() -> ! {
    let seconds = options::get().panic;
    if let Ok(seconds @ 1..) = u64::try_from(seconds) {
        say(format_args!("Rebooting in {seconds} seconds.."));
        let until = machine::time::now().saturating_add(seconds.saturating_mul(1_000_000_000));
        while machine::time::now() < until {
            machine::cpu::relax();
        }
    }
    machine::power::debug_exit(PANIC_EXIT);
    if seconds != 0 {
        machine::power::reboot();
    }
    machine::power::halt()
}

/// What `isa-debug-exit` is told.
const PANIC_EXIT: u8 = 0x30;

fn say(text: core::fmt::Arguments<'_>) {
    let mut line = Line::<640>::new();
    // What does not fit is cut.
    let _ = line.write_fmt(text);
    line.end();
    machine::console::write_unlocked(line.bytes());
}
