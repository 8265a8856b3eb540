//! Starts QEMU: what the machine is ([`Machine`]), and how a run is watched ([`mod@run`]).
//!
//! The accelerator is TCG unless a boot or a wall time asks for another ([`accel`]): figures are compared between
//! emulated runs, and a `/dev/kvm` on a host without the CPU's virtualisation flags hangs guests. Two clocks exist:
//! [`Clock::Host`], and [`Clock::Instructions`], where one guest instruction is one nanosecond and a rerun is
//! bit-identical; the second works with one CPU only.

pub mod accel;
mod quiet;
pub mod run;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::process::Call;

pub use accel::Accel;
pub use run::{Ending, Limits, OnSilence, Outcome, run, run_asking};

/// QEMU's machine types that are used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Model {
    /// The old PC: the one for comparisons, as Linux hangs at random on microvm under TCG.
    #[default]
    Pc,
    /// The newer PC with PCI Express.
    Q35,
    /// The small machine that boots fastest.
    Microvm,
    /// The arm64 machine.
    #[value(skip)]
    Virt,
}

/// Whose time the guest sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The host's monotonic clock: guest time passes as it does outside.
    #[default]
    Host,
    /// One nanosecond per guest instruction, from a fixed date.
    Instructions,
    /// The same with two nanoseconds per instruction: what depends on time comes at other instructions.
    SlowInstructions,
}

/// Where the guest's first serial port goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serial {
    /// To this process, through a pipe.
    #[default]
    Captured,
    /// To the user's terminal, with QEMU's keys (Ctrl-A X ends it).
    Interactive,
}

/// A virtual machine that has not started yet.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What runs its instructions, never [`Accel::Auto`].
    pub accel: Accel,
    /// QEMU's machine type (`-M`).
    pub model: Model,
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Whose time it sees.
    pub clock: Clock,
    /// QEMU's CPU model and features.
    pub cpu: &'static str,
    /// The kernel: a bzImage or a PVH ELF.
    pub kernel: PathBuf,
    /// The initramfs, unless the kernel needs none.
    pub initrd: Option<PathBuf>,
    /// The kernel's command line.
    pub append: String,
    /// Where the console goes.
    pub serial: Serial,
    /// The file that an interactive console is copied to.
    pub log: Option<PathBuf>,
    /// Waits for a debugger on port 1234.
    pub gdb: bool,
    /// The file that the memory for dumps is kept in.
    pub dumps: Option<PathBuf>,
    /// The file that keeps the memory below that for dumps; `None` for anonymous memory.
    pub low: Option<PathBuf>,
    /// Further arguments for QEMU, passed as they are.
    pub extra: Vec<String>,
}

/// Memory set aside for dumps, MiB.
pub const DUMP_MIB: u32 = 16;
/// Where it lies, MiB.
pub const DUMPS_AT_MIB: u32 = 64;
/// Beyond this, memory does not lie in one piece on every machine type.
const MOST_MIB: u32 = 2048;
/// Beyond this, the host is not asked to promise all memory: a guest touches little of it.
const PROMISED_MIB: u32 = 4096;

impl Machine {
    /// A machine of the usual size for a kernel and its first file system.
    pub fn new(kernel: PathBuf, initrd: PathBuf, append: String) -> Self {
        Self {
            accel: Accel::Tcg,
            model: Model::Pc,
            cpus: 1,
            memory_mib: 512,
            clock: Clock::Host,
            cpu: "max",
            kernel,
            initrd: Some(initrd),
            append,
            serial: Serial::Captured,
            log: None,
            gdb: false,
            dumps: None,
            low: None,
            extra: Vec::new(),
        }
    }

    /// Keeps [`DUMP_MIB`] of the machine's memory in `file`, which our kernel then dumps to. What is in the file stays.
    pub fn keep_dumps_in(&mut self, file: &Path) -> Result<()> {
        ensure!(self.model != Model::Microvm, "microvm cannot keep a part of its memory in a file: use pc or q35");
        let least = DUMPS_AT_MIB + 2 * DUMP_MIB;
        let sizes = least..=MOST_MIB;
        ensure!(sizes.contains(&self.memory_mib), "memory for dumps needs {least} to {MOST_MIB} MiB of memory");
        self.append = format!("{} dumpmem={DUMP_MIB}M@{DUMPS_AT_MIB}M", self.append);
        self.dumps = Some(file.to_owned());
        Ok(())
    }

    /// A machine of the usual size for a kernel that needs no file system.
    pub fn bare(kernel: PathBuf, append: String) -> Self {
        Self { initrd: None, ..Self::new(kernel, PathBuf::new(), append) }
    }

    /// The QEMU command.
    pub fn call(&self) -> Call {
        let program = if self.model == Model::Virt { "qemu-system-aarch64" } else { "qemu-system-x86_64" };
        let mut call = Call::new(program).args(self.flags());
        call = call.arg("-kernel").arg(&self.kernel).arg("-append").arg(&self.append);
        if let Some(initrd) = &self.initrd {
            call = call.arg("-initrd").arg(initrd);
        }
        call = match self.serial {
            Serial::Captured => call.args(["-serial", "stdio", "-monitor", "none"]),
            Serial::Interactive => match &self.log {
                None => call.args(["-serial", "mon:stdio"]),
                Some(file) => {
                    // As `mon:stdio`, with a copy in the file.
                    let device = format!("stdio,id=console,mux=on,signal=off,logfile={}", file.display());
                    call.args(["-chardev", &device, "-serial", "chardev:console", "-mon", "chardev=console"])
                }
            },
        };
        if self.gdb {
            call = call.args(["-s", "-S"]);
        }
        call.args(&self.extra)
    }

    /// The flags that make two runs comparable: everything but the kernel and its inputs.
    pub fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = vec!["-accel".into(), self.accel.name().into()];
        if self.memory_mib > PROMISED_MIB && self.dumps.is_none() {
            let backend = format!("memory-backend-ram,id=ram,size={}M,reserve=off", self.memory_mib);
            flags.extend(["-M".into(), format!("{},memory-backend=ram", self.model), "-object".into(), backend]);
        } else {
            flags.extend(["-M".into(), self.model.to_string()]);
        }
        flags.extend(["-cpu".into(), self.cpu.into()]);
        flags.extend(["-smp".into(), self.cpus.to_string(), "-m".into(), self.memory_mib.to_string()]);
        let pace = match self.clock {
            Clock::Host => None,
            Clock::Instructions => Some("shift=0,sleep=off"),
            Clock::SlowInstructions => Some("shift=1,sleep=off"),
        };
        if let Some(pace) = pace {
            flags.extend(["-icount", pace, "-rtc", "base=2024-01-01,clock=vm"].map(String::from));
        }
        let quiet = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"];
        flags.extend(quiet.map(String::from));
        if self.model != Model::Virt {
            flags.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"].map(String::from));
        }
        if let Some(file) = &self.dumps {
            // Three nodes, the second in a file: their memory lies in one piece. The initramfs is loaded at the top.
            let (file, rest) = (file.display(), self.memory_mib - DUMP_MIB - DUMPS_AT_MIB);
            let objects = [
                match &self.low {
                    Some(low) => {
                        format!("memory-backend-file,id=low,size={DUMPS_AT_MIB}M,mem-path={},share=on", low.display())
                    }
                    None => format!("memory-backend-ram,id=low,size={DUMPS_AT_MIB}M"),
                },
                format!("memory-backend-file,id=dumps,size={DUMP_MIB}M,mem-path={file},share=on"),
                format!("memory-backend-ram,id=high,size={rest}M"),
            ];
            flags.extend(objects.into_iter().flat_map(|object| ["-object".into(), object]));
            flags.extend(
                ["low", "dumps", "high"].into_iter().flat_map(|id| ["-numa".into(), format!("node,memdev={id}")]),
            );
        }
        flags
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pc => "pc",
            Self::Q35 => "q35",
            Self::Microvm => "microvm",
            Self::Virt => "virt",
        })
    }
}
