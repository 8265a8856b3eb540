//! Remembers which sequence numbers a walk has passed over, in bounded memory.
//!
//! A gap is a run of numbers that no sound section has brought. It either stands for sections that are missing without
//! a trace, to be reported at the end of the walk, or for sections that a defect has blamed already. Both may still be
//! filled by a section that stands later in the dump.

use crate::defect::{Defect, DefectKind};

/// Gaps that are remembered; of a dump with more of them, the sections of the others are lost when they stand out of
/// order.
pub(crate) const MOST_GAPS: usize = 128;

/// A run of sequence numbers; empty when `first` is greater than `last`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: u32,
    last: u32,
    /// Where it was noticed; `None` when a defect has blamed the sections already.
    offset: Option<u64>,
}

const NO_GAP: Gap = Gap { first: 1, last: 0, offset: None };

/// The gaps of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    gaps: [Gap; MOST_GAPS],
}

impl Gap {
    const fn holds(&self, seq: u32) -> bool {
        self.first <= seq && seq <= self.last
    }

    const fn is_empty(&self) -> bool {
        self.first > self.last
    }

    fn missing(&self) -> Option<Defect> {
        let offset = self.offset.filter(|_| !self.is_empty())?;
        Some(Defect::new(DefectKind::Missing, offset, 0).blame(self.first, self.last, None))
    }
}

impl Gaps {
    pub(crate) const fn new() -> Self {
        Self { gaps: [NO_GAP; MOST_GAPS] }
    }

    /// Whether a section of this number would fill a gap.
    pub(crate) fn hold(&self, seq: u32) -> bool {
        self.gaps.iter().any(|gap| gap.holds(seq))
    }

    /// Adds a gap. When it cannot be remembered, gives the defect that reports it at once.
    pub(crate) fn open(&mut self, first: u32, last: u32, offset: Option<u64>) -> Option<Defect> {
        let gap = Gap { first, last, offset };
        match self.gaps.iter_mut().find(|gap| gap.is_empty()) {
            Some(free) => {
                *free = gap;
                None
            }
            None => gap.missing(),
        }
    }

    /// Takes one number out of its gap. When what is left of the gap cannot be remembered, gives the defect for that.
    pub(crate) fn fill(&mut self, seq: u32) -> Option<Defect> {
        let gap = self.gaps.iter_mut().find(|gap| gap.holds(seq))?;
        let (last, offset) = (gap.last, gap.offset);
        let behind = seq.checked_add(1).filter(|first| *first <= last);
        match seq.checked_sub(1).filter(|before| gap.first <= *before) {
            Some(before) => gap.last = before,
            None => *gap = NO_GAP,
        }
        behind.and_then(|first| self.open(first, last, offset))
    }

    /// Takes the gap with the smallest offset that no defect has blamed.
    pub(crate) fn next_missing(&mut self) -> Option<Defect> {
        let untold = self.gaps.iter_mut().filter(|gap| gap.offset.is_some() && !gap.is_empty());
        let gap = untold.min_by_key(|gap| (gap.offset, gap.first))?;
        let missing = gap.missing();
        *gap = NO_GAP;
        missing
    }
}
