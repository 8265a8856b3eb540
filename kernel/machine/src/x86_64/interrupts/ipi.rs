//! Sends the inter-processor interrupt after which a processor looks at its mailbox and its work flag.

use core::sync::atomic::Ordering;

use super::{apic, vectors};
use crate::hooks::hooks;
use crate::note::Note;
use crate::processor::CpuId;
use crate::x86_64::cpu::local;

/// Interrupt another processor so that it looks at its mailbox and its work flag.
pub(crate) fn interrupt(local: &local::Local) {
    (hooks().note)(&Note::InterruptSent { to: CpuId(local.id.load(Ordering::Relaxed)) });
    apic::send(local.apic_id.load(Ordering::Relaxed), vectors::KICK);
}
