//! Processors: the current one, those that are online, starting others and calling functions on them.

use core::sync::atomic::Ordering;

use crate::x86_64::cpu::local;
use crate::x86_64::entry::smp;
use crate::x86_64::interrupts::{call as calls, ipi};

pub use crate::percpu::{PerCpu, id, idle, relax, request_work, take_work, work_requested};
pub use crate::processor::{CpuId, CpuMask, MAX_CPUS, online};
pub use crate::x86_64::cpu::cpuinfo::{CpuInfo, info};

/// Start every other processor; each enters [`crate::Kernel::ap_main`]. Returns how many run now. Once, after the frame
/// allocator works.
pub fn start_others() -> u32 {
    smp::start_others()
}

/// [`request_work`] for `cpu`, interrupting it so that it happens soon, also out of idle.
pub fn kick(cpu: CpuId) {
    if cpu == id() {
        return request_work();
    }
    if let Some(local) = local::of(cpu)
        && local.work.swap(1, Ordering::AcqRel) == 0
    {
        ipi::interrupt(local);
    }
}

/// Run `f` on every processor in `mask` in interrupt context (this one included if set), and wait until all did. `f`
/// must be short. Panics with interrupts off, since two processors calling each other would wait for ever.
pub fn call(mask: CpuMask, f: &(dyn Fn() + Sync)) {
    calls::call(mask, f);
}
