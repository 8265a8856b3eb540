//! Decides where a 2 MiB page may stand: which ranges want one, which block of a range it covers, and where a mapping
//! is placed so that it can have some.
//!
//! The settings are Linux's (Documentation/admin-guide/mm/transhuge.rst): `always`, `madvise` and `never` for faults,
//! and for how hard memory is tried for a block.

use crate::vma::{PAGE, VmaFlags};

/// Bytes of a huge page.
pub const HUGE: u64 = 2 << 20;

/// Which private ranges get huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Policy {
    /// All that are large enough.
    Always,
    /// Those that asked for it (`MADV_HUGEPAGE`).
    Madvise,
    /// No range at all.
    Never,
}

/// How hard a fault tries for a block when none is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Defrag {
    /// Always: single frames on their way are given back first, so that they join.
    Always,
    /// Leaves that to a background task, of which there is none here.
    Defer,
    /// Like `madvise`; others leave it to the background.
    DeferMadvise,
    /// For ranges that asked for huge pages.
    Madvise,
    /// It takes a small page at once.
    Never,
}

impl Policy {
    /// All of them, in the order of their file.
    pub const ALL: [(&'static str, Self); 3] =
        [("always", Self::Always), ("madvise", Self::Madvise), ("never", Self::Never)];

    /// Whether a range with these flags gets huge pages, in a process that has not turned them off.
    pub const fn grants(self, flags: VmaFlags) -> bool {
        const REFUSED: VmaFlags =
            VmaFlags::NO_HUGE.with(VmaFlags::GROWS_DOWN).with(VmaFlags::SHARED).with(VmaFlags::POOL);
        flags.0 & REFUSED.0 == 0
            && match self {
                Self::Always => true,
                Self::Madvise => flags.has(VmaFlags::HUGE),
                Self::Never => false,
            }
    }
}

impl Defrag {
    /// All of them, in the order of their file.
    pub const ALL: [(&'static str, Self); 5] = [
        ("always", Self::Always),
        ("defer", Self::Defer),
        ("defer+madvise", Self::DeferMadvise),
        ("madvise", Self::Madvise),
        ("never", Self::Never),
    ];

    /// Whether a fault in a range with these flags tries harder.
    pub const fn tries(self, flags: VmaFlags) -> bool {
        match self {
            Self::Always => true,
            Self::DeferMadvise | Self::Madvise => flags.has(VmaFlags::HUGE),
            Self::Defer | Self::Never => false,
        }
    }
}

/// The aligned block around `addr`, if the range `start..end` covers it whole.
#[inline]
pub const fn block_around(start: u64, end: u64, addr: u64) -> Option<u64> {
    if end - start < HUGE {
        return None;
    }
    let block = addr & !(HUGE - 1);
    if block >= start && end - block >= HUGE { Some(block) } else { None }
}

/// The aligned blocks that lie whole in `start..end`, as a range; `None` without one.
pub const fn blocks_within(start: u64, end: u64) -> Option<(u64, u64)> {
    let (Some(first), last) = (start.checked_next_multiple_of(HUGE), end & !(HUGE - 1)) else { return None };
    if first < last { Some((first, last)) } else { None }
}

/// Whether a private mapping of `len` bytes is placed on a 2 MiB border: one that huge pages can fill whole. Others
/// stay close to their neighbours.
pub const fn is_aligned_length(len: u64) -> bool {
    len >= HUGE && len.is_multiple_of(HUGE)
}

/// Room that holds `len` bytes on a 2 MiB border wherever it begins.
pub const fn room_to_align(len: u64) -> Option<u64> {
    len.checked_add(HUGE - PAGE)
}

/// Where they go in the room that [`room_to_align`] asked for and that begins at `at`: on its highest border.
pub const fn placed_in(at: u64) -> u64 {
    (at + HUGE - PAGE) & !(HUGE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: VmaFlags = VmaFlags(0);

    #[test]
    fn only_a_block_that_the_range_covers_whole_is_taken() {
        assert_eq!(block_around(HUGE, 3 * HUGE, HUGE), Some(HUGE));
        assert_eq!(block_around(HUGE, 3 * HUGE, 3 * HUGE - 1), Some(2 * HUGE));
        assert_eq!(block_around(HUGE + PAGE, 3 * HUGE, HUGE + PAGE), None);
        assert_eq!(block_around(HUGE + PAGE, 3 * HUGE, 2 * HUGE), Some(2 * HUGE));
        assert_eq!(block_around(0, HUGE - PAGE, 0), None);
        assert_eq!(block_around(HUGE, 2 * HUGE + PAGE, 2 * HUGE), None);
    }

    #[test]
    fn blocks_of_a_range_begin_and_end_inside_it() {
        assert_eq!(blocks_within(PAGE, 3 * HUGE - PAGE), Some((HUGE, 2 * HUGE)));
        assert_eq!(blocks_within(PAGE, 2 * HUGE - PAGE), None);
        assert_eq!(blocks_within(HUGE, HUGE), None);
        assert_eq!(blocks_within(u64::MAX - PAGE, u64::MAX), None);
    }

    #[test]
    fn a_stack_or_a_range_that_declined_gets_none_under_any_policy() {
        for (_, policy) in Policy::ALL {
            for refused in [VmaFlags::NO_HUGE, VmaFlags::GROWS_DOWN, VmaFlags::SHARED] {
                assert!(!policy.grants(refused.with(VmaFlags::HUGE)), "{policy:?}");
            }
        }
        assert!(Policy::Always.grants(NONE) && !Policy::Madvise.grants(NONE) && !Policy::Never.grants(VmaFlags::HUGE));
        assert!(Policy::Madvise.grants(VmaFlags::HUGE));
    }

    #[test]
    fn an_aligned_mapping_lies_within_its_room_as_high_as_it_can() {
        for begin in [HUGE, HUGE + PAGE, 2 * HUGE - PAGE] {
            for len in [HUGE, 8 * HUGE] {
                let room = room_to_align(len).unwrap_or(0);
                let at = placed_in(begin);
                assert!(at.is_multiple_of(HUGE) && at >= begin && at + len <= begin + room);
                assert!(at + HUGE + len > begin + room, "{begin:#x} leaves a block above");
            }
        }
    }

    #[test]
    fn only_ranges_that_asked_try_harder_under_madvise() {
        assert!(Defrag::Madvise.tries(VmaFlags::HUGE) && !Defrag::Madvise.tries(NONE) && Defrag::Always.tries(NONE));
        assert!(!Defrag::Defer.tries(VmaFlags::HUGE) && !Defrag::Never.tries(VmaFlags::HUGE));
        assert!(Defrag::DeferMadvise.tries(VmaFlags::HUGE));
    }
}
