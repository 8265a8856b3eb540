//! Address types: physical addresses, frame numbers, user addresses, and ranges of them.
//!
//! A [`UserAddr`] is whatever a program passed: it may point anywhere and is checked by the copies that use it. A
//! [`UserPage`] is a page of the user half, so an address space never touches the kernel's half by mistake.

/// Bytes in a page, and in a frame.
pub const PAGE_SIZE: usize = 4096;
/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;
/// Pages in a huge page (2 MiB).
pub const HUGE_PAGES: usize = 512;
/// First address past the user half. The last page below the hole is never mapped: a `SYSCALL` there would return to a
/// non-canonical address (Intel SDM, SYSRET).
pub const USER_END: u64 = 0x0000_7fff_ffff_f000;

/// A physical address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct PhysAddr(pub u64);

/// A physical frame: address / 4096. 32 bits reach 16 TiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct FrameNumber(pub u32);

impl FrameNumber {
    /// The frame's first byte.
    pub const fn addr(self) -> PhysAddr {
        PhysAddr((self.0 as u64) << PAGE_SHIFT)
    }
}

/// An address as a program gave it: not checked, dereferenced only by [`crate::user`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Default)]
pub struct UserAddr(pub u64);

impl UserAddr {
    /// The address `bytes` further on; wraps around, and the copies report a fault there.
    #[must_use]
    pub const fn add(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes as u64))
    }

    /// The page this address lies in, if it is in the user half.
    pub const fn page(self) -> Option<UserPage> {
        if self.0 < USER_END { Some(UserPage((self.0 >> PAGE_SHIFT) << PAGE_SHIFT)) } else { None }
    }
}

/// A page-aligned address of the user half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct UserPage(u64);

impl UserPage {
    /// The page starting at `addr`; `None` if that is not page-aligned or not in the user half.
    pub const fn new(addr: u64) -> Option<Self> {
        if addr < USER_END && addr.is_multiple_of(PAGE_SIZE as u64) { Some(Self(addr)) } else { None }
    }

    /// Address of the page's first byte.
    pub const fn addr(self) -> u64 {
        self.0
    }
}

/// Whole pages `[start, end)` of the user half; possibly empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRange {
    start: u64,
    end: u64,
}

impl PageRange {
    /// From two page-aligned addresses, `start <= end <= USER_END`; `None` for anything else.
    pub const fn new(start: u64, end: u64) -> Option<Self> {
        let aligned = (start | end).is_multiple_of(PAGE_SIZE as u64);
        if aligned && start <= end && end <= USER_END { Some(Self { start, end }) } else { None }
    }

    /// The one page at `page`.
    pub const fn one(page: UserPage) -> Self {
        Self { start: page.0, end: page.0 + PAGE_SIZE as u64 }
    }

    /// The whole user half.
    pub const ALL: Self = Self { start: 0, end: USER_END };

    /// The first byte's address, a multiple of the page size, below `USER_END`.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// First address past the end.
    pub const fn end(self) -> u64 {
        self.end
    }

    /// Number of pages.
    pub const fn pages(self) -> usize {
        ((self.end - self.start) >> PAGE_SHIFT) as usize
    }
}

/// Frames `[start, end)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameRange {
    /// The first frame of the range; equal to `end` in an empty range.
    pub start: FrameNumber,
    /// First frame past the end.
    pub end: FrameNumber,
}

impl FrameRange {
    /// Frames in it.
    pub fn frames(&self) -> usize {
        self.end.0.saturating_sub(self.start.0) as usize
    }
}
