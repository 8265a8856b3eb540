//! x
pub(super) fn copies(){}
