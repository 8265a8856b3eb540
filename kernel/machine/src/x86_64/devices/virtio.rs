//! The crash path's disk: a virtio block device, polled, one request at a time (Virtual I/O Device 1.2, 4.1 and 5.2).
//!
//! Its registers are reached through the window in configuration space (4.1.4.9), so that nothing has to be mapped.
//! Queue, request and data lie in one static, whose physical address is known; the device is reset before it is told
//! that address.

use core::cell::UnsafeCell;
use core::ptr::{addr_of_mut, read_volatile, write_volatile};
use core::sync::atomic::{AtomicBool, Ordering, fence};

use super::pci::{self, Function};
use crate::percpu;
use crate::time::{self, Nanos};
use crate::x86_64::interrupts::nmi;
use crate::x86_64::layout::image_base;
use crate::x86_64::memory::stage::Stage;

const VENDOR: u16 = 0x1af4;
/// Block devices, transitional and not.
const BLOCK: [u16; 2] = [0x1001, 0x1042];
/// The capability that says where the registers are.
const VENDOR_SPECIFIC: u8 = 9;

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Most bytes of a request.
pub const MOST: usize = 64 * 1024;
/// How long a request may take.
const PATIENCE: Nanos = 1_000_000_000;

const SIZE: u16 = 4;
const ENTRIES: usize = SIZE as usize;
const NEXT: u16 = 1;
const DEVICE_WRITES: u16 = 2;

#[repr(C)]
struct Descriptor {
    address: u64,
    length: u32,
    flags: u16,
    next: u16,
}

#[repr(C, align(4096))]
struct Memory {
    descriptors: [Descriptor; ENTRIES],
    available: [u16; 2 + ENTRIES + 1],
    _gap: [u16; 1],
    used: [u32; 1 + 2 * ENTRIES + 1],
    /// Kind, reserved, sector.
    request: [u64; 2],
    status: u8,
    data: [u8; MOST],
}

struct Shared(UnsafeCell<Memory>);

// SAFETY: touched only by a `Disk`, of which one at a time is in use: it needs the turn, or the stage with all other
// processors stopped.
unsafe impl Sync for Shared {}

static MEMORY: Shared = Shared(UnsafeCell::new(Memory {
    descriptors: [const { Descriptor { address: 0, length: 0, flags: 0, next: 0 } }; ENTRIES],
    available: [0; 2 + ENTRIES + 1],
    _gap: [0],
    used: [0; 2 + 2 * ENTRIES],
    request: [0; 2],
    status: 0,
    data: [0; MOST],
}));

/// Registers of the common structure (4.1.4.3).
mod common {
    pub(super) const FEATURE_SELECT: u32 = 8;
    pub(super) const FEATURE: u32 = 12;
    pub(super) const STATUS: u32 = 20;
    pub(super) const QUEUE_SELECT: u32 = 22;
    pub(super) const QUEUE_SIZE: u32 = 24;
    pub(super) const QUEUE_ENABLE: u32 = 28;
    pub(super) const QUEUE_NOTIFY: u32 = 30;
    pub(super) const QUEUE_ADDRESSES: u32 = 32;
}

/// Device status bits: acknowledge, driver, features ok, driver ok.
const STATUS_STEPS: [u32; 3] = [1, 1 | 2, 1 | 2 | 8];
const STATUS_READY: u32 = 1 | 2 | 4 | 8;
const FEATURES_OK: u32 = 8;

/// A disk that is ready.
pub struct Disk {
    function: Function,
    /// The window's capability.
    window: u8,
    /// Offset of the register that announces requests.
    notify: u32,
    sectors: u64,
    /// Requests submitted since the reset, modulo 65536: the next index of the available ring.
    made: u16,
    _alone: Alone,
}

/// The right to drive the disk while the system lives: one at a time, given back when dropped.
pub struct Turn(());

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Turn {
    /// Takes the turn; `None` while another holder has it.
    pub fn take() -> Option<Self> {
        (!TAKEN.swap(true, Ordering::Acquire)).then_some(Self(()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

/// Why the disk has no other driver at the moment.
enum Alone {
    Crash { _stage: Stage },
    Turn { _turn: Turn },
}

/// The first block device, reset and made ready, for a crash. Requests in progress are lost. `None` without a device,
/// and while the holder of the [`Turn`] may still run.
pub fn find(stage: Stage) -> Option<Disk> {
    if TAKEN.load(Ordering::Acquire) && !nmi::others_are_stopped() {
        return None;
    }
    open(Alone::Crash { _stage: stage })
}

/// The same for the holder of the turn.
pub fn find_in(turn: Turn) -> Option<Disk> {
    open(Alone::Turn { _turn: turn })
}

fn open(alone: Alone) -> Option<Disk> {
    let function = pci::find(|vendor, device| vendor == VENDOR && BLOCK.contains(&device))?;
    let of_kind = |kind: u32| function.capabilities(VENDOR_SPECIFIC).find(|at| function.read(*at) >> 24 == kind);
    let (common, notify, device, window) = (of_kind(1)?, of_kind(2)?, of_kind(4)?, of_kind(5)?);
    // The window shows one region at a time; devices have all their structures in one.
    let region = |at: u8| function.read(at + 4) & 0xff;
    if [notify, device].into_iter().any(|at| region(at) != region(common)) {
        return None;
    }
    let mut disk = Disk { function, window, notify: 0, sectors: 0, made: 0, _alone: alone };
    let (base, device) = (function.read(common + 8), function.read(device + 8));
    let (notify_base, multiplier) = (function.read(notify + 8), function.read(notify + 16));
    // SAFETY: status 0 resets the device, which forgets all addresses; then it learns those of `MEMORY`, as its own
    // kind of queue wants them, and touches nothing else.
    unsafe {
        function.enable();
        function.write(window + 4, region(common));
        disk.set(base + common::STATUS, 1, 0);
        disk.wait_for(|disk| disk.get(base + common::STATUS, 1) == 0)?;
        disk.set(base + common::STATUS, 1, STATUS_STEPS[0]);
        disk.set(base + common::STATUS, 1, STATUS_STEPS[1]);
        // Version 1 and nothing else.
        for (half, bits) in [(0, 0), (1, 1)] {
            disk.set(base + common::FEATURE_SELECT, 4, half);
            disk.set(base + common::FEATURE, 4, bits);
        }
        disk.set(base + common::STATUS, 1, STATUS_STEPS[2]);
        if disk.get(base + common::STATUS, 1) & FEATURES_OK == 0 {
            return None;
        }
        disk.set(base + common::QUEUE_SELECT, 2, 0);
        if disk.get(base + common::QUEUE_SIZE, 2) < u32::from(SIZE) {
            return None;
        }
        disk.set(base + common::QUEUE_SIZE, 2, u32::from(SIZE));
        let memory = MEMORY.0.get();
        write_volatile(addr_of_mut!((*memory).available), [0; 2 + ENTRIES + 1]);
        write_volatile(addr_of_mut!((*memory).used), [0; 2 + 2 * ENTRIES]);
        let parts = [
            addr_of_mut!((*memory).descriptors) as u64,
            addr_of_mut!((*memory).available) as u64,
            addr_of_mut!((*memory).used) as u64,
        ];
        for (at, part) in (base + common::QUEUE_ADDRESSES..).step_by(8).zip(parts.map(|part| part - image_base())) {
            disk.set(at, 4, part as u32);
            disk.set(at + 4, 4, (part >> 32) as u32);
        }
        disk.set(base + common::QUEUE_ENABLE, 2, 1);
        disk.notify = notify_base + multiplier * disk.get(base + common::QUEUE_NOTIFY, 2);
        disk.set(base + common::STATUS, 1, STATUS_READY);
    }
    disk.sectors = u64::from(disk.get(device, 4)) | u64::from(disk.get(device + 4, 4)) << 32;
    Some(disk)
}

impl Disk {
    /// Sectors it has.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Write the bytes of `first` and then of `second`, zeros behind them to the end of their last sector, at most
    /// [`MOST`] bytes; whether the device says it did.
    pub fn write(&mut self, sector: u64, first: &[u8], second: &[u8]) -> bool {
        let (split, end) = (first.len(), first.len() + second.len());
        let whole = end.next_multiple_of(SECTOR);
        if whole > MOST {
            return false;
        }
        // SAFETY: the data is the device's only during a request.
        let data = unsafe { &mut (*MEMORY.0.get()).data };
        data[..split].copy_from_slice(first);
        data[split..end].copy_from_slice(second);
        data[end..whole].fill(0);
        self.request(1, sector, whole)
    }

    /// Read whole sectors, likewise.
    pub fn read(&mut self, sector: u64, to: &mut [u8]) -> bool {
        let done = to.len() <= MOST && self.request(0, sector, to.len());
        if done {
            // SAFETY: as above, and the request is over.
            let data = unsafe { &(*MEMORY.0.get()).data };
            to.copy_from_slice(&data[..to.len()]);
        }
        done
    }

    fn request(&mut self, kind: u64, sector: u64, bytes: usize) -> bool {
        let in_range = sector.checked_add((bytes / SECTOR) as u64).is_some_and(|end| end <= self.sectors);
        if bytes == 0 || !bytes.is_multiple_of(SECTOR) || !in_range {
            return false;
        }
        let slot = self.made % SIZE;
        self.made = self.made.wrapping_add(1);
        let memory = MEMORY.0.get();
        // SAFETY: no request is in flight, so the memory is ours until the index is announced; all addresses lie in it.
        unsafe {
            let at = |part: *mut u8| part as u64 - image_base();
            let data_flags = if kind == 0 { NEXT | DEVICE_WRITES } else { NEXT };
            let request = at(addr_of_mut!((*memory).request).cast());
            let (data, status) = (at(addr_of_mut!((*memory).data).cast()), at(addr_of_mut!((*memory).status)));
            write_volatile(addr_of_mut!((*memory).request), [kind, sector]);
            write_volatile(addr_of_mut!((*memory).status), 0xff);
            let chain = [(request, 16, NEXT, 1), (data, bytes as u32, data_flags, 2), (status, 1, DEVICE_WRITES, 0)];
            for (index, (address, length, flags, next)) in chain.into_iter().enumerate() {
                let descriptor = Descriptor { address, length, flags, next };
                write_volatile(addr_of_mut!((*memory).descriptors[index]), descriptor);
            }
            write_volatile(addr_of_mut!((*memory).available[2 + usize::from(slot)]), 0);
            fence(Ordering::SeqCst);
            write_volatile(addr_of_mut!((*memory).available[1]), self.made);
            fence(Ordering::SeqCst);
            self.set(self.notify, 2, 0);
        }
        // SAFETY: words the device writes, read one at a time.
        let used = || unsafe { (read_volatile(addr_of_mut!((*memory).used[0])) >> 16) as u16 };
        let made = self.made;
        // SAFETY: as above.
        self.wait_for(|_| used() == made).is_some() && unsafe { read_volatile(addr_of_mut!((*memory).status)) } == 0
    }

    fn wait_for(&self, done: impl Fn(&Self) -> bool) -> Option<()> {
        let end = time::now().saturating_add(PATIENCE);
        while !done(self) {
            if time::now() > end {
                return None;
            }
            percpu::relax();
        }
        fence(Ordering::SeqCst);
        Some(())
    }

    /// Read a register through the window.
    fn get(&self, register: u32, bytes: u32) -> u32 {
        // SAFETY: choosing what the window shows has no effect.
        unsafe { self.aim(register, bytes) };
        let value = self.function.read(self.window + 16);
        if bytes == 4 { value } else { value & ((1 << (8 * bytes)) - 1) }
    }

    /// Write a register through the window.
    ///
    /// # Safety
    /// The caller answers for what the device does then.
    unsafe fn set(&self, register: u32, bytes: u32, value: u32) {
        // SAFETY: the caller's.
        unsafe {
            self.aim(register, bytes);
            self.function.write(self.window + 16, value);
        }
    }

    /// # Safety
    /// None beyond [`Function::write`]'s: the window's own registers have no effect by themselves.
    unsafe fn aim(&self, register: u32, bytes: u32) {
        // SAFETY: the caller's.
        unsafe {
            self.function.write(self.window + 8, register);
            self.function.write(self.window + 12, bytes);
        }
    }
}
