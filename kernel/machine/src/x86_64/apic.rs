pub(super) fn end_of_interrupt() {}
