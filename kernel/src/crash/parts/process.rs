//! The dump of a program that a signal ends, while everything else goes on.
//!
//! It goes into the memory region or onto the disk when there is one. On the serial console it would take tens of kilobytes
//! of armour per process, so that is done only when asked for: `coredump=serial`, at most [`MOST_ON_SERIAL`] times per boot;
//! `coredump=off` writes none anywhere. The thread that dies writes it itself, before its memory is given up.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use kernel_logic::signal::{Cause, SigInfo, SigSet};
use kwab_format::record::{CauseKind, Reason};
use kwab_format::{FileHeader, Writer};
use machine::arch::UserFrame;
use machine::crash;

use super::{BRIEF, Death, Dump, FULL, PARTS, Scope, Subject, boot_id, new_dump_id};
use crate::crash::channel::{self, Target};
use crate::log;
use crate::options::{self, CoreDump};
use crate::task::Thread;
use crate::task::process::Comm;
use crate::trace::limit;

/// Dumps written to the serial console in one boot: a program that crashes again and again must not bury the log.
const MOST_ON_SERIAL: u32 = 8;
static ON_SERIAL: AtomicU32 = AtomicU32::new(0);
static LEFT_OUT: AtomicU32 = AtomicU32::new(0);

/// Writes the dump of the running thread's process, which dies of `info` at `user`; does nothing without a channel.
pub fn dump(thread: &Thread, user: &UserFrame, info: &SigInfo) {
    let chosen = options::get().core_dump;
    if chosen == CoreDump::Off || (chosen == CoreDump::Auto && !channel::takes_processes()) {
        return;
    }
    // A program that dies for want of memory is not a reason for the kernel to die too.
    let mut buffer = Vec::new();
    if buffer.try_reserve_exact(BUFFER).is_err() {
        return;
    }
    buffer.resize(BUFFER, 0);
    let id = new_dump_id();
    let target = match channel::for_process() {
        Some(target) => target,
        None if chosen != CoreDump::Serial => return,
        None if ON_SERIAL.fetch_add(1, Ordering::Relaxed) >= MOST_ON_SERIAL => {
            if LEFT_OUT.fetch_add(1, Ordering::Relaxed) == 0 {
                log::warn!("kwab: {MOST_ON_SERIAL} process dumps written; further ones are left out");
            }
            return;
        }
        None => Target::Serial(id),
    };
    let death = death(thread, user, info);
    let amount = if matches!(target, Target::Serial(_)) { &BRIEF } else { &FULL };
    let subject = Subject { death: &death, thread: Some(thread), scope: Scope::Process, amount };
    let writer = Writer::new(target.sink(0, None), &mut buffer, FileHeader::new(id, boot_id()));
    let mut dump = Dump::new(writer, amount, &|_| {});
    for part in PARTS.iter().filter(|part| part.is_in(Scope::Process)) {
        dump.part(part, &subject);
    }
    let bytes = dump.finish().written();
    if limit::DUMPED.admits() {
        let (name, pid) = (Comm(&thread.process), thread.pid());
        log::info!("kwab: {name}[{pid}] dumped, {bytes} bytes to the {}", target.name());
    }
}

/// Bytes collected before they become a section.
const BUFFER: usize = 32 << 10;

fn death(thread: &Thread, user: &UserFrame, info: &SigInfo) -> Death {
    let control = crash::control_of_user();
    let mut death = Death::new(CauseKind::FATAL_SIGNAL, Reason::PROCESS_CRASH, *user.registers(), control);
    death.signal = Some((info.signal, info.code));
    let trap = thread.last_trap();
    // The last exception is this signal's cause only when the signal is one that exceptions send.
    if let Cause::Fault { addr } = info.cause
        && SigSet::SYNCHRONOUS.has(info.signal)
    {
        death.trap = Some(trap);
        death.control.cr2 = addr;
    }
    death
}
