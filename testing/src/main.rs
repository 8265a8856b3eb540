//! `cargo xtask`: builds, boots, judges. Everything is in the library; `cargo xtask --help` lists the commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    testing::commands::main()
}
