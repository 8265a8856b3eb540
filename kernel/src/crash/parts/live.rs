//! Live dumps, read from `/proc/kwab`.

use alloc::vec;
use alloc::vec::Vec;

use kwab_format::record::{CauseKind, Reason};
use kwab_format::{FileHeader, Writer};
use machine::crash;

use super::{COLLECTORS, Death, Dump, FULL, Scope, Subject, boot_id, new_dump_id};
use crate::crash::channel::Channel;
use crate::task::current;

/// The dump, written by the running thread while the others go on.
pub fn live() -> Vec<u8> {
    let death = Death::new(CauseKind::LIVE, Reason::LIVE, crash::registers_here(), crash::control_here());
    let me = current();
    let subject = Subject { death: &death, thread: Some(&me), scope: Scope::Live, amount: &FULL, stage: None };
    let mut buffer = vec![0; BUFFER];
    let header = FileHeader::new(new_dump_id(), boot_id());
    let writer = Writer::new(Channel::Memory(Vec::new()), &mut buffer, header);
    let mut dump = Dump::new(writer, &LIVE_AMOUNT, &|_| {});
    for part in COLLECTORS.iter().filter(|part| part.is_in(Scope::Live, &LIVE_AMOUNT)) {
        dump.part(part, &subject);
    }
    match dump.finish() {
        Channel::Memory(bytes) => bytes,
        _ => Vec::new(),
    }
}

/// As much as of a death, and with more time: other threads run meanwhile.
const LIVE_AMOUNT: super::Amount = super::Amount { patience: 4, ..FULL };
/// Bytes collected before they become a section.
const BUFFER: usize = 64 << 10;
