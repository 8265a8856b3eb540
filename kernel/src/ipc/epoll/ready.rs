//! The list of what may be ready, in the order in which it became so.
//!
//! Whether anything is listed is read without the lock: most calls of a program that polls find nothing, and need no
//! more. The flag changes in the critical section of the list, so a thread that sees a wake-up done sees what it
//! listed.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use machine::sync::SpinLock;

/// Items in order, each at most once: what lists an item marks it so.
pub(super) struct ReadyList<T> {
    items: SpinLock<VecDeque<Arc<T>>>,
    /// `items` is not empty.
    any: AtomicBool,
}

impl<T> ReadyList<T> {
    /// An empty list.
    pub(super) const fn new() -> Self {
        Self { items: SpinLock::new(VecDeque::new()), any: AtomicBool::new(false) }
    }

    /// Whether anything is listed, as of now. Takes no lock.
    #[inline]
    pub(super) fn holds_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Lists `item` behind all others.
    pub(super) fn push(&self, item: Arc<T>) {
        self.edit(|items| items.push_back(item));
    }

    /// Takes the first.
    pub(super) fn pop(&self) -> Option<Arc<T>> {
        self.edit(VecDeque::pop_front)
    }

    /// The first, which stays listed.
    pub(super) fn first(&self) -> Option<Arc<T>> {
        self.items.lock().front().cloned()
    }

    /// Takes the first if it is `item`.
    pub(super) fn pop_first(&self, item: &Arc<T>) -> Option<Arc<T>> {
        self.edit(|items| items.pop_front_if(|first| Arc::ptr_eq(first, item)))
    }

    /// Takes `item` from wherever it stands. Returned, so that a last reference is dropped outside the lock.
    pub(super) fn remove(&self, item: &Arc<T>) -> Option<Arc<T>> {
        self.edit(|items| {
            let at = items.iter().position(|other| Arc::ptr_eq(other, item))?;
            items.remove(at)
        })
    }

    fn edit<R>(&self, edit: impl FnOnce(&mut VecDeque<Arc<T>>) -> R) -> R {
        let mut items = self.items.lock();
        let result = edit(&mut items);
        self.any.store(!items.is_empty(), Ordering::Release);
        result
    }
}
