//! The mappings of the processes that were not running, from the level `standard` on.

use core::cell::RefCell;

use super::memory::put;
use super::pages::take_one;
use super::{Dump, Stop, Subject};
use crate::mm::Map;
use crate::task::tree;

/// Puts them; a map that is locked is left out.
pub(super) fn maps_of_others(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let running = subject.pid();
    let mut left = subject.amount.entries;
    let (mut outcome, mut locked) = (Ok(()), false);
    let shared = RefCell::new(&mut *dump);
    let seen = tree::try_visit(
        &mut |thread| {
            let pid = thread.pid();
            if pid != thread.tid() || thread.kernel_thread || running == Some(pid) {
                return true;
            }
            let mut put_all = |map: &Map| {
                let mut dump = shared.borrow_mut();
                map.vmas.iter().try_for_each(|vma| take_one(&mut left).and_then(|()| put(&mut dump, Some(pid), vma)))
            };
            match thread.mm.try_with(|mm| mm.try_lock().map(|map| put_all(&map))) {
                Some(Some(put)) => outcome = put,
                Some(None) => locked = true,
                None => {}
            }
            outcome.is_ok()
        },
        &mut |_| true,
    );
    match seen {
        Some(()) if !locked => outcome,
        Some(()) => outcome.and(Err(Stop::Locked)),
        None => Err(Stop::Locked),
    }
}
