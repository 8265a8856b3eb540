//! Detects processor features once, by CPUID, and enables them on each processor.
//!
//! All processors are taken to be equal: the first one's answers count.

use core::arch::asm;
use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicU32, Ordering};

use super::msr;

/// A feature the kernel uses when present.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Feature {
    Smep = 1,
    Smap = 2,
    Umip = 4,
    FsGsBase = 8,
    Xsave = 0x10,
    XsaveOpt = 0x20,
    Avx = 0x40,
    X2Apic = 0x80,
    TscDeadline = 0x100,
    GigaPages = 0x200,
    Nx = 0x400,
    RdRand = 0x800,
    GlobalPages = 0x1000,
    Avx512 = 0x2000,
    Rdtscp = 0x4000,
    /// Not the processor's: bulk moves use 32-byte registers, see [`wide_moves_fit`].
    WideMoves = 0x8000,
}

pub(super) static FOUND: AtomicU32 = AtomicU32::new(0);

/// Whether every processor has it.
#[inline]
pub(crate) fn has(feature: Feature) -> bool {
    FOUND.load(Ordering::Relaxed) & feature as u32 != 0
}

/// CPUID, zeros past the highest leaf.
pub(crate) fn cpuid(leaf: u32, sub: u32) -> [u32; 4] {
    let highest = __cpuid_count(leaf & 0xf000_0000, 0).eax;
    if leaf > highest {
        return [0; 4];
    }
    let r = __cpuid_count(leaf, sub);
    [r.eax, r.ebx, r.ecx, r.edx]
}

/// Ask the processor, once, on the first one.
pub(crate) fn detect() {
    let [_, _, c1, d1] = cpuid(1, 0);
    let [_, b7, c7, _] = cpuid(7, 0);
    let [xsave1, ..] = cpuid(0xd, 1);
    let [_, _, _, dx] = cpuid(0x8000_0001, 0);
    let table = [
        (Feature::Smep, b7, 7),
        (Feature::Smap, b7, 20),
        (Feature::Umip, c7, 2),
        (Feature::FsGsBase, b7, 0),
        (Feature::Xsave, c1, 26),
        (Feature::XsaveOpt, xsave1, 0),
        (Feature::Avx, c1, 28),
        (Feature::X2Apic, c1, 21),
        (Feature::TscDeadline, c1, 24),
        (Feature::GigaPages, dx, 26),
        (Feature::Nx, dx, 20),
        (Feature::RdRand, c1, 30),
        (Feature::GlobalPages, d1, 13),
        (Feature::Avx512, b7, 16),
        (Feature::Rdtscp, dx, 27),
    ];
    let found = table.iter().filter(|(_, word, bit)| word >> bit & 1 == 1).map(|(f, ..)| *f as u32).sum();
    FOUND.store(found, Ordering::Relaxed);
}

const CR4_PGE: u64 = 1 << 7;
const CR4_OSFXSR: u64 = 1 << 9;
const CR4_OSXMMEXCPT: u64 = 1 << 10;
const CR4_UMIP: u64 = 1 << 11;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_OSXSAVE: u64 = 1 << 18;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

const CR0_MP: u64 = 1 << 1;
const CR0_EM: u64 = 1 << 2;
const CR0_TS: u64 = 1 << 3;
const CR0_NE: u64 = 1 << 5;
const CR0_WP: u64 = 1 << 16;

/// Switch this processor's features on.
pub(crate) fn enable() {
    let optional = [
        (Feature::GlobalPages, CR4_PGE),
        (Feature::Umip, CR4_UMIP),
        (Feature::FsGsBase, CR4_FSGSBASE),
        (Feature::Xsave, CR4_OSXSAVE),
        (Feature::Smep, CR4_SMEP),
        (Feature::Smap, CR4_SMAP),
    ];
    let wanted: u64 = optional.iter().filter(|(f, _)| has(*f)).map(|(_, bit)| bit).sum();
    // SAFETY: FXSR and the SIMD exceptions are part of x86-64, the rest was found by CPUID; the kernel keeps user pages
    // away from its own accesses except inside the marked copies, as SMAP and SMEP demand.
    unsafe { msr::set_cr4(msr::cr4() | CR4_OSFXSR | CR4_OSXMMEXCPT | wanted) };
    let cr0 = (msr::cr0() | CR0_MP | CR0_NE | CR0_WP) & !(CR0_EM | CR0_TS);
    // SAFETY: the FPU is on without traps, and supervisor writes respect read-only pages.
    unsafe { msr::set_cr0(cr0) };
    if has(Feature::Xsave) {
        // SAFETY: OSXSAVE was just set; x87 and SSE are always allowed, the others only where CPUID names them.
        unsafe {
            asm!(
                "xsetbv",
                in("ecx") 0,
                in("eax") xcr0() as u32,
                in("edx") (xcr0() >> 32) as u32,
                options(nomem, nostack)
            );
        }
        if wide_moves_fit(xcr0()) {
            FOUND.fetch_or(Feature::WideMoves as u32, Ordering::Relaxed);
        }
    }
}

/// Whether the kernel's bulk moves may use 32-byte registers while programs have the states of `xcr0`.
///
/// The moves put back the 32 bytes of each register they use. Writing such a register also clears its bytes from 32 on
/// (Intel SDM 1, "Vector length transition"), which are a program's where AVX-512 is on: there the moves use general
/// registers and the SSE forms that leave everything from byte 16 on alone.
pub(crate) fn wide_moves_fit(xcr0: u64) -> bool {
    xcr0 & (AVX | AVX512) == AVX
}

/// Components of XCR0.
const LEGACY: u64 = 0b11;
const AVX: u64 = 0b100;
const AVX512: u64 = 0xe0;

/// Turn the wide moves off: for tests, which run without AVX-512.
pub(crate) fn narrow_moves() {
    FOUND.fetch_and(!(Feature::WideMoves as u32), Ordering::Relaxed);
}

/// The extended states saved and allowed: x87, SSE, AVX, AVX-512 where present.
pub(crate) fn xcr0() -> u64 {
    let [supported, ..] = cpuid(0xd, 0);
    let optional = [(Feature::Avx, AVX), (Feature::Avx512, AVX512)];
    let wanted: u64 = optional.iter().filter(|(f, _)| has(*f)).map(|(_, bits)| bits).sum();
    LEGACY | wanted & u64::from(supported)
}
