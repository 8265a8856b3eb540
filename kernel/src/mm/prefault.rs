//! Exec prefault: pages of a fresh program's files that are in memory are mapped before it runs.
//!
//! Only what is in the page cache is taken, and read-only whatever the range allows: a write makes a copy as it would
//! after a read fault. A range ends at page borders here and never shares a page with another one; a page that exec
//! already gave the program (the last one of a segment, cleared behind the file's part) is mapped and stays.
//!
//! With a template ([`super::template`]) these are the pages that the program used before, and those that it wrote get
//! their copy at once; without one they are all that are in memory, and a template is made of those used.
//!
//! [`limit`] bounds the pages of one exec (`prefault=` on the command line, `/proc/sys/vm/prefault`), so that `kwab
//! bisect --param prefault=0..512` can search for a page that goes wrong. The pages up to the limit are those of the
//! ranges in order, the program's own first.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kernel_logic::vma::{PAGE, VmaFlags};
use machine::addr::{PageRange, UserPage};
use machine::frame::Frame;

use super::image;
use super::template::{Images, Tail, Template, Users, may_copy, part};
use super::{AddressSpace, Backing, Map, Mapped as _, TAG_ANON, TAG_FILE, Vma, rights};
use crate::inject::{self, Fault};

/// The most pages of one exec, by default: a shell's program has them all, a large program its beginning.
const USUAL: u64 = 512;
/// Pages looked up in the file at once.
const BATCH: usize = 32;

static LIMIT: AtomicU64 = AtomicU64::new(USUAL);

/// Pages that one exec maps at most.
pub fn limit() -> u64 {
    LIMIT.load(Relaxed)
}

/// Sets how many pages one exec maps at most; 0 for none.
pub fn set_limit(pages: u64) {
    LIMIT.store(pages, Relaxed);
}

impl AddressSpace {
    /// Maps what is in memory of the files of `map`, its own, which the caller holds; its ranges were entered at their
    /// files. Returns how many pages of files are shared with the program, and how many were made for it.
    pub fn prefault(&self, map: &mut Map, users: Users) -> [u64; 2] {
        let limit = limit();
        let mut left = limit;
        let own = &self.resident[usize::from(TAG_ANON)];
        let before = own.load(Relaxed);
        let mut images = Images::of(users);
        let (mut last, mut tail) = (None::<(_, Option<Arc<Template>>)>, None);
        let mut heap = 0;
        let shows_images = image::mode() != image::Mode::Off;
        for vma in map.vmas.iter() {
            if left == 0 || vma.flags.has(VmaFlags::SHARED) {
                continue;
            }
            let Backing::File { file, .. } = &vma.backing else {
                let first = tail.and_then(|tail: Tail| tail.continued(vma));
                if inject::is(Fault::PrefaultEager) && tail.is_some_and(|tail| tail.is_before(vma)) {
                    self.clear_everything(vma);
                }
                if let (Some(first), Some((_, Some(template)))) = (first, &last) {
                    left -= self.clear_ahead(vma, template, first, left);
                }
                continue;
            };
            tail = Tail::of(vma);
            let identity = file.identity();
            let template = match last.take() {
                Some((known, template)) if known == identity => template,
                _ => {
                    images.note(identity);
                    let template = file.template().and_then(|slot| slot.ask(users));
                    self.learns.fetch_or(template.is_none(), Relaxed);
                    if images.is_program(identity) {
                        heap = template.as_ref().map_or(0, |template| template.heap);
                    }
                    template
                }
            };
            let most = left;
            if shows_images && let Some(slot) = file.template() {
                let images = slot.images();
                left -= if images.is_empty() { 0 } else { self.map_images(vma, &images, left) };
            }
            left -= match &template {
                Some(template) => self.replay(vma, template, left),
                None => self.prefault_range(vma, left),
            };
            if inject::is_for(Fault::PrefaultBoundary, |name| file.is_called(name)) {
                left -= self.take_boundary(vma, most).min(left);
            }
            last = Some((identity, template));
        }
        map.images = images;
        map.heap_ahead = heap;
        let made = (own.load(Relaxed) - before).max(0) as u64;
        self.note_ahead(made);
        [(limit - left).saturating_sub(made), made]
    }

    /// The planted bug: every page of a program's zeros is made at once, as if it were certain to be used.
    #[cold]
    fn clear_everything(&self, vma: &Vma) {
        for at in (vma.start..vma.end).step_by(PAGE as usize).take(USUAL as usize) {
            if may_copy(vma) {
                self.zero_page_ahead(vma, at);
            }
        }
    }

    /// The planted bug: the page in which the file's part of a segment ends is the file's own one, although exec gave
    /// the program a copy that is cleared behind the end.
    #[cold]
    fn take_boundary(&self, vma: &Vma, most: u64) -> u64 {
        let (Backing::File { file, offset }, Some(page)) = (&vma.backing, UserPage::new(vma.end - PAGE)) else {
            return 0;
        };
        let copied = self.space.lookup(page).is_some_and(|leaf| leaf.prot.tag == TAG_ANON);
        let mut frame = [const { None::<Frame> }];
        file.cached((offset + vma.bytes()) / PAGE - 1, &mut frame);
        let [Some(frame)] = frame else { return 0 };
        if !copied || vma.bytes() / PAGE > most {
            return 0;
        }
        self.forget_pages(page.addr(), vma.end);
        let mapped = self.space.map(page, frame, rights(vma.prot, false, TAG_FILE)).is_ok();
        self.count(TAG_FILE, i64::from(mapped));
        u64::from(mapped)
    }

    /// Maps what a template has of a range.
    fn replay(&self, vma: &Vma, template: &Template, most: u64) -> u64 {
        let Backing::File { offset, .. } = &vma.backing else { return 0 };
        let (first, most) = (offset / PAGE, most as usize);
        let end = first.saturating_add(vma.bytes() / PAGE);
        let Some(range) = PageRange::new(vma.start, vma.end) else { return 0 };
        let prot = rights(vma.prot, inject::is(Fault::PrefaultWritable), TAG_FILE);
        let read = part(&template.read, first, end);
        let read = &read[..read.len().min(most)];
        let shared = self.space.map_numbered(range, prot, first, read);
        self.count(TAG_FILE, shared as i64);
        let written = part(&template.written, first, end);
        let written = &written[..written.len().min(most - read.len())];
        // Copies would hide the planted bug.
        if !may_copy(vma) || inject::is(Fault::PrefaultWritable) {
            let shared_too = self.space.map_numbered(range, prot, first, written);
            self.count(TAG_FILE, shared_too as i64);
            return (shared + shared_too) as u64;
        }
        let mut copied = 0;
        for page in written {
            let at = vma.start + (u64::from(page.number) - first) * PAGE;
            copied += u64::from(self.copy_ahead(vma, at, &page.frame).is_some());
        }
        shared as u64 + copied
    }

    /// Makes the pages of zeros that a template has of a range, whose first page has the number `first`.
    fn clear_ahead(&self, vma: &Vma, template: &Template, first: u64, most: u64) -> u64 {
        let last = first + vma.bytes() / PAGE;
        let mut made = 0;
        for number in template.zeros.iter().map(|number| u64::from(*number)) {
            if (first..last).contains(&number) && made < most && may_copy(vma) {
                made += u64::from(self.zero_page_ahead(vma, vma.start + (number - first) * PAGE).is_some());
            }
        }
        made
    }

    /// Makes the first pages of the heap, which grows from nothing to `end`, if the template says that they are used.
    #[cold]
    pub(super) fn heap_ahead(&self, map: &mut Map, end: u64) {
        let start = map.brk_start;
        let pages = core::mem::take(&mut map.heap_ahead);
        let end = end.min(start + u64::from(pages) * PAGE);
        let Some(vma) = map.vmas.find(start).filter(|vma| may_copy(vma) && end <= vma.end) else { return };
        for at in (start..end).step_by(PAGE as usize) {
            if self.zero_page_ahead(vma, at).is_none() {
                break;
            }
        }
    }

    fn zero_page_ahead(&self, vma: &Vma, at: u64) -> Option<()> {
        let frame = Frame::alloc_zeroed().ok()?;
        self.map_private(UserPage::new(at)?, frame, vma.prot, TAG_ANON).ok()
    }

    /// Gives the program its own copy of a page that it is going to write, unless there is one.
    fn copy_ahead(&self, vma: &Vma, at: u64, from: &Frame) -> Option<()> {
        let page = UserPage::new(at)?;
        if self.space.lookup(page).is_some() {
            return None;
        }
        let frame = Frame::alloc().ok()?;
        frame.copy_page_from(from);
        self.map_private(page, frame, vma.prot, TAG_ANON).ok()
    }

    fn prefault_range(&self, vma: &Vma, most: u64) -> u64 {
        let Backing::File { file, offset } = &vma.backing else { return 0 };
        if vma.flags.has(VmaFlags::SHARED) {
            return 0;
        }
        let prot = rights(vma.prot, inject::is(Fault::PrefaultWritable), TAG_FILE);
        let end = vma.end.min(vma.start.saturating_add(most.saturating_mul(PAGE)));
        let (mut at, mut done) = (vma.start, 0);
        while at < end {
            let count = ((end - at) / PAGE).min(BATCH as u64);
            let stop = at + count * PAGE;
            let mut frames = [const { None::<Frame> }; BATCH];
            let frames = &mut frames[..count as usize];
            file.cached((offset + (at - vma.start)) / PAGE, frames);
            let Some(range) = PageRange::new(at, stop) else { break };
            done += self.space.map_run(range, prot, &mut |index| frames[index].take()) as u64;
            at = stop;
        }
        self.count(TAG_FILE, done as i64);
        done
    }
}
