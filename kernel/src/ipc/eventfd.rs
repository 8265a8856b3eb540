//! Event counters (eventfd(2)).

use alloc::sync::Arc;

use kernel_logic::readiness::{ERR, IN, OUT, RDNORM, WRNORM};
use linux_abi::Errno;
use linux_abi::flags::file::O_RDWR;
use machine::sync::SpinLock;

use crate::fs::file::{File, FileOps};
use crate::fs::io::{Sink, Source};
use crate::fs::{FileSlot, anon};
use crate::sync::WaitReason;
use crate::sync::wait::{WaitQueue, Waiter};

/// A counter that can be waited for (eventfd(2)).
pub struct EventFd {
    count: SpinLock<u64>,
    semaphore: bool,
    readable: WaitQueue,
    writable: WaitQueue,
}

/// Access mode of the description.
const READ_WRITE: u32 = O_RDWR as u32;
/// The highest value: one more would be the overflow mark.
const MOST: u64 = u64::MAX - 1;

/// Makes a counter at `count`; `flags` are `O_NONBLOCK` or nothing.
pub fn create(count: u64, semaphore: bool, flags: u32) -> Result<Arc<File>, Errno> {
    let slot = FileSlot::take()?;
    let readable = WaitQueue::new(WaitReason::EventfdCount);
    let counter =
        EventFd { count: SpinLock::new(count), semaphore, readable, writable: WaitQueue::new(WaitReason::EventfdRoom) };
    Ok(anon::open_shared("anon_inode:[eventfd]", Arc::new(counter), flags | READ_WRITE, slot))
}

impl EventFd {
    fn try_take(&self) -> Option<u64> {
        let mut count = self.count.lock();
        if *count == 0 {
            return None;
        }
        let taken = if self.semaphore { 1 } else { *count };
        *count -= taken;
        Some(taken)
    }

    fn try_add(&self, value: u64) -> Option<()> {
        let mut count = self.count.lock();
        let sum = count.checked_add(value).filter(|&sum| sum <= MOST)?;
        *count = sum;
        Some(())
    }
}

impl FileOps for EventFd {
    fn seeking(&self) -> crate::fs::file::Seeking {
        crate::fs::file::Seeking::Nowhere
    }

    fn read(&self, file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        if sink.left() < 8 {
            return Err(Errno::EINVAL);
        }
        let value = match self.try_take() {
            Some(value) => value,
            None if file.is_nonblocking() => return Err(Errno::EAGAIN),
            None => self.readable.wait(|| self.try_take())?,
        };
        self.writable.wake_all();
        sink.put(&value.to_ne_bytes()).map(|_| ())
    }

    fn write(&self, file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        if source.left() < 8 {
            return Err(Errno::EINVAL);
        }
        let mut bytes = [0; 8];
        source.take(&mut bytes)?;
        let value = u64::from_ne_bytes(bytes);
        if value > MOST {
            source.untake(8);
            return Err(Errno::EINVAL);
        }
        let added = match self.try_add(value) {
            Some(()) => Ok(()),
            None if file.is_nonblocking() => Err(Errno::EAGAIN),
            None => self.writable.wait(|| self.try_add(value)).map_err(Errno::from),
        };
        if let Err(error) = added {
            source.untake(8);
            return Err(error);
        }
        self.readable.wake_all();
        Ok(position)
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            waiter.add(&self.readable);
            waiter.add(&self.writable);
        }
        let count = *self.count.lock();
        let readable = if count > 0 { IN | RDNORM } else { 0 };
        let writable = if count < MOST { OUT | WRNORM } else { 0 };
        let overflow = if count == u64::MAX { ERR } else { 0 };
        readable | writable | overflow
    }
}
