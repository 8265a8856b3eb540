//! The section of locks: holders of the kernel's own, and the locks that processors spin for.

use kwab_format::record::{Lock, LockKind, LockWait};
use machine::cpu::{self, CpuId};
use machine::crash;
use machine::sync::Holder;

use super::{Dump, Scope, Stop, Subject};
use crate::{log, mm, task};

type HolderOf = fn() -> Option<Holder>;

/// The locks of the whole kernel, by name.
const GLOBAL: &[(&str, HolderOf)] = &[
    ("process tree", task::tree::holder),
    ("kernel log", log::holder),
    ("frame allocator", mm::frames::holder),
    ("console", machine::console::holder),
];

pub(super) fn locks(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    for (name, holder) in GLOBAL {
        if let Some(holder) = holder() {
            put(dump, None, Some(name), holder)?;
        }
    }
    if subject.scope != Scope::Kernel {
        return Ok(());
    }
    for number in (0..64).filter(|number| cpu::online() >> number & 1 != 0) {
        let cpu = CpuId(number);
        let Some(awaited) = crash::awaited_lock(cpu) else { continue };
        if let Some(holder) = awaited.holder {
            put(dump, Some(awaited.lock), None, holder)?;
        }
        let mut text = log::Line::<160>::new();
        // What does not fit is cut.
        let _ = core::fmt::Write::write_fmt(&mut text, format_args!("{}", awaited.location));
        dump.put(&LockWait {
            addr: Some(awaited.lock),
            waiter_cpu: Some(cpu.0),
            location: Some(text.bytes()),
            kind: Some(LockKind::SPIN),
            ..LockWait::default()
        })?;
    }
    Ok(())
}

fn put(dump: &mut Dump<'_>, addr: Option<u64>, name: Option<&str>, holder: Holder) -> Result<(), Stop> {
    let mut text = log::Line::<160>::new();
    // What does not fit is cut.
    let _ = core::fmt::Write::write_fmt(&mut text, format_args!("{}", holder.location));
    dump.put(&Lock {
        addr,
        name: name.map(str::as_bytes),
        kind: Some(LockKind::SPIN),
        holder_cpu: Some(holder.cpu.0),
        location: Some(text.bytes()),
        ..Lock::default()
    })
}
