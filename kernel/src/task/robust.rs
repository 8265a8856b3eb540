//! Robust futexes: locks whose owner ended are handed on (get_robust_list(2)).

use core::sync::atomic::Ordering;

use machine::addr::UserAddr;

use super::Task;
use crate::futex;
use crate::user::UserPtr;

/// Entries walked at most: the list is the program's and may be a loop.
const MAX_ENTRIES: usize = 2048;
const TID_MASK: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;

/// Walks the running thread's list and marks what it still held.
pub fn release(me: &Task) {
    let head = me.robust_list.swap(0, Ordering::Relaxed);
    if head == 0 {
        return;
    }
    let word = |index: usize| UserPtr::<u64>::new(head).add(index).read();
    let (Ok(first), Ok(offset), Ok(pending)) = (word(0), word(1), word(2)) else { return };
    let mut entry = first & !1;
    for _ in 0..MAX_ENTRIES {
        if entry == head {
            break;
        }
        let Ok(next) = UserPtr::<u64>::new(entry).read() else { break };
        if entry != pending & !1 {
            hand_on(me, entry.wrapping_add(offset));
        }
        entry = next & !1;
    }
    if pending != 0 {
        hand_on(me, (pending & !1).wrapping_add(offset));
    }
}

fn hand_on(me: &Task, addr: u64) {
    let at = UserAddr(addr);
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
