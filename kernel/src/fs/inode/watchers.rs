//! The epolls that watch one description, or one epoll, each as often as it does.
//!
//! Most have one. A user may have tens of thousands: those are found by their addresses.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

/// The watchers of one thing.
pub enum Watchers<E> {
    /// At most [`FEW`], in any order.
    Few(Vec<Weak<E>>),
    /// By address, with how often each watches. The reference keeps the address from being another's.
    Many(BTreeMap<usize, (Weak<E>, usize)>),
}

/// Watchers that are walked.
const FEW: usize = 16;

impl<E> Watchers<E> {
    /// None; allocates nothing.
    pub const fn new() -> Self {
        Self::Few(Vec::new())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Few(few) => few.is_empty(),
            Self::Many(many) => many.is_empty(),
        }
    }

    /// Adds `watcher` once more.
    pub fn add(&mut self, watcher: &Arc<E>) {
        match self {
            Self::Few(few) if few.len() < FEW => few.push(Arc::downgrade(watcher)),
            Self::Few(few) => {
                let mut many: BTreeMap<usize, (Weak<E>, usize)> = BTreeMap::new();
                for one in core::mem::take(few) {
                    many.entry(one.as_ptr().addr()).or_insert((one, 0)).1 += 1;
                }
                *self = Self::Many(many);
                self.add(watcher);
            }
            Self::Many(many) => {
                many.entry(Arc::as_ptr(watcher).addr()).or_insert_with(|| (Arc::downgrade(watcher), 0)).1 += 1;
            }
        }
    }

    /// Whether `watcher` is among them.
    pub fn has(&self, watcher: *const E) -> bool {
        match self {
            Self::Few(few) => few.iter().any(|one| core::ptr::eq(one.as_ptr(), watcher)),
            Self::Many(many) => many.contains_key(&watcher.addr()),
        }
    }

    /// Takes `watcher` out once. The reference is returned, to be dropped with no lock held.
    pub fn remove(&mut self, watcher: *const E) -> Option<Weak<E>> {
        match self {
            Self::Few(few) => {
                let at = few.iter().position(|one| core::ptr::eq(one.as_ptr(), watcher))?;
                Some(few.swap_remove(at))
            }
            Self::Many(many) => {
                let times = &mut many.get_mut(&watcher.addr())?.1;
                *times -= 1;
                if *times > 0 { None } else { many.remove(&watcher.addr()).map(|(one, _)| one) }
            }
        }
    }

    /// Those that are still there, each as often as it watches.
    pub fn alive(&self) -> Vec<Arc<E>> {
        match self {
            Self::Few(few) => few.iter().filter_map(Weak::upgrade).collect(),
            Self::Many(many) => {
                let each = many.values().filter_map(|(one, times)| Some((one.upgrade()?, *times)));
                each.flat_map(|(one, times)| core::iter::repeat_n(one, times)).collect()
            }
        }
    }
}

impl<E> Default for Watchers<E> {
    fn default() -> Self {
        Self::new()
    }
}
