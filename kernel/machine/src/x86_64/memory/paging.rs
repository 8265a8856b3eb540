//! The kernel's own page tables: the direct map, the image with exact rights, device registers.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::early;
use super::pvh::StartInfo;
use super::table::{self, GLOBAL, HUGE, NO_EXEC, PRESENT, Table, UNCACHED, WRITE};
use crate::addr::PhysAddr;
use crate::x86_64::cpu::features::{self, Feature};
use crate::x86_64::cpu::msr;
use crate::x86_64::layout::{self, Bases, DIRECT_LIMIT, KERNEL_HALF};

const HUGE_SIZE: u64 = 2 << 20;
const GIGA_SIZE: u64 = 1 << 30;
/// Device registers lie below this, or below the end of RAM.
const DEVICES_END: u64 = 16 << 30;

/// A root table for starting other processors, taken at boot so that it lies below 4 GiB.
static STARTUP_ROOT: AtomicU64 = AtomicU64::new(0);

/// The physical address of [`STARTUP_ROOT`], below 4 GiB; 0 before the final tables are active.
pub(crate) fn startup_root() -> PhysAddr {
    PhysAddr(STARTUP_ROOT.load(Relaxed))
}

/// Replace the boot tables by the final ones, with the regions at the bases drawn from `random`. Once, on the first
/// processor, before anything holds a low address or one of the direct map.
pub(crate) fn build(info: &StartInfo, random: Option<u64>) {
    let shown = || info.regions[..info.count].iter().filter(|r| matches!(r.kind, 1 | 3 | 4));
    let reach = shown().map(|r| r.end.min(DIRECT_LIMIT)).fold(DEVICES_END, u64::max);
    let bases = layout::choose(random, reach);
    STARTUP_ROOT.store(early::take(4096).0, Relaxed);
    let direct_map = early::take(4096);
    // SAFETY: both were just taken, zeroed, to be tables for ever.
    let (direct_table, image) = unsafe { (table::table(direct_map), early::take(4096)) };
    for region in shown() {
        map_ram(direct_table, &bases, region.start, region.end);
    }
    map_ram(direct_table, &bases, 0, 1 << 20);
    // SAFETY: as above.
    map_image(unsafe { table::table(image) });
    // SAFETY: the root in use, by its name in the image, which stays; entries are replaced by ones that show the same
    // memory under the addresses in use.
    let root = unsafe { &*table::root() };
    let stacks_table = early::take(4096);
    // The boot tables' direct map goes first: the new one may have the same addresses, and is not used before it is
    // mapped.
    root[table::index(KERNEL_HALF, 3)].store(0, Relaxed);
    root[table::index(bases.direct, 3)].store(direct_map.0 | PRESENT | WRITE, Relaxed);
    root[table::index(bases.stacks, 3)].store(stacks_table.0 | PRESENT | WRITE, Relaxed);
    root[table::index(layout::image_base(), 3)].store(image.0 | PRESENT | WRITE, Relaxed);
    root[0].store(0, Relaxed);
    // SAFETY: the same root, to flush what the boot tables left behind; it maps the direct map at its new base, and
    // nothing of this function's uses an address of the old one any more.
    unsafe {
        msr::set_cr3(msr::cr3());
        layout::set(bases);
    }
}

fn no_exec() -> u64 {
    if features::has(Feature::Nx) { NO_EXEC } else { 0 }
}

/// Map RAM, rounded outwards to 2 MiB: firmware tables sit in the odd ends.
fn map_ram(direct_map: &Table, bases: &Bases, start: u64, end: u64) {
    let mut at = start & !(HUGE_SIZE - 1);
    let end = end.min(DIRECT_LIMIT);
    let leaf = PRESENT | WRITE | HUGE | GLOBAL | no_exec();
    while at < end {
        let slot = &direct_map[table::index(bases.direct + at, 2)];
        let whole = at.is_multiple_of(GIGA_SIZE) && end - at >= GIGA_SIZE;
        if whole && slot.load(Relaxed) == 0 && features::has(Feature::GigaPages) {
            slot.store(at | leaf, Relaxed);
            at += GIGA_SIZE;
        } else {
            map_huge(slot, at, leaf);
            at += HUGE_SIZE;
        }
    }
}

/// One 2 MiB leaf under the given third-level slot, unless one is there; in small pieces where the image's read-only
/// part lies in it.
fn map_huge(slot: &AtomicU64, at: u64, leaf: u64) {
    if slot.load(Relaxed) & HUGE != 0 {
        return;
    }
    let entry = &next(slot)[table::index(at, 1)];
    if entry.load(Relaxed) != 0 {
        return;
    }
    let [start, _, rodata_end, _] = layout::image().map(|bound| bound - layout::image_base());
    if at + HUGE_SIZE <= start || at >= rodata_end {
        entry.store(at | leaf, Relaxed);
        return;
    }
    // Text and constants must not be writable under this name either.
    let small = next(entry);
    for (page, entry) in (at..).step_by(4096).zip(small) {
        let rights = if (start..rodata_end).contains(&page) { leaf & !WRITE } else { leaf };
        entry.store(page | rights & !HUGE, Relaxed);
    }
}

/// The table below `slot`, made if missing.
fn next(slot: &AtomicU64) -> &'static Table {
    if slot.load(Relaxed) == 0 {
        slot.store(early::take(4096).0 | PRESENT | WRITE, Relaxed);
    }
    // SAFETY: kernel tables are made here only, from zeroed frames, and never freed.
    unsafe { table::table(table::target(slot.load(Relaxed))) }
}

/// Text may be executed, read-only data read, data written; nothing more.
fn map_image(top: &Table) {
    let [start, text_end, rodata_end, end] = layout::image();
    let mut at = start;
    while at < end {
        let rights = match at {
            a if a < text_end => 0,
            a if a < rodata_end => no_exec(),
            _ => WRITE | no_exec(),
        };
        let leaf = &next(&next(&top[table::index(at, 2)])[table::index(at, 1)])[table::index(at, 0)];
        leaf.store((at - layout::image_base()) | PRESENT | GLOBAL | rights, Relaxed);
        at += 4096;
    }
}

/// Show device registers at their direct-map address, uncached. Boot only.
pub(crate) fn map_device(at: u64, bytes: u64) -> *mut u8 {
    map_low(at, bytes, PRESENT | WRITE | HUGE | GLOBAL | UNCACHED | no_exec())
}

/// Show firmware tables that may lie outside reported RAM. Boot only.
pub(crate) fn map_firmware(at: u64, bytes: u64) -> *mut u8 {
    map_low(at, bytes, PRESENT | WRITE | HUGE | GLOBAL | no_exec())
}

fn map_low(at: u64, bytes: u64, leaf: u64) -> *mut u8 {
    // SAFETY: the direct map's table, made by `build`.
    let direct_map = unsafe {
        let root = table::table(table::root_address());
        table::table(table::target(root[table::index(layout::direct_map(), 3)].load(Relaxed)))
    };
    let mut page = at & !(HUGE_SIZE - 1);
    while page < at + bytes && page < layout::direct_end() - layout::direct_map() {
        map_huge(&direct_map[table::index(layout::direct_map() + page, 2)], page, leaf);
        page += HUGE_SIZE;
    }
    layout::direct(PhysAddr(at))
}
