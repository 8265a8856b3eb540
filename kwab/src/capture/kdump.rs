//! Reads kdump-compressed files: what makedumpfile writes without `-E`, and QEMU's `dump-guest-memory` with `-z`, `-l`
//! or `-s` (makedumpfile, `diskdump_mod.h` and `IMPLEMENTATION`).
//!
//! Two bitmaps follow the headers: which page frames are memory, and which of them are in the file. A table has a
//! descriptor for each of the latter, in order, which says where the page lies and how it is packed ([`unpack`]).
//! What was left out is missing and not zero, except at dump level 1, whose one rule is to leave out pages of zeros.

mod unpack;

use std::cell::RefCell;

use super::CaptureError;
use super::core_file::{long, word};
use super::source::{ReadAt, Source};
use crate::plain;

/// How such a file begins.
pub(super) const MAGIC: &[u8; 8] = b"KDUMP   ";
/// Bytes of a page, and the only size of a block that x86-64 has.
pub(super) const PAGE: u64 = 4096;
/// Bytes of a page descriptor.
const DESCRIPTOR: u64 = 24;
/// Bytes of notes, and of the kernel's words about itself, that are read.
const MOST_NOTES: u64 = 16 << 20;
const MOST_WORDS: u64 = 1 << 20;
/// Blocks of the second header: writers have one or two.
const MOST_SUB_HEADER: u64 = 1 << 10;
/// Stretches of memory: so many, and one more for so many bytes of the file.
const MOST_STRETCHES: u64 = 1 << 16;
const BYTES_PER_STRETCH: u64 = DESCRIPTOR;
/// Page frames of physical memory (52 bits of address).
const MOST_FRAMES: u64 = 1 << 40;
/// Unpacked pages that are kept, each in the slot that its place in the file gives it.
const KEPT: usize = 1024;
/// Descriptors that are read at once.
const AT_ONCE: u64 = 256;
/// The dump level whose only rule is that pages of zeros are left out (`DL_EXCLUDE_ZERO`).
const ZEROS_ONLY: u32 = 1;

/// A stretch of physical memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub paddr: u64,
    pub length: u64,
    /// The number of the first page's descriptor; none for zeros.
    pub first: Option<u64>,
}

/// What the headers say.
#[derive(Debug)]
pub(super) struct Opened {
    pub pages: Pages,
    pub stretches: Vec<Stretch>,
    pub notes: Vec<u8>,
    pub info: Option<String>,
    pub missing: Vec<String>,
}

/// The headers, as far as they matter.
struct Headers {
    /// Where the bitmaps begin, and the bytes of both.
    bitmaps: u64,
    bitmap_bytes: u64,
    frames: u64,
    level: u32,
    /// The frames that a part of a split dump has.
    part: Option<(u64, u64)>,
    words: (u64, u64),
    notes: (u64, u64),
}

/// Reads headers and bitmaps.
pub(super) fn open(source: &Source) -> Result<Opened, CaptureError> {
    let mut missing = Vec::new();
    let headers = headers(source, &mut missing)?;
    let table = headers.bitmaps + headers.bitmap_bytes;
    let stretches = stretches(source, &headers, table, &mut missing)?;
    let text = some(source, headers.words, MOST_WORDS, "VMCOREINFO", &mut missing)?;
    let notes = some(source, headers.notes, MOST_NOTES, "its notes", &mut missing)?;
    let info = (!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned());
    let pages = Pages { table, kept: RefCell::default(), descriptors: RefCell::default() };
    Ok(Opened { pages, stretches, notes, info, missing })
}

fn headers(source: &Source, missing: &mut Vec<String>) -> Result<Headers, CaptureError> {
    /// `struct disk_dump_header`: behind the signature a version and `struct new_utsname`, six texts of 65 bytes.
    const MACHINE: std::ops::Range<usize> = 12 + 4 * 65..12 + 5 * 65;
    /// `DUMP_DH_COMPRESSED_INCOMPLETE`.
    const INCOMPLETE: u32 = 8;
    let mut head = [0; 464];
    source
        .read_all_at(&mut head, 0)
        .map_err(|_| refused("it is shorter than its first header, 464 bytes".to_owned()))?;
    let machine = head[MACHINE].split(|byte| *byte == 0).next().unwrap_or_default();
    if !machine.is_empty() && machine != b"x86_64" {
        return Err(refused(format!("it is of a machine called {}", plain::bytes(machine))));
    }
    let block = u64::from(word(&head, 428));
    if block != PAGE {
        return Err(refused(format!("its blocks have {block} bytes; those of x86-64 have {PAGE}")));
    }
    let sub_blocks = u64::from(word(&head, 432));
    if !(1..=MOST_SUB_HEADER).contains(&sub_blocks) {
        return Err(refused(format!("its second header has {sub_blocks} blocks")));
    }
    let (version, blocks) = (word(&head, 8), u64::from(word(&head, 436)));
    if word(&head, 424) & INCOMPLETE != 0 {
        missing.push("pages that its writer says it could not write".to_owned());
    }
    let mut sub = [0; 104];
    source.read_all_at(&mut sub, PAGE).map_err(|_| refused("it ends before its second header".to_owned()))?;
    let since = |first: u32, at: usize| if version >= first { (long(&sub, at), long(&sub, at + 8)) } else { (0, 0) };
    let part = (version >= 2 && word(&sub, 12) != 0)
        .then(|| if version >= 6 { since(6, 80) } else { since(2, 16) })
        .filter(|(start, end)| start < end);
    if let Some((start, end)) = part {
        missing.push(format!("the other parts of a split dump: this one has page frames {start:#x} to {end:#x}"));
    }
    let frames = if version >= 6 { long(&sub, 96) } else { u64::from(word(&head, 440)) };
    Ok(Headers {
        bitmaps: (1 + sub_blocks) * PAGE,
        bitmap_bytes: blocks * PAGE,
        frames: frames.min(MOST_FRAMES),
        level: if version >= 1 { word(&sub, 8) } else { 0 },
        part,
        words: since(3, 32),
        notes: since(4, 48),
    })
}

/// The bytes at an offset, of which there may be `most`.
fn some(
    source: &Source,
    (at, length): (u64, u64),
    most: u64,
    what: &str,
    missing: &mut Vec<String>,
) -> Result<Vec<u8>, CaptureError> {
    let there = length.min(most).min(source.length.saturating_sub(at));
    let mut bytes = vec![0; usize::try_from(there).unwrap_or(0)];
    let read = source.read_some_at(&mut bytes, at)?;
    bytes.truncate(read);
    if (read as u64) < length {
        missing.push(format!("{what}: {length} bytes at offset {at:#x} are claimed, {read} can be read"));
    }
    Ok(bytes)
}

/// The memory that the bitmaps tell of, in order of address.
fn stretches(
    source: &Source,
    headers: &Headers,
    table: u64,
    missing: &mut Vec<String>,
) -> Result<Vec<Stretch>, CaptureError> {
    const CHUNK: u64 = 64 << 10;
    let needed = headers.frames.div_ceil(8);
    let rounded = needed.next_multiple_of(PAGE);
    // Old writers had one bitmap for both.
    let second = if headers.bitmap_bytes >= 2 * rounded { headers.bitmap_bytes / 2 } else { 0 };
    if headers.bitmap_bytes < rounded || headers.bitmaps + second + needed > source.length {
        let (frames, bytes, length) = (headers.frames, headers.bitmap_bytes, source.length);
        let why = format!("its bitmaps have {bytes} bytes for {frames} page frames, in {length} bytes of file");
        return Err(refused(why));
    }
    let mut memory = Memory {
        stretches: Vec::new(),
        most: (MOST_STRETCHES + source.stored / BYTES_PER_STRETCH) as usize,
        descriptors: source.length.saturating_sub(table) / DESCRIPTOR,
        next: 0,
        without: None,
        left_out: 0,
    };
    let with_zeros = headers.level == ZEROS_ONLY && second > 0;
    let mut done = 0;
    while done < needed {
        let count = CHUNK.min(needed - done) as usize;
        let (mut known, mut stored) = (vec![0; count], vec![0; count]);
        source.read_all_at(&mut stored, headers.bitmaps + second + done)?;
        if with_zeros {
            source.read_all_at(&mut known, headers.bitmaps + done)?;
        }
        for (at, (known, stored)) in known.iter().zip(&stored).enumerate().filter(|(_, (a, b))| **a | **b != 0) {
            for bit in 0..8 {
                let frame = (done + at as u64) * 8 + bit;
                let is_here = headers.part.is_none_or(|(start, end)| (start..end).contains(&frame));
                if frame < headers.frames && is_here {
                    memory.add(frame, stored >> bit & 1 == 1, known >> bit & 1 == 1);
                }
            }
        }
        done += count as u64;
    }
    memory.tell(missing);
    Ok(memory.stretches)
}

/// Stretches as they are found.
struct Memory {
    stretches: Vec<Stretch>,
    most: usize,
    /// Descriptors that the file has, and those that were given to a page.
    descriptors: u64,
    next: u64,
    /// The first page without a descriptor.
    without: Option<u64>,
    /// Pages of stretches that were too many.
    left_out: u64,
}

impl Memory {
    fn add(&mut self, frame: u64, stored: bool, known: bool) {
        let first = if stored {
            let number = self.next;
            self.next += 1;
            if number >= self.descriptors {
                self.without.get_or_insert(frame);
                return;
            }
            Some(number)
        } else if known {
            None
        } else {
            return;
        };
        let paddr = frame * PAGE;
        let follows = |last: &&mut Stretch| {
            last.paddr + last.length == paddr && last.first.map(|first| first + last.length / PAGE) == first
        };
        if let Some(last) = self.stretches.last_mut().filter(follows) {
            last.length += PAGE;
        } else if self.stretches.len() < self.most {
            self.stretches.push(Stretch { paddr, length: PAGE, first });
        } else {
            self.left_out += 1;
        }
    }

    fn tell(&self, missing: &mut Vec<String>) {
        if let Some(frame) = self.without {
            let (lost, at) = (self.next - self.descriptors, frame * PAGE);
            missing.push(format!("{lost} pages of memory from {at:#x} on: the file ends before their descriptors"));
        }
        if self.left_out > 0 {
            missing.push(format!("{} pages of memory in more than {} stretches", self.left_out, self.most));
        }
    }
}

/// The pages of a file, unpacked when they are asked for.
#[derive(Debug)]
pub(super) struct Pages {
    /// Where the descriptors begin.
    table: u64,
    kept: RefCell<Vec<Option<UnpackedPage>>>,
    /// Number of the first descriptor that was read last, and the bytes of it and those behind it.
    descriptors: RefCell<(u64, Vec<u8>)>,
}

#[derive(Debug)]
struct UnpackedPage {
    place: PageAt,
    /// The page, or why there is none.
    page: Result<Box<[u8]>, String>,
}

/// Where a page lies, and how it is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageAt {
    offset: u64,
    size: u32,
    flags: u32,
}

impl Pages {
    /// Copies from the page of a descriptor; `skip` bytes into it.
    ///
    /// # Errors
    /// Why it cannot be read, with its descriptor and place.
    pub(super) fn copy(&self, source: &Source, number: u64, skip: usize, out: &mut [u8]) -> Result<(), String> {
        let place = self.place(source, number)?;
        let mut kept = self.kept.borrow_mut();
        if kept.is_empty() {
            kept.resize_with(KEPT, || None);
        }
        // Pages of equal content share a place, as those of zeros do.
        let slot = (place.offset ^ place.offset >> 10) as usize % KEPT;
        let held = kept[slot].take().filter(|kept| kept.place == place);
        let held = kept[slot].insert(held.unwrap_or_else(|| UnpackedPage { place, page: read(source, place) }));
        let page = held.page.as_ref().map_err(|why| {
            format!("descriptor {number} has {} bytes at offset {:#x}: {why}", place.size, place.offset)
        })?;
        let bytes = page.get(skip..skip + out.len());
        out.copy_from_slice(bytes.ok_or_else(|| format!("{} bytes at {skip} are beyond a page", out.len()))?);
        Ok(())
    }

    fn place(&self, source: &Source, number: u64) -> Result<PageAt, String> {
        let mut held = self.descriptors.borrow_mut();
        let inside = |held: &(u64, Vec<u8>)| {
            let at = usize::try_from(number.checked_sub(held.0)? * DESCRIPTOR).ok()?;
            held.1.get(at..at + DESCRIPTOR as usize).map(|row| PageAt {
                offset: long(row, 0),
                size: word(row, 8),
                flags: word(row, 12),
            })
        };
        if let Some(place) = inside(&held) {
            return Ok(place);
        }
        let first = number - number % AT_ONCE;
        let mut bytes = vec![0; (AT_ONCE * DESCRIPTOR) as usize];
        let read =
            source.read_some_at(&mut bytes, self.table + first * DESCRIPTOR).map_err(|error| error.to_string())?;
        bytes.truncate(read);
        *held = (first, bytes);
        inside(&held).ok_or_else(|| format!("descriptor {number} cannot be read"))
    }
}

fn read(source: &Source, place: PageAt) -> Result<Box<[u8]>, String> {
    if place.size == 0 || u64::from(place.size) > PAGE {
        return Err(format!("a page has 1 to {PAGE}"));
    }
    let mut bytes = vec![0; place.size as usize];
    let read = source.read_some_at(&mut bytes, place.offset).map_err(|error| error.to_string())?;
    if read < bytes.len() {
        return Err(format!("the file has {read} of them"));
    }
    unpack::page(&bytes, place.flags)
}

fn refused(why: String) -> CaptureError {
    CaptureError::Kdump(why)
}

#[cfg(test)]
mod tests;
