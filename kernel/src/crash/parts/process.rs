//! Process dumps: written when a fatal signal ends a program, while the system runs on.
//!
//! It goes into the memory region or onto the disk when there is one. On the serial console it would take tens of
//! kilobytes of armour per process, so that is done only when asked for: `coredump=serial`, at most [`MOST_ON_SERIAL`]
//! times per boot; `coredump=off` writes none anywhere. The thread that dies writes it itself, before its memory is
//! given up.
//!
//! `RLIMIT_CORE` bounds its size as it bounds that of a core file (core(5)): below [`LEAST`] bytes none is written.
//! Where a user's share of the channel is used up, its programs are not dumped ([`kernel_logic::dumpspace`]).

use alloc::vec::Vec;

use kernel_logic::dumpspace::{Pieces, Reason as Why, Refusal};
use kernel_logic::signal::{Cause, SigInfo, SigSet};
use kernel_logic::vma::PAGE;
use kwab_format::record::{CauseKind, Reason};
use kwab_format::{DumpId, FileHeader, Writer};
use machine::arch::UserFrame;
use machine::crash;
use machine::sync::SpinLock;

use super::{BRIEF, COLLECTORS, Death, Dump, FULL, Scope, Subject, boot_id, new_dump_id};
use crate::crash::channel::{self, NotDumped, Target};
use crate::log;
use crate::options::{self, CoreDump};
use crate::task::Thread;
use crate::task::limits::resource;
use crate::task::process::Comm;
use crate::trace::limit;

/// Dumps written to the serial console in one boot: a program that crashes again and again must not bury the log.
const MOST_ON_SERIAL: usize = 8;
static ON_SERIAL: SpinLock<Pieces> = SpinLock::new(Pieces::new(MOST_ON_SERIAL, 0));

/// Bytes that `RLIMIT_CORE` must permit: a page, as on Linux (`ELF_EXEC_PAGESIZE`).
const LEAST: u64 = PAGE;

/// Writes the dump of the running thread's process, which dies of `info` at `user`; does nothing without a channel.
pub fn dump(thread: &Thread, user: &UserFrame, info: &SigInfo) {
    let most = thread.process.limit(resource::CORE);
    if most < LEAST || !has_channel() {
        return;
    }
    // A program that dies for want of memory is not a reason for the kernel to die too.
    let mut buffer = Vec::new();
    if buffer.try_reserve_exact(BUFFER).is_err() {
        return;
    }
    buffer.resize(BUFFER, 0);
    let id = new_dump_id();
    let uid = thread.creds.with(|creds| creds.uid);
    let target = match target(uid, most, id) {
        Ok(target) => target,
        Err(refusal) => return refusal.map_or((), |refusal| announce(uid, refusal)),
    };
    let death = death(thread, user, info);
    let amount = if matches!(target, Target::Serial(_)) { &BRIEF } else { &FULL };
    let subject = Subject { death: &death, thread: Some(thread), scope: Scope::Process, amount, stage: None };
    let writer = Writer::new(target.sink(0, None), &mut buffer, FileHeader::new(id, boot_id()));
    let mut dump = Dump::new(writer, amount, &|_| {});
    for part in COLLECTORS.iter().filter(|part| part.is_in(Scope::Process, amount)) {
        dump.part(part, &subject);
    }
    let bytes = dump.finish().written();
    if limit::DUMPED.admits() {
        let (name, pid) = (Comm(&thread.process), thread.pid());
        log::info!("kwab: {name}[{pid}] dumped, {bytes} bytes to the {}", target.name());
    }
}

/// Whether programs are dumped at all, if their limits permit it.
pub fn has_channel() -> bool {
    match options::get().core_dump {
        CoreDump::Off => false,
        CoreDump::Serial => true,
        CoreDump::Auto => channel::takes_processes(),
    }
}

/// Where the dump of a program of `uid` goes; no refusal without a channel.
fn target(uid: u32, most: u64, id: DumpId) -> Result<Target, Option<Refusal>> {
    match channel::for_process(uid, most) {
        Ok(target) => Ok(target),
        Err(_) if options::get().core_dump == CoreDump::Serial => {
            ON_SERIAL.lock().take(uid).map(|_| Target::Serial(id)).map_err(Some)
        }
        Err(NotDumped::NoChannel) => Err(None),
        Err(NotDumped::Refused(refusal)) => Err(Some(refusal)),
    }
}

/// Says once per reason that dumps are left out from here on; all are counted.
fn announce(uid: u32, refusal: Refusal) {
    match refusal.reason {
        _ if !refusal.first => {}
        Why::Full => log::warn!("kwab: the space for process dumps is full; further ones are left out"),
        Why::User(filled) => log::warn!("kwab: user {uid} has {filled} process dumps; further ones are left out"),
        Why::Ordinary(filled) => {
            log::warn!("kwab: ordinary users have {filled} process dumps; further ones are left out");
        }
    }
}

/// How many programs were not dumped for want of a piece; `None` while the counts are locked.
pub fn left_out() -> Option<u64> {
    Some(channel::refused()? + ON_SERIAL.try_lock()?.refused())
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
        death.set_trap(trap);
        death.control.cr2 = addr;
    }
    death
}
