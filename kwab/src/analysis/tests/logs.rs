//! The real logs, imported and judged.
