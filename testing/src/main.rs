//! `cargo xtask`: builds, boots, judges.

fn main() {}
