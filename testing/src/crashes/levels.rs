//! Dumps of each level: how much memory they hold, and that `kwab` reads it.
//!
//! A machine with 64 MiB dies with a disk to dump to, at each level once. What a level has first is read from its dump
//! and must be missing in the one of the level below: a static of the kernel, an object of its heap, a page of the
//! program that was running. Then one byte of a dump is damaged, which must cost one section.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use kwab::analysis::images;
use kwab::export::elf_core;
use kwab::memory::{Ram, Reader, Wanted};
use kwab::model::{Case, Dump};
use kwab::symbols::{Finder, IndexCache, Symbols};
use kwab::typed::{Expression, FrameChoice, Limits as Shown, PrintReport, Subject, print};
use kwab_format::record::{AnyRecord, FrameInfo};
use object::{Object as _, ObjectSegment as _};

use super::{Seen, add_disk, dumps_in, guest};
use crate::qemu::{self, Clock, Limits, Machine, run::Next};
use crate::setup::Consent;
use crate::{kernel, paths};

/// MiB of the machine, and bytes of its disk.
const MEMORY: u32 = 64;
const DISK: u64 = 512 << 20;

/// A disk whose quarter, which is all that a dump may take, is too short for level `full` unless memory is packed.
const SHORT_DISK: u64 = 16 << 20;

/// A static that tells the level, and one that leads into the heap: to an object that is too large for the kernel's
/// first arena, which is a static itself.
const STATIC: &str = "kernel::options::level::CHOSEN.v.value";
const HEAP: &str = "*kernel::tty::CONSOLE_TTY.value.value.value.value.0.ptr.pointer";

/// What a level's dump cost.
#[derive(Clone, Debug)]
pub struct LevelCost {
    /// Name of the level.
    pub level: &'static str,
    /// Bytes of the dump.
    pub bytes: usize,
    /// Bytes of memory in it, and how many of those are zeros that are told but not stored.
    pub memory: (u64, u64),
    /// Nanoseconds that it took, by the guest's clock.
    pub ns: u64,
    /// Nanoseconds of that for the memory.
    pub memory_ns: u64,
}

/// The levels from the lowest on, as the kernel counts them.
const LEVELS: [&str; 4] = ["brief", "standard", "full", "all"];

/// Runs the test: what each level cost.
pub fn check(consent: Consent) -> Result<Vec<LevelCost>> {
    let mut costs = Vec::new();
    for (number, level) in LEVELS.into_iter().enumerate() {
        let bytes = dump_at(level, (MEMORY, Clock::Host), consent)?;
        costs.push(cost(level, &bytes)?);
        holds(&bytes, number).with_context(|| format!("at {level}"))?;
        if level == "full" {
            one_byte(&bytes)?;
        }
    }
    // Whatever packing costs there: nothing may be left out.
    let packed =
        cost("full", &dump_on(SHORT_DISK, "full", (MEMORY, Clock::Host), consent)?).context("on a short disk")?;
    ensure!(packed.bytes < (SHORT_DISK / 4) as usize, "{} bytes on a short disk", packed.bytes);
    Ok(costs)
}

/// A clock, and how it counts.
const CLOCKS: [(Clock, &str); 2] = [(Clock::Instructions, "instructions"), (Clock::Host, "ns")];

/// What each level costs by either clock, beside a plain copy to the disk: a line each.
pub fn measure(consent: Consent) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for (clock, unit) in CLOCKS {
        let copies = (0..tries(clock)).map(|_| pace(clock, consent)).collect::<Result<Vec<_>>>()?;
        let (bytes, time) = copies.into_iter().min_by_key(|(_, time)| *time).context("no copy was timed")?;
        lines.push(format!("plain copy to the disk: {bytes} bytes in {time} {unit}"));
        for level in LEVELS {
            let cost = fastest(level, clock, consent)?;
            let (memory, zeros) = cost.memory;
            let (length, all, own) = (cost.bytes, cost.ns, cost.memory_ns);
            let speed = 100.0 * memory as f64 * time as f64 / bytes as f64 / own as f64;
            lines.push(format!(
                "{level:<8} {length:>8} bytes, {memory:>8} of memory, {zeros:>8} of it zeros: {all:>10} {unit}, \
                 {own:>10} of them for memory, {speed:.0} % of a plain copy's speed"
            ));
        }
    }
    Ok(lines)
}

/// MiB of the machines of the table in `docs/dump-levels.md`.
pub const MACHINES: [u32; 3] = [64, 256, 1024];

/// What each level costs in a machine of this size, as rows of a table: bytes, instructions, milliseconds.
pub fn table(memory: u32, consent: Consent) -> Result<String> {
    let mut rows = String::new();
    for level in LEVELS {
        let counted = cost(level, &dump_at(level, (memory, Clock::Instructions), consent)?)?;
        let timed = cost(level, &dump_at(level, (memory, Clock::Host), consent)?)?;
        let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let (all, zeros) = counted.memory;
        let (instructions, ms) = (counted.ns as f64 / 1e6, timed.ns as f64 / 1e6);
        rows += &format!(
            "\n| {memory} MiB | `{level}` | {:.0} KB | {} | {} | {instructions:.1} M | {ms:.0} ms |",
            counted.bytes as f64 / 1e3,
            megabytes(all),
            megabytes(zeros),
        );
    }
    Ok(rows)
}

/// How often something is timed. By instructions too: those that wait for the device are counted.
const fn tries(clock: Clock) -> usize {
    match clock {
        Clock::Host => 7,
        Clock::Instructions | Clock::SlowInstructions => 3,
    }
}

/// The dump that took least of several.
fn fastest(level: &'static str, clock: Clock, consent: Consent) -> Result<LevelCost> {
    let all = (0..tries(clock))
        .map(|_| cost(level, &dump_at(level, (MEMORY, clock), consent)?))
        .collect::<Result<Vec<_>>>()?;
    all.into_iter().min_by_key(|cost| cost.memory_ns).context("no dump was timed")
}

/// Bytes and time of a plain copy to the disk.
fn pace(clock: Clock, consent: Consent) -> Result<(u64, u64)> {
    let mut machine = with_disk(guest("echo p >/proc/sysrq-trigger", 1, consent)?, DISK, MEMORY, clock)?.0;
    machine.append = machine.append.replace("quiet loglevel=1", "loglevel=7");
    let mut found = None;
    qemu::run(&machine, Limits::seconds(120), |line| match line.split_once("sysrq: ") {
        Some((_, words)) => {
            found = Some(words.to_owned());
            Next::Stop
        }
        None => Next::Go,
    })?;
    let words = found.context("the kernel did not measure its channel")?;
    let numbers: Vec<u64> = words.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [bytes, _, channel, _] = numbers[..] else { anyhow::bail!("not understood: {words}") };
    Ok((bytes, channel))
}

/// The dump of a kernel that dies at a level; one that is set while it runs, the others on the command line.
fn dump_at(level: &str, machine: (u32, Clock), consent: Consent) -> Result<Vec<u8>> {
    dump_on(DISK, level, machine, consent)
}

/// [`dump_at`] on a disk of this size.
fn dump_on(disk: u64, level: &str, (memory, clock): (u32, Clock), consent: Consent) -> Result<Vec<u8>> {
    let set = if level == "standard" { "echo standard >/proc/sys/kernel/dump_level; " } else { "" };
    let script = format!("{set}sleep 3600 & echo c panic >/proc/sysrq-trigger; sleep 3600");
    let (mut machine, file) = with_disk(guest(&script, 1, consent)?, disk, memory, clock)?;
    if set.is_empty() {
        machine.append.push_str(&format!(" dump={level}"));
    }
    qemu::run(&machine, Limits::seconds(120), |_| Next::Go)?;
    dumps_in(&file)?.pop().with_context(|| format!("no dump at {level}"))
}

/// A machine of a size with an empty disk to dump to, which is this file.
fn with_disk(mut machine: Machine, disk: u64, memory: u32, clock: Clock) -> Result<(Machine, PathBuf)> {
    let file = paths::build("crashes")?.join("levels.disk");
    add_disk(&mut machine, &file, disk)?;
    (machine.memory_mib, machine.clock) = (memory, clock);
    Ok((machine, file))
}

fn cost(level: &'static str, bytes: &[u8]) -> Result<LevelCost> {
    let seen = Seen::of(bytes)?;
    ensure!(seen.defects.is_empty(), "at {level}: {:?}", seen.defects);
    ensure!(seen.complete == Some(true), "at {level}: left out {:?}", seen.dropped);
    let sum = |wanted: &str| -> u64 {
        let of_group = seen.counters.iter().filter(|((group, _), _)| group == wanted);
        of_group.map(|(_, value)| value.unsigned_abs()).sum()
    };
    let (stored, zeros) = (sum("memory stored"), sum("memory of zeros"));
    ensure!(
        stored + zeros == sum("memory wanted"),
        "at {level}: {stored} and {zeros} bytes of {}",
        sum("memory wanted")
    );
    let memory_ns = seen.counters.get(&("dump time".to_owned(), "memory".to_owned())).map_or(0, |ns| ns.unsigned_abs());
    Ok(LevelCost { level, bytes: bytes.len(), memory: (stored + zeros, zeros), ns: sum("dump time"), memory_ns })
}

/// A dump with what it takes to read it by name.
struct Open<'a> {
    case: &'a Case<'a>,
    symbols: &'a Symbols,
    ram: &'a Ram<'a>,
}

impl Open<'_> {
    fn print(&self, text: &str) -> Result<PrintReport> {
        let expression = Expression::parse(text).map_err(|error| anyhow::anyhow!("{error}"))?;
        let space = Wanted::default().find(self.case)?;
        let reader = Reader::new(self.case, self.ram);
        let subject = Subject { case: self.case, symbols: self.symbols, reader, space: &space };
        let shown = Shown { depth: 4, elements: 4 };
        Ok(print(subject, Some((text, &expression)), FrameChoice::default(), shown, "the dump")?)
    }

    /// Whether the first bytes of the program that was running can be read.
    fn has_program(&self) -> Result<bool> {
        let space = Wanted::default().find(self.case)?;
        let files = self.case.vmas.iter().filter(|vma| vma.pid == space.pid && vma.file_offset == Some(0));
        let start = files.filter_map(|vma| vma.start).min().context("no mapping of a file")?;
        let mut head = [0; 4];
        let read = Reader::new(self.case, self.ram).read(&space, start, &mut head);
        ensure!(read == 0 || head == *b"\x7fELF", "{start:#x} has {head:x?}");
        Ok(read > 0)
    }

    /// The core file shows every page of the program that is in the dump, at the address that the program knew.
    fn in_core_file(&self, level: usize) -> Result<()> {
        let mut core = Vec::new();
        elf_core(self.case, self.ram, self.symbols, &mut core)?;
        let file = object::File::parse(&*core)?;
        let mut segments: Vec<(u64, &[u8])> = Vec::new();
        for segment in file.segments() {
            segments.push((segment.address(), segment.data()?));
        }
        segments.sort_by_key(|segment| segment.0);
        let overlap = segments.windows(2).find(|pair| pair[0].0 + pair[0].1.len() as u64 > pair[1].0);
        ensure!(overlap.is_none(), "two segments overlap at {:#x}", overlap.map_or(0, |pair| pair[1].0));
        let space = Wanted::default().find(self.case)?;
        let reader = Reader::new(self.case, self.ram);
        let mut pages = 0;
        for vma in self.case.vmas.iter().filter(|vma| vma.pid == space.pid) {
            for at in (vma.start.unwrap_or(0)..vma.end.unwrap_or(0)).step_by(4096) {
                let mut page = [0; 4096];
                if reader.read(&space, at, &mut page) < page.len() {
                    continue;
                }
                let behind = segments.partition_point(|segment| segment.0 <= at);
                let (start, bytes) = *segments.get(behind.wrapping_sub(1)).with_context(|| format!("no {at:#x}"))?;
                let shown = usize::try_from(at - start).ok().and_then(|skip| bytes.get(skip..skip + page.len()));
                ensure!(shown == Some(&page[..]), "{at:#x} differs");
                pages += 1;
            }
        }
        ensure!((pages > 16) == (level >= 2), "{pages} pages of the program");
        Ok(())
    }
}

/// Each thing is there from its level on, and is missing below.
fn holds(bytes: &[u8], level: usize) -> Result<()> {
    let dump = Dump::from_bytes(bytes.to_vec()).context("not a dump")?;
    let case = dump.case();
    let loaded = images::load(&case, &mut Finder::new(vec![kernel::build()?], false), &IndexCache::none());
    let ram = Ram::of(&dump);
    let open = Open { case: &case, symbols: &loaded.symbols, ram: &ram };
    let chosen = open.print(STATIC)?;
    ensure!(chosen.incomplete == (level < 1), "the static: {:?}", chosen.values);
    let value = chosen.values.first().and_then(|node| node.value.clone());
    ensure!(level < 1 || value == Some((level + 1).to_string()), "the static is {value:?}");
    if level >= 1 {
        let object = open.print(HEAP)?;
        ensure!(object.incomplete == (level < 2), "the object of the heap: {:?}", object.values);
    }
    ensure!(open.has_program()? == (level >= 2), "the program's first page");
    open.in_core_file(level).context("in the core file")?;
    let others = case.vmas.iter().filter(|vma| vma.pid == Some(1)).count();
    ensure!((others > 0) == (level >= 1), "{others} mappings of init");
    zeros_and_holes(&dump, &ram, level)
}

/// Pages of zeros read as zeros; frames that are free do not read at all.
fn zeros_and_holes(dump: &Dump, ram: &Ram<'_>, level: usize) -> Result<()> {
    let mut zeros = None;
    ram.each(&mut |piece| {
        zeros = (piece.zeros > 0).then_some(piece.start + piece.bytes.len() as u64);
        if zeros.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    ensure!(zeros.is_some() == (level >= 1), "pages of zeros at {zeros:x?}");
    ensure!(zeros.is_none_or(|at| ram.word(at) == Some(0)), "zeros read as others");
    let is_free = |frame: &FrameInfo<'_>| frame.flags.is_some_and(|flags| flags & 1 != 0);
    let free: Vec<FrameInfo<'_>> = dump
        .all_records()
        .filter_map(|record| if let AnyRecord::FrameInfo(frame) = record { Some(frame) } else { None })
        .filter(is_free)
        .collect();
    if level < 3 {
        return Ok(());
    }
    let frames: u64 = free.iter().map(|run| run.count.unwrap_or(1)).sum();
    ensure!(frames > 1024, "only {frames} frames are free");
    for run in &free {
        let (first, count) = (run.frame.unwrap_or(0), run.count.unwrap_or(1));
        for frame in [first, first + count - 1] {
            ensure!(ram.word(frame << 12).is_none(), "frame {frame:#x} is free and reads");
        }
    }
    Ok(())
}

/// Bytes of memory that can be read, and sections that cannot.
fn readable(bytes: Vec<u8>) -> Result<(u64, usize, usize)> {
    let dump = Dump::from_bytes(bytes).context("not a dump")?;
    let mut total = 0;
    let lost = Ram::of(&dump).each(&mut |piece| {
        total += piece.bytes.len() as u64 + piece.zeros;
        ControlFlow::Continue(())
    });
    let known = dump.defects().len();
    Ok((total, lost, known))
}

/// A damaged byte costs the section that it is in.
fn one_byte(bytes: &[u8]) -> Result<()> {
    let dump = Dump::from_bytes(bytes.to_vec()).context("not a dump")?;
    let packed: Vec<_> = dump.file.sections.iter().filter(|section| section.is_bulk()).collect();
    let section = packed.get(packed.len() / 2).context("no packed section")?;
    let mut damaged = bytes.to_vec();
    let at = usize::try_from(section.offset + section.header.total_len() / 2)?;
    damaged[at] ^= 1;
    let (before, lost_before, _) = readable(bytes.to_vec())?;
    let (after, lost, _) = readable(damaged.clone())?;
    let most = 1 << 21;
    ensure!(lost_before == 0 && lost <= 1, "{lost} sections are lost, {lost_before} before");
    ensure!(after < before && before - after <= most, "{} bytes are lost of {before}", before - after);
    let defects = Seen::of(&damaged)?.defects;
    ensure!(defects.len() == 1, "a bit costs {defects:?}");
    Ok(())
}
