//! Page faults of a thread: resolved in its address space, and again once memory was freed for it.

use core::sync::atomic::Ordering;

use machine::trap::Access;

use super::{Task, oom};
use crate::mm::fault::Unresolved;

/// A fault in user mode or in a copy: resolves it for the running thread, freeing memory if that is what it takes.
pub fn resolve(me: &Task, addr: u64, access: Access) -> Result<(), Unresolved> {
    let Some(mm) = me.mm() else { return Err(Unresolved::NotMapped) };
    me.minor_faults.store(me.minor_faults.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    let mut refusals = 0;
    loop {
        match mm.fault(addr, access) {
            Err(Unresolved::OutOfMemory) if oom::out_of_memory(refusals) => refusals += 1,
            outcome => return outcome,
        }
    }
}
