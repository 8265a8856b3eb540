//! kcmp(2): whether two threads share something the kernel keeps for them, and an order in which programs may sort such
//! things.

use alloc::sync::Arc;

use linux_abi::Errno;
use linux_abi::syscalls::nr;
use machine::sync::Once;

use super::{Call, Calls, SysResult};
use crate::ipc::epoll;
use crate::random;
use crate::task::access::{self, By};
use crate::task::{Pid, Task, ThreadRef, tree};
use crate::user::read_words;

/// This area's calls.
pub const CALLS: Calls = &[(nr::kcmp, kcmp)];

/// What is compared (`enum kcmp_type`).
const FILE: i32 = 0;
const MEMORY: i32 = 1;
const FILES: i32 = 2;
const FS: i32 = 3;
const HANDLERS: i32 = 4;
const IO: i32 = 5;
const SEMAPHORES: i32 = 6;
const WATCHED: i32 = 7;

fn kcmp(call: &mut Call<'_>) -> SysResult {
    let find = |pid: i32| tree::thread(pid as Pid).ok_or(Errno::ESRCH);
    let pair = [find(call.int(0))?, find(call.int(1))?];
    for thread in &pair {
        access::check(&call.task, thread, By::RealIds)?;
    }
    let of = |what: fn(&Task) -> usize| Ok(order(pair.each_ref().map(|thread| what(thread))));
    match call.int(2) {
        FILE => {
            let one = address(&file(&pair[0], call.arg(3))?);
            Ok(order([one, address(&file(&pair[1], call.arg(4))?)]))
        }
        MEMORY => of(|task| task.mm.get().as_ref().map_or(0, address)),
        FILES => of(|task| task.files.get().as_ref().map_or(0, address)),
        FS => of(|task| task.fs.get().as_ref().map_or(0, address)),
        HANDLERS => of(|task| task.process.signals.actions_id()),
        // No thread has any.
        IO | SEMAPHORES => Ok(0),
        WATCHED => {
            let one = address(&file(&pair[0], call.arg(3))?);
            Ok(order([one, epoll_target(&pair[1], call.arg(4))?]))
        }
        _ => Err(Errno::EINVAL),
    }
}

fn address<T: ?Sized>(thing: &Arc<T>) -> usize {
    Arc::as_ptr(thing).addr()
}

fn file(thread: &ThreadRef, number: u64) -> Result<Arc<crate::fs::File>, Errno> {
    thread.files.get().ok_or(Errno::EBADF)?.get(number as i32)
}

/// The description that an epoll of `thread` watches, by a `struct kcmp_epoll_slot`: epoll, descriptor, and which of
/// those watched under that number.
fn epoll_target(thread: &ThreadRef, at: u64) -> Result<usize, Errno> {
    let [numbers, which] = read_words(at)?;
    let epoll = file(thread, numbers & 0xffff_ffff)?;
    let epoll = epoll::of(&epoll).ok_or(Errno::EINVAL)?;
    epoll.target((numbers >> 32) as i32, which as u32).ok_or(Errno::ENOENT)
}

/// 0 for the same, 1 or 2 for which of two addresses comes first, in an order that tells nothing about them.
fn order([one, other]: [usize; 2]) -> usize {
    static KEYS: Once<[u64; 2]> = Once::new();
    let [mask, factor] = loop {
        if let Some(keys) = KEYS.get() {
            break *keys;
        }
        let mut bytes = [0; 16];
        random::fill(&mut bytes);
        let word = |at: usize| bytes[at..at + 8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        // Of two that come here at once, one is used. An odd factor keeps different addresses different.
        let _ = KEYS.set([word(0), word(8) | 1]);
    };
    let hidden = |address: usize| (address as u64 ^ mask).wrapping_mul(factor);
    match hidden(one).cmp(&hidden(other)) {
        core::cmp::Ordering::Equal => 0,
        core::cmp::Ordering::Less => 1,
        core::cmp::Ordering::Greater => 2,
    }
}
