//! TLB flushes on this processor, and TLB shootdown on others.
//!
//! A flush of others is a ticket: the asker adds one to the target's `wanted`, interrupts it, and waits until the
//! target's `done` has reached the ticket; tickets that arrive together are served by one flush. A processor that spins
//! (for a lock, for its own tickets) serves its tickets meanwhile, so asking is allowed with interrupts off and locks
//! held.

use core::arch::asm;
use core::sync::atomic::{Ordering, fence};

use super::{ipi, nmi};
use crate::addr::PageRange;
use crate::hooks::hooks;
use crate::inject;
use crate::note::Note;
use crate::percpu;
use crate::processor::{self, CpuId, CpuMask, MAX_CPUS};
use crate::x86_64::cpu::local::{self, Local, Tickets};
use crate::x86_64::cpu::msr;

/// Above this many pages a whole flush is cheaper than one by one.
const ONE_BY_ONE: usize = 32;

/// Flush `range` of a space active on the processors in `active`; returns when all have.
pub(crate) fn flush_user(active: CpuMask, range: PageRange) {
    let me = percpu::id();
    if active & 1 << me.0 != 0 {
        flush_here(range);
    }
    let others = active & !(1 << me.0);
    if others != 0 && !inject::is(inject::Fault::NoShootdown) {
        ask(others, false);
    }
}

/// Flush kernel translations everywhere.
pub(crate) fn flush_kernel() {
    flush_all_here();
    ask(processor::online() & !(1 << percpu::id().0), true);
}

fn flush_here(range: PageRange) {
    if range.pages() > ONE_BY_ONE {
        // SAFETY: the same tables again.
        return unsafe { msr::set_cr3(msr::cr3()) };
    }
    let mut at = range.start();
    while at < range.end() {
        // SAFETY: forgetting a translation is always sound.
        unsafe { asm!("invlpg [{}]", in(reg) at, options(nostack, preserves_flags)) };
        at += 4096;
    }
}

/// Global translations go when global pages are switched off.
fn flush_all_here() {
    const PGE: u64 = 1 << 7;
    let cr4 = msr::cr4();
    // SAFETY: the same tables and the same bits again.
    unsafe {
        msr::set_cr4(cr4 & !PGE);
        msr::set_cr3(msr::cr3());
        msr::set_cr4(cr4);
    }
}

fn targets(mask: CpuMask) -> impl Iterator<Item = &'static Local> {
    (0..64).filter(move |cpu| mask & 1 << cpu != 0).filter_map(|cpu| local::of(CpuId(cpu)))
}

fn ask(mask: CpuMask, kernel: bool) {
    if mask != 0 {
        (hooks().note)(&Note::FlushAsked { of: mask, kernel });
    }
    let mut tickets = [0; MAX_CPUS];
    // The table writes before must be seen by every processor that flushes after.
    fence(Ordering::SeqCst);
    for (local, ticket) in targets(mask).zip(&mut tickets) {
        let asked = &local.flushes;
        if kernel {
            asked.kernel.store(1, Ordering::SeqCst);
        }
        *ticket = asked.wanted.fetch_add(1, Ordering::SeqCst) + 1;
        ipi::interrupt(local);
    }
    for (local, ticket) in targets(mask).zip(tickets) {
        while (local.flushes.done.load(Ordering::Acquire).wrapping_sub(ticket) as i32) < 0 {
            if nmi::is_stopped(CpuId(local.id.load(Ordering::Relaxed))) {
                break;
            }
            serve();
            percpu::relax();
        }
    }
}

/// Serve this processor's tickets, if there are any. Callable anywhere.
#[inline]
pub(crate) fn serve() {
    let asked = &local::here().flushes;
    if asked.wanted.load(Ordering::SeqCst) != asked.done.load(Ordering::Relaxed) {
        serve_now(asked);
    }
}

#[cold]
fn serve_now(asked: &Tickets) {
    // Not interrupted by its own kind: `done` must not go back.
    let _off = crate::irq::off();
    let wanted = asked.wanted.load(Ordering::SeqCst);
    let kernel = asked.kernel.swap(0, Ordering::SeqCst) != 0;
    if kernel {
        flush_all_here();
    } else {
        // SAFETY: the same tables again.
        unsafe { msr::set_cr3(msr::cr3()) };
    }
    asked.done.store(wanted, Ordering::Release);
    (hooks().note)(&Note::FlushServed { kernel });
}
