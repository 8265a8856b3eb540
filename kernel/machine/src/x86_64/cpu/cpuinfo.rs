//! The processor's own description, for `/proc/cpuinfo` and the auxiliary vector.

use super::features::{self, Feature, cpuid};

/// Vendor and model strings and a few identification numbers.
#[derive(Clone, Copy, Debug)]
pub struct CpuInfo {
    /// The vendor identification of CPUID leaf 0: twelve ASCII bytes, such as `GenuineIntel`.
    pub vendor: [u8; 12],
    /// Brand string, NUL-padded.
    pub model: [u8; 48],
    /// The family of CPUID leaf 1, extended family added.
    pub family: u32,
    /// The model of CPUID leaf 1, extended model in the upper four bits.
    pub model_number: u32,
    /// The stepping of CPUID leaf 1, 0 to 15.
    pub stepping: u32,
    /// The capability words for `AT_HWCAP` and `AT_HWCAP2`.
    pub hwcap: [u64; 2],
    /// Smallest stack for signals, for `AT_MINSIGSTKSZ`.
    pub min_signal_stack: usize,
}

/// Of this processor.
pub fn info() -> CpuInfo {
    let [_, b, c, d] = cpuid(0, 0);
    let mut vendor = [0; 12];
    for (to, from) in vendor.chunks_exact_mut(4).zip([b, d, c]) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    let mut model = [0; 48];
    for (index, to) in model.chunks_exact_mut(16).enumerate() {
        for (to, from) in to.chunks_exact_mut(4).zip(cpuid(0x8000_0002 + index as u32, 0)) {
            to.copy_from_slice(&from.to_le_bytes());
        }
    }
    let [signature, _, _, features_edx] = cpuid(1, 0);
    let base_family = signature >> 8 & 15;
    let extended = if base_family == 15 { signature >> 20 & 255 } else { 0 };
    // HWCAP2 bit 1: FSGSBASE instructions are allowed (Linux's arch/x86/include/uapi/asm/hwcap2.h).
    let hwcap2 = if features::has(Feature::FsGsBase) { 2 } else { 0 };
    CpuInfo {
        vendor,
        model,
        family: base_family + extended,
        model_number: (signature >> 4 & 15) | (signature >> 12 & 0xf0),
        stepping: signature & 15,
        hwcap: [u64::from(features_edx), hwcap2],
        // The frame Linux writes besides the FPU state: 440 bytes of registers and siginfo, aligned, and the red zone.
        min_signal_stack: super::fpu::size() + 4 + 440 + 128 + 64,
    }
}

/// RDRAND, tried ten times as Intel advises.
pub(crate) fn random() -> Option<u64> {
    if !features::has(Feature::RdRand) {
        return None;
    }
    (0..10).find_map(|_| {
        let (value, valid): (u64, u8);
        // SAFETY: the instruction exists.
        unsafe {
            core::arch::asm!(
                "rdrand {v}",
                "setc {ok}",
                v = out(reg) value,
                ok = out(reg_byte) valid,
                options(nomem, nostack)
            );
        }
        (valid == 1).then_some(value)
    })
}
