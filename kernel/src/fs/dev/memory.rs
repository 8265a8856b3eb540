//! The memory devices: null, zero, full, random (null(4), full(4), random(4)).

use linux_abi::Errno;
use linux_abi::flags::system::RNDGETENTCNT;
use machine::addr::PAGE_SIZE;

use crate::fs::file::{File, FileOps, Seeking};
use crate::fs::io::{Sink, Source};
use crate::random;
use crate::sched::{Sleep, breathe_or_stop};
use crate::user::UserPtr;

/// The memory devices: `/dev/null`, `zero`, `full`, `random`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Memory {
    Null,
    Zero,
    Full,
    Random,
}

impl FileOps for Memory {
    #[inline]
    fn read(&self, _file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        match self {
            Self::Null => Ok(()),
            Self::Zero | Self::Full => zeros(sink),
            Self::Random => fill_random(sink),
        }
    }

    #[inline]
    fn write(&self, _file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        match self {
            Self::Full if source.left() > 0 => return Err(Errno::ENOSPC),
            Self::Random => stir(source)?,
            _ => source.skip(source.left()),
        }
        Ok(position)
    }

    fn seeking(&self) -> Seeking {
        Seeking::Ignored
    }

    fn ioctl(&self, _file: &File, request: u64, argument: u64) -> Result<usize, Errno> {
        match (self, request) {
            (Self::Random, RNDGETENTCNT) => UserPtr::<i32>::new(argument).write(256).map(|()| 0),
            _ => Err(Errno::ENOTTY),
        }
    }
}

/// Bytes between two looks for a signal.
const STRETCH: usize = PAGE_SIZE;

/// A stretch is over: ERESTARTSYS, which cuts the transfer short, for a signal (random(4), "Interrupted reads").
fn stretch_over(left: usize) -> Result<(), Errno> {
    if left == 0 { Ok(()) } else { breathe_or_stop(Sleep::Interruptible).map_err(|_| Errno::ERESTARTSYS) }
}

fn zeros(sink: &mut Sink<'_>) -> Result<(), Errno> {
    while sink.left() > 0 {
        sink.put_zeros(STRETCH)?;
        stretch_over(sink.left())?;
    }
    Ok(())
}

/// Fills what a program reads with random bytes; cut short by a signal.
pub fn fill_random(sink: &mut Sink<'_>) -> Result<(), Errno> {
    let mut chunk = [0; 256];
    while sink.left() > 0 {
        let count = chunk.len().min(sink.left());
        random::fill(&mut chunk[..count]);
        sink.put(&chunk[..count])?;
        if sink.done().is_multiple_of(STRETCH) {
            stretch_over(sink.left())?;
        }
    }
    Ok(())
}

fn stir(source: &mut Source<'_>) -> Result<(), Errno> {
    let mut chunk = [0; 64];
    while source.left() > 0 {
        let count = source.take(&mut chunk)?;
        random::mix(&chunk[..count]);
        if source.done().is_multiple_of(STRETCH) {
            stretch_over(source.left())?;
        }
    }
    Ok(())
}
