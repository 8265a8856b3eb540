//! The high precision event timer as a watchdog: unless it is set again in time, it interrupts the first processor by a
//! non-maskable interrupt (IA-PC HPET Specification 1.0a, 2.3; 82093AA, "I/O redirection table").
//!
//! Comparator 0 runs once, in 64 bits, instead of the PIT, whose input of the I/O interrupt controller it pulses; that
//! delivers the pulse as an NMI. Registers are accessed in halves: older emulators know no others.

use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::ioapic;
use crate::x86_64::cpu::local;
use crate::x86_64::memory::paging;

const CAPABILITIES: usize = 0x000;
/// Femtoseconds per tick, in the upper half of the capabilities.
const PERIOD: usize = 0x004;
const CONFIGURATION: usize = 0x010;
const COUNTER: usize = 0x0f0;
const TIMER: usize = 0x100;
const COMPARATOR: usize = 0x108;

/// In the capabilities: comparators 0 and 1 can take the places of PIT and RTC.
const CAN_REPLACE: u32 = 1 << 15;
const RUN: u32 = 1;
/// They do: the first is wired to [`INPUT`] then.
const REPLACE: u32 = 2;
const INPUT: u32 = 2;
const INTERRUPT: u32 = 1 << 2;
const IN_64_BITS: u32 = 1 << 5;
/// The longest period a timer may state, in femtoseconds (specification, 2.3.4).
const LONGEST_PERIOD: u32 = 100_000_000;
const FEMTOSECONDS: u128 = 1_000_000;

static REGISTERS: AtomicPtr<u32> = AtomicPtr::new(core::ptr::null_mut());
/// A processor is setting the timer.
static BUSY: AtomicBool = AtomicBool::new(false);
/// The NMI is wired.
static WIRED: AtomicBool = AtomicBool::new(false);

/// Remember where the registers are; 0 for none. Boot only.
pub(crate) fn map(at: u64) {
    if at != 0 && at.is_multiple_of(1024) && at < 1 << 32 {
        REGISTERS.store(paging::map_device(at, 1024).cast(), Ordering::Relaxed);
    }
}

fn read(at: *mut u32, register: usize) -> u32 {
    // SAFETY: a register of the block that `map` shows; reading has no effect.
    unsafe { at.byte_add(register).read_volatile() }
}

fn write(at: *mut u32, register: usize, value: u32) {
    // SAFETY: a register of the block that `map` shows; the timer touches no memory.
    unsafe { at.byte_add(register).write_volatile(value) };
}

/// The counter; its halves are read until none carried into the other in between.
fn counter(at: *mut u32) -> u64 {
    loop {
        let high = read(at, COUNTER + 4);
        let low = read(at, COUNTER);
        if read(at, COUNTER + 4) == high {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

/// Have the timer interrupt the first processor `nanos` from now, instead of any moment before. False without such a
/// timer. Any context; a processor that comes while another one is here leaves it to that one.
pub(crate) fn arm(nanos: u64) -> bool {
    let at = REGISTERS.load(Ordering::Relaxed);
    if at.is_null() {
        return false;
    }
    if BUSY.swap(true, Ordering::Acquire) {
        return true;
    }
    let armed = wired(at);
    if armed {
        let period = read(at, PERIOD);
        let ticks = (u128::from(nanos) * FEMTOSECONDS / u128::from(period)) as u64;
        let due = counter(at).saturating_add(ticks);
        write(at, TIMER, 0);
        write(at, COMPARATOR, due as u32);
        write(at, COMPARATOR + 4, (due >> 32) as u32);
        write(at, TIMER, INTERRUPT);
    }
    BUSY.store(false, Ordering::Release);
    armed
}

/// Keep the timer silent from now on.
pub(crate) fn disarm() {
    let at = REGISTERS.load(Ordering::Relaxed);
    if !at.is_null() && WIRED.load(Ordering::Relaxed) {
        write(at, TIMER, 0);
    }
}

/// Start the counter and wire the input, the first time; whether that is possible.
fn wired(at: *mut u32) -> bool {
    if WIRED.load(Ordering::Relaxed) {
        return true;
    }
    let sane = (1..=LONGEST_PERIOD).contains(&read(at, PERIOD)) && read(at, TIMER) & IN_64_BITS != 0;
    if !sane || read(at, CAPABILITIES) & CAN_REPLACE == 0 {
        return false;
    }
    write(at, TIMER, 0);
    // Before the input is opened: firmware leaves the PIT ticking on it.
    write(at, CONFIGURATION, RUN | REPLACE);
    let wired = ioapic::deliver_nmi(INPUT, local::first().apic_id.load(Ordering::Relaxed));
    WIRED.store(wired, Ordering::Relaxed);
    wired
}
