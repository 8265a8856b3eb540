//! Reports which protections against programs (SMEP, SMAP, UMIP …) this processor's registers have enabled.

use core::arch::asm;

use super::features::{self, Feature};
use super::{fpu, msr};

/// The answers of [`guards`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guards {
    /// CR0.WP: the kernel cannot write through read-only entries.
    pub write_protect: bool,
    /// EFER.NXE: pages may be not executable.
    pub no_execute: bool,
    /// CR4.SMEP: the kernel cannot execute pages of programs.
    pub smep: bool,
    /// CR4.SMAP: the kernel cannot touch pages of programs outside its copies.
    pub smap: bool,
    /// CR4.UMIP: programs cannot ask where the descriptor tables are.
    pub umip: bool,
    /// LSTAR and CSTAR: where SYSCALL enters from 64-bit and from compatibility mode.
    pub syscall: [u64; 2],
    /// The code selector, stack and entry of SYSENTER; selector 0 makes it fault.
    pub sysenter: [u64; 3],
    /// Selector of the local descriptor table, 0 for none.
    pub local_table: u16,
    /// The vector and other states programs may use, as XCR0 has them.
    pub enabled_states: u64,
    /// The states kept when a thread leaves the processor.
    pub saved_states: u64,
    /// Whether bulk moves of the kernel use 32-byte registers.
    pub wide_moves: bool,
}

/// This processor's, now.
pub fn guards() -> Guards {
    const CR0_WP: u64 = 1 << 16;
    const CR4_UMIP: u64 = 1 << 11;
    const CR4_SMEP: u64 = 1 << 20;
    const CR4_SMAP: u64 = 1 << 21;
    const EFER_NXE: u64 = 1 << 11;
    let cr4 = msr::cr4();
    // SAFETY: every x86-64 processor has these registers; reading them has no effect.
    let read = |register| unsafe { msr::read(register) };
    let local_table: u16;
    // SAFETY: stores a selector in a register, nothing else.
    unsafe { asm!("sldt {:x}", out(reg) local_table, options(nomem, nostack, preserves_flags)) };
    Guards {
        write_protect: msr::cr0() & CR0_WP != 0,
        no_execute: read(msr::EFER) & EFER_NXE != 0,
        smep: cr4 & CR4_SMEP != 0,
        smap: cr4 & CR4_SMAP != 0,
        umip: cr4 & CR4_UMIP != 0,
        syscall: [read(msr::LSTAR), read(msr::CSTAR)],
        sysenter: [msr::SYSENTER_CS, msr::SYSENTER_ESP, msr::SYSENTER_EIP].map(read),
        local_table,
        enabled_states: enabled_states(),
        saved_states: fpu::saved_states(),
        wide_moves: features::has(Feature::WideMoves),
    }
}

/// XCR0; x87 and SSE where there is none.
fn enabled_states() -> u64 {
    if !features::has(Feature::Xsave) {
        return 0b11;
    }
    let (low, high): (u32, u32);
    // SAFETY: CR4.OSXSAVE is set where the feature is, so the instruction exists.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Whether the kernel's wide moves leave a program's registers whole while it may use the states of `xcr0`.
pub fn wide_moves_fit(xcr0: u64) -> bool {
    features::wide_moves_fit(xcr0)
}

/// Use only the moves of a processor with AVX-512 from here on: for tests on one without.
pub fn use_narrow_moves() {
    features::narrow_moves();
}
