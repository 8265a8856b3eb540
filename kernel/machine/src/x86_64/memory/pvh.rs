//! Reads the start info of the PVH boot protocol (Xen's `hvm_start_info`) into values of our own, before the memory it
//! lies in is reused.

use core::cell::UnsafeCell;

use crate::addr::PhysAddr;
use crate::x86_64::layout::direct;

const MAGIC: u32 = 0x336e_c578;
/// Linux's limit on x86 (`COMMAND_LINE_SIZE`).
pub(crate) const COMMAND_LINE_MAX: usize = 2048;
/// Regions kept; firmware reports about ten.
pub(crate) const MAX_REGIONS: usize = 64;

/// [`Region::kind`] of RAM.
pub(crate) const RAM: u32 = 1;

/// A region of the memory map.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    pub start: u64,
    pub end: u64,
    /// E820 type: 1 RAM, 2 reserved, 3 ACPI, 4 NVS.
    pub kind: u32,
}

/// All of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartInfo {
    pub regions: [Region; MAX_REGIONS],
    pub count: usize,
    pub initrd: (u64, u64),
    pub rsdp: u64,
    pub command_line_len: usize,
}

struct CommandLine(UnsafeCell<[u8; COMMAND_LINE_MAX]>);

// SAFETY: written once by `read`, before other processors run and before `command_line` is called.
unsafe impl Sync for CommandLine {}

static COMMAND_LINE: CommandLine = CommandLine(UnsafeCell::new([0; COMMAND_LINE_MAX]));

/// Layout of the structure (Xen `public/arch-x86/hvm/start_info.h`), version 1.
#[repr(C)]
struct Raw {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    rsdp: u64,
    map: u64,
    map_entries: u32,
    reserved: u32,
}

/// A module list entry; `[0]` start, `[1]` size.
type RawModule = [u64; 4];

#[repr(C)]
struct RawRegion {
    start: u64,
    size: u64,
    kind: u32,
    reserved: u32,
}

/// Copy everything out. `None` if `at` is not a start info with a memory map.
///
/// # Safety
/// Once, early: the loader's structures must still be intact and below 1 GiB, where the boot tables map them.
pub(crate) unsafe fn read(at: u64) -> Option<StartInfo> {
    // SAFETY: the loader put the structure at this physical address.
    let raw = unsafe { direct(PhysAddr(at)).cast::<Raw>().read_unaligned() };
    if raw.magic != MAGIC || raw.version < 1 {
        return None;
    }
    let mut info = StartInfo {
        regions: [Region::default(); MAX_REGIONS],
        count: (raw.map_entries as usize).min(MAX_REGIONS),
        initrd: (0, 0),
        rsdp: raw.rsdp,
        command_line_len: 0,
    };
    for index in 0..info.count {
        // SAFETY: the map has `map_entries` entries.
        let r = unsafe { direct(PhysAddr(raw.map)).cast::<RawRegion>().add(index).read_unaligned() };
        info.regions[index] = Region { start: r.start, end: r.start.saturating_add(r.size), kind: r.kind };
    }
    info.regions[..info.count].sort_unstable_by_key(|r| r.start);
    if raw.modules > 0 {
        // SAFETY: the list has `modules` entries.
        let module = unsafe { direct(PhysAddr(raw.module_list)).cast::<RawModule>().read_unaligned() };
        info.initrd = (module[0], module[0] + module[1]);
    }
    if raw.command_line != 0 {
        // SAFETY: a NUL-terminated string; the copy stops there or at the limit.
        info.command_line_len = unsafe { copy_command_line(direct(PhysAddr(raw.command_line))) };
    }
    Some(info)
}

/// # Safety
/// `from` is a NUL-terminated string, and [`COMMAND_LINE`] is not in use yet.
unsafe fn copy_command_line(from: *const u8) -> usize {
    let to = COMMAND_LINE.0.get().cast::<u8>();
    for len in 0..COMMAND_LINE_MAX {
        // SAFETY: `from` is readable up to its NUL, `to` has the room.
        unsafe {
            let byte = from.add(len).read();
            if byte == 0 {
                return len;
            }
            to.add(len).write(byte);
        }
    }
    COMMAND_LINE_MAX
}

/// The copied command line.
pub(crate) fn command_line(info: &StartInfo) -> &'static [u8] {
    // SAFETY: written before, never again; `command_line_len` bytes of it are initialised.
    unsafe { core::slice::from_raw_parts(COMMAND_LINE.0.get().cast(), info.command_line_len) }
}
