//! Time from the cycle counter, and finding out how fast it runs.
//!
//! The processor may say (CPUID 0x15, or a hypervisor's 0x40000010). Otherwise the counter and the interrupt
//! controller's timer are measured against the ACPI timer, or the PIT where there is none. The measurement spans the
//! rest of boot, at least [`SPAN`] reference ticks; each end is the tightest of a few tries, since an emulator may be
//! preempted between two reads.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::apic;
use crate::describe::Entry;
use crate::x86_64::cpu::features::{self, cpuid};
use crate::x86_64::cpu::msr;
use crate::x86_64::cpu::port::{in8, in32, out8};
/// How a cycle count becomes nanoseconds: `((cycles - base) * mult) >> shift`, in 128 bits. The vDSO uses the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockParams {
    /// Cycle count at time 0.
    pub base: u64,
    /// Nanoseconds per cycle as a fixed-point number with `shift` fractional bits.
    pub mult: u32,
    /// Fractional bits of `mult`.
    pub shift: u32,
    /// Cycles per second.
    pub hz: u64,
}

impl ClockParams {
    /// How long so many cycles are.
    #[inline]
    #[must_use]
    pub fn nanoseconds(&self, cycles: u64) -> u64 {
        ((u128::from(cycles) * u128::from(self.mult)) >> self.shift) as u64
    }
}

/// Ticks per second of the ACPI timer.
const ACPI_HZ: u64 = 3_579_545;
/// Ticks per second of the PIT.
const PIT_HZ: u64 = 1_193_182;
const NANOS: u64 = 1_000_000_000;
/// Shortest measurement: 4 ms.
const SPAN: u64 = 4;

static MULT: AtomicU32 = AtomicU32::new(1);
static SHIFT: AtomicU32 = AtomicU32::new(0);
/// Cycles per nanosecond, times 2^[`PER_NANO_SHIFT`].
static PER_NANO: AtomicU64 = AtomicU64::new(1 << PER_NANO_SHIFT);
const PER_NANO_SHIFT: u32 = 48;
static BASE: AtomicU64 = AtomicU64::new(0);
static HZ: AtomicU64 = AtomicU64::new(NANOS);
/// What [`params`] gives, in [`crate::describe`].
pub static CLOCK: [Entry; 3] =
    [Entry::address("clock.base", &BASE), Entry::address("clock.mult", &MULT), Entry::address("clock.shift", &SHIFT)];

/// The cycle counter.
#[inline]
pub(crate) fn cycles() -> u64 {
    let [low, high] = cycles_in_halves();
    u64::from(high) << 32 | u64::from(low)
}

/// The cycle counter, lower half first.
#[inline(always)]
pub(crate) fn cycles_in_halves() -> [u32; 2] {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    [low, high]
}

/// Nanoseconds since boot.
#[inline]
pub(crate) fn now() -> u64 {
    nanos_at(cycles())
}

/// Nanoseconds since boot at a cycle count.
#[inline(always)]
pub(crate) fn nanos_at(cycles: u64) -> u64 {
    let passed = cycles.wrapping_sub(BASE.load(Ordering::Relaxed));
    ((u128::from(passed) * u128::from(MULT.load(Ordering::Relaxed))) >> SHIFT.load(Ordering::Relaxed)) as u64
}

/// The cycle count at `nanos` since boot, rounded up.
#[inline]
pub(crate) fn cycles_at(nanos: u64) -> u64 {
    let passed = ((u128::from(nanos) * u128::from(PER_NANO.load(Ordering::Relaxed))) >> PER_NANO_SHIFT) + 1;
    BASE.load(Ordering::Relaxed).saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
}

/// Implements [`crate::time::params`]: the values measured at boot, unchanged afterwards.
pub(crate) fn params() -> ClockParams {
    ClockParams {
        base: BASE.load(Ordering::Relaxed),
        mult: MULT.load(Ordering::Relaxed),
        shift: SHIFT.load(Ordering::Relaxed),
        hz: HZ.load(Ordering::Relaxed),
    }
}

/// A clock of known speed.
#[derive(Clone, Copy)]
enum Reference {
    Acpi(u16),
    Pit,
}

impl Reference {
    fn read(self) -> u32 {
        match self {
            // SAFETY: reading the ACPI timer has no effect.
            Self::Acpi(port) => unsafe { in32(port) & 0xff_ffff },
            // SAFETY: latch and read channel 2 of the PIT, which has no other users.
            Self::Pit => unsafe {
                out8(0x43, 0x80);
                u32::from(in8(0x42)) | u32::from(in8(0x42)) << 8
            },
        }
    }

    /// Ticks from `a` to `b`: the ACPI timer counts 24 bits up, the PIT 16 bits down.
    fn between(self, a: u32, b: u32) -> u64 {
        match self {
            Self::Acpi(_) => u64::from(b.wrapping_sub(a) & 0xff_ffff),
            Self::Pit => u64::from(a.wrapping_sub(b) & 0xffff),
        }
    }

    fn hz(self) -> u64 {
        match self {
            Self::Acpi(_) => ACPI_HZ,
            Self::Pit => PIT_HZ,
        }
    }
}

/// All clocks at one moment.
#[derive(Clone, Copy)]
struct Sample {
    cycles: u64,
    reference: u32,
    timer: u32,
}

/// A measurement begun.
pub(crate) struct Measurement {
    reference: Reference,
    begin: Sample,
}

/// Time 0 is now. Begin to measure.
pub(crate) fn begin(acpi_timer: u16) -> Measurement {
    BASE.store(cycles(), Ordering::Relaxed);
    let reference = if acpi_timer != 0 { Reference::Acpi(acpi_timer) } else { Reference::Pit };
    if matches!(reference, Reference::Pit) {
        // SAFETY: gate of channel 2 on, speaker off; channel 2 counts down from 0xffff, mode 0.
        unsafe {
            out8(0x61, in8(0x61) & !2 | 1);
            out8(0x43, 0xb0);
            out8(0x42, 0xff);
            out8(0x42, 0xff);
        }
    }
    apic::start_counting();
    Measurement { reference, begin: sample(reference) }
}

/// The tightest of a few readings.
fn sample(reference: Reference) -> Sample {
    let mut best = (u64::MAX, Sample { cycles: 0, reference: 0, timer: 0 });
    for _ in 0..4 {
        let before = cycles();
        let read = reference.read();
        let timer = apic::counted();
        let width = cycles().wrapping_sub(before);
        if width < best.0 {
            best = (width, Sample { cycles: before + width / 2, reference: read, timer });
        }
    }
    best.1
}

/// End the measurement and set the clock.
pub(crate) fn finish(measured: &Measurement) {
    let reference = measured.reference;
    let enough = reference.hz() * SPAN / 1000;
    let begun = measured.begin;
    // A reference that stands still must not hang boot.
    let mut patience = 50_000_000u32;
    while reference.between(begun.reference, reference.read()) < enough && patience > 0 {
        patience -= 1;
        core::hint::spin_loop();
    }
    let end = sample(reference);
    let passed = end.cycles - begun.cycles;
    let ticks = reference.between(begun.reference, end.reference).max(1);
    let measured_hz = (u128::from(passed) * u128::from(reference.hz()) / u128::from(ticks)) as u64;
    apic::calibrated(end.timer.wrapping_sub(begun.timer), passed);
    set(told_hz().unwrap_or(measured_hz).max(1_000_000));
}

/// What the processor or the hypervisor says about the counter's speed.
fn told_hz() -> Option<u64> {
    let [denominator, numerator, crystal, _] = cpuid(0x15, 0);
    if denominator != 0 && numerator != 0 && crystal != 0 {
        return Some(u64::from(crystal) * u64::from(numerator) / u64::from(denominator));
    }
    let [_, _, c1, _] = cpuid(1, 0);
    let hypervisor = c1 >> 31 == 1;
    let [khz, ..] = if hypervisor && cpuid(0x4000_0000, 0)[0] >= 0x4000_0010 { cpuid(0x4000_0010, 0) } else { [0; 4] };
    (khz != 0).then(|| u64::from(khz) * 1000)
}

/// A 32-bit multiplier with as much precision as fits.
fn set(hz: u64) {
    let mut shift = 32;
    let mut mult = (u128::from(NANOS) << shift) / u128::from(hz);
    while mult > u128::from(u32::MAX) {
        shift -= 1;
        mult >>= 1;
    }
    // From the rounded multiplier, so that the two conversions are inverse to each other.
    PER_NANO.store(((1u128 << (shift + PER_NANO_SHIFT)) / mult) as u64, Ordering::Relaxed);
    MULT.store(mult as u32, Ordering::Relaxed);
    SHIFT.store(shift, Ordering::Relaxed);
    HZ.store(hz, Ordering::Relaxed);
}

/// Let RDTSCP and RDPID tell programs the processor's number, as Linux does.
pub(crate) fn publish_cpu_number(cpu: u32) {
    if features::has(features::Feature::Rdtscp) {
        // SAFETY: the register exists with RDTSCP and only holds a number.
        unsafe { msr::write(msr::TSC_AUX, u64::from(cpu)) };
    }
}
