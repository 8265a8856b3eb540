//! A step of `cargo xtask test`: all memory of a running guest, taken from outside, is what the guest and QEMU say.
//!
//! Our kernel and Linux run a program that has a known text on its stack. `kwab`'s capture takes all RAM through the
//! machine protocol. The text must be found, the kernel's build-id must be that of the image that runs, and a few
//! hundred addresses of the kernel must translate as QEMU's own walker translates them (`gva2gpa` of its monitor). Of
//! Linux, whose image is not there, its log must be what the console showed, its processes those that the guest listed
//! before, and every thread that does not run must stand on a stack that goes back to the thread's begin. QEMU's stub
//! for GDB must give the registers and the memory of our kernel's guest that the monitor gives. QEMU's own
//! kdump-compressed file of the same moment, which it writes flattened, must hold and say the same as its ELF core.
//! A guest of ours that hangs or has died must say from outside what its own dump says (`hung`, `died`).

mod died;
mod hung;
mod rings;

use std::fs;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kwab::analysis::Triage;
use kwab::capture::gdb::Remote;
use kwab::capture::qmp::Session;
use kwab::capture::{Level, Options, Snapshot, capture, capture_gdb, of_core};
use kwab::format::record::RegId;
use kwab::memory::{Ram, Space, Wanted, walk};
use kwab::model::{Depth, Dump};
use kwab::report::address::search::{Pattern, search};
use kwab::symbols::{Image, IndexCache, Symbols};
use serde_json::json;

use crate::boot::{self, Options as Boot};
use crate::kernel::Which;
use crate::paths;
use crate::qemu::run::Next;
use crate::qemu::{Limits, run};
use crate::setup::{self, Consent, Tool};

/// What the guest's program holds.
const TEXT: &str = "a text that only this guest holds";
/// Addresses that are compared: through the kernel's image, and as much again on both sides of it.
const ADDRESSES: u64 = 384;

/// MiB of the machine. The stub for GDB, which is asked of our kernel's, takes a question for each 2 KiB.
const fn memory(kernel: Which) -> u32 {
    match kernel {
        Which::Ours => 64,
        Which::Linux => 256,
    }
}

/// Runs the step under both kernels.
pub fn check(consent: Consent) -> Result<()> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    println!("died: {}", died::check(consent).context("of a guest that dies")?);
    println!("hung: {}", hung::check(consent).context("of a guest that hangs")?);
    for kernel in [Which::Ours, Which::Linux] {
        let said = under(kernel, consent).with_context(|| format!("under {}", kernel.name()))?;
        println!("{}: {said}", kernel.name());
    }
    Ok(())
}

/// What a triage says first: rule, claim and guilty function.
fn first(triage: &Triage) -> Option<(&'static str, String, Option<String>)> {
    let first = triage.hypotheses.first()?;
    Some((first.rule, first.claim.clone(), first.function.as_ref().map(|guilty| guilty.name.clone())))
}

fn under(kernel: Which, consent: Consent) -> Result<String> {
    let folder = paths::build("outside")?;
    let socket = folder.join("qmp");
    // The shell lists the processes without starting one, and does not become the last of its commands.
    let list = "for p in /proc/[0-9]*; do read c < $p/comm; echo TASK ${p#/proc/} $c; done";
    let script = format!("text='{TEXT}'; {list}; echo READY; sleep 100; true");
    let options = Boot::once(kernel, &["/bin/sh", "-c", &script]).memory(memory(kernel)).processors(2);
    let mut machine = boot::machine(&options, consent)?;
    for (option, socket) in [("-qmp", &socket), ("-gdb", &socket.with_extension("gdb"))] {
        let _ = fs::remove_file(socket);
        machine.extra.extend([option.to_owned(), format!("unix:{},server=on,wait=off", socket.display())]);
    }
    let (mut said, mut console) = (None, Vec::new());
    let outcome = run(&machine, Limits::seconds(120), |line| {
        if line.contains("READY") {
            said = Some(captured(&machine.kernel, kernel == Which::Ours, &socket, &folder, &console));
            return Next::Stop;
        }
        console.push(line.to_owned());
        Next::Go
    })?;
    match said {
        Some(said) => said,
        None => bail!("the guest was not ready: {:?}", outcome.ending),
    }
}

/// Takes the memory and compares.
fn captured(kernel: &Path, is_ours: bool, socket: &Path, folder: &Path, console: &[String]) -> Result<String> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_millis(250)))?;
    let mut session = Session::open(Box::new(stream.try_clone()?), Box::new(stream))?;
    let options = Options { nmi: false, wait: Duration::ZERO, level: Level::All(folder.to_owned()) };
    // What is compared behind the capture must not change before.
    session.execute("stop", None)?;
    let snapshot = capture(&mut session, &options)?.context("nothing was captured")?;
    let file = folder.join(if is_ours { "ours.kwab" } else { "linux.kwab" });
    let mut out = std::io::BufWriter::new(fs::File::create(&file)?);
    let totals = snapshot.write(1, 1, &mut out)?;
    drop(out);
    let dump = Dump::open(&file, Depth::Rules)?;
    ensure!(dump.defects().is_empty(), "{:?}", dump.defects());
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let pattern = Pattern::new(TEXT.as_bytes().to_vec(), 1)?;
    let found = search(&case, &ram, &Symbols::new(), &pattern, 1, "");
    ensure!(found.count > 0, "the guest's text is not in {}", paths::shown(&file));
    if is_ours {
        let image = Image::open(kernel, &IndexCache::none())?;
        let id = case.identities.first().and_then(|identity| identity.kernel_build_id);
        ensure!(image.build_id().map(|id| id.0).as_deref() == id, "the build-id is {id:?}");
    }
    let space = Wanted { cpu: Some(0), ..Wanted::default() }.find(&case)?;
    let kernel = snapshot.kernel.as_ref().context("no kernel was found in the memory")?;
    let mapped = compare(&mut session, &ram, &space, kernel.start..kernel.end)?;
    let (all, zeros) = (totals.bytes >> 20, totals.zeros >> 20);
    let told = match is_ours {
        true => by_stub(&socket.with_extension("gdb"), folder, &snapshot)?,
        false => of_linux(&snapshot, console)? + &packed(&mut session, folder, &snapshot)?,
    };
    Ok(format!("{all} MiB captured, {zeros} MiB of them zeros; {mapped} of {ADDRESSES} addresses mapped alike{told}"))
}

/// Reads the guest, which stands still, through the stub for GDB, and compares that with what the monitor gave.
fn by_stub(socket: &Path, folder: &Path, of_monitor: &Snapshot) -> Result<String> {
    let begun = Instant::now();
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_millis(250)))?;
    let mut remote = Remote::open(Box::new(stream.try_clone()?), Box::new(stream), Duration::from_secs(300))?;
    let snapshot = capture_gdb(&mut remote, &Level::All(folder.to_owned()), false)?;
    ensure!(snapshot.processors.len() == of_monitor.processors.len(), "{} processors", snapshot.processors.len());
    for (found, wanted) in snapshot.processors.iter().zip(&of_monitor.processors) {
        ensure!(found.registers.len() > 25, "{} registers", found.registers.len());
        // Under TCG the stub leaves out the flags that QEMU computes when they are asked for, and the direction.
        let computed = |id: RegId| if id == RegId::RFLAGS { 0xcd5 } else { 0 };
        let other = found.registers.iter().find(|(id, value)| (wanted.get(*id) ^ *value) & !computed(*id) != 0);
        ensure!(other.is_none(), "CPU {}: {other:x?} is {:x?}", found.number, other.map(|(id, _)| wanted.get(*id)));
        ensure!((found.halted, found.in_user) == (wanted.halted, wanted.in_user), "CPU {}: its state", found.number);
    }
    let pieces = |snapshot: &Snapshot| -> Vec<_> {
        snapshot.pieces.iter().map(|piece| (piece.cpu, piece.start, piece.bytes.clone())).collect()
    };
    ensure!(pieces(&snapshot) == pieces(of_monitor) && snapshot.missing == of_monitor.missing, "memory differs");
    let told = |snapshot: &Snapshot| snapshot.kernel.as_ref().map(|one| (one.build_id.clone(), one.start, one.end));
    ensure!(told(&snapshot) == told(of_monitor), "the kernel is {:x?}", told(&snapshot));
    // The monitor's core has the memory of devices too, and what lies in the window of a display that is not there.
    let ram = snapshot.core.iter().flat_map(|core| &core.loads).map(|load| load.paddr..load.paddr + load.length);
    let ram: Vec<Range<u64>> = ram.collect();
    let compared = same_memory(&snapshot, of_monitor, &ram)?;
    let least = u64::from(memory(Which::Ours) - 1) << 20;
    ensure!(compared >= least, "only {compared} bytes were read");
    let seconds = begun.elapsed().as_secs_f64();
    Ok(format!("; the stub for GDB gives the same {} MiB and registers ({seconds:.1} s)", compared >> 20))
}

/// Compares what was read out of Linux's memory with what the guest said of itself.
fn of_linux(snapshot: &Snapshot, console: &[String]) -> Result<String> {
    /// The functions that a thread of Linux begins in.
    const BEGINS: [&str; 3] = ["ret_from_fork", "entry_SYSCALL_64", "secondary_startup_64"];
    let linux = snapshot.linux.as_ref().context("no Linux was found in the memory")?;
    ensure!(linux.missing.is_empty(), "{:?}", linux.missing);
    let log = String::from_utf8_lossy(&linux.log);
    let lines: Vec<&str> = log.lines().filter_map(|line| line.split_once("] ")).map(|(_, text)| text).collect();
    ensure!(lines.first().is_some_and(|line| line.starts_with("Linux version ")), "the log begins {:?}", lines.first());
    let shown =
        console.iter().filter_map(|line| line.strip_prefix('[')?.split_once("] ")).map(|(_, text)| text.trim_end());
    let lacking: Vec<&str> = shown.clone().filter(|text| !lines.iter().any(|line| line.trim_end() == *text)).collect();
    ensure!(lacking.is_empty(), "the console showed what the log lacks: {lacking:?}");
    let name = |pid: &str| {
        let pid: u32 = pid.parse().ok()?;
        let found = linux.threads.iter().find(|(thread, _)| thread.tid == pid)?;
        Some(String::from_utf8_lossy(&found.0.name).into_owned())
    };
    let listed: Vec<(&str, &str)> =
        console.iter().filter_map(|line| line.trim_end().strip_prefix("TASK ")?.split_once(' ')).collect();
    ensure!(listed.len() > 20, "the guest listed {} processes", listed.len());
    // /proc shows long names of kernel threads, which lie elsewhere, and a worker has its queue's name while it works.
    let is_same = |listed: &str, read: &str| {
        listed == read || read.len() == 15 && listed.starts_with(read) || listed.starts_with("kworker/")
    };
    let other = listed.iter().find(|(pid, comm)| !name(pid).is_some_and(|name| is_same(comm, &name)));
    ensure!(other.is_none(), "the guest lists {other:?}, its memory has {:?}", other.map(|(pid, _)| name(pid)));
    let mut frames = 0;
    for (thread, stack) in linux.threads.iter().filter(|(thread, _)| !thread.runs) {
        let last = stack.last().map(|frame| String::from_utf8_lossy(&frame.name).into_owned()).unwrap_or_default();
        // A child that was forked just now has not run yet.
        let is_new = stack.len() == 1 && last.starts_with("ret_from_fork");
        let ends = is_new || stack.len() > 2 && BEGINS.iter().any(|begin| last.starts_with(begin));
        ensure!(ends, "the stack of {} [{}] ends in {last:?}", String::from_utf8_lossy(&thread.name), thread.tid);
        frames += stack.len();
    }
    let threads = linux.threads.len();
    Ok(format!("; {} lines of log, {threads} threads, {frames} frames", lines.len()))
}

/// Compares QEMU's kdump-compressed file of the guest, which stands still, with its ELF core.
fn packed(session: &mut Session, folder: &Path, of_elf: &Snapshot) -> Result<String> {
    let path = folder.canonicalize()?.join("linux.kdump");
    let _ = fs::remove_file(&path);
    let protocol = format!("file:{}", path.display());
    let arguments = json!({ "paging": false, "protocol": protocol, "format": "kdump-zlib" });
    session.execute("dump-guest-memory", Some(arguments))?;
    let size = fs::metadata(&path)?.len();
    let snapshot = of_core(fs::File::open(&path)?)?;
    ensure!(snapshot.missing.is_empty(), "{:?}", snapshot.missing);
    let compared = same_memory(&snapshot, of_elf, std::slice::from_ref(&(0..u64::MAX)))?;
    // The monitor, which the first was read through, knows more registers than a note has.
    let registers = |snapshot: &Snapshot| {
        let all = snapshot.processors.iter().map(|one| (one.ip(), one.sp(), one.get(RegId::CR3)));
        all.collect::<Vec<_>>()
    };
    ensure!(registers(of_elf) == registers(&snapshot), "registers differ");
    let said = |snapshot: &Snapshot| {
        let linux = snapshot.linux.as_ref()?;
        let threads = linux.threads.iter().map(|(one, _)| (one.tid, one.name.clone(), one.frames.clone()));
        Some((linux.log.clone(), threads.collect::<Vec<_>>()))
    };
    ensure!(said(of_elf).is_some() && said(of_elf) == said(&snapshot), "log or threads differ");
    fs::remove_file(&path)?;
    Ok(format!("; kdump-zlib of {} MiB holds the same {} MiB", size >> 20, compared >> 20))
}

/// Compares the memory of the second core that lies within these ranges with that of the first; how many bytes.
fn same_memory(first: &Snapshot, second: &Snapshot, within: &[Range<u64>]) -> Result<u64> {
    const READ: u64 = 1 << 20;
    let (core, all) = first.core.as_ref().zip(second.core.as_ref()).context("a core is missing")?;
    let (mut wanted, mut found) = (vec![0; READ as usize], vec![0; READ as usize]);
    let blocks = all.loads.iter().flat_map(|load| {
        within.iter().map(|range| range.start.max(load.paddr)..range.end.min(load.paddr + load.length))
    });
    let mut compared = 0;
    for block in blocks.filter(|block| !block.is_empty()) {
        for at in block.clone().step_by(READ as usize) {
            let length = READ.min(block.end - at) as usize;
            let (wanted, found) = (&mut wanted[..length], &mut found[..length]);
            let read = (all.read(at, wanted)?, core.read(at, found)?);
            // A part of a page at the end of a block is a whole one in the other form.
            ensure!(
                read == (length, length) && wanted == found,
                "memory from {at:#x} on differs: {read:?} of {length}"
            );
            compared += length as u64;
        }
    }
    Ok(compared)
}

/// Translates addresses here and in QEMU; how many are mapped.
fn compare(session: &mut Session, ram: &Ram<'_>, space: &Space, image: Range<u64>) -> Result<usize> {
    let tables = space.tables.context("CPU 0 has no page tables")?;
    let length = image.end - image.start;
    let step = (length * 3 / ADDRESSES) | 1;
    let mut mapped = 0;
    for number in 0..ADDRESSES {
        let addr = (image.start - length).wrapping_add(number * step);
        let ours = walk(tables, addr, &|paddr| ram.word(paddr)).paddr();
        let said = session.monitor(&format!("gva2gpa {addr:#x}"), Some(0))?;
        let theirs = said.trim().strip_prefix("gpa: 0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        ensure!(ours == theirs, "{addr:#x} leads to {ours:x?} here and {theirs:x?} in QEMU ({})", said.trim());
        mapped += usize::from(ours.is_some());
    }
    ensure!(mapped > 0, "none of the addresses is mapped");
    Ok(mapped)
}
