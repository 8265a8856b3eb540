//! Robust futex lists: locks of a thread that ended are handed over (get_robust_list(2)).
//!
//! The list is the program's: it may be a circle, lead to memory that is not there or not writable, and change under
//! the walk. A walk ends at the first link or lock that cannot be read or written, and after [`MAX_ENTRIES`].

use core::sync::atomic::Ordering;

use machine::addr::UserAddr;
use machine::user;

use super::pi::{OWNER_DIED, TID_MASK, WAITERS};
use super::{Need, pi};
use crate::futex;
use crate::sched;
use crate::task::Task;
use crate::user::UserPtr;

/// Entries walked at most (`ROBUST_LIST_LIMIT`).
const MAX_ENTRIES: usize = 2048;

/// Where a lock was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    InList,
    /// In `list_op_pending`: the thread was about to take or leave it.
    Pending,
}

/// Walks the running thread's list and marks what it still held.
pub fn release(me: &Task) {
    let head = me.robust_list.swap(0, Ordering::Relaxed);
    if head == 0 {
        return;
    }
    let word = |index: usize| UserPtr::<u64>::new(head).add(index).read();
    let (Ok(first), Ok(offset), Ok(pending)) = (word(0), word(1), word(2)) else { return };
    // The lowest bit of a link says of what kind the lock it leads to is.
    let mut tagged = first;
    for _ in 0..MAX_ENTRIES {
        let entry = tagged & !1;
        if entry == head {
            break;
        }
        // Before the lock is passed on, whose next owner may change the link.
        let next = UserPtr::<u64>::new(entry).read();
        if entry != pending & !1 && !hand_on(me, entry.wrapping_add(offset), is_pi(tagged), Found::InList) {
            return;
        }
        let Ok(next) = next else { return };
        tagged = next;
        sched::breathe();
    }
    if pending & !1 != 0 {
        hand_on(me, (pending & !1).wrapping_add(offset), is_pi(pending), Found::Pending);
    }
}

fn is_pi(link: u64) -> bool {
    link & 1 != 0
}

/// Marks the lock at `addr` if it is the ending thread's. `false` if its word cannot be read or written.
fn hand_on(me: &Task, addr: u64, is_pi: bool, found: Found) -> bool {
    let at = UserAddr(addr);
    let Ok(mut seen) = user::load_u32(at) else { return false };
    if found == Found::Pending && !is_pi && seen & TID_MASK == 0 {
        // Left already, perhaps without having woken the next.
        futex::wake_shared_or_private(addr, 1);
        return true;
    }
    if is_pi {
        // One that waiters know by its frame; those of private memory are handed over with or without a list.
        return seen & TID_MASK != me.tid()
            || futex::key(addr, false, Need::Write).is_ok_and(|key| pi::owner_died(me, addr, &key));
    }
    while seen & TID_MASK == me.tid() {
        match user::compare_exchange_u32(at, seen, seen & WAITERS | OWNER_DIED) {
            Ok(was) if was == seen => {
                if seen & WAITERS != 0 {
                    futex::wake_shared_or_private(addr, 1);
                }
                break;
            }
            Ok(was) => seen = was,
            Err(_) => return false,
        }
        sched::breathe();
    }
    true
}
