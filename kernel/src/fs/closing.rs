//! Closes files that hold further files, on a stack that does not grow with the chain.
//!
//! Files in flight in a socket are closed with it, and each may be a socket with files in flight. The first close of a
//! chain works the list of its thread off; those below it only add to the list. Everything is closed when the first
//! returns.

use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::sync::SpinLock;

use super::Actor as _;
use super::file::File;
use crate::sched;
use crate::upper::current;

/// A thread's files to close; `None` while it closes none.
#[derive(Default)]
pub struct Closing(SpinLock<Option<Vec<Arc<File>>>>);

impl Closing {
    /// Puts `files` on the list; whether the caller is to work it off.
    fn begin(&self, mut files: Vec<Arc<File>>) -> bool {
        match &mut *self.0.lock() {
            Some(list) => {
                list.append(&mut files);
                false
            }
            idle => {
                *idle = Some(files);
                true
            }
        }
    }

    /// The next file; the work is over when there is none.
    fn next(&self) -> Option<Arc<File>> {
        let mut list = self.0.lock();
        let next = list.as_mut().and_then(Vec::pop);
        if next.is_none() {
            *list = None;
        }
        next
    }
}

/// Drops `files`, at once or, inside another call of this thread, before that returns. No spin lock may be held.
pub fn drop_files(files: Vec<Arc<File>>) {
    let me = current();
    if !me.closing().begin(files) {
        return;
    }
    while let Some(file) = me.closing().next() {
        drop(file);
        sched::breathe();
    }
}
