//! x
pub(super) fn tables(){} pub(super) fn fork(){} pub(super) fn huge(){} pub(super) fn heap(){}
