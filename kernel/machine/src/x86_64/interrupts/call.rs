//! Cross-processor calls: runs a function on other processors by an inter-processor interrupt.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::{ipi, tlb};
use crate::hooks::hooks;
use crate::note::Note;
use crate::percpu;
use crate::processor::{self, CpuId, CpuMask};
use crate::sync::SpinLock;
use crate::x86_64::cpu::{irq, local};

/// The interrupt's end on the other side.
pub(crate) fn kicked() {
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

// SAFETY: `body` is written by the holder of `CALLING` while none is pending, and read only by pending processors.
unsafe impl Sync for Call {}

static CALL: Call = Call { body: UnsafeCell::new(None), pending: AtomicU64::new(0) };
static CALLING: SpinLock<()> = SpinLock::new(());

/// Implements [`crate::cpu::call`] by an inter-processor interrupt to each processor of `mask` that is online.
pub(crate) fn call(mask: CpuMask, f: &(dyn Fn() + Sync)) {
    assert!(irq::enabled(), "a call to other processors with interrupts off");
    let held = CALLING.lock();
    let others = mask & processor::online() & !(1 << percpu::id().0);
    // SAFETY: the lifetime ends after all pending processors are done, which is waited for below; none is pending now.
    unsafe { *CALL.body.get() = Some(core::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(f)) };
    CALL.pending.store(others, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    for target in (0..64).filter(|cpu| others & 1 << cpu != 0).filter_map(|cpu| local::of(CpuId(cpu))) {
        ipi::interrupt(target);
    }
    if mask & 1 << percpu::id().0 != 0 {
        let _off = crate::irq::off();
        f();
    }
    while CALL.pending.load(Ordering::Acquire) != 0 {
        tlb::serve();
        percpu::relax();
    }
    drop(held);
}

/// Run the call in flight if it is for this processor.
fn serve_call() {
    let bit = 1 << percpu::id().0;
    if CALL.pending.load(Ordering::Acquire) & bit != 0 {
        // SAFETY: this processor is pending, so the body is set and stays until the bit is cleared.
        if let Some(body) = unsafe { *CALL.body.get() } {
            body();
        }
        CALL.pending.fetch_and(!bit, Ordering::AcqRel);
    }
}
