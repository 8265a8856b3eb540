//! x
pub(super) fn switch(){} pub(super) fn fpu(){}
