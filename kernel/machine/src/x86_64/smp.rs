//! The other processors: starting them, interrupting them, running something on them.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::stacks::Stack;
use super::{apic, boot, clock, descriptors, features, irq, layout, local, msr, start, tlb, trampoline};
use crate::cpu::{self, CpuId, CpuMask, ONLINE};
use crate::frame::Frame;
use crate::hooks::hooks;
use crate::note::Note;
use crate::sync::{Once, SpinLock};
use crate::time::{self, Nanos};

/// What others may leave for a processor.
pub(crate) struct Mailbox {
    pub tlb: tlb::Tickets,
}

impl Mailbox {
    pub(crate) const fn new() -> Self {
        Self { tlb: tlb::Tickets::new() }
    }
}

/// The controllers' numbers of all processors found, ours included.
static FOUND: Once<([u32; cpu::MAX_CPUS], usize)> = Once::new();

/// Remember who could be started. Once, at boot.
pub(crate) fn found(apic_ids: [u32; cpu::MAX_CPUS], count: usize) {
    // Set by boot alone.
    let _ = FOUND.set((apic_ids, count));
}

/// How long a processor gets to appear.
const PATIENCE: Nanos = 500_000_000;

/// See [`crate::cpu::start_others`].
pub(crate) fn start_others() -> u32 {
    if let Some((ids, count)) = FOUND.get() {
        let me = apic::id();
        for (next, id) in (1..).zip(ids[..*count].iter().filter(|id| **id != me)) {
            if ONLINE.load(Ordering::Acquire).count_ones() as usize == cpu::MAX_CPUS || !start(CpuId(next), *id) {
                break;
            }
        }
    }
    cpu::online().count_ones()
}

/// Start one processor and wait for it.
fn start(cpu: CpuId, apic_id: u32) -> bool {
    let Some(local) = new_local() else { return false };
    let Ok(stack) = Stack::new() else { return false };
    local.register(cpu, apic_id);
    let top = stack.top();
    // The processor keeps it for ever: it runs on it until it enters its first thread.
    core::mem::forget(stack);
    let page = trampoline::prepare(top - 16, local, ap_start);
    apic::send_init(apic_id);
    // Long enough for every processor of this century; the old 10 ms are for the 82489DX.
    wait(20_000, || false);
    for _ in 0..2 {
        apic::send_startup(apic_id, page);
        if wait(PATIENCE, || cpu::online() & 1 << cpu.0 != 0) {
            return true;
        }
    }
    false
}

fn wait(budget: Nanos, done: impl Fn() -> bool) -> bool {
    let end = time::now() + budget;
    while !done() {
        if time::now() >= end {
            return false;
        }
        cpu::relax();
    }
    true
}

/// A block of zeros for another processor, for ever.
fn new_local() -> Option<&'static local::Local> {
    const ORDER: u8 = (size_of::<local::Local>().div_ceil(4096)).next_power_of_two().trailing_zeros() as u8;
    let block = Frame::alloc_block(ORDER).ok()?;
    let at = layout::direct(block.addr()).cast::<local::Local>();
    core::mem::forget(block);
    // SAFETY: the block is large enough, aligned to its size, ours, and never released. Written in place: the value is larger
    // than a kernel stack. Every field is zero to begin with but the two written.
    unsafe {
        at.write_bytes(0, 1);
        (&raw mut (*at).tss).write(descriptors::Tss::new());
        (&raw mut (*at).tables).write(descriptors::Tables::new());
        Some(&*at)
    }
}

/// First Rust code of a started processor, on its boot stack, with the start-up tables.
extern "C" fn ap_start(local: &'static local::Local) -> ! {
    // SAFETY: the kernel's own root; this code is mapped there too. Once, on the processor the block is for.
    unsafe {
        msr::set_cr3(boot::root_address().0);
        descriptors::load(local);
    }
    features::enable();
    start::enable_syscalls();
    apic::enable(false);
    let id = local.id.load(Ordering::Relaxed);
    clock::publish_cpu_number(id);
    ONLINE.fetch_or(1 << id, Ordering::AcqRel);
    (hooks().ap_main)(CpuId(id))
}

/// Interrupt another processor so that it looks at its mailbox and its work flag.
pub(crate) fn interrupt(local: &local::Local) {
    (hooks().note)(&Note::InterruptSent { to: CpuId(local.id.load(Ordering::Relaxed)) });
    apic::send(local.apic_id.load(Ordering::Relaxed), irq::KICK);
}

/// The interrupt's end on the other side.
pub(super) fn kicked() {
    (hooks().note)(&Note::InterruptReceived);
    tlb::serve();
    serve_call();
    (hooks().kicked)();
}

/// The one call in flight: what to run, and who has not yet.
struct Call {
    body: UnsafeCell<Option<&'static (dyn Fn() + Sync)>>,
    pending: AtomicU64,
}

// SAFETY: `body` is written by the holder of `CALLING` while nobody is pending, and read only by pending processors.
unsafe impl Sync for Call {}

static CALL: Call = Call { body: UnsafeCell::new(None), pending: AtomicU64::new(0) };
static CALLING: SpinLock<()> = SpinLock::new(());

/// See [`crate::cpu::call`].
pub(crate) fn call(mask: CpuMask, f: &(dyn Fn() + Sync)) {
    assert!(irq::enabled(), "a call to other processors with interrupts off");
    let held = CALLING.lock();
    let others = mask & cpu::online() & !(1 << cpu::id().0);
    // SAFETY: the lifetime ends after all pending processors are done, which is waited for below; nobody is pending now.
    unsafe { *CALL.body.get() = Some(core::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(f)) };
    CALL.pending.store(others, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    for target in (0..64).filter(|cpu| others & 1 << cpu != 0).filter_map(|cpu| local::of(CpuId(cpu))) {
        interrupt(target);
    }
    if mask & 1 << cpu::id().0 != 0 {
        let _off = crate::irq::off();
        f();
    }
    while CALL.pending.load(Ordering::Acquire) != 0 {
        tlb::serve();
        cpu::relax();
    }
    drop(held);
}

/// Run the call in flight if it is for this processor.
fn serve_call() {
    let bit = 1 << cpu::id().0;
    if CALL.pending.load(Ordering::Acquire) & bit != 0 {
        // SAFETY: this processor is pending, so the body is set and stays until the bit is cleared.
        if let Some(body) = unsafe { *CALL.body.get() } {
            body();
        }
        CALL.pending.fetch_and(!bit, Ordering::AcqRel);
    }
}
