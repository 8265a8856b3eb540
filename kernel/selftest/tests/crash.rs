//! x
pub(super) fn overflow(){} pub(super) fn stop(){} pub(super) fn probe(){} pub(super) fn fatal(){} pub(super) fn after_fatal(_: &machine::trap::FatalTrap){}
