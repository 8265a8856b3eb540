//! How the kernel makes nanoseconds since boot of the cycle counter (`machine::time::ClockParams`).

use super::super::space::Space;
use super::table::Table;

/// `((cycles - base) * mult) >> shift`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    base: u64,
    mult: u32,
    shift: u32,
}

impl Clock {
    /// The one that the kernel measured at boot.
    pub(super) fn read(space: &Space<'_>, table: &Table) -> Option<Self> {
        let half = |name: &str| space.half(table.get(name)?);
        let base = space.word(table.get("clock.base")?)?;
        Some(Self { base, mult: half("clock.mult")?, shift: half("clock.shift").filter(|shift| *shift < 64)? })
    }

    /// When the counter stood there.
    pub(super) fn at(&self, cycles: u64) -> Option<u64> {
        self.lasts(cycles.saturating_sub(self.base))
    }

    /// Nanoseconds of so many cycles.
    pub(super) fn lasts(&self, cycles: u64) -> Option<u64> {
        u64::try_from((u128::from(cycles) * u128::from(self.mult)) >> self.shift).ok()
    }
}
