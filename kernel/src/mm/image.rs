//! Assembled images: 2 MiB of a program's file in one block of memory, filled from the cache and from the archive.
//!
//! An [`Image`] is made before a program's memory is built, of those pages that lie whole in a segment which may not be
//! written; a bit says of each of the 512 whether the block has it. They are the file's own pages from then on: what
//! was in the cache moves into the block if nothing else refers to it, and stays where it is otherwise. So there is one
//! copy of each byte, a write to the file is seen by who maps the image, and an image is never stale: it holds for one
//! generation of the file's pages, is completed when that has moved, and dropped with the first page that goes. Only
//! what is still in the archive is assembled, of which no file ever gets more: what a block keeps beyond the pages of
//! its file is bounded by the ramdisk.
//!
//! Where a range that may not be written covers all 512 pages, at an address that allows it, exec shows the block by
//! one 2 MiB leaf. What an image has less of is mapped as 4 KiB leaves, under [`Mode::All`] only: it is not better than
//! a template, which has the pages that are used and no others.
//!
//! The page in which a segment ends is never in an image: behind the end a program has zeros of its own.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use kernel_logic::elf::{self, Segment};
use kernel_logic::huge::HUGE;
use kernel_logic::vma::{PAGE, Prot, VmaFlags};
use linux_abi::Errno;
use machine::addr::{HUGE_PAGES, PageRange, UserPage};
use machine::frame::Frame;

use super::{AddressSpace, Backing, Mapped as _, TAG_FILE, Vma, frames, rights};
use crate::inject::{self, Fault};

/// What is assembled (`exec_image=` on the command line, `/proc/sys/vm/exec_image`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Blocks are not made.
    Off,
    /// What one 2 MiB leaf can show.
    Huge,
    /// Every part of a program that may not be written.
    All,
}

/// The modes by their names.
const MODES: [(&str, Mode); 3] = [("off", Mode::Off), ("huge", Mode::Huge), ("all", Mode::All)];

static MODE: AtomicU8 = AtomicU8::new(Mode::Huge as u8);

/// What is assembled now.
#[inline]
pub fn mode() -> Mode {
    let chosen = MODES[usize::from(MODE.load(Relaxed)) % MODES.len()].1;
    if inject::is(Fault::ImageBoundary) { Mode::All } else { chosen }
}

/// The name of what is assembled.
pub fn mode_name() -> &'static str {
    MODES[usize::from(MODE.load(Relaxed)) % MODES.len()].0
}

/// Sets what is assembled from now on; EINVAL for a word that there is not.
pub fn set_mode(text: &[u8]) -> Result<(), Errno> {
    let found = MODES.iter().position(|(name, _)| name.as_bytes() == text).ok_or(Errno::EINVAL)?;
    MODE.store(found as u8, Relaxed);
    Ok(())
}

/// Images that were made and that were completed, pages moved from the cache and filled from the archive, images
/// dropped, and leaves that exec made of images, since boot.
static COUNTS: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];
const NAMES: [&str; 7] = ["made", "completed", "moved", "filled", "dropped", "huge", "small"];

/// One of [`COUNTS`], by its place.
#[derive(Clone, Copy)]
enum Count {
    Made,
    Completed,
    Moved,
    Filled,
    Dropped,
    Huge,
    Small,
}

fn count(what: Count, more: u64) {
    COUNTS[what as usize].fetch_add(more, Relaxed);
}

/// [`COUNTS`] and their names.
pub fn counts() -> [(&'static str, u64); 7] {
    let mut counts = COUNTS.iter().map(|count| count.load(Relaxed));
    NAMES.map(|name| (name, counts.next().unwrap_or(0)))
}

/// Pages of 2 MiB, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits([u64; HUGE_PAGES / 64]);

impl Bits {
    /// All pages of a block have content.
    const ALL: Self = Self([u64::MAX; HUGE_PAGES / 64]);

    /// Whether page `index` is among them.
    pub fn has(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 != 0
    }

    /// Adds page `index`.
    pub fn add(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// 2 MiB of a file in one block.
#[derive(Debug)]
pub struct Image {
    /// Which 2 MiB of the file.
    number: u64,
    /// Of the file's pages when it was made.
    generation: u64,
    block: Frame,
    /// The pages that are the block's.
    filled: Bits,
}

impl Image {
    /// Which 2 MiB of its file it is.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The frame of a page of the file, if it is the block's.
    fn page(&self, number: u64) -> Option<Frame> {
        let index = number.checked_sub(self.number * HUGE_PAGES as u64)? as usize;
        if index < HUGE_PAGES && self.filled.has(index) { self.block.sub(index) } else { None }
    }
}

/// Where the pages of an image come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They were in the cache, in a frame of their own.
    Cache,
    /// They were in the archive only.
    Archive,
}

/// The images of a file, beside its pages.
pub type Images = Vec<Arc<Image>>;

/// Whether a file with these segments, whose addresses are moved by `base`, may have images.
#[inline]
pub fn is_for(image: &elf::Image, base: u64) -> bool {
    let fits = |segment: &Segment| {
        segment.page_start().wrapping_add(base).wrapping_sub(segment.page_offset()).is_multiple_of(HUGE)
    };
    mode() == Mode::All || image.segments.iter().any(|segment| segment.file_bytes >= HUGE && fits(segment))
}

/// Assembles what images are to show of a file's segments, whose addresses are moved by `base`.
pub fn assemble(file: &impl super::Mapped, image: &elf::Image, base: u64) {
    let mode = mode();
    let Some(slot) = file.template().filter(|_| mode != Mode::Off) else { return };
    let last = image.segments.iter().map(|segment| segment.offset + segment.file_bytes).max().unwrap_or(0);
    for number in 0..last.div_ceil(HUGE).min(MOST) {
        let wanted = wanted(file, image, base, number, mode);
        if wanted.is_empty() || frames::is_low() {
            continue;
        }
        let generation = slot.generation();
        let known = slot.images().iter().find(|known| known.number == number).cloned();
        if known.as_ref().is_some_and(|known| known.generation == generation || known.filled == wanted) {
            continue;
        }
        // A template keeps references to pages, which could not move.
        slot.forget_template();
        let was_known = known.is_some();
        let Some((block, before)) = block_of(known) else { continue };
        let filled = fill(file, number, &block, wanted, before);
        // The headers may claim what is not in the archive, and then the block goes.
        if !filled.is_empty() {
            count(if was_known { Count::Completed } else { Count::Made }, 1);
            slot.keep_image(Image { number, generation: slot.generation(), block, filled });
        }
    }
}

/// The block of an image and what it has; without one a fresh block that has nothing, while memory is plentiful.
fn block_of(known: Option<Arc<Image>>) -> Option<(Frame, Bits)> {
    match known {
        Some(known) => Some((known.block.clone(), known.filled)),
        None if frames::is_plentiful(HUGE_PAGES) => {
            Some((Frame::alloc_block(HUGE_PAGES.ilog2() as u8).ok()?, Bits::default()))
        }
        None => None,
    }
}

/// Gives the block those of the wanted pages that it does not have, as far as they can move. Returns what it has then.
fn fill(file: &impl super::Mapped, number: u64, block: &Frame, wanted: Bits, mut filled: Bits) -> Bits {
    for index in 0..HUGE_PAGES {
        if !wanted.has(index) || filled.has(index) {
            continue;
        }
        let Some(page) = block.sub(index) else { continue };
        if let Some(origin) = file.move_page(number * HUGE_PAGES as u64 + index as u64, page) {
            filled.add(index);
            count(if origin == Origin::Cache { Count::Moved } else { Count::Filled }, 1);
        }
    }
    filled
}

/// 2 MiB of one file that are looked at, at most.
const MOST: u64 = 32;

/// The pages of the `number`th 2 MiB that an image is to have.
fn wanted(file: &impl super::Mapped, image: &elf::Image, base: u64, number: u64, mode: Mode) -> Bits {
    let begin = number * HUGE;
    let mut bits = Bits::default();
    for segment in image.segments.iter().filter(|segment| !segment.prot.has(Prot::WRITE)) {
        let (first, end) = (segment.page_offset(), segment.offset + segment.file_bytes);
        let whole = first <= begin && end >= begin + HUGE;
        let address = segment.page_start().wrapping_add(base).wrapping_add(begin).wrapping_sub(first);
        if whole && address.is_multiple_of(HUGE) {
            return Bits::ALL;
        }
        if mode == Mode::All {
            let pages = (begin / PAGE..(begin + HUGE) / PAGE).enumerate();
            pages.filter(|(_, page)| page * PAGE >= first && (page + 1) * PAGE <= end).for_each(|(at, _)| bits.add(at));
        }
    }
    // A page that another segment shows too is that one's as well, and may begin or end in it.
    for other in image.segments.iter().filter(|segment| segment.prot.has(Prot::WRITE)) {
        remove(&mut bits, other, begin);
    }
    if inject::is_for(Fault::ImageBoundary, |name| file.is_called(name)) {
        let ends = image.segments.iter().filter_map(|segment| segment.tail_to_clear().map(|_| segment));
        ends.filter_map(|segment| boundary(segment).checked_sub(begin / PAGE))
            .filter(|index| *index < HUGE_PAGES as u64)
            .for_each(|index| bits.add(index as usize));
    }
    bits
}

/// The page of the file in which a segment's part of it ends.
fn boundary(segment: &Segment) -> u64 {
    (segment.offset + segment.file_bytes).saturating_sub(1) / PAGE
}

fn remove(bits: &mut Bits, segment: &Segment, begin: u64) {
    let (first, end) = (segment.page_offset() / PAGE, (segment.offset + segment.file_bytes).div_ceil(PAGE));
    // Headers may claim any number of pages.
    let (begin, stop) = (begin / PAGE, (begin + HUGE) / PAGE);
    for index in first.max(begin)..end.min(stop) {
        bits.0[(index - begin) as usize / 64] &= !(1 << ((index - begin) % 64));
    }
}

/// An image is dropped.
pub(super) fn note_dropped(images: usize) {
    count(Count::Dropped, images as u64);
}

impl AddressSpace {
    /// Maps what images have of a range of a file. Returns how many leaves that made, of at most `most`.
    #[cold]
    #[inline(never)]
    pub(super) fn map_images(&self, vma: &Vma, images: &[Arc<Image>], most: u64) -> u64 {
        let mut left = most;
        for image in images {
            left -= self.map_image(vma, image, left).min(left);
        }
        most - left
    }

    fn map_image(&self, vma: &Vma, image: &Image, most: u64) -> u64 {
        let Backing::File { file, offset } = &vma.backing else { return 0 };
        let (begin, end) = (image.number * HUGE, (image.number + 1) * HUGE);
        let shown = (begin.max(*offset), end.min(offset + vma.bytes()));
        if shown.0 >= shown.1 || vma.flags.has(VmaFlags::SHARED) || most == 0 {
            return 0;
        }
        let start = vma.start + (shown.0 - offset);
        let prot = rights(vma.prot, false, TAG_FILE);
        let whole = shown == (begin, end) && image.filled == Bits::ALL && !vma.prot.has(Prot::WRITE);
        if let Some(first) = UserPage::new(start).filter(|_| whole && start.is_multiple_of(HUGE))
            && self.space.map_block(first, &image.block, prot)
        {
            self.count(TAG_FILE, HUGE_PAGES as i64);
            count(Count::Huge, 1);
            return 1;
        }
        if mode() != Mode::All {
            return 0;
        }
        let stop = start.saturating_add(most.saturating_mul(PAGE)).min(start + (shown.1 - shown.0));
        if inject::is_for(Fault::ImageBoundary, |name| file.is_called(name)) {
            self.make_room_for_boundary(vma, image, stop);
        }
        let Some(range) = PageRange::new(start, stop) else { return 0 };
        let made = self.space.map_run(range, prot, &mut |index| image.page(shown.0 / PAGE + index as u64));
        self.count(TAG_FILE, made as i64);
        count(Count::Small, made as u64);
        made as u64
    }

    /// The planted bug: the image has the page in which the file's part of a segment ends, and the program does not
    /// keep its own.
    #[cold]
    fn make_room_for_boundary(&self, vma: &Vma, image: &Image, stop: u64) {
        let Backing::File { offset, .. } = &vma.backing else { return };
        if stop == vma.end && image.page((offset + vma.bytes()) / PAGE - 1).is_some() {
            self.forget_pages(vma.end - PAGE, vma.end);
        }
    }
}
