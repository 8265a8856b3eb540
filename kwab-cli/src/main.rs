//! The `kwab` command: parse, call, render.

fn main() {}
