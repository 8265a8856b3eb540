//! Dump channels: a slot of the memory region, a disk, the armoured console, or a buffer.
//!
//! The region ([`machine::region`]) is cut in three: two slots of a quarter each for deaths of the kernel, of which the
//! first is only written while it is empty (so a crash loop keeps its first dump), and a half for processes, cut in
//! equal pieces that are filled once, each user its share of them ([`kernel_logic::dumpspace`]). A program that
//! collects the dumps empties the region.
//!
//! The disk ([`machine::disk`]) is overwritten from its first sector on, so it is used only with `dumpdisk` on the
//! command line, and without a region. It is cut likewise. Processes that die take turns at driving it.

use alloc::vec;
use alloc::vec::Vec;

use kernel_logic::dumpspace::{MOST_PIECES, Pieces, Refusal};
use kernel_logic::vma::PAGE;
use kwab_format::armour::{LINE_BYTES, LINE_LEN, encode_line};
use kwab_format::parity::Parity;
use kwab_format::record::Memory;
use kwab_format::section::{FILE_HEADER_LEN, SECTION_HEADER_LEN, SectionHeader};
use kwab_format::sink::{Sink, SinkError};
use kwab_format::{BootId, DumpId, FileHeader, SectionKind, Writer, stream};
use machine::crash::Stage;
use machine::disk::{self, Disk, MOST, SECTOR, Turn};
use machine::region::{self, Region};
use machine::sync::SpinLock;
use machine::time::Nanos;

use crate::sched::Sleep;
use crate::sync::wait::sleep_until;

/// The destination of one dump; plain data, so that a writer can take over from one that faulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// These bytes of the region.
    Region {
        /// Offset of the first byte.
        start: usize,
        /// One past the last.
        end: usize,
    },
    /// These sectors of the disk.
    Disk {
        /// Number of the first sector.
        first: u64,
        /// One past the last.
        end: u64,
    },
    /// The console, in armour.
    Serial(DumpId),
}

impl Target {
    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Region { .. } => "memory region",
            Self::Disk { .. } => "disk",
            Self::Serial(_) => "serial console",
        }
    }

    /// The sink that goes on behind the first `position` bytes of a dump; `stage` on the crash path, else thread
    /// context.
    pub fn sink(self, position: u64, stage: Option<Stage>) -> Channel {
        let position = position as usize;
        match self {
            Self::Region { start, end } => match region::find() {
                Some(region) => Channel::Region { region, start, at: (start + position).min(end), end },
                None => Channel::Memory(Vec::new()),
            },
            Self::Disk { first, end } => match stage.map_or_else(drive, disk::find) {
                Some(disk) => Channel::Disk(DiskSink::new(disk, first, end, position)),
                None => Channel::Memory(Vec::new()),
            },
            Self::Serial(dump) => {
                Channel::Serial { dump, position: position as u32, parity: ConsoleParity::new(stage.is_some()) }
            }
        }
    }
}

/// What a dump is written to.
#[expect(clippy::large_enum_variant, reason = "the crash path must not allocate")]
pub enum Channel {
    /// The memory region.
    Region {
        /// The mapped region.
        region: Region,
        /// Where the dump begins.
        start: usize,
        /// Where the next byte goes.
        at: usize,
        /// Where the slot ends.
        end: usize,
    },
    /// Sectors of the disk.
    Disk(DiskSink),
    /// Armoured lines on the console.
    Serial {
        /// Names the dump in each line.
        dump: DumpId,
        /// Bytes of it so far.
        position: u32,
        /// What mends lines that are lost or damaged on the way.
        parity: ConsoleParity,
    },
    /// A buffer that grows: never on the crash path.
    Memory(Vec<u8>),
}

impl Channel {
    /// Bytes written so far.
    pub fn written(&self) -> usize {
        match self {
            Self::Region { start, at, .. } => at - start,
            Self::Disk(sink) => sink.written,
            Self::Serial { position, .. } => *position as usize,
            Self::Memory(buffer) => buffer.len(),
        }
    }
}

impl Sink for Channel {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        match self {
            Self::Region { region, at, end, .. } => {
                let room = end.saturating_sub(*at).min(bytes.len());
                let written = region.write(*at, &bytes[..room]);
                *at += written;
                if written == bytes.len() { Ok(()) } else { Err(SinkError { written: written as u64 }) }
            }
            Self::Disk(sink) => sink.write(bytes),
            Self::Serial { dump, position, parity } => {
                let mut line = [0; LINE_LEN + 1];
                for piece in bytes.chunks(LINE_BYTES) {
                    machine::console::write_unlocked(encode_line(*dump, *position, piece, &mut line));
                    parity.with(|parity| parity.push(*dump, *position, piece, &mut print));
                    *position = position.wrapping_add(piece.len() as u32);
                }
                Ok(())
            }
            Self::Memory(buffer) => {
                buffer.try_reserve(bytes.len()).map_err(|_| SinkError { written: 0 })?;
                buffer.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn room(&self) -> Option<u64> {
        match self {
            Self::Region { at, end, .. } => Some(end.saturating_sub(*at) as u64),
            Self::Disk(sink) => Some(sink.room()),
            _ => None,
        }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        if let Self::Serial { dump, parity, .. } = self {
            parity.with(|parity| parity.finish(*dump, &mut print));
        }
        Ok(())
    }
}

/// The parity of a dump on the console, with `dumpparity` on the command line.
pub enum ConsoleParity {
    /// There is none.
    Off,
    /// [`PARITY`].
    Crash,
    /// That of a program's dump: one.
    Own(Vec<Parity>),
}

/// The parity of the dump of a dying kernel; a death inside of that one goes on with it.
static PARITY: SpinLock<Parity> = SpinLock::new(Parity::new());

impl ConsoleParity {
    fn new(crash: bool) -> Self {
        let mut own = Vec::new();
        if !crate::options::get().dump_parity {
            Self::Off
        } else if crash {
            Self::Crash
        } else if own.try_reserve_exact(1).is_ok() {
            own.push(Parity::new());
            Self::Own(own)
        } else {
            Self::Off
        }
    }

    /// Does `work` with the parity; nothing without one, or while a death was inside of it.
    fn with(&mut self, work: impl FnOnce(&mut Parity) -> bool) {
        let _ = match self {
            Self::Off => true,
            Self::Crash => PARITY.try_lock().is_some_and(|mut parity| work(&mut parity)),
            Self::Own(own) => own.first_mut().is_some_and(work),
        };
    }
}

fn print(line: &[u8]) -> bool {
    machine::console::write_unlocked(line);
    true
}

/// Whole sectors of a dump on their way to the disk.
pub struct DiskSink {
    disk: Disk,
    first: u64,
    end: u64,
    written: usize,
    /// The sector that the last byte lies in.
    tail: [u8; SECTOR],
}

impl DiskSink {
    fn new(mut disk: Disk, first: u64, end: u64, position: usize) -> Self {
        let mut tail = [0; SECTOR];
        if !position.is_multiple_of(SECTOR) {
            // What cannot be read back is lost with the section it belongs to.
            let _ = disk.read(first + (position / SECTOR) as u64, &mut tail);
        }
        Self { disk, first, end, written: position, tail }
    }

    fn room(&self) -> u64 {
        ((self.end - self.first) * SECTOR as u64).saturating_sub(self.written as u64)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (sector, filled) = (self.first + (self.written / SECTOR) as u64, self.written % SECTOR);
            let (now, behind) = rest.split_at(rest.len().min(MOST - filled));
            // One request with what the sector has already: each costs more than its bytes.
            if !self.disk.write(sector, &self.tail[..filled], now) {
                return Err(SinkError { written: (bytes.len() - rest.len()) as u64 });
            }
            self.written += now.len();
            let last = self.written % SECTOR;
            let kept = last.min(now.len());
            self.tail[last - kept..last].copy_from_slice(&now[now.len() - kept..]);
            rest = behind;
        }
        Ok(())
    }
}

/// A region smaller than this is not used.
const LEAST: usize = 256 << 10;

/// Where the death of the kernel is written to, best first.
pub fn for_kernel(dump: DumpId, stage: Stage) -> Target {
    let Some(region) = usable() else {
        return on_disk(stage).unwrap_or(Target::Serial(dump));
    };
    let slot = (region.size() / 4) & !4095;
    let start = if is_used(&region, 0) { slot } else { 0 };
    erase(&region, start);
    Target::Region { start, end: start + slot }
}

/// Most sectors of a slot, unless there is more memory to dump: 16 MiB.
const SLOT_SECTORS: u64 = 32 << 10;

/// The slot of the disk to use, if there is a disk and it was offered.
fn on_disk(stage: Stage) -> Option<Target> {
    let mut disk = Some(stage).filter(|_| crate::options::get().dump_disk).and_then(disk::find)?;
    let slot = slot_of(&disk);
    let mut sector = [0; SECTOR];
    let used = disk.read(0, &mut sector) && stream::slot_is_used(&sector);
    let first = if used { slot } else { 0 };
    (slot * SECTOR as u64 >= LEAST as u64).then_some(Target::Disk { first, end: first + slot })
}

/// Sectors of each of the kernel's slots: the second half is for processes.
fn slot_of(disk: &Disk) -> u64 {
    // All memory, packed or not, with the heads of its sections.
    let memory = u64::from(machine::boot::info().frame_limit) * (PAGE + PAGE / 16) / SECTOR as u64;
    (disk.sectors() / 4).min(SLOT_SECTORS.max(memory))
}

/// The disk of a system that lives, once it is this thread's turn; `None` without one.
fn drive() -> Option<Disk> {
    for _ in 0..TURNS {
        match Turn::take() {
            Some(turn) => return disk::find_in(turn),
            // An early wake-up only asks sooner.
            None => drop(sleep_until(machine::time::now() + TURN, Sleep::Uninterruptible)),
        }
    }
    None
}

/// How long to wait for a turn, in nanoseconds, and how often.
const TURN: Nanos = 1_000_000;
const TURNS: u32 = 2_000;

/// Sectors of a process's piece of the disk.
const PIECE_SECTORS: u64 = 512;

/// Why a process is not dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDumped {
    /// There is no channel for processes.
    NoChannel,
    /// The channel has no piece for it.
    Refused(Refusal),
}

/// Where the dump of a process of real user `uid` is written to: the region, or without one the disk. It takes `most`
/// bytes.
pub fn for_process(uid: u32, most: u64) -> Result<Target, NotDumped> {
    let Some(region) = usable() else { return for_process_on_disk(uid, most) };
    let half = (region.size() / 2) & !4095;
    let piece = ((half / MOST_PIECES) & !4095).max(PIECE);
    let kept = || (0..half / piece).take_while(|n| is_used(&region, half + n * piece)).count();
    let start = half + take_piece(uid, half / piece, kept)? * piece;
    let len = usize::try_from(most).map_or(piece, |most| most.min(piece));
    Ok(Target::Region { start, end: start + len })
}

/// [`for_process`] on the disk, if it was offered.
fn for_process_on_disk(uid: u32, most: u64) -> Result<Target, NotDumped> {
    let mut disk = crate::options::get().dump_disk.then(drive).flatten().ok_or(NotDumped::NoChannel)?;
    let (start, end) = (2 * slot_of(&disk), disk.sectors());
    let pieces = (end.saturating_sub(start) / PIECE_SECTORS).min(MOST_PIECES as u64);
    let mut is_used = |number: u64| {
        let mut sector = [0; SECTOR];
        disk.read(start + number * PIECE_SECTORS, &mut sector) && stream::slot_is_used(&sector)
    };
    let kept = || (0..pieces).take_while(|number| is_used(*number)).count();
    let first = start + take_piece(uid, pieces as usize, kept)? as u64 * PIECE_SECTORS;
    Ok(Target::Disk { first, end: first + (most / SECTOR as u64).min(PIECE_SECTORS) })
}

/// Whether there is a channel that programs may be dumped to.
pub fn takes_processes() -> bool {
    usable().is_some() || crate::options::get().dump_disk
}

/// The number of the piece for a program of `uid`; `kept` counts those that hold something from before the last reset.
fn take_piece(uid: u32, total: usize, kept: impl FnOnce() -> usize) -> Result<usize, NotDumped> {
    // Counted without the lock, for that may sleep. Of two that count at once, both count the same.
    let new = if PIECES.lock().is_none() { Some(Pieces::new(total, kept())) } else { None };
    let mut pieces = PIECES.lock();
    match (pieces.as_mut(), new) {
        (Some(pieces), _) => pieces.take(uid),
        (None, new) => pieces.insert(new.unwrap_or(Pieces::new(total, 0))).take(uid),
    }
    .map_err(NotDumped::Refused)
}

/// How many programs got no piece; `None` while the pieces are locked.
pub fn refused() -> Option<u64> {
    PIECES.try_lock().map(|pieces| pieces.as_ref().map_or(0, Pieces::refused))
}

/// Least bytes of a process's piece.
const PIECE: usize = 64 << 10;
/// The pieces of the channel in use; `None` before the first program is dumped.
static PIECES: SpinLock<Option<Pieces>> = SpinLock::new(None);

/// Says at boot what the region is and what it holds.
pub fn announce() {
    if let Some(region) = usable() {
        let holds = [0, (region.size() / 4) & !4095].iter().filter(|at| is_used(&region, **at)).count();
        let size = region.size() >> 10;
        crate::log::info!("kwab: {size} KiB for dumps at {:#x}, {holds} of 2 slots in use", region.address().0);
    }
}

fn usable() -> Option<Region> {
    region::find().filter(|region| region.size() >= LEAST)
}

fn is_used(region: &Region, at: usize) -> bool {
    let mut header = [0; FILE_HEADER_LEN];
    region.read(at, &mut header) == header.len() && stream::slot_is_used(&header)
}

/// Takes the marks off the sections of the dump at `start`, so that no reader finds its rest behind a shorter new one.
fn erase(region: &Region, start: usize) {
    let mut at = start + FILE_HEADER_LEN;
    let mut header = [0; SECTION_HEADER_LEN];
    while region.read(at, &mut header) == header.len() {
        let Ok(section) = SectionHeader::decode(&header) else { return };
        region.write(at, &[0; 4]);
        at += section.total_len() as usize;
    }
}

/// How long it takes to get `bytes` out, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The amount written, in bytes.
    pub bytes: usize,
    /// By a plain copy from memory to memory.
    pub copy: Nanos,
    /// Through the channel's sink.
    pub channel: Nanos,
    /// As records of a dump, into the channel: with checksums.
    pub dump: Nanos,
}

/// Measures the region, or without one the disk, at the price of what its last piece holds.
pub fn pace() -> Option<Pace> {
    const BYTES: usize = 256 << 10;
    let target = last_piece(2 * BYTES)?;
    let from = vec![0x5a; BYTES];
    let mut to = vec![0; BYTES];
    let time = |work: &mut dyn FnMut()| {
        // Once for nothing: an emulator translates the code, caches fill.
        work();
        let begun = machine::time::now();
        work();
        machine::time::now() - begun
    };
    let copy = time(&mut || to.chunks_mut(STEP).zip(from.chunks(STEP)).for_each(|(to, from)| to.copy_from_slice(from)));
    core::hint::black_box(&to);
    let channel = time(&mut || {
        let mut sink = target.sink(0, None);
        from.chunks(STEP).for_each(|piece| assert!(sink.write(piece).is_ok(), "the channel has room for all of it"));
    });
    let mut buffer = vec![0; STEP + 4096];
    let dump = time(&mut || {
        let mut writer = Writer::new(target.sink(0, None), &mut buffer, FileHeader::new(DumpId(0), BootId::default()));
        for piece in from.chunks(STEP) {
            // There is room for all of it.
            let _ = writer.begin(SectionKind::MEMORY);
            let _ = writer.put(&Memory { bytes: Some(piece), ..Memory::default() });
        }
        let _ = writer.close();
    });
    // What cannot be written cannot be read as a dump either.
    let _ = target.sink(0, None).write(&[0; FILE_HEADER_LEN]);
    Some(Pace { bytes: BYTES, copy, channel, dump })
}

/// The last `bytes` of the channel, if it has twice as many for processes.
fn last_piece(bytes: usize) -> Option<Target> {
    if let Some(region) = usable() {
        return (region.size() / 2 >= bytes)
            .then(|| Target::Region { start: region.size() - bytes, end: region.size() });
    }
    let end = crate::options::get().dump_disk.then(drive).flatten()?.sectors();
    (end / 2 >= (bytes / SECTOR) as u64).then(|| Target::Disk { first: end - (bytes / SECTOR) as u64, end })
}

/// Bytes given to the sink at a time.
const STEP: usize = 32 << 10;
