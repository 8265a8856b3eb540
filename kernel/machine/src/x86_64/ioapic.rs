pub(crate) fn enable_console() {}
