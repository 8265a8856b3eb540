//! `cargo xtask hogs [KIND...]`: an unprivileged user takes all the memory it can get, and the machine goes on.
//!
//! For each kind of memory (`testing/guest/hog.c`: pages, pipes, sockets, sockets in each other, files, names, page
//! tables, ranges, timers, signals, queues, locks, threads, ...) a user's processes take until they are refused, in a
//! machine of `MEMORY`. A daemon of root and a program of another user must survive and go on: what bounds a kind is a
//! limit, or the choice of the one who holds the memory when there is none left. Nor may the user take the room for
//! dumps: when all is over, a program of root dies, and its dump must be in the machine's memory for dumps.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;

use crate::boot;
use crate::crashes::Seen;
use crate::kernel::Which;
use crate::qemu::{self, Limits, run::Next};
use crate::setup::{self, Consent, Tool};
use crate::{crashes, guest, image, paths};

/// HogsArguments of `hogs`.
#[derive(Debug, Args)]
pub struct HogsArguments {
    /// Only these kinds.
    kinds: Vec<String>,
    /// Which kernel; Linux has no answer to some of them.
    #[arg(long, value_enum, default_value_t)]
    kernel: Which,
    /// Memory in MiB.
    #[arg(long, default_value_t = MEMORY, value_parser = clap::value_parser!(u32).range(64..))]
    mem: u32,
}

impl HogsArguments {
    /// All kinds, under our kernel.
    pub fn all() -> Self {
        Self { kinds: Vec::new(), kernel: Which::Ours, mem: MEMORY }
    }
}

/// MiB of the machine.
const MEMORY: u32 = 128;
/// The signal that root's last program dies of, and no hog (`SIGTRAP`).
const LAST: u32 = 5;
/// Seconds for all kinds together.
const SECONDS: u64 = 600;

/// Runs the command.
pub fn run(arguments: &HogsArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let kinds = if arguments.kinds.is_empty() { "all".to_owned() } else { arguments.kinds.join(" ") };
    let script = format!(
        "mkdir -p /tmp /dev/shm; mount -t tmpfs -o mode=1777 none /tmp; mount -t tmpfs -o mode=1777 none /dev/shm; \
         /bin/hog {kinds}; sh -c 'kill -{LAST} $$'"
    );
    let words = ["sh", "-c", &script];
    let mut image = image::base(consent)?;
    image.program("/bin/hog", &guest::program("hog", consent)?)?;
    boot::put_command(&mut image, &words.map(str::to_owned));
    let file = paths::build("images")?.join("hogs.cpio");
    paths::write(&file, &image.archive())?;
    let memory = arguments.mem + qemu::DUMP_MIB;
    let once = boot::Options::once(arguments.kernel, &words).memory(memory).from_initramfs(file);
    let dumps = crashes::fresh_memory("hogs")?;
    let mut machine = boot::machine(&once, consent)?;
    machine.keep_dumps_in(&dumps)?;
    let outcome = qemu::run(&machine, Limits::seconds(SECONDS), |line| {
        if line.contains("ended by") || line.contains("hogs are over") {
            println!("{line}");
        }
        Next::Go
    })?;
    let text = String::from_utf8_lossy(&outcome.serial);
    ensure!(text.contains("hogs are over, 0 won"), "the machine ended with {:?}:\n{text}", outcome.ending);
    ensure!(text.matches("ended by").count() > 0, "no kind is named {kinds}");
    if arguments.kernel == Which::Ours {
        check_last_dump(&crashes::dumps_in(&dumps)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the program of root that died last was dumped.
fn check_last_dump(dumps: &[Vec<u8>]) -> Result<()> {
    let seen: Vec<Seen> = dumps.iter().map(|bytes| Seen::of(bytes)).collect::<Result<_>>()?;
    let signals: Vec<Option<u32>> = seen.iter().map(|dump| dump.signal).collect();
    ensure!(signals.contains(&Some(LAST)), "no dump of the last program, only of the signals {signals:?}");
    println!("{} dumps, among them that of the last program of root", dumps.len());
    Ok(())
}
