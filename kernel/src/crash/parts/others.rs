//! What programs do that do not go on: in the dump of a hang the user registers and the innermost bytes of the user
//! stack of every thread that was not running here, the futex for which it waits, and the images that it runs.
//!
//! Their memory is read through their own page tables, which are walked like any others: without a lock, and only where
//! a frame is present.

use core::cell::RefCell;

use kwab_format::record::{CauseKind, MemoryKind, RegisterRole};
use linux_abi::syscalls;
use machine::addr::PhysAddr;
use machine::crash;

use super::cause::put_set;
use super::images::of_map;
use super::pages::{bit, take_one};
use super::stacks::memory_by;
use super::{Dump, Stop, Subject};
use crate::sched::ThreadState;
use crate::task::{Thread, tree};

/// Threads that are captured.
const MOST: usize = 64;
/// Bytes of each user stack.
const STACK: u64 = 2 << 10;
/// Bytes from a futex on: libraries keep the owner of a mutex in its word or soon behind it.
const FUTEX: u64 = 16;
/// A leaf above the lowest level (SDM 3, 4.5).
const HUGE: u64 = 1 << 7;

/// Whether the dump asks why something does not go on, and its channel has room for the answer.
fn is_asked(subject: &Subject<'_>) -> bool {
    let hangs = [
        CauseKind::HUNG_TASK,
        CauseKind::STALL,
        CauseKind::NMI,
        CauseKind::SOFT_LOCKUP,
        CauseKind::FAULT_LOOP,
        CauseKind::SYSRQ,
    ];
    hangs.contains(&subject.death.kind) && subject.amount.parked.1 > 0
}

/// Looks at every live thread that runs a program, but the one that ran here.
fn each(
    dump: &mut Dump<'_>,
    subject: &Subject<'_>,
    look: &mut dyn FnMut(&mut Dump<'_>, &Thread, PhysAddr) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if !is_asked(subject) {
        return Ok(());
    }
    let mut outcome = Ok(());
    let shared = RefCell::new(&mut *dump);
    let seen = tree::try_visit(
        &mut |thread| {
            let is_here = subject.thread.is_some_and(|running| core::ptr::eq(running, &**thread));
            let root = thread.mm.try_with(|mm| mm.space.root());
            if let Some(root) = root.filter(|_| !thread.kernel_thread && !is_here) {
                outcome = look(&mut shared.borrow_mut(), thread, root);
            }
            outcome.is_ok()
        },
        &mut |_| true,
    );
    seen.map_or(Err(Stop::Locked), |()| outcome)
}

/// User registers, stacks and futexes.
pub(super) fn user_code(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let mut left = MOST;
    each(dump, subject, &mut |dump, thread, root| {
        take_one(&mut left)?;
        let (pid, tid) = (Some(thread.pid()), Some(thread.tid()));
        let runs = matches!(thread.sched.state(), ThreadState::Running);
        let stopped = crash::stopped_registers(thread.sched.cpu()).filter(|(set, _)| runs && set.cs & 3 == 3);
        let mut read = |addr: u64, to: &mut [u8]| read(root, addr, to);
        let sp = match stopped {
            // The set of its processor is in the dump already.
            Some((registers, _)) => registers.rsp,
            None => {
                let Some(frame) = thread.user_frame() else { return Ok(()) };
                let cpu = thread.sched.cpu();
                put_set(dump, RegisterRole::USER, (pid, tid), cpu, frame.registers(), None, None)?;
                let call = frame.syscall().and_then(syscalls::by_number);
                if call.is_some_and(|call| call.name == "futex") {
                    let at = frame.registers().rdi;
                    let end = at.saturating_add(FUTEX);
                    memory_by(dump, MemoryKind::OBJECT, at, end, (pid, tid), "futex", &mut read)?;
                }
                frame.sp()
            }
        };
        let start = sp & !7;
        memory_by(dump, MemoryKind::USER_STACK, start, start.saturating_add(STACK), (pid, tid), "user stack", &mut read)
    })
}

/// The images of the programs.
pub(super) fn images(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let (mut left, mut locked) = (MOST, false);
    let running = subject.pid();
    let outcome = each(dump, subject, &mut |dump, thread, root| {
        if thread.pid() != thread.tid() || running == Some(thread.pid()) {
            return Ok(());
        }
        take_one(&mut left)?;
        let mut read = |addr: u64, to: &mut [u8]| read(root, addr, to);
        let put = thread.mm.try_with(|mm| Some(of_map(dump, Some(thread.pid()), &*mm.try_lock()?, &mut read)));
        match put.flatten() {
            Some(outcome) => outcome,
            None => {
                locked = true;
                Ok(())
            }
        }
    });
    if locked { outcome.and(Err(Stop::Locked)) } else { outcome }
}

/// Copies user memory of the address space with a root table, up to the first page that is not there; how much.
fn read(root: PhysAddr, addr: u64, to: &mut [u8]) -> usize {
    let mut done = 0;
    while done < to.len() {
        let Some(at) = addr.checked_add(done as u64) else { break };
        let walk = crash::walk(root, at);
        let Some(entry) = walk.depth.checked_sub(1).map(|last| walk.entries[last]) else { break };
        let is_leaf = walk.depth == 4 || entry & HUGE != 0;
        if !is_leaf || entry & bit::PRESENT == 0 || entry & bit::USER == 0 {
            break;
        }
        let size = 1u64 << (12 + 9 * (4 - walk.depth));
        let skip = at & (size - 1);
        let len = (to.len() - done).min((size - skip) as usize);
        let found = crash::probe_physical((entry & bit::ADDRESS & !(size - 1)) + skip, &mut to[done..done + len]);
        done += found;
        if found < len {
            break;
        }
    }
    done
}
