//! Futexes: sleeping on a word of user memory (futex(2)).
//!
//! A waiter is found by its [`Key`]. In private memory the key is the address space and the address; in shared memory
//! it is the file or the shared memory and the offset in it, so that two mappings of one page meet. Waiters hang in
//! buckets; a bucket's lock makes "look at the word and queue" one step for wakers, who take the same lock.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use kernel_logic::waiters::{WaiterSlot, Waiters};
use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::sync::{SpinGuard, SpinLock};
use machine::time::{Nanos, now};

use crate::sched::{self, Sleep, breathe, breathe_or_stop};
use crate::sync::WaitReason;
use crate::task::signal;
use crate::task::{Thread, ThreadRef, Tid, current};
use crate::user::UserPtr;

mod key;
pub mod pi;
pub mod requeue_pi;
mod robust;

/// The running thread lets go of the futexes in its memory, which it leaves: because it ends, or (`exec`) for another
/// program.
pub fn release(me: &Thread, exec: bool) {
    robust::release(me);
    pi::release_all(me, exec);
    let tid_at = me.clear_child_tid.swap(0, Ordering::Relaxed);
    if tid_at != 0 && UserPtr::<u32>::new(tid_at).write(0).is_ok() {
        wake_shared_or_private(tid_at, 1);
    }
}

/// The thread with the number `old` will have the number `new`: waiters know the owner of a futex by it.
pub fn renumber(old: Tid, new: Tid) {
    pi::renumber(old, new);
}

pub use key::{Key, Need, key};

struct Waiter {
    thread: ThreadRef,
    /// Changes under the locks of the buckets it leaves and comes to.
    at: SpinLock<WaiterSlot<Key>>,
    bits: u32,
    woken: AtomicBool,
    /// What it waits for next, if it is to be moved to a futex with an owner ([`requeue_pi`]).
    pi: Option<Arc<pi::Waiter>>,
}

const BUCKETS: usize = 256;
static TABLE: [SpinLock<Bucket>; BUCKETS] = [const { SpinLock::new(Bucket::new()) }; BUCKETS];

/// Some futexes' waiters. What is not in it any more was woken, or moved.
type Bucket = Waiters<Key, Arc<Waiter>>;

/// Every bit: what the calls without a bit set use.
pub const ALL_BITS: u32 = u32::MAX;

/// Sleeps while the word at `addr` holds `value`, until woken with one of `bits`, a signal, or `deadline`.
pub fn wait(addr: u64, private: bool, value: u32, bits: u32, deadline: Option<Nanos>) -> Result<(), Errno> {
    if bits == 0 {
        return Err(Errno::EINVAL);
    }
    let me = current();
    let at = SpinLock::new(WaiterSlot::before(key(addr, private, Need::Read)?));
    let waiter = Arc::new(Waiter { thread: me.to_arc(), at, bits, woken: AtomicBool::new(false), pi: None });
    queue_if(&waiter, addr, value, || Ok(()))?;
    loop {
        sched::prepare_to_sleep(Sleep::Interruptible);
        let verdict = if waiter.woken.load(Ordering::Acquire) {
            Some(Ok(()))
        } else if deadline.is_some_and(|at| now() >= at) {
            Some(Err(Errno::ETIMEDOUT))
        } else if signal::is_pending(&me, Sleep::Interruptible) {
            Some(Err(Errno::ERESTARTSYS))
        } else {
            None
        };
        match verdict {
            None => sched::sleep_for(WaitReason::Futex.number(), addr, deadline),
            Some(verdict) => {
                sched::cancel_sleep();
                // Woken in the same instant counts as woken: the waker has counted it too.
                return if leave(&waiter) { verdict } else { Ok(()) };
            }
        }
    }
}

/// Queues `waiter` if the word at `addr` holds `value` and `check` agrees; else EAGAIN, or what `check` says.
fn queue_if(waiter: &Arc<Waiter>, addr: u64, value: u32, check: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    let key = waiter.at.lock().key();
    loop {
        // Under the lock the load does not fault pages in; outside it does.
        let seen = machine::user::load_u32(UserAddr(addr)).map_err(|_| Errno::EFAULT)?;
        if seen != value {
            return Err(Errno::EAGAIN);
        }
        check()?;
        let mut queue = bucket(&key);
        match machine::user::load_u32(UserAddr(addr)) {
            Err(_) => {}
            Ok(seen) if seen != value => return Err(Errno::EAGAIN),
            Ok(_) => {
                let at = queue.push(key, waiter.clone());
                *waiter.at.lock() = at;
                return Ok(());
            }
        }
        drop(queue);
        breathe_or_stop(Sleep::Killable)?;
    }
}

/// Wakes up to `count` waiters of `key` that wait for one of `bits`; how many. EINVAL for one that waits for a futex
/// with an owner.
pub fn wake(key: &Key, count: usize, bits: u32) -> Result<usize, Errno> {
    if pi::is_awaited(key) {
        return Err(Errno::EINVAL);
    }
    let mut at = WaiterSlot::before(*key);
    let mut newest = None;
    let mut done = 0;
    loop {
        let (woken, outcome) = {
            let mut queue = bucket(key);
            // Those that come meanwhile are not waited for.
            let newest = *newest.get_or_insert(queue.newest(*key));
            take(&mut queue, &mut at, newest, count - done, bits)
        };
        done += wake_all(woken);
        if outcome? == Taken::All {
            return Ok(done);
        }
        breathe();
    }
}

/// Wakes waiters of both kinds of key: for words the kernel changes itself.
pub fn wake_shared_or_private(addr: u64, count: usize) {
    for private in [true, false] {
        if let Ok(key) = key(addr, private, Need::Read)
            && (private || matches!(key, Key::Shared { .. }))
        {
            // Waiters of another kind are not for the kernel to wake.
            let _ = wake(&key, count, ALL_BITS);
        }
    }
}

/// Wakes up to `count` waiters of `from` and moves up to `move_count` of the others to `to`; how many of both. With
/// `expected`, only if the word still holds that value, else `EAGAIN`. EINVAL for one that waits for a futex with an
/// owner.
pub fn requeue(
    addr: u64,
    from: &Key,
    to: &Key,
    count: usize,
    move_count: usize,
    expected: Option<u32>,
) -> Result<(usize, usize), Errno> {
    if pi::is_awaited(from) {
        return Err(Errno::EINVAL);
    }
    let (first, second) = (index(from), index(to));
    let (mut low, mut high) = loop {
        let low = TABLE[first.min(second)].lock();
        let high = if first == second { None } else { Some(TABLE[first.max(second)].lock()) };
        let Some(value) = expected else { break (low, high) };
        match machine::user::load_u32(UserAddr(addr)) {
            Ok(seen) if seen == value => break (low, high),
            Ok(_) => return Err(Errno::EAGAIN),
            Err(_) => drop((low, high)),
        }
        // Faults the page in, for the look under the locks.
        machine::user::load_u32(UserAddr(addr)).map_err(|_| Errno::EFAULT)?;
        breathe_or_stop(Sleep::Killable)?;
    };
    let source: &mut Bucket = if first <= second { &mut low } else { high.as_mut().unwrap_or(&mut low) };
    let (mut woken, mut outcome) = (Vec::new(), Ok(Taken::Some));
    let (mut at, newest) = (WaiterSlot::before(*from), source.newest(*from));
    while outcome == Ok(Taken::Some) {
        let (some, next) = take(source, &mut at, newest, count - woken.len(), ALL_BITS);
        woken.extend(some);
        outcome = next;
    }
    if move_count > 0 && source.of(*from).any(|(_, waiter)| waiter.pi.is_some()) {
        outcome = Err(Errno::EINVAL);
    }
    let move_count = if outcome.is_ok() { move_count } else { 0 };
    let moving: Vec<_> = source.of(*from).take(move_count).map(|(at, _)| at).collect();
    let moving: Vec<_> = moving.iter().filter_map(|at| source.remove(at)).collect();
    let moved = moving.len();
    let target: &mut Bucket = if second <= first { &mut low } else { high.as_mut().unwrap_or(&mut low) };
    for waiter in moving {
        let at = target.push(*to, waiter.clone());
        *waiter.at.lock() = at;
    }
    drop((low, high));
    let woken = wake_all(woken);
    outcome.map(|_| (woken, moved))
}

/// How far a wake-up got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// There may be more to take.
    Some,
    /// There are no more, or as many as were asked for were taken.
    All,
}

/// Waiters that are looked at while their bucket is locked.
const LOOKED_AT: usize = 256;

/// Waiters that a wake-up took out, and how far it got.
type WakeList = (Vec<Arc<Waiter>>, Result<Taken, Errno>);

/// Takes up to `count` waiters between `at` and `newest` that wait for one of `bits` out of their bucket, for
/// [`wake_all`] to wake without the lock, and moves `at` behind those it looked at, of which there are [`LOOKED_AT`] at
/// most. EINVAL at the first that waits for a futex with an owner.
fn take(queue: &mut Bucket, at: &mut WaiterSlot<Key>, newest: WaiterSlot<Key>, count: usize, bits: u32) -> WakeList {
    let mut woken = Vec::new();
    let mut looks = LOOKED_AT;
    while woken.len() < count
        && let Some((next, waiter)) = queue.next(*at)
        && next <= newest
    {
        if waiter.pi.is_some() {
            return (woken, Err(Errno::EINVAL));
        }
        if looks == 0 {
            return (woken, Ok(Taken::Some));
        }
        looks -= 1;
        *at = next;
        if waiter.bits & bits != 0
            && let Some(waiter) = queue.remove(&next)
        {
            waiter.woken.store(true, Ordering::Release);
            woken.push(waiter);
        }
    }
    (woken, Ok(Taken::All))
}

/// Wakes those that were taken out; how many.
fn wake_all(woken: Vec<Arc<Waiter>>) -> usize {
    let count = woken.len();
    for waiter in woken {
        sched::wake(&waiter.thread);
        breathe();
    }
    count
}

/// Takes a waiter out of whatever bucket it is in; `false` when a waker was faster.
fn leave(waiter: &Arc<Waiter>) -> bool {
    loop {
        let at = *waiter.at.lock();
        let mut queue = bucket(&at.key());
        if *waiter.at.lock() != at {
            continue;
        }
        let gone = queue.remove(&at);
        drop(queue);
        return gone.is_some();
    }
}

fn bucket(key: &Key) -> SpinGuard<'static, Bucket> {
    TABLE[index(key)].lock()
}

fn index(key: &Key) -> usize {
    let mixed = match key {
        Key::Private { space, addr } => (*space as u64 >> 6) ^ (addr >> 2),
        Key::Shared { object: (kind, number), offset } => (kind << 32 ^ number) << 10 ^ offset >> 2,
    };
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}
