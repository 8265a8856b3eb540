//! The memory devices: null, zero, full, random (null(4), full(4), random(4)).

use linux_abi::Errno;

use crate::fs::file::{File, FileOps, Seeking};
use crate::fs::io::{Sink, Source};
use crate::random;
use crate::user::UserPtr;

/// Which one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Memory {
    Null,
    Zero,
    Full,
    Random,
}

/// `RNDGETENTCNT`.
const GET_ENTROPY_COUNT: u32 = 0x8004_5200;

impl FileOps for Memory {
    #[inline]
    fn read(&self, _file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        match self {
            Self::Null => Ok(()),
            Self::Zero | Self::Full => sink.put_zeros(sink.left()).map(|_| ()),
            Self::Random => fill(sink),
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

    fn ioctl(&self, _file: &File, request: u32, argument: u64) -> Result<usize, Errno> {
        match (self, request) {
            (Self::Random, GET_ENTROPY_COUNT) => UserPtr::<i32>::new(argument).write(256).map(|()| 0),
            _ => Err(Errno::ENOTTY),
        }
    }
}

/// Fills what a program reads with random bytes.
pub(super) fn fill(sink: &mut Sink<'_>) -> Result<(), Errno> {
    let mut chunk = [0; 256];
    while sink.left() > 0 {
        let count = chunk.len().min(sink.left());
        random::fill(&mut chunk[..count]);
        sink.put(&chunk[..count])?;
    }
    Ok(())
}

fn stir(source: &mut Source<'_>) -> Result<(), Errno> {
    let mut chunk = [0; 64];
    while source.left() > 0 {
        let count = source.take(&mut chunk)?;
        random::mix(&chunk[..count]);
    }
    Ok(())
}
