//! What the boot protocol passed, as values of static lifetime.

use core::fmt;

use crate::addr::{FrameNumber, PAGE_SHIFT};
use crate::sync::{Once, SpinLock};
use crate::x86_64::layout;

pub use crate::addr::FrameRange;

/// Handed to [`crate::Kernel::main`].
#[derive(Clone, Copy, Debug)]
pub struct BootInfo {
    /// The command line without its terminator; bytes, since the boot protocol promises no encoding.
    pub command_line: &'static [u8],
    /// The initial ramdisk as loaded; empty if there is none. Its frames are never handed out as free.
    pub initrd: &'static [u8],
    /// All RAM the firmware reported, free or not, in ascending order.
    pub ram: &'static [FrameRange],
    /// What of it is free: not the kernel, the initrd, the frame table or the first megabyte. Ascending, disjoint.
    pub free: &'static [FrameRange],
    /// First number past the highest RAM frame (the bound of every [`FrameNumber`] that is RAM).
    pub frame_limit: u32,
    /// Processors found (not yet started beyond the first), at least 1.
    pub cpus: u32,
    /// The emulated machine as detected, for the log: `pc`, `q35`, `microvm` or `unknown`.
    pub platform: &'static str,
}

/// What the kernel's allocator notes about a frame: three words of its own.
pub type AllocatorRecord = [u32; 3];

static RECORDS: SpinLock<Option<&'static mut [AllocatorRecord]>> = SpinLock::new(None);

/// Stores `records` until [`take_records`] is called.
pub(crate) fn set_records(records: &'static mut [AllocatorRecord]) {
    *RECORDS.lock_irq() = Some(records);
}

/// A record for each frame below [`BootInfo::frame_limit`], for the kernel's allocator; once. They hold whatever was in
/// memory: boot writes none of them, since a large machine has tens of megabytes.
pub fn take_records() -> Option<&'static mut [AllocatorRecord]> {
    RECORDS.lock_irq().take()
}

static INFO: Once<BootInfo> = Once::new();

/// Keep it for [`info`].
pub(crate) fn set_info(info: BootInfo) {
    // Set by boot alone, once; a second value would be ignored.
    let _ = INFO.set(info);
}

/// What boot found. Before boot is done, a machine without memory.
pub fn info() -> BootInfo {
    let none =
        BootInfo { command_line: &[], initrd: &[], ram: &[], free: &[], frame_limit: 0, cpus: 1, platform: "unknown" };
    INFO.get().copied().unwrap_or(none)
}

/// Frames of the kernel image itself (text, read-only data, data), for `/proc/iomem`-like accounting and dumps.
pub fn kernel_image() -> FrameRange {
    let [start, .., end] = layout::image().map(|at| FrameNumber(((at - layout::image_base()) >> PAGE_SHIFT) as u32));
    FrameRange { start, end }
}

/// Virtual addresses of the kernel image: start, end of text, end of read-only data, end.
pub fn image_addresses() -> [u64; 4] {
    layout::image()
}

/// How far boot moved the image: run-time minus link-time address of everything in it. 0 with `nokaslr`.
pub fn image_slide() -> u64 {
    layout::slide()
}

/// Where the image's ELF entry point is in this boot; debuggers compare it with the file's.
pub fn image_entry() -> u64 {
    layout::entry()
}

/// Where the kernel sees physical address 0.
pub fn direct_map() -> u64 {
    layout::direct_map()
}

/// The line of a crash report that says which image runs and where: its distance from the address it was linked at,
/// that address, its build-id.
#[derive(Clone, Copy, Debug)]
pub struct Image;

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slide = image_slide();
        write!(f, "Kernel Offset: {slide:#x} from {:#x}, build-id ", image_addresses()[0] - slide)?;
        build_id().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The kernel's GNU build-id, as the linker wrote it; empty if the linker wrote none.
pub fn build_id() -> &'static [u8] {
    // Note header: name size, description size, type, name "GNU\0"; then the id.
    layout::build_id_note().get(16..).unwrap_or_default()
}
