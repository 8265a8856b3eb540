//! Waiting for any of several descriptions (poll(2), select(2)).
//!
//! The first look takes no queue: most calls find something ready, or do not want to wait.

use alloc::sync::Arc;

use kernel_logic::readiness::{NVAL, poll_result};
use linux_abi::Errno;
use machine::time::Nanos;

use crate::fs::file::File;
use crate::sched::breathe;
use crate::sync::wait::{WaitError, Waiter};
use crate::task::kept::Keeping;

/// One description that is waited for.
pub struct Wish {
    /// `None` for a number that is ignored or stands for nothing.
    pub file: Option<Arc<File>>,
    /// The number stands for nothing: reported as `POLLNVAL`.
    pub invalid: bool,
    /// `POLL*` bits that are asked for.
    pub events: u32,
    /// What it is ready for, of what was wished.
    pub ready: u32,
}

impl Wish {
    fn look<'q>(file: &'q Arc<File>, events: u32, waiter: Option<&mut Waiter<'q>>) -> u32 {
        poll_result(events, file.poll(waiter))
    }
}

/// Looks at every wish; how many have something to report.
#[inline]
pub fn look(wishes: &mut [Wish]) -> usize {
    let mut found = 0;
    for wish in wishes {
        breathe();
        wish.ready = match &wish.file {
            Some(file) => Wish::look(file, wish.events, None),
            None if wish.invalid => NVAL,
            None => 0,
        };
        found += usize::from(wish.ready != 0);
    }
    found
}

/// Looks, and waits until something is ready or `deadline` passes (`None`: never). EINTR on a signal.
pub fn wait(wishes: &mut [Wish], deadline: Option<Nanos>) -> Result<usize, Errno> {
    let found = look(wishes);
    if found > 0 || deadline == Some(0) {
        return Ok(found);
    }
    let _kept = (wishes.len() > FEW).then(|| Keeping::new(wishes.len() * PER_WISH));
    loop {
        let mut waiter = Waiter::new();
        waiter.prepare();
        let mut found = 0;
        for wish in wishes.iter() {
            breathe();
            let ready = wish.file.as_ref().map_or(0, |file| Wish::look(file, wish.events, Some(&mut waiter)));
            found += usize::from(ready != 0);
        }
        if found > 0 {
            waiter.cancel();
        } else {
            match waiter.sleep(deadline) {
                Ok(()) => {}
                Err(WaitError::TimedOut) => {
                    drop(waiter);
                    return Ok(look(wishes));
                }
                Err(WaitError::Interrupted) => {
                    drop(waiter);
                    let found = look(wishes);
                    return if found > 0 { Ok(found) } else { Err(Errno::EINTR) };
                }
            }
        }
        drop(waiter);
        let found = look(wishes);
        if found > 0 {
            return Ok(found);
        }
    }
}

/// So many wishes are not worth a note of what they take.
const FEW: usize = 64;
/// Bytes of a wish that waits, with its place in a queue.
const PER_WISH: usize = size_of::<Wish>() + 48;
