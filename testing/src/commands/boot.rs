//! `cargo xtask boot [OPTIONS] [-- COMMAND...]`: boots a kernel in QEMU with BusyBox around it.
//!
//! Without a command it gives an interactive login shell on the serial console; Ctrl-A X leaves QEMU, `poweroff` leaves
//! it politely. With a command it runs that as the only program, shows what it prints, and ends with its status; 124 when
//! it took longer than `--timeout`, 125 when the kernel gave up.
//!
//! ```console
//! $ cargo xtask boot --kernel linux -- uname -s
//! Linux
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::kernel::Which;
use crate::image::{self, Image, Node};
use crate::paths;
use crate::qemu::{self, Ending, Limits, Machine, Model, Serial, run::Next};
use crate::setup::{self, Consent, Tool};

/// Its arguments.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of CPUs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    smp: u32,
    /// Memory in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..))]
    mem: u32,
    /// QEMU's machine type.
    #[arg(long, value_enum, default_value_t)]
    machine: Model,
    /// Debug categories of our kernel, as `debug=` on its command line.
    #[arg(long, value_name = "LIST")]
    debug: Option<String>,
    /// More kernel options; may be repeated.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    append: Vec<String>,
    /// Another initramfs than ours (its own init runs; a command needs our oneshot in it).
    #[arg(long, value_name = "FILE")]
    initrd: Option<PathBuf>,
    /// Which kernel.
    #[arg(long, value_enum, default_value_t)]
    kernel: Which,
    /// Wait for a debugger on port 1234; the kernel stays where its file says (`nokaslr`).
    #[arg(long)]
    gdb: bool,
    /// Kill a command after this many seconds.
    #[arg(long, default_value_t = 300)]
    timeout: u64,
    /// Keep the memory for dumps in this file, which is made when missing; `kwab import FILE` reads it.
    #[arg(long, value_name = "FILE")]
    dumpmem: Option<PathBuf>,
    /// One more argument for QEMU; may be repeated.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    qemu: Vec<String>,
    /// The command to run instead of a login shell.
    #[arg(last = true)]
    command: Vec<String>,
}

impl Arguments {
    /// The same with debug categories of our kernel.
    #[must_use]
    pub fn debugging(mut self, list: &str) -> Self {
        self.debug = Some(list.to_owned());
        self
    }

    /// The same from this initramfs, which has the command in it ([`put_command`]).
    #[must_use]
    pub fn from_initramfs(mut self, file: PathBuf) -> Self {
        self.initrd = Some(file);
        self
    }

    /// On another machine type.
    pub fn machine_model(&mut self, model: Model) {
        self.machine = model;
    }

    /// The same on so many processors.
    #[must_use]
    pub fn processors(mut self, count: u32) -> Self {
        self.smp = count;
        self
    }

    /// The same with so many MiB of memory.
    #[must_use]
    pub fn memory(mut self, mib: u32) -> Self {
        self.mem = mib;
        self
    }

    /// One command under one kernel, everything else as usual.
    pub fn once(kernel: Which, command: &[&str]) -> Self {
        Self {
            smp: 1,
            mem: 512,
            machine: Model::Pc,
            debug: None,
            append: Vec::new(),
            initrd: None,
            kernel,
            gdb: false,
            timeout: 300,
            dumpmem: None,
            qemu: Vec::new(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    let machine = machine(arguments, consent)?;
    if arguments.command.is_empty() {
        eprintln!("Ctrl-A X ends QEMU");
        let status = machine.call().show_status()?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let limits = Limits::seconds(if arguments.gdb { 86_400 } else { arguments.timeout });
    // The init starts its last line with a line end, in case the command's had none; that empty line is not the command's.
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

/// The machine that the arguments describe.
pub fn machine(arguments: &Arguments, consent: Consent) -> Result<Machine> {
    let initrd = match &arguments.initrd {
        Some(file) => file.clone(),
        None => {
            let mut image = image::base(consent)?;
            put_command(&mut image, &arguments.command);
            let file = paths::build("images")?.join(format!("boot-{}.cpio", arguments.kernel.name()));
            paths::write(&file, &image.archive())?;
            file
        }
    };
    let mut options = vec![arguments.kernel.options().to_owned()];
    if let Some(list) = &arguments.debug {
        options.push(format!("debug={list}"));
    }
    if !arguments.command.is_empty() {
        options.push("quiet loglevel=1 rdinit=/sbin/oneshot".into());
    }
    if arguments.gdb {
        options.push("nokaslr".into());
    }
    options.extend(arguments.append.iter().cloned());
    let mut machine = Machine::new(arguments.kernel.image(consent)?, initrd, options.join(" "));
    machine.model = arguments.machine;
    machine.cpus = arguments.smp;
    machine.memory_mib = arguments.mem;
    machine.gdb = arguments.gdb;
    if let Some(file) = &arguments.dumpmem {
        machine.keep_dumps_in(file)?;
    }
    machine.extra.clone_from(&arguments.qemu);
    if arguments.command.is_empty() {
        machine.serial = Serial::Interactive;
    }
    Ok(machine)
}

/// Leaves the words of a command where the one-shot init looks for them.
pub fn put_command(image: &mut Image, words: &[String]) {
    if !words.is_empty() {
        let text: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
        image.put("/etc/kwab/argv", 0o644, Node::File(text));
    }
}

/// The status for the shell, and a word on stderr when it is not the command's own.
fn status(ending: &Ending, elapsed: Duration) -> u8 {
    let (words, status) = match ending {
        Ending::Exited(status) => return u8::try_from(status & 0xff).unwrap_or(u8::MAX),
        Ending::Panicked(line) => (format!("the kernel gave up: {line}"), 125),
        Ending::Hung | Ending::TimedOut => (format!("killed after {:.1} s", elapsed.as_secs_f64()), 124),
        Ending::Stopped(code) => (format!("the machine stopped without a status (QEMU: {code:?})"), 125),
        Ending::Enough => return 0,
    };
    eprintln!("{words}");
    status
}
