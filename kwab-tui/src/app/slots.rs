//! Which lists may show a target.

use kwab::format::SectionKind;
use kwab::model::RecordRef;

use crate::view::{Slot, Target};

/// The lists that may have a target, the best first.
pub(super) fn slots_of(target: &Target) -> &'static [Slot] {
    match target {
        Target::Dump(_) => &[],
        Target::Other(target) => slots_of(target),
        Target::Record(_) => {
            &[Slot::Timeline, Slot::Hex, Slot::Checks, Slot::Mappings, Slot::Pages, Slot::Tasks, Slot::Locks, Slot::Log]
        }
        Target::Event(_) => &[Slot::Timeline],
        Target::Line(_) => &[Slot::Timeline, Slot::Log],
        Target::Bytes(_) => &[Slot::Hex, Slot::Pages, Slot::Mappings],
        Target::Mapping(_) => &[Slot::Mappings],
        Target::Page(_) => &[Slot::Pages, Slot::Mappings],
        Target::Task(_) => &[Slot::Tasks],
        Target::Lock(_) => &[Slot::Locks],
        Target::Row(Slot::Triage, _) => &[Slot::Triage],
        Target::Row(Slot::Backtrace, _) => &[Slot::Backtrace],
        Target::Row(Slot::Registers, _) => &[Slot::Registers],
        Target::Row(Slot::Syscalls, _) => &[Slot::Syscalls],
        Target::Row(Slot::Timeline, _) => &[Slot::Timeline],
        Target::Row(Slot::Mappings, _) => &[Slot::Mappings],
        Target::Row(Slot::Pages, _) => &[Slot::Pages],
        Target::Row(Slot::Audit, _) => &[Slot::Audit],
        Target::Row(Slot::Checks, _) => &[Slot::Checks],
        Target::Row(Slot::Hex, _) => &[Slot::Hex],
        Target::Row(Slot::Tasks, _) => &[Slot::Tasks],
        Target::Row(Slot::Log, _) => &[Slot::Log],
        Target::Row(Slot::Integrity, _) => &[Slot::Integrity],
        Target::Row(Slot::Locks, _) => &[Slot::Locks],
        Target::Row(Slot::Profile, _) => &[Slot::Profile],
        Target::Row(Slot::Spans, _) => &[Slot::Spans],
        Target::Row(Slot::Marks | Slot::Compare, _) => &[],
    }
}

/// The list that shows a kind of section, for records that no row stands for.
pub(super) const fn fallback(at: &RecordRef) -> Option<Slot> {
    Some(match at.kind {
        SectionKind::CAUSE => Slot::Backtrace,
        SectionKind::REGISTERS => Slot::Registers,
        SectionKind::STACKS | SectionKind::MEMORY => Slot::Hex,
        SectionKind::SYSCALLS => Slot::Syscalls,
        SectionKind::FLIGHT | SectionKind::EVENTS => Slot::Timeline,
        SectionKind::MEMORY_MAP => Slot::Mappings,
        SectionKind::PAGE_TABLE => Slot::Pages,
        SectionKind::PAGE_CHECKS => Slot::Checks,
        SectionKind::TASKS => Slot::Tasks,
        SectionKind::LOCKS => Slot::Locks,
        SectionKind::LOG | SectionKind::KEPT => Slot::Log,
        SectionKind::COUNTERS => Slot::Profile,
        SectionKind::IDENTITY | SectionKind::IMAGES | SectionKind::NOTES => Slot::Integrity,
        _ => return None,
    })
}
