//! The kernel's last words: message, place, registers, backtrace, on the console.
//!
//! A latch comes first: a panic while panicking prints one line and stops. The other processors are stopped. Nothing here
//! allocates or waits for a lock.

use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU32, Ordering};

use machine::arch::Registers;
use machine::crash;
use machine::trap::FatalTrap;

use super::event::Event;
use crate::log::Line;
use crate::options;
use crate::task::try_current;

/// How deep in panics this kernel is.
static DEPTH: AtomicU32 = AtomicU32::new(0);
/// How long the other processors get to stop, in nanoseconds.
const STOP_BUDGET: u64 = 20_000_000;
/// Most frames printed.
const MAX_FRAMES: usize = 24;

/// A Rust panic.
pub fn on_panic(info: &PanicInfo<'_>) -> ! {
    let depth = enter();
    let regs = crash::registers_here();
    let mut message = Line::<512>::new();
    // What does not fit is cut.
    let _ = write!(message, "{}", info.message());
    if let Some(place) = info.location() {
        say(format_args!("\n[PANIC] CPU={} at {}:{}", machine::cpu::id().0, place.file(), place.line()));
    } else {
        say(format_args!("\n[PANIC] CPU={}", machine::cpu::id().0));
    }
    finish(depth, message.bytes(), &regs)
}

/// A kernel-mode exception.
pub fn on_fatal(trap: &FatalTrap) -> ! {
    let depth = enter();
    let mut message = Line::<512>::new();
    // What does not fit is cut.
    let _ = write!(
        message,
        "{:x?} error code {:#x}{}",
        trap.kind,
        trap.code,
        if trap.in_user { " in user mode" } else { "" }
    );
    say(format_args!("\n[PANIC] CPU={}", machine::cpu::id().0));
    finish(depth, message.bytes(), &trap.registers)
}

fn enter() -> u32 {
    let depth = DEPTH.fetch_add(1, Ordering::SeqCst);
    if depth > 1 {
        machine::power::halt();
    }
    crash::stop_others(STOP_BUDGET);
    depth
}

fn finish(depth: u32, message: &[u8], regs: &Registers) -> ! {
    let text = core::str::from_utf8(message).unwrap_or("(message is not text)");
    say(format_args!("{text}"));
    if let Some(task) = try_current() {
        let comm = task.name.try_lock().map_or([0; 16], |name| *name);
        let len = comm.iter().position(|b| *b == 0).unwrap_or(16);
        say(format_args!("PID={} TID={} comm={}", task.pid(), task.tid(), crate::log::Bytes(&comm[..len])));
    }
    registers(regs);
    for (index, addr) in crash::backtrace(regs.rip, regs.rbp).take(MAX_FRAMES).enumerate() {
        say(format_args!("{index}: {addr:016x}"));
    }
    if depth == 0 {
        event(message, regs);
    }
    stop()
}

fn registers(regs: &Registers) {
    say(format_args!("RIP={:016x} RSP={:016x} RBP={:016x}", regs.rip, regs.rsp, regs.rbp));
    say(format_args!("RAX={:016x} RBX={:016x} RCX={:016x} RDX={:016x}", regs.rax, regs.rbx, regs.rcx, regs.rdx));
    say(format_args!("RSI={:016x} RDI={:016x} R8 ={:016x} R9 ={:016x}", regs.rsi, regs.rdi, regs.r8, regs.r9));
    say(format_args!("R10={:016x} R11={:016x} R12={:016x} R13={:016x}", regs.r10, regs.r11, regs.r12, regs.r13));
    say(format_args!("R14={:016x} R15={:016x} CS={:04x} RFLAGS={:016x}", regs.r14, regs.r15, regs.cs, regs.rflags));
}

fn event(message: &[u8], regs: &Registers) {
    let mut event = Event::new("panic");
    event.string("message", message);
    event.array("backtrace", |event| {
        for addr in crash::backtrace(regs.rip, regs.rbp).take(MAX_FRAMES) {
            event.item(|event| {
                event.address("addr", addr);
            });
        }
    });
    event.emit_unlocked();
}

fn stop() -> ! {
    machine::power::debug_exit(PANIC_EXIT);
    if options::get().panic != 0 {
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
