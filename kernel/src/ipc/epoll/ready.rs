//! The list of what may be ready, in the order in which it became so.
//!
//! Whether anything is listed is read without the lock: most calls of a program that polls find nothing, and need no
//! more. The flag changes in the critical section of the list, so a thread that sees a wake-up done sees what it
//! listed.
//!
//! A user may have hundreds of thousands of items in one list. One that is removed from a long list stays in it until
//! it is taken like any other, or until half of the list was removed: a removal takes no walk.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use machine::sync::SpinLock;

/// Items in order, each at most once: what lists an item marks it so.
pub(super) struct ReadyList<T> {
    items: SpinLock<Listed<T>>,
    /// `items` is not empty.
    any: AtomicBool,
}

struct Listed<T> {
    order: VecDeque<Arc<T>>,
    /// How many were removed since the last sweep, which may still be there.
    removed: usize,
}

/// A list that is walked for a removal.
const SHORT: usize = 32;

impl<T> ReadyList<T> {
    /// An empty list.
    pub(super) const fn new() -> Self {
        Self { items: SpinLock::new(Listed { order: VecDeque::new(), removed: 0 }), any: AtomicBool::new(false) }
    }

    /// Whether anything is listed, as of now. Takes no lock.
    #[inline]
    pub(super) fn holds_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Lists `item` behind all others.
    pub(super) fn push(&self, item: Arc<T>) {
        self.edit(|items| items.order.push_back(item));
    }

    /// Takes the first.
    pub(super) fn pop(&self) -> Option<Arc<T>> {
        self.edit(|items| items.order.pop_front())
    }

    /// The first, which stays listed.
    pub(super) fn first(&self) -> Option<Arc<T>> {
        self.items.lock().order.front().cloned()
    }

    /// Takes the first if it is `item`.
    pub(super) fn pop_first(&self, item: &Arc<T>) -> Option<Arc<T>> {
        self.edit(|items| items.order.pop_front_if(|first| Arc::ptr_eq(first, item)))
    }

    /// Takes `item`, which is gone, from wherever it stands, or leaves it to a later call. What was taken is returned,
    /// so that last references are dropped outside the lock.
    pub(super) fn remove(&self, item: &Arc<T>, is_gone: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        self.edit(|Listed { order, removed }| {
            if order.len() <= SHORT {
                let at = order.iter().position(|other| Arc::ptr_eq(other, item));
                return at.and_then(|at| order.remove(at)).into_iter().collect();
            }
            *removed += 1;
            if *removed <= order.len() / 2 {
                return Vec::new();
            }
            *removed = 0;
            let (gone, kept): (Vec<_>, Vec<_>) = core::mem::take(order).into_iter().partition(|item| is_gone(item));
            *order = kept.into();
            gone
        })
    }

    fn edit<R>(&self, edit: impl FnOnce(&mut Listed<T>) -> R) -> R {
        let mut items = self.items.lock();
        let result = edit(&mut items);
        self.any.store(!items.order.is_empty(), Ordering::Release);
        result
    }
}
