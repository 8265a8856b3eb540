//! The way into `cargo xtask`: builds the program of that name, saying how far it is, and becomes it.
//!
//! This package depends on nothing, so that it is there a second after a clone; `cargo run --quiet` would build the
//! whole of `cargo xtask` without a word for minutes. A build that has nothing to do prints nothing. The demonstration
//! on a machine that has built nothing yet is built without optimisation: a newcomer waits for it.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::{env, io};

use stage::Ended;

fn main() -> ExitCode {
    let enter = || -> io::Result<ExitCode> {
        let mut program = env::current_exe()?.with_file_name("xtask");
        let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.arg("build").args(stage::CHOSEN);
        if let Some(folder) = env::var_os("CARGO_MANIFEST_DIR") {
            build.args(["--manifest-path".into(), {
                let mut path = folder;
                path.push("/../Cargo.toml");
                path
            }]);
        }
        if env::args_os().nth(1).is_some_and(|command| command == "demo") && !program.exists() {
            build.args(["--profile", stage::QUICK]);
            program = program.with_file_name("..").join(stage::QUICK).join("xtask");
        }
        match stage::run("building cargo xtask and kwab", &mut build, None)? {
            Some(Ended { status, .. }) if status.success() => {
                Err(Command::new(program).args(env::args_os().skip(1)).exec())
            }
            Some(Ended { told, .. }) => {
                eprint!("{told}");
                Ok(ExitCode::FAILURE)
            }
            None => Ok(ExitCode::FAILURE),
        }
    };
    enter().unwrap_or_else(|error| {
        eprintln!("error: cannot enter cargo xtask: {error}");
        ExitCode::FAILURE
    })
}
