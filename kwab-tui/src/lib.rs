//! The terminal interface, a library that `kwab tui` runs.
