//! x
pub(super) fn processors(){} pub(super) fn shootdown(){} pub(super) fn work(){}
