//! The list of tests, and the frame each runs in: a kernel thread on the first processor.

mod basic;
mod copies;
mod cost;
mod crash;
pub(crate) mod guards;
mod memory;
mod smp;
mod threads;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use machine::cpu::{self, CpuId};
use machine::trap::FatalTrap;

use crate::program;
use crate::{START, leave, say};

/// Every test by name.
const TESTS: &[(&str, fn())] = &[
    ("boot", basic::boot),
    ("syscall", basic::syscall),
    ("traps", basic::traps),
    ("timer", basic::timer),
    ("tables", memory::tables),
    ("fork", memory::fork),
    ("reused", memory::reused),
    ("huge", memory::huge),
    ("splits", memory::splits),
    ("blocks", memory::blocks),
    ("heap", memory::heap),
    ("copies", copies::copies),
    ("moves", copies::moves),
    ("segments", guards::segments),
    ("instructions", guards::instructions),
    ("rights", guards::rights),
    ("vectors", guards::vectors),
    ("regions", guards::regions),
    #[cfg(feature = "fortress")]
    ("overrun", guards::overrun),
    #[cfg(feature = "fortress")]
    ("freed", guards::freed),
    #[cfg(feature = "fortress")]
    ("link", guards::link),
    ("cost", cost::cost),
    ("switch", threads::switch),
    ("fpu", threads::fpu),
    ("processors", smp::processors),
    ("shootdown", smp::shootdown),
    ("overflow", crash::overflow),
    ("stop", crash::stop),
    ("probe", crash::probe),
    ("region", crash::region),
    ("fatal", crash::fatal),
];

static CHOSEN: AtomicU32 = AtomicU32::new(u32::MAX);
/// Timer interrupts seen, on any processor.
pub(crate) static TIMER_COUNT: AtomicU64 = AtomicU64::new(0);

/// Run the test called `name`, from the boot stack.
pub(crate) fn run(name: &str) -> ! {
    let index = TESTS.iter().position(|(known, _)| *known == name);
    let Some(index) = index else {
        say!("no test {name:?}");
        leave(2)
    };
    CHOSEN.store(index as u32, Ordering::Relaxed);
    say!("test {name}");
    START.enter(program::spawn_kernel("test", test))
}

fn test() -> ! {
    if let Some((name, body)) = TESTS.get(CHOSEN.load(Ordering::Relaxed) as usize) {
        body();
        say!("passed {name}");
    }
    leave(0)
}

/// What a further processor does: wait for calls.
pub(crate) fn other_processor(_cpu: CpuId) -> ! {
    START.enter(program::spawn_kernel("idle", idle))
}

fn idle() -> ! {
    loop {
        cpu::idle();
        cpu::take_work();
        smp::work();
        crash::work();
    }
}

/// A timer interrupt.
pub(crate) fn timer() {
    TIMER_COUNT.fetch_add(1, Ordering::Relaxed);
}

/// The kernel itself failed: some tests mean it to.
pub(crate) fn fatal(trap: &FatalTrap) -> ! {
    say!("fatal {:?}", trap.kind);
    crash::after_fatal(trap);
    leave(1)
}

/// Give the other threads turns until `done`.
pub(crate) fn run_others(done: impl Fn() -> bool) {
    while !done() {
        program::yield_now();
    }
}
