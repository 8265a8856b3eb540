//! `cargo xtask boot [OPTIONS] [-- COMMAND...]`: boots a kernel in QEMU with BusyBox around it.
//!
//! Without a command it gives an interactive login shell on the serial console; Ctrl-A X leaves QEMU, `poweroff` leaves
//! it politely. With a command it runs that as the only program, shows what it prints, and ends with its status; 124
//! when it took longer than `--timeout`, 125 when the kernel stopped. When the kernel died, `kwab triage` says why, by
//! the console's log, which is kept in `build/boot`, or by the dump in the memory of `--dumpmem`; and what was changed
//! since the build that ended a command well last, which is kept in `build/boot/good`.
//!
//! ```console
//! $ cargo xtask boot --kernel linux -- uname -s
//! Linux
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::boot::{self, Options};
use crate::kernel::Which;
use crate::process::Call;
use crate::qemu::run::{self, Next};
use crate::qemu::{self, Ending, Limits, Machine, Serial};
use crate::setup::{self, Consent, Tool};
use crate::{binary, image, paths};

/// Runs the command.
pub fn run(arguments: &Options, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    let mut machine = boot::machine(arguments, consent)?;
    if arguments.gdb {
        let kernel = paths::shown(&machine.kernel);
        eprintln!("QEMU waits for: gdb {kernel} -ex 'target remote :1234' -ex 'hbreak rust_begin_unwind' -ex continue");
    }
    let log = paths::build("boot")?.join(LOG);
    if arguments.command.is_empty() {
        eprintln!("Ctrl-A X ends QEMU; Ctrl-A C opens its monitor, where `nmi` makes a kernel that hangs dump itself");
        machine.log = Some(log.clone());
        let status = machine.call().show_status()?;
        let said = fs::read(&log).unwrap_or_default();
        if run::has_died(&String::from_utf8_lossy(&said)) {
            explain(&log, &machine)?;
        }
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
    let status = status(&outcome.ending, outcome.elapsed);
    if matches!(outcome.ending, Ending::Exited(_)) && arguments.is_ours() {
        worked(&machine)?;
    }
    if !matches!(outcome.ending, Ending::Exited(_)) && run::has_died(&String::from_utf8_lossy(&outcome.serial)) {
        paths::write(&log, &outcome.serial)?;
        explain(&log, &machine)?;
    }
    Ok(ExitCode::from(status))
}

/// What the shell of a login in the guest finds: a terminal of a kind and a size, its entry, the name of the system.
pub fn login(kernel: Which, consent: Consent) -> Result<()> {
    let mut image = image::base(consent)?;
    boot::put_terminal(&mut image, "xterm-256color", "41 123\n");
    let asked = "echo \"it is $TERM of $(stty size), $(tty)\"; . /etc/os-release; echo \"on $ID\"\n\
                 echo \"entry $(head -c 2 /etc/terminfo/x/xterm | hexdump -e '1/1 \"%02x\"')\"\n\
                 stty -echo; stty size < /dev/ttyS0; echo login ends\n";
    image.text(&format!("{HOME}/.profile"), asked);
    let file = paths::build("images")?.join("login.cpio");
    paths::write(&file, &image.archive())?;
    let mut machine = boot::machine(&Options::once(kernel, &[]).from_initramfs(file), consent)?;
    machine.serial = Serial::Captured;
    let seen = |line: &str| if line.contains("login ends") { Next::Stop } else { Next::Go };
    let outcome = qemu::run(&machine, Limits::seconds(60), seen)?;
    let said = String::from_utf8_lossy(&outcome.serial);
    for fact in ["it is xterm of 41 123, /dev/ttyS0", "on kwab", "entry 1a01", "41 123"] {
        ensure!(said.contains(fact), "the shell of a login does not say `{fact}`: {said}");
    }
    Ok(())
}

/// Keeps the kernel of a boot that ended well: of a later build that dies, what was changed since can be said.
fn worked(machine: &Machine) -> Result<()> {
    let (kept, image) = (good()?, fs::read(&machine.kernel)?);
    if fs::read(&kept).is_ok_and(|old| old == image) {
        return Ok(());
    }
    paths::write(&kept, &image)
}

/// Where the kernel of the last boot that ended well is kept.
fn good() -> Result<PathBuf> {
    Ok(paths::build("boot/good")?.join("kernel"))
}

/// Says why a kernel died: by its dump where there is memory for one, else by its console.
fn explain(log: &Path, machine: &Machine) -> Result<()> {
    let source = match &machine.dumps {
        Some(memory) => memory,
        None => log,
    };
    let program = binary::kwab()?;
    let (shown, kernel) = (paths::shown(source), paths::shown(&machine.kernel));
    let mut arguments = vec!["triage".to_owned(), shown, "--symbols".to_owned(), kernel];
    let good = good()?;
    if fs::read(&good).is_ok_and(|old| fs::read(&machine.kernel).is_ok_and(|new| old != new)) {
        arguments.extend(["--good".to_owned(), paths::shown(&good)]);
    }
    eprintln!("$ kwab {}", arguments.join(" "));
    // It ends with status 1 when it found something, and with others when there is nothing to read.
    let judged = Call::new(program).args(&arguments).folder(paths::root());
    judged.show_status()?;
    Ok(())
}

/// Where the guest's root lives, whose shell a login is.
const HOME: &str = "/root";
/// The console's log of the last boot that died or was a session.
const LOG: &str = "serial.log";

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
