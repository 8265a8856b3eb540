//! Reads kernel addresses that may be unmapped: a fault ends the copy instead of the kernel.

use core::sync::atomic::Ordering::Relaxed;

use super::table::{self, HUGE, PRESENT, UNCACHED};
use crate::addr::{PAGE_SIZE, PhysAddr, USER_END};
use crate::x86_64::cpu::{copy, msr};
use crate::x86_64::layout::DIRECT_LIMIT;

/// Copy what can be read from `addr` on; returns how many leading bytes.
pub(crate) fn read(addr: u64, to: &mut [u8]) -> usize {
    let mut done = 0;
    while done < to.len() {
        let Some(at) = addr.checked_add(done as u64) else { break };
        let page_left = PAGE_SIZE - at as usize % PAGE_SIZE;
        let len = page_left.min(to.len() - done);
        if !is_memory(at) {
            break;
        }
        let target = &mut to[done..done + len];
        // SAFETY: `target` is ours; the page was memory a moment ago, and if it no longer is, the load has a fix-up.
        let left = unsafe { copy::probe(target.as_mut_ptr(), at as *const u8, len, at < USER_END) };
        done += len - left;
        if left > 0 {
            break;
        }
    }
    done
}

/// Whether the tables in use map `at` as ordinary memory. Tables are read through the direct map, and an entry pointing
/// outside it ends the walk.
fn is_memory(at: u64) -> bool {
    let canonical = ((at as i64) << 16 >> 16) as u64 == at;
    let mut current = msr::cr3() & table::ADDRESS;
    for level in (0..4).rev() {
        if !canonical || current >= DIRECT_LIMIT || !backed(current) {
            return false;
        }
        // SAFETY: RAM, shown by the direct map; whatever it holds is only read as words.
        let entry = unsafe { table::table(PhysAddr(current)) }[table::index(at, level)].load(Relaxed);
        if entry & PRESENT == 0 {
            return false;
        }
        if level == 0 || entry & HUGE != 0 {
            return entry & UNCACHED == 0;
        }
        current = entry & table::ADDRESS;
    }
    false
}

/// Whether a physical address is RAM.
pub(super) fn backed(at: u64) -> bool {
    crate::boot::info().ram.iter().any(|r| (r.start.addr().0..r.end.addr().0).contains(&at))
}

/// Store to a stack that is not there, in kernel mode: the page fault finds no room for its own frame.
pub(crate) fn double_fault() -> ! {
    // SAFETY: nothing is ever mapped there, and the double fault has a stack of its own; its handler never returns.
    unsafe {
        core::arch::asm!("mov rsp, {}", "push 0", "ud2", in(reg) crate::x86_64::layout::NOWHERE, options(noreturn));
    }
}

/// Load from an address between the regions of `layout`, in kernel mode and without a fix-up.
#[inline(never)]
pub(crate) fn fault() {
    // SAFETY: nothing is ever mapped there, so the load faults before it has a value, and the kernel's handler never
    // returns.
    unsafe {
        core::arch::asm!(
            "mov {}, [{}]",
            out(reg) _,
            in(reg) crate::x86_64::layout::NOWHERE,
            options(nostack, readonly)
        );
    };
}
