//! The way into `cargo xtask`: builds the program of that name, saying how far it is, and becomes it.
//!
//! This package depends on nothing, so that it is there a second after a clone; `cargo run --quiet` would build the
//! whole of `cargo xtask` without a word for minutes. A build that has nothing to do prints nothing. The demonstration
//! on a machine that has built nothing yet is built without optimisation, and the kernel that it boots beside it: one
//! processor would have nothing to do while the kernel, a single crate in the end, is compiled. A newcomer waits.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::{env, io};

use stage::Ended;

fn main() -> ExitCode {
    let enter = || -> io::Result<ExitCode> {
        let mut program = env::current_exe()?.with_file_name("xtask");
        let mut build = cargo();
        build.arg("build").args(stage::CHOSEN).args(manifest());
        let mut kernel = None;
        if env::args_os().nth(1).is_some_and(|command| command == "demo") && !program.exists() {
            build.args(["--profile", stage::QUICK]);
            program = program.with_file_name("..").join(stage::QUICK).join("xtask");
            kernel = kernel_beside();
        }
        match stage::run("building cargo xtask and kwab", &mut build, None)? {
            Some(Ended { status, .. }) if status.success() => {
                Err(Command::new(program).args(env::args_os().skip(1)).exec())
            }
            failed => {
                eprint!("{}", failed.map(|ended| ended.told).unwrap_or_default());
                if let Some(mut kernel) = kernel {
                    // One that has ended needs no end.
                    let _ = kernel.kill();
                    kernel.wait()?;
                }
                Ok(ExitCode::FAILURE)
            }
        }
    };
    enter().unwrap_or_else(|error| {
        eprintln!("error: cannot enter cargo xtask: {error}");
        ExitCode::FAILURE
    })
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The workspace that this program is of, as options for cargo.
fn manifest() -> Vec<OsString> {
    let Some(mut path) = env::var_os("CARGO_MANIFEST_DIR") else { return Vec::new() };
    path.push("/../Cargo.toml");
    vec!["--manifest-path".into(), path]
}

/// Starts the kernel's build without a word: `cargo xtask demo` asks for it again, and says what is the matter with it.
fn kernel_beside() -> Option<Child> {
    let mut add = Command::new("rustup");
    // Without rustup the compiler may have the target from elsewhere.
    let _ = stage::run("adding the Rust target of the kernel", add.args(["target", "add", stage::BARE]), None);
    let mut build = cargo();
    build.args(stage::KERNEL).args(["--profile", "kernel", "--bin", "kernel"]).args(manifest());
    build.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}
