//! Hardware entropy (RDRAND).

/// 64 bits from the processor's generator, or `None` without one (then mix [`crate::time::cycles`]).
pub fn hardware() -> Option<u64> {
    crate::x86_64::cpu::cpuinfo::random()
}
