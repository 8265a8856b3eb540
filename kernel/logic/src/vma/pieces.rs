//! Keeps ranges in address order, in pieces of at most [`FULL`], so that no edit moves more than one piece and no
//! allocation is larger than one.
//!
//! A position is an [`At`]; it is valid until the next insertion or removal, except that positions before a removed
//! range stay. Invariant: no piece is empty; an `At` other than the end names an existing range.

use alloc::vec::Vec;
use core::cell::Cell;

use super::{Backing, Vma, VmaError};

/// Most ranges in a piece.
const FULL: usize = 64;

#[derive(Debug)]
pub(super) struct Pieces<B> {
    pieces: Vec<Vec<Vma<B>>>,
    len: usize,
    /// What was last searched for: programs edit and touch near where they did before. A stale position is harmless,
    /// since it is checked.
    recent: Cell<At>,
}

/// The position of a range, or the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    piece: usize,
    index: usize,
}

/// All ranges in address order, see [`super::VmaSet::iter`].
pub type Iter<'a, B> = core::iter::Flatten<core::slice::Iter<'a, Vec<Vma<B>>>>;

impl<B> Pieces<B> {
    pub(super) const fn new() -> Self {
        Self { pieces: Vec::new(), len: 0, recent: Cell::new(At { piece: 0, index: 0 }) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> Iter<'_, B> {
        self.pieces.iter().flatten()
    }

    /// The ranges from `at` on.
    pub(super) fn from(&self, at: At) -> impl Iterator<Item = &Vma<B>> {
        let first = self.pieces.get(at.piece).map_or(&[][..], |piece| &piece[at.index..]);
        first.iter().chain(self.pieces.iter().skip(at.piece + 1).flatten())
    }

    /// The first range for which `is_before` does not hold; it holds for all before and none after.
    #[inline]
    pub(super) fn partition(&self, is_before: impl Fn(&Vma<B>) -> bool) -> At {
        let recent = self.recent.get();
        if let Some(piece) = self.pieces.get(recent.piece)
            && piece.get(recent.index).is_some_and(|vma| !is_before(vma))
            && self.in_front(piece, recent).is_none_or(&is_before)
        {
            return recent;
        }
        let at = self.search(is_before);
        self.recent.set(at);
        at
    }

    /// The range in front of the one at `at`, which is in `piece`: one search of the pieces less than by
    /// [`Pieces::before`].
    #[inline]
    fn in_front<'a>(&'a self, piece: &'a [Vma<B>], at: At) -> Option<&'a Vma<B>> {
        match at.index.checked_sub(1) {
            Some(index) => piece.get(index),
            None => self.pieces.get(at.piece.checked_sub(1)?)?.last(),
        }
    }

    fn search(&self, is_before: impl Fn(&Vma<B>) -> bool) -> At {
        // Most sets are small.
        if let [only] = &self.pieces[..] {
            let index = only.partition_point(is_before);
            return if index < only.len() { At { piece: 0, index } } else { At { piece: 1, index: 0 } };
        }
        let piece = self.pieces.partition_point(|piece| piece.last().is_some_and(&is_before));
        let index = self.pieces.get(piece).map_or(0, |piece| piece.partition_point(is_before));
        At { piece, index }
    }

    #[inline]
    pub(super) fn get(&self, at: At) -> Option<&Vma<B>> {
        self.pieces.get(at.piece)?.get(at.index)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: At) -> Option<&mut Vma<B>> {
        self.pieces.get_mut(at.piece)?.get_mut(at.index)
    }

    #[inline]
    pub(super) fn after(&self, at: At) -> At {
        match self.pieces.get(at.piece) {
            Some(piece) if at.index + 1 < piece.len() => At { index: at.index + 1, ..at },
            _ => At { piece: at.piece + 1, index: 0 },
        }
    }

    #[inline]
    pub(super) fn before(&self, at: At) -> Option<At> {
        if let Some(index) = at.index.checked_sub(1) {
            return Some(At { index, ..at });
        }
        let piece = at.piece.checked_sub(1)?;
        Some(At { piece, index: self.pieces.get(piece)?.len() - 1 })
    }

    /// Puts a range in front of the one at `at`.
    pub(super) fn insert(&mut self, at: At, vma: Vma<B>) -> Result<(), VmaError> {
        // Behind the last of one piece is in front of the first of the next, and moves nothing.
        let mut at = self.before(at).map_or(at, |before| At { index: before.index + 1, ..before });
        if self.pieces.get(at.piece).is_none_or(|piece| piece.len() == FULL) {
            at = self.make_room(at)?;
        }
        let piece = &mut self.pieces[at.piece];
        piece.try_reserve(1).map_err(|_| VmaError::NoMemory)?;
        piece.insert(at.index, vma);
        self.len += 1;
        Ok(())
    }

    /// Splits the full piece at `at`, or makes the first one; the position of the same range afterwards. Leaves an
    /// empty piece only for the range that is inserted there.
    fn make_room(&mut self, at: At) -> Result<At, VmaError> {
        self.pieces.try_reserve(1).map_err(|_| VmaError::NoMemory)?;
        let mut upper = Vec::new();
        upper.try_reserve(4).map_err(|_| VmaError::NoMemory)?;
        let Some(piece) = self.pieces.get_mut(at.piece) else {
            self.pieces.push(upper);
            return Ok(at);
        };
        // Growth at the end leaves full pieces behind.
        let keep = if at.index == FULL { FULL } else { FULL / 2 };
        upper.try_reserve(FULL - keep).map_err(|_| VmaError::NoMemory)?;
        upper.extend(piece.drain(keep..));
        self.pieces.insert(at.piece + 1, upper);
        Ok(if at.index >= keep { At { piece: at.piece + 1, index: at.index - keep } } else { at })
    }

    /// Takes the range at `at` out. Positions before it stay.
    pub(super) fn remove(&mut self, at: At) {
        self.remove_all(at, self.after(at));
    }

    /// Takes the ranges from `first` to before `last` out. Positions before them stay.
    pub(super) fn remove_all(&mut self, first: At, last: At) {
        if first.piece == last.piece {
            self.cut(first.piece, first.index, last.index);
            return;
        }
        if last == (At { piece: first.piece + 1, index: 0 }) {
            self.cut(first.piece, first.index, usize::MAX);
            return;
        }
        // From the far end, so that positions before it stay valid.
        if last.index != 0 {
            self.cut(last.piece, 0, last.index);
        }
        for piece in self.pieces.drain(first.piece + 1..last.piece) {
            self.len -= piece.len();
        }
        self.cut(first.piece, first.index, usize::MAX);
    }

    fn cut(&mut self, piece: usize, from: usize, to: usize) {
        let Some(ranges) = self.pieces.get_mut(piece) else { return };
        let to = to.min(ranges.len());
        self.len -= to - from;
        if to - from == 1 {
            ranges.remove(from);
        } else {
            ranges.drain(from..to);
        }
        if ranges.is_empty() {
            self.pieces.remove(piece);
        }
    }
}

impl<B: Backing> Pieces<B> {
    pub(super) fn try_clone(&self) -> Result<Self, VmaError> {
        let mut copy = Self { pieces: Vec::new(), len: self.len, recent: self.recent.clone() };
        copy.pieces.try_reserve_exact(self.pieces.len()).map_err(|_| VmaError::NoMemory)?;
        for piece in &self.pieces {
            let mut ranges = Vec::new();
            ranges.try_reserve(piece.len()).map_err(|_| VmaError::NoMemory)?;
            ranges.extend_from_slice(piece);
            copy.pieces.push(ranges);
        }
        Ok(copy)
    }
}
