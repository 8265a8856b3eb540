//! Segments, the task state segment, the interrupt descriptor table: what long mode still wants of them.
//!
//! Selectors are Linux's, since programs see them in signal frames: kernel code 0x10, kernel data 0x18, user data 0x2b,
//! user code 0x33. Linux's 32-bit user code segment, 0x23, does not exist: its slot is null, as is the local descriptor
//! table, so no far transfer of a program leaves 64-bit mode. `SYSRET` needs no descriptors: it derives 0x33 and 0x2b
//! from the number in STAR alone (Intel SDM 2B, SYSRET).

use core::arch::asm;
use core::cell::UnsafeCell;

use super::msr;

pub(crate) const KERNEL_CODE: u16 = 0x10;
pub(crate) const KERNEL_DATA: u16 = 0x18;
pub(crate) const USER_DATA: u16 = 0x2b;
pub(crate) const USER_CODE: u16 = 0x33;
const TASK: u16 = 0x40;

/// The 64-bit task state segment (Intel SDM 3, "Task Management in 64-bit Mode"): only its stacks matter.
#[repr(C, packed(4))]
pub(crate) struct TssFields {
    _reserved: u32,
    /// Stack for traps from user mode.
    pub rsp0: u64,
    _rsp: [u64; 2],
    _reserved2: u64,
    ist: [u64; 7],
    _reserved3: u64,
    _reserved4: u16,
    io_map: u16,
}

/// The segment as shared with the processor.
pub(crate) struct Tss(UnsafeCell<TssFields>);

/// The descriptor table.
pub(crate) struct Tables(UnsafeCell<[u64; 10]>);

// SAFETY: only the processor owning the block writes these, before or while it runs; others never look.
unsafe impl Sync for Tss {}
// SAFETY: as above.
unsafe impl Sync for Tables {}

impl Tss {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(TssFields {
            _reserved: 0,
            rsp0: 0,
            _rsp: [0; 2],
            _reserved2: 0,
            ist: [0; 7],
            _reserved3: 0,
            _reserved4: 0,
            io_map: size_of::<TssFields>() as u16,
        }))
    }

    /// Where traps from user mode push.
    ///
    /// # Safety
    /// Call on the processor whose segment this is; `top` must be the top of the stack of the thread it runs.
    #[inline]
    pub(crate) unsafe fn set_stack(&self, top: u64) {
        // SAFETY: the field is in the block of this processor, which reads it only on a trap from user mode.
        unsafe { (&raw mut (*self.0.get()).rsp0).write_unaligned(top) };
    }
}

impl Tables {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new([
            0,
            0,
            0x00af_9b00_0000_ffff,
            0x00cf_9300_0000_ffff,
            0,
            0x00cf_f300_0000_ffff,
            0x00af_fb00_0000_ffff,
            0,
            0,
            0,
        ]))
    }
}

/// Operand of LGDT and LIDT.
#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

/// Load a processor's segments, task register, interrupt table and GS base. `tops` are its exception stacks.
///
/// # Safety
/// Once per processor, on the processor whose these are; GS must be what the kernel's stubs expect.
pub(super) unsafe fn load(tss: &'static Tss, tables: &'static Tables, tops: [u64; 3], gs: u64) {
    let tss = tss.0.get();
    for (index, top) in tops.into_iter().enumerate() {
        // SAFETY: this processor's own segment, not in use before `ltr`.
        unsafe { (&raw mut (*tss).ist).cast::<u64>().add(index).write_unaligned(top) };
    }
    let base = tss as u64;
    let limit = size_of::<TssFields>() as u64 - 1;
    let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    let table = tables.0.get();
    // SAFETY: as above; the table is loaded below.
    unsafe {
        (*table)[TASK as usize / 8] = low;
        (*table)[TASK as usize / 8 + 1] = base >> 32;
    }
    let segments = Pointer { limit: (size_of::<[u64; 10]>() - 1) as u16, base: table as u64 };
    let interrupts = Pointer { limit: (size_of::<Idt>() - 1) as u16, base: IDT.0.get() as u64 };
    // SAFETY: both tables live for ever and hold valid descriptors; the selectors loaded are in them.
    unsafe {
        asm!(
            "lgdt [{gdt}]",
            "push {code}",
            "lea {tmp}, [rip + 2f]",
            "push {tmp}",
            "retfq",
            "2:",
            "mov ds, {data:e}",
            "mov es, {data:e}",
            "mov ss, {data:e}",
            "mov fs, {zero:e}",
            "mov gs, {zero:e}",
            // Out of reset the local table is 64 KiB at address 0, which a program may have mapped.
            "lldt {zero:x}",
            "ltr {task:x}",
            "lidt [{idt}]",
            gdt = in(reg) &raw const segments,
            idt = in(reg) &raw const interrupts,
            code = in(reg) u64::from(KERNEL_CODE),
            data = in(reg) u32::from(KERNEL_DATA),
            zero = in(reg) 0,
            task = in(reg) TASK,
            tmp = out(reg) _,
        );
        msr::write(msr::GS_BASE, gs);
        msr::write(msr::KERNEL_GS_BASE, 0);
    }
}

/// The interrupt descriptor table, one for all processors, filled before the first loads it.
type Idt = [[u64; 2]; 256];

struct SharedIdt(UnsafeCell<Idt>);

// SAFETY: written once by `fill_idt` before any processor uses it.
unsafe impl Sync for SharedIdt {}

static IDT: SharedIdt = SharedIdt(UnsafeCell::new([[0; 2]; 256]));

/// Point every vector at its stub. Once, on the first processor.
pub(crate) fn fill_idt(stub: fn(usize) -> u64) {
    for vector in 0..256 {
        let at = stub(vector);
        let ist = match vector {
            2 => 1,
            8 => 2,
            18 => 3,
            _ => 0u64,
        };
        // Breakpoint and overflow instructions may be executed by programs.
        let ring = if matches!(vector, 3 | 4) { 3 } else { 0u64 };
        let low = at & 0xffff
            | u64::from(KERNEL_CODE) << 16
            | ist << 32
            | (0x8e | ring << 5) << 40
            | (at >> 16 & 0xffff) << 48;
        // SAFETY: before any processor loads the table.
        unsafe { (*IDT.0.get())[vector] = [low, at >> 32] };
    }
}
