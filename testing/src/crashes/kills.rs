//! Kills the machine while it writes its dump, and reads what there is.
//!
//! The moments are spread evenly over the time a dump takes here and now, from its first byte on, which is seen in the
//! file that the memory or the disk is kept in: so nearly every kill cuts a dump, early or late.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kwab::memory::Ram;
use kwab::model::Dump;
use kwab_format::stream::Dumps;
use kwab_format::{DefectKind, Item, Reader, SectionKind};

use super::{add_disk, dumps_in, fresh_memory, machine};
use crate::paths;
use crate::qemu::{self, Limits, Machine, run::Next};
use crate::setup::Consent;

/// What became of the dumps.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Killed before the first section.
    pub empty: u32,
    /// Cut, and known to be.
    pub cut: u32,
    /// Dumps that were complete before QEMU was killed.
    pub whole: u32,
    /// Sound sections in all.
    pub sections: usize,
    /// By the number of whole sections before the cut: how many dumps.
    pub cuts: Vec<u32>,
}

/// What the machines dump, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The usual, into memory that outlives them.
    Usual,
    /// All memory of the kernel, to a disk.
    Full,
}

impl What {
    /// How long a dump takes before one was seen whole.
    const fn first_guess(self) -> Duration {
        match self {
            Self::Usual => Duration::from_millis(20),
            Self::Full => Duration::from_millis(300),
        }
    }

    /// Where the machine's dumps will be.
    fn channel(self, machine: &mut Machine) -> Result<PathBuf> {
        let file = fresh_memory(if self == Self::Full { "kill-full" } else { "kill" })?;
        match self {
            Self::Usual => machine.keep_dumps_in(&file)?,
            Self::Full => {
                machine.memory_mib = MEMORY;
                machine.append.push_str(" dump=full");
                add_disk(machine, &file, DISK)?;
            }
        }
        Ok(file)
    }
}

/// MiB of a machine that dumps all memory, and bytes of its disk.
const MEMORY: u32 = 64;
const DISK: u64 = 64 << 20;
/// How long the first byte may take from the first word of the death on.
const PATIENCE: Duration = Duration::from_secs(20);

/// Kills `count` machines at moments spread over the dump; the moments come from `seed`.
pub fn run(what: What, count: u32, seed: u64, consent: Consent) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut random = seed | 1;
    // How long a dump takes: it moves with the host's load.
    let mut longest = what.first_guess();
    for number in 0..count {
        let mut machine = machine("c panic", 1 + number % 2, consent)?;
        let file = what.channel(&mut machine)?;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let delay = longest.mul_f64((random >> 11) as f64 / (1u64 << 53) as f64);
        let mut died = None;
        qemu::run(&machine, Limits::seconds(120), |line| {
            if line.starts_with("[PANIC]") {
                died = Some(first_byte(&file));
                spin(delay);
                return Next::Stop;
            }
            Next::Go
        })?;
        died.context("the kernel did not die")??;
        let bytes = std::fs::read(&file)?;
        let about = || format!("kill {number}, {delay:?} into the dump, which is kept in {}", paths::shown(&file));
        let before = tally.sections;
        let whole = look(&bytes, &mut tally).with_context(about)?;
        imports(&file, tally.sections - before, whole).with_context(about)?;
        longest = if whole { longest.mul_f64(0.9) } else { longest.mul_f64(1.02) };
    }
    Ok(tally)
}

/// Returns as soon as the dump begins.
fn first_byte(file: &Path) -> Result<()> {
    let memory = File::open(file)?;
    let began = Instant::now();
    let mut header = [0; 8];
    while began.elapsed() < PATIENCE {
        memory.read_exact_at(&mut header, 0)?;
        if header != [0; 8] {
            return Ok(());
        }
    }
    anyhow::bail!("no dump within {PATIENCE:?} of the death");
}

/// Sleeping would take longer than a dump.
fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// The import has each sound section, and what the library reads of memory is bounded by them.
fn imports(file: &Path, sections: usize, whole: bool) -> Result<()> {
    let Some(bytes) = dumps_in(file)?.into_iter().next() else {
        ensure!(sections == 0, "{sections} sections are not imported");
        return Ok(());
    };
    let dump = Dump::from_bytes(bytes).context("not a dump")?;
    let read = dump.file.sections.len() + dump.file.tables.len();
    ensure!(read == sections, "{read} sections are imported of {sections}");
    ensure!(dump.defects().is_empty() == whole, "{} defects; whole: {whole}", dump.defects().len());
    let lost = Ram::of(&dump).each(&mut |_| ControlFlow::Continue(()));
    ensure!(lost == 0, "{lost} sound sections of memory are not read");
    Ok(())
}

/// Every section before the cut is sound and at its offset, and the dump says that it is cut exactly when it is.
fn look(bytes: &[u8], tally: &mut Tally) -> Result<bool> {
    let Some(found) = Dumps::new(bytes).next() else {
        tally.empty += 1;
        return Ok(false);
    };
    ensure!(found.offset == 0, "the dump begins at {:#x}", found.offset);
    let (mut next, mut position, mut ended) = (0, 48, false);
    for item in Reader::new(found.bytes)?.sections() {
        match item {
            Item::Section(section) => {
                ensure!(section.header.seq == next, "section {} follows {next} sections", section.header.seq);
                ensure!(section.header.position == position, "section {next} is not where it belongs");
                (next, position) = (next + 1, position + section.header.total_len());
                ended |= section.header.kind == SectionKind::END;
            }
            // Behind the last whole section: what the kernel was writing, then the file's zeros.
            Item::Defect(defect) => {
                let behind = defect.offset >= position;
                ensure!(behind && !ended, "{defect} before the cut at {position}");
                let fits = matches!(
                    defect.kind,
                    DefectKind::NoEnd
                        | DefectKind::Cut { .. }
                        | DefectKind::BadSectionHeader
                        | DefectKind::BadPayload { .. }
                );
                ensure!(fits, "{defect}");
            }
        }
    }
    tally.sections += next as usize;
    if ended {
        tally.whole += 1;
    } else {
        tally.cut += 1;
        tally.cuts.resize(tally.cuts.len().max(next as usize + 1), 0);
        tally.cuts[next as usize] += 1;
        // The next section, had it been whole, would have been found: its mark and both its sums would be right.
        let rest = found.bytes.get(position as usize..).unwrap_or_default();
        let another =
            Reader::new(rest).is_ok_and(|reader| reader.sections().any(|item| matches!(item, Item::Section(_))));
        ensure!(!another, "a whole section behind the cut at {position} was not read");
    }
    Ok(ended)
}
