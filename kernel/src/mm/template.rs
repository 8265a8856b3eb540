//! Exec templates: which pages of a file its program used, with their frames, for the next execution.
//!
//! A [`Template`] belongs to a file and names pages by their number in it, never by an address: where a page goes, and
//! with which rights, follows from the ranges of the space that is being made. It is a list of the file's own frames,
//! each with a reference, made when a program ends ([`AddressSpace::learn`]) from the marks that the processor left in
//! the page tables.
//!
//! It holds for one *generation* of the file's pages. The generation moves with every page that comes or goes; what is
//! left of an older one is not used and dropped. A page that goes takes the template with it at once, so that it never
//! keeps memory that the file gave up, and is never larger than 1/512 of the pages that the file is charged for. With
//! little memory left templates are dropped when they are asked for. A space of over 16 MiB or 2,048 ranges makes none.
//!
//! A template serves the users and groups that it was learned from: which code another user ran, or the same one with
//! the group of a set-group-id file, is not to be seen from it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use kernel_logic::huge::HUGE;
use kernel_logic::vma::{PAGE, Prot, VmaFlags};
use machine::addr::PageRange;
use machine::frame::Frame;
use machine::space::NumberedFrame;
use machine::sync::SpinLock;

use super::image::{self, Image};
use super::{AddressSpace, Backing, Map, Mapped, TAG_ANON, Vma, frames};
use crate::inject::{self, Fault};

/// A file, by device and inode number.
type Identity = (u64, u64);
/// Real and effective user and group of a program, after its set-id bits.
pub type Users = [u32; 4];
/// Pages by their number, and whether the program wrote them.
type Used = Vec<(u32, bool)>;

/// What a space was made from by exec: whose it is, and the program's and its interpreter's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Images {
    /// The users of the program.
    users: Users,
    files: [Option<Identity>; 2],
}

impl Images {
    /// Nothing yet, for a program of these users.
    pub(super) fn of(users: Users) -> Self {
        Self { users, files: [None; 2] }
    }

    /// Notes one more file, if there is room.
    pub(super) fn note(&mut self, file: Identity) {
        if let Some(free) = self.files.iter_mut().find(|known| known.is_none()) {
            *free = Some(file);
        }
    }

    /// Whether `file` is the program's, not its interpreter's.
    pub(super) fn is_program(&self, file: Identity) -> bool {
        self.files[0] == Some(file)
    }

    /// Whether `backing` is one of the files.
    #[inline]
    pub(super) fn have(&self, backing: &Backing) -> bool {
        match backing {
            Backing::File { file, .. } if self.files[0].is_some() => self.files.contains(&Some(file.identity())),
            _ => false,
        }
    }
}

/// Templates that executions were made from, files of executions without one that holds, templates that were over when
/// they were asked for, and those that were made, since boot.
static COUNTS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// [`COUNTS`] and their names.
pub fn counts() -> [(&'static str, u64); 4] {
    let names = ["hits", "misses", "stale", "made"];
    let mut counts = COUNTS.iter().map(|count| count.load(Relaxed));
    names.map(|name| (name, counts.next().unwrap_or(0)))
}

/// Pages of a file that its program used.
pub struct Template {
    generation: u64,
    users: Users,
    /// Read or executed: mapped as the file's own. Ascending.
    pub(super) read: Vec<NumberedFrame>,
    /// Written: a private copy was made of them. Ascending.
    pub(super) written: Vec<NumberedFrame>,
    /// Pages of zeros right behind the file's part of a segment that were used, numbered as if the file went on.
    pub(super) zeros: Vec<u32>,
    /// Pages that were used from the beginning of the heap on, without a gap.
    pub(super) heap: u32,
}

/// Most pages of a template. Those of a shell fit in.
const MOST: usize = 512;
/// Most pages of the heap that its first growth makes in advance.
const MOST_HEAP: u64 = 4;
/// Most pages of zeros that exec makes in advance: each that is not used costs more than a fault on another one.
const MOST_ZEROS: usize = 8;

/// Where the file's part of a segment ends: the address, and the number that a page of the file there would have.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    end: u64,
    number: u64,
}

impl Tail {
    /// Of a range of a file.
    pub(super) fn of(vma: &Vma) -> Option<Self> {
        let Backing::File { offset, .. } = &vma.backing else { return None };
        Some(Self { end: vma.end, number: (offset + vma.bytes()) / PAGE })
    }

    /// The number of the first page of `vma`, if these are zeros that go on where the file ends, and too few for a page
    /// of 2 MiB.
    pub(super) fn continued(self, vma: &Vma) -> Option<u64> {
        (self.is_before(vma) && vma.bytes() < HUGE).then_some(self.number)
    }

    /// Whether `vma` are the zeros behind the file's part.
    pub(super) fn is_before(self, vma: &Vma) -> bool {
        matches!(vma.backing, Backing::Anonymous) && vma.prot.has(Prot::WRITE) && vma.start == self.end
    }
}

/// A file's template, beside its pages.
pub struct TemplateSlot {
    generation: AtomicU64,
    held: SpinLock<Option<Arc<Template>>>,
    images: SpinLock<image::Images>,
}

impl TemplateSlot {
    /// For a file without pages.
    pub const fn new() -> Self {
        Self { generation: AtomicU64::new(0), held: SpinLock::new(None), images: SpinLock::new(Vec::new()) }
    }

    /// A page came to the file.
    #[inline]
    pub fn page_came(&self) {
        self.generation.fetch_add(1, Release);
    }

    /// Pages of the file are gone: no template keeps them. Before the spaces that map the file are visited.
    pub fn pages_went(&self) {
        self.generation.fetch_add(1, Release);
        if !inject::is(Fault::TemplateStale) {
            self.forget_template();
        }
        self.forget_images();
    }

    /// Drops the images, if there are some.
    fn forget_images(&self) {
        let images = core::mem::take(&mut *self.images.lock());
        if !images.is_empty() {
            image::note_dropped(images.len());
        }
    }

    /// Drops the template, if there is one.
    pub(super) fn forget_template(&self) {
        drop(self.held.lock().take());
    }

    /// The images of the file; none with little memory left, when they are dropped.
    #[inline]
    pub(super) fn images(&self) -> image::Images {
        if frames::is_low() {
            self.forget_images();
        }
        self.images.lock().clone()
    }

    /// Keeps an image, in place of an earlier one of the same part of the file.
    pub(super) fn keep_image(&self, image: Image) {
        let mut images = self.images.lock();
        images.retain(|other| other.number() != image.number());
        // Without room there is just no image.
        if images.try_reserve(1).is_ok() {
            images.push(Arc::new(image));
        }
    }

    /// The generation of the file's pages.
    pub fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// The template of these users, if it holds.
    pub(super) fn get(&self, users: Users) -> Option<Arc<Template>> {
        let mut held = self.held.lock();
        let template = held.as_ref()?;
        let holds = template.generation == self.generation() || inject::is(Fault::TemplateStale);
        if !holds || frames::is_low() {
            drop(held.take());
            COUNTS[2].fetch_add(1, Relaxed);
            return None;
        }
        (template.users == users).then(|| template.clone())
    }

    /// [`Self::get`] for an execution, which is counted.
    pub(super) fn ask(&self, users: Users) -> Option<Arc<Template>> {
        let found = self.get(users);
        COUNTS[usize::from(found.is_none())].fetch_add(1, Relaxed);
        found
    }

    /// Keeps a template, unless its generation is over: then it might keep pages that are gone.
    fn put(&self, template: Template) {
        let mut held = self.held.lock();
        let planted = inject::is(Fault::TemplateStale) && held.is_some();
        if template.generation == self.generation() && !planted {
            *held = Some(Arc::new(template));
            COUNTS[3].fetch_add(1, Relaxed);
        }
    }
}

impl Default for TemplateSlot {
    fn default() -> Self {
        Self::new()
    }
}

/// The part of an ascending list whose numbers lie in `first..end`.
pub(super) fn part(list: &[NumberedFrame], first: u64, end: u64) -> &[NumberedFrame] {
    let from = list.partition_point(|page| u64::from(page.number) < first);
    let list = &list[from..];
    &list[..list.partition_point(|page| u64::from(page.number) < end)]
}

impl AddressSpace {
    /// Keeps what the program used of its files, for the next one: before its memory goes.
    pub(super) fn learn(&self) {
        let map = self.lock();
        // A space that is not small would hold the lock for too long.
        if frames::is_low() || !self.is_small(&map) {
            return;
        }
        for file in map.images.files.iter().flatten() {
            // Without memory for it there is just no template.
            let _ = self.learn_file(&map, *file);
        }
    }

    fn learn_file(&self, map: &Map, identity: Identity) -> Option<()> {
        let ours = |vma: &&Vma| match &vma.backing {
            Backing::File { file, .. } => file.identity() == identity && !vma.flags.has(VmaFlags::SHARED),
            _ => false,
        };
        let Backing::File { file, .. } = &map.vmas.iter().find(ours)?.backing else { return None };
        let slot = file.template()?;
        // Before the pages are asked for: what changes from here on makes the result stale.
        let generation = slot.generation();
        let (mut used, before) = known(slot.get(map.images.users).as_deref())?;
        let written = |used: &[(u32, bool)]| used.iter().filter(|(_, written)| *written).count();
        let (mut zeros, mut tail) = ([0; MOST_ZEROS], None::<Tail>);
        let mut zeroed = 0;
        for vma in map.vmas.iter() {
            if ours(&vma) {
                self.used_pages(vma, &mut used)?;
                tail = Tail::of(vma);
            } else if let Some(first) = tail.and_then(|tail| tail.continued(vma)) {
                zeroed = self.used_zeros(vma, first, &mut zeros, zeroed);
            }
        }
        // A page that is both read and written counts as written.
        used.sort_unstable_by_key(|(number, written)| (*number, !written));
        used.dedup_by_key(|(number, _)| *number);
        used.truncate(MOST);
        if (used.len(), written(&used)) == before {
            return None;
        }
        let (read, copied) = (Vec::new(), Vec::new());
        let zeros = zeros[..zeroed].to_vec();
        let heap = if map.images.files[0] == Some(identity) { self.used_heap(map) } else { 0 };
        let mut made = Template { generation, users: map.images.users, read, written: copied, zeros, heap };
        made.read.try_reserve_exact(used.len()).ok()?;
        made.written.try_reserve_exact(written(&used)).ok()?;
        for (number, written) in used {
            let mut frame = [const { None::<Frame> }];
            file.cached(u64::from(number), &mut frame);
            let list = if written { &mut made.written } else { &mut made.read };
            list.extend(frame.into_iter().flatten().map(|frame| NumberedFrame { number, frame }));
        }
        slot.put(made);
        Some(())
    }

    /// Pages of the heap that the program used, from its beginning on.
    fn used_heap(&self, map: &Map) -> u32 {
        let start = map.brk_start;
        let mut end = start;
        if let Some(range) = PageRange::new(start, (start + MOST_HEAP * PAGE).min(map.brk)) {
            self.space.for_each(range, &mut |page, leaf| {
                end += if page.addr() == end && leaf.accessed && !leaf.huge { PAGE } else { 0 };
            });
        }
        ((end - start) / PAGE) as u32
    }

    /// Adds the pages of zeros that were used of `vma`, whose first page has the number `first`. Returns how many there
    /// are now.
    fn used_zeros(&self, vma: &Vma, first: u64, zeros: &mut [u32], mut count: usize) -> usize {
        let Some(range) = PageRange::new(vma.start, vma.end) else { return count };
        self.space.for_each(range, &mut |page, leaf| {
            let number = u32::try_from(first + (page.addr() - vma.start) / PAGE);
            if let (true, Ok(number), Some(free)) = (leaf.accessed, number, zeros.get_mut(count)) {
                *free = number;
                count += 1;
            }
        });
        count
    }

    /// Adds the pages of a file that were used through `vma`: their number, and whether the program has a copy.
    fn used_pages(&self, vma: &Vma, used: &mut Used) -> Option<()> {
        let Backing::File { offset, .. } = &vma.backing else { return None };
        let mut room = true;
        self.space.for_each(PageRange::new(vma.start, vma.end)?, &mut |page, leaf| {
            // What an image shows by one leaf it shows the next program too; its 512 pages would fill the template.
            if leaf.huge {
                return;
            }
            let copied = leaf.prot.tag == TAG_ANON;
            let number = u32::try_from((offset + (page.addr() - vma.start)) / PAGE);
            if let (true, Ok(number)) = ((leaf.accessed || copied) && used.len() < 2 * MOST, number) {
                room &= used.try_reserve(1).is_ok();
                if room {
                    used.push((number, copied));
                }
            }
        });
        room.then_some(())
    }
}

/// The pages of a template, how many there are, and how many of these are written; `None` for one that may not grow.
fn known(template: Option<&Template>) -> Option<(Used, (usize, usize))> {
    let mut used = Used::new();
    let Some(template) = template else { return Some((used, (0, 0))) };
    let count = template.read.len() + template.written.len();
    used.try_reserve(count).ok()?;
    used.extend(template.read.iter().map(|page| (page.number, false)));
    used.extend(template.written.iter().map(|page| (page.number, true)));
    (count < MOST).then_some((used, (count, template.written.len())))
}

/// Whether a page that programs write may be copied in advance.
pub(super) fn may_copy(vma: &Vma) -> bool {
    vma.prot.has(Prot::WRITE) && !frames::is_low()
}
