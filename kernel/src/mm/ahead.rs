//! Measures how much of the memory that exec makes in advance programs use.
//!
//! Every [`EVERY`]th execution is a sample. How many pages exec made for it, zeros and copies, is noted in its space;
//! when that ends, the marks that the processor left in the page tables say how many were never accessed. The sums
//! ([`seen`]) are in every dump: a prefault that gives programs more than they use crashes nothing, and shows here.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kernel_logic::vma::Prot;
use machine::addr::PageRange;

use super::template::Tail;
use super::{AddressSpace, Map, TAG_ANON};

/// Executions of which one is a sample: walking the tables of each would cost more than what it finds. A prime, so that
/// of programs that alternate none is left out.
const EVERY: u64 = 31;

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
static SAMPLES: AtomicU64 = AtomicU64::new(0);
static MADE: AtomicU64 = AtomicU64::new(0);
static UNUSED: AtomicU64 = AtomicU64::new(0);

/// What the samples that ended tell.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Executions since boot.
    pub executions: u64,
    /// How many of them were samples and have ended.
    pub samples: u64,
    /// Pages that exec made in advance for the samples.
    pub made: u64,
    /// How many of these were never accessed.
    pub unused: u64,
}

/// See [`Seen`].
pub fn seen() -> Seen {
    let [executions, samples, made, unused] = [&EXECUTIONS, &SAMPLES, &MADE, &UNUSED].map(|count| count.load(Relaxed));
    Seen { executions, samples, made, unused }
}

impl AddressSpace {
    /// Exec made so many pages in advance for the program that begins here.
    #[inline]
    pub(super) fn note_ahead(&self, made: u64) {
        if EXECUTIONS.fetch_add(1, Relaxed) % EVERY == EVERY - 1 {
            self.ahead.store(made as u32 + 1, Relaxed);
        }
    }

    /// Adds a sample that ends to the sums: before its tables are emptied.
    #[cold]
    pub(super) fn tell_ahead(&self) {
        let map = self.lock();
        // A space that is not small would hold the lock for too long.
        if !self.is_small(&map) {
            return;
        }
        let made = u64::from(self.ahead.load(Relaxed).saturating_sub(1));
        SAMPLES.fetch_add(1, Relaxed);
        MADE.fetch_add(made, Relaxed);
        UNUSED.fetch_add(self.not_accessed(&map).min(made), Relaxed);
    }

    /// Pages of its own that the program never accessed, where exec makes some: what it may write of its files, and the
    /// zeros behind their parts.
    fn not_accessed(&self, map: &Map) -> u64 {
        let (mut count, mut tail) = (0, None::<Tail>);
        for vma in map.vmas.iter() {
            let is_image = map.is_image(&vma.backing);
            if is_image {
                tail = Tail::of(vma);
            } else if !tail.is_some_and(|tail| tail.is_before(vma)) {
                continue;
            }
            let Some(range) = PageRange::new(vma.start, vma.end).filter(|_| vma.prot.has(Prot::WRITE)) else {
                continue;
            };
            self.space.for_each(range, &mut |_, leaf| {
                count += u64::from(leaf.prot.tag == TAG_ANON && !leaf.accessed);
            });
        }
        count
    }
}
