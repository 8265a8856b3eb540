//! The order in which the machine comes up on the first processor, from the boot stack to [`crate::Kernel::main`].

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use super::{early_crash, slide, smp, stubs};
use crate::addr::{FrameNumber, FrameRange, PAGE_SHIFT, PhysAddr};
use crate::boot::{self, BootInfo};
use crate::hooks::{self, Hooks, hooks};
use crate::note::Note;
use crate::processor::CpuId;
use crate::sync::{self, WhileWaiting};
use crate::time::WALL_AT_BOOT;
use crate::x86_64::cpu::{descriptors, features, fpu, local};
use crate::x86_64::devices::{acpi, hpet, ioapic, power as platform_power, rtc, uart};
use crate::x86_64::interrupts::{apic, clock, tlb};
use crate::x86_64::layout;
use crate::x86_64::memory::pvh::{self, MAX_REGIONS, RAM, StartInfo};
use crate::x86_64::memory::{early, paging};
use crate::{frame, heap, kernel, region};

/// Frames below this are left to firmware tables and the start of other processors.
const FIRST_MEGABYTE: u32 = 256;

/// Called by the boot assembly with the start info's physical address.
pub(super) extern "C" fn start(start_info: u64) -> ! {
    uart::init();
    // SAFETY: one processor runs, interrupts are off, and nothing has called up yet.
    unsafe { hooks::set(Hooks { fatal: early_crash::fatal, panic: early_crash::panic, ..Hooks::NONE }) };
    sync::while_waiting(WhileWaiting { contended: note_contention, taken: note_taken, relax: tlb::serve });
    let local = local::first();
    local.register(CpuId(0), 0);
    descriptors::fill_idt(stubs::stub);
    // SAFETY: once, on the processor whose block this is.
    unsafe { local.load() };
    features::enable();
    fpu::init();
    stubs::enable_syscalls();
    // SAFETY: nothing was overwritten yet; the boot tables map the first GiB, where loaders put the start info.
    let Some(info) = (unsafe { pvh::read(start_info) }) else { panic!("no PVH start info at {start_info:#x}") };
    early::init(&info);
    paging::build(&info, slide::randomness(pvh::command_line(&info)));
    let facts = acpi::read(info.rsdp);
    apic::find(paging::map_device);
    apic::enable(true);
    local.apic_id.store(apic::id(), Relaxed);
    let measurement = clock::begin(facts.timer_port);
    WALL_AT_BOOT.store(rtc::seconds() * 1_000_000_000, Relaxed);
    ioapic::init(&facts.madt);
    hpet::map(facts.hpet);
    platform_power::map(facts.sleep);
    platform_power::init(facts.sleep);
    smp::found(facts.madt.cpus, facts.madt.cpu_count);
    clock::publish_cpu_number(0);
    // Everything that takes early memory has done so.
    let mut found = memory(&info);
    heap::init();
    found.cpus = (facts.madt.cpu_count as u32).max(1);
    found.platform = platform(&facts);
    boot::set_info(found);
    clock::finish(&measurement);
    kernel::find_and_enter()
}

/// A processor begins to wait for a lock.
fn note_contention(lock: u64, holder: CpuId) {
    (hooks().note)(&Note::LockContended { lock, holder });
}

/// The processor has the lock that it waited for.
fn note_taken(lock: u64) {
    (hooks().note)(&Note::LockTaken { lock });
}

fn platform(facts: &acpi::Facts) -> &'static str {
    match (facts.hardware_reduced, facts.has_mcfg, facts.madt.cpu_count) {
        (_, _, 0) => "unknown",
        (true, ..) => "microvm",
        (false, true, _) => "q35",
        (false, false, _) => "pc",
    }
}

type Ranges = [FrameRange; MAX_REGIONS + 4];

struct Shared(UnsafeCell<[Ranges; 2]>);

// SAFETY: written by `memory` alone, on the one processor, before the first read.
unsafe impl Sync for Shared {}

static RANGES: Shared =
    Shared(UnsafeCell::new([[FrameRange { start: FrameNumber(0), end: FrameNumber(0) }; MAX_REGIONS + 4]; 2]));

/// Sort out which frames are RAM and which of it is free, and set up the frame table.
fn memory(info: &StartInfo) -> BootInfo {
    // SAFETY: the only reference, for the length of this function; afterwards there are only shared ones.
    let [ram, free] = unsafe { &mut *RANGES.0.get() };
    let mut count = 0;
    for region in info.regions[..info.count].iter().filter(|r| r.kind == RAM && r.end <= layout::DIRECT_LIMIT) {
        let start = FrameNumber((region.start.div_ceil(1 << PAGE_SHIFT)) as u32);
        let end = FrameNumber((region.end >> PAGE_SHIFT) as u32);
        if start < end {
            ram[count] = FrameRange { start, end };
            count += 1;
        }
    }
    let ram = &ram[..count];
    let limit = ram.last().map_or(0, |r| r.end.0);
    let initrd = (info.initrd.0 >> PAGE_SHIFT) as u32..info.initrd.1.div_ceil(1 << PAGE_SHIFT) as u32;
    let kernel = FIRST_MEGABYTE..early::close().0.div_ceil(1 << PAGE_SHIFT) as u32;
    let dump = dump_region(ram, pvh::command_line(info), &[kernel.clone(), initrd.clone()]);
    let used = [0..FIRST_MEGABYTE, kernel, initrd, dump];
    let free = subtract(ram, &used, free);
    let table = carve(free, limit as usize * frame::ENTRY_SIZE);
    let records = carve(free, limit as usize * size_of::<boot::AllocatorRecord>());
    // The pieces they were cut from may be used up.
    let free: &'static [FrameRange] = free;
    // SAFETY: memory that was free a moment ago; `free` leaves out everything in use.
    unsafe { frame::init(layout::direct(table), limit, free) };
    // SAFETY: likewise, page-aligned and for ever. RAM holds some bits or other, and any bits are integers.
    boot::set_records(unsafe { core::slice::from_raw_parts_mut(layout::direct(records).cast(), limit as usize) });
    // SAFETY: the module's memory is RAM that is never handed out.
    let initrd = unsafe {
        let len = (info.initrd.1 - info.initrd.0) as usize;
        core::slice::from_raw_parts(layout::direct(PhysAddr(info.initrd.0)), len)
    };
    BootInfo {
        command_line: pvh::command_line(info),
        initrd,
        ram,
        free,
        frame_limit: limit,
        cpus: 1,
        platform: "unknown",
    }
}

/// `bytes` of memory from the end of the largest free range, which gets shorter: its contents are what they were.
fn carve(free: &mut [FrameRange], bytes: usize) -> PhysAddr {
    let frames = bytes.div_ceil(1 << PAGE_SHIFT);
    let largest = free.iter_mut().max_by_key(|range| range.frames());
    let Some(range) = largest.filter(|range| range.frames() > frames) else {
        panic!("no memory for the frame table of {bytes} bytes")
    };
    range.end.0 -= frames as u32;
    range.end.addr()
}

/// The frames to set aside for dumps: only if they are RAM and not in use.
fn dump_region(ram: &[FrameRange], command_line: &[u8], used: &[Range<u32>]) -> Range<u32> {
    let Some(wanted) = region::wanted(command_line) else { return 0..0 };
    let is_ram = ram.iter().any(|r| r.start <= wanted.start && wanted.end <= r.end);
    if !is_ram || used.iter().any(|u| u.start < wanted.end.0 && wanted.start.0 < u.end) {
        return 0..0;
    }
    region::reserve(wanted);
    wanted.start.0..wanted.end.0
}

/// `ram` without `used`, in `out`.
fn subtract<'a>(ram: &[FrameRange], used: &[Range<u32>], out: &'a mut Ranges) -> &'a mut [FrameRange] {
    let mut count = 0;
    for range in ram {
        let mut at = range.start.0;
        while at < range.end.0 && count < out.len() {
            // Skip what is used here, then run to the next used frame.
            if let Some(hit) = used.iter().find(|u| u.contains(&at)) {
                at = hit.end;
                continue;
            }
            let end = used.iter().map(|u| u.start).filter(|s| *s > at).fold(range.end.0, u32::min);
            out[count] = FrameRange { start: FrameNumber(at), end: FrameNumber(end) };
            count += 1;
            at = end;
        }
    }
    &mut out[..count]
}
