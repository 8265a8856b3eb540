//! Restartable sequences (rseq(2)): tells a thread which processor it is on, and aborts a critical section it was moved
//! out of.

use core::sync::atomic::Ordering;

use kernel_logic::signal::{SigInfo, sig};
use linux_abi::Errno;
use machine::arch::UserFrame;

use super::Task;
use crate::task::signal;
use crate::user::UserPtr;

/// Stores the processor number in the registered area.
pub fn update(task: &Task) -> Result<(), Errno> {
    let addr = task.rseq.addr.load(Ordering::Relaxed);
    let cpu = machine::cpu::id().0;
    let words = UserPtr::<u32>::new(addr);
    words.write(cpu)?;
    words.add(1).write(cpu)?;
    // Node and memory-map id: one node, and the processor number is as good an id as any.
    words.add(5).write(0)?;
    words.add(6).write(cpu)
}

/// On the way to user mode after a switch or before a signal handler: keeps the area current and aborts the critical
/// section the instruction pointer is in. A bad area or descriptor is `SIGSEGV`, as on Linux.
pub fn on_return(task: &Task, frame: &mut UserFrame) {
    if task.rseq.addr.load(Ordering::Relaxed) == 0 {
        return;
    }
    if abort_section(task, frame).and_then(|()| update(task)).is_err() {
        signal::force(SigInfo::kernel(sig::SEGV));
    }
}

fn abort_section(task: &Task, frame: &mut UserFrame) -> Result<(), Errno> {
    let area = UserPtr::<u64>::new(task.rseq.addr.load(Ordering::Relaxed));
    let section = area.add(1).read()?;
    if section == 0 {
        return Ok(());
    }
    let descriptor = UserPtr::<u64>::new(section);
    let (start, len, abort) = (descriptor.add(1).read()?, descriptor.add(2).read()?, descriptor.add(3).read()?);
    if frame.ip().wrapping_sub(start) >= len {
        return area.add(1).write(0);
    }
    let signature = UserPtr::<u32>::new(abort.wrapping_sub(4)).read()?;
    if signature != task.rseq.signature.load(Ordering::Relaxed) || abort.wrapping_sub(start) < len {
        return Err(Errno::EINVAL);
    }
    area.add(1).write(0)?;
    frame.set_ip(abort);
    Ok(())
}
