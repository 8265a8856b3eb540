//! Chooses the frames of physical memory that a dump of the kernel takes at its level, and writes them by value.
//!
//! | tier | from level | frames |
//! |---|---|---|
//! | [`standard`] | standard | the image's data, page tables of the kernel and of all processes, kernel stacks |
//! | [`kernel`] | full | what boot reserved, blocks of the heap, its spans; not the initial ramdisk |
//! | [`program`] | full | what the process that was running has mapped |
//! | [`rest`] | all | every other frame in use; [`free`] says which frames are not |
//!
//! What a frame is for is found by walking page tables and the table of frames, without a lock, and is noted in the
//! frame's tag ([`crash::set_tag`]), so that no frame is written twice. Within a tier frames are written by rising
//! address, into sections whose addresses lie close together, packed where that pays
//! ([`kernel_logic::packing`]). A page of zeros is told, not stored; a page that is not captured is in no record.

use core::sync::atomic::{AtomicU64, Ordering};

use kernel_logic::vma::{PAGE, USER_END};
use kwab_format::SectionKind;
use kwab_format::record::{FrameInfo, Memory};
use machine::addr::{FrameNumber, FrameRange, PhysAddr};
use machine::boot;
use machine::crash::{self, RawLeaf, Stage};
use machine::frame::{self, FrameState};

use super::pages::bit;
use super::{Dump, Stop, Subject};
use crate::task::tree;

/// Tags: what a frame is for, as far as it has been found.
mod tag {
    pub(super) const NONE: u8 = 0;
    pub(super) const STANDARD: u8 = 1;
    pub(super) const SPAN: u8 = 2;
    pub(super) const PROGRAM: u8 = 3;
    pub(super) const OTHERS: u8 = 4;
    pub(super) const WRITTEN: u8 = 7;
}

/// The tiers by their places in [`TALLIES`].
const TIERS: [&str; 4] = ["kernel data and stacks", "kernel memory", "memory of the program", "all other memory"];

/// Most frames between the first and the last of a section: a reader looks for an address in few of them.
const SPREAD: u32 = 512;

/// Bytes of a tier.
#[derive(Debug)]
struct Tally {
    wanted: AtomicU64,
    stored: AtomicU64,
    zeros: AtomicU64,
}

static TALLIES: [Tally; TIERS.len()] =
    [const { Tally { wanted: AtomicU64::new(0), stored: AtomicU64::new(0), zeros: AtomicU64::new(0) } }; TIERS.len()];

/// Name, bytes wanted, bytes stored and bytes of zeros of each tier that was begun.
pub(super) fn tallies() -> impl Iterator<Item = (&'static str, u64, u64, u64)> {
    let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
    let all = TIERS.iter().zip(&TALLIES);
    all.map(move |(name, tally)| (*name, read(&tally.wanted), read(&tally.stored), read(&tally.zeros)))
        .filter(|(_, wanted, ..)| *wanted > 0)
}

/// The image's data, page tables, kernel stacks.
pub(super) fn standard(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let Some(stage) = subject.stage else { return Ok(()) };
    let [start, _, data, _] = boot::image_addresses();
    let image = boot::kernel_image();
    let first = image.start.0 + ((data - start) / PAGE) as u32;
    (first..image.end.0).for_each(|number| mark(stage, FrameNumber(number), tag::STANDARD));
    let root = PhysAddr(subject.death.control.cr3 & bit::ADDRESS);
    let areas = crash::kernel_areas();
    mark_tables(dump, stage, root, areas.all);
    mark_leaves(dump, stage, root, areas.stacks, tag::STANDARD);
    mark_tables(dump, stage, root, (0, USER_END));
    // Where the tree is locked, the tables of the others are left to the level `all`.
    let _ = each_root(dump, &mut |root| mark_tables(dump, stage, root, (0, USER_END)));
    write(dump, stage, 0, &|number| frame::tag(number) == Some(tag::STANDARD))
}

/// What the kernel uses beside that.
pub(super) fn kernel(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let Some(stage) = subject.stage else { return Ok(()) };
    let root = PhysAddr(subject.death.control.cr3 & bit::ADDRESS);
    mark_leaves(dump, stage, root, crash::kernel_areas().spans, tag::SPAN);
    if let Some(own) = own_root(subject) {
        mark_leaves(dump, stage, own, (0, USER_END), tag::PROGRAM);
    }
    // What is not known as memory of programs then counts as the kernel's: too much rather than too little.
    let _ = each_root(dump, &mut |root| mark_leaves(dump, stage, root, (0, USER_END), tag::OTHERS));
    let ramdisk = initial_ramdisk();
    write(dump, stage, 1, &|number| match frame::tag(number) {
        Some(tag::SPAN) => true,
        Some(tag::NONE) if !(ramdisk.0..ramdisk.1).contains(&number.0) => match frame::state(number) {
            FrameState::Reserved => true,
            // Programs have single frames and blocks of 2 MiB, the latter marked; all other blocks are the heap's.
            FrameState::Used { order, .. } => order > 0,
            FrameState::Free => false,
        },
        _ => false,
    })
}

/// What the process that was running has mapped.
pub(super) fn program(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let Some(stage) = subject.stage else { return Ok(()) };
    write(dump, stage, 2, &|number| frame::tag(number) == Some(tag::PROGRAM))
}

/// Every frame in use that is not written yet.
pub(super) fn rest(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let Some(stage) = subject.stage else { return Ok(()) };
    write(dump, stage, 3, &is_left)
}

/// The runs of frames that are free, and therefore in no record of memory.
pub(super) fn free(dump: &mut Dump<'_>, _subject: &Subject<'_>) -> Result<(), Stop> {
    let is_free = |number: FrameNumber| frame::tag(number).is_none() || frame::state(number) == FrameState::Free;
    let mut run: Option<(u32, u32)> = None;
    for number in frames().filter(|number| is_free(*number)) {
        match &mut run {
            Some((_, end)) if *end == number.0 => *end += 1,
            open => {
                if let Some(done) = open.replace((number.0, number.0 + 1)) {
                    put_free(dump, done)?;
                }
            }
        }
    }
    run.map_or(Ok(()), |run| put_free(dump, run))
}

fn put_free(dump: &mut Dump<'_>, (start, end): (u32, u32)) -> Result<(), Stop> {
    dump.put(&FrameInfo {
        frame: Some(u64::from(start)),
        count: Some(u64::from(end - start)).filter(|count| *count > 1),
        refcount: Some(0),
        // Bit 0: free.
        flags: Some(1),
        ..FrameInfo::default()
    })
}

/// The frames of RAM but those reserved for dumps, by rising number.
fn frames() -> impl Iterator<Item = FrameNumber> {
    let region = machine::region::find().map_or((0, 0), |region| {
        let first = (region.address().0 / PAGE) as u32;
        (first, first + (region.size() as u64 / PAGE) as u32)
    });
    let all = boot::info().ram.iter().flat_map(|FrameRange { start, end }| start.0..end.0);
    all.filter(move |number| !(region.0..region.1).contains(number)).map(FrameNumber)
}

/// First frame of the initial ramdisk and the one past its last, which the kernel unpacks at boot and then leaves.
fn initial_ramdisk() -> (u32, u32) {
    let bytes = boot::info().initrd;
    let first = (bytes.as_ptr() as u64).wrapping_sub(boot::direct_map());
    if bytes.is_empty() {
        return (0, 0);
    }
    (first.div_ceil(PAGE) as u32, ((first + bytes.len() as u64) / PAGE) as u32)
}

fn own_root(subject: &Subject<'_>) -> Option<PhysAddr> {
    let thread = subject.thread.filter(|thread| !thread.kernel_thread)?;
    thread.mm.try_with(|mm| mm.space.root())
}

/// Calls `look` with the root table of each process.
fn each_root(dump: &Dump<'_>, look: &mut dyn FnMut(PhysAddr)) -> Result<(), Stop> {
    dump.get(|| {
        tree::try_visit(
            &mut |thread| {
                // Threads of a process share their tables: once is enough.
                let leads = thread.pid() == thread.tid() && !thread.kernel_thread;
                let root = if leads { thread.mm.try_with(|mm| mm.space.root()) } else { None };
                root.into_iter().for_each(&mut *look);
                !dump.is_late()
            },
            &mut |_| true,
        )
    })
}

/// Notes what a frame is for, if that is not known yet.
fn mark(stage: Stage, number: FrameNumber, tag: u8) {
    if frame::tag(number) == Some(tag::NONE) {
        crash::set_tag(&stage, number, tag);
    }
}

fn mark_tables(dump: &Dump<'_>, stage: Stage, root: PhysAddr, (start, end): (u64, u64)) {
    crash::tables(root, start, end, &mut |table| {
        mark(stage, FrameNumber((table.0 / PAGE) as u32), tag::STANDARD);
        !dump.is_late()
    });
}

fn mark_leaves(dump: &Dump<'_>, stage: Stage, root: PhysAddr, (start, end): (u64, u64), tag: u8) {
    crash::leaves(root, start, end, &mut |RawLeaf { entry, size, .. }| {
        if entry & bit::PRESENT != 0 {
            let first = ((entry & bit::ADDRESS) / PAGE) as u32;
            (first..first + (size / PAGE) as u32).for_each(|number| mark(stage, FrameNumber(number), tag));
        }
        !dump.is_late()
    });
}

/// A run of pages that hold only zeros.
#[derive(Clone, Copy, Default)]
struct Zeros {
    start: u64,
    length: u64,
}

impl Zeros {
    /// Puts the run, if there is one, and begins with the next.
    fn put(&mut self, dump: &mut Dump<'_>) -> Result<(), Stop> {
        let Zeros { start, length } = core::mem::take(self);
        if length == 0 {
            return Ok(());
        }
        dump.put(&Memory { paddr: Some(start), bytes: Some(&[]), zeros: Some(length), ..Memory::default() })
    }
}

/// Writes the frames that a tier wants.
fn write(dump: &mut Dump<'_>, stage: Stage, tier: usize, wanted: &dyn Fn(FrameNumber) -> bool) -> Result<(), Stop> {
    let tally = &TALLIES[tier];
    let mut count = 0;
    // Frames that this tier and those behind it may take.
    let mut left = 0;
    for number in frames() {
        count += u64::from(wanted(number));
        left += u64::from(is_left(number));
    }
    tally.wanted.store(count * PAGE, Ordering::Relaxed);
    let mut page = [0; PAGE as usize];
    let mut zeros = Zeros::default();
    let mut first = None;
    for number in frames().filter(|number| wanted(*number)) {
        if first.is_none_or(|first| number.0 - first >= SPREAD) {
            zeros.put(dump)?;
            dump.next_bulk(SectionKind::MEMORY, left * (PAGE + PAGE / 16))?;
            first = Some(number.0);
        }
        let at = number.addr().0;
        if crash::probe_physical(at, &mut page) < page.len() {
            continue;
        }
        if zeros.start + zeros.length != at {
            zeros.put(dump)?;
        }
        if page.as_chunks::<8>().0.iter().all(|word| *word == [0; 8]) {
            zeros = Zeros { start: if zeros.length == 0 { at } else { zeros.start }, length: zeros.length + PAGE };
            tally.zeros.fetch_add(PAGE, Ordering::Relaxed);
        } else {
            zeros.put(dump)?;
            dump.put(&Memory { paddr: Some(at), bytes: Some(&page), ..Memory::default() })?;
            tally.stored.fetch_add(PAGE, Ordering::Relaxed);
        }
        crash::set_tag(&stage, number, tag::WRITTEN);
        left = left.saturating_sub(1);
    }
    zeros.put(dump)
}

/// Whether a frame is in use and not written yet.
fn is_left(number: FrameNumber) -> bool {
    frame::tag(number).is_some_and(|tag| tag != tag::WRITTEN) && frame::state(number) != FrameState::Free
}
