//! Robust futexes: locks whose owner ended are handed on (get_robust_list(2)).

use core::sync::atomic::Ordering;

use machine::addr::UserAddr;

use super::Task;
use crate::futex::{
    self, pi,
    pi::{OWNER_DIED, TID_MASK, WAITERS},
};
use crate::user::UserPtr;

/// Entries walked at most: the list is the program's and may be a loop.
const MAX_ENTRIES: usize = 2048;

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
        let Ok(next) = UserPtr::<u64>::new(entry).read() else { break };
        if entry != pending & !1 {
            hand_on(me, entry.wrapping_add(offset), entry_is_pi(tagged));
        }
        tagged = next;
    }
    if pending != 0 {
        hand_on(me, (pending & !1).wrapping_add(offset), entry_is_pi(pending));
    }
}

fn entry_is_pi(link: u64) -> bool {
    link & 1 != 0
}

fn hand_on(me: &Task, addr: u64, is_pi: bool) {
    let at = UserAddr(addr);
    if is_pi {
        // One that waiters know by its frame; those of private memory are handed over with or without a list.
        if let Ok(key) = futex::key(addr, false) {
            pi::owner_died(me, addr, &key);
        }
        return;
    }
    let Ok(mut seen) = machine::user::load_u32(at) else { return };
    while seen & TID_MASK == me.tid() {
        match machine::user::compare_exchange_u32(at, seen, seen & WAITERS | OWNER_DIED) {
            Ok(was) if was == seen => {
                if seen & WAITERS != 0 {
                    futex::wake_shared_or_private(addr, 1);
                }
                return;
            }
            Ok(was) => seen = was,
            Err(_) => return,
        }
    }
}
