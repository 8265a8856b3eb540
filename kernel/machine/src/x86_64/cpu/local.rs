//! Each processor's own block of state, found through the GS base while in the kernel.
//!
//! Every field is atomic, so that sharing the block is sound; a field documented as *own* is written only by its
//! processor, so relaxed loads and stores (plain moves) are enough. The assembly in `entry` uses the offsets at the
//! bottom.

use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::descriptors::{self, Tables, Tss};
use super::stopped::Stopped;
use crate::describe::Entry;
use crate::processor::{CpuId, MAX_CPUS};
use crate::waiting::Waiting;

/// See the module. Aligned so that each stack's end is found from any address in it.
#[repr(C, align(32768))]
pub(crate) struct Local {
    /// Points to itself: `mov rax, gs:[0]` is the way from GS to a reference.
    this: AtomicPtr<Local>,
    /// Own: the user stack pointer for the few instructions before the kernel stack is in use.
    pub user_sp: AtomicU64,
    /// Own: top of the running thread's kernel stack.
    pub stack_top: AtomicU64,
    /// Work requested before the return to user mode; set by any processor.
    pub work: AtomicU32,
    /// This processor's number.
    pub id: AtomicU32,
    /// The number plus one, as spin locks note their holder.
    holder: AtomicU32,
    /// Own: spin locks held.
    pub locks: AtomicU32,
    /// Own: depth of interrupt handlers.
    pub irq_depth: AtomicU32,
    /// Own: the last interrupt came in user mode.
    pub from_user: AtomicBool,
    /// Own: copies must not ask the kernel to resolve faults.
    pub no_fault: AtomicU32,
    /// The interrupt controller's number of this processor.
    pub apic_id: AtomicU32,
    /// Own: the running thread's machine part; null on the boot stack.
    pub running: AtomicPtr<Opaque>,
    /// Own: the space in CR3, which the running thread owns; null for the kernel's own tables.
    pub space: AtomicPtr<Opaque>,
    /// Own: the thread whose FPU state the registers hold.
    pub fpu_owner: AtomicPtr<Opaque>,
    /// Own: the thread being switched from, for the first code that runs after the switch.
    pub switched_from: AtomicPtr<Opaque>,
    /// Own: cycle count at which the timer is to expire, 0 for never.
    pub timer: AtomicU64,
    /// Flushes other processors ask for.
    pub flushes: Tickets,
    /// Where an NMI stopped this processor, once it did.
    pub stopped: Stopped,
    /// Own: the spin lock it waits for, for dumps.
    pub awaits: Waiting,
    pub tss: Tss,
    pub tables: Tables,
    /// Stacks of the exceptions that must not trust the current one: NMI, double fault, machine check.
    pub(super) ist: [IstStack; 3],
}

/// A value of a layer above: a thread's machine part, an address space. The layer casts to the type it stores.
pub(crate) enum Opaque {}

/// What others ask of a processor's TLB.
pub(crate) struct Tickets {
    pub wanted: AtomicU32,
    pub done: AtomicU32,
    /// Kernel translations too.
    pub kernel: AtomicU32,
}

impl Tickets {
    const fn new() -> Self {
        Self { wanted: AtomicU32::new(0), done: AtomicU32::new(0), kernel: AtomicU32::new(0) }
    }
}

/// Bytes of an exception stack: the whole crash path may have to run on it.
pub(crate) const IST_SIZE: usize = 32 * 1024;

/// An exception stack; its last 16 bytes hold the block's address, which is how such a handler finds GS without
/// trusting it.
#[repr(C, align(32768))]
pub(crate) struct IstStack {
    pub(super) bytes: core::cell::UnsafeCell<[u64; IST_SIZE / 8]>,
}

// SAFETY: only the processor and the one-time set-up before it runs touch the bytes through this type.
unsafe impl Sync for IstStack {}

static FIRST: Local = Local::new();
static LOCALS: [AtomicPtr<Local>; MAX_CPUS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_CPUS];

/// The block of each processor.
pub static BLOCKS: [Entry; 3] = [
    Entry::address("cpus", &LOCALS),
    Entry::number("cpus.count", MAX_CPUS),
    Entry::number("cpu.stopped", offset_of!(Local, stopped)),
];
/// What a processor spins for.
pub static AWAITED: [Entry; 3] = Waiting::fields(offset_of!(Local, awaits));

impl Local {
    /// An idle block.
    pub(crate) const fn new() -> Self {
        Self {
            this: AtomicPtr::new(core::ptr::null_mut()),
            user_sp: AtomicU64::new(0),
            stack_top: AtomicU64::new(0),
            work: AtomicU32::new(0),
            id: AtomicU32::new(0),
            holder: AtomicU32::new(1),
            locks: AtomicU32::new(0),
            irq_depth: AtomicU32::new(0),
            from_user: AtomicBool::new(false),
            no_fault: AtomicU32::new(0),
            apic_id: AtomicU32::new(0),
            running: AtomicPtr::new(core::ptr::null_mut()),
            space: AtomicPtr::new(core::ptr::null_mut()),
            fpu_owner: AtomicPtr::new(core::ptr::null_mut()),
            switched_from: AtomicPtr::new(core::ptr::null_mut()),
            timer: AtomicU64::new(0),
            flushes: Tickets::new(),
            stopped: Stopped::new(),
            awaits: Waiting::new(),
            tss: Tss::new(),
            tables: Tables::new(),
            ist: [const { IstStack { bytes: core::cell::UnsafeCell::new([0; IST_SIZE / 8]) } }; 3],
        }
    }

    /// Enter the block in the table of processors and make its stacks find it.
    pub(crate) fn register(&'static self, id: CpuId, apic_id: u32) {
        let this = core::ptr::from_ref(self).cast_mut();
        self.this.store(this, Ordering::Relaxed);
        self.id.store(id.0, Ordering::Relaxed);
        self.holder.store(id.0 + 1, Ordering::Relaxed);
        self.apic_id.store(apic_id, Ordering::Relaxed);
        for stack in &self.ist {
            // SAFETY: the processor is not running yet, so the stack is unused.
            unsafe { (*stack.bytes.get())[IST_SIZE / 8 - 2] = this as u64 };
        }
        LOCALS[id.0 as usize].store(this, Ordering::Release);
    }
}

impl Local {
    /// Load this processor's segments, task register, interrupt table and GS base.
    ///
    /// # Safety
    /// Once per processor, on the processor the block was registered for.
    pub(crate) unsafe fn load(&'static self) {
        let tops = [0, 1, 2].map(|which: usize| self.ist[which].bytes.get() as u64 + IST_SIZE as u64 - 16);
        // SAFETY: the caller's; the stacks' ends hold the block's address since `register`.
        unsafe { descriptors::load(&self.tss, &self.tables, tops, core::ptr::from_ref(self) as u64) };
    }
}

/// The first processor's block.
pub(crate) fn first() -> &'static Local {
    &FIRST
}

/// Another processor's block, if it exists.
pub(crate) fn of(cpu: CpuId) -> Option<&'static Local> {
    let at = LOCALS.get(cpu.0 as usize)?.load(Ordering::Acquire);
    // SAFETY: only `register` stores here, with blocks that live for ever.
    unsafe { at.as_ref() }
}

/// This processor's block.
#[inline]
pub(crate) fn here() -> &'static Local {
    let at: *const Local;
    // SAFETY: in the kernel GS points to this processor's registered block, whose first field is its address.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) at, options(pure, readonly, nostack, preserves_flags));
        &*at
    }
}

/// This processor's number, in one instruction.
#[inline]
pub(crate) fn id() -> CpuId {
    CpuId(index() as u32)
}

/// The same as an index, below [`MAX_CPUS`](crate::processor::MAX_CPUS): widening a [`CpuId`] would take one
/// instruction more.
#[inline]
pub(crate) fn index() -> usize {
    let id: usize;
    // SAFETY: as for `here`; a 32-bit move clears the upper half.
    unsafe { asm!("mov {:e}, gs:[{}]", out(reg) id, const ID, options(pure, readonly, nostack, preserves_flags)) };
    id
}

/// This processor's number plus one, which is never 0: how a spin lock notes its holder.
#[inline]
pub(crate) fn holder() -> u32 {
    let holder: u32;
    // SAFETY: as for `here`.
    unsafe {
        asm!("mov {:e}, gs:[{}]", out(reg) holder, const HOLDER, options(pure, readonly, nostack, preserves_flags));
    }
    holder
}

/// Count a spin lock taken.
#[inline]
pub(crate) fn lock_taken() {
    // SAFETY: an own counter; one instruction, so an interrupt cannot tear it. A memory clobber: the lock orders
    // accesses.
    unsafe { asm!("inc dword ptr gs:[{}]", const LOCKS, options(nostack)) };
}

/// Count a spin lock released.
#[inline]
pub(crate) fn lock_released() {
    // SAFETY: as for `lock_taken`.
    unsafe { asm!("dec dword ptr gs:[{}]", const LOCKS, options(nostack)) };
}

pub(crate) const USER_SP: usize = offset_of!(Local, user_sp);
pub(crate) const STACK_TOP: usize = offset_of!(Local, stack_top);
pub(crate) const WORK: usize = offset_of!(Local, work);
const ID: usize = offset_of!(Local, id);
const HOLDER: usize = offset_of!(Local, holder);
const LOCKS: usize = offset_of!(Local, locks);

/// Bounds of the exception stack an address lies in.
pub(crate) fn exception_stack(at: u64) -> Option<(u64, u64)> {
    (0..MAX_CPUS).filter_map(|cpu| of(CpuId(cpu as u32))).flat_map(|local| &local.ist).find_map(|stack| {
        let bottom = stack.bytes.get() as u64;
        (bottom..bottom + IST_SIZE as u64).contains(&at).then_some((bottom, bottom + IST_SIZE as u64))
    })
}
