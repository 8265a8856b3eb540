//! What the boot protocol told us, as values that live for ever.

use crate::addr::FrameNumber;

/// Handed to [`crate::Kernel::main`].
#[derive(Clone, Copy, Debug)]
pub struct BootInfo {
    /// The command line without its terminator; bytes, since nobody promised UTF-8.
    pub command_line: &'static [u8],
    /// The initial ramdisk as loaded; empty if there is none. Its frames are never handed out as free.
    pub initrd: &'static [u8],
    /// All RAM the firmware reported, free or not, in ascending order.
    pub ram: &'static [FrameRange],
    /// What of it is free: not the kernel, the initrd, the frame table or the early heap. Ascending, disjoint.
    pub free: &'static [FrameRange],
    /// First number past the highest RAM frame (the bound of every [`FrameNumber`] that is RAM).
    pub frame_limit: u32,
    /// Processors found (not yet started beyond the first), at least 1.
    pub cpus: u32,
    /// Which machine this looks like, for the log: `pc`, `q35`, `microvm` or `unknown`.
    pub platform: &'static str,
}

/// Frames `[start, end)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameRange {
    /// First frame.
    pub start: FrameNumber,
    /// First frame past the end.
    pub end: FrameNumber,
}

/// Frames of the kernel image itself (text, read-only data, data), for `/proc/iomem`-like accounting and dumps.
pub fn kernel_image() -> FrameRange {
    todo!()
}

/// The kernel's GNU build-id, as the linker wrote it; empty if the linker wrote none.
pub fn build_id() -> &'static [u8] {
    todo!()
}
