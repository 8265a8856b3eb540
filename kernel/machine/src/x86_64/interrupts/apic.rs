//! The local interrupt controller: end of interrupt, messages to other processors, the one-shot timer.
//!
//! x2APIC through model-specific registers where the processor has it, else xAPIC through its page (Intel SDM 3,
//! "Advanced Programmable Interrupt Controller"). Every processor's is at the same address.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::vectors;
use crate::x86_64::cpu::features::{self, Feature};
use crate::x86_64::cpu::msr;
use crate::x86_64::cpu::stopped::ControllerState;

const ID: u32 = 0x20;
const TASK_PRIORITY: u32 = 0x80;
const EOI: u32 = 0xb0;
const SPURIOUS: u32 = 0xf0;
/// The first of eight registers of 32 vectors each, as the next.
const IN_SERVICE: u32 = 0x100;
const REQUESTED: u32 = 0x200;
const COMMAND_LOW: u32 = 0x300;
const COMMAND_HIGH: u32 = 0x310;
const LVT_TIMER: u32 = 0x320;
const LVT_LINT0: u32 = 0x350;
const LVT_LINT1: u32 = 0x360;
const TIMER_INITIAL: u32 = 0x380;
const TIMER_CURRENT: u32 = 0x390;
const TIMER_DIVIDE: u32 = 0x3e0;

const ENABLE: u64 = 1 << 11;
const X2APIC_MODE: u64 = 1 << 10;
const SOFTWARE_ENABLE: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
const TSC_DEADLINE_MODE: u32 = 2 << 17;
const DIVIDE_BY_16: u32 = 3;
const DELIVER_NMI: u32 = 4 << 8;
const DELIVER_INIT: u32 = 5 << 8;
const DELIVER_STARTUP: u32 = 6 << 8;
const ASSERT: u32 = 1 << 14;
const PENDING: u32 = 1 << 12;

static PAGE: AtomicPtr<u32> = AtomicPtr::new(core::ptr::null_mut());
static X2: AtomicBool = AtomicBool::new(false);
/// Timer ticks per 2^32 cycles of the TSC.
static TICKS_PER_CYCLE: AtomicU64 = AtomicU64::new(0);

#[inline]
fn read(register: u32) -> u32 {
    if X2.load(Ordering::Relaxed) {
        // SAFETY: the register exists in x2APIC mode, which is on.
        return unsafe { msr::read(msr::X2APIC + (register >> 4)) } as u32;
    }
    // SAFETY: `PAGE` shows the controller's registers since `find`.
    unsafe { PAGE.load(Ordering::Relaxed).byte_add(register as usize).read_volatile() }
}

#[inline]
fn write(register: u32, value: u32) {
    if X2.load(Ordering::Relaxed) {
        // SAFETY: the register exists in x2APIC mode, which is on; the controller touches no memory.
        return unsafe { msr::write(msr::X2APIC + (register >> 4), u64::from(value)) };
    }
    // SAFETY: as for `read`.
    unsafe { PAGE.load(Ordering::Relaxed).byte_add(register as usize).write_volatile(value) };
}

/// Find the controller, whose page `map` shows. Once, on the first processor.
pub(crate) fn find(map: fn(u64, u64) -> *mut u8) {
    // SAFETY: the register exists on every processor with a local APIC, which x86-64 has.
    let base = unsafe { msr::read(msr::APIC_BASE) } & 0x000f_ffff_ffff_f000;
    X2.store(features::has(Feature::X2Apic), Ordering::Relaxed);
    PAGE.store(map(base, 4096).cast(), Ordering::Relaxed);
}

/// Switch this processor's controller on. NMIs from the platform reach the first one alone.
pub(crate) fn enable(first: bool) {
    let mode = if X2.load(Ordering::Relaxed) { ENABLE | X2APIC_MODE } else { ENABLE };
    // SAFETY: enabling keeps the base address; x2APIC mode only where it exists.
    unsafe { msr::write(msr::APIC_BASE, msr::read(msr::APIC_BASE) | mode) };
    write(TASK_PRIORITY, 0);
    write(LVT_LINT0, MASKED);
    write(LVT_LINT1, if first { DELIVER_NMI } else { MASKED });
    write(TIMER_DIVIDE, DIVIDE_BY_16);
    let mode = if features::has(Feature::TscDeadline) { TSC_DEADLINE_MODE } else { 0 };
    write(LVT_TIMER, u32::from(vectors::TIMER) | mode);
    write(SPURIOUS, SOFTWARE_ENABLE | u32::from(vectors::SPURIOUS));
}

/// This processor's number as the controllers know it.
pub(crate) fn id() -> u32 {
    if X2.load(Ordering::Relaxed) { read(ID) } else { read(ID) >> 24 }
}

/// The interrupt in service is done.
#[inline]
pub(crate) fn end_of_interrupt() {
    write(EOI, 0);
}

/// What this processor's controller holds; `None` before it was found. Any context.
pub(crate) fn state() -> Option<ControllerState> {
    if !X2.load(Ordering::Relaxed) && PAGE.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let counts = if features::has(Feature::TscDeadline) {
        // SAFETY: the register exists; reading it has no effect.
        unsafe { msr::read(msr::TSC_DEADLINE) != 0 }
    } else {
        read(TIMER_CURRENT) != 0
    };
    Some(ControllerState {
        in_service: highest(IN_SERVICE),
        requested: highest(REQUESTED),
        priority: read(TASK_PRIORITY) as u8,
        timer_counts: counts,
    })
}

/// The highest vector whose bit is set; 0 when none is, as no interrupt has the number of an exception.
fn highest(first: u32) -> u8 {
    let found = (0..8u32).rev().map(|index| (index, read(first + (index << 4)))).find(|(_, bits)| *bits != 0);
    found.map_or(0, |(index, bits)| (index * 32 + bits.ilog2()) as u8)
}

fn command(target: u32, what: u32) {
    if X2.load(Ordering::Relaxed) {
        // SAFETY: a message to a processor; what it does there is that processor's handler's business.
        return unsafe { msr::write(msr::X2APIC + (COMMAND_LOW >> 4), u64::from(target) << 32 | u64::from(what)) };
    }
    let _off = crate::irq::off();
    while read(COMMAND_LOW) & PENDING != 0 {
        core::hint::spin_loop();
    }
    write(COMMAND_HIGH, target << 24);
    write(COMMAND_LOW, what);
}

/// Interrupt another processor.
#[inline]
pub(crate) fn send(target: u32, vector: u8) {
    command(target, u32::from(vector) | ASSERT);
}

/// Interrupt another processor whatever it does.
pub(crate) fn send_nmi(target: u32) {
    command(target, DELIVER_NMI | ASSERT);
}

/// Reset another processor.
pub(crate) fn send_init(target: u32) {
    command(target, DELIVER_INIT | ASSERT);
}

/// Let a reset processor begin in real mode at `page` * 4096.
pub(crate) fn send_startup(target: u32, page: u8) {
    command(target, DELIVER_STARTUP | ASSERT | u32::from(page));
}

/// Begin counting down without an interrupt, to calibrate.
pub(crate) fn start_counting() {
    write(LVT_TIMER, MASKED | u32::from(vectors::TIMER));
    write(TIMER_INITIAL, u32::MAX);
}

/// Ticks since [`start_counting`].
pub(crate) fn counted() -> u32 {
    u32::MAX - read(TIMER_CURRENT)
}

/// Remember what was measured, and go back to normal.
pub(crate) fn calibrated(ticks: u32, cycles: u64) {
    write(TIMER_INITIAL, 0);
    write(LVT_TIMER, u32::from(vectors::TIMER));
    TICKS_PER_CYCLE
        .store((u128::from(ticks) << 32).checked_div(u128::from(cycles)).unwrap_or(0) as u64, Ordering::Relaxed);
}

/// Let this processor's timer expire at the cycle count `at`, or, where it cannot count that far, earlier. 0: never.
#[inline]
pub(crate) fn arm(at: u64, now: u64) {
    if features::has(Feature::TscDeadline) {
        // SAFETY: the register exists; an interrupt at a time of our choice.
        return unsafe { msr::write(msr::TSC_DEADLINE, at) };
    }
    let ticks = if at == 0 {
        0
    } else {
        let cycles = at.saturating_sub(now);
        let ticks = (u128::from(cycles) * u128::from(TICKS_PER_CYCLE.load(Ordering::Relaxed))) >> 32;
        ticks.clamp(1, u128::from(u32::MAX)) as u32
    };
    write(TIMER_INITIAL, ticks);
}
