//! Describes one boot as `cargo xtask boot` takes it and makes the machine for it; other judges start from the same
//! form.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::guest;
use crate::image::{self, Image, Node};
use crate::kernel::Which;
use crate::paths;
use crate::process::Call;
use crate::qemu::{Accel, Machine, Model, Serial};
use crate::setup::Consent;
use crate::ways::{self, Recorder};

/// What to boot and how, which is also the command line of `cargo xtask boot`.
#[derive(Debug, Args)]
pub struct Options {
    /// Number of CPUs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    smp: u32,
    /// Memory in MiB.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..))]
    mem: u32,
    /// QEMU's machine type.
    #[arg(long, value_enum, default_value_t)]
    machine: Model,
    /// What runs the guest's instructions.
    #[arg(long, value_enum, default_value_t)]
    accel: Accel,
    /// Debug categories of our kernel, as `debug=` on its command line.
    #[arg(long, value_name = "LIST")]
    debug: Option<String>,
    /// More kernel options; may be repeated.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    append: Vec<String>,
    /// Another initramfs than ours (its own init runs; a command needs our oneshot in it).
    #[arg(long, value_name = "FILE")]
    initrd: Option<PathBuf>,
    /// Boot the kernel of this workspace, or Debian's Linux.
    #[arg(long, value_enum, default_value_t)]
    kernel: Which,
    /// Wait for a debugger on port 1234; the kernel stays where its file says (`nokaslr`).
    #[arg(long)]
    pub gdb: bool,
    /// Kill a command after this many seconds.
    #[arg(long, default_value_t = 300)]
    pub timeout: u64,
    /// Keep the memory for dumps in this file, which is made when missing; `kwab import FILE` reads it.
    #[arg(long, value_name = "FILE")]
    dumpmem: Option<PathBuf>,
    /// Record which code of our kernel each system call runs into this file, and print every call, for kwab oracle; on
    /// one processor whose clock counts instructions.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gdb", "smp", "accel"])]
    paths: Option<PathBuf>,
    /// One more argument for QEMU; may be repeated.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    qemu: Vec<String>,
    /// The command to run instead of a login shell; `/bin/exam NAME` is a program that a planted bug hurts.
    #[arg(last = true)]
    pub command: Vec<String>,
}

impl Options {
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

    /// With another accelerator.
    pub fn accelerated_by(&mut self, accel: Accel) {
        self.accel = accel;
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

    /// Whether the kernel of this workspace is booted.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.kernel == Which::Ours
    }

    /// One command under one kernel, everything else as usual.
    pub fn once(kernel: Which, command: &[&str]) -> Self {
        Self {
            smp: 1,
            mem: 512,
            machine: Model::Pc,
            accel: Accel::Tcg,
            debug: None,
            append: Vec::new(),
            initrd: None,
            kernel,
            gdb: false,
            timeout: 300,
            dumpmem: None,
            paths: None,
            qemu: Vec::new(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
        }
    }
}

/// The programs that planted bugs hurt ([`crate::exam`]), in the image of a boot that runs them.
const EXAM: &str = "/bin/exam";

/// The machine that the options describe.
pub fn machine(options: &Options, consent: Consent) -> Result<Machine> {
    let initrd = match &options.initrd {
        Some(file) => file.clone(),
        None => {
            let mut image = image::base(consent)?;
            if options.command.iter().any(|word| word.contains(EXAM)) {
                image.program(EXAM, &guest::program("exam", consent)?)?;
            }
            put_command(&mut image, &options.command);
            if options.command.is_empty() {
                put_terminal(&mut image, &std::env::var("TERM").unwrap_or_default(), &size());
            }
            let file = paths::build("images")?.join(format!("boot-{}.cpio", options.kernel.name()));
            paths::write(&file, &image.archive())?;
            file
        }
    };
    let mut words = vec![options.kernel.options().to_owned()];
    if let Some(list) = &options.debug {
        words.push(format!("debug={list}"));
    }
    if !options.command.is_empty() {
        words.push("quiet loglevel=1 rdinit=/sbin/oneshot".into());
    }
    if options.gdb {
        words.push("nokaslr".into());
    }
    if options.paths.is_some() {
        words.push(ways::OPTIONS.into());
    }
    words.extend(options.append.iter().cloned());
    let mut machine = Machine::new(options.kernel.image(consent)?, initrd, words.join(" "));
    machine.model = options.machine;
    machine.accel = options.accel.resolve()?;
    machine.cpus = options.smp;
    machine.memory_mib = options.mem;
    machine.gdb = options.gdb;
    if let Some(file) = &options.dumpmem {
        machine.keep_dumps_in(file)?;
    }
    machine.extra.clone_from(&options.qemu);
    if let Some(file) = &options.paths {
        Recorder::of(&machine.kernel, consent)?.put(&mut machine, file);
    }
    if options.command.is_empty() {
        machine.serial = Serial::Interactive;
    }
    Ok(machine)
}

/// What an interactive guest may call its terminal.
const TERMINALS: [&str; 5] = ["vt100", "xterm", "screen", "tmux", "linux"];

/// Gives the guest the entries of those terminals that the host's terminfo database has (Debian: ncurses-base), for
/// programs that read it; BusyBox does not.
fn put_terminfo(image: &mut Image) {
    for name in TERMINALS {
        let entry = format!("{}/{name}", &name[..1]);
        let found = ["/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"]
            .iter()
            .find_map(|folder| std::fs::read(Path::new(folder).join(&entry)).ok());
        if let Some(bytes) = found {
            image.put(&format!("/etc/terminfo/{entry}"), 0o644, Node::File(bytes));
        }
    }
}

/// Rows and columns of this process's terminal, as `stty size` prints them.
fn size() -> String {
    Call::new("stty").args(["-F", "/dev/tty", "size"]).capture().map(|said| said.stdout).unwrap_or_default()
}

/// Tells the guest's shell about the terminal that its console is shown in, which a serial line cannot: its kind, its
/// size as `stty size` prints it, and the entries of the terminfo database.
pub fn put_terminal(image: &mut Image, kind: &str, size: &str) {
    put_terminfo(image);
    image.text("/etc/terminal", &terminal(kind, size));
}

fn terminal(kind: &str, size: &str) -> String {
    let numbers: Vec<u16> = size.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let known = TERMINALS.iter().find(|name| kind.starts_with(**name));
    let mut text = format!("export TERM={}\n", known.unwrap_or(&"vt100"));
    if let [rows, columns] = numbers[..]
        && rows > 0
        && columns > 0
    {
        text.push_str(&format!("stty rows {rows} cols {columns}\n"));
    }
    text
}

/// Leaves the words of a command where the one-shot init looks for them.
pub fn put_command(image: &mut Image, words: &[String]) {
    if !words.is_empty() {
        let text: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
        image.put("/etc/kwab/argv", 0o644, Node::File(text));
    }
}
