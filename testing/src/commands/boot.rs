//! `cargo xtask boot [OPTIONS] [-- COMMAND...]`: boots a kernel in QEMU with BusyBox around it.
//!
//! Without a command it gives an interactive login shell on the serial console; Ctrl-A X leaves QEMU, `poweroff` leaves
//! it politely. With a command it runs that as the only program, shows what it prints, and ends with its status; 124
//! when it took longer than `--timeout`, 125 when the kernel stopped.
//!
//! ```console
//! $ cargo xtask boot --kernel linux -- uname -s
//! Linux
//! ```

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use crate::boot::{self, Options};
use crate::qemu::{self, Ending, Limits, run::Next};
use crate::setup::{self, Consent, Tool};

/// Runs the command.
pub fn run(arguments: &Options, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    let machine = boot::machine(arguments, consent)?;
    if arguments.command.is_empty() {
        eprintln!("Ctrl-A X ends QEMU");
        let status = machine.call().show_status()?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let limits = Limits::seconds(if arguments.gdb { 86_400 } else { arguments.timeout });
    // The init starts its last line with a line end, in case the command's had none; that empty line is not the
    // command's.
    let mut blank_lines = 0;
    let outcome = qemu::run(&machine, limits, |line| {
        if line.is_empty() {
            blank_lines += 1;
        } else {
            print!("{}", "\n".repeat(std::mem::take(&mut blank_lines)));
            println!("{line}");
        }
        Next::Go
    })?;
    Ok(ExitCode::from(status(&outcome.ending, outcome.elapsed)))
}

/// The status for the shell, and a word on stderr when it is not the command's own.
fn status(ending: &Ending, elapsed: Duration) -> u8 {
    let (words, status) = match ending {
        Ending::Exited(status) => return u8::try_from(status & 0xff).unwrap_or(u8::MAX),
        Ending::Panicked(line) => (format!("the kernel stopped: {line}"), 125),
        Ending::Hung | Ending::TimedOut => (format!("killed after {:.1} s", elapsed.as_secs_f64()), 124),
        Ending::Stopped(code) => (format!("the guest stopped without an exit status (QEMU: {code:?})"), 125),
        Ending::Enough => return 0,
    };
    eprintln!("{words}");
    status
}
